"""The words of `-k`: `brute and not (slow or old)` as a question about a text."""

from __future__ import annotations

import re
from collections.abc import Callable

from cep.cli.speech import Problem

Holds = Callable[[str], bool]

_TOKEN = re.compile(r"\s*(?:([()])|([^\s()]+))")
DEEPEST = 50
"""Parentheses and `not`s that may nest."""


def parse_selection(expression: str) -> Holds:
    """The question whether a text contains what the expression says; letters of either case.

    Words stand for themselves; `not` binds tighter than `and`, that tighter than `or`; two words
    side by side must both be there.

    >>> holds = parse_selection("brute and not slow")
    >>> holds("brute_force fires"), holds("brute_force is slow")
    (True, False)
    """
    reader = _Reader(expression)
    holds = reader.alternatives(0)
    if reader.token is not None:
        raise reader.problem()
    return holds


class _Reader:
    """Reads an expression from left to right; `token` is the next one, None at the end."""

    def __init__(self, expression: str) -> None:
        self._expression = expression
        self._tokens = iter(["".join(parts) for parts in _TOKEN.findall(expression)])
        self.token = next(self._tokens, None)

    def _take(self) -> str | None:
        token, self.token = self.token, next(self._tokens, None)
        return token

    def problem(self) -> Problem:
        near = f"at `{self.token}`" if self.token is not None else "at its end"
        return Problem(f"-k {self._expression!r}: something is wrong {near}")

    def alternatives(self, depth: int) -> Holds:
        parts = [self._conjunction(depth)]
        while self.token == "or":
            self._take()
            parts.append(self._conjunction(depth))
        return lambda text: any(part(text) for part in parts)

    def _conjunction(self, depth: int) -> Holds:
        parts = [self._operand(depth)]
        while self.token not in (None, "or", ")"):
            if self.token == "and":
                self._take()
            parts.append(self._operand(depth))
        return lambda text: all(part(text) for part in parts)

    def _operand(self, depth: int) -> Holds:
        if self.token in (None, "and", "or", ")") or depth > DEEPEST:
            raise self.problem()
        token = self._take()
        if token == "not":
            inside = self._operand(depth + 1)
            return lambda text: not inside(text)
        if token == "(":
            group = self.alternatives(depth + 1)
            if self.token != ")":
                raise self.problem()
            self._take()
            return group
        word = (token or "").lower()
        return lambda text: word in text.lower()
