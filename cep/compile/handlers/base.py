"""What all the code of a handler stands on: the names it uses, conditions, and where runs are put.

`RuleModule` is what the handlers of one rule share. `HandlerBase` knows one handler: the entry of
the dispatch it is for, the tests that have been written so far, and the forms in which states keep
their runs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence

from cep.compile.environment import EventEnv, Surroundings
from cep.compile.expressions import careful, careful_value, said, truth
from cep.compile.writer import Writer
from cep.plan.automaton import Atom, Automaton, Edge, Position, State, Variable
from cep.plan.dispatch import Entry
from cep.plan.states import (
    edge_variables,
    group_bounds,
    in_order,
    is_weighed,
    place_of,
    reach_of,
    tracked,
)
from cep.plan.values import OwnAggregate, Tally
from cep.runtime.rule import grain_of
from cep.runtime.runs import FIRST_VARIABLE
from dsl.checked import StepAggregate, Value

DURABLE = "# durable: "
"""Begins a line that only programs with kept state run."""


MANY_EQUALITIES = 8
"""More steps than this that compare one field with constants are found by a look-up."""

BUNDLE = 32
"""So many ways on that a look-up decides on are passed over by one test."""

KEPT = f"*nd[:{FIRST_VARIABLE}]"
"""All members of the node of a run that changes its state without an event."""


class RuleModule:
    """What the handlers of one rule share: where they stand, and functions for aggregates over
    bound steps that cannot be carried along event by event."""

    def __init__(self, automaton: Automaton, around: Surroundings) -> None:
        self.automaton = automaton
        self.around = around
        self.tracked = tracked(automaton)
        self.helpers = Writer()
        self._names: dict[Tally, str] = {}

    def tally(self, value: Tally | OwnAggregate, bound: bool) -> str:
        """Code for such an aggregate of the run with the newest node `nd`; of one that has no
        event of the step where it is not `bound`."""
        if isinstance(value, OwnAggregate):
            return aggregate_code(value.aggregate, value.aggregate.argument, "(e,)", self.around)
        if value not in self._names:
            name = self._names[value] = f"tally_{len(self._names)}"
            step = self.automaton.steps.index(value.aggregate.step)
            with self.helpers.block(f"def {name}(nd):"):
                code = aggregate_code(
                    value.aggregate, value.aggregate.argument, "events", self.around
                )
                self.helpers(f"events = run.events_of_step(nd, {step})")
                self.helpers(f"return {code}")
        return f"{self._names[value]}({'nd' if bound else 'None'})"


def aggregate_code(
    value: StepAggregate, argument: Value | None, events: str, around: Surroundings
) -> str:
    """Code of an aggregate over the list of a step's events; `argument` is over one event `x`."""
    if argument is None:
        return f"len({events})"
    one = careful_value(argument, EventEnv(around, event="x"))
    name = "count_distinct" if value.distinct else value.function
    extra = "".join(f", {careful_value(v, EventEnv(around))}" for v in value.extra)
    return f"careful.call({said(value)!r}, aggregates.{name}, [{one} for x in {events}]{extra})"


class HandlerBase:
    """One handler: the code that runs for one kind of event."""

    def __init__(self, module: RuleModule, entry: Entry) -> None:
        self.module = module
        self.a = module.automaton
        self.rule = self.a.rule
        self.entry = entry
        self.env = EventEnv(module.around, known=entry.known)
        self.w = Writer()
        self.tests: dict[int, str] = {}
        self.first_tests: dict[int, str] = {}
        self.memberships: dict[tuple[Value, ...], str] = {}
        self.inside = "True"
        self.order = sorted(self.a.states, key=lambda s: (-s.rank, s.index))
        self.visited: set[int] = set()
        self.shared: set[int] = set()
        self.deferred: set[int] = set()
        self.tests_one_by_one = False
        self.is_weighed = is_weighed(self.a)
        self.nested: list[State] = []
        self.hits: dict[str, list[int]] = {}
        """By the name of a set that a look-up gives, the atoms whose numbers may be in it."""

    def _conjunction(self, conditions: Iterable[Value]) -> str:
        codes = [truth(condition, self.env) for condition in conditions]
        return " and ".join(f"({code})" if " " in code else code for code in codes) or "True"

    def _either(self, tests: Iterable[str]) -> str:
        """Code that one of these tests holds; all that look-ups tell are asked at once."""
        left = dict.fromkeys(tests)
        for name, atoms in self.hits.items():
            asked = [index for index in atoms if f"{index} in {name}" in left]
            if len(asked) > 1:
                for index in asked:
                    del left[f"{index} in {name}"]
                left[self._any_of(name, asked)] = None
        return " or ".join(left) or "False"

    def _any_of(self, name: str, atoms: Sequence[int]) -> str:
        """Code that one of these atoms is in the set that a look-up has given."""
        if len(atoms) == len(self.hits[name]):
            return name
        return f"not {name}.isdisjoint({self.env.constant(frozenset(atoms))})"

    def _each_way(self, edges: Sequence[Edge], write: Callable[[Edge], None]) -> None:
        """Writes something for each of these edges. Of those that a look-up decides on many are
        passed over at once where it has found none of them."""
        by_name: dict[str, list[Edge]] = {}
        for edge in edges:
            name = next((n for n, atoms in self.hits.items() if self._atom(edge) in atoms), "")
            by_name.setdefault(name, []).append(edge)
        for edge in by_name.pop("", []):
            write(edge)
        for name, found in by_name.items():
            for first in range(0, len(found), BUNDLE):
                bundle = found[first : first + BUNDLE]
                atoms = list(dict.fromkeys(map(self._atom, bundle)))
                with self.w.block(f"if {self._any_of(name, atoms)}:"):
                    for edge in bundle:
                        write(edge)

    def _assign(self, name: str, code: str, conditions: Sequence[Value], before: str = "") -> None:
        """`name = code`, by the careful form behind `before` when the fast one raises."""
        if not conditions:
            self.w(f"{name} = {code}")
            return
        with self.w.block("try:"):
            self.w(f"{name} = {code}")
        with self.w.block("except Exception:"):
            self.w(f"{name} = {before}{self._slowly(conditions)}")

    def _slowly(self, conditions: Iterable[Value]) -> str:
        """Code of the same conditions in their careful form."""
        return " and ".join(f"{careful(c, self.env)} is True" for c in conditions)

    def _may_complete(self) -> bool:
        """Whether an event of this kind can complete a run."""
        edges = [*self.a.openings, *(edge for state in self.a.states for edge in state.edges)]
        return any(
            self.a.entered[edge.target] is None and self._atom(edge) in self.tests for edge in edges
        )

    def _may_close(self) -> bool:
        """Whether an event of this kind can end a repetition that is complete by then."""
        closing = [state for state in self.a.states if state.key.close is not None]
        ended = {
            atom
            for state in closing
            for atom, target in (
                *state.after_until.items(),
                *((absence.atom, target) for absence, target in state.after_absence.items()),
            )
            if target is None
        }
        broken = any(s.key.close and s.key.close.on_end and s.after_pass is None for s in closing)
        return broken or not ended.isdisjoint(self.tests)

    def _atom(self, edge: Edge) -> int:
        return self.a.positions[edge.target].atom

    def _tells_ends(self) -> bool:
        """Whether something is reported when a run's time is over."""
        closes = any(s.key.close is not None and s.key.close.on_end for s in self.a.states)
        return closes or self.rule.timeout_alert is not None or bool(self.rule.timeout_emit)

    def _arm_end(self) -> None:
        """Wakes the key when the run's time is over: to the tick where something is reported then,
        else in time to clean up."""
        w = self.w
        ends = [length for length in (self.a.within, self.rule.keep) if length is not None]
        if not ends:
            return
        if self._tells_ends():
            w(f"arm(st, t + {min(ends) + 1})")
        else:
            # Where runs wait their end has been asked for, and is not looked up: it lies far away.
            waits_not = "not waits and " if self.a.is_strict_row else ""
            with w.block(f"if {waits_not}not st.wake:"):
                grain = grain_of(ends)
                w(f"st.wake = wake = t + {grain + min(ends) + 1} - t % {grain}")
                w("add(wake, run, st)")

    def _strict_states(self) -> bool:
        return any(state.is_strict for state in self.a.states)

    def _atoms(self, kind: str) -> list[Atom]:
        return [self.a.atoms[i] for i in self.entry.atoms if self.a.atoms[i].kind == kind]

    def _mover(self, state: State, target: int | None) -> Callable[[State], None]:
        """Writes how a run (node `nd`, variables `v…`) goes to another state without an event.
        With no way on it is complete, where a repetition has been waiting for that, or dead."""
        if target is None:
            if state.key.close is None:
                return lambda source: None
            return lambda source: self._push("shut", "nd")

        goes_to = self.a.states[target]
        bounds = [reach_of(s) or group_bounds(self.a, s) for s in (state, goes_to)]
        waits_no_more = state.key.deadline is not None and goes_to.key.deadline is None
        may_be_over = waits_no_more or (bool(bounds[1]) and goes_to.key.close is None)
        ends_earlier = waits_no_more or (bool(bounds[1]) and bounds[0] != bounds[1])

        def move(source: State) -> None:
            names = {v: variable_code(source, v) for v in source.variables}
            in_time = self._in_time(goes_to, names) if may_be_over else "True"
            with self.w.block(f"if {in_time}:"):
                self._insert(goes_to, KEPT, names)
                if ends_earlier:
                    self.w("arm(st, t + 1)")

        return move

    def _in_time(self, state: State, names: Mapping[Variable, str]) -> str:
        """The test that run `nd`, which has lost other ways, may still go on by the edges of
        `state`. One that may not has ended of what took the last way, not of time."""
        tests = ["nd[4] >= low"] if self.a.within is not None else []
        ends = [
            f"{'nd[0].t' if place is None else names.get(state.variables[place], 'nd[0].t')} + {d}"
            for place, d in reach_of(state) or group_bounds(self.a, state)
        ]
        if ends:
            tests.append(f"t <= {ends[0] if len(ends) == 1 else f'max({chr(44).join(ends)})'}")
        return " and ".join(tests) or "True"

    def _guard_test(self, guards: tuple[Value, ...], state: State, timed: str | None) -> None:
        """`ok = …` for guards over the event and a run of `state`."""
        env = self._run_env(state)
        guards = tuple(self.env.settled(guard) for guard in guards)
        fast = [timed] if timed is not None else []
        slow = list(fast)
        fast += [f"({truth(guard, env)})" for guard in guards]
        slow += [f"{careful(guard, env)} is True" for guard in guards]
        if not guards:
            self.w(f"ok = {' and '.join(fast)}")
            return
        with self.w.block("try:"):
            self.w(f"ok = {' and '.join(fast)}")
        with self.w.block("except Exception:"):
            self.w(f"ok = {' and '.join(slow)}")

    def _run_env(self, state: State) -> EventEnv:
        names = {v: variable_code(state, v) for v in state.variables}
        return EventEnv(self.module.around, names, self.module.tracked, self.module.tally)

    def _unpack(self, state: State) -> None:
        """The variables of run `nd` as locals."""
        if state.path:
            (edge,) = state.edges
            for variable in sorted(edge_variables(self.a, edge), key=state.variables.index):
                self.w(f"{variable_code(state, variable)} = {self._in_event(state, variable)}")
            return
        for place, variable in enumerate(state.variables):
            if variable.kind != "history":
                self.w(f"{variable_code(state, variable)} = nd[{FIRST_VARIABLE + place}]")

    def _in_event(self, state: State, variable: Variable) -> str:
        """Code of a variable that stands in an event of the bare run `nd`."""
        place = place_of(variable, state, self.a)
        if place is None:
            return "None"
        assert variable.argument is not None
        event = f"st.e{len(state.path) - place}" if self.a.is_strict_row else f"nd[{place}]"
        return EventEnv(self.module.around, event=event).load(variable.argument)

    def _push(self, slot: str, item: str) -> None:
        with self.w.block(f"if {slot} is None:"):
            self.w(f"{slot} = [{item}]")
        with self.w.block("else:"):
            self.w(f"{slot}.append({item})")

    def _taken_edges(self, state: State) -> list[Edge]:
        return [edge for edge in state.edges if self._atom(edge) in self.tests]

    def _structural_tests(self, state: State, edge: Edge, position: Position) -> list[str]:
        tests = []
        bounds = edge.bounds
        if bounds is not None:
            before = Variable(bounds.step, "before")
            base = "nd[0].t" if bounds.entering else variable_code(state, before)
            if bounds.within is not None:
                tests.append(f"t <= {base} + {bounds.within}")
            if bounds.after is not None:
                tests.append(f"t >= {base} + {bounds.after}")
        if edge.at_least is not None or edge.below is not None:
            counter = variable_code(state, Variable(str(state.key.counted), "counter"))
            if edge.at_least is not None:
                tests.append(f"{counter} >= {edge.at_least}")
            if edge.below is not None:
                tests.append(f"{counter} < {edge.below}")
        if position.group_start is not None and not position.group_first:
            group, within = position.group_start
            began = variable_code(state, Variable(str(group), "began"))
            tests.append(f"t <= {began} + {within}")
        return tests

    def _nothing(self, variable: Variable) -> str:
        """What a variable holds before its step has taken anything."""
        if variable in self.module.tracked:
            return "UNSET"
        return "0" if variable.kind in ("count", "total") else "None"

    def _own_value(self, value: Value, asks_missing: bool) -> str:
        """What a variable keeps of the tested event; UNSET for a missing field only where that is
        asked."""
        value = self.env.settled(value)
        raw = self.env.raw(value)
        if raw is None:
            return careful_value(value, self.env)
        return raw if asks_missing else self.env.load(value)

    def _insert(self, target: State, members: str, names: dict[Variable, str]) -> None:
        """Adds a run to a state: a node of these members, and these variables."""
        values = [
            "None" if v.kind == "history" else names.get(v, self._nothing(v))
            for v in target.variables
        ]
        self._put(target, f"({', '.join([members, *values])},)")

    def _put(self, target: State, run: str) -> None:
        if target.index in self.deferred and target.index not in self.visited:
            self.w(f"w{target.index}.append({run})")
        else:
            self._insert_now(target, run)

    def _insert_now(self, target: State, run: str) -> None:
        w, slot = self.w, f"st.s{target.index}"
        if target.form == "one" and target.path:
            with w.block(f"if {slot} is None:"):
                w(f"{slot} = {run}")
            with w.block(f"elif {slot}.__class__ is list:"):
                w(f"{slot}.append({run})")
            with w.block("else:"):
                w(f"{slot} = [{slot}, {run}]")
        elif target.form == "single":
            w(f"{slot} = {run}")
        elif in_order(self.a, target):
            w(f"{slot} = run.put_in_order({slot}, {run}, {target.index})")
        elif target.form == "list":
            self._push(slot, run)
        elif target.form == "one":
            w(f"nn = {run}")
            with w.block(f"if {slot} is None:"):
                w(f"{slot} = [[nn], nn[4], nn[5]]")
            with w.block("else:"):
                w(f"run.put({slot}, nn)")
        else:
            w(f"{slot} = run.put_hashed({slot}, {run})")

    def _merge_deferred(self) -> None:
        for index in sorted(self.deferred):
            with self.w.block(f"for r in w{index}:"):
                self._insert_now(self.a.states[index], "r")


def variable_code(state: State, variable: Variable) -> str:
    """The local name of a variable of a run in `state`; "None" where the state does not keep it."""
    if variable not in state.variables:
        return "None"
    return f"v{state.variables.index(variable)}"
