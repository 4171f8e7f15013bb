"""`cep rules`: the ready-made rules, to list, to read and to copy."""

from __future__ import annotations

import difflib
import shutil
import sys
from pathlib import Path
from typing import NamedTuple

import click

from cep.cli.reading import read_trees
from cep.cli.rule_files import PACK, pack_names, rule_files
from cep.cli.speech import Problem, colored, paint, say


class PackRule(NamedTuple):
    """A ready-made rule: where it stands and what it says of itself."""

    pack: str
    file: Path
    name: str
    title: str
    severity: str
    tags: str
    text: str


@click.group("rules", no_args_is_help=True)
def command() -> None:
    """List, show and copy the ready-made rules.

    A pack is a folder of rules for one field; `cep run pack:NAME INPUT` runs all of it.
    """


@command.command("list")
@click.argument("pack", required=False)
def list_rules(pack: str | None) -> None:
    """List the ready-made rules, of all packs or of one PACK."""
    color = colored(sys.stdout)
    packs = [pack.removeprefix(PACK)] if pack else pack_names()
    for number, name in enumerate(packs):
        if number:
            click.echo()
        click.echo(paint(PACK + name, "1", color))
        for rule in _rules_of(name):
            tags = f"  {paint(rule.tags, '2', color)}" if rule.tags else ""
            click.echo(f"  {rule.name:<28} {rule.severity:<8} {rule.title}{tags}")


@command.command("show")
@click.argument("name")
def show(name: str) -> None:
    """Print the text of the rule called NAME, or all files of pack:NAME."""
    if name.startswith(PACK):
        for path in rule_files([name]):
            click.echo(Path(path).read_text(encoding="utf-8"), nl=False)
    else:
        rule = _find(name)
        click.echo(f"# {PACK}{rule.pack}, {rule.file.name}\n{rule.text}")


@command.command("copy")
@click.argument("name")
@click.argument("folder", default=".")
@click.option("--force", is_flag=True, help="Replace files that are there already.")
def copy(name: str, folder: str, force: bool) -> None:
    """Copy the file that holds the rule NAME, or all files of pack:NAME, to FOLDER.

    Whole files are copied, with the files that they include: a rule comes with its streams, lists
    and tests.
    """
    named = rule_files([name]) if name.startswith(PACK) else [str(_find(name).file)]
    files = _with_included(named)
    target = Path(folder)
    taken = [target / Path(file).name for file in files if (target / Path(file).name).exists()]
    if taken and not force:
        raise Problem(f"{taken[0]} is there already; --force replaces it")
    try:
        target.mkdir(parents=True, exist_ok=True)
        for file in files:
            shutil.copyfile(file, target / Path(file).name)
            say(f"copied {target / Path(file).name}")
    except OSError as error:
        raise Problem(f"cannot copy to {folder}: {error.strerror or error}") from error


def _find(name: str) -> PackRule:
    """The rule of that name in any pack; `PACK/NAME` looks in one."""
    pack, _, short = name.rpartition("/")
    rules = [rule for each in ([pack] if pack else pack_names()) for rule in _rules_of(each)]
    for rule in rules:
        if rule.name == short:
            return rule
    close = difflib.get_close_matches(short, [rule.name for rule in rules], n=1)
    hint = f"did you mean `{close[0]}`?" if close else "`cep rules list` shows all"
    raise Problem(f"no ready-made rule `{name}`; {hint}")


def _with_included(files: list[str]) -> list[str]:
    """The files and those of the same folder that they include."""
    from dsl import ast

    found = dict.fromkeys(files)
    todo = list(files)
    while todo:
        [(tree, source, _)] = read_trees([todo.pop()])
        for statement in tree.statements:
            if isinstance(statement, ast.Include):
                path = str(Path(source.name).parent / statement.path)
                if path not in found:
                    found[path] = None
                    todo.append(path)
    return list(found)


def _rules_of(pack: str) -> list[PackRule]:
    from dsl import ast

    return [
        _pack_rule(pack, Path(source.name), statement)
        for tree, source, _ in read_trees(rule_files([PACK + pack]))
        for statement in tree.statements
        if isinstance(statement, ast.Rule)
    ]


def _pack_rule(pack: str, file: Path, rule: object) -> PackRule:
    from dsl import ast

    assert isinstance(rule, ast.Rule)
    severity = [clause.level for clause in rule.clauses if isinstance(clause, ast.Severity)]
    tags = [
        tag.dotted for clause in rule.clauses if isinstance(clause, ast.Tags) for tag in clause.tags
    ]
    return PackRule(
        pack,
        file,
        rule.name.name,
        rule.title or "",
        "".join(severity),
        " ".join(tags),
        rule.span.text,
    )
