"""Keys that would hold more runs, or more events in them, than a cap allows."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

import cep
from cep.cli.advice import advice
from cep.cli.session import RunOptions

PAYMENTS = "rule r { sequence within 1d { a: x  b: x where n > a.n + 1000 } skip nothing%s }"


@pytest.fixture
def few_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("cep.plan.states.MOST_RUNS", 20)


@pytest.fixture
def few_nodes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("cep.compile.rules.MOST_NODES", 3000)


def numbers(first: int, end: int) -> Iterator[dict[str, object]]:
    return ({"type": "x", "n": n, "time": n + 1} for n in range(first, end))


def test_the_oldest_runs_of_a_crowd_are_dropped_and_counted(few_runs: None) -> None:
    engine = cep.Engine(cep.loads(PAYMENTS % ""))
    engine.process(list(numbers(0, 100)))
    found = engine.process({"type": "x", "n": 2000, "time": 200})
    begun = [match.events["a"]["n"] for match in found]
    assert begun == list(range(100 - len(begun), 100))
    assert 18 <= len(begun) <= 20
    stats = engine.stats.per_rule["r"]
    assert stats.dropped == stats.crowded > 0
    engine.program.rules[0].check()


def test_a_larger_limit_is_kept_to(few_runs: None) -> None:
    engine = cep.Engine(cep.loads(PAYMENTS % " limit 50 runs"))
    engine.process(list(numbers(0, 100)))
    found = engine.process({"type": "x", "n": 2000, "time": 200})
    assert [match.events["a"]["n"] for match in found] == list(range(50, 100))
    assert engine.stats.per_rule["r"].crowded == 0


def test_groups_that_are_tested_one_by_one_are_a_crowd_too(few_runs: None) -> None:
    text = "rule r { sequence within 1d { a: x+ where n < prev(n)  z: z } skip nothing }"
    engine = cep.Engine(cep.loads(text))
    engine.process(list(numbers(0, 100)))
    found = engine.process({"type": "z", "time": 200})
    assert 18 <= len(found) <= 20
    assert {match.events["a"][0]["n"] for match in found} == set(range(100 - len(found), 100))
    assert engine.stats.per_rule["r"].crowded == 100 - len(found)


MANY_EVENTS = {
    "optional steps": "s: x " + " ".join(f"o{i}: x?" for i in range(8)) + " z: z",
    "a count": "a: x{40}  z: z",
}


@pytest.mark.parametrize("steps", MANY_EVENTS.values(), ids=MANY_EVENTS)
def test_a_key_holds_so_many_events_in_its_runs_and_no_more(steps: str, few_nodes: None) -> None:
    engine = cep.Engine(cep.loads(f"rule r {{ sequence within 1d {{ {steps} }} }}"))
    for event in numbers(0, 2000):
        engine.process(event)
    (run,) = engine.program.rules
    (state,) = run.states.values()
    run.weigh(state)
    assert len(run.first_events(state)) < 300
    stats = engine.stats.per_rule["r"]
    assert stats.dropped == stats.crowded > 1000
    assert engine.process({"type": "z", "time": 3000})


def test_what_was_dropped_is_told(few_runs: None) -> None:
    engine = cep.Engine(cep.loads(PAYMENTS % ""))
    engine.process(list(numbers(0, 100)))
    options = RunOptions(rules=[], inputs=[])
    (line,) = advice(engine.stats, engine.stats, options, None, None)
    assert line.startswith("rule r: a key held more runs than are tested one by one")
    assert "limit" in line
