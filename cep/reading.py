"""The loop that reads sources and feeds an engine: whose turn it is, and when to wait.

In: an engine and its sources. The source that holds the clock back is read next, so memory holds
little more than one block of each. With state reading goes on where the last engine was; at the end
of the input nothing is flushed, for the files may grow. `Live` sources are never at their end: one
that is silent for long no longer holds the others back, and when all are silent the clock follows
that of the wall. This is the one place where the wall clock has a say.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from time import monotonic, time
from typing import Any

from cep.engine import Engine
from cep.match import Match
from cep.positions import Tracker
from cep.source.base import Block, Source

PAUSE = 0.1
"""Seconds to wait when no source has anything new."""

OnMatches = Callable[[list[Match]], None]


@dataclass(frozen=True, slots=True)
class Live:
    """How sources are read that go on. `stop` ends it. `idle`: after how many microseconds of
    silence a source no longer holds the clock back (None: never)."""

    stop: threading.Event
    idle: int | None = None


def run_sources(
    engine: Engine,
    sources: Sequence[Source],
    *,
    on_matches: OnMatches,
    on_progress: Callable[[int], None] | None = None,
    between: Callable[[], None] | None = None,
    sort: bool = False,
    live: Live | None = None,
    stop: threading.Event | None = None,
) -> None:
    """Reads sources to their end and hands the matches over as they come.

    Several sources are merged by time. With `sort` each may be in any order: all of it is sorted
    first, with bounded memory. `on_progress` is told how many bytes or records have been read.
    `between` is called between blocks, where the engine may be changed. `stop` ends the reading
    after the block at hand. `live` sources (opened to be followed) are waited for. The engine is
    not closed. Raises SourceError for what cannot be read.
    """
    if sort:
        engine.read_from(sources)
        _run_in_sorted_order(engine, sources, on_matches, on_progress)
        return
    loop = _Loop(engine, sources, on_matches, on_progress, live)
    while (stop is None or not stop.is_set()) and loop.step():
        if between is not None:
            between()


class _Loop:
    """Reads sources block by block, `step` by step."""

    def __init__(
        self,
        engine: Engine,
        sources: Sequence[Source],
        on_matches: OnMatches,
        on_progress: Callable[[int], None] | None,
        live: Live | None,
    ) -> None:
        self._engine = engine
        self._on_matches = on_matches
        self._on_progress = on_progress
        self._live = live
        trackers = engine.read_from(sources)
        self._keeps_state = bool(trackers)
        self._readers: dict[int, Iterator[Block]] = {
            index: source.blocks() for index, source in enumerate(sources)
        }
        self._done = [0] * len(sources)
        self._spoke = dict.fromkeys(self._readers, monotonic())
        self._idle: set[int] = set()
        self._polled = monotonic()
        for tracker in trackers:
            self._read_again(tracker)

    def _read_again(self, tracker: Tracker) -> None:
        """What was read before and was still waiting for its turn waits again."""
        index = tracker.index
        while tracker.has_gap:
            block = next(self._readers[index], None)
            if block is None or block.is_empty or block.offset >= tracker.read_to:
                rest = [block] if block is not None else []
            else:
                first, second = block.split(tracker.read_to)
                second.context = tracker.read.context
                self._engine.feed_again(index, first)
                if block.place_after[0] <= tracker.read_to:
                    continue
                rest = [second]
            self._readers[index] = chain(rest, self._readers[index])
            return

    # ------------------------------------------------------------------ turns

    def step(self) -> bool:
        """Reads a block of the source whose turn it is; false when there is nothing to wait for."""
        self._listen_to_the_silent()
        index = self._engine.slowest()
        if index is not None:
            self._read(index)
        elif self._live is None or not self._idle:
            return False
        else:
            self._follow_the_wall_clock()
            self._wait()
        self._deliver()
        return True

    def _read(self, index: int) -> None:
        block = next(self._readers[index], None)
        if block is None:
            self._end(index)
            return
        self._engine.feed(index, block)
        if block.is_empty and self._live is not None:
            self._is_silent(index)
            return
        self._spoke[index] = monotonic()
        self._idle.discard(index)
        self._done[index] = max(self._done[index], block.place_after[0])
        if self._on_progress is not None:
            self._on_progress(sum(self._done))

    def _end(self, index: int) -> None:
        """A source is at its end. With state it may grow before the next run: what waits behind
        others keeps waiting, but it does not hold them back now."""
        del self._readers[index]
        self._idle.discard(index)
        if self._keeps_state:
            self._engine.set_idle(index)
        else:
            self._engine.finish(index)

    def _deliver(self) -> None:
        self._hand_over(self._engine.take())

    def _hand_over(self, found: list[Match]) -> None:
        if found:
            self._on_matches(found)

    # ------------------------------------------------------------------ silence

    def _is_silent(self, index: int) -> None:
        assert self._live is not None
        idle = self._live.idle
        if index in self._idle:
            return
        if idle is not None and (monotonic() - self._spoke[index]) * 1_000_000 >= idle:
            self._idle.add(index)
            self._engine.set_idle(index)
        else:
            self._wait()

    def _listen_to_the_silent(self) -> None:
        """Sources that do not hold the clock back are asked now and then."""
        if self._idle and monotonic() - self._polled >= PAUSE:
            self._polled = monotonic()
            for index in sorted(self._idle):
                self._read(index)

    def _follow_the_wall_clock(self) -> None:
        now = int(time() * 1_000_000) - self._engine.delay
        self._hand_over(self._engine.advance_to(now))

    def _wait(self) -> None:
        assert self._live is not None
        self._live.stop.wait(PAUSE)


def _run_in_sorted_order(
    engine: Engine,
    sources: Sequence[Source],
    on_matches: OnMatches,
    on_progress: Callable[[int], None] | None,
) -> None:
    from cep.source.external_sort import sorted_events

    def events() -> Iterator[Any]:
        done = 0
        for index, source in enumerate(sources):
            end = 0
            for block in source.blocks():
                yield from engine.decode(index, block)
                end = block.place_after[0]
                if on_progress is not None:
                    on_progress(done + end)
            done += end

    for batch in sorted_events(events(), freeze=_freeze, thaw=_thaw(engine), size=_size):
        engine.run_sorted(batch)
        found = engine.take()
        if found:
            on_matches(found)


def _freeze(event: Any) -> object:
    return (event.t, event.src, event.pos, event.raw)


def _thaw(engine: Engine) -> Callable[[Any], Any]:
    """Makes an event again of what `_freeze` kept."""

    def thaw(frozen: Any) -> Any:
        time, source, position, raw = frozen
        if isinstance(raw, bytes):
            event = engine.ingest.decode(raw)
            event.raw = raw
        else:
            event = engine.ingest.shape.from_mapping(raw)
        event.t, event.src, event.pos = time, source, position
        return event

    return thaw


def _size(event: Any) -> int:
    raw = event.raw
    return 400 + (len(raw) if isinstance(raw, bytes) else 100 * len(raw))
