"""A file that grows: reads what is added, and goes over to the new file when it is rotated.

Rotated means that the path leads to another file, or that the file has become shorter than what
has been read. What was still to be read of the old file comes first. Positions go on counting
through all files, so that later events have larger ones.
"""

from __future__ import annotations

import os
from contextlib import suppress

from cep.source.base import SourceError
from cep.source.raw import FileReader, open_file


class Followed:
    """A `Reader` whose b"" means: nothing new at the moment. Begins after `skip` bytes.

    `turned` is true after a read that went over to a new file; a line that the old one left
    without an end is over then.
    """

    def __init__(self, path: str, skip: int = 0) -> None:
        self._path = path
        self._file: FileReader = open_file(path)
        self._done = os.lseek(self._file.descriptor, skip, os.SEEK_SET)
        self.turned = False

    @property
    def problem(self) -> str | None:
        return self._file.problem

    def read(self, size: int) -> bytes:
        self.turned = False
        chunk = self._file.read(size)
        if not chunk and self._was_replaced():
            chunk = self._file.read(size)  # may have come between the read and the rotation
            if not chunk:
                self._turn()
        elif not chunk and self._was_cut():
            os.lseek(self._file.descriptor, 0, os.SEEK_SET)
            self._done = 0
            self.turned = True
        self._done += len(chunk)
        return chunk

    def close(self) -> None:
        self._file.close()

    def _was_replaced(self) -> bool:
        with suppress(OSError):
            there = os.stat(self._path)
            return not os.path.samestat(there, os.fstat(self._file.descriptor))
        return False

    def _was_cut(self) -> bool:
        with suppress(OSError):
            return os.fstat(self._file.descriptor).st_size < self._done
        return False

    def _turn(self) -> None:
        with suppress(SourceError):
            new = open_file(self._path)
            self._file.close()
            self._file = new
            self._done = 0
            self.turned = True
