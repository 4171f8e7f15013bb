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
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from itertools import accumulate, chain, compress, repeat
from typing import Any, cast

from cep.event import Deferred
from cep.source.base import BadRecord, Block, Record, Reject
from cep.source.line_records import add_reject
from cep.source.lines import LineBlock
from cep.source.opened import Opened
from cep.source.rows import Rising, Rows
from cep.source.values import Column, are_rising


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
            block = Block(None, [], [], feed.offset, feed.number, [], [])
            while table is None and feed.has_lines():
                table = self._read_row(rows, feed, table, block)
            feed.leave_out_what_was_read()
            if table is not None and not block.rejects:
                plain = _read_plain(feed, table, delimiter)
                if plain is not None:
                    yield plain
                    continue
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
        texts = _split(lines, delimiter, table.width)
        rows = table.read_all(texts, lines, delimiter) if texts is not None else None
    except (ValueError, csv.Error):
        return None
    if rows is None:
        return None
    offsets = list(accumulate(map(len, lines), initial=feed.offset))
    end = feed.number + len(lines)
    block = Block(None, None, offsets[:-1], feed.offset, feed.number, feed.take_rejects())
    block.rows, block.line_numbers = rows, range(feed.number, end)
    block.end, block.end_line = offsets[-1], end
    feed.lines = []
    return block


def _split(lines: list[bytes], delimiter: str, width: int) -> list[str] | None:
    """The cells of all lines, one after the other; None where some line has not `width` of them.

    Where nothing is quoted, taking texts apart is what a CSV reader does, in less time; it has a
    say of its own on empty lines and on cells that are too long.
    """
    text = b"".join(lines).decode("utf-8").removesuffix("\n")
    plain = text if "\r" not in text else text.removesuffix("\r").replace("\r\n", "\n")
    is_short = max(map(len, lines)) <= csv.field_size_limit()
    if '"' not in plain and "\r" not in plain and is_short and width > 1:
        # Line breaks become cells, which stand in the right places if all rows are of one width.
        cells = plain.replace("\n", f"{delimiter}\n{delimiter}").split(delimiter)
        breaks = cells[width :: width + 1]
        if len(cells) != len(lines) * (width + 1) - 1 or breaks.count("\n") != len(lines) - 1:
            return None
        del cells[width :: width + 1]
        return cells
    rows = list(csv.reader(text.split("\n"), delimiter=delimiter))
    if len(rows) != len(lines) or set(map(len, rows)) != {width}:
        return None
    return list(chain.from_iterable(rows))


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

    def leave_out_what_was_read(self) -> None:
        """Makes a block of the lines that are left."""
        if self._index:
            self.lines, self._index = self.lines[self._index :], 0

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
        self.width = len(header)
        wanted, types = opened.options.wanted, opened.options.types
        self.columns = {
            name: (index, Column(types.get(name, "any")))
            for index, name in enumerate(column_names(header))
            if wanted is None or name in wanted
        }
        self._refusing = [name for name in self.columns if types.get(name) in ("number", "bool")]

    def read(self, row: list[str]) -> Record:
        """The record of one row; `BadRecord` where its width or a value does not fit."""
        if len(row) != self.width and (len(row) < self.width or any(row[self.width :])):
            raise BadRecord(f"{_columns(len(row))}, but the header has {self.width}")
        record: Record = {}
        for name, (index, column) in self.columns.items():
            value = column.value(row[index])
            if value is not None:
                record[name] = value
        return record

    def read_all(self, texts: list[str], lines: list[bytes], delimiter: str) -> Rows | None:
        """The rows of lines, one on each; `BadRecord` where a value does not fit, None where one of
        them is a header. `texts` are their cells."""
        if self.header[0] in texts[:: self.width]:
            starts = range(0, len(texts), self.width)
            if any(texts[start : start + self.width] == self.header for start in starts):
                return None

        def record(line: bytes) -> Record:
            return self.read(next(csv.reader([line.decode("utf-8")], delimiter=delimiter)))

        rows = _Cells(self.columns, texts, self.width, range(len(lines)), lines, record)
        for name in self._refusing:
            rows.column(name)
        return rows


class _Cells(Rows):
    """Rows of which columns are made when they are asked for. `texts` has their cells, row after
    row, `width` for each; `record` makes a record of a line of the block."""

    def __init__(
        self,
        columns: Mapping[str, tuple[int, Column]],
        texts: list[str],
        width: int,
        places: Sequence[int],
        lines: Sequence[bytes],
        record: Callable[[bytes], Record],
    ) -> None:
        self.places = places
        self._lines = lines
        self._make = record
        self._columns = columns
        self._texts = texts
        self._width = width
        self._known: dict[str, list[object]] = {}

    @property
    def names(self) -> Sequence[str]:
        return list(self._columns)

    def column(self, name: str) -> Sequence[object]:
        if name not in self._known:
            index, column = self._columns[name]
            self._known[name] = column.values(self._texts[index :: self._width])
        return self._known[name]

    def rising(self, name: str) -> Rising | None:
        index, column = self._columns[name]
        texts = self._texts[index :: self._width]
        if column.reads_numbers and are_rising(texts):
            return Rising(int(texts[0]), int(texts[-1]))
        values: Any = self.column(name)
        if set(map(type, values)) != {int} or values != sorted(values):
            return None
        return Rising(values[0], values[-1])

    def whole(self, name: str) -> Sequence[int]:
        return cast("Sequence[int]", self.column(name))

    def only(self, name: str, values: Collection[object]) -> Rows:
        column = self.column(name)
        return self.at(list(compress(range(len(column)), map(values.__contains__, column))))

    def at(self, indices: Sequence[int]) -> Rows:
        if len(indices) == len(self):
            return self
        texts, width = [], self._width
        for index in indices:
            texts += self._texts[index * width : (index + 1) * width]
        places = [self.places[index] for index in indices]
        return _Cells(self._columns, texts, width, places, self._lines, self._make)

    def originals(self) -> Sequence[Any]:
        lines = map(self._lines.__getitem__, self.places)
        return list(map(_Line, repeat(self._make), lines))


class _Line(Deferred, gc=False):
    """What an event keeps of its row: the line, and what makes a record of it."""

    make: Callable[[bytes], Record]
    line: bytes

    def record(self) -> Record:
        return self.make(self.line)


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
    assert isinstance(block.positions, list)
    assert isinstance(block.line_numbers, list)
    block.records.append(record)
    block.positions.append(feed.start)
    block.line_numbers.append(feed.start_number)
