"""The right answers of the benchmarks, on the part of the data that is quick to make."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import pytest

from . import data, floor, questions
from .engines import decoded, in_process, matches_of
from .workloads import questions_of_windows


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("bench")


def in_memory(text: str, path: Path) -> int:
    rules = questions.load(text)
    return in_process(rules, decoded(rules, path))()()


def test_the_files_are_those_that_the_answers_belong_to(folder: Path) -> None:
    path = data.ensure(folder, "w3")
    assert path.read_text().startswith('{"ts":1700000000000,"type":"C","user":"u0","ip":"10.')
    path.write_text("{}\n")
    with pytest.raises(ValueError, match="not the file of the benchmarks"):
        data.ensure(folder, "w3")
    path.unlink()


def test_w1_finds_as_many_from_a_file_as_in_memory(folder: Path) -> None:
    path = data.ensure(folder, "w1-quick")
    found = matches_of(questions.load(questions.W1), path)
    assert len(found) == in_memory(questions.W1, path) == questions.GOLDEN["W1 quick"] == 564
    assert sum(match.fields["total"] for match in found) == questions.W1_QUICK_CHECKSUM


@pytest.mark.parametrize(
    ("text", "loop"),
    [
        (questions.W1, floor.Selective),
        (questions.W1_DEFAULT, floor.SelectiveOne),
        (questions.W1_UNCONDITIONAL, floor.Unconditional),
        (questions.W1_ANY, partial(floor.Triples, floor.TEN_MINUTES)),
        (questions.W2, floor.Rising),
    ],
    ids=["w1", "w1_default_skip", "w1_without_amount", "w1_any", "w2"],
)
def test_engine_and_loop_find_the_same(folder: Path, text: str, loop: type[floor.Loop]) -> None:
    path = data.ensure(folder, "w1-quick")
    assert in_memory(text, path) == floor.run(loop(), floor.read_lines(path))


@pytest.mark.parametrize("name", ["count", "avg", "max", "percentile"])
def test_w10_finds_what_the_loop_finds(folder: Path, name: str) -> None:
    path = data.ensure(folder, "w1-quick")
    text, loop, _ = questions_of_windows()[name]
    found = in_memory(text, path)
    assert (
        found == floor.run(loop(), floor.read_lines(path)) == questions.GOLDEN[f"W10 {name} quick"]
    )


@pytest.mark.parametrize("width", [10, 30])
def test_w3_enumerates_every_match(folder: Path, width: int) -> None:
    path = data.ensure(folder, "w3")
    assert in_memory(questions.explosion(width), path) == questions.GOLDEN[f"W3 {width}"]


@pytest.mark.parametrize("width", [10, 1_000])
def test_w3_detects_what_the_loop_detects(folder: Path, width: int) -> None:
    path = data.ensure(folder, "w3")
    found = in_memory(questions.explosion(width, skip="past last"), path)
    assert found == floor.run(floor.OneTriple(width), floor.read_lines(path))


def test_w4_many_rules_find_what_one_loop_finds(folder: Path) -> None:
    path = data.ensure(folder, "w4-quick")
    loop = floor.ManyRules(questions.many_types(50))
    assert in_memory(questions.many_rules(50), path) == floor.run(loop, floor.read_lines(path))
