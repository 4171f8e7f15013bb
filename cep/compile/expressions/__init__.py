"""Expressions as Python code.

In comes a checked value and an `Env`, which says how the leaves (fields, keys, bound steps, …) are
read in the code around; out comes the text of a Python expression. There are no three-valued values
in the fast forms: `truth` asks "is it true?", `falsity` "is it false?", and `not` is pushed down
to the leaves, so a missing `x` needs one test: `x is not None and x > 5`.

Each expression has two forms:

* **fast**: `truth`, `falsity`, `compute`. They raise (any `Exception`) when something fails: a type
  that does not fit, a bad cast, a division by zero. `compute` may give an `Odd` box unopened.
* **careful**: `careful`, `careful_value`. They never raise; what fails is null and is counted in
  `Careful.failures`. Where `falsity` raised, ask for the careful form of the negation.

Both are made of the calls of `calls`, so an operator has one meaning. The code binds
temporaries with `:=` and is to be placed in a function.

However deep an expression is, its code is not: whatever nests deeper than CPython's parser can bear
is computed before the rest, into a temporary. That does more than needed but never changes an
answer, since what raises too early only leads to the careful form.
"""

from __future__ import annotations

from cep.compile.expressions.careful_form import CarefulForm, said
from cep.compile.expressions.env import Env
from cep.compile.expressions.fast_form import FastForm
from dsl.checked import Value

__all__ = ["Env", "careful", "careful_value", "compute", "falsity", "said", "truth"]


def truth(value: Value, env: Env) -> str:
    """Code that is truthy exactly when the condition is true; may raise."""
    return FastForm(value, env).condition(True)


def falsity(value: Value, env: Env) -> str:
    """Code that is truthy exactly when the condition is false; may raise."""
    return FastForm(value, env).condition(False)


def compute(value: Value, env: Env) -> str:
    """Code of the value, None for null; may raise."""
    return FastForm(value, env).value()


def careful(value: Value, env: Env) -> str:
    """Code of the condition's answer: True, False or None for unknown; never raises."""
    return CarefulForm(value, env).condition()


def careful_value(value: Value, env: Env) -> str:
    """Code of the value, None for null and for whatever fails; never raises."""
    return CarefulForm(value, env).value()
