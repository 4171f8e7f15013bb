"""The outputs of a run, opened before the first event is read, with the mistakes caught early."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from pathlib import Path

from cep.cli.speech import Problem, colored
from cep.sink.base import Sink, SinkError
from cep.sink.leftovers import LeftoverFile
from cep.sink.opening import open_sink


def open_outputs(
    outputs: Sequence[str], command: str | None, timeout: float, inputs: Sequence[str]
) -> list[Sink]:
    """The sinks for the matches: the named ones, else standard output in the form that fits it.

    Raises `Problem` for one that cannot be written or that would overwrite one of `inputs`.
    """
    for path in outputs:
        refuse_overwriting(path, inputs)
    try:
        sinks = [open_sink(path) for path in dict.fromkeys(outputs)]
        if not sinks:
            sinks.append(_standard_output())
        if command is not None:
            from cep.sink.command import CommandSink

            sinks.append(CommandSink(command, timeout))
    except SinkError as error:
        raise Problem(str(error)) from error
    return sinks


def _standard_output() -> Sink:
    """Lines for people on a terminal, JSON lines for programs in a pipe."""
    if sys.stdout.isatty():
        from cep.sink.text import TextSink

        return TextSink("-", color=colored(sys.stdout))
    return open_sink("-")


def open_leftovers(path: str | None, inputs: Sequence[str]) -> LeftoverFile | None:
    """The file for late events or rejects, if one is asked for."""
    if path is None:
        return None
    refuse_overwriting(path, inputs)
    try:
        return LeftoverFile(path)
    except SinkError as error:
        raise Problem(str(error)) from error


def refuse_overwriting(path: str, inputs: Sequence[str]) -> None:
    """`Problem` if the output is one of the files that are read."""
    if not Path(path).exists():
        return
    for other in inputs:
        if other != "-" and Path(other).exists() and os.path.samefile(path, other):
            raise Problem(f"{path} is read by this run; choose another output")
