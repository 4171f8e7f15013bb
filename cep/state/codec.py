"""The state of a key as JSON text, and back.

In: the state of one key of one rule, as it is while events run. Out: one line of JSON, from which
`decode` makes an equal state in any program with the same rule: the same runs in the same groups,
histories shared where they were shared, events decoded again from their originals into the shape of
the rules that run then. `codec_of` gives the codec of a rule; it knows the rule's automaton states.

**Runs** (`StateCodec`):

    {"f":1, "n":7, "w":1700000600000001,
     "events":[[{"type":"A","user":"ann"}, 1700000000000000, 4711, "auth.jsonl"], …],
     "h":[[0,0,6], [1,2,7,0], …],
     "s":{"s1":[1]}}

* `f`: the number of the format; `n`: how many events the key has seen; `w`: when it is woken.
* `events`: as [original, time, position, source]. The original is the JSON line as it came,
  byte for byte but for the space around it. It is a text where a line is nested so deep that not
  every reader of JSON would take it; `["m", {…}]` for a mapping that a host or another format gave
  (see `cep.state.values`); null for the event of an expected key. A fifth item holds what else the
  engine noted: `s`, the derived stream; `r`, repeats; by their meaning, fields that asked a table.
* `h`: the nodes of histories, in the order in which they were made, as [event, position, number] of
  a first event and [event, position, number, node before] of a later one; a node that took its
  event with a whole group has [event, position, number, list, size, newest time, newest start].
* `l`: lists of nodes that groups and nodes share. They only ever grow at the end, so one list does
  for all who know a part of it.
* `s`: what waits where: runs as nodes, or as [node, variable, …]; of a group [list, newest time,
  newest start], of groups by value a list of these, each with its value.
* `floor`, `dead`, `told`: starts that a skip dropped or a timeout told; `q`: when leading absences
  were last broken; `k`: the key, where its text does not tell it exactly.

A large state is written in pieces (`cep.state.segments`), in format 3: `g` holds those before, each
with `events`, `h`, `l` and `d` of its own. Events, nodes and lists are numbered over all pieces.

* `h`: the nodes as columns: event, position, number, node before (−1: none); where a node took its
  event with a whole group also size (−1: it did not; else the column before has the list), how much
  older the newest start is than the event, number of the newest start.
* `l`: what has come to lists, as columns: number of the list, how many nodes, and these one after
  the other.
* `d`: what has changed in what waits where, see `cep.state.segments.Change`. `s` has only what
  waits alone, or as one group.

Format 2 was an earlier form of that: `h` and `s` as in format 1, events numbered in each piece.

**Windows** are written by `cep.state.window_codec`.

Whoever changes a format takes the next number, keeps the reader of the old one in `FORMATS`, and
adds fixtures of the new one to `tests/state/fixtures`.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from operator import attrgetter, itemgetter
from typing import TYPE_CHECKING, Any

import msgspec

from cep.event import EventShape
from cep.key import key_of
from cep.runtime.rule import RuleRun, Slot, held_in, hold
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
    is_dropped,
)
from cep.runtime.window_rule import WindowRun
from cep.state import segments
from cep.state.bare_codec import BEGIN, BareCodec
from cep.state.event_codec import DecodeLine, Event, EventCodec
from cep.state.segments import Draft, History
from cep.state.segments_reading import Reading
from cep.state.store import StateError, StateRow
from cep.state.values import (
    exact_key,
    from_json,
    json_text,
    key_from_exact,
    key_from_text,
    key_text,
    to_json,
)

if TYPE_CHECKING:
    from cep.state.window_codec import WindowCodec

FORMAT = 1
"""The number of the format that is written, but for large states."""

IN_PIECES = 3
"""That of those."""

Gradual = Iterator[StateRow | None]
"""A row that takes some work: None at each step, at last the row."""


class UnreadableState(StateError):
    """A stored state that this version, or these rules, cannot read."""


def codec_of(
    run: RuleRun | WindowRun, shape: EventShape, decode_line: DecodeLine
) -> StateCodec | WindowCodec:
    """The codec for the states of a rule."""
    if isinstance(run, RuleRun):
        return StateCodec(run, shape, decode_line)
    from cep.state.window_codec import WindowCodec

    return WindowCodec(run)


# ---------------------------------------------------------------------------- runs


class _Head(msgspec.Struct):
    """What all formats of a state have; see the module's head."""

    f: int
    n: int
    w: int = 0
    floor: int = 0
    q: dict[str, int] = {}
    dead: list[tuple[int, int]] = []
    told: list[int] = []
    k: list[Any] | None = None
    events: list[Event] = []


class _State(_Head):
    """Format 1."""

    h: list[list[int]] = []
    l: list[list[int]] = []  # noqa: E741
    s: dict[str, list[Any]] = {}


class _Piece2(msgspec.Struct):
    """A further piece in format 2."""

    events: list[Event] = []
    h: list[list[int]] = []
    l: list[tuple[int, list[int]]] = []  # noqa: E741


class _State2(_Head):
    """Format 2."""

    h: list[list[int]] = []
    l: list[tuple[int, list[int]]] = []  # noqa: E741
    s: dict[str, list[Any]] = {}
    g: list[_Piece2] = []


class _Piece3(msgspec.Struct):
    """A further piece in format 3."""

    events: list[Event] = []
    h: list[list[int]] = []
    l: list[list[int]] = []  # noqa: E741
    d: list[tuple[str, str, list[Any]]] = []


class _State3(_Head):
    """Format 3."""

    h: list[list[int]] = []
    l: list[list[int]] = []  # noqa: E741
    d: list[tuple[str, str, list[Any]]] = []
    s: dict[str, list[Any]] = {}
    g: list[_Piece3] = []


_encode = msgspec.json.Encoder().encode


_read_state = msgspec.json.Decoder(_State).decode
_read_state_2 = msgspec.json.Decoder(_State2).decode
_read_state_3 = msgspec.json.Decoder(_State3).decode


class StateCodec:
    """Writes and reads the states of a rule with runs.

    `encode` of a key with one run of one event costs some 2 µs; in general O(nodes and events).
    """

    kind = "runs"

    def __init__(self, run: RuleRun, shape: EventShape, decode_line: DecodeLine) -> None:
        self.run = run
        self.slots = run.plan.slots
        self._quiet = tuple(f"q{i}" for i in range(len(run.plan.quiet)))
        self._held = _getter([slot.name for slot in self.slots])
        self._events = EventCodec(shape, decode_line)
        self._by_name = {slot.name: slot for slot in self.slots}
        layout = run.plan.layout
        self._progress = [(layout.node_of[step], step) for step in layout.step_of]
        self._bare = BareCodec(run, self._events) if run.plan.is_bare else None
        self._histories: dict[int, History] = {}
        """By identity of the state: what of it has been written in pieces."""
        self._read: History | None = None
        """That of the state that was decoded last, where it is in pieces."""

    def encode(self, state: Any) -> str:
        """The state as text, without its key."""
        if self._bare is not None and (row := self._bare.row(state)) is not None:
            return row.state or ""
        text = self._one_run(state)
        return self._whole(state) if text is None else text

    def row(self, state: Any) -> StateRow:
        """The state with its key and what can be said of it at a glance: the step that its furthest
        run has reached, the time of its first event, when it is woken, when time decides over its
        runs, how many these are. Runs that are kept as a group count as one for each of its newest
        events."""
        short = self._bare.row(state) if self._bare is not None else None
        if short is not None:
            return short
        filled = self._filled(state)
        heads = [node for slot, held in filled for node in _heads(held, slot)]
        row = StateRow(key_text(state.key), self.encode(state), due_us=state.wake or None)
        if heads:
            furthest = max([self._progress[node[POSITION]] for node in heads])
            row.step = self.run.form.steps[furthest[1]]
            row.runs = len(heads)
            row.ends_us = self.run.ends_at(state)
            row.first_us = self._first(heads, any(slot.grouped for slot, _ in filled))
        return row

    def changed_row(self, state: Any) -> StateRow | Gradual:
        """The same for a state that has changed, to be written over the one of before: of a large
        one only what is new since the last call. That takes steps, of what the state is now."""
        history = self._histories.get(id(state))
        if history is None and self._number(state) <= segments.LARGE // 10:
            return self.row(state)
        if not self._is_large(state):
            self.forget(state)
            return self.row(state)
        if history is None or history.is_stale:
            history = self._histories[id(state)] = History()
        draft = Draft(history, state, self.slots, self._events.row, _encode)
        row = StateRow(key_text(state.key), None, due_us=state.wake or None)
        row.runs, row.ends_us = draft.number, self.run.ends_at(state, at_a_glance=True)
        return self._in_steps(state, draft, row, self._head(IN_PIECES, state))

    def forget(self, state: Any) -> None:
        """The state is not written any more by this program, or is gone."""
        self._histories.pop(id(state), None)

    def _is_large(self, state: Any) -> bool:
        """Whether a state is worth writing in pieces. O(how much it takes for that)."""
        if self._bare is not None:
            return self._number(state) > segments.LARGE
        marks = len(state.dead or ()) + len(state.told or ())
        *_, number = segments.number_of(_lazy_heads(state, self.slots), segments.LARGE)
        return number + marks > segments.LARGE

    def _in_steps(self, state: Any, draft: Draft, row: StateRow, head: dict[str, Any]) -> Gradual:
        """Completes the row of a large state."""
        for _ in draft.steps():
            yield None
        row.sealed, row.segments = draft.sealed, tuple(draft.segments)
        row.state = _encode({**head, **draft.content()}).decode()
        history = draft.history
        positions = history.positions | draft.positions
        if row.runs and positions:
            row.step = self.run.form.steps[max(self._progress[place] for place in positions)[1]]
            row.first_us = draft.first
        if history.written >= history.check_at:
            yield from self._look_back(state, history, row.runs)
        yield row

    def _look_back(self, state: Any, history: History, runs: int) -> Gradual:
        """Whether half of what has been written is of no use any more."""
        number = 0
        if self._bare is not None:
            number = self._number(state)
        else:
            heads = list(_lazy_heads(state, self.slots))
            for found in segments.number_of(heads, history.written):
                number = found
                yield None
        number += runs + sum(map(len, segments.marks_of(state).values()))
        history.is_stale = number < history.written // 2
        history.check_at = history.written + max(number // 2, segments.LARGE)

    def _first(self, heads: list[Node], grouped: bool) -> int:
        """The time of the first event of any run."""
        if not grouped or all(node[PREVIOUS] is None for node in heads):
            return int(min([node[NEWEST_TIME] for node in heads]))
        starts = (node for node in _Histories(heads).nodes if node[PREVIOUS] is None)
        return int(min(node[EVENT].t for node in starts))

    def decode(self, key: str, text: str | bytes) -> Any:
        """The state that `encode` was given. Its key has the text `key`.

        Raises `UnreadableState` for what is no such text, or one of another rule or version.
        """
        self._read = None
        try:
            return _reader(text)(self, key, text)
        except Exception as error:
            raise unreadable(text, error) from error

    def is_earlier_form(self, key: str, text: str) -> bool:
        """Whether a text that can be read is of a form that is written no more: format 2, and runs
        that are bare now as they were when they had numbers or stood in a group."""
        number = format_of(text)
        if number != FORMAT or self._bare is None:
            return number not in (FORMAT, IN_PIECES)
        stored = _read_state(text)
        again = _read_state(self.encode(self.decode(key, text)))
        same = (stored.w, len(stored.events)) == (again.w, len(again.events))
        return same and (stored.n, stored.h, stored.l) != (again.n, again.h, again.l)

    def adopt(self, key: str, text: str | bytes) -> Any:
        """Decodes a state and lets it live in the rule: it will be found and woken."""
        if self._bare is not None and text[:7] == BEGIN:
            state = self._bare.adopt(key, text)
            if state is not None:
                return state
        state = self.decode(key, text)
        self.run.states[state.key] = state
        if state.wake:
            self.run.woken(state)
        history, self._read = self._read, None
        if history is not None:
            self._histories[id(state)] = history
        return state

    def _filled(self, state: Any) -> list[tuple[Slot, Any]]:
        """What the slots hold, as lists of runs, groups, or dicts of groups."""
        return [(slot, held) for slot in self.slots if (held := held_in(state, slot))]

    # ------------------------------------------------------------------ writing

    def _one_run(self, state: Any) -> str | None:
        """The text of a state with one run of one event, which most are; None for any other."""
        if state.dead or state.told or self._quiet:
            return None
        if state.key.__class__ is not str and exact_key(state.key) is not None:
            return None
        filled = None
        for slot, held in zip(self.slots, self._held(state), strict=True):
            if held:
                if filled is not None:
                    return None
                filled = slot, held
        if filled is None:
            return None
        slot, held = filled
        if slot.bare is not None:
            return None
        run = _only_run(held, slot.form)
        if run is None or run[PREVIOUS] is not None:
            return None
        event = self._events.line(run[EVENT])
        if event is None:
            return None
        floor = f'"floor":{state.floor},' if state.floor else ""
        shared, waiting = "", "[0]"
        if slot.form == "one":
            shared, waiting = '"l":[[0]],', f"[0,{run[NEWEST_TIME]},{run[NEWEST_START]}]"
        elif len(run) > FIRST_VARIABLE:
            waiting = f"[[0,{','.join([json_text(value) for value in run[FIRST_VARIABLE:]])}]]"
        return (
            f'{{"f":{FORMAT},"n":{self._number(state)},"w":{state.wake},{floor}"events":[{event}],'
            f'"h":[[0,{run[POSITION]},{run[NUMBER]}]],{shared}"s":{{"{slot.name}":{waiting}}}}}'
        )

    def _whole(self, state: Any) -> str:
        filled = self._filled(state)
        histories = _Histories(node for slot, held in filled for node in _heads(held, slot))
        for slot, held in filled:
            if slot.grouped:
                for group in _groups(held, slot):
                    histories.take_list(group[0], len(group[0]))
        content: dict[str, Any] = histories.rows(self._events.row)
        content["s"] = {slot.name: _written(held, slot, histories) for slot, held in filled}
        made = self._head(FORMAT, state)
        made.update((name, content) for name, content in content.items() if content)
        return _encode(made).decode()

    def _number(self, state: Any) -> int:
        """How many events the key has seen; where these are not counted, its nodes."""
        return self._bare.number(state) if self._bare is not None else int(state.number)

    def _head(self, format: int, state: Any) -> dict[str, Any]:
        """What is written of a state besides its runs and histories."""
        made: dict[str, Any] = {"f": format, "n": self._number(state), "w": state.wake}
        more = {"floor": state.floor, "k": exact_key(state.key)}
        if self._bare is None and format == FORMAT:
            more["dead"] = sorted(state.dead.items()) if state.dead else None
            more["told"] = sorted(state.told) if state.told else None
        more["q"] = {name: at for name in self._quiet if (at := getattr(state, name)) is not None}
        made.update((name, content) for name, content in more.items() if content)
        return made

    # ------------------------------------------------------------------ reading

    def read_1(self, key: str, text: str | bytes) -> Any:
        """Reads format 1."""
        row = _read_state(text)
        value = _reader_of_values(text)
        variables = self._variables_of(row, value)
        lists: list[list[Node]] = [[] for _ in row.l]
        nodes = _nodes(row.h, [self._events.read(event) for event in row.events], lists, variables)
        for shared, members in zip(lists, row.l, strict=True):
            shared += [nodes[i] for i in members]
        return self._made(key, row, nodes, lists, value)

    def read_2(self, key: str, text: str | bytes) -> Any:
        """Reads format 2."""
        row = _read_state_2(text)
        value = _reader_of_values(text)
        variables = self._variables_of(row, value)
        nodes: list[Node] = []
        lists: defaultdict[int, list[Node]] = defaultdict(list)
        pieces: list[_Piece2 | _State2] = [*row.g, row]
        for piece in pieces:
            events = [self._events.read(event) for event in piece.events]
            _add_nodes(nodes, piece.h, events, lists, variables)
            for number, members in piece.l:
                lists[number] += [nodes[i] for i in members]
        return self._made(key, row, nodes, lists, value)

    def read_3(self, key: str, text: str | bytes) -> Any:
        """Reads format 3."""
        row = _read_state_3(text)
        reading = Reading(self._by_name, self._events.read, _reader_of_values(text))
        state = self._begun(key, row)
        reading.fill(state, row.g, row, row.s)
        self._read = reading.history
        return state

    def _variables_of(
        self, row: _State | _State2, value: Callable[[Any], Any]
    ) -> dict[int, tuple[Any, ...]]:
        """The variables of runs that are kept one by one, by their nodes."""
        runs = [held for name, held in row.s.items() if not self._by_name[name].grouped]
        return _variables(runs, value)

    def _made(
        self,
        key: str,
        row: _State | _State2,
        nodes: list[Node],
        lists: Any,
        value: Callable[[Any], Any],
    ) -> Any:
        """The state of a row, its histories made."""
        state = self._begun(key, row)
        dropped = dict(row.dead)
        for name, held in row.s.items():
            slot = self._by_name[name]
            if self._bare is not None and row.l:  # they were a group before they were bare
                runs = lists[held[0]]
            else:
                runs = _read_slot(held, slot, nodes, lists, value)
            if (
                self._bare is not None
            ):  # what was marked as dropped when runs had numbers is left out
                runs = [r for r in runs if not is_dropped(r[NEWEST_START], row.floor, dropped)]
            hold(state, slot, runs or None)
        return state

    def _begun(self, key: str, row: _Head) -> Any:
        """A state without its runs."""
        state = self.run.State()
        state.key = key_from_text(key) if row.k is None else key_from_exact(row.k)
        state.wake = row.w
        if self._bare is None:
            state.number, state.floor = row.n, row.floor
            state.dead = dict(row.dead) or None
            state.told = set(row.told) or None
        for name, at in row.q.items():
            setattr(state, name, at)
        return state


def _lazy_heads(state: Any, slots: Iterable[Slot]) -> Iterator[Node]:
    """The newest node of each run."""
    for slot in slots:
        held = getattr(state, slot.name)
        if held is None:
            continue
        if slot.form == "single":
            yield held
        elif slot.form == "list":
            yield from held
        else:
            for group in _groups(held, slot):
                yield from group[0]


def _reader_of_values(text: str | bytes) -> Callable[[Any], Any]:
    mark = b'"$"' if isinstance(text, bytes) else '"$"'
    return from_json if mark in text else _as_it_is  # type: ignore[operator]


def _as_it_is(value: Any) -> Any:
    return value


def _getter(names: Sequence[str]) -> Callable[[Any], tuple[Any, ...]]:
    """The attributes of these names, as a tuple also where there is one or none."""
    if len(names) > 1:
        return attrgetter(*names)
    if not names:
        return lambda _: ()
    only = attrgetter(names[0])
    return lambda state: (only(state),)


def _in_slots(filled: Iterable[tuple[Slot, Any]]) -> tuple[list[list[Node]], list[Node]]:
    """What slots hold: the lists of groups, and runs that are kept one by one."""
    lists: list[list[Node]] = []
    runs: list[Node] = []
    for slot, held in filled:
        if slot.grouped:
            lists += [group[0] for group in _groups(held, slot)]
        else:
            runs += held
    return lists, runs


def _groups(held: Any, slot: Slot) -> Iterable[list[Any]]:
    return [held] if slot.form == "one" else held.values()


def _heads(held: Any, slot: Slot) -> Sequence[Node]:
    """The newest node of each run that a slot holds."""
    if not slot.grouped:
        return held  # type: ignore[no-any-return]
    return [node for group in _groups(held, slot) for node in group[0]]


def _only_run(held: Any, form: str) -> Node | None:
    """The run that a slot holds where it is the only one; None for several, and groups by value."""
    if form == "single":
        return held  # type: ignore[no-any-return]
    runs: Sequence[Node] = held if form == "list" else held[0] if form == "one" else ()
    return runs[0] if len(runs) == 1 else None


class _Histories:
    """The nodes and shared lists that can be reached from the newest nodes, and their numbers."""

    def __init__(self, heads: Iterable[Node]) -> None:
        self.nodes: list[Node] = []
        self._seen: set[int] = set()
        self._covered: dict[int, int] = {}
        self._lists: list[list[Node]] = []
        self._list_places: dict[int, int] = {}
        self._todo: list[tuple[list[Node], int, int]] = []
        self._places: dict[int, int] | None = None
        for node in heads:
            self._take(node)
        self._follow()

    def take_list(self, nodes: list[Node], size: int) -> None:
        """The list is kept up to `size` at least."""
        self._want(nodes, size)
        self._follow()

    def _take(self, node: Node | None) -> None:
        seen = self._seen
        while node is not None and id(node) not in seen:
            seen.add(id(node))
            self.nodes.append(node)
            if node[SIZE] >= 0:
                self._want(node[PREVIOUS], node[SIZE])
                return
            node = node[PREVIOUS]

    def _want(self, nodes: list[Node], size: int) -> None:
        covered = self._covered.get(id(nodes))
        if covered is None:
            self._list_places[id(nodes)] = len(self._lists)
            self._lists.append(nodes)
            covered = 0
        self._covered[id(nodes)] = max(size, covered)
        if size > covered:
            self._todo.append((nodes, covered, size))

    def _follow(self) -> None:
        while self._todo:
            nodes, first, end = self._todo.pop()
            for node in nodes[first:end]:
                self._take(node)

    def place(self, node: Node) -> int:
        """The number of a node: those made before have smaller ones."""
        if self._places is None:
            self.nodes.sort(key=itemgetter(NUMBER))
            self._places = {id(node): i for i, node in enumerate(self.nodes)}
        return self._places[id(node)]

    def list_place(self, nodes: list[Node]) -> int:
        """The number of a list."""
        return self._list_places[id(nodes)]

    def rows(self, event_row: Callable[[Any], Any]) -> dict[str, list[Any]]:
        """`events`, `h` and `l`."""
        places: dict[int, int] = {}
        events: list[Any] = []
        rows: list[Any] = []
        if self.nodes:
            self.place(self.nodes[0])
        for node in self.nodes:
            event = node[EVENT]
            place = places.get(id(event))
            if place is None:
                place = places[id(event)] = len(events)
                events.append(event_row(event))
            rows.append(self._node_row(node, place))
        lists = [
            [self.place(node) for node in nodes[: self._covered[id(nodes)]]]
            for nodes in self._lists
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


def _written(held: Any, slot: Slot, histories: _Histories) -> list[Any]:
    """What a slot holds, by the numbers of nodes and lists."""
    if not slot.grouped:
        return [
            [histories.place(run), *map(to_json, run[FIRST_VARIABLE:])]
            if len(run) > FIRST_VARIABLE
            else histories.place(run)
            for run in held
        ]
    rows = [
        [histories.list_place(group[0]), group[1], group[2], *map(to_json, group[3:])]
        for group in _groups(held, slot)
    ]
    return rows[0] if slot.form == "one" else rows


def _variables(
    held: Iterable[Sequence[Any]], value: Callable[[Any], Any]
) -> dict[int, tuple[Any, ...]]:
    """The variables of runs by the numbers of their nodes."""
    return {
        run[0]: tuple([value(seen) for seen in run[1:]])
        for runs in held
        for run in runs
        if run.__class__ is list
    }


def _nodes(
    rows: Sequence[Sequence[Any]],
    events: Sequence[Any],
    lists: Sequence[list[Node]],
    variables: Mapping[int, tuple[Any, ...]],
) -> list[Node]:
    """The nodes of `h`; the lists may still be empty, they are only referred to."""
    nodes: list[Node] = []
    _add_nodes(nodes, rows, events, lists, variables)
    return nodes


def _add_nodes(
    nodes: list[Node],
    rows: Sequence[Sequence[Any]],
    events: Sequence[Any],
    lists: Sequence[list[Node]] | Mapping[int, list[Node]],
    variables: Mapping[int, tuple[Any, ...]],
) -> None:
    """Makes further nodes, which may refer to those made before."""
    for row in rows:
        event, position, number = events[row[0]], row[1], row[2]
        if len(row) == 3:
            node: Node = (event, position, None, -1, event.t, number, number)
        elif len(row) == 4:
            before = nodes[row[3]]
            node = (event, position, before, -1, before[4], before[5], number)
        else:
            place, size, time, start = row[3:]
            node = (event, position, lists[place], size, time, start, number)
        kept = variables.get(len(nodes))
        nodes.append(node if kept is None else node + kept)


def _read_slot(
    held: list[Any],
    slot: Slot,
    nodes: Sequence[Node],
    lists: Sequence[list[Node]] | Mapping[int, list[Node]],
    value: Callable[[Any], Any],
) -> Any:
    """What a slot holds, of what `_written` gave."""
    if not slot.grouped:
        return [nodes[run[0] if run.__class__ is list else run] for run in held]
    if slot.form == "one":
        return [lists[held[0]], held[1], held[2]]
    groups: dict[Any, list[Any]] = {}
    for place, time, start, shown in held:
        seen = value(shown)
        groups[key_of(seen)] = [lists[place], time, start, seen]
    return groups


# ---------------------------------------------------------------------------- formats


FORMATS: Mapping[int, Callable[..., Any]] = {
    1: lambda codec, key, text: codec.read_1(key, text),
    2: lambda codec, key, text: codec.read_2(key, text),
    3: lambda codec, key, text: codec.read_3(key, text),
}
"""The reader of each format that has ever been released."""


class _Numbered(msgspec.Struct):
    f: int


_read_number = msgspec.json.Decoder(_Numbered).decode


def is_in_pieces(text: str) -> bool:
    """Whether a state is written in pieces."""
    return format_of(text) >= 2


def format_of(text: str | bytes) -> int:
    """The number of a text's format, which most have at the very beginning."""
    begin, place = ('{"f":', 5) if isinstance(text, str) else (b'{"f":', 5)
    if text.startswith(begin) and text[place + 1 : place + 2] in (",", b","):  # type: ignore[arg-type]
        return int(text[place : place + 1])
    return _read_number(text).f


def _reader(text: str | bytes) -> Callable[..., Any]:
    """The reader of a text's format."""
    number = format_of(text)
    require_known(number)
    return FORMATS[number]


def require_known(number: int) -> None:
    """Raises `UnreadableState` for the number of a format that this version cannot read."""
    if number not in FORMATS:
        raise UnreadableState(
            f"a state is stored in format {number}, which this version of cep does not know "
            f"(it knows {', '.join(map(str, FORMATS))}); it was written by a newer one"
        )


def unreadable(text: str | bytes, error: Exception) -> UnreadableState:
    """Whatever is wrong with a text, in words."""
    if isinstance(error, UnreadableState):
        return error
    shown = text[:80] if isinstance(text, str) else text[:80].decode(errors="replace")
    return UnreadableState(f"a stored state cannot be read: {error} (in {shown} …)")
