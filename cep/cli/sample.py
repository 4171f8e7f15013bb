"""What the events of a run look like: which fields they have, of which types, in which streams.

In: the originals of events (JSON lines or records) as they are read, and what the rules read. Out:
what of that no event had. The first events are looked at as a whole; of all others only those that
may have what is still missing, so that a long run costs little more.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from json import dumps
from typing import Any, NamedTuple, cast

import msgspec

from cep.event import UNSET, lookup
from cep.explain.reads import Path, Reads, Told

FIRST = 1000
"""Events that are looked at as a whole."""

MORE = 3
"""Events of one block that are looked at for one thing that is missing."""

MOST = 1000
"""Names and values that are remembered of each kind."""

LEVELS = 4
"""Levels of nesting of which names are noted."""

Traces = tuple[tuple[bytes, ...], ...]
"""What all stands in a line; each in one of several forms."""

Kind = Told | None
"""The events that have a certain value in a certain field; None: all events."""


class Want(NamedTuple):
    """Something that the rules read: an event of a kind, or a field (None: any) of it."""

    kind: Kind
    path: Path | None


@dataclass(slots=True)
class Sample:
    """Looks at events for what `rules` read of them."""

    rules: Sequence[Reads]
    events: int = 0
    values: dict[Path, dict[str | int, None]] = field(default_factory=dict)
    """The values of the fields by which streams are told."""
    types: dict[Kind, dict[Path, set[str]]] = field(default_factory=dict)
    """The types of the fields of each kind of event; none for what was always null."""
    _open: dict[Want, Traces] | None = None
    """What no event has had yet, once the first have been looked at, and what stands in a line that
    has it."""

    def __post_init__(self) -> None:
        kinds = {told for rule in self.rules for s in rule.streams for told in rule.told_by(s)}
        self.values = {told.path: {} for told in sorted(kinds, key=str)}
        self.types = {kind: {} for kind in (None, *kinds)}

    def look(self, originals: Sequence[bytes | Mapping[str, Any]]) -> None:
        """Takes the originals of the next events."""
        first = originals[: max(FIRST - self.events, 0)]
        self.events += len(originals)
        for original in first:
            self._note(original)
        rest = originals[len(first) :]
        if not rest:
            return
        if self._open is None:
            self._open = {want: _traces(want) for want in self._wants() if not self.has(want)}
        for want in [want for want in self._open if self._found_in(rest, want)]:
            del self._open[want]

    def has(self, want: Want) -> bool:
        """Whether an event of this kind, with that field, has been seen."""
        kind, path = want
        if path is not None:
            return path in self.types[kind]
        return kind is None or kind.value in self.values[kind.path]

    def kind_of(self, rule: Reads, stream: str) -> Kind:
        """The kind of event that a stream's are."""
        return next(iter(rule.told_by(stream)), None)

    def _wants(self) -> Iterator[Want]:
        for rule in self.rules:
            for stream in rule.streams:
                yield from (Want(told, None) for told in rule.told_by(stream))
            for stream, paths in rule.fields:
                yield from (Want(self.kind_of(rule, stream), path) for path in paths)

    # ------------------------------------------------------------------ looking

    def _found_in(self, originals: Sequence[bytes | Mapping[str, Any]], want: Want) -> bool:
        assert self._open is not None
        candidates: Iterator[Any] = (
            _lines_with(cast("Sequence[bytes]", originals), self._open[want])
            if isinstance(originals[0], bytes)
            else _records_with(cast("Sequence[Mapping[str, Any]]", originals), want)
        )
        for number, original in enumerate(candidates, 1):
            self._note(original)
            if self.has(want):
                return True
            if number == MORE:
                break
        return False

    def _note(self, original: bytes | Mapping[str, Any]) -> None:
        try:
            record = msgspec.json.decode(original) if isinstance(original, bytes) else original
        except (msgspec.DecodeError, RecursionError):
            return
        kinds: list[Kind] = [None]
        for path, seen in self.values.items():
            value = lookup(record, path)
            if isinstance(value, str | int) and not isinstance(value, bool):
                if len(seen) < MOST:
                    seen.setdefault(value)
                if Told(path, value) in self.types:
                    kinds.append(Told(path, value))
        for path, value in fields_of(record):
            for kind in kinds:
                if path in self.types[kind] or len(self.types[kind]) < MOST:
                    types = self.types[kind].setdefault(path, set())
                    if value is not None:
                        types.add(type_name(value))


def fields_of(record: Mapping[Any, Any], levels: int = LEVELS) -> Iterator[tuple[Path, Any]]:
    """The fields of a record with their paths, a flat `a.b` like a nested one."""
    for name, value in record.items():
        own = (str(name),)
        yield own, value
        if "." in own[0]:
            yield tuple(own[0].split(".")), value
        if isinstance(value, Mapping) and levels > 1:
            yield from ((own + path, inner) for path, inner in fields_of(value, levels - 1))


def type_name(value: object) -> str:
    """The type of a JSON value, as the language calls it."""
    if isinstance(value, bool):
        return "boolean"
    if isinstance(value, int | float):
        return "number"
    if isinstance(value, str):
        return "text"
    return "object" if isinstance(value, Mapping) else "array"


def _traces(want: Want) -> Traces:
    """What stands in each JSON line that has what is wanted."""
    kind, path = want
    traces = []
    if kind is not None:
        traces.append(_written(kind.value))
    if path is not None:  # a nested field may stand there as a flat `a.b`
        traces.append(tuple(form[1:] for form in _written(path[-1])))
    return tuple(traces)


def _written(value: str | int) -> tuple[bytes, ...]:
    """The ways in which a value is written in JSON."""
    return dumps(value).encode(), dumps(value, ensure_ascii=False).encode()


def _lines_with(lines: Sequence[bytes], traces: Traces) -> Iterator[bytes]:
    """The lines in which all of these stand."""
    if _stand_in(b"".join(lines), traces):
        yield from (line for line in lines if _stand_in(line, traces))


def _stand_in(text: bytes, traces: Traces) -> bool:
    return all(any(form in text for form in forms) for forms in traces)


def _records_with(records: Iterable[Mapping[str, Any]], want: Want) -> Iterator[Mapping[str, Any]]:
    kind, path = want
    for record in records:
        if kind is not None and lookup(record, kind.path) != kind.value:
            continue
        if path is None or lookup(record, path) is not UNSET:
            yield record
