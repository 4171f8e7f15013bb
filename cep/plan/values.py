"""What the plan adds to the checker's values, and how values are rewritten.

`Seen` stands for a variable of a run, `Unrepeated` for "this event is no repeat" of a stream that
drops repeats. `rewrite` replaces values inside values; `on_first` and `when_unbound` settle what a
loop's condition means before the loop has taken anything.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from operator import is_
from typing import Any

from cep.plan.automaton import Variable
from dsl.checked import (
    Comparison,
    Conjunction,
    Const,
    Disjunction,
    Lookup,
    LoopValue,
    Negation,
    StepAggregate,
    StepField,
    StepTime,
    Value,
    attributes,
)
from dsl.types import Type


@dataclass(frozen=True, slots=True)
class Seen(Value):
    """The value of a run's variable."""

    variable: Variable


@dataclass(frozen=True, slots=True)
class Tally(Value):
    """An aggregate over all the events of a bound step, read from the run's history."""

    aggregate: StepAggregate


@dataclass(frozen=True, slots=True)
class OwnAggregate(Value):
    """An aggregate over a part of an `all` whose only event is the one being tested."""

    aggregate: StepAggregate


@dataclass(frozen=True, slots=True)
class Unrepeated(Value):
    """True when the event is not dropped as a repeat by the `dedup` of `stream`."""

    stream: str


@dataclass(frozen=True, slots=True)
class Noted(Value):
    """A field of a stream whose `select` asks a table: worked out when the event comes, and noted
    in the event, since the table may have changed when the field is read."""

    value: Value


def noted(value: Value) -> Value:
    """The value as it was when the event came, where that makes a difference."""
    whole = rewrite(value, lambda part: part.value if isinstance(part, Noted) else None)
    asks = any(isinstance(part, Lookup) for part in whole.walk())
    return Noted(whole, type=value.type) if asks else value


TRUE = Const(True, type=Type.BOOL)
FALSE = Const(False, type=Type.BOOL)


def rewrite(value: Value, change: Callable[[Value], Value | None]) -> Value:
    """`value` with each part replaced for which `change` gives something, outermost first."""
    changed = change(value)
    if changed is not None:
        return changed
    updates: dict[str, Any] = {}
    for name in attributes(type(value)):
        item = getattr(value, name)
        new = item
        if isinstance(item, Value):
            new = rewrite(item, change)
        elif isinstance(item, tuple):
            parts = [rewrite(part, change) if isinstance(part, Value) else part for part in item]
            new = item if all(map(is_, parts, item)) else tuple(parts)
        if new is not item:
            updates[name] = new
    return replace(value, **updates) if updates else value


def looks_back(value: Value) -> bool:
    """Whether a condition looks at earlier events of the run."""
    return any(
        isinstance(part, StepField | StepTime | StepAggregate | LoopValue | Seen | Tally)
        for part in value.walk()
    )


def _contains_prev(value: Value) -> bool:
    return any(isinstance(part, LoopValue) and part.function == "prev" for part in value.walk())


def on_first(condition: Value, positive: bool = True) -> Value:
    """A loop's condition at its first event: comparisons with `prev` are satisfied, also under
    `not`; `count()` is 0 and the other aggregates are null."""
    if isinstance(condition, Negation):
        return Negation(on_first(condition.operand, not positive), type=Type.BOOL)
    if isinstance(condition, Conjunction | Disjunction):
        parts = tuple(on_first(part, positive) for part in condition.parts)
        return replace(condition, parts=parts)
    if isinstance(condition, Comparison) and _contains_prev(condition):
        return TRUE if positive else FALSE
    return rewrite(condition, _nothing_taken)


def _nothing_taken(value: Value) -> Value | None:
    if not isinstance(value, LoopValue):
        return None
    return Const(0, type=Type.INT) if value.function == "count" else Const(None, type=Type.NULL)


def when_unbound(condition: Value, first: Value, positive: bool = True) -> Value:
    """A loop's condition where it is not known before run time whether it is at its first event:
    `first` asks that."""
    if isinstance(condition, Negation):
        return Negation(when_unbound(condition.operand, first, not positive), type=Type.BOOL)
    if isinstance(condition, Conjunction | Disjunction):
        parts = tuple(when_unbound(part, first, positive) for part in condition.parts)
        return replace(condition, parts=parts)
    if isinstance(condition, Comparison) and _contains_prev(condition):
        if positive:
            return Disjunction((first, condition), type=Type.BOOL)
        return Conjunction((Negation(first, type=Type.BOOL), condition), type=Type.BOOL)
    return condition


def simplify(condition: Value) -> Value:
    """The condition without parts that are constants."""
    if isinstance(condition, Conjunction):
        parts = tuple(p for p in map(simplify, condition.parts) if p != TRUE)
        if FALSE in parts:
            return FALSE
        return (
            TRUE if not parts else parts[0] if len(parts) == 1 else replace(condition, parts=parts)
        )
    if isinstance(condition, Disjunction):
        parts = tuple(p for p in map(simplify, condition.parts) if p != FALSE)
        if TRUE in parts:
            return TRUE
        return (
            FALSE if not parts else parts[0] if len(parts) == 1 else replace(condition, parts=parts)
        )
    if isinstance(condition, Negation):
        inner = simplify(condition.operand)
        if inner in (TRUE, FALSE):
            return FALSE if inner == TRUE else TRUE
        return replace(condition, operand=inner)
    return condition
