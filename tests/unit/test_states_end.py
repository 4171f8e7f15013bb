"""A key without runs, windows or timers holds nothing, whatever kind of rule it was."""

from __future__ import annotations

from typing import Any

import pytest

import cep

RULES = {
    "relaxed": "by k  sequence within 10s { a: A  b: B }",
    "first step with a guard": "by k  sequence within 10s { a: A{1,2} where n > count()  b: B }",
    "after silence": "by k  sequence within 10s { no X within 5s  a: A  b: B }",
    "silence after": "by k  sequence { a: A  no B within 10s }",
    "strict without time": "by k  sequence strict { a: A{3} where n > prev(n) }  keep 10s",
    "until": "by k  sequence { a: A{2,} until X  b: B }  keep 10s",
    "step bounds": "by k  sequence { a: A  b: B within 10s  c: A within 5s }",
    "loop that closes": "by k  sequence within 10s { a: A+ }  report on close",
    "any order": "all within 10s { a: A  b: B where k == a.k  c: X }",
    "grouped": "by k  sequence any within 10s { a: A  b: B  c: X }",
    "hashed": "sequence within 10s { a: A  b: B where n == a.n  c: X }",
    "dedup": "by k  on e: A  dedup for 10s",
    "sliding": "by k  aggregate A over sliding 10s { c = count() }  having c > 100",
    "tumbling": "by k  aggregate A over tumbling 10s { c = count() }",
    "session": "by k  aggregate A over session gap 5s { c = count() }",
    "limited": "by k  sequence within 10s { a: A  b: B }  limit 1 runs",
    "timeout": 'by k  sequence within 10s { a: A  b: B  c: X }  on timeout { alert "late" }',
}


def events(number: int) -> list[dict[str, Any]]:
    """Something of everything for many keys, that completes little."""
    kinds = ["A", "A", "B", "A", "X", "B"]
    return [
        {"type": kinds[(key * 7 + n) % 6], "k": key, "n": (key + n) % 3, "time": key / 10 + n / 100}
        for key in range(number)
        for n in range(key % 5 + 1)
    ]


@pytest.mark.parametrize("name", RULES)
def test_nothing_is_held_in_the_end(name: str) -> None:
    engine = cep.Engine(cep.loads(f"rule r {{ {RULES[name]} }}"))
    made = sorted(events(200), key=lambda event: event["time"])
    engine.process(made)
    for rule in engine.program.rules:
        rule.check()
    engine.advance_to(10**9)
    for rule in engine.program.rules:
        rule.check()
        assert rule.states == {}
        assert not any(dedup.windows for dedup in (rule.dedups or {}).values())
