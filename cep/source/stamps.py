"""Time stamps as log files write them, made ISO 8601 text.

Known are ISO stamps, those of syslog without a year (`Dec 10 06:55:46`), of web servers
(`10/Oct/2000:13:55:36 -0700`), and with slashes (`2024/01/31 10:00:00`). A stamp without a zone
stays without one: it means UTC, or the `timezone` of the stream.

A missing year is inferred: the first stamp lies in the latest year that keeps it out of the
future (of `latest`: when the file was last changed, or now; with a day to spare for zones); each
later one in the year that brings it closest to its predecessor, so a file may run from December
into January, and a straggler from December does not throw it off.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import date, datetime, timedelta
from functools import lru_cache

_MONTHS = {
    name: number
    for number, name in enumerate(
        ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"), 1
    )
}
_SYSLOG = re.compile(
    r"(?P<month>[A-Z][a-z][a-z]) +(?P<day>\d{1,2})(?: (?P<year>\d{4}))?"
    r" (?P<clock>\d\d:\d\d:\d\d(?:\.\d{1,9})?)",
    re.ASCII,
)
_WEB = re.compile(
    r"(?P<day>\d\d)/(?P<month>[A-Z][a-z][a-z])/(?P<year>\d{4}):(?P<clock>\d\d:\d\d:\d\d)"
    r"(?: (?P<zone>[+-]\d{4}))?",
    re.ASCII,
)
_ISO = re.compile(
    r"\d{4}([-/])\d\d\1\d\d[T ]\d\d:\d\d(?::\d\d(?:[.,]\d{1,9})?)? ?(?:Z|UTC\b|[+-]\d\d:?\d\d)?",
    re.ASCII,
)


class Years:
    """The years of stamps that name none, in the order of a file."""

    def __init__(self, latest: Callable[[], datetime], first_year: int | None = None) -> None:
        self._latest = latest
        self._first_year = first_year
        self._last: date | None = None

    @property
    def context(self) -> str | None:
        """The day of the last stamp, as ISO text."""
        return self._last.isoformat() if self._last is not None else None

    @context.setter
    def context(self, day: str | None) -> None:
        self._last = date.fromisoformat(day) if day is not None else None

    def of(self, month: int, day: int) -> int | None:
        """The year of the next stamp; None for a day that no year has."""
        if self._last is not None and (self._last.month, self._last.day) == (month, day):
            return self._last.year
        found = self._first(month, day) if self._last is None else self._nearest(month, day)
        if found is None:
            return None
        self._last = found
        return found.year

    def _first(self, month: int, day: int) -> date | None:
        if self._first_year is not None:
            return _date(self._first_year, month, day)
        latest = self._last_day()
        years = range(latest.year, latest.year - 9, -1)
        dates = [found for year in years if (found := _date(year, month, day))]
        return next((found for found in dates if found <= latest), None)

    def _nearest(self, month: int, day: int) -> date | None:
        assert self._last is not None
        last, year = self._last, self._last.year
        dates = [found for y in (year, year + 1, year - 1) if (found := _date(y, month, day))]
        if self._first_year is None:
            latest = self._last_day()
            dates = [found for found in dates if found <= latest]
        return min(dates, key=lambda found: abs(found - last), default=None)

    def _last_day(self) -> date:
        return self._latest().date() + timedelta(days=1)


class Stamps:
    """Reads stamps of all known forms, for one file."""

    def __init__(self, years: Years) -> None:
        self._years = years

    @property
    def context(self) -> str | None:
        """What is known of earlier stamps."""
        return self._years.context

    @context.setter
    def context(self, day: str | None) -> None:
        self._years.context = day

    def syslog(self, text: str, start: int = 0) -> tuple[str, int] | None:
        """The ISO text of a syslog stamp that begins at `start`, and where it ends."""
        match = _SYSLOG.match(text, start)
        if match is None or (month := _MONTHS.get(match["month"])) is None:
            return None
        day = int(match["day"])
        year = int(match["year"]) if match["year"] else self._years.of(month, day)
        if year is None:
            return None
        return f"{year:04}-{month:02}-{day:02}T{match['clock']}", match.end()

    def leading(self, text: str, start: int = 0) -> tuple[str, int] | None:
        """The ISO text of a stamp of any known form at `start`, and where it ends."""
        if match := _ISO.match(text, start):
            return match[0].strip().replace("/", "-"), match.end()
        return web(text, start) or self.syslog(text, start)

    def whole(self, text: str) -> str:
        """A text that is just a stamp as ISO text; any other text as it is."""
        found = self.leading(text)
        return found[0] if found is not None and found[1] == len(text) else text


@lru_cache(maxsize=1024)
def web(text: str, start: int = 0) -> tuple[str, int] | None:
    """The ISO text of a web server's stamp that begins at `start`, and where it ends."""
    match = _WEB.match(text, start)
    if match is None or (month := _MONTHS.get(match["month"])) is None:
        return None
    return f"{match['year']}-{month:02}-{match['day']}T{match['clock']}{match['zone'] or ''}", (
        match.end()
    )


def _date(year: int, month: int, day: int) -> date | None:
    try:
        return date(year, month, day)
    except ValueError:
        return None
