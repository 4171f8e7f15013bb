"""Epochs: what has changed in a program, made durable step by step beside the work.

In: a program that runs in batches, and a store. Between batches the host asks `due()`; then
`begin()` closes an epoch: it notes which states have changed, the clock, the counters, and what the
host gives (positions, records for the outside). The states are encoded in slices between the next
batches (`work`), so the pause is a slice and not a million keys; a state that is about to change
while it waits is encoded first. Slices are as long as it takes to be through within the interval,
up to `LONGEST`. When all are encoded the epoch goes to the store, which writes it on a thread of
its own. The interval stretches when the store, or the longest slices, are slower than what changes;
but where more than `MOST` states have changed since, the epoch at hand is encoded to its end.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import islice
from time import monotonic
from typing import Any

from cep.clock.timers import NEVER
from cep.compile.program import Program
from cep.runtime.reporting import Reporting
from cep.runtime.tables import StreamTable
from cep.state.codec import Gradual
from cep.state.snapshot import Memory, dedup_rows_of, repeat_rows_of, table_rows_of
from cep.state.store import (
    Epoch,
    Json,
    OutRow,
    Owner,
    RuleVersion,
    SourceRow,
    StateError,
    StateRow,
    Store,
)
from cep.state.values import key_text

PATIENCE = 30.0
"""Seconds to wait for a disk that is full or a file that is locked."""

SILENT = 2.0
"""Seconds of that after which the host is told why it waits."""

LOOK = 200
"""States that are encoded before the time is looked at again."""

LOOK_BYTES = 100_000
"""Characters of states after which it is looked at again, too."""

SHORTEST, LONGEST = 0.005, 0.025
"""Seconds of a slice of encoding."""

MOST = 1_000_000
"""States that may have changed while an epoch is still being encoded: memory is bounded."""


@dataclass(slots=True)
class Progress:
    """What the host wants to be durable together with the states."""

    sources: list[SourceRow] = field(default_factory=list)
    sink_lengths: dict[str, int] = field(default_factory=dict)
    outbox: list[OutRow] = field(default_factory=list)
    delivered: list[str] = field(default_factory=list)
    rules: list[RuleVersion] = field(default_factory=list)
    counters: dict[str, Json] = field(default_factory=dict)
    host_position: Json = None


class Checkpointer:
    """Writes a program's epochs to a store. `unwanted`: rows that the first one deletes.

    `every` is the shortest time between two epochs in seconds (of the wall clock: when an epoch is
    closed has no influence on what it holds). `number` is that of the last committed epoch.
    """

    def __init__(
        self,
        program: Program,
        memory: Memory,
        store: Store,
        number: int,
        every: float = 1.0,
        unwanted: Mapping[Owner, list[StateRow]] | None = None,
        now: Callable[[], float] = monotonic,
    ) -> None:
        self.program = program
        self.memory = memory
        self.store = store
        self.number = number
        self.every = every
        self._now = now
        self._closed_at = now()
        self._touched: dict[int, tuple[Reporting, Any]] = {}
        self._worked_at = self._closed_at
        self._cost = 10e-6
        """Seconds that encoding a state takes, as measured last."""
        self._waiting: dict[int, tuple[Reporting, Any]] = {}
        self._large: deque[tuple[list[StateRow], Gradual]] = deque()
        """Rows of large states, of which some is written already, and where they are to go."""
        self._others: deque[tuple[list[StateRow], Iterator[StateRow]]] = deque()
        """Rows that are not of states of rules, as they were when the epoch was closed."""
        self._emptied: dict[Owner, list[StateRow]] = dict(unwanted or {})
        self._epoch: Epoch | None = None
        self._codecs: dict[str, tuple[Any, Owner]] = {
            name: (codec, Owner(codec.kind, name)) for name, codec in memory.codecs.items()
        }
        self.on_waiting: Callable[[str], None] = lambda words: None
        """Is told when a call has to wait for a disk or a file, and why."""
        self._handed_over: int | None = None
        for run in program.rules:
            run.epoch = number + 1
            run.on_touch = self._toucher(run)
            for dedup in (run.dedups or {}).values():
                dedup.changed = set()
        for table in program.tables.values():
            if isinstance(table, StreamTable):
                table.changed = set()
        for repeats in program.repeats.values():
            repeats.changed = set()

    # ------------------------------------------------------------------ what changes

    def _toucher(self, run: Reporting) -> Callable[[Any], None]:
        """What a rule calls before it changes a state for the first time in an epoch."""

        def touch(state: Any) -> None:
            waiting = self._waiting.pop(id(state), None)
            if waiting is not None:
                self._encode(*waiting)
            state.epoch = run.epoch
            self._touched[id(state)] = (run, state)

        return touch

    # ------------------------------------------------------------------ epochs

    @property
    def due(self) -> bool:
        """Whether it is time to close an epoch: the last one is encoded and written, and `every`
        seconds have passed."""
        return self.is_free and self._now() - self._closed_at >= self.every

    @property
    def is_free(self) -> bool:
        """Whether the last epoch is encoded and written."""
        return self._epoch is None and not self.store.busy

    @property
    def committed(self) -> int:
        """The number of the last epoch that is surely durable."""
        if self._handed_over is not None and not self.store.busy:
            self.store.wait(0)
            self.number, self._handed_over = self._handed_over, None
        return self.number

    @property
    def open_number(self) -> int:
        """The number that the changes of now will have."""
        return self.program.rules[0].epoch if self.program.rules else self.number + 1

    def make_room(self) -> None:
        """Hands over the epoch that was closed last, encoding what is left of it. Raises StateError
        where the one before it still cannot be written; nothing has changed then."""
        self._hand_over()

    def begin(self, progress: Progress) -> int:
        """Closes the epoch, once there is room for it; gives its number."""
        self.make_room()
        number = self.open_number
        self._epoch = Epoch(
            number=number,
            clock_us=self.program.time if self.program.time > -NEVER else None,
            rules=progress.rules,
            sources=progress.sources,
            counters={"program": self.memory.counters(), **progress.counters},
            sink_lengths=progress.sink_lengths,
            outbox=progress.outbox,
            delivered=progress.delivered,
            host_position=progress.host_position,
        )
        self._take_others()
        self._waiting, self._touched = self._touched, {}
        for run in self.program.rules:
            run.epoch = number + 1
        self._closed_at = self._worked_at = self._now()
        return number

    def work(self) -> None:
        """Encodes a slice; hands the epoch over when it is whole."""
        if self._epoch is None:
            return
        if self._is_left:
            began, number = self._now(), len(self._waiting)
            self._encode_some(began + self._slice(began))
            self._worked_at = self._now()
            self._cost = (self._worked_at - began) / max(number - len(self._waiting), 1)
        if not self._is_left and not self.store.busy:
            self._hand_over()

    @property
    def _is_left(self) -> bool:
        """Whether anything of the closed epoch is still to be encoded."""
        return bool(self._waiting or self._large or self._others)

    def _slice(self, now: float) -> float:
        """Seconds to encode for, so that all is encoded within the interval if work goes on as
        since the last slice."""
        if len(self._touched) > MOST:
            return float("inf")
        if self._large or self._others:
            return LONGEST
        left = self._closed_at + self.every - now
        slices = max(1.0, left / max(now - self._worked_at, 1e-6))
        return min(max(len(self._waiting) * self._cost / slices, SHORTEST), LONGEST)

    def _encode_some(self, until: float) -> None:
        while self._is_left and self._now() < until:
            if self._large:
                self._go_on_with(self._large)
            elif self._others:
                self._take_some_others()
            else:
                self._encode_small()

    def _encode_small(self) -> None:
        """Some states, so many or so large that it is worth looking at the time again."""
        size = 0
        for name in list(islice(self._waiting, LOOK)):
            size += self._encode(*self._waiting.pop(name))
            if size > LOOK_BYTES or self._large:
                break

    def _go_on_with(self, large: deque[tuple[list[StateRow], Gradual]]) -> None:
        """A step of the row of a large state."""
        rows, steps = large[0]
        row = next(steps)
        if row is not None:
            rows.append(row)
            large.popleft()

    def _take_some_others(self) -> None:
        rows, others = self._others[0]
        some = list(islice(others, LOOK))
        rows += some
        if len(some) < LOOK:
            self._others.popleft()

    def finish(self) -> None:
        """Waits until the closed epoch is durable. Raises StateError where it cannot be written, or
        not within `PATIENCE`; it is then still tried, and nothing is lost."""
        self._hand_over()
        self._wait()
        if self._handed_over is not None:
            self.number, self._handed_over = self._handed_over, None

    def _hand_over(self) -> None:
        if self._epoch is None:
            return
        self._encode_some(float("inf"))
        self._wait()
        epoch, self._epoch = self._epoch, None
        for owner, rows in self._emptied.items():
            epoch.states[owner] = rows + epoch.states.get(owner, [])
        self._emptied = {}
        if self._handed_over is not None:  # the one before, which may never have been asked for
            self.number = self._handed_over
        self._handed_over = epoch.number
        self.store.submit(epoch)

    def _wait(self) -> None:
        """Until the epoch that was handed over is durable; not for ever where the disk is full."""
        if self.store.wait(min(SILENT, PATIENCE)):
            return
        reason = self.store.problem or "the state is still being written"
        self.on_waiting(f"{reason}; waiting for it, {PATIENCE:.0f} s at most")
        if not self.store.wait(max(PATIENCE - SILENT, 0)):
            raise StateError(self.store.problem or "the state cannot be written in time")

    # ------------------------------------------------------------------ encoding

    def _rows(self, owner: Owner) -> list[StateRow]:
        assert self._epoch is not None
        return self._epoch.states.setdefault(owner, [])

    def _encode(self, run: Reporting, state: Any) -> int:
        """The row of a state as it is now; a deleted one where the key has nothing any more. Gives
        how many characters it has; of a large state only what is to be written is taken down."""
        codec, owner = self._codecs[run.owner]
        if run.states.get(state.key) is not state:
            codec.forget(state)
            # A key may have been emptied and begun anew in one epoch: the living state counts.
            self._emptied.setdefault(owner, []).append(StateRow(key_text(state.key), None))
            return 0
        row = codec.changed_row(state)
        rows = self._rows(owner)
        if row.__class__ is StateRow:
            rows.append(row)
            return len(row.state or "")
        self._large.append((rows, row))
        return 0

    def _take_others(self) -> None:
        """Windows of dedup, rows of tables, repeats: taken down as they are now."""
        for run in self.program.rules:
            if run.shares_dedups:
                continue
            for kind, dedup in (run.dedups or {}).items():
                self._add_others("dedup", run.owner, dedup_rows_of(dedup, kind, _taken(dedup)))
        for name, table in self.program.tables.items():
            if isinstance(table, StreamTable):
                self._add_others("tables", name, table_rows_of(table, _taken(table)))
        for name, repeats in self.program.repeats.items():
            self._add_others("repeats", name, repeat_rows_of(repeats, _taken(repeats)))

    def _add_others(self, kind: str, name: str, rows: Iterator[StateRow] | None) -> None:
        if rows is not None:
            self._others.append((self._rows(Owner(kind, name)), rows))


def _taken(kept: Any) -> Collection[Any]:
    """The keys that have changed since the last epoch."""
    changed: set[Any] = kept.changed
    if changed:
        kept.changed = set()
    return changed
