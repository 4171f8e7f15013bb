"""Values as people and programs read them: texts in alerts, fields in match records.

`text_of` writes a value into the text of an alert; `plain` makes it a JSON value for the match
record. Both know the type that the checker found, since a time and a duration are integers of
microseconds at run time. Neither ever fails.
"""

from __future__ import annotations

import math
from typing import Any

import msgspec

from cep.event import LEVELS, TOO_DEEP, unbox
from cep.event_time import EARLIEST, LATEST, format_time

_UNITS = (("d", 86_400_000_000), ("h", 3_600_000_000), ("m", 60_000_000))


def text_of(value: Any, kind: str = "any") -> str:
    """The value as it reads in an alert; `kind` is its static type (`dsl.types.Type` is a str).

    >>> text_of("bob"), text_of(3.0), text_of(None), text_of(True), text_of(["a", 1])
    ('bob', '3', 'null', 'true', '["a",1]')
    >>> text_of(1_500_000, "time"), text_of(150_000_000, "duration")
    ('1970-01-01T00:00:01.500Z', '2m30s')
    """
    value = unbox(value)
    if value.__class__ is str:
        return value
    if value is None:
        return "null"
    if value.__class__ is bool:
        return "true" if value else "false"
    if value.__class__ is int or value.__class__ is float:
        return _number_text(value, kind)
    return _json_text(value)


def duration_text(micros: int) -> str:
    """A duration in days, hours, minutes and seconds; below a second in milliseconds or less.

    >>> [duration_text(n) for n in (0, 150_000_000, 1_500_000, 5_400_000_000, 1_500, -60_000_000)]
    ['0s', '2m30s', '1.5s', '1h30m', '1.5ms', '-1m']
    """
    if micros < 0:
        return "-" + duration_text(-micros)
    if micros < 1_000:
        return f"{micros}us" if micros else "0s"
    if micros < 1_000_000:
        return f"{_decimal(micros, 1_000)}ms"
    pieces = []
    for unit, size in _UNITS:
        amount, micros = divmod(micros, size)
        if amount:
            pieces.append(f"{amount}{unit}")
    if micros:
        pieces.append(f"{_decimal(micros, 1_000_000)}s")
    return "".join(pieces)


def time_text(micros: int) -> str:
    """ISO 8601 with `Z`; outside the years 1 to 9999 the bare microseconds."""
    return format_time(micros) if EARLIEST <= micros <= LATEST else f"{micros}us"


def plain(value: Any, kind: str = "any") -> Any:
    """The value as it stands in a match record, made of JSON's types only.

    A time becomes ISO 8601 text with `Z`. A duration becomes a number of seconds (an int where it
    is whole), because programs compare and add them; people find `2m30s` in the alert's text.
    Numbers that JSON has no word for (infinite, not a number) become null, and what is nested
    deeper than `LEVELS` becomes `…`.

    >>> plain(0, "time"), plain(90_000_000, "duration"), plain(1_500_000, "duration")
    ('1970-01-01T00:00:00Z', 90, 1.5)
    """
    value = unbox(value)
    if value.__class__ is int or value.__class__ is float:
        if value.__class__ is float and not math.isfinite(value):
            return None
        if kind == "time":
            return time_text(round(value))
        if kind == "duration":
            return value // 1_000_000 if value % 1_000_000 == 0 else value / 1_000_000
        return value
    if isinstance(value, list | tuple | dict):
        return _plain_inside(value, LEVELS)
    if value is None or isinstance(value, str | bool):
        return value
    return str(value)


def _plain_inside(value: Any, levels: int) -> Any:
    """An array or object of plain values. One frame a level: a comprehension would take two."""
    if not levels:
        return TOO_DEEP
    items: list[Any] = []
    for item in value.values() if isinstance(value, dict) else value:
        inner = unbox(item)
        nested = isinstance(inner, list | tuple | dict)
        items.append(_plain_inside(inner, levels - 1) if nested else plain(inner))
    return dict(zip(map(str, value), items, strict=True)) if isinstance(value, dict) else items


def _number_text(value: int | float, kind: str) -> str:
    if value.__class__ is float and not math.isfinite(value):
        return str(value)
    if kind == "time":
        return time_text(round(value))
    if kind == "duration":
        return duration_text(round(value))
    if value.__class__ is float and value.is_integer() and abs(value) < 2**53:
        return str(int(value))
    try:
        return str(value)
    except ValueError:  # more digits than Python writes in decimal
        return hex(int(value))


def _decimal(amount: int, unit: int) -> str:
    """`amount / unit` in decimal without zeros at the end, exact."""
    whole, rest = divmod(amount, unit)
    if not rest:
        return str(whole)
    digits = str(rest).rjust(len(str(unit)) - 1, "0").rstrip("0")
    return f"{whole}.{digits}"


def _json_text(value: Any) -> str:
    try:
        return msgspec.json.encode(plain(value)).decode()
    except (TypeError, ValueError, RecursionError):
        return "…"
