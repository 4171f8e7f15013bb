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
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from hashlib import blake2b
from typing import Any, Literal

import msgspec

from cep.compile.rules import CompiledRules
from cep.match import RecordedMatch
from cep.state.checkpoint import Checkpointer, Progress
from cep.state.codec import EventCodec
from cep.state.snapshot import Memory
from cep.state.store import Json, OutRow, Owner, RuleVersion, Snapshot, StateError, Store

DELIVER = ("after-commit", "now")
"""When matches go out."""

Found = Any
"""A `Match`, or a `RecordedMatch` that was found before a restart."""

NOTES_KEPT = 10_000
"""Late events and rejects of one epoch that are kept to be looked at where nobody takes them."""


class Keeper:
    """Keeps the state of one program in a store. Used by one engine, on its thread."""

    def __init__(
        self,
        program: Any,
        compiled: CompiledRules,
        decode_line: Callable[[bytes], Any],
        store: Store,
        *,
        every: float,
        deliver: str,
    ) -> None:
        if deliver not in DELIVER:
            raise ValueError(f"deliver is one of {', '.join(DELIVER)}, not {deliver!r}")
        self.store = store
        self.deliver = deliver
        self.compiled = compiled
        self.events = EventCodec(program.shape, decode_line)
        self.memory = Memory(program, decode_line)
        self.program = program
        self.ids = {rule.rule.name: f"{rule.rule.name}@{rule.version}" for rule in compiled.rules}
        self.snapshot: Snapshot = store.load()
        self.dropped_rules = self._resume()
        self.checkpointer = Checkpointer(
            program, self.memory, store, self.ids, self.snapshot.number, every
        )
        self.position: Json = self.snapshot.host_position
        """Where the host stands now."""
        self._positions: deque[tuple[int, Json]] = deque([(self.snapshot.number, self.position)])
        """Positions by the number of the epoch with which they become durable."""
        self._rules_told = False
        self._waiting: deque[tuple[int, list[Found], list[OutRow]]] = deque()
        """Matches and leftovers by the number of their epoch, until it is durable."""
        self._open: dict[int, Found] = {}
        """Matches of the epoch that is not closed yet, by their identity as objects."""
        self._notes: list[OutRow] = []
        """Leftovers of that epoch."""
        self._unwanted = 0
        self._given: list[Found] = []
        """What the last call gave: delivered, if there is a next call."""
        self._delivered: list[str] = []
        """Ids that the next epoch takes out of the outbox."""
        self.trusting = True
        """Whether who calls again has delivered what it was given; else it says so (`confirm`)."""
        self.lengths: Callable[[], dict[str, int]] = dict
        """Makes the host's output files durable and gives the length of each."""
        self.on_leftovers: Callable[[list[OutRow]], None] | None = None
        """Takes late events and rejects that are durable; they count as delivered then."""
        self.wanted: frozenset[str] = frozenset()
        """The kinds of leftovers that are to be delivered."""
        self._take_outbox()

    # ------------------------------------------------------------------ going on

    def _resume(self) -> list[str]:
        """Puts the last epoch into the program; gives the ids of rules that are not there any
        more, whose states are dropped."""
        if self.snapshot.number == 0:
            return []
        names = {ident: name for name, ident in self.ids.items()}
        for owner, key, text in self.snapshot.states():
            if owner.kind in ("runs", "windows", "dedup"):
                name = names.get(owner.name)
                if name is not None:
                    self.memory.adopt(Owner(owner.kind, name), key, text)
            elif owner.name in self.program.tables or owner.name in self.program.repeats:
                self.memory.adopt(owner, key, text)
        counters: Any = self.snapshot.counters.get("program", {})
        known = {name: n for name, n in counters.get("rules", {}).items() if name in self.ids}
        self.memory.resume(self.snapshot.clock_us, {**_NO_COUNTERS, **counters, "rules": known})
        kept = [rule.id for rule in self.snapshot.rules if rule.status != "gone"]
        return [ident for ident in kept if ident not in names]

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

    def _take_in(self, found: Sequence[Found]) -> None:
        """At the beginning of each call: what the last one gave is delivered, `found` is new."""
        if self.trusting:
            self.confirm(self._given)
        self._given = []
        for match in found:
            self._open[id(match)] = match
        if self.deliver == "now":
            self._given += found

    def _give(self) -> list[Found]:
        """At the end of each call: what goes out now."""
        committed = self.checkpointer.committed if self._waiting else 0
        while self._waiting and self._waiting[0][0] <= committed:
            _, matches, leftovers = self._waiting.popleft()
            self._given += matches
            if leftovers and self.on_leftovers is not None:
                self.on_leftovers(leftovers)
                self._delivered += [row.id for row in leftovers]
        return list(self._given)

    # ------------------------------------------------------------------ epochs

    def step(self, found: Sequence[Found], progress: Callable[[], Progress]) -> list[Found]:
        """Between two batches: takes the matches that have just been found, goes on with the epoch
        at hand or closes one when it is time, and gives the matches that may go out."""
        self._take_in(found)
        if self.checkpointer.due:
            self._begin(progress())
        self.checkpointer.work()
        return self._give()

    def checkpoint(self, found: Sequence[Found], progress: Callable[[], Progress]) -> list[Found]:
        """A step that makes everything up to now durable before it returns. Raises StateError."""
        self._take_in(found)
        self._begin(progress())
        self.checkpointer.finish()
        return self._give()

    def _begin(self, progress: Progress) -> None:
        if not self._rules_told:
            progress.rules = self._versions()
            self._rules_told = True
        progress.outbox += [*map(_out_row, self._open.values()), *self._notes]
        progress.delivered, self._delivered = self._delivered, []
        progress.sink_lengths = self.lengths()
        matches = [] if self.deliver == "now" else list(self._open.values())
        leftovers = [row for row in self._notes if row.pending]
        self._open, self._notes, self._unwanted = {}, [], 0
        number = self.checkpointer.begin(progress)
        self._positions.append((number, progress.host_position))
        if matches or leftovers:
            self._waiting.append((number, matches, leftovers))

    def _versions(self) -> list[RuleVersion]:
        """The rules that run, and those that are gone."""
        live = [
            RuleVersion(
                id=self.ids[rule.rule.name],
                name=rule.rule.name,
                version=rule.version,
                structure=rule.version,
                layout=rule.version,
                source="",
            )
            for rule in self.compiled.rules
        ]
        gone = [
            msgspec.structs.replace(rule, status="gone")
            for rule in self.snapshot.rules
            if rule.id in self.dropped_rules
        ]
        return live + gone

    def close(self, progress: Callable[[], Progress]) -> None:
        """Notes that all matches have gone out, and lets go of the store."""
        self.checkpoint((), progress)
        self.store.close()

    def abandon(self) -> None:
        """Lets go of the store as it is: the next engine does again what came after the last
        epoch."""
        with suppress(StateError):
            self.store.close()


_NO_COUNTERS: Mapping[str, Any] = {"rules": {}, "repeats": {}, "observing": 0}


def _out_row(match: Found) -> OutRow:
    return OutRow(
        id=match.id,
        kind="match",
        record=match.to_json().decode(),
        rule=match.rule,
        time_us=match.time,
    )
