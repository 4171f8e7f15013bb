"""Events of `test` blocks: what the text gives, and what the runner fills in."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import cast

from cep.event_time import Unit, parse_time
from cep.testing.reference_functions import iso
from cep.testing.reference_streams import Streams
from cep.testing.reference_values import MISSING, Event, World, read
from dsl import ast, checked
from dsl.source import Span

DEFAULT_TIME_FIELDS = (("@timestamp",), ("timestamp",), ("time",), ("ts",))


class TestProblem(Exception):
    """Why a test fails, with the place in the rule file."""

    __test__ = False  # pytest: this is no test class

    def __init__(self, span: Span, text: str) -> None:
        super().__init__(f"{span}: {text}")


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
) -> tuple[dict[str, object], int | None]:
    """The event that a step of a test describes, and the time that its own fields give it.

    Type and fixed fields are filled in; then it must belong to the stream that the test names.
    """
    record = _object(step.object)
    stream = rules.streams.get(step.stream.name)
    if stream is None:
        stream = checked.Stream(step.stream.name, type_value=step.stream.name)
    paths, time_format = _time_fields(rules, stream)
    given = next((read(record, path) for path in paths if _has(record, path)), None)
    for path, value in _fixed(rules, stream):
        _put(record, path, value)
    if stream.emitted:
        raise TestProblem(
            step.span,
            f"`{stream.name}` holds events that rules emit; name the rule that emits them, and "
            "give the events that make it do so",
        )
    if given is not None:
        parsed = parse_time(given, cast("Unit | None", time_format.unit), time_format.timezone)
        if parsed is None:
            raise TestProblem(step.span, f"the time {given!r} cannot be read")
        _check_membership(rules, stream, record, parsed, step)
        return record, parsed
    if stream.time is not None:
        _put(record, paths[0], _written_time(time, time_format.unit))
    _check_membership(rules, stream, record, time, step)
    return record, None


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
            step.span, f"this event does not belong to the stream `{stream.name}`: {record}"
        )


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


def _time_fields(
    rules: checked.CheckedRules, stream: checked.Stream
) -> tuple[tuple[tuple[str, ...], ...], checked.TimeFormat]:
    """Where the stream's time stands: as it says, as `event` says, or in the usual fields."""
    for one in (stream, *_ancestors(rules, stream), rules.streams.get("event")):
        if one is not None and one.time is not None:
            return one.time.paths, one.time
    return DEFAULT_TIME_FIELDS, checked.TimeFormat(DEFAULT_TIME_FIELDS)


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
