"""Types for text that has none: which values of a CSV file or a log line become numbers.

Only canonical forms do, so that no identifier is changed by reading it: `12`, `-3`, `0.50`,
`1.5e-07`, but not `007`, `+5`, `1e5`, ` 5` or `1_000`. `true` and `false` become truth values, the
empty text is missing. A type that is stated overrides this: `string` keeps every text as it is.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

from cep.source.base import BadRecord, FieldType

_NUMBER = re.compile(r"-?(?:0|[1-9][0-9]{0,399})(\.[0-9]{1,400})?([eE][+-][0-9]{1,3})?", re.ASCII)
_ALL_WHOLE = re.compile(r"(?:(?:0|-?[1-9][0-9]{0,17}+)\n)+", re.ASCII)
_ALL_PARTS = re.compile(r"(?:-?(?:0|[1-9][0-9]{0,17}+)\.[0-9]{1,17}+\n)+", re.ASCII)
_BEGINS_NUMBER = frozenset("-0123456789")
_INFINITE = (float("inf"), float("-inf"))
_REMEMBERED = 50_000

Infer = Callable[[str], object]


def infer(text: str) -> object:
    """The value of a text by its form; None for the empty text.

    >>> [infer(text) for text in ("12", "0.50", "007", "1e5", "true", "", "-0")]
    [12, 0.5, '007', '1e5', True, None, '-0']
    """
    if not text:
        return None
    if text[0] in _BEGINS_NUMBER:
        return _number(text)
    return text == "true" if text in {"true", "false"} else text


def _number(text: str) -> object:
    match = _NUMBER.fullmatch(text)
    if match is None or text == "-0":
        return text
    if match[1] is None and match[2] is None:
        return int(text)
    value = float(text)
    return text if value in _INFINITE else value


class _Memory(dict[str, object]):
    """The values of texts seen before, since columns repeat themselves."""

    def __missing__(self, text: str) -> object:
        value = infer(text)
        if len(self) < _REMEMBERED and len(text) < 100:
            self[text] = value
        return value


class Column:
    """Makes values of the texts of one field, by their form or as a stated type."""

    def __init__(self, stated: FieldType = "any") -> None:
        self._stated = _STATED.get(stated)
        self.reads_numbers = stated in ("any", "number")
        self.value: Infer = self._stated or _Memory().__getitem__

    def values(self, texts: Sequence[str]) -> list[object]:
        """`value` of each text; faster where all of them are numbers of the same kind."""
        if self._stated is None and texts and texts[0][:1] in _BEGINS_NUMBER:
            joined = "\n".join(texts) + "\n"
            if joined.count("\n") == len(texts):
                if _are_whole(joined, texts):
                    return list(map(int, texts))
                if _ALL_PARTS.fullmatch(joined):
                    return list(map(float, texts))
        return list(map(self.value, texts))


def _are_whole(joined: str, texts: Sequence[str]) -> bool:
    """Whether all are whole numbers in canonical form."""
    digits = joined.replace("\n", "").encode()  # as bytes digits are ASCII, and found faster
    if digits.isdigit() and "\n0" not in joined and joined[0] != "0":
        shortest, longest = min(texts, key=len), max(texts, key=len)
        return shortest != "" and len(longest) < 19
    return _ALL_WHOLE.fullmatch(joined) is not None


def are_rising(texts: Sequence[str] | Sequence[bytes]) -> bool:
    """Whether these are whole numbers of as many digits, in canonical form, none less than the one
    before it: the order of such texts is that of the numbers.

    >>> are_rising(["17", "17", "18"]), are_rising(["9", "10"]), are_rising([b"07", b"08"])
    (True, False, False)
    """
    first = texts[0]
    if not 0 < len(first) < 19 or first[:1] in ("0", b"0") or len(set(map(len, texts))) > 1:
        return False
    digits: str | bytes = first[:0].join(texts)  # type: ignore[arg-type]
    return digits.isascii() and digits.isdigit() and texts == sorted(texts)


def as_number(text: str) -> object:
    """For fields stated to be numbers: leading zeros, signs and spaces are allowed."""
    if not (text := text.strip()):
        return None
    try:
        if len(text) > 400 or "_" in text:
            raise ValueError
        value = float(text) if set(text) & set(".eEnN") else int(text)
        if value != value or value in _INFINITE:
            raise ValueError
    except ValueError:
        raise BadRecord(f"not a number: {text[:40]!r}") from None
    return value


def as_bool(text: str) -> object:
    """For fields stated to be truth values: true, false, yes, no, 1, 0, in any case."""
    word = text.strip().lower()
    if not word:
        return None
    if word in {"true", "yes", "1"}:
        return True
    if word in {"false", "no", "0"}:
        return False
    raise BadRecord(f"not a truth value: {text[:40]!r}")


def as_text(text: str) -> object:
    """For fields stated to be text: any, the empty one is missing."""
    return text or None


_STATED: dict[str, Infer] = {"string": as_text, "number": as_number, "bool": as_bool}
