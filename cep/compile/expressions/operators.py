"""Arithmetic and comparisons as calls.

In comes an `Arith` or `Comparison`, out comes its `Call`. What may stand in place of the function
depends on what is known of the operands: `x > 5` as it stands for a number, with a look at the
class of `x` where nothing is known. Constants on the right of `in`, `like`, `matches` and
`contains` go into the function, or into the code, here.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from cep.compile.expressions.call import (
    AND,
    ATOM,
    COMPARE,
    COUNTED,
    NUMERIC,
    SUM,
    TERM,
    Call,
    Names,
    Scalar,
    boolean_or_bare,
)
from cep.runtime import functions as f
from cep.runtime import matching
from dsl import regex
from dsl.checked import Arith, ArrayOf, Comparison, Const, Minus, NamedList, Pattern, Value
from dsl.types import Type

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


def arith(value: Arith, names: Names) -> Call:
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


def constant_texts(value: Value, names: Names) -> list[str] | None:
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
    patterns = constant_texts(value.right, names)
    if patterns is None:
        function = matching.ilike if ignore_case else matching.like
        return Call(function, (value.left, value.right), Type.BOOL)
    test = matching.wildcards(patterns, ignore_case) if patterns else _nothing
    call = Call(test, (value.left,), Type.BOOL)
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
        found = [constant_pattern(item) for item in value.items]
        patterns = [pattern for pattern in found if pattern is not None]
        return patterns if len(patterns) == len(found) else None
    texts = constant_texts(value, names)
    return None if texts is None else [Pattern(text) for text in texts]


def constant_pattern(value: Value) -> Pattern | None:
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
    parts = constant_texts(value.right, names)
    if parts is None:
        return Call(f.contains, (value.left, value.right), Type.BOOL)
    call = Call(matching.contains_any(parts), (value.left,), Type.BOOL)
    if len(parts) == 1 and names.known(value.left) is Type.STRING:
        return _contains_text(call, "{0}", _braced(repr(parts[0])))
    return call


COMPARISONS: dict[str, Callable[[Comparison, Names], Call]] = {
    "==": _equality,
    **dict.fromkeys(_ORDER, _order),
    "in": _in,
    "like": _like,
    "ilike": _like,
    "matches": _matches,
    "contains": _contains,
}
