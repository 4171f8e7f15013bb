"""The functions of the language as calls.

In comes a `CallFunction`, out comes its `Call`: the Python function, or, where the types of the
arguments are known, a method in its place. Functions with constant arguments (`capture`, `cidr`)
are prepared here, once; a host's functions are wrapped so that types are checked on both ways.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from cep.compile.expressions.call import ATOM, COUNTED, TERM, Call, Names
from cep.compile.expressions.operators import constant_pattern, constant_texts
from cep.runtime import functions as f
from cep.runtime import matching
from dsl import regex
from dsl.checked import CallFunction, Const
from dsl.types import Type


@dataclass(frozen=True, slots=True)
class _Function:
    """How a function of the language is done. `inline` holds for operands of type `of`."""

    function: Callable[..., Any]
    type: Type
    inline: str | None = None
    of: Type = Type.STRING
    precedence: int = ATOM


_TEXT, _NUMBER, _INT, _BOOL = Type.STRING, Type.NUMBER, Type.INT, Type.BOOL
FUNCTIONS: dict[str, _Function] = {
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
    "format_time": _Function(f.format_time, _TEXT),
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
    if value.function in SPECIAL:
        return SPECIAL[value.function][1]
    known = FUNCTIONS.get(value.function)
    if known is not None:
        return _result(value, known)
    host = names.host_function(value.function)
    return host.result if host is not None else Type.ANY


def _result(value: CallFunction, known: _Function) -> Type:
    """`abs` of a duration is a duration, `max` of times a time: the checker has worked it out."""
    if known.type is Type.NUMBER and value.type in (Type.TIME, Type.DURATION):
        return value.type
    return known.type


def function_call(value: CallFunction, names: Names) -> Call:
    special = SPECIAL.get(value.function)
    if special is not None:
        return special[0](value, names)
    known = FUNCTIONS.get(value.function)
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
    pattern = constant_pattern(expression)
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
        texts = constant_texts(item, names)
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


def _concat(value: CallFunction, names: Names) -> Call:
    as_text = tuple(_AS_TEXT.get(one.type, f.to_text) for one in value.arguments)
    return Call(partial(f.concat, as_text), value.arguments, Type.STRING)


def _hash(value: CallFunction, names: Names) -> Call:
    return Call(f.hash_of, value.arguments, Type.STRING, strict=False)


def _time(value: CallFunction, names: Names) -> Call:
    already = names.known(value.arguments[0]) is Type.TIME
    return Call(f.same if already else f.to_time, value.arguments, Type.TIME)


SPECIAL: dict[str, tuple[Callable[[CallFunction, Names], Call], Type]] = {
    "capture": (_capture, Type.STRING),
    "cidr": (_cidr, Type.BOOL),
    "concat": (_concat, Type.STRING),
    "hash": (_hash, Type.STRING),
    "str": (_str, Type.STRING),
    "time": (_time, Type.TIME),
}
