"""The checker: from trees to `CheckedRules`, or all that is wrong with them at once.

The way of the files on one page: includes are followed (`loading`), names declared
(`declarations`), streams and rules resolved (`streams`, `rules`), tests looked at (`tests`), and
what is right but looks like a slip is warned of (`lints`). The middle is walked several times,
until the types of fields that it learns from their use (`field_types`) no longer change;
diagnostics are taken from the last walk.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from dsl import ast
from dsl.checked import CheckedRules, FunctionSignature, NamedValues, Rule
from dsl.checker.chains import emit_order, needs_of
from dsl.checker.declarations import declare
from dsl.checker.field_types import FieldTypes
from dsl.checker.lints import lint
from dsl.checker.loading import Loaded, Read, load, read_file
from dsl.checker.rules import check_rule
from dsl.checker.streams import Streams
from dsl.checker.tests import check_tests
from dsl.checker.world import World, noun
from dsl.diagnostics import Diagnostic, Diagnostics, Label
from dsl.functions import FUNCTIONS
from dsl.source import Source

__all__ = ["check"]

MOST_WALKS = 5
"""Walks for learning types; rules that emit to rules that emit … learn one link a walk."""


def check(
    files: Sequence[tuple[ast.File, Source]],
    *,
    params: Mapping[str, object] | None = None,
    functions: Mapping[str, FunctionSignature] | None = None,
    type_field: str | None = None,
    read: Read = read_file,
) -> tuple[CheckedRules | None, list[Diagnostic]]:
    """Check rule files together.

    `params` override `param`s (texts are converted to the declared type), `functions` are the
    host's, `type_field` is the path of the field that names an event's type unless a stream says
    otherwise, `read` gives the text of an included file. Never raises on any tree. The first part
    of the result is None when there are errors; warnings come beside a result. O(length).

    >>> from dsl.parser import parse
    >>> source = Source("a.cep", "rule big { on payment where amount > 100 }")
    >>> checked, found = check([(parse(source)[0], source)])
    >>> checked.rules["big"].pattern.nodes[0].stream
    'payment'
    """
    found = Diagnostics()
    loaded = load(files, read, found)
    fields = FieldTypes()
    for _ in range(MOST_WALKS):
        _Walk(loaded, Diagnostics(), fields, params or {}, functions or {}, type_field).run()
        if not fields.settle():
            break
    walk = _Walk(loaded, found, fields, params or {}, functions or {}, type_field)
    checked = walk.run()
    _warn_of_conflicts(fields, found)
    if not found.has_errors:
        lint(walk.world, checked, loaded)
    return (None if found.has_errors else checked), found.sorted()


class _Walk:
    """One walk over all files."""

    def __init__(
        self,
        loaded: Sequence[Loaded],
        found: Diagnostics,
        fields: FieldTypes,
        params: Mapping[str, object],
        functions: Mapping[str, FunctionSignature],
        type_field: str | None,
    ) -> None:
        self.world = World(found, fields, functions)
        self.statements = [s for file in loaded for s in file.file.statements]
        self.params = params
        self.type_field = type_field

    def run(self) -> CheckedRules:
        world = self.world
        declare(world, self.statements, self.params)
        streams = Streams(world, self.type_field)
        streams.resolve_all()
        for table in world.tables.values():
            if table.stream is not None:
                streams.need(table.stream)
                world.used.add(f"stream {table.stream}")
        rules: dict[str, Rule] = {}
        for name, statement in world.rules.items():
            rule = check_rule(world, streams, statement)
            if rule is not None:
                rules[name] = rule
        needs = needs_of(world, rules)
        order = emit_order(world, rules, needs)
        tests = tuple(s for s in self.statements if isinstance(s, ast.Test))
        check_tests(world, streams, rules, tests)
        checked_streams = world.checked_streams
        delays = [s.delay for s in checked_streams.values() if s.delay is not None]
        idles = [s.idle for s in checked_streams.values() if s.idle is not None]
        return CheckedRules(
            streams=checked_streams,
            lists=_with_uses(world),
            tables=world.tables,
            params=world.params,
            rules=rules,
            tests=tests,
            functions={**FUNCTIONS, **world.functions},
            delay=max(delays, default=0),
            idle=min(idles, default=None),
            emits_order=order,
            needs=needs,
            statements=tuple(self.statements),
            type_field=self.type_field,
        )


def _with_uses(world: World) -> dict[str, NamedValues]:
    """The lists, each with what is done with its items."""
    return {
        name: replace(named, uses=frozenset(world.list_uses.get(name, ())))
        for name, named in world.lists.items()
    }


def _warn_of_conflicts(fields: FieldTypes, found: Diagnostics) -> None:
    """Fields that are used as two types: at least one use never holds."""
    for (stream, path), uses in fields.conflicts():
        if not stream:
            continue
        (first, here), (second, there), *_ = uses
        found.warning(
            "W001",
            there,
            f"`{'.'.join(path)}` is used as {noun(second)} here, elsewhere as {noun(first)}",
            help="for values of the other type the condition is not true; convert with `num()` or "
            "`str()`",
            labels=[Label(here, f"{noun(first)} here")],
        )
