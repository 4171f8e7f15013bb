"""Names of the files: lists, tables, params and defs, each declared once.

In come the statements of all files, out come the entries of the `World` that rules name. Streams
have their own module.
"""

from __future__ import annotations

import json
import os.path
import re
from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from datetime import timedelta
from typing import TypeVar

from dsl import ast
from dsl.checked import ArrayOf, Const, Local, NamedValues, Table, Value
from dsl.checker.expressions import Resolver, literal_type
from dsl.checker.scope import Scope
from dsl.checker.world import BROKEN, World, noun
from dsl.diagnostics import Label, did_you_mean
from dsl.functions import AGGREGATES, LOOP_FUNCTIONS
from dsl.parser import parse_expression
from dsl.source import Source, Span
from dsl.types import Type

Named = ast.List | ast.Table | ast.Param | ast.Def


def declare(
    world: World, statements: Sequence[ast.Statement], params: Mapping[str, object]
) -> None:
    """Enter all lists, tables, params, defs, streams and rules; report names declared twice."""
    expressions = _once(world, [s for s in statements if isinstance(s, Named)], "name")
    for stream in _once(world, [s for s in statements if isinstance(s, ast.Stream)], "stream"):
        world.streams[stream.name.name] = stream
    for rule in _once(world, [s for s in statements if isinstance(s, ast.Rule)], "rule"):
        world.rules[rule.name.name] = rule
    _check_override_names(world, expressions, params)
    _declare_params(world, [s for s in expressions if isinstance(s, ast.Param)], params)
    for statement in expressions:
        if isinstance(statement, ast.List):
            world.lists[statement.name.name] = _list(world, statement)
        elif isinstance(statement, ast.Table):
            world.tables[statement.name.name] = _table(statement)
        elif isinstance(statement, ast.Def):
            _declare_def(world, statement)
    _check_defs(world)


_Declared = TypeVar("_Declared", ast.List | ast.Table | ast.Param | ast.Def, ast.Stream, ast.Rule)


def _once(world: World, statements: Iterable[_Declared], kind: str) -> list[_Declared]:
    """The first statement of each name; the others are reported."""
    first: dict[str, _Declared] = {}
    for statement in statements:
        known = first.setdefault(statement.name.name, statement)
        if known is not statement:
            world.found.error(
                "E043",
                statement.name.span,
                f"{kind} `{statement.name.name}` is declared twice",
                labels=[Label(known.name.span, "first here")],
                help="give one of them another name",
            )
    return list(first.values())


# ---------------------------------------------------------------------------------- constants


def constant(world: World, expr: ast.Expr, place: str) -> Const | ArrayOf | None:
    """The value of an expression that may hold only literals and params; None when reported."""
    if isinstance(expr, ast.Literal):  # as are the items of most lists, of which there may be many
        return Const(expr.value, type=literal_type(expr.value), span=expr.span)
    resolver = Resolver(world, Scope(place=place, constant=True))
    value: Value = BROKEN

    def resolve() -> None:
        nonlocal value
        value = resolver.value(expr)

    if not world.succeeds(resolve) or value is BROKEN:
        return None
    if isinstance(value, Const):
        return value
    if isinstance(value, ArrayOf) and all(isinstance(item, Const) for item in value.items):
        return value
    world.found.error(
        "E046",
        expr.span,
        f"{place} must be a constant",
        help="only literals, params and arithmetic with them may stand here",
    )
    return None


def _list(world: World, statement: ast.List) -> NamedValues:
    name = statement.name.name
    if statement.file is not None:
        return NamedValues(name, (), _beside(statement.span, statement.file), span=statement.span)
    items: list[bool | int | float | str | None] = []
    for item in statement.items.items if statement.items else ():
        value = constant(world, item, "an item of a list")
        if isinstance(value, Const):
            items.append(value.value)
        elif value is not None:
            world.found.error("E046", item.span, "an item of a list cannot be a list itself")
    return NamedValues(name, tuple(items), span=statement.span)


def _table(statement: ast.Table) -> Table:
    return Table(
        statement.name.name,
        statement.key.names,
        file=None if statement.file is None else _beside(statement.span, statement.file),
        stream=None if statement.stream is None else statement.stream.name,
        ttl=None if statement.ttl is None else statement.ttl.micros,
        span=statement.span,
    )


def _beside(span: Span, path: str) -> str:
    """A path that is relative to the rule file."""
    return os.path.normpath(os.path.join(os.path.dirname(span.source.name), path))


# ---------------------------------------------------------------------------------- params


def _check_override_names(
    world: World, statements: Iterable[Named], params: Mapping[str, object]
) -> None:
    names = {s.name.name for s in statements if isinstance(s, ast.Param)}
    for name in params:
        if name not in names:
            guess = did_you_mean(str(name), names)
            world.found.error(
                "E047",
                _setting(str(name), params[name]),
                f"no param is called `{name}`",
                help=f"did you mean `{guess}`?" if guess else "declare it: `param NAME = VALUE`",
            )


def _setting(name: str, value: object) -> Span:
    """A place for what was set from outside, as people would write it."""
    text = f"{name}={value}"
    return Span(Source("--set", text), 0, len(name))


def _declare_params(
    world: World, statements: list[ast.Param], overrides: Mapping[str, object]
) -> None:
    """Params in the order in which they need each other."""
    waiting = {statement.name.name: statement for statement in statements}
    needs = {name: _names_in(one.value) & waiting.keys() for name, one in waiting.items()}
    needed_by: dict[str, list[str]] = {name: [] for name in waiting}
    for name, others in needs.items():
        for other in others:
            needed_by[other].append(name)
    ready = deque(name for name in waiting if not needs[name])
    while ready:
        name = ready.popleft()
        world.params[name] = _param(world, waiting.pop(name), overrides)
        for other in needed_by[name]:
            needs[other].remove(name)
            if not needs[other]:
                ready.append(other)
    for name, statement in waiting.items():
        world.found.error(
            "E045",
            statement.name.span,
            f"param `{name}` is defined by itself",
            help="give it a value of its own",
        )
        world.params[name] = BROKEN


def _names_in(expr: ast.Expr) -> set[str]:
    return {node.ident.name for node in expr.walk() if isinstance(node, ast.Name)}


def _param(world: World, statement: ast.Param, overrides: Mapping[str, object]) -> Const | ArrayOf:
    value = constant(world, statement.value, "the value of a param")
    if value is None:
        return BROKEN
    name = statement.name.name
    if name not in overrides:
        return value
    given = overrides[name]
    converted = _converted(given, value)
    if converted is None:
        world.found.error(
            "E047",
            _setting(name, given),
            f"`{given}` does not fit: `{name}` is {noun(value.type)}",
            labels=[Label(statement.span, "declared here")],
        )
        return value
    return converted


def _converted(given: object, declared: Const | ArrayOf) -> Const | ArrayOf | None:
    """A value set from outside, as the type that the declaration has."""
    if isinstance(declared, ArrayOf):
        return _converted_array(given, declared)
    type_ = declared.type
    if type_ is Type.STRING:
        return Const(given, type=type_) if isinstance(given, str) else None
    if type_ is Type.NULL:
        return _any_scalar(given)
    if isinstance(given, str):
        given = _read(given, type_)
    if type_ is Type.DURATION:
        return _as_duration(given)
    if isinstance(given, bool):
        return Const(given, type=type_) if type_ is Type.BOOL else None
    if type_.is_numeric and isinstance(given, int | float):
        return Const(given, type=literal_type(given))
    return None


def _any_scalar(given: object) -> Const | None:
    if given is None or isinstance(given, bool | int | float | str):
        return Const(given, type=literal_type(given))
    return None


def _as_duration(given: object) -> Const | None:
    if isinstance(given, timedelta):
        return Const(given // timedelta(microseconds=1), type=Type.DURATION)
    if isinstance(given, Const):
        return given if given.type is Type.DURATION else None
    return None


def _read(text: str, type_: Type) -> object:
    """The text of a setting as a value; the text itself when it is none of that type."""
    text = text.strip()
    if type_ is Type.BOOL:
        return {"true": True, "false": False}.get(text.lower(), text)
    if type_ is Type.DURATION:
        expr, problems = parse_expression(text)
        if isinstance(expr, ast.DurationLiteral) and not problems:
            return Const(expr.value.micros, type=Type.DURATION)
        return text
    if type_.is_numeric and re.fullmatch(r"[+-]?\d+", text) and len(text) < 4000:
        return int(text)
    if type_.is_numeric and re.fullmatch(r"[+-]?\d+(\.\d+)?([eE][+-]?\d+)?", text):
        return float(text)
    return text


def _converted_array(given: object, declared: ArrayOf) -> ArrayOf | None:
    if isinstance(given, str):
        given = _split(given)
    if not isinstance(given, list | tuple | set | frozenset):
        return None
    types = {item.type for item in declared.items}
    like = Const(None, type=types.pop()) if len(types) == 1 else Const(None, type=Type.NULL)
    items = []
    for item in given:
        converted = _converted(item, like)
        if not isinstance(converted, Const):
            return None
        items.append(converted)
    return ArrayOf(tuple(items), type=Type.ARRAY)


def _split(text: str) -> object:
    """`a,b` or a JSON array."""
    if text.lstrip().startswith("["):
        try:
            return json.loads(text)
        except ValueError:
            return None
    return [part.strip() for part in text.split(",") if part.strip()]


# ---------------------------------------------------------------------------------- defs


def _declare_def(world: World, statement: ast.Def) -> None:
    name = statement.name.name
    if world.function(name) is not None or name in AGGREGATES or name in LOOP_FUNCTIONS:
        world.found.error(
            "E043",
            statement.name.span,
            f"`{name}` is a function of the language",
            help="give the def another name",
        )
        return
    world.defs[name] = statement


def _check_defs(world: World) -> None:
    """Check each body once by itself, so that a mistake in it is told once, at its place."""
    _break_cycles(world)
    for name, statement in world.defs.items():
        seen: set[str] = set()
        for parameter in statement.params:
            if parameter.name in seen:
                world.found.error(
                    "E043", parameter.span, f"parameter `{parameter.name}` is named twice"
                )
            seen.add(parameter.name)
        if name in world.broken_defs:
            continue
        locals_: dict[str, Value] = {p.name: Local(p.name, span=p.span) for p in statement.params}
        scope = Scope(place="a def", event="", locals=locals_, hygienic=True, any_aggregate=True)
        resolver = Resolver(world, scope)
        if not world.succeeds(lambda: resolver.value(statement.body)):  # noqa: B023
            world.broken_defs.add(name)


def _break_cycles(world: World) -> None:
    """Report defs that call themselves, directly or through others."""
    calls = {
        name: {
            node.function.name
            for node in statement.body.walk()
            if isinstance(node, ast.Call) and node.function.name in world.defs
        }
        for name, statement in world.defs.items()
    }
    for name, statement in world.defs.items():
        reached: set[str] = set()
        todo = list(calls[name])
        while todo:
            other = todo.pop()
            if other not in reached:
                reached.add(other)
                todo.extend(calls[other])
        if name in reached:
            world.broken_defs.add(name)
            world.found.error(
                "E045",
                statement.name.span,
                f"def `{name}` is defined by itself",
                help="a def is replaced by its body, so it cannot call itself",
            )
