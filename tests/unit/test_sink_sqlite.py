"""Matches in an SQLite file: one row for each match, also when it comes twice."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest
from sink_samples import a_match

from cep.sink.base import SinkError
from cep.sink.sqlite import SqliteSink


def _rows(path: Path, query: str) -> list[tuple[object, ...]]:
    with closing(sqlite3.connect(path)) as connection:
        return connection.execute(query).fetchall()


def test_a_match_is_a_row_with_json_in_its_cells(tmp_path: Path) -> None:
    path = tmp_path / "out.db"
    sink = SqliteSink(str(path))
    sink.write([a_match()])
    sink.close()
    query = "select id, time, time_us, json_extract(key, '$.user'), severity from matches"
    assert _rows(path, query) == [
        ("m1", "2026-01-01T00:00:45Z", 1_767_225_645_000_000, "bob", "high")
    ]


def test_the_same_match_again_leaves_one_row(tmp_path: Path) -> None:
    path = tmp_path / "out.db"
    for message in ("old", "new"):
        sink = SqliteSink(str(path))
        sink.write([a_match(message=message), a_match(id="m2")])
        sink.close()
    assert _rows(path, "select id, message from matches order by id")[0] == ("m1", "new")
    assert _rows(path, "select count(*) from matches") == [(2,)]


def test_many_matches_of_one_batch(tmp_path: Path) -> None:
    path = tmp_path / "out.db"
    sink = SqliteSink(str(path))
    sink.write([a_match(id=f"m{number}") for number in range(3000)])
    sink.close()
    assert _rows(path, "select count(*), count(distinct id) from matches") == [(3000, 3000)]


def test_rows_can_be_read_while_the_sink_is_open(tmp_path: Path) -> None:
    path = tmp_path / "out.db"
    sink = SqliteSink(str(path))
    sink.write([a_match()])
    assert _rows(path, "select count(*) from matches") == [(1,)]
    sink.close()


def test_a_table_of_an_older_version_gets_the_missing_columns(tmp_path: Path) -> None:
    path = tmp_path / "out.db"
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("create table matches (id text primary key, rule text)")
    sink = SqliteSink(str(path))
    sink.write([a_match()])
    sink.close()
    assert _rows(path, "select id, message from matches") == [
        ("m1", "bob: 5 failures, then success")
    ]


def test_text_that_tries_to_be_sql_stays_text(tmp_path: Path) -> None:
    path = tmp_path / "out.db"
    sink = SqliteSink(str(path))
    sink.write([a_match(message="'); drop table matches; --")])
    sink.close()
    assert _rows(path, "select message from matches") == [("'); drop table matches; --",)]


def test_a_file_that_is_no_database_is_told(tmp_path: Path) -> None:
    path = tmp_path / "out.db"
    path.write_text("this is a text, and long enough not to be taken for an empty database")
    with pytest.raises(SinkError, match="file is not a database"):
        SqliteSink(str(path))


def test_a_missing_folder_is_told(tmp_path: Path) -> None:
    with pytest.raises(SinkError, match="unable to open database file"):
        SqliteSink(str(tmp_path / "no" / "out.db"))


def test_a_locked_file_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("cep.sink.sqlite.PATIENCE", 0.05)
    path = tmp_path / "out.db"
    sink = SqliteSink(str(path))
    with closing(sqlite3.connect(path, isolation_level=None)) as other:
        other.execute("begin immediate")
        with pytest.raises(SinkError, match="database is locked"):
            sink.write([a_match()])
        other.execute("rollback")
    sink.write([a_match()])
    sink.close()
