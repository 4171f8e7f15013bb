"""Writes what an event does to the runs of a strict row, which share their events.

In a strict row (`Automaton.is_strict_row`) each event of a key is taken by a run or ends it. So a
run that waits at some place has just the last events of its key, and the runs of all places share
these. A state keeps them once, `e1` the newest, and has in `waits` a bit for each place at which a
run waits. An event changes a few members of one object, and nothing is made for it.
"""

from __future__ import annotations

from collections.abc import Sequence

from cep.compile.handlers.steps import Steps
from cep.plan.automaton import Edge, State


class StrictRow(Steps):
    """The part of a handler that moves such runs on."""

    def _move_row(self, openings: Sequence[Edge]) -> None:
        """What becomes of the runs of the key, and whether the event opens one."""
        if self.inside == "True":
            self._move_all(openings)
            return
        with self.w.block(f"if {self.inside}:"):
            self._move_all(openings)

    def _move_all(self, openings: Sequence[Edge]) -> None:
        w = self.w
        moved = [state for state in self.order if self._taken_edges(state)]
        test = self.tests[self._atom(openings[0])] if openings else None
        always = test == "True" and not self._drops()
        w("waits = st.waits")
        w(f"new = {int(always)}")
        if self._drops():
            w("done = False")
        shared = self._sharing(moved)
        if shared:
            self._move_together(shared)
        for state in moved:
            if state not in shared:
                with w.block(f"if {self._waiting(state)}:"):
                    self._move_one(state)
        if self._drops():
            with w.block("if done:"):
                w("new = 0")
        if always:
            self._arm_end()
        elif test is not None:
            free = "not done and " if self._drops() else ""
            with w.block(f"if {free}{test}:"):
                w("new |= 1")
                self._arm_end()
        self._keep_events(always)
        w("st.waits = new")

    def _drops(self) -> bool:
        """Whether a match of this event drops all runs, also the one that the event opens."""
        return self.rule.skip == "past_last" and self._may_complete()

    def _waiting(self, *states: State) -> str:
        """The test that a run waits at any of these places."""
        if len(states) == len(self.a.states):
            return "waits"
        return f"waits & {sum(map(_bit, states))}"

    def _sharing(self, moved: list[State]) -> list[State]:
        """The places that have one guard, which sees the last event only."""
        wanted = self._what_is_asked(moved[-1]) if moved else None
        return [s for s in moved if wanted is not None and self._what_is_asked(s) == wanted]

    def _move_together(self, places: list[State]) -> None:
        """What the runs of these places see of themselves is the same: it is asked once."""
        w = self.w
        with w.block(f"if {self._waiting(*places)}:"):
            nearest = places[-1]
            with w.block(f"if {self._asked(nearest)}:"):
                going_on = [state for state in places if not self._completes(state)]
                if going_on:
                    w(f"new |= ({self._waiting(*going_on)}) << 1")
                for state in places:
                    if self._completes(state):
                        with w.block(f"if {self._waiting(state)}:"):
                            self._complete(state)

    def _move_one(self, state: State) -> None:
        """The run takes the event, or is over."""
        with self.w.block(f"if {self._asked(state)}:"):
            if self._completes(state):
                self._complete(state)
            else:
                self.w(f"new |= {_bit(state) << 1}")

    def _asked(self, state: State) -> str:
        """Code of the test whether the run of a place takes the event."""
        self._unpack(state)
        (edge,) = state.edges
        return self._edge_test(state, edge, self.a.positions[edge.target]) or "True"

    def _completes(self, state: State) -> bool:
        return self.a.entered[state.edges[0].target] is None

    def _complete(self, state: State) -> None:
        """The run is a match, where its time is not over."""
        length = len(state.path)
        events = [f"st.e{place}" for place in range(length, 0, -1)]
        with self.w.block(f"if {events[0]}.t >= t - {self.a.keep}:"):
            self.w(f"found(k, t, ({', '.join(events)}, e))")
            if self._drops():
                self.w("done = True")

    def _keep_events(self, always: bool) -> None:
        """As many of the last events as the longest run has."""
        w, longest = self.w, max(len(state.path) for state in self.a.states)
        if longest > 1:
            with w.block("if new > 1:"):
                for place in range(longest, 2, -1):
                    with w.block(f"if new >= {1 << place - 1}:"):
                        w(f"st.e{place} = st.e{place - 1}")
                w("st.e2 = st.e1")
        if always:
            w("st.e1 = e")
        else:
            with w.block("if new:"):
                w("st.e1 = e")


def _bit(state: State) -> int:
    return 1 << len(state.path) - 1
