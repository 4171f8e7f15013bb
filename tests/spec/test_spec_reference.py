"""Every case of the specification holds for the reference matcher."""

from __future__ import annotations

import pytest
from spec_files import FILES, Spec, read_spec

from cep.testing.runner import reference_engine, run_test
from dsl import ast

CASES = [(path, index) for path in FILES for index in range(path.read_text().count("\ntest "))]


def case_of(path_and_index: tuple) -> tuple[Spec, ast.Test]:
    path, index = path_and_index
    spec = read_spec(path)
    return spec, spec.checked.tests[index]


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case[0].stem}-{case[1]}")
def test_reference_matcher_passes(case: tuple) -> None:
    spec, test = case_of(case)
    result = run_test(spec, test, reference_engine)
    assert result.passed, f"{test.name}\n{result.message}"


def test_there_are_enough_cases() -> None:
    assert len(CASES) >= 300


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_names_are_sentences_and_differ(path) -> None:
    names = [(test.rules[0].name, test.name) for test in read_spec(path).checked.tests]
    assert len(names) == len(set(names))
    assert all(len(name.split()) >= 3 for _, name in names)
