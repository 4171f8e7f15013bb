"""Expressions: from what the text says to what it means, with types.

In comes a tree of `dsl.ast` and a `Scope`; out comes a `dsl.checked.Value`. Along the way fields
are given the types that their use implies, and what cannot work is reported: one mistake, one
message, since a reported part becomes `BROKEN`, whose type `any` fits everywhere.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable
from functools import lru_cache
from typing import TypeVar

from dsl import ast
from dsl.checked import (
    Arith,
    ArrayOf,
    Coalesce,
    Comparison,
    Conjunction,
    Const,
    Disjunction,
    Field,
    IsMissing,
    IsNull,
    LoopValue,
    Minus,
    NamedList,
    Negation,
    Pattern,
    StepField,
    Value,
)
from dsl.checker.calls import resolve_call
from dsl.checker.measure import Measure
from dsl.checker.names import check_items, list_side, resolve_chain, step_of
from dsl.checker.scope import Scope
from dsl.checker.texts import look_at_texts
from dsl.checker.world import BROKEN, World, noun
from dsl.diagnostics import Label
from dsl.items import network_problem
from dsl.regex import compile_problem
from dsl.source import Span
from dsl.types import Type, comparable

_Result = TypeVar("_Result")
_TEMPORAL = (Type.TIME, Type.DURATION)
_ORDER = ("<", "<=", ">", ">=")


MAX_BITS = 4096
"""Bits of the largest constant that is computed; each step of a chain of params may double them."""


class Resolver:
    """Resolves the expressions of one clause."""

    MAX_DEPTH = 150
    """Levels of nesting, `def`s inlined; every later stage may recurse that deep."""

    MAX_SIZE = 10_000
    """Parts that one expression may grow to when `def`s are inlined."""

    def __init__(self, world: World, scope: Scope) -> None:
        self.world = world
        self.scope = scope
        self._depth = 0
        self._size = 0
        self._measure = Measure()
        self.inlining: tuple[str, ...] = ()
        """The `def`s whose bodies are being resolved, outermost first."""

    # -------------------------------------------------------------------------- reporting

    def wrong(
        self,
        code: str,
        span: Span,
        message: str,
        *,
        help: str | None = None,
        labels: Iterable[Label] = (),
    ) -> Value:
        """Report an error; the result stands for the expression."""
        self.world.found.error(code, span, message, help=help, labels=labels)
        return BROKEN

    def too_deep(self, span: Span) -> Value:
        """Report an expression that no stage could handle."""
        return self.wrong(
            "E045", span, "this expression is too deep or too large", help="split it with a `def`"
        )

    # -------------------------------------------------------------------------- entry points

    def bounded(self, value: Value, span: Span) -> Value:
        """The value, unless writing out `def`s has made it too large or too deep."""
        size, depth = self._measure.of(value)
        if size > self.MAX_SIZE or depth > self.MAX_DEPTH:
            return self.too_deep(span)
        return value

    def value(self, expr: ast.Expr) -> Value:
        """What an expression means here."""
        self._size += bool(self.inlining)
        if self._depth >= self.MAX_DEPTH or self._size > self.MAX_SIZE:
            return self.too_deep(expr.span)
        self._depth += 1
        try:
            return _HANDLERS[type(expr)](self, expr)
        finally:
            self._depth -= 1

    def condition(self, expr: ast.Expr) -> Value:
        """What a condition means; reports an expression that is not one."""
        value = self.value(expr)
        self.require_condition(value, expr)
        return value

    def require_condition(self, value: Value, expr: ast.Expr) -> None:
        """Report a value that is neither true nor false."""
        self.learn(value, Type.BOOL)
        if value.type not in (Type.BOOL, Type.ANY):
            self.wrong(
                "E036",
                expr.span,
                f"a condition is expected here, this is {noun(value.type)}",
                help="compare it with something, or write `is not null`",
            )

    def inside(self, scope: Scope, work: Callable[[], _Result]) -> _Result:
        """Do some work with another scope."""
        before, self.scope = self.scope, scope
        try:
            return work()
        finally:
            self.scope = before

    # -------------------------------------------------------------------------- types

    def learn(self, value: Value, type_: Type, *, weak: bool = False) -> None:
        """Let a field know that it is used as this type."""
        while isinstance(value, LoopValue) and value.argument is not None:
            if value.function not in ("prev", "first", "last", "min", "max"):
                return
            value = value.argument
        if isinstance(value, Field) and self.scope.event is not None:
            self.world.learn(self.scope.event, value.path, type_, value.span, weak=weak)
        elif isinstance(value, StepField) and value.path and value.step in self.scope.steps:
            stream = self.scope.steps[value.step].stream
            self.world.learn(stream, value.path, type_, value.span, weak=weak)

    def require(self, value: Value, wanted: Type, what: str) -> bool:
        """Report a value that cannot be of this type; `what` names its place ("the left side")."""
        self.learn(value, wanted)
        fits = value.type == wanted or (value.type.is_numeric and wanted.is_numeric)
        if fits or (value.type in (Type.ANY, Type.NULL) and wanted not in _TEMPORAL):
            return True
        if value is BROKEN or wanted is Type.ANY:
            return True
        if wanted in _TEMPORAL and value.type is Type.ANY and not _is_plain(value):
            return True
        self.wrong(
            "E035",
            value.span,
            f"{what} must be {noun(wanted)}, this is {noun(value.type)}",
            help=_conversion(value, wanted),
        )
        return False

    def unite(self, values: list[Value], span: Span) -> Type:
        """The type of "one of these values"; times and durations do not mix with others."""
        types = {value.type for value in values if value.type is not Type.NULL}
        if len(types) == 1:
            return types.pop()
        if not types:
            return Type.NULL
        if all(type_.is_numeric for type_ in types):
            return Type.NUMBER
        if types & set(_TEMPORAL) and not any(value is BROKEN for value in values):
            self.wrong(
                "E035",
                span,
                "times and durations cannot stand beside values of another kind: "
                + " and ".join(sorted(noun(type_) for type_ in types)),
            )
        return Type.ANY


def _is_plain(value: Value) -> bool:
    """Whether the value comes straight from an event, which holds no times or durations."""
    return isinstance(value, Field | StepField)


def _conversion(value: Value, wanted: Type) -> str | None:
    text = value.span.text
    if wanted is Type.TIME:
        return f"convert it: `time({text})`"
    if wanted is Type.DURATION and value.type in (Type.ANY, Type.INT, Type.NUMBER):
        return f"make it one: `{text} * 1s`"
    if wanted is Type.STRING and value.type not in _TEMPORAL:
        return f"convert it: `str({text})`"
    if wanted.is_numeric and value.type is Type.STRING:
        return f"convert it: `num({text})`"
    if wanted.is_numeric and value.type is Type.DURATION:
        return f"convert it: `seconds({text})`"
    return None


# ---------------------------------------------------------------------------------- literals


def _literal(resolver: Resolver, expr: ast.Literal) -> Value:
    return Const(expr.value, type=literal_type(expr.value), span=expr.span)


def literal_type(value: object) -> Type:
    """The type of a constant."""
    if value is None:
        return Type.NULL
    if isinstance(value, bool):
        return Type.BOOL
    if isinstance(value, int):
        return Type.INT
    return Type.NUMBER if isinstance(value, float) else Type.STRING


def _duration(resolver: Resolver, expr: ast.DurationLiteral) -> Value:
    return Const(expr.value.micros, type=Type.DURATION, span=expr.span)


def _regex(resolver: Resolver, expr: ast.Regex) -> Value:
    flags = "".join(sorted(set(expr.flags)))
    problem = _problem(expr.pattern, flags)
    if problem is not None:
        return resolver.wrong("E041", expr.span, f"not a regular expression: {problem}")
    return Pattern(expr.pattern, flags, type=Type.REGEX, span=expr.span)


_problem = lru_cache(maxsize=1024)(compile_problem)


def _array(resolver: Resolver, expr: ast.Array) -> Value:
    items = tuple(resolver.value(item) for item in expr.items)
    return ArrayOf(items, type=Type.ARRAY, span=expr.span)


# ---------------------------------------------------------------------------------- arithmetic


def _negative(resolver: Resolver, expr: ast.Negative) -> Value:
    operand = resolver.value(expr.operand)
    if isinstance(operand, Const) and operand.type in (Type.INT, Type.NUMBER, Type.DURATION):
        assert isinstance(operand.value, int | float)
        return Const(-operand.value, type=operand.type, span=expr.span)
    if operand.type is Type.DURATION:
        return Minus(operand, type=Type.DURATION, span=expr.span)
    if not resolver.require(operand, Type.NUMBER, "what is negated"):
        return BROKEN
    type_ = Type.INT if operand.type is Type.INT else Type.NUMBER
    return Minus(operand, type=type_, span=expr.span)


def _arithmetic(resolver: Resolver, expr: ast.Arithmetic) -> Value:
    left, right = resolver.value(expr.left), resolver.value(expr.right)
    if left is BROKEN or right is BROKEN:
        return BROKEN
    if expr.op == "??":
        return _coalesce(resolver, left, right, expr.span)
    for side in (left, right):
        if side.type in (Type.STRING, Type.BOOL, Type.ARRAY, Type.OBJECT, Type.REGEX, Type.NULL):
            return _not_a_number(resolver, side, expr.op)
    if left.type not in _TEMPORAL and right.type not in _TEMPORAL:
        resolver.learn(left, Type.NUMBER)
        resolver.learn(right, Type.NUMBER)
        whole = left.type is Type.INT and right.type is Type.INT and expr.op != "/"
        return _folded(resolver, expr, left, right, Type.INT if whole else Type.NUMBER)
    type_ = _temporal_result(resolver, expr.op, left, right)
    if type_ is None:
        return _bad_times(resolver, expr, left, right)
    return _folded(resolver, expr, left, right, type_)


def _not_a_number(resolver: Resolver, side: Value, op: str) -> Value:
    help = None
    if side.type is Type.STRING:
        number = f"`num({side.span.text})`"
        joined = "texts are put together by `concat(a, b)`, and in an alert: `{a}{b}`"
        if op != "+":
            help = f"convert it: {number}"
        elif isinstance(side, Field | StepField):
            help = f"{joined}; for a sum convert it: {number}"
        else:
            help = joined
    return resolver.wrong(
        "E035", side.span, f"`{op}` needs numbers, this is {noun(side.type)}", help=help
    )


_TEMPORAL_RESULTS = {
    ("+", "t", "d"): Type.TIME,
    ("+", "d", "t"): Type.TIME,
    ("+", "d", "d"): Type.DURATION,
    ("-", "t", "t"): Type.DURATION,
    ("-", "t", "d"): Type.TIME,
    ("-", "d", "d"): Type.DURATION,
    ("*", "d", "n"): Type.DURATION,
    ("*", "n", "d"): Type.DURATION,
    ("/", "d", "n"): Type.DURATION,
    ("/", "d", "d"): Type.NUMBER,
    ("%", "d", "d"): Type.DURATION,
}


def _temporal_result(resolver: Resolver, op: str, left: Value, right: Value) -> Type | None:
    kinds = {Type.TIME: "t", Type.DURATION: "d"}
    type_ = _TEMPORAL_RESULTS.get((op, kinds.get(left.type, "n"), kinds.get(right.type, "n")))
    if type_ is not None:
        for side in (left, right):
            if side.type is Type.ANY:
                resolver.learn(side, Type.NUMBER)
    return type_


def _bad_times(resolver: Resolver, expr: ast.Arithmetic, left: Value, right: Value) -> Value:
    help = "times and durations: time - time, time ± duration, duration * number, …"
    for side, other in ((left, right), (right, left)):
        if side.type in (Type.ANY, Type.INT, Type.NUMBER) and expr.op in "+-":
            help = (
                f"convert it: `time({side.span.text})`"
                if other.type is Type.TIME and side.type is Type.ANY
                else f"give it a unit: `{side.span.text} * 1s`"
            )
    return resolver.wrong(
        "E035",
        expr.span,
        f"`{expr.op}` does not fit between {noun(left.type)} and {noun(right.type)}",
        help=help,
    )


def _folded(
    resolver: Resolver, expr: ast.Arithmetic, left: Value, right: Value, type_: Type
) -> Value:
    """The operation, or its result when both sides are constants."""
    if isinstance(left, Const) and isinstance(right, Const):
        result = _compute(expr.op, left.value, right.value)
        if isinstance(result, int) and result.bit_length() > MAX_BITS:
            return resolver.wrong("E045", expr.span, "this number is too large")
        if result is not None:
            if type_ is Type.DURATION:
                result = round(result)
            return Const(result, type=type_, span=expr.span)
    return Arith(expr.op, left, right, type=type_, span=expr.span)


def _compute(op: str, left: object, right: object) -> int | float | None:
    assert isinstance(left, int | float)
    assert isinstance(right, int | float)
    try:
        match op:
            case "+":
                result = left + right
            case "-":
                result = left - right
            case "*":
                result = left * right
            case "/":
                result = left / right
            case _:
                result = left % right
    except (ZeroDivisionError, OverflowError):
        return None
    return result if isinstance(result, int) or math.isfinite(result) else None


def _coalesce(resolver: Resolver, left: Value, right: Value, span: Span) -> Value:
    for side, other in ((left, right), (right, left)):
        if isinstance(other, Const):
            resolver.learn(side, other.type)
    type_ = resolver.unite([left, right], span)
    return Coalesce(left, right, type=type_, span=span)


# ---------------------------------------------------------------------------------- comparisons


def _compare(resolver: Resolver, expr: ast.Compare) -> Value:
    op = expr.op.removeprefix("not ")
    if op in ("==", "!=", *_ORDER):
        value = _plain_comparison(resolver, expr)
    elif op == "in":
        value = _membership(resolver, expr)
    elif op == "contains":
        value = _contains(resolver, expr)
    else:
        value = _text_match(resolver, expr, op)
    if value is not BROKEN and expr.op.startswith("not "):
        return Negation(value, type=Type.BOOL, span=expr.span)
    return value


def _plain_comparison(resolver: Resolver, expr: ast.Compare) -> Value:
    for side, other in ((expr.left, expr.right), (expr.right, expr.left)):
        if isinstance(side, ast.Literal) and side.value is None:
            return _null_comparison(resolver, expr, other)
    left, right = resolver.value(expr.left), resolver.value(expr.right)
    if left is BROKEN or right is BROKEN:
        return BROKEN
    _learn_from_each_other(resolver, left, right)
    if not _times_fit(resolver, left, right):
        return BROKEN
    _warn_if_never(resolver, expr, left, right)
    look_at_texts(resolver.world, expr.op, left)
    look_at_texts(resolver.world, expr.op, right)
    return Comparison(expr.op, left, right, type=Type.BOOL, span=expr.span)


def _null_comparison(resolver: Resolver, expr: ast.Compare, other: ast.Expr) -> Value:
    text = other.span.text
    suggestion = f"{text} is not null" if expr.op == "!=" else f"{text} is null"
    resolver.value(other)
    return resolver.wrong(
        "E037",
        expr.span,
        "a comparison with null is never true",
        help=f"write `{suggestion}`" if expr.op in ("==", "!=") else None,
    )


def _learn_from_each_other(resolver: Resolver, left: Value, right: Value) -> None:
    for side, other in ((left, right), (right, left)):
        resolver.learn(side, other.type, weak=not isinstance(other, Const))


def _times_fit(resolver: Resolver, left: Value, right: Value) -> bool:
    """Times and durations are compared with their like only: beside them all else is a slip."""
    for side, other in ((left, right), (right, left)):
        if side.type in _TEMPORAL and other.type != side.type and other.type is not Type.NULL:
            if other.type is Type.ANY and not _is_plain(other):
                continue
            what = f"{noun(side.type)} is compared with {noun(other.type)}"
            if other.type is Type.ANY:
                plural = "times" if side.type is Type.TIME else "durations"
                what = f"{noun(side.type)} is compared with a field, but events hold no {plural}"
            resolver.wrong(
                "E035",
                other.span,
                what,
                help=_conversion(other, side.type)
                if other.type not in _TEMPORAL
                else "a difference of two times is a duration",
            )
            return False
    return True


def _warn_if_never(resolver: Resolver, expr: ast.Compare, left: Value, right: Value) -> None:
    ordered = expr.op in _ORDER
    unordered = (Type.BOOL, Type.ARRAY, Type.OBJECT)
    if not comparable(left.type, right.type):
        always = "always" if expr.op == "!=" else "never"
        resolver.world.found.warning(
            "W002",
            expr.span,
            f"this is {always} true: {noun(left.type)} is compared with {noun(right.type)}",
            help="values of different types are not equal; convert one with `num()`, `str()`, …",
        )
    elif ordered and (left.type in unordered or right.type in unordered):
        what = left.type if left.type in unordered else right.type
        resolver.world.found.warning(
            "W002", expr.span, f"this is never true: {noun(what)} has no order"
        )


def _membership(resolver: Resolver, expr: ast.Compare) -> Value:
    left = resolver.value(expr.left)
    right = list_side(resolver, expr.right)
    if left is BROKEN or right is BROKEN:
        return BROKEN
    if right.type is Type.STRING:
        return resolver.wrong(
            "E035",
            expr.right.span,
            "`in` needs a list on its right, this is a string",
            help=_instead_of_in(expr, right),
        )
    if not resolver.require(right, Type.ARRAY, "the right side of `in`"):
        return BROKEN
    types = item_types(resolver.world, right)
    if len(types) == 1:
        resolver.learn(left, next(iter(types)))
    if types and not any(comparable(left.type, type_) for type_ in types):
        resolver.world.found.warning(
            "W002",
            expr.span,
            f"this is never true: {noun(left.type)} is looked for among values of another type",
            help="values of different types are not equal; convert one with `num()`, `str()`, …",
        )
    look_at_texts(resolver.world, "in", right)
    return Comparison("in", left, right, type=Type.BOOL, span=expr.span)


def _instead_of_in(expr: ast.Compare, right: Value) -> str:
    left, text = expr.left.span.text, expr.right.span.text
    network = isinstance(right, Const) and "/" in str(right.value)
    if network and isinstance(right, Const) and network_problem(right.value) is None:
        return f"for an address in a network write `cidr({left}, {text})`"
    return f"for a part of a text write `{text} contains {left}`"


def item_types(world: World, value: Value) -> set[Type]:
    """The types of the items of a constant list (whole numbers as numbers); empty if unknown."""
    if isinstance(value, NamedList):
        named = world.lists[value.name]
        if named.file is not None:
            return set()
        types = {literal_type(item) for item in named.items}
    elif isinstance(value, ArrayOf) and all(isinstance(item, Const) for item in value.items):
        types = {item.type for item in value.items}
    else:
        return set()
    return {Type.NUMBER if type_ is Type.INT else type_ for type_ in types}


def _contains(resolver: Resolver, expr: ast.Compare) -> Value:
    left, right = resolver.value(expr.left), list_side(resolver, expr.right)
    if left is BROKEN or right is BROKEN:
        return BROKEN
    if left.type not in (Type.ANY, Type.STRING, Type.ARRAY, Type.NULL):
        return resolver.wrong(
            "E035",
            left.span,
            f"`contains` looks into a string or an array, this is {noun(left.type)}",
        )
    if left.type is Type.STRING and right.type not in (Type.STRING, Type.ARRAY, Type.ANY):
        return resolver.wrong(
            "E035", right.span, f"a string contains strings only, this is {noun(right.type)}"
        )
    return Comparison("contains", left, right, type=Type.BOOL, span=expr.span)


def _text_match(resolver: Resolver, expr: ast.Compare, op: str) -> Value:
    """`like`, `ilike`, `matches`."""
    left, right = resolver.value(expr.left), list_side(resolver, expr.right)
    if left is BROKEN or right is BROKEN:
        return BROKEN
    if not resolver.require(left, Type.STRING, f"the left side of `{op}`"):
        return BROKEN
    for item in right.items if isinstance(right, ArrayOf) else (right,):
        if not _fits_match(resolver, item, op):
            return BROKEN
    if op == "matches" and isinstance(right, NamedList):
        check_items(resolver, right, "matches", "E041")
    look_at_texts(resolver.world, op, right)
    return Comparison(op, left, right, type=Type.BOOL, span=expr.span)


def _as_regex(text: Const) -> str | None:
    """The expression that a text in quotes was meant to be, with its backslashes as written."""
    written = text.span.text
    if written[:1] not in ("'", '"') or len(written) < 3:
        return None
    bare = re.sub(r"\\([\\'\"])", r"\1", written[1:-1])
    return "/" + re.sub(r"(?<!\\)/", r"\/", bare) + "/"


def _fits_match(resolver: Resolver, item: Value, op: str) -> bool:
    if item is BROKEN or isinstance(item, NamedList):
        return True
    if op == "matches":
        if isinstance(item, Pattern):
            return True
        text = _as_regex(item) if isinstance(item, Const) and item.type is Type.STRING else None
        resolver.wrong(
            "E035",
            item.span,
            f"`matches` needs a regular expression, this is {noun(item.type)}",
            help=f"write `{text}`" if text else "write it between slashes: `/…/`",
        )
        return False
    if item.type is Type.REGEX:
        resolver.wrong(
            "E035",
            item.span,
            f"`{op}` takes a text with `*` and `?`, this is a regular expression",
            help="write `matches`",
        )
        return False
    if isinstance(item, Field | StepField):
        resolver.learn(item, Type.STRING)
    return item.type is Type.ARRAY or resolver.require(
        item, Type.STRING, f"the right side of `{op}`"
    )


# ---------------------------------------------------------------------------------- logic


def _is(resolver: Resolver, expr: ast.Is) -> Value:
    step = step_of(resolver, expr.operand)
    if step is not None:
        operand: Value = StepField(step.name, (), span=expr.operand.span)
    else:
        operand = resolver.value(expr.operand)
    if operand is BROKEN:
        return BROKEN
    kind = IsNull if expr.what == "null" else IsMissing
    value: Value = kind(operand, type=Type.BOOL, span=expr.span)
    return Negation(value, type=Type.BOOL, span=expr.span) if expr.negated else value


def _not(resolver: Resolver, expr: ast.Not) -> Value:
    operand = resolver.condition(expr.operand)
    return operand if operand is BROKEN else Negation(operand, type=Type.BOOL, span=expr.span)


def _and(resolver: Resolver, expr: ast.And) -> Value:
    parts: list[Value] = []
    for part in expr.parts:
        value = resolver.condition(part)
        parts.extend(value.parts if isinstance(value, Conjunction) else [value])
    return Conjunction(tuple(parts), type=Type.BOOL, span=expr.span)


def _or(resolver: Resolver, expr: ast.Or) -> Value:
    parts: list[Value] = []
    for part in expr.parts:
        value = resolver.condition(part)
        parts.extend(value.parts if isinstance(value, Disjunction) else [value])
    return Disjunction(tuple(parts), type=Type.BOOL, span=expr.span)


_HANDLERS: dict[type, Callable[..., Value]] = {
    ast.Literal: _literal,
    ast.DurationLiteral: _duration,
    ast.Regex: _regex,
    ast.Array: _array,
    ast.Name: resolve_chain,
    ast.Attribute: resolve_chain,
    ast.Index: resolve_chain,
    ast.Call: resolve_call,
    ast.Negative: _negative,
    ast.Arithmetic: _arithmetic,
    ast.Compare: _compare,
    ast.Is: _is,
    ast.Not: _not,
    ast.And: _and,
    ast.Or: _or,
}
