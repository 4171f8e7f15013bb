"""The byte file under the file sinks: standard output or a path, errors in plain words.

A path is opened at once and emptied, so that an unwritable place is known before the first event
is read. Files are buffered; `flush` is what makes a match visible. A run that goes on opens it with
the length that was durable (`keep`): what lies behind is cut off, since it will be written again.
"""

from __future__ import annotations

import os
import select
import stat
import sys
from contextlib import suppress
from typing import BinaryIO

from cep.sink.base import plain_errors

BUFFER = 1 << 18
"""Bytes held back before a write reaches the system without a flush."""


class OutputFile:
    """Bytes to a path, or to standard output for `-`.

    >>> import tempfile, pathlib
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "out.jsonl"
    >>> out = OutputFile(str(path)); out.write(b"{}\\n"); out.close()
    >>> path.read_bytes()
    b'{}\\n'
    """

    def __init__(self, path: str, keep: int | None = None) -> None:
        self.name = "standard output" if path == "-" else path
        self._owned = path != "-"
        self._file: BinaryIO | None
        self._settled: int | None = None
        with plain_errors(self.name):
            self._file = _opened(path, keep) if self._owned else sys.stdout.buffer
            self._can_be_cut = self._owned and stat.S_ISREG(os.fstat(self._file.fileno()).st_mode)
            self.is_empty = not self._can_be_cut or self._file.tell() == 0

    def write(self, data: bytes) -> None:
        assert self._file is not None, f"{self.name} is closed"
        left = memoryview(data)
        with plain_errors(self.name):
            while left:  # standard output may be unbuffered, and then takes a part of it at a time
                written = self._file.write(left)
                if written is None:
                    select.select([], [self._file], [])
                left = left[written or 0 :]

    def settle(self) -> int | None:
        """Forces what has been written to the disk; the length of the file, if it can be cut."""
        if self._file is None or not self._can_be_cut:
            self.flush()
            return None
        with plain_errors(self.name):
            length = self._file.tell()
            if length != self._settled:
                self._file.flush()
                os.fsync(self._file.fileno())
                if self._settled is None:
                    _settle_name(self.name)
                self._settled = length
        return length

    def flush(self) -> None:
        if self._file is not None:
            with plain_errors(self.name):
                self._file.flush()

    def close(self) -> None:
        """Flush, and close what was opened here, also when the flush fails."""
        file, self._file = self._file, None
        if file is None:
            return
        with plain_errors(self.name):
            if self._owned:
                file.close()
            else:
                file.flush()


def _settle_name(path: str) -> None:
    """Forces to the disk that there is such a file; its content alone may be nameless after a
    power cut. Systems that cannot do that for a folder do it by themselves."""
    with suppress(OSError):
        folder = os.open(os.path.dirname(os.path.abspath(path)), os.O_RDONLY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)


def _opened(path: str, keep: int | None) -> BinaryIO:
    """The file, empty or with its first `keep` bytes (all of them, should there be fewer)."""
    if not keep or not os.path.isfile(path):
        return open(path, "wb", buffering=BUFFER)
    file = open(path, "r+b", buffering=BUFFER)  # noqa: SIM115 - closed by close()
    if file.seek(0, os.SEEK_END) > keep:
        file.truncate(keep)
    file.seek(0, os.SEEK_END)
    return file
