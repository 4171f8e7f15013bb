"""Records by columns: for sources that have whole columns before they have records.

A `Rows` is a sequence of records that makes a record only when it is asked for one. Whoever knows
which rows matter asks for columns first, and for the records of few rows: an event that no rule can
use then costs a look at two columns. What a column gives is what the records would hold, None where
they would hold nothing.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Literal, overload

from cep.source.base import Record


@dataclass(frozen=True, slots=True)
class Rising:
    """A column of whole numbers, none of them missing, none less than the one before it.

    `meaning`: plain numbers, or moments in microseconds, of UTC or of no stated zone.
    """

    first: int
    last: int
    meaning: Literal["number", "utc", "local"] = "number"


class Rows(Sequence[Record]):
    """Records of one block, or some of them: `places` says which of the block's they are."""

    places: Sequence[int]

    @property
    @abstractmethod
    def names(self) -> Sequence[str]:
        """The names of the columns."""

    @abstractmethod
    def column(self, name: str) -> Sequence[object]:
        """The values of a column, one for each row."""

    @abstractmethod
    def rising(self, name: str) -> Rising | None:
        """What the column is if it is rising, else None."""

    @abstractmethod
    def whole(self, name: str) -> Sequence[int]:
        """The numbers or moments of a rising column."""

    @abstractmethod
    def only(self, name: str, values: Collection[object]) -> Rows:
        """The rows that may have one of these values in a column, at least those that have."""

    @abstractmethod
    def at(self, indices: Sequence[int]) -> Rows:
        """The rows at these indices, which rise."""

    def originals(self) -> Sequence[Any]:
        """What the events of these rows keep of them: records, or what makes them."""
        return list(self)

    def __len__(self) -> int:
        return len(self.places)

    def __iter__(self) -> Iterator[Record]:
        names = self.names
        if not names:
            return iter([{} for _ in self.places])
        columns = [self.column(name) for name in names]
        if not any(None in column for column in columns):
            return (dict(zip(names, cells, strict=True)) for cells in zip(*columns, strict=True))
        return (
            {name: cell for name, cell in zip(names, cells, strict=True) if cell is not None}
            for cells in zip(*columns, strict=True)
        )

    @overload
    def __getitem__(self, index: int) -> Record: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[Record]: ...

    def __getitem__(self, index: int | slice) -> Record | Sequence[Record]:
        if isinstance(index, slice):
            return self.at(range(len(self))[index])
        return next(iter(self.at([range(len(self))[index]])))
