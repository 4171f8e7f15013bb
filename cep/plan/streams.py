"""Streams as conditions: which events belong, and what their fields are.

In: the checked streams. Out, for a stream: its *origins*, the ways an event may belong to it, and
its fields as expressions over the original event. `from`, `where` and `select` are worked into
these, so that at run time there is nothing left of a chain of streams but conditions on one event.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import lru_cache
from itertools import islice

from cep.plan.automaton import Origin
from cep.plan.limits import FIELD_SIZE, ORIGINS, TooLarge
from cep.plan.values import Noted, Unrepeated, noted, rewrite
from dsl import checked
from dsl.checked import (
    CallFunction,
    Comparison,
    Conjunction,
    Const,
    Disjunction,
    Field,
    GetField,
    Value,
    conjuncts,
)
from dsl.types import Type

IN_A_ROW = 16
"""More parents of one stream are not asked one after the other for the one that has an event."""

Fields = Mapping[str, Value] | None
"""The fields of a stream that selects them; None: those of the event itself."""


class _Union(dict[str, Value]):
    """The fields that some parents of a stream select, where another parent has those of the event
    itself; `other` gives any further field."""

    def __init__(self, fields: Mapping[str, Value], other: Callable[[Field], Value]) -> None:
        super().__init__(fields)
        self.other = other


class Streams:
    """Answers what belongs to a stream and what its fields mean on the original event."""

    def __init__(self, streams: Mapping[str, checked.Stream]) -> None:
        self._streams = streams
        self.origins = lru_cache(maxsize=None)(self._origins)
        self.fields = lru_cache(maxsize=None)(self._fields)
        self.type_paths = {s.type_path for s in streams.values() if s.type_value is not None}
        """The fields that say of which type an event is."""

    def _origins(self, name: str) -> tuple[Origin, ...]:
        stream = self._streams[name]
        found: list[Origin] = []
        if stream.emitted:
            found.append(Origin(name, self._own_filters(stream, None)))
        elif not stream.parents:
            found.append(Origin(None, self._type_test(stream) + self._own_filters(stream, None)))
        for parent in stream.parents:
            own = self._own_filters(stream, self.fields(parent))
            found += [Origin(o.source, o.filters + own) for o in self.origins(parent)]
            if len(found) > ORIGINS:
                raise TooLarge(
                    f"there are more than {ORIGINS} ways to belong to stream {name}", stream.span
                )
        return tuple(found)

    def _own_filters(self, stream: checked.Stream, fields: Fields) -> tuple[Value, ...]:
        filters = tuple(_on(fields, part) for part in conjuncts(stream.where))
        if stream.dedup is not None:
            filters += (Unrepeated(stream.name, type=Type.BOOL),)
        return filters

    def _type_test(self, stream: checked.Stream) -> tuple[Value, ...]:
        if stream.type_value is None:
            return ()
        kind = Field(stream.type_path, type=Type.STRING)
        name = Const(stream.type_value, type=Type.STRING)
        return (Comparison("==", kind, name, type=Type.BOOL),)

    def _fields(self, name: str) -> Fields:
        stream = self._streams[name]
        inherited = self._inherited(stream.parents)
        if stream.select is None:
            return inherited
        fields = {field: noted(_on(inherited, value)) for field, value in stream.select}
        for field, value in fields.items():
            if _larger_than(FIELD_SIZE, value):
                raise TooLarge(
                    f"field {field} of stream {name} is made of more than {FIELD_SIZE} values",
                    stream.span,
                )
        return fields

    def _inherited(self, parents: tuple[str, ...]) -> Fields:
        """The fields of the parents; where they differ, of the first parent that has the event."""
        known = [self.fields(parent) for parent in parents]
        if not known or all(fields == known[0] for fields in known):
            return known[0] if known else None
        names = sorted({name for fields in known if fields is not None for name in fields})
        fields = {name: noted(self._choose(parents, Field((name,)))) for name in names}
        if None not in known:
            return fields
        return _Union(fields, lambda field: self._choose(parents, field))

    def notes(self, name: str) -> tuple[Noted, ...]:
        """What must be noted in an event of the stream that was not noted for all its parents."""
        parents = self._streams[name].parents
        fields = self.fields(name)
        if fields is None or (parents and all(fields == self.fields(p) for p in parents)):
            return ()
        return tuple(dict.fromkeys(v for v in fields.values() if isinstance(v, Noted)))

    def _choose(self, parents: tuple[str, ...], field: Field) -> Value:
        """A field of the first parent that has the event. Many are halved, so that no field is
        nested as deep as there are parents."""
        if len(parents) > IN_A_ROW:
            half = len(parents) // 2
            first, rest = self._choose(parents[:half], field), self._choose(parents[half:], field)
            return CallFunction("if", (self._belongs(*parents[:half]), first, rest))
        value: Value = Const(None, type=Type.NULL)
        for parent in reversed(parents):
            mine = _on(self.fields(parent), field)
            value = CallFunction("if", (self._belongs(parent), mine, value))
        return value

    def _belongs(self, *names: str) -> Value:
        """Whether the event belongs to one of these streams."""
        origins = [origin for name in names for origin in self.origins(name)]
        ways = [Conjunction(origin.filters, type=Type.BOOL) for origin in origins]
        return Disjunction(tuple(ways), type=Type.BOOL)

    def on_event(self, name: str, value: Value) -> Value:
        """`value`, whose fields are of stream `name`, as an expression over the original event."""
        return _on(self.fields(name), value)


def _larger_than(size: int, value: Value) -> bool:
    return next(islice(value.walk(), size, None), None) is not None


def _on(fields: Fields, value: Value) -> Value:
    if fields is None:
        return value

    def change(part: Value) -> Value | None:
        if not isinstance(part, Field):
            return None
        dotted = ".".join(part.path)
        if dotted in fields:
            return fields[dotted]
        if part.path[0] not in fields and isinstance(fields, _Union):
            return fields.other(part)
        selected = fields.get(part.path[0], Const(None, type=Type.NULL))
        for name in part.path[1:]:
            selected = GetField(selected, name)
        return selected

    return rewrite(value, change)
