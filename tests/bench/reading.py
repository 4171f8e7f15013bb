"""How fast other formats than JSON lines are read: CSV, gzip and Parquet, each beside a bare loop.

In: the events of W1, written once more in the other forms. Out: rows with the events a second from
file to matches. The loop of CSV is `csv.reader` with the rule written by hand, that of gzip decodes
line by line; Parquet is compared with decoding all its columns and doing nothing. Of the events of
W1 15 in 100 matter.
"""

from __future__ import annotations

import csv
import gzip
import shutil
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import msgspec

from . import floor

LEVEL = 6
"""The level of gzip."""


def as_csv(source: Path) -> Path:
    """The events of a file of JSON lines as CSV, beside it."""

    def write(path: Path) -> None:
        with source.open("rb") as lines, path.open("w", encoding="utf-8", newline="") as out:
            records = map(msgspec.json.decode, lines)
            first = next(records)
            writer = csv.writer(out, lineterminator="\n")
            writer.writerow(first)
            for record in (first, *records):
                writer.writerow(map(_cell, record.values()))

    return _made(source.with_suffix(".csv"), write)


def _cell(value: object) -> object:
    return str(value).lower() if isinstance(value, bool) else value


def as_gzip(source: Path) -> Path:
    """The same file, compressed."""

    def write(path: Path) -> None:
        with source.open("rb") as lines, gzip.open(path, "wb", LEVEL) as out:
            shutil.copyfileobj(lines, out)

    return _made(source.with_name(f"{source.name}.gz"), write)


def as_parquet(source: Path) -> Path:
    """The events of a file of CSV as Parquet."""

    def write(path: Path) -> None:
        from pyarrow import csv as arrow_csv
        from pyarrow import parquet

        parquet.write_table(arrow_csv.read_csv(source), path)

    return _made(source.with_suffix(".parquet"), write)


def _made(path: Path, write: Callable[[Path], None]) -> Path:
    if not path.exists():
        unfinished = path.with_name(f"{path.name}.unfinished")
        write(unfinished)
        unfinished.rename(path)
    return path


# ---------------------------------------------------------------------------- bare loops


def csv_events(path: Path) -> Iterator[list[floor.Event]]:
    """The events of W1's types in a CSV file, as a program that knows its rule reads them."""
    with path.open(encoding="utf-8", newline="") as file:
        rows = csv.reader(file)
        names = next(rows)
        time, kind, user, amount, number = map(names.index, ("ts", "type", "user", "amount", "seq"))
        part: list[floor.Event] = []
        for row in rows:
            if row[kind] in _KINDS:
                event = floor.Event(
                    int(row[time]), row[kind], row[user], float(row[amount]), int(row[number])
                )
                part.append(event)
                if len(part) == 1000:
                    yield part
                    part = []
        yield part


_KINDS = frozenset("ABC")


def gzip_events(path: Path) -> Iterator[list[floor.Event]]:
    """The events of a compressed file, decoded line by line."""
    decode = msgspec.json.Decoder(floor.Event).decode
    with gzip.open(path, "rb") as file:
        while block := file.readlines(floor.READ):
            yield list(map(decode, block))


def arrow_rows(path: Path) -> Iterable[list[Any]]:
    """Reads all columns of a Parquet file; gives nothing."""
    from pyarrow import parquet

    for _ in parquet.ParquetFile(path).iter_batches(1 << 14, use_threads=False):
        yield []
