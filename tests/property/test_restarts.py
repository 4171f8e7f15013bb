"""A program that is stopped and goes on anywhere gives the same matches, with the same ids.

Random rules over random events, as in `test_engine_vs_reference`; what is kept of a program is text
and a new one is made from it. `CEP_PROPERTY_EXAMPLES` says how many cases are tried.
"""

from __future__ import annotations

import pytest
from drawn_rules import EVENTS, SECOND, rules, steps_of, window_rules
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from test_engine_vs_reference import THOROUGH
from test_tables_vs_reference import EVENTS as KEYED_EVENTS
from test_tables_vs_reference import RULES as TABLE_RULES

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


def compare(ruleset: cep.Ruleset, steps: list[Given | Moved], cuts: list[bool]) -> None:
    undisturbed = played(Engine(ruleset), steps, [False] * len(steps))
    assert played(Engine(ruleset), steps, cuts) == undisturbed


def compare_drawn(rule: str, events: list[tuple], cuts: list[bool], quiet: bool) -> None:
    try:
        ruleset = cep.loads(rule)
    except cep.RuleError:
        assume(False)
    steps = steps_of(events)
    if quiet:
        steps.append(Moved(steps[-1].time + 60 * SECOND))
    compare(ruleset, steps, cuts)


@THOROUGH
@given(rules(groups=True), EVENTS, CUTS, st.booleans())
def test_runs(rule: str, events: list[tuple], cuts: list[bool], quiet: bool) -> None:
    compare_drawn(rule, events, cuts, quiet)


@THOROUGH
@given(window_rules(), EVENTS, CUTS, st.booleans())
def test_windows(rule: str, events: list[tuple], cuts: list[bool], quiet: bool) -> None:
    compare_drawn(rule, events, cuts, quiet)


@pytest.fixture(scope="module")
def rulesets() -> dict[str, cep.Ruleset]:
    return {name: cep.loads(text) for name, text in TABLE_RULES.items()}


@pytest.mark.parametrize("name", TABLE_RULES)
@settings(max_examples=30, deadline=None)
@given(events=KEYED_EVENTS, cut=st.integers(0, 3))
def test_tables_and_streams(rulesets, name, events: list[tuple], cut: int) -> None:
    time = 0
    steps: list[Given | Moved] = []
    for gap, kind, key, value in events:
        time += gap * SECOND
        record = {"type": kind, "k": key, "v": value}
        record = {field: value for field, value in record.items() if value is not None}
        steps.append(Given(record, time, {}))
    steps.append(Moved(time + 60 * SECOND))
    compare(rulesets[name], steps, [cut == 0 or i % cut == 0 for i in range(len(steps))])
