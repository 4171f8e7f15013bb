"""Work that must not grow: lines of Python run for an event, counted, where a claim is made.

The count is exact and the same on every machine; what a single line does in C is not seen.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, Mapping
from itertools import islice
from types import FrameType
from typing import Any

import msgspec

from . import data, questions
from .engines import made


def lines_per_event(
    text: str, timed: list[dict[str, Any]], before: Iterable[Mapping[str, Any]] = ()
) -> float:
    """Lines run for each of the events `timed`, after those `before`."""
    rules = questions.load(text)
    program = rules.program()
    for chunk in made(rules, before):
        program.run(chunk)
    chunks = made(rules, timed)
    count = 0

    def trace(frame: FrameType, event: str, argument: object) -> Any:
        nonlocal count
        count += event == "line"
        return trace

    outer = sys.gettrace()
    sys.settrace(trace)
    try:
        for chunk in chunks:
            program.run(chunk)
    finally:
        sys.settrace(outer)
    return count / len(timed)


def explosion(count: int) -> Iterator[dict[str, Any]]:
    """The first events of W3."""
    for line in islice(data.lines(data.W3), count):
        record = msgspec.json.decode(line)
        yield {**record, "time": record["ts"] * 1000}


def payments(first: int, count: int) -> list[dict[str, Any]]:
    return [
        {"type": "payment", "order_id": f"o{i}", "time": i} for i in range(first, first + count)
    ]


def test_detecting_does_not_feel_how_wide_the_window_is() -> None:
    events = list(explosion(3_000))
    for last in ("C", "D"):
        narrow, wide = (
            lines_per_event(questions.explosion(width, last=last, skip="past last"), events)
            for width in (10, 10_000)
        )
        assert wide <= 1.2 * narrow, last


def test_an_event_that_no_rule_names_costs_the_same_under_many_rules() -> None:
    strangers = [{"type": "X", "user": "u", "amount": 1, "time": i} for i in range(500)]
    one, many = (lines_per_event(questions.many_rules(rules), strangers) for rules in (1, 200))
    assert many <= one + 0.1


def test_a_failure_does_not_feel_how_many_came_before_it() -> None:
    def failures(first: int, count: int) -> list[dict[str, Any]]:
        return [
            {"type": "login", "user": "bob", "ok": False, "time": first + i} for i in range(count)
        ]

    few, many = (
        lines_per_event(questions.W5, failures(size, 100), before=failures(0, size))
        for size in (50, 5_000)
    )
    assert many <= 1.2 * few


def test_a_payment_does_not_feel_how_many_orders_are_open() -> None:
    few, many = (
        lines_per_event(
            questions.W6,
            [{"type": "payment", "order_id": f"none{i}", "time": size} for i in range(200)],
            before=[{"type": "order", "order_id": f"o{i}", "time": i} for i in range(size)],
        )
        for size in (100, 5_000)
    )
    assert many <= 1.2 * few


def test_a_new_key_does_not_feel_how_many_there_are() -> None:
    first = lines_per_event(questions.W7, payments(0, 200))
    later = lines_per_event(questions.W7, payments(5_000, 200), before=payments(0, 5_000))
    assert later <= 1.2 * first
