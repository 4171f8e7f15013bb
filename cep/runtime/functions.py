"""The behaviour of the operators and functions of the language.

In come values of a rule (never null: whoever calls has seen to that), out comes a value, or an
exception when the function fails: a type that does not fit, a division by zero, a bad cast. The
fast form of a condition lets the exception fly, the careful form counts it and goes on with null.

Values are str, bool, int, float, list and dict; times and durations are int microseconds. Two rules
that Python does not share hold everywhere here: booleans are not numbers, and a value in an `Odd`
box fits nothing.
"""

from __future__ import annotations

import hashlib
import ipaddress
import json
import math
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from typing import Any

from cep.event import Odd, unbox
from cep.event_time import find_zone, parse_time
from cep.runtime.templates import text_of

NUMBERS = frozenset({int, float})
ORDERED = frozenset({int, float, str})
"""Classes whose values have an order."""

SECOND = 1_000_000
MINUTE = 60 * SECOND
HOUR = 60 * MINUTE
DAY = 24 * HOUR

LONGEST_TEXT = 1 << 24
"""Most characters that `replace` may make: a rule cannot be talked into filling the memory."""


class Misfit(TypeError):
    """A value of a type that the operator or function does not take."""


# ---------------------------------------------------------------------------- types


def number(value: Any) -> int | float:
    """The value, when it is a number and no boolean; `Misfit` otherwise."""
    if value.__class__ is int or value.__class__ is float:
        return value
    raise Misfit("not a number")


def text(value: Any) -> str:
    """The value, when it is a text; `Misfit` otherwise."""
    if value.__class__ is str:
        return value
    raise Misfit("not a text")


def whole(value: Any) -> int:
    """The value as an int, when it is a number without a fraction; `Misfit` otherwise."""
    if value.__class__ is int:
        return value
    if value.__class__ is float and value.is_integer():
        return int(value)
    raise Misfit("not a whole number")


def elements(value: Any) -> Sequence[Any]:
    """The value, when it is an array; `Misfit` otherwise."""
    if value.__class__ is list or value.__class__ is tuple:
        return value
    raise Misfit("not an array")


# ---------------------------------------------------------------------------- comparisons


def equal(left: Any, right: Any) -> bool:
    """`left == right`: 1 equals 1.0, true does not equal 1, different types are not equal.

    >>> equal(1, 1.0), equal(True, 1), equal("1", 1), equal([1], [True])
    (True, False, False, False)
    """
    kind = left.__class__
    if kind is Odd or right.__class__ is Odd:
        raise Misfit("a value of an unexpected type")
    if kind is not right.__class__:
        return kind in NUMBERS and right.__class__ in NUMBERS and bool(left == right)
    if kind is list:
        return len(left) == len(right) and all(map(equal, left, right))
    if kind is dict:
        return left.keys() == right.keys() and all(equal(left[k], right[k]) for k in left)
    return bool(left == right)


def never_equal(left: Any, right: Any) -> bool:
    """`left == right` for a time and a number, say, whose types cannot be told apart any more."""
    return False


def _ordered(left: Any, right: Any) -> None:
    """Nothing, when the values have an order; `Misfit` otherwise."""
    if left.__class__ in NUMBERS and right.__class__ in NUMBERS:
        return
    if left.__class__ is str and right.__class__ is str:
        return
    raise Misfit("values without an order")


def less(left: Any, right: Any) -> bool:
    """`left < right` of two numbers or two texts."""
    _ordered(left, right)
    return bool(left < right)


def at_most(left: Any, right: Any) -> bool:
    """`left <= right` of two numbers or two texts."""
    _ordered(left, right)
    return bool(left <= right)


def greater(left: Any, right: Any) -> bool:
    """`left > right` of two numbers or two texts."""
    _ordered(left, right)
    return bool(left > right)


def at_least(left: Any, right: Any) -> bool:
    """`left >= right` of two numbers or two texts."""
    _ordered(left, right)
    return bool(left >= right)


def no_order(left: Any, right: Any) -> bool:
    """An order comparison of things that have none: always a failure."""
    raise Misfit("values without an order")


def member(value: Any, array: Any) -> bool:
    """`value in array`; nulls in the array equal nothing.

    >>> member(1, ["a", 1.0]), member(True, [1]), member("x", [None])
    (True, False, False)
    """
    return any(item is not None and equal(value, item) for item in elements(array))


def constant_set(items: Iterable[Any]) -> Callable[[Any], bool]:
    """`value in items` with constant items; one look-up, however many there are.

    >>> test = constant_set([1, "a", True])
    >>> test(1.0), test(True), test(False), test(["a"])
    (True, True, False, False)
    """
    known = frozenset((item.__class__ is bool, item) for item in items)

    def test(value: Any) -> bool:
        if value.__class__ is list or value.__class__ is dict:
            return False
        return (value.__class__ is bool, value) in known

    return test


def contains(whole_value: Any, part: Any) -> bool:
    """`whole contains part`: part of a text, or element of an array; of a list of parts: any.

    >>> contains("login failed", "fail"), contains(["a", "b"], "b"), contains("ab", ["x", "b"])
    (True, True, True)
    """
    parts = part if part.__class__ in (list, tuple) else (part,)
    if whole_value.__class__ is str:
        return any_text(parts, lambda wanted: wanted in whole_value)
    return any(member(wanted, whole_value) for wanted in parts if wanted is not None)


def any_text(parts: Iterable[Any], test: Callable[[str], bool]) -> bool:
    """Whether the test holds for one of the texts. Nulls among them fit nothing; a part of
    another type is a misfit, unless another part decides."""
    misfits = False
    for part in parts:
        if part.__class__ is str:
            if test(part):
                return True
        elif part is not None:
            misfits = True
    if misfits:
        raise Misfit("not a text")
    return False


def contains_any(parts: Sequence[str]) -> Callable[[Any], bool]:
    """A test for `contains` with constant texts."""
    wanted = tuple(parts)

    def test(value: Any) -> bool:
        if value.__class__ is str:
            return any(part in value for part in wanted)
        return any(member(part, value) for part in wanted)

    return test


def any_of(tests: Sequence[Callable[[Any], bool]]) -> Callable[[Any], bool]:
    """A test that holds when one of the tests does."""
    if len(tests) == 1:
        return tests[0]
    every = tuple(tests)
    return lambda value: any(test(value) for test in every)


# ---------------------------------------------------------------------------- logic


def answer(value: Any) -> bool | None:
    """A value where a condition stands: only true and false are known."""
    if value.__class__ is Odd:
        raise Misfit("a value of an unexpected type")
    return value if value.__class__ is bool else None


def some(answers: Sequence[bool | None]) -> bool | None:
    """Three-valued: whether any is true.

    >>> some([False, None]), some([None, True]), some([])
    (None, True, False)
    """
    return True if True in answers else None if None in answers else False


def every(answers: Sequence[bool | None]) -> bool | None:
    """Three-valued: whether all are true."""
    return False if False in answers else None if None in answers else True


# ---------------------------------------------------------------------------- arithmetic


def add(left: Any, right: Any) -> Any:
    """`left + right` of two numbers."""
    return number(left) + number(right)


def subtract(left: Any, right: Any) -> Any:
    """`left - right` of two numbers."""
    return number(left) - number(right)


def multiply(left: Any, right: Any) -> Any:
    """`left * right` of two numbers."""
    return number(left) * number(right)


def divide(left: Any, right: Any) -> Any:
    """`left / right`, true division; fails for a right of 0."""
    return number(left) / number(right)


def modulo(left: Any, right: Any) -> Any:
    """`left % right`, with the sign of the right; fails for a right of 0."""
    return number(left) % number(right)


def multiply_micros(left: Any, right: Any) -> int:
    """A duration times a number, in whole microseconds."""
    return round(number(left) * number(right))


def divide_micros(left: Any, right: Any) -> int:
    """A duration divided by a number, in whole microseconds."""
    return round(number(left) / number(right))


def negative(value: Any) -> Any:
    """`-value`"""
    return -number(value)


# ---------------------------------------------------------------------------- parts of values


def get_field(value: Any, name: str) -> Any:
    """`value.name` of an object; null when it has no such field or is no object."""
    if value.__class__ is Odd:
        raise Misfit("a value of an unexpected type")
    return value.get(name) if isinstance(value, Mapping) else None


def get_index(value: Any, index: Any) -> Any:
    """`value[index]`: an element of an array (from 0; negative: from the end) or a field of an
    object; null when there is none.

    >>> get_index(["a", "b"], 1), get_index(["a"], 7), get_index({"x": 1}, "x")
    ('b', None, 1)
    """
    if isinstance(value, Mapping):
        return value.get(text(index))
    array, position = elements(value), whole(index)
    return array[position] if -len(array) <= position < len(array) else None


# ---------------------------------------------------------------------------- texts


def lower(value: Any) -> str:
    """`lower("AdMin")` is "admin"."""
    return text(value).lower()


def upper(value: Any) -> str:
    """`upper("id")` is "ID"."""
    return text(value).upper()


def trim(value: Any) -> str:
    """`trim(" a ")` is "a"."""
    return text(value).strip()


def length(value: Any) -> int:
    """Characters of a text, elements of an array or object."""
    if value.__class__ in (str, list, tuple, dict):
        return len(value)
    raise Misfit("nothing that has a length")


def substr(value: Any, start: Any, count: Any = None) -> str:
    """A part of a text, from a position (from 0; negative: from the end), at most so long; fails
    for a negative length.

    >>> substr("abcdef", 2, 3), substr("abc", -2), substr("abc", 9)
    ('cde', 'bc', '')
    """
    letters, begin = text(value), whole(start)
    if begin < 0:
        begin = max(begin + len(letters), 0)
    if count is None:
        return letters[begin:]
    if whole(count) < 0:
        raise ValueError("a negative length")
    return letters[begin : begin + whole(count)]


def split(value: Any, separator: Any) -> list[str]:
    """The pieces of a text between a separator; fails for an empty separator."""
    return text(value).split(text(separator))


def starts_with(value: Any, start: Any) -> bool:
    """Whether a text starts with another."""
    return text(value).startswith(text(start))


def ends_with(value: Any, end: Any) -> bool:
    """Whether a text ends with another."""
    return text(value).endswith(text(end))


def replace(value: Any, old: Any, new: Any) -> str:
    """Each occurrence of `old` replaced by `new`; fails for an empty `old`, and when the result
    would be absurdly long."""
    letters, gone, put = text(value), text(old), text(new)
    if not gone:
        raise ValueError("nothing to replace")
    growth = letters.count(gone) * (len(put) - len(gone))
    if len(letters) + growth > max(LONGEST_TEXT, len(letters)):
        raise ValueError("the result is too long")
    return letters.replace(gone, put)


# ---------------------------------------------------------------------------- numbers


def absolute(value: Any) -> Any:
    """The number without its sign."""
    return abs(number(value))


def rounded(value: Any, places: Any = None) -> Any:
    """The nearest whole number (of two equally near the even one), or with decimal places."""
    if places is None:
        return round(number(value))
    return round(number(value), whole(places))


def floor(value: Any) -> int:
    """The largest whole number not above."""
    return math.floor(number(value))


def ceil(value: Any) -> int:
    """The smallest whole number not below."""
    return math.ceil(number(value))


def smallest(*values: Any) -> Any:
    """The smallest of numbers, times or durations."""
    return min(map(number, values))


def largest(*values: Any) -> Any:
    """The largest of numbers, times or durations."""
    return max(map(number, values))


def log(value: Any, base: Any = None) -> float:
    """The natural logarithm, or that to a base; fails for numbers that are not above 0."""
    if base is None:
        return math.log(number(value))
    if number(base) == 10:
        return math.log10(number(value))
    if base == 2:
        return math.log2(number(value))
    return math.log(number(value), base)


def sqrt(value: Any) -> float:
    """The square root; fails for negative numbers."""
    return math.sqrt(number(value))


# ---------------------------------------------------------------------------- times

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def moment(micros: Any, zone: Any = None) -> datetime:
    """A time as a datetime, in UTC or in a time zone; fails outside the years 1 to 9999."""
    instant = _EPOCH + timedelta(microseconds=whole(micros))
    return instant if zone is None else instant.astimezone(find_zone(text(zone)))


def hour(micros: Any, zone: Any = None) -> int:
    """The hour of a time, 0 to 23, in UTC or in a time zone."""
    return moment(micros, zone).hour


def weekday(micros: Any, zone: Any = None) -> int:
    """The day of the week, 1 (Monday) to 7 (Sunday), in UTC or in a time zone."""
    return moment(micros, zone).isoweekday()


def date(micros: Any, zone: Any = None) -> str:
    """The day as text, "2026-01-31", in UTC or in a time zone."""
    return moment(micros, zone).date().isoformat()


_WEEKDAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
_MONTHS = (
    *("January", "February", "March", "April", "May", "June"),
    *("July", "August", "September", "October", "November", "December"),
)
_DIRECTIVES: Mapping[str, Callable[[datetime], str]] = {
    "Y": lambda t: f"{t.year:04}",
    "m": lambda t: f"{t.month:02}",
    "d": lambda t: f"{t.day:02}",
    "H": lambda t: f"{t.hour:02}",
    "M": lambda t: f"{t.minute:02}",
    "S": lambda t: f"{t.second:02}",
    "f": lambda t: f"{t.microsecond:06}",
    "j": lambda t: f"{t.timetuple().tm_yday:03}",
    "a": lambda t: _WEEKDAYS[t.weekday()][:3],
    "A": lambda t: _WEEKDAYS[t.weekday()],
    "b": lambda t: _MONTHS[t.month - 1][:3],
    "B": lambda t: _MONTHS[t.month - 1],
    "z": lambda t: t.strftime("%z"),
    "%": lambda t: "%",
}
"""What stands for what in `format_time`. The names are English wherever this runs."""


def format_time(micros: Any, pattern: Any, zone: Any = None) -> str:
    """A time as text; fails for a pattern with a sign that means nothing."""
    at = moment(micros, zone)
    return re.sub("%(.?)", lambda sign: _DIRECTIVES[sign[1]](at), text(pattern), flags=re.DOTALL)


def seconds(micros: Any) -> float:
    """A duration as a number of seconds."""
    return number(micros) / SECOND


def minutes(micros: Any) -> float:
    """A duration as a number of minutes."""
    return number(micros) / MINUTE


def hours(micros: Any) -> float:
    """A duration as a number of hours."""
    return number(micros) / HOUR


def days(micros: Any) -> float:
    """A duration as a number of days."""
    return number(micros) / DAY


# ---------------------------------------------------------------------------- conversions

_DECIMAL = re.compile(r"\s*[+-]?(\d+(\.\d*)?|\.\d+)([eE][+-]?\d+)?\s*", re.ASCII)
_INTEGER = re.compile(r"\s*[+-]?\d+\s*", re.ASCII)


def to_number(value: Any) -> Any:
    """A number out of a text in decimal notation; a number stays as it is.

    >>> to_number("1.5"), to_number(" 42 "), to_number(7)
    (1.5, 42, 7)
    """
    if value.__class__ is not str:
        return number(value)
    if _INTEGER.fullmatch(value):
        return int(value)
    result = float(value) if _DECIMAL.fullmatch(value) else math.inf
    if not math.isfinite(result):
        raise ValueError("not a number")
    return result


def to_int(value: Any) -> int:
    """A whole number out of a text or a number; its fraction is cut off."""
    return int(to_number(value))


def to_text(value: Any) -> str:
    """The text of a value, as in an alert."""
    if value.__class__ is Odd:
        raise Misfit("a value of an unexpected type")
    return text_of(value)


def concat(as_text: Sequence[Callable[[Any], str]], *values: Any) -> str:
    """The texts of values, each made by its function, one after the other."""
    return "".join([make(value) for make, value in zip(as_text, values, strict=True)])


def time_to_text(micros: Any) -> str:
    """The text of a time."""
    return text_of(whole(micros), "time")


def duration_to_text(micros: Any) -> str:
    """The text of a duration."""
    return text_of(whole(micros), "duration")


def to_time(value: Any) -> int:
    """A time out of ISO 8601 text, or of seconds, millis, micros or nanos since the epoch."""
    micros = None if value.__class__ is bool else parse_time(value)
    if micros is None:
        raise ValueError("not a time")
    return micros


def same(value: Any) -> Any:
    """`time(t)` of a time."""
    return value


def hash_of(*values: Any) -> str:
    """16 hex digits that depend only on the values (null is one), in every run and everywhere.

    >>> hash_of("bob", 7) == hash_of("bob", 7.0), hash_of("bob", 7) == hash_of("bob", "7")
    (True, False)
    """
    canonical = json.dumps(
        _canonical(values), ensure_ascii=False, sort_keys=True, separators=(",", ":")
    )
    return hashlib.sha256(canonical.encode()).hexdigest()[:16]


def _canonical(value: Any) -> Any:
    """The value with equal numbers made identical."""
    if value.__class__ is Odd:
        raise Misfit("a value of an unexpected type")
    if value.__class__ is float and value.is_integer():
        return int(value)
    if isinstance(value, list | tuple):
        return [_canonical(item) for item in value]
    if isinstance(value, dict):
        return {name: _canonical(item) for name, item in value.items()}
    return value


# ---------------------------------------------------------------------------- network and place

_EARTH_KM = 6371.0088
"""The mean radius of the earth."""

Address = ipaddress.IPv4Address | ipaddress.IPv6Address
Network = ipaddress.IPv4Network | ipaddress.IPv6Network


@lru_cache(maxsize=1 << 16)
def address(value: str) -> Address:
    """An IP address; an IPv4 address written as IPv6 is the IPv4 address."""
    parsed = ipaddress.ip_address(value.strip())
    if isinstance(parsed, ipaddress.IPv6Address) and parsed.ipv4_mapped is not None:
        return parsed.ipv4_mapped
    return parsed


@lru_cache(maxsize=4096)
def network(value: str) -> Network:
    """A network, `10.0.0.0/8`; bits beyond its length are ignored."""
    return ipaddress.ip_network(value, strict=False)


def to_ip(value: Any) -> str:
    """An address in its one canonical spelling."""
    return str(address(text(value)))


def lacks_field(name: str, value: Any) -> bool:
    """Whether an object has no such field; what is no object has none."""
    return not isinstance(value, Mapping) or name not in value


def lacks_index(value: Any, index: Any) -> bool:
    """Whether an array or object has no such element; false where that cannot be asked."""
    if value is None or index is None:
        return False
    if isinstance(value, Mapping):
        return index not in value
    return not -len(elements(value)) <= whole(index) < len(value)


def cidr(value: Any, *networks: Any) -> bool:
    """Whether an address lies in one of the networks, given one by one or as lists.

    >>> cidr("10.1.2.3", "10.0.0.0/8"), cidr("8.8.8.8", ["10.0.0.0/8", "192.168.0.0/16"])
    (True, False)
    """
    where = address(text(value))
    return any(where in network(text(item)) for item in _flat(networks))


def in_networks(networks: Iterable[str]) -> Callable[[Any], bool]:
    """`cidr` with constant networks; each address is looked up once while it is remembered."""
    wanted = tuple(network(item) for item in networks)

    @lru_cache(maxsize=1 << 14)
    def inside(value: str) -> bool:
        where = address(value)
        return any(where in item for item in wanted)

    return lambda value: inside(text(value))


def _flat(values: Iterable[Any]) -> Iterable[Any]:
    for value in values:
        if value.__class__ in (list, tuple):
            yield from (item for item in value if item is not None)
        else:
            yield value


@lru_cache(maxsize=1 << 14)
def _is_private(value: str) -> bool:
    where = address(value)
    return where.is_private or where.is_loopback or where.is_link_local


def is_private(value: Any) -> bool:
    """Whether an address is private, loopback or link-local."""
    return _is_private(text(value))


def haversine_km(lat: Any, lon: Any, other_lat: Any, other_lon: Any) -> float:
    """The distance in kilometres between two places given in degrees, on a sphere.

    >>> round(haversine_km(52.52, 13.405, 48.8566, 2.3522))
    877
    """
    phi, psi = math.radians(number(lat)), math.radians(number(other_lat))
    across = math.radians(number(other_lon) - number(lon))
    a = math.sin((psi - phi) / 2) ** 2 + math.cos(phi) * math.cos(psi) * math.sin(across / 2) ** 2
    return 2 * _EARTH_KM * math.asin(math.sqrt(min(1.0, a)))


# ---------------------------------------------------------------------------- a host's functions

_CHECKS: dict[str, Callable[[Any], Any]] = {
    "bool": lambda value: _boolean(value),
    "int": whole,
    "number": number,
    "string": text,
    "array": elements,
    "time": moment,
    "duration": lambda value: timedelta(microseconds=whole(value)),
}
"""How a value of the language is handed to a host's function, by the declared type."""


def _boolean(value: Any) -> bool:
    if value.__class__ is bool:
        return value
    raise Misfit("not a boolean")


def host_function(
    call: Callable[..., Any], parameters: Sequence[str], result: str, variadic: bool = False
) -> Callable[..., Any]:
    """A host's function as the language calls it.

    Types are checked on the way in and out (`TypeError` when one does not fit); it is given a
    `datetime` in UTC for a time, a `timedelta` for a duration, and may return either. None is null.
    """

    def run(*arguments: Any) -> Any:
        kinds = list(parameters)
        if variadic and kinds:
            kinds += kinds[-1:] * (len(arguments) - len(kinds))
        given = [
            _CHECKS.get(kind, unbox)(argument)
            for kind, argument in zip(kinds, arguments, strict=False)
        ]
        return _from_host(call(*given), result)

    return run


def _from_host(value: Any, kind: str) -> Any:
    if value is None:
        return None
    if isinstance(value, datetime):
        aware = value if value.tzinfo is not None else value.replace(tzinfo=UTC)
        value = (aware - _EPOCH) // timedelta(microseconds=1)
    elif isinstance(value, timedelta):
        value = value // timedelta(microseconds=1)
    elif isinstance(value, tuple | set | frozenset):
        value = list(value)
    if kind in ("time", "duration"):
        return whole(value)
    check = _CHECKS.get(kind)
    return value if check is None else check(value)
