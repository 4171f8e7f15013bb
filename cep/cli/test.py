"""`cep test`: the tests that stand in rule files, with a report for people and for machines."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING
from xml.etree import ElementTree

import click

from cep.cli.exits import DONE, FAILED
from cep.cli.mutation import mutants_noticed
from cep.cli.parameters import RULES, loading_options
from cep.cli.reading import Loading, load_rules
from cep.cli.rule_files import rule_files
from cep.cli.selection import parse_selection
from cep.cli.speech import Problem, colored, counted, paint, say, warn
from cep.sink.text import printable

if TYPE_CHECKING:
    from cep.testing.runner import TestResult
    from dsl import ast


@click.command("test")
@click.argument("rules", nargs=-1, required=True, type=RULES)
@click.option(
    "-k",
    "selection",
    metavar="EXPR",
    help="Only tests whose rules or name contain EXPR: words, with and, or, not, ( ).",
)
@click.option("--junit", metavar="FILE", help="Write a report in JUnit's XML form too.")
@click.option(
    "--mutate",
    is_flag=True,
    help="Then change the rules, one thing at a time, and tell what no test notices.",
)
@loading_options
@click.option("--verbose", "-v", is_flag=True, help="A line for each test, passed or not.")
@click.option("--quiet", "-q", is_flag=True, help="Only failures.")
def command(
    rules: tuple[str, ...],
    selection: str | None,
    junit: str | None,
    mutate: bool,
    settings: tuple[str, ...],
    type_field: str | None,
    verbose: bool,
    quiet: bool,
) -> int:
    """Run the `test` blocks of rule files. Exit code 1 if one fails.

    RULES are files, folders or pack:NAME. With --mutate also if a change of a rule (a condition
    left out, a bound or a count off by one) makes no test fail; a test that would is proposed.
    """
    from cep.testing.runner import run_tests

    only = _chooser(selection)
    loading = Loading(settings=settings, type_field=type_field)
    ruleset = load_rules(rule_files(rules), loading, warnings=False)
    started = perf_counter()
    results = run_tests(ruleset, only=only)
    elapsed = perf_counter() - started
    for result in results:
        _show(result, verbose)
    if junit is not None:
        _write_junit(junit, results, elapsed)
    if not quiet:
        _summary(results, elapsed, selection)
    if not all(result.passed for result in results):
        return FAILED
    if mutate and not mutants_noticed(rule_files(rules), loading, only, quiet):
        return FAILED
    return DONE


def _chooser(selection: str | None) -> Callable[[ast.Test], bool] | None:
    """Whether a test is to be run, by the words of its rules and its name."""
    if selection is None:
        return None
    holds = parse_selection(selection)
    return lambda test: holds(f"{' '.join(rule.name for rule in test.rules)} {test.name}")


def _title(result: TestResult) -> str:
    rules = ", ".join(rule.name for rule in result.test.rules)
    return printable(f'{rules} "{result.test.name}"')


def _show(result: TestResult, verbose: bool) -> None:
    color = colored(sys.stdout)
    if not result.passed:
        click.echo(
            f"{paint('FAILED', '1;31', color)} {_title(result)}  ({result.test.span})",
            color=color,
        )
        click.echo("\n".join(f"  {line}" for line in result.message.splitlines()) + "\n")
    elif verbose:
        click.echo(f"{paint('passed', '32', color)} {_title(result)}", color=color)


def _summary(results: list[TestResult], elapsed: float, selection: str | None) -> None:
    if not results:
        warn("no test fits -k" if selection else "these rules have no tests")
    failed = sum(not result.passed for result in results)
    parts = [f"{len(results) - failed:,} passed"]
    if failed:
        parts.append(f"{failed:,} failed")
    say(f"{counted(len(results), 'test')}: {', '.join(parts)} in {elapsed:.2f} s")


def _write_junit(path: str, results: Iterable[TestResult], elapsed: float) -> None:
    """The report that build servers read: one test suite, one case for each test."""
    cases = list(results)
    suite = ElementTree.Element(
        "testsuite",
        name="cep",
        tests=str(len(cases)),
        failures=str(sum(not case.passed for case in cases)),
        errors="0",
        time=f"{elapsed:.3f}",
    )
    for result in cases:
        span = result.test.span
        case = ElementTree.SubElement(
            suite,
            "testcase",
            classname=", ".join(rule.name for rule in result.test.rules),
            name=printable(result.test.name),
            file=span.source.name,
            line=str(span.line),
        )
        if not result.passed:
            message = "\n".join(printable(line) for line in result.message.splitlines())
            failure = ElementTree.SubElement(case, "failure", message=message.split("\n")[0])
            failure.text = message
    suites = ElementTree.Element("testsuites")
    suites.append(suite)
    try:
        Path(path).write_bytes(ElementTree.tostring(suites, "utf-8", xml_declaration=True))
    except OSError as error:
        raise Problem(f"cannot write {path}: {error.strerror or error}") from error
