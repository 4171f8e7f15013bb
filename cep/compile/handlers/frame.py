"""Writes a whole handler: whose state it is, what the event fits, then the parts in their order.

`unless`, `no` and `until` first, then the steps of live runs, then openings, then what has become
complete: the order that the reference lays down for one event.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping
from contextlib import nullcontext

from cep.compile.environment import EventEnv
from cep.compile.expressions import careful, careful_value, compute, truth
from cep.compile.handlers.base import DURABLE, MANY_EQUALITIES
from cep.compile.handlers.closing import Closing
from cep.compile.handlers.strict_row import StrictRow
from cep.compile.writer import Writer
from cep.plan.automaton import Edge, Position
from cep.plan.dispatch import Entry
from cep.plan.states import closes_late
from dsl.checked import Comparison, Const, Field, Value

NO_EVENT = Entry(-1, None, None, {}, {})
"""The entry of a run that no event opens."""


class Handler(Closing, StrictRow):
    """One handler, from `def` to the end."""

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
            out("done = None")
            self._open_run(edge, self.a.positions[edge.target])

    def _leave_early(self) -> None:
        """An event that fits nothing in a rule is nothing to it, unless strictness counts it."""
        tests = list(dict.fromkeys(self.tests.values()))
        if "True" not in tests and not self._strict_states():
            with self.w.block(f"if not ({self._either(tests)}):"):
                self.w("return")

    def _key_values(self, index: int) -> tuple[Value, ...]:
        """The parts of a key, as far as they are not settled by what is known of the event."""
        return tuple(map(self.env.settled, self.a.keys[index]))

    def _key(self, out: Writer, index: int) -> None:
        key = self._key_values(index)
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
        if all(self._plain_field(value) is not None for value in self._key_values(index)):
            out(f"k = {slow}")
            return
        with out.block("try:"):
            out(f"k = {self._key_code(index, fast=True)}")
        with out.block("except Exception:"):
            out(f"k = {slow}")

    def _key_code(self, index: int, fast: bool = False) -> str:
        parts = [self._key_part(value, fast) for value in self._key_values(index)]
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
        self.tests_one_by_one = False
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
        if self._may_complete() and not self.a.is_strict_row:
            self.w("done = None")
        if self._may_close():
            self.w("shut = None")
        opening = [edge for edge in self.a.openings if self._atom(edge) in self.tests]
        if self.rule.start == "latest" and opening:
            self.w("extended = False")
        if self.a.is_strict_row:
            self._move_row(opening)
        else:
            self._move(opening)
            self._end()
        text = self.w.text()
        for name, length in (("low", self.a.within), ("low_keep", self.rule.keep)):
            if re.search(rf"\b{name}\b", text):
                out(f"{name} = t - {length}")
        if self.tests_one_by_one:
            out("crowded = False")
            if self.is_weighed:
                out("made = 0")
        out.lines(text)

    def _move(self, openings: list[Edge]) -> None:
        """What becomes of the runs of the key, and whether the event opens one."""
        closing = self._closing()
        if closing:
            self.w(f"none_closes = {' and '.join(f'{slot} is None' for slot in closing)}")
        self._unless()
        self._absences()
        self._untils()
        self.nested = self._nested()
        self.order = [*self.nested, *(s for s in self.order if s not in self.nested)]
        for target in sorted(self._deferrable()):
            self.w(f"w{target} = []")
        self._ask_once()
        self.visited |= {state.index for state in self.nested}
        if self.nested:
            self._visit_together(self.nested)
        for state in self.order[len(self.nested) :]:
            self._visit(state)
            self.visited.add(state.index)
        self._merge_deferred()
        self._open(openings)
        self._quiet()

    def _filters(self) -> None:
        """`x3 = …`: whether the event fits atom 3 by what stands in the event alone."""
        if not self.several:
            self._look_up()
        for index in self.entry.atoms:
            if index in self.tests:
                continue
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

    def _look_up(self) -> None:
        """`hits0 = …`: the numbers of the atoms that the event fits, of many that compare a field
        with a constant first: only where the constant is right more is asked. Values that cannot be
        looked up are compared with each."""
        by_field: dict[str, dict[int, Const]] = {}
        for index in self.entry.atoms:
            known = self._equality_with_constant(index)
            if known is not None:
                by_field.setdefault(known[0], {})[index] = known[1]
        for field, constants in by_field.items():
            if len(constants) > MANY_EQUALITIES:
                self._look_up_in(field, constants)

    def _look_up_in(self, field: str, constants: Mapping[int, Const]) -> None:
        name = f"hits{len(self.hits)}"
        self.hits[name] = list(constants)
        table: dict[object, set[int]] = {}
        for index, constant in constants.items():
            table.setdefault(constant.value, set()).add(index)
            self.tests[index] = f"{index} in {name}"
        found = {value: frozenset(atoms) for value, atoms in table.items()}
        get, none = self.env.constant(found.get), self.env.constant(frozenset())
        others = self._others(name, [i for i in constants if len(self.entry.filters[i]) > 1])
        each = [f"({i}, {self._slowly(self.entry.filters[i])})" for i in constants]
        with self.w.block("try:"):
            self.w(f"{name} = {get}({field}, {none})")
            if others:
                with self.w.block(f"if {name}:"):
                    self.w(f"{name} = {{i for i in {name} if i not in {others} or {others}[i](e)}}")
        with self.w.block("except Exception:"):
            self.w(f"{name} = {{i for i, fits in ({', '.join(each)}) if fits}}")

    def _others(self, name: str, atoms: list[int]) -> str:
        """The name of a dict with a function for each of these atoms: whether an event fits by its
        other conditions; "" for none."""
        if not atoms:
            return ""
        w, end = self.module.helpers, f"{self.entry.number}_{name}"
        for index in atoms:
            rest = self.entry.filters[index][1:]
            with w.block(f"def fits_{end}_{index}(e):"):
                w("t = e.t")
                with w.block("try:"):
                    w(f"return {self._conjunction(rest)}")
                with w.block("except Exception:"):
                    w(f"return {self._slowly(rest)}")
        w(f"others_{end} = {{{', '.join(f'{i}: fits_{end}_{i}' for i in atoms)}}}")
        return f"others_{end}"

    def _equality_with_constant(self, index: int) -> tuple[str, Const] | None:
        """Code of a field and the constant that an atom compares it with, if it asks that first and
        the values are compared as they stand."""
        conditions = self.entry.filters[index]
        if not conditions or not isinstance(conditions[0], Comparison):
            return None
        asked = conditions[0]
        for field, constant in ((asked.left, asked.right), (asked.right, asked.left)):
            if asked.op == "==" and isinstance(field, Field) and isinstance(constant, Const):
                code = self.env.raw(field)
                if code and truth(asked, self.env) == f"{code} == {constant.value!r}":
                    return code, constant
        return None

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

    def _stateless(self) -> None:
        """A rule of single events: nothing is kept, every event that fits is a match. One that fits
        in several ways is one match, unless nothing is skipped."""
        tests = [(edge, self._first_tests(edge)) for edge in self.a.openings]
        known = [(edge.target, test) for edge, test in tests if test is not None]
        if len(known) == 1:
            ((target, test),) = known
            with self.w.block(f"if {test}:"):
                self.w(f"run.single(k, t, (e, {target}, None, -1, t, 1, 1))")
        elif known:
            self.w("fits = []")
            for target, test in known:
                with self.w.block(f"if {test}:"):
                    self.w(f"fits.append((e, {target}, None, -1, t, 1, 1))")
            with self.w.block("if fits:"):
                self.w("run.choose(k, t, fits)")

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
                    with w.block(f"if not ({self._either(tests)}):"):
                        w("return")
                w("st = states[k] = State()")
                w("st.key = k")
                if self.is_weighed:
                    w("st.room = run.plan.most_nodes")
        w(f"{DURABLE}if st.epoch != run.epoch: touch(st)")
        if not self.a.is_bare:
            w("st.number = n = st.number + 1")

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
        condition_of = dict(zip(map(id, openings), conditions, strict=True))

        def open_by(edge: Edge) -> None:
            condition = condition_of[id(edge)]
            with w.block(f"if {condition}:") if condition != "True" else nullcontext():
                self._open_run(edge, self.a.positions[edge.target])

        self._each_way(openings, open_by)

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
            asked = map(self.env.settled, position.guards)
            guards = [f"{careful(guard, env)} is True" for guard in asked]
            name = self.first_tests[edge.target] = f"y{edge.target}"
            self.w(f"{name} = {' and '.join([self.tests[position.atom], *guards])}")
        return self.first_tests[edge.target]

    def _open_run(self, edge: Edge, position: Position) -> None:
        self._arrive(None, edge, position, "None, -1, t, n, n")
        if self.a.entered[position.index] is not None:
            self._arm_end()

    def _quiet(self) -> None:
        """A leading `no` remembers when its last event came."""
        for i, absence in enumerate(self.a.quiet):
            test = self.tests.get(absence.atom)
            if test is None:
                continue
            with self.w.block(f"if {test}:"):
                self.w(f"st.q{i} = t")
                self.w(f"arm(st, t + {(absence.within or 0) + 1})")

    def _closing(self) -> list[str]:
        """The slots of which the key is looked at when something has come into the first of them,
        to find out when the oldest of it is due."""
        if not closes_late(self.a):
            return []
        closing = [s for s in self.a.states if s.key.close is not None and s.key.close.on_end]
        return [f"st.s{state.index}" for state in closing]

    def _made_together(self) -> str:
        """Code of the most nodes that an event of this kind makes, but for those of runs and groups
        that are asked one by one."""
        edges = [
            edge
            for state in self.a.states
            if not (state.form == "list" or state in self.nested or self._asks_each_group(state))
            for edge in self._taken_edges(state)
        ]
        edges += self._taken_edges(self.nested[0]) if self.nested else []
        edges += [edge for edge in self.a.openings if self._atom(edge) in self.tests]
        most = [
            (
                f"len({name})",
                max(Counter(i for e in edges if (i := self._atom(e)) in atoms).values(), default=0),
            )
            for name, atoms in self.hits.items()
        ]
        others = sum(not any(self._atom(e) in atoms for atoms in self.hits.values()) for e in edges)
        return " - ".join([str(others), *(f"{n} * {code}" for code, n in most if n)])

    def _end(self) -> None:
        w = self.w
        low = "low" if self.a.within is not None else "None"
        lists = ["done"] if self._may_complete() else []
        lists += ["shut"] if self._may_close() else []
        if lists:
            with w.block(f"if {' or '.join(lists)}:"):
                found = lists[0] if len(lists) == 1 else "(done or []) + (shut or [])"
                call = f"finish(st, t, {found}, {low})"
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
        if closing := self._closing():
            with w.block(f"if none_closes and ({' or '.join(closing)}):"):
                w("run.begin_closing(st, t)")
        if self.tests_one_by_one:
            with w.block("if crowded:"):
                w("run.thin_out(st)")
        if self.is_weighed:
            made = " - made" if self.tests_one_by_one else ""
            w(f"st.room = room = st.room - {self._made_together()}{made}")
            with w.block("if room < 0:"):
                w("run.weigh(st)")
        may_open_nothing = bool(self.a.quiet) or any(
            self.a.entered[edge.target] is None or self.a.positions[edge.target].guards
            for edge in self.a.openings
        )
        waits_alone = self.a.is_bare and self.a.keep is None
        if self.a.states and (may_open_nothing or self.a.keep is None) and not waits_alone:
            # Else a run was opened whose time is bounded, and the key is woken when it is over.
            empty = " or ".join(f"st.s{state.index}" for state in self.a.states)
            with w.block(f"if not (st.wake or {empty}):"):
                w("run.forget(st)")
        elif not self.a.states:
            with w.block("if not st.wake:"):
                w("run.forget(st)")
