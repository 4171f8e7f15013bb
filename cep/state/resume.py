"""A program goes on with rows that were kept, of these rules or of earlier ones.

In: a new program, who goes on with what (`cep.state.change`), and the rows. Out: the program with
its states, and which rows are of no use any more.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from typing import Any

from cep.compile.program import Program
from cep.compile.rules import CompiledRules
from cep.runtime.tables import StreamTable
from cep.runtime.window_rule import WindowRun
from cep.state.change import Succession
from cep.state.snapshot import COUNTERS, Memory
from cep.state.store import Owner, StateRow, StateText

NO_COUNTERS: Mapping[str, Any] = {"rules": {}, "repeats": {}, "observing": 0}

Unwanted = dict[Owner, list[StateRow]]
"""Rows as they are deleted, by their owner."""


def name_owners(program: Program, compiled: CompiledRules) -> None:
    """Tells every rule of a program whose its states are: those of its name and structure."""
    for run, rule in zip(program.rules, compiled.rules, strict=True):
        run.owner = rule.id


def go_on(
    memory: Memory,
    following: Succession,
    states: Iterable[StateText],
    clock: int | None,
    counters: Mapping[str, Any],
) -> tuple[Unwanted, set[Owner]]:
    """Lets the program of `memory` go on with these states. Gives the rows that nobody wants, and
    the owners that have rows which were another's before."""
    unwanted: Unwanted = {}
    moved: set[Owner] = set()
    kept: dict[Owner, bool] = {}
    known: dict[Owner, list[tuple[Owner, Callable[[str, str], object]]]] = {}
    for owner, key, text in states:
        heirs = known.get(owner)
        if heirs is None:
            heirs = [(heir, memory.adopter(heir)) for heir in following.heirs(owner)]
            known[owner] = heirs
            moved.update(heir for heir, _ in heirs if heir != owner)
            kept[owner] = any(heir == owner for heir, _ in heirs)
        for _, adopt in heirs:
            adopt(key, text)
        if not kept[owner]:
            unwanted.setdefault(owner, []).append(StateRow(key, None))
    memory.resume(clock, _known(counters, following, memory.program))
    _tell_since(memory.program, following, clock)
    return unwanted, moved


def _known(
    counters: Mapping[str, Any], following: Succession, program: Program
) -> Mapping[str, Any]:
    """The counters of what is still there."""
    owners = {run.owner for run in program.rules}
    rules = {
        owner: counted
        for owner, counted in counters.get("rules", {}).items()
        if owner in owners and following.heirs(Owner("runs", owner))
    }
    repeats = {
        name: dropped
        for name, dropped in counters.get("repeats", {}).items()
        if name in program.repeats
    }
    return {**NO_COUNTERS, **counters, "rules": rules, "repeats": repeats}


def _tell_since(program: Program, following: Succession, clock: int | None) -> None:
    """Windows of earlier versions know since when they are that."""
    for run, rule in zip(program.rules, following.compiled.rules, strict=True):
        if isinstance(run, WindowRun):
            if rule.earlier is None:
                run.since = None
            elif run.since is None:
                run.since = clock


def rearm(program: Program, following: Succession, clock: int | None) -> None:
    """Where constants have changed, what is due by the new ones; to be called when changes of
    states are noted already."""
    changed = {change.name for change in following.changes if change.kind == "constants"}
    for run, rule in zip(program.rules, following.compiled.rules, strict=True):
        if rule.name in changed and rule.earlier is None and clock is not None:
            run.rearm(clock)


def note_moved(program: Program, moved: Collection[Owner]) -> None:
    """Everything that these owners hold is to be written with the next epoch."""
    for owner in moved:
        if owner.kind == "dedup":
            for run in program.rules:
                if run.owner == owner.name:
                    for dedup in (run.dedups or {}).values():
                        dedup.changed = set(dedup.windows)
        elif owner.kind == "repeats":
            program.repeats[owner.name].changed = set(program.repeats[owner.name].windows)
        elif isinstance(table := program.tables.get(owner.name), StreamTable):
            table.changed = set(table.rows)


def finished(program: Program, compiled: CompiledRules) -> list[str]:
    """The owners of earlier versions that hold nothing any more."""
    return [
        rule.id
        for run, rule in zip(program.rules, compiled.rules, strict=True)
        if rule.earlier is not None and not run.states
    ]


def leave_out(program: Program, compiled: CompiledRules, owners: Collection[str]) -> None:
    """The program goes on without these; what they have counted counts for the present version."""
    present = {
        rule.name: run
        for run, rule in zip(program.rules, compiled.rules, strict=True)
        if rule.earlier is None
    }
    for run in program.rules:
        heir = present.get(run.name)
        if run.owner in owners and heir is not None:
            for each in COUNTERS:
                setattr(heir, each, getattr(heir, each) + getattr(run, each))
            heir.careful.failures += run.careful.failures
    compiled.rules[:] = [rule for rule in compiled.rules if rule.id not in owners]
    program.drop(owners, compiled)
