"""Opening a state file, bringing it to the present form, and saying what went wrong with it."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import msgspec
from sqlite_utils import Database
from sqlite_utils.migrations import Migrations

from cep.state.sqlite.schema import MIGRATIONS, VIEWS
from cep.state.store import StateError

LOCKED_FOR = 1.0
"""Seconds that one try waits for another program that writes to the file."""

CACHE_KIB = 64 << 10
"""Memory for pages of the file, most of all for the index over the keys."""

LOG_KEPT = 64 << 20
"""Bytes that the write-ahead log keeps for use again after a large epoch."""

_PASSING = {sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED, sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR}


def connect(path: str) -> sqlite3.Connection:
    """A connection without transactions of its own, that forces commits to the disk."""
    connection = sqlite3.connect(
        path, timeout=LOCKED_FOR, isolation_level=None, check_same_thread=False
    )
    try:
        for setting in (
            "synchronous = full",
            "fullfsync = on",  # macOS: the disk's own cache too
            "checkpoint_fullfsync = on",
            "cell_size_check = on",  # damage is noticed where it is read
            f"cache_size = -{CACHE_KIB}",
            f"journal_size_limit = {LOG_KEPT}",
        ):
            connection.execute(f"pragma {setting}")
    except BaseException:
        connection.close()
        raise
    return connection


def prepare(connection: sqlite3.Connection, path: str) -> None:
    """Make tables and views, or bring those of an older version to the present form.

    Raises `StateError` for the file of a newer version, which stays as it is.
    """
    database = Database(connection)
    steps = _migrations()
    unknown = {step.name for step in steps.applied(database)} - MIGRATIONS.keys()
    if unknown:
        raise StateError(
            f"{path} was written by a newer version of cep ({max(unknown)}): "
            f"use that version, or name another file"
        )
    mode = connection.execute("pragma journal_mode = wal").fetchone()[0]
    if mode != "wal":
        raise StateError(
            f"the file system of {path} has no shared memory, so SQLite can keep no write-ahead "
            f"log there: put the state file on a local disk"
        )
    steps.apply(database)
    with database.atomic():
        for name, query in VIEWS.items():
            database.create_view(name, query, replace=True)


def _migrations() -> Migrations:
    steps = Migrations("cep.state")
    for name, statements in MIGRATIONS.items():
        steps(name=name)(_step(name, statements))
    return steps


def _step(name: str, statements: tuple[str, ...]) -> Callable[[Database], None]:
    def apply(database: Database) -> None:
        for statement in statements:
            database.execute(statement)

    apply.__name__ = name
    return apply


def read_view(
    path: str,
    view: str,
    where: dict[str, str] | None = None,
    limit: int = -1,
    largest: str | None = None,
) -> list[dict[str, Any]]:
    """Rows of a documented view, also while an engine uses the file.

    `where` says what columns must be equal to; `limit` how many rows at most; `largest` names the
    column whose largest values come first. Raises `StateError` if there is no such file or view.
    """
    where = where or {}
    require_file(path)
    conditions = " and ".join(f"{_quoted(column)} = ?" for column in where) or "true"
    order = f"order by {_quoted(largest)} desc" if largest is not None else ""
    query = f"select * from {_quoted(view)} where {conditions} {order} limit ?"
    with plain_errors(path), closing(_look(path)) as connection:
        known = [row[1] for row in connection.execute(f"pragma table_info({_quoted(view)})")]
        if not known:
            raise StateError(f"{path} has no view {view}: it has {', '.join(VIEWS)}")
        for column in where:
            if column not in known:
                raise StateError(f"the view {view} has no {column}: it has {', '.join(known)}")
        rows = connection.execute(query, (*where.values(), limit)).fetchall()
    return [dict(row) for row in rows]


def require_file(path: str) -> None:
    """Raises `StateError` where there is no such file, or one that holds something else: it is not
    to be made one by looking at it."""
    if not Path(path).is_file():
        raise StateError(f"there is no state file {path}")
    query = "select exists (select 1 from sqlite_master where name = '_epochs')"
    with plain_errors(path), closing(_look(path)) as connection:
        if not connection.execute(query).fetchone()[0]:
            raise StateError(f"{path} is no state file of cep: those are made by `cep run --state`")


def look_only(path: str) -> sqlite3.Connection:
    """A connection that only reads, and takes rows as they are."""
    require_file(path)
    connection = _look(path)
    connection.row_factory = None
    return connection


def _look(path: str) -> sqlite3.Connection:
    """A connection that only reads."""
    address = Path(path).resolve().as_uri() + "?mode=ro"
    connection = sqlite3.connect(address, uri=True, timeout=LOCKED_FOR)
    connection.row_factory = sqlite3.Row
    return connection


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def primary_code(error: sqlite3.Error) -> int:
    """SQLite's number of the error, without the details."""
    return getattr(error, "sqlite_errorcode", sqlite3.SQLITE_ERROR) & 0xFF


def is_passing(error: sqlite3.Error) -> bool:
    """Whether it may go well the next time."""
    return primary_code(error) in _PASSING


def state_error(error: sqlite3.Error, path: str) -> StateError:
    """What an error of SQLite means for the owner of the file, and what to do."""
    code = primary_code(error)
    if "decode to UTF-8" in str(error):
        code = sqlite3.SQLITE_CORRUPT
    if code in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED):
        return StateError(f"{path} is locked by another program that writes to it")
    if code == sqlite3.SQLITE_FULL:
        return StateError(f"the disk is full, {path} cannot grow")
    if code == sqlite3.SQLITE_IOERR:
        return StateError(f"the disk does not read or write {path} ({error}): is it full?")
    if code in (sqlite3.SQLITE_READONLY, sqlite3.SQLITE_PERM, sqlite3.SQLITE_CANTOPEN):
        return StateError(f"cannot write {path} ({error}): check the rights of file and folder")
    if code == sqlite3.SQLITE_NOTADB:
        return StateError(f"{path} is not an SQLite file, or its beginning is damaged")
    if code == sqlite3.SQLITE_CORRUPT:
        return _damaged(path, error)
    return StateError(f"{path}: {error}")


def _damaged(path: str, error: Exception) -> StateError:
    return StateError(
        f"{path} is damaged ({error}): put a copy in its place, or put it aside and start over"
    )


@contextmanager
def plain_errors(path: str) -> Iterator[None]:
    """Errors of SQLite, and of what it gave, become `StateError`."""
    try:
        yield
    except msgspec.MsgspecError as error:
        raise _damaged(path, error) from error
    except sqlite3.Error as error:
        raise state_error(error, path) from error


def stored_name(name: str) -> str:
    """A name as it stands in the file: paths may hold bytes that are no text.

    >>> stored_name("a.jsonl"), stored_name("\\udcff.jsonl")
    ('a.jsonl', '"\\\\udcff.jsonl"')
    """
    if name.startswith('"') or not _is_text(name):
        return json.dumps(name)
    return name


def given_name(stored: str) -> str:
    """The name that `stored_name` has stored."""
    return str(json.loads(stored)) if stored.startswith('"') else stored


def _is_text(name: str) -> bool:
    try:
        name.encode()
    except UnicodeEncodeError:
        return False
    return True
