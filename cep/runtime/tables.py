"""What rules know of events outside their runs: rows of tables, and what a stream has seen already.

`FileTable` holds the rows of a file, `StreamTable` the latest event of each key of a stream, and
`Repeats` which keys of a stream with `dedup` came less than D ago. Each program has its own. They
keep no more than the language asks for: rows go when their `ttl` is over, keys of `dedup` when
their window is, both by timers of the engine clock, also when no event comes any more.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Protocol

from cep.event import lookup, unbox
from cep.key import key_of, plain_key

Path = tuple[str, ...]
Rows = Mapping[Any, Mapping[str, Any]]
"""Rows of a file by their keys (as of `cep.key.key_of`)."""

AFTER_RULES = 1 << 30
"""The place of tables in the order of timers: a row is there for all that is due at its end."""


class _Timers(Protocol):
    def add(self, due: int, rule: Any, state: Any, exclusive: bool = False) -> None: ...


class Table(Protocol):
    """What `N[key].path` and `keys from N` ask."""

    def find(self, key: Any, path: Path) -> Any:
        """The value at `path` in the row of a key; None without such a row or value."""

    def finder(self, path: Path) -> Callable[[Any], Any]:
        """`find` for one path, as rules call it."""

    def keys(self) -> Iterable[Any]:
        """The keys that have a row, as values of the language."""


class _Wake:
    """The pending wake-up of a table or a `dedup`."""

    __slots__ = ("key", "wake")

    def __init__(self) -> None:
        self.wake = 0
        self.key: tuple[Any, ...] = ()


class FileTable:
    """The rows of a file.

    >>> FileTable({"ann": {"team": "ops", "site": {"city": "Rome"}}}).find("ann", ("site", "city"))
    'Rome'
    """

    __slots__ = ("rows",)

    def __init__(self, rows: Rows) -> None:
        self.rows = rows

    def find(self, key: Any, path: Path) -> Any:
        row = self.rows.get(key_of(key))
        return None if row is None else unbox(lookup(row, path))

    def finder(self, path: Path) -> Callable[[Any], Any]:
        return lambda key: self.find(key, path)

    def keys(self) -> Iterable[Any]:
        return map(plain_key, self.rows)


class StreamTable:
    """The latest event of each key of a stream: what rules read of it, as values by path.

    A row lives until the clock passes its event's time + `ttl` (None: for ever). Memory: one row
    for each key that came in that time.
    """

    def __init__(self, ttl: int | None, timers: _Timers) -> None:
        self.ttl = ttl
        self.timers = timers
        self.depth = self.order = AFTER_RULES
        self.tells = False
        self.rows: OrderedDict[Any, tuple[int, Mapping[Path, Any]]] = OrderedDict()
        self.changed: set[Any] | None = None
        """Where state is kept: the keys whose rows have changed in this epoch."""
        self._wake = _Wake()

    def find(self, key: Any, path: Path) -> Any:
        row = self.rows.get(key_of(key))
        return None if row is None else row[1].get(path)  # an earlier version kept other paths

    def finder(self, path: Path) -> Callable[[Any], Any]:
        return lambda key: self.find(key, path)

    def keys(self) -> Iterable[Any]:
        return map(plain_key, self.rows)

    def put(self, key: Any, time: int, row: Mapping[Path, Any]) -> None:
        """The row of a key from now on; an event without a key (None) changes nothing."""
        if key is None:
            return
        self.rows[key] = (time, row)
        if self.changed is not None:
            self.changed.add(key)
        if self.ttl is not None:
            self.rows.move_to_end(key)
            self._arm()

    def _arm(self) -> None:
        if not self._wake.wake and self.rows:
            assert self.ttl is not None
            oldest, _ = next(iter(self.rows.values()))
            self._wake.wake = oldest + self.ttl + 1
            self.timers.add(self._wake.wake, self, self._wake)

    def on_time(self, _: Any, now: int) -> None:
        """Drops the rows whose time is over when the clock reaches `now`."""
        assert self.ttl is not None
        self._wake.wake = 0
        while self.rows:
            time, _row = next(iter(self.rows.values()))
            if time + self.ttl >= now:
                break
            key, _ = self.rows.popitem(last=False)
            if self.changed is not None:
                self.changed.add(key)
        self._arm()

    def check(self) -> None:
        """Raises AssertionError where a table is not as it must be. For tests."""
        times = [time for time, _ in self.rows.values()]
        if self.ttl is not None:
            assert times == sorted(times), "rows stand in the order in which they expire"
            due = times[0] + self.ttl + 1 if times else 0
            assert not times or 0 < self._wake.wake <= due, "the oldest row has a wake-up"


class Repeats:
    """The `dedup` of a stream: which keys came less than `duration` ago.

    A window opens at an event that is no repeat, is not extended, and ends before `t + duration`.
    Memory: one entry for each key that came in the last 1.1 durations.

    >>> from cep.clock.timers import Timers
    >>> repeats = Repeats(10, Timers())
    >>> [repeats.has(("a",), time) for time in (0, 9, 10, 11)]
    [False, True, False, True]
    """

    def __init__(self, duration: int, timers: _Timers) -> None:
        self.duration = duration
        self.timers = timers
        self.depth = self.order = AFTER_RULES
        self.tells = False
        self.windows: OrderedDict[tuple[Any, ...], int] = OrderedDict()
        self.changed: set[Any] | None = None
        """Where state is kept: the keys whose windows have changed in this epoch."""
        self.dropped = 0
        self._wake = _Wake()

    def has(self, key: tuple[Any, ...], time: int) -> bool:
        """Whether an event with this key is a repeat; if not, it opens a window. To be asked once
        for each event. A key with a missing part (None) is never a repeat."""
        if None in key:
            return False
        end = self.windows.get(key)
        if end is not None and time < end:
            self.dropped += 1
            return True
        self.windows[key] = time + self.duration
        if self.changed is not None:
            self.changed.add(key)
        self.windows.move_to_end(key)
        self._arm()
        return False

    def _arm(self) -> None:
        """Wakes up for cleaning only, so for many windows at once."""
        if not self._wake.wake and self.windows:
            first_end = next(iter(self.windows.values()))
            self._wake.wake = first_end + self.duration // 10
            self.timers.add(self._wake.wake, self, self._wake, exclusive=True)

    def on_time(self, _: Any, now: int) -> None:
        """Forgets the windows that are over when the clock reaches `now`."""
        self._wake.wake = 0
        while self.windows and next(iter(self.windows.values())) <= now:
            key, _ = self.windows.popitem(last=False)
            if self.changed is not None:
                self.changed.add(key)
        self._arm()

    def check(self) -> None:
        """Raises AssertionError where the windows are not as they must be. For tests."""
        ends = list(self.windows.values())
        assert ends == sorted(ends), "windows stand in the order in which they end"
        assert not ends or self._wake.wake, "the first window has a wake-up"
