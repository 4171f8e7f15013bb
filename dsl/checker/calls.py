"""Calls: built-in and host functions, `def`s, `any`/`all`, and aggregates in their three places.

An aggregate ranges over the events of a bound step (`sum(a.f)`), over those that a loop has taken
so far (`sum(f)` in its own condition) or over a window (in an `aggregate` block); which one is seen
from its argument and the place.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from dsl import ast
from dsl.checked import (
    AlertValue,
    ArrayOf,
    CallFunction,
    Const,
    EventTime,
    Field,
    FunctionSignature,
    KeyValue,
    Local,
    LoopValue,
    NamedList,
    Pattern,
    Quantified,
    StepAggregate,
    StepField,
    StepTime,
    Value,
    WindowField,
    WindowValue,
)
from dsl.checker.names import check_items, list_side, step_of
from dsl.checker.rewrite import rewrite
from dsl.checker.scope import StepInfo
from dsl.checker.world import BROKEN, noun
from dsl.diagnostics import did_you_mean
from dsl.functions import (
    AGGREGATES,
    FUNCTIONS,
    LIST_TAKERS,
    LOOP_FUNCTIONS,
    QUANTIFIERS,
    SAME_AS_ARGUMENT,
    WINDOW_ONLY,
)
from dsl.items import network_problem
from dsl.regex import group_problem
from dsl.types import Type

if TYPE_CHECKING:
    from dsl.checker.expressions import Resolver

_LIKE_ARGUMENT = frozenset({"min", "max", "first", "last", "prev"})
_NUMERIC = frozenset({"sum", "avg", "median", "percentile", "stddev"})


def resolve_call(resolver: Resolver, expr: ast.Call) -> Value:
    """What a call means."""
    name = expr.function.name
    if name in resolver.world.defs:
        resolver.world.used.add(name)
        return _inline(resolver, resolver.world.defs[name], expr)
    if _is_aggregate(name, expr):
        return _aggregate(resolver, expr)
    _no_distinct(resolver, expr)
    if name in QUANTIFIERS:
        return _quantified(resolver, expr)
    signature = resolver.world.function(name)
    if signature is None:
        return _unknown_function(resolver, expr)
    return _ordinary(resolver, signature, expr)


def _is_aggregate(name: str, expr: ast.Call) -> bool:
    if name in ("min", "max"):
        return len(expr.arguments) < 2
    return name in AGGREGATES or name in LOOP_FUNCTIONS


def _no_distinct(resolver: Resolver, expr: ast.Call) -> None:
    for argument in expr.arguments:
        if argument.distinct:
            resolver.wrong(
                "E039",
                argument.span,
                f"`distinct` does not fit in `{expr.function.name}()`",
                help="it goes with count: `count(distinct x)`",
            )


def _unknown_function(resolver: Resolver, expr: ast.Call) -> Value:
    name = expr.function.name
    world = resolver.world
    guess = did_you_mean(
        name, [*FUNCTIONS, *AGGREGATES, *LOOP_FUNCTIONS, *world.defs, *world.functions]
    )
    help = f"did you mean `{guess}`?" if guess else "`cep functions` lists them all"
    spelled_so = guess is not None and guess.replace("_", "") == name.lower()
    if name.lower() in _ELSEWHERE and not spelled_so:
        said = [argument.value.span.text for argument in expr.arguments]
        x, y = said[:2] if len(said) > 1 else (said[0] if said else "x", "y")
        help = f"write `{_ELSEWHERE[name.lower()].format(x=x, y=y)}`"
    return resolver.wrong("E033", expr.function.span, f"no function is called `{name}`", help=help)


_ELSEWHERE = {
    "contains": "{x} contains {y}",
    "dc": "count(distinct {x})",
    "distinct_count": "count(distinct {x})",
    "count_distinct": "count(distinct {x})",
    "cardinality": "count(distinct {x})",
    "exists": "{x} is not null",
    "isnotnull": "{x} is not null",
    "isnull": "{x} is null",
    "wildcard": "{x} like {y}",
    "cidrmatch": "cidr({x}, {y})",
    "tonumber": "num({x})",
    "tostring": "str({x})",
    "length": "len({x})",
}
"""What other languages have a function for, and how it is written here."""


# ---------------------------------------------------------------------------------- ordinary


def _ordinary(resolver: Resolver, signature: FunctionSignature, expr: ast.Call) -> Value:
    list_too = signature.name in LIST_TAKERS
    arguments = [
        list_side(resolver, argument.value) if list_too else resolver.value(argument.value)
        for argument in expr.arguments
    ]
    if not _right_count(resolver, signature, expr):
        return BROKEN
    if any(value is BROKEN for value in arguments):
        return BROKEN
    name = signature.name
    if name in ("if", "coalesce"):
        return _choice(resolver, name, arguments, expr)
    if name in SAME_AS_ARGUMENT and arguments[0].type in (Type.TIME, Type.DURATION):
        return _like_its_arguments(resolver, name, arguments, expr)
    for value, wanted in zip(arguments, _wanted(signature, len(arguments)), strict=True):
        if not resolver.require(value, wanted, f"this argument of `{name}()`"):
            return BROKEN
    if name == "cidr":
        _check_networks(resolver, arguments[1:])
    if name == "capture" and len(arguments) == 3:
        _check_group(resolver, arguments[1], arguments[2])
    return CallFunction(name, tuple(arguments), type=signature.result, span=expr.span)


def _check_networks(resolver: Resolver, networks: list[Value]) -> None:
    """Report constant networks that are none: every call with them would fail."""
    for given in networks:
        if isinstance(given, NamedList):
            check_items(resolver, given, "cidr", "E078")
        for item in given.items if isinstance(given, ArrayOf) else (given,):
            problem = network_problem(item.value) if isinstance(item, Const) else None
            if problem is not None:
                resolver.wrong(
                    "E078", item.span, problem, help="for example `10.0.0.0/8`, `2001:db8::/32`"
                )


def _check_group(resolver: Resolver, pattern: Value, group: Value) -> None:
    """Report a constant group that the constant expression does not have: no call could succeed."""
    if isinstance(pattern, Pattern) and isinstance(group, Const) and group.value is not None:
        problem = group_problem(pattern.pattern, group.value)
        if problem is not None:
            resolver.wrong(
                "E079", group.span, problem, help="a group is a part in parentheses; 0 is the whole"
            )


def _wanted(signature: FunctionSignature, count: int) -> list[Type]:
    wanted = list(signature.parameters[:count])
    while len(wanted) < count:
        wanted.append(signature.parameters[-1])
    return wanted


def _right_count(resolver: Resolver, signature: FunctionSignature, expr: ast.Call) -> bool:
    least = len(signature.parameters) - signature.optional
    most = None if signature.variadic else len(signature.parameters)
    count = len(expr.arguments)
    if count >= least and (most is None or count <= most):
        return True
    wanted = str(least) if least == most else f"{least} or more"
    if most is not None and least != most:
        wanted = f"{least} to {most}"
    _wrong_count(resolver, expr, wanted, signature.example)
    return False


def _wrong_count(resolver: Resolver, expr: ast.Call, wanted: str, example: str) -> Value:
    count = len(expr.arguments)
    plural = "argument" if wanted == "1" else "arguments"
    return resolver.wrong(
        "E034",
        expr.span,
        f"`{expr.function.name}()` takes {wanted} {plural}, not {count}",
        help=f"for example `{example}`" if example else None,
    )


def _choice(resolver: Resolver, name: str, arguments: list[Value], expr: ast.Call) -> Value:
    """`if` and `coalesce`: of the type that all alternatives have."""
    alternatives = arguments
    if name == "if":
        resolver.require_condition(arguments[0], expr.arguments[0].value)
        alternatives = arguments[1:]
    type_ = resolver.unite(alternatives, expr.span)
    return CallFunction(name, tuple(arguments), type=type_, span=expr.span)


def _like_its_arguments(
    resolver: Resolver, name: str, arguments: list[Value], expr: ast.Call
) -> Value:
    """`abs`, `round`, `min` and `max` of durations or times."""
    type_ = arguments[0].type
    others = arguments[1:] if name != "round" else []
    if type_ is Type.TIME and name in ("abs", "round"):
        return resolver.wrong("E035", expr.span, f"`{name}()` needs a number, this is a time")
    for value in others:
        if not resolver.require(value, type_, f"this argument of `{name}()`"):
            return BROKEN
    return CallFunction(name, tuple(arguments), type=type_, span=expr.span)


def _quantified(resolver: Resolver, expr: ast.Call) -> Value:
    """`any(xs, x, E)` and `all(xs, x, E)`."""
    name = expr.function.name
    if len(expr.arguments) != 3:
        return _wrong_count(resolver, expr, "3", FUNCTIONS[name].example)
    array, variable, condition = (argument.value for argument in expr.arguments)
    values = resolver.value(array)
    if not isinstance(variable, ast.Name):
        return resolver.wrong(
            "E035",
            variable.span,
            f"the second argument of `{name}()` is the name that an element gets",
            help=f"for example `{FUNCTIONS[name].example}`",
        )
    if values is not BROKEN and values.type not in (Type.ANY, Type.ARRAY):
        return resolver.wrong(
            "E035", array.span, f"`{name}()` needs an array, this is {noun(values.type)}"
        )
    called = variable.ident.name
    scope = replace(
        resolver.scope,
        locals={**resolver.scope.locals, called: Local(called, span=variable.span)},
    )
    inner = resolver.inside(scope, lambda: resolver.condition(condition))
    if values is BROKEN or inner is BROKEN:
        return BROKEN
    return Quantified(name == "all", values, called, inner, type=Type.BOOL, span=expr.span)


# ---------------------------------------------------------------------------------- defs


def _inline(resolver: Resolver, definition: ast.Def, expr: ast.Call) -> Value:
    """The body of a `def` with the arguments in place of its parameters."""
    name = definition.name.name
    _no_distinct(resolver, expr)
    arguments = [resolver.value(argument.value) for argument in expr.arguments]
    if name in resolver.world.broken_defs:
        return BROKEN
    if len(arguments) != len(definition.params):
        example = f"{name}({', '.join(p.name for p in definition.params)})"
        return _wrong_count(resolver, expr, str(len(definition.params)), example)
    if name in resolver.inlining:
        return BROKEN  # a cycle of defs, which its definition reports
    bound = {p.name: value for p, value in zip(definition.params, arguments, strict=True)}
    scope = replace(resolver.scope, locals=bound, hygienic=True)
    before, resolver.inlining = resolver.inlining, (*resolver.inlining, name)
    try:
        value = resolver.inside(scope, lambda: resolver.value(definition.body))
    finally:
        resolver.inlining = before
    return resolver.bounded(value, expr.span)


# ---------------------------------------------------------------------------------- aggregates


def _aggregate(resolver: Resolver, expr: ast.Call) -> Value:
    """An aggregate, over a window, a step or what a loop has taken."""
    name = expr.function.name
    scope = resolver.scope
    if scope.in_aggregate:
        return resolver.wrong(
            "E039", expr.span, "an aggregate cannot stand inside another", help=None
        )
    if name != "count" or len(expr.arguments) != 1 or not expr.arguments[0].distinct:
        _no_distinct(resolver, expr)
    if scope.calls is not None:
        return _of_window(resolver, expr, scope.calls)
    if scope.windows and scope.event is None:
        return _of_nothing(resolver, expr, mixed=False)
    step = step_of(resolver, expr.arguments[0].value) if len(expr.arguments) == 1 else None
    if step is not None:
        return _of_whole_step(resolver, expr, step)
    inner = replace(scope, in_aggregate=True)
    arguments = resolver.inside(
        inner, lambda: [resolver.value(argument.value) for argument in expr.arguments]
    )
    if any(value is BROKEN for value in arguments):
        return BROKEN
    if scope.any_aggregate:
        return BROKEN
    steps = {v.step for a in arguments for v in a.walk() if isinstance(v, StepField | StepTime)}
    own = any(isinstance(v, Field | EventTime) for a in arguments for v in a.walk())
    if steps and not own:
        return _of_step(resolver, expr, steps, arguments)
    if not steps and scope.own is not None and scope.own.loop:
        return _of_loop(resolver, expr, arguments)
    return _of_nothing(resolver, expr, mixed=bool(steps))


def _of_whole_step(resolver: Resolver, expr: ast.Call, step: StepInfo) -> Value:
    """`count(a)`"""
    name = expr.function.name
    if name == "count" and not expr.arguments[0].distinct:
        return StepAggregate("count", step.name, None, type=Type.INT, span=expr.span)
    distinct = "distinct " if expr.arguments[0].distinct else ""
    return resolver.wrong(
        "E039",
        expr.span,
        f"`{name}()` needs a field of step `{step.name}`",
        help=f"for example `{name}({distinct}{step.name}.field)`",
    )


def _of_step(resolver: Resolver, expr: ast.Call, steps: set[str], arguments: list[Value]) -> Value:
    """`sum(a.f)`: the argument is turned into one over a single event of the step."""
    name = expr.function.name
    if name == "prev" or name in WINDOW_ONLY:
        return _of_nothing(resolver, expr, mixed=False)
    if len(steps) > 1:
        return _of_nothing(resolver, expr, mixed=True)
    if not _fitting(resolver, expr, AGGREGATES[name], arguments):
        return BROKEN
    step = steps.pop()
    argument = rewrite(arguments[0], _of_one_event)
    whole = arguments[0]
    if name in ("first", "last") and isinstance(whole, StepField | StepTime) and whole.index == -1:
        return replace(whole, index=0 if name == "first" else -1, span=expr.span)
    return StepAggregate(
        name,
        step,
        argument,
        expr.arguments[0].distinct,
        tuple(arguments[1:]),
        type=_result(name, arguments),
        span=expr.span,
    )


def _of_one_event(value: Value) -> Value | None:
    """`a.f` as `f` of the event that an aggregate looks at."""
    if isinstance(value, StepField) and value.index == -1:
        return Field(value.path, type=value.type, span=value.span)
    if isinstance(value, StepTime) and value.index == -1:
        return EventTime(type=value.type, span=value.span)
    return None


def _of_loop(resolver: Resolver, expr: ast.Call, arguments: list[Value]) -> Value:
    """`prev(f)`, `count()`, … in a loop's own condition."""
    name = expr.function.name
    signature = LOOP_FUNCTIONS.get(name)
    distinct = bool(expr.arguments) and expr.arguments[0].distinct
    if signature is None or distinct:
        return resolver.wrong(
            "E039",
            expr.span,
            f"a loop's own condition cannot use `{'count(distinct …)' if distinct else name}`",
            help="it may use prev, first, last, count, sum, avg, min and max; ask for others in "
            "`having`",
        )
    if not _fitting(resolver, expr, signature, arguments):
        return BROKEN
    argument = arguments[0] if arguments else None
    return LoopValue(name, argument, type=_result(name, arguments), span=expr.span)


def _of_window(resolver: Resolver, expr: ast.Call, calls: list[WindowField]) -> Value:
    """An aggregate of an `aggregate` block: noted in `calls`, under a name of its own."""
    name = expr.function.name
    if name not in AGGREGATES:
        return resolver.wrong(
            "E039", expr.span, f"`{name}()` belongs into the condition of a loop", help=None
        )
    inner = replace(resolver.scope, calls=None, in_aggregate=True)
    arguments = resolver.inside(
        inner, lambda: [resolver.value(argument.value) for argument in expr.arguments]
    )
    if any(value is BROKEN for value in arguments):
        return BROKEN
    if not resolver.inside(inner, lambda: _fitting(resolver, expr, AGGREGATES[name], arguments)):
        return BROKEN
    type_ = _result(name, arguments)
    hidden = f"_{len(calls) + 1}"
    argument = arguments[0] if arguments else None
    distinct = bool(expr.arguments) and expr.arguments[0].distinct
    extra = tuple(arguments[1:])
    calls.append(WindowField(hidden, name, argument, distinct, extra, None, type_))
    return WindowValue(hidden, type=type_, span=expr.span)


def _fitting(
    resolver: Resolver, expr: ast.Call, signature: FunctionSignature, arguments: list[Value]
) -> bool:
    """Whether number and types of the arguments are right; further ones must be constants."""
    name = expr.function.name
    if not _right_count(resolver, signature, expr):
        return False
    if arguments and name in _NUMERIC and arguments[0].type is not Type.DURATION:
        what = f"the argument of `{name}()`"
        if not resolver.require(arguments[0], Type.NUMBER, what):
            return False
    for value, written in zip(arguments[1:], expr.arguments[1:], strict=True):
        number = isinstance(value, Const) and value.type in (Type.INT, Type.NUMBER)
        if not number:
            resolver.wrong(
                "E035",
                written.span,
                f"this argument of `{name}()` must be a constant number",
                help=f"for example `{signature.example}`",
            )
            return False
    foreign = (KeyValue, AlertValue, WindowValue)
    if any(isinstance(v, foreign) for a in arguments for v in a.walk()):
        resolver.wrong(
            "E039", expr.span, f"the argument of `{name}()` may only name fields of the events"
        )
        return False
    return True


def _result(name: str, arguments: list[Value]) -> Type:
    if name in _LIKE_ARGUMENT and arguments:
        return arguments[0].type
    if name in _NUMERIC and arguments and arguments[0].type is Type.DURATION:
        return Type.DURATION
    if name == "sum" and arguments and arguments[0].type is Type.INT:
        return Type.INT
    return AGGREGATES[name].result if name in AGGREGATES else Type.ANY


def _of_nothing(resolver: Resolver, expr: ast.Call, *, mixed: bool) -> Value:
    """An aggregate in a place where there are no events to range over."""
    name = expr.function.name
    scope = resolver.scope
    if mixed:
        return resolver.wrong(
            "E039",
            expr.span,
            f"`{name}()` ranges over the events of one step, this names several",
            help="aggregate each step on its own",
        )
    if scope.windows:
        return resolver.wrong(
            "E039",
            expr.span,
            f"`{name}()` must get a name in the `aggregate` block",
            help=f"write `x = {expr.span.text}` there and name `x` here",
        )
    steps = list(scope.steps)
    if name in LOOP_FUNCTIONS and scope.event is not None and scope.own is not None:
        what = f"step `{scope.own.name}` takes one event only"
    else:
        what = "it belongs into the condition of a loop" if name == "prev" else "no step is named"
    argument = f"{steps[-1]}.field" if steps else "step.field"
    if name == "count" and steps:
        argument = steps[-1]
    return resolver.wrong(
        "E039",
        expr.span,
        f"`{name}()` has no events to range over: {what}",
        help=None if name == "prev" else f"for the events of a step write `{name}({argument})`",
    )
