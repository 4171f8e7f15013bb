"""`cep functions`: the functions of the rule language with signatures and examples."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

import click

from cep.cli.speech import Problem, colored, paint, say
from dsl.diagnostics import did_you_mean

if TYPE_CHECKING:
    from dsl.checked import FunctionSignature

GROUPS = {
    "text": "Text",
    "number": "Numbers",
    "time": "Time",
    "conversion": "Conversion",
    "network": "Network and places",
    "choice": "Choice and arrays",
    "aggregate": "Over the events of a step or of a window",
    "loop": "In the condition of a loop, over the events that it has taken",
}
"""Headings by the group of a function; a group that is not here is its own heading."""


@click.command("functions")
@click.argument("names", nargs=-1, metavar="[NAME]...")
def command(names: tuple[str, ...]) -> None:
    """List the functions of the rule language and of installed packages, or explain NAME."""
    signatures = _signatures()
    color = colored(sys.stdout)
    if not names:
        click.echo("\n".join(_overview(signatures, color)), color=color)
        return
    for name in names:
        click.echo("\n".join(_page(_called(name, signatures), color)), color=color)


def _signatures() -> list[FunctionSignature]:
    from cep.extend import installed_functions
    from dsl.functions import AGGREGATES, FUNCTIONS, LOOP_FUNCTIONS

    language = [*FUNCTIONS.values(), *AGGREGATES.values(), *LOOP_FUNCTIONS.values()]
    installed, problems = installed_functions()
    for problem in problems:
        say(problem)
    return [*language, *installed.values()]


def _overview(signatures: Iterable[FunctionSignature], color: bool) -> Iterator[str]:
    """One line for each function, under headings."""
    group = None
    for function in signatures:
        if function.group != group:
            if group is not None:
                yield ""
            group = function.group
            yield paint(GROUPS.get(group, group), "1", color)
        yield f"  {signature(function):<44} {_first_sentence(function.doc)}"


def _first_sentence(doc: str) -> str:
    return doc.split(". ")[0].removesuffix(".")


def signature(function: FunctionSignature) -> str:
    """`substr(string, int, [int]) -> string`"""
    required = len(function.parameters) - function.optional
    shown = [
        str(kind) if number < required else f"[{kind}]"
        for number, kind in enumerate(function.parameters)
    ]
    if function.variadic:
        shown.append("…")
    return f"{function.name}({', '.join(shown)}) -> {function.result}"


def _called(name: str, signatures: Iterable[FunctionSignature]) -> list[FunctionSignature]:
    """All functions of that name: some are ordinary ones and aggregates too."""
    known = list(signatures)
    found = [function for function in known if function.name == name]
    if found:
        return found
    guess = did_you_mean(name, [function.name for function in known])
    hint = f"; did you mean `{guess}`?" if guess else "; `cep functions` lists them"
    raise Problem(f"no function `{name}`{hint}")


def _page(functions: Iterable[FunctionSignature], color: bool) -> Iterator[str]:
    for function in functions:
        yield paint(signature(function), "1", color)
        yield f"  {GROUPS.get(function.group, function.group)}"
        yield f"  {function.doc}"
        if function.example:
            yield f"  Example: {function.example}"
        yield ""
