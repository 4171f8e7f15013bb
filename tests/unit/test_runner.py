"""The runner of `test` blocks: what it accepts, and how it says what is wrong."""

from __future__ import annotations

from dataclasses import dataclass

import pytest

from cep.testing.runner import reference_engine, run_tests
from dsl.checked import CheckedRules
from dsl.checker import check
from dsl.parser import parse
from dsl.source import Source

RULES = """
stream big where type == "order" and size > 5
stream raw { time at as millis }
rule ab { by k  sequence within 10s { a: A  b: B+  c: C }  alert "{k}" { n = count(b) } }
rule wait { by k  sequence { p: P  no Q within 10s } }
rule bigs { on big }
rule raws { on r: raw  alert { t = r.time } }
"""


@dataclass
class Rules:
    checked: CheckedRules


def messages(test: str) -> list[str]:
    """The messages of the failing tests."""
    source = Source("t.cep", RULES + test)
    file, found = parse(source)
    checked, more = check([(file, source)])
    assert checked is not None, [each.message for each in found + more]
    results = run_tests(Rules(checked), reference_engine)
    return [result.message for result in results if not result.passed]


MATCH = "A { k: 1 }  B { k: 1 }  B { k: 1 }  C { k: 1 }"


@pytest.mark.parametrize(
    "expectation",
    [
        "expect ab",
        "expect at 3s ab",
        "expect ab { n: 2 }",
        'expect ab { k: 1, n: 2, b: 2, a: 1, c.k: 1, message: "1", suppressed: 0 }',
        "expect ab { n: 2.0 }",
    ],
)
def test_what_holds_passes(expectation: str) -> None:
    assert messages(f'test ab "t" {{ {MATCH}  {expectation} }}') == []


@pytest.mark.parametrize(
    ("expectation", "told"),
    [
        ("expect at 2s ab", "the nearest differs: it comes at 3s"),
        ("expect ab { n: 3 }", "the nearest differs: n is 2"),
        ("expect ab { c.k: 9 }", "the nearest differs: c.k is 1"),
        ("expect timeout ab", "the nearest differs: it is a match"),
        ("expect nothing", "expected nothing, but there came"),
        ("", "the test ends with a match that no `expect` takes"),
        ("expect ab  expect ab", "nothing came; the clock is at 3s"),
    ],
)
def test_what_does_not_hold_is_told(expectation: str, told: str) -> None:
    (message,) = messages(f'test ab "t" {{ {MATCH}  {expectation} }}')
    assert told in message
    assert message.startswith("t.cep:8:")


def test_a_failure_shows_what_came() -> None:
    (message,) = messages(f'test ab "t" {{ {MATCH}  expect ab {{ n: 7 }} }}')
    assert 'at 3s ab { k: 1, n: 2, a: 1, b: 2, c: 1 } "1"' in message


def test_nothing_came_shows_what_is_open() -> None:
    (message,) = messages('test wait "t" { P { k: 1 } expect wait }')
    assert "still open: wait { k: 1 } until 10s" in message


def test_undecided() -> None:
    assert messages('test wait "t" { P { k: 1 } expect undecided wait { k: 1 } }') == []
    assert messages('test wait "t" { P { k: 1 } expect at 10s undecided wait }') == []
    (message,) = messages('test wait "t" { P { k: 1 } expect undecided wait { k: 2 } }')
    assert "open absences:\n  wait { k: 1 } until 10s" in message


def test_an_event_must_belong_to_the_stream_named() -> None:
    (message,) = messages('test bigs "t" { big { size: 2 } }')
    assert "does not belong to the stream `big`" in message


def test_fixed_fields_are_filled_in() -> None:
    assert messages('test bigs "t" { big { size: 9 } expect bigs }') == []


def test_the_time_of_an_event_may_be_given() -> None:
    assert messages('test raws "t" { raw { at: 1767225605000 } expect at 5s raws }') == []


def test_time_does_not_go_back() -> None:
    (message,) = messages('test raws "t" { at 9s raw {}  raw { at: 1767225605000 } expect raws }')
    assert "this event is at 5s, but the clock of the test is already at 9s" in message


def test_an_unreadable_time_is_told() -> None:
    (message,) = messages('test raws "t" { raw { at: "noon" } }')
    assert "the time 'noon' cannot be read" in message


def test_only_chooses_tests() -> None:
    source = Source("t.cep", RULES + 'test ab "one" { expect ab } test ab "two" { expect ab }')
    checked, _ = check([(parse(source)[0], source)])
    assert checked is not None
    results = run_tests(Rules(checked), reference_engine, only=lambda test: test.name == "two")
    assert [result.test.name for result in results] == ["two"]
