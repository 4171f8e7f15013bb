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

Both are made of the calls of `cep.compile.calls`, so an operator has one meaning. The code binds
temporaries with `:=` and is to be placed in a function.

However deep an expression is, its code is not: whatever nests deeper than CPython's parser can bear
is computed before the rest, into a temporary. That does more than needed but never changes an
answer, since what raises too early only leads to the careful form.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

from cep.compile.calls import (
    AND,
    ATOM,
    COMPARE,
    NOT,
    OR,
    SUM,
    TERM,
    TERNARY,
    UNARY,
    Call,
    Scalar,
    arith_type,
    as_call,
    boolean_or_bare,
    function_type,
    inline_flags,
    is_leaf,
    missing_test,
)
from cep.runtime import functions
from dsl.checked import (
    Arith,
    ArrayOf,
    CallFunction,
    Coalesce,
    Comparison,
    Conjunction,
    Const,
    Disjunction,
    FunctionSignature,
    IsMissing,
    IsNull,
    Local,
    Minus,
    NamedList,
    Negation,
    Pattern,
    Quantified,
    Value,
)
from dsl.types import Type


class Env(Protocol):
    """How the code around an expression holds what the expression reads.

    A leaf is any value that is not one of the operators, functions and constants of this module.
    """

    @property
    def careful(self) -> str:
        """The name of the rule's `Careful` object."""

    def load(self, leaf: Value) -> str:
        """Code of a leaf: cheap, without effects, None when the leaf is null or missing."""

    def is_missing(self, leaf: Value) -> str:
        """Code that is true when the leaf is missing (and not null)."""

    def type_of(self, leaf: Value) -> Type:
        """What `load` surely holds besides None and `Odd`; ANY when nothing is sure."""

    def nullable(self, leaf: Value) -> bool:
        """Whether `load` may be None."""

    def constant(self, obj: object) -> str:
        """The name under which the code finds a Python object."""

    def temporary(self) -> str:
        """A fresh name for a local variable."""

    def list_items(self, name: str) -> Sequence[Scalar]:
        """The items of a named list, those of its file too."""

    def host_function(self, name: str) -> FunctionSignature | None:
        """The function that the host has registered under a name."""


def truth(value: Value, env: Env) -> str:
    """Code that is truthy exactly when the condition is true; may raise."""
    return _Fast(value, env).condition(True)


def falsity(value: Value, env: Env) -> str:
    """Code that is truthy exactly when the condition is false; may raise."""
    return _Fast(value, env).condition(False)


def compute(value: Value, env: Env) -> str:
    """Code of the value, None for null; may raise."""
    return _Fast(value, env).value()


def careful(value: Value, env: Env) -> str:
    """Code of the condition's answer: True, False or None for unknown; never raises."""
    return _Careful(value, env).condition()


def careful_value(value: Value, env: Env) -> str:
    """Code of the value, None for null and for whatever fails; never raises."""
    return _Careful(value, env).value()


# ---------------------------------------------------------------------------- what is known before

_DEEP = 20
"""Levels of operators after which the code of an expression is cut."""

_LOGIC = (Comparison, IsNull, IsMissing, Negation, Conjunction, Disjunction, Quantified)


class _Analysis:
    """What has to be known of an expression before its code is written; made bottom-up.

    `early` are the parts to be computed before the rest, innermost first, with their names.
    """

    def __init__(self, value: Value, env: Env) -> None:
        self.env = env
        self.constant = env.constant
        self.list_items = env.list_items
        self.host_function = env.host_function
        self.early: dict[int, str] = {}
        self.early_parts: list[Value] = []
        self._types: dict[int, Type] = {}
        self._keep: list[Value] = []
        self._bottom_up(value)

    def known(self, value: Value) -> Type:
        """What the code of a value surely holds besides None and `Odd`."""
        found = self._types.get(id(value))
        if found is None:
            found = self._types[id(value)] = self._type(value)
            self._keep.append(value)
        return found

    def _bottom_up(self, root: Value) -> None:
        heights: dict[int, int] = {}
        local: set[int] = set()
        for value in reversed(_parents_first(root)):
            parts = _parts(value)
            height = 1 + max((heights[id(part)] for part in parts), default=0)
            if isinstance(value, Local) or any(id(part) in local for part in parts):
                local.add(id(value))
            self.known(value)
            if height > _DEEP and value is not root and id(value) not in local:
                if id(value) not in self.early:
                    self.early[id(value)] = self.env.temporary()
                    self.early_parts.append(value)
                height = 1
            heights[id(value)] = height

    def _type(self, value: Value) -> Type:
        if isinstance(value, _LOGIC):
            return Type.BOOL
        if isinstance(value, Const):
            return _constant_type(value)
        if isinstance(value, Arith | Minus):
            return arith_type(value)
        if isinstance(value, ArrayOf | NamedList):
            return Type.ARRAY
        if isinstance(value, Pattern):
            return Type.REGEX
        if isinstance(value, CallFunction) and value.function not in ("if", "coalesce"):
            return function_type(value, self)
        if isinstance(value, CallFunction | Coalesce):
            return self._common(choices(value))
        return self.env.type_of(value) if is_leaf(value) else Type.ANY

    def _common(self, values: Sequence[Value]) -> Type:
        kinds = {self.known(value) for value in values} - {Type.NULL}
        if kinds <= {Type.INT, Type.NUMBER} and kinds:
            return Type.NUMBER
        return kinds.pop() if len(kinds) == 1 else Type.ANY


def _parents_first(root: Value) -> list[Value]:
    order: list[Value] = []
    todo = [root]
    while todo:
        value = todo.pop()
        order.append(value)
        todo.extend(_parts(value))
    return order


def _parts(value: Value) -> list[Value]:
    """The operands that this module writes itself; a leaf has none."""
    return [] if is_leaf(value) else list(value.operands())


def _constant_type(value: Const) -> Type:
    if value.value is None:
        return Type.NULL
    if isinstance(value.value, bool):
        return Type.BOOL
    if isinstance(value.value, str):
        return Type.STRING
    return value.type if value.type in (Type.TIME, Type.DURATION) else Type.NUMBER


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


def _constant_code(value: Scalar, env: Env) -> tuple[str, int]:
    """A literal, or the name of a constant where a literal could be misread or would be long."""
    if isinstance(value, float) and not math.isfinite(value):
        return env.constant(value), ATOM
    if isinstance(value, int) and value.bit_length() > 256:
        return env.constant(value), ATOM
    negative = isinstance(value, int | float) and not isinstance(value, bool) and value < 0
    return repr(value), UNARY if negative else ATOM


_NAME = re.compile(r"[A-Za-z_]\w*")
_LITERAL = re.compile(r"""-?\d[\w.+-]*|'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*\"""")
_SIMPLE = re.compile(r"[A-Za-z_]\w*(?:\.\w+|\[\w+\])*|\d+")


def _bound(code: str, precedence: int, needed: int) -> str:
    """The code, in parentheses unless it binds as tightly as needed."""
    return code if precedence >= needed else f"({code})"


# ---------------------------------------------------------------------------- the fast form


@dataclass(slots=True)
class _Facts:
    """What is known where a piece of code will run: temporaries bound, leaves that are not null.

    `locals` are the variables of `any` and `all` around; inside them nothing new is bound.
    """

    names: dict[Value, str] = field(default_factory=dict)
    present: set[Value] = field(default_factory=set)
    locals: dict[str, str] = field(default_factory=dict)

    def copy(self) -> _Facts:
        return _Facts(dict(self.names), set(self.present), self.locals)


@dataclass(frozen=True, slots=True)
class _Operand:
    """Code of a value. `tests` must hold, in order, for it to be evaluated; when one does not, the
    value is null. `nullable`: the code itself may still give None. `leaf`: it loads just that."""

    code: str
    precedence: int = ATOM
    tests: tuple[str, ...] = ()
    nullable: bool = False
    leaf: Value | None = None


@dataclass(frozen=True, slots=True)
class _Condition:
    """Code of a question; `bound` are temporaries that it binds whatever the answer is."""

    code: str
    precedence: int
    bound: dict[Value, str] = field(default_factory=dict)


class _Fast:
    """Writes the fast forms of one expression."""

    def __init__(self, root: Value, env: Env) -> None:
        self.root = root
        self.env = env
        self.analysis = _Analysis(root, env)

    def condition(self, positive: bool) -> str:
        """Code that is truthy when the expression is true (or false, when not `positive`)."""
        before = self._early()
        return _after(before, self._condition(self.root, positive, _Facts()).code)

    def value(self) -> str:
        """Code of the expression's value."""
        before = self._early()
        return _after(before, self._whole(self.root, _Facts()).code)

    def _early(self) -> list[str]:
        """Assignments of the parts that are computed first."""
        early = self.analysis.early
        found = []
        for part in self.analysis.early_parts:
            name = early.pop(id(part))
            found.append(f"{name} := {_grouped(self._whole(part, _Facts()))}")
            early[id(part)] = name
        return found

    # ------------------------------------------------------------------------ conditions

    def _condition(self, value: Value, positive: bool, facts: _Facts) -> _Condition:
        """The question whether `value` is true, or false. Afterwards `facts` holds what is known
        when the answer is yes."""
        if id(value) in self.analysis.early:
            return self._of_value(value, positive, facts)
        if isinstance(value, Negation):
            return self._condition(value.operand, not positive, facts)
        if isinstance(value, Comparison) and value.op == "!=":
            return self._call(self._opposite(value), not positive, facts)
        if isinstance(value, Conjunction | Disjunction):
            both = isinstance(value, Conjunction) is positive
            return (self._all if both else self._any)(value.parts, positive, facts)
        if isinstance(value, IsNull):
            return self._is_null(value, positive, facts)
        if isinstance(value, IsMissing):
            return self._is_missing(value, positive, facts)
        if isinstance(value, Quantified):
            return self._quantified(value, positive, facts)
        if isinstance(value, CallFunction) and value.function == "if":
            return self._if_condition(value, positive, facts)
        call = as_call(value, self.analysis)
        if call is not None and call.type is Type.BOOL and not call.nullable:
            return self._call(call, positive, facts)
        return self._of_value(value, positive, facts)

    def _opposite(self, value: Comparison) -> Call:
        call = as_call(replace(value, op="=="), self.analysis)
        assert call is not None
        return call

    def _all(self, parts: tuple[Value, ...], positive: bool, facts: _Facts) -> _Condition:
        found = [self._condition(part, positive, facts) for part in parts]
        code = " and ".join(_bound(c.code, c.precedence, AND) for c in found)
        return _Condition(code, AND if len(found) > 1 else found[0].precedence, found[0].bound)

    def _any(self, parts: tuple[Value, ...], positive: bool, facts: _Facts) -> _Condition:
        first = self._condition(parts[0], positive, facts.copy())
        facts.names.update(first.bound)
        found = [first, *(self._condition(p, positive, facts.copy()) for p in parts[1:])]
        code = " or ".join(_bound(c.code, c.precedence, OR) for c in found)
        return _Condition(code, OR if len(found) > 1 else first.precedence, first.bound)

    def _call(self, call: Call, positive: bool, facts: _Facts) -> _Condition:
        """A comparison, or a function that answers yes or no."""
        relaxed = self._relaxed(call, facts) if positive else frozenset()
        operands = [
            self._operand(operand, facts) if i in relaxed else self._argument(call, operand, facts)
            for i, operand in enumerate(call.operands)
        ]
        tests, operands = self._named(call, operands)
        code, precedence = self._written(call, operands, negative=not positive)
        return self._guarded(tests, code, precedence, facts)

    def _argument(self, call: Call, value: Value, facts: _Facts) -> _Operand:
        """An operand, tested where the function takes no null."""
        if not call.strict:
            return self._whole(value, facts.copy())
        return self._sure(self._operand(value, facts), facts)

    def _relaxed(self, call: Call, facts: _Facts) -> frozenset[int]:
        """Operands that need no test: one that is null gives something untrue by itself."""
        plain = frozenset(
            i
            for i in call.none_safe
            if is_leaf(call.operands[i]) or isinstance(call.operands[i], Local)
        )
        if len(plain) < 2:
            return plain
        right = self._operand(call.operands[1], facts)  # null == null would be true
        return frozenset({1}) if right.nullable else frozenset({0})

    def _guarded(
        self, tests: Sequence[str], code: str, precedence: int, facts: _Facts
    ) -> _Condition:
        """`code`, asked when the tests hold."""
        bound = {}
        if tests:
            bound = {leaf: name for leaf, name in facts.names.items() if f"({name} :=" in tests[0]}
            code = " and ".join([*tests, _bound(code, precedence, AND)])
            precedence = AND
        return _Condition(code, precedence, bound)

    def _of_value(self, value: Value, positive: bool, facts: _Facts) -> _Condition:
        """A value where a condition stands: it holds only when it is the boolean asked for."""
        operand = self._operand(value, facts)
        if isinstance(value, Const):
            return _Condition(str(value.value is positive), ATOM)
        code = _bound(operand.code, operand.precedence, SUM)
        if not boolean_or_bare(value, self.analysis):
            code = f"{self.env.constant(functions.answer)}({operand.code})"
        return self._guarded(operand.tests, f"{code} is {positive}", COMPARE, facts)

    def _is_null(self, value: IsNull, positive: bool, facts: _Facts) -> _Condition:
        operand = self._operand(value.operand, facts.copy())
        if operand.leaf is not None and not operand.nullable:
            return _Condition(str(not positive), ATOM)
        whole = self._joined(operand)
        code = _none_test(_bound(*whole, needed=SUM), positive)
        if not positive and operand.leaf is not None:
            facts.present.add(operand.leaf)
        return _Condition(code, COMPARE)

    def _is_missing(self, value: IsMissing, positive: bool, facts: _Facts) -> _Condition:
        leaf = value.operand
        if is_leaf(leaf):
            code = self.env.is_missing(leaf)
            return _Condition(
                f"({code})" if positive else f"not ({code})", ATOM if positive else NOT
            )
        call = missing_test(leaf)
        if call is None:
            return _Condition(str(not positive), ATOM)
        return self._call(call, positive, facts)

    def _quantified(self, value: Quantified, positive: bool, facts: _Facts) -> _Condition:
        array = self._array(value, facts)
        inner, variable = self._inside(value, facts)
        condition = self._condition(value.condition, positive, inner)
        function = "all" if value.every is positive else "any"
        code = f"{function}({condition.code} for {variable} in {array.code})"
        return self._guarded(array.tests, code, ATOM, facts)

    def _array(self, value: Quantified, facts: _Facts) -> _Operand:
        """The array that `any` or `all` goes through, as code that stands after `in`."""
        array = self._sure(self._operand(value.array, facts), facts)
        if self.analysis.known(value.array) is not Type.ARRAY:
            name = self.env.constant(functions.elements)
            array = replace(array, code=f"{name}({array.code})", precedence=ATOM)
        if ":=" in array.code:  # Python forbids it there
            array = self._through_temporary(array)
        return replace(array, code=_bound(array.code, array.precedence, OR))

    def _inside(self, value: Quantified, facts: _Facts) -> tuple[_Facts, str]:
        variable = self.env.temporary()
        inner = facts.copy()
        inner.locals = {**facts.locals, value.variable: variable}
        inner.present = {
            leaf
            for leaf in facts.present
            if not (isinstance(leaf, Local) and leaf.name == value.variable)
        }
        return inner, variable

    def _if_condition(self, value: CallFunction, positive: bool, facts: _Facts) -> _Condition:
        test, yes, no = value.arguments
        inside = facts.copy()
        asked = self._condition(test, True, inside)
        facts.names.update(asked.bound)
        then = self._condition(yes, positive, inside)
        other = self._condition(no, positive, facts.copy())
        return _Condition(_ternary(then.code, asked.code, other.code), TERNARY, asked.bound)

    # ------------------------------------------------------------------------ values

    def _operand(self, value: Value, facts: _Facts) -> _Operand:
        name = self.analysis.early.get(id(value))
        if name is not None:
            return _Operand(name, nullable=True)
        if isinstance(value, Const):
            code, precedence = _constant_code(value.value, self.env)
            return _Operand(code, precedence, nullable=value.value is None)
        if isinstance(value, Local):
            return _Operand(
                facts.locals[value.name], nullable=value not in facts.present, leaf=value
            )
        if is_leaf(value):
            return self._leaf(value, facts)
        if isinstance(value, Pattern):
            return _Operand(repr(inline_flags(value)))
        if isinstance(value, NamedList):
            return _Operand(self.env.constant(list(self.env.list_items(value.name))))
        if isinstance(value, ArrayOf):
            items = [self._whole(item, facts.copy()) for item in value.items]
            return _Operand("[" + ", ".join(map(_grouped, items)) + "]")
        if isinstance(value, _LOGIC):
            return self._answer(value, facts)
        if isinstance(value, CallFunction) and value.function == "if":
            return self._if_value(value, facts)
        if is_choice(value):
            return self._first_present(choices(value), facts)
        call = as_call(value, self.analysis)
        assert call is not None, f"no code for {type(value).__name__}"
        return self._call_value(call, facts)

    def _leaf(self, leaf: Value, facts: _Facts) -> _Operand:
        code = facts.names.get(leaf)
        if code is None:
            code = self.env.load(leaf)
        nullable = leaf not in facts.present and self.env.nullable(leaf)
        if not _SIMPLE.fullmatch(code):
            code = f"({code})"
        return _Operand(code, nullable=nullable, leaf=leaf)

    def _sure(self, operand: _Operand, facts: _Facts) -> _Operand:
        """The operand with tests that leave its code never None."""
        if not operand.nullable:
            return operand
        if operand.code == "None":
            return replace(operand, tests=(*operand.tests, "False"), nullable=False)
        if _NAME.fullmatch(operand.code) or (facts.locals and _SIMPLE.fullmatch(operand.code)):
            test = f"{operand.code} is not None"
            operand = replace(operand, tests=(*operand.tests, test), nullable=False)
        else:
            operand = self._through_temporary(operand)
            if operand.leaf is not None:
                facts.names[operand.leaf] = operand.code
        if operand.leaf is not None:
            facts.present.add(operand.leaf)
        return operand

    def _through_temporary(self, operand: _Operand) -> _Operand:
        name = self.env.temporary()
        test = f"({name} := {operand.code}) is not None"
        return replace(
            operand, code=name, precedence=ATOM, tests=(*operand.tests, test), nullable=False
        )

    def _named(self, call: Call, operands: list[_Operand]) -> tuple[list[str], list[_Operand]]:
        """The operands, those that the code repeats under a name; and all their tests."""
        named = [
            self._through_temporary(operand)
            if i in call.repeats and call.inline and not _SIMPLE.fullmatch(operand.code)
            else operand
            for i, operand in enumerate(operands)
        ]
        return [test for operand in named for test in operand.tests], named

    def _written(
        self, call: Call, operands: Sequence[_Operand], negative: bool = False
    ) -> tuple[str, int]:
        """The code of a call with its operands, or that of its opposite."""
        if call.inline is None:
            code = f"{self.env.constant(call.function)}({', '.join(o.code for o in operands)})"
            return (f"not {code}", NOT) if negative else (code, ATOM)
        codes = [
            _bound(operand.code, operand.precedence, _needed(call, i))
            for i, operand in enumerate(operands)
        ]
        if not negative:
            return call.inline.format(*codes), call.precedence
        if call.negated is not None:
            return call.negated.format(*codes), COMPARE if call.precedence == COMPARE else ATOM
        code = call.inline.format(*codes)
        return f"not {_bound(code, call.precedence, NOT)}", NOT

    def _call_value(self, call: Call, facts: _Facts) -> _Operand:
        operands = [self._argument(call, operand, facts) for operand in call.operands]
        tests, operands = self._named(call, operands)
        code, precedence = self._written(call, operands)
        return _Operand(code, precedence, tuple(tests), call.nullable)

    def _if_value(self, value: CallFunction, facts: _Facts) -> _Operand:
        test, yes, no = value.arguments
        inside = facts.copy()
        asked = self._condition(test, True, inside)
        outside = facts.copy()
        outside.names.update(asked.bound)
        then, other = self._whole(yes, inside), self._whole(no, outside)
        return _Operand(_ternary(then.code, asked.code, other.code), TERNARY, nullable=True)

    def _first_present(self, values: Sequence[Value], facts: _Facts) -> _Operand:
        """`a ?? b ?? c`"""
        code, precedence = "None", ATOM
        for value in reversed(values):
            operand = self._whole(value, facts.copy())
            if code == "None":
                code, precedence = operand.code, operand.precedence
                continue
            name = self.env.temporary()
            code = f"{name} if ({name} := {operand.code}) is not None else {code}"
            precedence = TERNARY
        return _Operand(code, precedence, nullable=True)

    def _whole(self, value: Value, facts: _Facts) -> _Operand:
        """The value as one piece of code, None for null."""
        operand = self._operand(value, facts)
        code, precedence = self._joined(operand)
        return _Operand(code, precedence, nullable=True)

    def _joined(self, operand: _Operand) -> tuple[str, int]:
        if not operand.tests:
            return operand.code, operand.precedence
        return _ternary(operand.code, " and ".join(operand.tests), "None"), TERNARY

    # ------------------------------------------------------------------------ answers as values

    def _answer(self, value: Value, facts: _Facts) -> _Operand:
        """The answer of a condition as a value: True, False, or null when it is unknown."""
        if isinstance(value, Negation):
            return self._negated(self._boolean(value.operand, facts), facts)
        if isinstance(value, Comparison) and value.op == "!=":
            return self._negated(self._call_value(self._opposite(value), facts), facts)
        if isinstance(value, Comparison):
            call = as_call(value, self.analysis)
            assert call is not None
            return self._call_value(call, facts)
        if isinstance(value, Conjunction | Disjunction):
            return self._combined(value, facts)
        if isinstance(value, Quantified):
            return self._quantified_answer(value, facts)
        condition = self._condition(value, True, facts.copy())
        return _Operand(condition.code, condition.precedence)

    def _negated(self, operand: _Operand, facts: _Facts) -> _Operand:
        sure = self._sure(operand, facts)
        return replace(
            sure, code=f"not {_bound(sure.code, sure.precedence, NOT)}", precedence=NOT, leaf=None
        )

    def _combined(self, value: Conjunction | Disjunction, facts: _Facts) -> _Operand:
        decisive = isinstance(value, Disjunction)
        names, asked = [], []
        for part in value.parts:
            name = self.env.temporary()
            names.append(name)
            answer, _ = self._joined(self._boolean(part, facts.copy()))
            asked.append(f"({name} := {answer}) is {decisive}")
        unknown = " or ".join(f"{name} is None" for name in names)
        rest = _ternary("None", unknown, str(not decisive))
        return _Operand(_ternary(str(decisive), " or ".join(asked), rest), TERNARY, nullable=True)

    def _boolean(self, part: Value, facts: _Facts) -> _Operand:
        """A part of a logical operator as True, False or null, whatever else it may be."""
        operand = self._operand(part, facts)
        if isinstance(part, _LOGIC):
            return operand
        code = f"{self.env.constant(functions.answer)}({operand.code})"
        return replace(operand, code=code, precedence=ATOM, nullable=True, leaf=None)

    def _quantified_answer(self, value: Quantified, facts: _Facts) -> _Operand:
        array = self._array(value, facts)
        inner, variable = self._inside(value, facts)
        function = self.env.constant(functions.every if value.every else functions.some)
        code, _ = self._joined(self._boolean(value.condition, inner))
        return replace(
            array,
            code=f"{function}([{code} for {variable} in {array.code}])",
            precedence=ATOM,
            nullable=True,
            leaf=None,
        )


def _none_test(code: str, positive: bool = True) -> str:
    """Whether a value is null. Python warns of a literal before `is`."""
    if _LITERAL.fullmatch(code):
        return str(not positive)
    return f"{code} is None" if positive else f"{code} is not None"


def _needed(call: Call, i: int) -> int:
    """How tightly the code of operand `i` must bind inside a call's own code."""
    assert call.inline is not None
    if f"{{{i}}}." in call.inline:
        return ATOM
    if call.precedence in (SUM, TERM):
        return call.precedence + (i > 0)
    return UNARY if call.precedence == UNARY else SUM


def _ternary(yes: str, condition: str, no: str) -> str:
    if " if " in yes or ":=" in yes:
        yes = f"({yes})"
    if " if " in condition:
        condition = f"({condition})"
    return f"{yes} if {condition} else {no}"


def _grouped(operand: _Operand) -> str:
    return _bound(operand.code, operand.precedence, OR)


def _after(before: Sequence[str], code: str) -> str:
    """The code, evaluated after some assignments."""
    if not before:
        return code
    return "(" + ", ".join([*(f"({b})" for b in before), f"({code})"]) + ")[-1]"


# ---------------------------------------------------------------------------- the careful form


class _Careful:
    """Writes the careful forms of one expression, out of the methods of `Careful`.

    No lambdas, so that the code can stand beside the fast form in a function whose variables then
    stay fast: what must not be evaluated too early stands behind an `if` or an `or`.
    """

    def __init__(self, root: Value, env: Env) -> None:
        self.root = root
        self.env = env
        self.analysis = _Analysis(root, env)
        self.locals: dict[str, str] = {}

    def condition(self) -> str:
        before = self._early()
        return _after(before, self._answer(self.root))

    def value(self) -> str:
        before = self._early()
        return _after(before, self._value(self.root))

    def _early(self) -> list[str]:
        early = self.analysis.early
        found = []
        for part in self.analysis.early_parts:
            name = early.pop(id(part))
            found.append(f"{name} := {self._value(part)}")
            early[id(part)] = name
        return found

    def _answer(self, value: Value) -> str:
        """Code of the value where a condition stands: True, False or None."""
        code = self._value(value)
        if isinstance(value, _LOGIC):
            return code
        return f"{self.env.careful}.condition({code})"

    def _value(self, value: Value) -> str:
        """Code of the value; it can stand as an argument, or as an operand of `is`."""
        name = self.analysis.early.get(id(value))
        if name is not None:
            return name
        if isinstance(value, Const):
            return _constant_code(value.value, self.env)[0]
        if isinstance(value, Local):
            return f"{self.env.careful}.open({self.locals[value.name]})"
        if is_leaf(value):
            return f"{self.env.careful}.open({self.env.load(value)})"
        for kind, write in self._WRITERS:
            if isinstance(value, kind):
                return write(self, value)
        if isinstance(value, CallFunction) and value.function == "if":
            test, yes, no = value.arguments
            return f"({self._value(yes)} if {self._answer(test)} is True else {self._value(no)})"
        if is_choice(value):
            return self._first_present(choices(value))
        call = as_call(value, self.analysis)
        assert call is not None, f"no code for {type(value).__name__}"
        return self._call(call)

    def _call(self, call: Call) -> str:
        arguments = ", ".join(map(self._value, call.operands))
        method = "call" if call.strict else "attempt"
        return f"{self.env.careful}.{method}({self.env.constant(call.function)}, {arguments})"

    def _comparison(self, value: Comparison) -> str:
        positive = replace(value, op="==") if value.op == "!=" else value
        call = as_call(positive, self.analysis)
        assert call is not None
        code = self._call(call)
        return code if positive is value else f"{self.env.careful}.negate({code})"

    def _negation(self, value: Negation) -> str:
        return f"{self.env.careful}.negate({self._answer(value.operand)})"

    def _is_null(self, value: IsNull) -> str:
        return f"({_none_test(self._value(value.operand))})"

    def _is_missing(self, value: IsMissing) -> str:
        if is_leaf(value.operand):
            return f"bool({self.env.is_missing(value.operand)})"
        call = missing_test(value.operand)
        return "False" if call is None else self._call(call)

    def _combined(self, value: Conjunction | Disjunction) -> str:
        decisive = isinstance(value, Disjunction)
        names = [self.env.temporary() for _ in value.parts]
        parts = zip(names, value.parts, strict=True)
        asked = " or ".join(f"({n} := {self._answer(part)}) is {decisive}" for n, part in parts)
        unknown = " or ".join(f"{name} is None" for name in names)
        return f"({decisive} if {asked} else None if {unknown} else {not decisive})"

    def _quantified(self, value: Quantified) -> str:
        elements = self.env.constant(functions.elements)
        name, variable = self.env.temporary(), self.env.temporary()
        array = f"({name} := {self.env.careful}.call({elements}, {self._value(value.array)}))"
        outside = self.locals
        self.locals = {**outside, value.variable: variable}
        condition = self._answer(value.condition)
        self.locals = outside
        function = self.env.constant(functions.every if value.every else functions.some)
        return f"(None if {array} is None else {function}([{condition} for {variable} in {name}]))"

    def _first_present(self, values: Sequence[Value]) -> str:
        *before, code = map(self._value, values)
        for earlier in reversed(before):
            name = self.env.temporary()
            code = f"({name} if ({name} := {earlier}) is not None else {code})"
        return code

    def _array(self, value: ArrayOf) -> str:
        return "[" + ", ".join(map(self._value, value.items)) + "]"

    def _named_list(self, value: NamedList) -> str:
        return self.env.constant(list(self.env.list_items(value.name)))

    def _pattern(self, value: Pattern) -> str:
        return repr(inline_flags(value))

    _WRITERS: tuple[tuple[Any, Callable[[Any, Any], str]], ...] = (
        (Comparison, _comparison),
        (Negation, _negation),
        (IsNull, _is_null),
        (IsMissing, _is_missing),
        (Conjunction | Disjunction, _combined),
        (Quantified, _quantified),
        (ArrayOf, _array),
        (NamedList, _named_list),
        (Pattern, _pattern),
    )
