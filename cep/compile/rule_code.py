"""Writes the Python of one rule: handlers for events, specialised for this rule and kind of event.

In: an automaton, the shape of events, the constants of the dispatch. Out: text of a function
`make(run, constants)` that gives the handlers, and the constants. Equal rules but for their
constants have equal text, so it is compiled once for all of them.

What a handler does with an event of a key, in the order that the reference lays down:

1. `unless` kills runs; `no` and `until` close edges (runs move to the state without them).
2. States are visited from the last to the first, so that an event is used once per run. A run that
   can take the event moves on with a new node; one that cannot stays (or dies, where strict).
3. The event may open a run.
4. Runs that have become complete go to the selection (`run.finish`).

Conditions are tried in their fast form; when that raises (a value of an unexpected type, a failed
call), the careful three-valued form decides.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from cep.compile.environment import EventEnv, Surroundings
from cep.compile.expressions import careful, careful_value, compute, truth
from cep.compile.writer import Writer
from cep.plan.automaton import Absence, Atom, Automaton, Edge, Position, State, Variable
from cep.plan.dispatch import Entry
from cep.plan.states import equality, group_bounds, reach_of, survives, tracked
from cep.plan.values import FALSE, OwnAggregate, Tally
from cep.runtime.runs import FIRST_VARIABLE
from dsl.checked import Field, StepAggregate, Value


@dataclass(slots=True)
class RuleCode:
    """The text of a rule's module and the objects it refers to; `make` gives a list: a handler for
    each entry of the dispatch."""

    text: str
    constants: list[object]

    @property
    def durable(self) -> str:
        """The text for a program whose state is kept: a state is told before its first change in
        an epoch. Costs one comparison an event."""
        return self.text.replace(DURABLE, "")


def write_rule(automaton: Automaton, entries: Sequence[Entry], around: Surroundings) -> RuleCode:
    """The code of a rule, with one handler for each entry of its dispatch."""
    module = _Module(automaton, around)
    handlers = Writer()
    for entry in entries:
        _Handler(module, entry).write(handlers)
    if automaton.rule.keys_from is not None:
        _Handler(module, NO_EVENT).write_expected(handlers)
    w = Writer()
    with w.block("def make(run, constants):"):
        if around.constants.values:
            names = ", ".join(f"c{i}" for i in range(len(around.constants.values)))
            w(f"({names},) = constants")
        w("states, State, careful = run.states, run.State, run.careful")
        w("get, arm, finish, unrouted = states.get, run.arm, run.finish, run.unrouted")
        w(f"{DURABLE}touch = run.touch")
        for line in (module.tallies.text() + handlers.text()).splitlines():
            w(line)
        if automaton.rule.keys_from is not None:
            w("run.opens_expected = expected")
        w(f"return [{', '.join(f'on_{entry.number}' for entry in entries)}]")
    return RuleCode(w.text(), around.constants.values)


RUN = "nd, -1, nd[4], nd[5], n"
"""The members of a node, after event and position, that goes on from the run `nd`."""

GROUP = "g[0], len(g[0]), g[1], g[2], n"
"""The same for one that goes on from the group `g`."""

KEPT = f"*nd[:{FIRST_VARIABLE}]"
"""All members of the node of a run that changes its state without an event."""

DURABLE = "# durable: "
"""Begins a line that only programs with kept state run."""

NO_EVENT = Entry(-1, None, None, {}, {})
"""The entry of a run that no event opens."""


class _Module:
    """What the handlers of one rule share: where they stand, and functions for aggregates over
    bound steps that cannot be carried along event by event."""

    def __init__(self, automaton: Automaton, around: Surroundings) -> None:
        self.automaton = automaton
        self.around = around
        self.tracked = tracked(automaton)
        self.tallies = Writer()
        self._names: dict[Tally, str] = {}

    def tally(self, value: Tally | OwnAggregate, bound: bool) -> str:
        """Code for such an aggregate of the run with the newest node `nd`; of one that has no
        event of the step where it is not `bound`."""
        if isinstance(value, OwnAggregate):
            return aggregate_code(value.aggregate, value.aggregate.argument, "(e,)", self.around)
        if value not in self._names:
            name = self._names[value] = f"tally_{len(self._names)}"
            step = self.automaton.steps.index(value.aggregate.step)
            with self.tallies.block(f"def {name}(nd):"):
                code = aggregate_code(
                    value.aggregate, value.aggregate.argument, "events", self.around
                )
                self.tallies(f"events = run.events_of_step(nd, {step})")
                self.tallies(f"return {code}")
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
    return f"careful.call(aggregates.{name}, [{one} for x in {events}]{extra})"


class _Handler:
    """One handler: the code that runs for one kind of event."""

    def __init__(self, module: _Module, entry: Entry) -> None:
        self.module = module
        self.a = module.automaton
        self.rule = self.a.rule
        self.entry = entry
        self.env = EventEnv(module.around)
        self.w = Writer()
        self.tests: dict[int, str] = {}
        self.first_tests: dict[int, str] = {}
        self.memberships: dict[tuple[Value, ...], str] = {}
        self.inside = "True"
        self.order = sorted(self.a.states, key=lambda s: (-s.rank, s.index))
        self.visited: set[int] = set()
        self.shared: set[int] = set()
        self.deferred: set[int] = set()

    # ------------------------------------------------------------------ the frame

    def write(self, out: Writer) -> None:
        name = f"on_{self.entry.number}"
        keys = sorted({self.a.atoms[i].key for i in self._routing()})
        with out.block(f"def {name}(e):"):
            out("t = e.t")
            if len(keys) == 1:
                self._lines(out, keys[0])
            else:
                self._several_keys(out, keys)
        if len(keys) > 1:
            with out.block(f"def {name}_key(e, t, k, m):"):
                self._lines(out, None)

    def write_expected(self, out: Writer) -> None:
        """`expected(e, k)`: opens a run for key k with the null event e as its first step's."""
        self.w = out
        edge = self.a.openings[0]
        with out.block("def expected(e, k):"):
            if self.a.entered[edge.target] is None:
                out("return")  # complete with its first event: there is nothing to wait for
                return
            out("t = e.t")
            out("st = states[k] = State()")
            out("st.key = k")
            out(f"{DURABLE}touch(st)")
            out("st.number = n = 1")
            out("done = []")
            self._open_run(edge, self.a.positions[edge.target])

    def _leave_early(self) -> None:
        """An event that fits nothing in a rule is nothing to it, unless strictness counts it."""
        tests = list(dict.fromkeys(self.tests.values()))
        if "True" not in tests and not self._strict_states():
            with self.w.block(f"if not ({' or '.join(tests) or 'False'}):"):
                self.w("return")

    def _key(self, out: Writer, index: int) -> None:
        key = self.a.keys[index]
        if len(key) == 1 and (field := self._plain_field(key[0])) is not None:
            out(f"k = {field}")
            with out.block("if k.__class__ is not str:"):
                out("k = key_of(k)")
                with out.block("if k is None:"):
                    out("return unrouted()")
            return
        self._compute_key(out, index)
        if self.a.keys[index]:
            missing = "k is None" if len(self.a.keys[index]) == 1 else "None in k"
            with out.block(f"if {missing}:"):
                out("return unrouted()")

    def _compute_key(self, out: Writer, index: int) -> None:
        """`k = …`, by the careful form where the fast one raises."""
        slow = self._key_code(index)
        if all(self._plain_field(value) is not None for value in self.a.keys[index]):
            out(f"k = {slow}")
            return
        with out.block("try:"):
            out(f"k = {self._key_code(index, fast=True)}")
        with out.block("except Exception:"):
            out(f"k = {slow}")

    def _key_code(self, index: int, fast: bool = False) -> str:
        parts = [self._key_part(value, fast) for value in self.a.keys[index]]
        if not parts:
            return "()"
        return parts[0] if len(parts) == 1 else f"({', '.join(parts)})"

    def _plain_field(self, value: Value) -> str | None:
        """Code of a field as it stands in the event, where that never means "missing"."""
        if isinstance(value, Field) and not self.module.around.shape.uses[value.path].asks_missing:
            return self.env.load(value)
        return None

    def _key_part(self, value: Value, fast: bool) -> str:
        field = self._plain_field(value)
        if field is not None:
            name = self.env.temporary()
            return f"({name} if ({name} := {field}).__class__ is str else key_of({name}))"
        code = compute(value, self.env) if fast else careful_value(value, self.env)
        return f"key_of({code})"

    def _several_keys(self, out: Writer, keys: list[int]) -> None:
        """An event goes to every key that any of the atoms gives it, to each once."""
        self.w = out
        out("routes = {}")
        for index in keys:
            atoms = [i for i in self._routing() if self.a.atoms[i].key == index]
            tests = [self._membership(i) for i in atoms]
            condition = "True" if "True" in tests else " or ".join(dict.fromkeys(tests))
            with out.block(f"if {condition}:"):
                self._compute_key(out, index)
                missing = "k is None" if len(self.a.keys[index]) == 1 else "None in k"
                if self.a.keys[index]:
                    with out.block(f"if {missing}:"):
                        out("unrouted()")
                    with out.block("else:"):
                        out(f"routes[k] = routes.get(k, 0) | {1 << index}")
                else:
                    out(f"routes[k] = routes.get(k, 0) | {1 << index}")
        with out.block("for k, m in run.in_order(routes):"):
            out(f"on_{self.entry.number}_key(e, t, k, m)")

    def _routing(self) -> list[int]:
        """The atoms that give events of this kind their keys: strictness counts all of them."""
        return self.entry.members if self._strict_states() else self.entry.atoms

    def _membership(self, atom: int) -> str:
        """A name that is true when the event belongs to the stream of an atom; or "True"."""
        conditions = self.entry.membership[atom]
        if not conditions:
            return "True"
        if conditions not in self.memberships:
            name = self.memberships[conditions] = f"b{atom}"
            self._assign(name, self._conjunction(conditions), conditions)
        return self.memberships[conditions]

    def _lines(self, out: Writer, key: int | None) -> None:
        """The body of a handler; `key` is the key that is still to be found (None: it is known, and
        `m` says which atoms are routed by it)."""
        self.several = key is None
        self.w = out
        self.memberships = {}
        self._filters()
        if key is not None:
            self._leave_early()
            self._key(out, key)
        if not self.a.states and not self.a.quiet:
            self._stateless()
            return
        self._find_state()
        self.w = Writer()
        if self._may_complete():
            self.w("done = []")
        if self._may_close():
            self.w("shut = []")
        opening = [edge for edge in self.a.openings if self._atom(edge) in self.tests]
        if self.rule.start == "latest" and opening:
            self.w("extended = False")
        self._unless()
        self._absences()
        self._untils()
        for target in sorted(self._deferrable()):
            self.w(f"w{target} = []")
        self._ask_once()
        for state in self.order:
            self._visit(state)
            self.visited.add(state.index)
        self._merge_deferred()
        self._open(opening)
        self._quiet()
        self._end()
        text = self.w.text()
        for name, length in (("low", self.a.within), ("low_keep", self.rule.keep)):
            if re.search(rf"\b{name}\b", text):
                out(f"{name} = t - {length}")
        out.lines(text)

    def _filters(self) -> None:
        """`x3 = …`: whether the event fits atom 3 by what stands in the event alone."""
        for index in self.entry.atoms:
            condition = self._conjunction(self.entry.filters[index])
            routed = f"m & {1 << self.a.atoms[index].key} and " if self.several else ""
            if self.several:
                condition = f"{routed}{condition}" if condition != "True" else routed[:-5]
            if condition == "True":
                self.tests[index] = "True"
                continue
            self._assign(f"x{index}", condition, self.entry.filters[index], routed)
            self.tests[index] = f"x{index}"
        if self._strict_states():
            self._membership_test()

    def _membership_test(self) -> None:
        """`inside`: whether the event is one of the rule's input streams; strictness counts it."""
        parts = []
        for index in self.entry.members:
            code = self._membership(index)
            if self.several:
                bit = 1 << self.a.atoms[index].key
                code = f"m & {bit}" if code == "True" else f"(m & {bit} and {code})"
            parts.append(code)
        self.inside = "True"
        if "True" not in parts:
            self.w(f"inside = {' or '.join(dict.fromkeys(parts)) or 'False'}")
            self.inside = "inside"

    def _conjunction(self, conditions: Iterable[Value]) -> str:
        codes = [truth(condition, self.env) for condition in conditions]
        return " and ".join(f"({code})" if " " in code else code for code in codes) or "True"

    def _assign(self, name: str, code: str, conditions: Sequence[Value], before: str = "") -> None:
        """`name = code`, by the careful form behind `before` when the fast one raises."""
        if not conditions:
            self.w(f"{name} = {code}")
            return
        slow = " and ".join(f"{careful(c, self.env)} is True" for c in conditions)
        with self.w.block("try:"):
            self.w(f"{name} = {code}")
        with self.w.block("except Exception:"):
            self.w(f"{name} = {before}{slow}")

    def _stateless(self) -> None:
        """A rule of single events: nothing is kept, every event that fits is a match."""
        for edge in self.a.openings:
            test = self._first_tests(edge)
            if test is not None:
                with self.w.block(f"if {test}:"):
                    self.w(f"run.single(k, t, (e, {edge.target}, None, -1, t, 1, 1))")

    def _find_state(self) -> None:
        w = self.w
        w("st = get(k)")
        tests = [test for edge in self.a.openings if (test := self._first_tests(edge))]
        tests += [self.tests[a.atom] for a in self.a.quiet if a.atom in self.tests]
        with w.block("if st is None:"):
            if not tests:
                w("return")
            else:
                if "True" not in tests:
                    with w.block(f"if not ({' or '.join(dict.fromkeys(tests))}):"):
                        w("return")
                w("st = states[k] = State()")
                w("st.key = k")
        w(f"{DURABLE}if st.epoch != run.epoch: touch(st)")
        w("st.number = n = st.number + 1")

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

    def _strict_states(self) -> bool:
        return any(state.is_strict for state in self.a.states)

    # ------------------------------------------------------------------ what kills and closes

    def _unless(self) -> None:
        for atom in self._atoms("unless"):
            with self.w.block(f"if {self.tests[atom.index]}:"):
                if not atom.guards:
                    for state in self.a.states:
                        self.w(f"st.s{state.index} = None")
                    continue
                for state in self.a.states:
                    self._split(state, atom.guards, None, lambda s: None)

    def _atoms(self, kind: str) -> list[Atom]:
        return [self.a.atoms[i] for i in self.entry.atoms if self.a.atoms[i].kind == kind]

    def _absences(self) -> None:
        for atom in self._atoms("no"):
            hits = [
                (state, absence, target)
                for state in self.a.states
                for absence, target in state.after_absence.items()
                if absence.atom == atom.index
            ]
            if not hits:
                continue
            with self.w.block(f"if {self.tests[atom.index]}:"):
                for state, absence, target in hits:
                    timed = self._timed(state, absence)
                    self._split(state, atom.guards, timed, self._mover(state, target))

    def _timed(self, state: State, absence: Absence) -> str | None:
        """The test that an absence still forbids, if that must be asked: one that lasts as long as
        the run waits does."""
        deadline = state.key.deadline
        only_at_end = deadline is not None and not any(
            absence in edge.absences for edge in state.edges
        )
        if absence.within is None:
            if only_at_end and deadline is not None and deadline.after is not None:
                return f"t <= nd[4] + {deadline.since_first}"
            return None
        lasting = deadline is not None and deadline.since_first is None
        if only_at_end and lasting and absence.within == deadline.after:  # type: ignore[union-attr]
            return None
        return f"t <= nd[0].t + {absence.within}"

    def _untils(self) -> None:
        for atom in self._atoms("until"):
            hits = [s for s in self.a.states if atom.index in s.after_until]
            if not hits:
                continue
            with self.w.block(f"if {self.tests[atom.index]}:"):
                for state in hits:
                    target = state.after_until[atom.index]
                    self._split(state, atom.guards, None, self._mover(state, target))

    def _mover(self, state: State, target: int | None) -> Callable[[State], None]:
        """Writes how a run (node `nd`, variables `v…`) goes to another state without an event.
        With no way on it is complete, where a repetition has been waiting for that, or dead."""
        if target is None:
            if state.key.close is None:
                return lambda source: None
            return lambda source: self.w("shut.append(nd)")

        goes_to = self.a.states[target]
        bounds = [reach_of(s) or group_bounds(self.a, s) for s in (state, goes_to)]
        ends_earlier = bool(bounds[1]) and bounds[0] != bounds[1]

        def move(source: State) -> None:
            names = {v: _var(source, v) for v in source.variables}
            self._insert(goes_to, KEPT, names)
            if ends_earlier:
                self.w("arm(st, t + 1)")

        return move

    def _split(
        self,
        state: State,
        guards: tuple[Value, ...],
        timed: str | None,
        hit: Callable[[State], None],
    ) -> None:
        """Runs of `state` for which the guards hold are taken out and given to `hit`."""
        w, slot = self.w, f"st.s{state.index}"
        conditional = bool(guards) or timed is not None
        with w.block(f"if {slot}:"):
            if state.form in ("list", "single"):
                runs = f"({slot},)" if state.form == "single" else slot
                w(f"rs, {slot} = {runs}, None")
                with w.block("for nd in rs:"):
                    self._unpack(state)
                    if conditional:
                        self._guard_test(guards, state, timed)
                        with w.block("if not ok:"):
                            if state.form == "single":
                                w(f"{slot} = nd")
                            else:
                                self._push(slot, "nd")
                            w("continue")
                    hit(state)
            elif state.form == "one":
                if conditional:  # nothing of these runs can be seen: it holds for all or for none
                    self._guard_test(guards, state, timed)
                with w.block("if ok:" if conditional else "if True:"):
                    w(f"g, {slot} = {slot}, None")
                    with w.block("for nd in g[0]:"):
                        hit(state)
            else:
                w(f"d, {slot} = {slot}, None")
                with w.block("for hk, g in d.items():"):
                    w(f"{_var(state, state.variables[0])} = g[3]")
                    if conditional:
                        self._guard_test(guards, state, timed)
                        with w.block("if not ok:"):
                            with w.block(f"if {slot} is None:"):
                                w(f"{slot} = {{}}")
                            w(f"{slot}[hk] = g")
                            w("continue")
                    with w.block("for nd in g[0]:"):
                        hit(state)

    def _guard_test(self, guards: tuple[Value, ...], state: State, timed: str | None) -> None:
        """`ok = …` for guards over the event and a run of `state`."""
        env = self._run_env(state)
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
        names = {v: _var(state, v) for v in state.variables}
        return EventEnv(self.module.around, names, self.module.tracked, self.module.tally)

    def _unpack(self, state: State) -> None:
        """The variables of run `nd` as locals."""
        for place, variable in enumerate(state.variables):
            if variable.kind != "history":
                self.w(f"{_var(state, variable)} = nd[{FIRST_VARIABLE + place}]")

    def _push(self, slot: str, item: str) -> None:
        with self.w.block(f"if {slot} is None:"):
            self.w(f"{slot} = [{item}]")
        with self.w.block("else:"):
            self.w(f"{slot}.append({item})")

    # ------------------------------------------------------------------ steps of live runs

    def _deferrable(self) -> set[int]:
        """States that runs may enter before they have been visited."""
        place = {state.index: i for i, state in enumerate(self.order)}
        found: set[int] = set()
        for state in self.order:
            for edge in self._taken_edges(state):
                target = self.a.entered[edge.target]
                if target is None:
                    continue
                ahead = place[target] > place[state.index]
                if ahead or (target == state.index and state.form == "hash"):
                    found.add(target)
            after = state.after_pass
            if after is not None and after != state.index and place[after] > place[state.index]:
                found.add(after)
        self.deferred = found
        return found

    def _taken_edges(self, state: State) -> list[Edge]:
        return [edge for edge in state.edges if self._atom(edge) in self.tests]

    def _visit(self, state: State) -> None:
        edges = self._taken_edges(state)
        strict = state.is_strict
        if not edges and not strict:
            return
        tests = list(dict.fromkeys(self.tests[self._atom(edge)] for edge in edges))
        if strict:
            tests = [self.inside, *tests]
        guard = "" if "True" in tests else f" and ({' or '.join(tests)})"
        with self.w.block(f"if st.s{state.index}{guard}:"):
            if state.form == "single":
                self._visit_single(state, edges)
            elif state.form == "list":
                self._visit_list(state, edges)
            elif state.form == "one":
                self._visit_one(state, edges)
            elif not strict and all(self._equality(state, edge) for edge in edges):
                self._visit_hash(state, edges)
            else:
                self._visit_hashed_groups(state, edges)

    def _equality(self, state: State, edge: Edge) -> tuple[Value, tuple[Value, ...]] | None:
        """The event's side of an edge's equality with the hash variable, and the other guards."""
        assert state.hash_variable is not None
        guards = self.a.positions[edge.target].guards
        for guard in guards:
            own = equality(guard, state.hash_variable)
            if own is not None:
                return own, tuple(other for other in guards if other is not guard)
        return None

    def _expired(self, state: State) -> str | None:
        """The test that a run can take nothing any more because its time is over."""
        tests = []
        if self.a.within is not None and state.key.deadline is None:
            tests.append("nd[4] < low")
        if self.rule.keep is not None:
            tests.append("nd[4] < low_keep")
        return " or ".join(tests) or None

    def _visit_list(self, state: State, edges: list[Edge]) -> None:
        w = self.w
        slot = f"st.s{state.index}"
        w(f"rs, {slot} = {slot}, None")
        w("keep = []")
        with w.block("for nd in rs:"):
            self._unpack(state)
            expired = self._expired(state)
            if expired is not None:
                with w.block(f"if {expired}:"):
                    w("continue")
            if len(edges) == 1 and edges[0].mode != "any" and state.after_pass == state.index:
                self._take_or_keep(state, edges[0])
            else:
                stays = self._takes(state, edges, RUN)
                self._pass_over(state, stays, "keep.append(nd)")
        if any(self.a.entered[edge.target] == state.index for edge in edges):
            with w.block("if keep:"):
                w(f"{slot} = {slot} + keep if {slot} else keep")
        else:
            w(f"{slot} = keep or None")

    def _take_or_keep(self, state: State, edge: Edge) -> None:
        """The one way on of a relaxed place: a run takes the event, or stays as it is."""
        position = self.a.positions[edge.target]
        test = self._edge_test(state, edge, position)
        if test is None:
            self._arrive(state, edge, position, RUN)
            return
        with self.w.block(f"if {test}:"):
            self._arrive(state, edge, position, RUN)
        with self.w.block("else:"):
            self.w("keep.append(nd)")

    def _ask_once(self) -> None:
        """`asked = …`: a guard that the runs of several strict places share. They have all taken
        the event before this one, so what the guard sees of them is the same."""
        places = [
            state
            for state in self.order
            if state.form == "single" and len(self._taken_edges(state)) == 1
        ]
        if self.inside != "True" or len(places) < 2:
            return
        nearest = places[-1]
        wanted = self._what_is_asked(nearest)
        alike = [state for state in places if self._what_is_asked(state) == wanted]
        if wanted is None or len(alike) < 2:
            return
        self.w(f"nd = {' or '.join(f'st.s{state.index}' for state in reversed(alike))}")
        self.w("asked = False")
        with self.w.block("if nd:"):
            self._unpack(nearest)
            (edge,) = self._taken_edges(nearest)
            test = self._edge_test(nearest, edge, self.a.positions[edge.target])
            self.w(f"asked = {test or 'True'}")
        self.shared = {state.index for state in alike}

    def _what_is_asked(self, state: State) -> object:
        """What decides whether a run of a strict place takes the event, if that is the same for all
        runs with the same last event; else None."""
        (edge,) = self._taken_edges(state)
        position = self.a.positions[edge.target]
        seen_of_last = all(v.kind == "last" and v.step == position.step for v in state.variables)
        if not position.guards or not seen_of_last or state.may_be_bound != {position.step}:
            return None
        if self._structural_tests(state, edge, position) or edge.mode != "next":
            return None
        return self.tests[position.atom], position.guards, state.variables

    def _visit_single(self, state: State, edges: list[Edge]) -> None:
        """A strict place with one run: it goes on, or it is over."""
        w = self.w
        w(f"nd, st.s{state.index} = st.s{state.index}, None")
        if state.index not in self.shared:
            self._unpack(state)
        expired = self._expired(state)
        with w.block(f"if not ({expired}):" if expired is not None else "if True:"):
            ends = self.inside == "True" and state.key.close is None
            stays = self._takes(state, edges, RUN, flagged=not ends)
            if not ends:
                self._pass_over(state, stays, f"st.s{state.index} = nd")

    def _pass_over(self, state: State, stays: str | None, keep: str) -> None:
        """What becomes of a run that did not take the event: `stays` is the test, None: always."""
        w = self.w

        def passed() -> None:
            if state.after_pass == state.index:
                w(keep)
                return

            def other() -> None:
                close = state.key.close
                if state.after_pass is not None or (close is not None and close.on_end):
                    self._mover(state, state.after_pass)(state)

            if self.inside == "True":
                other()
            else:
                with w.block(f"if not {self.inside}:"):
                    w(keep)
                with w.block("else:"):
                    other()

        if stays is None:
            passed()
        elif stays != "False":
            with w.block(f"if {stays}:"):
                passed()

    def _takes(
        self, state: State, edges: list[Edge], history: str, flagged: bool = True
    ) -> str | None:
        """Tries each edge with the run `nd`; returns the test that the run is passed over, for
        which a flag is kept where it is `flagged`."""
        w = self.w
        if not edges:
            return None
        certain = False
        uses_flag = flagged and any(edge.mode != "any" for edge in edges)
        if uses_flag:
            w("stays = True")
        for edge in edges:
            position = self.a.positions[edge.target]
            test = self._edge_test(state, edge, position)

            def take(edge: Edge = edge, position: Position = position) -> None:
                self._arrive(state, edge, position, history)
                if uses_flag and edge.mode != "any":
                    w("stays = False")

            if test is None:
                take()
                certain = certain or edge.mode != "any"
            else:
                with w.block(f"if {test}:"):
                    take()
        if not uses_flag:
            return None
        return "False" if certain else "stays"

    def _edge_test(self, state: State, edge: Edge, position: Position) -> str | None:
        """Code of the test whether a run takes the event by this edge; None when it always does."""
        if state.index in self.shared:
            return "asked"
        tests = []
        if self.tests[position.atom] != "True":
            tests.append(self.tests[position.atom])
        if self.a.within is not None and state.key.deadline is not None:
            tests.append("nd[4] >= low")
        tests += self._structural_tests(state, edge, position)
        if not position.guards:
            return " and ".join(tests) or None
        if FALSE in position.guards:
            return "False"
        if tests:
            self.w(f"ok = {' and '.join(tests)}")
            with self.w.block("if ok:"):
                self._guard_test(position.guards, state, None)
        else:
            self._guard_test(position.guards, state, None)
        return "ok"

    def _structural_tests(self, state: State, edge: Edge, position: Position) -> list[str]:
        tests = []
        bounds = edge.bounds
        if bounds is not None:
            before = Variable(bounds.step, "before")
            base = "nd[0].t" if bounds.entering else _var(state, before)
            if bounds.within is not None:
                tests.append(f"t <= {base} + {bounds.within}")
            if bounds.after is not None:
                tests.append(f"t >= {base} + {bounds.after}")
        if edge.at_least is not None or edge.below is not None:
            counter = _var(state, Variable(str(state.key.counted), "counter"))
            if edge.at_least is not None:
                tests.append(f"{counter} >= {edge.at_least}")
            if edge.below is not None:
                tests.append(f"{counter} < {edge.below}")
        if position.group_start is not None and not position.group_first:
            group, within = position.group_start
            began = _var(state, Variable(str(group), "began"))
            tests.append(f"t <= {began} + {within}")
        return tests

    def _arrive(self, state: State | None, edge: Edge, position: Position, history: str) -> None:
        """The run gets where the edge leads: it is complete, or waits in a state. `history`: the
        members of its new node after event and position."""
        index = self.a.entered[position.index]
        if (
            self.rule.start == "latest"
            and state is not None
            and state.at_first_step
            and position.step in state.may_be_bound
        ):
            self.w("extended = True")
        members = f"e, {position.index}, {history}"
        if index is None:
            self.w(f"done.append(({members}))")
            return
        target = self.a.states[index]
        names = {v: self._updated(v, state, edge, position) for v in target.variables}
        self._insert(target, members, names)
        self._arm_deadline(target, {RUN: "nd[4]", GROUP: "g[1]"}.get(history, "t"))

    def _arm_deadline(self, target: State, first: str) -> None:
        deadline = target.key.deadline
        if deadline is not None:
            ends = []
            if deadline.after is not None:
                ends.append(f"t + {deadline.after + 1}")
            if deadline.since_first is not None:
                ends.append(f"{first} + {deadline.since_first + 1}")
            self.w(f"arm(st, {ends[0] if len(ends) == 1 else f'max({chr(44).join(ends)})'})")
        elif reach_of(target) or group_bounds(self.a, target):
            self.w(f"run.arm_reach(st, {target.index}, t)")

    def _updated(
        self, variable: Variable, state: State | None, edge: Edge, position: Position
    ) -> str:
        """Code of a variable's value after taking the event at `position` from `state`."""
        old = None
        if state is not None and survives(variable, edge, position, state):
            old = _var(state, variable) if variable in state.variables else None
        if variable.kind == "before":
            return old if old is not None else "nd[0].t" if state is not None else "t"
        if variable.kind == "began":
            return old if old is not None else "t"
        if variable.kind == "counter":
            return f"{old} + 1" if old is not None else "1"
        if variable.kind == "history":
            return "None"
        if variable.step != position.step:
            return old if old is not None else self._nothing(variable)
        return self._with_event(variable, old)

    def _nothing(self, variable: Variable) -> str:
        return (
            "UNSET"
            if variable in self.module.tracked
            else "0"
            if variable.kind == "count"
            else "None"
        )

    def _with_event(self, variable: Variable, old: str | None) -> str:
        """The variable of a step after one more of its events, the tested one."""
        if variable.kind == "count" and variable.argument is None:
            return f"({old} or 0) + 1" if old is not None else "1"
        assert variable.argument is not None
        new = self._own_value(variable.argument, variable in self.module.tracked)
        if variable.kind == "last":
            return new
        if variable.kind == "first":
            if old is None:
                return new
            return f"({new} if {old} is {self._nothing(variable)} else {old})"
        return f"run.step_{variable.kind}({old}, {new})"

    def _visit_one(self, state: State, edges: list[Edge]) -> None:
        w, slot = self.w, f"st.s{state.index}"
        w(f"g = {slot}")
        expired = self._expired(state)
        if expired is not None:
            with w.block(f"if {expired.replace('nd[4]', 'g[1]')}:"):
                w(f"{slot} = None")
            with w.block("else:"):
                self._take_group(state, edges)
        else:
            self._take_group(state, edges)

    def _take_group(self, state: State, edges: list[Edge]) -> None:
        w, slot = self.w, f"st.s{state.index}"
        w(f"{slot} = None")
        if self._all_take(state, edges):
            self._takes(state, edges, GROUP, flagged=False)
            return
        stays = self._takes(state, edges, GROUP)

        def put_back() -> None:
            if state.after_pass == state.index or self.inside != "True":
                with w.block(f"if {slot} is None:"):
                    w(f"{slot} = g")
                with w.block("else:"):
                    w(f"{slot} = run.join(g, {slot})")

        self._pass_over_group(state, stays, put_back)

    def _all_take(self, state: State, edges: list[Edge]) -> bool:
        """Whether an event that is looked at here at all is taken by all runs of a group."""
        return not state.is_strict and all(
            edge.mode != "any"
            and not self._structural_tests(state, edge, self.a.positions[edge.target])
            and not self.a.positions[edge.target].guards
            and (self.a.within is None or state.key.deadline is None)
            for edge in edges
        )

    def _pass_over_group(
        self, state: State, stays: str | None, put_back: Callable[[], None]
    ) -> None:
        w = self.w

        def passed() -> None:
            if state.after_pass == state.index:
                put_back()
                return

            def other() -> None:
                close = state.key.close
                if state.after_pass is not None or (close is not None and close.on_end):
                    with w.block("for nd in g[0]:"):
                        self._mover(state, state.after_pass)(state)

            if self.inside == "True":
                other()
            else:
                with w.block(f"if not {self.inside}:"):
                    put_back()
                with w.block("else:"):
                    other()

        if stays is None:
            passed()
        elif stays != "False":
            with w.block(f"if {stays}:"):
                passed()

    def _visit_hash(self, state: State, edges: list[Edge]) -> None:
        """Only the group whose value equals the event's can take it: one look-up an edge."""
        w, slot = self.w, f"st.s{state.index}"
        w(f"d = {slot}")
        name = _var(state, state.variables[0])
        for edge in edges:
            found = self._equality(state, edge)
            assert found is not None
            own, others = found
            position = self.a.positions[edge.target]
            test = self.tests[position.atom]
            with w.block(f"if {test}:") if test != "True" else w.block("if True:"):
                w(f"hk = key_of({careful_value(own, self.env)})")
                w("g = d.get(hk) if hk is not None else None")
                expired = self._expired(state)
                alive = f" and not ({expired.replace('nd[4]', 'g[1]')})" if expired else ""
                with w.block(f"if g is not None{alive}:"):
                    w(f"{name} = g[3]")
                    if others:
                        self._guard_test(others, state, None)
                    with w.block("if ok:" if others else "if True:"):
                        if edge.mode != "any":
                            w("del d[hk]")
                        self._arrive(state, edge, position, GROUP)

    def _visit_hashed_groups(self, state: State, edges: list[Edge]) -> None:
        w, slot = self.w, f"st.s{state.index}"
        w(f"d, {slot} = {slot}, None")
        with w.block("for hk, g in d.items():"):
            w(f"{_var(state, state.variables[0])} = g[3]")
            expired = self._expired(state)
            if expired is not None:
                with w.block(f"if {expired.replace('nd[4]', 'g[1]')}:"):
                    w("continue")
            stays = self._takes(state, edges, GROUP)

            def put_back() -> None:
                with w.block(f"if {slot} is None:"):
                    w(f"{slot} = {{}}")
                w(f"{slot}[hk] = run.join(g, {slot}[hk]) if hk in {slot} else g")

            self._pass_over_group(state, stays, put_back)

    def _own_value(self, value: Value, asks_missing: bool) -> str:
        """What a variable keeps of the tested event; UNSET for a missing field only where that is
        asked."""
        raw = self.env.raw(value)
        if raw is None:
            return careful_value(value, self.env)
        return raw if asks_missing else self.env.load(value)

    # ------------------------------------------------------------------ putting runs into states

    def _insert(self, target: State, members: str, names: dict[Variable, str]) -> None:
        """Adds a run to a state: a node of these members, and these variables."""
        values = [
            "None" if v.kind == "history" else names.get(v, self._nothing(v))
            for v in target.variables
        ]
        run = f"({', '.join([members, *values])},)"
        if target.index in self.deferred and target.index not in self.visited:
            self.w(f"w{target.index}.append({run})")
        else:
            self._insert_now(target, run)

    def _insert_now(self, target: State, run: str) -> None:
        w, slot = self.w, f"st.s{target.index}"
        if target.form == "single":
            w(f"{slot} = {run}")
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

    # ------------------------------------------------------------------ openings and the end

    def _open(self, openings: list[Edge]) -> None:
        """The event may open runs; with `start latest` they replace those at their first step."""
        w = self.w
        common = [
            f"(st.q{i} is None or t - st.q{i} > {absence.within})"
            for i, absence in enumerate(self.a.quiet)
        ]
        if self.rule.start == "first" and openings:
            completing = "done or " if self._may_complete() else ""
            w(f"free = not ({completing}run.has_runs(st, t))")
            common.append("free")
        if self.rule.start == "latest":
            common.append("not extended")
        conditions = [self._opening_test(edge, common) for edge in openings]
        if self.rule.start == "latest" and openings:
            for number, condition in enumerate(conditions):
                w(f"opens{number} = {condition}")
            conditions = [f"opens{number}" for number in range(len(openings))]
            with w.block(f"if {' or '.join(conditions)}:"):
                for state in self.a.states:
                    if state.at_first_step:
                        w(f"st.s{state.index} = None")
        for condition, edge in zip(conditions, openings, strict=True):
            if condition == "True":
                self._open_run(edge, self.a.positions[edge.target])
            else:
                with w.block(f"if {condition}:"):
                    self._open_run(edge, self.a.positions[edge.target])

    def _opening_test(self, edge: Edge, common: list[str]) -> str:
        test = self._first_tests(edge)
        assert test is not None
        return " and ".join([*([test] if test != "True" else []), *common]) or "True"

    def _first_tests(self, edge: Edge) -> str | None:
        """Whether the event fits as a first one, by itself; None: no event of this kind does."""
        position = self.a.positions[edge.target]
        if position.atom not in self.tests:
            return None
        if not position.guards:
            return self.tests[position.atom]
        if edge.target not in self.first_tests:
            # Whatever the guards of a first step look back at is not there.
            env = EventEnv(self.module.around, tally=self.module.tally)
            guards = [f"{careful(guard, env)} is True" for guard in position.guards]
            name = self.first_tests[edge.target] = f"y{edge.target}"
            self.w(f"{name} = {' and '.join([self.tests[position.atom], *guards])}")
        return self.first_tests[edge.target]

    def _open_run(self, edge: Edge, position: Position) -> None:
        self._arrive(None, edge, position, "None, -1, t, n, n")
        if self.a.entered[position.index] is not None:
            self._arm_end()

    def _arm_end(self) -> None:
        """Wakes the key when the run's time is over: to the tick where something is reported then,
        else in time to clean up."""
        w = self.w
        ends = [length for length in (self.a.within, self.rule.keep) if length is not None]
        if not ends:
            return
        rule = self.rule
        closes = any(s.key.close is not None and s.key.close.on_end for s in self.a.states)
        if closes or rule.timeout_alert is not None or rule.timeout_emit:
            w(f"arm(st, t + {min(ends) + 1})")
        else:
            with w.block("if not st.wake:"):
                w(f"arm(st, run.bucket(t) + {min(ends) + 1})")

    def _quiet(self) -> None:
        """A leading `no` remembers when its last event came."""
        for i, absence in enumerate(self.a.quiet):
            test = self.tests.get(absence.atom)
            if test is None:
                continue
            with self.w.block(f"if {test}:"):
                self.w(f"st.q{i} = t")
                self.w(f"arm(st, t + {(absence.within or 0) + 1})")

    def _end(self) -> None:
        w = self.w
        low = "low" if self.a.within is not None else "None"
        lists = ["done"] if self._may_complete() else []
        lists += ["shut"] if self._may_close() else []
        if lists:
            with w.block(f"if {' or '.join(lists)}:"):
                call = f"finish(st, t, {' + '.join(lists)}, {low})"
                if self.rule.skip == "past_last" and lists == ["done"]:
                    with w.block(f"if {call}:"):
                        for state in self.a.states:
                            w(f"st.s{state.index} = None")
                elif self.rule.skip == "past_last":
                    with w.block(f"if {call}:"):
                        w("run.sweep(st)")
                else:
                    w(call)
        if self.rule.limit is not None and any(
            self._atom(edge) in self.tests for edge in self.a.openings
        ):
            w("run.limit(st, t)")
        may_open_nothing = bool(self.a.quiet) or any(
            self.a.entered[edge.target] is None or self.a.positions[edge.target].guards
            for edge in self.a.openings
        )
        if self.a.states and (may_open_nothing or self.a.keep is None):
            # Else a run was opened whose time is bounded, and the key is woken when it is over.
            empty = " or ".join(f"st.s{state.index}" for state in self.a.states)
            with w.block(f"if not (st.wake or {empty}):"):
                w("run.forget(st)")
        elif not self.a.states:
            with w.block("if not st.wake:"):
                w("run.forget(st)")


def _var(state: State, variable: Variable) -> str:
    """The local name of a variable of a run in `state`; "None" where the state does not keep it."""
    if variable not in state.variables:
        return "None"
    return f"v{state.variables.index(variable)}"
