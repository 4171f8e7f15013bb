"""`cep run --reload`: rules that change while they run.

In: the rule files of a run. When one of them has changed, or SIGHUP has come, they are loaded
again, between two blocks of input. Rules with errors are told, and the old ones go on.
"""

from __future__ import annotations

import gc
import signal
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from os import stat
from time import monotonic
from types import FrameType
from typing import TYPE_CHECKING

from cep.cli.reading import Loading, rules_to_run
from cep.cli.rule_files import rule_files
from cep.cli.speech import Problem, complain, say
from cep.state.store import StateError

if TYPE_CHECKING:
    from cep.engine import Engine
    from cep.match import Match
    from cep.ruleset import Ruleset

EVERY = 1.0
"""Seconds between two looks at the files."""

Stamps = dict[str, tuple[int, int] | None]


class Hangup:
    """Whether SIGHUP has come and nothing has been done yet."""

    def __init__(self) -> None:
        self.has_come = False

    def note(self, _number: int, _frame: FrameType | None) -> None:
        """The handler of the signal."""
        self.has_come = True


@contextmanager
def listening(wanted: bool) -> Iterator[Hangup]:
    """While this lasts, SIGHUP asks for a reload, where that is wanted; also before there are rules
    that could be loaded again."""
    hangup = Hangup()
    if not wanted or not hasattr(signal, "SIGHUP"):  # Windows: files are watched all the same
        yield hangup
        return
    before = signal.signal(signal.SIGHUP, hangup.note)
    try:
        yield hangup
    finally:
        signal.signal(signal.SIGHUP, before)


class Reloading:
    """Watches the rule files of a run, and lets its engine go on with what they have become.

    `arguments` are the rules as they were named; `restart` the rules that are to start over.
    """

    def __init__(
        self,
        hangup: Hangup,
        arguments: Sequence[str],
        loading: Loading,
        names: Sequence[str],
        restart: Sequence[str],
        ruleset: Ruleset,
    ) -> None:
        self._arguments = arguments
        self._loading = loading
        self._names = names
        self._restart = restart
        self._hangup = hangup
        self._looked = monotonic()
        self._included = _files_of(ruleset)
        self._stamps = self._look()

    def turn(self, engine: Engine) -> list[Match]:
        """Reloads where that is wanted; gives the matches that had to come before."""
        if not self._wanted():
            return []
        try:
            ruleset = rules_to_run(rule_files(self._arguments), self._loading, self._names)
            restart = [name for name in self._restart if name in ruleset.rules]
            done = engine.reload(ruleset, restart=restart)
        except (Problem, StateError) as error:
            complain(str(error) if isinstance(error, StateError) else error.message)
            say("the rules go on as they were")
            return []
        gc.collect()  # what was replaced is in cycles, which are not looked for while a run goes on
        self._included = _files_of(ruleset)
        self._stamps = self._look()
        say("the rules have been loaded again")
        for change in done.changes:
            if change.kind != "kept" or change.restarted:
                say(change.sentence())
        return done.matches

    def _wanted(self) -> bool:
        """Whether a reload was asked for, or a file has changed."""
        if self._hangup.has_come:
            self._hangup.has_come = False
            self._stamps = self._look()
            return True
        if monotonic() - self._looked < EVERY:
            return False
        self._looked = monotonic()
        before, self._stamps = self._stamps, self._look()
        return self._stamps != before

    def _look(self) -> Stamps:
        """When the files were changed last, and how long they are; None: there is no such file."""
        try:
            paths = {*rule_files(self._arguments), *self._included}
        except Problem:  # the last file of a folder has gone: what is missing is told on reloading
            paths = self._included
        return {path: _stamp(path) for path in sorted(paths)}


def _files_of(ruleset: Ruleset) -> set[str]:
    """The files that the rules come from, included ones too."""
    return {statement.span.source.name for statement in ruleset.checked.statements}


def _stamp(path: str) -> tuple[int, int] | None:
    try:
        found = stat(path)
    except OSError:
        return None
    return found.st_mtime_ns, found.st_size


def tell_changes(engine: Engine) -> None:
    """Says what the rules are to those that the state was last used with."""
    for change in engine.changes:
        if change.kind not in ("kept", "new") or change.restarted or change.warming:
            say(change.sentence())
