"""Tests of texts against patterns: `like`, `ilike`, `matches` and `capture`.

In comes a pattern, out comes a function of one value that is as cheap as the pattern allows; it
raises `Misfit` for a value that is no text. No pattern can make a test slow: wildcards are looked
for piece by piece, regular expressions are RE2's.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from functools import lru_cache
from typing import Any

import re2

from cep.runtime import functions
from cep.runtime.functions import Misfit, any_of, any_text, text, whole

_ANYWHERE = re2._Anchor.UNANCHORED


def wildcard(pattern: str, ignore_case: bool = False) -> Callable[[Any], bool]:
    """A test for `like`: `*` stands for any characters, `?` for one; the whole text must fit.

    With `ignore_case` both sides are compared in lower case. A text is tested in time linear in its
    length (times the number of `?`-pieces in the worst case), whatever the pattern.

    >>> test = wildcard("*.ex?")
    >>> test("a.exe"), test("a.exe.txt")
    (True, False)
    """
    if ignore_case:
        matches = _wildcard(pattern.lower())
        return lambda value: matches(text(value).lower())
    matches = _wildcard(pattern)
    return lambda value: matches(text(value))


FEW = 2
"""So many patterns are tried one after the other."""


def wildcards(patterns: Sequence[str], ignore_case: bool = False) -> Callable[[Any], bool]:
    """A test whether a text is like one of the patterns. What begins or ends with a certain text is
    looked up, whatever stands anywhere is searched for at once: a list of thousands costs little
    more than one pattern, but for those with stars or `?` in the middle.

    >>> test = wildcards(["*.exe", "cmd*", "*evil*"])
    >>> test("a.exe"), test("a.exe.txt"), test("an evil one")
    (True, False, True)
    """
    if len(patterns) <= FEW:
        return any_of([wildcard(pattern, ignore_case) for pattern in patterns])
    wanted = dict.fromkeys(pattern.lower() if ignore_case else pattern for pattern in patterns)
    whole_texts: set[str] = set()
    beginnings: set[str] = set()
    endings: set[str] = set()
    pieces: set[str] = set()
    others = []
    for pattern in wanted:
        bare = pattern.strip("*")
        if "*" in bare or "?" in bare:
            others.append(_wildcard(pattern))
        elif not pattern.startswith("*"):
            (beginnings if pattern.endswith("*") else whole_texts).add(bare)
        else:
            (pieces if pattern.endswith("*") else endings).add(bare)
    begins, ends = _lengths(beginnings), _lengths(endings)
    contains = containing(pieces)

    def test(value: Any) -> bool:
        own = text(value)
        if ignore_case:
            own = own.lower()
        return (
            own in whole_texts
            or any(own[:length] in found for length, found in begins)
            or any(own[max(len(own) - length, 0) :] in found for length, found in ends)
            or contains(own)
            or any(other(own) for other in others)
        )

    return test


def _lengths(texts: Collection[str]) -> list[tuple[int, frozenset[str]]]:
    """The texts by their length."""
    lengths = sorted(set(map(len, texts)))
    return [(n, frozenset(one for one in texts if len(one) == n)) for n in lengths]


def contains_any(parts: Sequence[str]) -> Callable[[Any], bool]:
    """A test for `contains` with constant texts, of which many are searched for at once."""
    each = functions.contains_any(parts)
    if len(parts) <= FEW:
        return each
    inside = containing(parts)
    return lambda value: inside(value) if value.__class__ is str else each(value)


def containing(pieces: Collection[str]) -> Callable[[str], bool]:
    """A test whether one of the pieces stands in a text: many are searched for at once."""
    if "" in pieces:
        return lambda value: True
    found = tuple(sorted(set(pieces)))
    if len(found) <= FEW:
        return lambda value: any(piece in value for piece in found)
    try:
        compiled = _compiled("|".join(re2.escape(piece) for piece in found))
    except (re2.error, UnicodeEncodeError):  # too many for one, or with halves of characters
        return lambda value: any(piece in value for piece in found)
    match = compiled._regexp.Match

    def test(value: str) -> bool:
        encoded = value.encode(errors="surrogatepass")
        return bool(match(_ANYWHERE, encoded, 0, len(encoded))[0][0] >= 0)

    return test


@lru_cache(maxsize=1024)
def _wildcard(pattern: str) -> Callable[[str], bool]:
    first, *rest = pattern.split("*")
    if not rest:
        return lambda value: len(value) == len(pattern) and _fits(value, pattern, 0)
    *middle, last = rest
    middle = [piece for piece in middle if piece]
    shortest = len(first) + len(last) + sum(map(len, middle))

    def test(value: str) -> bool:
        if len(value) < shortest or not _fits(value, first, 0):
            return False
        end = len(value) - len(last)
        if not _fits(value, last, end):
            return False
        at = len(first)
        for piece in middle:
            at = _find(value, piece, at, end)
            if at < 0:
                return False
            at += len(piece)
        return at <= end

    return test


def _fits(value: str, piece: str, at: int) -> bool:
    """Whether the piece, in which `?` is any character, stands at this place."""
    if "?" not in piece:
        return value.startswith(piece, at)
    stretch = value[at : at + len(piece)]
    return len(stretch) == len(piece) and all(
        a == b or b == "?" for a, b in zip(stretch, piece, strict=True)
    )


def _find(value: str, piece: str, start: int, end: int) -> int:
    """The first place from `start` where the piece stands and ends by `end`; -1 for none."""
    if "?" not in piece:
        return value.find(piece, start, end)
    for at in range(start, end - len(piece) + 1):
        if _fits(value, piece, at):
            return at
    return -1


def like(value: Any, pattern: Any, ignore_case: bool = False) -> bool:
    """`value like pattern` where the pattern (or a list of them) comes with the event."""
    patterns = pattern if pattern.__class__ in (list, tuple) else (pattern,)
    return any_text(patterns, lambda wanted: wildcard(wanted, ignore_case)(value))


def ilike(value: Any, pattern: Any) -> bool:
    """`value ilike pattern` where the pattern comes with the event."""
    return like(value, pattern, ignore_case=True)


# ---------------------------------------------------------------------------- regular expressions


def regex(compiled: Any, required: str | None = None) -> Callable[[Any], bool]:
    """A test whether an RE2 object (`re2.compile`) matches somewhere in a text.

    `required` is a text that stands in everything it matches, where one is known: it is looked
    for first. The object behind the wrapper is asked directly, which is six times as fast.

    >>> regex(re2.compile("fail(ed|ure)"), "fail")("a failure")
    True
    """
    match = compiled._regexp.Match

    def test(value: Any) -> bool:
        if value.__class__ is not str:
            raise Misfit("not a text")
        if required is not None and required not in value:
            return False
        encoded = value.encode()
        return bool(match(_ANYWHERE, encoded, 0, len(encoded))[0][0] >= 0)

    return test


def capture(
    compiled: Any, group: Any = None, required: str | None = None
) -> Callable[[Any], str | None]:
    """A function that gives what a group holds at the first match in a text, null without match.

    Without a group it is the first one. Raises `KeyError` for a group that the expression does not
    have.

    >>> capture(re2.compile(r"user=(\\w+)"))("ip=1 user=bob")
    'bob'
    """
    index = _group_index(compiled, group)
    match = compiled._regexp.Match

    def take(value: Any) -> str | None:
        if value.__class__ is not str:
            raise Misfit("not a text")
        if required is not None and required not in value:
            return None
        encoded = value.encode()
        start, end = match(_ANYWHERE, encoded, 0, len(encoded))[index]
        return encoded[start:end].decode() if start >= 0 else None

    return take


def capture_group(compiled: Any, value: Any, group: Any) -> str | None:
    """`capture` with a group that comes with the event."""
    return capture(compiled, group)(value)


def _group_index(compiled: Any, group: Any) -> int:
    if isinstance(group, str):
        return int(compiled.groupindex[group])
    index = 1 if group is None else whole(group)
    if not 0 <= index <= compiled.groups:
        raise KeyError(group)
    return index


@lru_cache(maxsize=256)
def _compiled(pattern: str) -> Any:
    options = re2.Options()
    options.log_errors = False
    return re2.compile(pattern, options)


def matches(value: Any, pattern: Any) -> bool:
    """`value matches pattern` where the pattern (or a list of them) is a text from the event."""
    patterns = pattern if pattern.__class__ in (list, tuple) else (pattern,)
    return any_text(patterns, lambda wanted: regex(_compiled(wanted))(value))
