"""Values as keys: which can be one, which are the same one, and in what order they come.

In Python `True == 1 == 1.0`; in a rule file 1 and 1.0 are the same key, `true` is another. What
has no order or no identity (null, arrays, objects, not-a-number) is no key. The same key looks the
same, whichever event of it came first: as a whole number.
"""

from __future__ import annotations

from typing import Any

from cep.event import Odd

LARGEST = 2.0**63
"""Numbers of this size and above stay as they are: not every writer of JSON knows larger ones."""


class Flag:
    """A boolean as part of a key."""

    __slots__ = ("value",)

    def __init__(self, value: bool) -> None:
        self.value = value

    def __repr__(self) -> str:
        return repr(self.value)


FLAGS = {True: Flag(True), False: Flag(False)}


def key_of(value: Any) -> Any:
    """A value as part of a key, or None when it cannot be one.

    >>> key_of("a"), key_of(1.0), key_of(1.5), key_of(True) == key_of(1), key_of([1])
    ('a', 1, 1.5, False, None)
    """
    kind = value.__class__
    if kind is str or kind is int:
        return value
    if kind is bool:
        return FLAGS[value]
    if kind is float:
        if -LARGEST < value < LARGEST:
            return int(value) if value.is_integer() else value
        return value if value == value else None
    if kind is Odd:
        return key_of(value.value)
    return None


def plain_key(part: Any) -> Any:
    """The value that `key_of` was given."""
    return part.value if part.__class__ is Flag else part


def key_order(key: Any) -> Any:
    """Sorts keys; a key is a part or a tuple of parts. Booleans, then numbers, then texts."""
    parts = key if key.__class__ is tuple else (key,)
    return tuple(_part_order(part) for part in parts)


def _part_order(part: Any) -> tuple[int, Any]:
    if part.__class__ is str:
        return 2, part
    if part.__class__ is int or part.__class__ is float:
        return 1, part
    return 0, bool(getattr(part, "value", False))
