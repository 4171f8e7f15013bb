"""One line of JSON lines, read with care: the object on it, or the reason why there is none.

The engine decodes lines in bulk, straight into the fields that rules mention; a line that does
not pass comes here to be understood. The policy, for all who read JSON:

* a line holds exactly one object: two objects, an array, a number, text or null are refused;
* text is UTF-8, and numbers are JSON's: NaN, Infinity and numbers beyond a double are refused;
* integers are exact up to 4,300 digits and refused beyond;
* nesting is refused from some 900 levels on, and never overflows the stack;
* of equal keys in one object the last one counts.
"""

from __future__ import annotations

import json
from typing import Any, NoReturn, cast

import msgspec

from cep.source.base import BadRecord, Record

_decode = msgspec.json.Decoder().decode

_WORDS = {
    list: "an array",
    str: "a text",
    bool: "a truth value",
    int: "a number",
    float: "a number",
    type(None): "null",
}
TOO_DEEP = "nested too deep"


def read_object(line: bytes) -> Record:
    """The JSON object on a line; raises `BadRecord` with the reason where there is none.

    >>> read_object(b'{"a": 1}')
    {'a': 1}
    >>> read_object(b'[1, 2]')
    Traceback (most recent call last):
    cep.source.base.BadRecord: an array, not an object
    """
    try:
        value = _decode(line)
    except RecursionError:
        raise BadRecord(TOO_DEEP) from None
    except msgspec.MsgspecError as error:
        raise BadRecord(_reason(line, str(error))) from None
    return as_object(value)


def as_object(value: Any) -> Record:
    """The value itself where it is a JSON object, else `BadRecord`."""
    if type(value) is not dict:
        raise BadRecord(f"{_WORDS.get(type(value), 'a value')}, not an object")
    return cast(Record, value)


def _reason(line: bytes, fast_reason: str) -> str:
    """What is wrong with a line that the fast decoder refused."""
    if not line.strip():
        return "an empty line"
    try:
        text = line.decode("utf-8")
    except UnicodeDecodeError as error:
        return f"invalid UTF-8 at byte {error.start + 1} of the line"
    text = text.strip().removeprefix("\ufeff")
    try:
        _, end = _careful.raw_decode(text)
    except RecursionError:
        return TOO_DEEP
    except json.JSONDecodeError as error:
        return _syntax_reason(error, text)
    except ValueError as error:  # of the hook below, or of an integer that is too long
        return str(error) if isinstance(error, BadRecord) else "an integer of too many digits"
    if rest := text[end:].strip():
        more = "more than one JSON value" if rest[0] in '{["' else "something after the JSON value"
        return f"{more} on the line"
    if "out of range" in fast_reason:
        return "a number that is too large"
    return f"not JSON: {fast_reason}"


def _syntax_reason(error: json.JSONDecodeError, text: str) -> str:
    if not text.startswith(("{", "[", '"')):
        return "not JSON: it does not begin with `{`"
    if error.pos >= len(text) or error.msg.startswith("Unterminated string"):
        return "not JSON: the line ends before the object does"
    return f"not JSON: {error.msg[:1].lower()}{error.msg[1:]} at character {error.pos + 1}"


def refuse_constant(name: str) -> NoReturn:
    """For `json`'s `parse_constant`: NaN and Infinity are no JSON."""
    raise BadRecord(f"not JSON: the number {name}")


_careful = json.JSONDecoder(parse_constant=refuse_constant)
