"""The matches of a row of steps that take one event each: all of them in order, or the first.

In: the final nodes of complete runs that all took the same steps. Out: runs as tuples of their
events, as section 5 of the reference puts them in order: by the number of the first event, then
of the second, and so on. A node stands for many runs, and the nodes that have been made from one
list are those that come after its first 1, 2, … nodes; so what follows a node is the end of what
follows the node before it in the list, and is found by cutting instead of by looking. From the back
to the front this takes a few steps in C for each run.

The order is told by the lists as long as no event stands in two of them at one step. Where one
does, the answer is None: then the runs must be sorted (`Complete.in_order`).
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from operator import itemgetter
from typing import Any

from cep.runtime.runs import (
    EVENT,
    NEWEST_START,
    NEWEST_TIME,
    NUMBER,
    PREVIOUS,
    SIZE,
    Marks,
    Node,
    is_dropped,
)

Row = tuple[Any, ...]
"""The events of one run, first to last, or the last few of them."""

Tails = tuple[list[Node], list[Row], list[int]]
"""Nodes that took the same step, in the order of their events; all that runs take from them on, in
order; and where in this begins what is taken from each node on."""


def rows(finals: Sequence[Node], low: int | None, marks: Marks) -> list[Row] | None:
    """All runs that are alive, in order; None where the lists do not tell the order. `low`: the
    earliest first event that `within` still allows (None: any)."""
    nodes = list(finals)
    ends: Tails = nodes, [(node[EVENT],) for node in nodes], list(range(len(nodes)))
    tails = ends if len(nodes) == 1 else _merged([ends])
    while tails is not None and (nodes := tails[0]):
        if nodes[0][PREVIOUS] is None:
            return tails[1] if marks.dead is None else _not_dropped(tails, marks)
        tails = _one_step_back(tails, low, marks)
    return [] if tails is not None else None


def _not_dropped(tails: Tails, marks: Marks) -> list[Row]:
    """What begins with first events that are not marked."""
    found: list[Row] = []
    for node, followers in _each(tails):
        if not is_dropped(node[NUMBER], marks.floor, marks.dead):
            found += followers
    return found


def _each(tails: Tails) -> list[tuple[Node, list[Row]]]:
    """Each node with what is taken from it on."""
    nodes, whole, starts = tails
    ends = [*starts[1:], len(whole)]
    return [(node, whole[a:b]) for node, a, b in zip(nodes, starts, ends, strict=True)]


def _merged(parts: Sequence[Tails]) -> Tails | None:
    """Nodes of one step, of several lists, by the numbers of their events."""
    both = [one for tails in parts for one in _each(tails)]
    both.sort(key=_number)
    if len({node[NUMBER] for node, _ in both}) < len(both):
        return None
    whole: list[Row] = []
    starts = []
    for _, followers in both:
        starts.append(len(whole))
        whole += followers
    return [node for node, _ in both], whole, starts


def _number(one: tuple[Node, list[Row]]) -> int:
    return int(one[0][NUMBER])


def _one_step_back(tails: Tails, low: int | None, marks: Marks) -> Tails | None:
    """The same for the nodes from which these were made."""
    if _from_one(tails[0]):
        return _before(tails, low, marks)
    origins: dict[int, list[tuple[Node, list[Row]]]] = {}
    for one in _each(tails):
        origins.setdefault(id(one[0][PREVIOUS]), []).append(one)
    parts = []
    for ones in origins.values():
        whole: list[Row] = []
        starts = []
        for _, followers in ones:
            starts.append(len(whole))
            whole += followers
        parts.append(_before(([node for node, _ in ones], whole, starts), low, marks))
    return _merged(parts)


def _from_one(nodes: Sequence[Node]) -> bool:
    """Whether all these nodes were made from the same list or node."""
    previous = nodes[0][PREVIOUS]
    return len(nodes) == 1 or all(node[PREVIOUS] is previous for node in nodes)


def _made_from(node: Node) -> list[Node]:
    """The nodes before a node that is not the first."""
    previous, size = node[PREVIOUS], node[SIZE]
    return [previous] if size < 0 else previous[:size]


def _before(tails: Tails, low: int | None, marks: Marks) -> Tails:
    """The nodes of the one list from which all these were made, each with what follows it: later
    nodes were made from more of the list, so for each of its nodes that is an end of the whole."""
    nodes, whole, starts = tails
    before = _made_from(nodes[-1])
    sizes = [node[SIZE] for node in nodes]
    place, reached, rest = 0, sizes[0] if sizes[0] >= 0 else 1, whole
    kept: list[Node] = []
    found: list[Row] = []
    begins = []
    for index in _alive(before, low, marks.floor):
        node = before[index]
        if reached <= index:
            while sizes[place] <= index:
                place += 1
            reached, rest = sizes[place], whole[starts[place] :]
        kept.append(node)
        begins.append(len(found))
        found += map((node[EVENT],).__add__, rest)
    return kept, found, begins


def _alive(nodes: list[Node], low: int | None, floor: int) -> list[int]:
    """The places of those of which a first event may be alive."""
    if low is None:
        return [i for i, node in enumerate(nodes) if node[NEWEST_START] > floor]
    first = 0
    if nodes[0][PREVIOUS] is None:  # first events are in the order of their times
        first = bisect_left(nodes, low, key=_newest_time)
    return [
        i
        for i, node in enumerate(nodes[first:] if first else nodes, first)
        if node[NEWEST_TIME] >= low and node[NEWEST_START] > floor
    ]


_newest_time = itemgetter(NEWEST_TIME)


def first_row(final: Node, low: int | None, marks: Marks) -> list[Node] | None:
    """The nodes of the first run in order, of those that `final` stands for; [] when none is alive,
    None where the lists do not tell which it is."""
    layers = [[final]]
    while layers[-1][0][PREVIOUS] is not None:
        if not _from_one(layers[-1]):
            return None
        layers.append(_made_from(layers[-1][-1]))
    starts = layers.pop()
    place = next((i for i, node in enumerate(starts) if _begins(node, low, marks)), None)
    if place is None:
        return []
    found = [starts[place]]
    while layers:
        nodes = layers.pop()
        place = _first_after(nodes, place)
        found.append(nodes[place])
    return found


def _begins(start: Node, low: int | None, marks: Marks) -> bool:
    """Whether the runs that begin with this event are alive."""
    if low is not None and start[NEWEST_TIME] < low:
        return False
    return not is_dropped(start[NUMBER], marks.floor, marks.dead)


def _first_after(nodes: list[Node], place: int) -> int:
    """The first of these nodes that was made from, among others, the one at `place`."""
    return next(i for i, node in enumerate(nodes) if node[SIZE] > place or node[SIZE] < 0)
