"""`cep verify`: whether the matches that a run has written are those that its input gives.

In: rules, inputs, and what a run has written (JSON lines, CSV or SQLite). Out: which matches are
missing there and which are too many, by their ids. What is live and what is a replay must find the
same: a difference tells that rules or inputs were others, or that events came late.
"""

from __future__ import annotations

import csv
from collections.abc import Collection, Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click
import msgspec

from cep.cli.exits import DONE, FAILED
from cep.cli.parameters import DURATION, RULES, format_option, loading_options
from cep.cli.reading import Loading, rules_to_run
from cep.cli.replay import found_by
from cep.cli.rule_files import split_arguments
from cep.cli.run import AT_END
from cep.cli.speech import Problem, complain, counted, say
from cep.sink.text import printable

if TYPE_CHECKING:
    from cep.match import Match

SHOWN = 5
"""Differences of each kind that are told one by one."""


@click.command("verify")
@click.argument(
    "arguments", nargs=-1, required=True, type=RULES, metavar="RULES... INPUT... MATCHES"
)
@format_option
@click.option("--rule", multiple=True, metavar="NAME", help="What the run was told; repeatable.")
@loading_options
@click.option("--delay", type=DURATION, metavar="DURATION", help="The delay of the run.")
@click.option("--at-end", type=click.Choice(AT_END), help="What the run was told.")
def command(
    arguments: tuple[str, ...],
    format: str | None,
    rule: tuple[str, ...],
    settings: tuple[str, ...],
    type_field: str | None,
    delay: int | None,
    at_end: str | None,
) -> int:
    """Run over the inputs again and compare with MATCHES, which a run has written.

    MATCHES is JSON lines, CSV or SQLite (.db), as `cep run --output` writes them. Exit code 1 if
    a match is missing there, or is one that the inputs do not give. Matches that come only when the
    input has ended may be there or not.
    """
    from cep.engine import Engine
    from cep.state.memory import MemoryStore

    *others, written = arguments
    rules, inputs = split_arguments(others)
    if not inputs:
        raise click.UsageError("name the rules, the inputs, and last the file of the matches")
    loading = Loading(settings=settings, type_field=type_field)
    ruleset = rules_to_run(rules, loading, rule, warnings=False)
    there = ids_in(written)
    engine = Engine(ruleset, delay=delay, state=MemoryStore(), checkpoint_every=3600)
    found = found_by(engine, inputs, format)
    last = engine.close(at_end or "undecided") + engine.checkpoint()
    missing = [match for match in found if match.id not in there]
    extra = there - {match.id for match in found} - {match.id for match in last}
    _tell(missing, extra)
    same = len(there) - len(extra)
    say(f"{counted(same, 'match', 'matches')} the same, {len(missing)} missing, {len(extra)} extra")
    return FAILED if missing or extra else DONE


def _tell(missing: Sequence[Match], extra: Collection[str]) -> None:
    for match in missing[:SHOWN]:
        key = ", ".join(f"{name}={value}" for name, value in match.key.items())
        complain(printable(f"missing: {match.rule} {match.time_iso} {key} (id {match.id})"))
    for name in sorted(extra)[:SHOWN]:
        complain(printable(f"extra: id {name}"))


def ids_in(path: str) -> set[str]:
    """The ids of the matches in a file. Raises `Problem` for one that holds none."""
    try:
        if path.endswith(".db"):
            from cep.sink.sqlite import ids

            return set(ids(path))
        with Path(path).open(encoding="utf-8", newline="") as file:
            return set(_of_rows(csv.DictReader(file)) if path.endswith(".csv") else _of_lines(file))
    except (OSError, UnicodeDecodeError, msgspec.MsgspecError, KeyError, ValueError) as error:
        raise Problem(f"{path} holds no matches that a run has written: {error}") from error


class _Found(msgspec.Struct):
    id: str


def _of_lines(lines: Iterable[str]) -> Iterable[str]:
    decode = msgspec.json.Decoder(_Found).decode
    return (decode(line).id for line in lines if line.strip())


def _of_rows(rows: Iterable[dict[str, str]]) -> Iterable[str]:
    return (row["id"] for row in rows)
