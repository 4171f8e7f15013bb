"""Aggregates: over a finished list of values, and kept up to date while values come and go.

The functions (`sum`, `avg`, `percentile`, …) take a list of values in the order of their events;
`ACCUMULATORS` holds, under the same names, classes with the same meaning for windows, where values
are added at the new end and removed at the old end, in order. Nulls are skipped. The sum of none is
0, the others of none are null (None). A value that does not fit raises `Misfit`.

**Sums do not depend on how they were reached.** Integers are added exactly. Floats are added
exactly too, as integers over a power of two, and rounded once, when the result is asked for. So a
sliding window that has added and removed a million floats shows the very same number as one that
was loaded from a checkpoint or computed anew. `avg` and `stddev` are made of the same exact sums.
An accumulator's `dump` is made of what JSON can hold; `load` takes it back.
"""

from __future__ import annotations

import builtins
import json
import math
from bisect import bisect_left, insort
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from heapq import nsmallest
from itertools import chain
from typing import Any, ClassVar

from sortedcontainers import SortedList

from cep.event import unbox
from cep.runtime.functions import Misfit, number, whole

_List = builtins.list  # this module has a `list` of its own, as it has a `sum`


def present(values: Iterable[Any]) -> _List[Any]:
    """The values that are not null, out of their boxes."""
    return [value for value in map(unbox, values) if value is not None]


def identity(value: Any) -> Any:
    """What tells a value from others: 1 and 1.0 are the same, `true` and `"1"` are others."""
    kind = value.__class__
    if kind is str:
        return value
    if kind is bool:
        return (value,)
    if kind is _List or kind is dict or kind is tuple:
        return (_canonical(value),)
    return value


def _canonical(value: Any) -> str:
    """An array or object as text, the same for equal ones; `Misfit` for one nested too deep."""
    try:
        return json.dumps(value, sort_keys=True, default=str)
    except RecursionError:
        raise Misfit("nested too deep") from None


class ExactSum:
    """A sum of ints and floats, and of their squares where asked for, without rounding.

    The sum is `total / 2**scale`, the sum of squares `squares / 4**scale`. `scale` grows to what
    the finest float so far needs. Removing what was added leaves no trace but the scale.

    >>> exact = ExactSum()
    >>> for value in (1e16, 1.0, -1e16): exact.add(value)
    >>> exact.sum()
    1.0
    """

    __slots__ = ("fine", "floats", "ints", "scale", "squares", "squaring", "total")

    def __init__(self, squaring: bool = False) -> None:
        self.ints = 0
        self.floats = 0
        self.total = 0
        self.scale = 0
        self.fine = 1.0
        """`2.0 ** scale`, for generated code: a float times this is its number of units. Not a
        number where there is no such float."""
        self.squares = 0
        self.squaring = squaring

    @property
    def count(self) -> int:
        """How many numbers there are."""
        return self.ints + self.floats

    def add(self, value: Any) -> None:
        """Add a finite number; `Misfit` for anything else. O(1) for numbers of like size."""
        if value.__class__ is float:
            units = self._units(value)
            self.floats += 1
        elif value.__class__ is int:
            units = value << self.scale
            self.ints += 1
        else:
            raise Misfit("not a number")
        self.total += units
        if self.squaring:
            self.squares += units * units

    def remove(self, value: Any) -> None:
        """Take away a number that was added."""
        if value.__class__ is float:
            units = self._units(value)
            self.floats -= 1
        else:
            units = value << self.scale
            self.ints -= 1
        self.total -= units
        if self.squaring:
            self.squares -= units * units

    def _units(self, value: float) -> int:
        """The value as a multiple of 2**-scale, after the scale is made fine enough."""
        try:
            scaled = math.ldexp(value, self.scale)  # exact, as long as it is a float
            units = int(scaled)
        except (OverflowError, ValueError):
            finite(value)
        else:
            if units == scaled:
                return units
        numerator, denominator = value.as_integer_ratio()
        finer = denominator.bit_length() - 1 - self.scale
        if finer > 0:
            self._refine(finer)
            return numerator
        return numerator << -finer

    def _refine(self, finer: int) -> None:
        """Makes the scale finer by so many powers of two."""
        self.scale += finer
        self.fine = math.ldexp(1.0, self.scale) if self.scale < _FINEST else math.nan
        self.total <<= finer
        self.squares <<= 2 * finer

    def merge(self, other: ExactSum, sign: int = 1) -> None:
        """Add what another has added, or (`sign` -1) take it away. O(1)."""
        if other.scale > self.scale:
            self._refine(other.scale - self.scale)
        finer = self.scale - other.scale
        self.ints += sign * other.ints
        self.floats += sign * other.floats
        self.total += sign * (other.total << finer)
        self.squares += sign * (other.squares << 2 * finer)

    def sum(self) -> int | float:
        """An int when only ints were added, else the float nearest to the sum."""
        if not self.floats:
            return self.total >> self.scale
        return _ratio(self.total, 1 << self.scale)

    def mean(self) -> float | None:
        """The sum, rounded once, by the count; None of none. Where the sum is larger than any
        float, it is not rounded before it is divided."""
        count = self.count
        if not count:
            return None
        sum = self.sum()
        if sum.__class__ is float and not math.isfinite(sum):
            return _ratio(self.total, count << self.scale)
        return _ratio(sum, count)

    def deviation(self) -> float | None:
        """The standard deviation of a sample; None of fewer than two."""
        n = self.count
        if n < 2:
            return None
        spread = n * self.squares - self.total * self.total
        return math.sqrt(_ratio(spread, (n * (n - 1)) << (2 * self.scale)))

    def dump(self) -> _List[Any]:
        """Big integers as hexadecimal text: JSON readers take none beyond 64 bits."""
        return [self.count, self.floats, hex(self.total), self.scale, hex(self.squares)]

    def load(self, dumped: Sequence[Any]) -> None:
        """What `dump` gave."""
        count, self.floats, total, scale, squares = dumped
        self.ints = count - self.floats
        self._refine(scale - self.scale)
        self.total, self.squares = int(total, 16), int(squares, 16)


_FINEST = 1024
"""The first power of two that no float can be."""


def _ratio(numerator: int | float, denominator: int) -> float:
    """The float nearest to a fraction; infinite when there is none so large."""
    try:
        return numerator / denominator
    except OverflowError:
        return math.inf if numerator > 0 else -math.inf


def finite(value: Any) -> int | float:
    """The value, when it is a number and finite; `Misfit` otherwise."""
    checked = number(value)
    if checked.__class__ is float and not math.isfinite(checked):
        raise Misfit("not a finite number")
    return checked


# ---------------------------------------------------------------------------- over finished lists


def _exact(values: Iterable[Any], squaring: bool = False) -> ExactSum:
    exact = ExactSum(squaring)
    for value in present(values):
        exact.add(value)
    return exact


def count(values: Sequence[Any]) -> int:
    """How many are not null."""
    return len(present(values))


def count_distinct(values: Sequence[Any]) -> int:
    """How many different ones.

    >>> count_distinct([1, 1.0, True, "1", None])
    3
    """
    return len({identity(value) for value in present(values)})


def sum(values: Sequence[Any]) -> int | float:
    """The sum; 0 of none.

    >>> sum([0.1] * 10), sum([1, None, 2]), sum([])
    (1.0, 3, 0)
    """
    return _exact(values).sum()


def avg(values: Sequence[Any]) -> float | None:
    """The mean."""
    return _exact(values).mean()


def stddev(values: Sequence[Any]) -> float | None:
    """The standard deviation of a sample; null of fewer than two.

    >>> stddev([2, 4, 4, 4, 5, 5, 7, 9])
    2.138089935299395
    """
    return _exact(values, squaring=True).deviation()


def min(values: Sequence[Any]) -> Any:
    """The smallest of numbers, or of texts."""
    found = _of_one_order(values)
    return builtins.min(found) if found else None


def max(values: Sequence[Any]) -> Any:
    """The largest of numbers, or of texts."""
    found = _of_one_order(values)
    return builtins.max(found) if found else None


def _of_one_order(values: Sequence[Any]) -> _List[Any]:
    found = present(values)
    texts = builtins.sum(value.__class__ is str for value in found)
    if texts != len(found):
        if texts:
            raise Misfit("numbers and texts have no order")
        return [finite(value) for value in found]
    return found


def first(values: Sequence[Any]) -> Any:
    """The first one."""
    return next(iter(present(values)), None)


def last(values: Sequence[Any]) -> Any:
    """The last one."""
    return next(iter(present(reversed(values))), None)


def nth(values: Sequence[Any], index: int) -> Any:
    """The one at a place, nulls counted."""
    return unbox(values[index]) if index < len(values) else None


def list(values: Sequence[Any]) -> _List[Any]:
    """All of them."""
    return present(values)


def median(values: Sequence[Any]) -> Any:
    """The middle one, or the mean of the two in the middle."""
    return percentile(values, 50)


def percentile(values: Sequence[Any], p: Any) -> Any:
    """The value below which `p` percent (0 to 100) lie, interpolated between neighbours.

    >>> percentile([1, 2, 3, 4], 50), percentile([10, 20], 90), percentile([7], 3)
    (2.5, 19.0, 7)
    """
    return _interpolated(sorted(finite(value) for value in present(values)), percent(p))


def percent(p: Any) -> int | float:
    """A number from 0 to 100; `Misfit` otherwise."""
    if not 0 <= number(p) <= 100:
        raise Misfit("a percentile is between 0 and 100")
    return number(p)


def _interpolated(ordered: Sequence[Any], p: int | float) -> Any:
    if not ordered:
        return None
    place = p * (len(ordered) - 1) / 100
    below = math.floor(place)
    if below == place:
        return ordered[below]
    low, high = ordered[below], ordered[below + 1]
    span = high - low
    if span == math.inf:  # each side by itself, for their difference is larger than any float
        return low * (1 - (place - below)) + high * (place - below)
    return low + span * (place - below)


def top(values: Sequence[Any], n: Any) -> _List[Any]:
    """The n most frequent, most frequent first; of equally frequent ones the earlier.

    >>> top(["b", "a", "c", "a", "c"], 2)
    ['a', 'c']
    """
    counts: dict[Any, _List[Any]] = {}
    for value in present(values):
        counts.setdefault(identity(value), [0, value])[0] += 1
    if whole(n) < 0:
        raise ValueError("a negative number of values")
    ranked = sorted(counts.values(), key=lambda entry: -entry[0])
    return [value for _, value in ranked[: whole(n)]]


# ---------------------------------------------------------------------------- accumulators


class Accumulator:
    """An aggregate of the values that are in a window now.

    Values are not null and out of their boxes. They are removed in the order in which they were
    added. `join` and `leave` do the same with all the values of another accumulator at once, those
    of a part of the window.
    """

    __slots__ = ()

    def add(self, value: Any) -> None:
        """Take in a value at the new end; `Misfit`, and nothing done, for one that does not fit."""
        raise NotImplementedError

    def remove(self, value: Any) -> None:
        """Forget the value at the old end."""
        raise NotImplementedError

    def join(self, newest: Any) -> None:
        """Take in the values that another of the same kind holds, at the new end."""
        raise NotImplementedError

    def leave(self, oldest: Any) -> None:
        """Forget the values at the old end, which are those that another of the same kind holds."""
        raise NotImplementedError

    def result(self) -> Any:
        """The aggregate now."""
        raise NotImplementedError

    def dump(self) -> Any:
        """What JSON can hold of it."""
        raise NotImplementedError

    def load(self, dumped: Any) -> None:
        """Become what `dump` was called on."""
        raise NotImplementedError


class Count(Accumulator):
    """`count()`: of values that are not null. All operations O(1)."""

    __slots__ = ("n",)

    def __init__(self) -> None:
        self.n = 0

    def add(self, value: Any) -> None:
        self.n += 1

    def remove(self, value: Any) -> None:
        self.n -= 1

    def join(self, newest: Count) -> None:
        self.n += newest.n

    def leave(self, oldest: Count) -> None:
        self.n -= oldest.n

    def result(self) -> int:
        return self.n

    def dump(self) -> int:
        return self.n

    def load(self, dumped: int) -> None:
        self.n = dumped


class Rate(Count):
    """`rate()`: events per second in a window of a length in microseconds."""

    __slots__ = ("length",)

    def __init__(self, length: int | None) -> None:
        super().__init__()
        if length is None:
            raise Misfit("a window without a length")
        self.length = length

    def result(self) -> Any:
        return self.n / (self.length / 1_000_000)


class Sum(ExactSum, Accumulator):
    """`sum(x)`: exact. O(1)."""

    __slots__ = ()

    def join(self, newest: Sum) -> None:
        self.merge(newest)

    def leave(self, oldest: Sum) -> None:
        self.merge(oldest, -1)

    def result(self) -> Any:
        return self.sum()


class Avg(Sum):
    """`avg(x)`: the exact sum, rounded once, by the count."""

    __slots__ = ()

    def result(self) -> Any:
        return self.mean()


class StdDev(Sum):
    """`stddev(x)`: from exact sums of the values and their squares."""

    __slots__ = ()

    def __init__(self) -> None:
        super().__init__(squaring=True)

    def result(self) -> Any:
        return self.deviation()


class Distinct(Accumulator):
    """`count(distinct x)`: how often each value is there."""

    __slots__ = ("counts",)

    def __init__(self) -> None:
        self.counts: dict[Any, int] = {}

    def add(self, value: Any) -> None:
        key = identity(value)
        self.counts[key] = self.counts.get(key, 0) + 1

    def remove(self, value: Any) -> None:
        self._lessen(identity(value), 1)

    def join(self, newest: Distinct) -> None:
        for key, n in newest.counts.items():
            self.counts[key] = self.counts.get(key, 0) + n

    def leave(self, oldest: Distinct) -> None:
        for key, n in oldest.counts.items():
            self._lessen(key, n)

    def _lessen(self, key: Any, n: int) -> None:
        left = self.counts[key] - n
        if left:
            self.counts[key] = left
        else:
            del self.counts[key]

    def result(self) -> int:
        return len(self.counts)

    def dump(self) -> Any:
        return [[[*key] if key.__class__ is tuple else key, n] for key, n in self.counts.items()]

    def load(self, dumped: Any) -> None:
        self.counts = {
            tuple(key) if key.__class__ is builtins.list else key: n for key, n in dumped
        }


class _Extreme(Accumulator):
    """`min` and `max`: the values that may yet become the extreme, in order; amortised O(1).

    Numbers and texts are kept apart. While both are there, there is no extreme.
    """

    __slots__ = ("n_numbers", "n_texts", "numbers", "texts")
    largest: ClassVar[bool]

    def __init__(self) -> None:
        self.numbers: deque[Any] = deque()
        self.texts: deque[Any] = deque()
        self.n_numbers = self.n_texts = 0

    def add(self, value: Any) -> None:
        if value.__class__ is str:
            line = self.texts
            self.n_texts += 1
        else:
            finite(value)
            line = self.numbers
            self.n_numbers += 1
        self._push(line, value)

    def _push(self, line: deque[Any], value: Any) -> None:
        if self.largest:
            while line and line[-1] < value:
                line.pop()
        else:
            while line and line[-1] > value:
                line.pop()
        line.append(value)

    def join(self, newest: _Extreme) -> None:
        for line, more in ((self.numbers, newest.numbers), (self.texts, newest.texts)):
            for value in more:
                self._push(line, value)
        self.n_numbers += newest.n_numbers
        self.n_texts += newest.n_texts

    def leave(self, oldest: _Extreme) -> None:
        for line, gone in ((self.numbers, oldest.numbers), (self.texts, oldest.texts)):
            for value in gone:
                if not line or line[0] != value:
                    break
                line.popleft()
        self.n_numbers -= oldest.n_numbers
        self.n_texts -= oldest.n_texts

    def remove(self, value: Any) -> None:
        if value.__class__ is str:
            line = self.texts
            self.n_texts -= 1
        else:
            line = self.numbers
            self.n_numbers -= 1
        if line[0] == value:
            line.popleft()

    def result(self) -> Any:
        if self.n_numbers and self.n_texts:
            return None
        line = self.numbers or self.texts
        return line[0] if line else None

    def dump(self) -> Any:
        return [self.n_numbers, [*self.numbers], self.n_texts, [*self.texts]]

    def load(self, dumped: Any) -> None:
        self.n_numbers, numbers, self.n_texts, texts = dumped
        self.numbers, self.texts = deque(numbers), deque(texts)


class Min(_Extreme):
    """`min(x)`"""

    __slots__ = ()
    largest = False


class Max(_Extreme):
    """`max(x)`"""

    __slots__ = ()
    largest = True


class Values(Accumulator):
    """`list(x)`: all values, in order; also the base of what needs them all."""

    __slots__ = ("values",)

    def __init__(self) -> None:
        self.values: deque[Any] = deque()

    def add(self, value: Any) -> None:
        self.values.append(value)

    def remove(self, value: Any) -> None:
        self.values.popleft()

    def join(self, newest: Values) -> None:
        self.values += newest.values

    def leave(self, oldest: Values) -> None:
        for _ in oldest.values:
            self.values.popleft()

    def result(self) -> Any:
        return [*self.values]

    def dump(self) -> Any:
        return [*self.values]

    def load(self, dumped: Any) -> None:
        self.values = deque(dumped)


class First(Values):
    """`first(x)`"""

    __slots__ = ()

    def result(self) -> Any:
        return self.values[0] if self.values else None


class Last(Accumulator):
    """`last(x)`"""

    __slots__ = ("n", "value")

    def __init__(self) -> None:
        self.n = 0
        self.value: Any = None

    def add(self, value: Any) -> None:
        self.n += 1
        self.value = value

    def remove(self, value: Any) -> None:
        self.n -= 1

    def join(self, newest: Last) -> None:
        if newest.n:
            self.n += newest.n
            self.value = newest.value

    def leave(self, oldest: Last) -> None:
        self.n -= oldest.n

    def result(self) -> Any:
        return self.value if self.n else None

    def dump(self) -> Any:
        return [self.n, self.value]

    def load(self, dumped: Any) -> None:
        self.n, self.value = dumped


class Percentile(Accumulator):
    """`percentile(x, p)`: a sorted list; O(log n). While it is short it is a plain one, where
    making room for a value costs less than finding its way in anything better."""

    __slots__ = ("ordered", "p")

    def __init__(self, p: Any = 50) -> None:
        self.p = percent(p)
        self.ordered: _List[Any] | SortedList = []

    def add(self, value: Any) -> None:
        finite(value)
        ordered = self.ordered
        if ordered.__class__ is not _List:
            ordered.add(value)  # type: ignore[union-attr]
        elif len(ordered) < _SHORT:
            insort(ordered, value)
        else:
            self.ordered = SortedList([*ordered, value])

    def remove(self, value: Any) -> None:
        ordered = self.ordered
        if ordered.__class__ is _List:
            del ordered[bisect_left(ordered, value)]
        else:
            ordered.remove(value)

    def join(self, newest: Percentile) -> None:
        for value in newest.ordered:
            self.add(value)

    def leave(self, oldest: Percentile) -> None:
        for value in oldest.ordered:
            self.remove(value)

    def result(self) -> Any:
        return _interpolated(self.ordered, self.p)

    def dump(self) -> Any:
        return [*self.ordered]

    def load(self, dumped: Any) -> None:
        self.ordered = [*dumped] if len(dumped) <= _SHORT else SortedList(dumped)


_SHORT = 1000
"""Values up to which a sorted list is a plain one."""


class Top(Accumulator):
    """`top(x, n)`: for each different value when its events came; O(different values) when it is
    asked for."""

    __slots__ = ("added", "events", "n")

    def __init__(self, n: Any) -> None:
        self.n = whole(n)
        if self.n < 0:
            raise Misfit("a negative number of values")
        self.added = 0
        self.events: dict[Any, deque[tuple[int, Any]]] = {}

    def add(self, value: Any) -> None:
        self.events.setdefault(identity(value), deque()).append((self.added, value))
        self.added += 1

    def remove(self, value: Any) -> None:
        self._lessen(identity(value), 1)

    def join(self, newest: Top) -> None:
        for value in newest.dump():
            self.add(value)

    def leave(self, oldest: Top) -> None:
        for same, gone in oldest.events.items():
            self._lessen(same, len(gone))

    def _lessen(self, same: Any, n: int) -> None:
        events = self.events[same]
        for _ in range(n):
            events.popleft()
        if not events:
            del self.events[same]

    def result(self) -> Any:
        best = nsmallest(self.n, self.events.values(), key=lambda one: (-len(one), one[0][0]))
        return [events[0][1] for events in best]

    def dump(self) -> Any:
        """All values in order."""
        return [value for _, value in sorted(chain(*self.events.values()), key=_place)]

    def load(self, dumped: Any) -> None:
        self.added = 0
        self.events = {}
        for value in dumped:
            self.add(value)


def _place(event: tuple[int, Any]) -> int:
    return event[0]


class Nothing(Count):
    """What an aggregate with an impossible constant amounts to: null, whatever comes."""

    __slots__ = ()

    def result(self) -> Any:
        return None


ACCUMULATORS: dict[str, type[Accumulator]] = {
    "count": Count,
    "count_distinct": Distinct,
    "sum": Sum,
    "avg": Avg,
    "stddev": StdDev,
    "min": Min,
    "max": Max,
    "first": First,
    "last": Last,
    "list": Values,
    "median": Percentile,
    "percentile": Percentile,
    "top": Top,
    "rate": Rate,
}
"""The accumulator of each aggregate; `percentile`, `top` and `rate` take their constant."""


def factory(
    function: str, distinct: bool = False, extra: Sequence[Any] = (), length: int | None = None
) -> Callable[[], Accumulator]:
    """A function that makes new accumulators of an aggregate as a rule writes it.

    `extra` are the constants after the argument, `length` that of the window in microseconds (None
    where it has none: `rate()` is null then).

    >>> factory("count", distinct=True)().result()
    0
    """
    kind = ACCUMULATORS["count_distinct" if distinct else function]
    constants = (length,) if function == "rate" else tuple(extra)
    make: Callable[[], Accumulator] = partial(kind, *constants)
    try:
        make()
    except Misfit:
        return Nothing
    return make
