"""The shape of events: which fields the rules mention, and one flat object for each event.

In: the field paths that the rules mention with their inferred types. Out: an `EventShape`, whose
`type` is a msgspec struct made for just these fields. Decoding a line straight into it costs less
than half of decoding into a dict, and an attribute costs less than a key.

An event `e` has

* `e.t`: its time, integer microseconds since the epoch, UTC;
* `e.f0`, `e.f1`, …: one attribute for each mentioned path, None when null or missing;
* `e.raw`: the original (the bytes of a JSON line, the mapping a host gave, or a row as
  `Deferred`), `e.src` and
  `e.pos`: where it came from; `e.s`: the name of its derived stream, None for input events;
* `e.r`, only where streams have a `dedup`: one bit for each of them that drops it as a repeat;
  `e.n0`, …, only where a `select` asks a table: its fields as they were when the event came.

A value that is not of the inferred type is boxed as `Odd`: whatever the compiled code tries on it
raises, and the careful form of the condition takes over. So compiled code may compare a number
with `>` as it stands, and `true` never passes for 1.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import repeat
from typing import Any, NoReturn

import msgspec

from dsl.types import Type

Path = tuple[str, ...]

UNSET = msgspec.UNSET
"""What a field holds that is missing, where some rule asks `is missing` of it."""

_PYTHON_TYPES: dict[Type, Any] = {
    Type.STRING: str | None,
    Type.NUMBER: int | float | None,
    Type.INT: int | float | None,
    Type.BOOL: bool | None,
}
_ALLOWED: dict[Type, frozenset[type]] = {
    Type.STRING: frozenset({str, type(None)}),
    Type.NUMBER: frozenset({int, float, type(None)}),
    Type.INT: frozenset({int, float, type(None)}),
    Type.BOOL: frozenset({bool, type(None)}),
}


LEVELS = 600
"""Levels of nesting that are shown. Readers of JSON take more, but whoever goes through a value to
write it out needs room on the stack for each level, and has less of it."""

TOO_DEEP = "…"
"""What is shown instead of what lies deeper."""


class Odd:
    """A value of another type than the rules take it for. Every use of it raises TypeError.

    >>> Odd("12") > 5
    Traceback (most recent call last):
    TypeError: a value of an unexpected type
    """

    __slots__ = ("value",)

    def __init__(self, value: object) -> None:
        self.value = value

    def _refuse(self, *_: object) -> NoReturn:
        raise TypeError("a value of an unexpected type")

    __eq__ = __ne__ = __lt__ = __le__ = __gt__ = __ge__ = _refuse
    __hash__ = __bool__ = __len__ = __iter__ = __contains__ = __getitem__ = _refuse
    __add__ = __radd__ = __sub__ = __rsub__ = __mul__ = __rmul__ = _refuse
    __truediv__ = __rtruediv__ = __mod__ = __rmod__ = __neg__ = _refuse

    def __repr__(self) -> str:
        return f"Odd({self.value!r})"


def unbox(value: Any) -> Any:
    """The value itself, out of its box where it has one; missing becomes None."""
    if value.__class__ is Odd:
        value = value.value
    return None if value is UNSET else value


def shallow(value: Any, levels: int = LEVELS) -> Any:
    """The value, with `TOO_DEEP` for what is nested deeper than so many levels.

    >>> shallow({"a": [1, [2]]}, levels=2)
    {'a': [1, '…']}
    """
    inside: Any = None
    if isinstance(value, list | tuple):
        inside = enumerate(value)
    elif isinstance(value, dict):
        inside = value.items()
    if inside is None:
        return value
    if not levels:
        return TOO_DEEP
    changed: dict[Any, Any] = {}
    for place, item in inside:
        if isinstance(item, list | tuple | dict):
            fresh = shallow(item, levels - 1)
            if fresh is not item:
                changed[place] = fresh
    if not changed:
        return value
    if isinstance(value, dict):
        return {**value, **changed}
    return [changed.get(place, item) for place, item in enumerate(value)]


class Deferred(msgspec.Struct, gc=False):
    """The original of an event as a row, of which `record()` makes the mapping: few events are ever
    shown. Sources say what is kept of a row."""

    def record(self) -> dict[str, object]:
        """The fields with their values."""
        raise NotImplementedError


@dataclass(frozen=True, slots=True)
class FieldUse:
    """How the rules use a field: as which type, and whether any asks `is missing` of it."""

    type: Type = Type.ANY
    asks_missing: bool = False


class EventShape:
    """The fields that the rules mention, and the struct type that holds them.

    >>> shape = EventShape({("user",): FieldUse(Type.STRING), ("geo", "city"): FieldUse()})
    >>> event = shape.from_mapping({"user": "ann", "geo": {"city": "Rome"}})
    >>> event.f0, event.f1
    ('ann', 'Rome')
    """

    def __init__(
        self,
        uses: Mapping[Path, FieldUse],
        *,
        marks_repeats: bool = False,
        notes: Sequence[str] = (),
    ) -> None:
        self.uses = dict(uses)
        self.marks_repeats = marks_repeats
        self.notes = tuple(notes)
        """What is noted as `n0`, `n1`, …, by names that are the same in other rulesets too."""
        self.attributes = {path: f"f{i}" for i, path in enumerate(self.uses)}
        self._paths = list(self.uses)
        self._nested = [path for path in self.uses if len(path) > 1]
        self._heads = list(dict.fromkeys(path[0] for path in self._nested))
        self.type: Any = self._struct(typed=True)
        self.untyped: Any = self._struct(typed=False)
        self._checks = [
            (self.attributes[path], _ALLOWED[use.type])
            for path, use in self.uses.items()
            if use.type in _ALLOWED
        ]

    def expecting(self, names: Sequence[str], lacking: Collection[str], *, bare: bool) -> Any:
        """The struct for lines that have their fields in the order of `names`, which are found
        faster then; a line that has one of those `lacking` does not fit. `bare`: without what the
        engine knows of an event; `filled` makes whole events of these."""
        return self._struct(typed=True, names=names, lacking=lacking, bare=bare)

    def _struct(
        self,
        *,
        typed: bool,
        names: Sequence[str] = (),
        lacking: Collection[str] = (),
        bare: bool = False,
    ) -> Any:
        """A struct of the fields; the engine's own attributes have names no line can guess."""
        secret = secrets.token_hex(8)
        own: list[tuple[str, Any, Any]] = [
            ("t", int, 0),
            ("raw", Any, None),
            ("src", str, ""),
            ("pos", int, -1),
            ("s", str | None, None),
        ]
        if self.marks_repeats:
            own.append(("r", int, 0))
        own += [(f"n{i}", Any, None) for i in range(len(self.notes))]
        rename = {name: f"{secret}.{name}" for name, _, _ in own}
        members: list[tuple[str, Any, Any]] = []
        for path, use in self.uses.items():
            python = _PYTHON_TYPES.get(use.type, Any) if typed and len(path) == 1 else Any
            attribute = self.attributes[path]
            if attribute in lacking:
                python = None
            rename[attribute] = ".".join(path)
            if use.asks_missing or len(path) > 1:
                members.append((attribute, python | msgspec.UnsetType, UNSET))
            else:
                members.append((attribute, python, None))
        for i, head in enumerate(self._heads):
            # A field may be mentioned by itself and as the head of a path; one key, one member.
            if (head,) not in self.uses:
                rename[f"h{i}"] = head
                members.append((f"h{i}", Any, None))
        if names:
            place = {name: i for i, name in enumerate(names)}
            members.sort(key=lambda member: place.get(rename[member[0]], len(place)))
        if bare:
            ordered = members
        elif names:
            ordered = [*members, *own]
        else:
            # What conditions look at stands together: an event of long ago is no longer in the
            # cache, and costs a fetch for each line of memory that is touched.
            ordered = [own[0], *members, *own[1:]]
        return msgspec.defstruct("Event", ordered, rename=rename, gc=False)

    def settle(self, event: Any) -> None:
        """Puts the values of nested paths where compiled code reads them; boxes ill-typed ones.

        Needed after decoding when the rules mention nested paths, or when a line was decoded
        without types.
        """
        for path in self._nested:
            attribute = self.attributes[path]
            value = self._reach(event, path)
            if value is UNSET:
                value = getattr(event, attribute)
            if value is UNSET and not self.uses[path].asks_missing:
                value = None
            setattr(event, attribute, value)
        for attribute, allowed in self._checks:
            value = getattr(event, attribute)
            if value.__class__ not in allowed and value is not UNSET and value.__class__ is not Odd:
                setattr(event, attribute, Odd(value))

    @property
    def has_nested(self) -> bool:
        """Whether decoded events need `settle` even when every value has the right type."""
        return bool(self._nested)

    def _reach(self, event: Any, path: Path) -> Any:
        own = self.attributes.get(path[:1])
        value = getattr(event, own if own is not None else f"h{self._heads.index(path[0])}")
        for name in path[1:]:
            value = unbox(value)
            if not isinstance(value, Mapping) or name not in value:
                return UNSET
            value = value[name]
        return value

    def path_of(self, attribute: str) -> Path:
        """The path that an attribute holds the value of."""
        return self._paths[int(attribute[1:])]

    def from_mapping(self, record: Mapping[str, Any]) -> Any:
        """An event of this shape from a mapping of field names to values; its time is not set."""
        event = self.type(raw=record)
        for path, use in self.uses.items():
            value = lookup(record, path)
            if value is UNSET and not use.asks_missing:
                value = None
            allowed = _ALLOWED.get(use.type)
            if allowed is not None and value.__class__ not in allowed and value is not UNSET:
                value = Odd(value)
            setattr(event, self.attributes[path], value)
        return event

    def from_columns(
        self,
        column: Callable[[Path], Sequence[object] | None],
        times: Sequence[int],
        originals: Sequence[Any],
        source: str,
        places: Iterable[int],
    ) -> list[Any]:
        """Events of whole columns, which cost much less than one by one. `column` gives the values
        at a path, None where there are none at all."""
        columns: list[Iterable[object]] = []
        for path, use in self.uses.items():
            values = column(path)
            if values is None:
                columns.append(repeat(UNSET if use.asks_missing else None))
            else:
                columns.append(_of_type(values, use))
        return self.filled(columns, times, originals, source, places)

    def filled(
        self,
        columns: Iterable[Iterable[object]],
        times: Iterable[int],
        originals: Iterable[Any],
        source: str,
        places: Iterable[int],
    ) -> list[Any]:
        """Events with these values, for each of `uses` in their order and as events have them."""
        values = dict(zip(self.attributes.values(), columns, strict=True))
        values |= {"t": times, "raw": originals, "src": repeat(source), "pos": places}
        values |= {"r": repeat(0)}
        nothing = repeat(None)
        return list(map(self.type, *(values.get(f, nothing) for f in self.type.__struct_fields__)))

    def retype(self, untyped: Any) -> Any:
        """An event that was decoded into `untyped` as one of `type`, ill-typed values boxed."""
        event = self.type()
        for attribute in self.attributes.values():
            setattr(event, attribute, getattr(untyped, attribute))
        for i, head in enumerate(self._heads):
            if (head,) not in self.uses:
                setattr(event, f"h{i}", getattr(untyped, f"h{i}"))
        self.settle(event)
        return event


def _of_type(values: Sequence[object], use: FieldUse) -> Sequence[object]:
    """The values of a column as an event has them."""
    kinds, allowed = set(map(type, values)), _ALLOWED.get(use.type)
    if allowed is not None and not kinds <= allowed:
        values = [v if v.__class__ in allowed or v is UNSET else Odd(v) for v in values]
    if use.asks_missing and type(None) in kinds:
        values = [UNSET if value is None else value for value in values]
    return values


def lookup(record: Mapping[str, Any], path: Path) -> Any:
    """The value at a path: nested, or else under the flat key `a.b`; UNSET when there is none."""
    value: Any = record
    for name in path:
        if not isinstance(value, Mapping) or name not in value:
            return record.get(".".join(path), UNSET) if len(path) > 1 else UNSET
        value = value[name]
    return value


def merge_uses(uses: Iterable[tuple[Path, FieldUse]]) -> dict[Path, FieldUse]:
    """One use for each path: the common type, or `any` where rules take it for different ones.

    >>> merge_uses([(("x",), FieldUse(Type.INT)), (("x",), FieldUse(Type.NUMBER))])[("x",)].type
    <Type.NUMBER: 'number'>
    """
    merged: dict[Path, FieldUse] = {}
    for path, use in uses:
        use_type: Type = Type.NUMBER if use.type is Type.INT else use.type
        if use_type not in _ALLOWED:
            use_type = Type.ANY
        known = merged.get(path)
        if known is not None:
            use_type = _common(known.type, use_type)
            use = FieldUse(use_type, use.asks_missing or known.asks_missing)
        merged[path] = FieldUse(use_type, use.asks_missing)
    return {
        path: FieldUse(Type.ANY, use.asks_missing) if use.type is _CONFLICT else use
        for path, use in merged.items()
    }


_CONFLICT = Type.OBJECT
"""Stands for "taken for different types" while uses are merged; no use has this type."""


def _common(first: Type, second: Type) -> Type:
    if first is second or second is Type.ANY:
        return first
    return second if first is Type.ANY else _CONFLICT


@dataclass(frozen=True, slots=True)
class LateEvent:
    """An event that came after the clock had passed it, `by_us` microseconds too late."""

    source: str
    position: int
    time_us: int
    by_us: int
    raw: Any
