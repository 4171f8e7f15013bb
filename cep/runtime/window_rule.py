"""An `aggregate` rule at run time: the windows of its keys, and when they are tested.

Generated handlers (`cep.compile.window_code`) put events into windows and test them where that is
to be done for an event; they call what is here when a key begins, a bucket is opened, something is
found. `expire` is generated too: events leave a sliding window.

Sliding windows are tested at each event and each expiry and report when `having` becomes true; the
others are tested when they close, by timer (or before, with `report on update`).

What `expires` says of a rule with a sliding window is how its keys are woken:

* "lazily": nothing can come of an expiry (there is no `having`, or it cannot become true by it).
  Events leave when the next comes; a key is woken to be forgotten.
* "guarded": something may come of it, but only while a part of `having` holds that no expiry can
  make true. A key is woken at each expiry as long as that part holds.
* "always": a key is woken at each expiry. They come in the order of the events, so they wait in a
  lane of the timers.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from cep.key import key_order
from cep.match import Match, MatchFormat, WindowMatch
from cep.runtime.reporting import Emitted, Reporting
from cep.runtime.windows import (
    Bucket,
    Closing,
    Fold,
    Panes,
    Sliding,
    Window,
    WindowPlan,
)


@dataclass(frozen=True, slots=True)
class WindowRulePlan:
    """A window rule's constants. `names` are those of the aggregates; `expires`: see the head of
    the module; `steady`: `having` asks the aggregates only, so the same ones have one answer."""

    names: tuple[str, ...]
    kind: str
    report: str | None
    dedup: int | None
    expires: str
    steady: bool

    @property
    def slides(self) -> bool:
        return self.kind in ("sliding", "sliding_count")


class WindowRun(Reporting):
    """One aggregate rule while it runs."""

    expire: Callable[[Any, int], None]
    """Generated: events leave a sliding window by a moment of the clock."""

    expire_due: Callable[[int], None]
    """Generated: the same for all that is due in the lane, until something else is due."""

    def __init__(
        self,
        plan: WindowRulePlan,
        windows: WindowPlan,
        form: MatchFormat,
        order: int,
        timers: Any,
        clock: Callable[[], int],
        drain: Callable[[], None],
        out: list[Match],
        emitted: list[Emitted],
    ) -> None:
        super().__init__(form, order, timers, out, emitted, plan.dedup)
        self.plan = plan
        self.windows = windows
        self.clock = clock
        self.drain = drain
        """Lets the events enter that matches have caused."""
        self.lane: deque[Any] | None = None
        """When keys are to be woken, in the order of their events; see `expires`."""
        if plan.kind == "sliding" and plan.expires == "always":
            self.lane = timers.lane(self)
        self.since: int | None = None
        """Of an earlier version of the rule: the clock when the present one began. It only goes on
        with windows that had events before."""

    # ------------------------------------------------------------------ keys begin and end

    def begin(self, key: Any, time: int) -> Window | None:
        """The state of a key that has none, for an event at `time`; None where none begins."""
        if self.since is not None:
            return None
        state = self.states[key] = self.windows.new(key)
        if state.epoch != self.epoch:
            self.touch(state)
        if self.plan.kind == "sliding":
            assert self.windows.size is not None
            state.wake = time + self.windows.size + 1
            if self.plan.expires != "always":
                self.timers.add(state.wake, self, state)
        return state

    def open(self, state: Any, time: int) -> Bucket:
        """The new bucket or pane of a key for an event at `time`."""
        bucket: Bucket = state.pane(time) if isinstance(state, Panes) else state.open(time)
        self.arm(state)
        return bucket

    def settle(self, state: Any) -> None:
        """An earlier version of a rule lets go of a key for which it has nothing left to do."""
        if self.since is not None and self._is_finished(state):
            state.wake = 0
            self.forget(state)

    def _is_finished(self, state: Window) -> bool:
        return state.first is None or self.is_of_successor(state.first)

    def is_of_successor(self, first: int) -> bool:
        """Whether only the present version of the rule is to report a window with this first
        event."""
        return self.since is not None and first > self.since

    @staticmethod
    def by_key(state: Any) -> Any:
        """Puts states in the order of their keys."""
        return key_order(state.key)

    # ------------------------------------------------------------------ tests and reports

    def values(self, key: Any, fold: Fold, time: int) -> dict[str, Any]:
        """The aggregates by their names, and what is computed from them."""
        values = dict(zip(self.plan.names, fold.results(), strict=True))
        if self.form.derived is not None:
            self.form.derived(values, self.form.key_parts(key), time)
        return values

    def holds(self, key: Any, fold: Fold, time: int) -> bool:
        """Whether `having` holds, by its careful form."""
        return self._holds(key, time, self.values(key, fold, time))

    def _holds(self, key: Any, time: int, values: Mapping[str, Any]) -> bool:
        having = self.form.having
        return having is None or bool(having([], self.form.key_parts(key), time, values))

    def found(self, state: Any, time: int, event: Any) -> None:
        """A sliding window is reported, because of an event or because events have left it."""
        start = time - state.size if self.plan.kind == "sliding" else state.entries[0][0]
        trigger = self.form.identity(event, 0) if event is not None else None
        values = self.values(state.key, state, time)
        first, last = state.entries[0][0], state.entries[-1][0]
        window = WindowMatch(values, start, time, first, last, trigger)
        self.report("match", state.key, time, [], window)

    def closes(self, key: Any, bucket: Bucket | Panes, time: int) -> bool:
        """Reports a bucket when `having` holds; whether it does."""
        first = bucket.first
        if first is None or self.is_of_successor(first):
            return False
        values = self.values(key, bucket, time)
        if not self._holds(key, time, values):
            return False
        window = WindowMatch(values, bucket.start, bucket.end, first, bucket.last)
        self.report("match", key, time, [], window)
        return True

    # ------------------------------------------------------------------ time

    def arm(self, state: Any) -> None:
        """Wakes a key when something is due for it."""
        due = self._due(state)
        if due is None:
            return
        moment = due + 1 if self.windows.inclusive else due
        if not state.wake or moment < state.wake:
            state.wake = moment
            self.timers.add(moment, self, state, not self.windows.inclusive)

    def _due(self, state: Window) -> int | None:
        """When the clock must look at a key; of a "guarded" one maybe earlier than it must."""
        lazily = self.plan.expires == "lazily" and self.since is None
        return state.ends() if lazily and self.plan.slides else state.next_due()

    def adopt(self, state: Any) -> None:
        """A state that was stored lives in the rule, and is woken as it would have been."""
        self.states[state.key] = state
        if isinstance(state, Sliding) and state.entries:
            state.known = state.last
        if state.wake:
            self.timers.add(state.wake, self, state, not self.windows.inclusive)
        self.arm(state)

    def on_time(self, state: Any, now: int) -> None:
        """Events leave a sliding window, or windows close."""
        if state is self.dedup_wake:
            self.forget_dedups(now)
            return
        if state.epoch != self.epoch:
            self.touch(state)
        if self.plan.slides:
            self.expire(state, now)
        else:
            self._close(state, now)

    def _close(self, state: Any, now: int) -> None:
        state.wake = 0
        at = now - 1 if self.windows.inclusive else now
        told = False
        for bucket in state.on_time(at):
            if bucket.marked or self.closes(state.key, bucket, at):
                told = True
        if not told and self.plan.steady and isinstance(state, Panes):
            state.pass_over()
        if state.first is None or (self.since is not None and self._is_finished(state)):
            self.forget(state)
        else:
            self.arm(state)

    def rearm(self, clock: int) -> None:
        """The rule's constants have changed: each key is woken when something is due by them."""
        for state in self.states.values():
            if state.epoch != self.epoch:
                self.touch(state)
            self.arm(state)

    # ------------------------------------------------------------------ what others ask

    def first_time(self, state: Any) -> int | None:
        """The time of the first event that is still in the window of a key."""
        if self.plan.kind == "sliding":
            past = self.clock() - 1 - state.size
            return next((entry[0] for entry in state.entries if entry[0] > past), None)
        first: int | None = state.first
        return first

    def open_ends(self) -> int:
        """The windows that would report if they closed as they are."""
        return sum(
            not bucket.marked
            and not self.is_of_successor(bucket.first)
            and self.holds(state.key, bucket, bucket.end)
            for state in self.states.values()
            if isinstance(state, Closing)
            for bucket in state.open_ones(self.clock())
        )

    def check(self) -> None:
        """Raises AssertionError where a state is not as it must be. For tests."""
        for key, state in self.states.items():
            assert state.key == key, "a state knows its key"
            assert state.first is not None, "an empty window is forgotten"
            if state.next_due() is not None:
                assert state.wake, f"{self.name} {key}: something is due but nothing will wake it"
