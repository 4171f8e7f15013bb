"""Matches as CSV (RFC 4180, UTF-8): a header, then one row for each match.

The cells are exact. A program that treats a cell beginning with `=` as a formula should be told to
read the file as text, since what stands in a message may come from the log.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence
from typing import TYPE_CHECKING

from cep.sink.columns import COLUMNS, row
from cep.sink.files import OutputFile

if TYPE_CHECKING:
    from cep.match import Match


class CsvSink:
    """Writes a header and one row for each match to `path`, or to standard output for `-`."""

    def __init__(self, path: str, keep: int | None = None) -> None:
        self._out = OutputFile(path, keep)
        self.name = self._out.name
        if self._out.is_empty:
            self._write_rows([COLUMNS])

    def write(self, matches: Sequence[Match]) -> None:
        self._write_rows([tuple(row(match).values()) for match in matches])

    def _write_rows(self, rows: Sequence[Sequence[str | None]]) -> None:
        text = io.StringIO()
        csv.writer(text).writerows(rows)
        self._out.write(text.getvalue().encode("utf-8", "backslashreplace"))

    def flush(self) -> None:
        self._out.flush()

    def settle(self) -> int | None:
        return self._out.settle()

    def close(self) -> None:
        self._out.close()
