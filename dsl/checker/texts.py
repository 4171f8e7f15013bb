"""Texts that conditions compare with and that look like slips, though they mean something.

In: the operator and the right side of a comparison. Out: warnings. A Windows path with single
backslashes holds control characters (`"*\\nslookup.exe"`), and `%` is the wildcard of SQL, here it
stands for itself: such a condition is never true, and nothing says so.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

from dsl.checked import ArrayOf, Const, NamedList, Value
from dsl.source import Span

if TYPE_CHECKING:
    from dsl.checker.world import World

_WHOLE = frozenset({"==", "!=", "in", "like", "ilike"})
"""Operators that compare a whole text; only a part of one may well hold a line break."""

_ESCAPED = {"\n": "n", "\r": "r", "\t": "t"}
_SLIP = re.compile(r"[\n\r\t](?=\w)")


def look_at_texts(world: World, op: str, side: Value) -> None:
    """Warn of constant texts on a side of a comparison that hardly say what is meant."""
    if op not in _WHOLE:
        return
    for text, span in _texts(world, side):
        _control_character(world, text, span)
        if op in ("like", "ilike"):
            _percent(world, text, span)


def _texts(world: World, side: Value) -> Iterator[tuple[str, Span]]:
    if isinstance(side, NamedList):
        named = world.lists[side.name]
        yield from ((item, side.span) for item in named.items if isinstance(item, str))
    for item in side.items if isinstance(side, ArrayOf) else (side,):
        if isinstance(item, Const) and isinstance(item.value, str):
            yield item.value, item.span


def _control_character(world: World, text: str, span: Span) -> None:
    found = _SLIP.search(text)
    if found is None:
        return
    letter = _ESCAPED[found[0]]
    names = {"n": "a new line", "r": "a carriage return", "t": "a tab"}
    world.found.warning(
        "W015",
        span,
        f"`\\{letter}` is {names[letter]} in this text",
        help=f"for a backslash before `{letter}` write two: `\\\\{letter}`",
    )


def _percent(world: World, text: str, span: Span) -> None:
    if "%" in (text[:1], text[-1:]) and "*" not in text and "?" not in text:
        world.found.warning(
            "W016",
            span,
            "`%` stands for itself here",
            help=f'the wildcards are `*` (any characters) and `?` (one): `"{_with_stars(text)}"`',
        )


def _with_stars(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"').replace("%", "*")
