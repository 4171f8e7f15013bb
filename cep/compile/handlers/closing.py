"""Writes what an event does to runs without being taken: `unless` kills, `no` and `until` close.

Runs are moved from their state to the one without the edges that were closed, or are dropped when
no way is left. A repetition at the end that an `until` closes is complete.
"""

from __future__ import annotations

from collections.abc import Callable

from cep.compile.handlers.base import HandlerBase, variable_code
from cep.plan.automaton import Absence, State
from dsl.checked import Value


class Closing(HandlerBase):
    """The part of a handler that comes first."""

    def _unless(self) -> None:
        for atom in self._atoms("unless"):
            with self.w.block(f"if {self.tests[atom.index]}:"):
                if not atom.guards:
                    for state in self.a.states:
                        self.w(f"st.s{state.index} = None")
                    continue
                for state in self.a.states:
                    self._split(state, atom.guards, None, lambda s: None)

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
            if deadline is None or absence not in deadline.absences or deadline.after is None:
                return None
            return f"t <= nd[4] + {deadline.since_first}"
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

    def _split(
        self,
        state: State,
        guards: tuple[Value, ...],
        timed: str | None,
        hit: Callable[[State], None],
    ) -> None:
        """Runs of `state` for which the guards hold are taken out and given to `hit`."""
        w, slot = self.w, f"st.s{state.index}"
        if state.path:  # it waits for this absence alone
            w(f"{slot} = None")
            return
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
                    w(f"{variable_code(state, state.variables[0])} = g[3]")
                    if conditional:
                        self._guard_test(guards, state, timed)
                        with w.block("if not ok:"):
                            with w.block(f"if {slot} is None:"):
                                w(f"{slot} = {{}}")
                            w(f"{slot}[hk] = g")
                            w("continue")
                    with w.block("for nd in g[0]:"):
                        hit(state)
