"""What is promised not to grow does not grow: nodes made and conditions asked for one event.

W3: many open runs of one key, each of which any event may extend. W5: a long loop. W6: a join. Each
must name, in its plan, the representation that makes this so.
"""

from __future__ import annotations

import random

import pytest
from counting import Event, Work, work

import cep
from cep.explain.plan import print_plan

SECOND = 1_000_000


def letters(count: int, seed: int = 1) -> list[Event]:
    dice = random.Random(seed)
    return [{"type": dice.choice("ABC"), "time": i * 1000, "n": i} for i in range(count)]


def explosion(width: int, last: str = "C") -> str:
    return f"rule w3 {{ sequence any within {width}ms {{ a: A  b: B  c: {last} }} }}"


LONG_LOOP = """rule w5 {
  by user
  sequence within 1d {
    fail: login{5,} where outcome == "failure"
    ok: login where outcome == "success"
  }
}"""

JOIN = "rule w6 { all within 1h { o: order  p: payment where order_id == o.id } }"


def failures(first: int, count: int) -> list[Event]:
    return [
        {"type": "login", "user": "bob", "outcome": "failure", "time": first + i}
        for i in range(count)
    ]


def orders(count: int) -> list[Event]:
    return [{"type": "order", "id": i, "time": i} for i in range(count)]


def assert_same(small: Work, large: Work) -> None:
    assert (large.nodes, large.conditions) == (small.nodes, small.conditions)
    assert large.lines <= 1.3 * small.lines, (small, large)


@pytest.mark.parametrize("last", ["C", "D"])
def test_the_window_may_be_wide(last: str) -> None:
    """With `last` D, of which there is none, runs only pile up."""
    before, measured = letters(4_000)[:3_000], letters(4_000)[3_000:]
    narrow, *wider = [work(explosion(w, last), before, measured) for w in (30, 300, 3_000, 30_000)]
    for wide in wider:
        assert_same(narrow, wide)


@pytest.mark.parametrize("many", [1_000, 5_000, 20_000])
def test_the_loop_may_be_long(many: int) -> None:
    few = work(LONG_LOOP, failures(0, 50), failures(50, 100))
    assert_same(few, work(LONG_LOOP, failures(0, many), failures(many, 100)))


def test_the_end_of_a_loop_does_not_ask_each_failure() -> None:
    ends = [
        work(
            LONG_LOOP,
            failures(0, many),
            [{"type": "login", "user": "bob", "outcome": "success", "time": many}],
        )
        for many in (50, 20_000)
    ]
    few, many = ends  # the match itself is as long as the loop: its lines are not compared
    assert (many.nodes, many.conditions) == (few.nodes, few.conditions)


RISING = "rule r { sequence within 1d { a: x+ where n > prev(n)  z: z } }"
CLOSING = "rule r { sequence within 1d { a: x+ } report on close }"


@pytest.mark.parametrize("text", [RISING, CLOSING])
@pytest.mark.parametrize("many", [1_000, 20_000])
def test_runs_that_take_the_same_events_are_one_group(text: str, many: int) -> None:
    """However many of them there are: they see the same from then on, or close together."""

    def rising(first: int, count: int) -> list[Event]:
        return [{"type": "x", "n": n, "time": n} for n in range(first, first + count)]

    few = work(text, rising(0, 50), rising(50, 100))
    assert_same(few, work(text, rising(0, many), rising(many, 100)))


@pytest.mark.parametrize("many", [1_000, 5_000, 20_000])
def test_many_orders_may_be_open(many: int) -> None:
    def pays(size: int) -> Work:
        payments = [
            {"type": "payment", "order_id": i * (size // 100), "time": size} for i in range(100)
        ]
        return work(JOIN, orders(size), payments)

    assert_same(pays(100), pays(many))


def test_an_order_costs_the_same_beside_many() -> None:
    late = [{"type": "order", "id": -i, "time": 20_000} for i in range(1, 101)]
    assert_same(work(JOIN, orders(100), late), work(JOIN, orders(20_000), late))


@pytest.mark.parametrize(
    ("text", "forms"),
    [
        (explosion(10), ["runs in one group"]),
        (LONG_LOOP, ["runs in one group"]),
        (JOIN, ["runs in groups, found by"]),
        (RISING, ["runs in groups, found by"]),
        (CLOSING, ["runs in one group"]),
        ("rule r { sequence within 1m { a: A  b: B where n > a.n } }", ["runs in a list"]),
        ("rule r { sequence strict within 1m { a: A  b: B where n > a.n } }", ["one run at most"]),
    ],
)
def test_the_plan_names_how_runs_are_kept(text: str, forms: list[str]) -> None:
    plan = print_plan(cep.loads(text).compiled)
    states = [line for line in plan.splitlines() if line.startswith("  s")]
    assert states
    for form in forms:
        assert all(form in line for line in states), plan
