"""All matches of a row of steps, in order: as the lists tell it, and as sorting would."""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import Any

import pytest

import cep
from cep.runtime.rows import first_row, rows
from cep.runtime.rule import RuleRun
from cep.runtime.runs import EVENT, Complete, Node

PATTERNS = {
    "any": "sequence any within 12s { a: A  b: B  c: C }",
    "any, four steps": "sequence any within 12s { a: A  b: B  c: A  d: C }",
    "relaxed": "sequence within 12s { a: A  b: B  c: C }",
    "one step any": "sequence within 12s { a: A  any b: B  c: C }",
    "one by one": "sequence any within 12s { a: A  b: B where n > a.n  c: C }",
    "one by one, then all": "sequence within 12s { a: A  any b: B where n > a.n  any c: C }",
    "by a value": "sequence any within 12s { a: A  b: B where m == a.m  c: C }",
    "guarded": "sequence any within 12s { a: A  no D where n == 1  b: B  c: C }",
}


def letters(seed: int) -> Iterator[dict[str, Any]]:
    dice = random.Random(seed)
    time = 0
    for _ in range(60):
        time += dice.choice((0, 1, 1, 2))
        yield {"type": dice.choice("AABBCD"), "n": dice.randrange(4), "m": dice.randrange(2)} | {
            "time": time
        }


@pytest.mark.parametrize("pattern", PATTERNS)
@pytest.mark.parametrize("limit", ["", "limit 3 runs"])
def test_the_lists_tell_the_order_that_sorting_gives(
    pattern: str, limit: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    told = compared = 0

    def finish(run: RuleRun, state: Any, time: int, finals: list[Node], low: int | None) -> bool:
        nonlocal told, compared
        found = rows(finals, low, state)
        if found is not None:
            told += 1
            sorted_ones = Complete(finals, low, run.plan.layout, state).in_order()
            expected = [tuple(node[EVENT] for node in history) for history in sorted_ones]
            compared += len(expected)
            assert [tuple(map(id, row)) for row in found] == [
                tuple(map(id, row)) for row in expected
            ]
        return original(run, state, time, finals, low)

    original = RuleRun.finish
    monkeypatch.setattr(RuleRun, "finish", finish)
    for seed in range(20):
        engine = cep.Engine(cep.loads(f"rule r {{ {PATTERNS[pattern]} skip nothing {limit} }}"))
        for event in letters(seed):
            engine.process(event)
    assert told
    assert compared


@pytest.mark.parametrize("pattern", PATTERNS)
def test_the_lists_tell_the_first_one(pattern: str, monkeypatch: pytest.MonkeyPatch) -> None:
    compared = 0

    def finish(run: RuleRun, state: Any, time: int, finals: list[Node], low: int | None) -> bool:
        nonlocal compared
        if len(finals) == 1:
            found = first_row(finals[0], low, state)
            complete = Complete(finals, low, run.plan.layout, state)
            starts = complete.starts()
            if found is not None:
                assert found == (complete.best(starts[0]) if starts else [])
                compared += 1
        return original(run, state, time, finals, low)

    original = RuleRun.finish
    monkeypatch.setattr(RuleRun, "finish", finish)
    for seed in range(20):
        engine = cep.Engine(cep.loads(f"rule r {{ {PATTERNS[pattern]} }}"))
        for event in letters(seed):
            engine.process(event)
    assert compared


def test_a_match_in_a_row_says_what_a_match_says() -> None:
    text = 'rule r { sequence any within 1h { a: A  b: B } skip nothing alert "{a.n}{b.n}" }'
    engine = cep.Engine(cep.loads(text))
    events = [{"type": t, "n": n, "time": n} for n, t in enumerate("AAB")]
    found = [match for event in events for match in engine.process(event)]
    assert [match.message for match in found] == ["02", "12"]
    assert [match.events["a"]["n"] for match in found] == [0, 1]
    assert [match.counts() for match in found] == [{"a": 1, "b": 1}] * 2
    assert len({match.id for match in found}) == 2


def test_a_row_may_have_one_step() -> None:
    text = 'rule r { sequence { a: A  no B within 2s }  skip nothing  alert "{a.n}" }'
    engine = cep.Engine(cep.loads(text))
    for n in (1, 2):
        engine.process_at({"type": "A", "n": n}, 0)
    found = engine.process_at({"type": "C"}, 10_000_000)
    assert [match.message for match in found] == ["1", "2"]
