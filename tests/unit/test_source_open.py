"""From paths to sources: which files, which format, and what is told when it does not work."""

from __future__ import annotations

import gzip
import io
import os
import subprocess
import sys
from pathlib import Path

import pytest

from cep.source import FORMATS, SourceError, SourceOptions, expand, open_source
from cep.source.detect import detect

SYSLOG = "Dec 10 06:55:46 LabSZ sshd[24200]: Invalid user x\n"
ACCESS = '1.2.3.4 - - [10/Oct/2000:13:55:36 +0000] "GET / HTTP/1.0" 200 1\n'


@pytest.mark.parametrize(
    ("path", "content", "format"),
    [
        ("a.jsonl", "", "jsonl"),
        ("a.ndjson.gz", "", "jsonl"),
        ("a.csv", "", "csv"),
        ("A.CSV", "", "csv"),
        ("a.csv.zst", "", "csv"),
        ("a.tsv", "", "tsv"),
        ("a.logfmt", "", "logfmt"),
        ("a.json", '[{"a": 1}]', "json"),
        ("a.json", '{"a": 1}\n', "jsonl"),
        ("a.log", "", "jsonl"),
        ("a.log", '{"a": 1}\n', "jsonl"),
        ("-", '\n[\n{"a": 1}]', "json"),
        ("-", "[2024-01-01 10:00:00] hello\n", "text"),
        ("a.log", SYSLOG * 3, "syslog"),
        ("a.log", "<34>" + SYSLOG, "syslog"),
        ("a.log", "<34>1 2003-10-11T22:14:15.003Z h a - - - hi\n", "syslog"),
        ("a.log", "2024-01-01T10:00:00Z host app[1]: hello\n", "syslog"),
        ("a.log", "2024-01-01T10:00:00Z INFO hello there\n", "text"),
        ("a.log", "continued\n" + SYSLOG * 3, "syslog"),
        ("a.log", ACCESS * 2, "access"),
        ("access.log.1", ACCESS * 2, "access"),
        ("a.log", 'ts=1 level=info msg="a b"\n', "logfmt"),
        ("a.log", "2024-01-01T10:00:00Z WARNING main: late\n", "text"),
        ("a.log", "2024-01-01 a=1 b=2\n", "text"),
        ("-", "user,amount\nann,1\nbob,2\n", "csv"),
        ("-", "user\tamount\nann\t1\n", "tsv"),
        ("-", "hello, world\nhow are you\n", "text"),
        ("a.txt", "hello\n", "text"),
        ("a.jsonl", "\0\1\2" * 100, "binary"),
        ("x", "PAR1....", "parquet"),
    ],
)
def test_formats_are_found(path: str, content: str, format: str) -> None:
    assert detect(path, content.encode()) == format


def test_a_stated_format_overrides_what_is_found(tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_text(SYSLOG)
    (block,) = open_source(str(tmp_path / "a.jsonl"), "syslog").blocks()
    assert block.records is not None
    assert block.records[0]["app"] == "sshd"


@pytest.mark.parametrize("format", [*FORMATS, "NDJSON", "apache", "nginx", "syslog:2020"])
def test_every_format_has_a_name(tmp_path: Path, format: str) -> None:
    (tmp_path / "a").write_text("")
    blocks = list(open_source(str(tmp_path / "a"), format).blocks())
    assert not any(block.records or block.lines for block in blocks)


@pytest.mark.parametrize(
    ("format", "message"),
    [
        ("jsnol", "no format called `jsnol`; did you mean `jsonl`?"),
        ("sysload", "did you mean `syslog`?"),
        ("qqq", "there are: jsonl, json, csv"),
        ("csv:x", "no format called `csv`"),
        ("syslog:x", "the year of the first line"),
        ("syslog:0000", "the year of the first line"),
    ],
)
def test_unknown_formats(tmp_path: Path, format: str, message: str) -> None:
    (tmp_path / "a").write_text("")
    with pytest.raises(SourceError) as caught:
        open_source(str(tmp_path / "a"), format)
    assert message in str(caught.value)


def test_unusable_paths(tmp_path: Path) -> None:
    with pytest.raises(SourceError, match="there is no such file"):
        open_source(str(tmp_path / "missing"))
    with pytest.raises(SourceError, match="is a folder"):
        open_source(str(tmp_path))
    with pytest.raises(SourceError, match="cannot be a path"):
        open_source("a\0b")
    (tmp_path / "file").write_text("")
    with pytest.raises(SourceError, match="not a directory"):
        open_source(str(tmp_path / "file" / "x"))


@pytest.mark.skipif(os.name != "posix" or os.geteuid() == 0, reason="root may read everything")
def test_a_path_without_permission(tmp_path: Path) -> None:
    path = tmp_path / "secret"
    path.write_text("{}\n")
    path.chmod(0)
    with pytest.raises(SourceError, match="no permission"):
        open_source(str(path))


def test_a_refused_open_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> int:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr("cep.source.raw.os.open", refuse)
    with pytest.raises(SourceError, match="no permission to read it"):
        open_source(str(tmp_path / "secret"))


def test_zstd_without_its_library(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "zstandard", None)
    (tmp_path / "a.zst").write_bytes(b"\x28\xb5\x2f\xfd....")
    with pytest.raises(SourceError, match=r"pip install 'cep\[zstd\]'"):
        open_source(str(tmp_path / "a.zst"))


@pytest.mark.parametrize("format", ["json", "parquet"])
def test_what_cannot_be_followed(tmp_path: Path, format: str) -> None:
    (tmp_path / "a").write_text("[]")
    with pytest.raises(SourceError, match="cannot be followed"):
        open_source(str(tmp_path / "a"), format, SourceOptions(follow=True))


def test_expand(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("b.log", "a.log", "c.txt", ".hidden", "in/d.log", "in/.git/x", "odd[1].log"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("")
    assert expand(["*.log"]) == ["a.log", "b.log", "odd[1].log"]
    assert expand(["**/*.log"]) == ["a.log", "b.log", "in/d.log", "odd[1].log"]
    assert expand(["odd[1].log"]) == ["odd[1].log"]
    assert expand(["in"]) == ["in/d.log"]
    assert expand(["."]) == ["./a.log", "./b.log", "./c.txt", "./in/d.log", "./odd[1].log"]
    assert expand(["b.log", "-", "*.log", "missing"]) == [
        *("b.log", "-", "a.log", "odd[1].log", "missing")
    ]
    assert expand([]) == []
    with pytest.raises(SourceError, match="no file matches"):
        expand(["*.nothing"])
    (tmp_path / "empty").mkdir()
    with pytest.raises(SourceError, match="no file in this folder"):
        expand(["empty"])


def test_standard_input(tmp_path: Path) -> None:
    program = (
        "from cep.source import open_source\n"
        "for block in open_source('-').blocks(): print(block.lines, list(block.ready) or None)\n"
    )
    for content, expected in (
        (b'{"a": 1}\n{"a": 2}', "[b'{\"a\": 1}\\n'] None\n[b'{\"a\": 2}'] None\n"),
        (gzip.compress(b"a,b\n1,2\n"), "None [{'a': 1, 'b': 2}]\n"),
        (b"", ""),
    ):
        done = subprocess.run(
            [sys.executable, "-c", program], input=content, capture_output=True, check=True
        )
        assert done.stdout.decode() == expected


def test_standard_input_that_is_closed(monkeypatch: pytest.MonkeyPatch) -> None:
    for stdin in (None, io.StringIO("")):
        monkeypatch.setattr(sys, "stdin", stdin)
        with pytest.raises(SourceError, match="standard input is closed"):
            open_source("-")
