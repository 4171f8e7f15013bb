"""`aggregate`: the window, its aggregates and the expressions over them."""

from __future__ import annotations

from dataclasses import replace

from dsl import ast
from dsl.checked import (
    EventTime,
    Field,
    Value,
    WindowField,
    WindowPattern,
    WindowValue,
)
from dsl.checker.expressions import Resolver
from dsl.checker.keys import Keys
from dsl.checker.patterns import use_stream
from dsl.checker.rewrite import rewrite
from dsl.checker.scope import Scope
from dsl.checker.streams import Streams, check_timezone
from dsl.checker.world import BROKEN, World
from dsl.diagnostics import Label
from dsl.types import Type

MAX_OPEN = 10_000
"""Most windows of a `hopping` that one event may be in: all of them are kept, for each key."""


class WindowBuilder:
    """Builds the checked form of one `aggregate`."""

    def __init__(self, world: World, streams: Streams, keys: Keys) -> None:
        self.world = world
        self.streams = streams
        self.keys = keys
        self.fields: list[WindowField] = []
        self.derived: list[tuple[str, Value]] = []
        self.types: dict[str, Type] = {}

    def build(self, pattern: ast.Aggregate, timezone: ast.WindowTimezone | None) -> WindowPattern:
        """The window with its aggregates; `self.types` has their types by name."""
        stream = use_stream(self.world, self.streams, pattern.stream)
        where = self._condition(pattern.where, stream, "`where`")
        by = self.keys.values(None, stream, pattern, {}, "the window")
        self._check_window(pattern.window)
        for field in pattern.fields:
            self._field(field, stream)
        if timezone is not None:
            check_timezone(self.world, timezone.zone, timezone.span)
        window = pattern.window
        return WindowPattern(
            stream,
            where,
            by,
            window.kind,
            window.size.micros if window.size else None,
            window.count,
            window.step.micros if window.step else None,
            window.maximum.micros if window.maximum else None,
            timezone.zone if timezone else None,
            tuple(self.fields),
            tuple(self.derived),
            span=pattern.span,
        )

    def _condition(self, where: ast.Expr | None, stream: str, place: str) -> Value | None:
        if where is None:
            return None
        return Resolver(self.world, Scope(place=place, event=stream)).condition(where)

    def _field(self, field: ast.AggregateField, stream: str) -> None:
        """`n = count()`; an expression over aggregates is split into them."""
        name = field.name.name
        if name in self.types:
            self.world.found.error("E044", field.name.span, f"aggregate `{name}` is given twice")
        calls: list[WindowField] = []
        scope = Scope(place="an `aggregate` block", event=stream, calls=calls)
        value = Resolver(self.world, scope).value(field.value)
        where = self._condition(field.where, stream, "`where`")
        self.types[name] = value.type
        if value is BROKEN:
            return
        loose = next((v for v in value.walk() if isinstance(v, Field | EventTime)), None)
        if loose is not None or not calls:
            self._loose(field, loose)
            return
        base = sum(1 for known in self.fields if known.name.startswith("_"))
        if isinstance(value, WindowValue) and len(calls) == 1:
            self.fields.append(replace(calls[0], name=name, where=where))
            return

        def rename(part: Value) -> Value | None:
            return replace(part, name=renamed[part.name]) if isinstance(part, WindowValue) else None

        renamed = {call.name: f"_{base + i}" for i, call in enumerate(calls, start=1)}
        self.fields += [replace(call, name=renamed[call.name], where=where) for call in calls]
        self.derived.append((name, rewrite(value, rename)))

    def _loose(self, field: ast.AggregateField, loose: Value | None) -> None:
        """Something that is not of the window as a whole."""
        if loose is None:
            self.world.found.error(
                "E039",
                field.value.span,
                "this aggregates nothing",
                help="an aggregate is a call: `count()`, `sum(x)`, `avg(x)`, …",
            )
            return
        text = loose.span.text
        self.world.found.error(
            "E039",
            loose.span,
            f"`{text}` is of one event, but a window has many",
            help=f"aggregate it: `last({text})`, `max({text})`, `count(distinct {text})`, …",
        )

    def _check_window(self, window: ast.Window) -> None:
        for duration in (window.size, window.step, window.maximum):
            if duration is not None and duration.micros == 0:
                self.world.found.error("E077", duration.span, "a window cannot be empty")
        if window.count == 0:
            self.world.found.error("E077", window.span, "a window cannot be empty")
        size, step, maximum = window.size, window.step, window.maximum
        if size and step and step.micros > size.micros:
            self.world.found.error(
                "E077",
                step.span,
                "windows that start less often than they are long leave gaps",
                help=f"write `hopping {step.text} every {size.text}`",
                labels=[Label(size.span, "the length")],
            )
        elif size and step and step.micros and size.micros > step.micros * MAX_OPEN:
            self.world.found.error(
                "E077",
                step.span,
                f"each event would be in more than {MAX_OPEN} windows",
                help=f"let them start less often, or write `sliding {size.text}`",
                labels=[Label(size.span, "the length")],
            )
        if size and maximum and maximum.micros < size.micros:
            self.world.found.error(
                "E077",
                maximum.span,
                "the longest session is shorter than its gap",
                labels=[Label(size.span, "the gap")],
            )
