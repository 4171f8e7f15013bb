"""Histories of runs, and which of the complete ones are reported.

A run's history is a chain of *nodes*, newest first; a node is a plain tuple, made when an event is
taken and never changed:

    (event, position, previous, size, newest_time, newest_start, number)

`previous` is the node before (size −1), or a list of nodes of which the first `size` count: a
whole group of runs that took the event together. None for a first event. `number` counts the
events that a key has seen; `newest_time` and `newest_start` are time and number of the newest first
event that the history can begin with. So one node may stand for very many runs, and a history that
is no longer alive is recognised without walking it. (The idea of such shared histories is in "CORE:
a Complex Event Recognition Engine", Bucchi et al., VLDB 2022.)

`Selection` holds what section 5 of the reference says about complete runs: the oldest first event
wins, then the greedy choice, then the branch written first, then the earlier events; then the skip.
Starts that a skip has dropped are marked (`floor`, `dead`) and filtered when histories are read.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Final

Node = tuple[Any, ...]
EVENT: Final = 0
POSITION: Final = 1
PREVIOUS: Final = 2
SIZE: Final = 3
NEWEST_TIME: Final = 4
NEWEST_START: Final = 5
NUMBER: Final = 6
FIRST_VARIABLE: Final = 7
"""Where runs are kept one by one, a run is its newest node, with what later conditions can see of
it behind the node's own seven members."""

History = list[Node]
"""One run: its nodes, first event first."""

CANDIDATES = 10_000
"""Most complete runs that a failing `having` may try at one event."""


@dataclass(frozen=True, slots=True)
class Layout:
    """What the selection knows of a rule's positions: their step (as a number in the order in which
    steps are written) and their branches; for each step the node of the pattern that it stands in,
    and +1 (greedy) or −1 (reluctant)."""

    step_of: tuple[int, ...]
    node_of: tuple[int, ...]
    branches: tuple[tuple[tuple[int, int], ...], ...]
    greed: tuple[int, ...]


class Marks:
    """What a key's state says of starts: all up to `floor`, and those in `dead`, are dropped."""

    __slots__ = ("dead", "floor")

    floor: int
    dead: dict[int, int] | None


def is_dropped(start: int, floor: int, dead: dict[int, int] | None) -> bool:
    """Whether a skip has dropped the runs that began with event number `start`."""
    return start <= floor or (dead is not None and start in dead)


def chain(node: Node) -> History | None:
    """The only history of a node, or None when it stands for several."""
    history = [node]
    previous = node[PREVIOUS]
    while previous is not None:
        size = history[-1][SIZE]
        if size >= 0:
            if size != 1:
                return None
            previous = previous[0]
        history.append(previous)
        previous = previous[PREVIOUS]
    history.reverse()
    return history


def _before(node: Node) -> list[Node]:
    previous = node[PREVIOUS]
    if previous is None:
        return []
    return [previous] if node[SIZE] < 0 else previous[: node[SIZE]]


class Complete:
    """The runs that are complete at one moment: final nodes, and which starts are still alive."""

    def __init__(self, finals: list[Node], low: int | None, layout: Layout, marks: Marks) -> None:
        self.finals = finals
        self.low = low
        self.layout = layout
        self.marks = marks

    def _alive(self, start: Node) -> bool:
        if self.low is not None and start[NEWEST_TIME] < self.low:
            return False
        return not is_dropped(start[NUMBER], self.marks.floor, self.marks.dead)

    def _reachable(self, node: Node) -> bool:
        """Whether any of a node's starts can still be alive, by its newest one."""
        if self.low is not None and node[NEWEST_TIME] < self.low:
            return False
        return bool(node[NEWEST_START] > self.marks.floor)

    def starts(self) -> list[Node]:
        """First events of the complete runs that are alive, the oldest first. O(shared nodes)."""
        found: dict[int, Node] = {}
        seen: set[int] = set()
        todo = [node for node in self.finals if self._reachable(node)]
        while todo:
            node = todo.pop()
            if id(node) in seen:
                continue
            seen.add(id(node))
            if node[PREVIOUS] is None:
                if self._alive(node):
                    found[node[NUMBER]] = node
            else:
                todo += [before for before in _before(node) if self._reachable(before)]
        return [found[number] for number in sorted(found)]

    def best(self, start: Node) -> History:
        """The preferred one of the runs that begin with `start`, without enumerating them.

        Preference compares sums over the steps, then branches, then events, so the best way to a
        node is the best way to one of the nodes before it: dynamic programming, O(shared nodes).
        """
        ways: dict[int, tuple[Any, History] | None] = {}
        order = self._inwards(start)
        for node in order:
            if node[PREVIOUS] is None:
                ways[id(node)] = self._extended(None, node) if self._same(node, start) else None
                continue
            choices = [ways.get(id(before)) for before in _before(node)]
            known = [choice for choice in choices if choice is not None]
            best = min(known, key=_rank_of) if known else None
            ways[id(node)] = self._extended(best, node) if best is not None else None
        finals = [ways[id(node)] for node in self.finals if id(node) in ways]
        return min((way for way in finals if way is not None), key=_rank_of)[1]

    def _same(self, node: Node, start: Node) -> bool:
        return bool(node[NUMBER] == start[NUMBER])

    def _inwards(self, start: Node) -> list[Node]:
        """Nodes that may lead back to `start`, those before a node come before it."""
        order: list[Node] = []
        entered: set[int] = set()
        todo: list[tuple[Node, bool]] = [(node, False) for node in self.finals]
        while todo:
            node, done = todo.pop()
            if done:
                order.append(node)
            elif id(node) not in entered and node[NEWEST_START] >= start[NUMBER]:
                entered.add(id(node))
                todo.append((node, True))
                todo += [(before, False) for before in _before(node)]
        return order

    def _extended(self, way: tuple[Any, History] | None, node: Node) -> tuple[Any, History]:
        layout = self.layout
        step = layout.step_of[node[POSITION]]
        if way is None:
            counts = [0] * len(layout.greed)
            branches: tuple[Any, ...] = ()
            numbers: tuple[int, ...] = ()
            steps: tuple[int, ...] = ()
            history: History = []
        else:
            (kept, branches, numbers, steps), history = way
            counts = list(kept)
        counts[step] -= layout.greed[step]
        rank = (
            tuple(counts),
            (*branches, layout.branches[node[POSITION]]),
            (*numbers, node[NUMBER]),
            (*steps, step),
        )
        return rank, [*history, node]

    def every(self, start: Node | None = None) -> Iterator[History]:
        """All runs that are alive, or those that begin with `start`; each assignment once, in no
        particular order."""
        seen: set[tuple[tuple[int, int], ...]] = set()
        step_of = self.layout.step_of
        todo: list[tuple[Node, Any]] = [(node, None) for node in self.finals]
        while todo:
            node, after = todo.pop()
            if not self._reachable(node):
                continue
            here = (node, after)
            if node[PREVIOUS] is not None:
                todo += [(before, here) for before in _before(node)]
                continue
            if not self._alive(node) or (start is not None and not self._same(node, start)):
                continue
            history = _unrolled(here)
            assignment = tuple((n[NUMBER], step_of[n[POSITION]]) for n in history)
            if assignment not in seen:
                seen.add(assignment)
                yield history

    def rank(self, history: History) -> Any:
        """Sorts histories as section 5 prefers them: smaller is better."""
        layout = self.layout
        counts = [0] * len(layout.greed)
        for node in history:
            step = layout.step_of[node[POSITION]]
            counts[step] -= layout.greed[step]
        branches = tuple(layout.branches[node[POSITION]] for node in history)
        steps = [layout.step_of[node[POSITION]] for node in history]
        return history[0][NUMBER], counts, branches, [n[NUMBER] for n in history], steps


def _rank_of(way: tuple[Any, History]) -> Any:
    return way[0]


def _unrolled(link: Any) -> History:
    history = []
    while link is not None:
        node, link = link
        history.append(node)
    return history


@dataclass(frozen=True, slots=True)
class Skip:
    """The after-match skip: past_last, to_next, to_first, to_last (of step `step`), nothing."""

    kind: str
    step: int = -1


class Selection:
    """Chooses what is reported of the runs that are complete at one moment (section 5, 2 to 4)."""

    def __init__(
        self, layout: Layout, skip: Skip, having: Callable[[History], bool] | None
    ) -> None:
        self.layout = layout
        self.skip = skip
        self.having = having
        self.untried = 0
        """Candidates that were not tried because `having` had failed too often at one event."""

    def choose(self, finals: list[Node], low: int | None, marks: Marks) -> list[History]:
        """The reported runs in order; `marks` then says which starts the skips have dropped.

        `low`: the earliest first event that `within` still allows (None: any).
        """
        if len(finals) == 1 and self.having is None:
            only = chain(finals[0])
            if only is not None:
                start = only[0]
                if low is not None and start[NEWEST_TIME] < low:
                    return []
                if is_dropped(start[NUMBER], marks.floor, marks.dead):
                    return []
                self._drop(only, marks)
                return [only]
        complete = Complete(finals, low, self.layout, marks)
        if self.having is not None:
            return self._tried(complete, marks)
        if self.skip.kind == "nothing":
            return sorted(complete.every(), key=complete.rank)
        chosen = []
        for start in complete.starts():
            if not is_dropped(start[NUMBER], marks.floor, marks.dead):
                history = complete.best(start)
                self._drop(history, marks)
                chosen.append(history)
        return chosen

    def _tried(self, complete: Complete, marks: Marks) -> list[History]:
        """With `having`: candidates in order until one holds, for each start that is left."""
        assert self.having is not None
        tries, chosen = 0, []
        for start in complete.starts():
            if is_dropped(start[NUMBER], marks.floor, marks.dead):
                continue
            for history in sorted(complete.every(start), key=complete.rank):
                if tries >= CANDIDATES:
                    self.untried += 1
                    continue
                tries += 1
                if self.having(history):
                    chosen.append(history)
                    self._drop(history, marks)
                    if self.skip.kind != "nothing":
                        break
        return chosen

    def _drop(self, history: History, marks: Marks) -> None:
        kind = self.skip.kind
        if kind == "nothing":
            return
        if kind == "past_last":
            marks.floor = max(marks.floor, history[-1][NUMBER])
            return
        if marks.dead is None:
            marks.dead = {}
        marks.dead[history[0][NUMBER]] = history[0][NEWEST_TIME]
        if kind == "to_next":
            return
        steps = [self.layout.step_of[node[POSITION]] for node in history]
        if kind == "to_first":
            place = steps.index(self.skip.step)
        else:
            place = len(steps) - 1 - steps[::-1].index(self.skip.step)
        marks.floor = max(marks.floor, history[place][NUMBER] - 1)


class Pruner:
    """Takes dead histories out of the groups of one key: expired or dropped starts.

    Nodes are never changed, so what lies behind a dead node is cut by making the nodes before it
    anew; lists that several nodes share are made anew once. O(nodes alive).
    """

    def __init__(self, low: int | None, marks: Marks) -> None:
        self.low = low
        self.floor = marks.floor
        self.dead = marks.dead
        self._renewed: dict[int, tuple[list[Node], list[int], list[Node]]] = {}

    def alive(self, node: Node) -> bool:
        """Whether the newest start of a node is alive (then the node is worth keeping)."""
        if self.low is not None and node[NEWEST_TIME] < self.low:
            return False
        if node[NEWEST_START] <= self.floor:
            return False
        return node[SIZE] >= 0 or self.dead is None or node[NEWEST_START] not in self.dead

    def group(self, group: list[Any]) -> list[Any] | None:
        """The group without what is dead; None when nothing is left."""
        self._renew(group[0])
        nodes = self._renewed[id(group[0])][0]
        if not nodes:
            return None
        newest = max(node[NEWEST_TIME] for node in nodes)
        return [nodes, newest, max(node[NEWEST_START] for node in nodes), *group[3:]]

    def runs(self, runs: list[Any]) -> list[Any] | None:
        """A list of runs without the dead ones."""
        return [run for run in runs if self.alive(run)] or None

    def _renew(self, top: list[Node]) -> None:
        todo = [top]
        while todo:
            nodes = todo[-1]
            if id(nodes) in self._renewed:
                todo.pop()
                continue
            live = [node for node in nodes if self.alive(node)]
            inner = [
                node[PREVIOUS]
                for node in live
                if node[SIZE] >= 0 and id(node[PREVIOUS]) not in self._renewed
            ]
            if inner:
                todo += inner
                continue
            self._renewed[id(nodes)] = (*self._copy(nodes), nodes)
            todo.pop()

    def _copy(self, nodes: list[Node]) -> tuple[list[Node], list[int]]:
        """The live nodes, made anew; and how many of them are in each prefix of the old list."""
        fresh: list[Node] = []
        counts = [0]
        for node in nodes:
            if self.alive(node):
                if node[SIZE] >= 0:
                    shared, sizes, _ = self._renewed[id(node[PREVIOUS])]
                    event, position, _, size, *rest = node
                    node = (event, position, shared, sizes[size], *rest)
                fresh.append(node)
            counts.append(len(fresh))
        return fresh, counts
