"""What a rule says about a match: `having`, `alert`, `emit`, `dedup`, `on timeout`.

No event is being tested there (section 4): names are parts of the key, steps, aggregates and fields
of the alert. A field that an `emit` or `dedup` takes from the alert is written out, so that each
of them can be computed without the others.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from dsl import ast
from dsl.checked import Alert, AlertValue, Dedup, Emit, KeyPart, Template, Value
from dsl.checker.expressions import Resolver
from dsl.checker.scope import Scope
from dsl.checker.streams import EVERY
from dsl.checker.world import World
from dsl.source import Span
from dsl.types import Type

Fields = tuple[tuple[str, Value], ...]


class Outputs:
    """Resolves the outputs of one rule; `scope` is what a match offers."""

    def __init__(self, world: World, scope: Scope, key: Sequence[KeyPart]) -> None:
        self.world = world
        self.scope = scope
        self.key = key

    def having(self, clause: ast.Having | None) -> Value | None:
        """The condition on the match."""
        if clause is None:
            return None
        scope = replace(self.scope, place="`having`")
        return Resolver(self.world, scope).condition(clause.condition)

    def alert(self, clause: ast.Alert | None) -> tuple[Alert | None, dict[str, Value]]:
        """The alert, and its fields written out; the message may name all of them."""
        if clause is None:
            return None, {}
        scope = replace(self.scope, place="`alert`")
        fields, written_out = self._assigns(clause.assigns, scope, {})
        message = None
        if clause.message is not None:
            seen = {name: AlertValue(name, type=value.type) for name, value in fields}
            resolver = Resolver(self.world, replace(scope, fields=seen))
            parts = (p if isinstance(p, str) else resolver.value(p) for p in clause.parts)
            message = Template(tuple(parts))
        return Alert(message, fields), written_out

    def emit(
        self, clause: ast.Emit, alert_fields: Mapping[str, Value]
    ) -> tuple[Emit, dict[str, Value]]:
        """An event of a derived stream: the parts of the key and these fields."""
        stream = clause.stream.name
        if stream == EVERY:
            self.world.found.error(
                "E054",
                clause.stream.span,
                "`event` is the stream of input events: nothing is emitted to it",
                help="choose another name",
            )
        scope = replace(self.scope, place="`emit`")
        fields, written_out = self._assigns(clause.assigns, scope, alert_fields)
        for assign, (name, value) in zip(clause.assigns, fields, strict=True):
            self._define(stream, (name,), value.type, assign.name.span)
        for part in self.key:
            if part.name not in written_out:
                self._define(stream, tuple(part.name.split(".")), part.type, clause.stream.span)
        return Emit(stream, tuple(dict(fields).items())), written_out

    def dedup(self, clause: ast.Dedup | None, fields: Mapping[str, Value]) -> Dedup | None:
        """Which matches count as the same; `fields` are those of the alert, written out."""
        if clause is None:
            return None
        if clause.duration.micros == 0:
            self.world.found.error(
                "E077", clause.duration.span, "`dedup` for no time hides nothing"
            )
        resolver = Resolver(self.world, replace(self.scope, place="`dedup`", fields=fields))
        by = tuple(resolver.value(expr) for expr in clause.by)
        return Dedup(by or None, clause.duration.micros)

    def on_timeout(self, clause: ast.OnTimeout | None) -> tuple[Alert | None, tuple[Emit, ...]]:
        """What is said of a run that ends incomplete."""
        if clause is None:
            return None, ()
        if not clause.actions:
            self.world.found.error(
                "E058",
                clause.span,
                "`on timeout` does nothing",
                help="add an `alert` or `emit`",
            )
        alerts = [action for action in clause.actions if isinstance(action, ast.Alert)]
        for other in alerts[1:]:
            self.world.found.error("E057", other.span, "`alert` is given twice")
        alert, fields = self.alert(alerts[0] if alerts else None)
        emits = [action for action in clause.actions if isinstance(action, ast.Emit)]
        return alert, tuple(self.emit(action, fields)[0] for action in emits)

    def _assigns(
        self, assigns: Sequence[ast.Assign], scope: Scope, before: Mapping[str, Value]
    ) -> tuple[Fields, dict[str, Value]]:
        """Fields in order, each seeing those before it; and the same, all written out."""
        fields: list[tuple[str, Value]] = []
        seen = dict(before)
        written_out = dict(before)
        for assign in assigns:
            name = assign.name.name
            if any(name == other for other, _ in fields):
                self.world.found.error("E044", assign.name.span, f"field `{name}` is given twice")
            value = Resolver(self.world, replace(scope, fields=seen)).value(assign.value)
            whole = Resolver(self.world, replace(scope, fields=written_out))
            written_out[name] = whole.bounded(whole.value(assign.value), assign.value.span)
            seen[name] = AlertValue(name, type=value.type)
            fields.append((name, value))
        return tuple(fields), written_out

    def _define(self, stream: str, path: tuple[str, ...], type_: Type, span: Span) -> None:
        """Note the type of an emitted field; with a schema it must be declared there."""
        self.world.fields.define(stream, path, type_)
        if self.world.checked_streams[stream].fields is not None:
            self.world.field_type(stream, path, span)
