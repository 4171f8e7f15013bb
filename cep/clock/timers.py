"""Timers of the engine clock: what is due next, in a fixed order.

A timer is due at a moment of event time. The ends of the language are of two kinds: *exclusive*
ones (buckets, dedup) take effect when the clock reaches T, *inclusive* ones (`within`, absence)
when it has passed T, which for integers of microseconds is when it reaches T + 1. Both are kept
as the moment at which they fire; where they coincide, the inclusive one (whose T is earlier) goes
first, then a rule before those that read what it emits (they see all events of T before they do
what is due at T), then the rule's name, then the key.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from heapq import heappop, heappush, heapreplace
from typing import Any, Protocol

from cep.key import key_order

NEVER = 1 << 62
"""A time after every other."""


class Timed(Protocol):
    """A rule as its timers know it: how far it is from the input, where it stands among the rules,
    and what it does when due."""

    depth: int
    order: int
    tells: bool
    """Whether anything may come of its wake-ups; else the order of keys does not matter."""

    def on_time(self, state: Any, now: int) -> None: ...


class Timers:
    """Pending wake-ups.

    `due` is the moment of the earliest. A wake-up whose state has since asked for another moment
    (`state.wake`) is stale and passed over. Adding costs O(log moments), where many wake-ups may
    share a moment; O(1) in a lane, where a rule appends inclusive ones, none earlier than the last.
    """

    def __init__(self) -> None:
        self.due = NEVER
        self._moments: list[tuple[int, int]] = []
        self._pending: dict[tuple[int, int], list[Any]] = {}
        """Who waits for each moment: a rule and its state, by turns. A pair for each would be one
        more object that the collector has to visit."""
        self._last: list[Any] = []
        self._last_due: int | None = None
        """The moment of the last `add`, where it was an inclusive one, and who waits for it: keys
        that begin one after the other often wait for the same."""
        self._lanes: list[tuple[Timed, deque[Any]]] = []
        self._numbers: dict[int, int] = {}
        """The place of each lane, by its identity."""
        self._heads: list[tuple[int, int]] = []
        """A heap of (moment, lane): for each lane that holds something a moment no later than its
        first. Put right when it comes to the top, so that no lane is looked at in vain."""
        self._listed: dict[int, int] = {}
        """The moment that counts for a lane in `_heads`."""

    def lane(self, rule: Timed) -> deque[Any]:
        """A lane for the wake-ups of a rule: a moment and a state, by turns. Whoever puts the first
        one into it says so (`expect`)."""
        lane: deque[Any] = deque()
        self._numbers[id(lane)] = len(self._lanes)
        self._lanes.append((rule, lane))
        return lane

    def expect(self, due: int, lane: deque[Any]) -> None:
        """Something is put into an empty lane. O(log lanes)."""
        number = self._numbers[id(lane)]
        if due < self._listed.get(number, NEVER):
            self._listed[number] = due
            heappush(self._heads, (due, number))
        self.due = min(self.due, due)

    def alone(self, now: int) -> Any:
        """The rule of the only lane there is, where something is due in it by `now` and nothing is
        elsewhere; else None. So it can do all of that at once."""
        if len(self._lanes) != 1 or self.has_others(now):
            return None
        rule, lane = self._lanes[0]
        if lane and lane[0] <= now:
            return rule
        self.due = self._next()[0]
        return None

    def has_others(self, now: int) -> bool:
        """Whether anything is due by `now` that is in no lane."""
        return bool(self._moments) and self._moments[0][0] <= now

    def add(self, due: int, rule: Timed, state: Any, exclusive: bool = False) -> None:
        """Wakes `rule` for `state` when the clock reaches `due`."""
        if due == self._last_due and not exclusive:
            self._last += (rule, state)
            return
        moment = (due, 1 if exclusive else 0)
        waiting = self._pending.get(moment)
        if waiting is None:
            self._pending[moment] = [rule, state]
            heappush(self._moments, moment)
            if due < self.due:
                self.due = due
        else:
            waiting += (rule, state)
        if not exclusive:
            self._last, self._last_due = self._pending[moment], due

    def forget_stale(self) -> None:
        """Lets go of wake-ups that would be passed over. O(all that are pending)."""
        for (due, _), waiting in self._pending.items():
            kept = [one for one in _pairs(waiting) if one[1].wake == due]
            waiting[:] = [part for one in kept for part in one]
        for _, lane in self._lanes:
            waiting = [*lane]
            lane.clear()
            for due, state in zip(waiting[::2], waiting[1::2], strict=True):
                if state.wake == due:
                    lane += (due, state)

    def take(self, now: int) -> Iterator[tuple[int, Timed, Any]]:
        """Takes the wake-ups due when the clock reaches `now`, in order: (moment, rule, state).

        Wake-ups that are added on the way and are due too come in their turn.
        """
        return self._take((now, 1))

    def take_passed(self, now: int) -> Iterator[tuple[int, Timed, Any]]:
        """Takes those due when the clock passes `now` and goes no further: the ends at `now` are
        over, inclusive ones too, and nothing later is."""
        return self._take((now + 1, 0))

    def _take(self, until: tuple[int, int]) -> Iterator[tuple[int, Timed, Any]]:
        while (moment := self._next()) <= until:
            due = moment[0]
            live: list[tuple[Timed, Any]] = []
            if self._moments and self._moments[0] == moment:
                heappop(self._moments)
                waiting = self._pending.pop(moment)
                self._last_due = None
                live = [one for one in _pairs(waiting) if one[1].wake == due]
            if not moment[1]:
                while self._first_of_lanes() == due:
                    rule, lane = self._lanes[self._heads[0][1]]
                    while lane and lane[0] == due:
                        lane.popleft()
                        state = lane.popleft()
                        if state.wake == due:
                            live.append((rule, state))
            if len(live) > 1:
                live.sort(key=_order)
            for rule, state in live:
                if state.wake == due:
                    yield due, rule, state
        self.due = moment[0]

    def _next(self) -> tuple[int, int]:
        """The earliest moment."""
        moment = self._moments[0] if self._moments else (NEVER, 0)
        return min(moment, (self._first_of_lanes(), 0))

    def _first_of_lanes(self) -> int:
        """The earliest moment in any lane, whose lane is then on top of `_heads`."""
        heads = self._heads
        while heads:
            due, number = heads[0]
            lane = self._lanes[number][1]
            if self._listed.get(number) != due:
                heappop(heads)
            elif not lane:
                heappop(heads)
                del self._listed[number]
            elif lane[0] != due:
                self._listed[number] = lane[0]
                heapreplace(heads, (lane[0], number))
            else:
                return due
        return NEVER


def _pairs(waiting: list[Any]) -> Iterator[tuple[Timed, Any]]:
    """The rules that wait, each with its state."""
    return zip(waiting[::2], waiting[1::2], strict=True)


def _order(item: tuple[Timed, Any]) -> tuple[int, int, Any]:
    rule, state = item
    return rule.depth, rule.order, key_order(state.key) if rule.tells else ()
