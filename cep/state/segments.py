"""The state of a large key in pieces that are written once.

In: the state of a key that has become large, each time it has changed. Out: what is new of it
since, as *segments* that are never written again, or, while that is little, as the tail in the
state's own row. So what a checkpoint writes is what has changed, and not the whole key.

Nodes are never changed and lists of nodes only grow at their ends, so what has been written of them
stays true: `History` knows which these are. Of what a place of the pattern holds the changes are
written: runs that have gone and come, groups by value that have changed. Where so much has been
written that half of it may be of no use any more, all is written anew, and the segments of before
are dropped.

**In slices.** A `Draft` takes down what the state holds at one moment, which costs as much as what
has changed in number of groups and not in number of events. Then it writes step by step, while the
state may change already: whatever it has taken down stays as it is.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from operator import is_, itemgetter
from typing import Any, NamedTuple

from cep.key import plain_key
from cep.runtime import bare
from cep.runtime.groups import Groups
from cep.runtime.rule import Slot
from cep.runtime.runs import (
    EVENT,
    FIRST_VARIABLE,
    NEWEST_START,
    NEWEST_TIME,
    NUMBER,
    POSITION,
    PREVIOUS,
    SIZE,
    Node,
)
from cep.state.values import to_json

LARGE = 1000
"""Nodes above which a state is kept in segments."""

SEALED = 250
"""New nodes and changes above which they become a segment; less is the tail."""

STEP = 1000
"""Nodes or changes of one step of work, and of one segment."""

Part = tuple[list[Any], int, int]
"""A part of a list: from where to where."""

EventRow = Callable[[Any], Any]
Lists = list[list[int]]
Marks = dict[str, dict[int, int]]
"""Starts that a skip has dropped, with their times (`dead`), or a timeout told of (`told`)."""

Change = list[Any]
"""A change of what a place holds, as it is written: [slot, what, items]. `=`: nothing is left of
what was there; `-`: the runs of these nodes, or the groups of these values, have gone; `<` and `+`:
these runs have come before or behind those that are there, these groups have come or changed. Of
marks likewise, by their starts."""


class Held:
    """What has been written of what a slot holds, where it holds runs one by one (`runs`, the first
    `size` of the list) or groups by value (`groups`; changed since are those of `changed`)."""

    __slots__ = ("changed", "groups", "is_new", "runs", "size")

    def __init__(self) -> None:
        self.runs: list[Any] = []
        self.size = 0
        self.groups: Groups | None = None
        self.changed: dict[Any, None] = {}
        self.is_new = True
        """Whether the groups are others than those that were written."""


class History:
    """What has been written of one state."""

    def __init__(self) -> None:
        self.segments = 0
        """How many have been written."""
        self.written = 0
        """Nodes and changes in them."""
        self.first: int | None = None
        """The time of the oldest first event that was written."""
        self.positions: set[int] = set()
        self.check_at = 2 * LARGE
        """When so much has been written, it is looked how much of it is still in use."""
        self.is_stale = False
        """Whether all is to be written anew."""
        self.rows = 0
        """How many nodes."""
        self.kept: list[Any] = []
        """Nodes, bare runs and lists that were written: so their identities stay theirs."""
        self.places: dict[int, int] = {}
        """Numbers of nodes and runs, by their identity."""
        self.events: dict[int, int] = {}
        """Numbers of events."""
        self.lists: dict[int, int] = {}
        """Numbers of lists of nodes."""
        self.sizes: dict[int, int] = {}
        """How much of them has been written."""
        self.held: dict[str, Held] = {}
        self.marks: Marks = {}
        self._read: Callable[[], Iterator[None]] | None = None

    def was_read(self, note: Callable[[], Iterator[None]]) -> None:
        """What was written has been read by this program; `note` notes it here, step by step, when
        it is needed for the first time: a start has no time for that."""
        self._read = note

    def prepare(self) -> Iterator[None]:
        """To be iterated before anything is looked up here."""
        if self._read is not None:
            yield from self._read()
            self._read = None


class Group(NamedTuple):
    """A group at one moment."""

    nodes: list[Node]
    size: int
    time: int
    start: int
    value: Any = None

    @classmethod
    def of(cls, group: Sequence[Any]) -> Group:
        """As it is now."""
        return cls(group[0], len(group[0]), *group[1:])


class Draft:
    """What is new of a state at the moment at which this is made; `steps` writes it."""

    def __init__(
        self,
        history: History,
        state: Any,
        slots: Sequence[Slot],
        event_row: EventRow,
        encode: Callable[[Any], bytes],
    ) -> None:
        self.history = history
        self._event_row = event_row
        self._encode = encode
        self.number = 0
        """How many runs the state has."""
        self._small: dict[str, Any] = {}
        """Slots that are written whole, since they hold a group, or one run."""
        self._runs: dict[str, tuple[Slot, list[Any], int]] = {}
        """Runs one by one: the list, and how many there are."""
        self._groups: dict[str, dict[Any, Group | None]] = {}
        """Changed groups by value; None: gone."""
        for slot in slots:
            self._take_down(slot, getattr(state, slot.name), state)
        self._marks = marks_of(state)
        self.segments: list[str] = []
        self.sealed = history.segments
        """How many segments that were written before still belong to the state."""
        self.tail: dict[str, list[Any]] = {}
        """What is new and not in segments."""
        self.positions: set[int] = set()
        self.first: int | None = None
        self._nodes: list[Any] = []
        self._paths: dict[int, tuple[int, ...]] = {}
        """By the identity of bare runs the positions that took their events."""
        self._places: dict[int, int] = {}
        self._events: dict[int, int] = {}
        self._new_events: list[Any] = []
        self._first_rows: list[int] = []
        """For each new event its first row."""
        self._lists: list[list[Node]] = []
        """Lists of which anything is wanted."""
        self._sizes: dict[int, int] = {}
        """How much of them."""
        self._list_numbers: dict[int, int] = {}
        """Numbers of those that are new."""
        self._columns: tuple[list[int], ...] = ([], [], [], [], [], [], [])
        """The rows of new nodes, see the head of `cep.state.codec`."""

    # ------------------------------------------------------------------ taking down

    def _take_down(self, slot: Slot, content: Any, state: Any) -> None:
        held = self.history.held.setdefault(slot.name, Held())
        if slot.form == "hash":
            self._take_groups(slot, content, held, state)
        elif slot.form == "one":
            if content is not None:
                self._small[slot.name] = Group.of(content)
                self.number += len(content[0])
        elif slot.bare is None and slot.form == "single":
            if content is not None:
                self._small[slot.name] = content
                self.number += 1
        else:
            runs = bare.runs_in(content)
            self._runs[slot.name] = slot, runs, len(runs)
            self.number += len(runs)

    def _take_groups(self, slot: Slot, groups: Any, held: Held, state: Any) -> None:
        groups = groups or {}
        self.number += sum([len(group[0]) for group in groups.values()])
        if held.groups is not None and groups is held.groups:
            for key in groups.take_changed():
                held.changed.pop(key, None)
                held.changed[key] = None
        else:
            held.groups, held.is_new = Groups(groups), True
            held.changed = dict.fromkeys(groups)
            if groups:
                setattr(state, slot.name, held.groups)
        self._groups[slot.name] = {
            key: Group.of(group) if (group := groups.get(key)) is not None else None
            for key in held.changed
        }

    # ------------------------------------------------------------------ writing

    def steps(self) -> Iterator[None]:
        """Writes, and may pause at each step: then `segments` and `tail` are what is new."""
        yield from self.history.prepare()
        runs = [change for name in self._runs for change in self._difference(name)]
        yield from self._collect(runs)
        if not self._paths:
            self._nodes.sort(key=itemgetter(NUMBER))
        yield from self._number()
        lists = yield from self._list_parts()
        changes = [*self._written_runs(runs), *self._written_groups(), *self._changed_marks()]
        number = self._number_of_rows + sum(len(items) for _, _, items in changes)
        yield
        if number > SEALED:
            yield from self._seal(lists, changes)
            self.history.written += number
        elif lists or changes or number:
            self.tail = self._piece(0, number)
            self.tail.update((name, new) for name, new in (("l", lists), ("d", changes)) if new)

    @property
    def _number_of_rows(self) -> int:
        return len(self._columns[0])

    def content(self) -> dict[str, Any]:
        """What of the state is not in segments, when all is written."""
        places = {
            name: [self._list_place(held.nodes), held.time, held.start]
            if held.__class__ is Group
            else [_run_row(held, self._place(held))]
            for name, held in self._small.items()
        }
        return {**self.tail, "s": places}

    def _seal(self, lists: Lists, changes: list[Change]) -> Iterator[None]:
        """Writes all that is new as segments."""
        history = self.history
        content: dict[str, list[Any]] = {}
        size = 0
        for begin in range(0, self._number_of_rows, STEP):
            if content:
                self._add_segment(content)
                yield
            content = self._piece(begin, begin + STEP)
            size = len(content["h"][0])
        for some in _cut_lists(lists):
            content["l"] = some
            size += len(some[2])
            if size >= STEP:
                self._add_segment(content)
                content, size = {}, 0
                yield
        for item in _cut(changes):
            content.setdefault("d", []).append(item)
            size += len(item[2]) + 1
            if size >= STEP:
                self._add_segment(content)
                content, size = {}, 0
                yield
        if content:
            self._add_segment(content)
        history.kept += self._nodes
        history.kept += [nodes for nodes in self._lists if id(nodes) in self._list_numbers]
        history.rows += self._number_of_rows
        history.places.update(self._places)
        history.events.update(self._events)
        history.lists.update(self._list_numbers)
        history.sizes.update(self._sizes)
        for slot, (_, runs, count) in self._runs.items():
            history.held[slot].runs, history.held[slot].size = runs, count
        for slot in self._groups:
            history.held[slot].changed, history.held[slot].is_new = {}, False
        history.marks = self._marks
        history.positions |= self.positions
        history.first = self.first
        history.segments += len(self.segments)

    def _add_segment(self, content: dict[str, list[Any]]) -> None:
        self.segments.append(self._encode(content).decode())

    def _piece(self, begin: int, end: int) -> dict[str, list[Any]]:
        """Some rows of nodes, and the events that come with them for the first time."""
        columns = [column[begin:end] for column in self._columns]
        if not columns[0]:
            return {}
        if max(columns[4]) < 0:
            del columns[4:]
        first, last = bisect_left(self._first_rows, begin), bisect_left(self._first_rows, end)
        new = list(map(self._event_row, self._new_events[first:last]))
        return {"events": new, "h": columns} if new else {"h": columns}

    # ------------------------------------------------------------------ what is new

    def _difference(self, name: str) -> list[Change]:
        """What has become of runs one by one, with the runs themselves."""
        held = self.history.held[name]
        _, runs, size = self._runs[name]
        if runs is held.runs:
            left, gone, added = held.size, [], 0
        else:
            there = set(map(id, runs[:size]))
            gone = [run for run in held.runs[: held.size] if id(run) not in there]
            left = held.size - len(gone)
            stayed = [run for run in held.runs[: held.size] if id(run) in there]
            added = next((i for i, run in enumerate(runs[:size]) if stayed and run is stayed[0]), 0)
            if not all(map(is_, stayed, runs[added : added + left])) or added + left > size:
                return [[name, "=", []], [name, "+", runs[:size]]]
        changes = [
            [name, "-", gone],
            [name, "<", runs[:added]],
            [name, "+", runs[added + left : size]],
        ]
        return [change for change in changes if change[2]]

    def _collect(self, changes: Iterable[Change]) -> Iterator[None]:
        """Finds the new nodes."""
        todo: list[Part] = []
        for name, what, runs in changes:
            kind = self._runs[name][0].bare
            if what in "<+" and kind is None:
                todo.append((runs, 0, len(runs)))
            elif what in "<+" and kind is not None:
                for run in runs:
                    if self._is_new(run):
                        self._nodes.append(run)
                        self._paths[id(run)] = kind.path
        for held in self._small.values():
            if held.__class__ is Group:
                self._want(held.nodes, held.size, todo)
            else:
                todo.append(([held], 0, 1))
        for groups in self._groups.values():
            for group in groups.values():
                if group is not None:
                    self._want(group.nodes, group.size, todo)
        looked = 0
        while todo:
            nodes, begin, end = todo.pop()
            if end - begin > STEP:
                todo.append((nodes, begin + STEP, end))
                end = begin + STEP
            for node in nodes[begin:end]:
                self._collect_behind(node, todo)
            looked += end - begin
            if looked >= STEP:
                looked = 0
                yield

    def _collect_behind(self, node: Node | None, todo: list[Part]) -> None:
        while node is not None and self._is_new(node):
            self._nodes.append(node)
            if node[SIZE] >= 0:
                self._want(node[PREVIOUS], node[SIZE], todo)
                return
            node = node[PREVIOUS]

    def _is_new(self, node: Any) -> bool:
        """Whether a node, or a bare run, has not been seen yet; now it has."""
        name = id(node)
        if name in self.history.places or name in self._places:
            return False
        self._places[name] = -1
        return True

    def _want(self, nodes: list[Node], size: int, todo: list[Part]) -> None:
        """A list is to be known up to `size`."""
        name = id(nodes)
        covered = self._sizes.get(name)
        if covered is None:
            self._lists.append(nodes)
            if name not in self.history.lists:
                self._list_numbers[name] = len(self.history.lists) + len(self._list_numbers)
            covered = self._sizes[name] = self.history.sizes.get(name, 0)
        if size > covered:
            self._sizes[name] = size
            todo.append((nodes, covered, size))

    # ------------------------------------------------------------------ numbers

    def _number(self) -> Iterator[None]:
        """Gives the new nodes their numbers and makes their rows; what is before a node has a
        smaller number."""
        for place, node in enumerate(self._nodes, 1):
            path = self._paths.get(id(node))
            if path is not None:
                self._add_bare(node, path)
            else:
                self._add_node(node)
            if place % STEP == 0:
                yield
        known = self.history.first
        if known is not None:
            self.first = known if self.first is None else min(self.first, known)

    def _add_node(self, node: Node) -> None:
        event, before, size = node[EVENT], node[PREVIOUS], node[SIZE]
        if before is None:
            self._begins(node[NEWEST_TIME])
            self._add(event, node[POSITION], node[NUMBER], -1)
        elif size < 0:
            self._add(event, node[POSITION], node[NUMBER], self._place(before))
        else:
            age, place = event.t - node[NEWEST_TIME], self._list_place(before)
            self._add(event, node[POSITION], node[NUMBER], place, size, age, node[NEWEST_START])
        self._places[id(node)] = self.history.rows + self._number_of_rows - 1

    def _add_bare(self, run: Any, path: Sequence[int]) -> None:
        """The events of a bare run as nodes; which numbers these have does not matter."""
        self._begins(run[0].t)
        before = -1
        for event, position in zip(run, path, strict=True):
            place = self.history.rows + self._number_of_rows
            self._add(event, position, place, before)
            before = place
        self._places[id(run)] = before

    def _begins(self, time: int) -> None:
        self.first = time if self.first is None else min(self.first, time)

    def _add(
        self,
        event: Any,
        position: int,
        number: int,
        before: int,
        size: int = -1,
        age: int = 0,
        start: int = 0,
    ) -> None:
        name = id(event)
        place = self._events.get(name)
        if place is None:
            place = self.history.events.get(name)
        if place is None:
            place = self._events[name] = len(self.history.events) + len(self._events)
            self._new_events.append(event)
            self._first_rows.append(self._number_of_rows)
        self.positions.add(position)
        row = (place, position, number, before, size, age, start)
        for column, value in zip(self._columns, row, strict=True):
            column.append(value)

    def _place(self, node: Any) -> int:
        """The number of a node, or of a bare run."""
        place = self._places.get(id(node))
        return self.history.places[id(node)] if place is None else place

    def _list_place(self, nodes: list[Node]) -> int:
        """The number of a list."""
        number = self._list_numbers.get(id(nodes))
        return self.history.lists[id(nodes)] if number is None else number

    # ------------------------------------------------------------------ changes

    def _list_parts(self) -> Generator[None, None, Lists]:
        """What has been added to lists, as columns: number of the list, how many further nodes, and
        all of these nodes."""
        numbers: list[int] = []
        counts: list[int] = []
        places: list[int] = []
        looked = 0
        for nodes in self._lists:
            begin, size = self.history.sizes.get(id(nodes), 0), self._sizes[id(nodes)]
            if size > begin:
                numbers.append(self._list_place(nodes))
                counts.append(size - begin)
                places += [self._place(node) for node in nodes[begin:size]]
            looked += 1 + size - begin
            if looked > STEP:
                looked = 0
                yield
        return [numbers, counts, places] if numbers else []

    def _written_runs(self, changes: Iterable[Change]) -> Iterator[Change]:
        for name, what, runs in changes:
            if what == "-" or self._runs[name][0].bare is not None:
                rows: list[Any] = [self._place(run) for run in runs]
            else:
                rows = [_run_row(run, self._place(run)) for run in runs]
            if what == "<" and len(rows) > STEP:  # the last of them is put there first
                for end in range(len(rows), 0, -STEP):
                    yield [name, what, rows[max(end - STEP, 0) : end]]
            else:
                yield [name, what, rows]

    def _changed_marks(self) -> Iterator[Change]:
        for name, marks in self._marks.items():
            known = self.history.marks.get(name, {})
            gone = [start for start in known if start not in marks]
            if gone:
                yield [name, "-", gone]
            new = [[start, time] for start, time in marks.items() if start not in known]
            if new:
                yield [name, "+", new]

    def _written_groups(self) -> Iterator[Change]:
        for name, groups in self._groups.items():
            if self.history.held[name].is_new:
                yield [name, "=", []]
            gone = [to_json(plain_key(key)) for key, group in groups.items() if group is None]
            if gone:
                yield [name, "-", gone]
            there = [
                [self._list_place(group.nodes), group.time, group.start, to_json(group.value)]
                for group in groups.values()
                if group is not None
            ]
            if there:
                yield [name, "+", there]


def marks_of(state: Any) -> Marks:
    """The marks of a state as they are now; of bare runs there are none."""
    told = getattr(state, "told", None) or ()
    return {"dead": dict(getattr(state, "dead", None) or {}), "told": dict.fromkeys(told, 0)}


def _run_row(run: Node, place: int) -> Any:
    """A run as it is written: its node, with what later conditions see of it."""
    if len(run) > FIRST_VARIABLE:
        return [place, *map(to_json, run[FIRST_VARIABLE:])]
    return place


def _cut(changes: Iterable[Change]) -> Iterator[Change]:
    """The changes, those of more than `STEP` items in parts."""
    for name, what, items in changes:
        for begin in range(0, max(len(items), 1), STEP):
            yield [name, what, items[begin : begin + STEP]]


def _cut_lists(lists: Lists) -> Iterator[Lists]:
    """What has been added to lists, in parts of about `STEP` nodes."""
    if not lists:
        return
    part: Lists = [[], [], []]
    begin = 0
    for number, count in zip(lists[0], lists[1], strict=True):
        while count:
            some = min(count, STEP)
            part[0].append(number)
            part[1].append(some)
            part[2] += lists[2][begin : begin + some]
            begin, count = begin + some, count - some
            if len(part[2]) >= STEP:
                yield part
                part = [[], [], []]
    if part[0]:
        yield part


def number_of(heads: Iterable[Node], most: int) -> Iterator[int]:
    """How many nodes can be reached, so far, at each step; ends where there are more than `most`.
    O(all of them)."""
    seen: set[int] = set()
    walked: dict[int, int] = {}
    todo: list[Iterator[Node]] = [iter(heads)]
    steps = 0
    while todo:
        node: Node | None = next(todo[-1], None)
        if node is None:
            todo.pop()
            continue
        while node is not None and id(node) not in seen:
            seen.add(id(node))
            before = node[PREVIOUS]
            if node[SIZE] >= 0:
                upto = walked.get(id(before), 0)
                if node[SIZE] > upto:
                    walked[id(before)] = node[SIZE]
                    todo.append(iter(before[upto : node[SIZE]]))
                break
            node = before
        steps += 1
        if steps % STEP == 0 or len(seen) > most:
            yield len(seen)
            if len(seen) > most:
                return
    yield len(seen)
