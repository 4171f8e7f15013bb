"""Runs a drawn rule over drawn events through the engine and the reference, and compares."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from drawn_rules import EventTuple, as_case, steps_of

import cep
from cep.testing.modes import ONE_RUN, Script, open_absences, outcome, play, shuffled
from cep.testing.reference import ReferenceEngine
from cep.testing.runner import describe


def loaded(rule: str) -> cep.Ruleset | None:
    """The rule, or None where the checker refuses it."""
    try:
        return cep.loads(rule)
    except cep.RuleError:
        return None


def invariants_of(engine: cep.Engine) -> Callable[[], None]:
    """A look at the invariants of the state."""

    def look() -> None:
        for run in engine.program.rules:
            run.check()

    return look


def difference(
    ruleset: cep.Ruleset, rule: str, events: Sequence[EventTuple], quiet: bool, mode: str = ""
) -> str | None:
    """How the engine differs from the reference, as a case to paste; None when it does not.

    `mode`: a further way to run the events, one of those of `cep.testing.modes`.
    """
    names = list(ruleset.rules)
    script = Script(ruleset, names, steps_of(events, quiet))
    reference = ReferenceEngine(ruleset.checked, names=names)
    expected = play(script, reference)
    wanted = [outcome(match) for match in expected]
    engine = script.engine()
    tried = {"the engine": play(script, engine, invariants_of(engine))}
    if mode:
        tried[mode] = ONE_RUN[mode](script)
    for number, found in enumerate(shuffled(script)):
        tried[f"shuffle {number}"] = found
    case = as_case(rule, names, script.steps, expected)
    for name, found in tried.items():
        if [outcome(match) for match in found] != wanted:
            came = "\n".join(f"  # {name}: {describe(match)}" for match in found)
            return f"{case}\n  # {name} says:\n{came}"
    if open_absences(engine) != open_absences(reference):
        return f"{case}\n  # open: {open_absences(engine)}, not {open_absences(reference)}"
    return None
