"""Commands that look at rules: check, test, explain."""

from __future__ import annotations

import shutil
from pathlib import Path
from xml.etree import ElementTree

import pytest
from cli_samples import RULES, Cep

from cep.cli.exits import DONE, FAILED, WRONG_USE

# ---------------------------------------------------------------------- check


def test_check_of_good_rules_says_what_bounds_them(cep: Cep, rules: Path) -> None:
    outcome = cep("check", rules)
    assert outcome.code == DONE
    assert outcome.out.startswith(f"guessed  {rules}:3:1\n")
    assert "a run ends at the latest 10m after its first event (within)" in outcome.out
    assert outcome.err == "1 rule, 0 errors, 0 warnings\n"


def test_check_shows_all_problems_of_all_files(cep: Cep, tmp_path: Path) -> None:
    (tmp_path / "a.cep").write_text('rule a { on login where x = 1  alert "hi" }\n')
    (tmp_path / "b.cep").write_text('rule b { on login where 1 < x < 3  alert "hi" }\n')
    outcome = cep("check", "a.cep", "b.cep")
    assert outcome.code == FAILED
    assert "a.cep:1:27" in outcome.err
    assert "b.cep:1:" in outcome.err
    assert "\n2 errors, " in outcome.err
    assert outcome.out == ""


def test_check_quiet_says_only_problems(cep: Cep, rules: Path) -> None:
    outcome = cep("check", "--quiet", rules)
    assert (outcome.code, outcome.out, outcome.err) == (DONE, "", "")


def test_check_warnings_do_not_fail(cep: Cep, tmp_path: Path) -> None:
    (tmp_path / "w.cep").write_text('list unused = [1]\nrule a { on login  alert "hi" }\n')
    outcome = cep("check", "w.cep")
    assert outcome.code == DONE
    assert "warning[W" in outcome.err


def test_check_explains_a_code(cep: Cep) -> None:
    outcome = cep("check", "--explain", "e001")
    assert outcome.code == DONE
    assert outcome.out.startswith("E001: ")


def test_check_explains_no_unknown_code(cep: Cep) -> None:
    outcome = cep("check", "--explain", "E999x")
    assert outcome.code == WRONG_USE
    assert outcome.err.startswith("error: no code `E999x`")


def test_check_of_nothing(cep: Cep) -> None:
    outcome = cep("check")
    assert outcome.code == WRONG_USE
    assert "nothing to check" in outcome.err


def test_check_set(cep: Cep, tmp_path: Path) -> None:
    (tmp_path / "p.cep").write_text('param n = 3\nrule a { on login where x > n  alert "hi" }\n')
    assert cep("check", "p.cep", "--set", "n=5").code == DONE
    outcome = cep("check", "p.cep", "--set", "n=many")
    assert outcome.code == FAILED
    assert "n" in outcome.err


def test_check_of_a_file_that_cannot_be_read(cep: Cep, tmp_path: Path) -> None:
    (tmp_path / "a.cep").write_bytes(b"\xff\xfe\x00")
    outcome = cep("check", "a.cep")
    assert outcome.code == WRONG_USE
    assert outcome.err == "error: cannot read a.cep: line 1 is not UTF-8 text\n"


def test_check_of_a_pack(cep: Cep) -> None:
    outcome = cep("check", "pack:security")
    assert outcome.code == DONE, outcome.err
    assert cep("check", "pack:security/passwords").code == DONE


def test_check_of_an_unknown_pack(cep: Cep) -> None:
    outcome = cep("check", "pack:sekurity")
    assert outcome.code == WRONG_USE
    assert outcome.err == "error: no pack `sekurity`; did you mean pack:security?\n"


# ---------------------------------------------------------------------- test

FAILING = """
test guessed "two are enough" {
  login { user: "ann", outcome: "failure" } times 2 every 10s
  login { user: "ann", outcome: "success" }
  expect guessed { user: "ann" }
}
"""


@pytest.fixture
def mixed(rules: Path) -> Path:
    """Rules with one test that passes and one that fails."""
    rules.write_text(RULES + FAILING)
    return rules


def test_tests_that_pass(cep: Cep, rules: Path) -> None:
    outcome = cep("test", rules)
    assert outcome.code == DONE
    assert outcome.out == ""
    assert outcome.err.startswith("1 test: 1 passed in ")


def test_a_failure_is_shown_with_its_place(cep: Cep, mixed: Path) -> None:
    outcome = cep("test", mixed)
    assert outcome.code == FAILED
    assert f'FAILED guessed "two are enough"  ({mixed}:19:1)' in outcome.out
    assert outcome.err.startswith("2 tests: 1 passed, 1 failed in ")


def test_verbose_shows_each_test(cep: Cep, mixed: Path) -> None:
    outcome = cep("test", "-v", mixed)
    assert 'passed guessed "fires"\n' in outcome.out
    assert 'FAILED guessed "two are enough"' in outcome.out


def test_quiet_shows_only_failures(cep: Cep, mixed: Path, rules: Path) -> None:
    outcome = cep("test", "-q", mixed)
    assert outcome.code == FAILED
    assert "FAILED" in outcome.out
    assert outcome.err == ""


@pytest.mark.parametrize(
    ("selection", "number"),
    [
        ("fires", 1),
        ("guessed", 2),
        ("GUESSED and not enough", 1),
        ("fires or enough", 2),
        ("two enough", 1),
        ("not (fires or enough)", 0),
    ],
)
def test_k_chooses_tests(cep: Cep, mixed: Path, selection: str, number: int) -> None:
    outcome = cep("test", "-k", selection, mixed)
    assert f"{number} test" in outcome.err
    if not number:
        assert outcome.code == DONE
        assert "no test fits -k" in outcome.err


@pytest.mark.parametrize("selection", ["(fires", "and", "fires or", "a )", "not " * 80 + "a", "("])
def test_k_that_makes_no_sense(cep: Cep, rules: Path, selection: str) -> None:
    outcome = cep("test", "-k", selection, rules)
    assert outcome.code == WRONG_USE
    assert "something is wrong at " in outcome.err


def test_junit_writes_a_report(cep: Cep, mixed: Path) -> None:
    assert cep("test", mixed, "--junit", "report.xml").code == FAILED
    suite = ElementTree.parse("report.xml").getroot()[0]
    assert (suite.get("tests"), suite.get("failures")) == ("2", "1")
    passed, failed = suite
    assert (passed.get("classname"), passed.get("name")) == ("guessed", "fires")
    assert len(passed) == 0
    assert (failed.get("file"), failed.get("line")) == (str(mixed), "19")
    assert failed[0].tag == "failure"
    assert failed[0].text


def test_junit_that_cannot_be_written(cep: Cep, rules: Path) -> None:
    outcome = cep("test", rules, "--junit", "no/report.xml")
    assert outcome.code == WRONG_USE
    assert "cannot write no/report.xml" in outcome.err


def test_rules_without_tests_get_a_warning(cep: Cep, tmp_path: Path) -> None:
    (tmp_path / "a.cep").write_text('rule a { on login  alert "hi" }\n')
    outcome = cep("test", "a.cep")
    assert outcome.code == DONE
    assert "these rules have no tests" in outcome.err


def test_test_of_broken_rules_is_wrong_use(cep: Cep, tmp_path: Path) -> None:
    (tmp_path / "a.cep").write_text("rule {")
    outcome = cep("test", "a.cep")
    assert outcome.code == WRONG_USE
    assert "the rules have 1 error" in outcome.err


def test_test_set(cep: Cep, tmp_path: Path) -> None:
    (tmp_path / "p.cep").write_text(
        'param n = 3\nrule a { on login where x > n  alert "hi" }\n'
        'test a "4 is enough" { login { x: 4 }  expect a }\n'
    )
    assert cep("test", "p.cep").code == DONE
    assert cep("test", "p.cep", "--set", "n=5").code == FAILED


# ---------------------------------------------------------------------- explain


def test_explain_in_words(cep: Cep, rules: Path) -> None:
    outcome = cep("explain", rules)
    assert outcome.code == DONE
    assert outcome.out.splitlines() == [
        f'rule guessed "Guessing that worked"  ({rules}:3:1)',
        "  high, attack.t1110",
        "  for each user:",
        '    fail: login (3 or more) where outcome == "failure"',
        '    then ok: login where outcome == "success"',
        "    all within 10m",
        "  after a match runs that began before the match ended are dropped (skip past last)",
        "  bound: a run ends at the latest 10m after its first event (within)",
        "  bound: a key holds a run for each first event in that time (`limit N runs` caps it)",
    ]


def test_explain_shows_what_a_rule_uses(cep: Cep, tmp_path: Path) -> None:
    (tmp_path / "lists.cep").write_text("""
list hosts = [
  "a",
  "b",
]
param factor = 2
param most = 3 * factor
param unused = 1
""")
    (tmp_path / "r.cep").write_text("""
include "lists.cep"
def big(x) = x > most
rule far { on login where big(n) and host in hosts }
rule near { on login }
""")
    outcome = cep("explain", "r.cep", "--set", "most=9")
    assert outcome.code == 0
    far, near = outcome.out.split("\n\n")
    assert far.splitlines()[-8:] == [
        "  uses:",
        "    def big(x) = x > most",
        "    list hosts = [",
        '      "a",',
        '      "b",',
        "    ]",
        "    param factor = 2",
        "    param most = 3 * factor, set to 9",
    ]
    assert "uses" not in near


def test_explain_stage_ast(cep: Cep, rules: Path) -> None:
    outcome = cep("explain", "guessed", rules, "--stage", "ast")
    assert outcome.out.startswith("Rule name=guessed title='Guessing that worked'\n")
    assert "    Step stream=login label=fail quantifier={3,}\n" in outcome.out


@pytest.mark.parametrize("stage", ["plan", "code"])
def test_explain_later_stages(cep: Cep, rules: Path, stage: str) -> None:
    outcome = cep("explain", rules, "--stage", stage)
    assert outcome.code == DONE, outcome.err
    assert "guessed" in outcome.out
    if stage == "code":
        compile(outcome.out, "<explained>", "exec")


def test_explain_shows_only_the_named_rule(cep: Cep, rules: Path) -> None:
    rules.write_text(RULES + 'rule other { on login  alert "hi" }\n')
    assert "rule other" in cep("explain", rules).out
    assert "rule other" not in cep("explain", "guessed", rules).out


def test_explain_diagram(cep: Cep, rules: Path) -> None:
    outcome = cep("explain", rules, "--diagram")
    assert (
        outcome.out
        == """\
flowchart LR
    %% Guessing that worked
    n0(["each user"])
    n1["fail: login<br/>outcome == #quot;failure#quot;"]
    n2["ok: login<br/>outcome == #quot;success#quot;"]
    n3(["guessed<br/>within 10m"])
    n0 --> n1
    n1 -- "3 or more" --> n1
    n1 --> n2
    n2 --> n3
"""
    )


def test_explain_diagram_to_a_file(cep: Cep, rules: Path) -> None:
    outcome = cep("explain", rules, "--diagram", "-o", "rule.mmd")
    assert outcome.err == "wrote rule.mmd\n"
    assert Path("rule.mmd").read_text() == cep("explain", rules, "--diagram").out


@pytest.mark.skipif(shutil.which("dot") is None, reason="Graphviz is not installed")
def test_explain_diagram_as_svg(cep: Cep, rules: Path) -> None:
    assert cep("explain", rules, "--diagram", "-o", "rule.svg").code == DONE
    assert "<svg" in Path("rule.svg").read_text()


def test_explain_svg_without_graphviz(
    cep: Cep, rules: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("cep.explain.diagram.shutil.which", lambda _: None)
    outcome = cep("explain", rules, "--diagram", "-o", "rule.svg")
    assert outcome.code == WRONG_USE
    assert "SVG needs Graphviz, whose program `dot` is not installed" in outcome.err


def test_explain_svg_through_dot(
    cep: Cep, rules: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A stand-in for Graphviz that gives back what it gets: the text must be a digraph."""
    program = tmp_path / "dot"
    program.write_text('#!/bin/sh\n[ "$1" = -Tsvg ] && cat\n')
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    assert cep("explain", rules, "--diagram", "-o", "rule.svg").code == DONE
    text = Path("rule.svg").read_text()
    assert text.startswith("digraph rule {\n")
    assert 'n1 [label="fail: login\\noutcome == \\"failure\\"", shape=box' in text
    program.write_text("#!/bin/sh\necho bad >&2; exit 1\n")
    assert "`dot` failed: bad" in cep("explain", rules, "--diagram", "-o", "rule.svg").err


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        (["guessed"], "in which file is guessed? Add a rule file or pack:NAME"),
        (["gessed", "rules.cep"], "no rule `gessed`; did you mean `guessed`?"),
        (["xyz", "rules.cep"], "no rule `xyz`; there are: guessed"),
        (["rules.cep", "-o", "x.mmd"], "--output goes with --diagram"),
        (["rules.cep", "--stage", "ast", "--diagram"], "choose one"),
        (["rules.cep", "--stage", "soup"], "soup"),
        (["rules.cep", "--diagram", "-o", "no/x.mmd"], "cannot write no/x.mmd"),
    ],
)
@pytest.mark.usefixtures("rules")
def test_explain_wrong_use(cep: Cep, arguments: list[str], reason: str) -> None:
    outcome = cep("explain", *arguments)
    assert outcome.code == WRONG_USE
    assert reason in outcome.err


def test_explain_set(cep: Cep, tmp_path: Path) -> None:
    (tmp_path / "p.cep").write_text('param n = 3\nrule a { on login where x > n  alert "hi" }\n')
    assert "987" in cep("explain", "p.cep", "--stage", "code", "--set", "n=987").out


def test_what_a_file_of_the_folder_includes_may_hold_more_than_is_used(
    cep: Cep, tmp_path: Path
) -> None:
    folder = tmp_path / "mine"
    folder.mkdir()
    (folder / "a.cep").write_text('include "b.cep"\nlist own = [1]\nrule a { on one }\n')
    (folder / "b.cep").write_text("stream one\nstream two\nrule b { on one where x == 1 }\n")
    said = cep("check", folder).err
    assert "list `own` is not used" in said
    assert "stream `two`" not in said
    assert "rule `b` has no test" in said
    assert "stream `two` is not used" in cep("check", folder / "b.cep").err


def test_a_rule_that_is_copied_has_no_warnings(cep: Cep, tmp_path: Path) -> None:
    cep("rules", "copy", "password_spraying", tmp_path / "tuned")
    assert "0 errors, 0 warnings" in cep("check", tmp_path / "tuned").err
