"""Rule text and places in it.

A `Source` is one piece of rule text with the name people know it by; a `Span` is a stretch of it.
Every node of the tree and every diagnostic carries a span, so that whatever is said about a rule
can point at the very characters it is about.
"""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass, field
from functools import cached_property


@dataclass(frozen=True, eq=False)
class Source:
    """One rule text: `name` is shown to people (a path as the user gave it, or `<rules>`)."""

    name: str
    text: str

    @cached_property
    def line_starts(self) -> list[int]:
        """Offsets at which lines begin; the first is 0."""
        starts = [0]
        starts.extend(i + 1 for i, char in enumerate(self.text) if char == "\n")
        return starts

    def position(self, offset: int) -> tuple[int, int]:
        """Line and column, both counted from 1, of a character offset. O(log lines)."""
        line = bisect_right(self.line_starts, offset)
        return line, offset - self.line_starts[line - 1] + 1

    def line(self, number: int) -> str:
        """The text of line `number` (from 1) without its line break."""
        start = self.line_starts[number - 1]
        end = self.line_starts[number] if number < len(self.line_starts) else len(self.text)
        return self.text[start:end].rstrip("\r\n")


@dataclass(frozen=True)
class Span:
    """Characters `start` up to (not including) `end` of a source."""

    source: Source = field(repr=False)
    start: int
    end: int

    @property
    def line(self) -> int:
        return self.source.position(self.start)[0]

    @property
    def column(self) -> int:
        return self.source.position(self.start)[1]

    @property
    def text(self) -> str:
        return self.source.text[self.start : self.end]

    def to(self, other: Span) -> Span:
        """The stretch from the start of this span to the end of the other."""
        return Span(self.source, min(self.start, other.start), max(self.end, other.end))

    def covers(self, other: Span) -> bool:
        """Whether the other one lies in this one."""
        return self.source is other.source and self.start <= other.start and other.end <= self.end

    def __str__(self) -> str:
        return f"{self.source.name}:{self.line}:{self.column}"


NOWHERE = Span(Source("<built in>", ""), 0, 0)
"""The span of things that no text wrote."""
