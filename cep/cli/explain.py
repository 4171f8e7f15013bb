"""`cep explain`: a rule in words, its stages on the way to a program, and its diagram."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from cep.cli.parameters import RULES, loading_options
from cep.cli.reading import Loading, load_rules, parse_settings
from cep.cli.rule_files import is_rules, rule_files
from cep.cli.speech import Problem, say

if TYPE_CHECKING:
    from cep.cli.declarations import Declaration
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
@loading_options
def command(
    arguments: tuple[str, ...],
    stage: str | None,
    diagram: bool,
    output: str | None,
    settings: tuple[str, ...],
    type_field: str | None,
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
    loading = Loading(settings=settings, type_field=type_field)
    ruleset = load_rules(rule_files(files), loading, names, warnings=False)
    if diagram:
        _diagram(list(ruleset.rules.values()), output)
    else:
        click.echo(_at_stage(ruleset, stage) if stage else _in_words(ruleset, files, settings))


def _in_words(ruleset: Ruleset, files: Sequence[str], settings: Sequence[str]) -> str:
    """The rules in words, each with the declarations that it uses."""
    from cep.cli.declarations import names_in, used_by, with_included
    from cep.explain.words import describe

    declaring = with_included(rule_files(files))
    texts = []
    for rule in ruleset.rules.values():
        names = names_in(rule.ast) if rule.ast is not None else set()
        used = used_by(names, declaring)
        lines = [_declared(declaration, ruleset, settings) for declaration in used]
        texts.append("\n".join([describe(rule), *(["  uses:", *lines] if lines else [])]))
    return "\n\n".join(texts)


def _declared(declaration: Declaration, ruleset: Ruleset, settings: Sequence[str]) -> str:
    """A declaration as it stands in its file, and what a param of it is set to."""
    from cep.explain.expression import shown

    text = textwrap.indent(textwrap.dedent(declaration.span.text), "    ")
    name = declaration.name.name
    is_set = name in ruleset.checked.params and name in parse_settings(settings)
    return f"{text}, set to {shown(ruleset.checked.params[name])}" if is_set else text


def _at_stage(ruleset: Ruleset, stage: str) -> str:
    """The rules at one of the stages on the way to a program."""
    if stage == "plan":
        from cep.explain.plan import print_plan

        return print_plan(ruleset.compiled)
    if stage == "code":
        from cep.explain.code import print_code

        return print_code(ruleset.compiled)
    from cep.explain.tree import print_tree

    rules = ruleset.rules.values()
    return "\n\n".join(print_tree(rule.ast) for rule in rules if rule.ast is not None)


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
