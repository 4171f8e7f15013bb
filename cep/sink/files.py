"""The byte file under the file sinks: standard output or a path, errors in plain words.

A path is opened at once and emptied, so that an unwritable place is known before the first event
is read. Files are buffered; `flush` is what makes a match visible.
"""

from __future__ import annotations

import sys
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

    def __init__(self, path: str) -> None:
        self.name = "standard output" if path == "-" else path
        self._owned = path != "-"
        self._file: BinaryIO | None
        with plain_errors(self.name):
            self._file = (
                open(path, "wb", buffering=BUFFER)  # noqa: SIM115 - closed by close()
                if self._owned
                else sys.stdout.buffer
            )

    def write(self, data: bytes) -> None:
        assert self._file is not None, f"{self.name} is closed"
        with plain_errors(self.name):
            self._file.write(data)

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
