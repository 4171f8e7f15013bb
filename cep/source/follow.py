"""Files that follow each other under one name: rotated ones, and the one that still grows.

Rotated means that the path leads to another file, or that the file has become shorter than what
has been read. What was still to be read of the old file comes first. Positions go on counting
through all files, so that later events have larger ones.
"""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass

from cep.source.base import Part, SourceError
from cep.source.parts import HEAD, Piece, fingerprint
from cep.source.raw import (
    CHUNK,
    FileReader,
    Prefixed,
    Reader,
    Transcoded,
    open_file,
    read_head,
    unpack,
)


@dataclass(slots=True)
class _Open:
    """A file that is being read: `done` bytes of its content so far, up to `stop`."""

    file: FileReader
    reader: Reader
    plain: bool
    mark: int
    base: int
    done: int
    stop: int | None
    head: bytes

    def read(self, size: int) -> bytes:
        if self.stop is not None:
            size = min(size, self.stop - self.done)
        chunk = self.reader.read(size) if size > 0 else b""
        if self.stop is not None:
            chunk = chunk[: max(self.stop - self.done, 0)]
        self.done += len(chunk)
        return chunk

    def part(self) -> Part:
        """Its place and fingerprint as of now."""
        status = os.fstat(self.file.descriptor)
        if self.plain and len(self.head) < HEAD:
            with suppress(OSError):
                self.head = os.pread(self.file.descriptor, HEAD, self.mark)
        return Part(self.base, fingerprint(self.head), status.st_dev, status.st_ino)


class Followed:
    """A `Reader` of pieces, one after the other. With `path` the file there is followed from then
    on, and b"" means: nothing new at the moment.

    `turned` is true after a read that went over to another file; a line that the one before left
    without an end is over then, and positions go on at `position`. `over`: nothing more will come.
    """

    def __init__(self, pieces: Sequence[Piece], path: str | None) -> None:
        self._path = path
        self._pieces = deque(pieces)
        self._earlier: list[Part] = []
        self._now = self._opened(self._pieces.popleft(), 0)
        self.position = self._now.base + self._now.done
        self.turned = self.over = False
        self.problem: str | None = None
        self._closed = False

    @property
    def parts(self) -> list[Part]:
        """The files so far, the present one last."""
        return self._earlier if self._closed else [*self._earlier, self._now.part()]

    def read(self, size: int) -> bytes:
        self.turned = False
        self.problem = None
        chunk = self._now.read(size)
        if not chunk and not self._pieces and self._was_replaced():
            chunk = self._now.read(size)  # may have come between the read and the rotation
            if not chunk:
                self._turn(Piece(self._path or "", None))
        elif not chunk and self._pieces:
            self.problem = self._now.reader.problem
            self._turn(self._pieces.popleft())
        elif not chunk and self._was_cut():
            self._turn(Piece(self._path or "", None))
        elif not chunk:
            self.problem = self._now.reader.problem
            self.over = self._path is None or self.problem is not None
        return chunk

    def close(self) -> None:
        if not self._closed:
            self._earlier.append(self._now.part())
            self._closed = True
            self._now.reader.close()

    def _was_replaced(self) -> bool:
        if self._path is None:
            return False
        with suppress(OSError):
            there = os.stat(self._path)
            return not os.path.samestat(there, os.fstat(self._now.file.descriptor))
        return False

    def _was_cut(self) -> bool:
        if self._path is None or not self._now.plain:
            return False
        with suppress(OSError):
            return os.fstat(self._now.file.descriptor).st_size < self._now.done
        return False

    def _turn(self, piece: Piece) -> None:
        """Goes over to another file; stays with this one where that cannot be opened yet."""
        with suppress(SourceError):
            before = self._now.part()
            now = self._opened(piece, self._now.base + self._now.done)
            self._now.reader.close()
            self._earlier.append(before)
            self._now = now
            self.position = now.base + now.done
            self.turned = True

    def _opened(self, piece: Piece, base: int) -> _Open:
        """Opens a piece and passes over what is not wanted of it."""
        file = open_file(piece.path)
        reader, compression, mark = unpack(file, piece.path)
        plain = not compression and not isinstance(reader, Transcoded)
        head = b"" if plain else read_head(reader, HEAD)[:HEAD]
        base = piece.base if piece.base is not None else base
        skip = max(piece.skip, mark)
        if plain:
            os.lseek(file.descriptor, skip, os.SEEK_SET)
            return _Open(file, file, plain, mark, base, skip, piece.stop, head)
        reader.close()
        file = open_file(piece.path)
        reader, _, _ = unpack(file, piece.path)
        return _Open(file, _without(reader, skip - mark), plain, mark, base, skip, piece.stop, head)


def _without(reader: Reader, length: int) -> Reader:
    """A stream without its first bytes."""
    while length > 0 and (chunk := reader.read(min(CHUNK, length))):
        if len(chunk) > length:
            return Prefixed(chunk[length:], reader)
        length -= len(chunk)
    return reader
