"""Mutants of rules: which are made, which are noticed, and the tests that are proposed."""

from __future__ import annotations

from pathlib import Path

import pytest

import cep
from cep.testing.mutants import Mutant, mutants
from cep.testing.mutate import Report, mutate
from cep.testing.runner import run_tests
from dsl.parser import parse
from dsl.source import Source
from dsl.text import to_text

RULES = Path(__file__).resolve().parents[2] / "rules"


def tree(text: str, name: str = "r.cep"):
    source = Source(name, text)
    parsed, problems = parse(source)
    assert not problems
    return parsed, source


def made(text: str) -> list[Mutant]:
    return [mutant for statement in tree(text)[0].statements for mutant in mutants(statement)]


def words(text: str) -> list[str]:
    return [mutant.words for mutant in made(text)]


def tried(text: str) -> Report:
    return mutate([tree(text)])


# ---------------------------------------------------------------------------- what is changed


def test_conditions() -> None:
    assert words('rule r { on a where x > 5 and not y == "b" or ok(z) }') == [
        '`where x > 5 and not y == "b" or ok(z)` is left out',
        '`or x > 5 and not y == "b"` is left out',
        "`or ok(z)` is left out",
        "`and x > 5` is left out",
        '`and not y == "b"` is left out',
        "`x > 5` is `x <= 5`",
        "`x > 5` is `x >= 5`",
        "`5` is `4`",
        "`5` is `6`",
        '`not y == "b"` is `y == "b"`',
        '`y == "b"` is `y != "b"`',
        "`ok(z)` is `not ok(z)`",
    ]


def test_bounds_by_a_tick() -> None:
    assert words("rule r { by u  sequence within 1s { a: A  b: B after 2s  no C within 1m } }")[
        :2
    ] == [
        "`within 1s` is left out",
        "`1s` is `999ms999us`",
    ]
    text = "rule r { sequence { a: A  b: B after 2us  no C within 3us } keep 4us dedup for 5us }"
    assert {"`2us` is `1us`", "`3us` is `4us`", "`4us` is `3us`", "`5us` is `6us`"} <= {
        *words(text)
    }


def test_counts_by_one() -> None:
    text = "rule r { sequence { a: A{3}  b: B{2,4}  c: C+  d: D?  e: E } }"
    assert words(text) == [
        "`{3}` is `{2}`",
        "`{3}` is `{4}`",
        "`{2,4}` is `{1,4}`",
        "`{2,4}` is `{3,4}`",
        "`{2,4}` is `{2,3}`",
        "`{2,4}` is `{2,5}`",
        "`+` is `*`",
        "`+` is `{2,}`",
        "`?` is `{1}`",
        "`?` is `{0,2}`",
    ]
    assert words("rule r { 2 of within 1us { a: A  b: B  c: C } }")[1:] == [
        "`1us` is `2us`",
        "`2 of` is `1 of`",
        "`2 of` is `3 of`",
    ]


def test_windows_and_what_they_gather() -> None:
    text = "rule r { aggregate a over sliding 3 events { n = count(distinct x) where y < 0.5 } }"
    assert words(text) == [
        "`sliding 3 events` is `sliding 2 events`",
        "`sliding 3 events` is `sliding 4 events`",
        "`distinct x` is `x`",
        "`where y < 0.5` is left out",
        "`y < 0.5` is `y >= 0.5`",
        "`y < 0.5` is `y <= 0.5`",
        "`0.5` is `0.4`",
        "`0.5` is `0.6`",
    ]


def test_clauses_that_guard_or_shape() -> None:
    text = """rule r {
      by u
      sequence strict { a: A{2,} until B  no C  d: D }
      unless E
      having count(a) > 1
      skip to next
      start first
      dedup by a.x for 1us
    }"""
    assert {
        "`strict` is left out",
        "`until B` is left out",
        "`no C` is left out",
        "`unless E` is left out",
        "`having count(a) > 1` is left out",
        "`skip to next` is left out",
        "`start first` is left out",
        "`dedup by a.x for 1us` is left out",
        "`by u` is left out",
    } <= {*words(text)}


def test_params_and_definitions() -> None:
    assert words("param most = 1.50") == ["`1.50` is `1.49`", "`1.50` is `1.51`"]
    assert words('param name = "x"') == []
    assert words("def high(x) = x > 9")[:2] == ["`x > 9` is `x <= 9`", "`x > 9` is `x >= 9`"]


def test_measured_numbers_do_not_meet_a_limit_exactly() -> None:
    text = "rule r { on a where haversine_km(b, c, d, e) > 5 }"
    assert "`haversine_km(b, c, d, e) > 5` is `haversine_km(b, c, d, e) >= 5`" not in words(text)


def test_a_merged_key_is_merged_in_every_by() -> None:
    [merged] = [
        mutant
        for mutant in made("rule r { by u  sequence within 1s { a: A  b: B by v } }")
        if mutant.key_part == "u"
    ]
    assert to_text(merged.changed) == (
        'rule r { by "all" as `u`  sequence within 1s { a: A  b: B by "all" as `u` } }'
    )


def test_each_text_is_made_once() -> None:
    for path in sorted(RULES.rglob("*.cep")):
        for statement in tree(path.read_text())[0].statements:
            texts = [to_text(mutant.changed) for mutant in mutants(statement)]
            assert len(texts) == len(set(texts))
            assert to_text(statement) not in texts


# ---------------------------------------------------------------------------- what is noticed

GUESSED = """rule guessed {
  by user
  sequence within 10m { fail: fail{3,}  ok: good }
  alert "{user}"
}
"""

WELL_TESTED = """
test guessed "three and no less" {
  fail { user: 1 } times 2 every 1s
  good { user: 1 }
  expect nothing
  at 1h fail { user: 1 } times 3 every 1s
  at 1h10m good { user: 1 }
  expect guessed { user: 1, fail: 3 }
  at 2h fail { user: 1 } times 3 every 1s
  at 2h10m1us good { user: 1 }
  expect nothing
  at 3h fail { user: 1 } times 3 every 1s
  good { user: 2 }
  expect nothing
}
"""


def test_good_tests_notice_everything() -> None:
    report = tried(GUESSED + WELL_TESTED)
    assert report.passed
    assert report.tried == 5


def test_a_key_that_only_the_alert_names_is_not_noticed() -> None:
    report = tried(
        """rule r { by user  sequence within 1h { f: fail{3} }  alert "{user}: 3" { who = user } }
        test r "three" { fail { user: "ann" } times 3 every 1s
          expect r { message: "ann: 3", who: "ann", user: "ann" } }"""
    )
    assert "`by user` is left out" in [one.mutant.words for one in report.survivors]
    report = tried(
        """rule r { by user  sequence within 1h { f: fail{3} }  alert "{f.user}: three" }
        test r "three" { fail { user: "ann" } times 2 every 1s  fail { user: "bob" }
          fail { user: "ann" }  expect r { message: "ann: three" } }"""
    )
    assert "`by user` is left out" not in [one.mutant.words for one in report.survivors]


def test_a_rule_without_a_test_is_told() -> None:
    report = tried(GUESSED)
    assert [rule.name.name for rule in report.untested] == ["guessed"]
    assert not report.passed


def test_what_is_not_noticed_has_a_place_and_words() -> None:
    weak = """test guessed "finds one" {
      fail { user: 1 } times 5 every 1s
      good { user: 1 }
      expect guessed
    }"""
    report = tried(GUESSED + weak)
    said = [(str(s.mutant.span), s.mutant.words) for s in report.survivors]
    assert said == [
        ("r.cep:3:19", "`10m` is `9m59s999ms999us`"),
        ("r.cep:3:19", "`10m` is `10m1us`"),
        ("r.cep:3:35", "`{3,}` is `{2,}`"),
        ("r.cep:3:35", "`{3,}` is `{4,}`"),
        ("r.cep:2:6", "`by user` is left out"),
    ]


WEAK = {
    "bounds": "rule r { by u  sequence { a: A  b: B within 5s } alert }",
    "absence": "rule r { by u  sequence { a: A  no B within 5s } unless C  alert }",
    "condition": "rule r { by u  on a: A where x >= 5 and y != 1 alert }",
    "window": "rule r { by u  aggregate A over sliding 5s { n = count() } having n >= 3 alert }",
    "dedup": "rule r { by u  on A alert dedup for 5s }",
    "strict": "rule r { by u  sequence strict within 5s { a: A  b: B{2} } alert }",
}

FEEBLE = """
test r "something" {
  A { u: "x", x: 9, y: 0 } times 4 every 1s
  B { u: "x" } times 2 every 1s
  advance 1m
}
"""


@pytest.mark.parametrize("rule", WEAK.values(), ids=list(WEAK))
def test_what_is_proposed_tells_the_mutant_from_the_rule(rule: str) -> None:
    """With the proposed tests added all tests pass, and every mutant is noticed."""
    text = accepting(rule + FEEBLE)
    report = tried(text)
    assert report.survivors
    for survivor in report.survivors:
        assert survivor.proposal is not None, survivor.mutant.words
        text += f"\n{survivor.proposal}\n"
    failed = [result.message for result in run_tests(cep.loads(text)) if not result.passed]
    assert not failed
    assert not [survivor.mutant.words for survivor in tried(text).survivors]


SYSLOG = """
def from_ip() = capture(message, / from (\\S+) port/)
stream failed where message like "Failed*" {
  select { user = capture(message, /for (?P<who>.*) from/, "who")  ip = from_ip() }
}
"""


@pytest.mark.parametrize(
    ("rule", "part"),
    [
        ("by ip  on f: failed  dedup for 1m", "192.0.2.2"),
        ("by ip  sequence within 1m { f: failed{3} }", "192.0.2.2"),
        ("by user  sequence within 1m { f: failed{3} }", "for ano from"),
        ("by ip  aggregate failed over sliding 1m { n = count() } having n >= 3", "192.0.2.2"),
        (
            "by capture(message, /port (\\d+)/) as p  sequence within 1m "
            '{ f: ssh{3} where message like "Failed*" }',
            "port 50 ssh2",
        ),
    ],
)
def test_a_key_that_is_captured_from_a_text_is_changed_there(rule: str, part: str) -> None:
    text = (
        f'{SYSLOG} rule r {{ {rule}  alert "found" }}'
        + """
    test r "three" {
      failed { type: "ssh", message: "Failed password for ann from 192.0.2.1 port 40 ssh2" }
      failed { type: "ssh", message: "Failed password for ann from 192.0.2.1 port 40 ssh2" }
      failed { type: "ssh", message: "Failed password for ann from 192.0.2.1 port 40 ssh2" }
    }"""
    )
    report = tried(text.replace('ssh2" }\n    }', 'ssh2" }\n  expect r\n    }'))
    [merged] = [s for s in report.survivors if s.mutant.key_part is not None]
    assert merged.proposal is not None
    assert part in merged.proposal


def accepting(text: str) -> str:
    """The text with as many `expect`s as its only test needs to pass."""
    for expects in range(8):
        full = text.replace("advance 1m", "advance 1m" + "  expect r" * expects)
        if all(result.passed for result in run_tests(cep.loads(full))):
            return full
    raise AssertionError(text)


# ---------------------------------------------------------------------------- the packs


@pytest.mark.parametrize("pack", sorted(path.parent.name for path in RULES.glob("*/streams.cep")))
def test_the_tests_of_the_packs_notice_every_mutant(pack: str) -> None:
    files = sorted((RULES / pack).glob("*.cep"))
    report = mutate([tree(path.read_text(), str(path)) for path in files])
    assert report.tried > 50
    assert not [f"{s.mutant.span} {s.mutant.words}" for s in report.survivors]
    assert not report.untested
