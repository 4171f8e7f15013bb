"""What every sink is: something that takes matches in order and says plainly when it cannot.

In come batches of matches; out go lines, rows or commands. A sink knows nothing of rules or of
time. It never drops a match in silence: what it could not deliver it raises, as one of the errors
below, and `cep.sink.fanout` decides what becomes of the run.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from cep.match import Match


class SinkError(Exception):
    """The sink cannot go on: disk full, no permission, database locked. `str()` says why."""


class ClosedPipe(SinkError):
    """The reader of a pipe went away (`… | head`): a reason to stop, not a fault."""


class UndeliveredError(Exception):
    """Some matches of a batch could not be delivered; the sink can take the next ones."""

    def __init__(self, count: int, reason: str) -> None:
        super().__init__(reason)
        self.count = count


class Sink(Protocol):
    """A place for matches. All methods may raise `SinkError`."""

    name: str
    """What people call it: the path, `-` for standard output, the command."""

    def write(self, matches: Sequence[Match]) -> None:
        """Take the matches, in order. Raises `UndeliveredError` when some did not get through."""

    def flush(self) -> None:
        """Hand everything taken so far to the system, so that others can see it."""

    def settle(self) -> int | None:
        """Make everything taken so far durable. The length that a restart cuts the output to; None
        where nothing can be cut or need be."""

    def close(self) -> None:
        """Flush and let go. The sink is not used again; closing twice is harmless."""


@contextmanager
def plain_errors(name: str) -> Iterator[None]:
    """Turn what the system says about `name` into `SinkError` in plain words."""
    try:
        yield
    except BrokenPipeError as error:
        raise ClosedPipe(f"{name}: the reader closed the pipe") from error
    except OSError as error:
        raise SinkError(f"cannot write {name}: {error.strerror or error}") from error
