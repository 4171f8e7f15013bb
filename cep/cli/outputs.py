"""The outputs of a run, opened before the first event is read, with the mistakes caught early."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from cep.cli.speech import Problem, colored, warn
from cep.sink.base import Sink, SinkError
from cep.sink.leftovers import LeftoverFile
from cep.sink.opening import open_sink

Lengths = Mapping[str, int]
"""How much of each output file was durable when a run ended, by absolute path."""


def open_outputs(
    outputs: Sequence[str],
    command: str | None,
    timeout: float,
    inputs: Sequence[str],
    lengths: Lengths | None,
) -> list[Sink]:
    """The sinks for the matches: the named ones, else standard output in the form that fits it.

    With `lengths` the run goes on: files keep so much, and begin empty if they are not among them.
    Raises `Problem` for one that cannot be written or that would overwrite one of `inputs`.
    """
    for path in outputs:
        refuse_overwriting(path, inputs)
    try:
        sinks = [open_sink(path, kept(path, lengths)) for path in dict.fromkeys(outputs)]
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


def kept(path: str, lengths: Lengths | None) -> int | None:
    """How much of a file is kept; None: it is replaced."""
    length = lengths.get(os.path.abspath(path)) if lengths is not None else None
    if length and (not os.path.isfile(path) or os.path.getsize(path) < length):
        warn(f"{path} has lost some of what was written before; the run goes on at its end")
    return length


def open_leftovers(
    path: str | None, inputs: Sequence[str], lengths: Lengths | None
) -> LeftoverFile | None:
    """The file for late events or rejects, if one is asked for."""
    if path is None:
        return None
    refuse_overwriting(path, inputs)
    try:
        return LeftoverFile(path, kept(path, lengths))
    except SinkError as error:
        raise Problem(str(error)) from error


def refuse_overwriting(path: str, inputs: Sequence[str]) -> None:
    """`Problem` if the output is one of the files that are read."""
    if not Path(path).exists():
        return
    for other in inputs:
        if other != "-" and Path(other).exists() and os.path.samefile(path, other):
            raise Problem(f"{path} is read by this run; choose another output")
