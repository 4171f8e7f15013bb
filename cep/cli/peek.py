"""`cep peek`: what an input looks like to the rules, before there are any.

In: one input. Out: its first records as JSON lines on standard output; on standard error its
format, its fields with their types and how many records have them, and which one is the time.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import islice
from typing import TYPE_CHECKING, Any

import click

from cep.cli.exits import DONE, WRONG_USE
from cep.cli.guess import Path, time_field, written
from cep.cli.parameters import format_option
from cep.cli.rule_files import input_path
from cep.cli.speech import Problem, counted, say, warn
from cep.sink.text import printable

if TYPE_CHECKING:
    from cep.source.base import Block, Reject, Source

LOOKED_AT = 1000
"""Records that the table of fields is made of."""

MOST = 200
"""Fields that the table has."""


@click.command("peek")
@click.argument("input", metavar="INPUT")
@format_option
@click.option(
    "-n",
    "count",
    type=click.IntRange(min=0),
    default=5,
    show_default=True,
    metavar="N",
    help="How many records are shown.",
)
def command(input: str, format: str | None, count: int) -> int:
    """Show the first records of an INPUT (a file, or - for standard input) as rules see them.

    The records come as JSON lines. Beside them it is said which format they are in, which fields
    they have, of which types and how often, and which field is taken as the time.
    """
    from cep.source import SourceError, open_source

    try:
        source = open_source(input_path(input), format)
    except SourceError as error:
        raise Problem(printable(str(error))) from error
    look = _Look(source)
    records = list(islice(look.records(), max(count, LOOKED_AT)))
    for record in records[:count]:
        click.echo(_line(record))
    for text in _said(look, records):
        say(text)
    for reject in look.rejects[:1]:
        line = f"line {reject.line_number}: " if reject.line_number else ""
        warn(
            printable(
                f"{counted(look.rejected, 'record')} cannot be read. The first: "
                f"{line}{reject.reason}"
            )
        )
    return DONE if records else WRONG_USE


class _Look:
    """The records of a source, and what could not be read among them."""

    def __init__(self, source: Source) -> None:
        self.source = source
        self.rejects: list[Reject] = []
        self.rejected = 0

    def records(self) -> Iterator[Mapping[str, Any]]:
        from cep.source.base import BadRecord, Reject

        for block in self.source.blocks():
            for reject in block.rejects:
                self._note(reject)
            if block.lines is not None:
                yield from self._decoded(block)
            else:
                try:
                    yield from block.ready
                except BadRecord as error:
                    self._note(Reject(block.offset, block.line_number, str(error), b""))

    def _decoded(self, block: Block) -> Iterator[Mapping[str, Any]]:
        from cep.source.base import BadRecord, Reject
        from cep.source.json_line import read_object

        for index, line in enumerate(block.lines or ()):
            if not line.strip():
                continue
            try:
                yield read_object(line)
            except BadRecord as error:
                number = block.line_number + index
                self._note(Reject(block.offset, number, str(error), line))

    def _note(self, reject: Reject) -> None:
        self.rejected += reject.count
        self.rejects.append(reject)


def _line(record: Mapping[str, Any]) -> str:
    import msgspec

    from cep.event import shallow

    return msgspec.json.encode(shallow(dict(record)), enc_hook=str).decode()


def _said(look: _Look, records: list[Mapping[str, Any]]) -> Iterator[str]:
    """The format, the table of the fields and the time."""
    yield f"format {look.source.input.format}"
    if records:
        yield from _table(records)
        yield _time_line(records)
    else:
        yield "no records"


def _table(records: list[Mapping[str, Any]]) -> Iterator[str]:
    """The fields with their types, and in how many records they are."""
    from cep.cli.sample import fields_of, type_name

    counts: dict[Path, int] = {}
    types: dict[Path, set[str]] = {}
    for record in records:
        for path, value in dict(fields_of(record)).items():
            counts[path] = counts.get(path, 0) + 1
            types.setdefault(path, set()).add("null" if value is None else type_name(value))
    rows = [
        (printable(written(path)), " or ".join(sorted(types[path])), f"{number:,}")
        for path, number in islice(counts.items(), MOST)
    ]
    heads = ("field", "type", f"in {counted(len(records), 'record')}")
    widths = [max(map(len, column)) for column in zip(heads, *rows, strict=True)]
    for name, kind, number in (heads, *rows):
        yield f"  {name:<{widths[0]}}  {kind:<{widths[1]}}  {number:>{widths[2]}}"
    if len(counts) > MOST:
        yield f"  and {counted(len(counts) - MOST, 'further field')}"


def _time_line(records: list[Mapping[str, Any]]) -> str:
    """Which field is the time of events, if that can be said without rules."""
    from cep.compile.rules import DEFAULT_TIMES
    from cep.event import lookup
    from cep.event_time import format_time, parse_time

    for known in DEFAULT_TIMES:
        for record in records:
            moment = parse_time(lookup(record, known))
            if moment is not None:
                return f"time {written(known)}, the first at {format_time(moment)}"
    names = ", ".join(map(written, DEFAULT_TIMES))
    guess = next((path for record in records if (path := time_field(record))), None)
    if guess is None:
        return f"no time: none of the fields {names} is there; `stream event {{ time FIELD }}`"
    field = written(guess)
    return (
        f"no time: none of {names}, but {field} looks like one: `stream event {{ time {field} }}`"
    )
