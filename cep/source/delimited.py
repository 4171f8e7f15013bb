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
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from itertools import accumulate, chain, repeat
from typing import Any, cast

from cep.event import Deferred
from cep.source.base import BadRecord, Block, Record, Reject
from cep.source.line_records import add_reject
from cep.source.lines import LineBlock
from cep.source.opened import Opened
from cep.source.rows import Rising, Rows
from cep.source.values import Column, are_rising

_END = "end"
"""A row of its own behind all others, where none of them goes on."""


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
                table = self._read_row(rows, feed, table, block, delimiter)
            feed.leave_out_what_was_read()
            if table is not None and not block.rejects:
                plain = _read_plain(feed, table)
                if plain is not None:
                    yield plain
                    continue
            while feed.has_lines():
                table = self._read_row(rows, feed, table, block, delimiter)
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
        return _Table(header, delimiter, self.input) if header else None

    def _read_row(
        self,
        rows: Iterator[list[str]],
        feed: _Feed,
        table: _Table | None,
        block: Block,
        delimiter: str,
    ) -> _Table | None:
        """Takes one row, with care; gives the table, which the first row makes."""
        feed.begin_record()
        try:
            row = next(rows, [])
            feed.check()
            if not row:
                return table
            if table is None:
                return _Table(row, delimiter, self.input)
            if row != table.header:
                _add(block, feed, table.read(row))
        except (BadRecord, csv.Error) as error:
            reason = str(error) if isinstance(error, BadRecord) else f"no CSV: {error}"
            add_reject(block.rejects, feed.reject(reason))
        return table


def _read_plain(feed: _Feed, table: _Table) -> Block | None:
    """A whole block at once, by functions written in C; None where a row of it needs care."""
    lines = feed.lines
    if not lines or lines[-1].count(b'"') % 2:
        return None
    try:
        rows = table.read_all(lines)
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

    def __init__(self, header: list[str], delimiter: str, opened: Opened) -> None:
        self.header = header
        self.width = len(header)
        self.delimiter = delimiter
        wanted, types = opened.options.wanted, opened.options.types
        self.columns = {
            name: (index, Column(types.get(name, "any")))
            for index, name in enumerate(column_names(header))
            if wanted is None or name in wanted
        }
        self.reach = 1
        """How many columns from the left are looked at in all rows."""
        self._refusing = [name for name in self.columns if types.get(name) in ("number", "bool")]
        self._breaks = delimiter.encode() * (self.width - 1) + b"\n"
        self._others = bytes(set(range(256)) - set(self._breaks))
        self._header_line = delimiter.join(header).encode()
        self._header_lines = {self._header_line + end for end in (b"", b"\n", b"\r\n")}

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

    def read_line(self, line: bytes) -> Record:
        """The record on one line."""
        return self.read(next(csv.reader([line.decode("utf-8")], delimiter=self.delimiter)))

    def read_all(self, lines: list[bytes]) -> Rows | None:
        """The rows of lines, one on each; `ValueError` where a value does not fit, None where one
        of them is a header or has another width."""
        data = b"".join(lines)
        if not data.isascii():
            data.decode("utf-8")
        texts = None
        if not self._is_plain(lines, data):
            texts = self._read_quoted(data)
            if texts is None or len(texts) != len(lines) * self.width or self._heads(texts):
                return None
        elif self._header_line in data and not self._header_lines.isdisjoint(lines):
            return None
        rows = _Cells(self, lines, range(len(lines)), texts, self.width)
        for name in self._refusing:
            rows.column(name)
        return rows

    def _is_plain(self, lines: list[bytes], data: bytes) -> bool:
        """Whether taking texts apart is what a CSV reader does: nothing is quoted, and all rows are
        of one width. It has a say of its own on empty lines and on cells that are too long."""
        if b'"' in data or self.width == 1:
            return False
        if b"\r" in data and data.count(b"\r") != data.count(b"\r\n"):
            return False
        if len(data) > csv.field_size_limit() < max(map(len, lines)):
            return False
        breaks = data.translate(None, self._others)
        return breaks + b"\n" * (data[-1:] != b"\n") == self._breaks * len(lines)

    def _read_quoted(self, data: bytes) -> list[str] | None:
        """The cells of all rows, one after the other; None where some row has another width."""
        text = data.decode("utf-8").removesuffix("\n")
        rows = list(csv.reader([*text.split("\n"), _END], delimiter=self.delimiter))
        if rows.pop() != [_END]:  # the last line is not the end of its row
            return None
        return list(chain.from_iterable(rows)) if set(map(len, rows)) == {self.width} else None

    def _heads(self, texts: list[str]) -> bool:
        """Whether one of the rows with these cells is the header."""
        if self.header[0] not in texts[:: self.width]:
            return False
        starts = range(0, len(texts), self.width)
        return any(texts[start : start + self.width] == self.header for start in starts)

    def take_apart(self, lines: Iterable[bytes]) -> list[str]:
        """The cells of plain lines, row after row; each line break is a cell, too."""
        text = b"".join(lines).decode("utf-8").replace("\r\n", "\n")
        return text.replace("\n", f"{self.delimiter}\n{self.delimiter}").split(self.delimiter)


class _Cells(Rows):
    """Rows of which columns are made when they are asked for.

    `lines` are those of the block, `places` says on which of them the rows are. `texts` has their
    cells where they are known, row after row, `stride` for each: lines are taken apart as late and
    as little as possible.
    """

    def __init__(
        self,
        table: _Table,
        lines: Sequence[bytes],
        places: Sequence[int],
        texts: list[str] | None,
        stride: int,
    ) -> None:
        self.places = places
        self._table = table
        self._lines = lines
        self._texts = texts
        self._stride = stride
        self._begun: list[bytes] = []
        self._begun_to = 0
        """The first so many cells of each line, and the rest of it."""
        self._known: dict[str, list[object]] = {}

    @property
    def names(self) -> Sequence[str]:
        return list(self._table.columns)

    def column(self, name: str) -> Sequence[object]:
        if name not in self._known:
            index, column = self._table.columns[name]
            self._known[name] = column.values(self._cells(index))
        return self._known[name]

    def _cells(self, index: int) -> list[str]:
        if self._texts is None:
            self._texts = self._table.take_apart(map(self._lines.__getitem__, self.places))
            self._stride = self._table.width + 1
        return self._texts[index :: self._stride][: len(self.places)]

    def _raw(self, index: int) -> list[bytes] | list[str]:
        """The cells of a column, as they are found first."""
        table = self._table
        table.reach = max(table.reach, index + 1)
        if self._texts is not None or 2 * table.reach > table.width + 1:
            return self._cells(index)
        if self._begun_to < table.reach:
            self._begun_to, delimiter = table.reach, table.delimiter.encode()
            lines = map(self._lines.__getitem__, self.places)
            # The list of each line is gone at once: the collector of garbage never sees it.
            self._begun = [cell for line in lines for cell in line.split(delimiter, self._begun_to)]
        return self._begun[index :: self._begun_to + 1]

    def rising(self, name: str) -> Rising | None:
        index, column = self._table.columns[name]
        cells = self._raw(index)
        if column.reads_numbers and are_rising(cells):
            return Rising(int(cells[0]), int(cells[-1]))
        values: Any = self.column(name)
        if set(map(type, values)) != {int} or values != sorted(values):
            return None
        return Rising(values[0], values[-1])

    def whole(self, name: str) -> Sequence[int]:
        return cast("Sequence[int]", self.column(name))

    def only(self, name: str, values: Collection[object]) -> Rows:
        index, column = self._table.columns[name]
        cells: Sequence[bytes | str] = self._raw(index)
        fitting = {cell for cell in set(cells) if column.value(_text(cell)) in values}
        return self.at([i for i, cell in enumerate(cells) if cell in fitting] if fitting else [])

    def at(self, indices: Sequence[int]) -> Rows:
        if len(indices) == len(self):
            return self
        places = [self.places[index] for index in indices]
        if self._texts is None:
            return _Cells(self._table, self._lines, places, None, 0)
        texts, stride = list[str](), self._stride
        for index in indices:
            texts += self._texts[index * stride : (index + 1) * stride]
        return _Cells(self._table, self._lines, places, texts, stride)

    def originals(self) -> Sequence[Any]:
        lines = map(self._lines.__getitem__, self.places)
        return list(map(_Line, repeat(self._table.read_line), lines))


def _text(cell: bytes | str) -> str:
    return cell if isinstance(cell, str) else cell.decode("utf-8")


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
