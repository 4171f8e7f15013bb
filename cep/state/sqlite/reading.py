"""What a state file holds, read in large pieces.

SQLite hands over one text with thousands of rows instead of rows one by one: while other threads of
the host are busy, each row would have to wait for Python's lock.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Collection, Iterator, Sequence
from typing import Any

import msgspec

from cep.state.sqlite.file import given_name, plain_errors, primary_code
from cep.state.sqlite.schema import WHOLE
from cep.state.store import OutRow, Owner, RuleVersion, Snapshot, SourceRow, StateRow, StateText

PIECE_ROWS = 10_000
"""Most rows that are read at once."""

PIECE_BYTES = 8 << 20
"""Bytes that are read at once, roughly."""

# The plus keeps SQLite from using the index of owners: it would sort the rows for each piece.
_PIECE = """
    select max(number), json_group_array(json_array(owner, key, whole))
    from (select number, owner, key, {} as whole from _states
        where number > ? and +owner in ({}) order by number limit ?)"""

_KEYS = """
    select max(number), json_group_array(key) from (select number, key from _states
        where number > ? and +owner = {} order by number limit ?)"""

_SOME = """
    select json_group_array(json_array(owner, key, {})) from _states
    where number in (select value from json_each(?))"""

_OUTBOX = """
    select max(number), json_group_array(json_array(id, kind, record, rule, time_us))
    from (select * from _outbox where pending and number > ? order by number limit ?)"""

_Decoded = list[tuple[int, str, str]]
_decode_keys = msgspec.json.Decoder(list[str]).decode
_decode_states = msgspec.json.Decoder(_Decoded).decode


def last_epoch(connection: sqlite3.Connection) -> int:
    """The number of the last epoch, 0 if there is none."""
    found = connection.execute("select coalesce(max(number), 0) from _epochs").fetchone()
    return int(found[0])


def snapshot(connection: sqlite3.Connection, path: str) -> Snapshot:
    """The last epoch; its large parts are read when they are asked for."""
    run = connection.execute
    last = run("select clock_us, host_position, number from _epochs order by number desc limit 1")
    clock, position, number = last.fetchone() or (None, "null", 0)
    return Snapshot(
        number=number,
        clock_us=clock,
        rules=[RuleVersion(*row) for row in run("select * from _rules")],
        sources=[_source(row) for row in run("select * from _sources")],
        counters={name: msgspec.json.decode(text) for name, text in run("select * from _counters")},
        sink_lengths={given_name(name): length for name, length in run("select * from _sinks")},
        host_position=msgspec.json.decode(position),
        states_of=lambda owners: _states_of(connection, path, owners),
        keys=lambda owner: _keys(connection, path, owner),
        outbox=lambda: _outbox(connection, path),
        rows=lambda: _all_rows(connection, path),
        held=lambda: _held(connection, path),
    )


def _source(row: tuple[Any, ...]) -> SourceRow:
    return SourceRow(given_name(row[0]), *row[1:])


def _states_of(
    connection: sqlite3.Connection, path: str, wanted: Collection[Owner] | None
) -> Iterator[StateText]:
    with plain_errors(path):
        owners = _owners(connection)
        numbers = [number for number, owner in owners.items() if wanted is None or owner in wanted]
        query = _PIECE.format(_whole(connection), ", ".join(map(str, numbers)))
        for text in _in_pieces(connection, query):
            for owner, key, state in _decode_states(text):
                yield owners[owner], key, state


def _keys(connection: sqlite3.Connection, path: str, owner: Owner) -> Iterator[str]:
    with plain_errors(path):
        numbers = {owner: number for number, owner in _owners(connection).items()}
        if owner not in numbers:
            return
        for text in _in_pieces(connection, _KEYS.format(numbers[owner])):
            yield from _decode_keys(text)


def _all_rows(connection: sqlite3.Connection, path: str) -> Iterator[tuple[Owner, StateRow]]:
    with plain_errors(path):
        owners = _owners(connection)
        whole = _whole(connection)
        ends = _ends(connection)
        query = f"select owner, key, {whole}, step, first_us, due_us, runs, {ends} from _states"
        for owner, *columns in connection.execute(query):
            yield owners[owner], StateRow(*columns)


def _held(connection: sqlite3.Connection, path: str) -> dict[Owner, tuple[int, int]]:
    query = """
        select kind, name, sum(runs > 0), sum(runs) from _states join _owners
        on _owners.number = _states.owner group by _states.owner"""
    with plain_errors(path):
        found = connection.execute(query)
        return {Owner(kind, name): (keys, runs) for kind, name, keys, runs in found}


def _whole(connection: sqlite3.Connection) -> str:
    """SQL: a state as it is read. A file of an older version that is only looked at has no table
    of further pieces."""
    query = "select exists (select 1 from sqlite_master where name = '_segments')"
    return WHOLE if connection.execute(query).fetchone()[0] else "state"


def _ends(connection: sqlite3.Connection) -> str:
    """SQL: when time decides over runs. A file of an older version that is only looked at has no
    such column."""
    query = "select count(*) from pragma_table_info('_states') where name = 'ends_us'"
    return "ends_us" if connection.execute(query).fetchone()[0] else "null"


def _outbox(connection: sqlite3.Connection, path: str) -> Iterator[OutRow]:
    with plain_errors(path):
        for text in _in_pieces(connection, _OUTBOX):
            for row in msgspec.json.decode(text):
                yield OutRow(*row)


def _owners(connection: sqlite3.Connection) -> dict[int, Owner]:
    found = connection.execute("select number, kind, name from _owners")
    return {number: Owner(kind, name) for number, kind, name in found}


def _in_pieces(connection: sqlite3.Connection, query: str) -> Iterator[str]:
    """The answers of `query` for one stretch of numbers after the other, each of a good size."""
    after, rows = -1, 256
    while True:
        try:
            last, text = connection.execute(query, (after, rows)).fetchone()
        except sqlite3.Error as error:
            if rows == 1 or primary_code(error) != sqlite3.SQLITE_TOOBIG:
                raise
            rows = 1
            continue
        if last is None:
            return
        yield text
        after, rows = last, max(1, min(PIECE_ROWS, rows * PIECE_BYTES // len(text)))


def fetched(connection: sqlite3.Connection, owner: Owner, keys: Sequence[str]) -> dict[str, str]:
    """The states of some keys of one owner."""
    query = """
        select json_group_array(number) from _states
        where owner = (select number from _owners where kind = ? and name = ?)
            and key in (select value from json_each(?))"""
    wanted = msgspec.json.encode(keys).decode()
    found = connection.execute(query, (*owner, wanted)).fetchone()[0]
    return {key: state for _, key, state in _numbered(connection, msgspec.json.decode(found))}


def due(connection: sqlite3.Connection, until_us: int) -> list[StateText]:
    """The states whose time has come."""
    query = "select json_group_array(number) from _states where due_us <= ?"
    found = connection.execute(query, (until_us,)).fetchone()[0]
    owners = _owners(connection)
    rows = _numbered(connection, msgspec.json.decode(found))
    return [(owners[owner], key, state) for owner, key, state in rows]


def _numbered(connection: sqlite3.Connection, numbers: Sequence[int]) -> _Decoded:
    """Rows by number; in halves where they are too long for one text."""
    try:
        wanted = msgspec.json.encode(numbers).decode()
        return _decode_states(
            connection.execute(_SOME.format(_whole(connection)), (wanted,)).fetchone()[0]
        )
    except sqlite3.Error as error:
        if len(numbers) < 2 or primary_code(error) != sqlite3.SQLITE_TOOBIG:
            raise
    middle = len(numbers) // 2
    return _numbered(connection, numbers[:middle]) + _numbered(connection, numbers[middle:])


def next_due(connection: sqlite3.Connection, after_us: int | None) -> int | None:
    """The earliest time at which a state is due, after `after_us` if given."""
    condition = "due_us is not null" if after_us is None else "due_us > :after"
    query = f"select min(due_us) from _states where {condition}"
    found: int | None = connection.execute(query, {"after": after_us}).fetchone()[0]
    return found


def mistakes(connection: sqlite3.Connection) -> list[str]:
    """What is wrong with the file, in words. Reads all of it."""
    run = connection.execute
    found = [str(text) for (text,) in run("pragma integrity_check") if text != "ok"]
    for query, words in _NOT_SO.items():
        count = run(query).fetchone()[0]
        if count:
            found.append(words.format(count))
    return found


_NOT_SO = {
    "select count(*) from pragma_foreign_key_check where parent = '_owners'": (
        "{} states belong to no owner"
    ),
    "select count(*) from pragma_foreign_key_check where parent = '_states'": (
        "{} pieces of states belong to no state"
    ),
    """select count(*) from _owners where kind in ('runs', 'windows', 'dedup')
        and name not in (select id from _rules where status <> 'gone')""": (
        "{} owners of states belong to no version of a rule"
    ),
    "select count(*) from _states where not json_valid(state)": "{} states are not JSON",
    "select count(*) from _segments where not json_valid(content)": (
        "{} pieces of states are not JSON"
    ),
    """select count(*) from (
        select row from _segments as g join _states as s on s.number = row
        join _owners as o on o.number = s.owner group by row
        having max(g.number) - min(g.number) >= count(*)
            or min(g.number) > 0 and o.kind <> 'windows')""": "of {} states pieces are missing",
    "select count(*) from _states where not json_valid(key)": "{} keys are not JSON",
    "select count(*) from _outbox where not json_valid(record)": "{} records are not JSON",
    "select count(*) from _counters where not json_valid(value)": "{} counters are not JSON",
    "select exists (select 1 from _states) and not exists (select 1 from _epochs)": (
        "there are states, but no epoch was ever committed"
    ),
}
"""What must not be found, and how to say it."""
