"""What happens in a `test` block, in order: events, movements of the clock, expectations.

The events are as the text gives them, with what the runner fills in: time, type, and the fields
that the stream's `where` fixes.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import cast

from cep.event_time import Unit, parse_time
from cep.testing.reference_functions import iso, span_text
from cep.testing.reference_streams import Streams
from cep.testing.reference_values import MISSING, Event, World, read
from dsl import ast, checked
from dsl.source import Span

START = parse_time("2026-01-01T00:00:00Z") or 0
"""When the clock of a test starts, in microseconds since the epoch."""

SECOND = 1_000_000

DEFAULT_TIME_FIELDS = (("@timestamp",), ("timestamp",), ("time",), ("ts",))


class TestProblem(Exception):
    """Why a test fails, with the place in the rule file."""

    __test__ = False  # pytest: this is no test class

    def __init__(self, span: Span, text: str) -> None:
        super().__init__(f"{span}: {text}")


@dataclass(frozen=True, slots=True)
class Given:
    """An event of the test, at a time in microseconds.

    `timed` is the record with its time in it, as a source would read it.
    """

    record: Mapping[str, object]
    time: int
    timed: Mapping[str, object]


@dataclass(frozen=True, slots=True)
class Moved:
    """The clock moves to a time without an event."""

    time: int


Action = Given | Moved | ast.TestExpect


def actions(rules: checked.CheckedRules, test: ast.Test) -> Iterator[Action]:
    """What happens in a test, step by step. Raises `TestProblem` at a step that makes no sense."""
    clock, began = START, False
    yield Moved(clock)
    for step in test.steps:
        if isinstance(step, ast.TestAdvance):
            clock += step.duration.micros
            yield Moved(clock)
        elif isinstance(step, ast.TestExpect):
            yield step
        else:
            for event in _events(rules, step, clock, began):
                clock, began = event.time, True
                yield event


def _events(
    rules: checked.CheckedRules, step: ast.TestEvent, clock: int, began: bool
) -> Iterator[Given]:
    time = _time_of(step, clock, began)
    for _ in range(step.times):
        record, timed, own = record_of(rules, step, time)
        moment = time if own is None or step.when is not None else own
        if moment < clock:
            raise TestProblem(
                step.span,
                f"this event is at {offset(moment)}, but the clock of the test is already at "
                f"{offset(clock)}",
            )
        yield Given(record, moment, timed)
        clock = moment
        time = moment + (step.every.micros if step.every else 0)


def _time_of(step: ast.TestEvent, clock: int, began: bool) -> int:
    """The first event is at the start, later ones by default a second after the clock."""
    shift = step.offset.micros if step.offset else 0
    if step.when == "at":
        return START + shift
    if step.when == "after":
        return clock + shift
    return clock if not began and clock == START else clock + SECOND


def offset(time: int) -> str:
    """A time as the test writes it: since its start; an absolute time before that."""
    return span_text(time - START) if time >= START else iso(time)


def constant(value: ast.Expr | ast.Object) -> object:
    """The value of a constant in a test; a duration is a number of seconds, as in match records."""
    match value:
        case ast.Object():
            return _object(value)
        case ast.Literal():
            return value.value
        case ast.DurationLiteral():
            micros = value.value.micros
            return micros // 1_000_000 if micros % 1_000_000 == 0 else micros / 1_000_000
        case ast.Array():
            return [constant(item) for item in value.items]
        case ast.Negative():
            number = constant(value.operand)
            if isinstance(number, int | float) and not isinstance(number, bool):
                return -number
    raise TestProblem(value.span, "a value in a test must be a constant")


def record_of(
    rules: checked.CheckedRules, step: ast.TestEvent, time: int
) -> tuple[dict[str, object], dict[str, object], int | None]:
    """The event that a step describes, the same with its time, and the time that it gives itself.

    Type and fixed fields are filled in; then it must belong to the stream that the test names.
    """
    record = _object(step.object)
    stream = rules.streams.get(step.stream.name)
    if stream is None:
        stream = checked.Stream(step.stream.name, type_value=step.stream.name)
    if stream.emitted:
        raise TestProblem(
            step.span,
            f"`{stream.name}` holds events that rules emit; name the rule that emits them, and "
            "give the events that make it do so",
        )
    form = _time_format(rules, stream)
    own = _own_time(record, form, step)
    for path, value in _fixed(rules, stream):
        _put(record, path, value)
    if own is None and form.paths is not DEFAULT_TIME_FIELDS:
        _put(record, form.paths[0], _written_time(time, form.unit))
    timed = dict(record)
    if own is None:
        _put(timed, form.paths[0], _written_time(time, form.unit))
    _check_membership(rules, stream, record, time if own is None else own, step)
    return record, timed, own


def _own_time(
    record: Mapping[str, object], form: checked.TimeFormat, step: ast.TestEvent
) -> int | None:
    """The time that stands in the event itself."""
    given = next((read(record, path) for path in form.paths if _has(record, path)), None)
    if given is None:
        return None
    parsed = parse_time(given, cast("Unit | None", form.unit), form.timezone)
    if parsed is None:
        raise TestProblem(step.span, f"the time {given!r} cannot be read")
    return parsed


def _check_membership(
    rules: checked.CheckedRules,
    stream: checked.Stream,
    record: Mapping[str, object],
    time: int,
    step: ast.TestEvent,
) -> None:
    if stream.name not in rules.streams:
        return
    lists = {name: given.items for name, given in rules.lists.items()}
    streams = Streams(World(rules, lists, lambda *_: None))
    if not streams.belongs(stream.name, Event(0, time, record)):
        raise TestProblem(
            step.span,
            f"this event does not belong to the stream `{stream.name}`: {record}"
            f"{_before_select(stream)}",
        )


def _before_select(stream: checked.Stream) -> str:
    """What to look for first when the stream has fields of its own."""
    if stream.select is None:
        return ""
    return " (a test gives an event as it comes in, with its fields before `select`)"


def _object(given: ast.Object) -> dict[str, object]:
    record: dict[str, object] = {}
    for pair in given.pairs:
        path = (pair.path.dotted,) if pair.quoted else pair.path.names
        _put(record, path, constant(pair.value))
    return record


def _put(record: dict[str, object], path: tuple[str, ...], value: object) -> None:
    """Set a field, unless it has a value already."""
    if _has(record, path):
        return
    for name in path[:-1]:
        inner = record.setdefault(name, {})
        if not isinstance(inner, dict):
            return
        record = inner
    record[path[-1]] = value


def _has(record: Mapping[str, object], path: tuple[str, ...]) -> bool:
    return read(record, path) is not MISSING


def _time_format(rules: checked.CheckedRules, stream: checked.Stream) -> checked.TimeFormat:
    """Where the stream's time stands: as it says, as `event` says, or in the usual fields."""
    for one in (stream, *_ancestors(rules, stream), rules.streams.get("event")):
        if one is not None and one.time is not None:
            return one.time
    return checked.TimeFormat(DEFAULT_TIME_FIELDS)


def _ancestors(rules: checked.CheckedRules, stream: checked.Stream) -> Iterator[checked.Stream]:
    """The first parent, its first parent, and so on."""
    while stream.parents:
        stream = rules.streams[stream.parents[0]]
        yield stream


def _fixed(
    rules: checked.CheckedRules, stream: checked.Stream
) -> Iterator[tuple[tuple[str, ...], object]]:
    """The type, and the fields that `where` fixes by `==`, of the stream and its parents."""
    for one in (stream, *_ancestors(rules, stream)):
        if one.type_value is not None:
            yield one.type_path, one.type_value
        for condition in checked.conjuncts(one.where):
            if isinstance(condition, checked.Comparison) and condition.op == "==":
                sides = (condition.left, condition.right)
                for field, value in (sides, sides[::-1]):
                    if isinstance(field, checked.Field) and isinstance(value, checked.Const):
                        yield field.path, value.value


def _written_time(time: int, unit: str | None) -> object:
    """A time as the field of a stream holds it."""
    numbers = {
        "seconds": time / 1_000_000,
        "millis": time // 1_000,
        "micros": time,
        "nanos": time * 1_000,
    }
    return numbers.get(unit or "", iso(time))
