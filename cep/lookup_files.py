"""The files that rules look things up in (`list … from`, `table … from "f"`), read and read again.

In: checked rules. Out: `LookupFiles`, the items of lists and the rows of tables, with a diagnostic
at the declaration for each file that cannot be used. `refresh` reads only what has changed since;
a file that has become unusable leaves what was read before.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

from dsl.checked import CheckedRules, NamedValues, Table
from dsl.diagnostics import Diagnostic
from dsl.items import item_problem

_HELP = "the file is looked for beside the rule file that names it"


@dataclass(frozen=True, slots=True)
class LookupFiles:
    """What was read: items by list, rows (by key) by table, and when each file was changed."""

    items: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    rows: Mapping[str, Mapping[Any, Mapping[str, Any]]] = field(default_factory=dict)
    stamps: Mapping[str, tuple[int, int] | None] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Reloaded:
    """`names`: the lists and tables that have been read again. `problems`: why others could not
    be; those go on with what they held."""

    names: tuple[str, ...] = ()
    problems: tuple[Diagnostic, ...] = ()


def refresh(rules: CheckedRules, known: LookupFiles) -> tuple[LookupFiles, Reloaded]:
    """Reads the files that are new or have changed (by time of change and length).

    A file that cannot be used is told once, and again when it has changed again.
    """
    declared: list[NamedValues | Table] = [*rules.lists.values(), *rules.tables.values()]
    declared = [one for one in declared if one.file is not None]
    if not declared:
        return known, Reloaded()
    from cep.source.tables import TableError, stamp_of

    items, rows, stamps = dict(known.items), dict(known.rows), dict(known.stamps)
    names: list[str] = []
    problems: list[Diagnostic] = []
    for one in declared:
        assert one.file is not None
        stamp = stamp_of(one.file)
        if one.name in stamps and stamps[one.name] == stamp:
            continue
        stamps[one.name] = stamp
        try:
            _read(one, items, rows)
        except TableError as error:
            message = f"cannot use `{one.file}`: {error}"
            problems.append(Diagnostic("E910", one.span, message, _HELP))
        else:
            names.append(one.name)
    return LookupFiles(items, rows, stamps), Reloaded(tuple(names), tuple(problems))


def _read(one: NamedValues | Table, items: dict[str, Any], rows: dict[str, Any]) -> None:
    from cep.source.tables import read_list, read_table

    assert one.file is not None
    if isinstance(one, NamedValues):
        items[one.name] = read_list(one.file, partial(item_problem, uses=one.uses))
    else:
        rows[one.name] = read_table(one.file, one.key, one.name)


def with_items(rules: CheckedRules, files: LookupFiles) -> CheckedRules:
    """The rules with the items that their lists have in files."""
    if not files.items:
        return rules
    lists = {
        name: replace(values, items=files.items.get(name, values.items))
        for name, values in rules.lists.items()
    }
    return replace(rules, lists=lists)
