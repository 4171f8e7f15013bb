"""Writes the Python of what a rule says of a match: `having`, alert, emitted events, dedup key.

These functions run once a match, not once an event, so all of it is in careful form: what fails is
null and counted, nothing raises. Each takes `E` (the bound events by step), `k` (the parts of the
key), `t` (the match's time) and `W` (the values of a window).
"""

from __future__ import annotations

from collections.abc import Sequence

from cep.compile.environment import MatchEnv, Surroundings
from cep.compile.expressions import careful, careful_value
from cep.compile.handlers.base import aggregate_code
from cep.compile.writer import Writer
from cep.plan.streams import Streams
from dsl import checked
from dsl.checked import Lookup, StepAggregate, Template, Value


class MatchCode:
    """Collects the functions of one rule. `text()` is a function `make(careful, constants)` that
    gives them by name."""

    def __init__(
        self,
        around: Surroundings,
        steps: Sequence[str],
        stream_of: dict[str, str],
        streams: Streams,
    ) -> None:
        self.around = around
        self.streams = streams
        self.stream_of = stream_of
        self.w = Writer()
        self.names: list[str] = []
        self.env = MatchEnv(around, steps, self._on_event, self._aggregate)
        self.steps = list(steps)
        self.looks_up = False

    def _on_event(self, step: str, value: Value) -> Value:
        return self.streams.on_event(self.stream_of[step], value)

    def _aggregate(self, leaf: StepAggregate) -> str:
        argument = leaf.argument
        if argument is not None:
            argument = self._on_event(leaf.step, argument)
        events = f"E[{self.steps.index(leaf.step)}]"
        return aggregate_code(leaf, argument, events, self.around)

    def _value(self, value: Value) -> str:
        self.looks_up = self.looks_up or any(isinstance(v, Lookup) for v in value.walk())
        return careful_value(value, self.env)

    def condition(self, name: str, value: Value | None) -> None:
        """A function that is true when the condition is."""
        if value is not None:
            self.names.append(name)
            with self.w.block(f"def {name}(E, k, t, W={{}}):"):
                self.w(f"return {careful(value, self.env)} is True")

    def description(self, name: str, alert: checked.Alert | None) -> None:
        """A function that gives text and fields of an alert."""
        if alert is None:
            return
        self.names.append(name)
        with self.w.block(f"def {name}(E, k, t, W):"):
            self._fields(alert.fields)
            shown = ", ".join(
                f"{field!r}: plain(F[{field!r}], {str(value.type)!r})"
                for field, value in alert.fields
            )
            text = self._template(alert.message)
            self.w(f"return {text}, {{{shown}}}")

    def _fields(self, fields: Sequence[tuple[str, Value]]) -> None:
        self.w("F = {}")
        for field, value in fields:
            self.w(f"F[{field!r}] = {self._value(value)}")

    def _template(self, template: Template | None) -> str:
        if template is None:
            return "None"
        parts = [
            repr(part)
            if isinstance(part, str)
            else f"text_of({self._value(part)}, {str(part.type)!r})"
            for part in template.parts
        ]
        return f"''.join(({''.join(f'{part}, ' for part in parts)}))"

    def event(self, name: str, emit: checked.Emit) -> None:
        """A function that gives the fields of an emitted event."""
        self.names.append(name)
        with self.w.block(f"def {name}(E, k, t, W):"):
            self._fields(emit.fields)
            self.w("return {name: unbox(value) for name, value in F.items()}")

    def derived(self, name: str, fields: Sequence[tuple[str, Value]]) -> None:
        """A function that adds to a window's values what is computed from them."""
        if fields:
            self.names.append(name)
            with self.w.block(f"def {name}(W, k, t):"):
                for field, value in fields:
                    self.w(f"W[{field!r}] = {self._value(value)}")

    def key(self, name: str, by: Sequence[Value] | None) -> None:
        """A function that gives the key of `dedup`; None when a part is missing."""
        if by is None:
            return
        self.names.append(name)
        with self.w.block(f"def {name}(E, k, t, W):"):
            parts = "".join(f"key_of({self._value(value)}), " for value in by)
            self.w(f"key = ({parts})")
            self.w("return None if None in key else key")

    def text(self) -> str:
        w = Writer()
        constants = self.around.constants.values
        with w.block("def make(careful, constants):"):
            if constants:
                w(f"({', '.join(f'c{i}' for i in range(len(constants)))},) = constants")
            for line in self.w.text().splitlines():
                w(line)
            w(f"return {{{', '.join(f'{name!r}: {name}' for name in self.names)}}}")
        return w.text()
