"""The careful way through a condition: three-valued, never raising, counting what fails.

The fast form of a condition raises when an operand is of a type that does not fit, a text cannot be
cast, a number is divided by zero. Then the careful form is evaluated instead. It is made of the
same functions, each called through a `Careful`, which turns a failure into null and counts it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from cep.event import unbox


class Careful:
    """Calls functions for the careful form of a rule's expressions and counts their failures.

    >>> careful = Careful()
    >>> careful.call(int, "x") is None, careful.failures
    (True, 1)
    """

    __slots__ = ("failures",)

    def __init__(self) -> None:
        self.failures = 0

    @staticmethod
    def open(value: Any) -> Any:
        """The value of a field: out of its box when it has one, null when it is missing."""
        return unbox(value)

    def call(self, function: Callable[..., Any], *operands: Any) -> Any:
        """`function(*operands)`; null when an operand is null, or when the function fails."""
        for operand in operands:
            if operand is None:
                return None
        return self.attempt(function, *operands)

    def attempt(self, function: Callable[..., Any], *operands: Any) -> Any:
        """`function(*operands)`, nulls among them; null when the function fails."""
        try:
            return function(*operands)
        except Exception:
            self.failures += 1
            return None

    @staticmethod
    def negate(answer: bool | None) -> bool | None:
        """Three-valued `not`."""
        return None if answer is None else not answer

    @staticmethod
    def condition(value: Any) -> bool | None:
        """A value where a condition stands: only true and false are known."""
        return value if value.__class__ is bool else None
