"""The loop over events: a rule that is alone is written into it."""

from __future__ import annotations

from typing import Any

import pytest

import cep
from cep.compile.loop import FEW, own_loop

KINDS = "rule r { by user sequence within 1h { a: A  b: B where n > a.n } alert '{a.n}' }"
BESIDE = "rule other { on Z alert 'z' }"
RECORDS = [
    {"type": "A", "user": "ann", "n": 1},
    {"type": "X", "user": "ann", "n": 1},
    {"type": ["A"], "user": "ann", "n": 1},
    {"type": None, "user": "ann", "n": 1},
    {"user": "ann", "n": 1},
    {"type": "B", "user": ["no", "key"], "n": 5},
    {"type": "B", "user": "ann", "n": "text"},
    {"type": "B", "user": "ann", "n": 2},
    {"type": "A", "user": 7, "n": 3},
    {"type": "B", "user": 7.0, "n": 4},
]


def found(rules: str) -> list[tuple[str, str | None]]:
    engine = cep.Engine(cep.loads(rules))
    records = [{"@timestamp": number, **record} for number, record in enumerate(RECORDS)]
    return [(m.rule, m.message) for m in [*engine.process(records), *engine.close()]]


def test_alone_and_beside_another_rule() -> None:
    assert found(KINDS) == found(KINDS + BESIDE) == [("r", "1"), ("r", "3")]


def text_of(rule: str) -> str:
    return cep.loads(rule).compiled.rules[0].handlers


def test_a_few_texts_are_compared_and_many_looked_up() -> None:
    few = own_loop(text_of(KINDS), "f0", {"A": 0, "B": 1})
    assert few is not None
    assert "if v == 'A':" in few
    many = own_loop(text_of(KINDS), "f0", {str(n): n % 2 for n in range(FEW + 1)})
    assert many is not None
    assert "h = find(e.f0)" in many


def test_numbers_are_looked_up() -> None:
    text = own_loop(text_of(KINDS), "f0", {1: 0, 2: 1})
    assert text is not None
    assert "find(e.f0)" in text


def test_a_handler_that_returns_from_a_loop_of_its_own_is_called() -> None:
    returning = "        t = e.t\n        for x in ():\n            return\n"
    text = text_of(KINDS).replace("        t = e.t\n", returning)
    assert own_loop(text, "f0", {"A": 0, "B": 1}) is None


@pytest.mark.parametrize("batch", [1, 3, 10])
def test_timers_that_an_event_sets_fire_before_the_next(batch: int) -> None:
    rule = "rule r { by user sequence { a: A  no B within 1s } alert '{a.user}' }"
    engine, matches = cep.Engine(cep.loads(rule)), list[Any]()
    records = [{"@timestamp": n, "type": "A", "user": f"u{n}"} for n in range(0, 100, 10)]
    for start in range(0, len(records), batch):
        matches += engine.process(records[start : start + batch])
    assert [m.message for m in matches] == [f"u{n}" for n in range(0, 90, 10)]
