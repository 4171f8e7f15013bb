"""Where the buckets of tumbling and hopping windows lie.

In: their size and step, and a time zone for those of whole days. Out: which buckets contain a time,
and from when to when each of them is. All times are microseconds UTC.
"""

from __future__ import annotations

from contextlib import suppress
from datetime import UTC, date, datetime, timedelta, tzinfo

from cep.event_time import find_zone

DAY = 86_400_000_000
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_FIRST_DAY = date(1970, 1, 1)
_CALENDAR = ((date.min - _FIRST_DAY).days, (date.max - _FIRST_DAY).days)
"""The first and the last day there are; a zone may shift neither."""


class Grid:
    """Where buckets lie: aligned to the epoch, or, for whole days in a time zone, to local
    midnights, from one to another however long the day between them was. Called with a time it
    gives the buckets (start, end) that contain it, the earliest first. Buckets have numbers, in
    their order."""

    def __init__(self, size: int, step: int, timezone: str | None = None) -> None:
        self.size = size
        self.step = step
        self._zone: tzinfo | None = None
        self._today: tuple[int, int, int] = (0, 0, 0)
        """When a local day begins and ends, and its number."""
        if timezone is not None and size % DAY == 0 and step % DAY == 0:
            self._zone = find_zone(timezone)
            self.size, self.step = size // DAY, step // DAY

    def __call__(self, t: int) -> list[tuple[int, int]]:
        return [self.bounds(n) for n in range(self.earliest(t), self.latest(t) + 1)]

    def latest(self, t: int) -> int:
        """The number of the last bucket that begins by `t`."""
        return self._unit(t) // self.step

    def earliest(self, t: int) -> int:
        """The number of the first bucket that ends after `t`."""
        return (self._unit(t) - self.size) // self.step + 1

    def bounds(self, number: int) -> tuple[int, int]:
        """Start and end of a bucket."""
        start, zone = number * self.step, self._zone
        if zone is None:
            return start, start + self.size
        return midnight(start, zone), midnight(start + self.size, zone)

    def _unit(self, t: int) -> int:
        """The time, or the local day, counted from 1970-01-01."""
        if self._zone is None:
            return t
        begin, end, day = self._today
        if not begin <= t < end:
            day = _day(t, self._zone)
            self._today = midnight(day, self._zone), midnight(day + 1, self._zone), day
        return day


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
