"""One run of rules over inputs: from its options to its exit code.

`execute` is the whole way. A `Session` opens everything first, so that a mistake in the last option
is told before the first event is read; then reads, writes matches as they come, and at the end says
what was found and what could be better.
"""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from time import perf_counter
from typing import TYPE_CHECKING

from cep.cli import durable
from cep.cli.advice import advice, idle_advice
from cep.cli.closing import closing_line, open_end_lines, rule_table, undecided_lines
from cep.cli.exits import DONE, FAILED, INTERRUPTED, PIPE_CLOSED, TERMINATED, WRONG_USE
from cep.cli.guess import time_hint
from cep.cli.interrupts import Stop, Terminated, clean_stop
from cep.cli.outputs import open_leftovers, open_outputs
from cep.cli.progress import Progress, total_size, wanted
from cep.cli.reading import Loading, rules_to_run, show_diagnostics
from cep.cli.reloading import Hangup, Reloading, listening
from cep.cli.speech import OUT_OF_MEMORY, Problem, complain, say, warn
from cep.sink.base import ClosedPipe, SinkError
from cep.sink.fanout import Fanout
from cep.sink.text import printable
from cep.source.base import SourceError
from cep.state.store import StateError
from dsl.checked import WindowPattern

if TYPE_CHECKING:
    from cep.cli.sample import Sample
    from cep.engine import Engine
    from cep.match import Match
    from cep.ruleset import Ruleset
    from cep.source.base import Reject, Source


LOOK_EVERY = 1.0
"""Seconds between two looks at files of lists and tables, and at how the state fares."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RunOptions:
    """What a run was asked to do; the names are those of the options."""

    rules: Sequence[str]
    inputs: Sequence[str]
    output: Sequence[str] = ()
    exec_command: str | None = None
    exec_timeout: float = 30.0
    format: str | None = None
    rule: Sequence[str] = ()
    settings: Sequence[str] = ()
    type_field: str | None = None
    delay: int | None = None
    delays: Sequence[tuple[str, int]] = ()
    sort: bool = False
    follow: bool = False
    late: str | None = None
    rejects: str | None = None
    at_end: str | None = None
    state: str | None = None
    checkpoint_every: int | None = None
    deliver: str | None = None
    start_from: str | None = None
    restart: Sequence[str] = ()
    reload: bool = False
    max_runs: int | None = None
    max_state_bytes: int | None = None
    max_memory: int | None = None
    stats: bool = False
    quiet: bool = False
    fail_on_match: bool = False

    @property
    def loading(self) -> Loading:
        """How the rules are loaded."""
        return Loading(settings=self.settings, type_field=self.type_field)


def execute(options: RunOptions) -> int:
    """Run the rules over the inputs; the exit code."""
    stops_between_blocks = options.follow or options.state is not None
    with listening(options.reload) as hangup:
        loading = options.loading
        ruleset = rules_to_run(options.rules, loading, options.rule, warnings=not options.quiet)
        stopping = clean_stop() if stops_between_blocks else nullcontext(Stop())
        with stopping as stop, rare_collection():
            code = Session(ruleset, options, stop, hangup).run()
        return code or stop.code


@contextmanager
def rare_collection() -> Iterator[None]:
    """The garbage collector looks for cycles among young objects only: a run makes many objects and
    no cycles of them, so a search of all finds nothing and holds events up the longer the more keys
    there are. What reloading replaces is looked for then."""
    before = gc.get_threshold()
    gc.set_threshold(20_000, 1_000_000, 1_000_000)
    try:
        yield
    finally:
        gc.set_threshold(*before)


class Session:
    """A run: its engine, its sources and its outputs, from the first event to the last word."""

    def __init__(self, ruleset: Ruleset, options: RunOptions, stop: Stop, hangup: Hangup) -> None:
        self._options = options
        self._stop = stop
        self._engine = durable.open_engine(ruleset, options)
        try:
            self._open(ruleset)
        except BaseException:
            self._engine.abandon()
            raise
        self._reloading: Reloading | None = None
        if options.reload:
            self._reloading = Reloading(
                hangup, options.rules, options.loading, options.rule, options.restart, ruleset
            )
        self._sample = self._look_at_events(ruleset)
        self._first_reject: str | None = None
        self._progress: Progress | None = None
        self._problem: str | None = None
        self._looked = self._started = perf_counter()

    def _open(self, ruleset: Ruleset) -> None:
        options, lengths = self._options, durable.kept_lengths(self._engine)
        self._before = self._engine.stats
        self._idle = ruleset.checked.idle
        self._paths, self._sources = open_sources(self._engine, options, self._stop)
        read = [*options.rules, *self._paths, *([options.state] if options.state else [])]
        self._late = open_leftovers(options.late, read, lengths)
        self._rejects = open_leftovers(options.rejects, read, lengths)
        command, timeout = options.exec_command, options.exec_timeout
        sinks = open_outputs(options.output, command, timeout, read, lengths)
        self._outputs = Fanout(sinks, warn, strict=lengths is not None)

    def _look_at_events(self, ruleset: Ruleset) -> Sample | None:
        """Notes what the events look like, for the last words; not where a run goes on: the few
        events of now say little of a stream."""
        from cep.cli.sample import Sample
        from cep.explain.reads import Reads

        if self._options.quiet or self._before.events:
            return None
        compiled = ruleset.compiled
        sample = Sample([Reads(rule, compiled) for rule in compiled.rules])
        self._engine.on_originals = sample.look
        return sample

    def run(self) -> int:
        """Read to the end, or to the first thing that ends it; then say what was found."""
        durable.tell_start(self._engine, self._sources, self._options)
        if self._options.follow and not self._options.quiet:
            hint = idle_advice(self._engine.ruleset)
            if hint is not None:
                say(hint)
        self._connect_leftovers()
        code = _guarded(self._read)
        code = _guarded(self._close) or code
        if code == PIPE_CLOSED:
            return code
        if not self._options.quiet:
            self._last_words()
        if code == DONE and not self._outputs.complete:
            return WRONG_USE
        stats = self._engine.stats
        if code == DONE and stats.rejected and not stats.events:
            return WRONG_USE
        if code == DONE and self._options.fail_on_match and self._found:
            return FAILED
        return code

    @property
    def _found(self) -> int:
        stats = durable.this_run(self._engine.stats, self._before)
        return stats.matches + stats.timeouts

    def _connect_leftovers(self) -> None:
        if self._rejects is None:
            self._engine.on_reject = self._note_first_reject
        if self._engine.keeper is not None:
            durable.deliver_after_commit(
                self._engine, self._outputs.settle, self._late, self._rejects
            )
            return
        if self._late is not None:
            self._engine.on_late = self._late.late
        if self._rejects is not None:
            self._engine.on_reject = self._rejects.reject

    def _note_first_reject(self, source: str, reject: Reject) -> None:
        if self._first_reject is None:
            line = f":{reject.line_number}" if reject.line_number else ""
            self._first_reject = f"{source}{line}: {reject.reason}{time_hint(reject)}"

    def _read(self) -> None:
        """Everything that is read, and what is due at its end."""
        from cep.reading import Live, run_sources

        follow, keeps_state = self._options.follow, self._options.state is not None
        with self._progress_line() as self._progress:
            run_sources(
                self._engine,
                self._sources,
                on_matches=self._write,
                on_progress=self._advance if self._progress is not None else None,
                between=self._between,
                sort=self._options.sort,
                live=Live(self._stop.event, self._idle) if follow or keeps_state else None,
                stop=self._stop.event if keeps_state and not follow else None,
            )
            self._end()

    def _end(self) -> None:
        """The input has been read. With state it has ended only if that is said."""
        at_end, was_stopped = self._options.at_end, self._stop.event.is_set()
        if self._options.state is None:
            self._write(self._engine.close(at_end=at_end or "undecided"))
            return
        if at_end is not None and not was_stopped:
            self._write(self._engine.close(at_end=at_end))
        durable.suspend(self._engine, self._write)

    def _between(self) -> None:
        """Between two blocks, now and then: what must be looked at while the run goes on."""
        if self._reloading is not None:
            self._write(self._reloading.turn(self._engine))
        now = perf_counter()
        if now - self._looked < LOOK_EVERY:
            return
        self._looked = now
        if self._options.follow:
            reloaded = self._engine.reload_files()
            show_diagnostics(reloaded.problems)
            if reloaded.names:
                gc.collect()  # as after other rules
        problem = self._engine.state_problem
        if problem is not None and problem != self._problem:
            warn(f"{problem}; the run goes on and tries again")
        self._problem = problem

    def _progress_line(self) -> Progress | nullcontext[None]:
        if not wanted(self._options.quiet):
            return nullcontext()
        return Progress(None if self._options.follow else total_size(self._paths))

    def _advance(self, done: int) -> None:
        if self._progress is not None:
            self._progress.update(self._engine.stats, done)

    def _write(self, matches: Sequence[Match]) -> None:
        if not matches:
            return
        if self._progress is not None and _may_print(self._options):
            with self._progress.hidden():
                self._outputs.write(matches)
        else:
            self._outputs.write(matches)

    def _close(self) -> None:
        """Close the outputs, also after a fault; then the state stays as the last checkpoint."""
        self._engine.abandon()
        for leftovers in (self._late, self._rejects):
            if leftovers is not None:
                leftovers.close()
        self._outputs.close()

    def _last_words(self) -> None:
        """Open absences, advice, numbers: in this order, so that the numbers stand last."""
        stats = self._engine.stats
        undecided = self._engine.undecided
        keeps_state = self._options.state is not None
        lines = undecided_lines(undecided, everything=self._options.stats, go_on=keeps_state)
        for line in lines:
            say(line)
        if not keeps_state:
            self._tell_open_ends()
        durable.tell_loose_ends(self._sources)
        read = durable.this_run(stats, self._before)
        for line in advice(stats, read, self._options, self._sample, self._first_reject):
            warn(printable(line))
        if self._options.stats:
            for line in rule_table(stats):
                say(line)
        say(closing_line(read, len(undecided), perf_counter() - self._started))

    def _tell_open_ends(self) -> None:
        rules = self._engine.ruleset.rules
        windows = {name for name, rule in rules.items() if isinstance(rule.pattern, WindowPattern)}
        for line in open_end_lines(self._engine.open_ends, windows):
            say(line)


def _may_print(options: RunOptions) -> bool:
    """Whether writing a match may print something where the progress line is."""
    return options.exec_command is not None or not options.output or "-" in options.output


def _guarded(work: Callable[[], None]) -> int:
    """Do a part of the run; the exit code of what ended it before its time."""
    try:
        work()
    except ClosedPipe:
        return PIPE_CLOSED
    except (SinkError, SourceError, StateError) as error:
        complain(str(error))
        return WRONG_USE
    except MemoryError:
        complain(OUT_OF_MEMORY)
        return WRONG_USE
    except KeyboardInterrupt:
        return INTERRUPTED
    except Terminated:
        return TERMINATED
    return DONE


def open_sources(engine: Engine, options: RunOptions, stop: Stop) -> tuple[list[str], list[Source]]:
    """The inputs by their paths, opened; `Problem` for one that cannot be read."""
    from cep.source import SourceOptions, expand

    keeps_state = options.state is not None
    reading = SourceOptions(
        follow=options.follow,
        stop=stop.event,
        poll=0.0,  # the loop over all sources waits
        live=options.follow or keeps_state,
        whole_lines=keeps_state and options.at_end is None,
    )
    try:
        paths = expand(options.inputs)
        return paths, durable.open_inputs(engine, paths, options.format, reading)
    except SourceError as error:
        raise Problem(str(error)) from error
