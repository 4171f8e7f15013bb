"""The canonical text of one rule with everything it stands on, enough to compile it again later.

In: checked rules and the name of one. Out: a rule file of its own: the streams, lists, tables,
params and `def`s that the rule can reach, and the rules that emit what it reads. Lists have their
items in it, also those that came from files, and params the values that they had. Files of tables
are named by their absolute paths. The first line says which field names the type of an event, where
the rules did not.

Which declarations belong to it is told by names alone: one too many does no harm.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from dataclasses import replace

from dsl import ast
from dsl.checked import ArrayOf, CheckedRules, Const, Value
from dsl.text import duration_text, to_text
from dsl.types import Type

_TYPE_FIELD = "# type field: "
Declaration = ast.Stream | ast.List | ast.Table | ast.Param | ast.Def | ast.Rule


def canonical_text(rules: CheckedRules, name: str) -> str:
    """The text of rule `name` with what it needs; `type_field_of` tells the rest. O(length).

    >>> from dsl.checker import check
    >>> from dsl.parser import parse
    >>> from dsl.source import Source
    >>> source = Source("a.cep", "param top = 5 rule big { on x where y > top } rule b { on z }")
    >>> print(canonical_text(check([(parse(source)[0], source)])[0], "big"), end="")
    param top = 5
    rule big { on x where y > top }
    """
    declared = [s for s in rules.statements if isinstance(s, Declaration)]
    wanted = _reachable(declared, name)
    lines = [to_text(_settled(one, rules)) for one in declared if id(one) in wanted]
    if rules.type_field is not None:
        lines.insert(0, _TYPE_FIELD + rules.type_field)
    return "\n".join(lines) + "\n"


def type_field_of(text: str) -> str | None:
    """The field that names the type of an event, of a text that `canonical_text` made."""
    first = text.partition("\n")[0]
    return first.removeprefix(_TYPE_FIELD) if first.startswith(_TYPE_FIELD) else None


def _reachable(declared: Sequence[Declaration], name: str) -> set[int]:
    """The declarations (by identity) that rule `name` can reach."""
    by_name: dict[str, list[Declaration]] = {}
    for one in declared:
        for known in _known_as(one):
            by_name.setdefault(known, []).append(one)
    rule = next(one for one in declared if isinstance(one, ast.Rule) and one.name.name == name)
    found, todo = {id(rule)}, [rule, *by_name.get("event", ())]
    found |= {id(one) for one in todo}
    while todo:
        for named in _names_in(todo.pop()):
            for other in by_name.get(named, ()):
                if id(other) not in found:
                    found.add(id(other))
                    todo.append(other)
    return found


def _known_as(declaration: Declaration) -> Iterable[str]:
    """The names by which others may ask for a declaration: a rule is found by what it emits."""
    if not isinstance(declaration, ast.Rule):
        return [declaration.name.name]
    return {part.stream.name for part in declaration.walk() if isinstance(part, ast.Emit)}


def _names_in(declaration: Declaration) -> set[str]:
    return {part.name for part in declaration.walk() if isinstance(part, ast.Ident)}


def _settled(declaration: Declaration, rules: CheckedRules) -> ast.Node:
    """The declaration with the values that it had when it was checked."""
    match declaration:
        case ast.Param():
            return replace(declaration, value=_expression(rules.params[declaration.name.name]))
        case ast.List():
            items = tuple(map(ast.Literal, rules.lists[declaration.name.name].items))
            return replace(declaration, items=ast.Array(items), file=None)
        case ast.Table() if declaration.file is not None:
            file = rules.tables[declaration.name.name].file
            return replace(declaration, file=os.path.abspath(file or ""))
    return declaration


def _expression(value: Value) -> ast.Expr:
    """A constant as it is written."""
    if isinstance(value, ArrayOf):
        return ast.Array(tuple(map(_expression, value.items)))
    assert isinstance(value, Const)
    if value.type is Type.DURATION and isinstance(value.value, int):
        length = ast.Duration(abs(value.value), duration_text(abs(value.value)))
        written = ast.DurationLiteral(length)
        return written if value.value >= 0 else ast.Negative(written)
    return ast.Literal(value.value)
