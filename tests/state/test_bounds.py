"""What an engine remembers does not grow without bound: caps, and everything ends."""

from __future__ import annotations

import gc
import tracemalloc
from pathlib import Path
from typing import Any

import pytest

import cep
from cep.caps import Sizes

START = 1_700_000_000

EVERY_KIND = """
stream seen { dedup by k for 1m }
table last from A key k ttl 1m
list hosts = ["h1"]
rule pair { by k sequence within 1m { a: A  b: B where n == a.n } }
rule listed { by k sequence within 1m { a: A  b: B where n > a.n } }
rule quiet { by k sequence { a: A  no B within 1m } dedup by k for 1m }
rule before { by k sequence within 1m { no C within 1m  a: A  d: D } }
rule strict_one { by k sequence strict within 1m { a: A  b: B  d: D } }
rule looped { by k sequence within 1m { a: A{2,}  b: B } }
rule slow { by k sequence within 1m { a: A  b: B } on timeout { alert "slow {k}" } }
rule kept { by k sequence { a: A  b: B } keep 1m }
rule both { by k all within 1m { a: A  b: D } }
rule counted { by k aggregate A over sliding 1m { n = count() } having n > 5 }
rule sums { by k aggregate A over tumbling 1m { n = count() } having n > 5 }
rule hops { by k aggregate A over hopping 1m every 10s { n = count() } having n > 5 }
rule visits { by k aggregate A over session gap 1m { n = count() } having n > 5 }
rule asks { on s: seen where last[k].n > 1e9 }
"""


def test_keys_that_appear_once_leave_nothing() -> None:
    """100,000 keys; `python tests/state/soak.py` does it with a million."""
    from soak import soak

    found = soak(100_000)
    assert found.left == 0
    assert found.later <= found.early * 1.3 + 200_000, "memory is flat"


def firsts(engine: cep.Engine) -> int:
    return sum(engine.stats.per_rule[rule.name].keys for rule in engine.compiled.rules)


def events(number: int, keys: int = 10**9, **more: Any) -> list[dict[str, Any]]:
    return [
        {"type": "A", "time": START + i, "k": f"k{i % keys}", "n": i, **more} for i in range(number)
    ]


@pytest.mark.parametrize("state", [False, True])
def test_the_oldest_runs_go_above_the_cap(tmp_path: Path, state: bool) -> None:
    rules = cep.loads("rule pair { by k sequence within 1d { a: A  b: B where n == a.n } }")
    options: dict[str, Any] = {"state": tmp_path / "cep.db"} if state else {}
    engine = cep.Engine(rules, max_runs=2000, **options)
    for at in range(0, 10_000, 500):
        engine.process(events(10_000)[at : at + 500])
        assert firsts(engine) <= 2000 + 1000
    stats = engine.stats
    assert stats.dropped == stats.per_rule["pair"].dropped > 7000
    assert stats.dropped + firsts(engine) == 10_000
    found = engine.process([{"type": "B", "time": START + 10_001, "k": "k9999", "n": 9999}])
    found += engine.process([{"type": "B", "time": START + 10_002, "k": "k1", "n": 1}])
    engine.suspend(found.append)
    assert [match.key for match in found] == [{"k": "k9999"}]


def test_within_one_key_too() -> None:
    rules = cep.loads("rule pair { by k sequence within 1d { a: A  b: B where n == a.n } }")
    engine = cep.Engine(rules, max_runs=100)
    engine.process(events(3000, keys=1))
    assert engine.stats.dropped >= 2900
    b = {"type": "B", "time": START + 4000, "k": "k0"}
    assert engine.process([{**b, "n": 1}]) == []
    assert len(engine.process([{**b, "n": 2999}])) == 1


def test_groups_are_cut_too() -> None:
    rules = cep.loads("rule pair { by k sequence within 1d { a: A  b: B } skip nothing }")
    engine = cep.Engine(rules, max_runs=500)
    engine.process(events(2000, keys=1))
    dropped = engine.stats.dropped
    found = engine.process([{"type": "B", "time": START + 4000, "k": "k0", "n": 1}])
    assert dropped >= 1500
    assert len(found) == 2000 - dropped
    assert found[0].first == (START + dropped) * 1_000_000


def test_windows_go_whole() -> None:
    rules = cep.loads("rule c { by k aggregate A over sliding 1d { n = count() } having n > 1 }")
    engine = cep.Engine(rules, max_runs=1000)
    engine.process(events(5000))
    assert engine.stats.per_rule["c"].keys <= 1000
    assert engine.stats.dropped + engine.stats.per_rule["c"].keys == 5000


def test_bytes_have_a_cap() -> None:
    rules = cep.loads("rule pair { by k sequence within 1d { a: A  b: B where n == a.n } }")
    free, capped = cep.Engine(rules), cep.Engine(rules, max_state_bytes=2_000_000)
    for engine in (free, capped):
        engine.process(events(5000, text="x" * 1000))
    assert free.stats.dropped == 0
    assert 500 < capped.stats.per_rule["pair"].keys < 2500
    assert Sizes().of(capped.program.rules[0].states) < 2_500_000


def test_a_cap_is_a_number() -> None:
    with pytest.raises(ValueError, match="at least 1"):
        cep.Engine(cep.loads("rule r { on A }"), max_runs=0)


def test_bytes_are_measured_as_they_are() -> None:
    rules = cep.loads("rule pair { by k sequence within 1d { a: A  b: B where n == a.n } }")
    gc.collect()
    tracemalloc.start()
    try:
        engine = cep.Engine(rules)
        before = tracemalloc.get_traced_memory()[0]
        lines = (f'{{"type":"A","time":{START + i},"k":"k{i}","n":{i}}}' for i in range(20_000))
        engine.process(line.encode() for line in lines)
        real = tracemalloc.get_traced_memory()[0] - before
    finally:
        tracemalloc.stop()
    assert 0.5 < Sizes().of(engine.program.rules[0].states) / real < 1.5
