"""Sorts more events by time than memory holds; for files that are in no order.

In go events of any kind with a time `t`, out they come in batches, in the order of time; events of
equal time keep the order they came in. What fits in memory is only sorted. Else sorted runs are
written to one temporary file, which has no name and vanishes with the process, and merged.
"""

from __future__ import annotations

import heapq
import marshal
import os
import struct
import tempfile
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from itertools import islice
from operator import attrgetter
from typing import IO, Generic, TypeVar

from cep.clock.reorder import Timed
from cep.source.base import SourceError

EventT = TypeVar("EventT", bound=Timed)

MEMORY = 256 << 20
_BATCH = 4096
_PAGE = 512
_MOST_RUNS = 256
_LENGTH = struct.Struct("<Q")
_time = attrgetter("t")


def sorted_events(
    events: Iterable[EventT],
    *,
    freeze: Callable[[EventT], object],
    thaw: Callable[[object], EventT],
    size: Callable[[EventT], int],
    memory: int = MEMORY,
) -> Iterator[list[EventT]]:
    """The events in batches, ordered by `t`, stable; holds about `memory` bytes of them.

    `freeze` makes plain data of an event (numbers, texts, bytes, None, and lists, tuples and dicts
    of these), `thaw` an event of that; they are asked only if memory does not suffice. `size` says
    how many bytes an event takes, roughly. Raises `SourceError` when the disk is full.
    """
    spill: _Spill[EventT] | None = None
    held: list[EventT] = []
    room = memory
    try:
        for event in events:
            held.append(event)
            room -= size(event)
            if room <= 0:
                spill = spill or _Spill(freeze, thaw)
                held.sort(key=_time)
                spill.write(held)
                held, room = [], memory
        held.sort(key=_time)
        merged = iter(held) if spill is None else spill.merge_with(held)
        while batch := list(islice(merged, _BATCH)):
            yield batch
    finally:
        if spill is not None:
            spill.close()


class _Spill(Generic[EventT]):
    """Sorted runs in a temporary file. A run is a list of pages, a page a few hundred events."""

    def __init__(
        self, freeze: Callable[[EventT], object], thaw: Callable[[object], EventT]
    ) -> None:
        self._freeze = freeze
        self._thaw = thaw
        self._runs: list[tuple[int, int]] = []
        with _told_plainly():
            self._file: IO[bytes] = tempfile.TemporaryFile(prefix="cep-sort-")  # noqa: SIM115

    def write(self, events: Iterable[EventT]) -> None:
        """Adds a run of events that are in order."""
        with _told_plainly():
            if len(self._runs) >= _MOST_RUNS:
                self._join_runs()
            self._runs.append(self._write_run(events))

    def merge_with(self, last: list[EventT]) -> Iterator[EventT]:
        """All runs and the events that came after them, in order."""
        return heapq.merge(*map(self._read_run, self._runs), last, key=_time)

    def close(self) -> None:
        with suppress(OSError):  # a full disk has been told already
            self._file.close()

    def _join_runs(self) -> None:
        """One run of all, so that merging needs memory for a bounded number of pages."""
        self._runs = [self._write_run(self.merge_with([]))]

    def _write_run(self, events: Iterable[EventT]) -> tuple[int, int]:
        start = end = self._file.seek(0, os.SEEK_END)
        rest = iter(events)
        while page := list(islice(rest, _PAGE)):
            data = marshal.dumps([self._freeze(event) for event in page])
            self._file.seek(end)  # reading the runs that are joined moves the place
            self._file.write(_LENGTH.pack(len(data)) + data)
            end += _LENGTH.size + len(data)
        self._file.flush()
        return start, end

    def _read_run(self, run: tuple[int, int]) -> Iterator[EventT]:
        place, end = run
        while place < end:
            self._file.seek(place)
            (length,) = _LENGTH.unpack(self._file.read(_LENGTH.size))
            page = marshal.loads(self._file.read(length))
            place += _LENGTH.size + length
            yield from map(self._thaw, page)


@contextmanager
def _told_plainly() -> Iterator[None]:
    """Makes a `SourceError` of what the system says about the temporary file."""
    try:
        yield
    except OSError as error:
        reason = os.strerror(error.errno).lower() if error.errno else str(error)
        folder = tempfile.gettempdir()
        raise SourceError(f"cannot sort: writing to {folder} failed: {reason}") from None
