"""Expressions, read straight from section 7 of the language: slow, obvious, for tests only.

In: a `dsl.checked.Value` and a `Scope` that says what its names stand for. Out: `value_of` gives a
plain Python value (None for null, missing and failed), `verdict` the answer to a condition.

A verdict is a pair (is it true?, is it false?). Unknown is neither. Both at once is what a
comparison with `prev` gives at the first event of a loop: it is satisfied, and so is its `not`.
Nothing of the engine is imported: the engine is compared with this.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

import re2

from cep.testing.reference_aggregates import aggregate
from cep.testing.reference_functions import FUNCTIONS, Failure, kind_of, text_of
from dsl import checked
from dsl.types import Type

Verdict = tuple[bool, bool]
TRUE: Verdict = (True, False)
FALSE: Verdict = (False, True)
UNKNOWN: Verdict = (False, False)
SATISFIED: Verdict = (True, True)

MISSING = object()
"""A field that is not there; null is None."""


@dataclass(frozen=True, slots=True, eq=False)
class Event:
    """An event in its place in the stream. `order` numbers all events, derived ones too, from 0.

    `stream` is the derived stream it was emitted to; None for an input event.
    """

    order: int
    time: int
    record: Mapping[str, object]
    stream: str | None = None


@dataclass(frozen=True, slots=True, eq=False)
class Taken:
    """An event as the step that took it sees it: a stream with `select` shows other fields."""

    event: Event
    view: Mapping[str, object]


Key = tuple[tuple[str, object], ...]
"""The parts of a key, each with its kind, so that true, 1 and "1" are three."""


@dataclass(frozen=True, slots=True)
class Found:
    """A completed pattern, before `dedup`. `window` holds the aggregates of a window."""

    kind: str
    key: Key
    time: int
    bound: tuple[tuple[str, Taken], ...] = ()
    window: Mapping[str, object] = field(default_factory=dict)
    first: int | None = None
    last: int | None = None


@dataclass(frozen=True)
class World:
    """What all rules share. `row(table, key, now)` is the table's row at that time, or None."""

    checked: checked.CheckedRules
    lists: Mapping[str, Sequence[object]]
    row: Callable[[str, object, int], Mapping[str, object] | None]


@dataclass(frozen=True)
class Scope:
    """What the names in an expression stand for.

    `tested`: the event being tested. `bound`: the events of each step so far. `loop`: those that
    the step has taken whose condition this is.
    """

    world: World
    now: int
    tested: Taken | None = None
    bound: Mapping[str, Sequence[Taken]] = field(default_factory=dict)
    loop: Sequence[Taken] = ()
    key: Sequence[object] = ()
    window: Mapping[str, object] = field(default_factory=dict)
    alert: Mapping[str, object] = field(default_factory=dict)
    local: Mapping[str, object] = field(default_factory=dict)


# ---------------------------------------------------------------------------- values


def value_of(value: checked.Value, scope: Scope) -> object:
    """The value; None when it is null, missing, unknown, or when computing it fails."""
    found = lookup(value, scope)
    return None if found is MISSING else found


def lookup(value: checked.Value, scope: Scope) -> object:
    """As `value_of`, but a field that is not there is MISSING."""
    try:
        return _compute(value, scope)
    except (Failure, ArithmeticError, ValueError, TypeError, RecursionError):
        return None


def _compute(value: checked.Value, scope: Scope) -> object:
    match value:
        case checked.Const():
            return value.value
        case checked.ArrayOf():
            return [value_of(item, scope) for item in value.items]
        case checked.NamedList():
            return list(scope.world.lists[value.name])
        case checked.Field():
            return MISSING if scope.tested is None else read(scope.tested.view, value.path)
        case checked.EventTime():
            return scope.now if scope.tested is None else scope.tested.event.time
        case checked.StepField() | checked.StepTime():
            return _of_step(value, scope)
        case checked.LoopValue():
            return _of_loop(value, scope)
        case checked.StepAggregate():
            taken = scope.bound.get(value.step, ())
            return _aggregate_over(value.function, value.argument, taken, scope, value)
        case checked.WindowValue():
            return scope.window[value.name]
        case checked.KeyValue():
            return scope.key[value.index]
        case checked.AlertValue():
            return scope.alert[value.name]
        case checked.Local():
            return scope.local[value.name]
        case checked.Lookup():
            row = scope.world.row(value.table, value_of(value.key, scope), scope.now)
            return MISSING if row is None else read(row, value.path)
        case checked.GetField():
            holder = value_of(value.value, scope)
            return read(holder, (value.name,)) if isinstance(holder, Mapping) else MISSING
        case checked.GetIndex():
            return _index(value_of(value.value, scope), value_of(value.index, scope))
        case checked.CallFunction():
            return _call(value, scope)
        case checked.Minus():
            operand = value_of(value.operand, scope)
            return None if operand is None else -_number(operand)
        case checked.Arith():
            return _arithmetic(value, scope)
        case checked.Coalesce():
            left = value_of(value.left, scope)
            return value_of(value.right, scope) if left is None else left
        case _:
            true, false = verdict(value, scope)
            return True if true else False if false else None


def read(view: Mapping[str, object], path: Sequence[str]) -> object:
    """The field at `path`: nested, or else under the flat key; MISSING when neither is there."""
    found: object = view
    for name in path:
        if not isinstance(found, Mapping) or name not in found:
            return view.get(".".join(path), MISSING)
        found = found[name]
    return found


def _of_step(value: checked.StepField | checked.StepTime, scope: Scope) -> object:
    events = scope.bound.get(value.step, ())
    if not -len(events) <= value.index < len(events):
        return MISSING
    taken = events[value.index]
    if isinstance(value, checked.StepTime):
        return taken.event.time
    return read(taken.view, value.path)


def _of_loop(value: checked.LoopValue, scope: Scope) -> object:
    if value.function == "count" and (value.argument is None or not scope.loop):
        return len(scope.loop)
    if not scope.loop or value.argument is None:
        return None
    if value.function == "prev":
        return value_of(value.argument, replace(scope, tested=scope.loop[-1]))
    return _aggregate_over(value.function, value.argument, scope.loop, scope)


def _aggregate_over(
    function: str,
    argument: checked.Value | None,
    taken: Sequence[Taken],
    scope: Scope,
    call: checked.StepAggregate | None = None,
) -> object:
    if argument is None:
        values: list[object] = [True] * len(taken)
    else:
        values = [value_of(argument, replace(scope, tested=event)) for event in taken]
    extra = [value_of(item, scope) for item in call.extra] if call else []
    return aggregate(function, values, distinct=bool(call and call.distinct), extra=extra)


def _index(holder: object, index: object) -> object:
    if isinstance(holder, Mapping):
        return holder.get(index, MISSING) if isinstance(index, str) else MISSING
    if kind_of(holder) != "array" or kind_of(index) != "number":
        raise Failure
    assert isinstance(holder, Sequence)
    assert isinstance(index, int | float)
    if index != int(index):
        raise Failure
    return holder[int(index)] if -len(holder) <= index < len(holder) else MISSING


def _number(value: object) -> int | float:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise Failure
    return value


def _arithmetic(value: checked.Arith, scope: Scope) -> object:
    left, right = value_of(value.left, scope), value_of(value.right, scope)
    if left is None or right is None:
        return None
    a, b = _number(left), _number(right)
    operations: dict[str, Callable[[], object]] = {
        "+": lambda: a + b,
        "-": lambda: a - b,
        "*": lambda: a * b,
        "/": lambda: a / b,
        "%": lambda: a % b,
    }
    result = operations[value.op]()
    if value.type in (Type.TIME, Type.DURATION) and isinstance(result, float):
        return round(result)
    return result


def _call(call: checked.CallFunction, scope: Scope) -> object:
    if call.function == "if":
        chosen = 1 if verdict(call.arguments[0], scope)[0] else 2
        return value_of(call.arguments[chosen], scope)
    if call.function == "coalesce":
        found = (value_of(argument, scope) for argument in call.arguments)
        return next((item for item in found if item is not None), None)
    signature = scope.world.checked.functions.get(call.function)
    arguments = [
        argument if isinstance(argument, checked.Pattern) else value_of(argument, scope)
        for argument in call.arguments
    ]
    if call.function == "hash":
        return FUNCTIONS["hash"](*arguments)
    if any(argument is None for argument in arguments):
        return None
    if call.function == "str":
        return text_of(arguments[0], call.arguments[0].type)
    if call.function == "concat":
        return "".join(map(text_of, arguments, [one.type for one in call.arguments]))
    if signature is not None and signature.call is not None:
        return _host(signature.call, arguments)
    return FUNCTIONS[call.function](*arguments)


def _host(function: Callable[..., object], arguments: list[object]) -> object:
    try:
        return function(*arguments)
    except Exception as problem:  # A host's function may fail in any way; that is null.
        raise Failure from problem


# ---------------------------------------------------------------------------- conditions


def holds(condition: checked.Value | None, scope: Scope) -> bool:
    """Whether a condition is true; no condition is."""
    return condition is None or verdict(condition, scope)[0]


def verdict(value: checked.Value, scope: Scope) -> Verdict:
    """Whether a condition is true and whether it is false."""
    match value:
        case checked.Negation():
            true, false = verdict(value.operand, scope)
            return false, true
        case checked.Conjunction():
            parts = [verdict(part, scope) for part in value.parts]
            return all(true for true, _ in parts), any(false for _, false in parts)
        case checked.Disjunction():
            parts = [verdict(part, scope) for part in value.parts]
            return any(true for true, _ in parts), all(false for _, false in parts)
        case checked.IsNull():
            return _known(value_of(value.operand, scope) is None)
        case checked.IsMissing():
            return _known(lookup(value.operand, scope) is MISSING)
        case checked.Comparison():
            return _comparison(value, scope)
        case checked.Quantified():
            return _quantified(value, scope)
        case _:
            result = value_of(value, scope)
            return _known(result) if isinstance(result, bool) else UNKNOWN


def _known(answer: bool) -> Verdict:
    return TRUE if answer else FALSE


def _quantified(value: checked.Quantified, scope: Scope) -> Verdict:
    array = value_of(value.array, scope)
    if not isinstance(array, list | tuple):
        return UNKNOWN
    each = [
        verdict(value.condition, replace(scope, local={**scope.local, value.variable: item}))
        for item in array
    ]
    if value.every:
        return all(true for true, _ in each), any(false for _, false in each)
    return any(true for true, _ in each), all(false for _, false in each)


def _comparison(value: checked.Comparison, scope: Scope) -> Verdict:
    if not scope.loop and any(_is_prev(part) for part in value.walk()):
        return SATISFIED
    left = value_of(value.left, scope)
    if left is None:
        return UNKNOWN
    if value.op == "matches":
        return _any_of(_patterns(value.right, scope), lambda each: _matches(left, each))
    right = value_of(value.right, scope)
    if right is None:
        return UNKNOWN
    if value.op == "in":
        return UNKNOWN if kind_of(right) != "array" else _known(_among(left, right))
    if value.op in ("like", "ilike", "contains"):
        choices = right if isinstance(right, list | tuple) else [right]
        return _any_of(choices, lambda each: _text_test(value.op, left, each))
    return _ordered(value.op, left, right)


def _is_prev(value: checked.Value) -> bool:
    return isinstance(value, checked.LoopValue) and value.function == "prev"


def _any_of(choices: Sequence[object], test: Callable[[object], Verdict]) -> Verdict:
    each = [test(choice) for choice in choices]
    return any(true for true, _ in each), all(false for _, false in each)


def _among(left: object, right: object) -> bool:
    assert isinstance(right, list | tuple)
    return any(same(left, item) for item in right)


def same(left: object, right: object) -> bool:
    """Equality of the language: 1 == 1.0, but true is not 1 and "1" is not 1."""
    if kind_of(left) != kind_of(right):
        return False
    if isinstance(left, list | tuple) and isinstance(right, list | tuple):
        return len(left) == len(right) and all(map(same, left, right))
    if isinstance(left, Mapping) and isinstance(right, Mapping):
        return left.keys() == right.keys() and all(same(left[k], right[k]) for k in left)
    return left == right


def _ordered(op: str, left: object, right: object) -> Verdict:
    if op in ("==", "!="):
        return _known(same(left, right) == (op == "=="))
    if kind_of(left) != kind_of(right) or kind_of(left) not in ("number", "string"):
        return UNKNOWN
    a, b = left, right
    answers = {"<": a < b, "<=": a <= b, ">": a > b, ">=": a >= b}  # type: ignore[operator]
    return _known(answers[op])


def _text_test(op: str, left: object, right: object) -> Verdict:
    if right is None:
        return FALSE
    if op == "contains" and isinstance(left, list | tuple):
        return _known(_among(right, left))
    if not isinstance(left, str) or not isinstance(right, str):
        return UNKNOWN
    if op == "contains":
        return _known(right in left)
    return _known(_like(left, right) if op == "like" else _like(left.lower(), right.lower()))


def _like(text: str, pattern: str) -> bool:
    """`*` is any text, `?` any one character; the pattern covers the whole text."""
    fits = [True] + [False] * len(text)
    for sign in pattern:
        if sign == "*":
            fits = [any(fits[: i + 1]) for i in range(len(fits))]
        else:
            fits = [False] + [fits[i] and sign in ("?", char) for i, char in enumerate(text)]
    return fits[-1]


def _patterns(value: checked.Value, scope: Scope) -> list[object]:
    if isinstance(value, checked.Pattern):
        return [value]
    if isinstance(value, checked.ArrayOf):
        return [
            item if isinstance(item, checked.Pattern) else value_of(item, scope)
            for item in value.items
        ]
    found = value_of(value, scope)
    return list(found) if isinstance(found, list | tuple) else [found]


def _matches(text: object, pattern: object) -> Verdict:
    if isinstance(pattern, str):
        pattern = checked.Pattern(pattern)
    if not isinstance(pattern, checked.Pattern) or not isinstance(text, str):
        return UNKNOWN
    flags = f"(?{pattern.flags})" if pattern.flags else ""
    return _known(re2.search(flags + pattern.pattern, text) is not None)


# ---------------------------------------------------------------------------- keys


def key_of(values: Sequence[object]) -> Key | None:
    """The key that these parts make, comparable and hashable; None when a part cannot be one.

    Missing, null, an array, an object and a number that is none route nothing. 1 and 1.0 are one
    key, "1" and true are others.
    """
    parts = []
    for value in values:
        kind = kind_of(value)
        if kind not in ("bool", "number", "string"):
            return None
        if isinstance(value, float) and math.isnan(value):
            return None
        whole = isinstance(value, float) and value.is_integer()
        parts.append((kind, int(value) if whole else value))  # type: ignore[call-overload]
    return tuple(parts)


@dataclass(frozen=True, slots=True)
class Timer:
    """When a rule has to act for a key without an event.

    Phase 0: when the clock reaches `time`, before the events at it; 1: when it passes it.
    """

    time: int
    phase: int
    key: Key
