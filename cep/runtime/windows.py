"""The windows of one key of an `aggregate` rule.

A `WindowPlan` is made once for a rule; `plan.new()` gives the window state of a key, which is one
of four classes with the same interface:

* `on_event(t, values) -> list[Bucket]`: an event enters. `values[i]` is what aggregate `i` takes
  from it: the value of its argument (out of its box), True for `count()`, None where its own
  `where` does not hold. The sequence is kept.
  Gives the buckets that took the event, the earliest first (a sliding window is one bucket).
* `next_due() -> int | None`: when something happens without an event. `plan.inclusive` says how:
  True (sliding, session): once the clock has passed that moment, after all events at it; False
  (tumbling, hopping): when the clock reaches it, before the events at it.
* `on_time(now) -> list[Bucket]`: lets happen what is due at `now`. For windows that close: the
  closed buckets, to be tested once and forgotten. For a sliding window: itself, when events left
  and others remain, to be tested again. An event that comes at the same moment as another is never
  torn from it: one call for one due moment.
* `is_empty`: nothing is held, the key may be forgotten. `dump`, `load`: plain data for a store.

The caller keeps the order: before an event at `t` enters, all that is due before it (or, where not
`inclusive`, at `t`) has happened, one `on_time` for each `next_due`. Times never go back.

A `Bucket` knows its `first` and `last` event's time, its `count` of events, `start` and `end`, and
`results()`, one value for each aggregate. A value that an aggregate cannot take is counted as a
failure, and makes that aggregate null as long as it is in the window. `marked` is for the caller
(reported early; or: `having` held last time) and is stored with the rest.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta, tzinfo
from functools import cached_property
from typing import Any

from cep.event_time import find_zone
from cep.runtime.aggregates import Accumulator
from cep.runtime.careful import Careful

DAY = 86_400_000_000
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_FIRST_DAY = date(1970, 1, 1)
_CALENDAR = ((date.min - _FIRST_DAY).days, (date.max - _FIRST_DAY).days)
"""The first and the last day there are; a zone may shift neither."""


class _Misfit:
    """Stands for a value that its aggregate could not take."""


MISFIT = _Misfit()


@dataclass(frozen=True)
class WindowPlan:
    """A rule's constants. `kind` and lengths (microseconds) are those of the checked pattern.

    `aggregates` make the accumulators, in the order of the rule's fields; failures are counted in
    `careful`.

    >>> from cep.runtime.aggregates import factory
    >>> plan = WindowPlan("sliding", (factory("sum"),), Careful(), size=10)
    >>> window = plan.new()
    >>> for t in (0, 4, 10): bucket, = window.on_event(t, (1,))
    >>> bucket.results(), window.next_due(), window.on_time(10) == [bucket], bucket.results()
    ([3], 10, True, [2])
    """

    kind: str
    aggregates: tuple[Callable[[], Accumulator], ...]
    careful: Careful
    size: int | None = None
    count: int | None = None
    step: int | None = None
    maximum: int | None = None
    timezone: str | None = None
    says: tuple[str, ...] = ()
    """The aggregates as the rule has them."""

    def said(self, i: int) -> str:
        """Aggregate `i` as the rule has it."""
        return self.says[i] if self.says else f"aggregate {i + 1}"

    @property
    def inclusive(self) -> bool:
        """Whether what is due happens after the events of its moment."""
        return self.kind in ("sliding", "session")

    @cached_property
    def grid(self) -> Grid:
        """Where the buckets of a tumbling or hopping window lie."""
        assert self.size is not None
        return grid(self.size, self.step or self.size, self.timezone)

    def new(self) -> Window:
        """The state of a key without events."""
        return _KINDS[self.kind](self)

    def bucket(self, start: int, end: int) -> Bucket:
        """A bucket without events."""
        return Bucket(self, start, end)


class Bucket:
    """The aggregates of the events in one window."""

    __slots__ = (
        "cells",
        "count",
        "end",
        "first",
        "last",
        "marked",
        "misfits",
        "plan",
        "start",
    )

    def __init__(self, plan: WindowPlan, start: int, end: int) -> None:
        self.plan = plan
        self.cells = [make() for make in plan.aggregates]
        self.misfits = [0] * len(self.cells)
        self.start = start
        self.end = end
        self.first = self.last = start
        self.count = 0
        self.marked = False

    def add(self, t: int, values: Sequence[Any]) -> Sequence[Any]:
        """Take an event in; gives what `remove` needs to take it out again."""
        if not self.count:
            self.first = t
        self.last = t
        self.count += 1
        kept = values
        for i, cell in enumerate(self.cells):
            value = values[i]
            if value is not None:
                try:
                    cell.add(value)
                except (TypeError, ValueError) as error:
                    self.plan.careful.failed(self.plan.said(i), [value], error)
                    kept = self._without(kept, i)
        return kept

    def _without(self, values: Sequence[Any], i: int) -> Sequence[Any]:
        """The values, the one that aggregate `i` could not take marked."""
        self.misfits[i] += 1
        return [*values[:i], MISFIT, *values[i + 1 :]]

    def remove(self, kept: Sequence[Any]) -> None:
        """Take out the oldest event, by what `add` gave for it."""
        self.count -= 1
        for i, cell in enumerate(self.cells):
            value = kept[i]
            if value is MISFIT:
                self.misfits[i] -= 1
            elif value is not None:
                cell.remove(value)

    def results(self) -> list[Any]:
        """The value of each aggregate now."""
        return [
            None if misfits else cell.result()
            for cell, misfits in zip(self.cells, self.misfits, strict=True)
        ]

    def dump(self) -> list[Any]:
        """Plain data."""
        known = [self.start, self.end, self.first, self.last, self.count, self.marked]
        return [*known, [cell.dump() for cell in self.cells], list(self.misfits)]

    def load(self, dumped: Sequence[Any]) -> None:
        """What `dump` gave."""
        self.start, self.end, self.first, self.last, self.count, self.marked = dumped[:6]
        for cell, state in zip(self.cells, dumped[6], strict=True):
            cell.load(state)
        self.misfits = list(dumped[7])


class Window:
    """The window state of a key; see the head of the module."""

    __slots__ = ()

    def on_event(self, t: int, values: Sequence[Any]) -> list[Bucket]:
        raise NotImplementedError

    def on_time(self, now: int) -> list[Bucket]:
        raise NotImplementedError

    def next_due(self) -> int | None:
        raise NotImplementedError

    @property
    def is_empty(self) -> bool:
        raise NotImplementedError

    def dump(self) -> Any:
        raise NotImplementedError

    def load(self, dumped: Any) -> None:
        raise NotImplementedError


def held_buckets(window: Window) -> Sequence[Bucket]:
    """The buckets of a window that hold events, the earliest first."""
    if isinstance(window, Buckets):
        return window.open
    assert isinstance(window, Sliding | LastEvents | Session)
    return [window.bucket] if window.bucket is not None and not window.is_empty else []


# ---------------------------------------------------------------------------- sliding


class Sliding(Window):
    """`sliding D`: the events with now − time <= D. O(1) an event, amortised."""

    __slots__ = ("bucket", "entries", "size")
    entries: deque[tuple[int, Sequence[Any]]]

    def __init__(self, plan: WindowPlan) -> None:
        assert plan.size is not None
        self.size = plan.size
        self.bucket = plan.bucket(0, 0)
        self.entries = deque()

    def on_event(self, t: int, values: Sequence[Any]) -> list[Bucket]:
        bucket = self.bucket
        self.entries.append((t, bucket.add(t, values)))
        bucket.first = self.entries[0][0]
        bucket.start, bucket.end = t - self.size, t
        return [bucket]

    def on_time(self, now: int) -> list[Bucket]:
        entries, bucket = self.entries, self.bucket
        until = now - self.size
        before = len(entries)
        while entries and entries[0][0] <= until:
            bucket.remove(entries.popleft()[1])
        if not entries:
            bucket.marked = False
            return []
        if len(entries) == before:
            return []
        bucket.first = entries[0][0]
        bucket.start, bucket.end = until, now
        return [bucket]

    def next_due(self) -> int | None:
        return self.entries[0][0] + self.size if self.entries else None

    @property
    def is_empty(self) -> bool:
        return not self.entries

    def dump(self) -> Any:
        return [self.bucket.start, self.bucket.end, self.bucket.marked, _entries(self.entries)]

    def load(self, dumped: Any) -> None:
        start, end, marked, entries = dumped
        _refill(self.bucket, self.entries, entries)
        self.bucket.start, self.bucket.end, self.bucket.marked = start, end, marked


class LastEvents(Window):
    """`sliding N events`: the last N events. O(1) an event."""

    __slots__ = ("bucket", "entries", "most")
    entries: deque[tuple[int, Sequence[Any]]]

    def __init__(self, plan: WindowPlan) -> None:
        assert plan.count is not None
        self.most = plan.count
        self.bucket = plan.bucket(0, 0)
        self.entries = deque()

    def on_event(self, t: int, values: Sequence[Any]) -> list[Bucket]:
        bucket = self.bucket
        if len(self.entries) == self.most:
            bucket.remove(self.entries.popleft()[1])
        self.entries.append((t, bucket.add(t, values)))
        bucket.first = bucket.start = self.entries[0][0]
        bucket.end = t
        return [bucket]

    def on_time(self, now: int) -> list[Bucket]:
        return []

    def next_due(self) -> int | None:
        return None

    @property
    def is_empty(self) -> bool:
        return not self.entries

    def dump(self) -> Any:
        return [self.bucket.marked, _entries(self.entries)]

    def load(self, dumped: Any) -> None:
        marked, entries = dumped
        _refill(self.bucket, self.entries, entries)
        bucket = self.bucket
        bucket.start, bucket.end, bucket.marked = bucket.first, bucket.last, marked


def _entries(entries: deque[tuple[int, Sequence[Any]]]) -> list[Any]:
    """Events as plain data: time, values (null for a misfit), places of misfits."""
    return [
        [
            t,
            [None if value is MISFIT else value for value in kept],
            [i for i, value in enumerate(kept) if value is MISFIT],
        ]
        for t, kept in entries
    ]


def _refill(
    bucket: Bucket, entries: deque[tuple[int, Sequence[Any]]], dumped: Sequence[Sequence[Any]]
) -> None:
    """Put events that `_entries` wrote into an empty window."""
    for t, values, misfits in dumped:
        bucket.add(t, values)
        for i in misfits:
            bucket.misfits[i] += 1
        kept = [MISFIT if i in misfits else value for i, value in enumerate(values)]
        entries.append((t, kept))
    if entries:
        bucket.first = entries[0][0]


# ---------------------------------------------------------------------------- buckets that close


class Buckets(Window):
    """`tumbling D` and `hopping D every D2`: buckets `[start, start + D)`; an event enters all
    that contain it, O(D / D2)."""

    __slots__ = ("disjoint", "open", "places", "plan")
    open: deque[Bucket]

    def __init__(self, plan: WindowPlan) -> None:
        self.plan = plan
        self.places = plan.grid
        self.disjoint = plan.step is None or plan.step == plan.size
        self.open = deque()

    def _open(self, t: int) -> None:
        """Open the buckets that contain a time and are not open yet."""
        newest = self.open[-1].start if self.open else None
        for start, end in self.places(t):
            if newest is None or start > newest:
                self.open.append(self.plan.bucket(start, end))

    def on_event(self, t: int, values: Sequence[Any]) -> list[Bucket]:
        if not (self.disjoint and self.open and t < self.open[-1].end):
            self._open(t)
        taken = [bucket for bucket in self.open if bucket.start <= t < bucket.end]
        for bucket in taken:
            bucket.add(t, values)
        return taken

    def on_time(self, now: int) -> list[Bucket]:
        closed = []
        while self.open and self.open[0].end <= now:
            closed.append(self.open.popleft())
        return closed

    def next_due(self) -> int | None:
        return self.open[0].end if self.open else None

    @property
    def is_empty(self) -> bool:
        return not self.open

    def dump(self) -> Any:
        return [bucket.dump() for bucket in self.open]

    def load(self, dumped: Any) -> None:
        for state in dumped:
            bucket = self.plan.bucket(0, 0)
            bucket.load(state)
            self.open.append(bucket)


Grid = Callable[[int], list[tuple[int, int]]]
"""From a time to the buckets (start, end) that contain it, the earliest first."""


def grid(size: int, step: int, timezone: str | None = None) -> Grid:
    """Where buckets lie: aligned to the epoch, or, for whole days in a time zone, to local
    midnights, from one to another however long the day between them was."""
    if timezone is not None and size % DAY == 0 and step % DAY == 0:
        return _day_grid(size // DAY, step // DAY, find_zone(timezone))

    def places(t: int) -> list[tuple[int, int]]:
        latest = t - t % step
        return [(start, start + size) for start in reversed(range(latest, t - size, -step))]

    return places


def _day_grid(size: int, step: int, zone: tzinfo) -> Grid:
    """Buckets of `size` days, one every `step` days, counted from 1970-01-01 in the zone."""
    today: tuple[int, int, list[tuple[int, int]]] = (0, 0, [])

    def places(t: int) -> list[tuple[int, int]]:
        nonlocal today
        begin, end, found = today
        if begin <= t < end:
            return found
        day = _day(t, zone)
        latest = day - day % step
        starts = reversed(range(latest, day - size, -step))
        found = [(midnight(start, zone), midnight(start + size, zone)) for start in starts]
        today = (midnight(day, zone), midnight(day + 1, zone), found)
        return found

    return places


def _day(t: int, zone: tzinfo) -> int:
    """The local day of a time, counted from 1970-01-01."""
    moment = _EPOCH + timedelta(microseconds=t)
    with suppress(OverflowError):  # at the very ends of the calendar
        moment = moment.astimezone(zone)
    return (moment.date() - _FIRST_DAY).days


def midnight(day: int, zone: tzinfo) -> int:
    """When a day (counted from 1970-01-01) begins in a time zone, in microseconds UTC.

    Where clocks jump over midnight, the day begins when they jump.
    """
    if not _CALENDAR[0] < day < _CALENDAR[1]:
        return day * DAY
    local = datetime.combine(_FIRST_DAY + timedelta(days=day), datetime.min.time(), zone)
    return (local.astimezone(UTC) - _EPOCH) // timedelta(microseconds=1)


# ---------------------------------------------------------------------------- sessions


class Session(Window):
    """`session gap D [max D2]`: events no more than D apart, the last no more than D2 after the
    first."""

    __slots__ = ("bucket", "gap", "maximum", "plan")

    def __init__(self, plan: WindowPlan) -> None:
        assert plan.size is not None
        self.plan = plan
        self.gap = plan.size
        self.maximum = plan.maximum
        self.bucket: Bucket | None = None

    def on_event(self, t: int, values: Sequence[Any]) -> list[Bucket]:
        bucket = self.bucket
        if bucket is None:
            bucket = self.bucket = self.plan.bucket(t, t)
        bucket.add(t, values)
        bucket.end = t
        return [bucket]

    def on_time(self, now: int) -> list[Bucket]:
        due = self.next_due()
        if due is None or due > now or self.bucket is None:
            return []
        closed, self.bucket = self.bucket, None
        return [closed]

    def next_due(self) -> int | None:
        bucket = self.bucket
        if bucket is None:
            return None
        due = bucket.last + self.gap
        return due if self.maximum is None else min(due, bucket.start + self.maximum)

    @property
    def is_empty(self) -> bool:
        return self.bucket is None

    def dump(self) -> Any:
        return None if self.bucket is None else self.bucket.dump()

    def load(self, dumped: Any) -> None:
        if dumped is not None:
            self.bucket = self.plan.bucket(0, 0)
            self.bucket.load(dumped)


_KINDS: dict[str, Callable[[WindowPlan], Window]] = {
    "sliding": Sliding,
    "sliding_count": LastEvents,
    "tumbling": Buckets,
    "hopping": Buckets,
    "session": Session,
}
