"""Ctrl-C and SIGTERM while files are followed: the first one asks for a clean end."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

from cep.cli.exits import DONE, INTERRUPTED, TERMINATED

_CODES = {signal.SIGINT: INTERRUPTED, signal.SIGTERM: TERMINATED}


class Terminated(BaseException):
    """SIGTERM came; passes through everything so that outputs are closed on the way."""


class Stop:
    """Whether the end was asked for: `event` is set then, `code` is the exit code."""

    def __init__(self) -> None:
        self.event = threading.Event()
        self.code: int = DONE

    def ask(self, number: int, _frame: FrameType | None) -> None:
        """The handler of the first signal; a second one ends the run at once."""
        self.code = _CODES[signal.Signals(number)]
        self.event.set()
        for each in _CODES:
            signal.signal(each, signal.default_int_handler)


@contextmanager
def clean_stop() -> Iterator[Stop]:
    """While this lasts, the first Ctrl-C or SIGTERM only sets the `Stop` that is given."""
    stop = Stop()
    before = {number: signal.signal(number, stop.ask) for number in _CODES}
    try:
        yield stop
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
