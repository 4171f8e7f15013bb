"""Handlers of events that belong to no rule: the `dedup` of streams, and tables made from streams.

In: the checked rules and their streams. Out: for each of the two a `CompiledObserver`, which finds
its events by constants as rules do.

* **Repeats** are told before any rule sees the event: a stream's `dedup` is asked once for each
  event that is otherwise in the stream, whatever rules ask of it, and what it drops is marked in
  the event (`e.r`, one bit a stream). So all rules get the same answer.
* **Tables** change after all rules have seen the event. All that the event means to any table is
  worked out before the first of them changes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, is_dataclass

from cep.compile.environment import EventEnv, Placed, Surroundings
from cep.compile.expressions import careful, careful_value, truth
from cep.compile.writer import Writer
from cep.plan.automaton import Atom, Origin
from cep.plan.dispatch import Dispatch, Entry, dispatch_atoms, mentioned
from cep.plan.streams import Streams
from cep.plan.values import Unrepeated
from dsl import checked
from dsl.checked import CheckedRules, Field, Lookup, Value
from dsl.types import Type

Path = tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Watched:
    """Events of `stream` to be noticed under a key. `row`: what a table keeps of them, by path."""

    target: Placed
    stream: str
    origins: tuple[Origin, ...]
    key: tuple[Value, ...]
    row: tuple[tuple[Path, Value], ...] = ()

    def values(self) -> Iterator[Value]:
        """All that is read of an event."""
        for origin in self.origins:
            yield from origin.filters
        yield from self.key
        yield from (value for _, value in self.row)


@dataclass(frozen=True, slots=True)
class Observed:
    """All that is watched: streams that drop repeats, parents first, and tables of streams."""

    repeats: tuple[Watched, ...]
    tables: tuple[Watched, ...]

    @property
    def bits(self) -> dict[str, int]:
        """The bit in the mark of an event for each stream that drops repeats."""
        return {watched.stream: 1 << i for i, watched in enumerate(self.repeats)}

    def uses(self) -> Iterator[tuple[Path, Type, bool]]:
        """The fields that are read, and as what."""
        for watched in (*self.repeats, *self.tables):
            yield from mentioned(watched.values())


@dataclass(frozen=True, slots=True)
class CompiledObserver:
    """How events find an observer, and the text and constants of its module."""

    dispatch: Dispatch
    text: str
    constants: list[object]


# ---------------------------------------------------------------------------- what is watched


def observed(rules: CheckedRules, streams: Streams) -> Observed:
    """What must be watched for these rules."""
    repeats = tuple(
        _repeats(stream, stream.dedup, streams)
        for stream in rules.streams.values()
        if stream.dedup is not None
    )
    paths = _paths_read(rules)
    tables = tuple(
        _table(table, table.stream, paths[name], streams)
        for name, table in rules.tables.items()
        if table.stream is not None and name in paths
    )
    return Observed(repeats, tables)


def _repeats(stream: checked.Stream, dedup: checked.StreamDedup, streams: Streams) -> Watched:
    own = Unrepeated(stream.name, type=Type.BOOL)
    origins = tuple(
        Origin(o.source, tuple(f for f in o.filters if f != own))
        for o in streams.origins(stream.name)
    )
    key = tuple(streams.on_event(stream.name, value) for value in dedup.by)
    return Watched(Placed("repeats", stream.name), stream.name, origins, key)


def _table(
    table: checked.Table, stream: str, paths: Mapping[Path, Type], streams: Streams
) -> Watched:
    key = streams.on_event(stream, Field(table.key))
    row = tuple(
        (path, streams.on_event(stream, Field(path, type=kind))) for path, kind in paths.items()
    )
    return Watched(Placed("table", table.name), stream, streams.origins(stream), (key,), row)


def _paths_read(rules: CheckedRules) -> dict[str, dict[Path, Type]]:
    """The paths that are looked up in each table that anything asks, with their types."""
    found: dict[str, dict[Path, Type]] = {}
    for rule in rules.rules.values():
        if rule.keys_from is not None and rule.keys_from in rules.tables:
            found.setdefault(rule.keys_from, {})
    for value in _values_in((*rules.rules.values(), *rules.streams.values())):
        if isinstance(value, Lookup):
            found.setdefault(value.table, {}).setdefault(value.path, value.type)
    return found


def _values_in(item: object) -> Iterator[Value]:
    """All values anywhere in checked declarations."""
    if isinstance(item, Value):
        yield from item.walk()
    elif isinstance(item, tuple):
        for part in item:
            yield from _values_in(part)
    elif is_dataclass(item):
        for f in fields(item):
            if f.compare:  # not the tree that it was made from
                yield from _values_in(getattr(item, f.name))


# ---------------------------------------------------------------------------- the code


def compile_repeats(watched: Sequence[Watched], around: Surroundings) -> CompiledObserver | None:
    """The observer of all streams that drop repeats; None when there are none."""
    return _compile(watched, around, _write_repeats) if watched else None


def compile_tables(watched: Sequence[Watched], around: Surroundings) -> CompiledObserver | None:
    """The observer of all tables made from streams; None when there are none."""
    return _compile(watched, around, _write_tables) if watched else None


Write = Callable[[Writer, Entry, Sequence[Watched], EventEnv], None]


def _compile(watched: Sequence[Watched], around: Surroundings, write: Write) -> CompiledObserver:
    atoms = [
        Atom(i, "watched", one.stream, one.origins, one.origins, 0) for i, one in enumerate(watched)
    ]
    found = dispatch_atoms(
        atoms, lambda name: around.lists[name], lambda path: around.shape.uses[path].type
    )
    handlers = Writer()
    for entry in found.entries:
        with handlers.block(f"def on_{entry.number}(e):"):
            handlers("t = e.t")
            write(handlers, entry, watched, EventEnv(around))
    w = Writer()
    with w.block("def make(careful, constants):"):
        if around.constants.values:
            w(f"({''.join(f'c{i}, ' for i in range(len(around.constants.values)))}) = constants")
        for line in handlers.text().splitlines():
            w(line)
        w(f"return [{', '.join(f'on_{entry.number}' for entry in found.entries)}]")
    return CompiledObserver(found, w.text(), around.constants.values)


def _write_repeats(w: Writer, entry: Entry, watched: Sequence[Watched], env: EventEnv) -> None:
    """A stream comes after its parents, so their marks are there when its conditions ask them."""
    for index in entry.atoms:
        one = watched[index]
        _test(w, f"x{index}", entry.filters[index], env)
        key = "".join(f"key_of({careful_value(value, env)}), " for value in one.key)
        with w.block(f"if x{index} and {env.constant(one.target)}.has(({key}), t):"):
            w(f"e.r |= {1 << index}")


def _write_tables(w: Writer, entry: Entry, watched: Sequence[Watched], env: EventEnv) -> None:
    for index in entry.atoms:
        one = watched[index]
        _test(w, f"x{index}", entry.filters[index], env)
        with w.block(f"if x{index}:"):
            w(f"k{index} = key_of({careful_value(one.key[0], env)})")
            cells = (f"{path!r}: {careful_value(value, env)}" for path, value in one.row)
            w(f"r{index} = {{{', '.join(cells)}}}")
    for index in entry.atoms:
        with w.block(f"if x{index}:"):
            w(f"{env.constant(watched[index].target)}.put(k{index}, t, r{index})")


def _test(w: Writer, name: str, conditions: Iterable[Value], env: EventEnv) -> None:
    """`name = …`: whether all conditions are true, by the careful form when the fast one raises."""
    conditions = list(conditions)
    fast = " and ".join(f"({truth(c, env)})" for c in conditions)
    if not fast:
        w(f"{name} = True")
        return
    with w.block("try:"):
        w(f"{name} = {fast}")
    with w.block("except Exception:"):
        w(f"{name} = {' and '.join(f'{careful(c, env)} is True' for c in conditions)}")
