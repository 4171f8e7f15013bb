"""Fingerprints are the same in every process; kept texts are enough to compile a rule again."""

from __future__ import annotations

import os
import subprocess
import sys
from functools import cache
from pathlib import Path

import pytest

import cep
from cep.compile.rules import CompiledRule
from dsl.canonical import canonical_text, type_field_of

FILES = sorted((Path(__file__).parent.parent / "spec").glob("*.cep"))
RULE = "rule r { by u sequence within 10m { a: A where n > 5  b: B+ until C  c: D } %s }"


@cache
def ruleset_of(path: Path) -> cep.Ruleset:
    return cep.load(path)


def only(text: str, **loading: object) -> CompiledRule:
    (rule,) = cep.loads(text, **loading).compiled.rules
    return rule


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_a_kept_text_compiles_to_the_same_rule(path: Path) -> None:
    ruleset = ruleset_of(path)
    for rule in ruleset.compiled.rules:
        text = canonical_text(ruleset.checked, rule.name)
        again = cep.loads(text, name=rule.name, type_field=type_field_of(text))
        (same,) = again.select([rule.name]).compiled.rules
        assert (same.id, same.version) == (rule.id, rule.version), text
        assert same.fingerprint == rule.fingerprint, text


def test_the_same_in_every_process(tmp_path: Path) -> None:
    code = (
        "import cep, sys\n"
        "for path in sys.argv[1:]:\n"
        "    for rule in cep.load(path).compiled.rules:\n"
        "        print(rule.id, rule.version, *rule.fingerprint)\n"
    )
    command = [sys.executable, "-c", code, *map(str, FILES[:12])]
    found = {
        subprocess.run(
            command, env={**os.environ, "PYTHONHASHSEED": seed}, capture_output=True, check=True
        ).stdout
        for seed in ("1", "2", "3")
    }
    assert len(found) == 1


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("n > 5", "n > 6"),
        ("within 10m", "within 1h"),
    ],
)
def test_constants_are_apart(before: str, after: str) -> None:
    one, other = only(RULE % ""), only((RULE % "").replace(before, after))
    assert one.id == other.id
    assert one.fingerprint.constants != other.fingerprint.constants
    assert one.version != other.version


@pytest.mark.parametrize(
    "clauses",
    [
        'alert "x"',
        "severity high tags a.b",
        'description "d" meta k = 1',
        "dedup by u for 1h",
        'alert "{u}" { n = count(b) }',
        "emit S { n = count(b) }",
    ],
)
def test_what_a_rule_says_changes_nothing_else(clauses: str) -> None:
    one, other = only(RULE % ""), only(RULE % clauses)
    assert (one.id, one.fingerprint) == (other.id, other.fingerprint)
    assert one.version != other.version


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("n > 5", "n >= 5"),
        ("n > 5", "m > 5"),
        ("B+", "B{3,}"),
        ("B+", "next B+"),
        ("by u", "by v"),
        ("by u", "by u, v"),
        ("until C", "until E"),
        ("c: D", "c: D where x == b.x"),
        ("c: D", "no E  c: D"),
        ("within 10m {", "{"),
        ("} %s }", "} keep 1h %s }"),
        ("} %s }", "} limit 3 runs %s }"),
        ("} %s }", "} unless X %s }"),
        ("} %s }", "} having count(b) > 2 %s }"),
        ("} %s }", "} skip nothing %s }"),
        ("} %s }", "} start first %s }"),
        ("} %s }", '} on timeout { alert "t" } %s }'),
    ],
)
def test_another_structure(before: str, after: str) -> None:
    bound = "keep 2h" if after[-1] == "{" else ""
    other = only(RULE.replace(before, after) % bound)
    assert only(RULE % "").id != other.id


def test_types_that_other_rules_give_to_a_key_do_not_matter() -> None:
    pair = "rule pair { by u sequence within 1h { a: A  b: B } }"
    other = 'rule gone { by u sequence { a: A no B where u != "x" within 10m } }'
    alone = only(pair)
    beside = cep.loads(other + pair).compiled.rules[1]
    assert (alone.id, alone.fingerprint) == (beside.id, beside.fingerprint)
    assert len(beside.automaton.keys) == 1


def test_streams_of_other_rules_do_not_matter() -> None:
    rules = RULE % "" + 'stream Q { where z == "1" } rule s { by z sequence within 1h { Q  A } }'
    compiled = {rule.name: rule for rule in cep.loads(rules).compiled.rules}
    alone = only(RULE % "")
    assert (compiled["r"].id, compiled["r"].version) == (alone.id, alone.version)


def test_the_type_field_is_kept() -> None:
    ruleset = cep.loads("rule r { on A where n > 5 }", type_field="kind")
    text = canonical_text(ruleset.checked, "r")
    assert type_field_of(text) == "kind"
    assert only(text, type_field="kind").version == ruleset.compiled.rules[0].version


def test_params_and_lists_are_settled(tmp_path: Path) -> None:
    (tmp_path / "l.txt").write_text('x\n"y"\n')
    rules = f"""
    param a = 1  param b = -5m  param c = ["p", "q"]  param d = "t\\n"  param e = true
    list l from "{tmp_path / "l.txt"}"
    rule r {{ on A where n > a and x in c and y in l and z == d and w == e and time - time(s) > b }}
    """
    ruleset = cep.loads(rules, params={"a": 2.5, "c": ["z"]})
    text = canonical_text(ruleset.checked, "r")
    assert "param a = 2.5" in text
    assert 'param c = ["z"]' in text
    assert "from" not in text
    assert only(text).version == ruleset.compiled.rules[0].version
