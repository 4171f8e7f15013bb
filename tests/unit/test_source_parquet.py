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
