"""What every source gives: blocks of records with their places, and what could not be read.

A source only reads and splits; it knows nothing of rules. Out come raw lines where the engine
decodes faster than any reader could (JSON lines), else ready records: mappings of plain values.
Bad input never raises: it becomes a `Reject` that says where it stood and why. Only what cannot
be opened at all raises `SourceError`, in words for the person who named it.
"""

from __future__ import annotations

import threading
from bisect import bisect_left
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from itertools import accumulate
from typing import TYPE_CHECKING, Literal, Protocol

if TYPE_CHECKING:
    from cep.source.rows import Rows

Record = dict[str, object]
FieldType = Literal["string", "number", "bool", "any"]

BLOCK = 1 << 16
"""Bytes of a block of lines, roughly: large enough that the work per block does not count, and
small enough that the events made of it are in the cache when the next pass over them comes."""

LONGEST_LINE = 64 << 20
"""Bytes of the longest line that is read; what is longer is rejected, so memory stays bounded."""

RAW_KEPT = 4096
"""Bytes kept of input that is rejected unread because it is too long or not text."""


class SourceError(ValueError):
    """An input that cannot be used: missing, unreadable, a folder, of an unknown format."""


class BadRecord(ValueError):
    """One record that cannot be read; `str()` is the reason."""


@dataclass(frozen=True, slots=True)
class Reject:
    """Input that is no record. `count` lines in a row are told as one where they are alike."""

    position: int
    line_number: int
    reason: str
    raw: bytes
    count: int = 1


@dataclass(slots=True)
class Block:
    """Some records in a row: as raw lines, ready, or by columns (`rows`).

    `positions` and `line_numbers` are None where `lines` follow each other without a gap; then
    the place of a line is `offset`, the offset of the first in the uncompressed stream, plus the
    lengths of those before it, and its number is `line_number`, counted from 1, plus its index.
    A block without any record says that a followed file or a pipe has nothing new.
    """

    lines: list[bytes] | None
    records: list[Record] | None
    positions: Sequence[int] | None
    offset: int
    line_number: int
    rejects: list[Reject] = field(default_factory=list)
    line_numbers: Sequence[int] | None = None
    end: int | None = None
    """Where the next block begins; None for lines, whose lengths say it. So for `end_line`."""
    end_line: int | None = None
    context: object = None
    """What the reader knew of earlier lines before this block (a JSON value)."""
    end_context: object = None
    """What it knows after it."""
    is_ascii: bool = False
    """Whether all lines are known to be ASCII."""
    rows: Rows | None = None
    """In place of `records`."""

    @property
    def ready(self) -> Sequence[Record]:
        """The records of a block that has no raw lines."""
        return self.rows if self.rows is not None else self.records or ()

    @property
    def place_after(self) -> tuple[int, int]:
        """Position and line number of what comes after this block."""
        if self.end is not None and self.end_line is not None:
            return self.end, self.end_line
        lines = self.lines or ()
        return self.offset + sum(map(len, lines)), self.line_number + len(lines)

    @property
    def is_empty(self) -> bool:
        """Whether it only says that there is nothing new."""
        return not (self.lines or self.ready or self.rejects)

    def split(self, position: int) -> tuple[Block, Block]:
        """What lies before a position, and what lies at or behind it."""
        before = [reject for reject in self.rejects if reject.position < position]
        after = [reject for reject in self.rejects if reject.position >= position]
        if self.lines is not None:
            return self._split_lines(position, before, after)
        assert self.positions is not None
        records = list(self.ready)
        cut = bisect_left(self.positions, position)
        numbers = self.line_numbers or [self.line_number + i for i in range(len(records))]
        first = replace(self, rejects=before, rows=None)
        second = replace(self, rejects=after, rows=None)
        first.records, second.records = records[:cut], records[cut:]
        first.positions, second.positions = self.positions[:cut], self.positions[cut:]
        first.line_numbers, second.line_numbers = numbers[:cut], numbers[cut:]
        second.offset = max(self.offset, min(position, self.place_after[0]))
        return first, second

    def _split_lines(
        self, position: int, before: list[Reject], after: list[Reject]
    ) -> tuple[Block, Block]:
        assert self.lines is not None
        starts = list(accumulate(map(len, self.lines), initial=self.offset))
        cut = bisect_left(starts, position, hi=len(self.lines))
        first = replace(self, lines=self.lines[:cut], rejects=before)
        offset, number = starts[cut], self.line_number + cut
        first.end, first.end_line = offset, number
        rest = replace(
            self, lines=self.lines[cut:], offset=offset, line_number=number, rejects=after
        )
        return first, rest


@dataclass(frozen=True, slots=True)
class Part:
    """One of the files that are read under one name: where its first byte stands among all
    positions, the fingerprint of its content, and its place on the disk."""

    base: int
    fingerprint: str
    device: int = 0
    inode: int = 0


@dataclass(frozen=True, slots=True)
class Start:
    """Where to go on in an input that has been read before.

    `parts`: the files that were read, the first of which holds `offset`. `context`: what the reader
    knew there. `read_to`: where the last reading ended. Without parts the input cannot be read
    again (a pipe): what comes now has positions after `read_to`.
    """

    offset: int
    line_number: int
    read_to: int
    context: object = None
    parts: tuple[Part, ...] = ()
    waiting: int = 0
    """Events between `offset` and `read_to` that have not had their turn."""


class Input(Protocol):
    """What is read, whatever its format."""

    @property
    def can_resume(self) -> bool:
        """Whether it can be read again from any place; a pipe cannot."""
        ...

    @property
    def format(self) -> str:
        """The name of its format."""
        ...

    @property
    def remark(self) -> str | None:
        """What has become of it since it was last read, if that must be said."""
        ...

    @property
    def has_loose_end(self) -> bool:
        """Whether a last line without an end was left where it is."""
        ...

    @property
    def parts(self) -> Sequence[Part]:
        """The files that have been read so far, the latest last."""
        ...


class Source(Protocol):
    """An input that is read block by block, from its beginning or from a `Start`."""

    name: str
    """The logical name: the path as the user gave it, `-` for standard input."""

    @property
    def input(self) -> Input:
        """Where the blocks come from."""
        ...

    def blocks(self) -> Iterator[Block]:
        """All that there is to read, in order. With `follow` it ends only when told to stop."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceOptions:
    """How to read, the same for every format; what a format cannot use does not concern it."""

    wanted: frozenset[str] | None = None
    """Columns that rules read, for formats with columns (CSV, Parquet). None: all of them."""

    types: Mapping[str, FieldType] = field(default_factory=dict)
    """Types of fields whose text would else be typed by its form: `{"user": "string"}`."""

    now: datetime | None = None
    """The latest year that a time without a year may lie in. Default: when the file was changed."""

    follow: bool = False
    """Go on at the end of the file: wait for growth, notice rotation and truncation."""

    poll: float = 0.2
    """Seconds to wait at the end of a followed file before an empty block is given."""

    whole_lines: bool = False
    """Leave a last line without an end where it is: more of it may come before the next reading."""

    live: bool = False
    """Give an empty block when a pipe says nothing, too, instead of waiting until it does."""

    stop: threading.Event | None = None
    """Set by the host to end following; what is there by then is still read."""
