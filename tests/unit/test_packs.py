"""The ready-made packs: well written, well tested, and finding in their sample what it holds."""

from __future__ import annotations

import importlib
import json
from collections.abc import Iterator
from pathlib import Path

import pytest

import cep
from cep.testing.runner import run_tests
from dsl.formatter import format_file
from dsl.parser import parse
from dsl.source import Source

RULES = Path(__file__).resolve().parents[2] / "rules"
PACKS = sorted(path for path in RULES.iterdir() if path.is_dir() and any(path.glob("*.cep")))


@pytest.fixture(params=PACKS, ids=lambda pack: pack.name)
def pack(request: pytest.FixtureRequest) -> Path:
    path: Path = request.param
    return path


@pytest.fixture
def ruleset(pack: Path) -> cep.Ruleset:
    return cep.load(rule_files(pack))


def rule_files(pack: Path) -> list[Path]:
    return sorted(pack.glob("*.cep"))


def test_five_fields_have_a_pack() -> None:
    fields = ["fraud", "iot", "operations", "process", "security"]
    assert [pack.name for pack in PACKS] == fields


def test_no_warnings(ruleset: cep.Ruleset) -> None:
    assert not [str(warning) for warning in ruleset.warnings]


def test_the_files_are_in_canonical_form(pack: Path) -> None:
    for path in rule_files(pack):
        source = Source(str(path), path.read_text())
        assert format_file(parse(source)[0], source) == source.text, path


def test_every_file_stands_alone(pack: Path) -> None:
    for path in rule_files(pack):
        cep.load([path])


def test_every_test_of_the_rules_passes(ruleset: cep.Ruleset) -> None:
    failed = [result for result in run_tests(ruleset) if not result.passed]
    assert not failed, "\n\n".join(result.message for result in failed)


def test_every_rule_is_fit_to_be_copied(ruleset: cep.Ruleset) -> None:
    for rule in ruleset.rules.values():
        meta = dict(rule.meta)
        assert rule.title, rule.name
        assert rule.description, rule.name
        assert rule.severity, rule.name
        assert rule.tags, rule.name
        assert str(meta.get("reference")).startswith("https://"), rule.name
        tests = [
            test
            for test in ruleset.checked.tests
            if rule.name in [name.name for name in test.rules]
        ]
        assert len(tests) >= 2, f"{rule.name} has {len(tests)} tests"


def test_the_sample_is_what_the_script_makes(pack: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(RULES.parent))
    lines = importlib.import_module("rules.sample_log")
    log = importlib.import_module(f"rules.{pack.name}.make_sample").make()
    assert (pack / "sample.jsonl").read_text() == "".join(lines.sample_lines(log))
    assert (pack / "expected.jsonl").read_text() == "".join(lines.expected_lines(log))


def test_the_sample_holds_exactly_what_is_expected(pack: Path, ruleset: cep.Ruleset) -> None:
    engine = cep.Engine(ruleset)
    found = engine.process(json_lines(pack / "sample.jsonl"))
    found += engine.close()
    by_time = sorted((match.time_iso, match.rule, match.key) for match in found)
    expected = [
        (line["time"], line["rule"], line["key"]) for line in json_lines(pack / "expected.jsonl")
    ]
    assert by_time == sorted(expected, key=lambda line: line[:2])


def test_every_rule_finds_something_in_the_sample(pack: Path, ruleset: cep.Ruleset) -> None:
    found = {line["rule"] for line in json_lines(pack / "expected.jsonl")}
    assert found == {rule.name for rule in ruleset.rules.values() if rule.reports}


def json_lines(path: Path) -> Iterator[dict]:
    for line in path.read_text().splitlines():
        yield json.loads(line)
