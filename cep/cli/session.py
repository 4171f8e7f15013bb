"""One run of rules over inputs: from its options to its exit code.

`execute` is the whole way. A `Session` opens everything first, so that a mistake in the last option
is told before the first event is read; then reads, writes matches as they come, and at the end says
what was found and what could be better.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from time import perf_counter
from typing import TYPE_CHECKING

from cep.cli.advice import advice
from cep.cli.closing import closing_line, rule_table, undecided_lines
from cep.cli.exits import DONE, FAILED, INTERRUPTED, PIPE_CLOSED, TERMINATED, WRONG_USE
from cep.cli.interrupts import Stop, Terminated, clean_stop
from cep.cli.outputs import open_leftovers, open_outputs
from cep.cli.progress import Progress, total_size, wanted
from cep.cli.reading import Loading, load_rules
from cep.cli.speech import Problem, complain, say, warn
from cep.sink.base import ClosedPipe, SinkError
from cep.sink.fanout import Fanout
from cep.sink.text import printable
from cep.source.base import SourceError

if TYPE_CHECKING:
    from cep.match import Match
    from cep.ruleset import Ruleset
    from cep.source.base import Reject, Source


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
    sort: bool = False
    follow: bool = False
    late: str | None = None
    rejects: str | None = None
    at_end: str = "undecided"
    stats: bool = False
    quiet: bool = False
    fail_on_match: bool = False


def execute(options: RunOptions) -> int:
    """Run the rules over the inputs; the exit code."""
    loading = Loading(settings=options.settings, type_field=options.type_field)
    ruleset = load_rules(options.rules, loading, options.rule, warnings=not options.quiet)
    with clean_stop() if options.follow else nullcontext(Stop()) as stop:
        code = Session(ruleset, options, stop).run()
    return code or stop.code


class Session:
    """A run: its engine, its sources and its outputs, from the first event to the last word."""

    def __init__(self, ruleset: Ruleset, options: RunOptions, stop: Stop) -> None:
        from cep.engine import Engine

        self._options = options
        self._engine = Engine(ruleset, delay=options.delay)
        self._paths, self._sources = open_sources(options, stop)
        read = [*options.rules, *self._paths]
        self._late = open_leftovers(options.late, read)
        self._rejects = open_leftovers(options.rejects, read)
        sinks = open_outputs(options.output, options.exec_command, options.exec_timeout, read)
        self._outputs = Fanout(sinks, warn)
        self._first_reject: str | None = None
        self._progress: Progress | None = None
        self._started = perf_counter()

    def run(self) -> int:
        """Read to the end, or to the first thing that ends it; then say what was found."""
        self._connect_leftovers()
        code = _guarded(self._read)
        code = _guarded(self._close) or code
        if code == PIPE_CLOSED:
            return code
        if not self._options.quiet:
            self._last_words()
        if code == DONE and not self._outputs.complete:
            return WRONG_USE
        if code == DONE and self._options.fail_on_match and self._found:
            return FAILED
        return code

    @property
    def _found(self) -> int:
        return self._engine.stats.matches + self._engine.stats.timeouts

    def _connect_leftovers(self) -> None:
        if self._late is not None:
            self._engine.on_late = self._late.late
        if self._rejects is not None:
            self._engine.on_reject = self._rejects.reject
        else:
            self._engine.on_reject = self._note_first_reject

    def _note_first_reject(self, source: str, reject: Reject) -> None:
        if self._first_reject is None:
            line = f":{reject.line_number}" if reject.line_number else ""
            self._first_reject = f"{source}{line}: {reject.reason}"

    def _read(self) -> None:
        """Everything that is read, and what is due at its end."""
        from cep.reading import run_sources

        with self._progress_line() as self._progress:
            run_sources(
                self._engine,
                self._sources,
                on_matches=self._write,
                on_progress=self._advance if self._progress is not None else None,
                sort=self._options.sort,
            )
            self._write(self._engine.close(at_end=self._options.at_end))

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
        """Close the outputs, also after a fault."""
        for leftovers in (self._late, self._rejects):
            if leftovers is not None:
                leftovers.close()
        self._outputs.close()

    def _last_words(self) -> None:
        """Open absences, advice, numbers: in this order, so that the numbers stand last."""
        stats = self._engine.stats
        undecided = self._engine.undecided
        for line in undecided_lines(undecided, everything=self._options.stats):
            say(line)
        for line in advice(self._engine, self._options, self._first_reject):
            warn(printable(line))
        if self._options.stats:
            for line in rule_table(stats):
                say(line)
        say(closing_line(stats, len(undecided), perf_counter() - self._started))


def _may_print(options: RunOptions) -> bool:
    """Whether writing a match may print something where the progress line is."""
    return options.exec_command is not None or not options.output or "-" in options.output


def _guarded(work: Callable[[], None]) -> int:
    """Do a part of the run; the exit code of what ended it before its time."""
    try:
        work()
    except ClosedPipe:
        return PIPE_CLOSED
    except (SinkError, SourceError) as error:
        complain(str(error))
        return WRONG_USE
    except KeyboardInterrupt:
        return INTERRUPTED
    except Terminated:
        return TERMINATED
    return DONE


def open_sources(options: RunOptions, stop: Stop) -> tuple[list[str], list[Source]]:
    """The inputs by their paths, opened; `Problem` for one that cannot be read."""
    from cep.source import SourceOptions, expand, open_source

    reading = SourceOptions(follow=options.follow, stop=stop.event)
    try:
        paths = expand(options.inputs)
        return paths, [open_source(path, options.format, reading) for path in paths]
    except SourceError as error:
        raise Problem(str(error)) from error
