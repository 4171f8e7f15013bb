"""Warnings that teach: what the numbers of a run say about the rules and the way they were run."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from cep.cli.session import RunOptions
    from cep.engine import Engine
    from cep.ruleset import Ruleset

_NICE = (1, 2, 5, 10, 15, 20, 30, 45, 60, 90, 120, 300, 600, 900, 1800, 3600, 7200, 14400, 43200)
"""Seconds that people give as a delay."""

DAY = 86_400
LONGEST_DELAY = 43_200
"""Seconds; a larger disorder is better repaired by sorting."""


def advice(engine: Engine, ruleset: Ruleset, options: RunOptions) -> Iterator[str]:
    """One line for each thing that the user may want to change, the most certain first."""
    stats = engine.stats
    if stats.events == 0 and stats.rejected == 0:
        yield "the input is empty"
    if stats.late:
        yield _late(stats.late, stats.late_max_us, options)
    if stats.rejected:
        yield _rejected(stats.rejected, options)


def nice_delay(micros: int) -> str:
    """The least round delay that is not smaller.

    >>> nice_delay(4_200_000), nice_delay(61_000_000)
    ('5s', '90s')
    """
    seconds = -(-micros // 1_000_000)
    for nice in _NICE:
        if nice >= seconds:
            return _written(nice)
    return f"{-(-seconds // DAY)}d"


def _written(seconds: int) -> str:
    if seconds % 3600 == 0:
        return f"{seconds // 3600}h"
    if seconds % 60 == 0 and seconds >= 120:
        return f"{seconds // 60}m"
    return f"{seconds}s"
