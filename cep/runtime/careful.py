"""The careful way through a condition: three-valued, never raising, counting what fails.

The fast form of a condition raises when an operand is of a type that does not fit, a text cannot be
cast, a number is divided by zero. Then the careful form is evaluated instead. It is made of the
same functions, each called through a `Careful`, which turns a failure into null, counts it and
keeps the story of the first.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from typing import Any

from cep.event import unbox


class Careful:
    """Calls functions for the careful form of a rule's expressions and counts their failures.

    `said` is what the rule says there.

    >>> careful = Careful()
    >>> careful.call("int(code)", int, "x") is None, careful.failures
    (True, 1)
    >>> careful.first
    '`int(code)` of "x": invalid literal for int() with base 10: \'x\''
    """

    __slots__ = ("failures", "first")

    def __init__(self) -> None:
        self.failures = 0
        self.first: str | None = None

    def failed(self, said: str, values: Iterable[Any] = (), reason: object = "") -> None:
        """Counts a failure."""
        self.failures += 1
        if self.first is None:
            self.first = _story(said, values, str(reason))

    @staticmethod
    def open(value: Any) -> Any:
        """The value of a field: out of its box when it has one, null when it is missing."""
        return unbox(value)

    def call(self, said: str, function: Callable[..., Any], *operands: Any) -> Any:
        """`function(*operands)`; null when an operand is null, or when the function fails."""
        for operand in operands:
            if operand is None:
                return None
        return self.attempt(said, function, *operands)

    def attempt(self, said: str, function: Callable[..., Any], *operands: Any) -> Any:
        """`function(*operands)`, nulls among them; null when the function fails."""
        try:
            return function(*operands)
        except Exception as error:
            self.failed(said, operands, error)
            return None

    @staticmethod
    def negate(answer: bool | None) -> bool | None:
        """Three-valued `not`."""
        return None if answer is None else not answer

    @staticmethod
    def condition(value: Any) -> bool | None:
        """A value where a condition stands: only true and false are known."""
        return value if value.__class__ is bool else None


_LONGEST = 60
"""Most characters that are shown of a value, and of a reason."""


def _story(said: str, values: Iterable[Any], reason: str) -> str:
    """What failed, with which values, and why."""
    plain = [_shown(value) for value in values if value.__class__ in _PLAIN]
    of = f" of {', '.join(plain)}" if plain else ""
    why = f": {_cut(' '.join(reason.split()))}" if reason else ""
    return f"`{said}`{of}{why}"


_PLAIN = frozenset({str, int, float, bool, list, dict})


def _shown(value: Any) -> str:
    try:
        return _cut(json.dumps(value, ensure_ascii=False))
    except (TypeError, ValueError, RecursionError):
        return "a value"


def _cut(text: str) -> str:
    return text if len(text) <= _LONGEST else text[: _LONGEST - 1] + "…"
