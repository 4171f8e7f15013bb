"""`cep rules`: the ready-made rules, to list, to search, to read and to copy."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path
from typing import NamedTuple

import click

from cep.cli.declarations import used_by, with_included
from cep.cli.reading import read_trees
from cep.cli.rule_files import PACK, pack_names, rule_files
from cep.cli.speech import Problem, colored, paint, say
from dsl.diagnostics import did_you_mean


class PackRule(NamedTuple):
    """A ready-made rule: where it stands and what it says of itself."""

    pack: str
    file: Path
    name: str
    title: str
    severity: str
    tags: tuple[str, ...]
    description: str
    text: str
    names: frozenset[str]
    """All names in its text: streams, fields, steps, params."""

    def fits(self, tag: str | None, field: str | None, text: str | None) -> bool:
        """Whether it has the tag (or one below it), names the field, and says the text."""
        said = f"{self.name} {self.title} {self.description}".casefold()
        return (
            (tag is None or any(f"{one}.".startswith(f"{tag}.") for one in self.tags))
            and (field is None or self.names.issuperset(field.split(".")))
            and (text is None or text.casefold() in said)
        )


@click.group("rules", no_args_is_help=True)
def command() -> None:
    """List, search, show and copy the ready-made rules.

    A pack is a folder of rules for one field; `cep run pack:NAME INPUT` runs all of it.
    """


@command.command("list")
@click.argument("pack", required=False)
@click.option("--tag", metavar="TAG", help="Only those with this tag; `attack` is all of attack.*.")
@click.option("--field", metavar="FIELD", help="Only those that read this field of events.")
@click.option("--text", metavar="TEXT", help="Only those that have TEXT in title or description.")
def list_rules(pack: str | None, tag: str | None, field: str | None, text: str | None) -> None:
    """List the ready-made rules, of all packs or of one PACK."""
    packs = [pack.removeprefix(PACK)] if pack else pack_names()
    found = {name: [r for r in _rules_of(name) if r.fits(tag, field, text)] for name in packs}
    listed = [name for name in packs if found[name]]
    if not listed:
        raise Problem("no ready-made rule fits; `cep rules list` shows all")
    for number, name in enumerate(listed):
        if number:
            click.echo()
        _list(name, found[name])


def _list(pack: str, rules: list[PackRule]) -> None:
    color = colored(sys.stdout)
    click.echo(paint(PACK + pack, "1", color))
    for rule in rules:
        tags = f"  {paint(' '.join(rule.tags), '2', color)}" if rule.tags else ""
        click.echo(f"  {rule.name:<28} {rule.severity:<8} {rule.title}{tags}")


@command.command("show")
@click.argument("name")
def show(name: str) -> None:
    """Print the rule called NAME with the params, lists, tables and defs that it uses, or all files
    of pack:NAME."""
    if name.startswith(PACK):
        for path in rule_files([name]):
            click.echo(Path(path).read_text(encoding="utf-8"), nl=False)
    else:
        rule = _find(name)
        used = used_by(rule.names, with_included([str(rule.file)]))
        parts = [*(statement.span.text for statement in used), rule.text]
        click.echo(f"# {PACK}{rule.pack}, {rule.file.name}\n" + "\n\n".join(parts))


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
    files = with_included(named)
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
    guess = did_you_mean(short, [rule.name for rule in rules])
    hint = f"did you mean `{guess}`?" if guess else "`cep rules list` shows all"
    raise Problem(f"no ready-made rule `{name}`; {hint}")


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
    described = [clause.text for clause in rule.clauses if isinstance(clause, ast.Description)]
    tags = (clause.tags for clause in rule.clauses if isinstance(clause, ast.Tags))
    return PackRule(
        pack,
        file,
        rule.name.name,
        rule.title or "",
        "".join(severity),
        tuple(tag.dotted for given in tags for tag in given),
        "".join(described),
        rule.span.text,
        frozenset(node.name for node in rule.walk() if isinstance(node, ast.Ident)),
    )
