"""Puts the events of several sources in one order, and finds those that come too late.

In go batches of events as the sources give them, each with a time `t`; out come the events whose
turn it is, in the order (t, source, arrival), and apart from them the late ones.

A source's clock is the largest time seen there minus its delay: it promises that nothing older
will come, and what is older all the same is late. An event may go out once every source has
promised as much, where sources are compared as (clock, index): at equal times a source that
stands first in the order holds back those behind it, because it may still bring an event of that
same time. So the order does not depend on how the input is cut into batches.

Work is done for whole batches by functions written in C. A batch of one source without delay that
is in order, the common case, is passed on as the same list after one look at its times.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Sequence
from itertools import accumulate
from operator import attrgetter, sub
from typing import Generic, NamedTuple, Protocol, TypeVar

_time = attrgetter("t")
_FEW = 16
_NEVER = -(2**63)
_ENDED = 2**63


class Timed(Protocol):
    """What is ordered: anything with a time `t` in microseconds."""

    @property
    def t(self) -> int: ...


EventT = TypeVar("EventT", bound=Timed)


class Late(NamedTuple, Generic[EventT]):
    """An event that came too late, and by how many microseconds."""

    event: EventT
    by: int


class _Held(Generic[EventT]):
    """The events of one source that wait for their turn, in order of time and arrival."""

    __slots__ = ("clock", "delay", "events", "seen", "start")

    def __init__(self, delay: int) -> None:
        self.delay = delay
        self.seen = _NEVER
        """The largest time that the source has shown."""
        self.clock = _NEVER
        self.events: list[EventT] = []
        self.start = 0
        """Events before this index have gone out already (cut off when they are many)."""

    def add(self, events: list[EventT], *, in_order: bool) -> None:
        held = self.events
        if in_order and (not held or held[-1].t <= events[0].t):
            held += events
            return
        if len(events) <= _FEW < len(held) - self.start:
            for event in events:
                held.insert(bisect_right(held, event.t, lo=self.start, key=_time), event)
            return
        if self.start:
            del held[: self.start]
            self.start = 0
        held += events
        held.sort(key=_time)

    def take(self, stop: int) -> list[EventT]:
        taken = self.events[self.start : stop]
        self.start = stop
        if self.start * 2 >= len(self.events):
            del self.events[: self.start]
            self.start = 0
        return taken

    def take_until(self, time: int, *, inclusive: bool) -> list[EventT]:
        bisect = bisect_right if inclusive else bisect_left
        return self.take(bisect(self.events, time, lo=self.start, key=_time))


class Reorder(Generic[EventT]):
    """Merges and orders the events of `len(delays)` sources; delays are in microseconds.

    Costs about 0.1 µs per event in order, and a sort of what is held back otherwise.

    >>> from types import SimpleNamespace as Event
    >>> order = Reorder([2])
    >>> [e.t for e in order.push(0, [Event(t=1), Event(t=5), Event(t=4), Event(t=2)])]
    [1]
    >>> order.take_late()
    [Late(event=namespace(t=2), by=1)]
    >>> [e.t for e in order.flush()]
    [4, 5]
    """

    def __init__(self, delays: Sequence[int]) -> None:
        if any(delay < 0 for delay in delays):
            raise ValueError("a delay cannot be negative")
        self._sources: list[_Held[EventT]] = [_Held(delay) for delay in delays]
        self._clocks: dict[int, int] = dict.fromkeys(range(len(delays)), _NEVER)
        self._frontier = (_NEVER, 0)
        self._late: list[Late[EventT]] = []
        self._single = len(delays) == 1 and delays[0] == 0

    @property
    def clock(self) -> int | None:
        """Everything older than this has gone out; None before the first event of each source."""
        return self._frontier[0] if self._frontier[0] != _NEVER else None

    @property
    def slowest(self) -> int | None:
        """Index of the source that holds the clock back: the one to read next. None at the end."""
        clocks = self._clocks
        return min(clocks, key=lambda index: (clocks[index], index)) if clocks else None

    def push(self, source: int, events: list[EventT]) -> list[EventT]:
        """Takes the next events of a source; gives those whose turn has come, in order.

        The returned list may be `events` itself. A source that was idle counts again.
        """
        if not events:
            return []
        held = self._sources[source]
        times = list(map(_time, events))
        first_open = self._first_open(source, held)
        in_order = times[0] >= first_open and times == sorted(times)
        if in_order and self._single and not held.events:
            self._advance(source, held, times[-1])
            return events
        if not in_order:
            events = self._without_late(held, events, times, first_open)
        held.add(events, in_order=in_order)
        self._advance(source, held, max(times))
        return self._release()

    def waiting(self, source: int) -> tuple[int, tuple[int, int], list[EventT]]:
        """What `restore` needs: the largest time that a source has shown, the frontier, and the
        events of the source that are held back."""
        held = self._sources[source]
        return held.seen, self._frontier, held.events[held.start :]

    def go_on(self, frontier: Sequence[int]) -> None:
        """What came before this frontier has gone out already, of whatever source it was."""
        time, last = frontier
        self._frontier = max(self._frontier, (time, last))

    def restore(
        self, source: int, seen: int, frontier: Sequence[int], events: list[EventT]
    ) -> None:
        """Goes on where `waiting` was asked. The delay may be another now: nothing goes out before
        the next events come, and what waits is not late where the delay has become shorter."""
        held = self._sources[source]
        self.go_on(frontier)
        if seen != _NEVER:
            held.seen = seen
            held.clock = self._clocks[source] = seen - held.delay
            held.add(events, in_order=True)

    def replace(self, change: Callable[[EventT], EventT]) -> None:
        """Puts other events, of the same times, in the places of those that are held back."""
        for held in self._sources:
            held.events[held.start :] = [change(event) for event in held.events[held.start :]]

    def seen(self, source: int) -> int:
        """The largest time that a source has shown so far."""
        return self._sources[source].seen

    def holds(self, source: int) -> bool:
        """Whether events of a source are held back."""
        held = self._sources[source]
        return held.start < len(held.events)

    def readmit(self, source: int, events: list[EventT]) -> None:
        """Events that were held back when `waiting` was asked, in the order of their arrival, wait
        again. What has become too late since, because others went on alone, is late."""
        time, last = self._frontier
        open_from = time if source >= last else time + 1
        waiting = []
        for event in events:
            if event.t >= open_from:
                waiting.append(event)
            else:
                self._late.append(Late(event, open_from - event.t))
        if waiting:
            self._sources[source].add(waiting, in_order=False)

    def pass_over(self, source: int, seen: int) -> None:
        """Events up to time `seen` have come in order and gone out without being held."""
        held = self._sources[source]
        self._advance(source, held, max(held.seen, seen))

    def take_late(self) -> list[Late[EventT]]:
        """The late events since the last call, in order of arrival."""
        late, self._late = self._late, []
        return late

    def set_idle(self, source: int) -> list[EventT]:
        """A source is silent: it no longer holds the clock back until it brings events again.

        With no other active source the clock stays where it is. What the source brings later
        is late where it is older than what has gone out.
        """
        self._clocks.pop(source, None)
        return self._release()

    def advance(self, time: int) -> list[EventT]:
        """The host promises that no source brings anything older than `time` any more."""
        for index, held in enumerate(self._sources):
            held.seen = max(held.seen, time + held.delay)
            held.clock = max(held.clock, time)
            if index in self._clocks:
                self._clocks[index] = held.clock
        return self._release()

    def finish(self, source: int) -> list[EventT]:
        """A source has ended; gives what it alone held back. After the last one: everything."""
        self._clocks.pop(source, None)
        self._sources[source].clock = _ENDED
        if all(held.clock == _ENDED for held in self._sources):
            return self.flush()
        return self._release()

    def flush(self) -> list[EventT]:
        """Everything that is still held back, in order; the clock moves to the last of them."""
        rest = [event for held in self._sources for event in held.take(len(held.events))]
        rest.sort(key=_time)
        if rest:
            self._frontier = max(self._frontier, (rest[-1].t, len(self._sources)))
        return rest

    def _advance(self, source: int, held: _Held[EventT], seen: int) -> None:
        held.seen = max(held.seen, seen)
        held.clock = self._clocks[source] = max(held.clock, held.seen - held.delay)
        if self._single:
            self._frontier = max(self._frontier, (held.clock, 0))

    def _first_open(self, source: int, held: _Held[EventT]) -> int:
        """The oldest time that an event of the source may have now without being late."""
        time, last = self._frontier
        return max(held.clock, time if source >= last else time + 1)

    def _without_late(
        self, held: _Held[EventT], events: list[EventT], times: list[int], first_open: int
    ) -> list[EventT]:
        """The events that are not older than the clock was just before them."""
        reach = accumulate(times, max, initial=max(held.seen, first_open + held.delay))
        behind = list(map(sub, reach, times))
        if max(behind) <= held.delay:
            return events
        kept = []
        for event, gap in zip(events, behind, strict=True):
            if gap > held.delay:
                self._late.append(Late(event, gap - held.delay))
            else:
                kept.append(event)
        return kept

    def _release(self) -> list[EventT]:
        """Moves the frontier to what all active sources promise and takes what lies before it."""
        slowest = self.slowest
        if slowest is not None:
            self._frontier = max(self._frontier, (self._clocks[slowest], slowest))
        time, last = self._frontier
        released: list[EventT] = []
        for index, held in enumerate(self._sources):
            if held.events:
                released += held.take_until(time, inclusive=index <= last)
        if len(self._sources) > 1:
            released.sort(key=_time)
        return released
