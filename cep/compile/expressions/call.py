"""What an operator or function amounts to: a call of a Python function, with code in its place.

A `Call` is what `calls.as_call` makes of a value and what the fast and the careful form of an
expression are made of. `Names` is what must be known of the rules around to make one.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

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
    GetField,
    GetIndex,
    IsMissing,
    IsNull,
    Local,
    Lookup,
    Minus,
    NamedList,
    Negation,
    Pattern,
    Quantified,
    Value,
)
from dsl.types import Type

Scalar = None | bool | int | float | str

NUMERIC = frozenset({Type.INT, Type.NUMBER})
COUNTED = NUMERIC | {Type.TIME, Type.DURATION}
"""Types whose values are Python numbers at run time."""


@dataclass(frozen=True, slots=True)
class Call:
    """A Python function with the values it is called with.

    `inline` does the same as the function, with `{0}`, `{1}` for the operands, `precedence` says
    how tightly its outermost operator binds; `negated` is the code for the opposite of a
    comparison. `repeats` are operands that the code names more than once. `none_safe` are operands
    for which None gives something untrue, so that a condition need not test them. `nullable`:
    the result may be null. Not `strict`: the function is called with nulls, too.
    """

    function: Callable[..., Any]
    operands: tuple[Value, ...]
    type: Type = Type.ANY
    inline: str | None = None
    negated: str | None = None
    precedence: int = 0
    none_safe: frozenset[int] = frozenset()
    repeats: frozenset[int] = frozenset()
    nullable: bool = False
    strict: bool = True


class Names(Protocol):
    """What a call needs to know of the rules around it."""

    def known(self, value: Value) -> Type: ...
    def constant(self, obj: object) -> str: ...
    def list_items(self, name: str) -> Sequence[Scalar]: ...
    def host_function(self, name: str) -> FunctionSignature | None: ...
    def finder(self, lookup: Lookup) -> Any: ...


_COMPOSITE = (
    Const,
    ArrayOf,
    NamedList,
    Pattern,
    GetField,
    GetIndex,
    CallFunction,
    Quantified,
    Minus,
    Arith,
    Coalesce,
    Comparison,
    IsNull,
    IsMissing,
    Negation,
    Conjunction,
    Disjunction,
    Local,
    Lookup,
)


def is_leaf(value: Value) -> bool:
    """Whether the code around an expression has to load this value."""
    return not isinstance(value, _COMPOSITE)


def boolean_or_bare(value: Value, names: Names) -> bool:
    """Whether `is True` tells if the value is true: not where a true may be in an `Odd` box."""
    known = names.known(value)
    return known is Type.BOOL or (known is Type.ANY and is_leaf(value))


# How tightly Python's operators bind; an operand is put in parentheses when it binds less.
TERNARY, OR, AND, NOT, COMPARE, SUM, TERM, UNARY, ATOM = range(9)
