"""State larger than memory: keys that have been quiet for long are kept in the store only.

In: a program at work whose states are kept in a store (`cep.keeper`). Above `max_memory` the keys
that were changed longest ago are let go of, of those whose last change is durable: then the store
has them as they are. They come back when an event of theirs comes, or when something is due.

* Memory keeps a hash of each such key, so a new key needs no look into the store.
* The earliest moment at which anything is due for a key in the store is a timer of its own, one
  tick before, so that what is due then stands in the order of all others.

Where what has changed since the last epoch is too much by itself, an epoch is closed at once. The
bytes of a state are measured from a sample, as in `cep.caps`.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from functools import partial
from typing import Any

from cep.caps import ENTRY, Sizes
from cep.compile.program import Program
from cep.runtime.cold import SpilledStates
from cep.runtime.reporting import Reporting, Wake
from cep.runtime.rule import RuleRun
from cep.state.snapshot import Memory
from cep.state.store import Owner, Store
from cep.state.values import key_text

LEFT = 0.8
"""How much of the memory is used after keys have been let go of."""

AHEAD = 1_000_000
"""Microseconds of event time by which what is due is brought early, so that it comes in batches."""


SAMPLE = 1000
"""States of all rules that are measured, about."""


GUESS = 1000
"""Bytes of a state of a rule none of whose states has been measured."""


class Spill:
    """Lets go of keys of one program, and brings them back."""

    depth = order = -2
    """Its timer comes before all rules and tables."""
    tells = False

    def __init__(
        self,
        program: Program,
        memory: Memory,
        store: Store,
        max_memory: int,
        wanted: Collection[str] = (),
    ) -> None:
        if max_memory < 1:
            raise ValueError("max_memory is at least 1 byte")
        self.program = program
        self.memory = memory
        self.store = store
        self.max_memory = max_memory
        self._runs = {run.owner: run for run in program.rules}
        self._each: dict[str, float] = {}
        self._looked = -1
        self._wake = Wake()
        self._wanted = wanted
        """Rules (by owner) all of whose states must be here at the start."""
        for run in program.rules:
            _states(run).find = partial(self._find, run)

    # ------------------------------------------------------------------ coming back

    def stays(self, owner: Owner, key: str) -> bool:
        """Whether a state that the store has stays there for now."""
        if owner.kind not in ("runs", "windows") or owner.name in self._wanted:
            return False
        _states(self._runs[owner.name]).cold.add(hash(key))
        return True

    def begin(self) -> None:
        """All keys of the store are known: from now on what is due for them is done."""
        self._arm(self.store.next_due())

    def end(self) -> None:
        """The store is about to be closed. Open absences can still be listed."""
        self.bring_absences()
        for run in self.program.rules:
            _states(run).find = _nothing

    def _find(self, run: Reporting, key: Any) -> Any:
        text = key_text(key)
        cold = _states(run).cold
        if hash(text) not in cold:
            return None
        owner = Owner(self._kind(run), run.owner)
        state = self.store.fetch(owner, [text]).get(text)
        if state is None:
            return None
        cold.discard(hash(text))
        return self.memory.codecs[run.owner].adopt(text, state)

    def _kind(self, run: Reporting) -> str:
        return str(self.memory.codecs[run.owner].kind)

    def bring_all(self, run: Reporting) -> None:
        """Brings all states of a rule."""
        cold = _states(run).cold
        if not cold:
            return
        wanted = Owner(self._kind(run), run.owner)
        for owner, key, text in self.store.load().states():
            if owner == wanted and hash(key) in cold:
                self.memory.codecs[run.owner].adopt(key, text)
        cold.clear()

    def bring_absences(self) -> None:
        """Brings the states of the rules that may wait for an absence."""
        for run in self.program.rules:
            if isinstance(run, RuleRun) and any(slot.deadline for slot in run.plan.slots):
                self.bring_all(run)

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
            if run is not None and hash(key) in _states(run).cold:
                _states(run).cold.discard(hash(key))
                self.memory.codecs[run.owner].adopt(key, text)
        self._arm(self.store.next_due(until))

    # ------------------------------------------------------------------ letting go

    @property
    def is_short(self) -> bool:
        """Whether memory is short, by what states took when they were last measured: then what has
        changed must become durable, so that it can go."""
        return self._estimate() > self.max_memory

    def _estimate(self) -> float:
        each = self._each
        return sum(len(run.states) * each.get(run.owner, GUESS) for run in self.program.rules)

    def look(self, committed: int) -> None:
        """Between two batches: lets go of keys where memory is short. `committed`: the number of
        the last durable epoch."""
        if committed == self._looked:  # only what has become durable since can go
            return
        self._looked = committed
        size = self._size()
        if size <= self.max_memory:
            return
        excess = size - LEFT * self.max_memory
        gone = list(self._oldest(committed, excess))
        for run, state in gone:
            self._let_go(run, state)
        if gone:
            self.program.timers.forget_stale()

    def _size(self) -> float:
        """Bytes of all states, measured."""
        number = sum(len(run.states) for run in self.program.rules)
        step = max(1, number // SAMPLE)
        self._each = {run.owner: _bytes_each(run, step) for run in self.program.rules}
        return self._estimate()

    def _oldest(self, committed: int, excess: float) -> Iterable[tuple[Reporting, Any]]:
        """The states to let go of: those that were changed longest ago, and are durable."""
        found = [
            (state.epoch, place, run, state)
            for run in self.program.rules
            for place, state in enumerate(run.states.values())
            if state.epoch <= committed
        ]
        found.sort(key=lambda item: item[:2])
        for _, _, run, state in found:
            if excess <= 0:
                return
            excess -= self._each[run.owner]
            yield run, state

    def _let_go(self, run: Reporting, state: Any) -> None:
        del run.states[state.key]
        _states(run).cold.add(hash(key_text(state.key)))
        if state.wake:
            self._arm(state.wake)
            state.wake = 0


def _nothing(_: Any) -> None:
    """Nothing can be found any more."""


def _states(run: Reporting) -> SpilledStates:
    states = run.states
    assert isinstance(states, SpilledStates)
    return states


def _bytes_each(run: Reporting, step: int) -> float:
    """Bytes of a state of a rule, by each of so many."""
    if not len(run.states):
        return float(GUESS)
    sizes, size, number = Sizes(), 0, 0
    for place, state in enumerate(run.states.values()):
        if place % step == 0:
            size += ENTRY + sizes.of(state)
            number += 1
    return size / number
