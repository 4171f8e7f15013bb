"""Event time: any form a log may hold goes in, integer microseconds since the epoch, UTC, come out.

Text is ISO 8601 / RFC 3339; that of web servers (`05/Mar/2026:10:00:00 +0000`), that of mails (RFC
2822), and quoted numbers of 9, 10, 13, 16 or 19 digits, which can be nothing but epochs, are read
too. Numbers are seconds, millis, micros or nanos by their magnitude, and what cannot be read, or
lies outside the years 1 to 9999, is None: the caller rejects the event. Fractions finer than a
microsecond are cut off, except in floats, which are rounded to the nearest microsecond, because a
float of seconds is not exact to begin with.

Magnitudes: numbers below 1e11 are seconds (up to the year 5138), below 1e14 millis (from 1973),
below 1e17 micros, all others nanos. Rules that need other limits say `time f as millis`.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from datetime import UTC, date, datetime, timedelta, tzinfo
from datetime import timezone as fixed_zone
from decimal import Decimal
from functools import lru_cache
from typing import Literal, cast
from zoneinfo import ZoneInfo

Unit = Literal["seconds", "millis", "micros", "nanos", "iso"]

EARLIEST = -62_135_596_800_000_000
"""The first microsecond of the year 1."""

LATEST = 253_402_300_799_999_999
"""The last microsecond of the year 9999."""

SECONDS_BELOW = 10**11
MILLIS_BELOW = 10**14
MICROS_BELOW = 10**17

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_from_iso = datetime.fromisoformat
_FLOAT_EXACT = 2.0**32
_MICROS_PER = {"seconds": 1_000_000, "millis": 1_000, "micros": 1}

_LOOSE = re.compile(
    r"(?P<day>\d{4}-?\d\d-?\d\d)(?:[Tt ](?P<clock>\d\d(?::?\d\d)?(?::?\d\d)?)"
    r"(?P<fraction>[.,]\d+)?)? ?(?P<zone>[Zz]|UTC|GMT|[+-]\d\d:?(?:\d\d)?)?",
    re.ASCII,
)
_MONTHS = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"]
_WEB = re.compile(
    rf"(?P<day>\d\d)/(?P<month>{'|'.join(_MONTHS)})/(?P<year>\d{{4}}):(?P<clock>\d\d:\d\d:\d\d)"
    r"(?: (?P<zone>[+-]\d{4}))?",
    re.ASCII,
)
_MAIL = re.compile(
    rf"(?:(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun), )?(?P<day>\d\d?) (?P<month>{'|'.join(_MONTHS)}) "
    r"(?P<year>\d{4}) (?P<clock>\d\d:\d\d(?::\d\d)?) (?P<zone>[+-]\d{4}|GMT|UTC|UT|Z)",
    re.ASCII,
)
_EPOCH_TEXT = re.compile(r"\d{9,10}(?:\.\d{1,30})?|\d{13}|\d{16}|\d{19}", re.ASCII)
_NUMBER = re.compile(r"-?\d{1,30}(?:\.\d{1,30})?", re.ASCII)
_OFFSET = re.compile(r"([+-])(\d\d):?(\d\d)", re.ASCII)


def parse_time(
    value: object, unit: Unit | None = None, timezone: str | tzinfo | None = None
) -> int | None:
    """The moment that `value` names, in microseconds since the epoch, UTC; None if unreadable.

    `unit` fixes the unit of numbers (text that holds a number is then read too); with `"iso"`
    only text counts. `timezone` is the zone of texts that name none (default UTC); an hour that
    occurs twice there means its first occurrence. Raises `ValueError` for a zone nobody knows,
    never for a bad `value`.

    >>> parse_time("1970-01-01T00:00:01.5Z")
    1500000
    >>> parse_time(1588205199.82437)
    1588205199824370
    >>> parse_time("1970-01-01 01:00", timezone="Europe/Paris")
    0
    >>> parse_time("01/Jan/1970:00:00:01 +0000"), parse_time("Thu, 1 Jan 1970 00:00:01 GMT")
    (1000000, 1000000)
    >>> parse_time("yesterday") is None
    True
    """
    kind = type(value)
    if kind is int:
        return _in_range(_from_int(value, unit))  # type: ignore[arg-type]
    if kind is float:
        return _in_range(_from_float(value, unit))  # type: ignore[arg-type]
    zone = find_zone(timezone) if isinstance(timezone, str) else timezone
    if isinstance(value, str):
        return _in_range(_from_text(value, unit, zone or UTC))
    if isinstance(value, Decimal):
        return _in_range(_from_decimal(value, unit))
    if isinstance(value, datetime):
        return _in_range(_from_datetime(value, zone or UTC))
    if isinstance(value, date):
        midnight = datetime(value.year, value.month, value.day)
        return _in_range(_from_datetime(midnight, zone or UTC))
    return None


def parse_times(
    values: Sequence[object], unit: Unit | None = None, timezone: str | tzinfo | None = None
) -> list[int | None]:
    """`parse_time` of each value; much faster where all are integers of the same magnitude, and
    twice as fast for texts in UTC.

    >>> parse_times([1_600_000_000_000, 1_600_000_000_001])
    [1600000000000000, 1600000000001000]
    """
    if values and set(map(type, values)) == {int}:
        whole = cast("Sequence[int]", values)
        scale = common_scale(min(whole), max(whole), unit)
        if scale is not None:
            return [value * scale for value in whole]
    zone = find_zone(timezone) if isinstance(timezone, str) else timezone
    if unit is not None and unit != "iso":
        return [parse_time(value, unit, zone) for value in values]
    found: list[int | None] = []
    for value in values:
        if value.__class__ is str:
            try:
                moment = _from_iso(value)
            except ValueError:
                moment = None
            if moment is not None and moment.tzinfo is UTC:  # as most logs write them
                span = moment - _EPOCH
                micros = (span.days * 86_400 + span.seconds) * 1_000_000 + span.microseconds
                found.append(micros)
                continue
        found.append(parse_time(value, unit, zone))
    return found


def format_time(micros: int) -> str:
    """ISO 8601 with `Z`; a fraction of three digits, or six, only where there is one.

    >>> format_time(1_500_000), format_time(1), format_time(0)
    ('1970-01-01T00:00:01.500Z', '1970-01-01T00:00:00.000001Z', '1970-01-01T00:00:00Z')
    """
    minute, within = divmod(micros, 60_000_000)
    second, fraction = divmod(within, 1_000_000)
    if not fraction:
        return f"{_begin_of_minute(minute)}{second:02}Z"
    if fraction % 1000:
        return f"{_begin_of_minute(minute)}{second:02}.{fraction:06}Z"
    return f"{_begin_of_minute(minute)}{second:02}.{fraction // 1000:03}Z"


@lru_cache(maxsize=1024)
def _begin_of_minute(minute: int) -> str:
    """A minute, counted from the epoch, as far as its seconds; what is told is of few of them."""
    moment = _EPOCH + timedelta(minutes=minute)
    return moment.replace(tzinfo=None).isoformat(timespec="minutes") + ":"


@lru_cache(maxsize=256)
def find_zone(name: str) -> tzinfo:
    """The time zone called `name` (`Europe/Paris`, `UTC`, `+02:00`); `ValueError` if unknown.

    >>> find_zone("+02:00").utcoffset(None)
    datetime.timedelta(seconds=7200)
    """
    if name in {"UTC", "Z", "GMT"}:
        return UTC
    if offset := _OFFSET.fullmatch(name):
        sign, hours, minutes = offset.groups()
        span = timedelta(hours=int(hours), minutes=int(minutes))
        return fixed_zone(-span if sign == "-" else span)
    try:
        return ZoneInfo(name)
    except (KeyError, ValueError, OSError) as error:
        raise ValueError(f"there is no time zone called `{name}`") from error


def _in_range(micros: int | None) -> int | None:
    return micros if micros is not None and EARLIEST <= micros <= LATEST else None


def _unit_of(size: float | Decimal) -> Unit:
    if size < SECONDS_BELOW:
        return "seconds"
    if size < MILLIS_BELOW:
        return "millis"
    return "micros" if size < MICROS_BELOW else "nanos"


def _from_int(value: int, unit: Unit | None) -> int | None:
    if unit is None:
        unit = _unit_of(abs(value))
    if unit == "nanos":
        return value // 1000
    return None if unit == "iso" else value * _MICROS_PER[unit]


def _from_float(value: float, unit: Unit | None) -> int | None:
    if not math.isfinite(value):
        return None
    if abs(value) >= _FLOAT_EXACT:  # beyond this the product below may be off by a microsecond
        return _from_decimal(Decimal(repr(value)), unit)
    if unit is None or unit == "seconds":
        return round(value * 1e6)
    if unit == "nanos":
        return round(value / 1000)
    return None if unit == "iso" else round(value * _MICROS_PER[unit])


def _from_decimal(value: Decimal, unit: Unit | None) -> int | None:
    if not value.is_finite() or value.adjusted() > 40:
        return None
    if unit is None:
        unit = _unit_of(abs(value))
    if unit == "nanos":
        return round(value / 1000)
    return None if unit == "iso" else round(value * _MICROS_PER[unit])


def _from_text(text: str, unit: Unit | None, zone: tzinfo) -> int | None:
    if unit is not None and unit != "iso":
        text = text.strip()
        return _from_decimal(Decimal(text), unit) if _NUMBER.fullmatch(text) else None
    try:
        return _from_datetime(datetime.fromisoformat(text), zone)
    except ValueError:
        loose = _from_loose_text(text.strip(), zone)
        return _from_other_text(text.strip(), zone) if loose is None and unit is None else loose


def _from_loose_text(text: str, zone: tzinfo) -> int | None:
    """What the standard library refuses: leap seconds, `UTC`, a space before the offset."""
    match = _LOOSE.fullmatch(text)
    if match is None:
        return None
    clock = match["clock"] or "00"
    if leap := len(clock) > 5 and clock.endswith("60"):
        clock = clock[:-2] + "59"
    written = "Z" if match["zone"] in {"UTC", "GMT"} else (match["zone"] or "").upper()
    fraction = (match["fraction"] or "").replace(",", ".")
    day = match["day"].replace("-", "")
    try:
        moment = datetime.fromisoformat(
            f"{day}T{clock.replace(':', '')}{fraction}{written.replace(':', '')}"
        )
        micros = _from_datetime(moment, zone)
    except ValueError:
        return None
    return micros + 1_000_000 if leap else micros


def _from_other_text(text: str, zone: tzinfo) -> int | None:
    """Forms that are not ISO 8601 and yet cannot be mistaken: of web servers, of mails, epochs."""
    if _EPOCH_TEXT.fullmatch(text):
        return _from_decimal(Decimal(text), None)
    match = _WEB.fullmatch(text) or _MAIL.fullmatch(text)
    if match is None:
        return None
    month = _MONTHS.index(match["month"]) + 1
    written = match["zone"] or ""
    offset = written if written[:1] in ("+", "-") else "Z" if written else ""
    day = f"{match['year']}-{month:02}-{int(match['day']):02}"
    return _from_loose_text(f"{day}T{match['clock']}{offset}", zone)


def _from_datetime(moment: datetime, zone: tzinfo) -> int:
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=zone)
    try:
        span = moment - _EPOCH
    except OverflowError:  # a zone's shift at the very ends of the calendar
        return LATEST + 1
    return (span.days * 86_400 + span.seconds) * 1_000_000 + span.microseconds


def common_scale(low: int, high: int, unit: Unit | None) -> int | None:
    """The factor that makes microseconds of every integer from `low` to `high`, if there is one."""
    if unit is None:
        if low <= -SECONDS_BELOW:
            return None
        unit = _unit_of(high)
        if unit != _unit_of(max(low, 0)):
            return None
    scale = _MICROS_PER.get(unit)
    if scale is None or low * scale < EARLIEST or high * scale > LATEST:
        return None
    return scale
