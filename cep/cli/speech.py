"""What the command line says beside its results: to standard error, coloured only for people.

Colours are used when the stream is a terminal and `NO_COLOR` is not set.
"""

from __future__ import annotations

import os
import sys
from typing import IO, Any, TextIO

import click

from cep.cli.exits import WRONG_USE

OUT_OF_MEMORY = (
    "out of memory: `cep check` says what a key of each rule can hold (a shorter `within` or a "
    "`limit` bounds it), and --max-runs or --max-state-bytes bound what all rules together hold"
)
"""What is said when the machine, or a limit set for the process, has no more memory to give."""


class Problem(click.ClickException):
    """Something is wrong with what was asked for: said in one message, exit code 2."""

    exit_code = WRONG_USE

    def show(self, file: IO[Any] | None = None) -> None:
        complain(self.message)


def colored(stream: TextIO) -> bool:
    """Whether colours are wanted on this stream."""
    if os.environ.get("NO_COLOR") or os.environ.get("TERM") == "dumb":
        return False
    return stream.isatty()


def say(text: str) -> None:
    """A line of information on standard error."""
    print(text, file=sys.stderr)


def warn(text: str) -> None:
    """A warning on standard error."""
    say(f"{_painted('warning', '1;33')}: {text}")


def complain(text: str) -> None:
    """An error on standard error."""
    say(f"{_painted('error', '1;31')}: {text}")


def _painted(text: str, tone: str) -> str:
    return paint(text, tone, colored(sys.stderr))


def paint(text: str, tone: str, color: bool) -> str:
    """The text in an ANSI tone (`1;31`), or as it is."""
    return f"\x1b[{tone}m{text}\x1b[0m" if color and text else text


def counted(number: int, noun: str, plural: str | None = None) -> str:
    """A number with its noun.

    >>> counted(1, "match", "matches"), counted(1200, "event")
    ('1 match', '1,200 events')
    """
    return f"{number:,} {noun if number == 1 else plural or noun + 's'}"
