"""Aggregate rules: the windows of each key, by keeping all their events (section 6).

What an aggregate takes of an event is asked when the event comes, so a table gives the row of that
moment. Every aggregate is computed anew from what was taken whenever it is asked for.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, timedelta
from zoneinfo import ZoneInfo

from cep.testing.reference_aggregates import aggregate
from cep.testing.reference_functions import EPOCH, Failure, moment
from cep.testing.reference_values import (
    Event,
    Found,
    Key,
    Scope,
    Taken,
    Timer,
    World,
    holds,
    key_of,
    value_of,
)
from dsl import checked

DAY = 86_400_000_000


@dataclass(frozen=True, slots=True)
class Entry:
    """An event of a window: its time, and what the aggregates that count it take of it, by name."""

    time: int
    values: Mapping[str, object]


@dataclass(slots=True)
class Bucket:
    """The events of one window. `closes`: when it does, for windows that close."""

    events: list[Entry] = field(default_factory=list)
    closes: int | None = None
    reported: bool = False


@dataclass(slots=True)
class KeyWindows:
    """The windows of a key; `armed` is for sliding ones: the condition was not true last time."""

    buckets: dict[int, Bucket] = field(default_factory=dict)
    armed: bool = True


class WindowMatcher:
    """One aggregate rule over all its keys."""

    def __init__(self, rule: checked.Rule, pattern: checked.WindowPattern, world: World) -> None:
        self.rule = rule
        self.pattern = pattern
        self.world = world
        self.keys: dict[Key, KeyWindows] = {}

    def begin(self, time: int) -> None:
        """The first tick of the clock: nothing happens."""

    def waiting(self) -> Iterator[tuple[Key, int | None, int]]:
        """Windows are no absences."""
        yield from ()

    def event(self, event: Event, views: Mapping[str, Taken]) -> list[Found]:
        """Put an event into the windows it belongs to."""
        taken = views.get(self.pattern.stream)
        if taken is None:
            return []
        scope = Scope(self.world, event.time, taken)
        key = key_of([value_of(value, scope) for value in self.pattern.by])
        if key is None:
            return []
        scope = Scope(self.world, event.time, taken, key=[value for _, value in key])
        if not holds(self.pattern.where, scope):
            return []
        state = self.keys.setdefault(key, KeyWindows())
        if self.pattern.kind in ("sliding", "sliding_count"):
            return self._slide(key, state, self._entry(scope))
        return self._fill(key, state, self._entry(scope))

    def _entry(self, scope: Scope) -> Entry:
        values = {
            each.name: True if each.argument is None else value_of(each.argument, scope)
            for each in self.pattern.fields
            if holds(each.where, scope)
        }
        return Entry(scope.now, values)

    def timers(self) -> Iterator[Timer]:
        """Expiries of sliding windows, ends of the others."""
        for key, state in self.keys.items():
            for bucket in state.buckets.values():
                if self.pattern.kind == "sliding":
                    for entry in bucket.events:
                        yield Timer(entry.time + (self.pattern.size or 0), 1, key)
                elif bucket.closes is not None:
                    phase = 1 if self.pattern.kind == "session" else 0
                    yield Timer(bucket.closes, phase, key)

    def fire(self, time: int, key: Key) -> list[Found]:
        """Events leave a sliding window, or windows close."""
        state = self.keys[key]
        if self.pattern.kind == "sliding":
            return self._expire(key, state, time)
        found = []
        for start, bucket in sorted(state.buckets.items()):
            if bucket.closes == time:
                del state.buckets[start]
                if not bucket.reported:
                    found += self._test(key, bucket, time)
        return found

    # ------------------------------------------------------------------------ sliding

    def _slide(self, key: Key, state: KeyWindows, entry: Entry) -> list[Found]:
        bucket = state.buckets.setdefault(0, Bucket())
        bucket.events.append(entry)
        if self.pattern.count is not None:
            del bucket.events[: -self.pattern.count]
        now = entry.time
        if self.rule.having is None or self.rule.report == "every_event":
            return self._test(key, bucket, now)
        return self._edge(key, state, bucket, now)

    def _expire(self, key: Key, state: KeyWindows, time: int) -> list[Found]:
        bucket = state.buckets[0]
        size = self.pattern.size or 0
        bucket.events = [entry for entry in bucket.events if entry.time + size > time]
        if not bucket.events:
            del self.keys[key]
            return []
        if self.rule.having is None or self.rule.report == "every_event":
            return []
        return self._edge(key, state, bucket, time)

    def _edge(self, key: Key, state: KeyWindows, bucket: Bucket, now: int) -> list[Found]:
        """Report when the condition has become true."""
        found = self._test(key, bucket, now)
        was_armed, state.armed = state.armed, not found
        return found if was_armed else []

    # ------------------------------------------------------------------------ windows that close

    def _fill(self, key: Key, state: KeyWindows, entry: Entry) -> list[Found]:
        found: list[Found] = []
        for start, closes in self._places(state, entry.time):
            bucket = state.buckets.setdefault(start, Bucket())
            bucket.events.append(entry)
            bucket.closes = closes
            if self.rule.report == "on_update" and not bucket.reported:
                update = self._test(key, bucket, entry.time)
                bucket.reported = bool(update)
                found += update
        return found

    def _places(self, state: KeyWindows, time: int) -> list[tuple[int, int]]:
        """The windows (start, end) that an event at `time` belongs to."""
        if self.pattern.kind == "session":
            return [self._session(state, time)]
        size = self.pattern.size or 0
        step = self.pattern.step or size
        zone = self.pattern.timezone
        if zone is not None and size % DAY == 0 and step % DAY == 0:
            return _days(time, size // DAY, step // DAY, ZoneInfo(zone))
        latest = time - time % step
        starts = range(latest, time - size, -step)
        return [(start, start + size) for start in sorted(starts)]

    def _session(self, state: KeyWindows, time: int) -> tuple[int, int]:
        """The one open session, or a new one: timers have closed what was over before."""
        start = next(iter(state.buckets), time)
        closes = time + (self.pattern.size or 0)
        if self.pattern.maximum is not None:
            closes = min(closes, start + self.pattern.maximum)
        return start, closes

    # ------------------------------------------------------------------------ aggregates

    def _test(self, key: Key, bucket: Bucket, now: int) -> list[Found]:
        """The match, when the window's aggregates satisfy `having`."""
        scope = Scope(self.world, now, key=[value for _, value in key])
        window: dict[str, object] = {}
        for each in self.pattern.fields:
            window[each.name] = self._aggregate(each, bucket.events, scope)
        scope = Scope(self.world, now, key=scope.key, window=window)
        for name, value in self.pattern.derived:
            window[name] = value_of(value, scope)
        if not holds(self.rule.having, scope):
            return []
        times = [entry.time for entry in bucket.events]
        return [Found("match", key, now, window=window, first=times[0], last=times[-1])]

    def _aggregate(
        self, each: checked.WindowField, entries: Sequence[Entry], scope: Scope
    ) -> object:
        values = [entry.values[each.name] for entry in entries if each.name in entry.values]
        if each.function == "rate":
            size = self.pattern.size if self.pattern.kind != "session" else None
            return len(values) / (size / 1_000_000) if size else None
        extra = [value_of(value, scope) for value in each.extra]
        try:
            return aggregate(each.function, values, distinct=each.distinct, extra=extra)
        except (Failure, ArithmeticError, ValueError, TypeError):
            return None


def _days(time: int, size: int, step: int, zone: ZoneInfo) -> list[tuple[int, int]]:
    """Windows of whole days, from local midnight to local midnight, aligned to 1970-01-01."""
    today = (moment(time).astimezone(zone).date() - date(1970, 1, 1)).days
    latest = today - today % step
    starts = sorted(range(latest, today - size, -step))
    return [(_midnight(start, zone), _midnight(start + size, zone)) for start in starts]


def _midnight(day: int, zone: ZoneInfo) -> int:
    local = datetime(1970, 1, 1, tzinfo=zone) + timedelta(days=day)
    return (local.astimezone(UTC) - EPOCH) // timedelta(microseconds=1)
