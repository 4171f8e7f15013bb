"""What the events of a run look like: which fields they have, of which types, in which streams.

In: the originals of events (JSON lines or records) as they are read, and what the rules read. Out:
what of that no event had. The first events are looked at as a whole; of all others only those that
may have what is still missing, so that a long run costs little more.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from json import dumps
from typing import Any, NamedTuple, TypeGuard, cast

import msgspec

from cep.event import UNSET, lookup
from cep.explain.reads import Path, Reads, Told
from dsl.checked import (
    ArrayOf,
    Comparison,
    Conjunction,
    Const,
    Disjunction,
    Field,
    IsNull,
    Negation,
    Value,
)

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
    _asked: Sequence[Want] = field(init=False)
    """What the conditions of streams ask."""
    _named: frozenset[Told] = field(init=False)
    """The values that streams are told by."""

    def __post_init__(self) -> None:
        kinds = {told for rule in self.rules for s in rule.streams for told in rule.told_by(s)}
        self._asked = [want for rule in self.rules for want in _asked_of_streams(rule)]
        values = {want.kind for want in self._asked if want.kind is not None}
        self.values = {told.path: {} for told in sorted(kinds | values, key=str)}
        self._named = frozenset(kinds | values)
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
        block = _Block(rest)
        for want in [want for want in self._open if self._found_in(block, want)]:
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

    def without_events(self) -> list[Reads]:
        """The rules that got no event of any stream that they need."""
        derived = self.derived()
        return [rule for rule in self.rules if not self._is_met(rule, derived)]

    def derived(self) -> set[str]:
        """The derived streams that may have had events: those of rules that had some to look at."""
        found: set[str] = set()
        idle = list(self.rules)
        while met := [rule for rule in idle if self._is_met(rule, found)]:
            found.update(stream for rule in met for stream in rule.emits)
            idle = [rule for rule in idle if rule not in met]
        return found

    def _is_met(self, rule: Reads, derived: Container[str]) -> bool:
        return not rule.needs or any(self.may_have(rule, stream, derived) for stream in rule.needs)

    def may_have(self, rule: Reads, stream: str, derived: Container[str]) -> bool:
        """Whether an event may have been of a stream that the rule needs."""
        return any(
            all(map(self._may_hold, way.filters)) if way.source is None else way.source in derived
            for way in rule.ways(stream)
        )

    def _may_hold(self, condition: Value) -> bool:
        """False where no event has what the condition needs."""
        if isinstance(condition, Conjunction):
            return all(map(self._may_hold, condition.parts))
        if isinstance(condition, Disjunction):
            return any(map(self._may_hold, condition.parts))
        wants = tuple(_asked(condition))
        return not wants or any(map(self.has, wants))

    def _wants(self) -> Iterator[Want]:
        yield from self._asked
        for rule in self.rules:
            for stream in rule.streams:
                yield from (Want(told, None) for told in rule.told_by(stream))
            for stream, paths in rule.fields:
                yield from (Want(self.kind_of(rule, stream), path) for path in paths)

    # ------------------------------------------------------------------ looking

    def _found_in(self, block: _Block, want: Want) -> bool:
        assert self._open is not None
        for number, original in enumerate(block.candidates(want, self._open[want]), 1):
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
            if _tells(value):
                if len(seen) < MOST or Told(path, value) in self._named:
                    seen.setdefault(value)
                if Told(path, value) in self.types:
                    kinds.append(Told(path, value))
        for path, value in fields_of(record):
            for kind in kinds:
                if path in self.types[kind] or len(self.types[kind]) < MOST:
                    types = self.types[kind].setdefault(path, set())
                    if value is not None:
                        types.add(type_name(value))


def _asked_of_streams(rule: Reads) -> Iterator[Want]:
    """What the conditions of the streams that a rule needs ask of events of the input."""
    for stream in rule.needs:
        for way in rule.ways(stream):
            if way.source is None:
                yield from (want for part in way.filters for want in _asked_anywhere(part))


def _asked_anywhere(condition: Value) -> Iterator[Want]:
    if isinstance(condition, Conjunction | Disjunction):
        for part in condition.parts:
            yield from _asked_anywhere(part)
    else:
        yield from _asked(condition)


def _asked(condition: Value) -> Iterator[Want]:
    """What an event must have one of for the condition to hold; nothing where that is not known.

    >>> kind = Field(("id",))
    >>> [want.kind.value for want in _asked(Comparison("in", kind, ArrayOf((Const(1), Const(2)))))]
    [1, 2]
    >>> list(_asked(Negation(IsNull(kind)))), list(_asked(IsNull(kind)))
    ([Want(kind=None, path=('id',))], [])
    """
    if isinstance(condition, Negation) and isinstance(condition.operand, IsNull):
        condition = condition.operand.operand
        if isinstance(condition, Field):
            yield Want(None, condition.path)
    elif isinstance(condition, Comparison) and isinstance(condition.left, Field):
        path, right = condition.left.path, condition.right
        values = right.items if isinstance(right, ArrayOf) else (right,)
        constants = [value.value for value in values if isinstance(value, Const)]
        told = [Told(path, c) for c in constants if _tells(c)]
        if condition.op in ("==", "in") and len(told) == len(values):
            yield from (Want(one, None) for one in told)
        elif None not in constants:
            yield Want(None, path)


def _tells(value: object) -> TypeGuard[str | int]:
    """Whether a constant may tell the events of a stream from others."""
    return isinstance(value, str | int) and not isinstance(value, bool)


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
    """What stands in each JSON line that has what is wanted; first what many wants share."""
    kind, path = want
    traces = []
    if path is not None:  # a nested field may stand there as a flat `a.b`
        traces.append(_end_of_name(path))
    if kind is not None:
        traces += [_end_of_name(kind.path), _written(kind.value)]
    return tuple(traces)


def _end_of_name(path: Path) -> tuple[bytes, ...]:
    return tuple(form[1:] for form in _written(path[-1]))


def _written(value: str | int) -> tuple[bytes, ...]:
    """The ways in which a value is written in JSON."""
    forms = dumps(value).encode(), dumps(value, ensure_ascii=False).encode()
    return tuple(dict.fromkeys(forms))


class _Block:
    """The originals of one block, searched for one thing after the other."""

    def __init__(self, originals: Sequence[bytes | Mapping[str, Any]]) -> None:
        self._originals = originals
        self._text = b"".join(cast("Any", originals)) if isinstance(originals[0], bytes) else b""
        self._found: dict[tuple[bytes, ...], bool] = {}

    def candidates(self, want: Want, traces: Traces) -> Iterator[bytes | Mapping[str, Any]]:
        """The originals that may have what is wanted."""
        if not self._text:
            yield from _records_with(cast("Sequence[Mapping[str, Any]]", self._originals), want)
        elif all(map(self._has, traces)):
            lines = cast("Sequence[bytes]", self._originals)
            yield from (line for line in lines if all(_stands_in(line, forms) for forms in traces))

    def _has(self, forms: tuple[bytes, ...]) -> bool:
        if forms not in self._found:
            self._found[forms] = _stands_in(self._text, forms)
        return self._found[forms]


def _stands_in(text: bytes, forms: tuple[bytes, ...]) -> bool:
    return any(form in text for form in forms)


def _records_with(records: Iterable[Mapping[str, Any]], want: Want) -> Iterator[Mapping[str, Any]]:
    kind, path = want
    for record in records:
        if kind is not None and lookup(record, kind.path) != kind.value:
            continue
        if path is None or lookup(record, path) is not UNSET:
            yield record
