"""What an engine keeps in a store: its state, what it has still to say, and where it stands.

In: an engine's program with a store. The keeper lets the program go on where the store's last epoch
was, closes epochs as time passes, and holds matches back until the epoch that holds them is
durable. So after a crash every match comes, none comes twice to a host that asks for them after
the commit, and with `deliver="now"` they come at once and perhaps again, with the same id.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import msgspec

from cep.compile.rules import CompiledRules
from cep.match import RecordedMatch
from cep.state.checkpoint import Checkpointer, Progress
from cep.state.codec import EventCodec
from cep.state.snapshot import Memory
from cep.state.store import Json, OutRow, Owner, RuleVersion, Snapshot, Store

DELIVER = ("after-commit", "now")
"""When matches go out."""

Found = Any
"""A `Match`, or a `RecordedMatch` that was found before a restart."""


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
        self._waiting: deque[tuple[int, list[Found]]] = deque()
        """Matches by the number of their epoch, until it is durable."""
        self._open: list[Found] = []
        """Matches of the epoch that is not closed yet."""
        rows = self.snapshot.outbox()
        kept = [RecordedMatch(msgspec.json.decode(r.record)) for r in rows if r.kind == "match"]
        if kept:
            self._waiting.append((self.snapshot.number, list(kept)))

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

    # ------------------------------------------------------------------ matches

    def hold(self, found: Iterable[Found]) -> list[Found]:
        """Takes matches that have just been found; gives those that may go out now."""
        if self.deliver == "now":
            return list(found)
        self._open += found
        return self._durable()

    def _durable(self) -> list[Found]:
        """The matches of epochs that are durable; from now on they count as delivered."""
        out: list[Found] = []
        if not self._waiting:
            return out
        committed = self.checkpointer.committed
        while self._waiting and self._waiting[0][0] <= committed:
            out += self._waiting.popleft()[1]
        if out:
            self.store.delivered([match.id for match in out])
        return out

    # ------------------------------------------------------------------ epochs

    def tick(self, progress: Callable[[], Progress]) -> list[Found]:
        """Between two batches: goes on with the epoch at hand, or closes one when it is time.
        Gives matches that have become durable."""
        if self.checkpointer.due:
            self._begin(progress())
        self.checkpointer.work()
        return self._durable()

    def checkpoint(self, progress: Progress) -> list[Found]:
        """Makes everything up to now durable before it returns. Raises StateError."""
        self._begin(progress)
        self.checkpointer.finish()
        return self._durable()

    def _begin(self, progress: Progress) -> None:
        if not self._rules_told:
            progress.rules = self._versions()
            self._rules_told = True
        progress.outbox += [_out_row(match) for match in self._open]
        found, self._open = self._open, []
        number = self.checkpointer.begin(progress)
        self._positions.append((number, progress.host_position))
        if found:
            self._waiting.append((number, found))

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

    def close(self, progress: Progress) -> None:
        """Notes that all matches have gone out, and lets go of the store."""
        self._begin(progress)
        self.checkpointer.finish()
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
