"""States of keys of which some are kept elsewhere, to be found when they are asked for.

A program whose states may be larger than memory has these in place of plain dicts: `find` is asked
for a key that is not here, as long as any key is elsewhere (`cold`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any


def _nowhere(_: Any) -> Any:
    return None


class SpilledStates(dict[Any, Any]):
    """States by key. Length and iteration are those of the states that are here.

    >>> states = SpilledStates()
    >>> states.cold[1] = ()
    >>> states.find = lambda key: f"the state of {key}"
    >>> states.get("ann"), "ann" in states, len(states), bool(states)
    ('the state of ann', True, 0, True)
    """

    def __init__(self) -> None:
        self.cold: dict[int, Sequence[int]] = {}
        """By a hash of each key whose state is elsewhere: the times of its first events, where
        these are counted."""
        self.find: Callable[[Any], Any] = _nowhere
        """Brings a state that is elsewhere, puts it in here and gives it; None: there is none."""

    def get(self, key: Any, default: Any = None) -> Any:
        state = dict.get(self, key)
        if state is None and self.cold:
            state = self.find(key)
        return default if state is None else state

    def __contains__(self, key: object) -> bool:
        return self.get(key) is not None

    def __bool__(self) -> bool:
        return len(self) > 0 or bool(self.cold)
