"""The short way of a block: only the events that rules can use, where all are good and in order.

In: a block of raw lines or of rows, and the values that tell useful events. Out: those events with
time and place, and from when to when all of the block are: the others only move the clock, so that
nothing else is done with them. Of rows they are not even made. None where anything asks for a
closer look (a line that is no event, an event without a time or before another one): the block then
goes the long way, which gives the same matches.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC
from itertools import accumulate
from typing import Any, NamedTuple

import msgspec

from cep.event import UNSET, Path, lookup
from cep.event_time import EARLIEST, LATEST, common_scale, parse_times
from cep.ingest import Ingest
from cep.source.base import BadRecord, Block
from cep.source.json_line import read_object
from cep.source.rows import Rising, Rows

Telling = tuple[str, Mapping[Any, Any]] | None
"""What tells the events that rules can use: an attribute, and its values among others. None: they
may use any."""


@dataclass(frozen=True, slots=True)
class Skimmed:
    """A block whose events are all good and in order: the first and the last time, and the events
    that rules can use. `originals`: of all its events."""

    first: int
    last: int
    originals: Sequence[Any]
    events: list[Any]


class Skimmer:
    """Takes the short way with the blocks of one engine."""

    def __init__(self, ingest: Ingest) -> None:
        self._ingest = ingest
        self._lines: _Lines | None = None
        self._telling: Telling = None

    def skim(self, block: Block, telling: Telling, source: str) -> Skimmed | None:
        """What there is of a block, if this way is open to it. `source`: what the events know of
        where they come from."""
        if block.rows is not None:
            return _rows(self._ingest, telling, block, source) if block.rows else None
        if not block.lines or block.positions or not block.is_ascii:
            return None  # the decoder does not look at the bytes of fields it passes over
        if self._lines is None or telling is not self._telling:
            self._lines, self._telling = _Lines(self._ingest, telling, block.lines), telling
        return self._lines.skim(block, source)


# ---------------------------------------------------------------------------- lines


class _Lines:
    """Decodes lines that are like those it has been shown.

    Most lines are of no use to rules that name a few kinds of events. So lines are decoded into
    bare structs, of the mentioned fields and nothing else, and events are made of those that are of
    use. Where most are, lines are decoded into events at once.
    """

    def __init__(self, ingest: Ingest, telling: Telling, lines: Sequence[bytes]) -> None:
        self._shape, self._times = ingest.shape, ingest.times
        self._names = _names_on(lines[0])
        self._told_by = telling[0] if telling is not None else None
        self._wanted = telling[1] if telling is not None else {}
        decisive = {a for rule in self._times.rules for a in rule.attributes} | {self._told_by}
        nested = [a for a in decisive if a is not None and len(self._shape.path_of(a)) > 1]
        may_ask_others = len(self._times.rules) > 1
        self._settles_all = self._shape.has_nested and (bool(nested) or may_ask_others)
        self._may_be_bare = telling is not None and not may_ask_others
        self._is_bare = self._may_be_bare
        self._expect(self._absent(lines))

    def _absent(self, lines: Sequence[bytes]) -> list[str]:
        """The fields of times that none of these lines has."""
        data = b"".join(lines)
        attributes = dict.fromkeys(a for rule in self._times.rules for a in rule.attributes)
        paths = [(attribute, self._shape.path_of(attribute)) for attribute in attributes]
        return [
            attribute
            for attribute, path in paths
            if len(path) == 1 and f'"{path[0]}"'.encode() not in data
        ]

    def _expect(self, lacking: Sequence[str]) -> None:
        """Chooses how lines are decoded from now on: as if none had these fields. A line that has
        one does not fit then, and ends that."""
        self._lacking = lacking
        self._bare, self._whole = (
            msgspec.json.Decoder(self._shape.expecting(self._names, lacking, bare=bare)).decode
            for bare in (True, False)
        )
        attributes = self._times.rules[0].attributes
        time = next((a for a in attributes if a not in lacking), attributes[-1])
        self._read = _reader(time, self._told_by or time, list(self._shape.attributes.values()))

    def skim(self, block: Block, source: str) -> Skimmed | None:
        lines, is_bare = block.lines or [], self._is_bare
        try:
            events = list(map(self._bare if is_bare else self._whole, lines))
        except (msgspec.MsgspecError, RecursionError):
            if self._lacking:
                self._expect(())
            return None
        if self._settles_all:
            self._settle(events)
        times = self._times.in_order(events, self._read.times(events))
        if times is None:
            return None
        raw, scale = times
        first, last = raw[0] * scale, raw[-1] * scale
        offsets: Sequence[int] = list(accumulate(map(len, lines), initial=block.offset))
        originals: Sequence[bytes] = lines
        places = self._places_of_use(events)
        if places is not None:
            events = [events[place] for place in places]
            raw = [raw[place] for place in places]
            offsets = [offsets[place] for place in places]
            originals = [lines[place] for place in places]
        if self._shape.has_nested and not self._settles_all:
            self._settle(events)
        if is_bare:
            columns, times_us = self._read.columns(events), [time * scale for time in raw]
            events = self._shape.filled(columns, times_us, originals, source, offsets)
        else:
            for event, time, offset, line in zip(events, raw, offsets, originals, strict=False):
                event.t = time * scale
                event.pos = offset
                event.raw = line
                event.src = source
        return Skimmed(first, last, lines, events)

    def _places_of_use(self, events: Sequence[Any]) -> list[int] | None:
        """Which of the events rules can use; None: all of them."""
        if self._told_by is None:
            return None
        try:
            places: list[int] = self._read.useful(events, self._wanted)
        except TypeError:  # a value that cannot be looked up
            return None
        self._is_bare = self._may_be_bare and 2 * len(places) < len(events)
        return places

    def _settle(self, events: Sequence[Any]) -> None:
        for event in events:
            self._shape.settle(event)


def _names_on(line: bytes) -> list[str]:
    """The names of the fields in a line, in their order."""
    try:
        return list(read_object(line))
    except BadRecord:
        return []


class _Reader(NamedTuple):
    """Reads attributes of many events: their raw times, the places of those that are of use, and
    the values of all fields."""

    times: Callable[[Sequence[Any]], list[Any]]
    useful: Callable[[Sequence[Any], Any], list[int]]
    columns: Callable[[Sequence[Any]], list[list[Any]]]


def _reader(time: str, told_by: str, attributes: Sequence[str]) -> _Reader:
    """Code for these attributes: Python reads one that it is told beforehand much faster."""
    here = [f"[e.{attribute} for e in events]" for attribute in attributes]
    names: dict[str, Any] = {}
    exec(
        f"""
def times(events):
    return [e.{time} for e in events]
def useful(events, wanted):
    return [i for i, e in enumerate(events) if e.{told_by} in wanted]
def columns(events):
    return [{", ".join(here)}]
""",
        names,
    )
    return _Reader(names["times"], names["useful"], names["columns"])


# ---------------------------------------------------------------------------- rows


def _rows(ingest: Ingest, telling: Telling | None, block: Block, source: str) -> Skimmed | None:
    rows = block.rows
    assert rows is not None
    assert block.positions is not None
    times = _times(ingest, rows)
    if times is None:
        return None
    wanted = rows
    if telling is not None:
        attribute, values = telling
        path = ingest.shape.path_of(attribute)
        if len(path) == 1 or path[0] not in rows.names:
            name = ".".join(path)
            wanted = rows.only(name, values.keys()) if name in rows.names else rows.at(())
    if not wanted:
        return Skimmed(times.first, times.last, rows, [])
    places = [block.positions[place] for place in wanted.places]
    events = ingest.shape.from_columns(
        lambda path: column_at(wanted, path), times.of(wanted), wanted.originals(), source, places
    )
    return Skimmed(times.first, times.last, rows, events)


class _Times(NamedTuple):
    """The times of rows that are in order: the first, the last, and those of any of the rows."""

    first: int
    last: int
    of: Callable[[Rows], Sequence[int]]


def _times(ingest: Ingest, rows: Rows) -> _Times | None:
    if len(ingest.times.rules) > 1:
        return None
    rule = ingest.times.rules[0]
    paths = [ingest.shape.path_of(attribute) for attribute in rule.attributes]
    paths = [path for path in paths if path[0] in rows.names or ".".join(path) in rows.names]
    if paths and len(paths[0]) == 1:
        name = paths[0][0]
        rising = rows.rising(name)
        scale = _scale(rising, rule.unit, rule.zone) if rising is not None else None
        if rising is not None and scale is not None:
            first, last = rising.first * scale, rising.last * scale
            return _Times(first, last, lambda some: [value * scale for value in some.whole(name)])
    return _read_times(rows, paths, rule.unit, rule.zone)


def _scale(rising: Rising, unit: Any, zone: Any) -> int | None:
    """What makes microseconds of a rising column."""
    if rising.meaning == "number":
        return common_scale(rising.first, rising.last, unit)
    is_read = unit in (None, "iso") and (rising.meaning == "utc" or zone in (None, UTC))
    return 1 if is_read and rising.first >= EARLIEST and rising.last <= LATEST else None


def _read_times(rows: Rows, paths: Sequence[Path], unit: Any, zone: Any) -> _Times | None:
    """The times of rows that must be read one by one."""
    values: list[object] = [None] * len(rows)
    for path in paths:
        column = column_at(rows, path) or ()
        values = [old if old is not None else new for old, new in zip(values, column, strict=True)]
        if None not in values:
            break
    times: Any = parse_times(values, unit, zone)
    if None in times or times != sorted(times):
        return None
    return _Times(times[0], times[-1], lambda some: [times[place] for place in some.places])


def column_at(rows: Rows, path: Path) -> Sequence[object] | None:
    """The values at a path, as `lookup` finds them in records; None where no row has one."""
    names, flat = rows.names, ".".join(path)
    if len(path) == 1 or path[0] not in names:
        return rows.column(flat) if flat in names else None
    values = (lookup(record, path) for record in rows)
    return [None if value is UNSET else value for value in values]
