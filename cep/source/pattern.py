"""Lines of any form, taken apart by a regular expression with named groups.

`regex:(?P<timestamp>\\S+) (?P<user>\\w+) logged (?P<what>in|out)`: each named group is a field,
typed by its form (see `values`); a group that took no part is missing. The pattern may match
anywhere in the line; a line that it does not match is rejected. A group called `timestamp`, `time`,
`ts` or `@timestamp` may hold a stamp of any form that `stamps` knows.

RE2 does the matching: in linear time, whatever the pattern and the line.
"""

from __future__ import annotations

from collections.abc import Mapping

import re2

from cep.source.base import BadRecord, FieldType, Record, SourceError
from cep.source.stamps import Stamps
from cep.source.values import Column

_TIMES = frozenset({"timestamp", "time", "ts", "@timestamp"})


class Pattern:
    """Reads lines by `pattern`; `SourceError` where that is no pattern, or names no group."""

    def __init__(self, pattern: str, types: Mapping[str, FieldType], stamps: Stamps) -> None:
        options = re2.Options()
        options.log_errors = False
        try:
            self._search = re2.compile(pattern, options).search
            groups = re2.compile(pattern, options).groupindex
        except re2.error as error:
            reason = error.args[0]
            text = reason.decode() if isinstance(reason, bytes) else str(reason)
            raise SourceError(f"regex:{pattern}: not a regular expression: {text}") from None
        if not groups:
            raise SourceError(
                f"regex:{pattern}: no named groups; each field needs one: (?P<user>\\w+)"
            )
        names = sorted(groups, key=lambda name: groups[name])
        self._fields = [
            (name, groups[name], Column(types.get(name, "any")).value) for name in names
        ]
        self._stamps = stamps

    @property
    def context(self) -> str | None:
        """What is known of earlier stamps."""
        return self._stamps.context

    @context.setter
    def context(self, day: str | None) -> None:
        self._stamps.context = day

    def __call__(self, line: str) -> Record:
        """The groups of a line; `BadRecord` where the pattern does not match."""
        packed = line.encode("utf-8", errors="backslashreplace")
        match = self._search(packed)  # on bytes, since with text it counts characters, slowly
        if match is None:
            raise BadRecord("the line does not match the pattern")
        record: Record = {}
        for name, number, convert in self._fields:
            start, end = match.span(number)
            text = packed[start:end].decode("utf-8", errors="backslashreplace")
            if start >= 0 and (value := convert(text)) is not None:
                is_stamp = name in _TIMES and type(value) is str
                record[name] = self._stamps.whole(text) if is_stamp else value
        return record
