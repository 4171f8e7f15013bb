"""Parquet: plain values, wanted columns, and files that are broken or cannot be read."""

from __future__ import annotations

import os
import sys
from datetime import date, datetime, time, timedelta, timezone
from decimal import Decimal
from pathlib import Path

import pytest

from cep.event_time import parse_time
from cep.source import Record, Reject, SourceError, SourceOptions, open_source

pyarrow = pytest.importorskip("pyarrow")
from pyarrow import parquet  # noqa: E402


def read(path: Path, options: SourceOptions | None = None) -> tuple[list[Record], list[Reject]]:
    blocks = list(open_source(str(path), None, options).blocks())
    records = [record for block in blocks for record in block.ready]
    positions = [place for block in blocks for place in block.positions or []]
    assert positions == list(range(len(records)))
    return records, [reject for block in blocks for reject in block.rejects]


def write(path: Path, **columns: object) -> Path:
    parquet.write_table(pyarrow.table(columns), path)
    return path


def test_plain_values(tmp_path: Path) -> None:
    path = write(
        tmp_path / "a.parquet",
        n=[1, None],
        x=[0.5, 2.0],
        s=["a", None],
        ok=[True, False],
        tags=[["a"], []],
        geo=[{"lat": 1.5, "at": date(2024, 1, 2)}, None],
    )
    assert read(path) == (
        [
            {"n": 1, "x": 0.5, "s": "a", "ok": True, "tags": ["a"]}
            | {"geo": {"lat": 1.5, "at": "2024-01-02"}},
            {"x": 2.0, "ok": False, "tags": []},
        ],
        [],
    )


def test_times_and_other_types(tmp_path: Path) -> None:
    nanos = pyarrow.array([1_603_108_800_000_001_999], pyarrow.timestamp("ns", "UTC"))
    path = write(
        tmp_path / "a.parquet",
        ns=nanos,
        plain=[datetime(2020, 10, 19, 12, 0, 0, 5)],
        zoned=[datetime(2020, 10, 19, 14, tzinfo=timezone(timedelta(hours=2)))],
        day=[date(2020, 10, 19)],
        clock=[time(12, 30)],
        whole=[Decimal("12.00")],
        part=[Decimal("12.50")],
        raw=[b"a\xff"],
    )
    (record,) = read(path)[0]
    assert record == {
        "ns": "2020-10-19T12:00:00.000001Z",
        "plain": "2020-10-19T12:00:00.000005",
        "zoned": "2020-10-19T12:00:00Z",
        "day": "2020-10-19",
        "clock": "12:30:00",
        "whole": 12,
        "part": 12.5,
        "raw": r"a\xff",
    }
    assert parse_time(record["ns"]) == 1_603_108_800_000_001


def test_only_wanted_columns(tmp_path: Path) -> None:
    path = write(tmp_path / "a.parquet", a=[1, 2], b=[3, 4])
    assert read(path, SourceOptions(wanted=frozenset({"b", "z"})))[0] == [{"b": 3}, {"b": 4}]
    assert read(path, SourceOptions(wanted=frozenset()))[0] == [{}, {}]


def test_many_rows(tmp_path: Path) -> None:
    path = write(tmp_path / "a.parquet", n=list(range(20_000)))
    assert [record["n"] for record in read(path)[0]] == list(range(20_000))


def test_texts_that_repeat(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each row group has its own texts, one of them more than its pages may store once."""
    monkeypatch.setattr("cep.source.parquet._MOST_ROWS", 100)
    few = [f"host {i % 7 + i // 1000}" if i % 5 else None for i in range(3000)]
    many = [f"{i % 7}" if i % 1500 < 1300 else f"user {i}" for i in range(3000)]
    path = tmp_path / "a.parquet"
    parquet.write_table(
        pyarrow.table({"few": few, "many": many}),
        path,
        row_group_size=1500,
        dictionary_pagesize_limit=200,
        data_page_size=100,
    )
    records, rejects = read(path)
    assert [record.get("few") for record in records] == few
    assert [record["many"] for record in records] == many
    assert rejects == []


def test_columns_with_their_words_apart(tmp_path: Path) -> None:
    codes = pyarrow.array([0, 1, None, 1], pyarrow.uint8())
    path = write(
        tmp_path / "a.parquet",
        word=pyarrow.DictionaryArray.from_arrays(codes, ["low", "high"]),
        level=pyarrow.DictionaryArray.from_arrays(codes, pyarrow.array([5, 10], pyarrow.int32())),
    )
    assert read(path)[0] == [
        {"word": "low", "level": 5},
        {"word": "high", "level": 10},
        {},
        {"word": "high", "level": 10},
    ]
    (block,) = open_source(str(path)).blocks()
    assert block.rows is not None
    assert list(block.rows.only("word", {"high", 5})) == [{"word": "high", "level": 10}] * 2
    assert list(block.rows.only("level", {5, "high"})) == [{"word": "low", "level": 5}]
    assert list(block.rows.only("word", {"none"})) == []


def test_of_two_columns_of_a_name_the_last_counts(tmp_path: Path) -> None:
    table = pyarrow.table([pyarrow.array([1, 2]), pyarrow.array(["a", "b"])], names=["x", "x"])
    parquet.write_table(table, tmp_path / "a.parquet")
    assert read(tmp_path / "a.parquet")[0] == [{"x": "a"}, {"x": "b"}]


def test_originals_are_made_when_they_are_asked_for(tmp_path: Path) -> None:
    path = write(tmp_path / "a.parquet", n=[1, 2], s=["a", None])
    (block,) = open_source(str(path)).blocks()
    assert block.rows is not None
    assert [row.record() for row in block.rows.originals()] == [{"n": 1, "s": "a"}, {"n": 2}]


def test_a_broken_file_is_one_reject(tmp_path: Path) -> None:
    path = write(tmp_path / "a.parquet", n=[1])
    path.write_bytes(path.read_bytes()[:-4])
    records, rejects = read(path)
    assert records == []
    assert len(rejects) == 1
    assert rejects[0].reason.startswith("broken Parquet data: ")


def test_without_its_library(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = write(tmp_path / "a.parquet", n=[1])
    monkeypatch.setitem(sys.modules, "pyarrow.parquet", None)
    with pytest.raises(SourceError, match=r"pip install 'cep\[parquet\]'"):
        open_source(str(path))


@pytest.mark.skipif(not os.path.exists("/dev/fd"), reason="needs /dev/fd")
def test_a_pipe_cannot_be_parquet() -> None:
    read_end, write_end = os.pipe()
    os.write(write_end, b"PAR1\n")
    os.close(write_end)
    with pytest.raises(SourceError, match="only from a plain file"):
        open_source(f"/dev/fd/{read_end}")
