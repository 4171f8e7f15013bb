"""A program that is stopped and goes on anywhere gives the same matches, with the same ids.

Random rules over random events, as in `test_engine_vs_reference`; what is kept of a program is text
and a new one is made from it. `CEP_PROPERTY_EXAMPLES` says how many cases are tried.
"""

from __future__ import annotations

from hypothesis import assume, given
from hypothesis import strategies as st
from test_engine_vs_reference import EVENTS, SECOND, THOROUGH, rules, steps_of, window_rules

import cep
from cep.engine import Engine
from cep.match import Match
from cep.testing.events import Given, Moved
from cep.testing.modes import restart

CUTS = st.lists(st.booleans(), min_size=11, max_size=11)


def played(engine: Engine, steps: list[Given | Moved], cuts: list[bool]) -> list[dict]:
    found: list[Match] = []
    for step, cut in zip(steps, cuts, strict=False):
        if isinstance(step, Given):
            found += engine.process_at(step.record, step.time)
        else:
            found += engine.advance_to(step.time)
        if cut:
            restart(engine)
    return [match.to_dict() for match in found + engine.close()]


def compare(rule: str, events: list[tuple], cuts: list[bool], quiet: bool) -> None:
    try:
        ruleset = cep.loads(rule)
    except cep.RuleError:
        assume(False)
    steps = steps_of(events)
    if quiet:
        steps.append(Moved(steps[-1].time + 60 * SECOND))
    undisturbed = played(Engine(ruleset), steps, [False] * 11)
    assert played(Engine(ruleset), steps, cuts) == undisturbed, rule


@THOROUGH
@given(rules(groups=True), EVENTS, CUTS, st.booleans())
def test_runs(rule: str, events: list[tuple], cuts: list[bool], quiet: bool) -> None:
    compare(rule, events, cuts, quiet)


@THOROUGH
@given(window_rules(), EVENTS, CUTS, st.booleans())
def test_windows(rule: str, events: list[tuple], cuts: list[bool], quiet: bool) -> None:
    compare(rule, events, cuts, quiet)
