"""Runs that are kept as nothing but their events: a tuple of events, first to last.

So are the runs of a plain row of steps (`cep.plan.states.find_paths`). Which position took an event
is told by its place, what later conditions see of it stands in it, and which run began before which
by the places at which they wait: what is further on began earlier, and so did what stands before it
in a list. In a strict row the runs share their events (`shared_run`). Where a run must look as all
others do (in a checkpoint, or when the oldest are dropped), it is made a chain of nodes, with
numbers that tell no more than this order.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from msgspec import UNSET

from cep.runtime.runs import EVENT, PREVIOUS, Node

Run = tuple[Any, ...]


@dataclass(frozen=True, slots=True)
class BareRuns:
    """The bare runs of one place. `path`: the positions that took their events. `seen`: for each
    variable the place and the attribute of the event in which it stands. `ahead`: the slots of the
    places further on, with how many events their runs have."""

    path: tuple[int, ...]
    seen: tuple[tuple[int, str] | None, ...]
    ahead: tuple[tuple[str, int], ...]


def runs_in(held: Any) -> list[Run]:
    """The runs that a slot holds: none, one, or a list."""
    if held is None:
        return []
    return held if held.__class__ is list else [held]


def shared_run(length: int) -> property:
    """The run that waits after so many events, in a state whose runs share their events (a strict
    row): these are the last ones of the key, `e1` the newest, and bit `length - 1` of `waits` tells
    whether there is such a run."""
    bit = 1 << length - 1
    names = [f"e{place}" for place in range(length, 0, -1)]

    def read(state: Any) -> Run | None:
        if not state.waits & bit:
            return None
        return tuple([getattr(state, name) for name in names])

    def write(state: Any, run: Run | None) -> None:
        if run is None:
            state.waits &= ~bit
            return
        state.waits |= bit
        for name, event in zip(names, run, strict=True):
            setattr(state, name, event)

    return property(read, write)


def as_nodes(state: Any, held: Any, kind: BareRuns) -> list[Node]:
    """The newest nodes of the runs, with their variables. O(events)."""
    number = 1 + sum(len(runs_in(getattr(state, name))) * length for name, length in kind.ahead)
    nodes = []
    for run in runs_in(held):
        node: Any = None
        began, start = run[0].t, number
        for event, position in zip(run, kind.path, strict=True):
            node = (event, position, node, -1, began, start, number)
            number += 1
        nodes.append((*node, *[value_of(run, where) for where in kind.seen]))
    return nodes


def value_of(run: Run, where: tuple[int, str] | None) -> Any:
    """What later conditions see of a run at a place and attribute."""
    if where is None:
        return None
    value = getattr(run[where[0]], where[1])
    return None if value is UNSET else value


def events_of(node: Node) -> Run:
    """The run that a node is the newest of."""
    events = []
    current: Any = node
    while current is not None:
        events.append(current[EVENT])
        current = current[PREVIOUS]
    return tuple(reversed(events))


def living(held: Any, low: int) -> Any:
    """What a slot holds without the runs that began before `low`."""
    if held.__class__ is list:
        return [run for run in held if run[0].t >= low] or None
    return held if held is not None and held[0].t >= low else None


def newest(held: Any) -> int:
    """When the newest run of a slot began."""
    run = held[-1] if held.__class__ is list else held
    return int(run[0].t)
