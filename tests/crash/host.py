"""A host program as people write it: events from a file, state and position kept by the engine.

Each match goes into a table whose key is the match's id, so that one that comes again after a crash
is there once; and as a line into a file, where it may stand twice but must never be missing. There
are several ways to have the matches (`WAYS`).
"""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import Callable, Iterator, Mapping
from itertools import islice
from pathlib import Path
from typing import BinaryIO

import cep

BATCH = 40
"""Lines that are given to the engine at once."""

STRETCH = 8
"""Batches after which work ends, to begin again with another engine."""

EVERY = 0.02
"""Seconds between checkpoints."""


def serve(way: str, rules: str, log: str, state: str, folder: str) -> int:
    """Runs the whole log, from where the engine stands."""
    WAYS[way](rules, log, state, Outputs(Path(folder)))
    return 0


def returned(rules: str, log: str, state: str, out: Outputs) -> None:
    """Matches are what calls return; what waits at the end of a stretch the next engine gives."""
    more = True
    while more:
        options = {"state": state, "checkpoint_every": EVERY}
        with cep.Engine(cep.load(rules), **options) as engine, open(log, "rb") as file:
            out.take(engine.process([]))
            more = False
            for lines in _batches(file, engine.position):
                out.take(engine.process(lines, position=file.tell()))
                more = True
    with cep.Engine(cep.load(rules), state=state) as engine:
        out.take(engine.process([]))


def handed(rules: str, log: str, state: str, out: Outputs) -> None:
    """Matches are handed to a callback, those that wait also at the end of a stretch."""
    more = True
    while more:
        options = {"state": state, "checkpoint_every": EVERY, "on_match": out.take_one}
        with cep.Engine(cep.load(rules), **options) as engine, open(log, "rb") as file:
            more = False
            for lines in _batches(file, engine.position):
                engine.process(lines, position=file.tell())
                more = True


def iterated(rules: str, log: str, state: str, out: Outputs) -> None:
    """Matches come by asynchronous iteration, while another task gives events."""

    async def work() -> None:
        engine = cep.AsyncEngine(cep.load(rules), room=200, state=state, checkpoint_every=EVERY)
        async with engine, asyncio.TaskGroup() as tasks:
            tasks.create_task(take(engine))
            with open(log, "rb") as file:
                file.seek(engine.position or 0)
                while lines := list(islice(file, BATCH)):
                    await engine.process(lines, position=file.tell())
            await engine.suspend()

    async def take(engine: cep.AsyncEngine) -> None:
        async for match in engine:
            out.take([match])

    asyncio.run(work())


def _batches(file: BinaryIO, position: int | None) -> Iterator[list[bytes]]:
    """The batches of one stretch."""
    file.seek(position or 0)
    for _ in range(STRETCH):
        if not (lines := list(islice(file, BATCH))):
            return
        yield lines


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

    def take_one(self, match: cep.Match) -> None:
        """Writes a match."""
        self.take([match])


WAYS: Mapping[str, Callable[[str, str, str, Outputs], None]] = {
    "returned": returned,
    "handed": handed,
    "iterated": iterated,
}
