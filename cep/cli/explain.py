"""`cep explain`: a rule in words, its stages on the way to a program, and its diagram."""

from __future__ import annotations

import difflib
from pathlib import Path
from typing import TYPE_CHECKING

import click

from cep.cli.parameters import RULES
from cep.cli.reading import load_rules, parse_settings
from cep.cli.rule_files import is_rules, rule_files
from cep.cli.speech import Problem, say

if TYPE_CHECKING:
    from cep.ruleset import Ruleset
    from dsl.checked import Rule

STAGES = ("ast", "plan", "code")


@click.command("explain")
@click.argument("arguments", nargs=-1, required=True, type=RULES, metavar="[RULE]... FILE...")
@click.option(
    "--stage",
    type=click.Choice(STAGES),
    help="ast: the tree of its text; plan: its automaton; code: the Python that runs it.",
)
@click.option("--diagram", is_flag=True, help="Its steps as a diagram, in Mermaid text.")
@click.option(
    "--output",
    "-o",
    metavar="FILE",
    help="With --diagram: write it there; a name in .svg is drawn by Graphviz.",
)
@click.option("--set", "settings", multiple=True, metavar="NAME=VALUE", help="Set a param.")
def command(
    arguments: tuple[str, ...],
    stage: str | None,
    diagram: bool,
    output: str | None,
    settings: tuple[str, ...],
) -> None:
    """Show what rules mean and how they are run; all rules of the files if none is named.

    FILE is a rule file, a folder or pack:NAME; everything else is the name of a rule.
    """
    if stage and diagram:
        raise click.UsageError("--stage and --diagram are two different things: choose one")
    if output and not diagram:
        raise click.UsageError("--output goes with --diagram")
    files = [argument for argument in arguments if is_rules(argument)]
    names = [argument for argument in arguments if not is_rules(argument)]
    if not files:
        raise click.UsageError(f"in which file is {names[0]}? Add a rule file or pack:NAME")
    ruleset = load_rules(rule_files(files), parse_settings(settings), warnings=False)
    if diagram:
        _diagram(chosen(ruleset, names), output)
    else:
        click.echo(_text(select(ruleset, names), stage))


def select(ruleset: Ruleset, names: list[str]) -> Ruleset:
    """Only the rules of these names (all for none); `Problem` for one that does not exist."""
    for name in names:
        if name not in ruleset.rules:
            close = difflib.get_close_matches(name, ruleset.rules, n=1)
            hint = f"did you mean `{close[0]}`?" if close else f"there are: {_listed(ruleset)}"
            raise Problem(f"no rule `{name}`; {hint}")
    return ruleset.select(names) if names else ruleset


def _listed(ruleset: Ruleset) -> str:
    names = list(ruleset.rules)
    return ", ".join(names[:20]) + (" …" if len(names) > 20 else "")


def chosen(ruleset: Ruleset, names: list[str]) -> list[Rule]:
    """The rules of these names, in the order in which they stand in the files."""
    return list(select(ruleset, names).rules.values())


def _text(ruleset: Ruleset, stage: str | None) -> str:
    """The rules in words, or at a stage."""
    if stage == "plan":
        return ruleset.explain_plan()
    if stage == "code":
        return ruleset.explain_code()
    rules = ruleset.rules.values()
    if stage == "ast":
        from cep.explain.tree import print_tree

        return "\n\n".join(print_tree(rule.ast) for rule in rules if rule.ast is not None)
    from cep.explain.words import describe

    return "\n\n".join(describe(rule) for rule in rules)


def _diagram(rules: list[Rule], output: str | None) -> None:
    """Mermaid text to standard output or a file, or one SVG."""
    from cep.explain.diagram import NoGraphviz, to_mermaid, to_svg
    from cep.explain.diagram import diagram as draw

    if output is None:
        click.echo("\n".join(to_mermaid(draw(rule)) for rule in rules), nl=False)
        return
    if output.endswith(".svg"):
        if len(rules) != 1:
            raise Problem("an SVG shows one rule: name it")
        try:
            data = to_svg(draw(rules[0]))
        except NoGraphviz as error:
            raise Problem(f"{error}; without --output the diagram is printed as Mermaid") from error
    else:
        data = "\n".join(to_mermaid(draw(rule)) for rule in rules).encode()
    try:
        Path(output).write_bytes(data)
    except OSError as error:
        raise Problem(f"cannot write {output}: {error.strerror or error}") from error
    say(f"wrote {output}")
