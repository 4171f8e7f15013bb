"""The types that the checker infers. They are few: the language does not coerce.

`time` and `duration` are integers of microseconds at run time and differ from numbers only in what
may be done with them and in how they are printed. `any` is what nothing is known of.
"""

from __future__ import annotations

from enum import StrEnum


class Type(StrEnum):
    """The type of an expression or a field."""

    ANY = "any"
    NULL = "null"
    BOOL = "bool"
    INT = "int"
    NUMBER = "number"
    STRING = "string"
    TIME = "time"
    DURATION = "duration"
    ARRAY = "array"
    OBJECT = "object"
    REGEX = "regex"

    @property
    def is_numeric(self) -> bool:
        return self in (Type.INT, Type.NUMBER)


def comparable(left: Type, right: Type) -> bool:
    """Whether values of these types can ever be equal or ordered by the rules of the language."""
    if Type.ANY in (left, right) or Type.NULL in (left, right):
        return True
    if left.is_numeric and right.is_numeric:
        return True
    return left == right
