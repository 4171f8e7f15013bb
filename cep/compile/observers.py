"""Handlers of events that belong to no rule: what streams do with them, and tables of streams.

In: the checked rules and their streams. Out: for each of the two a `CompiledObserver`, which finds
its events by constants as rules do.

* **Before** any rule sees the event, a stream's `dedup` is asked, once for each event that is
  otherwise in the stream, whatever rules ask of it, and what it drops is marked in the event
  (`e.r`, one bit a stream). So all rules get the same answer. And fields of a `select` that asks
  a table are noted in the event (`e.n0`, …), since the row may be another one when they are read.
* **Tables** change after all rules have seen the event. All that the event means to any table is
  worked out before the first of them changes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from cep.compile.environment import EventEnv, Placed, Surroundings
from cep.compile.expressions import careful, careful_value, truth
from cep.compile.writer import Writer
from cep.plan.automaton import Atom, Origin
from cep.plan.dispatch import Dispatch, Entry, dispatch_atoms, mentioned
from cep.plan.streams import Streams
from cep.plan.values import Noted, Unrepeated
from dsl import checked
from dsl.checked import CheckedRules, Field, Lookup, Value
from dsl.types import Type

Path = tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Watched:
    """Events of `stream` that are seen by `target`, its `dedup` or a table, under a key.

    `row`: what a table keeps of them, by path. `notes`: what is noted in them before.
    """

    target: Placed | None
    stream: str
    origins: tuple[Origin, ...]
    key: tuple[Value, ...] = ()
    row: tuple[tuple[Path, Value], ...] = ()
    notes: tuple[Noted, ...] = ()

    def values(self) -> Iterator[Value]:
        """All that is read of an event."""
        for origin in self.origins:
            yield from origin.filters
        yield from self.key
        yield from (value for _, value in self.row)
        yield from self.notes


@dataclass(frozen=True, slots=True)
class Observed:
    """All that is watched: streams that do something with their events before the rules (parents
    first), and tables of streams."""

    before: tuple[Watched, ...]
    tables: tuple[Watched, ...]

    @property
    def bits(self) -> dict[str, int]:
        """The bit in the mark of an event for each stream that drops repeats."""
        names = [watched.stream for watched in self.before if watched.target is not None]
        return {name: 1 << i for i, name in enumerate(names)}

    @property
    def notes(self) -> dict[Noted, str]:
        """The attribute of an event for everything that is noted in events."""
        every = dict.fromkeys(note for watched in self.before for note in watched.notes)
        return {note: f"n{i}" for i, note in enumerate(every)}

    def uses(self) -> Iterator[tuple[Path, Type, bool]]:
        """The fields that are read, and as what."""
        for watched in (*self.before, *self.tables):
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
    before = [_before(stream, streams) for stream in rules.streams.values()]
    paths = _paths_read(rules)
    tables = tuple(
        _table(table, table.stream, paths[name], streams)
        for name, table in rules.tables.items()
        if table.stream is not None and name in paths
    )
    doing = tuple(one for one in before if one.target is not None or one.notes)
    return Observed(doing, tables)


def _before(stream: checked.Stream, streams: Streams) -> Watched:
    """What a stream does with its events before the rules; those that its own `dedup` will drop
    are among them."""
    name = stream.name
    own = Unrepeated(name, type=Type.BOOL)
    origins = tuple(
        Origin(o.source, tuple(f for f in o.filters if f != own)) for o in streams.origins(name)
    )
    notes = streams.notes(name)
    if stream.dedup is None:
        return Watched(None, name, origins, notes=notes)
    key = tuple(streams.on_event(name, value) for value in stream.dedup.by)
    return Watched(Placed("repeats", name), name, origins, key, notes=notes)


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
    if not rules.tables:
        return found
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
    else:
        for name in checked.attributes(item.__class__):
            yield from _values_in(getattr(item, name))


# ---------------------------------------------------------------------------- the code


def compile_before(watched: Sequence[Watched], around: Surroundings) -> CompiledObserver | None:
    """What streams do with events before the rules see them; None when they do nothing."""
    return _compile(watched, around, _write_before) if watched else None


def compile_after(watched: Sequence[Watched], around: Surroundings) -> CompiledObserver | None:
    """How tables change after the rules have seen an event; None when none is of a stream."""
    return _compile(watched, around, _write_after) if watched else None


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


def _write_before(w: Writer, entry: Entry, watched: Sequence[Watched], env: EventEnv) -> None:
    """A stream comes after its parents, so what they note is there when its conditions ask it."""
    for index in entry.atoms:
        one = watched[index]
        _test(w, f"x{index}", entry.filters[index], env)
        with w.block(f"if x{index}:"):
            for note in one.notes:
                w(f"e.{env.around.notes[note]} = {careful_value(note.value, env)}")
            if one.target is not None:
                key = "".join(f"key_of({careful_value(value, env)}), " for value in one.key)
                with w.block(f"if {env.constant(one.target)}.has(({key}), t):"):
                    w(f"e.r |= {env.around.repeats[one.stream]}")


def _write_after(w: Writer, entry: Entry, watched: Sequence[Watched], env: EventEnv) -> None:
    for index in entry.atoms:
        one = watched[index]
        _test(w, f"x{index}", entry.filters[index], env)
        with w.block(f"if x{index}:"):
            w(f"k{index} = key_of({careful_value(one.key[0], env)})")
            cells = (f"{path!r}: {careful_value(value, env)}" for path, value in one.row)
            w(f"r{index} = {{{', '.join(cells)}}}")
    for index in entry.atoms:
        target = watched[index].target
        assert target is not None
        with w.block(f"if x{index}:"):
            w(f"{env.constant(target)}.put(k{index}, t, r{index})")


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
