"""Random expressions over random events: fast form, careful form and a tiny evaluator agree.

The evaluator reads the definitions of the language one by one and shares nothing with the compiler.
"""

from __future__ import annotations

import fnmatch
import math
import os
import re
import warnings
from types import SimpleNamespace
from typing import Any

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from cep.compile.expressions import careful, careful_value, compute, falsity, truth
from cep.event import Odd, unbox
from cep.runtime.careful import Careful
from cep.runtime.functions import hash_of
from dsl.checked import (
    Arith,
    ArrayOf,
    CallFunction,
    Coalesce,
    Comparison,
    Conjunction,
    Const,
    Disjunction,
    EventTime,
    Field,
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

LISTS: dict[str, list[Any]] = {"names": ["bob", "ann", "a*"], "mixed": [1, True, "x", None, 2.5]}
TYPES = {
    "any1": Type.ANY,
    "any2": Type.ANY,
    "text1": Type.STRING,
    "text2": Type.STRING,
    "num1": Type.NUMBER,
    "num2": Type.NUMBER,
    "flag": Type.BOOL,
    "sure": Type.NUMBER,
}
FITS: dict[Type, tuple[type, ...]] = {
    Type.STRING: (str,),
    Type.NUMBER: (int, float),
    Type.BOOL: (bool,),
}


class FieldEnv:
    """Fields are attributes of `e`; `sure` is never null."""

    careful = "K"

    def __init__(self) -> None:
        self.names: dict[str, object] = {}
        self.count = 0

    def load(self, leaf: Value) -> str:
        if isinstance(leaf, EventTime):
            return "e.t"
        assert isinstance(leaf, Field)
        name = leaf.path[0]
        return f"(None if e.{name} is UNSET else e.{name})" if name == "any2" else f"e.{name}"

    def is_missing(self, leaf: Value) -> str:
        assert isinstance(leaf, Field)
        return f"e.{leaf.path[0]} is UNSET"

    def type_of(self, leaf: Value) -> Type:
        return Type.TIME if isinstance(leaf, EventTime) else TYPES[leaf.path[0]]  # type: ignore[attr-defined]

    def nullable(self, leaf: Value) -> bool:
        return isinstance(leaf, Field) and leaf.path[0] != "sure"

    def constant(self, obj: object) -> str:
        name = f"c{len(self.names)}"
        self.names[name] = obj
        return name

    def temporary(self) -> str:
        self.count += 1
        return f"t{self.count}"

    def list_items(self, name: str) -> list[Any]:
        return LISTS[name]

    def host_function(self, name: str) -> FunctionSignature | None:
        if name != "twice":
            return None
        return FunctionSignature("twice", (Type.NUMBER,), Type.NUMBER, call=lambda x: x * 2)


# ---------------------------------------------------------------------------- the evaluator


class Failure(Exception):
    """Something that makes a value null."""


def is_number(value: Any) -> bool:
    return type(value) in (int, float)


def need(holds: bool) -> None:
    if not holds:
        raise Failure


def evaluate(value: Value, event: Any, variables: dict[str, Any]) -> Any:
    """The value by the letter of the language; failures are null."""
    try:
        return rules(value, event, variables)
    except (Failure, ArithmeticError, LookupError, ValueError):
        return None


def ask(value: Value, event: Any, variables: dict[str, Any]) -> bool | None:
    found = evaluate(value, event, variables)
    return found if type(found) is bool else None


def rules(value: Value, event: Any, variables: dict[str, Any]) -> Any:
    def get(part: Value) -> Any:
        return evaluate(part, event, variables)

    match value:
        case Const():
            return value.value
        case EventTime():
            return event.t
        case Field():
            return unbox(getattr(event, value.path[0]))
        case Pattern():
            return value
        case Local():
            return variables[value.name]
        case NamedList():
            return LISTS[value.name]
        case ArrayOf():
            return [get(item) for item in value.items]
        case IsNull():
            return get(value.operand) is None
        case IsMissing(operand=Field() as leaf):
            return getattr(event, leaf.path[0]) is msgspec.UNSET
        case IsMissing(operand=GetField() as part):
            holder = get(part.value)
            return type(holder) is not dict or part.name not in holder
        case IsMissing():
            return False
        case CallFunction(function="hash"):
            return hash_of(*map(get, value.arguments))
        case Negation():
            answer = ask(value.operand, event, variables)
            return None if answer is None else not answer
        case Conjunction():
            answers = [ask(part, event, variables) for part in value.parts]
            return False if False in answers else None if None in answers else True
        case Disjunction():
            answers = [ask(part, event, variables) for part in value.parts]
            return True if True in answers else None if None in answers else False
        case Coalesce():
            left = get(value.left)
            return get(value.right) if left is None else left
        case CallFunction(function="coalesce"):
            return next((v for v in map(get, value.arguments) if v is not None), None)
        case CallFunction(function="if"):
            test, yes, no = value.arguments
            return get(yes) if ask(test, event, variables) is True else get(no)
        case Quantified():
            array = get(value.array)
            if array is None:
                return None
            need(type(array) is list)
            answers = [
                ask(value.condition, event, {**variables, value.variable: item}) for item in array
            ]
            end = not value.every
            return end if end in answers else None if None in answers else not end
    return strict(value, [get(part) for part in value.operands()])


def strict(value: Value, operands: list[Any]) -> Any:
    if None in operands and any(operand is None for operand in operands):
        return None
    match value:
        case Minus():
            need(is_number(operands[0]))
            return -operands[0]
        case Arith():
            left, right = operands
            need(is_number(left) and is_number(right))
            if value.op == "+":
                return left + right
            if value.op == "-":
                return left - right
            if value.op == "*":
                return left * right
            return left / right if value.op == "/" else left % right
        case GetField():
            return operands[0].get(value.name) if type(operands[0]) is dict else None
        case GetIndex():
            return index(*operands)
        case CallFunction():
            return FUNCTIONS[value.function](*operands)
        case Comparison():
            return compare(value, operands)
    raise AssertionError(value)


def index(array: Any, at: Any) -> Any:
    if type(array) is dict:
        need(type(at) is str)
        return array.get(at)
    need(type(array) is list and is_number(at) and at == int(at))
    return array[int(at)] if -len(array) <= at < len(array) else None


def lower(text: Any) -> str:
    need(type(text) is str)
    return str(text.lower())


def length(value: Any) -> int:
    need(type(value) in (str, list, dict))
    return len(value)


def twice(value: Any) -> Any:
    need(is_number(value))
    return value * 2


def captured(text: Any, *_: Any) -> str | None:
    need(type(text) is str)
    found = re.search("b(.)", text, re.DOTALL)
    return found[1] if found else None


FUNCTIONS = {
    "lower": lower,
    "len": length,
    "twice": twice,
    "capture": captured,
    "hour": lambda t: t // 3_600_000_000 % 24,
}


def same(left: Any, right: Any) -> bool:
    if is_number(left) and is_number(right):
        return bool(left == right)
    if type(left) is not type(right):
        return False
    if type(left) is list:
        return len(left) == len(right) and all(map(same, left, right))
    return bool(left == right)


def compare(value: Comparison, operands: list[Any]) -> bool:
    left, right = operands if len(operands) == 2 else (operands[0], None)
    if value.op in ("==", "!="):
        return same(left, right) is (value.op == "==")
    if value.op in ("<", "<=", ">", ">="):
        need((is_number(left) and is_number(right)) or (type(left) is type(right) is str))
        return bool(
            left < right
            if value.op == "<"
            else left <= right
            if value.op == "<="
            else left > right
            if value.op == ">"
            else left >= right
        )
    if value.op == "in":
        need(type(right) is list)
        return any(item is not None and same(left, item) for item in right)
    parts = [p for p in (right if type(right) is list else [right]) if p is not None]
    if value.op == "contains" and type(left) is list:
        return any(same(item, part) for item in left for part in parts if item is not None)
    if not parts and value.op != "contains":
        return False
    need(type(left) is str)
    fits = [part for part in parts if type(part) in (str, Pattern)]
    found = any(text_test(value.op, left, part) for part in fits)
    need(found or len(fits) == len(parts))
    return found


def text_test(op: str, text: str, part: Any) -> bool:
    if op == "contains":
        return part in text
    if op == "matches":
        return re.search("b.", text, re.DOTALL) is not None
    if op == "ilike":
        text, part = text.lower(), part.lower()
    return fnmatch.fnmatchcase(text, part.replace("[", "[[]"))


# ---------------------------------------------------------------------------- what is drawn

texts = st.sampled_from(["", "a", "bob", "Bob", "ann", "abc", "*", "x", "b\nc"])
numbers = st.one_of(st.sampled_from([0, 1, 2, 1.0, 0.0, -3, 2.5]), st.integers(-5, 5))
scalars = st.one_of(texts, numbers, st.booleans())
anything = st.one_of(
    st.none(),
    scalars,
    st.lists(st.one_of(scalars, st.none()), max_size=3),
    st.dictionaries(st.sampled_from(["k", "x"]), scalars, max_size=2),
)


@st.composite
def events(draw: st.DrawFn) -> Any:
    made: dict[str, Any] = {"t": draw(st.integers(0, 10**14))}
    for name, kind in TYPES.items():
        fitting = {Type.STRING: texts, Type.NUMBER: numbers, Type.BOOL: st.booleans()}
        value = draw(st.one_of(anything, fitting.get(kind, anything)))
        if kind in FITS and value is not None and type(value) not in FITS[kind]:
            value = Odd(value)
        made[name] = value
    if draw(st.booleans()):
        made["any2"] = msgspec.UNSET
    if made["sure"] is None:
        made["sure"] = 1
    return SimpleNamespace(**made)


leaves = st.one_of(
    st.sampled_from([Field((name,), type=kind) for name, kind in TYPES.items()]),
    scalars.map(
        lambda v: Const(
            v,
            type=Type.BOOL if type(v) is bool else Type.STRING if type(v) is str else Type.NUMBER,
        )
    ),
    st.just(Const(None, type=Type.NULL)),
    st.just(Local("v")),
)
patterns = st.one_of(
    st.sampled_from(["a*", "*b", "*o*", "b?b", "bob", "*", "a*c", "?", ""]).map(
        lambda p: Const(p, type=Type.STRING)
    ),
    st.just(NamedList("names")),
)
constant_arrays = st.lists(st.one_of(scalars, st.none()), min_size=0, max_size=10).map(
    lambda items: ArrayOf(tuple(Const(item) for item in items), type=Type.ARRAY)
)


def grown(inner: st.SearchStrategy[Value]) -> st.SearchStrategy[Value]:
    some = st.lists(inner, min_size=1, max_size=3).map(tuple)
    arrays = st.one_of(
        constant_arrays,
        st.sampled_from([NamedList("names"), NamedList("mixed")]),
        some.map(lambda items: ArrayOf(items, type=Type.ARRAY)),
        inner,
    )
    ops = st.sampled_from(["==", "!=", "<", "<=", ">", ">="])
    return st.one_of(
        st.builds(Comparison, ops, inner, inner),
        st.builds(Comparison, st.just("in"), inner, arrays),
        st.builds(Comparison, st.sampled_from(["like", "ilike"]), inner, patterns),
        st.builds(Comparison, st.just("contains"), inner, st.one_of(patterns, inner)),
        st.builds(Comparison, st.just("matches"), inner, st.just(Pattern("b.", "s"))),
        st.builds(Negation, inner),
        st.builds(Conjunction, some),
        st.builds(Disjunction, some),
        st.builds(IsNull, inner),
        st.builds(IsMissing, st.just(Field(("any2",)))),
        st.builds(lambda x: IsMissing(GetField(x, "k")), inner),
        st.builds(CallFunction, st.just("hash"), some),
        st.builds(Arith, st.sampled_from("+-*/%"), inner, inner),
        st.builds(Minus, inner),
        st.builds(Coalesce, inner, inner),
        st.builds(CallFunction, st.just("coalesce"), some),
        st.builds(CallFunction, st.just("if"), st.tuples(inner, inner, inner)),
        st.builds(CallFunction, st.sampled_from(["lower", "len", "twice"]), st.tuples(inner)),
        st.builds(lambda x: CallFunction("capture", (x, Pattern("b(.)", "s"))), inner),
        st.just(CallFunction("hour", (EventTime(type=Type.TIME),))),
        st.builds(GetField, inner, st.sampled_from(["k", "x"])),
        st.builds(GetIndex, inner, inner),
        st.builds(Quantified, st.booleans(), arrays, st.just("v"), inner),
    )


bodies = st.recursive(leaves, grown, max_leaves=12)
expressions = bodies.map(
    lambda body: (
        Quantified(False, ArrayOf((Const(1), Const("bob"))), "v", body)
        if any(isinstance(part, Local) for part in body.walk())
        else body
    )
)


def run(code: str, env: FieldEnv, event: Any) -> Any:
    """What the code gives inside a function, as the generated module holds it."""
    names: dict[str, Any] = {**env.names, "UNSET": msgspec.UNSET}
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        exec(f"def f(e, K):\n    return {code}", names)
    return names["f"](event, Careful())


def alike(left: Any, right: Any) -> bool:
    if isinstance(left, float) and isinstance(right, float) and math.isnan(left):
        return math.isnan(right)
    if type(left) is list and type(right) is list:
        return len(left) == len(right) and all(map(alike, left, right))
    return type(left) is type(right) and left == right


def opened(value: Any) -> Any:
    value = unbox(value)
    return [opened(item) for item in value] if type(value) is list else value


def fast(code: str, env: FieldEnv, event: Any) -> Any:
    """What the fast form gives; `RAISED` when it leaves the answer to the careful form."""
    try:
        return opened(run(code, env, event))
    except NameError:
        raise
    except Exception:
        return RAISED


RAISED = object()
EXAMPLES = int(os.environ.get("CEP_EXAMPLES", "100"))


@settings(max_examples=EXAMPLES, deadline=None, suppress_health_check=list(HealthCheck))
@given(expressions, st.lists(events(), min_size=1, max_size=4))
def test_all_forms_agree(expression: Value, some: list[Any]) -> None:
    for event in some:
        wanted = evaluate(expression, event, {})
        answer = wanted if type(wanted) is bool else None
        env = FieldEnv()
        assert run(careful(expression, env), env, event) is answer
        assert alike(run(careful_value(expression, env), env, event), wanted)
        got = fast(compute(expression, env), env, event)
        assert got is RAISED or alike(got, wanted)
        for form, result in ((truth, answer is True), (falsity, answer is False)):
            got = fast(form(expression, env), env, event)
            assert got is RAISED or bool(got) is result


@pytest.mark.parametrize("form", [truth, falsity, compute, careful, careful_value])
def test_code_is_legal_however_deep(form: Any) -> None:
    field = Field(("num1",), type=Type.NUMBER)
    deep: Value = Comparison(">", field, Const(1, type=Type.NUMBER), type=Type.BOOL)
    for i in range(300):
        deep = (Conjunction if i % 2 else Disjunction)((deep, deep_part(i)), type=Type.BOOL)
    env = FieldEnv()
    event = SimpleNamespace(num1=5, flag=True)
    got = run(form(deep, env), env, event)
    assert bool(got) is (form is not falsity)
    total: Value = field
    for _ in range(300):
        total = CallFunction(
            "abs", (Arith("+", Minus(total), field, type=Type.NUMBER),), type=Type.NUMBER
        )
    code = compute(total, env)
    assert run(code, env, event) in (0, 5)


def deep_part(i: int) -> Value:
    return Field(("flag",), type=Type.BOOL) if i % 2 else Const(False, type=Type.BOOL)
