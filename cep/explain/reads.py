"""What a rule reads of input events: streams, fields, and what it compares them with.

In: a compiled rule. Out: the streams that its pattern names (in `no`, `unless` and `until` too),
and for each the fields that the rule reads of its events, wherever they stand. Streams are
resolved: a field that a `select` makes counts as the fields it is made of. What is read of derived
events does not count, nor what is read of streams that events reach in several ways (`from a, b`):
each way may well go unused. That none of its ways is used can be told by their conditions (`ways`).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import NamedTuple

from cep.compile.rules import CompiledRule, CompiledRules
from cep.plan.automaton import Origin
from dsl.checked import (
    AllOf,
    ArrayOf,
    CallFunction,
    Coalesce,
    Comparison,
    Const,
    Field,
    Guard,
    IsMissing,
    Node,
    OneOf,
    Repeat,
    Step,
    StepAggregate,
    StepField,
    Template,
    Value,
    WindowPattern,
)

Path = tuple[str, ...]


class Told(NamedTuple):
    """How the events of a stream are told from others: the value that a field must have."""

    path: Path
    value: str | int


class FieldRead(NamedTuple):
    """A field that a rule reads of the events of a stream, or several of which one is enough."""

    stream: str
    paths: tuple[Path, ...]


Constant = str | int | float | bool


class Compared(NamedTuple):
    """A field of the events of a stream, and the constants that it is compared with."""

    stream: str
    path: Path
    constants: tuple[Constant, ...]


@dataclass(frozen=True, slots=True)
class Over:
    """A value over the events of a stream; "": of none, it speaks of steps only."""

    stream: str
    value: Value


class Reads:
    """What one rule reads.

    >>> import cep
    >>> rules = cep.loads("rule r { sequence { a: A where x == 1  no B where y > 2 within 1h } }")
    >>> reads = Reads(rules.compiled.rules[0], rules.compiled)
    >>> reads.streams
    ['A', 'B']
    >>> [(read.stream, read.paths) for read in reads.fields][2:]
    [('A', (('x',),)), ('B', (('y',),))]
    >>> reads.told_by("A")
    [Told(path=('type',), value='A')]
    >>> reads.needs
    ['A']
    """

    def __init__(self, rule: CompiledRule, compiled: CompiledRules) -> None:
        self.name = rule.rule.name
        self._rule = rule.rule
        self._streams = compiled.streams
        self._stream_of = {step.name: step.stream for step in _steps(self._nodes)}
        values = list(self._over_streams())
        named = dict.fromkeys(over.stream for over in values if over.stream)
        self.streams = [stream for stream in named if self._counts(stream)]
        """Those of the input, in the order in which they stand there."""
        self.fields = list(dict.fromkeys(self._fields(values)))
        self.compared = list(dict.fromkeys(self._comparisons(values)))
        self.needs = list(dict.fromkeys(self._needed()))
        """The streams of the events that every match is made of, derived ones too."""
        self.emits = [emit.stream for emit in (*self._rule.emit, *self._rule.timeout_emit)]

    def is_type(self, path: Path) -> bool:
        """Whether the field is one that says of which type an event is."""
        return path in self._streams.type_paths

    def ways(self, stream: str) -> tuple[Origin, ...]:
        """The ways in which an event may belong to a stream."""
        return self._streams.origins(stream)

    def told_by(self, stream: str) -> list[Told]:
        """The values by which a stream's events are told from others."""
        (origin,) = self._streams.origins(stream)
        return [
            Told(part.left.path, part.right.value)
            for part in origin.filters
            if isinstance(part, Comparison)
            and part.op == "=="
            and isinstance(part.left, Field)
            and isinstance(part.right, Const)
            and isinstance(part.right.value, str | int)
            and not isinstance(part.right.value, bool)
        ]

    def _counts(self, stream: str) -> bool:
        origins = self._streams.origins(stream)
        return len(origins) == 1 and origins[0].source is None

    # ------------------------------------------------------------------ what stands in the rule

    @property
    def _nodes(self) -> tuple[Node, ...]:
        pattern = self._rule.pattern
        return () if isinstance(pattern, WindowPattern) else pattern.nodes

    def _needed(self) -> Iterator[str]:
        pattern = self._rule.pattern
        if isinstance(pattern, WindowPattern):
            yield pattern.stream
        yield from (step.stream for step in _steps(_taken(self._nodes)))

    def _over_streams(self) -> Iterator[Over]:
        """All values of the rule, each with the stream whose events its plain fields are of."""
        pattern = self._rule.pattern
        if isinstance(pattern, WindowPattern):
            yield from _of(pattern.stream, pattern.where, *pattern.by)
            for each in pattern.fields:
                yield from _of(pattern.stream, each.argument, each.where)
        yield from _in_nodes(self._nodes)
        for guard in self._rule.unless:
            yield from _of(guard.stream, guard.where, *guard.by)
        yield from (Over("", value) for value in self._said())

    def _said(self) -> Iterator[Value]:
        """What having, alert, emit and dedup say: values over the events of steps."""
        rule = self._rule
        if rule.having is not None:
            yield rule.having
        if rule.dedup is not None:
            yield from rule.dedup.by or ()
        for alert in (rule.alert, rule.timeout_alert):
            if alert is not None:
                yield from (value for _, value in alert.fields)
                yield from _in_template(alert.message)
        for emit in (*rule.emit, *rule.timeout_emit):
            yield from (value for _, value in emit.fields)

    # ------------------------------------------------------------------ fields

    def _fields(self, values: Iterable[Over]) -> Iterator[FieldRead]:
        for stream in self.streams:
            for part in self._streams.origins(stream)[0].filters:
                yield from (FieldRead(stream, paths) for paths in _alternatives(part))
        for over in values:
            for stream, value in _parts_of_steps(over, self._stream_of):
                if stream in self.streams:
                    on_event = self._streams.on_event(stream, value)
                    yield from (FieldRead(stream, paths) for paths in _alternatives(on_event))

    def _comparisons(self, values: Iterable[Over]) -> Iterator[Compared]:
        for over in values:
            for part in over.value.walk():
                if isinstance(part, Comparison):
                    yield from self._compared(over.stream, part)

    def _compared(self, own: str, part: Comparison) -> Iterator[Compared]:
        for one, other in ((part.left, part.right), (part.right, part.left)):
            stream, value = own, one
            if isinstance(one, StepField):
                stream, value = self._stream_of[one.step], Field(one.path)
            if not isinstance(value, Field) or stream not in self.streams:
                continue
            on_event = self._streams.on_event(stream, value)
            constants = tuple(_constants(other))
            if isinstance(on_event, Field) and constants:
                yield Compared(stream, on_event.path, constants)


# -------------------------------------------------------------------------- going through a rule


def _steps(nodes: Iterable[Node]) -> Iterator[Step]:
    for node in nodes:
        if isinstance(node, Step):
            yield node
        else:
            yield from _steps(_inside(node))


def _taken(nodes: Iterable[Node]) -> Iterator[Node]:
    """Without what may be there or not."""
    for node in nodes:
        if isinstance(node, Step | Repeat) and node.quantifier.minimum == 0:
            continue
        yield from _taken(node.body) if isinstance(node, Repeat) else (node,)


def _inside(node: Node) -> Iterator[Node]:
    if isinstance(node, OneOf):
        for branch in node.branches:
            yield from branch
    elif isinstance(node, AllOf):
        yield from node.parts
        yield from node.absent
    elif isinstance(node, Repeat):
        yield from node.body


def _in_nodes(nodes: Iterable[Node]) -> Iterator[Over]:
    for node in nodes:
        if isinstance(node, Step | Guard):
            yield from _of(node.stream, node.where, *node.by)
        if isinstance(node, Step) and node.until is not None:
            yield from _of(node.until.stream, node.until.where, *node.until.by)
        yield from _in_nodes(_inside(node))


def _of(stream: str, *values: Value | None) -> Iterator[Over]:
    """The values over a stream; the stream itself is named even where nothing is read of it."""
    yield Over(stream, Const(True))
    yield from (Over(stream, value) for value in values if value is not None)


def _in_template(template: Template | None) -> Iterator[Value]:
    if template is not None:
        yield from (part for part in template.parts if isinstance(part, Value))


def _parts_of_steps(over: Over, stream_of: dict[str, str]) -> Iterator[tuple[str, Value]]:
    """The value cut where it speaks of the events of other steps."""
    yield over.stream, over.value
    for part in over.value.walk():
        if isinstance(part, StepField) and part.path:
            yield stream_of[part.step], Field(part.path, type=part.type)
        elif isinstance(part, StepAggregate) and part.argument is not None:
            yield stream_of[part.step], part.argument


def _alternatives(value: Value) -> Iterator[tuple[Path, ...]]:
    """The fields of the event at hand in a value: one by one, or together where one is enough.

    Not those that it asks `is missing` of, nor those inside aggregates of other steps.
    """
    if isinstance(value, Field):
        yield (value.path,)
    elif isinstance(value, Coalesce) or (
        isinstance(value, CallFunction) and value.function == "coalesce"
    ):
        found = dict.fromkeys(
            path for part in value.operands() for paths in _alternatives(part) for path in paths
        )
        if found:
            yield tuple(found)
    elif not isinstance(value, IsMissing | StepAggregate | StepField):
        for part in value.operands():
            yield from _alternatives(part)


def _constants(value: Value) -> Iterator[Constant]:
    """The constants that something is compared with."""
    items = value.items if isinstance(value, ArrayOf) else (value,)
    for item in items:
        if isinstance(item, Const) and item.value is not None and item.type.value in _PLAIN:
            yield item.value


_PLAIN = frozenset({"string", "int", "number", "bool"})
"""Types of constants that stand in events as they are; times and durations do not."""
