"""logfmt lines: `level=info msg="it works" duration=1.5 cached`.

A bare value is typed by its form (see `values`), a quoted one is text, a key alone is true. Inside
quotes `\\"`, `\\\\`, `\\n`, `\\r` and `\\t` are escapes. Of equal keys the last one counts.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from cep.source.base import BadRecord, FieldType, Record
from cep.source.values import Column

_PAIR = re.compile(r'\s*([^\s="]+)(?:(=)(?:"((?:[^"\\]|\\.)*)"|([^\s"]*)))?(?=\s|$)')
_LOOKS = re.compile(r'[A-Za-z_@][\w.@/-]*=("|[^\s=]*(?:\s|$)).*\s[A-Za-z_@][\w.@/-]*=', re.ASCII)
_ESCAPE = re.compile(r"\\(.)", re.DOTALL)
_ESCAPED = {"n": "\n", "r": "\r", "t": "\t"}


def looks_like_logfmt(line: str) -> bool:
    """Whether a line begins with a key and a value, and has more of them."""
    return _LOOKS.match(line) is not None


class Logfmt:
    """Reads lines; `types` overrides the form of values."""

    def __init__(self, types: Mapping[str, FieldType]) -> None:
        self._stated = {name: Column(kind).value for name, kind in types.items()}
        self._infer = Column().value

    def __call__(self, line: str) -> Record:
        """The pairs of a line; `BadRecord` where it is broken or has no pair at all."""
        record: Record = {}
        end, pairs = 0, 0
        for match in _PAIR.finditer(line):
            if match.start() != end:
                break
            end = match.end()
            name, equals, quoted, bare = match.groups()
            pairs += bool(equals)
            record[name] = self._value(name, equals, quoted, bare)
        if line[end:].strip():
            raise BadRecord(f"not logfmt at character {end + 1}")
        if not pairs:
            raise BadRecord("not logfmt: no key=value on the line")
        return record

    def _value(self, name: str, equals: str | None, quoted: str | None, bare: str | None) -> object:
        if not equals:
            return True
        text = bare or ""
        if quoted is not None:
            text = _ESCAPE.sub(_unescape, quoted) if "\\" in quoted else quoted
        if stated := self._stated.get(name):
            return stated(text)
        return text if quoted is not None else self._infer(text)


def _unescape(match: re.Match[str]) -> str:
    return _ESCAPED.get(match[1], match[1])
