"""Kinds of option values that click does not know."""

from __future__ import annotations

import click
from click.shell_completion import CompletionItem


class DurationType(click.ParamType):
    """A duration as it is written in rules (`1h30m`), as microseconds."""

    name = "duration"

    def convert(
        self, value: object, param: click.Parameter | None, ctx: click.Context | None
    ) -> int:
        if isinstance(value, int):
            return value
        from dsl import ast
        from dsl.parser import parse_expression

        tree, found = parse_expression(str(value))
        if isinstance(tree, ast.DurationLiteral) and not found:
            return tree.value.micros
        if str(value) == "0":
            return 0
        raise click.BadParameter(
            f"{value!r} is no duration; write it like 30s, 5m or 1h30m", ctx=ctx, param=param
        )


class RulesType(click.ParamType):
    """A file, a folder or `pack:NAME`: any text; the type is there for completion in a shell."""

    name = "text"

    def shell_complete(
        self, ctx: click.Context, param: click.Parameter, incomplete: str
    ) -> list[CompletionItem]:
        from cep.cli.rule_files import PACK, pack_names

        packs = [PACK + name for name in pack_names()]
        fitting = [
            CompletionItem(pack) for pack in packs if incomplete and pack.startswith(incomplete)
        ]
        return fitting or [CompletionItem(incomplete, type="file")]


DURATION = DurationType()
RULES = RulesType()
