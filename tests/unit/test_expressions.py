"""The Python that expressions become: as short as hand-written, and safe where it must be."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any

import pytest

from cep.compile.expressions import careful, careful_value, compute, falsity, truth
from cep.event import Odd
from cep.runtime.careful import Careful
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
    IsMissing,
    IsNull,
    KeyValue,
    Local,
    NamedList,
    Negation,
    Pattern,
    Quantified,
    StepTime,
    Value,
)
from dsl.types import Type

TYPES = {"s": Type.STRING, "s2": Type.STRING, "n": Type.NUMBER, "n2": Type.NUMBER, "b": Type.BOOL}


class Names:
    """Fields are attributes of `e`; constants are shown by what they are."""

    careful = "K"

    def __init__(self) -> None:
        self.objects: dict[str, Any] = {}
        self.count = 0

    def load(self, leaf: Value) -> str:
        match leaf:
            case Field():
                return f"e.{leaf.path[0]}"
            case EventTime():
                return "t"
            case StepTime():
                return "a_t"
            case KeyValue():
                return "k"
        raise AssertionError(leaf)

    def is_missing(self, leaf: Value) -> str:
        return f"e.{leaf.path[0]} is UNSET"  # type: ignore[attr-defined]

    def type_of(self, leaf: Value) -> Type:
        if isinstance(leaf, Field):
            return TYPES.get(leaf.path[0], Type.ANY)
        return Type.STRING if isinstance(leaf, KeyValue) else Type.TIME

    def nullable(self, leaf: Value) -> bool:
        return isinstance(leaf, Field)

    def constant(self, obj: Any) -> str:
        name = getattr(obj, "__name__", "c")
        name = name if name.isidentifier() else "c"
        self.objects[name] = obj
        return name

    def temporary(self) -> str:
        self.count += 1
        return f"_{self.count}"

    def list_items(self, name: str) -> Sequence[Any]:
        return ["root", "admin"]

    def host_function(self, name: str) -> FunctionSignature | None:
        def call(value: Any) -> Any:
            return 1 / value

        return FunctionSignature(name, (Type.NUMBER,), Type.NUMBER, call=call)


def field(name: str) -> Field:
    return Field((name,), type=TYPES.get(name, Type.ANY))


def const(value: Any) -> Const:
    kinds = {str: Type.STRING, bool: Type.BOOL, type(None): Type.NULL}
    return Const(value, type=kinds.get(type(value), Type.NUMBER))


def compare(op: str, left: Value, right: Any) -> Comparison:
    right = right if isinstance(right, Value) else const(right)
    return Comparison(op, left, right, type=Type.BOOL)


def call(name: str, *arguments: Value, kind: Type = Type.ANY) -> CallFunction:
    return CallFunction(name, arguments, type=kind)


S, S2, N, N2, B, X, Y = map(field, ("s", "s2", "n", "n2", "b", "x", "y"))
NOW, THEN = EventTime(type=Type.TIME), StepTime("a", type=Type.TIME)
AGE = Arith("-", NOW, THEN, type=Type.DURATION)


@pytest.mark.parametrize(
    ("value", "code"),
    [
        (compare("==", S, "login"), "e.s == 'login'"),
        (compare("!=", S, "login"), "(_1 := e.s) is not None and _1 != 'login'"),
        (compare(">", N, 5), "(_1 := e.n) is not None and _1 > 5"),
        (compare("==", S, KeyValue(0, type=Type.STRING)), "e.s == k"),
        (compare("==", S, S2), "(_1 := e.s) is not None and _1 == e.s2"),
        (compare("<", THEN, NOW), "a_t < t"),
        (
            compare(">", N, N2),
            "(_1 := e.n) is not None and (_2 := e.n2) is not None and _1 > _2",
        ),
        (
            Conjunction((compare(">", N, 5), compare("<", N, 9))),
            "(_1 := e.n) is not None and _1 > 5 and _1 < 9",
        ),
        (
            Disjunction((compare("==", S, "a"), compare("==", S, "b"))),
            "e.s == 'a' or e.s == 'b'",
        ),
        (
            Conjunction((B, Disjunction((compare("==", S, "a"), compare("==", N, 2))))),
            "e.b is True and (e.s == 'a' or e.n == 2)",
        ),
        (Negation(B), "e.b is False"),
        (compare("==", B, False), "e.b is False"),
        (compare("==", X, True), "e.x is True"),
        (compare("==", X, 1), "e.x == 1 and e.x is not True"),
        (compare("==", X, 5), "e.x == 5"),
        (compare("==", X, "a"), "e.x == 'a'"),
        (
            compare(">", X, 5),
            "(_1 := e.x) is not None and (_1 > 5 if _1.__class__ in c else greater(_1, 5))",
        ),
        (compare("in", S, ArrayOf((const("a"), const("b")))), "e.s in {'a', 'b'}"),
        (compare("in", N, ArrayOf((const(1), const(2.5)))), "e.n in {1, 2.5}"),
        (compare("in", S, NamedList("admins")), "e.s in {'root', 'admin'}"),
        (
            Negation(compare("in", S, ArrayOf((const("a"),)))),
            "(_1 := e.s) is not None and _1 not in {'a'}",
        ),
        (compare("in", S, ArrayOf((const("{}"),))), "e.s in {'{}'}"),
        (compare("like", S, "a*"), "(_1 := e.s) is not None and _1.startswith('a')"),
        (compare("like", S, "*a"), "(_1 := e.s) is not None and _1.endswith('a')"),
        (compare("ilike", S, "*A*"), "(_1 := e.s) is not None and 'a' in _1.lower()"),
        (compare("contains", S, "a"), "(_1 := e.s) is not None and 'a' in _1"),
        (compare("matches", S, Pattern(r"a\.b")), "(_1 := e.s) is not None and 'a.b' in _1"),
        (compare("matches", S, Pattern("a+")), "(_1 := e.s) is not None and test(_1)"),
        (IsNull(S), "e.s is None"),
        (Negation(IsNull(S)), "e.s is not None"),
        (IsMissing(S), "(e.s is UNSET)"),
        (
            Conjunction((Negation(IsNull(N)), compare(">", N, 1))),
            "e.n is not None and e.n > 1",
        ),
        (
            compare(">", Arith("/", N, call("hours", AGE, kind=Type.NUMBER)), 900),
            "(_1 := e.n) is not None and _1 / ((t - a_t) / 3600000000) > 900",
        ),
        (
            compare("==", call("lower", Coalesce(S, const("X"), type=Type.STRING)), "x"),
            "(_2 := _1 if (_1 := e.s) is not None else 'X') is not None and _2.lower() == 'x'",
        ),
        (
            Quantified(False, X, "v", compare("==", Local("v"), "a")),
            "(_1 := e.x) is not None and any(_2 == 'a' for _2 in elements(_1))",
        ),
        (
            Negation(Conjunction((compare("==", S, "a"), compare("<=", N, 3)))),
            "(_1 := e.s) is not None and _1 != 'a' or (_2 := e.n) is not None and not _2 <= 3",
        ),
    ],
)
def test_conditions_read_as_written_by_hand(value: Value, code: str) -> None:
    assert truth(value, Names()) == code


def test_falsity_pushes_not_down() -> None:
    both = Conjunction((compare("==", S, "a"), compare(">", N, 3)))
    assert falsity(both, Names()) == (
        "(_1 := e.s) is not None and _1 != 'a' or (_2 := e.n) is not None and not _2 > 3"
    )


def test_values_are_null_when_an_operand_is() -> None:
    assert compute(S, Names()) == "e.s"
    total = Arith("*", Arith("+", N, N2, type=Type.NUMBER), const(2), type=Type.NUMBER)
    assert compute(total, Names()) == (
        "(_1 + _2) * 2 if (_1 := e.n) is not None and (_2 := e.n2) is not None else None"
    )


def run(code: str, names: Names, **fields: Any) -> tuple[Any, int]:
    event = SimpleNamespace(**{**dict.fromkeys(("s", "s2", "n", "n2", "b", "x", "y")), **fields})
    space: dict[str, Any] = dict(names.objects)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        exec(f"def f(e, K, t, a_t, k):\n    return {code}", space)
    counter = Careful()
    return space["f"](event, counter, 7_200_000_000, 0, "bob"), counter.failures


def answer(value: Value, **fields: Any) -> tuple[Any, int]:
    names = Names()
    return run(careful(value, names), names, **fields)


@pytest.mark.parametrize(
    ("value", "fields", "wanted", "failures"),
    [
        (compare(">", N, 5), {"n": Odd("9")}, None, 1),
        (compare(">", N, 5), {"n": 9}, True, 0),
        (compare("==", S, "9"), {"s": Odd(9)}, False, 0),
        (compare("==", X, 1), {"x": True}, False, 0),
        (compare("in", X, ArrayOf((const(1), const("a")))), {"x": True}, False, 0),
        (compare("in", X, ArrayOf((const(1), const("a")))), {"x": 1.0}, True, 0),
        (compare("in", X, ArrayOf((const(1), const("a")))), {"x": ["a"]}, False, 0),
        (compare("in", X, Y), {"x": 1, "y": [True, 1]}, True, 0),
        (compare("in", X, Y), {"x": 1, "y": "1"}, None, 1),
        (compare("in", X, Y), {"x": 1}, None, 0),
        (compare(">", Arith("/", N, N2), 1), {"n": 1, "n2": 0}, None, 1),
        (
            Disjunction((compare(">", Arith("/", N, N2), 1), compare("==", S, "a"))),
            {"n": 1, "n2": 0, "s": "a"},
            True,
            1,
        ),
        (
            Conjunction((compare("==", S, "b"), compare(">", Arith("/", N, N2), 1))),
            {"n": 1, "n2": 0, "s": "a"},
            False,
            0,
        ),
        (compare(">", call("twice", N), 1), {"n": 0}, None, 1),
        (compare("==", call("twice", N), 0.5), {"n": 2}, True, 0),
        (compare("==", NOW, const(7_200_000_000)), {}, False, 0),
        (compare("<", NOW, const(8_000_000_000)), {}, None, 1),
        (call("if", compare(">", N, 1), const(True), const(False)), {}, False, 0),
        (Negation(call("int", S)), {"s": "7"}, None, 0),
        (compare("like", X, "*"), {"x": 5}, None, 1),
        (compare("like", S, ArrayOf((const("a*"), const("b*")))), {"s": "bc"}, True, 0),
        (compare("like", S, S2), {"s": "abc", "s2": "a*"}, True, 0),
        (compare("matches", S, ArrayOf((Pattern("^a"), Pattern("C$", "i")))), {"s": "bc"}, True, 0),
        (compare("contains", X, "a"), {"x": ["a"]}, True, 0),
        (
            Quantified(True, X, "v", compare(">", Local("v"), 1)),
            {"x": [2, None, 3]},
            None,
            0,
        ),
        (Quantified(False, X, "v", compare(">", Local("v"), 1)), {"x": "abc"}, None, 1),
    ],
)
def test_the_careful_form_knows_three_answers(
    value: Value, fields: dict[str, Any], wanted: Any, failures: int
) -> None:
    assert answer(value, **fields) == (wanted, failures)


def test_durations_stay_whole_microseconds() -> None:
    half = Arith("*", AGE, const(0.33333333333), type=Type.DURATION)
    for form in (compute, careful_value):
        names = Names()
        got, _ = run(form(half, names), names)
        assert got == 2_400_000_000
        assert type(got) is int


@pytest.mark.parametrize(
    "text", ["'); import os; ('", '"""', "{x}", "\\", "\ud800", "\n", "\x00", "{{}}", "%s"]
)
@pytest.mark.parametrize("op", ["==", "in", "like", "ilike", "contains", "matches"])
def test_no_text_becomes_code(op: str, text: str) -> None:
    right: Value = ArrayOf((const(text),)) if op == "in" else const(text)
    if op == "matches":
        right = Pattern(text.replace("\\", r"\\").replace("\ud800", "").replace("(", r"\("))
        right = Pattern(right.pattern.replace(")", r"\)").replace("{", r"\{"))
    for form in (truth, falsity, compute, careful):
        names = Names()
        got, _ = run(form(compare(op, S, right), names), names, s=text)
        assert bool(got) is (form is not falsity) or op == "matches"


def test_absurd_constants_are_not_written_out() -> None:
    for value in (10**5000, float("inf"), -(10**400)):
        names = Names()
        got, _ = run(truth(compare("==", X, value), names), names, x=value)
        assert got is True
