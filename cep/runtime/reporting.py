"""What comes out of a rule: dedup, emitted events, match records; the same for runs and windows.

`Reporting` is what a rule at run time has in common with every other: its states by key, its
timers, its counters, and `report`, the one way out.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Sequence
from itertools import repeat
from typing import Any

from cep.key import key_of, key_order
from cep.match import Match, MatchFormat, MatchMore, WindowMatch
from cep.runtime.careful import Careful


class Emitted:
    """An event that a match causes, before it enters."""

    __slots__ = ("fields", "match", "order", "stream", "time")

    def __init__(self, stream: str, fields: dict[str, Any], time: int, match: Match) -> None:
        self.stream = stream
        self.fields = fields
        self.time = time
        self.match = match


class DedupWindow:
    """One window of a `dedup`: until when it hides, and what it has hidden."""

    __slots__ = ("end", "first", "hidden", "last")

    def __init__(self, end: int) -> None:
        self.end = end
        self.hidden = 0
        self.first = 0
        self.last = 0


class Dedup:
    """`dedup … for D`: at most one match per key per D.

    `admit` answers whether a match is reported, and what was suppressed since the last one. A
    window is forgotten D after its end, when what it hid is no longer told.
    """

    def __init__(self, duration: int) -> None:
        self.duration = duration
        self.windows: dict[Any, DedupWindow] = {}
        self._ends: deque[tuple[int, Any]] = deque()
        self.changed: set[Any] | None = None
        """Where state is kept: the keys whose windows have changed in this epoch."""

    def admit(self, key: Any, time: int) -> tuple[bool, dict[str, int] | None]:
        window = self.windows.get(key)
        if self.changed is not None:
            self.changed.add(key)
        if window is not None and time < window.end:
            window.hidden += 1
            window.first = window.first if window.hidden > 1 else time
            window.last = time
            return False, None
        suppressed = None
        if window is not None and window.hidden and time < window.end + self.duration:
            suppressed = {"count": window.hidden, "first": window.first, "last": window.last}
        self.windows[key] = DedupWindow(time + self.duration)
        self._ends.append((time + 2 * self.duration, key))
        return True, suppressed

    @property
    def next_due(self) -> int | None:
        """When the oldest window may be forgotten."""
        return self._ends[0][0] if self._ends else None

    def forget(self, now: int) -> None:
        """Drops windows whose time, and the time in which they are told of, is over."""
        while self._ends and self._ends[0][0] <= now:
            _, key = self._ends.popleft()
            window = self.windows.get(key)
            if window is not None and window.end + self.duration <= now:
                del self.windows[key]
                if self.changed is not None:
                    self.changed.add(key)


def _nothing(_: Any) -> None:
    raise AssertionError("nobody keeps states, so no epoch begins")


class Wake:
    """The wake-up of something that is not a key's state."""

    __slots__ = ("key", "wake")

    def __init__(self) -> None:
        self.wake = 0
        self.key: tuple[Any, ...] = ()


class Reporting:
    """A rule at run time, but for what it looks for."""

    key_of = staticmethod(key_of)

    tells = True
    """Whether anything may come of a wake-up."""

    depth = 0
    """How far it is from the input, see `CheckedRules.depths`."""

    def __init__(
        self,
        form: MatchFormat,
        order: int,
        timers: Any,
        out: list[Match],
        emitted: list[Emitted],
        dedup: int | None,
    ) -> None:
        self.form = form
        self.name = form.rule
        self.owner = form.rule
        """Whose its states are; tells apart the versions of one rule."""
        self.shares_dedups = False
        """Whether its `dedups` are those of the present version of the rule, which keeps them."""
        self.order = order
        self.timers = timers
        self.out = out
        self.emitted = emitted
        self.careful: Careful = form.careful
        self.states: dict[Any, Any] = {}
        self.dedups = (
            {kind: Dedup(dedup) for kind in ("match", "timeout")} if dedup is not None else None
        )
        self._plain = dedup is None and form.only_records
        """Whether a match is nothing but its record (and timeouts do not occur)."""
        self.epoch = 0
        """The number of the epoch; stays 0 where no state is kept."""
        self.on_touch: Callable[[Any], None] = _nothing
        """Who keeps states; see `touch`."""
        self.dedup_wake = Wake()
        self.matches = 0
        self.timeouts = 0
        self.suppressed = 0
        self.unroutable = 0
        self.dropped = 0
        """First events dropped by a limit."""
        self.crowded = 0
        """Those of them that were dropped since a key held too much, without a limit of the rule.
        """
        self.ended = 0
        """First events whose runs `keep` has ended."""
        self.untried = 0
        """Moments at which complete runs were left untried, since `having` had failed too often."""

    @property
    def keys(self) -> int:
        """How many keys hold something, wherever their states are."""
        return len(self.states) + len(getattr(self.states, "cold", ()))

    def touch(self, state: Any) -> None:
        """A state is about to change for the first time in an epoch."""
        self.on_touch(state)

    def unrouted(self) -> None:
        """An event of the rule's streams has no key."""
        self.unroutable += 1

    def forget(self, state: Any) -> None:
        """The key has nothing any more."""
        self.states.pop(state.key, None)

    @staticmethod
    def in_order(routes: dict[Any, int]) -> Iterable[tuple[Any, int]]:
        """The keys that an event goes to, in the order of keys."""
        if len(routes) < 2:
            return routes.items()
        return sorted(routes.items(), key=lambda item: key_order(item[0]))

    def report(
        self,
        kind: str,
        key: Any,
        time: int,
        history: Sequence[Any],
        window: WindowMatch | None = None,
    ) -> None:
        """A match or timeout that has been chosen: dedup, then emitted events and record."""
        more = MatchMore(window) if window is not None else None
        match = Match(self.form, kind, time, key, history, more)
        if self._plain:
            self.matches += 1
            self.out.append(match)
            return
        if self.dedups is not None:
            admitted, match.suppressed = self._admit(kind, match, time)
            if not admitted:
                self.suppressed += 1
                return
        if kind == "match":
            self.matches += 1
        else:
            self.timeouts += 1
        self.emitted += [Emitted(stream, fields, time, match) for stream, fields in match.emitted()]
        if self.form.reports(kind):
            self.form.settle(match)
            self.out.append(match)

    def report_all(self, key: Any, time: int, histories: Sequence[Sequence[Any]]) -> None:
        """Matches of one moment, in order."""
        if not self._plain:
            for history in histories:
                self.report("match", key, time, history)
            return
        self.matches += len(histories)
        alike = map(repeat, (self.form, "match", time, key))
        self.out.extend(map(Match, *alike, histories))

    def _admit(self, kind: str, match: Match, time: int) -> tuple[bool, dict[str, int] | None]:
        assert self.dedups is not None
        key = match.dedup_key()
        if key is None:
            return True, None
        admitted = self.dedups[kind].admit(key, time)
        self._arm_dedup()
        return admitted

    def _arm_dedup(self) -> None:
        """Wakes the rule when the oldest dedup window may be forgotten."""
        assert self.dedups is not None
        dues = [dedup.next_due for dedup in self.dedups.values() if dedup.next_due is not None]
        wake = self.dedup_wake
        if dues and (not wake.wake or min(dues) < wake.wake):
            wake.wake = min(dues)
            self.timers.add(wake.wake, self, wake, exclusive=True)

    def forget_dedups(self, now: int) -> None:
        """Forgets dedup windows that tell nothing any more."""
        assert self.dedups is not None
        self.dedup_wake.wake = 0
        for dedup in self.dedups.values():
            dedup.forget(now)
        self._arm_dedup()

    def undecided(self) -> Iterable[tuple[Any, int, int, list[Any]]]:
        """Open absences: (key, deadline, time of the first event, the run)."""
        return ()

    def open_ends(self) -> int:
        """How many windows, or keys with a loop, are open that report if nothing more comes."""
        return 0

    opens_expected: Callable[[Any, Any], None] | None = None
    """Generated: opens a run for a key that is expected."""

    def expect(self, keys: Iterable[Any], event: Any) -> None:
        """`keys from`: each of these keys has a run from now on, as if its first step had been
        bound to `event`, in which every field is null."""
        assert self.opens_expected is not None
        for value in keys:
            key = key_of(value)
            if key is not None and key not in self.states:
                self.opens_expected(event, key)
