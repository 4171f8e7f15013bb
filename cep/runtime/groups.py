"""Groups of runs by a value, of a key so large that only what has changed of it is written.

In place of a plain dict: whoever changes one of the groups leaves its key here, so that a
checkpoint need not look at all of them. Code that puts all groups into a new dict is seen by that.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


class Groups(dict[Any, Any]):
    """A dict that remembers which of its entries have been set or deleted.

    >>> groups = Groups({"a": 1, "b": 2})
    >>> del groups["b"]
    >>> groups["c"] = 3
    >>> groups.take_changed(), groups.take_changed()
    (['b', 'c'], [])
    """

    __slots__ = ("_changed",)

    def __init__(self, groups: Mapping[Any, Any]) -> None:
        super().__init__(groups)
        self._changed: dict[Any, None] = {}

    def __setitem__(self, key: Any, group: Any) -> None:
        dict.__setitem__(self, key, group)
        self._changed[key] = None

    def __delitem__(self, key: Any) -> None:
        dict.__delitem__(self, key)
        self._changed[key] = None

    def note(self, key: Any) -> None:
        """The group of a key has been changed in its place."""
        self._changed[key] = None

    def take_changed(self) -> list[Any]:
        """The keys whose groups have changed since the last call, in the order of their first
        change."""
        changed, self._changed = list(self._changed), {}
        return changed
