"""CSV and TSV: a header with the names of the columns, then one record per row.

Values are typed by their form, or as stated (see `values`); an empty one is missing. A row with
fewer or more columns than the header is rejected, since no one knows which of them is missing;
empty columns too many at its end do no harm. A column without a name is called `column_N`, the
second one called `x` is `x_2`. Quoted fields may hold line breaks, up to 128 KiB. A row that
equals the header is the header of a file that was appended, and passed over.

The delimiter of `.csv` is the comma, or the one of `; TAB |` that the header has when it has no
comma. Rows that are not UTF-8 are rejected.
"""

from __future__ import annotations

import csv
from collections.abc import Iterator
from itertools import accumulate

from cep.source.base import BadRecord, Block, Record, Reject
from cep.source.line_records import add_reject
from cep.source.lines import LineBlock
from cep.source.opened import Opened
from cep.source.values import Column


class Delimited:
    """A CSV file; `delimiter` None means: look at the header."""

    def __init__(self, opened: Opened, delimiter: str | None) -> None:
        self.name = opened.name
        self.input = opened
        self._delimiter = delimiter

    def blocks(self) -> Iterator[Block]:
        first_line = self.input.head.partition(b"\n")[0].decode("utf-8", "replace")
        delimiter = self._delimiter or find_delimiter(first_line)
        feed = _Feed(self.input.lines())
        rows = csv.reader(feed, delimiter=delimiter)
        table = self._table_so_far(delimiter)
        while feed.next_block():
            if table is not None and (block := _read_plain(feed, table, delimiter)):
                yield block
                continue
            block = Block(None, [], [], feed.offset, feed.number, [], [])
            while feed.has_lines():
                table = self._read_row(rows, feed, table, block)
            block.rejects += feed.take_rejects()
            block.end, block.end_line = feed.offset, feed.number
            yield block

    def _table_so_far(self, delimiter: str) -> _Table | None:
        """The columns of a file that is gone on with: its header was read before."""
        if self.input.resumed_at is None:
            return None
        lines = self.input.first_lines()
        try:
            header = next(csv.reader(_Feed(lines), delimiter=delimiter), None)
        except csv.Error:
            header = None
        finally:
            lines.close()
        return _Table(header, self.input) if header else None

    def _read_row(
        self, rows: Iterator[list[str]], feed: _Feed, table: _Table | None, block: Block
    ) -> _Table | None:
        """Takes one row, with care; gives the table, which the first row makes."""
        feed.begin_record()
        try:
            row = next(rows, [])
            feed.check()
            if not row:
                return table
            if table is None:
                return _Table(row, self.input)
            if row != table.header:
                _add(block, feed, table.read(row))
        except (BadRecord, csv.Error) as error:
            reason = str(error) if isinstance(error, BadRecord) else f"no CSV: {error}"
            add_reject(block.rejects, feed.reject(reason))
        return table


def _read_plain(feed: _Feed, table: _Table, delimiter: str) -> Block | None:
    """A whole block at once, by functions written in C; None where a row of it needs care."""
    lines = feed.lines
    if not lines or lines[-1].count(b'"') % 2:
        return None
    try:
        text = b"".join(lines).decode("utf-8").removesuffix("\n")
        rows = list(csv.reader(text.split("\n"), delimiter=delimiter))
        if len(rows) != len(lines) or table.header in rows:
            return None  # a row takes several lines
        records = table.read_all(rows)
    except (ValueError, csv.Error):
        return None
    offsets = list(accumulate(map(len, lines), initial=feed.offset))
    numbers = list(range(feed.number, feed.number + len(lines)))
    rejects = feed.take_rejects()
    block = Block(
        None,
        records,
        offsets[:-1],
        feed.offset,
        feed.number,
        rejects,
        numbers,
        end=offsets[-1],
        end_line=feed.number + len(lines),
    )
    feed.lines = []
    return block


def find_delimiter(header: str) -> str:
    """The delimiter of a header line: the comma, if it has one.

    >>> find_delimiter("a;b;c")
    ';'
    """
    if "," in header:
        return ","
    return max(";\t|", key=header.count) if any(c in header for c in ";\t|") else ","


class _Feed:
    """Gives lines to the CSV reader and knows where the present record began.

    `lines` are those of the present block, `offset` and `number` the place of the next one.
    """

    def __init__(self, blocks: Iterator[LineBlock]) -> None:
        self._blocks = blocks
        self.lines: list[bytes] = []
        self._index = 0
        self._rejects: list[Reject] = []
        self._record: list[bytes] = []
        self._broken = False
        self.offset = self.start = 0
        self.number = self.start_number = 1

    def next_block(self) -> bool:
        block = next(self._blocks, None)
        if block is None:
            return False
        self.lines, self._index = block.lines, 0
        self.offset, self.number = block.offset, block.line_number
        self._rejects += block.rejects
        return True

    def has_lines(self) -> bool:
        return self._index < len(self.lines)

    def begin_record(self) -> None:
        self.start, self.start_number = self.offset, self.number
        self._record = []
        self._broken = False

    def reject(self, reason: str) -> Reject:
        raw = b"".join(self._record)
        return Reject(self.start, self.start_number, reason, raw, len(self._record))

    def check(self) -> None:
        """Raises where the present record is not UTF-8."""
        if self._broken:
            raise BadRecord("invalid UTF-8")

    def take_rejects(self) -> list[Reject]:
        rejects, self._rejects = self._rejects, []
        return rejects

    def __iter__(self) -> Iterator[str]:
        return self

    def __next__(self) -> str:
        while not self.has_lines():
            if not self.next_block():
                raise StopIteration
        line = self.lines[self._index]
        self._index += 1
        self.offset += len(line)
        self.number += 1
        self._record.append(line)
        try:
            return line.decode("utf-8")
        except UnicodeDecodeError:
            self._broken = True
            return line.decode("utf-8", errors="replace")


class _Table:
    """The columns of a file: their names, which of them are wanted, how they become values."""

    def __init__(self, header: list[str], opened: Opened) -> None:
        self.header = header
        self._width = len(header)
        wanted, types = opened.options.wanted, opened.options.types
        self._columns = [
            (index, name, Column(types.get(name, "any")))
            for index, name in enumerate(column_names(header))
            if wanted is None or name in wanted
        ]

    def read(self, row: list[str]) -> Record:
        """The record of one row; `BadRecord` where its width or a value does not fit."""
        if len(row) != self._width and (len(row) < self._width or any(row[self._width :])):
            raise BadRecord(f"{_columns(len(row))}, but the header has {self._width}")
        record: Record = {}
        for index, name, column in self._columns:
            value = column.value(row[index])
            if value is not None:
                record[name] = value
        return record

    def read_all(self, rows: list[list[str]]) -> list[Record]:
        """The records of many rows; `BadRecord` where one of them does not fit."""
        if set(map(len, rows)) != {self._width}:
            raise BadRecord("a row of another width")
        texts = list(zip(*rows, strict=True))
        columns = [column.values(texts[index]) for index, _, column in self._columns]
        names = [name for _, name, _ in self._columns]
        if not names:
            return [{} for _ in rows]
        records: list[Record] = [
            dict(zip(names, values, strict=True)) for values in zip(*columns, strict=True)
        ]
        for name, values in zip(names, columns, strict=True):
            if None in values:
                for record in records:
                    if record[name] is None:
                        del record[name]
        return records


def column_names(header: list[str]) -> list[str]:
    """Names for all columns, each of them once.

    >>> column_names(["a", "", "a"])
    ['a', 'column_2', 'a_2']
    """
    names: list[str] = []
    taken: set[str] = set()
    for number, text in enumerate(header, 1):
        base = text.strip() or f"column_{number}"
        name, copy = base, 1
        while name in taken:
            copy += 1
            name = f"{base}_{copy}"
        taken.add(name)
        names.append(name)
    return names


def _columns(count: int) -> str:
    return "1 column" if count == 1 else f"{count} columns"


def _add(block: Block, feed: _Feed, record: Record) -> None:
    assert block.records is not None
    assert block.positions is not None
    assert block.line_numbers is not None
    block.records.append(record)
    block.positions.append(feed.start)
    block.line_numbers.append(feed.start_number)
