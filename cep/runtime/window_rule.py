"""An `aggregate` rule at run time: the windows of its keys, and when they are tested.

A generated handler gives `take` the key, the time, the event and what each aggregate takes from it.
Sliding windows are tested at each event and each expiry and report when `having` becomes true;
the others are tested when they close, by timer (or before, with `report on update`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from cep.match import Match, MatchFormat, WindowMatch
from cep.runtime.reporting import Emitted, Reporting
from cep.runtime.windows import Bucket, Window, WindowPlan, held_buckets


@dataclass(frozen=True, slots=True)
class WindowRulePlan:
    """A window rule's constants. `names` are those of the aggregates; `keep` is how long a window
    of the last N events is kept after its last one."""

    names: tuple[str, ...]
    kind: str
    report: str | None
    dedup: int | None
    keep: int | None

    @property
    def slides(self) -> bool:
        return self.kind in ("sliding", "sliding_count")


class WindowState:
    """The window of a key, and when something is due in it."""

    __slots__ = ("epoch", "key", "last", "wake", "window")

    def __init__(self, key: Any, window: Window) -> None:
        self.key = key
        self.window = window
        self.wake = 0
        self.last = 0
        self.epoch = 0


class WindowRun(Reporting):
    """One aggregate rule while it runs."""

    def __init__(
        self,
        plan: WindowRulePlan,
        windows: WindowPlan,
        form: MatchFormat,
        order: int,
        timers: Any,
        out: list[Match],
        emitted: list[Emitted],
    ) -> None:
        super().__init__(form, order, timers, out, emitted, plan.dedup)
        self.plan = plan
        self.windows = windows
        self.since: int | None = None
        """Of an earlier version of the rule: the clock when the present one began. It only goes on
        with windows that had events before."""

    # ------------------------------------------------------------------ events

    def take(self, key: Any, time: int, event: Any, values: Sequence[Any]) -> None:
        """An event enters the window of its key."""
        state = self.states.get(key)
        if state is None:
            if self.since is not None:
                return
            state = self.states[key] = WindowState(key, self.windows.new())
        if state.epoch != self.epoch:
            self.touch(state)
        state.last = time
        buckets = state.window.on_event(time, values)
        if self.plan.slides:
            self._slide(state, buckets[0], time, event)
        elif self.plan.report == "on_update":
            for bucket in buckets:
                if not bucket.marked:
                    bucket.marked = self._test(state.key, bucket, time, event)
        if self.since is not None and self._is_finished(state):
            self.forget(state)
        else:
            self._arm(state)

    def _slide(self, state: WindowState, bucket: Bucket, time: int, event: Any) -> None:
        if self.form.having is None or self.plan.report == "every_event":
            self._test(state.key, bucket, time, event)
        else:
            self._edge(state.key, bucket, time, event)

    def _edge(self, key: Any, bucket: Bucket, time: int, event: Any) -> None:
        """Reports when the condition has become true since it was last tested."""
        if self._is_of_successor(bucket):
            return
        values = self._values(key, bucket, time)
        holds = self._holds(key, time, values)
        if holds and not bucket.marked:
            self._report(key, bucket, time, values, event)
        bucket.marked = holds

    def _test(self, key: Any, bucket: Bucket, time: int, event: Any) -> bool:
        """Reports when the condition is true; whether it is."""
        if self._is_of_successor(bucket):
            return False
        values = self._values(key, bucket, time)
        holds = self._holds(key, time, values)
        if holds:
            self._report(key, bucket, time, values, event)
        return holds

    def _is_of_successor(self, bucket: Bucket) -> bool:
        """Whether only the present version of the rule is to report this bucket."""
        return self.since is not None and bucket.first > self.since

    def _is_finished(self, state: WindowState) -> bool:
        """Whether an earlier version has nothing left to do for a key."""
        return all(self._is_of_successor(bucket) for bucket in held_buckets(state.window))

    def _values(self, key: Any, bucket: Bucket, time: int) -> dict[str, Any]:
        values = dict(zip(self.plan.names, bucket.results(), strict=True))
        if self.form.derived is not None:
            self.form.derived(values, self.form.key_parts(key), time)
        return values

    def _holds(self, key: Any, time: int, values: Mapping[str, Any]) -> bool:
        having = self.form.having
        return having is None or bool(having([], self.form.key_parts(key), time, values))

    def _report(
        self, key: Any, bucket: Bucket, time: int, values: Mapping[str, Any], event: Any
    ) -> None:
        trigger = self.form.identity(event, 0) if event is not None and self.plan.slides else None
        window = WindowMatch(values, bucket.start, bucket.end, bucket.first, bucket.last, trigger)
        self.report("match", key, time, [], window)

    # ------------------------------------------------------------------ time

    def _arm(self, state: WindowState) -> None:
        due = state.window.next_due()
        exclusive = not self.windows.inclusive
        if due is None:
            if self.plan.keep is None:
                return
            due, exclusive = state.last + self.plan.keep, False
        moment = due if exclusive else due + 1
        if not state.wake or moment < state.wake:
            state.wake = moment
            self.timers.add(moment, self, state, exclusive)

    def on_time(self, state: Any, now: int) -> None:
        """Events leave a sliding window, or windows close."""
        if state is self.dedup_wake:
            self.forget_dedups(now)
            return
        if state.epoch != self.epoch:
            self.touch(state)
        state.wake = 0
        if self.plan.kind == "sliding_count":
            self._forget_when_over(state, now)
            return
        at = now - 1 if self.windows.inclusive else now
        for bucket in state.window.on_time(at):
            if not self.plan.slides:
                if not bucket.marked:
                    self._test(state.key, bucket, at, None)
            elif self.form.having is not None and self.plan.report != "every_event":
                self._edge(state.key, bucket, at, None)
        if state.window.is_empty or (self.since is not None and self._is_finished(state)):
            self.forget(state)
        else:
            self._arm(state)

    def rearm(self, clock: int) -> None:
        """The rule's constants have changed: each key is woken when something is due by them."""
        for state in self.states.values():
            if state.epoch != self.epoch:
                self.touch(state)
            self._arm(state)

    def _forget_when_over(self, state: WindowState, now: int) -> None:
        assert self.plan.keep is not None
        if state.last + self.plan.keep < now:
            self.ended += 1
            self.forget(state)
        else:
            self._arm(state)

    def open_ends(self) -> int:
        """The windows that would report if they closed as they are."""
        if self.plan.slides:
            return 0
        return sum(
            not bucket.marked
            and not self._is_of_successor(bucket)
            and self._holds(state.key, bucket.end, self._values(state.key, bucket, bucket.end))
            for state in self.states.values()
            for bucket in held_buckets(state.window)
        )

    def check(self) -> None:
        """Raises AssertionError where a state is not as it must be. For tests."""
        for key, state in self.states.items():
            assert state.key == key, "a state knows its key"
            assert not state.window.is_empty, "an empty window is forgotten"
            if state.window.next_due() is not None:
                assert state.wake, f"{self.name} {key}: something is due but nothing will wake it"
