"""Runs a drawn rule over drawn events through the engine and the reference, and compares."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from drawn_rules import EventTuple, as_case, steps_of

import cep
from cep.testing.events import Given
from cep.testing.modes import Script, by_reference, outcome, shuffled
from cep.testing.runner import describe


def loaded(rule: str) -> cep.Ruleset | None:
    """The rule, or None where the checker refuses it."""
    try:
        return cep.loads(rule)
    except cep.RuleError:
        return None


def checked_event_by_event(script: Script) -> list[Any]:
    """Event by event, with a look at the invariants of the state after each."""
    engine = script.engine()
    found: list[Any] = []
    for step in script.steps:
        if isinstance(step, Given):
            found += engine.process_at(step.record, step.time)
        else:
            found += engine.advance_to(step.time)
        for run in engine.program.rules:
            run.check()
    return found + engine.close()


def difference(
    ruleset: cep.Ruleset, rule: str, events: Sequence[EventTuple], quiet: bool
) -> str | None:
    """How the engine differs from the reference, as a case to paste; None when it does not."""
    script = Script(ruleset, ["r"], steps_of(events, quiet))
    expected = by_reference(script)
    wanted = [outcome(match) for match in expected]
    found = checked_event_by_event(script)
    if [outcome(match) for match in found] != wanted:
        came = "\n".join(f"  # the engine: {describe(match)}" for match in found)
        return f"{as_case(rule, script.steps, expected)}\n{came}"
    for number, found in enumerate(shuffled(script)):
        if [outcome(match) for match in found] != wanted:
            came = "\n".join(f"  # shuffle {number}: {describe(match)}" for match in found)
            return f"{as_case(rule, script.steps, expected)}\n{came}"
    return None
