"""Pieces of Python text: literals, parentheses, conditional expressions."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence

from cep.compile.expressions.call import ATOM, UNARY, Scalar
from cep.compile.expressions.env import Env


def constant_code(value: Scalar, env: Env) -> tuple[str, int]:
    """A literal, or the name of a constant where a literal could be misread or would be long."""
    if isinstance(value, float) and not math.isfinite(value):
        return env.constant(value), ATOM
    if isinstance(value, int) and value.bit_length() > 256:
        return env.constant(value), ATOM
    negative = isinstance(value, int | float) and not isinstance(value, bool) and value < 0
    return repr(value), UNARY if negative else ATOM


NAME = re.compile(r"[A-Za-z_]\w*")
_LITERAL = re.compile(r"""-?\d[\w.+-]*|'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*\"""")
SIMPLE = re.compile(r"[A-Za-z_]\w*(?:\.\w+|\[\w+\])*|\d+")


def bound(code: str, precedence: int, needed: int) -> str:
    """The code, in parentheses unless it binds as tightly as needed."""
    return code if precedence >= needed else f"({code})"


def none_test(code: str, positive: bool = True) -> str:
    """Whether a value is null. Python warns of a literal before `is`."""
    if _LITERAL.fullmatch(code):
        return str(not positive)
    return f"{code} is None" if positive else f"{code} is not None"


_PIECE = re.compile(r"""'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*"|.""", re.DOTALL)


def enclosed(code: str) -> bool:
    """Whether the code stands in parentheses as a whole.

    >>> enclosed("(a)"), enclosed("(a) + (b)"), enclosed("(')')")
    (True, False, True)
    """
    depth = 0
    pieces = _PIECE.findall(code)
    for at, piece in enumerate(pieces, 1):
        depth += (piece == "(") - (piece == ")")
        if depth == 0:
            return at == len(pieces) and pieces[0] == "("
    return False


def ternary(yes: str, condition: str, no: str) -> str:
    """`yes if condition else no`, with the parentheses that this needs."""
    if (" if " in yes or ":=" in yes) and not enclosed(yes):
        yes = f"({yes})"
    if " if " in condition and not enclosed(condition):
        condition = f"({condition})"
    return f"{yes} if {condition} else {no}"


def after(before: Sequence[str], code: str) -> str:
    """The code, evaluated after some assignments."""
    if not before:
        return code
    return "(" + ", ".join([*(f"({b})" for b in before), f"({code})"]) + ")[-1]"
