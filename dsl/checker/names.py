"""Names and what follows them: `user`, `a.ip`, `a[0].ip`, `owners[host].team`, `this.f`.

In comes a chain of names, dots and brackets; out comes the field, bound step, constant or row that
it means at this place (`Scope`), or a diagnostic that says what it could have been.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from dsl import ast
from dsl.checked import (
    ArrayOf,
    Const,
    EventTime,
    Field,
    GetField,
    GetIndex,
    KeyValue,
    Lookup,
    NamedList,
    StepField,
    StepTime,
    Value,
    WindowValue,
)
from dsl.checker.scope import Scope, StepInfo
from dsl.checker.world import BROKEN, listing, noun
from dsl.diagnostics import Label, did_you_mean
from dsl.items import PROBLEMS
from dsl.source import Span
from dsl.types import Type

if TYPE_CHECKING:
    from dsl.checker.expressions import Resolver

Access = ast.Ident | ast.Expr
"""One link of a chain: a name after a dot, or an index in brackets."""

_SCALARS = frozenset(
    {Type.BOOL, Type.INT, Type.NUMBER, Type.STRING, Type.TIME, Type.DURATION, Type.REGEX}
)


def resolve_chain(resolver: Resolver, expr: ast.Expr) -> Value:
    """The value of a name, an attribute or an index."""
    base, links = flatten(expr)
    if len(links) > resolver.MAX_DEPTH:
        return resolver.too_deep(expr.span)
    if isinstance(base, ast.Name):
        return _named(resolver, base.ident, links, expr.span)
    return _follow(resolver, resolver.value(base), links, expr.span)


def flatten(expr: ast.Expr) -> tuple[ast.Expr, list[Access]]:
    """The innermost expression of a chain, and the links after it from left to right."""
    links: list[Access] = []
    while isinstance(expr, ast.Attribute | ast.Index):
        links.append(expr.name if isinstance(expr, ast.Attribute) else expr.index)
        expr = expr.value
    links.reverse()
    return expr, links


def step_of(resolver: Resolver, expr: ast.Expr) -> StepInfo | None:
    """The bound step that a bare name means, if it means one."""
    scope = resolver.scope
    if not isinstance(expr, ast.Name) or scope.hygienic or expr.ident.name in scope.locals:
        return None
    return scope.steps.get(expr.ident.name)


def list_side(resolver: Resolver, expr: ast.Expr) -> Value:
    """A place where a list may stand (`x in …`): a named list or any other value."""
    if isinstance(expr, ast.Name) and not expr.ident.quoted:
        name = expr.ident.name
        world = resolver.world
        if name in world.lists and name not in resolver.scope.locals:
            world.used.add(name)
            return NamedList(name, type=Type.ARRAY, span=expr.span)
        if name in world.tables and name not in resolver.scope.locals:
            world.used.add(name)
            return resolver.wrong(
                "E042",
                expr.span,
                f"`{name}` is a table, not a list",
                help=f"ask for a row with `{name}[x].field is not null`",
            )
        guess = did_you_mean(name, world.lists) if name not in world.params else None
        if guess is not None and name not in resolver.scope.locals:
            return resolver.wrong(
                "E030", expr.span, f"no list is called `{name}`", help=f"did you mean `{guess}`?"
            )
    return resolver.value(expr)


def check_items(resolver: Resolver, named: NamedList, use: str, code: str) -> None:
    """Report items of a list that are not what this use of them needs; those of a file are looked
    at when it is read."""
    world = resolver.world
    world.list_uses.setdefault(named.name, set()).add(use)
    for item in world.lists[named.name].items:
        problem = PROBLEMS[use](item)
        if problem is not None:
            resolver.wrong(code, named.span, f"in list `{named.name}`: {problem}")


def _named(resolver: Resolver, ident: ast.Ident, links: list[Access], span: Span) -> Value:
    scope = resolver.scope
    name = ident.name
    if name in scope.locals and not ident.quoted:
        return _follow(resolver, scope.locals[name], links, span)
    if name == "this" and not ident.quoted:
        return _this(resolver, ident, links, span)
    if not scope.hygienic:
        of_rule = _named_by_rule(resolver, ident, links, span)
        if of_rule is not None:
            return of_rule
    if not ident.quoted:
        of_file = _named_by_file(resolver, ident, links, span)
        if of_file is not None:
            return of_file
    if not ident.quoted and not links and name in _FOREIGN_CONSTANTS:
        return _foreign_constant(resolver, name, span)
    if scope.event is not None or scope.on_step is not None:
        return _field(resolver, [ident, *links], span)
    return _unknown(resolver, ident, links, span)


_FOREIGN_CONSTANTS = {
    **dict.fromkeys(("True", "TRUE"), "true"),
    **dict.fromkeys(("False", "FALSE"), "false"),
    **dict.fromkeys(("None", "NULL", "Null", "NONE"), "null"),
}
"""Constants as other languages write them. As names of fields they stand between backticks."""


def _foreign_constant(resolver: Resolver, name: str, span: Span) -> Value:
    own = _FOREIGN_CONSTANTS[name]
    asked = "; to compare with it write `is null`" if own == "null" else ""
    return resolver.wrong(
        "E030",
        span,
        f"`{name}` is no constant here",
        help=f"write `{own}`{asked}; a field of that name stands between backticks",
    )


def _named_by_rule(
    resolver: Resolver, ident: ast.Ident, links: list[Access], span: Span
) -> Value | None:
    """Steps, alert fields, parts of the key and aggregates."""
    scope = resolver.scope
    name = ident.name
    if name in scope.steps:
        return _step(resolver, scope.steps[name], ident, links, span)
    if name in scope.all_steps:
        return _too_early(resolver, ident, links, span)
    if name in scope.fields:
        return _follow(resolver, scope.fields[name], links, span)
    if scope.event is not None:
        return None
    path = (name, *_leading_names(links))
    found = scope.keys.find(path)
    if found is not None:
        index, used = found
        part = scope.keys.parts[index]
        value = KeyValue(index, part.name, type=part.type, span=span)
        return _follow(resolver, value, links[used - 1 :], span)
    if name in scope.windows:
        return _follow(
            resolver, WindowValue(name, type=scope.windows[name], span=span), links, span
        )
    return None


def _named_by_file(
    resolver: Resolver, ident: ast.Ident, links: list[Access], span: Span
) -> Value | None:
    """Params, tables and the event's time; lists and defs in the wrong place."""
    world, scope = resolver.world, resolver.scope
    name = ident.name
    if name in world.params:
        world.used.add(name)
        return _follow(resolver, respan(world.params[name], ident.span), links, span)
    if name in world.tables:
        world.used.add(name)
        return _row(resolver, ident, links, span)
    if name in world.lists:
        world.used.add(name)
        return resolver.wrong(
            "E042", span, f"`{name}` is a list", help=f"test for it with `x in {name}`"
        )
    if name in world.defs:
        world.used.add(name)
        parameters = ", ".join(p.name for p in world.defs[name].params)
        return resolver.wrong(
            "E042", span, f"`{name}` is a def and must be called", help=f"{name}({parameters})"
        )
    if name == "time" and not links:
        if scope.event is not None:
            return EventTime(type=Type.TIME, span=span)
        if scope.on_step is not None:
            return StepTime(scope.on_step, type=Type.TIME, span=span)
    return None


def respan(value: Const | ArrayOf, span: Span) -> Value:
    """The constant, as if it stood at `span`. One that could not be made out stays `BROKEN`."""
    if value is BROKEN:
        return value
    if isinstance(value, Const):
        return Const(value.value, type=value.type, span=span)
    return ArrayOf(value.items, type=value.type, span=span)


def _leading_names(links: list[Access]) -> list[str]:
    names: list[str] = []
    for link in links:
        if not isinstance(link, ast.Ident):
            break
        names.append(link.name)
    return names


# ------------------------------------------------------------------------------ fields and steps


def _field(resolver: Resolver, links: list[Access], span: Span) -> Value:
    """A field of the event being tested (or of the one event of an `on` rule)."""
    scope = resolver.scope
    path = tuple(_leading_names(links))
    rest = links[len(path) :]
    end = links[len(path) - 1].span
    here = links[0].span.to(end)
    if scope.event is not None:
        type_ = resolver.world.field_type(scope.event, path, here)
        return _follow(resolver, Field(path, type=type_, span=here), rest, span)
    assert scope.on_step is not None
    stream = scope.steps[scope.on_step].stream
    type_ = resolver.world.field_type(stream, path, here)
    return _follow(resolver, StepField(scope.on_step, path, type=type_, span=here), rest, span)


def _this(resolver: Resolver, ident: ast.Ident, links: list[Access], span: Span) -> Value:
    scope = resolver.scope
    if scope.event is None and scope.on_step is None:
        return resolver.wrong(
            "E030",
            ident.span,
            f"`this` means nothing in {scope.place}: no event is being tested there",
            help=_suggest_step(scope, _leading_names(links)),
        )
    if not links or not isinstance(links[0], ast.Ident):
        return resolver.wrong(
            "E038", span, "`this` is the event being tested, not a value", help="write `this.field`"
        )
    first = links[0]
    if first.name == "time" and not first.quoted and len(links) == 1:
        if scope.event is None and scope.on_step is not None:
            return StepTime(scope.on_step, type=Type.TIME, span=span)
        return EventTime(type=Type.TIME, span=span)
    return _field(resolver, links, span)


def _step(
    resolver: Resolver, step: StepInfo, ident: ast.Ident, links: list[Access], span: Span
) -> Value:
    """`a.f`, `a.time`, `a[0].f`."""
    index, rest = -1, links
    if links and not isinstance(links[0], ast.Ident):
        number = _constant_index(resolver, links[0])
        if number is None:
            return BROKEN
        index, rest = number, links[1:]
    names = _leading_names(rest)
    if not names:
        return resolver.wrong(
            "E038",
            span,
            f"`{step.name}` is a step, not a value",
            help=f"name one of its fields: `{step.name}.field`",
        )
    first = rest[0]
    if names == ["time"] and isinstance(first, ast.Ident) and not first.quoted:
        value: Value = StepTime(step.name, index, type=Type.TIME, span=span)
    else:
        here = ident.span.to(rest[len(names) - 1].span)
        type_ = resolver.world.field_type(step.stream, tuple(names), here)
        value = StepField(step.name, tuple(names), index, type=type_, span=here)
    return _follow(resolver, value, rest[len(names) :], span)


def _constant_index(resolver: Resolver, expr: ast.Expr) -> int | None:
    value = resolver.value(expr)
    if value is BROKEN:
        return None
    if isinstance(value, Const) and type(value.value) is int and value.value >= -1:
        return value.value
    resolver.wrong(
        "E040",
        expr.span,
        "which event of a step must be a whole number",
        help="`a[0].f` is the first, `a[1].f` the second, `a.f` the last",
    )
    return None


def _too_early(resolver: Resolver, ident: ast.Ident, links: list[Access], span: Span) -> Value:
    """A step that is not bound when this is evaluated."""
    scope = resolver.scope
    name = ident.name
    step = scope.all_steps[name]
    rest = ".".join(_leading_names(links)) or "field"
    if scope.own is not None and scope.own.name == name:
        prev = f", or `prev({rest})` for the event before" if scope.own.loop else ""
        return resolver.wrong(
            "E031",
            span,
            f"`{name}` is the step being tested here",
            help=f"write `this.{rest}` for the event being tested{prev}",
        )
    return resolver.wrong(
        "E031",
        span,
        f"`{name}` is not bound yet in {scope.place}",
        help=f"steps are bound in order: move the condition to `{name}`, or write "
        f"`this.{'.'.join([name, *_leading_names(links)])}` for a field of that name",
        labels=(Label(step.span, "bound here"),),
    )


# ------------------------------------------------------------------------------ rows and links


def _row(resolver: Resolver, ident: ast.Ident, links: list[Access], span: Span) -> Value:
    """`table[key].f`"""
    table = resolver.world.tables[ident.name]
    names = _leading_names(links[1:])
    if not links or isinstance(links[0], ast.Ident) or not names:
        return resolver.wrong(
            "E042",
            span,
            f"`{table.name}` is a table",
            help=f"look a row up and name a field of it: `{table.name}[key].field`",
        )
    key = resolver.value(links[0])
    type_ = Type.ANY
    if table.stream is not None:
        type_ = resolver.world.field_type(table.stream, tuple(names), span)
    value = Lookup(table.name, key, tuple(names), type=type_, span=span)
    return _follow(resolver, value, links[1 + len(names) :], span)


def _follow(resolver: Resolver, value: Value, links: list[Access], span: Span) -> Value:
    """`value` with dots and brackets after it."""
    for link in links:
        if value is BROKEN:
            return BROKEN
        if value.type in _SCALARS:
            what = "fields" if isinstance(link, ast.Ident) else "elements"
            return resolver.wrong(
                "E035", link.span, f"{noun(value.type)} has no {what}: `{value.span.text}`"
            )
        value = _one_link(resolver, value, link, span)
    return value


def _one_link(resolver: Resolver, value: Value, link: Access, span: Span) -> Value:
    if not isinstance(link, ast.Ident):
        return GetIndex(value, resolver.value(link), span=span)
    event = resolver.scope.event
    if isinstance(value, Field) and event is not None:
        path = (*value.path, link.name)
        return Field(path, type=resolver.world.field_type(event, path, span), span=span)
    if isinstance(value, StepField) and value.step in resolver.scope.steps:
        path = (*value.path, link.name)
        stream = resolver.scope.steps[value.step].stream
        type_ = resolver.world.field_type(stream, path, span)
        return StepField(value.step, path, value.index, type=type_, span=span)
    return GetField(value, link.name, span=span)


# ------------------------------------------------------------------------------ unknown names


def _unknown(resolver: Resolver, ident: ast.Ident, links: list[Access], span: Span) -> Value:
    """A name that means nothing where no event is being tested."""
    scope = resolver.scope
    name = ident.name
    if scope.constant:
        guess = did_you_mean(name, resolver.world.params)
        return resolver.wrong(
            "E046",
            ident.span,
            f"`{name}` is not a constant",
            help=f"did you mean the param `{guess}`?"
            if guess
            else "only literals and params may stand here",
        )
    where = f"`{name}` means nothing in {scope.place}"
    known = [*scope.steps, *scope.keys.names(), *scope.windows, *scope.fields]
    guess = did_you_mean(name, known)
    if guess is not None:
        return resolver.wrong("E030", ident.span, where, help=f"did you mean `{guess}`?")
    if scope.windows:
        return resolver.wrong(
            "E030",
            ident.span,
            where,
            help=f"it may name {listing([*scope.keys.names(), *scope.windows])}; add an aggregate "
            f"of the field: `{name} = last({name})`",
        )
    return resolver.wrong(
        "E030",
        ident.span,
        f"{where}: no event is being tested there",
        help=_suggest_step(scope, [name, *_leading_names(links)]),
    )


def _suggest_step(scope: Scope, names: list[str]) -> str | None:
    if not scope.steps:
        return None
    steps = list(scope.steps)
    rest = ".".join(names) or "field"
    return f"name the step that has it: `{steps[-1]}.{rest}`"
