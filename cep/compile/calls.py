"""Operators and functions of the language as calls of Python functions.

In comes a value whose operands must not be null (`a + b`, `lower(x)`, `x in list`), out comes a
`Call`: the Python function that does it, whatever the operands turn out to be, and, where their
types are known, code that does the same in place. Patterns and constant arguments go into the
function here, once. The fast and the careful form of an expression are both made of these calls,
so that what an operator means stands once.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Protocol

from cep.runtime import functions as f
from cep.runtime import matching
from dsl import regex
from dsl.checked import (
    Arith,
    ArrayOf,
    CallFunction,
    Coalesce,
    Comparison,
    Conjunction,
    Const,
    Disjunction,
    FunctionSignature,
    GetField,
    GetIndex,
    IsMissing,
    IsNull,
    Local,
    Minus,
    NamedList,
    Negation,
    Pattern,
    Quantified,
    Value,
)
from dsl.types import Type

Scalar = None | bool | int | float | str

NUMERIC = frozenset({Type.INT, Type.NUMBER})
COUNTED = NUMERIC | {Type.TIME, Type.DURATION}
"""Types whose values are Python numbers at run time."""


@dataclass(frozen=True, slots=True)
class Call:
    """A Python function with the values it is called with.

    `inline` does the same as the function, with `{0}`, `{1}` for the operands, `precedence` says
    how tightly its outermost operator binds; `negated` is the code for the opposite of a
    comparison. `repeats` are operands that the code names more than once. `none_safe` are operands
    for which None gives something untrue, so that a condition need not test them. `nullable`:
    the result may be null. Not `strict`: the function is called with nulls, too.
    """

    function: Callable[..., Any]
    operands: tuple[Value, ...]
    type: Type = Type.ANY
    inline: str | None = None
    negated: str | None = None
    precedence: int = 0
    none_safe: frozenset[int] = frozenset()
    repeats: frozenset[int] = frozenset()
    nullable: bool = False
    strict: bool = True


class Names(Protocol):
    """What a call needs to know of the rules around it."""

    def known(self, value: Value) -> Type: ...
    def constant(self, obj: object) -> str: ...
    def list_items(self, name: str) -> Sequence[Scalar]: ...
    def host_function(self, name: str) -> FunctionSignature | None: ...


_COMPOSITE = (
    Const,
    ArrayOf,
    NamedList,
    Pattern,
    GetField,
    GetIndex,
    CallFunction,
    Quantified,
    Minus,
    Arith,
    Coalesce,
    Comparison,
    IsNull,
    IsMissing,
    Negation,
    Conjunction,
    Disjunction,
    Local,
)


def is_leaf(value: Value) -> bool:
    """Whether the code around an expression has to load this value."""
    return not isinstance(value, _COMPOSITE)


def boolean_or_bare(value: Value, names: Names) -> bool:
    """Whether `is True` tells if the value is true: not where a true may be in an `Odd` box."""
    known = names.known(value)
    return known is Type.BOOL or (known is Type.ANY and is_leaf(value))


# How tightly Python's operators bind; an operand is put in parentheses when it binds less.
TERNARY, OR, AND, NOT, COMPARE, SUM, TERM, UNARY, ATOM = range(9)


def as_call(value: Value, names: Names) -> Call | None:
    """The call that a value amounts to; None when it is no strict operator or function."""
    if isinstance(value, Comparison):
        return _COMPARISONS[value.op](value, names)
    if isinstance(value, Arith):
        return _arith(value, names)
    if isinstance(value, Minus):
        inline = "-{0}" if names.known(value.operand) in COUNTED else None
        kind = value.type if value.type in COUNTED else Type.NUMBER
        return Call(f.negative, (value.operand,), kind, inline, precedence=UNARY)
    if isinstance(value, GetField):
        return Call(partial(_get_field, value.name), (value.value,), nullable=True)
    if isinstance(value, GetIndex):
        return Call(f.get_index, (value.value, value.index), nullable=True)
    if isinstance(value, CallFunction) and value.function not in ("if", "coalesce"):
        return _function(value, names)
    return None


def _get_field(name: str, value: Any) -> Any:
    return f.get_field(value, name)


def missing_test(value: Value) -> Call | None:
    """`value is missing` of a part of another value; None for what is never missing."""
    if isinstance(value, GetField):
        return Call(partial(f.lacks_field, value.name), (value.value,), Type.BOOL, strict=False)
    if isinstance(value, GetIndex):
        return Call(f.lacks_index, (value.value, value.index), Type.BOOL, strict=False)
    return None


# ---------------------------------------------------------------------------- arithmetic

_ARITH = {
    "+": (f.add, SUM),
    "-": (f.subtract, SUM),
    "*": (f.multiply, TERM),
    "/": (f.divide, TERM),
    "%": (f.modulo, TERM),
}
_WHOLE_MICROS = {"*": f.multiply_micros, "/": f.divide_micros}


def arith_type(value: Arith | Minus) -> Type:
    """What the result of an arithmetic operator is at run time."""
    return value.type if value.type in (Type.TIME, Type.DURATION) else Type.NUMBER


def _arith(value: Arith, names: Names) -> Call:
    function, precedence = _ARITH[value.op]
    operands = (value.left, value.right)
    kind = arith_type(value)
    rounding = _WHOLE_MICROS.get(value.op) if kind is not Type.NUMBER else None
    if rounding is not None:
        return Call(rounding, operands, kind)
    counted = all(names.known(operand) in COUNTED for operand in operands)
    inline = f"{{0}} {value.op} {{1}}" if counted else None
    return Call(function, operands, kind, inline, precedence=precedence)


# ---------------------------------------------------------------------------- == and order

_ORDER: dict[str, Callable[[Any, Any], bool]] = {
    "<": f.less,
    "<=": f.at_most,
    ">": f.greater,
    ">=": f.at_least,
}


def _family(kind: Type) -> Type:
    return Type.NUMBER if kind in NUMERIC else kind


def _apart(left: Type, right: Type) -> bool:
    """Whether the types differ although their values look alike: a time, a duration, a number."""
    return left in COUNTED and right in COUNTED and _family(left) is not _family(right)


def _equality(value: Comparison, names: Names) -> Call:
    left, right = names.known(value.left), names.known(value.right)
    operands = (value.left, value.right)
    if _apart(left, right):
        return Call(f.never_equal, operands, Type.BOOL)
    alike = _family(left) is _family(right) and left in COUNTED | {Type.STRING, Type.BOOL}
    for value_side, other in (operands, operands[::-1]):
        if isinstance(other, Const) and (other.value.__class__ is bool or not alike):
            return _equal_to_constant(value_side, other, names)
    return (
        _plain_equality(operands, frozenset({0, 1}))
        if alike
        else Call(f.equal, operands, Type.BOOL)
    )


def _plain_equality(operands: tuple[Value, Value], none_safe: frozenset[int]) -> Call:
    return Call(
        f.equal,
        operands,
        Type.BOOL,
        inline="{0} == {1}",
        negated="{0} != {1}",
        precedence=COMPARE,
        none_safe=none_safe,
    )


def _equal_to_constant(value: Value, constant: Const, names: Names) -> Call:
    """`x == constant` for an x of which nothing is known: only 0, 1, true and false need care."""
    call = _plain_equality((value, constant), frozenset({0}))
    if constant.value.__class__ is bool:
        if not boolean_or_bare(value, names):
            return replace(call, inline=None, none_safe=frozenset())
        return replace(call, inline="{0} is {1}", negated="{0} is not {1}")
    if constant.value not in (0, 1):
        return call
    alike = "True" if constant.value else "False"
    return replace(
        call,
        inline=f"{{0}} == {{1}} and {{0}} is not {alike}",
        negated=f"({{0}} != {{1}} or {{0}} is {alike})",
        precedence=AND,
        repeats=frozenset({0}),
    )


def _order(value: Comparison, names: Names) -> Call:
    left, right = names.known(value.left), names.known(value.right)
    function = _ORDER[value.op]
    call = Call(function, (value.left, value.right), Type.BOOL)
    if _apart(left, right):
        return replace(call, function=f.no_order)
    if _family(left) is _family(right) and left in COUNTED | {Type.STRING}:
        inline = f"{{0}} {value.op} {{1}}"
        return replace(call, inline=inline, precedence=COMPARE)
    if Type.ANY not in (left, right):
        return call
    generic = names.constant(function)
    test = _class_test(left, right, names)
    inline = f"({{0}} {value.op} {{1}} if {test} else {generic}({{0}}, {{1}}))"
    return replace(call, inline=inline, precedence=ATOM, repeats=frozenset({0, 1}))


def _class_test(left: Type, right: Type, names: Names) -> str:
    """Code that is true when two operands, one of them of unknown type, surely have an order."""
    known = left if left is not Type.ANY else right
    unknown = "{0}" if left is Type.ANY else "{1}"
    if known in COUNTED:
        return f"{unknown}.__class__ in {names.constant(f.NUMBERS)}"
    if known is Type.STRING:
        return f"{unknown}.__class__ is str"
    ordered = names.constant(f.ORDERED)
    return f"{{0}}.__class__ is {{1}}.__class__ and {{0}}.__class__ in {ordered}"


# ---------------------------------------------------------------------------- in, like, contains


def constants(value: Value, names: Names) -> list[Scalar] | None:
    """The elements of a constant array or named list, nulls left out; None when it is none."""
    if isinstance(value, NamedList):
        return [item for item in names.list_items(value.name) if item is not None]
    if isinstance(value, ArrayOf) and all(isinstance(item, Const) for item in value.items):
        items = [item.value for item in value.items if isinstance(item, Const)]
        return [item for item in items if item is not None]
    return None


def _texts(value: Value, names: Names) -> list[str] | None:
    """The constant text or texts on the right of `like` or `contains`; None for anything else."""
    items = [value.value] if isinstance(value, Const) else constants(value, names)
    if items is None:
        return None
    texts = [item for item in items if isinstance(item, str)]
    return texts if len(texts) == len(items) else None


_SMALL = 8
"""Most elements that are written out where they are tested."""


def _in(value: Comparison, names: Names) -> Call:
    items = constants(value.right, names)
    if items is None:
        return Call(f.member, (value.left, value.right), Type.BOOL)
    call = Call(
        f.constant_set(items),
        (value.left,),
        Type.BOOL,
        precedence=COMPARE,
        none_safe=frozenset({0}),
    )
    if any(isinstance(item, bool) for item in items) or names.known(value.left) is Type.BOOL:
        return call
    where = _set_code(items, names)
    call = replace(call, inline=f"{{0}} in {where}", negated=f"{{0}} not in {where}")
    alike = names.known(value.left) is Type.ANY and (0 in items or 1 in items)
    return _no_booleans(call) if alike else call


def _no_booleans(call: Call) -> Call:
    """`x in {1, 2}` for an x that may be true, which Python takes for 1."""
    return replace(
        call,
        inline=f"{call.inline} and {{0}}.__class__ is not bool",
        negated=f"({call.negated} or {{0}}.__class__ is bool)",
        precedence=AND,
        repeats=frozenset({0}),
    )


def _set_code(items: list[Any], names: Names) -> str:
    """The code of a set of constants, written out when that is short; ready for `str.format`."""
    codes = [repr(item) for item in dict.fromkeys(items) if _is_short(item)]
    if items and len(items) <= _SMALL and len(codes) == len(set(items)):
        return _braced("{" + ", ".join(codes) + "}")
    return names.constant(frozenset(items))


def _is_short(item: Any) -> bool:
    if isinstance(item, int):
        return item.bit_length() < 64
    return math.isfinite(item) if isinstance(item, float) else len(item) < 40


def _braced(code: str) -> str:
    """Code that survives `str.format`."""
    return code.replace("{", "{{").replace("}", "}}")


def _like(value: Comparison, names: Names) -> Call:
    ignore_case = value.op == "ilike"
    patterns = _texts(value.right, names)
    if patterns is None:
        function = matching.ilike if ignore_case else matching.like
        return Call(function, (value.left, value.right), Type.BOOL)
    tests = [matching.wildcard(pattern, ignore_case) for pattern in patterns]
    call = Call(f.any_of(tests) if tests else _nothing, (value.left,), Type.BOOL)
    if len(patterns) != 1 or names.known(value.left) is not Type.STRING:
        return call
    subject = "{0}.lower()" if ignore_case else "{0}"
    return _plain_like(call, subject, patterns[0].lower() if ignore_case else patterns[0])


def _nothing(value: Any) -> bool:
    return False


def _plain_like(call: Call, subject: str, pattern: str) -> Call:
    """`like "a*"`, `like "*a"`, `like "*a*"` and `like "a"` in place."""
    bare = pattern.strip("*")
    if "*" in bare or "?" in bare or not bare:
        return call
    code = _braced(repr(bare))
    starts, ends = not pattern.startswith("*"), not pattern.endswith("*")
    if starts and ends:
        return replace(
            call,
            inline=f"{subject} == {code}",
            negated=f"{subject} != {code}",
            precedence=COMPARE,
        )
    if starts or ends:
        method = "startswith" if starts else "endswith"
        return replace(call, inline=f"{subject}.{method}({code})", precedence=ATOM)
    return _contains_text(call, subject, code)


def _contains_text(call: Call, subject: str, code: str) -> Call:
    inline, negated = f"{code} in {subject}", f"{code} not in {subject}"
    return replace(call, inline=inline, negated=negated, precedence=COMPARE)


def _matches(value: Comparison, names: Names) -> Call:
    patterns = _patterns(value.right, names)
    if patterns is None:
        return Call(matching.matches, (value.left, value.right), Type.BOOL)
    tests = [_regex_test(pattern) for pattern in patterns]
    call = Call(f.any_of(tests) if tests else _nothing, (value.left,), Type.BOOL)
    if len(patterns) == 1 and names.known(value.left) is Type.STRING:
        plain = regex.is_plain_text(patterns[0].pattern) if not patterns[0].flags else None
        if plain is not None:
            return _contains_text(call, "{0}", _braced(repr(plain)))
    return call


def _patterns(value: Value, names: Names) -> list[Pattern] | None:
    """The constant expressions on the right of `matches`; None for anything else."""
    if isinstance(value, Pattern):
        return [value]
    if isinstance(value, ArrayOf):
        found = [_pattern(item) for item in value.items]
        patterns = [pattern for pattern in found if pattern is not None]
        return patterns if len(patterns) == len(found) else None
    texts = _texts(value, names)
    return None if texts is None else [Pattern(text) for text in texts]


def _pattern(value: Value) -> Pattern | None:
    if isinstance(value, Const) and isinstance(value.value, str):
        return Pattern(value.value)
    return value if isinstance(value, Pattern) else None


def inline_flags(pattern: Pattern) -> str:
    """The pattern as one text, for the rare place where it meets patterns from events."""
    return f"(?{pattern.flags}){pattern.pattern}" if pattern.flags else pattern.pattern


def _regex_test(pattern: Pattern) -> Callable[[Any], bool]:
    required = regex.required_text(pattern.pattern, pattern.flags)
    return matching.regex(regex.compiled(pattern.pattern, pattern.flags), required)


def _contains(value: Comparison, names: Names) -> Call:
    parts = _texts(value.right, names)
    if parts is None:
        return Call(f.contains, (value.left, value.right), Type.BOOL)
    call = Call(f.contains_any(parts), (value.left,), Type.BOOL)
    if len(parts) == 1 and names.known(value.left) is Type.STRING:
        return _contains_text(call, "{0}", _braced(repr(parts[0])))
    return call


_COMPARISONS: dict[str, Callable[[Comparison, Names], Call]] = {
    "==": _equality,
    **dict.fromkeys(_ORDER, _order),
    "in": _in,
    "like": _like,
    "ilike": _like,
    "matches": _matches,
    "contains": _contains,
}


# ---------------------------------------------------------------------------- functions


@dataclass(frozen=True, slots=True)
class _Function:
    """How a function of the language is done. `inline` holds for operands of type `of`."""

    function: Callable[..., Any]
    type: Type
    inline: str | None = None
    of: Type = Type.STRING
    precedence: int = ATOM


_TEXT, _NUMBER, _INT, _BOOL = Type.STRING, Type.NUMBER, Type.INT, Type.BOOL
_FUNCTIONS: dict[str, _Function] = {
    "lower": _Function(f.lower, _TEXT, "{0}.lower()"),
    "upper": _Function(f.upper, _TEXT, "{0}.upper()"),
    "trim": _Function(f.trim, _TEXT, "{0}.strip()"),
    "len": _Function(f.length, _INT),
    "substr": _Function(f.substr, _TEXT),
    "split": _Function(f.split, Type.ARRAY, "{0}.split({1})"),
    "starts_with": _Function(f.starts_with, _BOOL, "{0}.startswith({1})"),
    "ends_with": _Function(f.ends_with, _BOOL, "{0}.endswith({1})"),
    "replace": _Function(f.replace, _TEXT),
    "abs": _Function(f.absolute, _NUMBER, "abs({0})", _NUMBER),
    "round": _Function(f.rounded, _NUMBER),
    "floor": _Function(f.floor, _INT),
    "ceil": _Function(f.ceil, _INT),
    "min": _Function(f.smallest, _NUMBER),
    "max": _Function(f.largest, _NUMBER),
    "log": _Function(f.log, _NUMBER),
    "sqrt": _Function(f.sqrt, _NUMBER),
    "hour": _Function(f.hour, _INT),
    "weekday": _Function(f.weekday, _INT),
    "date": _Function(f.date, _TEXT),
    "seconds": _Function(f.seconds, _NUMBER, f"{{0}} / {f.SECOND}", _NUMBER, TERM),
    "minutes": _Function(f.minutes, _NUMBER, f"{{0}} / {f.MINUTE}", _NUMBER, TERM),
    "hours": _Function(f.hours, _NUMBER, f"{{0}} / {f.HOUR}", _NUMBER, TERM),
    "days": _Function(f.days, _NUMBER, f"{{0}} / {f.DAY}", _NUMBER, TERM),
    "int": _Function(f.to_int, _INT),
    "num": _Function(f.to_number, _NUMBER),
    "ip": _Function(f.to_ip, _TEXT),
    "is_private": _Function(f.is_private, _BOOL),
    "haversine_km": _Function(f.haversine_km, _NUMBER),
}


def function_type(value: CallFunction, names: Names) -> Type:
    """What a function surely returns (besides null)."""
    if value.function in _SPECIAL:
        return _SPECIAL[value.function][1]
    known = _FUNCTIONS.get(value.function)
    if known is not None:
        return _result(value, known)
    host = names.host_function(value.function)
    return host.result if host is not None else Type.ANY


def _result(value: CallFunction, known: _Function) -> Type:
    """`abs` of a duration is a duration, `max` of times a time: the checker has worked it out."""
    if known.type is Type.NUMBER and value.type in (Type.TIME, Type.DURATION):
        return value.type
    return known.type


def _function(value: CallFunction, names: Names) -> Call:
    special = _SPECIAL.get(value.function)
    if special is not None:
        return special[0](value, names)
    known = _FUNCTIONS.get(value.function)
    if known is None:
        return _host(value, names)
    kind = _result(value, known)
    call = Call(known.function, value.arguments, kind, precedence=known.precedence)
    if known.inline is None or not all(_fits(names.known(a), known.of) for a in value.arguments):
        return call
    return replace(call, inline=known.inline)


def _fits(kind: Type, wanted: Type) -> bool:
    return kind in COUNTED if wanted is Type.NUMBER else kind is wanted


def _host(value: CallFunction, names: Names) -> Call:
    signature = names.host_function(value.function)
    if signature is None or signature.call is None:
        raise LookupError(f"no function is called `{value.function}`")
    function = f.host_function(
        signature.call, signature.parameters, signature.result, signature.variadic
    )
    return Call(function, value.arguments, signature.result, nullable=True)


def _capture(value: CallFunction, names: Names) -> Call:
    subject, expression, *group = value.arguments
    pattern = _pattern(expression)
    if pattern is None:
        return Call(_fails, value.arguments, Type.STRING)
    compiled = regex.compiled(pattern.pattern, pattern.flags)
    if group and not isinstance(group[0], Const):
        function: Any = partial(matching.capture_group, compiled)
        return Call(function, (subject, group[0]), Type.STRING, nullable=True)
    which: Any = group[0].value if group and isinstance(group[0], Const) else None
    required = regex.required_text(pattern.pattern, pattern.flags)
    try:
        function = matching.capture(compiled, which, required)
    except (KeyError, TypeError):
        function = _fails
    return Call(function, (subject,), Type.STRING, nullable=True)


def _fails(*values: Any) -> Any:
    raise LookupError("there is no such group, or no such expression")


def _cidr(value: CallFunction, names: Names) -> Call:
    subject, *networks = value.arguments
    items: list[str] = []
    for item in networks:
        texts = _texts(item, names)
        if texts is None:
            return Call(f.cidr, value.arguments, Type.BOOL)
        items += texts
    try:
        return Call(f.in_networks(items), (subject,), Type.BOOL)
    except ValueError:  # one of them is no network: every call fails
        return Call(f.cidr, value.arguments, Type.BOOL)


_AS_TEXT: dict[Type, Callable[[Any], str]] = {
    Type.TIME: f.time_to_text,
    Type.DURATION: f.duration_to_text,
}


def _str(value: CallFunction, names: Names) -> Call:
    function = _AS_TEXT.get(value.arguments[0].type, f.to_text)
    return Call(function, value.arguments, Type.STRING)


def _hash(value: CallFunction, names: Names) -> Call:
    return Call(f.hash_of, value.arguments, Type.STRING, strict=False)


def _time(value: CallFunction, names: Names) -> Call:
    already = names.known(value.arguments[0]) is Type.TIME
    return Call(f.same if already else f.to_time, value.arguments, Type.TIME)


_SPECIAL: dict[str, tuple[Callable[[CallFunction, Names], Call], Type]] = {
    "capture": (_capture, Type.STRING),
    "cidr": (_cidr, Type.BOOL),
    "hash": (_hash, Type.STRING),
    "str": (_str, Type.STRING),
    "time": (_time, Type.TIME),
}
