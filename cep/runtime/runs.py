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

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Container, Iterable, Iterator
from dataclasses import dataclass, field
from functools import cmp_to_key
from heapq import heappop, heappush
from operator import is_, itemgetter
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

DIGIT = 48
"""Bits of a rank for the count of one step."""

NO_TIME = -1 << 63
"""Before every time."""

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
    plain: bool = False
    """Whether all complete runs take the same steps in the same order, one event each; then the
    numbers of their events tell them apart and put them in order."""
    weights: tuple[int, ...] = field(init=False)
    """For each position what taking an event there adds to the rank of a run. Ranks are in the
    order of the counts of all steps, the first step first; smaller is better."""

    def __post_init__(self) -> None:
        last = len(self.greed) - 1
        weights = (-self.greed[step] << DIGIT * (last - step) for step in self.step_of)
        object.__setattr__(self, "weights", tuple(weights))

    def branches_of(self, node: Node) -> tuple[tuple[int, int], ...]:
        """The branches in which a node's position stands."""
        return self.branches[node[POSITION]]

    def step_at(self, node: Node) -> int:
        """The step of a node's position."""
        return self.step_of[node[POSITION]]


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


def all_nodes(heads: list[Node]) -> list[Node]:
    """The nodes that are in memory for these, each once; of shared lists all that stands in them,
    whoever knows how much of it."""
    found: list[Node] = []
    lists, chained = [heads], set[int]()
    listed: set[int] = set()
    while lists:
        nodes = lists.pop()
        found += nodes
        last: Any = None
        for node in nodes:
            previous = node[PREVIOUS]
            while previous.__class__ is tuple and id(previous) not in chained:
                chained.add(id(previous))
                found.append(previous)
                previous = previous[PREVIOUS]
            if previous.__class__ is list and previous is not last and id(previous) not in listed:
                listed.add(id(previous))
                lists.append(previous)
            last = previous
    return found


class Complete:
    """The runs that are complete at one moment: final nodes, and which starts are still alive; of
    those only the ones up to `high`, where that is given."""

    def __init__(
        self,
        finals: list[Node],
        low: int | None,
        layout: Layout,
        marks: Marks,
        high: int | None = None,
    ) -> None:
        self.finals = finals
        self.low = low
        self.high = high
        self.layout = layout
        self.marks = marks
        self._ordered: list[Node] | None = None

    def _alive(self, start: Node) -> bool:
        if self.low is not None and start[NEWEST_TIME] < self.low:
            return False
        if self.high is not None and start[NEWEST_TIME] > self.high:
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
        for node in self._in_order():
            if node[PREVIOUS] is None and self._alive(node):
                found[node[NUMBER]] = node
        return list(found.values())

    def best(self, start: Node) -> History:
        """The preferred one of the runs that begin with `start`, without enumerating them.

        Preference compares sums over the steps, then branches, then events, so the best way to a
        node is the best way to one of the nodes before it: dynamic programming, O(shared nodes).
        """
        number, nodes = start[NUMBER], self._in_order()
        ways = _Ways(self.layout)
        ways.reach(nodes[bisect_left(nodes, number, key=_number) :], {number})
        final = ways.best_of(self.finals)
        assert final is not None
        return final.history()

    def _in_order(self) -> list[Node]:
        """All nodes from which the complete runs were made and whose newest start was alive when
        this was first asked, each once: what is before a node has a smaller number."""
        if self._ordered is None:
            self._ordered = sorted(self._behind(), key=_number)
        return self._ordered

    def _behind(self) -> list[Node]:
        """The same in no order. Shared lists are walked once, however many prefixes of them are
        shared."""
        low = self.low if self.low is not None else NO_TIME
        floor = self.marks.floor
        nodes: list[Node] = []
        seen: set[int] = set()
        walked: dict[int, int] = {}
        todo = list(self.finals)
        while todo:
            node = todo.pop()
            if node[NEWEST_START] <= floor or node[NEWEST_TIME] < low or id(node) in seen:
                continue
            seen.add(id(node))
            nodes.append(node)
            before, size = node[PREVIOUS], node[SIZE]
            if before is None:
                continue
            if size < 0:
                todo.append(before)
            elif size == 1:
                todo.append(before[0])
            else:
                upto = walked.get(id(before), 0)
                if size > upto:
                    walked[id(before)] = size
                    todo += before[upto:size]
        return nodes

    def candidates(self, after: int) -> Iterator[History]:
        """The runs that are alive and begin later than event number `after`, as section 5 prefers
        them; each assignment once. They are found one by one, so that those nobody asks for cost
        nothing, however many there are.

        A set of runs is all that reach one of some nodes and go on from there in one way; its best
        member is known. When that has been given, what is left of the set falls into smaller ones:
        those that leave its path backwards at each of its nodes.
        """
        ways = self._all_ways(after)
        options = ways.in_order(self.finals)
        todo = [_Runs(ways, options, 0, None, 0)] if options else []
        seen: set[tuple[tuple[int, int], ...]] = set()
        while todo:
            best = heappop(todo)
            history = best.history()
            steps = (self.layout.step_of[n[POSITION]] for n in history)
            assignment = tuple(zip((n[NUMBER] for n in history), steps, strict=True))
            if assignment not in seen:
                seen.add(assignment)
                yield history
            for rest in best.others():
                heappush(todo, rest)

    def _all_ways(self, after: int) -> _Ways:
        """The best ways to all nodes, from all starts that are alive and later than `after`."""
        nodes = self._in_order()
        nodes = nodes[bisect_right(nodes, after, key=_number) :]
        ways = _Ways(self.layout)
        starts = (node for node in nodes if node[PREVIOUS] is None)
        ways.reach(nodes, {node[NUMBER] for node in starts if self._alive(node)})
        return ways

    def every(self) -> Iterator[History]:
        """All runs that are alive; each assignment once, in no particular order."""
        seen: set[tuple[tuple[int, int], ...]] = set()
        step_of, plain = self.layout.step_of, self.layout.plain
        todo: list[tuple[Node, Any]] = [(node, None) for node in self.finals]
        while todo:
            node, after = todo.pop()
            if not self._reachable(node):
                continue
            here = (node, after)
            if node[PREVIOUS] is not None:
                if node[SIZE] < 0:
                    todo.append((node[PREVIOUS], here))
                else:
                    todo += [(before, here) for before in node[PREVIOUS][: node[SIZE]]]
                continue
            if not self._alive(node):
                continue
            history = _unrolled(here)
            if plain:
                yield history
                continue
            assignment = tuple((n[NUMBER], step_of[n[POSITION]]) for n in history)
            if assignment not in seen:
                seen.add(assignment)
                yield history

    def in_order(self) -> list[History]:
        """All runs that are alive, as section 5 prefers them."""
        if self.layout.plain:
            return sorted(self.every(), key=_numbers)
        return sorted(self.every(), key=self.rank)

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


_number = itemgetter(NUMBER)


def _numbers(history: History) -> list[int]:
    return [node[NUMBER] for node in history]


class _Way:
    """The preferred way from a start to a node: the node, the way before it, the number of the
    start, and how many events each step has taken, as one number (`Layout.weights`)."""

    __slots__ = ("before", "node", "rank", "start")

    def __init__(self, node: Node, before: _Way | None, start: int, rank: int) -> None:
        self.node = node
        self.before = before
        self.start = start
        self.rank = rank

    def history(self) -> History:
        """Its nodes, first event first."""
        nodes = []
        way: _Way | None = self
        while way is not None:
            nodes.append(way.node)
            way = way.before
        nodes.reverse()
        return nodes


class _Ways:
    """The preferred ways to nodes, found one after the other, nodes before a node first."""

    def __init__(self, layout: Layout) -> None:
        self.layout = layout
        self._to: dict[int, _Way] = {}
        self._in_lists: dict[int, list[_Way | None]] = {}
        """For a shared list: the best way to any of its first 1, 2, … nodes."""
        self._sorted: dict[tuple[int, int], list[_Way]] = {}

    def reach(self, nodes: Iterable[Node], starts: Container[int]) -> None:
        """Finds the ways to nodes, given in the order of their numbers, from the first events with
        these numbers."""
        to, weights = self._to, self.layout.weights
        for node in nodes:
            previous, size = node[PREVIOUS], node[SIZE]
            if previous is None:
                if node[NUMBER] in starts:
                    to[id(node)] = _Way(node, None, node[NUMBER], weights[node[POSITION]])
                continue
            if size < 0:
                before = to.get(id(previous))
            elif size == 1:
                before = to.get(id(previous[0]))
            else:
                before = self._best_in(previous, size)
            if before is not None:
                rank = before.rank + weights[node[POSITION]]
                to[id(node)] = _Way(node, before, before.start, rank)

    def best_of(self, nodes: Iterable[Node]) -> _Way | None:
        """The best way to any of these."""
        best = None
        for node in nodes:
            best = self._better(best, self._to.get(id(node)))
        return best

    def _best_in(self, nodes: list[Node], size: int) -> _Way | None:
        known = self._in_lists.get(id(nodes))
        if known is None:
            known = self._in_lists[id(nodes)] = []
        if len(known) < size:
            best = known[-1] if known else None
            for node in nodes[len(known) : size]:
                way = self._to.get(id(node))
                if way is not None:
                    best = self._better(best, way)
                known.append(best)
        return known[size - 1] if size else None

    def _better(self, one: _Way | None, other: _Way | None) -> _Way | None:
        if one is None or other is None:
            return other if one is None else one
        return other if self._order(other, one) < 0 else one

    def _order(self, one: _Way, other: _Way) -> int:
        """Negative where `one` is preferred, positive where `other` is."""
        if one.start != other.start:
            return one.start - other.start
        return one.rank - other.rank or self._order_of_events(one, other)

    def _order_of_events(self, one: _Way, other: _Way) -> int:
        """The same where the counts are equal, and so the lengths: branches decide, then events,
        then steps, of what comes after the last node up to which the ways are the same."""
        parts: list[tuple[Node, Node]] = []
        a: Any = one
        b: Any = other
        while a is not b:
            parts.append((a.node, b.node))
            a, b = a.before, b.before
        parts.reverse()
        layout = self.layout
        deciding: tuple[Callable[[Node], Any], ...]
        deciding = layout.branches_of, _number, layout.step_at
        for decides in deciding:
            for node, rival in parts:
                x: Any = decides(node)
                y: Any = decides(rival)
                if x != y:
                    return -1 if x < y else 1
        return 0

    def in_order(self, nodes: Iterable[Node]) -> list[_Way]:
        """The best ways to these nodes, the best first."""
        found = [way for node in nodes if (way := self._to.get(id(node))) is not None]
        return sorted(found, key=cmp_to_key(self._order))

    def before(self, node: Node) -> list[_Way]:
        """The best ways to the nodes before this one, the best first."""
        previous, size = node[PREVIOUS], node[SIZE]
        if previous is None:
            return []
        if size < 0:
            return self.in_order([previous])
        key = (id(previous), size)
        if key not in self._sorted:
            self._sorted[key] = self.in_order(previous[:size])
        return self._sorted[key]

    def details(self, history: History) -> Any:
        """What decides where the counts are equal: branches, then events, then steps."""
        layout = self.layout
        branches = [layout.branches[node[POSITION]] for node in history]
        return branches, _numbers(history), [layout.step_of[node[POSITION]] for node in history]


class _Runs:
    """The runs that take any of `options[index:]` to its node and go on from there with `after`;
    its best run, by which sets are compared, takes the first of them. `counts`: those of `after`.
    """

    __slots__ = ("_details", "after", "counts", "index", "options", "rank", "ways")

    def __init__(
        self,
        ways: _Ways,
        options: list[_Way],
        index: int,
        after: Any,
        counts: int,
    ) -> None:
        self.ways = ways
        self.options = options
        self.index = index
        self.after = after
        self.counts = counts
        way = options[index]
        self.rank = (way.start, way.rank + counts)
        self._details: Any = None

    def __lt__(self, other: _Runs) -> bool:
        if self.rank != other.rank:
            return self.rank < other.rank
        return bool(self.details() < other.details())

    def details(self) -> Any:
        """What decides where starts and counts are equal."""
        if self._details is None:
            self._details = self.ways.details(self.history())
        return self._details

    def history(self) -> History:
        """The best of them."""
        return self.options[self.index].history() + _unrolled(self.after)

    def others(self) -> Iterator[_Runs]:
        """All of them but the best one, as sets."""
        if self.index + 1 < len(self.options):
            yield _Runs(self.ways, self.options, self.index + 1, self.after, self.counts)
        way: _Way | None = self.options[self.index]
        after, counts, weights = self.after, self.counts, self.ways.layout.weights
        while way is not None:
            after = (way.node, after)
            counts += weights[way.node[POSITION]]
            options = self.ways.before(way.node)
            if len(options) > 1:
                yield _Runs(self.ways, options, 1, after, counts)
            way = way.before


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
        """Moments at which candidates were left untried, since `having` had failed too often."""

    def choose(
        self, finals: list[Node], low: int | None, marks: Marks, high: int | None = None
    ) -> list[History]:
        """The reported runs in order; `marks` then says which starts the skips have dropped.

        `low`: the earliest first event that `within` still allows, `high`: the latest one of which
        the runs are complete (None: any).
        """
        if len(finals) == 1 and self.having is None and high is None:
            only = chain(finals[0])
            if only is not None:
                start = only[0]
                if low is not None and start[NEWEST_TIME] < low:
                    return []
                if is_dropped(start[NUMBER], marks.floor, marks.dead):
                    return []
                self._drop(only, marks)
                return [only]
        complete = Complete(finals, low, self.layout, marks, high)
        if self.having is not None:
            return self._tried(complete, marks)
        if self.skip.kind == "nothing":
            return complete.in_order()
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
        refused, chosen = 0, []
        candidates = complete.candidates(-1)
        while (history := next(candidates, None)) is not None:
            if refused >= CANDIDATES:
                self.untried += 1
                break
            if not self.having(history):
                refused += 1
                continue
            chosen.append(history)
            self._drop(history, marks)
            if self.skip.kind != "nothing":
                candidates = complete.candidates(history[0][NUMBER])
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
        if nodes is group[0]:
            return group
        if not nodes:
            return None
        newest = max(node[NEWEST_TIME] for node in nodes)
        return [nodes, newest, max(node[NEWEST_START] for node in nodes), *group[3:]]

    def runs(self, runs: list[Any]) -> list[Any] | None:
        """A list of runs without the dead ones."""
        low, floor = self.low if self.low is not None else NO_TIME, self.floor
        left = [run for run in runs if run[NEWEST_START] > floor and run[NEWEST_TIME] >= low]
        if self.dead is not None:
            left = [run for run in left if self.alive(run)]
        return left or None

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

    def _with_live_prefix(self, node: Node) -> Node | None:
        """The node with what is alive of the nodes before it; None when nothing is."""
        if node[SIZE] < 0:
            return node
        shared, sizes, before = self._renewed[id(node[PREVIOUS])]
        if shared is before:
            return node
        event, position, _, size, *rest = node
        return (event, position, shared, sizes[size], *rest) if sizes[size] else None

    def _copy(self, nodes: list[Node]) -> tuple[list[Node], list[int]]:
        """The live nodes, made anew, and how many of them are in each prefix of the old list; that
        itself where all are alive."""
        fresh: list[Node] = []
        counts = [0]
        for node in nodes:
            renewed = self._with_live_prefix(node) if self.alive(node) else None
            if renewed is not None:
                fresh.append(renewed)
            counts.append(len(fresh))
        if len(fresh) == len(nodes) and all(map(is_, fresh, nodes)):
            return nodes, counts
        return fresh, counts
