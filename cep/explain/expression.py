"""A checked expression as text: as it was written, or rebuilt where the planner has made it."""

from __future__ import annotations

import json

from cep.explain.duration import duration
from dsl import checked
from dsl.checked import Value
from dsl.types import Type


def shown(value: Value) -> str:
    """The expression on one line.

    >>> shown(checked.Comparison("==", checked.Field(("a", "b")), checked.Const("x")))
    'a.b == "x"'
    """
    return " ".join(value.span.text.split()) or _rebuilt(value)


def _rebuilt(value: Value) -> str:
    match value:
        case checked.Const():
            return _constant(value)
        case checked.Field(path=path):
            return ".".join(path)
        case checked.EventTime():
            return "time"
        case checked.StepField(step=step, path=path):
            return ".".join((step, *path))
        case checked.StepTime(step=step):
            return f"{step}.time"
        case checked.NamedList(name=name) | checked.Local(name=name):
            return name
        case checked.ArrayOf(items=items):
            return f"[{', '.join(map(shown, items))}]"
        case checked.Comparison(op=op) | checked.Arith(op=op):
            return f"{_inner(value.left)} {op} {_inner(value.right)}"
        case checked.Negation(operand=operand):
            return f"not {_inner(operand)}"
        case checked.Conjunction(parts=parts):
            return " and ".join(map(_inner, parts))
        case checked.Disjunction(parts=parts):
            return " or ".join(map(_inner, parts))
        case checked.CallFunction(function=function, arguments=arguments):
            return f"{function}({', '.join(map(shown, arguments))})"
        case _:
            return f"{type(value).__name__}({', '.join(map(shown, value.operands()))})"


def _inner(value: Value) -> str:
    """An operand, in parentheses if it has operands of its own."""
    simple = isinstance(value, checked.CallFunction | checked.ArrayOf)
    return shown(value) if simple or not any(value.operands()) else f"({shown(value)})"


def _constant(constant: checked.Const) -> str:
    if constant.type is Type.DURATION and isinstance(constant.value, int):
        return duration(constant.value)
    return json.dumps(constant.value, ensure_ascii=False)
