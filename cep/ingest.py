"""From what a source or host gives to events with a time: decoding, event time, rejects.

In: blocks of raw JSON lines or ready records. Out: events of the shape that the rules read, each
with its time, its original and its place; what cannot be made an event is handed to `on_reject`
with the reason. Lines are decoded straight into the struct of the mentioned fields; only a line
that does not fit is looked at again, with a careful reader.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate
from operator import attrgetter
from typing import Any

import msgspec

from cep.compile.environment import EventEnv
from cep.compile.expressions import careful, truth
from cep.compile.rules import DEFAULT_TIMES, CompiledRules, surroundings
from cep.compile.writer import Writer
from cep.event import EventShape, unbox
from cep.event_time import common_scale, find_zone, parse_time, parse_times
from cep.plan.values import Unrepeated
from cep.runtime.careful import Careful
from cep.source.base import BadRecord, Block, Reject
from cep.source.json_line import read_object
from dsl.checked import Conjunction, Lookup, TimeFormat, Value
from dsl.types import Type

OnReject = Callable[[str, Reject], None]


@dataclass(slots=True)
class TimeRule:
    """Where events that satisfy `test` (None: all) have their time."""

    attributes: tuple[str, ...]
    unit: Any
    zone: Any
    test: Callable[[Any], bool] | None


class EventTimes:
    """Reads the time of events, as the streams say; the first stream that has an event decides."""

    def __init__(self, compiled: CompiledRules) -> None:
        streams = compiled.checked.streams
        shape = compiled.shape
        self.rules: list[TimeRule] = []
        for name, stream in streams.items():
            if stream.time is not None and name != "event" and not stream.emitted:
                test = _membership_test(compiled, name)
                self.rules.append(_time_rule(shape, stream.time, test))
        event = streams.get("event")
        default = event.time if event is not None else None
        self.rules.append(_time_rule(shape, default or TimeFormat(DEFAULT_TIMES), None))

    def read(self, events: Sequence[Any]) -> list[int | None]:
        """The time of each event in microseconds; None where none can be read."""
        if len(self.rules) > 1:
            return [self._one(event) for event in events]
        rule = self.rules[0]
        values = list(map(attrgetter(rule.attributes[0]), events))
        for attribute in rule.attributes[1:]:
            if _NONE not in set(map(type, values)):
                break
            values = [
                value if value is not None else unbox(getattr(event, attribute))
                for value, event in zip(values, events, strict=True)
            ]
        return parse_times(values, rule.unit, rule.zone)

    def in_order(self, events: Sequence[Any], values: list[Any]) -> tuple[list[int], int] | None:
        """The times of events that all have one and are in order already, as they stand there, and
        what makes microseconds of them; else None. `values`: of the first time field that any of
        these events has."""
        scale = None
        if len(self.rules) == 1 and set(map(type, values)) == _INTEGERS:
            scale = common_scale(values[0], values[-1], self.rules[0].unit)
        if scale is None:
            values, scale = self.read(events), 1
            if _NONE in set(map(type, values)):
                return None
        return (values, scale) if values == sorted(values) else None

    def _one(self, event: Any) -> int | None:
        rule = next(r for r in self.rules if r.test is None or r.test(event))
        values = (unbox(getattr(event, attribute)) for attribute in rule.attributes)
        value = next((value for value in values if value is not None), None)
        return parse_time(value, rule.unit, rule.zone)

    @property
    def fields(self) -> str:
        """The names of the fields that are looked at, for the reason of a reject."""
        return ", ".join(dict.fromkeys(a for rule in self.rules for a in rule.attributes))


_NONE = type(None)
_INTEGERS = {int}


def _time_rule(shape: EventShape, time: TimeFormat, test: Callable[[Any], bool] | None) -> TimeRule:
    attributes = tuple(shape.attributes[path] for path in time.paths)
    zone = find_zone(time.timezone) if time.timezone is not None else None
    return TimeRule(attributes, time.unit, zone, test)


def _membership_test(compiled: CompiledRules, stream: str) -> Callable[[Any], bool]:
    """Whether an input event belongs to a stream, as a function of the event.

    An event gets its time before it gets its turn, so nothing is known of tables and repeats here:
    conditions that ask them are taken for true.
    """
    around = surroundings(compiled)
    env = EventEnv(around)
    fast, slow = [], []
    for origin in compiled.streams.origins(stream):
        known = tuple(condition for condition in origin.filters if not _asks_state(condition))
        condition: Value = Conjunction(known, type=Type.BOOL)
        fast.append(f"({truth(condition, env)})" if known else "True")
        slow.append(f"{careful(condition, env)} is True" if known else "True")
    w = Writer()
    with w.block("def test(e, t=0):"):
        with w.block("try:"):
            w(f"return {' or '.join(fast) or 'False'}")
        with w.block("except Exception:"):
            w(f"return {' or '.join(slow) or 'False'}")
    constants = {f"c{i}": value for i, value in enumerate(around.constants.values)}
    names: dict[str, Any] = {**constants, "careful": Careful(), "UNSET": msgspec.UNSET}
    exec(w.text(), names)
    return names["test"]  # type: ignore[no-any-return]


def _asks_state(condition: Value) -> bool:
    return any(isinstance(part, Lookup | Unrepeated) for part in condition.walk())


class Ingest:
    """Makes events for one engine. `on_reject` is told of everything that is no event."""

    def __init__(self, compiled: CompiledRules, on_reject: OnReject) -> None:
        self.shape = compiled.shape
        self.times = EventTimes(compiled)
        self.on_reject = on_reject
        self._decode = msgspec.json.Decoder(self.shape.type).decode
        self._decode_untyped = msgspec.json.Decoder(self.shape.untyped).decode

    def _paths(self, rule: TimeRule) -> list[tuple[str, ...]]:
        return [self.shape.path_of(attribute) for attribute in rule.attributes]

    # ------------------------------------------------------------------ JSON lines

    def decode(self, line: bytes) -> Any:
        """One line as an event, its time not yet set. Raises BadRecord with the reason."""
        if not line.isascii():
            _require_utf8(line)
        try:
            event = self._decode(line)
        except msgspec.ValidationError:
            event = self._with_odd_values(line)
        except (msgspec.DecodeError, RecursionError, UnicodeDecodeError):
            return self.shape.from_mapping(read_object(line))
        else:
            if self.shape.has_nested:
                self.shape.settle(event)
        return event

    def _with_odd_values(self, line: bytes) -> Any:
        """A line in which a value is not of the type that the rules take it for."""
        try:
            return self.shape.retype(self._decode_untyped(line))
        except (msgspec.DecodeError, RecursionError, ValueError):
            return self.shape.from_mapping(read_object(line))

    def lines(self, source: str, block: Block) -> tuple[list[Any], list[int], Sequence[bytes]]:
        """Events, their positions and their lines, of a block of raw lines. Blank lines are passed
        over; lines that are no events are rejected."""
        lines = block.lines or []
        positions = list(block.positions or accumulate(map(len, lines), initial=block.offset))
        return self._carefully(source, block, lines, positions)

    def _carefully(
        self, source: str, block: Block, lines: Sequence[bytes], positions: Sequence[int]
    ) -> tuple[list[Any], list[int], Sequence[bytes]]:
        events, places, kept = [], [], []
        for index, line in enumerate(lines):
            if not line.strip():
                continue
            try:
                events.append(self.decode(line))
            except BadRecord as error:
                number = _line_number(block, index)
                self.on_reject(source, Reject(positions[index], number, str(error), line))
                continue
            places.append(positions[index])
            kept.append(line)
        return events, places, kept

    # ------------------------------------------------------------------ records

    def records(
        self, source: str, block: Block
    ) -> tuple[list[Any], list[int], Sequence[Mapping[str, Any]]]:
        """Events, positions and originals of a block of ready records."""
        records = list(block.ready)
        positions = block.positions or range(block.offset, block.offset + len(records))
        return list(map(self.shape.from_mapping, records)), list(positions), records

    # ------------------------------------------------------------------ time

    def timed(
        self,
        source: str,
        block: Block,
        events: list[Any],
        positions: list[int],
        originals: Sequence[Any],
    ) -> tuple[list[Any], list[int], list[int], Sequence[Any]]:
        """Events that have a time, with times, positions and originals; others are rejected."""
        times = self.times.read(events)
        if _NONE not in set(map(type, times)):
            return events, times, positions, originals  # type: ignore[return-value]
        kept: list[tuple[Any, int, int, Any]] = []
        places = _places(block)
        for index, (event, time) in enumerate(zip(events, times, strict=True)):
            if time is not None:
                kept.append((event, time, positions[index], originals[index]))
                continue
            original = originals[index]
            raw = original if isinstance(original, bytes) else msgspec.json.encode(original)
            number = _line_number(block, bisect_left(places, positions[index]))
            self.on_reject(source, Reject(positions[index], number, self.no_time(event), raw))
        return (
            [item[0] for item in kept],
            [item[1] for item in kept],
            [item[2] for item in kept],
            [item[3] for item in kept],
        )

    def no_time(self, event: Any) -> str:
        """Why an event has no readable time: by the stream that decides where it stands."""
        rule = next(r for r in self.times.rules if r.test is None or r.test(event))
        paths = self._paths(rule)
        for attribute, path in zip(rule.attributes, paths, strict=True):
            value = unbox(getattr(event, attribute))
            if value is not None:
                return f"the time cannot be read: `{'.'.join(path)}` is {_shown(value)}"
        names = ", ".join(f"`{'.'.join(path)}`" for path in dict.fromkeys(paths))
        return f"no time: there is no field {names}"


def _shown(value: Any) -> str:
    text = repr(value) if isinstance(value, str) else str(value)[:60]
    return text if len(text) <= 60 else text[:57] + "…"


def _require_utf8(line: bytes) -> None:
    try:
        line.decode()
    except UnicodeDecodeError as error:
        raise BadRecord(f"invalid UTF-8 at byte {error.start + 1}") from error


def _places(block: Block) -> Sequence[int]:
    """The position of everything in a block, also of lines that have become no events."""
    if block.positions is not None:
        return block.positions
    if block.lines is not None:
        return list(accumulate(map(len, block.lines), initial=block.offset))
    return range(block.offset, block.offset + len(block.ready))


def _line_number(block: Block, index: int) -> int:
    if block.line_numbers is not None:
        return block.line_numbers[index]
    return block.line_number + index
