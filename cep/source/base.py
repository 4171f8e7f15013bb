"""What every source gives: blocks of records with their places, and what could not be read.

A source only reads and splits; it knows nothing of rules. Out come raw lines where the engine
decodes faster than any reader could (JSON lines), else ready records: mappings of plain values.
Bad input never raises: it becomes a `Reject` that says where it stood and why. Only what cannot
be opened at all raises `SourceError`, in words for the person who named it.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Literal, Protocol

Record = dict[str, object]
FieldType = Literal["string", "number", "bool", "any"]

BLOCK = 1 << 20
"""Bytes of a block of lines, roughly: large enough that the work per block does not count."""

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
    """Some records in a row, either as raw lines or ready.

    `positions` and `line_numbers` are None where `lines` follow each other without a gap; then
    the place of a line is `offset`, the offset of the first in the uncompressed stream, plus the
    lengths of those before it, and its number is `line_number`, counted from 1, plus its index.
    A block without any record says that a followed file has nothing new.
    """

    lines: list[bytes] | None
    records: list[Record] | None
    positions: list[int] | None
    offset: int
    line_number: int
    rejects: list[Reject] = field(default_factory=list)
    line_numbers: list[int] | None = None


class Source(Protocol):
    """An input that is read from its beginning, block by block."""

    name: str
    """The logical name: the path as the user gave it, `-` for standard input."""

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

    stop: threading.Event | None = None
    """Set by the host to end following; what is there by then is still read."""
