"""The functions of section 7, written a second time, plainly: for tests only.

Each takes values that are not null and returns one; `Failure` (or any arithmetic or value error)
means null.
"""

from __future__ import annotations

import hashlib
import ipaddress
import json
import math
import re
from collections.abc import Callable, Mapping
from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import re2

from dsl import checked
from dsl.types import Type

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


class Failure(Exception):
    """A value that does not fit; the result is null."""


def kind_of(value: object) -> str:
    """The kind of a value as the language sees it: booleans are not numbers."""
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "bool"
    if isinstance(value, int | float):
        return "number"
    if isinstance(value, str):
        return "string"
    if isinstance(value, Mapping):
        return "object"
    return "array" if isinstance(value, list | tuple) else "other"


# ---------------------------------------------------------------------------- times and texts


def moment(time: int) -> datetime:
    """Microseconds since the epoch as a datetime."""
    return EPOCH + timedelta(microseconds=time)


def iso(time: int) -> str:
    """A time as match records write it: Z, as many of 0, 3 or 6 decimals as it needs."""
    text = moment(time).strftime("%Y-%m-%dT%H:%M:%S").rjust(19, "0")
    fraction = time % 1_000_000
    if not fraction:
        return text + "Z"
    return f"{text}.{fraction // 1000:03d}Z" if fraction % 1000 == 0 else f"{text}.{fraction:06d}Z"


def span_text(duration: int) -> str:
    """A duration as people write it: `1h30m`, `1.5s`, `20ms`, `0s`."""
    if duration < 0:
        return "-" + span_text(-duration)
    if 0 < duration < 1_000:
        return f"{duration}us"
    if 0 < duration < 1_000_000:
        return f"{_trimmed(duration, 3)}ms"
    pieces, rest = [], duration
    for unit, size in (("d", 86_400), ("h", 3_600), ("m", 60)):
        number, rest = divmod(rest, size * 1_000_000)
        if number:
            pieces.append(f"{number}{unit}")
    if rest or not pieces:
        pieces.append(f"{_trimmed(rest, 6)}s")
    return "".join(pieces)


def _trimmed(number: int, decimals: int) -> str:
    """`number` with its last `decimals` digits behind the point, needless zeros left out."""
    whole, rest = divmod(number, 10**decimals)
    return f"{whole}.{rest:0{decimals}d}".rstrip("0").rstrip(".") if rest else str(whole)


def text_of(value: object, kind: Type = Type.ANY) -> str:
    """A value in an alert text."""
    if value is None:
        return "null"
    if kind is Type.TIME and isinstance(value, int):
        return iso(value)
    if kind is Type.DURATION and isinstance(value, int):
        return span_text(value)
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float) and value.is_integer() and abs(value) < 2**53:
        return str(int(value))
    if isinstance(value, str | int | float):
        return str(value)
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"), default=dict)


def plain(value: object, kind: Type = Type.ANY) -> object:
    """A value in the fields of a match: times as ISO text, durations as seconds."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return value
    if kind is Type.TIME:
        return iso(int(value))
    if kind is Type.DURATION:
        return value // 1_000_000 if value % 1_000_000 == 0 else value / 1_000_000
    return value


# ---------------------------------------------------------------------------- text functions


def _text(value: object) -> str:
    if not isinstance(value, str):
        raise Failure
    return value


def _number(value: object) -> int | float:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise Failure
    return value


def _whole(value: object) -> int:
    number = _number(value)
    if number != int(number):
        raise Failure
    return int(number)


def _length(value: object) -> int:
    if kind_of(value) not in ("string", "array", "object"):
        raise Failure
    return len(value)  # type: ignore[arg-type]


def _substr(text: object, start: object, length: object = None) -> str:
    whole, begin = _text(text), _whole(start)
    if begin < 0:
        begin = max(0, len(whole) + begin)
    if length is None:
        return whole[begin:]
    if _whole(length) < 0:
        raise Failure
    return whole[begin : begin + _whole(length)]


def _split(text: object, separator: object) -> list[str]:
    if not _text(separator):
        raise Failure
    return _text(text).split(_text(separator))


def _replace(text: object, old: object, new: object) -> str:
    if not _text(old):
        raise Failure
    return _text(text).replace(_text(old), _text(new))


def _capture(text: object, pattern: object, group: object = 1) -> str | None:
    if not isinstance(pattern, checked.Pattern):
        raise Failure
    flags = f"(?{pattern.flags})" if pattern.flags else ""
    found = re2.search(flags + pattern.pattern, _text(text))
    if found is None:
        return None
    try:
        captured: str | None = found.group(group if isinstance(group, str) else _whole(group))
    except (IndexError, KeyError) as problem:
        raise Failure from problem
    return captured


# ---------------------------------------------------------------------------- number functions


def _round(number: object, places: object = 0) -> int | float:
    value, digits = _number(number), _whole(places)
    return round(value) if digits == 0 else round(value, digits)


def _smallest(*values: object) -> object:
    return min(_number(value) for value in values)


def _largest(*values: object) -> object:
    return max(_number(value) for value in values)


def _log(number: object, base: object = math.e) -> float:
    if base == math.e:
        return math.log(_number(number))
    return math.log(_number(number), _number(base))


# ---------------------------------------------------------------------------- time functions


def _local(time: object, zone: object = "UTC") -> datetime:
    try:
        return moment(_whole(time)).astimezone(ZoneInfo(_text(zone)))
    except (KeyError, OSError) as problem:
        raise Failure from problem


def _per(size: int) -> Callable[[object], float]:
    return lambda duration: _number(duration) / (size * 1_000_000)


# ---------------------------------------------------------------------------- conversions


def _int(value: object) -> int:
    if isinstance(value, bool):
        raise Failure
    if isinstance(value, str):
        return int(_decimal(value))
    return int(_number(value))


def _num(value: object) -> int | float:
    return _decimal(value) if isinstance(value, str) else _number(value)


def _decimal(text: str) -> int | float:
    """What a text in decimal notation says: no digits of other scripts, no `_` between digits."""
    if not text.isascii() or "_" in text:
        raise Failure
    try:
        return int(text)
    except ValueError:
        number = float(text)
        if math.isnan(number) or math.isinf(number):
            raise Failure from None
        return number


def _moment(text: str) -> datetime:
    """ISO 8601, else a form of web servers or of mails."""
    for form in ("%d/%b/%Y:%H:%M:%S %z", "%d/%b/%Y:%H:%M:%S", "%a, %d %b %Y %H:%M:%S %z"):
        try:
            return datetime.strptime(text.replace("GMT", "+0000"), form)
        except ValueError:
            continue
    return datetime.fromisoformat(text)


def _format_time(time: object, pattern: object, zone: object = "UTC") -> str:
    if re.search(r"%(?![YmdHMSfjaAbBz%])", _text(pattern).replace("%%", "")):
        raise Failure
    at = _local(time, zone)
    padded = {"%Y": f"{at.year:04}", "%%": "%%"}
    return at.strftime(re.sub("%[Y%]", lambda sign: padded[sign[0]], _text(pattern)))


def _time(value: object) -> int:
    """ISO text, or a number of seconds, millis, micros or nanos, whichever gives a likely date."""
    if isinstance(value, str):
        text = value.strip()
        if re.fullmatch(r"\d{9,10}(\.\d+)?|\d{13}|\d{16}|\d{19}", text, re.ASCII):
            return _time(_decimal(text))
        found = _moment(text)
        whole = found if found.tzinfo else found.replace(tzinfo=UTC)
        return (whole - EPOCH) // timedelta(microseconds=1)
    number = _number(value)
    for limit, factor in ((10**11, 10**6), (10**14, 10**3), (10**17, 1)):
        if abs(number) < limit:
            return round(number * factor)
    return int(number // 1000)


def _ip(value: object) -> str:
    address = ipaddress.ip_address(_text(value).strip())
    mapped = address.ipv4_mapped if isinstance(address, ipaddress.IPv6Address) else None
    return str(mapped or address)


# ---------------------------------------------------------------------------- network and the rest


def _cidr(address: object, *networks: object) -> bool:
    wanted = ipaddress.ip_address(_ip(address))
    given: list[object] = []
    for network in networks:
        given.extend(network if isinstance(network, list | tuple) else [network])
    return any(wanted in ipaddress.ip_network(_text(one), strict=False) for one in given)


def _is_private(address: object) -> bool:
    found = ipaddress.ip_address(_ip(address))
    return found.is_private or found.is_loopback or found.is_link_local


def _haversine(*degrees: object) -> float:
    lat1, lon1, lat2, lon2 = (math.radians(_number(d)) for d in degrees)
    chord = (
        math.sin((lat2 - lat1) / 2) ** 2
        + math.cos(lat1) * math.cos(lat2) * math.sin((lon2 - lon1) / 2) ** 2
    )
    return 2 * 6371.0088 * math.asin(math.sqrt(min(1.0, chord)))


def _hash(*values: object) -> str:
    text = json.dumps(values, ensure_ascii=False, separators=(",", ":"), sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()[:16]


FUNCTIONS: Mapping[str, Callable[..., object]] = {
    "lower": lambda text: _text(text).lower(),
    "upper": lambda text: _text(text).upper(),
    "trim": lambda text: _text(text).strip(),
    "len": _length,
    "substr": _substr,
    "split": _split,
    "starts_with": lambda text, start: _text(text).startswith(_text(start)),
    "ends_with": lambda text, end: _text(text).endswith(_text(end)),
    "replace": _replace,
    "capture": _capture,
    "abs": lambda number: abs(_number(number)),
    "round": _round,
    "floor": lambda number: math.floor(_number(number)),
    "ceil": lambda number: math.ceil(_number(number)),
    "min": _smallest,
    "max": _largest,
    "log": _log,
    "sqrt": lambda number: math.sqrt(_number(number)),
    "hour": lambda time, zone="UTC": _local(time, zone).hour,
    "weekday": lambda time, zone="UTC": _local(time, zone).isoweekday(),
    "date": lambda time, zone="UTC": _local(time, zone).date().isoformat(),
    "format_time": _format_time,
    "seconds": _per(1),
    "minutes": _per(60),
    "hours": _per(3_600),
    "days": _per(86_400),
    "int": _int,
    "num": _num,
    "time": _time,
    "ip": _ip,
    "cidr": _cidr,
    "is_private": _is_private,
    "haversine_km": _haversine,
    "hash": _hash,
}
"""By name; `if`, `coalesce`, `str`, `concat` look at more than values: see `reference_values`."""
