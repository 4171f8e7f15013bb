"""Values as JSON, exactly: what rules and events hold, written so that it can be read back.

In: any value that can stand in an event, in a run's variables or in a window. Out: what JSON can
hold; `from_json` gives an equal value. Texts, numbers, truth values, null, arrays and objects stand
for themselves. Anything else is an object with the single key `$`, `{"$": [kind, …]}`:

* `float` (not a number, the infinities), `int` (beyond 64 bits, in hexadecimal), `text` (with lone
  surrogates, as its UTF-8 bytes in hexadecimal), `bytes`, `datetime`, `date`, `time`, `timedelta`
  (microseconds), `decimal`, `uuid`, `tuple`, `set`;
* `object` (keys that are no texts, or the key `$` itself), `odd` (a value in its box), `missing`.

**Policy for what a host may put into events besides.** Objects that JSON has a customary form for
(dataclasses, enumerations, structs, subclasses of the types above) come back as that form; all
others as their text. What is nested deeper than 200 levels, or contains itself, is replaced by a
text that says so. Nothing a host gives makes this fail.

Keys have a text of their own, `key_text`: equal keys have equal texts, and different ones do not.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from math import inf, isfinite, nan
from typing import Any
from uuid import UUID

import msgspec

from cep.event import UNSET, Odd
from cep.key import FLAGS, Flag

DEEPEST = 200
"""Levels of nesting up to which the values of a host are kept."""

TAG = "$"
_SMALLEST, _LARGEST = -(1 << 63), (1 << 64) - 1
_PLAIN = frozenset({str, bool, type(None)})
_encode = msgspec.json.Encoder().encode
_MICROSECOND = timedelta(microseconds=1)


def to_json(value: Any, depth: int = 0) -> Any:
    """What JSON can hold of a value; never fails.

    >>> to_json({"at": [1.5, float("inf")], "size": 1 << 70})
    {'at': [1.5, {'$': ['float', 'inf']}], 'size': {'$': ['int', '0x400000000000000000']}}
    """
    kind = value.__class__
    if kind is str:
        return value if value.isascii() or _is_text(value) else _tagged_text(value)
    if kind is bool or value is None:
        return value
    if kind is int:
        return value if _SMALLEST <= value <= _LARGEST else _tagged("int", hex(value))
    if kind is float:
        return value if isfinite(value) else _tagged("float", repr(value))
    if depth > DEEPEST:
        return f"<nested deeper than {DEEPEST} levels>"
    if kind is list:
        return [to_json(item, depth + 1) for item in value]
    if kind is dict:
        return _object(value, depth)
    write = _WRITERS.get(kind)
    return write(value, depth + 1) if write is not None else _of_a_host(value, depth)


def from_json(value: Any) -> Any:
    """The value that `to_json` was given.

    >>> from_json({"$": ["tuple", [1, {"$": ["float", "nan"]}]]})
    (1, nan)
    """
    kind = value.__class__
    if kind is list:
        return [from_json(item) for item in value]
    if kind is dict:
        if TAG in value:
            name, *rest = value[TAG]
            return _READERS[name](*rest)
        return {name: from_json(item) for name, item in value.items()}
    return value


def json_text(value: Any) -> str:
    """`to_json` as text.

    >>> json_text([True, 1, "1"])
    '[true,1,"1"]'
    """
    kind = value.__class__
    if kind is str and value.isascii():
        return _encode(value).decode()
    if kind is int and _SMALLEST <= value <= _LARGEST:
        return str(value)
    if kind is dict and _is_flat(value):
        try:
            return _encode(value).decode()
        except UnicodeEncodeError:
            pass  # lone surrogates, which the long way tags
    return _encode(to_json(value)).decode()


def from_json_text(text: str | bytes) -> Any:
    """What `json_text` was given."""
    value = msgspec.json.decode(text)
    mark = b'"$"' if text.__class__ is bytes else '"$"'
    return from_json(value) if mark in text else value  # type: ignore[operator]


# ---------------------------------------------------------------------------- keys


def key_text(key: Any) -> str:
    """The text of a key: a JSON array of its parts. Numbers that are equal have the same text.

    >>> key_text("a"), key_text(("a", 1.0)), key_text(FLAGS[True]), key_text("1"), key_text(())
    ('["a"]', '["a",1]', '[true]', '["1"]', '[]')
    """
    if key.__class__ is str and key.isascii():
        return f"[{_encode(key).decode()}]"
    parts = key if key.__class__ is tuple else (key,)
    return _encode([to_json(_canonical(part)) for part in parts]).decode()


def parts_from_text(text: str) -> tuple[Any, ...]:
    """The parts of a key."""
    parts = from_json_text(text)
    return tuple(FLAGS[part] if part.__class__ is bool else part for part in parts)


def key_from_text(text: str) -> Any:
    """The key as states have it: its part, or a tuple of several or none.

    >>> key_from_text('["a"]'), key_from_text('["a",2]'), key_from_text('[]')
    ('a', ('a', 2), ())
    """
    inner = text[2:-2]
    if text[:2] == '["' and text[-2:] == '"]' and '"' not in inner and "\\" not in inner:
        return inner
    return bare_key(parts_from_text(text))


def bare_key(parts: tuple[Any, ...]) -> Any:
    """The key of a state with these parts."""
    return parts[0] if len(parts) == 1 else parts


def exact_key(key: Any) -> list[Any] | None:
    """The parts of a key as JSON where its text does not tell them exactly: 1.0 is the key 1, but
    matches show it as it came. None where the text says all."""
    parts = key if key.__class__ is tuple else (key,)
    if any(part.__class__ is float for part in parts):
        return [to_json(_plain(part)) for part in parts]
    return None


def key_from_exact(parts: list[Any]) -> Any:
    """The key that `exact_key` was given."""
    found = (from_json(part) for part in parts)
    return bare_key(tuple(FLAGS[part] if part.__class__ is bool else part for part in found))


def _canonical(part: Any) -> Any:
    if part.__class__ is float and part.is_integer():
        return int(part)
    return _plain(part)


def _plain(part: Any) -> Any:
    return part.value if part.__class__ is Flag else part


# ---------------------------------------------------------------------------- writing


def _tagged(name: str, *content: Any) -> dict[str, Any]:
    return {TAG: [name, *content]}


def _tagged_text(value: str) -> dict[str, Any]:
    return _tagged("text", value.encode("utf-8", "surrogatepass").hex())


def _is_text(value: str) -> bool:
    try:
        value.encode()
    except UnicodeEncodeError:
        return False
    return True


def _is_flat(record: dict[Any, Any]) -> bool:
    """Whether a mapping holds nothing that `to_json` would change (but for lone surrogates)."""
    kinds = set(map(type, record.values()))
    if set(map(type, record)) != {str} or TAG in record:
        return False
    if int in kinds and not all(
        _SMALLEST <= n <= _LARGEST for n in record.values() if n.__class__ is int
    ):
        return False
    if float in kinds and not all(isfinite(n) for n in record.values() if n.__class__ is float):
        return False
    return kinds - {int, float} <= _PLAIN


def _object(value: Mapping[Any, Any], depth: int) -> dict[str, Any]:
    named = {
        name: to_json(item, depth + 1)
        for name, item in value.items()
        if name.__class__ is str and name != TAG and (name.isascii() or _is_text(name))
    }
    if len(named) == len(value):
        return named
    pairs = [[to_json(k, depth + 1), to_json(v, depth + 1)] for k, v in value.items()]
    return _tagged("object", pairs)


def _of_a_host(value: Any, depth: int) -> Any:
    """Of an object that no JSON form is known of here: the customary one, or its text. Its own code
    may raise whatever it likes."""
    try:
        if isinstance(value, Mapping):
            return _object(value, depth)
        return to_json(msgspec.to_builtins(value), depth + 1)
    except Exception:
        return _text_of(value)


def _text_of(value: Any) -> Any:
    try:
        return to_json(f"{value}")
    except Exception:
        return f"<{type(value).__name__}>"


_Writer = Callable[[Any, int], Any]
_WRITERS: dict[type, _Writer] = {
    Odd: lambda value, depth: _tagged("odd", to_json(value.value, depth)),
    type(UNSET): lambda value, depth: _tagged("missing"),
    tuple: lambda value, depth: _tagged("tuple", [to_json(item, depth) for item in value]),
    set: lambda value, depth: _tagged("set", [to_json(item, depth) for item in value]),
    frozenset: lambda value, depth: _tagged("set", [to_json(item, depth) for item in value]),
    bytes: lambda value, depth: _tagged("bytes", value.hex()),
    datetime: lambda value, depth: _tagged("datetime", value.isoformat()),
    date: lambda value, depth: _tagged("date", value.isoformat()),
    time: lambda value, depth: _tagged("time", value.isoformat()),
    timedelta: lambda value, depth: _tagged("timedelta", value // _MICROSECOND),
    Decimal: lambda value, depth: _tagged("decimal", str(value)),
    UUID: lambda value, depth: _tagged("uuid", str(value)),
}


# ---------------------------------------------------------------------------- reading


def _read_text(hexadecimal: str) -> str:
    return bytes.fromhex(hexadecimal).decode("utf-8", "surrogatepass")


def _read_object(pairs: list[list[Any]]) -> dict[Any, Any]:
    return {from_json(name): from_json(item) for name, item in pairs}


_READERS: dict[str, Callable[..., Any]] = {
    "float": {"nan": nan, "inf": inf, "-inf": -inf}.__getitem__,
    "int": lambda digits: int(digits, 16),
    "text": _read_text,
    "bytes": bytes.fromhex,
    "datetime": datetime.fromisoformat,
    "date": date.fromisoformat,
    "time": time.fromisoformat,
    "timedelta": lambda micros: timedelta(microseconds=micros),
    "decimal": Decimal,
    "uuid": UUID,
    "tuple": lambda items: tuple(from_json(item) for item in items),
    "set": lambda items: {from_json(item) for item in items},
    "object": _read_object,
    "odd": lambda value: Odd(from_json(value)),
    "missing": lambda: UNSET,
}
