"""Parquet files, by record batches: columns that rules read, values made plain.

Times become ISO 8601 text to the microsecond, with `Z` where the column has a zone; dates and
clock times ISO text; decimals numbers; bytes text with `\\xNN` for what is not UTF-8. The position
of a record is the number of its row, from 0.

A column of a row group is read when it is first asked for. So where the statistics of a row group,
or its values, say that no event in it is of use, the other columns are never read; that of the time
always is, since the clock moves and late events count.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from typing import Any

import msgspec

from cep.event import Deferred
from cep.source.base import BadRecord, Block, Record, Reject, SourceError
from cep.source.opened import Opened, unread
from cep.source.rows import Rising, Rows

MAGIC = b"PAR1"
_MOST_ROWS = 1 << 15
_CELLS = 1 << 19
"""Rows of a block, and about how many cells it has: enough that the work for each block does not
count, and few enough that wide files do not fill the memory."""


class Parquet:
    """A Parquet file; raises `SourceError` where it is a pipe or pyarrow is not installed."""

    def __init__(self, opened: Opened) -> None:
        self.name = opened.name
        self.input = opened
        self._options = opened.options
        try:
            import pyarrow.parquet  # noqa: F401
        except ImportError:
            raise SourceError(
                f"{self.name}: this is a Parquet file; to read it: pip install 'cep[parquet]'"
            ) from None
        if not opened.is_regular or opened.compression:
            raise SourceError(f"{self.name}: Parquet can be read only from a plain file")

    def blocks(self) -> Iterator[Block]:
        yield from unread(self.input, self._all_blocks())

    def _all_blocks(self) -> Iterator[Block]:
        import pyarrow

        row = self.input.base
        try:
            file = _File(self.input.path, self._options.wanted)
            for index in range(file.groups):
                group = _Group(file, index)
                for number, start in enumerate(range(0, group.rows, file.block)):
                    count = min(file.block, group.rows - start)
                    rows = _Batch(group, number, range(count))
                    end = row + count
                    numbers = range(row + 1, end + 1)
                    block = Block(None, None, range(row, end), row, row + 1, [], numbers)
                    block.rows, block.end, block.end_line = rows, end, end + 1
                    yield block
                    row = end
                    if group.is_broken:
                        return
        except FileNotFoundError:
            raise SourceError(f"{self.name}: there is no such file") from None
        except (pyarrow.ArrowException, OSError, ValueError) as error:
            yield Block(None, [], [], row, row + 1, [Reject(row, row + 1, _broken(error), b"")], [])


def _broken(error: Exception) -> str:
    return f"broken Parquet data: {(str(error).splitlines() or ['unreadable'])[0]}"


class _File:
    """An open file. Texts that a column repeats are stored once, with a number in each row; such
    columns are read as numbers and texts (`_coded`), which takes a fraction of the time."""

    def __init__(self, path: str, wanted: frozenset[str] | None) -> None:
        import pyarrow
        from pyarrow import parquet

        data = pyarrow.OSFile(path)
        self._plain = parquet.ParquetFile(data)
        self._meta = self._plain.metadata
        names = self._plain.schema_arrow.names
        self._kinds = dict(zip(names, self._plain.schema_arrow.types, strict=True))
        self.names = [name for name in names if wanted is None or name in wanted]
        self.row = _row_type(self.names)
        self.block = min(_MOST_ROWS, max(1 << 10, _CELLS // (len(self.names) or 1)))
        """How many rows are read at a time."""
        self.groups: int = self._meta.num_row_groups
        texts = {name for name in self.names if "." not in name and _is_text(self.kind(name))}
        self._coded = parquet.ParquetFile(data, metadata=self._meta, read_dictionary=sorted(texts))
        columns = (self._meta.schema.column(i) for i in range(self._meta.num_columns))
        self._places = {column.path: i for i, column in enumerate(columns)}

    def kind(self, name: str) -> Any:
        """The type of a column."""
        return self._kinds[name]

    def rows(self, group: int) -> int:
        """How many rows a row group has."""
        rows: int = self._meta.row_group(group).num_rows
        return rows

    def chunk(self, group: int, name: str) -> Any:
        """What the file says of a column of a row group; None where the column is no plain one."""
        place = self._places.get(name)
        return None if place is None else self._meta.row_group(group).column(place)

    def batches(self, group: int, name: str) -> Iterator[Any]:
        """A column of a row group, batch by batch."""
        chunk = self.chunk(group, name)
        # A text by itself takes four bytes and more, so most of these are numbers.
        repeats = chunk is not None and chunk.total_uncompressed_size < 4 * chunk.num_values
        file = self._coded if repeats else self._plain
        found: Iterator[Any] = file.iter_batches(self.block, [group], [name], use_threads=False)
        return found


class _Group:
    """A row group, of which columns are read batch by batch, each when it is asked for."""

    def __init__(self, file: _File, index: int) -> None:
        self.file = file
        self.is_broken = False
        self.rows = file.rows(index)
        self._index = index
        self._streams: dict[str, tuple[int, Iterator[Any], Any]] = {}
        """For each column the number of the last batch, what comes after it, and the batch."""
        self._words: dict[str, _Words] = {}

    def array(self, name: str, number: int) -> Any:
        """A column of batch `number`; raises `BadRecord` where the data are broken."""
        import pyarrow

        at, stream, batch = self._streams.get(name, (-1, iter(()), None))
        try:
            if at > number or at < 0:
                at, stream = -1, self.file.batches(self._index, name)
            while at < number:
                at, batch = at + 1, next(stream)
        except (pyarrow.ArrowException, OSError, ValueError, StopIteration) as error:
            self.is_broken = True
            raise BadRecord(_broken(error)) from None
        self._streams[name] = (at, stream, batch)
        return batch.column(batch.schema.get_field_index(name))

    def words(self, name: str) -> _Words:
        """The texts that a column repeats."""
        return self._words.setdefault(name, _Words())

    def may_hold(self, name: str, values: Collection[object]) -> bool:
        """Whether any of these values may stand in a column, by the statistics of texts and signed
        numbers. A dot in the name may mean a column inside another one."""
        from pyarrow import types

        kind = self.file.kind(name)
        wanted: type = str if _is_text(kind) else int
        if "." in name or (wanted is int and not types.is_signed_integer(kind)):
            return True
        chunk = self.file.chunk(self._index, name)
        found = chunk.statistics if chunk is not None else None
        if found is None or not found.has_min_max:
            return True
        low, high = found.min, found.max
        return any(
            low <= value <= high
            for value in values
            if isinstance(value, str if wanted is str else int | float)
        )


class _Words:
    """The texts that the rows of a column hold by number, made once for all batches that have the
    same, or the same and further ones."""

    def __init__(self) -> None:
        self._known: Any = None
        self._texts: list[object] = [None]
        """The texts by number; behind them None, for rows without one."""

    def of(self, coded: Any) -> list[object]:
        """The values of the rows of an array."""
        import pyarrow

        words = coded.dictionary
        if self._known is None or not words.equals(self._known):
            there = 0 if self._known is None else len(self._known)
            if not there or not words.slice(0, there).equals(self._known):
                there = 0
            self._texts[there:] = [*_values(words.slice(there)), None]
            self._known = words
        numbers = coded.indices
        if coded.null_count:
            numbers = numbers.cast(pyarrow.int64()).fill_null(-1)
        return list(map(self._texts.__getitem__, _plain_list(numbers)))


class _Batch(Rows):
    """Some rows of a row group: batch `number` of it, or the rows `chosen` of that."""

    def __init__(
        self, group: _Group, number: int, places: Sequence[int], chosen: Any = None
    ) -> None:
        self.places = places
        self._group = group
        self._number = number
        self._chosen = chosen
        self._known: dict[str, list[object]] = {}

    @property
    def names(self) -> Sequence[str]:
        return self._group.file.names

    def _array(self, name: str) -> Any:
        array = self._group.array(name, self._number)
        return array if self._chosen is None else array.take(self._chosen)

    def column(self, name: str) -> Sequence[object]:
        if name not in self._known:
            import pyarrow

            try:
                array = self._array(name)
                is_coded = pyarrow.types.is_dictionary(array.type)
                self._known[name] = (
                    self._group.words(name).of(array) if is_coded else _values(array)
                )
            except (pyarrow.ArrowException, OverflowError, ValueError) as error:
                if isinstance(error, BadRecord):
                    raise
                raise BadRecord(f"`{name}` holds what cannot be read: {error}") from None
        return self._known[name]

    def rising(self, name: str) -> Rising | None:
        import pyarrow.compute as pc
        from pyarrow import types

        array = self._array(name)
        kind = array.type
        whole = _whole(array)
        if whole is None or array.null_count:
            return None
        if len(whole) > 1 and not pc.all(pc.less_equal(whole[:-1], whole[1:])).as_py():
            return None
        first, last = whole[0].as_py(), whole[-1].as_py()
        if types.is_integer(kind):
            return Rising(first, last)
        return Rising(first, last, "local" if kind.tz is None else "utc")

    def whole(self, name: str) -> Sequence[int]:
        numbers: list[int] = _plain_list(_whole(self._array(name)))
        return numbers

    def only(self, name: str, values: Collection[object]) -> Rows:
        import pyarrow
        import pyarrow.compute as pc

        if not self._group.may_hold(name, values):
            return self.at(())
        array = self._array(name)
        words = array.dictionary if pyarrow.types.is_dictionary(array.type) else array
        fitting = _as_values(values, words.type)
        if fitting is None:
            found = self.column(name)
            return self.at([i for i, value in enumerate(found) if value in values])
        fits = pc.is_in(words, value_set=fitting)
        if words is not array:
            numbers = pc.indices_nonzero(fits).cast(array.indices.type)
            fits = pc.is_in(array.indices, value_set=numbers)
        return self._choose(pc.indices_nonzero(fits))

    def at(self, indices: Sequence[int]) -> Rows:
        import pyarrow

        return self._choose(pyarrow.array(indices, pyarrow.uint64()))

    def _choose(self, chosen: Any) -> Rows:
        places = _plain_list(chosen)
        if self._chosen is not None:
            places = [self.places[index] for index in places]
            chosen = self._chosen.take(chosen)
        return _Batch(self._group, self._number, places, chosen)

    def originals(self) -> Sequence[Any]:
        if not self.names:
            return list(self)
        return list(map(self._group.file.row, *(self.column(name) for name in self.names)))


def _row_type(names: Sequence[str]) -> Any:
    """The type of what events keep of their rows: the cells, and nothing that the collector of
    garbage would have to look at."""

    def record(row: Any) -> Record:
        cells = zip(names, msgspec.structs.astuple(row), strict=True)
        return {name: cell for name, cell in cells if cell is not None}

    fields = [(f"c{i}", Any) for i in range(len(names))]
    return msgspec.defstruct(
        "Row", fields, bases=(Deferred,), namespace={"record": record}, gc=False
    )


def _is_text(kind: Any) -> bool:
    from pyarrow import types

    return bool(types.is_string(kind) or types.is_large_string(kind))


def _whole(array: Any) -> Any:
    """A column of integers, or of moments as microseconds; None for any other."""
    import pyarrow
    from pyarrow import types

    kind = array.type
    try:
        if types.is_timestamp(kind):
            micros = array.cast(pyarrow.timestamp("us", kind.tz), safe=kind.unit != "ns")
            return micros.cast(pyarrow.int64())
        if types.is_integer(kind):
            return array.cast(pyarrow.int64())
    except pyarrow.ArrowException:  # beyond what microseconds or 64 bits can hold
        pass
    return None


def _as_values(values: Collection[object], kind: Any) -> Any:
    """Those of `values` that a column of a type can hold, as Arrow has them; None where only Python
    can tell."""
    import pyarrow
    from pyarrow import types

    if _is_text(kind):
        return pyarrow.array([v for v in values if isinstance(v, str)], kind)
    numbers = [v for v in values if isinstance(v, int | float)]
    if types.is_integer(kind):
        try:
            return pyarrow.array([int(v) for v in numbers if v == int(v)], pyarrow.int64()).cast(
                kind, safe=True
            )
        except (pyarrow.ArrowException, OverflowError, ValueError):
            return None
    return None


def _values(column: Any) -> list[object]:
    import pyarrow
    from pyarrow import types

    kind = column.type
    if types.is_timestamp(kind) and kind.unit == "ns":
        column = column.cast(pyarrow.timestamp("us", kind.tz), safe=False)
    if _is_text(kind):
        texts: list[object] = column.to_pylist()
        return texts
    if types.is_integer(kind) or types.is_floating(kind) or types.is_boolean(kind):
        return _plain_list(column)
    return [_plain(value) for value in column.to_pylist()]


def _plain_list(array: Any) -> list[Any]:
    """The values of an array; those of numbers without gaps straight from its memory."""
    form: Any = _FORMS.get(str(array.type))
    if form is None or array.null_count or not len(array):
        found: list[Any] = array.to_pylist()
        return found
    start = array.offset
    return memoryview(array.buffers()[1]).cast(form)[start : start + len(array)].tolist()


_FORMS = {
    "int8": "b",
    "int16": "h",
    "int32": "i",
    "int64": "q",
    "uint8": "B",
    "uint16": "H",
    "uint32": "I",
    "uint64": "Q",
    "float": "f",
    "double": "d",
}
"""How the memory of arrays is read, by their types."""


def _plain(value: object) -> object:
    """A value of Arrow as one that JSON could hold."""
    for kind, convert in _CONVERT:
        if isinstance(value, kind):
            return convert(value)
    return value


def _datetime_text(value: datetime) -> str:
    if value.tzinfo is None:
        return value.isoformat()
    return value.astimezone(UTC).replace(tzinfo=None).isoformat() + "Z"


def _decimal(value: Decimal) -> object:
    return int(value) if value == value.to_integral_value() else float(value)


_CONVERT: tuple[tuple[type, Callable[[Any], object]], ...] = (
    (datetime, _datetime_text),
    (date, date.isoformat),
    (time, time.isoformat),
    (timedelta, timedelta.total_seconds),
    (Decimal, _decimal),
    (bytes, lambda value: value.decode("utf-8", errors="backslashreplace")),
    (list, lambda value: [_plain(item) for item in value]),
    (dict, lambda value: {str(key): _plain(item) for key, item in value.items()}),
)
