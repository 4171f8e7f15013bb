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

from collections.abc import Sequence
from dataclasses import dataclass

from cep.compile.environment import Surroundings
from cep.compile.handlers.base import DURABLE, RuleModule
from cep.compile.handlers.frame import NO_EVENT, Handler
from cep.compile.writer import Writer
from cep.plan.automaton import Automaton
from cep.plan.dispatch import Entry


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
    module = RuleModule(automaton, around)
    handlers = Writer()
    for entry in entries:
        Handler(module, entry).write(handlers)
    if automaton.rule.keys_from is not None:
        Handler(module, NO_EVENT).write_expected(handlers)
    w = Writer()
    with w.block("def make(run, constants):"):
        if around.constants.values:
            names = ", ".join(f"c{i}" for i in range(len(around.constants.values)))
            w(f"({names},) = constants")
        w("states, State, careful = run.states, run.State, run.careful")
        w("get, arm, finish, unrouted = states.get, run.arm, run.finish, run.unrouted")
        w("add = run.timers.add")
        if automaton.is_bare and automaton.states[0].key.deadline is not None:
            w("lane, expect = run.lane, run.timers.expect")
        if automaton.is_strict_row:
            w("found = run.found")
        w(f"{DURABLE}touch = run.touch")
        for line in (module.helpers.text() + handlers.text()).splitlines():
            w(line)
        if automaton.rule.keys_from is not None:
            w("run.opens_expected = expected")
        w(f"return [{', '.join(f'on_{entry.number}' for entry in entries)}]")
    return RuleCode(w.text(), around.constants.values)
