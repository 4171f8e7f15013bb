"""State larger than memory: keys that have been quiet for long are kept in the store only.

In: a program at work whose states are kept in a store (`cep.keeper`). A new engine leaves the keys
of the store where they are, if there are many: it can begin at once. Above `max_memory` the keys
that were changed longest ago are let go of, of those whose last change is durable: then the store
has them as they are. They come back when an event of theirs comes, or when something is due.

* Memory keeps a hash of each such key, so a new key needs no look into the store.
* When an event needs a key that is in the store, all keys that its rule may need for the events
  that run next come with it, in one query.
* The earliest moment at which anything is due for a key in the store is a timer of its own, one
  tick before, so that what is due then stands in the order of all others.

Only what is durable can go, so an epoch is closed as soon as memory becomes short, and waited for
where it has become too short (`EARLY`, `LATE`). The bytes of a state are measured from a sample, as
in `cep.caps`.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from functools import partial
from itertools import islice
from operator import attrgetter
from typing import Any

from cep.caps import ENTRY, Sizes
from cep.compile.program import Program
from cep.compile.rules import CompiledRule
from cep.event import EventShape
from cep.key import key_of
from cep.runtime.cold import SpilledStates
from cep.runtime.oldest import first_times
from cep.runtime.reporting import Reporting, Wake
from cep.runtime.rule import RuleRun
from cep.state.snapshot import Memory
from cep.state.store import Owner, Snapshot, StateRow, Store
from cep.state.values import key_from_text, key_text
from dsl.checked import Field, Value

MANY = 50_000
"""Keys of a store of which a new engine reads each only when it is needed."""

LEFT, EARLY, LATE = 0.6, 0.7, 0.85
"""Parts of the memory: what is used after keys have been let go of; above what an epoch is closed
so that more can go; above what it is waited for."""

AHEAD = 1_000_000
"""Microseconds of event time by which what is due is brought early, so that it comes in batches."""

PIECE = 1000
"""Events that run before it is looked again which keys they need; keys that are brought at once."""

SAMPLE = 300
"""States of all rules that are measured, about."""

AGAIN = 10
"""Times that keys are let go of before states are measured again."""

GUESS = 1000
"""Bytes of a state of a rule none of whose states has been measured."""

Absence = tuple[Reporting, Any, int, int]
"""The rule, the key, when it will come true, when its first event was."""


def is_wanted(max_memory: int | None, held: Mapping[Owner, tuple[int, int]]) -> bool:
    """Whether keys of a store that holds so many (`Snapshot.held`) are to stay there."""
    return max_memory is not None or sum(keys for keys, _ in held.values()) >= MANY


class Spill:
    """Leaves keys of one program in the store, and brings them back. `max_memory` None: all that
    have come back stay."""

    depth = order = -2
    """Its timer comes before all rules and tables."""
    tells = False

    def __init__(
        self,
        program: Program,
        memory: Memory,
        store: Store,
        max_memory: int | None,
        compiled: Sequence[CompiledRule],
        wanted: Collection[str] = (),
        counts: bool = False,
    ) -> None:
        self.program = program
        self.memory = memory
        self.store = store
        self.max_memory = max_memory
        self._runs = {run.owner: run for run in program.rules}
        self._each: dict[str, float] = {}
        self._uses = 0
        """How often what was measured is still used."""
        self._looked = -1
        self._wake = Wake()
        self._wanted = wanted
        """Rules (by owner) all of whose states must be here at the start."""
        self._counts = counts
        """Whether the first events of all keys are counted (`cep.caps`)."""
        self._coming: Sequence[Any] = ()
        self._looked_ahead: set[str] = set()
        self._readers = {rule.id: KeyReader(rule, program.shape) for rule in compiled}
        for run in program.rules:
            _states(run).find = partial(self._find, run)

    # ------------------------------------------------------------------ coming back

    def leave(self, snapshot: Snapshot, owners: Collection[Owner]) -> set[Owner]:
        """Leaves the states of these owners in the store for now, where it can; gives whose."""
        left = {
            owner
            for owner in owners
            if owner.kind in ("runs", "windows") and owner.name not in self._wanted
        }
        for owner in left:
            run = self._runs[owner.name]
            cold = _states(run).cold
            if not self._counts:
                cold.update(dict.fromkeys(map(hash, snapshot.keys(owner)), ()))
                continue
            decode = self.memory.codecs[owner.name].decode
            for _, key, text in snapshot.states_of([owner]):
                cold[hash(key)] = self._firsts(run, decode(key, text))
        return left

    def _firsts(self, run: Reporting, state: Any) -> Sequence[int]:
        return tuple(first_times(run, state)) if self._counts else ()

    def begin(self) -> None:
        """All keys of the store are known: from now on what is due for them is done."""
        self._arm(self.store.next_due())

    def stop(self) -> None:
        """The store is about to be closed: nothing comes back any more. Open absences can still be
        listed."""
        for run in self.program.rules:
            _states(run).find = _nothing

    def pieces(self, events: Sequence[Any]) -> Iterator[Sequence[Any]]:
        """Events that are about to run, in pieces whose keys may be brought at once."""
        for start in range(0, len(events), PIECE):
            self._coming = events[start : start + PIECE]
            self._looked_ahead.clear()
            yield self._coming
        self._coming = ()

    def _find(self, run: Reporting, key: Any) -> Any:
        text, states = key_text(key), _states(run)
        if hash(text) not in states.cold:
            return None
        texts = {text, *self._needed_next(run, states)}
        self._bring(run, list(texts))
        return dict.get(states, key)

    def _needed_next(self, run: Reporting, states: SpilledStates) -> Iterator[str]:
        """The keys in the store that events to come are about; they are looked for once."""
        if run.owner in self._looked_ahead:
            return
        self._looked_ahead.add(run.owner)
        for key in self._readers[run.owner].keys(self._coming):
            if not dict.__contains__(states, key) and hash(text := key_text(key)) in states.cold:
                yield text

    def _bring(self, run: Reporting, texts: Sequence[str]) -> None:
        cold, codec = _states(run).cold, self.memory.codecs[run.owner]
        for text, state in self.store.fetch(self._owner(run), texts).items():
            del cold[hash(text)]
            codec.adopt(text, state)

    def _owner(self, run: Reporting) -> Owner:
        return Owner(self.memory.codecs[run.owner].kind, run.owner)

    def absences(self) -> Iterator[Absence]:
        """The open absences of keys that are in the store; they stay there. Of a key that has one
        run, which is all of an absence, its row says so at a glance."""
        waiting = {
            self._owner(run): run
            for run in self.program.rules
            if isinstance(run, RuleRun) and any(slot.deadline for slot in run.plan.slots)
        }
        for owner, row in self._stored_rows(waiting):
            run = waiting[owner]
            if run.plan.is_bare and row.runs == 1 and row.ends_us is not None:
                yield run, key_from_text(row.key), row.ends_us, row.first_us or 0
                continue
            state = self.memory.codecs[run.owner].decode(row.key, row.state or "")
            for found, due, first, _ in run.undecided_of(state):
                yield run, found, due, first

    def _stored_rows(self, wanted: Collection[Owner]) -> Iterator[tuple[Owner, StateRow]]:
        """The rows of these owners whose keys are not here."""
        colds = {owner: _states(self._runs[owner.name]).cold for owner in wanted}
        if not any(colds.values()):
            return
        for owner, row in self.store.load().rows():
            if owner in colds and hash(row.key) in colds[owner]:
                yield owner, row

    # ------------------------------------------------------------------ caps

    def firsts(self, run: Reporting) -> Iterator[int]:
        """The times of the first events of the keys of a rule that are in the store."""
        for times in _states(run).cold.values():
            yield from times

    def bring_until(self, time: int) -> Iterator[None]:
        """Brings the keys with a first event up to this time, some at a time."""
        for run in self.program.rules:
            cold = _states(run).cold
            old = {name for name, times in cold.items() if times and times[0] <= time}
            if not old:
                continue
            texts = (key for key in self.store.load().keys(self._owner(run)) if hash(key) in old)
            while some := list(islice(texts, PIECE)):
                self._bring(run, some)
                yield

    # ------------------------------------------------------------------ what is due

    def _arm(self, due: int | None) -> None:
        """Wakes up a tick before something is due for a key in the store."""
        wake = self._wake
        if due is not None and (not wake.wake or due - 1 < wake.wake):
            wake.wake = due - 1
            self.program.timers.add(wake.wake, self, wake)

    def on_time(self, _: Any, now: int) -> None:
        """Brings the keys for which something is due next."""
        self._wake.wake = 0
        until = now + 1 + AHEAD
        for owner, key, text in self.store.due(until):
            run = self._runs.get(owner.name) if owner.kind in ("runs", "windows") else None
            if run is not None and _states(run).cold.pop(hash(key), None) is not None:
                self.memory.codecs[run.owner].adopt(key, text)
        self._arm(self.store.next_due(until))

    # ------------------------------------------------------------------ letting go

    @property
    def fill(self) -> float:
        """How full memory is, by what states took when they were last measured; 1 is full."""
        return self._estimate() / self.max_memory if self.max_memory is not None else 0.0

    def _estimate(self) -> float:
        each = self._each
        return sum(len(run.states) * each.get(run.owner, GUESS) for run in self.program.rules)

    def look(self, committed: int) -> None:
        """Between two batches: lets go of keys where memory is short. `committed`: the number of
        the last durable epoch."""
        if self.max_memory is None or committed == self._looked:
            return  # only what has become durable since can go
        self._looked = committed
        size = self._size()
        if size <= EARLY * self.max_memory:
            return
        excess = size - LEFT * self.max_memory
        gone = list(self._oldest(committed, excess))
        for run, state in gone:
            self._let_go(run, state)
        if gone:
            self.program.timers.forget_stale()

    def _size(self) -> float:
        """Bytes of all states, measured now and then."""
        self._uses -= 1
        if self._uses <= 0:
            self._uses = AGAIN
            number = sum(len(run.states) for run in self.program.rules)
            step = max(1, number // SAMPLE)
            self._each = {run.owner: bytes_each(run, step) for run in self.program.rules}
        return self._estimate()

    def _oldest(self, committed: int, excess: float) -> Iterable[tuple[Reporting, Any]]:
        """The states to let go of: those that were changed longest ago, and are durable."""
        by_epoch: dict[int, list[tuple[Reporting, Any]]] = {}
        for run in self.program.rules:
            for state in run.states.values():
                if state.epoch <= committed:
                    by_epoch.setdefault(state.epoch, []).append((run, state))
        for epoch in sorted(by_epoch):
            for item in by_epoch[epoch]:
                if excess <= 0:
                    return
                excess -= self._each[item[0].owner]
                yield item

    def _let_go(self, run: Reporting, state: Any) -> None:
        del run.states[state.key]
        self.memory.codecs[run.owner].forget(state)
        _states(run).cold[hash(key_text(state.key))] = self._firsts(run, state)
        if state.wake:
            self._arm(state.wake)
            state.wake = 0


def _nothing(_: Any) -> None:
    """Nothing can be found any more."""


def _states(run: Reporting) -> SpilledStates:
    states = run.states
    assert isinstance(states, SpilledStates)
    return states


def bytes_each(run: Reporting, step: int) -> float:
    """Bytes of a state of a rule, by each of so many."""
    if not len(run.states):
        return float(GUESS)
    sizes, size, number = Sizes(), 0, 0
    for place, state in enumerate(run.states.values()):
        if place % step == 0:
            size += ENTRY + sizes.of(state)
            number += 1
    return size / number


class KeyReader:
    """Reads the keys that a rule gives to events, where fields alone make them; of other rules it
    gives none."""

    def __init__(self, rule: CompiledRule, shape: EventShape) -> None:
        named = (_attributes(key, shape) for key in rule.automaton.keys)
        self._keys = [_reader(names) for names in named if names]
        self._value: Callable[[Any], Any] | None = None
        if rule.dispatch.path is not None:
            self._value = attrgetter(shape.attributes[rule.dispatch.path])
        self._wanted = {e.value for e in rule.dispatch.entries if e.source is None}

    def keys(self, events: Sequence[Any]) -> Iterator[Any]:
        """The keys of those events that the rule may use."""
        for event in events:
            if self._value is None or _is_in(self._value(event), self._wanted):
                for read in self._keys:
                    key = read(event)
                    if key is not None:
                        yield key


def _attributes(key: Sequence[Value], shape: EventShape) -> list[str]:
    """The attributes that make a key; none where it is made of anything else."""
    names = [shape.attributes.get(part.path, "") for part in key if isinstance(part, Field)]
    return names if len(names) == len(key) and all(names) else []


def _reader(names: Sequence[str]) -> Callable[[Any], Any]:
    """Reads a key of an event; None where it has none."""
    if len(names) == 1:
        name = names[0]
        return lambda event: key_of(getattr(event, name))

    def read(event: Any) -> Any:
        parts = tuple([key_of(getattr(event, name)) for name in names])
        return None if None in parts else parts

    return read


def _is_in(value: Any, values: Collection[Any]) -> bool:
    try:
        return value in values
    except TypeError:  # one that cannot be looked up equals no constant
        return False
