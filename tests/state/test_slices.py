"""Checkpoints beside fast input: slices of encoding keep up with what changes. Time is counted, not
measured: each batch and each encoded state moves a clock."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import pytest

import cep
from cep.state import checkpoint
from cep.state.memory import MemoryStore
from cep.state.store import Epoch

BATCH = 0.05
"""Seconds that a batch takes."""

EACH = 5e-6
"""Seconds that encoding a state takes."""


class Counting(MemoryStore):
    """Notes how many states each epoch has."""

    def __init__(self) -> None:
        super().__init__()
        self.sizes: list[int] = []

    def commit(self, epoch: Epoch) -> None:
        self.sizes.append(sum(map(len, epoch.states.values())))
        super().commit(epoch)


@dataclass
class Play:
    """What a run has come to: when epochs were closed, pauses, states that waited at most."""

    store: Counting = field(default_factory=Counting)
    closed: list[float] = field(default_factory=list)
    pauses: list[float] = field(default_factory=list)
    most_changed: int = 0

    @property
    def intervals(self) -> list[float]:
        return [b - a for a, b in zip(self.closed, self.closed[1:], strict=False)]


def play(new_keys: int, batches: int) -> Play:
    """So many new keys in each batch, with an epoch each second where there is time for it."""
    done, clock = Play(), [0.0]
    rules = cep.loads("rule pair { by k sequence within 1d { a: A  b: B } }")
    engine = cep.Engine(rules, state=done.store, checkpoint_every=1.0)
    assert engine.keeper is not None
    work: Any = engine.keeper.checkpointer
    codec: Any = next(iter(engine.keeper.memory.codecs.values()))
    row, begin = codec.changed_row, work.begin

    def counted_row(state: Any) -> Any:
        clock[0] += EACH
        return row(state)

    def noted_begin(progress: Any) -> int:
        done.closed.append(clock[0])
        return begin(progress)

    codec.changed_row, work.begin, work._now = counted_row, noted_begin, lambda: clock[0]
    work._closed_at = work._worked_at = 0.0
    for batch in range(batches):
        clock[0] += BATCH
        before = clock[0]
        engine.process([{"type": "A", "time": batch, "k": f"{batch}.{i}"} for i in range(new_keys)])
        done.pauses.append(clock[0] - before)
        done.most_changed = max(done.most_changed, len(work._touched))
    return done


@pytest.mark.parametrize("new_keys", [10, 1000, 4000])
def test_an_epoch_ends_within_twice_its_interval(new_keys: int) -> None:
    done = play(new_keys, 100)
    assert len(done.intervals) >= 2
    assert max(done.intervals) <= 2
    assert max(done.pauses) <= 0.05


def test_what_is_too_much_for_the_longest_slices_is_bounded(monkeypatch) -> None:
    monkeypatch.setattr(checkpoint, "LONGEST", 0.005)
    monkeypatch.setattr(checkpoint, "MOST", 90_000)
    done = play(3000, 120)
    assert max(done.intervals) > 1.5
    assert done.most_changed <= 90_000 + 3000
    assert max(done.store.sizes) <= 90_000 + 2 * 3000
