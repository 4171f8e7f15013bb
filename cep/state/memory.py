"""The store that keeps epochs in memory: for tests, and for a host that keeps them elsewhere.

It shows in the fewest lines what a store does.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence

from msgspec.structs import replace

from cep.state.store import (
    Epoch,
    Json,
    OutRow,
    Owner,
    RuleVersion,
    Size,
    Snapshot,
    SourceRow,
    StateRow,
    StateText,
    with_segments,
)


class MemoryStore:
    """Keeps epochs as long as the object lives; a new engine may load what another has committed.

    >>> store = MemoryStore()
    >>> store.commit(Epoch(1, counters={"events": 3}))
    >>> store.load().counters
    {'events': 3}
    """

    problem: str | None = None

    def __init__(self) -> None:
        self._last = Epoch(0)
        self._states: dict[Owner, dict[str, StateRow]] = {}
        self._rules: dict[str, RuleVersion] = {}
        self._sources: dict[str, SourceRow] = {}
        self._counters: dict[str, Json] = {}
        self._sink_lengths: dict[str, int] = {}
        self._outbox: dict[str, OutRow] = {}
        self._delivered: list[str] = []

    @property
    def busy(self) -> bool:
        return False

    def load(self) -> Snapshot:
        return Snapshot(
            number=self._last.number,
            clock_us=self._last.clock_us,
            rules=list(self._rules.values()),
            sources=list(self._sources.values()),
            counters=dict(self._counters),
            sink_lengths=dict(self._sink_lengths),
            host_position=self._last.host_position,
            states_of=self._states_of,
            keys=lambda owner: iter(list(self._states.get(owner, ()))),
            outbox=lambda: (row for row in self._outbox.values() if row.pending),
            rows=self._rows,
            held=self._held,
        )

    def _states_of(self, owners: Collection[Owner] | None) -> Iterator[StateText]:
        for owner, row in self._rows():
            if owners is None or owner in owners:
                yield _text(owner, row)

    def _held(self) -> dict[Owner, tuple[int, int]]:
        return {
            owner: (
                sum(row.runs > 0 for row in rows.values()),
                sum(row.runs for row in rows.values()),
            )
            for owner, rows in self._states.items()
        }

    def submit(self, epoch: Epoch) -> None:
        self.commit(epoch)

    def wait(self, timeout: float | None = None) -> bool:
        return True

    def commit(self, epoch: Epoch) -> None:
        if epoch.number <= self._last.number:
            raise ValueError(f"epoch {epoch.number} cannot come after epoch {self._last.number}")
        for owner, rows in epoch.states.items():
            self._change(self._states.setdefault(owner, {}), rows)
        self._sources |= {source.name: source for source in epoch.sources}
        self._counters |= epoch.counters
        self._sink_lengths |= epoch.sink_lengths
        self._change_rules(epoch.rules)
        self._delivered += epoch.delivered
        self._change_outbox(epoch.outbox)
        self._last = Epoch(epoch.number, epoch.clock_us, host_position=epoch.host_position)

    def _change(self, states: dict[str, StateRow], rows: Iterable[StateRow]) -> None:
        for row in rows:
            if row.state is None:
                states.pop(row.key, None)
                continue
            before = states.get(row.key)
            end = row.dropped + row.sealed
            kept = before.segments[row.dropped : end] if before is not None else ()
            states[row.key] = replace(row, segments=kept + row.segments)

    def _change_rules(self, rules: Iterable[RuleVersion]) -> None:
        for rule in rules:
            self._rules[rule.id] = rule
            if rule.status == "gone":
                kept = {o: rows for o, rows in self._states.items() if o.name != rule.id}
                self._states = kept

    def _change_outbox(self, rows: Iterable[OutRow]) -> None:
        self._outbox |= {row.id: row for row in rows}
        for name in self._delivered:
            self._outbox.pop(name, None)
        self._delivered.clear()

    def delivered(self, ids: Iterable[str]) -> None:
        self._delivered.extend(ids)

    def fetch(self, owner: Owner, keys: Sequence[str]) -> dict[str, str]:
        rows = self._states.get(owner, {})
        return {key: _whole(rows[key]).state or "" for key in keys if key in rows}

    def due(self, until_us: int) -> list[StateText]:
        return [
            _text(owner, row)
            for owner, row in self._rows()
            if row.due_us is not None and row.due_us <= until_us
        ]

    def next_due(self, after_us: int | None = None) -> int | None:
        times = [row.due_us for _, row in self._rows() if row.due_us is not None]
        return min((t for t in times if after_us is None or t > after_us), default=None)

    def _rows(self) -> Iterator[tuple[Owner, StateRow]]:
        for owner, rows in self._states.items():
            for row in rows.values():
                yield owner, _whole(row)

    def vacuum(self) -> None:
        """Nothing is free."""

    def size(self) -> Size:
        used = sum(len(row.key) + len(row.state or "") for _, row in self._rows())
        return Size(used, 0, 0)

    def check(self) -> list[str]:
        return []

    def close(self) -> None:
        """The epochs stay, for the next engine."""
        self._change_outbox([])


def _whole(row: StateRow) -> StateRow:
    if not row.segments:
        return row
    text = with_segments(row.state or "", row.segments)
    return replace(row, state=text, segments=(), sealed=0)


def _text(owner: Owner, row: StateRow) -> StateText:
    return owner, row.key, row.state or ""
