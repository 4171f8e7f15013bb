"""What is left of a value where one field of the event is known.

The dispatch knows it: an event has come to a handler because its field has a certain value. With
that, comparisons of this field are decided, and so are conditions and choices made of them: of a
field that three hundred streams select in three hundred ways one way is left.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from cep.plan.values import FALSE, TRUE, rewrite
from dsl.checked import (
    ArrayOf,
    CallFunction,
    Comparison,
    Conjunction,
    Const,
    Disjunction,
    Field,
    NamedList,
    Negation,
    Value,
)
from dsl.types import Type

Path = tuple[str, ...]
Lists = Callable[[str], Sequence[object]]
"""The items of a named list."""


class Deciding:
    """The field that decides, and what values of it each condition asks for."""

    def __init__(self, path: Path, lists: Lists) -> None:
        self.path = path
        self.lists = lists
        self._allowed: dict[int, tuple[Value, list[object] | None]] = {}
        self._sets: dict[int, frozenset[object] | None] = {}

    def allowed(self, condition: Value) -> list[object] | None:
        """The only values of the field with which the condition can be true; None: no such list.
        Found out once for each condition."""
        known = self._allowed.get(id(condition))
        if known is None:
            known = self._allowed[id(condition)] = condition, self._find(condition)
        return known[1]

    def excludes(self, condition: Value, value: object) -> bool:
        """Whether the condition is false (and not unknown) where the field has this value."""
        key = id(condition)
        if key not in self._sets:
            allowed = self.allowed(condition)
            exact = allowed is not None and None not in allowed
            self._sets[key] = frozenset(allowed or ()) if exact else None
        found = self._sets[key]
        return found is not None and value not in found

    def _find(self, condition: Value) -> list[object] | None:
        if isinstance(condition, Comparison):
            return self._compared(condition)
        if isinstance(condition, Conjunction):
            return next(
                (v for part in condition.parts if (v := self.allowed(part)) is not None), None
            )
        if isinstance(condition, Disjunction):
            found: dict[object, None] = {}
            for part in condition.parts:
                values = self.allowed(part)
                if values is None:
                    return None
                found.update(dict.fromkeys(values))
            return list(found)
        return None

    def _compared(self, condition: Comparison) -> list[object] | None:
        left, right = condition.left, condition.right
        if condition.op == "==":
            if isinstance(left, Const):
                left, right = right, left
            if self._is_field(left) and isinstance(right, Const) and right.value is not None:
                return [right.value]
        if condition.op == "in" and self._is_field(left):
            if isinstance(right, NamedList):
                return list(self.lists(right.name))
            if isinstance(right, ArrayOf) and all(isinstance(i, Const) for i in right.items):
                return [item.value for item in right.items if isinstance(item, Const)]
        return None

    def _is_field(self, value: Value) -> bool:
        return isinstance(value, Field) and value.path == self.path


@dataclass(frozen=True, slots=True)
class Known:
    """The field that decides has this value, a text or a number."""

    deciding: Deciding
    value: object

    def rules_out(self, condition: Value) -> bool:
        """Whether the condition is not true."""
        allowed = self.deciding.allowed(condition)
        return allowed is not None and self.value not in allowed

    def settled(self, value: Value) -> Value:
        """What is left of `value`. O(what is not decided by a look-up)."""
        return rewrite(value, self._change)

    def _change(self, value: Value) -> Value | None:
        asks = isinstance(value, Comparison | Conjunction | Disjunction)
        if asks and self.deciding.excludes(value, self.value):
            return FALSE
        if isinstance(value, Comparison):
            return self._decided(value)
        if isinstance(value, Conjunction):
            return self._joined(value, TRUE, FALSE)
        if isinstance(value, Disjunction):
            return self._joined(value, FALSE, TRUE)
        if isinstance(value, Negation):
            inner = self.settled(value.operand)
            if inner in (TRUE, FALSE):
                return FALSE if inner == TRUE else TRUE
            return replace(value, operand=inner)
        if isinstance(value, CallFunction) and value.function == "if":
            return self._chosen(value)
        return None

    def _decided(self, condition: Comparison) -> Value | None:
        """Of a comparison that does not exclude the value."""
        allowed = self.deciding.allowed(condition)
        if allowed is None or not any(_equal(self.value, one) for one in allowed):
            return None
        return TRUE

    def _joined(self, value: Conjunction | Disjunction, neutral: Value, decisive: Value) -> Value:
        """Neutral parts go, a decisive one is all."""
        parts = []
        for part in value.parts:
            left = self.settled(part)
            if left == decisive:
                return decisive
            if left != neutral:
                parts.append(left)
        if not parts:
            return neutral
        if len(parts) == 1 and parts[0].type is Type.BOOL:
            return parts[0]
        return replace(value, parts=tuple(parts))

    def _chosen(self, value: CallFunction) -> Value:
        condition, yes, no = value.arguments
        condition = self.settled(condition)
        if condition == TRUE:
            return self.settled(yes)
        if condition == FALSE:
            return self.settled(no)
        return replace(value, arguments=(condition, self.settled(yes), self.settled(no)))


SEVERAL = 3
"""So many equalities with the same field are one look-up."""


def gathered(condition: Value) -> Value:
    """The condition, where `x == "a" or x == "b" or x == "c"` asks once: `x in ["a", "b", "c"]`,
    which means the same."""
    return rewrite(condition, _gather)


def _gather(value: Value) -> Value | None:
    if not isinstance(value, Disjunction):
        return None
    texts: dict[Field, list[Const]] = {}
    for part in value.parts:
        if (found := _text_compared(part)) is not None:
            texts.setdefault(found[0], []).append(found[1])
    parts: list[Value] = []
    for part in value.parts:
        found = _text_compared(part)
        if found is None or 0 < len(texts[found[0]]) < SEVERAL:
            parts.append(gathered(part))
        elif texts[found[0]]:
            items = ArrayOf(tuple(texts[found[0]]), type=Type.ARRAY)
            parts.append(Comparison("in", found[0], items, type=Type.BOOL))
            texts[found[0]].clear()
    return parts[0] if len(parts) == 1 else replace(value, parts=tuple(parts))


def _text_compared(value: Value) -> tuple[Field, Const] | None:
    """A field and the text that it is compared with."""
    if not isinstance(value, Comparison) or value.op != "==":
        return None
    left, right = value.left, value.right
    if isinstance(left, Const):
        left, right = right, left
    if isinstance(left, Field) and isinstance(right, Const) and isinstance(right.value, str):
        return left, right
    return None


def _equal(value: object, other: object) -> bool:
    """As in the language: a truth value is no number."""
    return isinstance(value, bool) == isinstance(other, bool) and value == other
