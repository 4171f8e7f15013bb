"""Parquet files, by record batches: columns that rules read, values made plain.

Times become ISO 8601 text to the microsecond, with `Z` where the column has a zone; dates and
clock times ISO text; decimals numbers; bytes text with `\\xNN` for what is not UTF-8. The position
of a record is the number of its row, from 0.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from typing import Any

from cep.source.base import Block, Record, Reject, SourceError
from cep.source.opened import Opened, unread

MAGIC = b"PAR1"
_ROWS = 8192


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
            for batch in self._batches():
                records = _records(batch)
                places = list(range(row, row + len(records)))
                numbers = [place + 1 for place in places]
                end = row + len(records)
                yield Block(None, records, places, row, row + 1, [], numbers, end, end + 1)
                row = end
        except FileNotFoundError:
            raise SourceError(f"{self.name}: there is no such file") from None
        except (pyarrow.ArrowException, OSError, ValueError) as error:
            reason = f"broken Parquet data: {str(error).splitlines()[0]}"
            yield Block(None, [], [], row, row + 1, [Reject(row, row + 1, reason, b"")], [])

    def _batches(self) -> Iterator[Any]:
        from pyarrow import parquet

        with parquet.ParquetFile(self.input.path) as file:
            wanted = self._options.wanted
            names = file.schema_arrow.names
            columns = None if wanted is None else [name for name in names if name in wanted]
            yield from file.iter_batches(batch_size=_ROWS, columns=columns)


def _records(batch: Any) -> list[Record]:
    """The rows of a batch as mappings without the empty cells."""
    columns = [
        (name, _values(batch.column(index))) for index, name in enumerate(batch.schema.names)
    ]
    records: list[Record] = [{} for _ in range(batch.num_rows)]
    for name, values in columns:
        for record, value in zip(records, values, strict=True):
            if value is not None:
                record[name] = value
    return records


def _values(column: Any) -> list[object]:
    import pyarrow
    from pyarrow import types

    kind = column.type
    if types.is_timestamp(kind) and kind.unit == "ns":
        column = column.cast(pyarrow.timestamp("us", kind.tz), safe=False)
    values: list[object] = column.to_pylist()
    plain = types.is_integer(kind) or types.is_floating(kind) or types.is_boolean(kind)
    if plain or types.is_string(kind) or types.is_large_string(kind):
        return values
    return [_plain(value) for value in values]


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
