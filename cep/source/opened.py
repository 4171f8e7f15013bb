"""An input that has been looked at: its first bytes tell the format, and it can be read in full.

A file is opened once to look and again for each reading. A pipe cannot be opened twice: what was
seen of it is kept and given first, and it can be read only once.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from datetime import UTC, datetime

from cep.source.base import SourceError, SourceOptions
from cep.source.follow import Followed
from cep.source.lines import LineBlock, LineReader
from cep.source.raw import FileReader, Prefixed, Reader, is_regular, open_file, read_head, unpack

LOOK = 1 << 14
STANDARD_INPUT = "-"


class Opened:
    """A path (or `-`) with `head`, the beginning of its content, uncompressed."""

    def __init__(self, path: str, options: SourceOptions) -> None:
        self.name = path
        self.options = options
        file = open_file(path)
        self.is_regular = path != STANDARD_INPUT and is_regular(file)  # it cannot be opened again
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
        if options.follow and self.compression:
            reader.close()
            raise SourceError(f"{path}: a compressed file cannot be followed")

    def latest(self) -> datetime:
        """The moment that no stamp in the file can be later than; it moves with live input."""
        if self.options.now is not None:
            return self.options.now
        is_live = self.options.follow or not self.is_regular
        return datetime.now(UTC) if is_live else self._changed

    def reader(self) -> tuple[Reader, int]:
        """The content from its beginning, and the offset of its first byte."""
        if self._waiting is not None:
            reader, self._waiting = self._waiting, None
            return reader, self._mark
        if not self.is_regular:
            raise SourceError(f"{self.name}: a pipe can be read only once")
        if self.options.follow:
            return Followed(self.name, self._mark), self._mark
        reader, _, mark = unpack(open_file(self.name), self.name)
        return reader, mark

    def lines(self) -> Iterator[LineBlock]:
        """The content as blocks of lines."""
        reader, offset = self.reader()
        return LineReader(reader, offset, self.options).blocks()

    def _look(self, reader: Reader) -> bytes:
        """The first bytes; of a pipe no more than it says at once, or a whole line of it."""
        if self.is_regular:
            return read_head(reader, LOOK)
        head = b""
        while b"\n" not in head and len(head) < LOOK and (chunk := reader.read(LOOK)):
            head += chunk
        return head


def _changed(file: FileReader) -> datetime:
    """When a file was last changed; of a pipe: now."""
    now = datetime.now(UTC)
    if not is_regular(file):
        return now
    try:
        return datetime.fromtimestamp(os.fstat(file.descriptor).st_mtime, UTC)
    except (OSError, OverflowError, ValueError):
        return now
