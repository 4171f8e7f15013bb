"""Lists and tables from files: small files that rules look things up in, read whole.

In: a path. Out: the items of a list, or the rows of a table by key; `TableError` says in words what
is wrong with the file. These files are part of the rules: one bad line makes the whole file
unusable, so that no lookup misses a row that someone believes to be there.

* A **list** is text, one item a line. Blanks at both ends of a line do not count, nor do blank
  lines. `#` at the start of a line or after white space begins a comment. Quotes around an item
  are taken off, and what stands between them is the item, `#` too. Items are texts.
* A **table** is CSV, TSV, JSON lines, a JSON array or Parquet (plain, gzip or zstd), or a table or
  view of a SQLite database (`.db`, `.sqlite`, `.sqlite3`): the one called like the table of the
  rules, or the only one. Values are typed as those of events are. Of rows with equal keys the last
  one counts.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from cep.event import lookup, unbox
from cep.key import key_of
from cep.source.base import BadRecord, Block, SourceError
from cep.source.json_line import read_object
from cep.source.opening import open_source
from dsl.diagnostics import did_you_mean

Row = Mapping[str, Any]
Stamp = tuple[int, int]
"""When a file was changed (nanoseconds) and how long it is: tells whether to read it again."""

DATABASES = (".db", ".sqlite", ".sqlite3")
_FORMATS = "CSV, JSON lines, Parquet or SQLite"


class TableError(ValueError):
    """A file that cannot be a list or a table; `str()` is the reason."""


def stamp_of(path: str) -> Stamp | None:
    """What changes when the file does; None for a file that is not there."""
    try:
        found = os.stat(path)
    except (OSError, ValueError):
        return None
    return found.st_mtime_ns, found.st_size


_QUOTED = re.compile(r"""\s*(?:"([^"]*)"|'([^']*)')\s*(?:(?<=\s)#.*)?""")
_COMMENT = re.compile(r"(?:^|\s)#.*")


def item_of(line: str) -> str | None:
    """The item on a line of a list; None where there is none.

    >>> item_of("10.0.0.0/8  # office"), item_of('"a # b"'), item_of("a#b"), item_of("# none")
    ('10.0.0.0/8', 'a # b', 'a#b', None)
    """
    quoted = _QUOTED.fullmatch(line)
    if quoted is not None:
        return quoted[1] if quoted[1] is not None else quoted[2]
    return _COMMENT.sub("", line).strip() or None


def read_list(path: str, wrong: Callable[[str], str | None] = lambda _: None) -> tuple[str, ...]:
    """The items of a list, in the order of the file, each once; `wrong` says what is wrong with
    one. Raises TableError."""
    try:
        text = Path(path).read_bytes().decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = error.object.count(b"\n", 0, error.start) + 1
        raise TableError(f"line {line} is not UTF-8 text") from None
    except (OSError, ValueError) as error:
        raise TableError(_why(error)) from None
    items: dict[str, None] = {}
    for number, row in enumerate(text.splitlines(), 1):
        item = item_of(row)
        if item is None:
            continue
        problem = wrong(item)
        if problem is not None:
            raise TableError(f"line {number}: {problem}")
        items[item] = None
    return tuple(items)


def read_table(path: str, key: tuple[str, ...], name: str) -> dict[Any, Row]:
    """The rows of table `name` by the value at `key`, as `cep.key.key_of` has it.

    Raises TableError for a file that cannot be read, and for a row without a key.
    """
    is_database = path.lower().endswith(DATABASES)
    rows = _rows_of_database(path, name) if is_database else _rows_of_file(path)
    found: dict[Any, Row] = {}
    names: dict[str, None] = {}
    for place, row in rows:
        names.update(dict.fromkeys(row))
        part = key_of(unbox(lookup(row, key)))
        if part is None:
            raise TableError(_no_key(place, row, key, names))
        found[part] = row
    return found


def _no_key(place: str, row: Row, key: tuple[str, ...], names: Iterable[str]) -> str:
    dotted = ".".join(key)
    if lookup(row, key).__class__ in (dict, list):
        return f"{place}: the key `{dotted}` is neither text, number nor truth value"
    guess = did_you_mean(dotted, names) if dotted not in names else None
    return f"{place} has no `{dotted}`" + (f"; did you mean `{guess}`?" if guess else "")


# ---------------------------------------------------------------------------- files


def _rows_of_file(path: str) -> Iterator[tuple[str, Row]]:
    if not os.path.exists(path):
        raise TableError("there is no such file")
    try:
        source = open_source(path)
        if type(source).__name__ not in _SOURCES:
            raise TableError(f"it is no table: {_FORMATS} is wanted")
        for block in source.blocks():
            for reject in block.rejects:
                raise TableError(f"line {reject.line_number}: {reject.reason}")
            yield from _rows_of_block(block)
    except SourceError as error:
        raise TableError(str(error).removeprefix(f"{path}: ")) from None


_SOURCES = frozenset({"Delimited", "JsonArray", "JsonLines", "Parquet"})


def _rows_of_block(block: Block) -> Iterator[tuple[str, Row]]:
    for index, line in enumerate(block.lines or ()):
        if line.strip():
            place = f"line {_number(block, index)}"
            try:
                yield place, read_object(line)
            except BadRecord as error:
                raise TableError(f"{place}: {error}") from None
    try:
        for index, record in enumerate(block.ready):
            yield f"line {_number(block, index)}", record
    except BadRecord as error:
        raise TableError(str(error)) from None


def _number(block: Block, index: int) -> int:
    if block.line_numbers is not None:
        return block.line_numbers[index]
    return block.line_number + index


# ---------------------------------------------------------------------------- databases


def _rows_of_database(path: str, name: str) -> Iterator[tuple[str, Row]]:
    import sqlite3

    if not os.path.isfile(path):
        raise TableError("there is no such file")
    try:
        database = sqlite3.connect(f"{Path(path).absolute().as_uri()}?mode=ro", uri=True)
        try:
            table = _table_of(database, name)
            rows = database.execute('SELECT * FROM "{}"'.format(table.replace('"', '""')))
            columns = [column[0] for column in rows.description]
            for number, values in enumerate(rows, 1):
                row = dict(zip(columns, map(_plain, values), strict=True))
                yield f"row {number} of `{table}`", row
        finally:
            database.close()
    except (sqlite3.Error, OverflowError) as error:
        raise TableError(f"SQLite says: {error}") from None


def _table_of(database: Any, name: str) -> str:
    """The table or view to read: the one of this name, or the only one."""
    query = "SELECT name FROM sqlite_master WHERE type IN ('table', 'view')"
    names = [row[0] for row in database.execute(query) if not row[0].startswith("sqlite_")]
    if name in names:
        return name
    if len(names) == 1:
        return str(names[0])
    there = ", ".join(f"`{found}`" for found in sorted(names))
    raise TableError(f"it has no table `{name}`" + (f"; there are: {there}" if names else ""))


def _plain(value: Any) -> Any:
    return value.decode("utf-8", errors="backslashreplace") if isinstance(value, bytes) else value


def _why(error: Exception) -> str:
    if isinstance(error, FileNotFoundError):
        return "there is no such file"
    if isinstance(error, IsADirectoryError):
        return "it is a folder, not a file"
    if isinstance(error, OSError):
        return error.strerror or str(error)
    return str(error)
