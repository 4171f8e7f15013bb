"""A host program as people write it: events from a file, state and position kept by the engine.

Each match goes into a table whose key is the match's id, so that one that comes again after a crash
is there once; and as a line into a file, where it may stand twice but must never be missing.
"""

from __future__ import annotations

import sqlite3
from itertools import islice
from pathlib import Path

import cep

BATCH = 40
"""Lines that are given to the engine at once."""


def serve(rules: str, log: str, state: str, folder: str) -> int:
    """Runs the whole log, from where the engine stands."""
    out = Outputs(Path(folder))
    with cep.Engine(cep.load(rules), state=state, checkpoint_every=0.02) as engine:
        out.take(engine.process([]))
        with open(log, "rb") as file:
            file.seek(engine.position or 0)
            while lines := list(islice(file, BATCH)):
                out.take(engine.process(lines, position=file.tell()))
        out.take(engine.checkpoint())  # delivered with the end of the block
    return 0


class Outputs:
    """A table and a file in a folder."""

    def __init__(self, folder: Path) -> None:
        self._table = sqlite3.connect(folder / "found.db")
        self._table.execute("pragma synchronous = off")  # processes are killed, disks are not
        self._table.execute("create table if not exists found (id text primary key, record text)")
        self._file = open(folder / "found.jsonl", "ab", buffering=0)  # noqa: SIM115

    def take(self, matches: list[cep.Match]) -> None:
        """Writes what has been found."""
        rows = [(match.id, match.to_json().decode()) for match in matches]
        self._file.write("".join(record + "\n" for _, record in rows).encode())
        with self._table:
            self._table.executemany("insert or replace into found values (?, ?)", rows)
