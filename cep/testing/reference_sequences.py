"""Sequences, `on` and `all`: the runs of each key, and which of them are reported.

A key's state is a list of runs, nothing else. An event is offered to each of them; `reference_runs`
says what each may do with it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from cep.testing.reference_runs import Option, Run, openings, take
from cep.testing.reference_values import (
    Event,
    Found,
    Key,
    Scope,
    Taken,
    Timer,
    World,
    holds,
    key_of,
    value_of,
)
from dsl import checked
from dsl.checked import Guard, Repeat, Step

FOR_EVER = 1 << 62

MOST_CANDIDATES = 10_000
"""So many candidates that `having` refuses are tried for one event."""


@dataclass(frozen=True, slots=True, eq=False)
class Candidate:
    """A run that completes. `took`: it took the event that completed it."""

    run: Run
    time: int
    took: bool


@dataclass(slots=True)
class KeyRuns:
    """The runs of a key; `reported`: the numbers of the first events of reported matches."""

    runs: list[Run] = field(default_factory=list)
    reported: set[int] = field(default_factory=set)


class SequenceMatcher:
    """One rule over all its keys."""

    def __init__(
        self,
        rule: checked.Rule,
        pattern: checked.SequencePattern,
        world: World,
        expected: Sequence[object],
    ) -> None:
        self.rule = rule
        self.pattern = pattern
        self.world = world
        self.keys: dict[Key, KeyRuns] = {}
        self._expected = expected
        self._nodes = list(_all_nodes(pattern.nodes))
        self._watchers = [*_watchers(self._nodes), *rule.unless]
        self._leading = {guard for option in openings(pattern) for guard in option.guards}
        self._forbidden: list[tuple[int, Guard, Key]] = []
        """When an event came that a leading `no` looks for, and for which key."""

    # ------------------------------------------------------------------------ what the engine asks

    def begin(self, time: int) -> None:
        """The first tick of the clock: each expected key has a run that waits."""
        for value in self._expected:
            key = key_of([value])
            if key is None:
                continue
            taken = Taken(Event(-1, time, {}), {})
            run = take(self.pattern, None, openings(self.pattern)[0], taken)
            at_minimum = run.closing and self.rule.report == "at_minimum"
            if not run.complete and not at_minimum:
                self._state(key).runs.append(run)

    def event(self, event: Event, views: Mapping[str, Taken]) -> list[Found]:
        """Offer an event to every key that it belongs to, in the order of keys."""
        found = [each for key in self._routes(views) for each in self._at_key(key, event, views)]
        for guard in self._leading:
            key = self._key_for(guard, views[guard.stream]) if guard.stream in views else None
            if key is not None and _Here(self, key, event, views).hits(guard, None):
                self._forbidden.append((event.time, guard, key))
        return found

    def timers(self) -> Iterator[Timer]:
        """When runs end or are completed by time."""
        for key, state in self.keys.items():
            for run in state.runs:
                yield from (Timer(time, 1, key) for time in self._times(run))

    def fire(self, time: int, key: Key) -> list[Found]:
        """The clock passes `time`: waiting ends complete, what can no longer go on ends."""
        state = self.keys[key]
        completed: list[Candidate] = []
        ended: list[Run] = []
        live: list[Run] = []
        for run in state.runs:
            rest = self._after_time(run, time)
            if any(end.deadline == time for end in run.waits):
                completed.append(Candidate(run, time, took=False))
            elif rest.options or rest.waits:
                if self._kept_until(run) != time:
                    live.append(rest)
            elif rest.closing and self.rule.report == "on_close":
                completed.append(Candidate(rest, time, took=False))
            else:
                ended.append(run)
        state.runs = live
        found = self._select(key, state, completed, ended)
        return found + self._timeouts(key, state, ended, time)

    def waiting(self) -> Iterator[tuple[Key, int | None, int]]:
        """The absences that are still open: key, deadline, time of the first event. One whose run
        `keep` ends before its deadline cannot come true, so it is not open."""
        for key, state in sorted(self.keys.items()):
            for run in state.runs:
                kept_until = self._kept_until(run)
                for end in run.waits:
                    if kept_until is None or end.deadline is None or end.deadline <= kept_until:
                        yield key, end.deadline, run.first.event.time

    # ------------------------------------------------------------------------ keys

    def _state(self, key: Key) -> KeyRuns:
        return self.keys.setdefault(key, KeyRuns())

    def _routes(self, views: Mapping[str, Taken]) -> list[Key]:
        """The keys that any step, `no`, `until` or `unless` gives the event."""
        found = {
            self._key_for(watcher, views[watcher.stream])
            for watcher in self._watchers
            if watcher.stream in views
        }
        return sorted(key for key in found if key is not None)

    def _key_for(self, watcher: Step | Guard, taken: Taken) -> Key | None:
        scope = Scope(self.world, taken.event.time, taken)
        return key_of([value_of(value, scope) for value in watcher.by])

    # ------------------------------------------------------------------------ one event, one key

    def _at_key(self, key: Key, event: Event, views: Mapping[str, Taken]) -> list[Found]:
        state = self._state(key)
        here = _Here(self, key, event, views)
        state.runs = [run for run in state.runs if not here.killed(run)]
        completed: list[Candidate] = []
        extended_first = False
        live: list[Run] = []
        for run in state.runs:
            closed = here.close_gaps(run)
            if self._has_ended(closed):
                if closed.closing and run.options:
                    completed.append(Candidate(closed, event.time, took=False))
                continue
            taken, stays = here.offer(closed)
            extended_first |= any(run.at_first_step and t.at_first_step for t in taken)
            self._settle(taken, live, completed, event.time)
            if stays is not None and not self._has_ended(stays):
                live.append(stays)
            elif stays is not None and stays.closing and self.rule.report == "on_close":
                completed.append(Candidate(stays, event.time, took=False))
        state.runs = live
        self._open(here, state, completed, extended_first)
        found = self._select(key, state, completed, [])
        self._limit(state)
        return found

    def _open(
        self, here: _Here, state: KeyRuns, completed: list[Candidate], extended_first: bool
    ) -> None:
        start = self.rule.start
        busy = bool(state.runs) or any(candidate.took for candidate in completed)
        if (start == "first" and busy) or (start == "latest" and extended_first):
            return
        opened = here.openings()
        if opened and start == "latest":
            state.runs = [run for run in state.runs if not run.at_first_step]
        self._settle(opened, state.runs, completed, here.event.time)

    def _settle(
        self, runs: Iterable[Run], live: list[Run], completed: list[Candidate], time: int
    ) -> None:
        """Put runs that have just taken an event among the complete or the live ones."""
        for run in runs:
            at_minimum = run.closing and self.rule.report == "at_minimum"
            if run.complete or at_minimum:
                completed.append(Candidate(run, time, took=True))
            else:
                live.append(run)

    def _has_ended(self, run: Run) -> bool:
        return not run.options and not run.waits

    def _limit(self, state: KeyRuns) -> None:
        """`limit N runs`: the oldest first events go, with all runs that began with them."""
        if self.rule.limit is None:
            return
        firsts = sorted({run.first.event.order for run in state.runs})
        gone = set(firsts[: max(0, len(firsts) - self.rule.limit)])
        state.runs = [run for run in state.runs if run.first.event.order not in gone]

    # ------------------------------------------------------------------------ time

    def _times(self, run: Run) -> Iterator[int]:
        times = [option.deadline for option in run.options]
        times += [end.deadline for end in run.waits]
        times.append(self._kept_until(run))
        yield from (time for time in times if time is not None)

    def _kept_until(self, run: Run) -> int | None:
        return None if self.rule.keep is None else run.first.event.time + self.rule.keep

    def _after_time(self, run: Run, time: int) -> Run:
        options = tuple(o for o in run.options if o.deadline is None or o.deadline > time)
        return replace(run, options=options)

    def _timeouts(self, key: Key, state: KeyRuns, ended: Sequence[Run], time: int) -> list[Found]:
        """`on timeout`: for each first event of which nothing is left, the furthest run."""
        if self.rule.timeout_alert is None and not self.rule.timeout_emit:
            return []
        alive = {run.first.event.order for run in state.runs} | state.reported
        furthest: dict[int, Run] = {}
        for run in sorted(ended, key=lambda run: (self._progress(run), self._preference(run))):
            if run.first.event.order not in alive:
                furthest.setdefault(run.first.event.order, run)
        return [self._found("timeout", key, furthest[first], time) for first in sorted(furthest)]

    def _progress(self, run: Run) -> tuple[int, int]:
        """How far a run got, the furthest first."""
        names = {name for name, _ in run.bound}
        reached = [
            i
            for i, node in enumerate(self.pattern.nodes)
            if any(isinstance(n, Step) and n.name in names for n in _all_nodes((node,)))
        ]
        return -max(reached), -len(names)

    # ------------------------------------------------------------------------ section 5

    def _select(
        self, key: Key, state: KeyRuns, completed: Sequence[Candidate], ended: list[Run]
    ) -> list[Found]:
        """Report the winners, one after the other; each skip takes away runs and candidates."""
        found: list[Found] = []
        # A run is an assignment: groups that were left out in different ways make no other one.
        left = list({_assignment(each.run): each for each in self._worst_first(completed)}.values())
        refused = 0
        while left and refused < MOST_CANDIDATES:
            best = min(left, key=lambda candidate: self._preference(candidate.run))
            left.remove(best)
            match = self._found("match", key, best.run, best.time)
            if not holds(self.rule.having, self._match_scope(match)):
                refused += 1
                continue
            found.append(match)
            state.reported.add(best.run.first.event.order)
            left = [c for c in left if not self._skipped(c.run, best.run)]
            state.runs = [run for run in state.runs if not self._skipped(run, best.run)]
            ended[:] = [run for run in ended if not self._skipped(run, best.run)]
        return found

    def _worst_first(self, completed: Sequence[Candidate]) -> list[Candidate]:
        return sorted(completed, key=lambda each: self._preference(each.run), reverse=True)

    def _preference(self, run: Run) -> tuple[object, ...]:
        """Smaller is better: oldest first event, greed step by step, branches, earlier events."""
        counts = {name: len(taken) for name, taken in run.by_step().items()}
        greed: list[int] = []
        for node in self._nodes:
            if isinstance(node, Step):
                sign = -1 if node.quantifier.greedy else 1
                greed.append(sign * counts.get(node.name, 0))
            elif isinstance(node, Repeat):
                rounds = sum(n for which, n in run.choices.rounds if which == id(node))
                greed.append(-rounds if node.quantifier.greedy else rounds)
        events = [taken.event.order for _, taken in run.bound]
        names = [name for name, _ in run.bound]
        written = [node.name for node in self._nodes if isinstance(node, Step)]
        steps = [written.index(name) for name in names]
        return (run.first.event.order, greed, run.choices.branches, events, steps)

    def _skipped(self, run: Run, match: Run) -> bool:
        first = run.first.event.order
        if self.rule.skip == "nothing":
            return False
        if self.rule.skip == "past_last":
            return first <= match.last.event.order
        if first == match.first.event.order:
            return True
        if self.rule.skip == "to_next":
            return False
        events = match.by_step()[self.rule.skip_step or ""]
        target = events[0 if self.rule.skip == "to_first" else -1]
        return first < target.event.order

    def _found(self, kind: str, key: Key, run: Run, time: int) -> Found:
        return Found(
            kind=kind,
            key=key,
            time=time,
            bound=run.bound,
            first=run.first.event.time,
            last=run.last.event.time,
        )

    def _match_scope(self, match: Found) -> Scope:
        bound: dict[str, list[Taken]] = {}
        for name, taken in match.bound:
            bound.setdefault(name, []).append(taken)
        tested = match.bound[-1][1] if self.pattern.kind == "on" else None
        key = [value for _, value in match.key]
        return Scope(self.world, match.time, tested, bound, key=key)


class _Here:
    """One event at one key."""

    def __init__(
        self, matcher: SequenceMatcher, key: Key, event: Event, views: Mapping[str, Taken]
    ) -> None:
        self.matcher = matcher
        self.key = key
        self.event = event
        self.views = views

    def killed(self, run: Run) -> bool:
        """Whether an `unless` sees the run."""
        return any(self.hits(guard, run) for guard in self.matcher.rule.unless)

    def close_gaps(self, run: Run) -> Run:
        """The run without what a `no` or an `until` closes on this event."""
        options = [
            option
            for option in run.options
            if not any(self._breaks(guard, run) for guard in option.guards)
            and not (option.until is not None and self.hits(option.until, run, option.step))
        ]
        waits = [
            end for end in run.waits if not any(self._breaks(guard, run) for guard in end.guards)
        ]
        return replace(run, options=tuple(options), waits=tuple(waits))

    def offer(self, run: Run) -> tuple[list[Run], Run | None]:
        """The runs that take the event, and the one that passes it over, if it may."""
        ways = [option for option in run.options if self._fits(option, run)]
        taken = [
            take(self.matcher.pattern, run, option, self.views[option.step.stream])
            for option in ways
        ]
        if any(option.mode != "any" for option in ways):
            return taken, None
        options = tuple(option for option in run.options if option.mode != "next")
        return taken, replace(run, options=options)

    def openings(self) -> list[Run]:
        """The runs that the event opens."""
        return [
            take(self.matcher.pattern, None, option, self.views[option.step.stream])
            for option in openings(self.matcher.pattern)
            if self._fits(option, None) and all(self._was_quiet(g) for g in option.guards)
        ]

    # ------------------------------------------------------------------------ tests

    def _scope(self, taken: Taken, run: Run | None, step: Step | None = None) -> Scope:
        bound = run.by_step() if run is not None else {}
        return Scope(
            self.matcher.world,
            now=self.event.time,
            tested=taken,
            bound=bound,
            loop=bound.get(step.name, ()) if step is not None else (),
            key=[value for _, value in self.key],
        )

    def hits(self, guard: Guard, run: Run | None, step: Step | None = None) -> bool:
        """Whether the event is one that the guard looks for."""
        taken = self.views.get(guard.stream)
        if taken is None or self.matcher._key_for(guard, taken) != self.key:
            return False
        return holds(guard.where, self._scope(taken, run, step))

    def _breaks(self, guard: Guard, run: Run) -> bool:
        if guard.within is not None:
            forbids_until = run.last.event.time + guard.within
        else:
            forbids_until = run.first.event.time + (self.matcher.pattern.within or FOR_EVER)
        return self.event.time <= forbids_until and self.hits(guard, run)

    def _was_quiet(self, guard: Guard) -> bool:
        """A leading `no`: none of its events in `[t − D, t)`, earlier ones at t included."""
        since = self.event.time - (guard.within or 0)
        return not any(
            time >= since and forbids == guard and key == self.key
            for time, forbids, key in self.matcher._forbidden
        )

    def _fits(self, option: Option, run: Run | None) -> bool:
        """Whether the step takes the event: stream, key, time and condition."""
        step = option.step
        taken = self.views.get(step.stream)
        if taken is None or self.matcher._key_for(step, taken) != self.key:
            return False
        time = self.event.time
        if option.deadline is not None and time > option.deadline:
            return False
        after = step.after
        before = option.before
        if after is not None and before is not None and time < before.event.time + after:
            return False
        if option.group is not None:
            return self._fits_group(option, run, taken)
        return holds(step.where, self._scope(taken, run, step))

    def _fits_group(self, option: Option, run: Run | None, taken: Taken) -> bool:
        """Conditions between parts are tested when the last of the parts they name arrives."""
        assert option.group is not None
        node = option.group.node
        there = {node.parts[i].name for i in option.group.parts} | {option.step.name}
        all_parts = {part.name for part in node.parts}
        bound = {**(run.by_step() if run else {}), option.step.name: [taken]}
        for part in node.parts:
            if part.name not in there:
                continue
            for condition in checked.conjuncts(part.where):
                named = (_steps_named(condition) & all_parts) | {part.name}
                if option.step.name in named and named <= there:
                    scope = self._scope(bound[part.name][-1], run)
                    if not holds(condition, replace(scope, bound=bound)):
                        return False
        return True


# ---------------------------------------------------------------------------- reading the pattern


def _assignment(run: Run) -> tuple[tuple[str, int], ...]:
    return tuple((name, taken.event.order) for name, taken in run.bound)


def _all_nodes(nodes: Sequence[checked.Node]) -> Iterator[checked.Node]:
    """All nodes, in the order in which they are written."""
    for node in nodes:
        yield node
        if isinstance(node, checked.OneOf):
            for branch in node.branches:
                yield from _all_nodes(branch)
        elif isinstance(node, checked.AllOf):
            yield from _all_nodes((*node.parts, *node.absent))
        elif isinstance(node, Repeat):
            yield from _all_nodes(node.body)


def _watchers(nodes: Iterable[checked.Node]) -> Iterator[Step | Guard]:
    """Everything that looks at events and has a key of its own."""
    for node in nodes:
        if isinstance(node, Step | Guard):
            yield node
        if isinstance(node, Step) and node.until is not None:
            yield node.until


def _steps_named(value: checked.Value) -> set[str]:
    return {
        part.step
        for part in value.walk()
        if isinstance(part, checked.StepField | checked.StepTime | checked.StepAggregate)
    }
