"""Rule files read, parsed and checked for the commands, with problems shown to people.

Two ways: `read_trees` for commands that need only the text's tree, `load_rules` for those that need
rules that can run.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from cep.cli.exits import WRONG_USE
from cep.cli.speech import Problem, colored, counted, say
from dsl.diagnostics import did_you_mean

if TYPE_CHECKING:
    from cep.ruleset import Ruleset
    from dsl import ast
    from dsl.diagnostics import Diagnostic
    from dsl.source import Source


TIDINESS = frozenset({"W008", "W009", "W010", "W014"})
"""Warnings about how rules are written, not about what they find: `cep check` is for these."""


class UnusableRules(Problem):
    """The rules have errors, which have been shown already; only the count is left to say."""

    exit_code = WRONG_USE


def read_text(path: str) -> str:
    """The text of a rule file (`-`: standard input); `Problem` in plain words if unreadable."""
    try:
        data = sys.stdin.buffer.read() if path == "-" else Path(path).read_bytes()
    except OSError as error:
        raise Problem(f"cannot read {path}: {error.strerror or error}") from error
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise Problem(f"cannot read {path}: line {line} is not UTF-8 text") from error


def read_trees(paths: Sequence[str]) -> list[tuple[ast.File, Source, list[Diagnostic]]]:
    """The tree of each file with what the parser has to say about it."""
    from dsl.parser import parse
    from dsl.source import Source

    read = []
    for path in paths:
        source = Source("<standard input>" if path == "-" else path, read_text(path))
        tree, diagnostics = parse(source)
        read.append((tree, source, diagnostics))
    return read


@dataclass(frozen=True, slots=True, kw_only=True)
class Loading:
    """How rules are loaded: params as they were given (`name=value`), the field of the type."""

    settings: Sequence[str] = ()
    type_field: str | None = None


def checked_rules(paths: Sequence[str], loading: Loading, names: Sequence[str] = ()) -> Ruleset:
    """The rules of these files, compiled; only those called `names`, if there are any.

    Raises `RuleError` for rules that cannot run, `Problem` for a file or name that is not there.
    """
    from cep.ruleset import load

    for path in paths:
        read_text(path)
    params = parse_settings(loading.settings)
    ruleset = load(paths, params=params, type_field=loading.type_field)
    if names:
        ruleset = select(ruleset, names)
    ruleset.compiled  # noqa: B018 - what cannot be compiled is told now
    return ruleset


def load_rules(
    paths: Sequence[str], loading: Loading, names: Sequence[str] = (), *, warnings: bool = True
) -> Ruleset:
    """Rules that can run; with errors shown and `UnusableRules` raised if they cannot."""
    from dsl.diagnostics import RuleError

    try:
        ruleset = checked_rules(paths, loading, names)
    except RuleError as error:
        show_diagnostics(error.diagnostics)
        errors = sum(found.severity == "error" for found in error.diagnostics)
        raise UnusableRules(f"the rules have {counted(errors, 'error')}") from error
    if warnings:
        show_diagnostics(found for found in ruleset.warnings if found.code not in TIDINESS)
    return ruleset


def rules_to_run(
    paths: Sequence[str], loading: Loading, names: Sequence[str] = (), *, warnings: bool = True
) -> Ruleset:
    """The same for a run; `Problem` where there are none: with a state it would all be dropped."""
    ruleset = load_rules(paths, loading, names, warnings=warnings)
    if not ruleset.rules:
        raise Problem(f"there are no rules in {', '.join(paths)}")
    return ruleset


def select(ruleset: Ruleset, names: Sequence[str]) -> Ruleset:
    """Only the rules of these names and those that feed them; `Problem` for one that does not
    exist."""
    known = list(ruleset.rules)
    for name in names:
        if name not in ruleset.rules:
            guess = did_you_mean(name, known)
            there = ", ".join(known[:20]) + (", …" if len(known) > 20 else "")
            hint = f"did you mean `{guess}`?" if guess else f"there are: {there}"
            raise Problem(f"no rule `{name}`; {hint}")
    return ruleset.select(ruleset.with_needed(names))


def show_diagnostics(diagnostics: Iterable[Diagnostic]) -> None:
    """Draw the findings on standard error, a blank line after each."""
    from dsl.diagnostics import draw

    color = colored(sys.stderr)
    for diagnostic in diagnostics:
        say(draw(diagnostic, color) + "\n")


def parse_settings(settings: Sequence[str]) -> dict[str, object]:
    """`--set name=value` as parameters; a value that reads as JSON is one, else it is a text."""
    import json

    params: dict[str, object] = {}
    for setting in settings:
        name, equals, value = setting.partition("=")
        if not equals or not name.strip():
            raise Problem(f"--set {setting}: write it as name=value")
        try:
            params[name.strip()] = json.loads(value)
        except ValueError:
            params[name.strip()] = value
    return params
