"""What has to be known of an expression before its code is written.

In comes a value and the `Env` it will stand in; out comes, for each part, what its code surely
holds, and which parts nest so deep that they are computed first, into a temporary.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from cep.compile.expressions.call import is_leaf
from cep.compile.expressions.calls import choices
from cep.compile.expressions.env import Env
from cep.compile.expressions.function_calls import function_type
from cep.compile.expressions.operators import arith_type
from dsl.checked import (
    Arith,
    ArrayOf,
    CallFunction,
    Coalesce,
    Comparison,
    Conjunction,
    Const,
    Disjunction,
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

_DEEP = 20
"""Levels of operators after which the code of an expression is cut."""

LOGIC = (Comparison, IsNull, IsMissing, Negation, Conjunction, Disjunction, Quantified)


class Analysis:
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

    def finder(self, lookup: Lookup) -> Any:
        """What stands for the function from a key to the value in its row of the table."""
        return self.env.finder(lookup)

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
        if isinstance(value, LOGIC):
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
