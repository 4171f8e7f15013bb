"""What a rule uses beside its streams: the params, lists, tables and defs that it names.

In: names that stand in a rule, and the files that hold its declarations. Out: the declarations, as
they were parsed, in the order of the files; those that others need are among them. For people who
read a rule: what its constants are called and where a number comes from.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from cep.cli.reading import read_trees

if TYPE_CHECKING:
    from dsl import ast

    Declaration = ast.Param | ast.List | ast.Table | ast.Def


def used_by(names: Iterable[str], files: Sequence[str]) -> list[Declaration]:
    """The declarations in these files that the names mean, and those that these name in turn."""
    from dsl import ast

    declared = {
        statement.name.name: statement
        for tree, _, _ in read_trees(files)
        for statement in tree.statements
        if isinstance(statement, ast.Param | ast.List | ast.Table | ast.Def)
    }
    used: set[str] = set()
    todo = set(names)
    while todo:
        name = todo.pop()
        if name in declared and name not in used:
            used.add(name)
            todo |= names_in(declared[name])
    return [statement for name, statement in declared.items() if name in used]


def names_in(node: ast.Node) -> set[str]:
    """All names that stand in a part of a rule file."""
    from dsl import ast

    return {each.name for each in node.walk() if isinstance(each, ast.Ident)}


def with_included(files: Iterable[str]) -> list[str]:
    """The files and those that they include."""
    from dsl import ast

    found = dict.fromkeys(files)
    todo = list(found)
    while todo:
        [(tree, source, _)] = read_trees([todo.pop()])
        for statement in tree.statements:
            if isinstance(statement, ast.Include):
                path = str(Path(source.name).parent / statement.path)
                if path not in found:
                    found[path] = None
                    todo.append(path)
    return list(found)
