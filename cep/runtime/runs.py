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

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import cmp_to_key
from heapq import heappop, heappush
from operator import add, is_
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
    plain: bool = False
    """Whether all complete runs take the same steps in the same order, one event each; then the
    numbers of their events tell them apart and put them in order."""


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
        for node in self._behind(0):
            if node[PREVIOUS] is None and self._alive(node):
                found[node[NUMBER]] = node
        return [found[number] for number in sorted(found)]

    def best(self, start: Node) -> History:
        """The preferred one of the runs that begin with `start`, without enumerating them.

        Preference compares sums over the steps, then branches, then events, so the best way to a
        node is the best way to one of the nodes before it: dynamic programming, O(shared nodes).
        """
        layout = self.layout
        nodes = self._behind(start[NUMBER])
        nodes.sort(key=_number)  # what is before a node has a smaller number
        ways = _Ways(layout)
        for node in nodes:
            if node[PREVIOUS] is None:
                ways.begin(node, self._same(node, start))
            else:
                ways.extend(node)
        final = ways.best_of(self.finals)
        assert final is not None
        return final.history()

    def _same(self, node: Node, start: Node) -> bool:
        return bool(node[NUMBER] == start[NUMBER])

    def _behind(self, oldest: int) -> list[Node]:
        """All nodes from which the complete runs were made and whose newest start is alive and not
        older than number `oldest`; each once. Shared lists are walked once, however many prefixes
        of them are shared."""
        nodes: list[Node] = []
        seen: set[int] = set()
        walked: dict[int, int] = {}
        todo = list(self.finals)
        while todo:
            node = todo.pop()
            if id(node) in seen or node[NEWEST_START] < oldest or not self._reachable(node):
                continue
            seen.add(id(node))
            nodes.append(node)
            before = node[PREVIOUS]
            if before is None:
                continue
            if node[SIZE] < 0:
                todo.append(before)
                continue
            upto = walked.get(id(before), 0)
            if node[SIZE] > upto:
                walked[id(before)] = node[SIZE]
                todo += before[upto : node[SIZE]]
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
        todo = [_Runs(ways, options, 0, None, (0,) * len(self.layout.greed))] if options else []
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
        ways = _Ways(self.layout)
        nodes = self._behind(after + 1)
        nodes.sort(key=_number)
        for node in nodes:
            if node[PREVIOUS] is None:
                ways.begin(node, node[NUMBER] > after and self._alive(node))
            else:
                ways.extend(node)
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


def _number(node: Node) -> int:
    return int(node[NUMBER])


def _numbers(history: History) -> list[int]:
    return [node[NUMBER] for node in history]


class _Way:
    """The preferred way from a start to a node: the node, the way before it, how many events each
    step has taken, with the sign that makes fewer better, and the number of the start."""

    __slots__ = ("before", "counts", "node", "start")

    def __init__(self, node: Node, before: _Way | None, counts: tuple[int, ...]) -> None:
        self.node = node
        self.before = before
        self.counts = counts
        self.start: int = node[NUMBER] if before is None else before.start

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
        self._to: dict[int, _Way | None] = {}
        self._in_lists: dict[int, list[_Way | None]] = {}
        """For a shared list: the best way to any of its first 1, 2, … nodes."""
        self._sorted: dict[tuple[int, int], list[_Way]] = {}

    def begin(self, node: Node, wanted: bool) -> None:
        """A first event: the one from which ways begin, or another."""
        nothing = (0,) * len(self.layout.greed)
        self._to[id(node)] = self._after(node, None, nothing) if wanted else None

    def extend(self, node: Node) -> None:
        """A node that goes on from those before it."""
        if node[SIZE] < 0:
            best = self._to.get(id(node[PREVIOUS]))
        else:
            best = self._best_in(node[PREVIOUS], node[SIZE])
        self._to[id(node)] = self._after(node, best, best.counts) if best is not None else None

    def best_of(self, nodes: Iterable[Node]) -> _Way | None:
        """The best way to any of these."""
        best = None
        for node in nodes:
            best = self._better(best, self._to.get(id(node)))
        return best

    def _best_in(self, nodes: list[Node], size: int) -> _Way | None:
        known = self._in_lists.setdefault(id(nodes), [])
        for node in nodes[len(known) : size]:
            before = known[-1] if known else None
            known.append(self._better(before, self._to.get(id(node))))
        return known[size - 1] if size else None

    def _after(self, node: Node, before: _Way | None, counts: tuple[int, ...]) -> _Way:
        step = self.layout.step_of[node[POSITION]]
        taken = list(counts)
        taken[step] -= self.layout.greed[step]
        return _Way(node, before, tuple(taken))

    def _better(self, one: _Way | None, other: _Way | None) -> _Way | None:
        if one is None or other is None:
            return other if one is None else one
        return other if self._order(other, one) < 0 else one

    def _order(self, one: _Way, other: _Way) -> int:
        """Negative where `one` is preferred, positive where `other` is."""
        ranks: Any = ((one.start, one.counts), (other.start, other.counts))
        if ranks[0] == ranks[1]:
            ranks = (self.details(one.history()), self.details(other.history()))
        return int(ranks[0] > ranks[1]) - int(ranks[0] < ranks[1])

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
        counts: tuple[int, ...],
    ) -> None:
        self.ways = ways
        self.options = options
        self.index = index
        self.after = after
        self.counts = counts
        way = options[index]
        self.rank = (way.start, tuple(map(add, way.counts, counts)))
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
        after, counts, layout = self.after, list(self.counts), self.ways.layout
        while way is not None:
            after = (way.node, after)
            step = layout.step_of[way.node[POSITION]]
            counts[step] -= layout.greed[step]
            options = self.ways.before(way.node)
            if len(options) > 1:
                yield _Runs(self.ways, options, 1, after, tuple(counts))
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
        low, floor = self.low if self.low is not None else -1 << 63, self.floor
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
