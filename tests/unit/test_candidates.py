"""Candidates that `having` refuses: tried in order, and none that nobody asks for."""

from __future__ import annotations

from time import perf_counter

import pytest

import cep


def _log(number: int) -> list[dict[str, object]]:
    return [{"type": "a", "time": 1 + second, "n": second} for second in range(number)]


def test_very_many_refused_candidates_cost_no_more_than_those_that_are_tried() -> None:
    rules = cep.loads("""
        rule r {
          sequence any within 1h { a: a  b: a  c: a  d: a  z: z }
          having a.n < 0
          alert "never"
        }
    """)
    engine = cep.Engine(rules)
    started = perf_counter()
    found = engine.process([*_log(200), {"type": "z", "time": 300}])
    assert perf_counter() - started < 20  # there are 64,684,950 of them
    assert found == []
    assert engine.stats.per_rule["r"].untried == 1


PREFERRED = {
    15: ["[0,1] [2,3,4,5]"],
    14: ["[0,1] [3,4,5]"],
    12: ["[0,1] [4,5]"],
    9: [],
}


@pytest.mark.parametrize(("limit", "wanted"), PREFERRED.items())
def test_candidates_come_in_the_order_of_preference(limit: int, wanted: list[str]) -> None:
    rules = cep.loads(
        """
        param most = 0
        rule r {
          sequence any within 1h { a: a{1,2}  b: a+  z: z }
          having sum(a.n) + sum(b.n) <= most and count(b) > 1
          alert "{list(a.n)} {list(b.n)}"
        }
        """,
        params={"most": limit},
    )
    found = cep.Engine(rules).process([*_log(6), {"type": "z", "time": 300}])
    assert [match.message for match in found] == wanted


def test_after_a_match_the_next_start_is_tried() -> None:
    rules = cep.loads("""
        rule r {
          sequence within 1h { a: a  b: b  c: c }
          having (a.n + b.n) % 2 == 1
          skip to next
          alert "{a.n} {b.n}"
        }
    """)
    events = [{"type": t, "time": 1 + i, "n": i} for i, t in enumerate("aaabc")]
    found = cep.Engine(rules).process(events)
    assert [match.message for match in found] == ["0 3", "2 3"]
