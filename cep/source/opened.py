"""An input that has been looked at: its first bytes tell the format, and it can be read in full.

A file is opened once to look and again for each reading. A pipe cannot be opened twice: what was
seen of it is kept and given first, and it can be read only once. With a `Start` reading goes on
there, wherever rotation has put the file since.
"""

from __future__ import annotations

import os
from collections.abc import Generator, Iterator, Sequence
from dataclasses import replace
from datetime import UTC, datetime

from cep.source.base import Block, Part, SourceError, SourceOptions, Start
from cep.source.follow import Followed
from cep.source.lines import LineBlock, LineReader
from cep.source.parts import Piece, find, fingerprint
from cep.source.raw import (
    FileReader,
    Piped,
    Prefixed,
    Reader,
    is_regular,
    open_file,
    read_head,
    unpack,
)

LOOK = 1 << 14
STANDARD_INPUT = "-"


class Opened:
    """A path (or `-`) with `head`, the beginning of its content, uncompressed.

    `name` is its logical name, by default the path.
    """

    def __init__(
        self,
        path: str,
        options: SourceOptions,
        start: Start | None = None,
        name: str | None = None,
    ) -> None:
        self.name = path if name is None else name
        self._given = path
        self.options = options
        self.start = start
        self.remark: str | None = None
        self.format = ""
        """The name of its format, once that is known."""
        self._pieces = self._find(path, start)
        self.path = self._pieces[-1].path
        file = open_file(self.path)
        self.is_regular = path != STANDARD_INPUT and is_regular(file)  # it cannot be opened again
        self._status = os.fstat(file.descriptor)
        self._changed = _changed(file)
        try:
            reader, self.compression, self._mark = unpack(file, path)
        except SourceError:
            file.close()
            raise
        self.head = self._look(reader)
        self._waiting: Reader | None = None
        if self.is_regular:
            reader.close()
        else:
            self._waiting = Prefixed(self.head, reader)
            if options.live and not self.compression:
                self._waiting = Piped(self._waiting, file)
        if options.follow and self.compression:
            reader.close()
            raise SourceError(f"{path}: a compressed file cannot be followed")
        self._files: Followed | None = None
        self._lines: LineReader | None = None

    def _find(self, path: str, start: Start | None) -> Sequence[Piece]:
        if start is None:
            return (Piece(path, 0),)
        if not start.parts:
            return (Piece(path, start.read_to),)
        found = find(path, start)
        if found.remark is not None:
            self.remark = f"{path} {found.remark}"
        return found.pieces

    # ------------------------------------------------------------------ where it stands

    @property
    def can_resume(self) -> bool:
        """Whether it can be read again from any place."""
        return self.is_regular

    @property
    def has_loose_end(self) -> bool:
        """Whether a last line without an end was left where it is."""
        return self._lines is not None and self._lines.has_loose_end

    @property
    def parts(self) -> Sequence[Part]:
        """The files that have been read so far, the latest last."""
        if self._files is not None:
            return self._files.parts
        if not self.is_regular:
            return ()
        if self.resumed_at is not None:
            return self.resumed_at.parts
        status = self._status
        base = self._pieces[-1].base or 0
        return [Part(base, fingerprint(self.head), status.st_dev, status.st_ino)]

    @property
    def resumed_at(self) -> Start | None:
        """Where the present file is gone on with; None: it is read from its beginning."""
        first = self._pieces[0]
        return self.start if self.start is not None and first.skip > 0 else None

    @property
    def base(self) -> int:
        """The position of the first byte of the present file."""
        piece = self._pieces[-1]
        if piece.base is not None:
            return piece.base
        return self.start.read_to if self.start is not None else 0

    def latest(self) -> datetime:
        """The moment that no stamp in the file can be later than; it moves with live input."""
        if self.options.now is not None:
            return self.options.now
        is_live = self.options.follow or not self.is_regular
        return datetime.now(UTC) if is_live else self._changed

    # ------------------------------------------------------------------ reading

    def from_beginning(self) -> tuple[Reader, int]:
        """The content from its beginning, and the position of its first byte."""
        if self._waiting is not None:
            reader, self._waiting = self._waiting, None
            return reader, self.base + self._mark
        if not self.is_regular:
            raise SourceError(f"{self.name}: a pipe can be read only once")
        reader, _, mark = unpack(open_file(self.path), self.path)
        return reader, self.base + mark

    def lines(self) -> Iterator[LineBlock]:
        """The content as blocks of lines, from where reading goes on."""
        resumed = self.resumed_at
        number = resumed.line_number if resumed is not None else 1
        if self.is_regular and (self.options.follow or self.start is not None):
            followed = self._given if self.options.follow else None
            self._files = Followed(self._pieces, followed)
            reader, offset = self._files, self._files.position
            self._lines = LineReader(reader, offset, self.options, number)
        else:
            options = replace(
                self.options, whole_lines=self.options.whole_lines and self.is_regular
            )
            self._lines = LineReader(*self.from_beginning(), options, number)
        return self._lines.blocks()

    def first_lines(self) -> Generator[LineBlock, None, None]:
        """The lines of the file that is gone on with, from its beginning: for its header."""
        piece = self._pieces[0]
        reader = Followed([Piece(piece.path, piece.base)], None)
        return LineReader(reader, reader.position, self.options).blocks()

    def _look(self, reader: Reader) -> bytes:
        """The first bytes; of a pipe no more than it says at once, or a whole line of it."""
        if self.is_regular:
            return read_head(reader, LOOK)
        head = b""
        while b"\n" not in head and len(head) < LOOK and (chunk := reader.read(LOOK)):
            head += chunk
        return head


def unread(input: Opened, blocks: Iterator[Block]) -> Iterator[Block]:
    """Of blocks that begin with the file what has not been read before: for formats in which it is
    not possible to begin in the middle."""
    start = input.resumed_at
    for block in blocks:
        if start is None or block.offset >= start.offset:
            yield block
        elif block.place_after[0] > start.offset:
            yield block.split(start.offset)[1]


def _changed(file: FileReader) -> datetime:
    """When a file was last changed; of a pipe: now."""
    now = datetime.now(UTC)
    if not is_regular(file):
        return now
    try:
        return datetime.fromtimestamp(os.fstat(file.descriptor).st_mtime, UTC)
    except (OSError, OverflowError, ValueError):
        return now
