"""A rule at run time: its keys' states, what generated code calls, and what comes out.

`RuleRun` holds the states of one rule, one for each key that has runs. Generated handlers change
them; when runs become complete they call `finish`, which lets the `Selection` choose and hands
what is chosen to `report` (see `Reporting`). `on_time` does what is due
without an event: absences that have come true, loops that close, runs whose time is over.
"""

from __future__ import annotations

from bisect import bisect_right, insort_right
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from heapq import nsmallest
from operator import itemgetter
from typing import Any

from cep.event import unbox
from cep.key import key_of, key_order
from cep.match import Match, MatchFormat
from cep.runtime import bare
from cep.runtime.aggregates import finite
from cep.runtime.bare import BareRuns
from cep.runtime.groups import Groups
from cep.runtime.reporting import Emitted, Reporting
from cep.runtime.rows import first_row, rows
from cep.runtime.runs import (
    EVENT,
    FIRST_VARIABLE,
    NEWEST_START,
    NEWEST_TIME,
    NUMBER,
    POSITION,
    PREVIOUS,
    SIZE,
    Complete,
    History,
    Layout,
    Node,
    Pruner,
    Selection,
    Skip,
    all_nodes,
    chain,
    is_dropped,
)


@dataclass(frozen=True, slots=True)
class Slot:
    """What the runtime must know of an automaton state to do what is due in it.

    `deadline`: (microseconds after the last event, after the first one) of a trailing absence;
    where both are given both must be over. `closes`: whether its runs are complete once they can
    go on no further. `within`: the sequence's, where it ends these
    runs. `reach`: (place of the variable it counts from, None: the last event's time; length) of
    each way on, where all of them are bounded by steps. `bare`: where runs are only their events.
    """

    name: str
    form: str
    deadline: tuple[int | None, int | None] | None
    closes: bool
    within: int | None
    reach: tuple[tuple[int | None, int], ...]
    bare: BareRuns | None = None
    in_order: bool = False
    """Whether its runs stand in the order in which they are due, or else began."""

    @property
    def grouped(self) -> bool:
        """Whether runs are kept as groups and not one by one."""
        return self.form in ("one", "hash")

    @property
    def closes_together(self) -> bool:
        """Whether its groups have runs that are complete when their time is over."""
        return self.closes and self.grouped and self.deadline is None


@dataclass(frozen=True, slots=True)
class RulePlan:
    """A rule's constants at run time. `within` is the sequence's, `keep` the rule's."""

    layout: Layout
    slots: tuple[Slot, ...]
    quiet: tuple[int, ...]
    skip: Skip
    within: int | None
    keep: int | None
    limit: int | None
    timeouts: bool
    dedup: int | None
    reports: bool
    most_runs: int
    """Most runs that may wait at one place where each is tested."""
    most_nodes: int
    """Most nodes that a key may hold, where they are counted."""
    one_run_each: bool
    """Whether a first event never has more than one run."""
    closes_late: bool
    """Whether groups come to where their runs are complete when their time is over."""
    is_strict_row: bool = False

    @property
    def is_bare(self) -> bool:
        """Whether runs are kept as nothing but their events (`cep.runtime.bare`)."""
        return bool(self.slots) and all(slot.bare is not None for slot in self.slots)

    def state_type(self) -> Any:
        """The class of the states of its keys."""
        lengths = [len(slot.bare.path) for slot in self.slots if slot.bare is not None]
        shared = tuple(lengths) if self.is_strict_row else ()
        return state_type(len(self.slots), len(self.quiet), is_bare=self.is_bare, shared=shared)


CROWD = 100
"""Events of a key after which a wake-up looks for dead runs beside living ones."""

NEVER = 1 << 62
"""A moment, and a number of an event, after every other."""


class RuleRun(Reporting):
    """One rule with runs, while it runs. See the module's head."""

    def __init__(
        self,
        plan: RulePlan,
        form: MatchFormat,
        order: int,
        timers: Any,
        out: list[Match],
        emitted: list[Emitted],
    ) -> None:
        super().__init__(form, order, timers, out, emitted, plan.dedup)
        self.plan = plan
        self.State = plan.state_type()
        having = self._having if form.having is not None else None
        self.selection = Selection(plan.layout, plan.skip, having)
        lives = [length for length in (plan.within, plan.keep) if length is not None]
        self._grain = grain_of(lives)
        self._exact = plan.timeouts or any(slot.closes or slot.reach for slot in plan.slots)
        """Whether runs are woken to the tick when their time is over, since something may be
        reported then; else only in time to clean up."""
        self._completes = any(slot.closes or slot.deadline for slot in plan.slots)
        """Whether runs may be complete without an event."""
        plain_skip = plan.skip.kind in ("nothing", "past_last") and plan.limit is None
        self._simple = plain_skip and having is None and not plan.timeouts
        """Whether one complete run alone is reported as it stands."""
        self._direct = (
            self._simple
            and plan.skip.kind == "nothing"
            and self._plain
            and not any(slot.grouped for slot in plan.slots)
        )
        """Whether its newest node is all that a match needs."""
        self._all_in_rows = (
            plan.layout.plain and plan.skip.kind == "nothing" and not having and not plan.timeouts
        )
        """Whether all complete runs are reported, and are rows of events."""
        self._first_in_row = plan.layout.plain and self._simple and plan.skip.kind == "past_last"
        """Whether the first in order of complete runs is reported, and is a row of events."""
        self._life = min(lives, default=0)
        self._only_cleans = (
            bool(lives)
            and not self._exact
            and not plan.quiet
            and plan.keep is None
            and not any(slot.deadline for slot in plan.slots)
        )
        """Whether a wake-up has nothing to do but to take out what is over."""
        self.tells = not self._only_cleans
        if plan.is_bare:
            self.finish = self._finish_bare  # type: ignore[method-assign]
            if plan.slots[0].deadline is not None:
                self._wait = plan.slots[0].deadline[0] or 0
                self.lane = timers.lane(self)
                """Wake-ups of keys, which mostly ask for one after the other."""
                self._ordered = -NEVER
                """The moment whose keys stand in the lane in their order."""
                self.on_time = self._end_waits  # type: ignore[method-assign]
        self._deciding: tuple[Any, int] = ((), 0)
        self._places = [self._place_of(slot) for slot in plan.slots]
        """What puts the runs of a slot in order, where they are kept so."""

    def _place_of(self, slot: Slot) -> Callable[[Any], int]:
        if slot.deadline is None and not slot.reach:
            return itemgetter(NEWEST_START)
        return lambda run: self._run_due(run, slot)

    # ------------------------------------------------------------------ called by handlers

    def arm(self, state: Any, due: int) -> None:
        """Wakes the state at `due` at the latest."""
        if not state.wake or due < state.wake:
            state.wake = due
            self.timers.add(due, self, state)

    def woken(self, state: Any) -> None:
        """The state, which has been kept elsewhere, is woken when it wants to be."""
        lane, due = getattr(self, "lane", None), state.wake
        if lane is None or (lane and lane[-2] > due):
            self.timers.add(due, self, state)
            return
        if not lane:
            self.timers.expect(due, lane)
        lane += (due, state)

    def bucket(self, time: int) -> int:
        """The time, rounded up, for wake-ups that only clean up (`grain_of`)."""
        grain = self._grain
        return time + grain - time % grain

    def finish(self, state: Any, time: int, finals: list[Node], low: int | None) -> bool:
        """Runs are complete: the chosen ones are reported. True when a skip dropped other runs;
        for skips other than `past last` the state has then been swept."""
        if self._direct and len(finals) == 1:
            self.matches += 1
            self.out.append(Match(self.form, "match", time, state.key, finals[0]))
            return False
        if self._simple and len(finals) == 1:
            history = chain(finals[0])
            if history is None and self._first_in_row:
                history = first_row(finals[0], low, state)
            if history is not None:
                return bool(history) and self._finish_one(state, time, history, low)
        if self._all_in_rows:
            found = rows(finals, low, state)
            if found is not None:
                self.report_all(state.key, time, found)
                return False
        return self._decide(state, time, finals, low)

    def _decide(
        self, state: Any, time: int, finals: list[Node], low: int | None, high: int | None = None
    ) -> bool:
        """`finish` where several runs may be complete: the selection decides."""
        if self.form.having is not None:
            self._deciding = (state.key, time)
        chosen = self.selection.choose(finals, low, state, high)
        self.untried += self.selection.untried
        self.selection.untried = 0
        self.report_all(state.key, time, chosen)
        if self.plan.timeouts and chosen:
            starts = {history[0][NEWEST_START] for history in chosen}
            state.told = starts | (state.told or set())
        if not chosen or self.plan.skip.kind == "nothing":
            return False
        if self.plan.skip.kind != "past_last":
            self.sweep(state)
        return True

    def _finish_bare(self, state: Any, time: int, finals: list[Any], low: int | None) -> bool:
        """`finish` where runs are bare: they are complete in the order in which they began, and
        what a skip drops is no longer there."""
        skips = self.plan.skip.kind != "nothing"
        for run in finals[:1] if skips else finals:
            self.found(state.key, time, run)
        return skips

    def found(self, key: Any, time: int, run: bare.Run) -> None:
        """A bare run is a match."""
        if self._plain:
            self.matches += 1
            self.out.append(Match(self.form, "match", time, key, run))
        else:
            self.report("match", key, time, run)

    def _finish_one(self, state: Any, time: int, history: History, low: int | None) -> bool:
        """`finish` for the common case: one run is complete and nothing can stand against it."""
        start = history[0]
        if low is not None and start[NEWEST_TIME] < low:
            return False
        if self.plan.skip.kind == "nothing":
            self.report("match", state.key, time, history)
            return False
        if start[NUMBER] <= state.floor:
            return False
        state.floor = max(state.floor, history[-1][NUMBER])
        self.report("match", state.key, time, history)
        return True

    def single(self, key: Any, time: int, node: Node) -> None:
        """A match of one event, of a rule that keeps nothing."""
        self._deciding = (key, time)
        if self.form.having is None or self._having([node]):
            self.report("match", key, time, [node])

    def choose(self, key: Any, time: int, nodes: list[Node]) -> None:
        """The matches of one event that fits in several ways, of a rule that keeps nothing."""
        state = self.State()
        state.key = key
        self.finish(state, time, nodes, None)

    def _having(self, history: History) -> bool:
        key, time = self._deciding
        assert self.form.having is not None
        return bool(self.form.having(self.form.events(history), self.form.key_parts(key), time))

    def has_runs(self, state: Any, time: int) -> bool:
        """Whether the key has a run that is not over at `time`."""
        for slot in self.plan.slots:
            held = held_in(state, slot)
            if held and any(end is None or end >= time for end in self._ends(held, slot)):
                return True
        return False

    def _ends(self, held: Any, slot: Slot) -> Iterator[int | None]:
        """When the runs of a slot are over (None: by no time): the first and the last of them, or
        each, or the newest of each group."""
        if slot.grouped:
            for newest in _newest(held, slot):
                yield newest + slot.within if slot.within is not None else None
        elif not slot.reach and self.plan.keep is None:
            times = [run[NEWEST_TIME] for run in (_outer(held) if slot.in_order else held)]
            for time in (min(times), max(times)):
                yield time + slot.within if slot.within is not None else None
        else:
            for run in _outer(held) if self._ends_in_order(slot) else held:
                ends = (self._way_ends(run, slot), self._kept_until(run, slot))
                yield min((end for end in ends if end is not None), default=None)

    def _ends_in_order(self, slot: Slot) -> bool:
        """Whether of its runs the first one is over first, and the last one last."""
        if not slot.in_order:
            return False
        return self.plan.keep is None or not (slot.reach or slot.deadline is not None)

    def _way_ends(self, run: Any, slot: Slot) -> int | None:
        """The last moment at which a run can take another event; None: no time bounds it."""
        ends = [run[NEWEST_TIME] + slot.within] if slot.within is not None else []
        if slot.reach:
            ends.append(
                max(
                    (run[EVENT].t if place is None else run[FIRST_VARIABLE + place]) + length
                    for place, length in slot.reach
                )
            )
        return min(ends, default=None)

    def _kept_until(self, run: Any, slot: Slot) -> int | None:
        if self.plan.keep is None:
            return None
        return int(run[NEWEST_TIME] + self.plan.keep)

    def arm_reach(self, state: Any, index: int, time: int) -> None:
        """Wakes the key when its newest run in a state bounded by its steps is over."""
        slot = self.plan.slots[index]
        runs = held_in(state, slot)
        end = self._way_ends(runs[-1], slot) if runs else time
        self.arm(state, (end if end is not None else time) + 1)

    def put_in_order(self, runs: list[Any] | None, run: Any, index: int) -> list[Any]:
        """Adds a run to those of a slot that are kept in order."""
        if runs is None:
            return [run]
        place = self._places[index]
        if place(runs[-1]) <= place(run):
            runs.append(run)
        else:
            insort_right(runs, run, key=place)
        return runs

    def sorted(self, runs: list[Any], index: int) -> list[Any]:
        """The runs of such a slot in order."""
        runs.sort(key=self._places[index])
        return runs

    @staticmethod
    def put(group: list[Any], node: Node) -> None:
        """Adds a history to a group."""
        group[0].append(node)
        if node[NEWEST_TIME] > group[1]:
            group[1] = node[NEWEST_TIME]
        if node[NEWEST_START] > group[2]:
            group[2] = node[NEWEST_START]

    @staticmethod
    def put_hashed(groups: dict[Any, Any] | None, run: Node) -> dict[Any, Any]:
        """Adds a run to the group of those with the same visible value, its one variable."""
        node, value = run[:FIRST_VARIABLE], run[FIRST_VARIABLE]
        key = key_of(value)
        if groups is None:
            groups = {}
        group = groups.get(key)
        if group is None:
            groups[key] = [[node], node[NEWEST_TIME], node[NEWEST_START], value]
        else:
            RuleRun.put(group, node)
            if groups.__class__ is Groups:
                groups.note(key)
        return groups

    @staticmethod
    def join(group: list[Any], other: list[Any]) -> list[Any]:
        """One group of two; lists that other nodes share are only ever appended to."""
        for node in other[0]:
            RuleRun.put(group, node)
        return group

    def events_of_step(self, node: Node, step: int) -> list[Any]:
        """The events bound to a step in the history of a node. Runs that have them are not grouped
        from then on, so behind a group there is none."""
        step_of = self.plan.layout.step_of
        events = []
        current: Any = node
        while current is not None:
            if step_of[current[POSITION]] == step:
                events.append(current[EVENT])
            current = current[PREVIOUS] if current[SIZE] < 0 else None
        events.reverse()
        return events

    @staticmethod
    def step_count(old: int | None, new: Any) -> int:
        """How many values were not null."""
        return (old or 0) + (unbox(new) is not None)

    def step_sum(self, old: Any, new: Any) -> Any:
        """The sum so far, nulls passed over; `False` from the first value on that is no number."""
        new = unbox(new)
        if new is None or old is False:
            return 0 if old is None else old
        try:
            return finite(new) if old is None else old + finite(new)
        except (TypeError, ValueError, OverflowError) as error:
            return self._spoiled("sum or avg of a loop", new, error)

    step_total = step_sum

    def step_avg(self, old: Any, new: Any) -> Any:
        """Sum and number so far, for an average; `False` as for the sum."""
        new = unbox(new)
        if new is None or old is False:
            return old
        total = self.step_sum(None if old is None else old[0], new)
        return total if total is False else (total, 1 if old is None else old[1] + 1)

    def step_mean(self, carried: Any) -> float | None:
        """The average that `step_avg` has carried along."""
        try:
            return carried[0] / carried[1] if carried else None
        except OverflowError as error:
            self.careful.failed("avg of a loop", reason=error)
            return None

    def step_min(self, old: Any, new: Any) -> Any:
        """The smallest so far; `False` from a value on that has no order with the others."""
        return self._extreme(old, new, min)

    def step_max(self, old: Any, new: Any) -> Any:
        """The largest so far, likewise."""
        return self._extreme(old, new, max)

    def _extreme(self, old: Any, new: Any, choose: Callable[[Any, Any], Any]) -> Any:
        new = unbox(new)
        if new is None or old is False:
            return old
        try:
            if new.__class__ is not str:
                finite(new)
            return new if old is None else choose(old, new)
        except (TypeError, ValueError) as error:
            return self._spoiled("min or max of a loop", new, error)

    def _spoiled(self, said: str, value: Any, error: Exception) -> bool:
        """What is carried of an aggregate that a value does not fit: it is null from then on."""
        self.careful.failed(said, [value], error)
        return False

    def limit(self, state: Any, time: int) -> None:
        """Drops the oldest first events of a key above the rule's limit, and counts them."""
        assert self.plan.limit is not None
        held = [(slot, held_in(state, slot) or ()) for slot in self.plan.slots]
        if sum(len(runs) for _, runs in held) <= self.plan.limit:
            return
        starts = {start for slot, runs in held for start in self._living_starts(runs, slot, time)}
        excess = len(starts) - self.plan.limit
        if excess > 0:
            self.dropped += excess
            state.floor = max(state.floor, nsmallest(excess, starts)[-1])
            self.sweep(state)

    def _living_starts(self, runs: Sequence[Any], slot: Slot, time: int) -> Iterable[int]:
        """The first events of the runs of a slot that are not over at `time`."""
        if slot.reach:
            ends = [(self._way_ends(run, slot), run) for run in runs]
            return [run[NEWEST_START] for end, run in ends if end is None or end >= time]
        if slot.within is None:
            return [run[NEWEST_START] for run in runs]
        low = time - slot.within
        return [run[NEWEST_START] for run in runs if run[NEWEST_TIME] >= low]

    def first_events(self, state: Any) -> list[Node]:
        """The first events of all runs of a key, the oldest first. O(shared nodes)."""
        return Complete(self._heads(state), None, self.plan.layout, state).starts()

    def _heads(self, state: Any) -> list[Node]:
        """The newest nodes of all runs of a key."""
        held = [(slot, held_in(state, slot)) for slot in self.plan.slots]
        return [node for slot, runs in held if runs for node in _nodes_in(runs, slot)]

    def thin_out(self, state: Any) -> None:
        """More runs of a key than a cap allows are tested one by one: the oldest first events are
        dropped until a tenth of the cap is free."""
        most = self.plan.most_runs
        floor = state.floor
        for slot in self.plan.slots:
            starts = _tested_one_by_one(held_in(state, slot), slot)
            if len(starts) > most:
                floor = max(floor, sorted(starts)[most // 10 - most - 1])
        self._drop_until(state, floor, self.first_events(state))

    def weigh(self, state: Any) -> None:
        """As many nodes may have been made for a key as there was room for when they were counted
        last. Where they are nearly as many as the cap allows, the oldest first events are dropped,
        so that a quarter of the nodes is left."""
        nodes, most = all_nodes(self._heads(state)), self.plan.most_nodes
        left = len(nodes)
        if left > most - most // 4:
            newest = sorted(node[NEWEST_START] for node in nodes)
            starts = [node for node in nodes if node[PREVIOUS] is None]
            self._drop_until(state, newest[len(newest) * 3 // 4], starts)
            left = most // 4
        state.room = most - left

    def _drop_until(self, state: Any, floor: int, starts: Iterable[Node]) -> None:
        """Drops the runs of the first events up to number `floor`, and counts these."""
        gone = sum(state.floor < start[NUMBER] <= floor for start in starts)
        self.dropped += gone
        self.crowded += gone
        state.floor = max(state.floor, floor)
        self.sweep(state)

    # ------------------------------------------------------------------ time

    def on_time(self, state: Any, now: int) -> None:
        """Does what is due for a key when the clock reaches `now`, and asks for the next time."""
        if state is self.dedup_wake:
            self.forget_dedups(now)
            return
        if state.epoch != self.epoch:
            self.touch(state)
        state.wake = 0
        if self._only_cleans:
            self._clean(state, now)
            return
        at = now - 1
        if self._completes:
            self._complete_at(state, at)
        if self.plan.timeouts:
            self._time_out(state, at)
        self._expire(state, now)
        due = self._next_due(state, now)
        if due is not None:
            self.arm(state, max(due, now + 1))
        elif not self.holds(state):
            self.forget(state)

    def _end_waits(self, state: Any, now: int) -> None:
        """`on_time` where bare runs wait for an absence: those for which it has come true match, in
        the order in which they came."""
        if state is self.dedup_wake:
            self.forget_dedups(now)
            return
        if state.epoch != self.epoch:
            self.touch(state)
        held, at, state.wake = state.s0, now - 1, 0
        low = at - self._wait
        if held.__class__ is tuple and held[-1].t <= low:
            self.report("match", state.key, at, held)
            self.states.pop(state.key, None)
            return
        runs = bare.runs_in(held)
        due = bisect_right(runs, low, key=_last_time)
        for run in runs[:due]:
            self.report("match", state.key, at, run)
        if due == len(runs):
            self.forget(state)
        else:
            state.s0 = runs[due:]
            self.arm(state, runs[due][-1].t + self._wait + 1)

    def expire_due(self, now: int) -> None:
        """The same for all keys in the lane that are due by `now`, in order, until an event has
        been emitted or something else is due before the next."""
        lane, emitted = self.lane, self.emitted
        while lane and lane[0] <= now:
            due, state = lane.popleft(), lane.popleft()
            if lane and lane[0] == due != self._ordered:
                self._put_in_order(due, state)
                self._ordered = due
                due, state = lane.popleft(), lane.popleft()
            if state.wake == due:
                self._end_waits(state, due)
                if emitted or self.timers.has_others(now):
                    return

    def _put_in_order(self, due: int, state: Any) -> None:
        """Several keys are due at one moment: the lane gets them back in the order of keys."""
        states = [state]
        while self.lane and self.lane[0] == due:
            self.lane.popleft()
            states.append(self.lane.popleft())
        states.sort(key=_order_of_key, reverse=True)
        for state in states:
            self.lane.appendleft(state)
            self.lane.appendleft(due)

    def _clean(self, state: Any, now: int) -> None:
        """The wake-up of a key in which nothing is due but the end of its runs: it is forgotten
        when the newest run is over. What is dead beside living runs is passed over wherever it is
        read, so it is only taken out when it has become much."""
        if self.plan.is_bare:
            self._clean_bare(state, now)
            return
        newest = -NEVER
        for slot in self.plan.slots:
            held = getattr(state, slot.name)
            if held:
                newest = max(newest, max(_newest(held_in(state, slot), slot)))
        end = newest + self._life
        if end < now:
            self.forget(state)
            return
        if state.number - state.cleaned > CROWD:
            self._expire(state, now)
            state.cleaned = state.number
        self.arm(state, max(self.bucket(end) + 1, now + 1))

    def _clean_bare(self, state: Any, now: int) -> None:
        """The same where runs are bare: those that are over are taken out each time."""
        low, newest = now - self._life, -NEVER
        for slot in self.plan.slots:
            left = bare.living(getattr(state, slot.name), low)
            setattr(state, slot.name, left)
            if left is not None:
                newest = max(newest, bare.newest(left))
        if newest < low:
            self.forget(state)
        else:
            self.arm(state, max(self.bucket(newest + self._life) + 1, now + 1))

    def begin_closing(self, state: Any, time: int) -> None:
        """Groups have come to where their runs are complete when their time is over, and none was
        there: what was over before is taken out, and the key is woken for the oldest of the rest.
        From then on it is woken for each, so that none comes there too late."""
        self._expire(state, time)
        due = self._next_due(state, time)
        if due is not None:
            self.arm(state, due)

    def rearm(self, clock: int) -> None:
        """The rule's constants have changed: each key is woken when something is due by them, at
        the next tick after `clock` where that should have been before."""
        for state in self.states.values():
            for index, slot in enumerate(self.plan.slots):
                if slot.in_order and (held := held_in(state, slot)):
                    self.sorted(held, index)
            due = self._next_due(state, clock)
            if due is not None and (not state.wake or due < state.wake):
                if state.epoch != self.epoch:
                    self.touch(state)
                self.arm(state, max(due, clock + 1))

    def _complete_at(self, state: Any, at: int) -> None:
        """Absences and closing loops whose time is over at `at`."""
        finals: list[Node] = []
        together = False
        for slot in self.plan.slots:
            held = held_in(state, slot)
            if held and slot.closes_together:
                together = True
                finals += _nodes_in(held, slot)
            elif held and (slot.deadline is not None or slot.closes):
                taken, left = self._due_runs(held, slot, at)
                finals += taken
                hold(state, slot, left)
        if together:
            self._close(state, at, finals)
            return
        if finals and self.finish(state, at, finals, None) and self.plan.skip.kind == "past_last":
            self.sweep(state)

    def _close(self, state: Any, at: int, finals: list[Node]) -> None:
        """Loops that are kept in groups: of these runs those are complete whose time is over."""
        if self.plan.within is None:
            return
        high, low = at - self.plan.within, None
        if self.plan.closes_late:  # what was over before the last event came is not taken out yet
            low = max(node[EVENT].t for node in finals) - self.plan.within
        starts = Complete(finals, low, self.plan.layout, state, high).starts()
        if starts:
            self._decide(state, at, finals, low, high)
            state.floor = max(state.floor, starts[-1][NUMBER])
            self.sweep(state)

    def _due_runs(self, held: Any, slot: Slot, at: int) -> tuple[list[Node], Any]:
        """The runs of a slot that are complete at `at`, and what is left of the slot."""
        if not slot.grouped:
            due = self._number_due(held, slot, at)
            complete = [run for run in held[:due] if self._is_match(run, slot)]
            del held[:due]
            return complete, held or None
        groups = {None: held} if slot.form == "one" else held
        finals: list[Node] = []
        left_groups: dict[Any, Any] = {}
        for key, group in groups.items():
            late = [node for node in group[0] if _deadline(node, slot) > at]
            finals += [node for node in group[0] if _deadline(node, slot) <= at]
            if late:
                newest = max(node[NEWEST_TIME] for node in late)
                starts = max(node[NEWEST_START] for node in late)
                left_groups[key] = [late, newest, starts, *group[3:]]
        if slot.form == "one":
            return finals, left_groups.get(None)
        return finals, left_groups or None

    def _number_due(self, runs: Sequence[Any], slot: Slot, at: int) -> int:
        """How many of the runs of a slot, which stand in order, are due by `at`. O(these)."""
        number = 0
        for run in runs:
            if self._run_due(run, slot) > at:
                break
            number += 1
        return number

    def _run_due(self, run: Any, slot: Slot) -> int:
        """The moment at which a run of this slot is complete without a further event."""
        if slot.deadline is not None:
            return _deadline(run, slot)
        if not slot.reach:
            return run[NEWEST_TIME] + slot.within if slot.within is not None else NEVER
        end = self._way_ends(run, slot)
        return end if end is not None else NEVER

    def _is_match(self, run: Any, slot: Slot) -> bool:
        """Whether a run whose time is over is a match: `keep` has not ended it before."""
        kept_until = self._kept_until(run, slot)
        return kept_until is None or kept_until >= self._run_due(run, slot)

    def _time_out(self, state: Any, at: int) -> None:
        """`on timeout`: runs that a bound of time ends incomplete now; each first event once, and
        only where nothing is left of it and nothing was reported."""
        ended: dict[int, list[Node]] = {}
        for slot in self.plan.slots:
            if slot.deadline is None:
                runs = held_in(state, slot) or ()
                for run in runs[: self._number_due(runs, slot, at)]:
                    ended.setdefault(run[NEWEST_START], []).append(run)
        if not ended:
            return
        alive = self._still_open(state, ended, at)
        for start in sorted(ended):
            if start not in alive and start not in (state.told or ()):
                self._report_timeout(state, at, ended[start])

    def _still_open(self, state: Any, starts: Collection[int], at: int) -> set[int]:
        """Which of these first events have runs that are not over at `at`."""
        if self.plan.one_run_each:
            return set()
        low = at - self.plan.keep if self.plan.keep is not None else -NEVER
        newest = max(starts)
        found = set()
        for slot in self.plan.slots:
            runs = held_in(state, slot) or ()
            over = 0 if slot.deadline is not None else self._number_due(runs, slot, at)
            by_start = slot.deadline is None and not slot.reach
            end = bisect_right(runs, newest, over, key=_newest_start) if by_start else len(runs)
            for run in runs[over:end]:
                if run[NEWEST_START] in starts and run[NEWEST_TIME] > low:
                    found.add(run[NEWEST_START])
        return found

    def _report_timeout(self, state: Any, at: int, nodes: list[Node]) -> None:
        only = chain(nodes[0]) if len(nodes) == 1 else None
        if only is not None:
            if not is_dropped(only[0][NUMBER], state.floor, state.dead):
                self.report("timeout", state.key, at, only)
            return
        complete = Complete(nodes, None, self.plan.layout, state)
        histories = sorted(complete.every(), key=lambda h: (self._progress(h), complete.rank(h)))
        if histories:
            self.report("timeout", state.key, at, histories[0])

    def _progress(self, history: History) -> tuple[int, int]:
        """How far a run got, the furthest first: to which node, with how many steps."""
        steps = {self.plan.layout.step_of[node[POSITION]] for node in history}
        return -max(self.plan.layout.node_of[step] for step in steps), -len(steps)

    def _expire(self, state: Any, now: int) -> None:
        """Drops what can never complete any more."""
        keep = self.plan.keep
        before = self._starts(state) if keep is not None else set()
        pruners: dict[int | None, Pruner] = {}
        for slot in self.plan.slots:
            held = held_in(state, slot)
            if not held:
                continue
            if slot.in_order and keep is None:  # what a skip drops is swept at once
                over = self._number_due(held, slot, now - 1) if slot.deadline is None else 0
                if over:
                    del held[:over]
                    hold(state, slot, held or None)
                continue
            lives = [length for length in (slot.within, keep) if length is not None]
            low = now - min(lives) if lives else None
            held = _pruned(held, slot, pruners.setdefault(low, Pruner(low, state)))
            if held and slot.reach:
                held = [run for run in held if self._run_due(run, slot) >= now] or None
            hold(state, slot, held)
        self._forget_marks(state)
        for i, length in enumerate(self.plan.quiet):
            seen = getattr(state, f"q{i}")
            if seen is not None and seen + length < now:
                setattr(state, f"q{i}", None)
        if keep is not None:
            self.ended += len(before - self._starts(state))

    def _forget_marks(self, state: Any) -> None:
        """Drops the marks of starts of which no run is left; once for as many events as there are
        marks."""
        if state.dead is None and state.told is None:
            return
        marks = len(state.dead or ()) + len(state.told or ())
        if state.number - state.cleaned < marks:
            return
        state.cleaned = state.number
        oldest = min((_oldest(held_in(state, s), s) for s in self.plan.slots), default=0)
        if state.dead is not None:
            state.dead = {start: t for start, t in state.dead.items() if start >= oldest} or None
        if state.told is not None:
            state.told = {start for start in state.told if start >= oldest} or None

    def _starts(self, state: Any) -> set[int]:
        return {run[NEWEST_START] for slot in self.plan.slots for run in held_in(state, slot) or ()}

    def _next_due(self, state: Any, now: int) -> int | None:
        """The next moment at which something is due for the key, where all is done that was by
        `now`."""
        dues: list[int] = []
        if self.plan.closes_late and any(
            slot.closes and getattr(state, slot.name) for slot in self.plan.slots
        ):
            dues += self._oldest_end(state, now)
        for slot in self.plan.slots:
            held = held_in(state, slot)
            if not held:
                continue
            if slot.deadline is not None:
                dues.append(self._first_due(held, slot) + 1)
            elif slot.in_order and self._exact and self.plan.keep is None:
                if (first := self._run_due(held[0], slot)) < NEVER:
                    dues.append(first + 1)
                continue
            ends = [end for end in self._ends(held, slot) if end is not None]
            if ends and slot.closes_together and not self.plan.closes_late:
                ends = self._closing_ends(state, held, slot)
            if ends and self.plan.closes_late and slot.grouped:
                dues.append(self.bucket(max(ends)) + 1)
            elif ends:
                # To clean up, it is enough to come when the newest run is over: what is older is
                # then dropped too, so a busy key is visited once, and holds two windows at most.
                dues.append((min(ends) if self._exact else self.bucket(max(ends))) + 1)
        for i, length in enumerate(self.plan.quiet):
            seen = getattr(state, f"q{i}")
            if seen is not None:
                dues.append(seen + length + 1)
        return min(dues) if dues else None

    def ends_at(self, state: Any, at_a_glance: bool = False) -> int | None:
        """For people who look at a key: when time decides over its runs. The first absence or loop
        that is then complete, or run that is reported as timed out; else the end of the newest
        run. None: by no time. Wake-ups come later, so that they are few.

        `at_a_glance`: of a key with very many runs, and so only where one look at each tells it.
        """
        if at_a_glance and not self._only_cleans:
            return None
        if self._only_cleans:
            newest = self._newest_start(state)
            return None if newest is None else newest + self._life
        decided: list[int] = []
        ends: list[int] = []
        for slot in self.plan.slots:
            held = held_in(state, slot)
            if not held:
                continue
            if slot.deadline is not None:
                decided.append(self._first_due(held, slot))
            over = [end for end in self._ends(held, slot) if end is not None]
            if over and slot.closes_together:
                over = self._closing_ends(state, held, slot)
            if over and self._exact:
                decided.append(min(over))
            else:
                ends += over
        return min(decided) if decided else max(ends, default=None)

    def ends_at_of(self, oldest: bare.Run, newest: int) -> int:
        """The same where runs are bare, of the oldest run and when the newest one began."""
        if self.plan.slots[0].deadline is not None:
            return int(oldest[-1].t + self._wait)
        return newest + self._life

    def _newest_start(self, state: Any) -> int | None:
        """When the newest run of a key began."""
        places = [(slot, getattr(state, slot.name)) for slot in self.plan.slots]
        filled = [(slot, held) for slot, held in places if held]
        if self.plan.is_bare:
            return max([bare.newest(held) for _, held in filled], default=None)
        return max([max(_newest(held_in(state, slot), slot)) for slot, _ in filled], default=None)

    def _oldest_end(self, state: Any, now: int) -> list[int]:
        """When the time of the oldest first event of a key is over that is not so by `now`,
        wherever its runs wait; [] where there is none."""
        if self.plan.within is None:
            return []
        ends = (start[NEWEST_TIME] + self.plan.within for start in self.first_events(state))
        return [end + 1 for end in ends if end >= now][:1]

    def _closing_ends(self, state: Any, held: Any, slot: Slot) -> list[int]:
        """When the oldest run of a group is complete that closes when its time is over."""
        if slot.within is None:
            return []
        complete = Complete(_nodes_in(held, slot), None, self.plan.layout, state)
        return [start[NEWEST_TIME] + slot.within for start in complete.starts()[:1]]

    def _first_due(self, held: Any, slot: Slot) -> int:
        if not slot.grouped:
            return self._run_due(held[0], slot)
        groups = [held] if slot.form == "one" else list(held.values())
        return min(_deadline(node, slot) for group in groups for node in group[0])

    def holds(self, state: Any) -> bool:
        """Whether a key has anything left that may matter."""
        return any(getattr(state, slot.name) for slot in self.plan.slots) or any(
            getattr(state, f"q{i}") is not None for i in range(len(self.plan.quiet))
        )

    def sweep(self, state: Any) -> None:
        """Takes out the runs that a skip or a limit has dropped."""
        pruner = Pruner(None, state)
        for slot, held in [(slot, held_in(state, slot)) for slot in self.plan.slots]:
            if held:
                hold(state, slot, _pruned(held, slot, pruner))
        if self.plan.is_bare:
            state.floor = 0  # bare runs have no numbers of their own: none is left to be dropped

    def undecided(self) -> Iterable[tuple[Any, int, int, History]]:
        """Open absences: (key, deadline, time of the first event, the run). One whose run `keep`
        ends before its deadline cannot come true, so it is not open."""
        for state in self.states.values():
            yield from self.undecided_of(state)

    def undecided_of(self, state: Any) -> Iterable[tuple[Any, int, int, History]]:
        """The open absences of one key."""
        for slot in self.plan.slots:
            held = held_in(state, slot)
            if held and slot.deadline is not None:
                yield from self._open_absences(state.key, state, held, slot)

    def _open_absences(
        self, key: Any, state: Any, held: Any, slot: Slot
    ) -> Iterable[tuple[Any, int, int, History]]:
        assert slot.deadline is not None
        if not slot.grouped:
            nodes = [(n, self._run_due(n, slot)) for n in held if self._is_match(n, slot)]
        else:
            groups = [held] if slot.form == "one" else held.values()
            nodes = [(n, _deadline(n, slot)) for g in groups for n in g[0]]
        for node, due in nodes:
            complete = Complete([node], None, self.plan.layout, state)
            for start in complete.starts():
                yield key, due, start[NEWEST_TIME], complete.best(start)

    def open_ends(self) -> int:
        """The keys with a loop that could still go on, and reports when its time is over."""
        closing = [slot for slot in self.plan.slots if slot.closes and slot.deadline is None]
        return sum(
            any(self._stays_open(state, slot) for slot in closing) for state in self.states.values()
        )

    def _stays_open(self, state: Any, slot: Slot) -> bool:
        """Whether a slot has a run that is complete when its time is over."""
        held = held_in(state, slot)
        if not held:
            return False
        if slot.grouped:
            return bool(self._closing_ends(state, held, slot))
        return any(self._run_due(run, slot) < NEVER and self._is_match(run, slot) for run in held)

    # ------------------------------------------------------------------ invariants

    def check(self) -> None:
        """Raises AssertionError where a state is not as it must be. For tests."""
        for key, state in self.states.items():
            assert state.key == key, "a state knows its key"
            assert self.holds(state) or state.wake, "an empty state waits to be deleted"
            due = self._next_due(state, -NEVER)
            if due is not None:
                assert state.wake, f"{self.name} {key}: something is due but nothing will wake it"


def grain_of(lives: Sequence[int]) -> int:
    """To what wake-ups that only clean up are rounded: a tenth of the longest life of a run."""
    return max(min(lives, default=0) // 10, 1)


@lru_cache(maxsize=256)
def state_type(
    slots: int, quiet: int, *, is_bare: bool = False, shared: tuple[int, ...] = ()
) -> Any:
    """A class for the state of a key: its runs by automaton state (`s0`, …), when leading absences
    were last broken (`q0`, …), marks of dropped starts (`floor`, `dead`, `told`), when it wants to
    be woken, how many events it has seen (`number`, at the last cleaning `cleaned`), how many nodes
    may be made before they are counted again (`room`), and in which epoch it was last changed.
    Where runs are bare nothing is counted or marked. `shared`: how many events the run of each
    automaton state has, where they share them (`bare.shared_run`).

    A class with slots: CPython reads and writes these faster than anything else with names.
    """
    marks = {"dead": None, "told": None, "number": 0, "cleaned": 0, "room": 0}
    places = [f"s{i}" for i in range(slots)] + [f"q{i}" for i in range(quiet)]
    values: dict[str, Any] = {"key": None, "floor": 0, "wake": 0, "epoch": 0}
    if shared:
        values |= {"waits": 0, **dict.fromkeys(f"e{i}" for i in range(1, max(shared) + 1))}
    else:
        values |= dict.fromkeys(places)
    if not is_bare:
        values |= marks
    lines = [f"{name} = {value}" for name, value in marks.items() if name not in values]
    lines += [f"__slots__ = {tuple(values)!r}", "def __init__(self):"]
    for value in (None, 0):
        names = [name for name in values if values[name] is value]
        lines.append("    " + " = ".join([*(f"self.{name}" for name in names), str(value)]))
    lines += [f"s{i} = shared_run({length})" for i, length in enumerate(shared)]
    namespace: dict[str, Any] = {"shared_run": bare.shared_run}
    exec("class State:\n" + "".join(f"    {line}\n" for line in lines), namespace)
    return namespace["State"]


def held_in(state: Any, slot: Slot) -> Any:
    """What a key's state holds in a slot: a list of runs, a group, or a dict of groups; None:
    nothing. A place for one run counts as a list, and bare runs are given as nodes."""
    held = getattr(state, slot.name)
    if slot.bare is not None and held is not None:
        return bare.as_nodes(state, held, slot.bare)
    return [held] if held is not None and slot.form == "single" else held


def _outer(runs: Sequence[Any]) -> Sequence[Any]:
    """The first and the last of them."""
    return (runs[0], runs[-1])


_newest_start = itemgetter(NEWEST_START)


def _order_of_key(state: Any) -> Any:
    return key_order(state.key)


def _last_time(run: Any) -> int:
    """When the last event of a bare run was."""
    return int(run[-1].t)


def hold(state: Any, slot: Slot, held: Any) -> None:
    """Puts back what `held_in` gave, changed or not."""
    if slot.bare is not None and held is not None:
        held = [bare.events_of(node) for node in held]
        if slot.deadline is not None and len(held) == 1:
            (held,) = held
    if slot.form == "single" and held is not None:
        (held,) = held
    setattr(state, slot.name, held)


def _deadline(node: Node, slot: Slot) -> int:
    """When a trailing absence has come true for a run."""
    assert slot.deadline is not None
    after, since_first = slot.deadline
    last = node[EVENT].t + after if after is not None else -NEVER
    first = node[NEWEST_TIME] + since_first if since_first is not None else -NEVER
    return int(max(last, first))


def _newest(held: Any, slot: Slot) -> Iterable[int]:
    """Times of the newest first events of what a slot holds, one for each run or group."""
    if not slot.grouped:
        return [run[NEWEST_TIME] for run in held]
    if slot.form == "one":
        return [held[1]] if held else []
    return [group[1] for group in held.values()]


def _nodes_in(held: Any, slot: Slot) -> list[Node]:
    """The newest nodes of the runs that a slot holds."""
    if not slot.grouped:
        return list(held)
    groups = [held] if slot.form == "one" else held.values()
    return [node for group in groups for node in group[0]]


def _tested_one_by_one(held: Any, slot: Slot) -> list[int]:
    """The newest first events of the runs, or groups, of a slot that are tested one by one."""
    if not held or slot.form in ("one", "single"):
        return []
    if slot.form == "hash":
        return [group[2] for group in held.values()]
    return [run[NEWEST_START] for run in held]


def _oldest(held: Any, slot: Slot) -> int:
    """The oldest first event that any run of a slot may begin with; of groups that is not known."""
    if not held:
        return NEVER
    if not slot.grouped:
        return min(int(run[NEWEST_START]) for run in held)
    return 0


def _pruned(held: Any, slot: Slot, pruner: Pruner) -> Any:
    if not slot.grouped:
        return pruner.runs(held)
    if slot.form == "one":
        return pruner.group(held)
    for key, group in list(held.items()):
        left = pruner.group(group)
        if left is None:
            del held[key]
        elif left is not group:
            held[key] = left
    return held or None
