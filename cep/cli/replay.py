"""Whether going on from a state finds the same matches as a run over everything.

In: a state file, the rules, and the inputs from their beginning. Two engines run, both with state
in memory: one begins with nothing, one goes on from a copy of the file. What the second finds must
be the end of what the first finds, match by match, by their ids; and what both have counted must
be equal. The file is not changed.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from cep.cli.speech import Problem, counted
from cep.source.base import SourceError
from cep.state.memory import MemoryStore

if TYPE_CHECKING:
    from cep.engine import Engine
    from cep.match import Match
    from cep.ruleset import Ruleset


@dataclass(frozen=True, slots=True)
class Compared:
    """The ids of the matches of both runs, and how many each has counted over its whole life."""

    whole: Sequence[str]
    going_on: Sequence[str]
    counted_whole: int
    counted_going_on: int

    @property
    def same(self) -> bool:
        """Whether going on found just what came after."""
        tail = self.whole[len(self.whole) - len(self.going_on) :]
        return list(tail) == list(self.going_on) and self.counted_whole == self.counted_going_on

    def sentence(self) -> str:
        """What came out, in words."""
        found = counted(len(self.going_on), "match", "matches")
        every = counted(len(self.whole), "match", "matches")
        if self.same:
            return f"going on from the state: {found}, the same as the last of {every} of all"
        only_whole = len(set(self.whole) - set(self.going_on))
        only_going_on = len(set(self.going_on) - set(self.whole))
        return (
            f"not the same: going on from the state finds {found} of {every}; "
            f"{only_going_on:,} of them are new, {only_whole:,} of all are not among them; counted "
            f"{self.counted_going_on:,} and {self.counted_whole:,}. Were the inputs the same?"
        )


def replay(path: str, ruleset: Ruleset, inputs: Sequence[str]) -> Compared:
    """Runs twice. `Problem` for inputs that cannot be read, and for other rules; raises
    StateError."""
    from cep.engine import Engine
    from cep.state.sqlite import look
    from cep.upkeep import export, import_into

    copy = MemoryStore()
    with look(path) as snapshot:
        import_into(copy, export(snapshot))
    whole = Engine(ruleset, state=MemoryStore(), checkpoint_every=3600)
    going_on = Engine(ruleset, state=copy, checkpoint_every=3600)
    other = [change.name for change in going_on.changes if change.kind != "kept"]
    if other:
        raise Problem(f"the rules are not those of the state: {', '.join(other)}")
    ids = [[m.id for m in found_by(engine, inputs)] for engine in (whole, going_on)]
    return Compared(ids[0], ids[1], _counted(whole), _counted(going_on))


def found_by(engine: Engine, inputs: Sequence[str], format: str | None = None) -> list[Match]:
    """All matches that the rest of the inputs gives an engine with state, the end of the input left
    open. `Problem` for inputs that cannot be read."""
    from cep.cli.durable import open_inputs
    from cep.reading import run_sources
    from cep.source import SourceOptions, expand

    found: list[Match] = []
    try:
        sources = open_inputs(engine, expand(inputs), format, SourceOptions(whole_lines=True))
        run_sources(engine, sources, on_matches=found.extend)
    except SourceError as error:
        raise Problem(str(error)) from error
    while some := engine.checkpoint():
        found += some
    return found


def _counted(engine: Engine) -> int:
    stats = engine.stats
    return stats.matches + stats.timeouts
