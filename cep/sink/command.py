"""A command for each match: the match goes to its standard input as JSON.

The command line is split into words as a shell would split it, and run without one: nothing of a
match is ever part of a command line. What the command prints goes to standard error, so that
standard output stays clean for matches.
"""

from __future__ import annotations

import shlex
import shutil
import subprocess
from collections.abc import Sequence
from typing import TYPE_CHECKING

from cep.sink.base import SinkError, UndeliveredError

if TYPE_CHECKING:
    from cep.match import Match

TIMEOUT = 30.0
"""Seconds that the command has for one match, unless told otherwise."""


STANDARD_ERROR = 2
"""The descriptor that the command's output goes to."""


class CommandSink:
    """Runs `command` once for each match, one after the other; a run may take `timeout` seconds."""

    def __init__(self, command: str, timeout: float = TIMEOUT) -> None:
        self.name = command
        self._argv = split_command(command)
        self._timeout = timeout

    def write(self, matches: Sequence[Match]) -> None:
        failed = [reason for match in matches if (reason := self._run(match)) is not None]
        if failed:
            raise UndeliveredError(len(failed), failed[0])

    def _run(self, match: Match) -> str | None:
        """Run the command for one match; what went wrong, or None."""
        try:
            done = subprocess.run(
                self._argv,
                input=match.to_json() + b"\n",
                stdout=STANDARD_ERROR,
                timeout=self._timeout,
                check=False,
            )
        except subprocess.TimeoutExpired:
            return f"`{self.name}` took more than {self._timeout:g} s for match {match.id}"
        except OSError as error:
            return f"`{self.name}` could not be started: {error.strerror or error}"
        if done.returncode:
            return f"`{self.name}` {_ending(done.returncode)} for match {match.id}"
        return None

    def flush(self) -> None:
        """Nothing to do: a command has ended before the next one starts."""

    def settle(self) -> int | None:
        """What a command has done cannot be cut off."""
        return None

    def close(self) -> None:
        """Nothing to do."""


def split_command(command: str) -> list[str]:
    """The words of a command line; `SinkError` if there is no such program.

    >>> split_command("sh -c 'cat > /dev/null'")
    ['sh', '-c', 'cat > /dev/null']
    """
    try:
        argv = shlex.split(command)
    except ValueError as error:
        raise SinkError(f"cannot read the command `{command}`: {error}") from error
    if not argv:
        raise SinkError("the command to run for each match is empty")
    if shutil.which(argv[0]) is None:
        raise SinkError(f"no program `{argv[0]}` to run for each match")
    return argv


def _ending(code: int) -> str:
    return f"was ended by signal {-code}" if code < 0 else f"ended with exit code {code}"
