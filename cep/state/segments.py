"""The history of a large key in pieces that are written once.

In: the state of a key whose history is large, each time it has changed. Out: what of the history is
new since, by numbers that stay: as a *segment* that is never written again, or, while that is
little, as the tail in the state's own row. So what a checkpoint writes is what has changed, and not
the whole key.

Nodes are never changed and lists of nodes only grow at their ends, so a node and a part of a list
that have been written stay true. New nodes are those with a number that the key had not come to;
they refer to nothing older but what the state's slots held when they were made, so only these are
remembered here. Where old nodes have been made anew (pruning), or so much has been written that
half of it may be of no use any more, all is written anew, and the segments of before are dropped.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from operator import itemgetter
from typing import Any

from cep.runtime.runs import (
    EVENT,
    NEWEST_START,
    NEWEST_TIME,
    NUMBER,
    POSITION,
    PREVIOUS,
    SIZE,
    Node,
)

LARGE = 1000
"""Nodes above which a history is kept in segments."""

SEALED = 250
"""New nodes above which they become a segment; less is the tail."""

EventRow = Callable[[Any], Any]


class Renewed(Exception):
    """Old nodes have been made anew: nothing that was written can be referred to."""


class History:
    """What has been written of the history of one state."""

    def __init__(self, state: Any) -> None:
        self.state = state
        self.segments = 0
        """How many have been written."""
        self.first: int | None = None
        """The time of the oldest first event that was written."""
        self.positions: set[int] = set()
        self.check_at = 2 * LARGE
        """Nodes written with which it is looked how many of them are still in use."""
        self.count = 0
        self._number = 0
        """The number of the newest event written."""
        self._nodes: dict[int, tuple[Node, int]] = {}
        self._lists: dict[int, tuple[list[Node], int, int]] = {}
        """Lists that slots hold: their number, and how much of them has been written."""
        self._listed = 0

    @classmethod
    def read(
        cls,
        state: Any,
        pieces: int,
        nodes: Sequence[Node],
        lists: Mapping[int, tuple[list[Node], int]],
        held: Iterable[Node],
        listed: int,
    ) -> History:
        """That of a state that was read: how many pieces, their nodes, by their numbers the lists
        of slots and how much of each is in them, the nodes that slots hold, and how many lists
        there are."""
        made = cls(state)
        made.segments, made.count = pieces, len(nodes)
        made.check_at = max(made.check_at, 2 * made.count)
        made._number = max([node[NUMBER] for node in nodes], default=0)
        places = {id(node): place for place, node in enumerate(nodes)}
        made._nodes = {id(node): (node, places[id(node)]) for node in held if id(node) in places}
        made._lists = {id(them): (them, number, size) for number, (them, size) in lists.items()}
        made._listed = listed
        made.positions = {node[POSITION] for node in nodes}
        firsts = (node[EVENT].t for node in nodes if node[PREVIOUS] is None)
        made.first = min(firsts, default=None)
        return made

    def since(self, lists: Iterable[list[Node]], runs: Iterable[Node]) -> Tail:
        """What is new, where the slots hold these lists and runs. Raises `Renewed`."""
        return Tail(self, lists, runs)

    def seal(self, tail: Tail) -> None:
        """What is new has been written as a segment."""
        self.segments += 1
        self.count += len(tail.nodes)
        self._number = self.state.number
        self._listed += tail.new_lists
        self._nodes = {
            id(node): (node, tail.place(node)) for node in tail.held if tail.is_known(node)
        }
        self._lists = {
            id(nodes): (nodes, tail.list_place(nodes), len(nodes)) for nodes in tail.lists
        }
        self.positions |= tail.positions
        self.first = tail.first

    def node_place(self, node: Node) -> int | None:
        """The number of a node that was written and is still held; None for a new one."""
        known = self._nodes.get(id(node))
        if known is not None and known[0] is node:
            return known[1]
        if node[NUMBER] <= self._number:
            raise Renewed
        return None

    def list_entry(self, nodes: list[Node]) -> tuple[int, int] | None:
        """Number and written length of a list that is still held; None for a new one."""
        known = self._lists.get(id(nodes))
        return known[1:] if known is not None and known[0] is nodes else None

    @property
    def listed(self) -> int:
        """How many lists have been written."""
        return self._listed


class Tail:
    """What is new of a history. O(what is new, and what slots hold)."""

    def __init__(self, history: History, lists: Iterable[list[Node]], runs: Iterable[Node]) -> None:
        self._history = history
        self.lists = list(lists)
        """The lists that slots hold."""
        self.held = [*runs, *(node for nodes in self.lists for node in nodes)]
        """The nodes that slots hold."""
        self.nodes: list[Node] = []
        self.uses_old = False
        """Whether anything new, or any slot, refers to what was written."""
        self._seen: set[int] = set()
        self._wanted: dict[int, tuple[list[Node], int, int]] = {}
        """New parts of lists: the list, where the part begins and ends."""
        self._places: dict[int, int] = {}
        self._list_places: dict[int, int] = {}
        self._collect()
        self.new_lists = len(self._list_places)
        self._number()

    def _collect(self) -> None:
        todo: list[Node] = list(self.held)
        for nodes in self.lists:
            self._want(nodes, len(nodes), todo)
        while todo:
            node: Node | None = todo.pop()
            while node is not None and id(node) not in self._seen:
                if self._history.node_place(node) is not None:
                    self.uses_old = True
                    break
                self._seen.add(id(node))
                self.nodes.append(node)
                if node[SIZE] >= 0:
                    self._want(node[PREVIOUS], node[SIZE], todo)
                    break
                node = node[PREVIOUS]

    def _want(self, nodes: list[Node], size: int, todo: list[Node]) -> None:
        known = self._wanted.get(id(nodes))
        if known is None:
            entry = self._history.list_entry(nodes)
            if entry is None:
                self._list_places[id(nodes)] = self._history.listed + len(self._list_places)
            else:
                self.uses_old = True
            begin = covered = 0 if entry is None else entry[1]
        else:
            _, begin, covered = known
        self._wanted[id(nodes)] = (nodes, begin, max(size, covered))
        todo += nodes[covered:size]

    def _number(self) -> None:
        self.nodes.sort(key=itemgetter(NUMBER))
        places = enumerate(self.nodes, self._history.count)
        self._places = {id(node): place for place, node in places}
        firsts = [node[EVENT].t for node in self.nodes if node[PREVIOUS] is None]
        known = [self._history.first] if self._history.first is not None else []
        self.first: int | None = min([*known, *firsts], default=None)
        self.positions = {node[POSITION] for node in self.nodes}

    def is_known(self, node: Node) -> bool:
        """Whether a node has a number."""
        return id(node) in self._places or self._history.node_place(node) is not None

    def place(self, node: Node) -> int:
        """The number of a node."""
        place = self._places.get(id(node))
        if place is None:
            place = self._history.node_place(node)
        assert place is not None
        return place

    def list_place(self, nodes: list[Node]) -> int:
        """The number of a list."""
        place = self._list_places.get(id(nodes))
        if place is None:
            entry = self._history.list_entry(nodes)
            assert entry is not None
            place = entry[0]
        return place

    def rows(self, event_row: EventRow) -> dict[str, list[Any]]:
        """`events`, `h` and `l`; the numbers of events count from the beginning of this piece."""
        events: list[Any] = []
        places: dict[int, int] = {}
        rows = []
        for node in self.nodes:
            event = node[EVENT]
            if id(event) not in places:
                places[id(event)] = len(events)
                events.append(event_row(event))
            rows.append(self._node_row(node, places[id(event)]))
        lists: list[Any] = [
            [self.list_place(nodes), [self.place(node) for node in nodes[begin:end]]]
            for nodes, begin, end in self._wanted.values()
            if end > begin
        ]
        return {"events": events, "h": rows, "l": lists}

    def _node_row(self, node: Node, event: int) -> list[Any]:
        row = [event, node[POSITION], node[NUMBER]]
        previous = node[PREVIOUS]
        if node[SIZE] >= 0:
            place = self.list_place(previous)
            row += [place, node[SIZE], node[NEWEST_TIME], node[NEWEST_START]]
        elif previous is not None:
            row.append(self.place(previous))
        return row


def size_of(lists: Sequence[list[Node]], runs: Iterable[Node]) -> int:
    """How many nodes can be reached. O(all of them)."""
    seen: set[int] = set()
    walked: dict[int, int] = {}
    todo: list[Node] = [*runs, *(node for nodes in lists for node in nodes)]
    while todo:
        node: Node | None = todo.pop()
        while node is not None and id(node) not in seen:
            seen.add(id(node))
            before = node[PREVIOUS]
            if node[SIZE] < 0:
                node = before
                continue
            upto = walked.get(id(before), 0)
            if node[SIZE] > upto:
                walked[id(before)] = node[SIZE]
                todo += before[upto : node[SIZE]]
            break
    return len(seen)
