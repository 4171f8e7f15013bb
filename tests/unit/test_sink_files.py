"""JSON lines and CSV: what is in the file, and what happens when the disk or the reader fails."""

from __future__ import annotations

import csv
import io
import json
import os
import stat
from pathlib import Path
from types import SimpleNamespace

import pytest
from sink_samples import a_match

from cep.sink.base import ClosedPipe, SinkError
from cep.sink.columns import COLUMNS
from cep.sink.csv_table import CsvSink
from cep.sink.files import OutputFile
from cep.sink.json_lines import JsonLinesSink
from cep.sink.opening import open_sink
from cep.sink.sqlite import SqliteSink
from cep.sink.text import TextSink

needs_full_disk = pytest.mark.skipif(
    not Path("/dev/full").exists(), reason="this system has no /dev/full"
)


def test_json_lines_hold_the_match_record(tmp_path: Path) -> None:
    path = tmp_path / "out.jsonl"
    sink = JsonLinesSink(str(path))
    sink.write([a_match(id="a"), a_match(id="b", message="two\nlines")])
    sink.close()
    records = [json.loads(line) for line in path.read_text().splitlines()]
    assert [record["id"] for record in records] == ["a", "b"]
    assert records[0]["time"] == "2026-01-01T00:00:45Z"
    assert records[1]["message"] == "two\nlines"


def test_flush_makes_a_match_visible(tmp_path: Path) -> None:
    path = tmp_path / "out.jsonl"
    sink = JsonLinesSink(str(path))
    sink.write([a_match()])
    sink.flush()
    assert path.read_text().count("\n") == 1
    sink.close()


def test_an_existing_file_is_replaced(tmp_path: Path) -> None:
    path = tmp_path / "out.jsonl"
    path.write_text("old\n")
    JsonLinesSink(str(path)).close()
    assert path.read_text() == ""


def test_closing_twice_is_harmless(tmp_path: Path) -> None:
    sink = JsonLinesSink(str(tmp_path / "out.jsonl"))
    sink.close()
    sink.close()
    sink.flush()


def test_csv_has_a_header_and_exact_cells(tmp_path: Path) -> None:
    path = tmp_path / "out.csv"
    sink = CsvSink(str(path))
    sink.write([a_match(message='say "hi",\nbob', severity=None)])
    sink.close()
    with path.open(newline="") as file:
        header, cells = csv.reader(file)
    assert tuple(header) == COLUMNS
    found = dict(zip(header, cells, strict=True))
    assert found["message"] == 'say "hi",\nbob'
    assert found["severity"] == ""
    assert json.loads(found["key"]) == {"user": "bob"}
    assert json.loads(found["events"])["ok"]["type"] == "login"
    assert json.loads(found["tags"]) == ["attack.t1110"]


def test_csv_without_a_match_is_its_header(tmp_path: Path) -> None:
    path = tmp_path / "out.csv"
    CsvSink(str(path)).close()
    assert path.read_text().splitlines() == [",".join(COLUMNS)]


def test_integers_of_any_size_can_be_written(tmp_path: Path) -> None:
    path = tmp_path / "out.csv"
    sink = CsvSink(str(path))
    sink.write([a_match(fields={"n": 10**30})])
    sink.close()
    assert str(10**30) in path.read_text()


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("a.jsonl", JsonLinesSink),
        ("a.json", JsonLinesSink),
        ("a", JsonLinesSink),
        ("a.csv", CsvSink),
        ("A.CSV", CsvSink),
        ("a.txt", TextSink),
        ("a.db", SqliteSink),
        ("a.sqlite", SqliteSink),
    ],
)
def test_the_ending_says_the_form(tmp_path: Path, name: str, kind: type) -> None:
    sink = open_sink(str(tmp_path / name))
    assert isinstance(sink, kind)
    sink.close()


def test_a_missing_folder_is_told_in_plain_words(tmp_path: Path) -> None:
    path = tmp_path / "no" / "out.jsonl"
    with pytest.raises(SinkError, match=f"cannot write {path}: No such file or directory"):
        JsonLinesSink(str(path))


def test_a_folder_is_no_output(tmp_path: Path) -> None:
    with pytest.raises(SinkError, match="Is a directory"):
        JsonLinesSink(str(tmp_path))


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_no_permission_is_told(tmp_path: Path) -> None:
    tmp_path.chmod(stat.S_IRUSR | stat.S_IXUSR)
    with pytest.raises(SinkError, match="Permission denied"):
        JsonLinesSink(str(tmp_path / "out.jsonl"))


@needs_full_disk
def test_a_full_disk_is_an_error_at_the_flush() -> None:
    sink = JsonLinesSink("/dev/full")
    sink.write([a_match()])
    with pytest.raises(SinkError, match="No space left on device"):
        sink.flush()


@needs_full_disk
def test_a_full_disk_is_an_error_at_the_close() -> None:
    sink = CsvSink("/dev/full")
    with pytest.raises(SinkError, match="No space left on device"):
        sink.close()
    sink.close()


def test_a_closed_pipe_is_told_apart(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    sink = JsonLinesSink(str(pipe))
    os.close(reader)
    sink.write([a_match()])
    with pytest.raises(ClosedPipe):
        sink.flush()


def test_a_new_file_has_its_name_on_the_disk_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    forced: list[str] = []
    sync = os.fsync

    def noted(file: int) -> None:
        sync(file)
        forced.append(os.path.realpath(f"/proc/self/fd/{file}"))

    monkeypatch.setattr(os, "fsync", noted)
    out = OutputFile(str(tmp_path / "out"))
    for data in (b"a", b"b"):
        out.write(data)
        out.settle()
    out.close()
    assert forced == [str(tmp_path / "out"), str(tmp_path), str(tmp_path / "out")]


def test_unbuffered_standard_output_gets_every_byte(monkeypatch) -> None:
    class Unbuffered(io.RawIOBase):
        """Takes a part of what it is given, as a pipe does of which the reader is slow."""

        def __init__(self) -> None:
            self.taken = b""

        def fileno(self) -> int:
            return 1

        def write(self, data) -> int:
            self.taken += bytes(data[:100])
            return min(len(data), 100)

    unbuffered = Unbuffered()
    monkeypatch.setattr("sys.stdout", SimpleNamespace(buffer=unbuffered))
    sink = open_sink("-")
    sink.write([a_match()] * 50)
    assert len(unbuffered.taken.splitlines()) == 50
    assert json.loads(unbuffered.taken.splitlines()[-1])["id"] == a_match().id
