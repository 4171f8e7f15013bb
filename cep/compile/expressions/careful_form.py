"""The careful forms of an expression: code that never raises, made of the methods of `Careful`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from cep.compile.expressions.analysis import LOGIC, Analysis
from cep.compile.expressions.call import Call, is_leaf
from cep.compile.expressions.calls import as_call, choices, is_choice, missing_test
from cep.compile.expressions.code import after, constant_code, none_test
from cep.compile.expressions.env import Env
from cep.compile.expressions.operators import inline_flags
from cep.runtime import functions
from dsl.checked import (
    ArrayOf,
    CallFunction,
    Comparison,
    Conjunction,
    Const,
    Disjunction,
    IsMissing,
    IsNull,
    Local,
    NamedList,
    Negation,
    Pattern,
    Quantified,
    Value,
)

_LONGEST = 80


def said(value: Value) -> str:
    """A value as the rule says it, on one line that is not too long."""
    text = " ".join(value.span.text.split()) or type(value).__name__
    return text if len(text) <= _LONGEST else text[: _LONGEST - 1] + "…"


class CarefulForm:
    """Writes the careful forms of one expression, out of the methods of `Careful`.

    No lambdas, so that the code can stand beside the fast form in a function whose variables then
    stay fast: what must not be evaluated too early stands behind an `if` or an `or`.
    """

    def __init__(self, root: Value, env: Env) -> None:
        self.root = root
        self.env = env
        self.analysis = Analysis(root, env)
        self.locals: dict[str, str] = {}

    def condition(self) -> str:
        before = self._early()
        return after(before, self._answer(self.root))

    def value(self) -> str:
        before = self._early()
        return after(before, self._value(self.root))

    def _early(self) -> list[str]:
        early = self.analysis.early
        found = []
        for part in self.analysis.early_parts:
            name = early.pop(id(part))
            found.append(f"{name} := {self._value(part)}")
            early[id(part)] = name
        return found

    def _answer(self, value: Value) -> str:
        """Code of the value where a condition stands: True, False or None."""
        code = self._value(value)
        if isinstance(value, LOGIC):
            return code
        return f"{self.env.careful}.condition({code})"

    def _value(self, value: Value) -> str:
        """Code of the value; it can stand as an argument, or as an operand of `is`."""
        name = self.analysis.early.get(id(value))
        if name is not None:
            return name
        if isinstance(value, Const):
            return constant_code(value.value, self.env)[0]
        if isinstance(value, Local):
            return f"{self.env.careful}.open({self.locals[value.name]})"
        if is_leaf(value):
            return f"{self.env.careful}.open({self.env.load(value)})"
        for kind, write in self._WRITERS:
            if isinstance(value, kind):
                return write(self, value)
        if isinstance(value, CallFunction) and value.function == "if":
            test, yes, no = value.arguments
            return f"({self._value(yes)} if {self._answer(test)} is True else {self._value(no)})"
        if is_choice(value):
            return self._first_present(choices(value))
        call = as_call(value, self.analysis)
        assert call is not None, f"no code for {type(value).__name__}"
        return self._call(value, call)

    def _call(self, value: Value, call: Call) -> str:
        arguments = ", ".join(map(self._value, call.operands))
        method = "call" if call.strict else "attempt"
        function = self.env.constant(call.function)
        return f"{self.env.careful}.{method}({said(value)!r}, {function}, {arguments})"

    def _comparison(self, value: Comparison) -> str:
        positive = replace(value, op="==") if value.op == "!=" else value
        call = as_call(positive, self.analysis)
        assert call is not None
        code = self._call(value, call)
        return code if positive is value else f"{self.env.careful}.negate({code})"

    def _negation(self, value: Negation) -> str:
        return f"{self.env.careful}.negate({self._answer(value.operand)})"

    def _is_null(self, value: IsNull) -> str:
        return f"({none_test(self._value(value.operand))})"

    def _is_missing(self, value: IsMissing) -> str:
        if is_leaf(value.operand):
            return f"bool({self.env.is_missing(value.operand)})"
        call = missing_test(value.operand)
        return "False" if call is None else self._call(value, call)

    def _combined(self, value: Conjunction | Disjunction) -> str:
        decisive = isinstance(value, Disjunction)
        names = [self.env.temporary() for _ in value.parts]
        parts = zip(names, value.parts, strict=True)
        asked = " or ".join(f"({n} := {self._answer(part)}) is {decisive}" for n, part in parts)
        unknown = " or ".join(f"{name} is None" for name in names)
        return f"({decisive} if {asked} else None if {unknown} else {not decisive})"

    def _quantified(self, value: Quantified) -> str:
        elements = self.env.constant(functions.elements)
        name, variable = self.env.temporary(), self.env.temporary()
        values = f"{said(value.array)!r}, {elements}, {self._value(value.array)}"
        array = f"({name} := {self.env.careful}.call({values}))"
        outside = self.locals
        self.locals = {**outside, value.variable: variable}
        condition = self._answer(value.condition)
        self.locals = outside
        function = self.env.constant(functions.every if value.every else functions.some)
        return f"(None if {array} is None else {function}([{condition} for {variable} in {name}]))"

    def _first_present(self, values: Sequence[Value]) -> str:
        *before, code = map(self._value, values)
        for earlier in reversed(before):
            name = self.env.temporary()
            code = f"({name} if ({name} := {earlier}) is not None else {code})"
        return code

    def _array(self, value: ArrayOf) -> str:
        return "[" + ", ".join(map(self._value, value.items)) + "]"

    def _named_list(self, value: NamedList) -> str:
        return self.env.constant(list(self.env.list_items(value.name)))

    def _pattern(self, value: Pattern) -> str:
        return repr(inline_flags(value))

    _WRITERS: tuple[tuple[Any, Callable[[Any, Any], str]], ...] = (
        (Comparison, _comparison),
        (Negation, _negation),
        (IsNull, _is_null),
        (IsMissing, _is_missing),
        (Conjunction | Disjunction, _combined),
        (Quantified, _quantified),
        (ArrayOf, _array),
        (NamedList, _named_list),
        (Pattern, _pattern),
    )
