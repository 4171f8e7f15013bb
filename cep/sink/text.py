"""Matches as text for people: one line each with time, severity, rule and message.

    2026-01-01 00:00:45Z  high      brute_force  bob: 5 failures, then success from 6.6.6.6

What comes from events may be hostile: characters that move the cursor, change colours or turn the
direction of writing are shown as escapes, so a match is always one line that says what it says.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING

from cep.sink.columns import json_text
from cep.sink.files import OutputFile

if TYPE_CHECKING:
    from cep.match import Match

_SEVERITY_TONES = {
    "info": "36",
    "low": "34",
    "medium": "33",
    "high": "31",
    "critical": "1;97;41",
}
_WIDEST_SEVERITY = 8

_UNPRINTABLE = re.compile(
    "[\x00-\x1f\x7f-\x9f\u061c\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff\ud800-\udfff]"
)


class TextSink:
    """Writes one readable line for each match to `path`, or to standard output for `-`."""

    def __init__(self, path: str, keep: int | None = None, *, color: bool = False) -> None:
        self._out = OutputFile(path, keep)
        self.name = self._out.name
        self._color = color
        self._rule_width = 0

    def write(self, matches: Sequence[Match]) -> None:
        self._rule_width = max(self._rule_width, *(len(match.rule) for match in matches), 0)
        lines = [match_line(match, self._rule_width, color=self._color) for match in matches]
        self._out.write("".join(line + "\n" for line in lines).encode("utf-8", "backslashreplace"))

    def flush(self) -> None:
        self._out.flush()

    def settle(self) -> int | None:
        return self._out.settle()

    def close(self) -> None:
        self._out.close()


def match_line(match: Match, rule_width: int = 0, *, color: bool = False) -> str:
    """The line of one match, without a line break."""
    severity = (match.severity or "").ljust(_WIDEST_SEVERITY)
    when = match.time_iso.replace("T", " ", 1)
    paint = _paint if color else _plain
    return "  ".join(
        [
            paint(when, "2"),
            paint(severity, _SEVERITY_TONES.get(match.severity or "", "")),
            paint(printable(match.rule).ljust(rule_width), "1"),
            printable(_said(match)) + paint(_remarks(match), "2"),
        ]
    ).rstrip()


def _said(match: Match) -> str:
    """The text of the alert; without one what is known of the match: title, key and fields."""
    if match.message and match.message not in (match.rule, match.title):
        return match.message
    known = {**match.key, **match.fields}
    values = [f"{name}={_value(value)}" for name, value in known.items()]
    return " ".join([*([match.title] if match.title else []), *values])


def _value(value: object) -> str:
    return value if isinstance(value, str) else json_text(value)


def _remarks(match: Match) -> str:
    remarks = ["timed out"] if match.kind == "timeout" else []
    if match.suppressed:
        remarks.append(f"{match.suppressed.get('count', '?')} more before it suppressed")
    return f"  ({', '.join(remarks)})" if remarks else ""


def printable(text: str) -> str:
    """The text with everything that is not a visible character written as an escape.

    >>> printable("two\\nlines\\x1b[2J")
    'two\\\\nlines\\\\x1b[2J'
    """
    if text.isprintable():
        return text
    return _UNPRINTABLE.sub(lambda found: _escape(found.group()), text)


def _escape(char: str) -> str:
    return char.encode("unicode_escape").decode("ascii")


def _paint(text: str, tone: str) -> str:
    return f"\x1b[{tone}m{text}\x1b[0m" if tone and text else text


def _plain(text: str, _tone: str) -> str:
    return text
