"""What an engine keeps in a store: its state, what it has still to say, and where it stands.

In: an engine's program with a store. The keeper lets the program go on where the store's last epoch
was, closes epochs as time passes, and holds matches back until the epoch that holds them is
durable. So after a crash every match comes; with `deliver="now"` they come at once.

What has been given counts as delivered when the host calls again, and the next epoch says so. What
had not been said to be delivered when a crash came is given once more, with the same id. A host
whose outputs can be cut (`lengths`) has their lengths in that same epoch, cuts them to these at the
start, and so has every match exactly once.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Collection, Iterable, Sequence
from contextlib import suppress
from hashlib import blake2b
from typing import Any, Literal

import msgspec

from cep.compile.program import Program
from cep.match import RecordedMatch
from cep.spill import EARLY, LATE, Spill
from cep.state.change import Succession, gone
from cep.state.checkpoint import Checkpointer, Progress
from cep.state.event_codec import EventCodec
from cep.state.resume import finished, go_on, leave_out, name_owners, note_moved, rearm
from cep.state.snapshot import Memory
from cep.state.store import Json, OutRow, Owner, RuleVersion, Snapshot, StateError, Store

Found = Any
"""A `Match`, or a `RecordedMatch` that was found before a restart."""

NOTES_KEPT = 10_000
"""Late events and rejects of one epoch that are kept to be looked at where nobody takes them."""


class Keeper:
    """Keeps the state of one program in a store. Used by one engine, on its thread."""

    def __init__(
        self,
        program: Program,
        following: Succession,
        decode_line: Callable[[bytes], Any],
        store: Store,
        snapshot: Snapshot,
        *,
        every: float,
        deliver: str,
        max_memory: int | None = None,
        counts: bool = False,
    ) -> None:
        self.store = store
        self.deliver = deliver
        self.every = every
        self.max_memory = max_memory
        self._counts = counts
        self.go_on(program, following, decode_line, snapshot)
        self.position: Json = self.snapshot.host_position
        """Where the host stands now."""
        self._positions: deque[tuple[int, Json]] = deque([(self.snapshot.number, self.position)])
        """Positions by the number of the epoch with which they become durable."""
        self._waiting: deque[tuple[int, list[Found], list[OutRow]]] = deque()
        """Matches and leftovers by the number of their epoch, until it is durable."""
        self._open: dict[int, Found] = {}
        """Matches of the epoch that is not closed yet, by their identity as objects."""
        self._notes: list[OutRow] = []
        """Leftovers of that epoch."""
        self._unwanted = 0
        self._given: list[Found] = []
        """What the last call gave: delivered, if there is a next call."""
        self._has_given = False
        """Whether that call came to its end; what one that failed had to give, the next gives."""
        self._delivered: list[str] = []
        """Ids that the next epoch takes out of the outbox."""
        self.trusting = True
        """Whether who calls again has delivered what it was given; else it says so (`confirm`)."""
        self.lengths: Callable[[], dict[str, int]] = dict
        """Makes the host's output files durable and gives the length of each."""
        self.on_waiting: Callable[[str], None] = lambda words: None
        """Is told when a call has to wait for a disk or a file, and why."""
        self.on_leftovers: Callable[[list[OutRow]], None] | None = None
        """Takes late events and rejects that are durable; they count as delivered then."""
        self.wanted: frozenset[str] = frozenset()
        """The kinds of leftovers that are to be delivered."""
        self._take_outbox()

    # ------------------------------------------------------------------ going on

    def go_on(
        self,
        program: Program,
        following: Succession,
        decode_line: Callable[[bytes], Any],
        snapshot: Snapshot,
    ) -> None:
        """Puts the last epoch into a new program, of these rules or others, and keeps that one from
        now on. Nothing may have changed since `snapshot`."""
        self.program = program
        self.following = following
        self.snapshot = snapshot
        self.events = EventCodec(program.shape, decode_line)
        name_owners(program, following.compiled)
        self.memory = Memory(program, decode_line)
        counters: Any = snapshot.counters.get("program", {})
        self.spill = self._spill(following)
        unwanted, moved = go_on(
            self.memory,
            following,
            snapshot.states_of(self._at_once(snapshot)),
            snapshot.clock_us,
            counters,
        )
        self.checkpointer = Checkpointer(
            program, self.memory, self.store, snapshot.number, self.every, unwanted
        )
        self.checkpointer.on_waiting = lambda words: self.on_waiting(words)
        note_moved(program, moved)
        rearm(program, following, snapshot.clock_us)
        if self.spill is not None:
            self.spill.begin()
        self._untold = following.versions()

    def _spill(self, following: Succession) -> Spill | None:
        """What leaves keys in the store, where memory has a bound or there are many."""
        if not self.program.spills:
            return None
        changed = {change.name for change in following.changes if change.kind == "constants"}
        wanted = {rule.id for rule in following.compiled.rules if rule.name in changed}
        rules, counts = following.compiled.rules, self._counts
        return Spill(self.program, self.memory, self.store, self.max_memory, rules, wanted, counts)

    def _at_once(self, snapshot: Snapshot) -> Collection[Owner] | None:
        """Whose states are read before the first event; None: all."""
        if self.spill is None:
            return None
        owners = snapshot.held().keys()
        return owners - self.spill.leave(snapshot, self.following.staying(owners))

    @property
    def versions(self) -> list[RuleVersion]:
        """The versions of rules that run."""
        return [version for version in self.following.versions() if version.status != "gone"]

    @property
    def held(self) -> dict[Owner, tuple[int, int]]:
        """How many keys each of them holds; runs are not counted."""
        return {
            Owner(kind, run.owner): (run.keys, 0)
            for run in self.program.rules
            for kind in ("runs", "windows")
        }

    @property
    def is_new(self) -> bool:
        """Whether the store held nothing."""
        return self.snapshot.number == 0

    @property
    def durable_position(self) -> Json:
        """Where the host is to go on after a crash at this moment."""
        committed = self.checkpointer.committed
        while len(self._positions) > 1 and self._positions[1][0] <= committed:
            self._positions.popleft()
        return self._positions[0][1]

    def event_row(self, event: Any) -> Json:
        """An event as plain data."""
        return self.events.text(event)

    def read_event(self, row: Any) -> Any:
        """The event of such a row."""
        return self.events.read_text(row)

    def _take_outbox(self) -> None:
        """What had not been delivered when the last engine stopped comes first."""
        rows = list(self.snapshot.outbox())
        matches = [RecordedMatch(msgspec.json.decode(r.record)) for r in rows if r.kind == "match"]
        leftovers = [row for row in rows if row.kind != "match"]
        if self.deliver == "now":  # they are older than what the first call will find
            self._given, matches = matches, []
        if rows:
            self._waiting.append((self.snapshot.number, list(matches), leftovers))

    # ------------------------------------------------------------------ what goes out

    def note(self, kind: Literal["late", "reject"], place: Sequence[Json], record: str) -> None:
        """Takes a late event or a reject, as the JSON text that goes out. `place` tells it from
        all others, also after a restart."""
        pending = kind in self.wanted
        if not pending:
            self._unwanted += 1
            if self._unwanted > NOTES_KEPT:
                return
        name = blake2b(msgspec.json.encode([kind, *place]), digest_size=16).hexdigest()
        self._notes.append(OutRow(name, kind, record, pending=pending))

    def confirm(self, matches: Iterable[Found]) -> None:
        """These matches, which were given before, have been delivered."""
        for match in matches:
            if self._open.pop(id(match), None) is None:
                self._delivered.append(match.id)

    def not_taken(self, left: Collection[Found]) -> None:
        """The host has taken what the last call gave, one by one, up to these: all others are
        delivered, and these are given again."""
        taken = len(self._given) - len(left)
        self.confirm(self._given[:taken])
        del self._given[:taken]
        self._has_given = False

    def _take_in(self, found: Sequence[Found]) -> None:
        """At the beginning of each call: what the last one gave is delivered, `found` is new."""
        if self._has_given:
            if self.trusting:
                self.confirm(self._given)
            self._given, self._has_given = [], False
        for match in found:
            self._open[id(match)] = match
        if self.deliver == "now":
            self._given += found

    def _give(self) -> list[Found]:
        """At the end of each call: what goes out now."""
        committed = self.checkpointer.committed if self._waiting else 0
        while self._waiting and self._waiting[0][0] <= committed:
            _, matches, leftovers = self._waiting[0]
            if leftovers and self.on_leftovers is not None:
                self.on_leftovers(leftovers)
                self._delivered += [row.id for row in leftovers]
            self._waiting.popleft()
            self._given += matches
        self._has_given = True
        return list(self._given)

    # ------------------------------------------------------------------ epochs

    def step(self, found: Sequence[Found], progress: Callable[[], Progress]) -> list[Found]:
        """Between two batches: takes the matches that have just been found, goes on with the epoch
        at hand or closes one when it is time, and gives the matches that may go out."""
        self._take_in(found)
        fill = self.spill.fill if self.spill is not None else 0
        if fill > LATE:
            self._begin(progress)
            self.checkpointer.finish()
        elif self.checkpointer.due or (fill > EARLY and self.checkpointer.is_free):
            self._begin(progress)
        self.checkpointer.work()
        self._let_go()
        return self._give()

    def _let_go(self) -> None:
        if self.spill is not None:
            self.spill.look(self.checkpointer.committed)

    def checkpoint(self, found: Sequence[Found], progress: Callable[[], Progress]) -> list[Found]:
        """A step that makes everything up to now durable before it returns. Raises StateError."""
        self._take_in(found)
        self._begin(progress)
        self.checkpointer.finish()
        self._let_go()
        return self._give()

    def _begin(self, told: Callable[[], Progress]) -> None:
        # What may fail comes before anything is taken out of here, or told by the host as new, so
        # that it can be tried again.
        self.checkpointer.make_room()
        lengths = self.lengths()
        progress = told()
        progress.sink_lengths = lengths
        progress.rules = [*self._untold, *self._finished()]
        self._untold = []
        progress.outbox += [*map(_out_row, self._open.values()), *self._notes]
        progress.delivered, self._delivered = self._delivered, []
        matches = [] if self.deliver == "now" else list(self._open.values())
        leftovers = [row for row in self._notes if row.pending]
        self._open, self._notes, self._unwanted = {}, [], 0
        number = self.checkpointer.begin(progress)
        self._positions.append((number, progress.host_position))
        if matches or leftovers:
            self._waiting.append((number, matches, leftovers))

    def _finished(self) -> list[RuleVersion]:
        """Earlier versions that have finished their runs: they are left out from now on."""
        owners = finished(self.program, self.following.compiled)
        if not owners:
            return []
        leave_out(self.program, self.following.compiled, owners)
        return [gone(version) for version in self.following.kept if version.id in owners]

    def close(self, found: Sequence[Found], progress: Callable[[], Progress]) -> None:
        """Makes all durable and lets go of the store, giving nothing: what waits is given by the
        next engine. Raises StateError, and goes on as it was, where that cannot be done."""
        self._take_in(found)
        self._begin(progress)
        self.checkpointer.finish()
        if self.spill is not None:
            self.spill.stop()
        self.store.close()

    def abandon(self) -> None:
        """Lets go of the store as it is: the next engine does again what came after the last
        epoch."""
        if self.spill is not None:
            self.spill.stop()
        with suppress(StateError):
            self.store.close()


def _out_row(match: Found) -> OutRow:
    return OutRow(
        id=match.id,
        kind="match",
        record=match.to_json().decode(),
        rule=match.rule,
        time_us=match.time,
    )
