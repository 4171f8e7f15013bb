"""What commands have in common: kinds of values, and the options that rules are loaded by."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import TypeVar

import click
from click.shell_completion import CompletionItem


class DurationType(click.ParamType):  # type: ignore[type-arg] # generic since click 8.4
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


class SizeType(click.ParamType):  # type: ignore[type-arg]
    """A number of bytes: `500M`, `2G`, `1.5GiB`; a unit is a power of 1024."""

    name = "size"

    def convert(
        self, value: object, param: click.Parameter | None, ctx: click.Context | None
    ) -> int:
        if isinstance(value, int):
            return value
        found = re.fullmatch(r"([0-9]+(?:\.[0-9]+)?)([KMGT]?)(?:i?B)?", str(value), re.IGNORECASE)
        if found is None or (size := int(float(found[1]) * _UNITS[found[2].upper()])) < 1:
            raise click.BadParameter(
                f"{value!r} is no size; write it like 500M or 2G", ctx=ctx, param=param
            )
        return size


_UNITS = {"": 1, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30, "T": 1 << 40}


class RulesType(click.ParamType):  # type: ignore[type-arg]
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


class SourceDelayType(click.ParamType):  # type: ignore[type-arg] # generic since click 8.4
    """`INPUT=DURATION`, as the name of an input and microseconds."""

    name = "input=duration"

    def convert(
        self, value: object, param: click.Parameter | None, ctx: click.Context | None
    ) -> tuple[str, int]:
        if isinstance(value, tuple):
            return value
        name, equals, duration = str(value).rpartition("=")
        if not equals or not name:
            self.fail(f"{value}: write it as INPUT=DURATION, as in sshd.log=30s", param, ctx)
        return name, DURATION.convert(duration, param, ctx)


DURATION = DurationType()
SOURCE_DELAY = SourceDelayType()
SIZE = SizeType()
RULES = RulesType()

CommandT = TypeVar("CommandT", bound=Callable[..., object])


def format_option(command: CommandT) -> CommandT:
    """Adds `--format`, which every command that reads inputs takes."""
    option = click.option(
        "--format",
        metavar="FORMAT",
        help="Format of the inputs: jsonl, json, csv, tsv, logfmt, syslog, access (logs of Apache "
        "and nginx), text, parquet or regex:PATTERN. By default it is told by their names and "
        "contents.",
    )
    return option(command)


def loading_options(command: CommandT) -> CommandT:
    """Adds `--set` and `--type-field`, which every command that loads rules takes."""
    setting = click.option(
        "--set", "settings", multiple=True, metavar="NAME=VALUE", help="Set a param of the rules."
    )
    type_field = click.option(
        "--type-field",
        metavar="FIELD",
        help="The field that says the type of an event, where the rules do not say it. [type]",
    )
    return setting(type_field(command))
