"""`cep test --mutate`: what the tests of rules would not notice, for people."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from time import perf_counter
from typing import TYPE_CHECKING

import click

from cep.cli.reading import Loading, parse_settings, read_trees
from cep.cli.speech import colored, counted, paint, say
from cep.sink.text import printable

if TYPE_CHECKING:
    from cep.testing.mutate import Report, Survivor
    from dsl import ast


def mutants_noticed(
    files: Sequence[str], loading: Loading, only: Callable[[ast.Test], bool] | None, quiet: bool
) -> bool:
    """Try the mutants of the rules and show those that pass all tests; whether there is none."""
    from cep.testing.mutate import mutate

    started = perf_counter()
    report = mutate(
        [(tree, source) for tree, source, _ in read_trees(files)],
        params=parse_settings(loading.settings),
        type_field=loading.type_field,
        only=only,
        on_mutant=_progress,
    )
    _progress(None)
    for survivor in report.survivors:
        _show(survivor)
    for rule in report.untested:
        click.echo(f"{rule.span}: rule `{rule.name.name}` has no test\n")
    if not quiet:
        say(_summary(report, perf_counter() - started))
    return report.passed


def _show(survivor: Survivor) -> None:
    """A mutant with its place, and the test to add."""
    color = colored(sys.stdout)
    mutant = survivor.mutant
    head = f"{paint('NOT NOTICED', '1;31', color)} {mutant.span}"
    click.echo(f"{head}: {printable(mutant.words)}  ({', '.join(survivor.rules)})")
    if survivor.proposal is None:
        click.echo("  no small change of the tests tells the two apart\n")
    else:
        click.echo("\n" + "\n".join(f"  {line}" for line in survivor.proposal.splitlines()) + "\n")


def _summary(report: Report, elapsed: float) -> str:
    noticed = report.tried - len(report.survivors)
    parts = [f"{noticed:,} noticed"]
    if report.survivors:
        parts.append(f"{len(report.survivors):,} not")
    if report.untested:
        parts.append(f"{counted(len(report.untested), 'rule')} without a test")
    return f"{counted(report.tried, 'mutant')}: {', '.join(parts)} in {elapsed:.1f} s"


def _progress(tried: int | None) -> None:
    """How far it is, on a line of its own that is written over; None ends it."""
    if sys.stderr.isatty():
        text = "" if tried is None else f"{tried:,} mutants tried"
        print(f"\r{text:<40}\r", end="", file=sys.stderr, flush=True)
