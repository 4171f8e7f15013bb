"""Sorting more than memory holds: the same order as sorting in memory, whatever the limit."""

from __future__ import annotations

import errno
import random
from typing import NamedTuple, cast

import pytest

from cep.source import SourceError, external_sort, sorted_events


class Event(NamedTuple):
    t: int
    number: int
    raw: bytes


def make(count: int) -> list[Event]:
    chance = random.Random(7)
    return [Event(chance.randrange(count // 3 + 1), n, b'{"n": %d}' % n) for n in range(count)]


def freeze(event: Event) -> object:
    return tuple(event)


def thaw(data: object) -> Event:
    return Event(*cast("tuple[int, int, bytes]", data))


def sort(events: list[Event], memory: int) -> list[Event]:
    batches = sorted_events(iter(events), freeze=freeze, thaw=thaw, size=lambda _: 1, memory=memory)
    return [event for batch in batches for event in batch]


@pytest.mark.parametrize("memory", [1, 7, 100, 999, 1000, 1001, 10_000])
def test_every_limit_gives_the_stable_order(memory: int) -> None:
    events = make(1000)
    assert sort(events, memory) == sorted(events)


def test_many_runs_are_joined(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(external_sort, "_MOST_RUNS", 4)
    monkeypatch.setattr(external_sort, "_PAGE", 3)
    events = make(2000)
    assert sort(events, 20) == sorted(events)


def test_nothing_is_frozen_when_memory_suffices() -> None:
    def refuse(_: object) -> Event:
        raise AssertionError

    events = make(100)
    batches = sorted_events(events, freeze=refuse, thaw=refuse, size=lambda _: 1, memory=101)
    assert [event for batch in batches for event in batch] == sorted(events)


def test_nothing_to_sort() -> None:
    assert sort([], 10) == []


def test_a_full_disk_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object, **__: object) -> object:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(external_sort.tempfile, "TemporaryFile", full)
    with pytest.raises(SourceError, match=r"cannot sort: .* no space left on device"):
        sort(make(100), 10)
