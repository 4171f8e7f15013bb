"""Matches as rows of the table `matches` of an SQLite file.

The id of a match is the primary key and a row is replaced when it comes again, so running the same
rules over the same log twice leaves one row for each match. The file can be read by others (the
`sqlite3` shell, Datasette, `sqlite-utils`) while it is written. `time_us`, the match's time in
microseconds since the epoch, is there to sort and compare by.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import sqlite_utils

from cep.sink.base import SinkError
from cep.sink.columns import COLUMNS, row

if TYPE_CHECKING:
    from cep.match import Match

TABLE = "matches"

PATIENCE = 30.0
"""Seconds to wait for another program that holds the file locked."""

_TYPES: dict[str, type] = {**dict.fromkeys(COLUMNS, str), "time_us": int}


class SqliteSink:
    """Writes each match as a row of the table `matches` in the SQLite file `path`."""

    def __init__(self, path: str) -> None:
        self.name = path
        with _plain_errors(path):
            self._connection = sqlite3.connect(path, timeout=PATIENCE)
            try:
                self._table = _matches_table(sqlite_utils.Database(self._connection))
            except BaseException:
                self._connection.close()
                raise

    def write(self, matches: Sequence[Match]) -> None:
        with _plain_errors(self.name):
            self._table.upsert_all(
                ({**row(match), "time_us": match.time} for match in matches), pk="id"
            )

    def flush(self) -> None:
        """Nothing to do: each batch is a transaction of its own."""

    def settle(self) -> int | None:
        """Nothing to cut: a row that is written again replaces itself."""
        return None

    def close(self) -> None:
        with _plain_errors(self.name):
            self._connection.close()


def ids(path: str) -> list[str]:
    """The ids of the matches in a file. Raises ValueError for one that has no such table."""
    address = Path(path).resolve().as_uri() + "?mode=ro"
    try:
        with closing(sqlite3.connect(address, uri=True, timeout=PATIENCE)) as connection:
            return [name for (name,) in connection.execute(f"select id from {TABLE}")]
    except sqlite3.Error as error:
        raise ValueError(str(error)) from error


def _matches_table(database: sqlite_utils.Database) -> sqlite_utils.db.Table:
    """The table, made if it is missing, with columns added that a newer version knows."""
    database.enable_wal()
    table = database.table(TABLE)
    if not table.exists():
        table.create(_TYPES, pk="id")
        table.create_index(["rule", "time_us"])
    known = table.columns_dict
    for column in _TYPES:
        if column not in known:
            table.add_column(column, _TYPES[column])
    return table


@contextmanager
def _plain_errors(path: str) -> Iterator[None]:
    try:
        yield
    except sqlite3.Error as error:
        raise SinkError(f"cannot write {path}: {error}") from error
