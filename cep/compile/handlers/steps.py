"""Writes what an event does to live runs: states are visited from the last to the first.

So an event is used once per run. A run that can take the event moves on with a new node; one that
cannot stays where it is, or dies where it is strict. How a state is visited depends on the form in
which it keeps its runs: one group, a group for each value, a single run, or a list.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import nullcontext

from cep.compile.expressions import careful_value
from cep.compile.handlers.base import HandlerBase, variable_code
from cep.plan.automaton import Edge, Position, State, Variable
from cep.plan.states import equality, group_bounds, in_order, most_runs, reach_of, survives
from cep.plan.values import FALSE
from cep.runtime.runs import NO_TIME
from dsl.checked import Value

RUN = "nd, -1, nd[4], nd[5], n"
"""The members of a node, after event and position, that goes on from the run `nd`."""

FEW_PLACES = 3
"""So many places are looked at one by one."""

GROUP = "g[0], len(g[0]), g[1], g[2], n"
"""The same for one that goes on from the group `g`."""


class Steps(HandlerBase):
    """The part of a handler that moves runs on."""

    def _deferrable(self) -> set[int]:
        """States that runs may enter before they have been visited: nested places first and at
        once, then in `order`."""
        place = {state.index: i for i, state in enumerate(self.order)}
        place |= {state.index: -1 for state in self.nested}
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

    def _nested(self) -> list[State]:
        """Places from which ways lead where ways from all places before them in this list lead too,
        as those of optional steps; [] where there are few. An event takes all runs away from each
        of them, and gets where they go by one node, however many of the places they come from."""
        if self.rule.start == "latest":
            return []
        places = [state for state in self.a.states if self._goes_on_whole(state)]
        places.sort(key=lambda state: -len(self._taken_edges(state)))
        found: list[State] = []
        for state in places:
            if not found or self._targets(state) <= self._targets(found[-1]):
                found.append(state)
        if len(found) <= FEW_PLACES:
            return []
        entered = {self.a.entered[target] for target in self._targets(found[0])}
        ahead = [self.a.states[index] for index in entered if index is not None]
        plain = all(s.form == "one" and not s.path and s.key.deadline is None for s in ahead)
        still = all(s in found or not (s.is_strict or self._taken_edges(s)) for s in ahead)
        return found if plain and still else []

    def _goes_on_whole(self, state: State) -> bool:
        """Whether an event that is looked at in a place is taken by all who wait there, of whom
        nothing is seen."""
        edges = self._taken_edges(state)
        if state.form != "one" or state.path or state.key.deadline is not None or not edges:
            return False
        return self._all_take(state, edges)

    def _targets(self, state: State) -> set[int]:
        return {edge.target for edge in self._taken_edges(state)}

    def _visit_together(self, places: list[State]) -> None:
        """The groups of nested places go on: `joint` has the runs of all of them, and whoever comes
        from the first k places is a beginning of it."""
        w = self.w
        w("joint = []")
        w(f"jt = js = {NO_TIME}")
        last: dict[int, tuple[int, State, Edge]] = {}
        for k, state in enumerate(places):
            slot, expired = f"st.s{state.index}", self._expired(state)
            with w.block(f"if {slot} is not None{self._tests_of(self._taken_edges(state))}:"):
                w(f"g, {slot} = {slot}, None")
                with w.block(
                    f"if not ({expired.replace('nd[4]', 'g[1]')}):" if expired else "if True:"
                ):
                    w("joint += g[0]")
                    w("if g[1] > jt: jt = g[1]")
                    w("if g[2] > js: js = g[2]")
            w(f"z{k}, jt{k}, js{k} = len(joint), jt, js")
            last |= {edge.target: (k, state, edge) for edge in self._taken_edges(state)}
        for k, state, edge in last.values():
            position = self.a.positions[edge.target]
            test = self.tests[position.atom]
            with w.block(f"if z{k}:" if test == "True" else f"if z{k} and {test}:"):
                self._arrive(state, edge, position, f"joint, z{k}, jt{k}, js{k}, n")

    def _tests_of(self, edges: list[Edge]) -> str:
        """` and …`: that an event fits one of these ways; nothing where it always does."""
        tests = list(dict.fromkeys(self.tests[self._atom(edge)] for edge in edges))
        return "" if "True" in tests else f" and ({self._either(tests)})"

    def _visit(self, state: State) -> None:
        edges = self._taken_edges(state)
        strict = state.is_strict
        if not edges and not strict:
            return
        tests = list(dict.fromkeys(self.tests[self._atom(edge)] for edge in edges))
        if strict:
            tests = [self.inside, *tests]
        guard = "" if "True" in tests else f" and ({self._either(tests)})"
        there = "" if state.form == "hash" else " is not None"
        with self.w.block(f"if st.s{state.index}{there}{guard}:"):
            if state.form == "single":
                self._visit_single(state, edges)
            elif state.form == "list":
                self._visit_list(state, edges)
            elif state.form == "one":
                self._visit_one(state, edges)
            elif self._asks_each_group(state):
                self._visit_hashed_groups(state, edges)
            else:
                self._visit_hash(state, edges)

    def _asks_each_group(self, state: State) -> bool:
        """Whether all groups by a value are tested: the one that may take the event cannot be
        looked up."""
        if state.form != "hash":
            return False
        return state.is_strict or not all(
            self._equality(state, edge) for edge in self._taken_edges(state)
        )

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
        began = "nd[0].t" if state.path else "nd[4]"
        if self.a.within is not None and state.key.deadline is None:
            tests.append(f"{began} < low")
        if self.rule.keep is not None:
            tests.append(f"{began} < low_keep")
        return " or ".join(tests) or None

    def _visit_list(self, state: State, edges: list[Edge]) -> None:
        w = self.w
        slot = f"st.s{state.index}"
        w(f"rs, {slot} = {slot}, None")
        self._note_crowd("rs", edges)
        if self._all_go_on(state, edges):
            self._let_all_go_on(state, edges[0])
            return
        w("keep = []")
        with w.block("for nd in rs:"):
            self._leave_out_expired(state)
            self._unpack(state)
            if len(edges) == 1 and edges[0].mode != "any" and state.after_pass == state.index:
                self._take_or_keep(state, edges[0])
            else:
                stays = self._takes(state, edges, RUN)
                self._pass_over(state, stays, "keep.append(nd)")
        if any(self.a.entered[edge.target] == state.index for edge in edges):
            with w.block("if keep:"):
                both = f"{slot} + keep"
                if in_order(self.a, state):
                    both = f"run.sorted({both}, {state.index})"
                w(f"{slot} = {both} if {slot} else keep")
        else:
            w(f"{slot} = keep or None")

    def _leave_out_expired(self, state: State) -> None:
        """On with the next run where the time of this one is over."""
        expired = self._expired(state)
        if expired is not None:
            with self.w.block(f"if {expired}:"):
                self.w("continue")

    def _all_go_on(self, state: State, edges: list[Edge]) -> bool:
        """Whether every bare run of a place takes the event, and then waits in another."""
        if not state.path or len(edges) != 1 or state.after_pass != state.index:
            return False
        position = self.a.positions[edges[0].target]
        index = self.a.entered[position.index]
        if index is None or self.a.states[index].form != "list" or edges[0].mode == "any":
            return False
        waits = self.a.states[index].key.deadline is not None
        return not (waits or position.guards or self._edge_test(state, edges[0], position))

    def _let_all_go_on(self, state: State, edge: Edge) -> None:
        """All runs in `rs` whose time is not over take the event."""
        w = self.w
        index = self.a.entered[edge.target]
        w(f"to = st.s{index}")
        with w.block("if to is None:"):
            w("to = []")
        with w.block("for nd in rs:"):
            self._leave_out_expired(state)
            w(f"to.append(({', '.join(f'nd[{place}]' for place in range(len(state.path)))}, e))")
        w(f"st.s{index} = to or None")

    def _note_crowd(self, runs: str, edges: list[Edge]) -> None:
        """`crowded`: whether more runs, or groups, are tested one by one than a cap allows.
        `made`: most nodes that the event makes of these."""
        self.tests_one_by_one = True
        if self.is_weighed and edges:
            self.w(
                f"made += len({runs}) * {len(edges)}" if len(edges) > 1 else f"made += len({runs})"
            )
        with self.w.block(f"if len({runs}) > {most_runs(self.a)}:"):
            self.w("crowded = True")

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
            if state.form == "single" and not state.path and len(self._taken_edges(state)) == 1
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
        with self.w.block("if nd is not None:"):
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
        expired = self._expired(state)
        if state.path and self.a.entered[state.edges[0].target] is not None:
            expired = None  # asked when it is complete; until then it stands in the way of none
        if state.index in self.shared:
            (edge,) = edges
            with w.block(f"if asked and not ({expired}):" if expired else "if asked:"):
                self._arrive(state, edge, self.a.positions[edge.target], RUN)
            return
        self._unpack(state)
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
        certain = []
        uses_flag = flagged and any(edge.mode != "any" for edge in edges)
        if uses_flag:
            w("stays = True")

        def take(edge: Edge) -> None:
            position = self.a.positions[edge.target]
            test = self._edge_test(state, edge, position)
            with w.block(f"if {test}:") if test is not None else nullcontext():
                self._arrive(state, edge, position, history)
                if uses_flag and edge.mode != "any":
                    w("stays = False")
            if test is None and edge.mode != "any":
                certain.append(edge)

        self._each_way(edges, take)
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
        if self.a.is_bare:
            self._arrive_bare(state, index)
            return
        members = f"e, {position.index}, {history}"
        if index is None:
            self._push("done", f"({members})")
            return
        target = self.a.states[index]
        names = {v: self._updated(v, state, edge, position) for v in target.variables}
        self._insert(target, members, names)
        first = {RUN: "nd[4]", GROUP: "g[1]"}.get(history, "t")
        waited = state is not None and state.key.deadline is not None
        if not self._arm_deadline(target, first) and waited and self._tells_ends():
            # While it waited, the end of the sequence's time was not its end.
            self.w(f"arm(st, {first} + {(self.a.within or 0) + 1})")

    def _arrive_bare(self, state: State | None, index: int | None) -> None:
        """The same for a run that is kept as its events."""
        taken = [f"nd[{place}]" for place in range(len(state.path))] if state is not None else []
        run = f"({', '.join([*taken, 'e'])},)"
        if index is None:
            self._push("done", run)
        else:
            self._put(self.a.states[index], run)
            self._arm_wait(self.a.states[index])

    def _arm_wait(self, target: State) -> None:
        """Wakes the key when the absence that a bare run waits for has come true. Runs that came
        before are woken earlier, so it is enough where the key has no wake-up."""
        deadline = target.key.deadline
        if deadline is not None:
            with self.w.block("if not st.wake:"):
                self.w(f"st.wake = wake = t + {(deadline.after or 0) + 1}")
                with self.w.block("if not lane:"):
                    self.w("expect(wake, lane)")
                self.w("lane.append(wake)")
                self.w("lane.append(st)")

    def _arm_deadline(self, target: State, first: str) -> bool:
        """Wakes the key for what is due in a state by a time of its own; whether there is any."""
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
        else:
            return False
        return True

    def _updated(
        self, variable: Variable, state: State | None, edge: Edge, position: Position
    ) -> str:
        """Code of a variable's value after taking the event at `position` from `state`."""
        old = None
        if state is not None and survives(variable, edge, position, state):
            old = variable_code(state, variable) if variable in state.variables else None
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
        name = variable_code(state, state.variables[0])
        for edge in edges:
            found = self._equality(state, edge)
            assert found is not None
            own, others = found
            position = self.a.positions[edge.target]
            test = self.tests[position.atom]
            with w.block(f"if {test}:") if test != "True" else w.block("if True:"):
                w(f"hk = key_of({careful_value(self.env.settled(own), self.env)})")
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
        self._note_crowd("d", edges)
        with w.block("for hk, g in d.items():"):
            w(f"{variable_code(state, state.variables[0])} = g[3]")
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
