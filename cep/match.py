"""The match record: what a rule says when it has found something.

In: a run that section 5 has chosen, as its history of taken events. Out: a `Match`, which computes
its parts when they are asked for, and `to_dict()`, the record of the reference. The `id` is a hash
of what was found and not of when: a replay gives the same one, so a sink can be idempotent.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from hashlib import blake2b
from math import inf
from typing import Any

import msgspec

from cep.event import LEVELS, TOO_DEEP, Deferred, shallow, unbox
from cep.event_time import format_time, parse_time
from cep.key import plain_key

Events = list[list[Any]]
"""The bound events of a match: for each step, in written order, the events that it took."""

Describe = Callable[
    [Events, tuple[Any, ...], int, Mapping[str, Any]], tuple[str | None, dict[str, Any]]
]
"""Text and fields of a match, from its events, key, time and window values."""


@dataclass(slots=True)
class MatchFormat:
    """What the matches of one rule have in common, and the generated functions that describe them.

    `step_of`: the step (by number) of each position of the automaton. `loops`: steps whose events
    are shown as an array. `path`: the positions of the events of a row of steps, where a history
    may be nothing but its events.
    `emits`: (stream, fields of the event) for each `emit`.
    """

    rule: str
    version: str
    title: str | None
    severity: str | None
    tags: tuple[str, ...]
    key_names: tuple[str, ...]
    steps: tuple[str, ...]
    loops: frozenset[str]
    step_of: tuple[int, ...]
    path: tuple[int, ...]
    careful: Any
    identity: Callable[[Any, int], Any]
    having: Callable[..., Any] | None = None
    alert: Describe | None = None
    timeout_alert: Describe | None = None
    emits: tuple[tuple[str, Callable[..., dict[str, Any]]], ...] = ()
    timeout_emits: tuple[tuple[str, Callable[..., dict[str, Any]]], ...] = ()
    dedup: Callable[..., Any] | None = None
    derived: Callable[..., None] | None = None
    """Adds to the values of a window the fields that are expressions over aggregates."""
    eager: bool = False
    """Whether text and fields must be computed at once, since they look things up in tables."""
    records: Mapping[str, bool] = field(default_factory=lambda: {"match": True, "timeout": True})

    def events(self, history: list[Any]) -> Events:
        """The events of a history by step."""
        bound: Events = [[] for _ in self.steps]
        step_of = self.step_of
        for node in history:
            bound[step_of[node[1]]].append(node[0])
        return bound

    def key_parts(self, key: Any) -> tuple[Any, ...]:
        """The parts of a key as they are kept in the state (one part is kept bare)."""
        parts = key if key.__class__ is tuple else (key,)
        return tuple(map(plain_key, parts))

    def reports(self, kind: str) -> bool:
        """Whether matches of this kind become records (a rule may only emit)."""
        return self.records[kind]

    @property
    def only_records(self) -> bool:
        """Whether a match causes nothing but a record that can be computed at any time."""
        emits = self.emits or self.timeout_emits or self.timeout_alert is not None
        return not emits and not self.eager and self.records["match"]

    def settle(self, match: Match) -> None:
        """Computes now what would look different later."""
        if self.eager:
            match.describe()


class MatchMore:
    """What is only kept of a match when it is there or was asked for."""

    __slots__ = ("described", "events", "suppressed", "window")

    def __init__(self, window: WindowMatch | None = None) -> None:
        self.window = window
        self.events: Events | None = None
        self.described: tuple[str | None, dict[str, Any]] | None = None
        self.suppressed: dict[str, int] | None = None


class Match(msgspec.Struct, eq=False, gc=False):
    """Something that a rule has found.

    `time`, `first` and `last` are microseconds since the epoch, UTC: when the match is complete,
    and its first and last event. `kind` is "match" or "timeout". `key`, `fields` and `events` are
    plain JSON values; `events` gives for each step its original event, or a list of them for a
    step that may take several. `suppressed`: what `dedup` has hidden since the last report.
    """

    _form: MatchFormat
    kind: str
    time: int
    _key: Any
    _history: Any
    """A list of nodes; or a tuple: the newest node of a chain, or the events of a row of steps."""
    _more: MatchMore | None = None
    """Most matches are counted or thrown away: what else there is to one is made when asked for."""

    def _nodes(self) -> list[Any]:
        """The history as a list of nodes, whose first members are event and position."""
        if self._history.__class__ is tuple:
            if len(self._history) > 1 and self._history[1].__class__ is int:
                self._history = _chained(self._history)
            else:
                self._history = list(zip(self._history, self._form.path, strict=True))
        history: list[Any] = self._history
        return history

    def _rest(self) -> MatchMore:
        if self._more is None:
            self._more = MatchMore()
        return self._more

    @property
    def _window(self) -> WindowMatch | None:
        return self._more.window if self._more is not None else None

    @property
    def suppressed(self) -> dict[str, int] | None:
        """How many reports `dedup` has hidden since the last one, and when the first and the last
        of them would have come; None when there were none."""
        return self._more.suppressed if self._more is not None else None

    @suppressed.setter
    def suppressed(self, hidden: dict[str, int] | None) -> None:
        if hidden is not None:
            self._rest().suppressed = hidden

    # ------------------------------------------------------------------ what people read

    @property
    def rule(self) -> str:
        """The name of the rule."""
        return self._form.rule

    @property
    def version(self) -> str:
        """A short hash of the rule as it was checked: another one when its meaning changes."""
        return self._form.version

    @property
    def title(self) -> str | None:
        """The title of the rule."""
        return self._form.title

    @property
    def severity(self) -> str | None:
        """info, low, medium, high or critical."""
        return self._form.severity

    @property
    def tags(self) -> tuple[str, ...]:
        """The tags of the rule."""
        return self._form.tags

    @property
    def key(self) -> dict[str, Any]:
        """The key by the names of its parts."""
        return dict(zip(self._form.key_names, self._form.key_parts(self._key), strict=False))

    @property
    def first(self) -> int | None:
        """Time of the first event."""
        if self._window is not None:
            return self._window.first
        return int(self._nodes()[0][0].t)

    @property
    def last(self) -> int | None:
        """Time of the last event."""
        if self._window is not None:
            return self._window.last
        return int(self._nodes()[-1][0].t)

    @property
    def message(self) -> str | None:
        """The text of the alert; without one the title, or the rule's name."""
        text = self.describe()[0]
        return text if text is not None else self._form.title or self._form.rule

    @property
    def fields(self) -> dict[str, Any]:
        """The fields of the alert block."""
        return self.describe()[1]

    @property
    def events(self) -> dict[str, Any]:
        """The original events by step: one, or a list for a step that may take several."""
        shown: dict[str, Any] = {}
        for name, bound in zip(self._form.steps, self._bound(), strict=True):
            originals = [original(event) for event in bound if event.raw is not None]
            if originals:
                shown[name] = originals if name in self._form.loops else originals[0]
        return shown

    @property
    def time_iso(self) -> str:
        """`time` as ISO 8601."""
        return format_time(self.time)

    @property
    def id(self) -> str:
        """A hash of rule, version, kind, key and which events took which step; 32 hex digits."""
        form = self._form
        key = list(form.key_parts(self._key))
        what: list[Any] = [form.rule, form.version, self.kind, key]
        if self._window is not None:
            what.append(self._window.identity())
        else:
            for step, bound in enumerate(self._bound()):
                if bound:
                    taken = [form.identity(event, step) for event in bound]
                    what.append([form.steps[step], taken])
        return blake2b(_identity_bytes(what), digest_size=16).hexdigest()

    def to_dict(self) -> dict[str, Any]:
        """The match record of the reference: JSON values only, times as ISO 8601 in UTC."""
        record: dict[str, Any] = {
            "id": self.id,
            "rule": self.rule,
            "version": self.version,
            "kind": self.kind,
            "time": self.time_iso,
            "first": format_time(self.first) if self.first is not None else None,
            "last": format_time(self.last) if self.last is not None else None,
            "key": self.key,
            "severity": self.severity,
            "tags": list(self.tags),
            "message": self.message,
            "fields": self.fields,
            "events": self.events,
        }
        if self.suppressed is not None:
            record["suppressed"] = {
                "count": self.suppressed["count"],
                "first": format_time(self.suppressed["first"]),
                "last": format_time(self.suppressed["last"]),
            }
        return record

    def to_json(self) -> bytes:
        """`to_dict()` as one line of JSON, without the line break."""
        return msgspec.json.encode(self.to_dict())

    def __repr__(self) -> str:
        return f"<Match {self.rule} {self.time_iso} {self.key}>"

    # ------------------------------------------------------------------ what the engine asks

    def _bound(self) -> Events:
        more = self._rest()
        if more.events is None:
            more.events = self._form.events(self._nodes())
        return more.events

    def _values(self) -> Mapping[str, Any]:
        window = self._window
        return window.values if window is not None else {}

    def describe(self) -> tuple[str | None, dict[str, Any]]:
        """Text and fields, computed once."""
        more = self._rest()
        if more.described is None:
            form = self._form
            alert = form.alert if self.kind == "match" else form.timeout_alert
            if alert is None:
                more.described = None, {}
            else:
                parts = form.key_parts(self._key)
                more.described = alert(self._bound(), parts, self.time, self._values())
        return more.described

    def dedup_key(self) -> Any:
        """What `dedup` compares; None: never a repeat."""
        form = self._form
        if form.dedup is None:
            return self._key
        return form.dedup(self._bound(), form.key_parts(self._key), self.time, self._values())

    def emitted(self) -> list[tuple[str, dict[str, Any]]]:
        """The events that the match causes: (stream, fields)."""
        form = self._form
        emits = form.emits if self.kind == "match" else form.timeout_emits
        if not emits:
            return []
        parts = form.key_parts(self._key)
        key = dict(zip(form.key_names, parts, strict=False))
        bound, values = self._bound(), self._values()
        return [
            (stream, {**key, **make(bound, parts, self.time, values)}) for stream, make in emits
        ]

    def counts(self) -> dict[str, int]:
        """How many events each step took."""
        return dict(zip(self._form.steps, map(len, self._bound()), strict=True))

    def step_field(self, step: str, path: tuple[str, ...]) -> Any:
        """A field of the last event of a step, as it stands in the original."""
        from cep.event import lookup

        bound = self._bound()[self._form.steps.index(step)]
        return unbox(lookup(original(bound[-1]), path)) if bound else None


@dataclass(slots=True)
class WindowMatch:
    """A match of an aggregate: the window's values by name, its bounds, and the event that
    triggered it where windows slide."""

    values: Mapping[str, Any]
    start: int
    end: int
    first: int | None
    last: int | None
    trigger: Any = None

    def identity(self) -> list[Any]:
        return [self.start, self.end, self.trigger]


def _chained(node: Any) -> list[Any]:
    """The nodes of a chain, of which `node` is the newest, in order."""
    nodes = []
    while node is not None:
        nodes.append(node)
        node = node[2]
    nodes.reverse()
    return nodes


def original(event: Any) -> Any:
    """The event as it came: the decoded line, or the mapping that a host or source gave. What is
    nested too deep to be written out is left out."""
    raw = event.raw
    if raw is None:
        return {}
    if not isinstance(raw, bytes | bytearray | memoryview):
        return shallow(raw.record() if isinstance(raw, Deferred) else raw)
    line = bytes(raw)
    deep = line.count(b"[") + line.count(b"{") > LEVELS
    try:
        decoded = _decoded(line)
        return shallow(decoded) if deep else decoded
    except RecursionError:  # it has been read before, with a shorter stack
        return {TOO_DEEP: line.decode(errors="replace")}


_decode = msgspec.json.Decoder().decode


def _decoded(line: bytes) -> Any:
    try:
        return _decode(line)
    except msgspec.ValidationError:
        return json.loads(line, parse_float=_number, parse_int=_number)


def _identity_bytes(what: list[Any]) -> bytes:
    try:
        return msgspec.json.encode(what)
    except RecursionError:  # a field that is the identity of an event may be anything
        return msgspec.json.encode(shallow(what))


class RecordedMatch:
    """A match that was found before a restart, as its record. It reads like a `Match`."""

    def __init__(self, record: dict[str, Any]) -> None:
        self._record = record
        self.id: str = record["id"]
        self.rule: str = record["rule"]
        self.version: str = record["version"]
        self.kind: str = record["kind"]
        self.severity: str | None = record["severity"]
        self.tags: tuple[str, ...] = tuple(record["tags"])
        self.message: str | None = record["message"]
        self.title: str | None = None
        self.key: dict[str, Any] = record["key"]
        self.fields: dict[str, Any] = record["fields"]
        self.events: dict[str, Any] = record["events"]
        self.time_iso: str = record["time"]

    @property
    def time(self) -> int:
        """When the match was complete, in microseconds."""
        return _micros(self.time_iso)

    @property
    def first(self) -> int | None:
        """Time of the first event."""
        return _micros(self._record["first"]) if self._record["first"] else None

    @property
    def last(self) -> int | None:
        """Time of the last event."""
        return _micros(self._record["last"]) if self._record["last"] else None

    @property
    def suppressed(self) -> dict[str, int] | None:
        """What `dedup` has hidden since the report before."""
        kept = self._record.get("suppressed")
        if kept is None:
            return None
        times = {name: _micros(kept[name]) for name in ("first", "last")}
        return {"count": kept["count"], **times}

    def to_dict(self) -> dict[str, Any]:
        """The match record."""
        return self._record

    def to_json(self) -> bytes:
        """The match record as one line of JSON."""
        return msgspec.json.encode(self._record)

    def __repr__(self) -> str:
        return f"<Match {self.rule} {self.time_iso} {self.key}>"


def _micros(text: str) -> int:
    time = parse_time(text)
    assert time is not None
    return time


def _number(digits: str) -> float | int | str:
    """A number of a field that no rule reads; as it is written where Python has none so large."""
    try:
        number = int(digits) if digits.lstrip("-").isdigit() else float(digits)
    except ValueError:  # an integer of more digits than Python converts
        return digits
    return digits if number in (inf, -inf) else number
