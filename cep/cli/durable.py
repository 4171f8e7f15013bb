"""A run with `--state`: what is kept, where it goes on, and how its outputs stay exact.

In: the options of a run and its engine. The engine goes on from the state file; inputs go on where
they were; output files are cut to the length that the last checkpoint knows, for what came behind
is written again. Matches, late events and rejects go out after the checkpoint that holds them.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from cep.cli.outputs import refuse_overwriting
from cep.cli.reloading import tell_changes
from cep.cli.speech import Problem, counted, say, warn
from cep.sink.leftovers import LeftoverFile
from cep.sink.text import printable
from cep.state.store import OutRow, StateError

if TYPE_CHECKING:
    from cep.cli.session import RunOptions
    from cep.engine import Engine
    from cep.match import Match
    from cep.ruleset import Ruleset
    from cep.source.base import Source, SourceOptions
    from cep.stats import Stats

SECOND = 1_000_000


def open_engine(ruleset: Ruleset, options: RunOptions) -> Engine:
    """The engine of a run, with its state if it keeps any; `Problem` if that cannot be used."""
    from cep.engine import Engine

    if options.state is None:
        return Engine(
            ruleset,
            delay=options.delay,
            delays=dict(options.delays),
            max_runs=options.max_runs,
            max_state_bytes=options.max_state_bytes,
        )
    refuse_overwriting(options.state, [*options.rules, *options.inputs, *options.output])
    every = SECOND if options.checkpoint_every is None else options.checkpoint_every
    try:
        if options.start_from == "beginning":
            from cep.state.sqlite import start_over

            start_over(options.state)
        return Engine(
            ruleset,
            delay=options.delay,
            delays=dict(options.delays),
            state=options.state,
            checkpoint_every=every / SECOND,
            deliver=options.deliver or "after-commit",
            restart=options.restart,
            max_memory=options.max_memory,
            max_runs=options.max_runs,
            max_state_bytes=options.max_state_bytes,
        )
    except StateError as error:
        raise Problem(str(error)) from error


def kept_lengths(engine: Engine) -> Mapping[str, int] | None:
    """How much of each output file belongs to the state; None for a run without one."""
    return engine.keeper.snapshot.sink_lengths if engine.keeper is not None else None


def open_inputs(
    engine: Engine, paths: Sequence[str], format: str | None, reading: SourceOptions
) -> list[Source]:
    """The sources of a run, from where they were read to. Raises `SourceError`."""
    from cep.positions import assign
    from cep.source import open_source

    if engine.keeper is None:
        return [open_source(path, format, reading) for path in paths]
    return [
        open_source(one.path, format or one.format, reading, start=one.start, name=one.name)
        for one in assign(paths, engine.known_sources)
    ]


def tell_start(engine: Engine, sources: Sequence[Source], options: RunOptions) -> None:
    """Says where the run goes on, and what cannot be as exact as with files."""
    keeper = engine.keeper
    if keeper is None or options.quiet:
        return
    if not keeper.is_new:
        known = counted(len(engine.known_sources), "input")
        say(f"goes on from {options.state} (checkpoint {keeper.snapshot.number:,}, {known} known)")
        tell_changes(engine)
    for source in sources:
        if source.input.remark is not None:
            warn(printable(source.input.remark))
        if not source.input.can_resume:
            name = "standard input" if source.name == "-" else printable(source.name)
            warn(f"{name} cannot be read again: a crash loses what came after the last checkpoint")


def deliver_after_commit(
    engine: Engine,
    lengths: Callable[[], dict[str, int]],
    late: LeftoverFile | None,
    rejects: LeftoverFile | None,
) -> None:
    """Connects the outputs with the checkpoints of the engine."""
    keeper = engine.keeper
    assert keeper is not None
    files = {kind: file for kind, file in (("late", late), ("reject", rejects)) if file is not None}

    def write(rows: Sequence[OutRow]) -> None:
        for row in rows:
            if row.kind in files:
                files[row.kind].write(row.record)
        for file in files.values():
            file.flush()

    def settle() -> dict[str, int]:
        settled = {os.path.abspath(file.name): file.settle() for file in files.values()}
        own = {name: length for name, length in settled.items() if length is not None}
        return {**lengths(), **own}

    keeper.lengths = settle
    keeper.on_waiting = warn
    keeper.wanted = frozenset(files)
    keeper.on_leftovers = write


def suspend(engine: Engine, write: Callable[[Sequence[Match]], None]) -> None:
    """Makes all durable, lets all matches out, and lets go of the state file."""
    while found := engine.checkpoint():
        write(found)
    engine.suspend()


def tell_loose_ends(sources: Sequence[Source]) -> None:
    """Names the files whose last line has no end yet."""
    for source in sources:
        if source.input.has_loose_end:
            name = printable(source.name)
            say(f"{name}: the last line has no end yet; the next run reads it when it has one")


def this_run(stats: Stats, before: Stats) -> Stats:
    """The numbers of this run alone; those of the rules go on counting."""
    names = ("events", "matches", "timeouts", "late", "rejected", "unknown")
    return replace(stats, **{name: getattr(stats, name) - getattr(before, name) for name in names})
