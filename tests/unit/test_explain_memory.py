"""What `cep check` says of the memory of a key."""

from __future__ import annotations

import pytest

import cep
from cep.explain.memory import memory

RULE = "rule r {{ by u {} }}"


@pytest.mark.parametrize(
    ("body", "told"),
    [
        ("on A where n > 5", None),
        ("sequence within 1h { a: A  b: B }", "for each event in its runs"),
        ("sequence { a: A  b: B } keep 1d limit 3 runs", "so at most some"),
        ("sequence within 1h { a: A  b: B{2,5} c: C } start first", "so at most some"),
        ("sequence within 1h { a: A+  c: C } limit 3 runs", "for each event in its runs"),
        ("all within 1h { a: A  b: B } limit 3 runs", "so at most some"),
        ("aggregate A over sliding 1h { n = count() }", "for each event in its window"),
        ("aggregate A over sliding 100 events { n = sum(x) }", "so at most some"),
        ("aggregate A over tumbling 1h { n = count() }", "however many events there are"),
    ],
)
def test_words(body: str, told: str | None) -> None:
    ruleset = cep.loads(RULE.format(body))
    lines = memory(ruleset.compiled.rules[0], ruleset.compiled.shape)
    assert len(lines) == (told is not None)
    assert told is None or told in lines[0]


def test_more_runs_take_more() -> None:
    found = [
        memory(ruleset.compiled.rules[0], ruleset.compiled.shape)[0].rpartition(" some ")[2]
        for number in (2, 2000)
        for ruleset in [
            cep.loads(RULE.format(f"sequence within 1h {{ a: A  b: B }} limit {number} runs"))
        ]
    ]
    assert found[0].endswith("kB")
    assert found[1].endswith("MB")
