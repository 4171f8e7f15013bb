"""Ready-made rules on the command line: searching them, their samples, and mutants."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
from cli_samples import RULES, Cep

from cep.cli.exits import DONE, FAILED, WRONG_USE
from cep.cli.rule_files import packs_folder


def listed(cep: Cep, *options: str) -> list[str]:
    lines = cep("rules", "list", *options).out.splitlines()
    return [line.split()[0] for line in lines if line.startswith("  ")]


def test_rules_by_tag(cep: Cep) -> None:
    assert listed(cep, "--tag", "attack.t1110") == [
        "password_guessing",
        "password_spraying",
        "address_guessing",
    ]
    assert listed(cep, "--tag", "sre", "--text", "CRASH") == ["crash_loop"]
    assert not listed(cep, "--tag", "attack.t11")


def test_rules_by_field(cep: Cep) -> None:
    assert listed(cep, "--field", "merchant") == ["card_testing"]
    assert listed(cep, "fraud", "--field", "account") == ["account_takeover"]


def test_rules_that_no_search_finds(cep: Cep) -> None:
    outcome = cep("rules", "list", "--text", "no such thing")
    assert outcome.code == WRONG_USE
    assert outcome.err == "error: no ready-made rule fits; `cep rules list` shows all\n"


@pytest.mark.parametrize("pack", ["fraud", "iot", "operations", "process", "security"])
def test_demo_of_each_pack(cep: Cep, pack: str) -> None:
    outcome = cep("demo", pack, "--quiet")
    assert outcome.code == DONE
    assert len([json.loads(line) for line in outcome.out.splitlines()]) > 4
    assert outcome.err == ""


def test_the_log_of_a_pack_is_an_input_with_the_same_ids_wherever_it_is_installed(
    cep: Cep, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shown = cep("demo", "process", "--quiet").records
    assert cep("run", "pack:process", "pack:process/sample.jsonl", "--quiet").records == shown
    elsewhere = tmp_path / "rules"
    shutil.copytree(packs_folder(), elsewhere)
    monkeypatch.setattr("cep.cli.rule_files.packs_folder", lambda: elsewhere)
    assert cep("demo", "process", "--quiet").records == shown


def test_demo_of_an_unknown_pack(cep: Cep) -> None:
    outcome = cep("demo", "froud")
    assert outcome.code == WRONG_USE
    assert "did you mean pack:fraud?" in outcome.err


# ---------------------------------------------------------------------------- mutants


def test_mutants_that_are_noticed(cep: Cep) -> None:
    outcome = cep("test", "pack:process", "--mutate")
    assert outcome.code == DONE
    assert outcome.out == ""
    assert " mutants: " in outcome.err.splitlines()[-1]
    assert " not " not in outcome.err


def test_mutants_that_are_not(cep: Cep, rules: Path) -> None:
    outcome = cep("test", rules, "--mutate")
    assert outcome.code == FAILED
    assert f"NOT NOTICED {rules}:" in outcome.out
    assert '\n  test guessed "' in outcome.out
    assert outcome.err.splitlines()[0].startswith("1 test: 1 passed")


def test_no_mutants_while_a_test_fails(cep: Cep, rules: Path) -> None:
    failing = 'test guessed "wrong" { expect guessed }'
    rules.write_text(f"{RULES}\n{failing}\n")
    outcome = cep("test", rules, "--mutate")
    assert outcome.code == FAILED
    assert "NOT NOTICED" not in outcome.out
    assert "mutant" not in outcome.err


def test_a_rule_without_tests_is_told(cep: Cep, rules: Path) -> None:
    rules.write_text('rule r { on a  alert "x" }')
    outcome = cep("test", rules, "--mutate")
    assert outcome.code == FAILED
    assert outcome.out == f"{rules}:1:1: rule `r` has no test\n\n"
    assert "0 mutants: 0 noticed, 1 rule without a test in" in outcome.err


def test_a_rule_is_shown_with_what_it_uses(cep: Cep) -> None:
    shown = cep("rules", "show", "beaconing").out
    declared = ["list regular_ports", "param jitter", "def gap()", "def mean_gap()", "rule beac"]
    places = [shown.index(text) for text in declared]
    assert places == sorted(places)
    assert "remote_interfaces" not in shown
    assert cep("rules", "show", "port_scan").out.splitlines()[1].startswith("rule port_scan")
