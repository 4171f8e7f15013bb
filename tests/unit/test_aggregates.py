"""Aggregates over lists, and accumulators that must agree with them whatever comes and goes."""

from __future__ import annotations

import json
import math
from collections import deque
from fractions import Fraction
from time import perf_counter
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cep.event import Odd
from cep.runtime import aggregates
from cep.runtime.aggregates import ACCUMULATORS, Accumulator, ExactSum
from cep.runtime.functions import Misfit


@pytest.mark.parametrize(
    ("name", "values", "wanted"),
    [
        ("count", [1, None, "x"], 2),
        ("count", [], 0),
        ("count_distinct", ["a", "a", None, "b"], 2),
        ("count_distinct", [[1], [1], {"k": 1}], 2),
        ("sum", [], 0),
        ("sum", [1, 2], 3),
        ("sum", [2**70, 1, -(2**70)], 1),
        ("sum", [0.5, 1], 1.5),
        ("avg", [], None),
        ("avg", [1, 2, None], 1.5),
        ("min", [], None),
        ("min", [3, 1.5, 2], 1.5),
        ("max", ["a", "b"], "b"),
        ("first", [None, 1, 2], 1),
        ("last", [1, 2, None], 2),
        ("last", [None], None),
        ("list", [1, None, 1], [1, 1]),
        ("stddev", [5], None),
        ("stddev", [1, 3], math.sqrt(2)),
        ("stddev", [10**9 + 1, 10**9 + 3], math.sqrt(2)),
        ("median", [], None),
        ("median", [3, 1], 2.0),
        ("median", [3, 1, 2], 2),
    ],
)
def test_over_a_list(name: str, values: list[Any], wanted: Any) -> None:
    assert getattr(aggregates, name)(values) == wanted
    assert type(getattr(aggregates, name)(values)) is type(wanted)


def test_percentile_interpolates() -> None:
    values = [10, 20, 30, 40, 50]
    assert [aggregates.percentile(values, p) for p in (0, 25, 90, 100)] == [10, 20, 46.0, 50]


@pytest.mark.parametrize("p", [-1, 101, "50", True])
def test_a_percentile_is_between_0_and_100(p: Any) -> None:
    with pytest.raises(Misfit):
        aggregates.percentile([1], p)


def test_top_takes_the_earlier_of_equally_frequent_values() -> None:
    assert aggregates.top(["z", "a", "z", "a", "b"], 2) == ["z", "a"]
    assert aggregates.top([1, 1.0, True], 1) == [1]
    assert aggregates.top([1], 0) == []


def test_top_costs_by_the_number_of_different_values_not_of_events() -> None:
    window = aggregates.factory("top", extra=(2,))()
    started = perf_counter()
    for number in range(20_000):
        window.add(number % 7)
        window.result()
    assert perf_counter() - started < 10
    assert window.result() == [0, 1]
    window.remove(0)
    assert window.result() == [1, 2]
    again = aggregates.factory("top", extra=(2,))()
    again.load(window.dump())
    assert again.result() == [1, 2]
    assert again.dump() == window.dump()


@pytest.mark.parametrize("name", ["sum", "avg", "stddev", "median"])
@pytest.mark.parametrize("value", ["1", True, math.inf, math.nan, [1]])
def test_only_finite_numbers_are_added(name: str, value: Any) -> None:
    with pytest.raises(Misfit):
        getattr(aggregates, name)([1, value])


def test_numbers_and_texts_have_no_smallest() -> None:
    with pytest.raises(Misfit):
        aggregates.min([1, "a"])


def test_boxed_values_are_taken_for_what_they_are() -> None:
    assert aggregates.count([Odd("x"), 1]) == 2
    assert aggregates.sum([Odd(2), 1]) == 3


def test_a_sum_beyond_all_floats_is_infinite() -> None:
    assert aggregates.sum([1.7e308, 1.7e308]) == math.inf


def test_a_mean_is_there_where_the_sum_is_larger_than_any_float() -> None:
    assert aggregates.avg([1e308, 1e308]) == 1e308
    assert aggregates.avg([-1e308, -1.7e308, -1.5e308]) == -1.4e308
    window = ACCUMULATORS["avg"]()
    for value in (1e308, 1e308, 1.5e308):
        window.add(value)
    window.remove(1e308)
    assert window.result() == 1.25e308


def test_a_percentile_is_there_where_the_distance_is_larger_than_any_float() -> None:
    assert aggregates.median([-1e308, 1.5e308]) == pytest.approx(2.5e307)


finite_floats = st.floats(allow_nan=False, allow_infinity=False)
numbers = st.one_of(st.integers(-(10**20), 10**20), finite_floats)


@given(st.lists(numbers, min_size=1), st.data())
def test_exact_sums_forget_what_was_removed(values: list[Any], data: st.DataObject) -> None:
    exact = ExactSum(squaring=True)
    for value in values:
        exact.add(value)
    gone = data.draw(st.integers(0, len(values) - 1))
    for value in values[:gone]:
        exact.remove(value)
    left = values[gone:]
    total = math.fsum([0.0]) if not left else sum(map(Fraction, left))
    if any(isinstance(value, float) for value in left):
        assert exact.sum() == aggregates._ratio(total.numerator, total.denominator)
    else:
        assert exact.sum() == total
    fresh = ExactSum(squaring=True)
    for value in left:
        fresh.add(value)
    assert fresh.mean() == exact.mean()
    assert fresh.deviation() == exact.deviation()


def accumulator(name: str) -> Accumulator:
    extra = {"percentile": [90], "top": [2], "rate": [5_000_000]}.get(name, [])
    return ACCUMULATORS[name](*extra)  # type: ignore[call-arg]


def over_list(name: str, values: list[Any]) -> Any:
    if name == "rate":
        return len(values) / 5
    extra = {"percentile": [90], "top": [2]}.get(name, [])
    return getattr(aggregates, name)(values, *extra)


scalars = st.one_of(st.integers(-3, 3), st.sampled_from([0.1, 0.5, 2.0, -1.25]))


@pytest.mark.parametrize("name", sorted(ACCUMULATORS))
@settings(max_examples=60, deadline=None)
@given(steps=st.lists(st.one_of(scalars, st.just("out"), st.just("reload")), max_size=40))
def test_accumulators_agree_with_lists(name: str, steps: list[Any]) -> None:
    kept: deque[Any] = deque()
    now = accumulator(name)
    for step in steps:
        if step == "out":
            if kept:
                now.remove(kept.popleft())
        elif step == "reload":
            dumped = json.loads(json.dumps(now.dump()))
            now = accumulator(name)
            now.load(dumped)
        else:
            kept.append(step)
            now.add(step)
        assert now.result() == over_list(name, list(kept))


def test_a_minimum_over_numbers_and_texts_waits_until_one_kind_is_left() -> None:
    now = accumulator("min")
    for value in (5, "a", 7):
        now.add(value)
    assert now.result() is None
    now.remove(5)
    now.remove("a")
    assert now.result() == 7


@pytest.mark.parametrize("name", ["sum", "avg", "stddev", "median", "percentile", "min", "max"])
@pytest.mark.parametrize("value", [True, [1], math.nan, math.inf])
def test_a_misfit_changes_nothing(name: str, value: Any) -> None:
    now = accumulator(name)
    now.add(1)
    with pytest.raises(Misfit):
        now.add(value)
    assert now.result() == over_list(name, [1])
