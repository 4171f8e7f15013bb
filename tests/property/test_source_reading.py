"""However a file is cut into blocks, the fast ways and the careful ones read the same."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from unittest import mock

from hypothesis import example, given, settings
from hypothesis import strategies as st

from cep.source import Record, Reject, delimited, open_source

Reading = tuple[list[Record], list[int], list[int], list[tuple[int, int]]]

cells = st.one_of(
    st.sampled_from(["", "1", "-2", "0.5", "007", "true", '""', '"a,b"', '"a ""b"""', '"x\ny"']),
    st.integers(-50, 50).map(str),
    st.text(alphabet='ab1é" ', max_size=4),
)
rows = st.lists(st.lists(cells, min_size=2, max_size=3).map(",".join), max_size=12)


@contextmanager
def blocks_of(size: int) -> Iterator[None]:
    """Files are read `size` bytes at a time."""
    with (
        mock.patch("cep.source.opened.LOOK", 1),
        mock.patch("cep.source.raw.CHUNK", 1),
        mock.patch("cep.source.lines.BLOCK", size),
        mock.patch("cep.source.json_array.BLOCK", size),
    ):
        yield


def read(content: bytes, format: str) -> Reading:
    records: list[Record] = []
    positions: list[int] = []
    numbers: list[int] = []
    rejects: list[Reject] = []
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "input"
        path.write_bytes(content)
        for block in open_source(str(path), format).blocks():
            records += block.ready
            positions += block.positions or []
            numbers += block.line_numbers or []
            rejects += block.rejects
    return records, positions, numbers, [(r.position, r.line_number) for r in rejects]


@settings(deadline=None)
@given(rows, st.sampled_from(["\n", "\r\n"]), st.integers(1, 60))
@example([",", '1","x\ny"'], "\n", 1)
def test_csv(lines: list[str], end: str, size: int) -> None:
    content = end.join(["a,b", *lines]).encode()
    with mock.patch.object(delimited, "_read_plain", return_value=None):
        careful = read(content, "csv")
    with blocks_of(size):
        assert read(content, "csv") == careful


@settings(deadline=None)
@given(
    st.lists(
        st.sampled_from(
            [
                "Feb  1 10:00:00 host app[1]: hello",
                "Dec 31 23:59:59 hôst app: hi",
                "broken",
                "",
                "  ",
                "<34>Feb  1 10:00:01 host x",
            ]
        ),
        max_size=8,
    ),
    st.integers(1, 60),
)
def test_log_lines(lines: list[str], size: int) -> None:
    content = "\n".join(lines).encode()
    whole = read(content, "syslog:2024")
    with blocks_of(size):
        assert read(content, "syslog:2024") == whole


values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner),
    max_leaves=6,
)


@settings(deadline=None)
@given(
    st.lists(st.dictionaries(st.text(max_size=3), values, max_size=3) | values, max_size=5),
    st.sampled_from([None, 1]),
    st.booleans(),
    st.integers(1, 40),
)
def test_json_arrays(items: list[object], indent: int | None, ascii: bool, size: int) -> None:
    content = json.dumps(items, indent=indent, ensure_ascii=ascii).encode()
    with blocks_of(size):
        records, positions, _, rejects = read(content, "json")
    assert records == [item for item in items if isinstance(item, dict)]
    assert len(rejects) == len(items) - len(records)
    assert all(content[place : place + 1] == b"{" for place in positions)
