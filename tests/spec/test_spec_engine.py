"""Every case of the specification holds for the engine, in every mode.

The modes must give what the reference matcher gives, match by match; the `expect`s of each case
are checked by the runner as well.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path

import pytest
from spec_files import FILES, read_spec

import cep
from cep.testing.modes import (
    MANY_RUNS,
    ONE_RUN,
    Script,
    by_reference,
    event_by_event,
    open_absences,
    outcome,
    play,
    restarted,
    script_of,
)
from cep.testing.reference import ReferenceEngine
from cep.testing.runner import run_test
from dsl import ast

CASES = [(path, index) for path in FILES for index in range(path.read_text().count("\ntest "))]
EVERY_CASE = pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case[0].stem}-{case[1]}")


@cache
def ruleset_of(path: Path) -> cep.Ruleset:
    return cep.load(path)


def case_of(case: tuple[Path, int]) -> tuple[cep.Ruleset, ast.Test]:
    path, index = case
    return ruleset_of(path), read_spec(path).checked.tests[index]


def script(case: tuple[Path, int]) -> Script:
    return script_of(*case_of(case))


@EVERY_CASE
def test_expectations_hold(case) -> None:
    ruleset, test = case_of(case)
    result = run_test(ruleset, test)
    assert result.passed, f"{test.name}\n{result.message}"


@EVERY_CASE
def test_every_mode_agrees_with_the_reference(case) -> None:
    played = script(case)
    expected = [outcome(match) for match in by_reference(played)]
    for name, mode in ONE_RUN.items():
        assert [outcome(match) for match in mode(played)] == expected, name
    for name, mode in MANY_RUNS.items():
        for run, found in enumerate(mode(played)):
            assert [outcome(match) for match in found] == expected, f"{name}, run {run}"


@EVERY_CASE
def test_matches_keep_their_ids_over_restarts(case) -> None:
    played = script(case)
    undisturbed = [match.to_dict() for match in event_by_event(played)]
    assert [match.to_dict() for match in restarted(played)] == undisturbed


@EVERY_CASE
def test_open_absences_agree_with_the_reference(case) -> None:
    played = script(case)
    engine = played.engine()
    reference = ReferenceEngine(played.ruleset.checked, names=played.names)
    play(played, engine)
    play(played, reference)
    assert open_absences(engine) == open_absences(reference)
