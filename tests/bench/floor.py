"""Loops written by hand, each for one rule only: what plain Python does on the same events.

In: events as small structs, in order, in lists. Out: the number of matches, in `matches`. These are
the floor that generated code is compared with, and a second, independent way to the right answers.
Times are in milliseconds, as in the files.
"""

from __future__ import annotations

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
