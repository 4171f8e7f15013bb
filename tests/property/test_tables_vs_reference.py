"""Tables of streams and streams that drop repeats mean what the reference matcher says."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import cep
from cep.testing.reference import ReferenceEngine

S = 1_000_000

RULES = {
    "a table": """
        table t from P key k ttl 3s
        rule r { on a: A  alert { x = t[a.k].v } }
        rule s { on A where t[k].v > v }
        rule u { by t[k].v as v  sequence within 9s { a: A  b: A } }
        rule w { by k  sequence { a: A  no P within 3s }  alert { x = t[a.k].v } }
    """,
    "tables that ask each other": """
        stream new from P where t[k].v is null or v > t[k].v
        table t from new key k
        table u from P key v ttl 2s
        rule r { on a: A  alert { x = t[a.k].v  y = u[t[a.k].v].k } }
    """,
    "repeats": """
        stream once from A where v > 0 { dedup by k for 3s }
        stream child from once, P { dedup by v for 2s }
        rule r { on a: once }
        rule s { on c: child where v != 2 }
        rule u { by k  sequence within 5s { a: A where v < 2  b: once } }
        rule w { by k  sequence within 5s { a: once where v > 1  b: child } }
    """,
    "selected fields": """
        table t from P key k
        stream s from A { select { k = k  v = t[k].v  w = v } dedup by v, k for 2s }
        stream both from s, P
        rule r { by k  sequence within 5s { a: s  b: P }  alert { x = a.v  w = a.w } }
        rule u { by k  sequence within 5s { a: both  b: A }  alert { x = a.v } }
        rule w { on s where v == w }
    """,
    "derived events": """
        stream d { dedup by k for 3s }
        table t from d key k ttl 2s
        rule m { by k  sequence within 4s { a: A  b: P }  emit d { v = a.v } }
        rule n { by k  sequence { a: P  no A within 2s }  emit d { v = 0 - a.v } }
        rule r { on a: A  alert { x = t[a.k].v } }
        rule s { on e: d  alert { x = t[e.k].v  y = e.v } }
    """,
}

EVENTS = st.lists(
    st.tuples(
        st.integers(0, 3),
        st.sampled_from("AP"),
        st.sampled_from([1, 2, 1.0, True, "1", None]),
        st.sampled_from([0, 1, 2, 3, None, "text"]),
    ),
    max_size=25,
)


def shown(match: Any) -> tuple[Any, ...]:
    return match.rule, match.kind, match.time, match.key, match.fields


@pytest.fixture(scope="module")
def rulesets() -> dict[str, cep.Ruleset]:
    return {name: cep.loads(text) for name, text in RULES.items()}


@pytest.mark.parametrize("name", RULES)
@settings(max_examples=30, deadline=None)
@given(steps=EVENTS)
def test_engine_and_reference_agree(rulesets, name, steps) -> None:
    rules = rulesets[name]
    engine, reference = cep.Engine(rules), ReferenceEngine(rules.checked)
    found, expected, time = [], [], 0
    for after, kind, key, value in steps:
        time += after * S
        event = {"type": kind, "k": key, "v": value}
        event = {field: value for field, value in event.items() if value is not None}
        found += engine.process_at(event, time)
        expected += reference.process_at(event, time)
    found += engine.advance_to(time + 60 * S)
    expected += reference.advance_to(time + 60 * S)
    assert [shown(match) for match in found] == [shown(match) for match in expected]
