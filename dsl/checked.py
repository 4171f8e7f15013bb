"""What the rules mean: the resolved form that the checker makes and everything after it reads.

Names are gone: `def`s are inlined, `param`s are constants, every name has become a field, a bound
step, a part of the key or something else below. Three families:

* **Values** (`Value`): expressions. Each knows its static `type`; `time` and `duration` are integer
  microseconds at run time.
* **Patterns**: steps, absences and groups, each with the key it is routed by.
* **Declarations**: streams, lists, tables, rules, tests; and `CheckedRules`, all of them together.

Everything is frozen and hashable, so equal conditions can be found and shared.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, fields, is_dataclass
from functools import cache

from dsl import ast
from dsl.source import NOWHERE, Span
from dsl.types import Type


def _attributes(kind: type) -> tuple[str, ...]:
    if not is_dataclass(kind):
        return ()
    return tuple(f.name for f in fields(kind) if f.name not in ("span", "ast"))


attributes: Callable[[type], tuple[str, ...]] = cache(_attributes)
"""The names of what a checked class holds, without where it was written. Empty for a class that
is none. Found out once for each class, so that walking over thousands of rules is cheap."""


_PLAIN = frozenset({"str", "int", "float", "bool", "None", "tuple", "Type"})


def _found_operand_names(kind: type) -> tuple[str, ...]:
    types = {f.name: set(re.findall(r"\w+", str(f.type))) for f in fields(kind)}
    return tuple(name for name in attributes(kind) if not types[name] <= _PLAIN)


_operand_names: Callable[[type], tuple[str, ...]] = cache(_found_operand_names)
"""The names of what may hold expressions in an expression of a class: of most that is little."""


# ---------------------------------------------------------------------------- values


@dataclass(frozen=True, slots=True, kw_only=True)
class Value:
    """An expression. Compared by what it means, not by where it stands."""

    type: Type = Type.ANY
    span: Span = field(default=NOWHERE, compare=False, repr=False)

    def operands(self) -> list[Value]:
        """The expressions directly inside this one."""
        found: list[Value] = []
        for name in _operand_names(self.__class__):
            item = getattr(self, name)
            if isinstance(item, Value):
                found.append(item)
            elif item.__class__ is tuple:
                found += [part for part in item if isinstance(part, Value)]
        return found

    def walk(self) -> Iterator[Value]:
        """This expression and all inside it, the outer ones first."""
        todo: list[Value] = [self]
        while todo:
            value = todo.pop()
            yield value
            todo += reversed(value.operands())


@dataclass(frozen=True, slots=True)
class Const(Value):
    """None, bool, int, float or str; a `time` or `duration` constant is an int.

    Compared with the type of the value too: 1, 1.0 and True are three constants.
    """

    value: bool | int | float | str | None

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, Const)
            and type(self.value) is type(other.value)
            and self.value == other.value
            and self.type == other.type
        )

    def __hash__(self) -> int:
        return hash((type(self.value), self.value))


@dataclass(frozen=True, slots=True)
class ArrayOf(Value):
    """`[a, b]`"""

    items: tuple[Value, ...]


@dataclass(frozen=True, slots=True)
class NamedList(Value):
    """A `list` by its name; `CheckedRules.lists` holds the items."""

    name: str


@dataclass(frozen=True, slots=True)
class Pattern(Value):
    """A regular expression; flags is a sorted subset of "imsx"."""

    pattern: str
    flags: str = ""


@dataclass(frozen=True, slots=True)
class Field(Value):
    """A field of the event being tested. `path` ("a", "b") is `a.b`: nested, or the flat key."""

    path: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class EventTime(Value):
    """The time of the event being tested."""


@dataclass(frozen=True, slots=True)
class StepField(Value):
    """`a.f`, `first(a.f)`, `a[0].f`: a field of an event bound to step `step`.

    `index` is -1 for the last event (the plain `a.f`), 0 for the first, n for `a[n]`. `path` is
    empty for the whole event (not a value of the language; only for `exists` tests).
    """

    step: str
    path: tuple[str, ...]
    index: int = -1


@dataclass(frozen=True, slots=True)
class StepTime(Value):
    """`a.time`, `first(a.time)`, `a[0].time`; index as in StepField."""

    step: str
    index: int = -1


@dataclass(frozen=True, slots=True)
class LoopValue(Value):
    """What a loop asks in its own condition of the events that it has taken.

    `prev(f)`, `first(f)`, `last(f)`, `count()`, `sum(f)`, `avg(f)`, `min(f)`, `max(f)`; the event
    being tested is excluded. `argument` is an expression over one taken event (its `Field`s and
    `EventTime` are of that event); None for `count()`.
    """

    function: str
    argument: Value | None


@dataclass(frozen=True, slots=True)
class StepAggregate(Value):
    """`count(a)`, `sum(a.f)`, `count(distinct a.f)`, … of a bound step.

    `argument` is over one event of the step (`Field`, `EventTime`); None for `count(a)`. Further
    constants (the `p` of percentile) are in `extra`.
    """

    function: str
    step: str
    argument: Value | None
    distinct: bool = False
    extra: tuple[Value, ...] = ()


@dataclass(frozen=True, slots=True)
class WindowValue(Value):
    """An aggregate of an `aggregate` rule by its name."""

    name: str


@dataclass(frozen=True, slots=True)
class KeyValue(Value):
    """Part `index` of the rule's key."""

    index: int
    name: str = field(compare=False, default="")


@dataclass(frozen=True, slots=True)
class AlertValue(Value):
    """An earlier field of the alert or emit block."""

    name: str


@dataclass(frozen=True, slots=True)
class Local(Value):
    """The variable of `any(xs, x, E)` or `all(xs, x, E)`."""

    name: str


@dataclass(frozen=True, slots=True)
class Lookup(Value):
    """`table[key].path`; null when there is no such row. `path` is never empty."""

    table: str
    key: Value
    path: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class GetField(Value):
    """`value.name` of any other value (an object, an array element, a local)."""

    value: Value
    name: str


@dataclass(frozen=True, slots=True)
class GetIndex(Value):
    """`value[index]` of an array or object."""

    value: Value
    index: Value


@dataclass(frozen=True, slots=True)
class CallFunction(Value):
    """A call of a built-in or a host's function (named in `dsl.functions`); `if` too."""

    function: str
    arguments: tuple[Value, ...]


@dataclass(frozen=True, slots=True)
class Quantified(Value):
    """`any(xs, x, E)` (`every` false) or `all(xs, x, E)` (`every` true)."""

    every: bool
    array: Value
    variable: str
    condition: Value


@dataclass(frozen=True, slots=True)
class Minus(Value):
    operand: Value


@dataclass(frozen=True, slots=True)
class Arith(Value):
    """op is one of `+ - * / %`."""

    op: str
    left: Value
    right: Value


@dataclass(frozen=True, slots=True)
class Coalesce(Value):
    """`left ?? right`"""

    left: Value
    right: Value


@dataclass(frozen=True, slots=True)
class Comparison(Value):
    """op is one of `== != < <= > >= in like ilike matches contains`.

    `x not in y` is `Negation(Comparison("in", x, y))`, likewise for the others.
    """

    op: str
    left: Value
    right: Value


@dataclass(frozen=True, slots=True)
class IsNull(Value):
    """`x is null`: null or missing."""

    operand: Value


@dataclass(frozen=True, slots=True)
class IsMissing(Value):
    operand: Value


@dataclass(frozen=True, slots=True)
class Negation(Value):
    operand: Value


@dataclass(frozen=True, slots=True)
class Conjunction(Value):
    parts: tuple[Value, ...]


@dataclass(frozen=True, slots=True)
class Disjunction(Value):
    parts: tuple[Value, ...]


def conjuncts(condition: Value | None) -> tuple[Value, ...]:
    """The parts of a condition that must all be true; none for no condition."""
    if condition is None:
        return ()
    if isinstance(condition, Conjunction):
        return tuple(part for operand in condition.parts for part in conjuncts(operand))
    return (condition,)


# ---------------------------------------------------------------------------- patterns


@dataclass(frozen=True, slots=True, kw_only=True)
class PatternNode:
    span: Span = field(default=NOWHERE, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Quantifier:
    """How many events or rounds; `maximum` None: no end."""

    minimum: int = 1
    maximum: int | None = 1
    greedy: bool = True

    @property
    def is_loop(self) -> bool:
        return self.maximum != 1


@dataclass(frozen=True, slots=True)
class Guard(PatternNode):
    """A stream with a condition: `no`, `unless`, `until`.

    `by` is the key it is routed by, one value for each part of the rule's key.
    `within` only for `no`.
    """

    stream: str
    where: Value | None
    by: tuple[Value, ...]
    within: int | None = None


@dataclass(frozen=True, slots=True)
class Step(PatternNode):
    """One step. `mode` is "relaxed", "next" or "any", with `sequence strict|any` already applied.

    `within` and `after` are microseconds after the last event bound before the step.
    """

    name: str
    stream: str
    where: Value | None
    by: tuple[Value, ...]
    mode: str = "relaxed"
    quantifier: Quantifier = Quantifier()
    within: int | None = None
    after: int | None = None
    until: Guard | None = None


@dataclass(frozen=True, slots=True)
class OneOf(PatternNode):
    """`mode`, of all groups, is how the group is entered; "relaxed": as its first step says."""

    branches: tuple[tuple[Node, ...], ...]
    mode: str = "relaxed"


@dataclass(frozen=True, slots=True)
class AllOf(PatternNode):
    """`count` of the parts in any order, by distinct events; `absent`: the `no`s inside.

    At rule level (`all`, `N of`) it is the only node of the sequence.
    """

    parts: tuple[Step, ...]
    absent: tuple[Guard, ...] = ()
    count: int = 0
    within: int | None = None
    mode: str = "relaxed"


@dataclass(frozen=True, slots=True)
class Repeat(PatternNode):
    quantifier: Quantifier
    body: tuple[Node, ...]
    mode: str = "relaxed"


Node = Step | Guard | OneOf | AllOf | Repeat


@dataclass(frozen=True, slots=True)
class SequencePattern(PatternNode):
    """`on`, `sequence`, `all` and `N of`: all are sequences of nodes.

    `kind` is how it was written: "on", "sequence" or "all". For `all within D` the D is in
    `within` here, as for `sequence within D`.
    """

    kind: str
    nodes: tuple[Node, ...]
    within: int | None = None


@dataclass(frozen=True, slots=True)
class WindowField:
    """`name = function(argument, extra…) [where condition]` of an aggregate."""

    name: str
    function: str
    argument: Value | None
    distinct: bool
    extra: tuple[Value, ...]
    where: Value | None
    type: Type = Type.ANY


@dataclass(frozen=True, slots=True)
class WindowPattern(PatternNode):
    """`aggregate`: `kind` as in ast.Window, lengths in microseconds; `fields` in written order.

    A field whose value is an expression over aggregates (`a = sum(x) / count()`) is split by the
    checker: hidden fields `_1`, `_2`, … hold the aggregates, `derived` the expressions over them.
    """

    stream: str
    where: Value | None
    by: tuple[Value, ...]
    kind: str
    size: int | None
    count: int | None
    step: int | None
    maximum: int | None
    timezone: str | None
    fields: tuple[WindowField, ...]
    derived: tuple[tuple[str, Value], ...] = ()


# ---------------------------------------------------------------------------- declarations


@dataclass(frozen=True, slots=True)
class TimeFormat:
    """Where the time of an event stands: the first present of `paths`; `unit` as in `time … as`."""

    paths: tuple[tuple[str, ...], ...]
    unit: str | None = None
    timezone: str | None = None


@dataclass(frozen=True, slots=True)
class Stream:
    """A stream, declared or implied.

    An event belongs to it when it belongs to one of `parents` (no parents: it is an input event;
    derived events then do not belong), its type field equals `type_value` (None: any) and `where`
    is true. `select` maps it to new fields; the names are then the only fields that it has.
    `time`, `id`, `delay`, `idle`: only what this stream itself says (None: as the stream `event`).
    `emitted` is true for a stream that rules `emit` (its events are derived: no parents, no
    type test; they belong by being emitted to it).
    """

    name: str
    parents: tuple[str, ...] = ()
    where: Value | None = None
    type_path: tuple[str, ...] = ("type",)
    type_value: str | None = None
    select: tuple[tuple[str, Value], ...] | None = None
    time: TimeFormat | None = None
    id: tuple[str, ...] | None = None
    delay: int | None = None
    idle: int | None = None
    dedup: StreamDedup | None = None
    fields: tuple[SchemaField, ...] | None = None
    emitted: bool = False
    declared: bool = False
    span: Span = field(default=NOWHERE, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class StreamDedup:
    """`by` empty: all events of the stream count as repeats of each other."""

    by: tuple[Value, ...]
    duration: int


@dataclass(frozen=True, slots=True)
class SchemaField:
    path: tuple[str, ...]
    type: Type
    optional: bool


@dataclass(frozen=True, slots=True)
class Table:
    """From a file (`file`, a path) or from a stream; `ttl` in microseconds."""

    name: str
    key: tuple[str, ...]
    file: str | None = None
    stream: str | None = None
    ttl: int | None = None
    span: Span = field(default=NOWHERE, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class NamedValues:
    """A `list`: its items, or the file to read them from, one a line.

    `uses` says what the items must be (keys of `dsl.items.PROBLEMS`), by what rules do with them.
    """

    name: str
    items: tuple[bool | int | float | str | None, ...]
    file: str | None = None
    uses: frozenset[str] = field(default=frozenset(), compare=False)
    span: Span = field(default=NOWHERE, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class KeyPart:
    """`name` is what people call it in templates and in the match record."""

    name: str
    type: Type = Type.ANY


@dataclass(frozen=True, slots=True)
class Template:
    """Texts and values in turn; printed one after the other."""

    parts: tuple[str | Value, ...]


@dataclass(frozen=True, slots=True)
class Alert:
    message: Template | None
    fields: tuple[tuple[str, Value], ...] = ()


@dataclass(frozen=True, slots=True)
class Emit:
    stream: str
    fields: tuple[tuple[str, Value], ...] = ()


@dataclass(frozen=True, slots=True)
class Dedup:
    """`by` None: the rule's key. Values are evaluated on the match."""

    by: tuple[Value, ...] | None
    duration: int


@dataclass(frozen=True, slots=True)
class Rule:
    """A checked rule. Durations in microseconds; `source` is its canonical text."""

    name: str
    title: str | None
    description: str | None
    severity: str | None
    tags: tuple[str, ...]
    meta: tuple[tuple[str, bool | int | float | str | None], ...]
    key: tuple[KeyPart, ...]
    pattern: SequencePattern | WindowPattern
    unless: tuple[Guard, ...] = ()
    having: Value | None = None
    skip: str = "past_last"
    skip_step: str | None = None
    start: str = "each"
    keys_from: str | None = None
    alert: Alert | None = None
    emit: tuple[Emit, ...] = ()
    dedup: Dedup | None = None
    timeout_alert: Alert | None = None
    timeout_emit: tuple[Emit, ...] = ()
    limit: int | None = None
    keep: int | None = None
    report: str | None = None
    ast: ast.Rule | None = field(default=None, compare=False, repr=False)
    span: Span = field(default=NOWHERE, compare=False, repr=False)

    @property
    def reports(self) -> bool:
        """Whether it makes match records: not when it only emits."""
        return self.alert is not None or not self.emit


@dataclass(frozen=True, slots=True)
class FunctionSignature:
    """A function of the language: built in (`dsl.functions`) or registered by a host.

    `parameters` are types in order; `optional` of them may be left out at the end; `variadic`
    lets the last one repeat. `doc` and `example` are for people; `call` is the host's code (None
    for built-ins: the engine brings those).
    """

    name: str
    parameters: tuple[Type, ...]
    result: Type
    doc: str = ""
    optional: int = 0
    variadic: bool = False
    example: str = ""
    group: str = ""
    call: Callable[..., object] | None = None


@dataclass(frozen=True, slots=True)
class CheckedRules:
    """All rules of some files together.

    `streams` has every stream that anything names, `event` too, in an order in which parents come
    first. `tests` are still trees: the runner reads them with `streams` and `rules` at hand.
    `emits_order`: rule names such that a rule comes after those whose emitted streams it reads;
    `needs`: for each rule those that emit what it reads.
    """

    streams: Mapping[str, Stream]
    lists: Mapping[str, NamedValues]
    tables: Mapping[str, Table]
    params: Mapping[str, Const | ArrayOf]
    rules: Mapping[str, Rule]
    tests: tuple[ast.Test, ...]
    functions: Mapping[str, FunctionSignature]
    delay: int = 0
    """The largest delay that any stream declares."""
    idle: int | None = None
    """The smallest idle that any stream declares."""
    emits_order: tuple[str, ...] = ()
    needs: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    statements: tuple[ast.Statement, ...] = field(default=(), compare=False, repr=False)
    """Everything that the files say, as trees, those of included files too."""
    type_field: str | None = None
    """The field that names an event's type, where that was said beside the rules."""

    def depths(self) -> dict[str, int]:
        """How far each rule is from the input: one more than all those whose events it reads."""
        found: dict[str, int] = {}
        for name in self.emits_order:
            found[name] = 1 + max((found[maker] for maker in self.needs[name]), default=-1)
        return found
