"""`cep check`: every problem of rule files, and what bounds the state of each rule."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import TYPE_CHECKING

import click

from cep.cli.exits import DONE, FAILED
from cep.cli.parameters import RULES, loading_options
from cep.cli.reading import Loading, checked_rules, show_diagnostics
from cep.cli.rule_files import rule_files
from cep.cli.speech import Problem, colored, counted, paint, say
from dsl.diagnostics import did_you_mean

if TYPE_CHECKING:
    from cep.ruleset import Ruleset
    from dsl.diagnostics import Diagnostic


@click.command("check")
@click.argument("rules", nargs=-1, type=RULES)
@click.option("--explain", "code", metavar="CODE", help="Explain an error or warning code.")
@loading_options
@click.option("--quiet", "-q", is_flag=True, help="Only problems: no bounds, no summary.")
def command(
    rules: tuple[str, ...],
    code: str | None,
    settings: tuple[str, ...],
    type_field: str | None,
    quiet: bool,
) -> int:
    """Check rule files: all problems at once, then what bounds the memory of each rule.

    RULES are files, folders or pack:NAME; together they are checked as one set. Exit code 1 if
    there is an error; warnings do not count.
    """
    if code is not None:
        click.echo(explanation(code))
        return DONE
    if not rules:
        raise click.UsageError("nothing to check: name rule files, a folder or pack:NAME")
    loading = Loading(settings=settings, type_field=type_field)
    found, checked = _check(rule_files(rules), loading)
    show_diagnostics(found)
    if not quiet:
        for lines in _bounds(checked, colored(sys.stdout)):
            click.echo(lines)
        _summary(found, len(checked.rules) if checked is not None else 0)
    return FAILED if any(one.severity == "error" for one in found) else DONE


def _check(paths: list[str], loading: Loading) -> tuple[list[Diagnostic], Ruleset | None]:
    """All findings; the rules, or None if they cannot be used."""
    from dsl.diagnostics import RuleError

    try:
        ruleset = checked_rules(paths, loading)
    except RuleError as error:
        return list(error.diagnostics), None
    return list(ruleset.warnings), ruleset


def _bounds(ruleset: Ruleset | None, color: bool) -> Iterator[str]:
    """For each rule what bounds its memory, and what a key takes."""
    from cep.explain.bounds import bounds
    from cep.explain.memory import memory

    if ruleset is None:
        return
    compiled = {rule.name: rule for rule in ruleset.compiled.rules}
    for name, rule in ruleset.rules.items():
        yield f"{paint(name, '1', color)}  {paint(str(rule.span), '2', color)}"
        for line in [*bounds(rule), *memory(compiled[name], ruleset.compiled.shape)]:
            yield f"  {line}"


def _summary(found: list[Diagnostic], rules: int) -> None:
    errors = sum(one.severity == "error" for one in found)
    warnings = len(found) - errors
    parts = [counted(rules, "rule")] if not errors else []
    parts += [counted(errors, "error"), counted(warnings, "warning")]
    say(", ".join(parts))


def explanation(code: str) -> str:
    """The page of a code; `Problem` if there is no such code."""
    from dsl.codes import CODES

    known = CODES.get(code.upper())
    if known is None:
        guess = did_you_mean(code, CODES)
        raise Problem(f"no code `{code}`" + (f"; did you mean {guess}?" if guess else ""))
    return f"{known.code}: {known.title}\n\n{known.explanation.strip()}"
