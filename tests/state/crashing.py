"""Engines that crash at random moments and go on from their state file, until the last event."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

import cep
from cep.state.sqlite import SqliteStore


def crash(engine: cep.Engine) -> None:
    """Lets go of the file as a killed process does: what is not written is lost."""
    assert engine.keeper is not None
    engine.keeper.store.close()


def crashed_anywhere(
    rules: cep.Ruleset,
    given: Sequence[Mapping[str, Any]],
    path: Path,
    rnd: random.Random,
    memory: Callable[[], int | None],
) -> tuple[list[str], int]:
    """The ids of what is found, each once, and in how many pieces states were written at most. Each
    engine has a `memory` of its own."""
    found: list[str] = []
    position, pieces = 0, 0
    while position < len(given):
        engine = cep.Engine(rules, state=path, checkpoint_every=0, max_memory=memory())
        position = engine.position or 0
        for _ in range(rnd.randrange(2, 60)):
            upto = min(position + rnd.randrange(1, 6), len(given))
            found += [m.id for m in engine.process(given[position:upto], position=upto)]
            position = upto
            for rule in engine.program.rules:
                rule.check()
        if position == len(given):
            found += [match.id for match in engine.checkpoint()]
        crash(engine)
        with closing(SqliteStore(str(path))) as store:
            assert store.check() == []
            number = store._reader.execute("select count(*) from _segments").fetchone()[0]
            pieces = max(pieces, number)
    return list(dict.fromkeys(found)), pieces
