"""The engine gives what the reference matcher gives, over random rules and random events.

A failure is printed as a `.cep` file ready to be pasted into `tests/spec/`. `CEP_PROPERTY_EXAMPLES`
says how many cases are tried (default 40); `hunt.py` beside this goes on for hours.
"""

from __future__ import annotations

import os
from collections.abc import Sequence

import pytest
from comparing import difference, loaded
from drawn_rules import EVENTS, EventTuple, rules, window_rules
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from cep.plan import build

EXAMPLES = int(os.environ.get("CEP_PROPERTY_EXAMPLES", "40"))

THOROUGH = settings(
    max_examples=EXAMPLES,
    deadline=None,
    print_blob=True,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much],
)


def compare(rule: str, events: Sequence[EventTuple], quiet: bool) -> None:
    ruleset = loaded(rule)
    assume(ruleset is not None)
    told = difference(ruleset, rule, events, quiet)
    assert told is None, f"\n{told}"


@THOROUGH
@given(rules(), EVENTS, st.booleans())
def test_sequences_of_steps(rule: str, events: list[EventTuple], quiet: bool) -> None:
    compare(rule, events, quiet)


@THOROUGH
@given(rules(groups=True), EVENTS, st.booleans())
def test_sequences_with_groups(rule: str, events: list[EventTuple], quiet: bool) -> None:
    compare(rule, events, quiet)


@THOROUGH
@given(window_rules(), EVENTS, st.booleans())
def test_windows(rule: str, events: list[EventTuple], quiet: bool) -> None:
    compare(rule, events, quiet)


@THOROUGH
@given(rules(groups=True, wide=True), EVENTS, st.booleans())
def test_sequences_over_all_kinds_of_streams(
    rule: str, events: list[EventTuple], quiet: bool
) -> None:
    compare(rule, events, quiet)


@THOROUGH
@given(window_rules(wide=True), EVENTS, st.booleans())
def test_windows_over_all_kinds_of_streams(
    rule: str, events: list[EventTuple], quiet: bool
) -> None:
    compare(rule, events, quiet)


@settings(THOROUGH, max_examples=max(EXAMPLES // 2, 1))
@given(rules(groups=True), EVENTS, st.booleans())
def test_loops_in_the_form_of_long_ones(rule: str, events: list[EventTuple], quiet: bool) -> None:
    """Loops of more than `UNROLL` are counted; here those of two or three are."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(build, "UNROLL", 1)
        compare(rule, events, quiet)
