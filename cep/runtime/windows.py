"""The windows of one key of an `aggregate` rule.

A `WindowPlan` is made once for a rule; `plan.new(key)` gives the window state of a key, of one of
five classes:

* `Sliding` and `LastEvents` hold their events one by one, as entries `(time, value, …)`, with the
  aggregates of all of them.
* `Single` (`tumbling`) and `Session` hold one bucket: aggregates without the events.
* `Panes` (`hopping`) holds aggregates of the panes between the ends of windows, and of all panes
  together, so an event costs the same however many windows it is in.
* `Buckets` holds a bucket for each window of a `hopping` one that is open. It is for `report on
  update`, which asks each of them at each event.

What an aggregate takes from an event is a value: that of its argument out of its box, True for
`count()`, None where its own `where` does not hold. Aggregates of the same argument share a value;
`plan.slots` says which value each takes (-1: True, of any event). Generated handlers
(`cep.compile.window_code`) put values into windows; `on_event` does the same, plainly.

The caller keeps the order: before an event at `t` enters, all that is due before it (or, where not
`inclusive`, at `t`) has happened. Times never go back.

A value that an aggregate cannot take is counted as a failure, and makes that aggregate null as long
as it is in the window.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from cep.runtime.aggregates import Accumulator
from cep.runtime.careful import Careful
from cep.runtime.window_grid import Grid

NEVER = 1 << 62
"""A time after every other."""

Entry = tuple[Any, ...]
"""An event in a window: its time and its values."""


class Unfit:
    """Stands for a value that some aggregates (by their places) could not take."""

    __slots__ = ("places", "value")

    def __init__(self, value: Any, places: Sequence[int]) -> None:
        self.value = value
        self.places = tuple(places)


@dataclass(frozen=True)
class WindowPlan:
    """A rule's constants. `kind` and lengths (microseconds) are those of the checked pattern.

    `aggregates` make the accumulators, in the order of the rule's fields; failures are counted in
    `careful`. `updates`: the rule has `report on update`.

    >>> from cep.runtime.aggregates import factory
    >>> plan = WindowPlan("sliding", (factory("sum"),), Careful(), size=10)
    >>> window = plan.new("ann")
    >>> for t in (0, 4, 10): window.on_event(t, (1,))
    >>> window.results(), window.forget_until(0), window.results()
    ([3], None, [2])
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
    slots: tuple[int, ...] = ()
    """Which value of an event each aggregate takes; -1: True, of any event."""
    updates: bool = False

    def __post_init__(self) -> None:
        if not self.slots:  # each has its own
            object.__setattr__(self, "slots", tuple(range(len(self.aggregates))))

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
        return Grid(self.size, self.step or self.size, self.timezone)

    @cached_property
    def form(self) -> type[Window]:
        """The class of its windows."""
        if self.kind == "hopping" and (self.step or 0) < (self.size or 0):
            return Buckets if self.updates else Panes
        return _FORMS[self.kind]

    def new(self, key: Any) -> Window:
        """The state of a key without events."""
        return self.form(self, key)


class Fold:
    """The aggregates of some events."""

    __slots__ = ("cells", "misfits", "plan")

    def __init__(self, plan: WindowPlan) -> None:
        self.plan = plan
        self.cells = tuple([make() for make in plan.aggregates])
        self.misfits: dict[int, int] | None = None
        """How many values each aggregate could not take, of those that could not take some."""

    def add(self, values: Sequence[Any]) -> list[Any]:
        """Take an event in; gives its values as `remove` needs them to take it out again."""
        kept = [*values]
        for i, slot in enumerate(self.plan.slots):
            if slot < 0:
                self.cells[i].add(True)
            elif kept[slot] is not None:
                kept[slot] = self.put_in(i, kept[slot])
        return kept

    def remove(self, kept: Sequence[Any]) -> None:
        """Take out the oldest event."""
        for i, slot in enumerate(self.plan.slots):
            if slot < 0:
                self.cells[i].remove(True)
            elif kept[slot] is not None:
                self.take_out(i, kept[slot])

    def put_in(self, i: int, value: Any) -> Any:
        """Aggregate `i` takes a value; gives it as it is to be kept."""
        places: tuple[int, ...] = ()
        if value.__class__ is Unfit:
            places, value = value.places, value.value
        if i not in places:
            try:
                if value is not None:
                    self.cells[i].add(value)
                return Unfit(value, places) if places else value
            except (TypeError, ValueError) as error:
                self.plan.careful.failed(self.plan.said(i), [value], error)
        self._count_misfits(i, 1)
        return Unfit(value, places if i in places else (*places, i))

    def take_out(self, i: int, value: Any) -> None:
        """Aggregate `i` forgets the value that it took first of all that it holds."""
        if value.__class__ is Unfit:
            if i in value.places:
                self._count_misfits(i, -1)
                return
            value = value.value
        if value is not None:
            self.cells[i].remove(value)

    def _count_misfits(self, i: int, more: int) -> None:
        misfits = self.misfits = self.misfits or {}
        misfits[i] = misfits.get(i, 0) + more
        if not misfits[i]:
            del misfits[i]

    def join(self, newest: Fold) -> None:
        """Take in events that came after all others."""
        for cell, more in zip(self.cells, newest.cells, strict=True):
            cell.join(more)
        for i, number in (newest.misfits or {}).items():
            self._count_misfits(i, number)

    def leave(self, oldest: Fold) -> None:
        """Take out events that came before all others."""
        for cell, less in zip(self.cells, oldest.cells, strict=True):
            cell.leave(less)
        for i, number in (oldest.misfits or {}).items():
            self._count_misfits(i, -number)

    def results(self) -> list[Any]:
        """The value of each aggregate now."""
        misfits = self.misfits or ()
        return [None if i in misfits else cell.result() for i, cell in enumerate(self.cells)]


class Bucket(Fold):
    """The aggregates of the events between two times. `marked`: it was reported early."""

    __slots__ = ("count", "end", "first", "last", "marked", "start")

    def __init__(self, plan: WindowPlan, start: int, end: int) -> None:
        super().__init__(plan)
        self.start = start
        self.end = end
        self.first = self.last = start
        self.count = 0
        self.marked = False

    def take(self, t: int, values: Sequence[Any]) -> list[Any]:
        """An event enters."""
        if not self.count:
            self.first = t
        self.last = t
        self.count += 1
        return self.add(values)

    def dump(self) -> list[Any]:
        """Plain data."""
        known = [self.start, self.end, self.first, self.last, self.count, self.marked]
        misfits = self.misfits or {}
        numbers = [misfits.get(i, 0) for i in range(len(self.cells))]
        return [*known, [cell.dump() for cell in self.cells], numbers]

    @classmethod
    def load(cls, plan: WindowPlan, dumped: Sequence[Any]) -> Bucket:
        """What `dump` was called on."""
        made = cls(plan, *dumped[:2])
        made.first, made.last, made.count, made.marked = dumped[2:6]
        for cell, state in zip(made.cells, dumped[6], strict=True):
            cell.load(state)
        made.misfits = {i: number for i, number in enumerate(dumped[7]) if number} or None
        return made


class Window(Fold):
    """The window state of a key; see the head of the module.

    `wake`: when the clock must look at it. `items`: what it holds one after the other, the oldest
    first, where that is more than a bucket; none of them changes but the last `open_items`.
    """

    __slots__ = ("epoch", "key", "wake")
    open_items = 0

    def __init__(self, plan: WindowPlan, key: Any) -> None:
        super().__init__(plan)
        self.key = key
        self.wake = 0
        self.epoch = 0

    def on_event(self, t: int, values: Sequence[Any]) -> None:
        """An event enters."""
        raise NotImplementedError

    @property
    def first(self) -> int | None:
        """The time of its first event; None: it is empty."""
        raise NotImplementedError

    @property
    def count(self) -> int:
        """How many events it holds; one that is in several buckets counts for each."""
        raise NotImplementedError

    def next_due(self) -> int | None:
        """When something happens without an event: see `WindowPlan.inclusive`."""
        raise NotImplementedError

    def ends(self) -> int | None:
        """When it will hold nothing any more if nothing else comes; None: never."""
        raise NotImplementedError

    def dump(self) -> dict[str, Any]:
        """Plain data, but for `items`."""
        raise NotImplementedError

    def load(self, dumped: Any, items: Sequence[Any]) -> None:
        """Puts into an empty window what `dump` gave, and items as `item_row` gave them."""
        raise NotImplementedError

    def load_1(self, dumped: Any) -> None:
        """The same of what was stored in format 1."""
        raise NotImplementedError

    @property
    def items(self) -> deque[Any]:
        """What it holds one after the other."""
        return deque()

    def item_row(self, item: Any) -> Any:
        """An item as plain data."""
        raise NotImplementedError


# ---------------------------------------------------------------------------- sliding


class Sliding(Window):
    """`sliding D`: the events with now − time <= D. O(1) an event, amortised. Where nothing can
    come of it, events stay until the next one comes. `marked`: `having` held last time. `known`:
    for events up to this time nothing waits in the lane of the rule's timers."""

    __slots__ = ("entries", "known", "marked")

    def __init__(self, plan: WindowPlan, key: Any) -> None:
        super().__init__(plan, key)
        self.entries: deque[Entry] = deque()
        self.marked = False
        self.known = -NEVER

    @property
    def size(self) -> int:
        assert self.plan.size is not None
        return self.plan.size

    def on_event(self, t: int, values: Sequence[Any]) -> None:
        self.entries.append((t, *self.add(values)))

    def forget_until(self, time: int) -> None:
        """Lets go of the events up to a time."""
        entries = self.entries
        while entries and entries[0][0] <= time:
            self.remove(entries.popleft()[1:])

    @property
    def first(self) -> int | None:
        return self.entries[0][0] if self.entries else None

    @property
    def last(self) -> int:
        """The time of its last event."""
        return int(self.entries[-1][0])

    @property
    def count(self) -> int:
        return len(self.entries)

    def next_due(self) -> int | None:
        return self.entries[0][0] + self.size if self.entries else None

    def ends(self) -> int | None:
        return self.last + self.size if self.entries else None

    def dump(self) -> dict[str, Any]:
        return {"marked": self.marked}

    def load(self, dumped: Any, items: Sequence[Any]) -> None:
        self.marked = dumped["marked"]
        for row in items:
            self.on_event(*_read_entry(row))

    def load_1(self, dumped: Any) -> None:
        *_, self.marked, entries = dumped
        for t, values, misfits in entries:
            self.on_event(t, self._in_slots(values, misfits))

    def _in_slots(self, values: Sequence[Any], misfits: Sequence[int]) -> list[Any]:
        """The values of an event of which each aggregate has its own, null where it is a misfit."""
        slots = self.plan.slots
        made: list[Any] = [None] * (max(slots, default=-1) + 1)
        for i, slot in enumerate(slots):
            if slot >= 0 and values[i] is not None:
                made[slot] = values[i]
        for slot in {slots[i] for i in misfits}:
            made[slot] = Unfit(made[slot], [i for i in misfits if slots[i] == slot])
        return made

    @property
    def items(self) -> deque[Entry]:
        return self.entries

    def item_row(self, item: Entry) -> Any:
        if not any(value.__class__ is Unfit for value in item):
            return [*item]
        values = [value.value if value.__class__ is Unfit else value for value in item]
        unfit = [[i, v.places] for i, v in enumerate(item) if v.__class__ is Unfit]
        return {"values": values, "unfit": unfit}


def _read_entry(row: Any) -> tuple[int, list[Any]]:
    """Time and values of a row that `Sliding.item_row` gave."""
    values = [*(row["values"] if row.__class__ is dict else row)]
    if row.__class__ is dict:
        for i, places in row["unfit"]:
            values[i] = Unfit(values[i], places)
    return values[0], values[1:]


class LastEvents(Sliding):
    """`sliding N events`: the last N events. O(1) an event."""

    __slots__ = ()

    def on_event(self, t: int, values: Sequence[Any]) -> None:
        if len(self.entries) == self.plan.count:
            self.remove(self.entries.popleft()[1:])
        super().on_event(t, values)

    def next_due(self) -> int | None:
        return None

    def ends(self) -> int | None:
        return None


# ---------------------------------------------------------------------------- buckets that close


class Closing(Window):
    """Windows that are tested when they close."""

    __slots__ = ()

    def on_time(self, now: int) -> Iterator[Bucket | Panes]:
        """What closes at `now`, to be tested at once: it goes on when the next is asked for."""
        raise NotImplementedError

    def open_ones(self, clock: int) -> Iterator[Bucket]:
        """The buckets that are open, as they are now. O(what they hold)."""
        raise NotImplementedError


class Single(Closing):
    """`tumbling D`, and `hopping D every D`: one bucket, `[start, start + D)`. O(1) an event.

    `bucket`: the open one; None: there is none. `due`: the one before, where it has not been closed
    although its end has come: an event may come of something else that was due at this moment.
    """

    __slots__ = ("bucket", "due")

    def __init__(self, plan: WindowPlan, key: Any) -> None:
        super().__init__(plan, key)
        self.bucket: Bucket | None = None
        self.due: Bucket | None = None

    def open(self, t: int) -> Bucket:
        """The new bucket for an event at `t`."""
        self.due = self.bucket
        ((start, end),) = self.plan.grid(t)
        self.bucket = Bucket(self.plan, start, end)
        self.bucket.first = t
        return self.bucket

    def on_event(self, t: int, values: Sequence[Any]) -> None:
        bucket = self.bucket
        if bucket is None or t >= bucket.end:
            bucket = self.open(t)
        bucket.take(t, values)

    def on_time(self, now: int) -> Iterator[Bucket]:
        if self.due is not None:
            bucket, self.due = self.due, None
            yield bucket
        closes = self.closes
        if self.bucket is not None and closes is not None and closes <= now:
            bucket, self.bucket = self.bucket, None
            yield bucket

    @property
    def closes(self) -> int | None:
        """When the open bucket is to be closed."""
        return self.bucket.end if self.bucket is not None else None

    def open_ones(self, clock: int) -> Iterator[Bucket]:
        if self.bucket is not None:
            yield self.bucket

    @property
    def first(self) -> int | None:
        bucket = self.due or self.bucket
        return bucket.first if bucket is not None else None

    @property
    def count(self) -> int:
        return self.bucket.count if self.bucket is not None else 0

    def next_due(self) -> int | None:
        return self.due.end if self.due is not None else self.closes

    def ends(self) -> int | None:
        return self.closes

    def dump(self) -> dict[str, Any]:
        return {"bucket": None if self.bucket is None else self.bucket.dump()}

    def load(self, dumped: Any, items: Sequence[Any]) -> None:
        if dumped["bucket"] is not None:
            self.bucket = Bucket.load(self.plan, dumped["bucket"])

    def load_1(self, dumped: Any) -> None:
        for state in dumped:
            self.bucket = Bucket.load(self.plan, state)


class Session(Single):
    """`session gap D [max D2]`: events no more than D apart, the last no more than D2 after the
    first."""

    __slots__ = ()

    def open(self, t: int) -> Bucket:
        self.bucket = Bucket(self.plan, t, t)
        return self.bucket

    def on_event(self, t: int, values: Sequence[Any]) -> None:
        bucket = self.bucket or self.open(t)
        bucket.take(t, values)
        bucket.end = t

    @property
    def closes(self) -> int | None:
        bucket, plan = self.bucket, self.plan
        if bucket is None:
            return None
        due = bucket.last + (plan.size or 0)
        return due if plan.maximum is None else min(due, bucket.start + plan.maximum)

    def load_1(self, dumped: Any) -> None:
        self.load({"bucket": dumped}, ())


class Buckets(Closing):
    """`hopping D every D2`, each window by itself: an event enters all that contain it, which costs
    O(D / D2)."""

    __slots__ = ("newest", "open")

    def __init__(self, plan: WindowPlan, key: Any) -> None:
        super().__init__(plan, key)
        self.open: deque[Bucket] = deque()
        self.newest: int | None = None
        """The number of the last bucket that has been opened."""

    def taking(self, t: int) -> Sequence[Bucket]:
        """The buckets that an event at `t` enters; those that begin now are opened."""
        grid = self.plan.grid
        latest = grid.latest(t)
        if latest != self.newest:
            begin = grid.earliest(t)
            if self.newest is not None:
                begin = max(begin, self.newest + 1)
            for number in range(begin, latest + 1):
                self.open.append(Bucket(self.plan, *grid.bounds(number)))
                self.open[-1].first = t
            self.newest = latest
        if self.open[0].end <= t:  # due, but not closed yet: see `Single`
            return [bucket for bucket in self.open if t < bucket.end]
        return self.open

    def on_event(self, t: int, values: Sequence[Any]) -> None:
        for bucket in self.taking(t):
            bucket.take(t, values)

    def on_time(self, now: int) -> Iterator[Bucket]:
        while self.open and self.open[0].end <= now:
            yield self.open.popleft()

    def open_ones(self, clock: int) -> Iterator[Bucket]:
        yield from self.open

    @property
    def first(self) -> int | None:
        return self.open[0].first if self.open else None

    @property
    def count(self) -> int:
        return sum(bucket.count for bucket in self.open)

    def next_due(self) -> int | None:
        return self.open[0].end if self.open else None

    def ends(self) -> int | None:
        return self.open[-1].end if self.open else None

    def dump(self) -> dict[str, Any]:
        return {"buckets": [bucket.dump() for bucket in self.open]}

    def load(self, dumped: Any, items: Sequence[Any]) -> None:
        self.load_1(dumped["buckets"])

    def load_1(self, dumped: Any) -> None:
        self.open.extend(Bucket.load(self.plan, state) for state in dumped)
        if self.open:
            self.newest = self.plan.grid.latest(self.open[-1].start)


class Panes(Closing):
    """`hopping D every D2`: an event enters one pane, the time between two ends of windows, and the
    aggregates of all panes of the window that closes next. Panes leave these as windows close. O(1)
    an event and a close, however many windows are open.

    `next`: the number of the window that closes next. Of the newest pane: `until`, when it ends,
    and `closing`, the number of the window that closes first of those that contain it. `older`:
    windows by themselves, of a state that was stored in format 1, or due but not closed (`Single`).
    """

    __slots__ = ("closing", "end", "next", "older", "panes", "same", "start", "until")
    open_items = 1
    marked = False

    def __init__(self, plan: WindowPlan, key: Any) -> None:
        super().__init__(plan, key)
        self.panes: deque[Bucket] = deque()
        self.older: deque[Bucket] = deque()
        self.next = self.closing = self.start = self.end = 0
        self.until = -NEVER
        self.same = False
        """Whether the window that closes next holds what the last two held."""

    def pane(self, t: int) -> Bucket:
        """The new pane for an event at `t`."""
        if self.panes and self.plan.grid.bounds(self.next)[1] <= t:
            self._set_aside()
        self._place(t)
        if not self.panes:
            self.next = self.closing
        pane = Bucket(self.plan, t, self.until)
        self.panes.append(pane)
        return pane

    def _set_aside(self) -> None:
        """The window that closes next is due. O(panes), which is rarely needed."""
        bucket = Bucket(self.plan, *self.plan.grid.bounds(self.next))
        for pane in self.panes:
            bucket.join(pane)
            bucket.count += pane.count
        bucket.first, bucket.last = self.panes[0].first, self.last
        self.older.append(bucket)
        self.next += 1
        self._forget_before(self.plan.grid.bounds(self.next)[0])

    def _place(self, t: int) -> None:
        """The newest pane contains `t`."""
        grid = self.plan.grid
        first, latest = grid.earliest(t), grid.latest(t)
        self.until = min(grid.bounds(first)[1], grid.bounds(latest + 1)[0])
        self.closing = max(first, self._first_number())

    def _first_number(self) -> int:
        """The number of the first window that is not one of the older ones."""
        return self.plan.grid.latest(self.older[-1].start) + 1 if self.older else -NEVER

    def on_event(self, t: int, values: Sequence[Any]) -> None:
        pane = self.pane(t) if t >= self.until else self.panes[-1]
        kept = self.add(values)
        pane.take(t, kept)
        self.enter_older(t, kept)
        self.hasten()

    def enter_older(self, t: int, kept: Sequence[Any]) -> None:
        """An event that has entered is in these windows too."""
        for bucket in self.older:
            if t < bucket.end:
                bucket.take(t, kept)

    def hasten(self) -> None:
        """An event has come: no window that contains it is passed over."""
        self.next = min(self.next, self.closing)

    def pass_over(self) -> None:
        """The window that has closed told nothing. If no event comes, those that hold the same tell
        nothing either: the next is the last of them. While events come, this is not worth while."""
        if self.panes and self.same:
            self.next = max(self.next, self.plan.grid.latest(self.panes[0].first))

    def on_time(self, now: int) -> Iterator[Bucket | Panes]:
        while self.older and self.older[0].end <= now:
            yield self.older.popleft()
        if self.panes:
            self.start, self.end = self.plan.grid.bounds(self.next)
            if self.end <= now:
                self._forget_before(self.start)
                if self.panes:
                    yield self
                self.next += 1
                number, last = len(self.panes), self.last if self.panes else now
                self._forget_before(self.plan.grid.bounds(self.next)[0])
                before = self.plan.grid.bounds(self.next - 2)[1]
                self.same = len(self.panes) == number and last < before

    def _forget_before(self, start: int) -> None:
        while self.panes and self.panes[0].last < start:
            self.leave(self.panes.popleft())
        if not self.panes:
            self.until = -NEVER

    def open_ones(self, clock: int) -> Iterator[Bucket]:
        yield from self.older
        if not self.panes:
            return
        grid, panes, bucket = self.plan.grid, deque(self.panes), Bucket(self.plan, 0, 0)
        for pane in panes:
            bucket.join(pane)
        bucket.last = self.last
        begin = max(grid.earliest(max(clock, panes[0].first)), self._first_number())
        for number in range(begin, grid.latest(self.last) + 1):
            bucket.start, bucket.end = grid.bounds(number)
            while panes[0].last < bucket.start:
                bucket.leave(panes.popleft())
            bucket.first = panes[0].first
            yield bucket

    @property
    def first(self) -> int | None:
        firsts = [held[0].first for held in (self.older, self.panes) if held]
        return min(firsts, default=None)

    @property
    def last(self) -> int:
        """The time of the last event."""
        return self.panes[-1].last

    @property
    def count(self) -> int:
        return sum(pane.count for pane in self.panes) or max(
            (bucket.count for bucket in self.older), default=0
        )

    def next_due(self) -> int | None:
        dues = [self.older[0].end] if self.older else []
        if self.panes:
            dues.append(self.plan.grid.bounds(self.next)[1])
        return min(dues, default=None)

    def ends(self) -> int | None:
        grid = self.plan.grid
        if self.panes:
            return grid.bounds(grid.latest(self.last))[1]
        return self.older[-1].end if self.older else None

    def dump(self) -> dict[str, Any]:
        dumped: dict[str, Any] = {"next": self.next}
        if self.older:
            dumped["buckets"] = [bucket.dump() for bucket in self.older]
        return dumped

    def load(self, dumped: Any, items: Sequence[Any]) -> None:
        self.load_1(dumped.get("buckets", ()))
        for row in items:
            pane = Bucket.load(self.plan, row)
            self.join(pane)
            self.panes.append(pane)
        if self.panes:
            self._place(self.panes[-1].start)
        self.next = dumped["next"]

    def load_1(self, dumped: Any) -> None:
        self.older.extend(Bucket.load(self.plan, state) for state in dumped)

    @property
    def items(self) -> deque[Bucket]:
        return self.panes

    def item_row(self, item: Bucket) -> Any:
        return item.dump()


_FORMS: dict[str, type[Window]] = {
    "sliding": Sliding,
    "sliding_count": LastEvents,
    "tumbling": Single,
    "hopping": Single,
    "session": Session,
}
