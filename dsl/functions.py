"""The functions of the language: names, signatures and documentation; no behaviour.

The checker reads the signatures, `cep functions` shows the documentation, the engine brings the
behaviour under the same names. Three families: ordinary functions (`FUNCTIONS`), aggregates over
events of a step or of a window (`AGGREGATES`), and what a loop may ask in its own condition
(`LOOP_FUNCTIONS`). `any(xs, x, E)` and `all(xs, x, E)` are forms of the grammar's calls that bind
a variable; they are documented here like the others.
"""

from __future__ import annotations

from dsl.checked import FunctionSignature
from dsl.types import Type

_ANY, _BOOL, _INT, _NUMBER = Type.ANY, Type.BOOL, Type.INT, Type.NUMBER
_TEXT, _TIME, _DURATION, _ARRAY = Type.STRING, Type.TIME, Type.DURATION, Type.ARRAY


def _function(
    group: str,
    name: str,
    parameters: tuple[Type, ...],
    result: Type,
    doc: str,
    example: str,
    *,
    optional: int = 0,
    variadic: bool = False,
) -> FunctionSignature:
    return FunctionSignature(
        name=name,
        parameters=parameters,
        result=result,
        doc=doc,
        optional=optional,
        variadic=variadic,
        example=example,
        group=group,
    )


_TEXT_FUNCTIONS = (
    _function("text", "lower", (_TEXT,), _TEXT, "The text in lower case.", 'lower("AdMin")'),
    _function("text", "upper", (_TEXT,), _TEXT, "The text in upper case.", 'upper("id")'),
    _function(
        "text", "trim", (_TEXT,), _TEXT, "The text without white space at its ends.", 'trim(" a ")'
    ),
    _function(
        "text",
        "len",
        (_ANY,),
        _INT,
        "The number of characters of a text, or of elements of an array or object.",
        'len("abc")',
    ),
    _function(
        "text",
        "substr",
        (_TEXT, _INT, _INT),
        _TEXT,
        "The part of a text that begins at a position (from 0; negative: from the end), "
        "of at most the given length.",
        'substr("abcdef", 2, 3)',
        optional=1,
    ),
    _function(
        "text",
        "split",
        (_TEXT, _TEXT),
        _ARRAY,
        "The pieces of a text between a separator, as an array.",
        'split("a,b,c", ",")',
    ),
    _function(
        "text",
        "starts_with",
        (_TEXT, _TEXT),
        _BOOL,
        "Whether a text starts with another.",
        'starts_with("abc", "ab")',
    ),
    _function(
        "text",
        "ends_with",
        (_TEXT, _TEXT),
        _BOOL,
        "Whether a text ends with another.",
        'ends_with("a.exe", ".exe")',
    ),
    _function(
        "text",
        "replace",
        (_TEXT, _TEXT, _TEXT),
        _TEXT,
        "The text with each occurrence of the second replaced by the third.",
        'replace("a-b", "-", "_")',
    ),
    _function(
        "text",
        "concat",
        (_ANY, _ANY),
        _TEXT,
        "The texts of two or more values, one after the other; null when one of them is null.",
        'concat("user ", "bob", ", port ", 22)',
        variadic=True,
    ),
    _function(
        "text",
        "capture",
        (_TEXT, Type.REGEX, _ANY),
        _TEXT,
        "What a group of a regular expression, by number or name, holds at its first match in "
        "the text; null when it does not match. Without a group: the first.",
        'capture("user=bob", /user=(\\w+)/, 1)',
        optional=1,
    ),
)

_NUMBER_FUNCTIONS = (
    _function(
        "number",
        "abs",
        (_NUMBER,),
        _NUMBER,
        "The number without its sign; of a duration too.",
        "abs(-3)",
    ),
    _function(
        "number",
        "round",
        (_NUMBER, _INT),
        _NUMBER,
        "The nearest whole number, or with so many decimal places.",
        "round(2.345, 1)",
        optional=1,
    ),
    _function(
        "number", "floor", (_NUMBER,), _INT, "The largest whole number not above it.", "floor(2.7)"
    ),
    _function(
        "number", "ceil", (_NUMBER,), _INT, "The smallest whole number not below it.", "ceil(2.1)"
    ),
    _function(
        "number",
        "min",
        (_NUMBER, _NUMBER),
        _NUMBER,
        "The smallest of two or more numbers, times or durations. With one argument: see the "
        "aggregate.",
        "min(3, 1, 2)",
        variadic=True,
    ),
    _function(
        "number",
        "max",
        (_NUMBER, _NUMBER),
        _NUMBER,
        "The largest of two or more numbers, times or durations. With one argument: see the "
        "aggregate.",
        "max(3, 1, 2)",
        variadic=True,
    ),
    _function(
        "number",
        "log",
        (_NUMBER, _NUMBER),
        _NUMBER,
        "The natural logarithm, or that to a base.",
        "log(100, 10)",
        optional=1,
    ),
    _function("number", "sqrt", (_NUMBER,), _NUMBER, "The square root.", "sqrt(9)"),
)

_TIME_FUNCTIONS = (
    _function(
        "time",
        "hour",
        (_TIME, _TEXT),
        _INT,
        "The hour of a time, 0 to 23, in UTC or in a time zone.",
        'hour(time, "Europe/Paris")',
        optional=1,
    ),
    _function(
        "time",
        "weekday",
        (_TIME, _TEXT),
        _INT,
        "The day of the week, 1 (Monday) to 7 (Sunday), in UTC or in a time zone.",
        "weekday(time)",
        optional=1,
    ),
    _function(
        "time",
        "date",
        (_TIME, _TEXT),
        _TEXT,
        'The day as text, "2026-01-31", in UTC or in a time zone.',
        "date(time)",
        optional=1,
    ),
    _function(
        "time",
        "format_time",
        (_TIME, _TEXT, _TEXT),
        _TEXT,
        "A time as text, in UTC or in a time zone. In the pattern %Y %m %d are the day, %H %M %S "
        "the clock, %f microseconds, %j the day of the year, %a %A %b %B English names, %z the "
        "offset.",
        'format_time(time, "%d %b %Y, %H:%M", "Europe/Paris")',
        optional=1,
    ),
    _function(
        "time",
        "seconds",
        (_DURATION,),
        _NUMBER,
        "A duration as a number of seconds.",
        "seconds(1m30s)",
    ),
    _function(
        "time",
        "minutes",
        (_DURATION,),
        _NUMBER,
        "A duration as a number of minutes.",
        "minutes(1m30s)",
    ),
    _function(
        "time", "hours", (_DURATION,), _NUMBER, "A duration as a number of hours.", "hours(90m)"
    ),
    _function(
        "time", "days", (_DURATION,), _NUMBER, "A duration as a number of days.", "days(36h)"
    ),
)

_CONVERSIONS = (
    _function(
        "conversion",
        "int",
        (_ANY,),
        _INT,
        "A whole number from a text or number (its fraction is cut off).",
        'int("42")',
    ),
    _function("conversion", "num", (_ANY,), _NUMBER, "A number from a text.", 'num("1.5")'),
    _function("conversion", "str", (_ANY,), _TEXT, "The text of a value.", "str(42)"),
    _function(
        "conversion",
        "time",
        (_ANY,),
        _TIME,
        "A time from ISO 8601 text, or from a number of seconds, millis, micros or nanos.",
        'time("2026-01-31T12:00:00Z")',
    ),
    _function(
        "conversion",
        "ip",
        (_ANY,),
        _TEXT,
        "An IP address in its one canonical spelling; fails when it is none.",
        'ip("::FFFF:10.0.0.1")',
    ),
)

_NETWORK_FUNCTIONS = (
    _function(
        "network",
        "cidr",
        (_TEXT, _ANY),
        _BOOL,
        "Whether an address lies in one of the networks, given one by one or as a list.",
        'cidr("10.1.2.3", "10.0.0.0/8", "192.168.0.0/16")',
        variadic=True,
    ),
    _function(
        "network",
        "is_private",
        (_TEXT,),
        _BOOL,
        "Whether an address is private, loopback or link-local.",
        'is_private("192.168.0.1")',
    ),
    _function(
        "network",
        "haversine_km",
        (_NUMBER, _NUMBER, _NUMBER, _NUMBER),
        _NUMBER,
        "The distance in kilometres between two places, each latitude and longitude in degrees.",
        "haversine_km(52.5, 13.4, 48.9, 2.4)",
    ),
)

_CHOICES = (
    _function(
        "choice",
        "coalesce",
        (_ANY,),
        _ANY,
        "The first argument that is not null.",
        'coalesce(null, "x")',
        variadic=True,
    ),
    _function(
        "choice",
        "if",
        (_BOOL, _ANY, _ANY),
        _ANY,
        "The second argument when the condition is true, else (also when unknown) the third.",
        'if(1 < 2, "yes", "no")',
    ),
    _function(
        "choice",
        "hash",
        (_ANY,),
        _TEXT,
        "A short text that is the same for the same values, in every run and on every machine.",
        'hash("bob", 7)',
        variadic=True,
    ),
    _function(
        "choice",
        "any",
        (_ARRAY, _ANY, _BOOL),
        _BOOL,
        "Whether the condition holds for an element of the array, which it calls by the name "
        "given second.",
        "any([1, 5], x, x > 3)",
    ),
    _function(
        "choice",
        "all",
        (_ARRAY, _ANY, _BOOL),
        _BOOL,
        "Whether the condition holds for every element of the array, which it calls by the name "
        "given second.",
        "all([1, 5], x, x > 0)",
    ),
)

FUNCTIONS: dict[str, FunctionSignature] = {
    function.name: function
    for function in (
        *_TEXT_FUNCTIONS,
        *_NUMBER_FUNCTIONS,
        *_TIME_FUNCTIONS,
        *_CONVERSIONS,
        *_NETWORK_FUNCTIONS,
        *_CHOICES,
    )
}
"""The ordinary functions by name."""

SAME_AS_ARGUMENT = frozenset({"abs", "round", "min", "max"})
"""Functions that take durations (`min` and `max` times too) as well and give what they take."""

LIST_TAKERS = frozenset({"cidr"})
"""Functions whose arguments may be named lists."""

QUANTIFIERS = frozenset({"any", "all"})
"""The forms that bind a variable."""


def _aggregate(
    name: str, parameters: tuple[Type, ...], result: Type, doc: str, example: str
) -> FunctionSignature:
    return _function("aggregate", name, parameters, result, doc, example)


AGGREGATES: dict[str, FunctionSignature] = {
    function.name: function
    for function in (
        _function(
            "aggregate",
            "count",
            (_ANY,),
            _INT,
            "How many events: `count()` of the window, `count(a)` of step a, `count(distinct E)` "
            "different values that are not null.",
            "count(distinct a.ip)",
            optional=1,
        ),
        _aggregate("sum", (_NUMBER,), _NUMBER, "The sum; 0 of none.", "sum(a.bytes)"),
        _aggregate("avg", (_NUMBER,), _NUMBER, "The mean; null of none.", "avg(a.bytes)"),
        _aggregate("min", (_ANY,), _ANY, "The smallest value; null of none.", "min(a.bytes)"),
        _aggregate("max", (_ANY,), _ANY, "The largest value; null of none.", "max(a.bytes)"),
        _aggregate(
            "stddev",
            (_NUMBER,),
            _NUMBER,
            "The standard deviation of a sample; null of fewer than two.",
            "stddev(a.bytes)",
        ),
        _aggregate("median", (_NUMBER,), _NUMBER, "The middle value.", "median(a.bytes)"),
        _aggregate(
            "percentile",
            (_NUMBER, _NUMBER),
            _NUMBER,
            "The value below which p percent lie, interpolated.",
            "percentile(a.bytes, 95)",
        ),
        _aggregate("first", (_ANY,), _ANY, "The first value that is not null.", "first(a.ip)"),
        _aggregate("last", (_ANY,), _ANY, "The last value that is not null.", "last(a.ip)"),
        _aggregate("list", (_ANY,), _ARRAY, "All values, in order, as an array.", "list(a.ip)"),
        _aggregate(
            "top",
            (_ANY, _INT),
            _ARRAY,
            "The n most frequent values, the most frequent first.",
            "top(a.ip, 3)",
        ),
        _function(
            "aggregate",
            "rate",
            (),
            _NUMBER,
            "Events per second: the count divided by the length of the window.",
            "rate()",
        ),
    )
}
"""What may be asked of the events of a step (`count(a)`, `sum(a.f)`) or of a window."""

WINDOW_ONLY = frozenset({"rate"})
"""Aggregates that need the length of a window."""

LOOP_FUNCTIONS: dict[str, FunctionSignature] = {
    function.name: function
    for function in (
        _function(
            "loop",
            "prev",
            (_ANY,),
            _ANY,
            "In the condition of a loop: the value at the event that the step took last. At the "
            "first event a comparison that contains it is satisfied.",
            "temp > prev(temp)",
        ),
        *(
            _function(
                "loop",
                name,
                () if name == "count" else AGGREGATES[name].parameters,
                AGGREGATES[name].result,
                "In the condition of a loop: over the events that the step has already taken.",
                "count() < 5" if name == "count" else f"temp > {name}(temp)",
            )
            for name in ("first", "last", "count", "sum", "avg", "min", "max")
        ),
    )
}
"""What a loop may ask in its own condition of the events that it has taken."""
