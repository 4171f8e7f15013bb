"""Which streams an event belongs to, and what tables hold (sections 1 and 2). For tests only."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from cep.testing.reference_values import (
    MISSING,
    Event,
    Key,
    Scope,
    Taken,
    World,
    holds,
    key_of,
    read,
    value_of,
)
from dsl import checked


class Streams:
    """Which streams an event belongs to, and what it shows in each of them."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._opened: dict[tuple[str, Key], int] = {}

    def views(self, event: Event) -> dict[str, Taken]:
        """The streams that the event belongs to. Asked once for each event, in order."""
        found: dict[str, Taken] = {}
        for stream in self._world.checked.streams.values():
            taken = self._shown(stream, event, found)
            if taken is not None and self._is_no_repeat(stream, taken):
                found[stream.name] = taken
        return found

    def belongs(self, name: str, event: Event) -> bool:
        """Whether an event belongs to a stream, not counting `dedup`.

        Nothing is known here of tables: a condition that asks one is taken for true.
        """
        stream = self._world.checked.streams[name]
        return _asks_a_table(stream) or self._without_dedup(name, event) is not None

    def _without_dedup(self, name: str, event: Event) -> Taken | None:
        stream = self._world.checked.streams[name]
        parents = {parent: self._without_dedup(parent, event) for parent in stream.parents}
        known = {parent: taken for parent, taken in parents.items() if taken is not None}
        return self._shown(stream, event, known)

    def _shown(
        self, stream: checked.Stream, event: Event, parents: Mapping[str, Taken]
    ) -> Taken | None:
        """What the event shows in the stream; None when it does not belong."""
        taken = _origin(stream, event, parents)
        if taken is None or not self._selected(stream, taken):
            return None
        if stream.select is None:
            return taken
        scope = Scope(self._world, event.time, taken)
        return Taken(event, {name: value_of(value, scope) for name, value in stream.select})

    def _selected(self, stream: checked.Stream, taken: Taken) -> bool:
        if stream.type_value is not None and not stream.emitted:
            found = read(taken.event.record, stream.type_path)
            if found != stream.type_value:
                return False
        return holds(stream.where, Scope(self._world, taken.event.time, taken))

    def _is_no_repeat(self, stream: checked.Stream, taken: Taken) -> bool:
        """Whether `dedup` lets the event in: it repeats none of less than D ago."""
        if stream.dedup is None:
            return True
        scope = Scope(self._world, taken.event.time, taken)
        key = key_of([value_of(value, scope) for value in stream.dedup.by])
        if key is None:
            return True
        opened = self._opened.get((stream.name, key))
        if opened is not None and taken.event.time < opened + stream.dedup.duration:
            return False
        self._opened[stream.name, key] = taken.event.time
        return True


def _origin(stream: checked.Stream, event: Event, parents: Mapping[str, Taken]) -> Taken | None:
    """The event as the first of the parents shows it, or as it came in."""
    if stream.emitted:
        return Taken(event, event.record) if event.stream == stream.name else None
    if stream.parents:
        return next((parents[name] for name in stream.parents if name in parents), None)
    return Taken(event, event.record) if event.stream is None else None


def _asks_a_table(stream: checked.Stream) -> bool:
    return stream.where is not None and any(
        isinstance(part, checked.Lookup) for part in stream.where.walk()
    )


class Tables:
    """Rows by key. Those of a stream change after all rules have seen the event."""

    def __init__(
        self,
        rules: checked.CheckedRules,
        contents: Mapping[str, Sequence[Mapping[str, object]]],
    ) -> None:
        self._tables = rules.tables
        self._rows: dict[tuple[str, Key], tuple[int | None, Mapping[str, object]]] = {}
        for name, rows in contents.items():
            for row in rows:
                self._put(name, row, None)

    def update(self, event: Event, views: Mapping[str, Taken]) -> None:
        for table in self._tables.values():
            if table.stream is not None and table.stream in views:
                self._put(table.name, views[table.stream].view, event.time)

    def row(self, table: str, key: object, now: int) -> Mapping[str, object] | None:
        found = key_of([key])
        time, row = self._rows.get((table, found), (None, None)) if found else (None, None)
        ttl = self._tables[table].ttl
        return None if time is not None and ttl is not None and now - time > ttl else row

    def keys(self, table: str) -> list[object]:
        return [key[0][1] for name, key in self._rows if name == table]

    def _put(self, table: str, row: Mapping[str, object], time: int | None) -> None:
        value = read(row, self._tables[table].key)
        key = key_of([None if value is MISSING else value])
        if key is not None:
            self._rows[table, key] = (time, row)
