"""The store that keeps epochs in one SQLite file.

An epoch is one transaction, so a crash leaves the last one or this one, never half of it. The log
is forced to the disk at every commit (`synchronous = full`): matches go out, and hosts acknowledge
their input, after a commit, so an epoch that a power cut could take back would lose events for
good; at one epoch a second that costs one `fsync` a second.

Epochs are written by a thread of the store. What can pass (a full disk, a locked file) is tried
again and again, while the epoch waits in memory and `problem` says why. What cannot pass (a damaged
file) ends the store with a `StateError`.
"""

from __future__ import annotations

import os
import sqlite3
import threading
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack, closing, contextmanager, suppress

from cep.state.handover import Handover
from cep.state.lock import FileLock
from cep.state.sqlite import reading
from cep.state.sqlite.file import (
    connect,
    is_passing,
    look_only,
    plain_errors,
    prepare,
    read_view,
    state_error,
)
from cep.state.sqlite.writing import Writing
from cep.state.store import Epoch, Owner, Size, Snapshot, StateError, StateText

__all__ = ["SqliteStore", "look", "read_view", "start_over"]

PATIENCE = 30.0
"""Seconds that `commit` and `close` wait for a disk that is full or a file that is locked."""

LONGEST_PAUSE = 5.0
"""Seconds between tries to write, at most."""


class SqliteStore:
    """Keeps epochs in the SQLite file `path`, which is made if it is missing.

    Raises `StateError` if another engine uses the file, if it cannot be written, is damaged or is
    of a newer version of cep. One thread uses the store.

    >>> import tempfile, os
    >>> from cep.state.store import Epoch, Owner, StateRow
    >>> path = os.path.join(tempfile.mkdtemp(), "cep.db")
    >>> store = SqliteStore(path)
    >>> price = StateRow('["tea"]', '{"f":1,"t":0,"row":[[["amount"],2]]}')
    >>> store.commit(Epoch(1, states={Owner("tables", "prices"): [price]}))
    >>> store.close()
    >>> [(row["table"], row["key"], row["row"]) for row in read_view(path, "tables")]
    [('prices', '["tea"]', '{"amount":2}')]
    """

    def __init__(self, path: str, *, patience: float = PATIENCE) -> None:
        self.path = path
        self._patience = patience
        self._lock = FileLock(path)
        try:
            self._writer, self._reader, self._last = _open(path)
        except BaseException:
            self._lock.release()
            raise
        self._writing = Writing(self._writer)
        self._handover = Handover()
        self._thread = threading.Thread(target=self._work, name=f"state {path}", daemon=True)
        self._thread.start()

    @property
    def busy(self) -> bool:
        return self._handover.epoch is not None

    @property
    def problem(self) -> str | None:
        return self._handover.problem

    def load(self) -> Snapshot:
        with plain_errors(self.path):
            reader = look_only(self.path) if self._handover.closed else self._reader
            return reading.snapshot(reader, self.path)

    def submit(self, epoch: Epoch) -> None:
        self.wait()
        if epoch.number <= self._last:
            raise ValueError(f"epoch {epoch.number} cannot come after epoch {self._last}")
        self._last = epoch.number
        self._handover.put(epoch)

    def wait(self, timeout: float | None = None) -> bool:
        return self._handover.wait(timeout)

    def commit(self, epoch: Epoch) -> None:
        self.submit(epoch)
        if not self.wait(self._patience):
            raise StateError(self.problem or f"{self.path}: writing takes too long")

    def delivered(self, ids: Iterable[str]) -> None:
        self._writing.delivered(ids)

    def fetch(self, owner: Owner, keys: Sequence[str]) -> dict[str, str]:
        with plain_errors(self.path):
            return reading.fetched(self._reader, owner, keys)

    def due(self, until_us: int) -> list[StateText]:
        with plain_errors(self.path):
            return reading.due(self._reader, until_us)

    def next_due(self, after_us: int | None = None) -> int | None:
        with plain_errors(self.path):
            return reading.next_due(self._reader, after_us)

    def vacuum(self) -> None:
        self.wait()
        with plain_errors(self.path):
            self._writer.execute("vacuum")
            self._writer.execute("pragma wal_checkpoint(truncate)")

    def size(self) -> Size:
        with plain_errors(self.path):
            pages = self._reader.execute("pragma freelist_count").fetchone()[0]
            bytes_each = self._reader.execute("pragma page_size").fetchone()[0]
        return Size(_length(self.path), _length(self.path + "-wal"), pages * bytes_each)

    def check(self) -> list[str]:
        self.wait()
        with plain_errors(self.path):
            return reading.mistakes(self._reader)

    def close(self) -> None:
        if self._handover.closed:
            return
        self._handover.close(self._patience)
        self._thread.join()
        with suppress(sqlite3.Error):  # what is not noted as delivered comes again: allowed
            self._writing.settle()
        with suppress(sqlite3.Error):
            self._reader.close()
            self._writer.close()
        self._lock.release()
        self._handover.finish()

    def _work(self) -> None:
        """What the thread does: make one epoch after the other durable."""
        while (epoch := self._handover.get()) is not None:
            self._write(epoch)

    def _write(self, epoch: Epoch) -> None:
        for pause in _pauses():
            try:
                self._writing.write(epoch)
            except sqlite3.Error as error:
                told = state_error(error, self.path)
                if not is_passing(error):
                    return self._handover.fail(told)
                if self._handover.given_up(str(told), pause):
                    return None
            except Exception as error:
                return self._handover.fail(error)
            else:
                return self._handover.done()
        return None


def start_over(path: str) -> None:
    """Remove a state file with all that is in it, if there is one.

    Raises `StateError` if an engine uses it, and for a file that is no state file.
    """
    if not os.path.exists(path):
        return
    lock = FileLock(path)
    try:
        if _length(path):
            read_view(path, "checkpoints", limit=1)
        for ending in ("-wal", "-shm", ""):
            with suppress(FileNotFoundError):
                os.unlink(path + ending)
    except OSError as error:
        raise StateError(f"cannot remove {path}: {error.strerror}") from error
    finally:
        lock.release()


@contextmanager
def look(path: str) -> Iterator[Snapshot]:
    """The last epoch of a file, also while an engine uses it. Raises `StateError`."""
    with plain_errors(path), closing(look_only(path)) as connection:
        yield reading.snapshot(connection, path)


def _open(path: str) -> tuple[sqlite3.Connection, sqlite3.Connection, int]:
    """A connection to write with and one to read with, and the number of the last epoch."""
    with plain_errors(path), ExitStack() as opened:
        writer = opened.enter_context(closing(connect(path)))
        prepare(writer, path)
        reader = opened.enter_context(closing(connect(path)))
        reader.execute("pragma query_only = on")
        last = reading.last_epoch(reader)
        opened.pop_all()
    return writer, reader, last


def _pauses() -> Iterator[float]:
    pause = 0.05
    while True:
        yield pause
        pause = min(2 * pause, LONGEST_PAUSE)


def _length(path: str) -> int:
    try:
        return os.stat(path).st_size
    except FileNotFoundError:
        return 0
