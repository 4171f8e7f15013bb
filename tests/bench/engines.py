"""How the benchmarks run the engine: over events in memory, over a file, event by event."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import Any

import cep
from cep.compile.program import Program
from cep.match import Match
from cep.source import open_source

from .measure import Prepare, Work

CHUNK = 1024
"""Events handed over at a time: about as many as a block of a file has when it is read."""
Chunks = Sequence[Sequence[Any]]


def decoded(rules: cep.Ruleset, path: Path, chunk: int = CHUNK) -> Chunks:
    """The events of a file as the engine has them, times set, cut into chunks."""
    engine = cep.Engine(rules)
    source = open_source(str(path))
    events = (e for block in source.blocks() for e in engine.decode(0, block))
    return list(_cut(_without_lines(events), chunk))


def made(rules: cep.Ruleset, records: Iterable[Mapping[str, Any]], chunk: int = CHUNK) -> Chunks:
    """Events out of mappings that have their `time` in microseconds, cut into chunks."""
    shape = rules.compiled.shape

    def events() -> Iterator[Any]:
        for position, record in enumerate(records):
            event = shape.from_mapping(record)
            event.t, event.pos, event.raw = record["time"], position, None
            yield event

    return list(_cut(events(), chunk))


def _without_lines(events: Iterable[Any]) -> Iterator[Any]:
    for event in events:
        event.raw = None
        yield event


def _cut(events: Iterator[Any], chunk: int) -> Iterator[list[Any]]:
    while part := list(islice(events, chunk)):
        yield part


def in_process(rules: cep.Ruleset, chunks: Chunks) -> Prepare:
    """Runs a new program over events in memory; the work gives the number of matches."""

    return lambda: in_program(rules.program(), chunks)


def in_program(program: Program, chunks: Chunks) -> Work:
    """Runs a program that is there over events in memory."""

    def work() -> int:
        found = 0
        for chunk in chunks:
            program.run(chunk)
            found += len(program.take())
        return found

    return work


def from_file(rules: cep.Ruleset, path: Path) -> Prepare:
    """Runs a new engine over a file, from bytes to matches."""

    def prepare() -> Work:
        return lambda: len(matches_of(rules, path))

    return prepare


def matches_of(rules: cep.Ruleset, path: Path) -> list[Match]:
    """All matches in a file."""
    engine, found = cep.Engine(rules), list[Match]()
    cep.run_sources(engine, [open_source(str(path))], on_matches=found.extend)
    found += engine.close()
    return found
