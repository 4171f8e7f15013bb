"""The state of a key whose runs are bare, as JSON text, and back: the short way.

In: a state that holds nothing but bare runs (`cep.runtime.bare`), as those of most keys do. Out:
the same text in format 1 that `cep.state.codec` describes, put together without making the nodes;
and of such a text the state. What has anything unusual is left to the long way (None).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from operator import attrgetter
from typing import Any

import msgspec

from cep.runtime import bare
from cep.runtime.rule import RuleRun, Slot
from cep.state.event_codec import Event, EventCodec
from cep.state.store import StateRow
from cep.state.values import exact_key, json_text, key_from_text, key_text

BEGIN = '{"f":1,'
"""Of a text in format 1."""


class _Read(msgspec.Struct, gc=False):
    """What of format 1 states with bare runs have. A run that shows values is a list."""

    w: int
    events: list[Event]
    h: list[list[int]]
    s: dict[str, list[int | list[Any]]]
    floor: int = 0
    l: msgspec.Raw | None = None  # noqa: E741
    dead: msgspec.Raw | None = None
    k: msgspec.Raw | None = None


_read = msgspec.json.Decoder(_Read).decode


class _Place:
    """A slot, and what is the same of all runs that wait there."""

    def __init__(self, run: RuleRun, slot: Slot) -> None:
        assert slot.bare is not None
        layout = run.plan.layout
        self.name = slot.name
        self.path = slot.bare.path
        self.seen = slot.bare.seen
        self.is_single = slot.form == "single"
        self.is_list = slot.form == "list" and slot.deadline is None
        self.reached = max(layout.node_of[layout.step_of[position]] for position in self.path)
        self.step = run.form.steps[max(map(layout.step_of.__getitem__, self.path))]
        self.alone = f'"h":{self._nodes()},"s":{{"{slot.name}":[{len(self.path) - 1}]}}}}'
        """What is written of a run that nothing is seen of, behind its events."""

    def _nodes(self) -> str:
        nodes = [
            [place, position, place + 1, *([place - 1] if place else [])]
            for place, position in enumerate(self.path)
        ]
        return msgspec.json.encode(nodes).decode()


class BareCodec:
    """Writes and reads states with bare runs of one rule. O(events of the runs)."""

    def __init__(self, run: RuleRun, events: EventCodec) -> None:
        self._run = run
        self._events = events
        places = [_Place(run, slot) for slot in run.plan.slots]
        self._places = sorted(places, key=lambda place: -len(place.path))
        """Those further on first: their runs are older."""
        self._by_name = {place.name: place for place in self._places}
        names = [place.name for place in self._places]
        self._held: Callable[[Any], Any] = attrgetter(*names)
        self._only = self._places[0] if len(self._places) == 1 else None

    def row(self, state: Any) -> StateRow | None:
        """The row of a state; None for one that the long way is to write."""
        key = state.key
        if state.floor or (key.__class__ is not str and exact_key(key) is not None):
            return None
        held = self._held(state)
        place = self._only
        if place is None:
            filled = [
                (place, runs)
                for place, runs in zip(self._places, held, strict=True)
                if runs is not None
            ]
            if len(filled) != 1:
                return self._several(state, filled) if filled else None
            place, held = filled[0]
        if held.__class__ is list:
            if len(held) > 1:
                return self._several(state, [(place, held)])
            run = held[0]
        elif held is None:
            return None
        else:
            run = held
        return self._single(state, place, run)

    def _single(self, state: Any, place: _Place, run: bare.Run) -> StateRow | None:
        """The row of a state with one run."""
        if place.seen:
            return self._several(state, [(place, [run])])
        events, wake, first = self._lines(run), state.wake, run[0].t
        if events is None:
            return None
        text = f'{BEGIN}"n":{len(run)},"w":{wake},"events":[{events}],{place.alone}'
        ends = self._run.ends_at_of(run, first)
        return StateRow(key_text(state.key), text, place.step, first, wake or None, 1, ends)

    def _lines(self, run: bare.Run) -> str | None:
        """The events of a run; None where one is for the long way."""
        line = self._events.line
        if len(run) == 1:
            return line(run[0])
        texts = [text for event in run if (text := line(event)) is not None]
        return ",".join(texts) if len(texts) == len(run) else None

    def _several(self, state: Any, filled: Sequence[tuple[_Place, Any]]) -> StateRow | None:
        """The row of a state with any number of runs, the oldest first."""
        line = self._events.line
        places: dict[int, int] = {}
        events: list[str] = []
        nodes: list[str] = []
        waiting = []
        first, newest, number = 1 << 62, -(1 << 62), 0
        for place, held in filled:
            runs = held if held.__class__ is list else [held]
            path, seen, heads = place.path, place.seen, []
            for run in runs:
                before = ""
                for position, event in zip(path, run, strict=True):
                    at = places.get(id(event))
                    if at is None:
                        text = line(event)
                        if text is None:
                            return None
                        at = places[id(event)] = len(events)
                        events.append(text)
                    nodes.append(f"[{at},{position},{len(nodes) + 1}{before}]")
                    before = f",{len(nodes) - 1}"
                head = str(len(nodes) - 1)
                if seen:
                    shown = [json_text(bare.value_of(run, where)) for where in seen]
                    head = f"[{head},{','.join(shown)}]"
                heads.append(head)
            first, newest = min(first, runs[0][0].t), max(newest, runs[-1][0].t)
            number += len(runs)
            waiting.append(f'"{place.name}":[{",".join(heads)}]')
        wake = state.wake
        text = (
            f'{BEGIN}"n":{len(nodes)},"w":{wake},"events":[{",".join(events)}],'
            f'"h":[{",".join(nodes)}],"s":{{{",".join(waiting)}}}}}'
        )
        furthest = max([place for place, _ in filled], key=attrgetter("reached"))
        oldest = bare.runs_in(filled[0][1])[0]
        ends = self._run.ends_at_of(oldest, newest)
        return StateRow(key_text(state.key), text, furthest.step, first, wake or None, number, ends)

    def number(self, state: Any) -> int:
        """How many nodes are written of a state."""
        held = self._held(state)
        if self._only is not None:
            return len(bare.runs_in(held)) * len(self._only.path)
        return sum(
            [
                len(bare.runs_in(runs)) * len(place.path)
                for place, runs in zip(self._places, held, strict=True)
            ]
        )

    def adopt(self, key: str, text: str | bytes) -> Any:
        """The state of a text, which lives in the rule from now on; None for one that the long way
        is to read."""
        state = self._decoded(key, text)
        if state is not None:
            self._run.states[state.key] = state
            if state.wake:
                self._run.woken(state)
        return state

    def _decoded(self, key: str, text: str | bytes) -> Any:
        try:
            row = _read(text)
            events = list(map(self._events.read, row.events))
        except Exception:
            return None  # the long way says why
        if row.l or row.k or row.floor or row.dead or not row.s:
            return None
        state = self._run.State()
        for name, heads in row.s.items():
            place = self._by_name.get(name)
            if place is None:
                return None
            runs = self._runs(row.h, events, heads, len(place.path))
            if runs is None:
                return None
            alone = len(runs) == 1 and not place.is_list
            setattr(state, name, runs[0] if alone else runs)
        state.key, state.wake = key_from_text(key), row.w
        return state

    def _runs(
        self, nodes: Sequence[Sequence[int]], events: Sequence[Any], heads: Any, length: int
    ) -> list[bare.Run] | None:
        """The runs whose newest nodes these are."""
        runs = []
        for head in heads:
            at = head if head.__class__ is int else head[0]
            run: list[Any] = []
            while at is not None:
                node = nodes[at]
                if len(node) > 4:
                    return None
                run.append(events[node[0]])
                at = node[3] if len(node) == 4 else None
            if len(run) != length:
                return None
            runs.append(tuple(reversed(run)))
        return runs
