"""Of rows that no rule can use no more is read than was said: cells and columns, counted."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

import cep
from cep.source import open_source, parquet
from cep.source.delimited import _Table

RULE = cep.loads('rule r { by user sequence within 1h { a: A b: A where n > a.n } alert "{user}" }')
NAMES = ("time", "type", "user", "n", "text")


def rows(kinds: Sequence[str]) -> Iterator[tuple[object, ...]]:
    for number, kind in enumerate(kinds):
        yield 1_700_000_000 + number, kind, f"u{number % 3}", number, f"word {number % 5}"


def matches_in(path: Path) -> int:
    engine, found = cep.Engine(RULE), list[cep.Match]()
    cep.run_sources(engine, [open_source(str(path))], on_matches=found.extend)
    return len(found) + len(engine.close())


def test_lines_of_csv_are_taken_apart_where_they_are_of_use(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    kinds = ["A" if number % 10 == 0 else "X" for number in range(5000)]
    path = tmp_path / "a.csv"
    path.write_text("\n".join(",".join(map(str, row)) for row in (NAMES, *rows(kinds))) + "\n")
    lines = 0
    take_apart = _Table.take_apart

    def counting(table: _Table, some: Any) -> list[str]:
        nonlocal lines
        taken = list(some)
        lines += len(taken)
        return take_apart(table, taken)

    monkeypatch.setattr(_Table, "take_apart", counting)
    assert matches_in(path)
    assert 0 < lines <= kinds.count("A") + 1  # and the first row, by which the file is known


def test_columns_of_parquet_are_read_where_they_are_of_use(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pyarrow = pytest.importorskip("pyarrow")
    from pyarrow import parquet as library

    kinds = ["A"] * 100 + ["X"] * 300 + ["0", "Z"] * 50
    columns = zip(*rows(kinds), strict=True)
    path = tmp_path / "a.parquet"
    table = pyarrow.table(dict(zip(NAMES, map(list, columns), strict=True)))
    library.write_table(table, path, row_group_size=100)
    read = Counter[str]()
    batches = parquet._File.batches

    def counting(file: Any, group: int, name: str) -> Iterator[Any]:
        read[name] += 1
        return batches(file, group, name)

    monkeypatch.setattr(parquet._File, "batches", counting)
    assert matches_in(path)
    # Statistics say nothing of the last row group: `A` may stand between `0` and `Z`.
    assert read == {"time": 5, "type": 2, "user": 1, "n": 1, "text": 1}


def test_texts_that_a_column_repeats_are_made_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pyarrow = pytest.importorskip("pyarrow")
    from pyarrow import parquet as library

    monkeypatch.setattr(parquet, "_MOST_ROWS", 100)
    path = tmp_path / "a.parquet"
    library.write_table(pyarrow.table({"user": [f"u{i % 7}" for i in range(1000)]}), path)
    users = [
        text
        for block in open_source(str(path)).blocks()
        if block.rows is not None
        for text in block.rows.column("user")
    ]
    assert len(users) == 1000
    assert len(set(map(id, users))) == 7
