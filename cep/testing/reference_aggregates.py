"""Aggregates over a finished list of values, as section 6 defines them: for tests only."""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction

from cep.testing.reference_functions import Failure, kind_of


def aggregate(
    function: str, values: Sequence[object], *, distinct: bool = False, extra: Sequence[object] = ()
) -> object:
    """The aggregate of `values`, nulls left out; `extra` holds further arguments (`p`, `n`).

    Raises `Failure` for values that the function cannot take.
    """
    known = [value for value in values if value is not None]
    if distinct:
        known = _different(known)
    if function == "count":
        return len(known)
    if function == "list":
        return known
    if function == "top":
        return _top(known, extra[0])
    if function == "sum":
        return _total(_numbers(known))
    if not known:
        return None
    if function in ("first", "last"):
        return known[0 if function == "first" else -1]
    if function in ("min", "max"):
        return _extreme(function, known)
    return _statistic(function, sorted(_numbers(known)), extra)


def _statistic(function: str, numbers: list[int | float], extra: Sequence[object]) -> object:
    if function == "avg":
        return _mean(numbers)
    if function == "stddev":
        return _deviation(numbers)
    if function == "median":
        return _percentile(numbers, 50)
    if function == "percentile":
        return _percentile(numbers, _numbers(extra)[0])
    raise Failure


def _numbers(values: Sequence[object]) -> list[int | float]:
    if any(kind_of(value) != "number" for value in values):
        raise Failure
    return list(values)  # type: ignore[arg-type]


def _total(numbers: Sequence[int | float]) -> int | float:
    if all(isinstance(number, int) for number in numbers):
        return sum(numbers)
    return math.fsum(numbers)


def _mean(numbers: Sequence[int | float]) -> float:
    try:
        return _total(numbers) / len(numbers)
    except OverflowError:  # the sum is larger than any float; the mean need not be
        return float(sum(map(Fraction, numbers)) / len(numbers))


def _extreme(function: str, known: Sequence[object]) -> object:
    if len({kind_of(value) for value in known}) > 1 or kind_of(known[0]) not in (
        "number",
        "string",
    ):
        raise Failure
    return (min if function == "min" else max)(known)  # type: ignore[type-var]


def _deviation(numbers: Sequence[int | float]) -> float | None:
    if len(numbers) < 2:
        return None
    mean = math.fsum(numbers) / len(numbers)
    return math.sqrt(math.fsum((n - mean) ** 2 for n in numbers) / (len(numbers) - 1))


def _percentile(numbers: Sequence[int | float], percent: int | float) -> int | float:
    """`numbers` are sorted; between two of them it is interpolated."""
    if not 0 <= percent <= 100:
        raise Failure
    place = (len(numbers) - 1) * percent / 100
    low = math.floor(place)
    if low == place:
        return numbers[low]
    return numbers[low] + (numbers[low + 1] - numbers[low]) * (place - low)


def _different(values: Sequence[object]) -> list[object]:
    seen: list[object] = []
    for value in values:
        if not any(kind_of(value) == kind_of(other) and value == other for other in seen):
            seen.append(value)
    return seen


def _top(values: Sequence[object], count: object) -> list[object]:
    """The most frequent first; of equally frequent ones the one seen first."""
    if isinstance(count, bool) or not isinstance(count, int) or count < 0:
        raise Failure
    different = _different(values)
    often = {
        i: sum(1 for v in values if kind_of(v) == kind_of(value) and v == value)
        for i, value in enumerate(different)
    }
    order = sorted(often, key=lambda i: (-often[i], i))
    return [different[i] for i in order[:count]]
