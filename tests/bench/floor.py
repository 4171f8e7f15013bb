"""Loops written by hand, each for one rule only: what plain Python does on the same events.

In: events as small structs, in order, in lists. Out: the number of matches, in `matches`. These are
the floor that generated code is compared with, and a second, independent way to the right answers.
Times are in milliseconds, as in the files.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Protocol

import msgspec

TEN_MINUTES = 600_000
READ = 1 << 20


class Event(msgspec.Struct, gc=False):
    """The fields that the questions need."""

    ts: int
    type: str
    user: str
    amount: float
    seq: int


class Loop(Protocol):
    """A question: events are fed to it, `matches` is how many it has found."""

    matches: int

    def feed(self, events: list[Event]) -> None: ...


class DecodeOnly:
    """Does nothing with the events: what reading them costs."""

    def __init__(self) -> None:
        self.matches = 0

    def feed(self, events: list[Event]) -> None:
        pass


class Selective:
    """W1: per user A, then B, then C with a larger amount than A, within ten minutes; all matches.

    A run is [time of A, amount of A, B has come].
    """

    def __init__(self) -> None:
        self.matches = 0
        self._runs: dict[str, list[list[float]]] = {}

    def feed(self, events: list[Event]) -> None:
        runs, matches = self._runs, self.matches
        get = runs.get
        for event in events:
            kind = event.type
            if kind == "A":
                own = get(event.user)
                if own is None:
                    runs[event.user] = [[event.ts, event.amount, False]]
                else:
                    own.append([event.ts, event.amount, False])
            elif kind == "B":
                own = get(event.user)
                if own:
                    low = event.ts - TEN_MINUTES
                    for run in own:
                        if run[0] >= low:
                            run[2] = True
            elif kind == "C":
                own = get(event.user)
                if own:
                    low, amount, kept = event.ts - TEN_MINUTES, event.amount, []
                    for run in own:
                        if run[0] >= low:
                            if run[2] and amount > run[1]:
                                matches += 1
                            else:
                                kept.append(run)
                    own[:] = kept
        self.matches = matches


class SelectiveOne:
    """W1 with the skip that is the default: one match, then all runs of the user are dropped."""

    def __init__(self) -> None:
        self.matches = 0
        self._runs: dict[str, list[list[float]]] = {}

    def feed(self, events: list[Event]) -> None:
        runs, matches = self._runs, self.matches
        get = runs.get
        for event in events:
            kind = event.type
            if kind == "A":
                own = get(event.user)
                if own is None:
                    runs[event.user] = [[event.ts, event.amount, False]]
                else:
                    own.append([event.ts, event.amount, False])
            elif kind == "B":
                own = get(event.user)
                if own:
                    low = event.ts - TEN_MINUTES
                    for run in own:
                        if run[0] >= low:
                            run[2] = True
            elif kind == "C":
                own = get(event.user)
                if own:
                    low, amount = event.ts - TEN_MINUTES, event.amount
                    own[:] = [run for run in own if run[0] >= low]
                    for run in own:
                        if run[2] and amount > run[1]:
                            matches += 1
                            own.clear()
                            break
        self.matches = matches


class Unconditional:
    """W1 without the amount: every A that a B has followed is a match at the next C."""

    def __init__(self) -> None:
        self.matches = 0
        self._opened: dict[str, list[int]] = {}
        self._followed: dict[str, list[int]] = {}

    def feed(self, events: list[Event]) -> None:
        opened, followed = self._opened, self._followed
        for event in events:
            kind, user = event.type, event.user
            if kind == "A":
                opened.setdefault(user, []).append(event.ts)
            elif kind == "B":
                if waiting := opened.pop(user, None):
                    followed.setdefault(user, []).extend(waiting)
            elif kind == "C" and (ready := followed.pop(user, None)):
                low = event.ts - TEN_MINUTES
                self.matches += sum(time >= low for time in ready)


class Newest:
    """W1 without amounts and times where of each user only the newest A, and the newest A that a B
    has followed, is kept: what eql means by a sequence."""

    def __init__(self) -> None:
        self.matches = 0
        self._opened: set[str] = set()
        self._followed: set[str] = set()

    def feed(self, events: list[Event]) -> None:
        for event in events:
            kind, user = event.type, event.user
            if kind == "A":
                self._opened.add(user)
            elif kind == "B" and user in self._opened:
                self._opened.remove(user)
                self._followed.add(user)
            elif kind == "C" and user in self._followed:
                self._followed.remove(user)
                self.matches += 1


class Rising:
    """W2: per user three events in a row with rising amounts; all matches."""

    def __init__(self) -> None:
        self.matches = 0
        self._last: dict[str, tuple[float, int]] = {}

    def feed(self, events: list[Event]) -> None:
        last, matches = self._last, self.matches
        get = last.get
        for event in events:
            amount, before = event.amount, get(event.user)
            if before is not None and amount > before[0]:
                length = before[1] + 1
                matches += length >= 3
                last[event.user] = (amount, length)
            else:
                last[event.user] = (amount, 1)
        self.matches = matches


class Triples:
    """W3, and W1 with `any`: every A, later B, later C of a user within a time, one by one."""

    def __init__(self, within: int) -> None:
        self.matches = 0
        self._within = within
        self._first: dict[str, deque[Event]] = {}
        self._second: dict[str, deque[Event]] = {}

    def feed(self, events: list[Event]) -> None:
        for event in events:
            if event.type == "A":
                self._first.setdefault(event.user, deque()).append(event)
            elif event.type == "B":
                self._second.setdefault(event.user, deque()).append(event)
            elif event.type == "C":
                self.matches += len(self._ended_by(event))

    def _ended_by(self, last: Event) -> list[tuple[Event, Event, Event]]:
        low = last.ts - self._within
        firsts = _since(self._first.get(last.user), low)
        found = []
        for middle in _since(self._second.get(last.user), low):
            for first in firsts:
                if first.seq > middle.seq:
                    break
                found.append((first, middle, last))
        return found


class OneTriple:
    """W3 with the skip that is the default: whether there is any A, B, `last`; then all is dropped.

    Of each B only the newest A before it is remembered: when that is too old, all are.
    """

    def __init__(self, within: int, last: str = "C") -> None:
        self.matches = 0
        self._within = within
        self._last = last
        self._first: int | None = None
        self._pair: int | None = None

    def feed(self, events: list[Event]) -> None:
        for event in events:
            if event.type == "A":
                self._first = event.ts
            elif event.type == "B":
                self._pair = self._first
            elif event.type == self._last and self._pair is not None:
                if self._pair >= event.ts - self._within:
                    self.matches += 1
                    self._first = None
                self._pair = None


def _since(events: deque[Event] | None, low: int) -> deque[Event]:
    """The events without those that are too old, which are dropped."""
    if events is None:
        return deque()
    while events and events[0].ts < low:
        events.popleft()
    return events


class ManyRules:
    """W4: many rules like W1, found by the type of the event; one loop for all of them."""

    def __init__(self, types: Iterable[tuple[str, str, str]]) -> None:
        self.matches = 0
        self._uses: dict[str, list[tuple[int, dict[str, list[list[float]]]]]] = {}
        for rule in types:
            runs: dict[str, list[list[float]]] = {}
            for step, kind in enumerate(rule):
                self._uses.setdefault(kind, []).append((step, runs))

    def feed(self, events: list[Event]) -> None:
        get = self._uses.get
        for event in events:
            uses = get(event.type)
            if uses is not None:
                for step, runs in uses:
                    self._take(event, step, runs)

    def _take(self, event: Event, step: int, runs: dict[str, list[list[float]]]) -> None:
        own = runs.get(event.user)
        if step == 0:
            if own is None:
                runs[event.user] = [[event.ts, event.amount, False]]
            else:
                own.append([event.ts, event.amount, False])
        elif own:
            low, kept = event.ts - TEN_MINUTES, []
            for run in own:
                if run[0] < low:
                    continue
                if step == 1:
                    run[2] = True
                elif run[2] and event.amount > run[1]:
                    self.matches += 1
                    continue
                kept.append(run)
            own[:] = kept


FIVE_MINUTES = 300_000


class Counting:
    """W10: how often per user the count of the last five minutes rises to a number.

    Per user the times of the events; those that are too old go when the next comes, for a count
    rises by events only.
    """

    def __init__(self, least: int) -> None:
        self.matches = 0
        self._least = least
        self._times: dict[str, deque[int]] = {}
        self._above: set[str] = set()

    def feed(self, events: list[Event]) -> None:
        get, above, least, matches = self._times.get, self._above, self._least, self.matches
        for event in events:
            user, time = event.user, event.ts
            times = get(user)
            if times is None:
                times = self._times[user] = deque()
            low = time - FIVE_MINUTES
            while times and times[0] < low:
                times.popleft()
            if len(times) < least:
                above.discard(user)
            times.append(time)
            if len(times) >= least and user not in above:
                above.add(user)
                matches += 1
        self.matches = matches


class Averaging:
    """W10: how often per user the mean amount of the last five minutes rises above a number, by an
    event or because one leaves.

    All events wait in one line until they are too old: so each leaves at its moment, and per user a
    running sum, of whole cents, is enough. Events of one moment leave together.
    """

    def __init__(self, above: int) -> None:
        self.matches = 0
        self._above = above * 100
        self._line: deque[tuple[int, _Mean, int]] = deque()
        self._users: dict[str, _Mean] = {}

    def feed(self, events: list[Event]) -> None:
        line, above, get = self._line, self._above, self._users.get
        for event in events:
            time = event.ts
            low = time - FIVE_MINUTES
            while line and line[0][0] < low:
                self._let_go(line[0][0])
            user = get(event.user)
            if user is None:
                user = self._users[event.user] = _Mean()
            cents = round(event.amount * 100)
            line.append((time, user, cents))
            user.count += 1
            user.cents += cents
            if user.cents > above * user.count:
                if not user.above:
                    user.above = True
                    self.matches += 1
            else:
                user.above = False

    def _let_go(self, time: int) -> None:
        """All events of a moment leave."""
        line, above = self._line, self._above
        users = []
        while line and line[0][0] == time:
            _, user, cents = line.popleft()
            user.count -= 1
            user.cents -= cents
            users.append(user)
        for user in users:
            if user.cents <= above * user.count:
                user.above = False
            elif not user.above:
                user.above = True
                self.matches += 1


class _Mean:
    """The events of a user: how many, and their sum; whether the mean is above the number."""

    __slots__ = ("above", "cents", "count")

    def __init__(self) -> None:
        self.above = False
        self.cents = 0
        self.count = 0


class Highest:
    """W10: the same for the largest amount falling below a number. Per user the amounts that may
    yet become the largest, with their times."""

    def __init__(self, below: int) -> None:
        self.matches = 0
        self._below = below
        self._line: deque[tuple[int, str]] = deque()
        self._users: dict[str, deque[tuple[float, int]]] = {}
        self._low: set[str] = set()

    def feed(self, events: list[Event]) -> None:
        line, users = self._line, self._users
        for event in events:
            low = event.ts - FIVE_MINUTES
            while line and line[0][0] < low:
                self._let_go(line[0][0])
            line.append((event.ts, event.user))
            largest = users.setdefault(event.user, deque())
            while largest and largest[-1][0] < event.amount:
                largest.pop()
            largest.append((event.amount, event.ts))
            self._test(event.user, largest)

    def _let_go(self, time: int) -> None:
        line = self._line
        while line and line[0][0] == time:
            _, user = line.popleft()
            largest = self._users[user]
            while largest and largest[0][1] <= time:
                largest.popleft()
            self._test(user, largest)

    def _test(self, user: str, largest: deque[tuple[float, int]]) -> None:
        if not largest or largest[0][0] >= self._below:
            self._low.discard(user)
        elif user not in self._low:
            self._low.add(user)
            self.matches += 1


class Ranking:
    """W10: the same for the 95th percentile falling below a number. Per user a sorted list."""

    def __init__(self, below: int) -> None:
        self.matches = 0
        self._below = below
        self._line: deque[tuple[int, str, float]] = deque()
        self._users: dict[str, list[float]] = {}
        self._low: set[str] = set()

    def feed(self, events: list[Event]) -> None:
        line, users = self._line, self._users
        for event in events:
            low = event.ts - FIVE_MINUTES
            while line and line[0][0] < low:
                self._let_go(line[0][0])
            line.append((event.ts, event.user, event.amount))
            amounts = users.setdefault(event.user, [])
            insort(amounts, event.amount)
            self._test(event.user, amounts)

    def _let_go(self, time: int) -> None:
        line, gone = self._line, []
        while line and line[0][0] == time:
            _, user, amount = line.popleft()
            amounts = self._users[user]
            del amounts[bisect_left(amounts, amount)]
            gone.append(user)
        for user in gone:
            self._test(user, self._users[user])

    def _test(self, user: str, amounts: list[float]) -> None:
        rank = 0.95 * (len(amounts) - 1)
        below = int(rank)
        if not amounts:
            self._low.discard(user)
            return
        value = amounts[below]
        if below + 1 < len(amounts):
            value += (amounts[below + 1] - value) * (rank - below)
        if value >= self._below:
            self._low.discard(user)
        elif user not in self._low:
            self._low.add(user)
            self.matches += 1


# ---------------------------------------------------------------------------- reading


def read_lines(path: Path) -> Iterator[list[Event]]:
    """The events of a file, decoded line by line, as a program that wants each line does it."""
    decode = msgspec.json.Decoder(Event).decode
    with path.open("rb") as file:
        while block := file.readlines(READ):
            yield list(map(decode, block))


def read_chunks(path: Path) -> Iterator[list[Event]]:
    """The events of a file, decoded a mebibyte at a time: the fastest way there is."""
    decode = msgspec.json.Decoder(Event).decode_lines
    with path.open("rb") as file:
        while block := file.read(READ):
            yield decode(block + file.readline())


def run(loop: Loop, parts: Iterable[list[Event]]) -> int:
    """Feeds all parts; the number of matches."""
    feed: Callable[[list[Event]], None] = loop.feed
    for part in parts:
        feed(part)
    return loop.matches
