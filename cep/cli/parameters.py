"""Kinds of option values that click does not know."""

from __future__ import annotations

import click


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
        self.fail(f"{value!r} is no duration; write it like 30s, 5m or 1h30m", param, ctx)


DURATION = DurationType()
