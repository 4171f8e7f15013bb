"""Lines out of files: compression, encodings, broken ends, pipes, growth and rotation."""

from __future__ import annotations

import gzip
import os
import threading
from collections.abc import Callable
from pathlib import Path

import pytest
import zstandard

from cep.source import Block, Reject, SourceError, SourceOptions, open_source
from cep.source import lines as lines_module
from cep.source import raw as raw_module

LINES = [b'{"n": %d}\n' % n for n in range(50_000)]


def read(path: Path, format: str | None = None) -> tuple[list[bytes], list[Reject]]:
    """All lines of a source, after checking that places and numbers fit."""
    found: list[bytes] = []
    rejects: list[Reject] = []
    offset, number = 0, 1
    for block in open_source(str(path), format).blocks():
        assert block.lines is not None
        if not block.rejects:
            assert (block.offset, block.line_number) == (offset, number)
        found += block.lines
        rejects += block.rejects
        offset = block.offset + sum(map(len, block.lines))
        number = block.line_number + len(block.lines)
    return found, rejects


def write(path: Path, content: bytes) -> Path:
    path.write_bytes(content)
    return path


PACK: dict[str, Callable[[bytes], bytes]] = {
    "plain": lambda content: content,
    "gzip": gzip.compress,
    "zstd": lambda content: zstandard.ZstdCompressor().compress(content),
}


@pytest.mark.parametrize("kind", PACK)
def test_every_compression_gives_the_same_lines(tmp_path: Path, kind: str) -> None:
    assert read(write(tmp_path / "a.jsonl", PACK[kind](b"".join(LINES)))) == (LINES, [])


@pytest.mark.parametrize("kind", ["gzip", "zstd"])
def test_several_parts_after_each_other(tmp_path: Path, kind: str) -> None:
    pack = PACK[kind]
    content = pack(b"".join(LINES[:100])) + pack(b"".join(LINES[100:]))
    assert read(write(tmp_path / "a.jsonl", content)) == (LINES, [])


@pytest.mark.parametrize("kind", ["gzip", "zstd"])
@pytest.mark.parametrize("chunk", [1, 7, 64, 1000, raw_module.CHUNK])
def test_parts_of_any_size_are_read_once_each(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str, chunk: int
) -> None:
    monkeypatch.setattr(raw_module, "CHUNK", chunk)
    number = 30 * max(chunk // 100, 1)
    parts = [
        b"".join(b'{"part":%d,"n":%d}\n' % (part, n) for n in range(number)) for part in range(3)
    ]
    reader, _, _ = raw_module.unpack(
        raw_module.open_file(str(write(tmp_path / "parts", b"".join(map(PACK[kind], parts))))), "x"
    )
    content, wanted = b"", b"".join(parts)
    while len(content) <= len(wanted) and (piece := reader.read(chunk)):
        content += piece
    reader.close()
    assert content == wanted
    assert reader.problem is None


def test_zeros_after_a_gzip_file_are_padding(tmp_path: Path) -> None:
    content = gzip.compress(b"".join(LINES)) + bytes(512)
    assert read(write(tmp_path / "a.jsonl", content)) == (LINES, [])


@pytest.mark.parametrize("kind", ["gzip", "zstd"])
def test_truncated_data_end_in_one_reject(tmp_path: Path, kind: str) -> None:
    whole = PACK[kind](b"".join(LINES))
    found, rejects = read(write(tmp_path / "a.jsonl", whole[: len(whole) // 2]))
    assert found == LINES[: len(found)]
    assert len(found) > 1000
    assert [(r.reason, r.line_number) for r in rejects] == [
        (f"truncated: the {kind} data end before their end mark", len(found) + 1)
    ]


def test_broken_gzip_data_end_in_one_reject(tmp_path: Path) -> None:
    whole = bytearray(gzip.compress(b"".join(LINES)))
    whole[-8] ^= 1  # the checksum
    found, rejects = read(write(tmp_path / "a.jsonl", bytes(whole)))
    assert found == LINES[: len(found)]
    assert len(found) > len(LINES) - 100
    assert len(rejects) == 1
    assert rejects[0].reason.startswith("broken gzip data")


def test_an_empty_file_has_no_lines(tmp_path: Path) -> None:
    assert read(write(tmp_path / "a.jsonl", b"")) == ([], [])
    assert read(write(tmp_path / "b.jsonl", gzip.compress(b""))) == ([], [])


def test_the_last_line_needs_no_end(tmp_path: Path) -> None:
    assert read(write(tmp_path / "a.jsonl", b"{}\n{}")) == ([b"{}\n", b"{}"], [])


def test_a_carriage_return_alone_ends_no_line(tmp_path: Path) -> None:
    content = b'{"a": "b\rc"}\r\n{}\r\n'
    assert read(write(tmp_path / "a.jsonl", content))[0] == [b'{"a": "b\rc"}\r\n', b"{}\r\n"]


def test_a_long_line_is_read(tmp_path: Path) -> None:
    long = b'{"a": "' + b"x" * 10_000_000 + b'"}\n'
    assert read(write(tmp_path / "a.jsonl", b"{}\n" + long + b"{}\n"), "jsonl") == (
        [b"{}\n", long, b"{}\n"],
        [],
    )


def test_a_line_beyond_the_limit_is_rejected(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lines_module, "LONGEST_LINE", 2 << 20)
    long = b'{"a": "' + b"x" * (5 << 20) + b'"}\n'
    found, rejects = read(write(tmp_path / "a.jsonl", b"{}\n" + long + b'{"b": 1}\n'), "jsonl")
    assert found == [b"{}\n", b'{"b": 1}\n']
    assert [(r.position, r.line_number, r.reason) for r in rejects] == [
        (3, 2, "a line of more than 2 MiB")
    ]
    assert len(rejects[0].raw) <= 4096
    found, rejects = read(write(tmp_path / "b.jsonl", b"{}\n" + long[:-1]), "jsonl")
    assert (found, len(rejects)) == ([b"{}\n"], 1)


def test_a_byte_order_mark_is_left_out_but_counts(tmp_path: Path) -> None:
    path = write(tmp_path / "a.jsonl", b'\xef\xbb\xbf{"a": 1}\n{}\n')
    (block,) = open_source(str(path)).blocks()
    assert block.lines == [b'{"a": 1}\n', b"{}\n"]
    assert block.offset == 3


@pytest.mark.parametrize("encoding", ["utf-16-le", "utf-16-be"])
def test_utf_16_is_understood(tmp_path: Path, encoding: str) -> None:
    text = "\ufeff" + '{"a": "ü😀"}\r\n' * 1000
    found, rejects = read(write(tmp_path / "a.jsonl", text.encode(encoding)))
    assert found == ['{"a": "ü😀"}\r\n'.encode()] * 1000
    assert rejects == []


def test_a_source_can_be_read_twice(tmp_path: Path) -> None:
    source = open_source(str(write(tmp_path / "a.jsonl", b"{}\n")))
    for _ in range(2):
        assert [block.lines for block in source.blocks()] == [[b"{}\n"]]


def test_a_file_that_is_deleted_while_read_goes_on(tmp_path: Path) -> None:
    path = write(tmp_path / "a.jsonl", b"".join(LINES * 5))
    blocks = open_source(str(path)).blocks()
    first = next(blocks)
    path.unlink()
    assert first.lines is not None
    rest = [line for block in blocks for line in block.lines or []]
    assert first.lines + rest == LINES * 5


def test_a_file_that_vanished_before_reading_is_told(tmp_path: Path) -> None:
    path = write(tmp_path / "a.jsonl", b"{}\n")
    source = open_source(str(path))
    path.unlink()
    with pytest.raises(SourceError, match="no such file"):
        list(source.blocks())


def test_a_disk_that_fails_ends_in_one_reject(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = write(tmp_path / "a.jsonl", b"".join(LINES * 5))
    source = open_source(str(path))
    blocks = source.blocks()
    next(blocks)

    def fail(descriptor: int, size: int) -> bytes:
        raise OSError(5, "Input/output error")

    monkeypatch.setattr(raw_module.os, "read", fail)
    rejects = [reject for block in blocks for reject in block.rejects]
    assert [reject.reason for reject in rejects] == ["reading failed: Input/output error"]


def pipe_with(content: bytes) -> tuple[str, int]:
    """The path of a pipe that gives `content` and stays open, and its writing end."""
    read_end, write_end = os.pipe()
    os.write(write_end, content)
    return f"/dev/fd/{read_end}", write_end


@pytest.mark.skipif(not os.path.exists("/dev/fd"), reason="needs /dev/fd")
def test_a_pipe_is_read_as_it_speaks() -> None:
    path, write_end = pipe_with(b'{"a": 1}\n{"a"')
    blocks = open_source(path, "jsonl").blocks()
    assert next(blocks).lines == [b'{"a": 1}\n']
    os.write(write_end, b": 2}\n")
    assert next(blocks).lines == [b'{"a": 2}\n']
    os.close(write_end)
    assert list(blocks) == []


@pytest.mark.skipif(not os.path.exists("/dev/fd"), reason="needs /dev/fd")
def test_a_pipe_can_be_read_once_only() -> None:
    path, write_end = pipe_with(gzip.compress(b"{}\n"))
    os.close(write_end)
    source = open_source(path)
    assert [block.lines for block in source.blocks()] == [[b"{}\n"]]
    with pytest.raises(SourceError, match="only once"):
        list(source.blocks())


class Follower:
    """A followed file, read until it says that nothing is new."""

    def __init__(self, path: Path) -> None:
        self.stop = threading.Event()
        options = SourceOptions(follow=True, poll=0, stop=self.stop)
        self._blocks = open_source(str(path), "jsonl", options).blocks()

    def news(self) -> list[bytes]:
        found: list[bytes] = []
        while True:
            block = next(self._blocks)
            assert block.lines is not None
            if not block.lines:
                return found
            found += block.lines

    def rest(self) -> list[Block]:
        self.stop.set()
        return list(self._blocks)


def append(path: Path, content: bytes) -> None:
    with path.open("ab") as file:
        file.write(content)


def test_following_waits_for_growth_and_for_whole_lines(tmp_path: Path) -> None:
    path = write(tmp_path / "a.log", b'{"a": 1}\n')
    follower = Follower(path)
    assert follower.news() == [b'{"a": 1}\n']
    assert follower.news() == []
    append(path, b'{"a"')
    assert follower.news() == []
    append(path, b": 2}\n")
    assert follower.news() == [b'{"a": 2}\n']
    append(path, b"{}")
    assert [block.lines for block in follower.rest()] == [[b"{}"]]


def test_following_goes_over_to_a_rotated_file(tmp_path: Path) -> None:
    path = write(tmp_path / "a.log", b'{"a": 1}\n')
    follower = Follower(path)
    assert follower.news() == [b'{"a": 1}\n']
    append(path, b'{"a": 2}\n{"a": 3}')
    path.rename(tmp_path / "a.log.1")
    assert follower.news() == [b'{"a": 2}\n']
    write(path, b'{"a": 4}\n')
    assert follower.news() == [b'{"a": 3}', b'{"a": 4}\n']
    append(path, b'{"a": 5}\n')
    assert follower.news() == [b'{"a": 5}\n']


def test_following_starts_again_when_a_file_is_truncated(tmp_path: Path) -> None:
    path = write(tmp_path / "a.log", b'{"a": 1}\n{"a": 2}\n')
    follower = Follower(path)
    assert len(follower.news()) == 2
    os.truncate(path, 0)
    append(path, b'{"a": 3}\n')
    news = follower.news()
    assert (news or follower.news()) == [b'{"a": 3}\n']


def test_followed_positions_only_grow(tmp_path: Path) -> None:
    path = write(tmp_path / "a.log", b"{}\n")
    stop = threading.Event()
    blocks = open_source(str(path), "jsonl", SourceOptions(follow=True, poll=0, stop=stop)).blocks()
    assert next(blocks).offset == 0
    path.rename(tmp_path / "a.log.1")
    write(path, b"{}\n")
    after = [block for block in (next(blocks), next(blocks), next(blocks)) if block.lines]
    assert [(block.offset, block.line_number) for block in after] == [(3, 2)]


@pytest.mark.parametrize("pack", [PACK["gzip"], PACK["zstd"]])
def test_a_compressed_file_cannot_be_followed(
    tmp_path: Path, pack: Callable[[bytes], bytes]
) -> None:
    path = write(tmp_path / "a.log", pack(b"{}\n"))
    with pytest.raises(SourceError, match="compressed file cannot be followed"):
        open_source(str(path), None, SourceOptions(follow=True))


def test_a_binary_file_is_rejected_in_few_words(tmp_path: Path) -> None:
    content = bytes(range(256)) * 20_000
    (tmp_path / "a.log").write_bytes(content)
    blocks = list(open_source(str(tmp_path / "a.log")).blocks())
    rejects = [reject for block in blocks for reject in block.rejects]
    assert {reject.reason for reject in rejects} == {"binary data, not text"}
    assert sum(reject.count for reject in rejects) == content.count(b"\n") + 1
    assert len(rejects) < 100
    assert not any(block.records for block in blocks)


def test_binary_lines_between_text_are_told_together(tmp_path: Path) -> None:
    good = "Dec 10 06:55:46 host app[1]: hello\n"
    content = good * 50 + "\0\0\n" * 7 + good
    (tmp_path / "a.log").write_text(content)
    (block,) = open_source(str(tmp_path / "a.log"), "syslog").blocks()
    assert [(r.line_number, r.count) for r in block.rejects] == [(51, 7)]
    assert block.records is not None
    assert len(block.records) == 51
