"""Caps over all rules: how many first events, and how many bytes, an engine may hold.

In: a program at work, between two batches. Above a cap the oldest first events of all rules and
keys are dropped, with all runs that began with them, until a tenth of the cap is free; each is
counted as `dropped` of its rule. A window counts as one first event, its first.

Looking costs a pass over all states, so it is done only when so many events have come that a cap
may have been reached. Bytes are measured: of a sample of states, with everything that hangs on them
(`sys.getsizeof`), for each first event of a rule.
"""

from __future__ import annotations

import sys
from collections import deque
from collections.abc import Iterator, Sequence
from typing import Any, Protocol

import msgspec

from cep.compile.program import Program
from cep.event import Odd
from cep.runtime.oldest import drop_until, first_times
from cep.runtime.reporting import Reporting

FREED = 10
"""One part in so many of a cap is free after dropping."""

SAMPLE = 200
"""States of a rule that are measured."""

LEAST = 1000
"""Events after which it is looked again, at least."""


class Away(Protocol):
    """States that are not in memory, of which the first events count too (`cep.spill`)."""

    def firsts(self, run: Reporting) -> Iterator[int]:
        """The times of their first events."""
        ...

    def bring_until(self, time: int) -> Iterator[None]:
        """Brings those with a first event up to this time, some at a time."""
        ...


class Caps:
    """Keeps a program under its caps. `None`: no cap."""

    def __init__(self, max_runs: int | None, max_bytes: int | None) -> None:
        self.max_runs = max_runs
        self.max_bytes = max_bytes
        self._next = LEAST
        self._weights: dict[str, float] = {}

    @property
    def are_set(self) -> bool:
        """Whether there is any."""
        return self.max_runs is not None or self.max_bytes is not None

    def look(self, program: Program, events: int, away: Away | None = None) -> None:
        """To be called after each batch, with the number of all events so far."""
        if events < self._next or not self.are_set:
            return
        held = [(run, [*_firsts(run), *_firsts_away(run, away)]) for run in program.rules]
        weights = [self._weight(run) for run, _ in held]
        runs = sum(len(firsts) for _, firsts in held)
        size = sum(len(firsts) * each for (_, firsts), each in zip(held, weights, strict=True))
        until = _until(held, weights, self._excess_runs(runs), self._excess_bytes(size))
        if until is not None:
            _drop(program, until)
            for _ in away.bring_until(until) if away is not None else ():
                _drop(program, until)
        self._next = events + max(LEAST, self._room(runs, size) // max(1, len(program.rules)))

    def _weight(self, run: Reporting) -> float:
        """Bytes of a first event of the rule; while none is in memory, as they were last."""
        each = _bytes_each(run)
        if each:
            self._weights[run.owner] = each
        return self._weights.get(run.owner, 0.0)

    def _excess_runs(self, runs: int) -> int:
        """How many first events are to be dropped."""
        if self.max_runs is None or runs <= self.max_runs:
            return 0
        return runs - (self.max_runs - self.max_runs // FREED)

    def _excess_bytes(self, size: float) -> float:
        if self.max_bytes is None or size <= self.max_bytes:
            return 0
        return size - (self.max_bytes - self.max_bytes // FREED)

    def _room(self, runs: int, size: float) -> int:
        """How many first events may surely come before a cap is reached."""
        rooms = []
        if self.max_runs is not None:
            rooms.append(max(self.max_runs - runs, self.max_runs // FREED))
        if self.max_bytes is not None:
            each = size / runs if runs else 1000
            rooms.append(int(max(self.max_bytes - size, self.max_bytes / FREED) / each))
        return min(rooms)


def _drop(program: Program, until: int) -> None:
    for run in program.rules:
        for state in list(run.states.values()):
            run.dropped += drop_until(run, state, until)


def _firsts_away(run: Reporting, away: Away | None) -> Iterator[int]:
    return away.firsts(run) if away is not None else iter(())


def _firsts(run: Reporting) -> Iterator[int]:
    for state in run.states.values():
        yield from first_times(run, state)


def _until(
    held: Sequence[tuple[Reporting, list[int]]],
    weights: Sequence[float],
    runs: int,
    size: float,
) -> int | None:
    """The time up to which first events must go to drop so many of them, and so many bytes."""
    if not runs and not size:
        return None
    firsts = sorted(
        (time, each) for (_, times), each in zip(held, weights, strict=True) for time in times
    )
    for time, each in firsts:
        runs, size = runs - 1, size - each
        if runs <= 0 and size <= 0:
            return time
    return firsts[-1][0] if firsts else None


# ---------------------------------------------------------------------------- bytes


def _bytes_each(run: Reporting) -> float:
    """Bytes that a first event of the rule takes, by a sample of its states; 0: it has none."""
    step = max(1, len(run.states) // SAMPLE)
    seen = Sizes()
    size = number = 0
    for place, state in enumerate(run.states.values()):
        if place % step == 0:
            size += ENTRY + seen.of(state)
            number += len(first_times(run, state))
    return size / max(number, 1)


ENTRY = 110
"""Bytes of a key's entry in the table of keys, about."""


class Sizes:
    """Measures objects with all that hangs on them; what has been measured counts once."""

    def __init__(self) -> None:
        self._seen: set[int] = set()

    def of(self, value: Any) -> int:
        """Bytes of a value that have not been counted before."""
        size, todo = 0, [value]
        while todo:
            part = todo.pop()
            if part is None or isinstance(part, type) or id(part) in self._seen:
                continue
            self._seen.add(id(part))
            size += sys.getsizeof(part)
            todo += _inside(part)
        return size


def _inside(value: Any) -> Sequence[Any]:
    """The objects that a value holds."""
    if isinstance(value, tuple | list | set | frozenset | deque):
        return list(value)
    if isinstance(value, dict):
        return [*value, *value.values()]
    if isinstance(value, str | bytes | int | float):
        return ()
    if isinstance(value, msgspec.Struct):
        return [getattr(value, name) for name in value.__struct_fields__]
    if isinstance(value, Odd) or hasattr(value, "__slots__"):
        names = [name for kind in type(value).__mro__ for name in getattr(kind, "__slots__", ())]
        return [getattr(value, name, None) for name in names if name != "careful"]
    return list(getattr(value, "__dict__", {}).values())
