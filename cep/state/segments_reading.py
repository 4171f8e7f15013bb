"""The state of a large key, read from its pieces.

In: the segments of a state, the tail in its row, and what waits alone, as `cep.state.segments` has
written them. Out: what the state holds; and what has been written of it, so that the next
checkpoint goes on where the last one was.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from itertools import islice, repeat
from operator import itemgetter
from typing import Any, Protocol

from cep.key import key_of
from cep.runtime import bare
from cep.runtime.groups import Groups
from cep.runtime.rule import Slot
from cep.runtime.runs import NEWEST_TIME, POSITION, PREVIOUS, Node
from cep.state.segments import STEP, Held, History, Marks


class Piece(Protocol):
    """What is read of a piece."""

    events: list[Any]
    h: list[list[int]]
    l: list[list[int]]  # noqa: E741
    d: list[tuple[str, str, list[Any]]]


class Reading:
    """Makes what a state holds of its pieces. `history` is then what has been written of it."""

    def __init__(
        self,
        slots: Mapping[str, Slot],
        read_event: Callable[[Any], Any],
        value: Callable[[Any], Any],
    ) -> None:
        self.history = History()
        self._slots = slots
        self._read_event = read_event
        self._value = value
        self._variables: dict[int, tuple[Any, ...]] = {}
        self._events: list[Any] = []
        self._nodes: list[Node] = []
        self._lists: defaultdict[int, list[Node]] = defaultdict(list)
        self._held: dict[str, dict[Any, Any]] = {name: {} for name in slots}
        """What slots hold: runs by the numbers of their nodes, groups by their values."""
        self._bare_runs: dict[int, Any] = {}
        self._marks: Marks = {"dead": {}, "told": {}}

    def fill(
        self, state: Any, pieces: Sequence[Piece], tail: Piece, alone: Mapping[str, list[Any]]
    ) -> None:
        """Puts into the state what its segments, their tail and `s` say."""
        for piece in (*pieces, tail):
            for name, _, items in piece.d:
                self._note_variables(name, items)
        for name, items in alone.items():
            self._note_variables(name, items)
        for piece in pieces:
            self._take(piece)
        self._note_sealed(len(pieces))
        self._take(tail)
        for name, slot in self._slots.items():
            setattr(state, name, self._content(slot, alone.get(name)))
        if any(self._marks.values()):
            state.dead = self._marks["dead"] or None
            state.told = set(self._marks["told"]) or None
        for name, what, items in tail.d:
            self._note_tail(name, what, items)

    def _note_variables(self, name: str, items: Iterable[Any]) -> None:
        """What later conditions see of runs stands beside their nodes."""
        if name in self._marks or self._slots[name].grouped:
            return
        for item in items:
            if item.__class__ is list:
                self._variables[item[0]] = tuple([self._value(seen) for seen in item[1:]])

    def _take(self, piece: Piece) -> None:
        self._events += [self._read_event(event) for event in piece.events]
        if piece.h:
            self._add_nodes(piece.h)
        if piece.l:
            nodes, lists, (numbers, counts, places) = self._nodes, self._lists, piece.l
            members = map(nodes.__getitem__, places)
            for number, count in zip(numbers, counts, strict=True):
                lists[number] += islice(members, count)
        for name, what, items in piece.d:
            if name in self._marks:
                self._change_marks(self._marks[name], what, items)
            else:
                self._change(self._slots[name], what, items)

    def _add_nodes(self, columns: list[list[int]]) -> None:
        events, nodes, lists, variables = self._events, self._nodes, self._lists, self._variables
        whole = len(columns) > 4
        groups = zip(*columns[4:], strict=True) if whole else repeat((-1, 0, 0))
        for row, (size, age, start) in zip(zip(*columns[:4], strict=True), groups, strict=whole):
            event, number = events[row[0]], row[2]
            if size >= 0:
                before: Any = lists[row[3]]
                node: Node = (event, row[1], before, size, event.t - age, start, number)
            elif row[3] < 0:
                node = (event, row[1], None, -1, event.t, number, number)
            else:
                before = nodes[row[3]]
                node = (event, row[1], before, -1, before[4], before[5], number)
            if variables:
                node += variables.get(len(nodes), ())
            nodes.append(node)

    def _change_marks(self, marks: dict[int, int], what: str, items: list[Any]) -> None:
        if what == "+":
            marks.update(items)
        else:
            for start in items:
                marks.pop(start, None)

    def _change(self, slot: Slot, what: str, items: list[Any]) -> None:
        held = self._held[slot.name]
        if what == "=":
            held.clear()
        elif what == "-":
            for item in items:
                held.pop(key_of(self._value(item)) if slot.grouped else item, None)
        elif slot.grouped:
            for place, time, start, shown in items:
                seen = self._value(shown)
                key = key_of(seen)
                held.pop(key, None)
                held[key] = [self._lists[place], time, start, seen]
        else:
            came = {place: self._run(slot, place) for place in map(_place_in, items)}
            if what == "<":
                came.update(held)
                held.clear()
            held.update(came)

    def _run(self, slot: Slot, place: int) -> Any:
        """The run whose newest node has this number."""
        node = self._nodes[place]
        if slot.bare is None:
            return node
        if place not in self._bare_runs:
            self._bare_runs[place] = bare.events_of(node)
        return self._bare_runs[place]

    def _content(self, slot: Slot, alone: list[Any] | None) -> Any:
        """What a slot holds, all pieces taken."""
        held = self._held[slot.name]
        if slot.form == "hash":
            groups = self.history.held[slot.name].groups = Groups(held)
            return groups if held else None
        if slot.form == "one":
            return [self._lists[alone[0]], *alone[1:]] if alone else None
        if slot.form == "single" and slot.bare is None:
            return self._nodes[_place_in(alone[0])] if alone else None
        runs = list(held.values())
        if slot.form == "single":
            return runs[0] if runs else None
        return runs or None

    def _note_sealed(self, number: int) -> None:
        """Segments have been taken: so much is never written again."""
        history = self.history
        history.segments, history.rows = number, len(self._nodes)
        history.was_read(partial(self._note, len(self._nodes), len(self._events), self._sizes()))
        for name, content in self._held.items():
            held = history.held[name] = Held()
            held.is_new = False
            held.runs = [] if self._slots[name].grouped else list(content.values())
            held.size = len(held.runs)
        history.marks = {name: dict(marks) for name, marks in self._marks.items()}
        history.written = history.rows + sum(map(len, self._held.values()))
        history.check_at = max(history.check_at, history.written * 3 // 2)

    def _sizes(self) -> dict[int, int]:
        """How long each list is now, by its number."""
        return {number: len(nodes) for number, nodes in self._lists.items()}

    def _note(self, nodes: int, events: int, sizes: Mapping[int, int]) -> Iterator[None]:
        """Notes so many nodes, events, and parts of lists as written."""
        history = self.history
        history.kept = [*self._nodes, *self._bare_runs.values(), *self._lists.values()]
        for begin in range(0, nodes, 10 * STEP):
            some = self._nodes[begin : min(begin + 10 * STEP, nodes)]
            history.places.update(zip(map(id, some), range(begin, nodes), strict=False))
            history.positions.update(map(itemgetter(POSITION), some))
            firsts = [node[NEWEST_TIME] for node in some if node[PREVIOUS] is None]
            firsts += [history.first] if history.first is not None else []
            history.first = min(firsts, default=None)
            yield
        history.places.update((id(run), place) for place, run in self._bare_runs.items())
        for begin in range(0, events, 10 * STEP):
            some = self._events[begin : min(begin + 10 * STEP, events)]
            history.events.update(zip(map(id, some), range(begin, events), strict=False))
            yield
        for place, (number, size) in enumerate(sizes.items(), 1):
            name = id(self._lists[number])
            history.lists[name], history.sizes[name] = number, size
            if place % (10 * STEP) == 0:
                yield

    def _note_tail(self, name: str, what: str, items: list[Any]) -> None:
        """Groups have changed since the last segment."""
        if name in self._marks or not self._slots[name].grouped:
            return
        held = self.history.held[name]
        if what == "=":
            held.is_new = True
        else:
            values = items if what == "-" else [item[3] for item in items]
            held.changed.update((key_of(self._value(value)), None) for value in values)


def _place_in(item: Any) -> int:
    """The number of the node of a run as it is written."""
    place: int = item[0] if item.__class__ is list else item
    return place
