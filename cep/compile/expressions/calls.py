"""Operators and functions of the language as calls of Python functions.

In comes a value whose operands must not be null (`a + b`, `lower(x)`, `x in list`), out comes a
`Call`: the Python function that does it, whatever the operands turn out to be, and, where their
types are known, code that does the same in place. Patterns and constant arguments go into the
function here, once. The fast and the careful form of an expression are both made of these calls,
so that what an operator means stands once.
"""

from __future__ import annotations

from functools import partial
from typing import Any

from cep.compile.expressions.call import COUNTED, UNARY, Call, Names
from cep.compile.expressions.function_calls import function_call
from cep.compile.expressions.operators import COMPARISONS, arith
from cep.runtime import functions as f
from dsl.checked import (
    Arith,
    CallFunction,
    Coalesce,
    Comparison,
    GetField,
    GetIndex,
    Lookup,
    Minus,
    Value,
)
from dsl.types import Type


def as_call(value: Value, names: Names) -> Call | None:
    """The call that a value amounts to; None when it is no strict operator or function."""
    if isinstance(value, Comparison):
        return COMPARISONS[value.op](value, names)
    if isinstance(value, Arith):
        return arith(value, names)
    if isinstance(value, Minus):
        inline = "-{0}" if names.known(value.operand) in COUNTED else None
        kind = value.type if value.type in COUNTED else Type.NUMBER
        return Call(f.negative, (value.operand,), kind, inline, precedence=UNARY)
    if isinstance(value, GetField):
        return Call(partial(_get_field, value.name), (value.value,), nullable=True)
    if isinstance(value, GetIndex):
        return Call(f.get_index, (value.value, value.index), nullable=True)
    if isinstance(value, Lookup):
        return Call(names.finder(value), (value.key,), nullable=True)
    if isinstance(value, CallFunction) and value.function not in ("if", "coalesce"):
        return function_call(value, names)
    return None


def _get_field(name: str, value: Any) -> Any:
    return f.get_field(value, name)


def missing_test(value: Value) -> Call | None:
    """`value is missing` of a part of another value; None for what is never missing."""
    if isinstance(value, GetField):
        return Call(partial(f.lacks_field, value.name), (value.value,), Type.BOOL, strict=False)
    if isinstance(value, GetIndex):
        return Call(f.lacks_index, (value.value, value.index), Type.BOOL, strict=False)
    return None


def is_choice(value: Value) -> bool:
    """Whether a value is `a ?? b` or `coalesce(a, b, …)`."""
    return isinstance(value, Coalesce) or (
        isinstance(value, CallFunction) and value.function == "coalesce"
    )


def choices(value: Value) -> tuple[Value, ...]:
    """What `??`, `coalesce` and `if` choose from."""
    if isinstance(value, Coalesce):
        return (value.left, value.right)
    assert isinstance(value, CallFunction)
    return value.arguments[1:] if value.function == "if" else value.arguments
