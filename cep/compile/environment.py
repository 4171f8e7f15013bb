"""How the code around an expression holds what the expression reads.

Two places: a handler, where an event `e` is being tested against a run (`EventEnv`), and a match,
where all events are bound and none is tested (`MatchEnv`). Both stand on `Surroundings`, what is
the same everywhere in one rule: the shape of events, the constants, lists, functions and tables.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from cep.event import EventShape
from cep.plan.automaton import Variable
from cep.plan.settle import Known
from cep.plan.values import Noted, OwnAggregate, Seen, Tally, Unrepeated
from dsl.checked import (
    AlertValue,
    EventTime,
    Field,
    FunctionSignature,
    KeyValue,
    Local,
    Lookup,
    StepAggregate,
    StepField,
    StepTime,
    Value,
    WindowValue,
)
from dsl.types import Type


class Constants:
    """Python objects that the generated code refers to by the names c0, c1, …"""

    def __init__(self) -> None:
        self.values: list[object] = []
        self._names: dict[object, str] = {}

    def name(self, value: object) -> str:
        """The name of an object; the same for the same object."""
        key = id(value)
        if key not in self._names:
            self._names[key] = f"c{len(self.values)}"
            self.values.append(value)
        return self._names[key]


@dataclass(frozen=True, slots=True)
class Placed:
    """A constant that stands for an object of the program that runs the code: each program has its
    own. `kind`: "table" (by its name; with `path`: what finds that value of a row) or "repeats" (by
    the name of the stream)."""

    kind: str
    name: str
    path: tuple[str, ...] = ()


@dataclass(slots=True)
class Surroundings:
    """What all the code of one rule stands in.

    `lists`: items by list name. `functions`: the host's. `repeats`: by the name of a stream that
    drops repeats, its bit in the mark of an event. `notes`: the attributes of what is noted in
    events when they come.
    """

    shape: EventShape
    lists: Mapping[str, Sequence[Any]]
    functions: Mapping[str, FunctionSignature]
    repeats: Mapping[str, int]
    notes: Mapping[Noted, str]
    constants: Constants = field(default_factory=Constants)
    finders: dict[tuple[str, tuple[str, ...]], Placed] = field(default_factory=dict)
    temporaries: int = 0

    def temporary(self) -> str:
        self.temporaries += 1
        return f"_{self.temporaries}"


SPOILABLE = ("sum", "total", "min", "max")
"""Kinds of variables that are `False` once a value did not fit."""


class BaseEnv:
    """What handlers and matches have in common."""

    careful = "careful"

    def __init__(self, around: Surroundings) -> None:
        self.around = around

    def constant(self, obj: object) -> str:
        return self.around.constants.name(obj)

    def temporary(self) -> str:
        return self.around.temporary()

    def list_items(self, name: str) -> Sequence[Any]:
        return self.around.lists[name]

    def host_function(self, name: str) -> FunctionSignature | None:
        return self.around.functions.get(name)

    def _field(self, event: str, path: tuple[str, ...]) -> str:
        """Code of a field, None when it is null or missing."""
        shape = self.around.shape
        code = f"{event}.{shape.attributes[path]}"
        if shape.uses[path].asks_missing:
            name = self.temporary()
            return f"(None if ({name} := {code}) is UNSET else {name})"
        return code

    def _field_type(self, path: tuple[str, ...]) -> Type:
        return self.around.shape.uses[path].type

    def finder(self, lookup: Lookup) -> Placed:
        """Stands for the function from a key to the value in its row of the table."""
        placed = Placed("table", lookup.table, lookup.path)
        return self.around.finders.setdefault((lookup.table, lookup.path), placed)


class EventEnv(BaseEnv):
    """An event is tested: `event` names it, `t` its time, `names` the variables of the run, `known`
    says what the dispatch has told of it."""

    def __init__(
        self,
        around: Surroundings,
        names: Mapping[Variable, str] | None = None,
        tracked: frozenset[Variable] = frozenset(),
        tally: Callable[[Tally | OwnAggregate, bool], str] = lambda *_: "None",
        event: str = "e",
        known: Known | None = None,
    ) -> None:
        super().__init__(around)
        self.known = known
        self.names = names or {}
        self.tracked = tracked
        self.tally = tally
        self.event = event

    def settled(self, value: Value) -> Value:
        """What is left to be asked of a value, by what is known of the event."""
        return value if self.known is None else self.known.settled(value)

    def load(self, leaf: Value) -> str:
        if isinstance(leaf, Field):
            return self._field(self.event, leaf.path)
        if isinstance(leaf, EventTime):
            return "t" if self.event == "e" else f"{self.event}.t"
        if isinstance(leaf, Seen):
            return self._seen(leaf.variable)
        if isinstance(leaf, Tally):
            history = Variable(leaf.aggregate.step, "history")
            return self.tally(leaf, history in self.names)
        if isinstance(leaf, OwnAggregate):
            return self.tally(leaf, True)
        if isinstance(leaf, Unrepeated):
            return f"(not {self.event}.r & {self.around.repeats[leaf.stream]})"
        if isinstance(leaf, Noted):
            return f"{self.event}.{self.around.notes[leaf]}"
        if isinstance(leaf, Local):
            return leaf.name
        raise AssertionError(f"nothing to load {leaf!r} from while an event is tested")

    def _seen(self, variable: Variable) -> str:
        name = self.names.get(variable, "None")
        if variable in self.tracked and name != "None":
            return f"(None if {name} is UNSET else {name})"
        if variable.kind == "avg" and name != "None":
            return f"run.step_mean({name})"
        if variable.kind in SPOILABLE and name != "None":
            return f"(None if {name} is False else {name})"
        return "0" if variable.kind in ("count", "total") and name == "None" else name

    def raw(self, leaf: Value) -> str | None:
        """Code of a plain field as it stands in the event (UNSET: missing); None: not a field."""
        if isinstance(leaf, Field):
            return f"{self.event}.{self.around.shape.attributes[leaf.path]}"
        return "t" if isinstance(leaf, EventTime) and self.event == "e" else None

    def is_missing(self, leaf: Value) -> str:
        if isinstance(leaf, Field):
            return f"({self.event}.{self.around.shape.attributes[leaf.path]} is UNSET)"
        if isinstance(leaf, Seen):
            name = self.names.get(leaf.variable, "UNSET")
            return f"({name} is UNSET)"
        return "False"

    def type_of(self, leaf: Value) -> Type:
        if isinstance(leaf, Field):
            return self._field_type(leaf.path)
        if isinstance(leaf, EventTime):
            return Type.TIME
        if isinstance(leaf, Seen):
            return self._variable_type(leaf.variable)
        return Type.BOOL if isinstance(leaf, Unrepeated) else Type.ANY

    def _variable_type(self, variable: Variable) -> Type:
        if variable.kind == "count":
            return Type.INT
        if variable.kind in ("sum", "total", "avg"):
            return Type.NUMBER
        if isinstance(variable.argument, Field):
            return self._field_type(variable.argument.path)
        return Type.TIME if isinstance(variable.argument, EventTime) else Type.ANY

    def nullable(self, leaf: Value) -> bool:
        if isinstance(leaf, EventTime | Unrepeated):
            return False
        if isinstance(leaf, Seen):
            held = isinstance(leaf.variable.argument, EventTime) and leaf.variable in self.names
            return not (held and leaf.variable not in self.tracked)
        return True


class MatchEnv(BaseEnv):
    """All events are bound: `E[i]` is the list of events of step i, `k` the tuple of key parts,
    `F` the alert fields so far, `W` the aggregates of a window."""

    def __init__(
        self,
        around: Surroundings,
        steps: Sequence[str],
        on_event: Callable[[str, Value], Value],
        aggregate: Callable[[StepAggregate], str],
    ) -> None:
        super().__init__(around)
        self.steps = list(steps)
        self.on_event = on_event
        self.aggregate = aggregate

    def load(self, leaf: Value) -> str:
        if isinstance(leaf, StepField | StepTime):
            return self._bound(leaf)
        if isinstance(leaf, StepAggregate):
            return self.aggregate(leaf)
        if isinstance(leaf, KeyValue):
            return f"k[{leaf.index}]"
        if isinstance(leaf, AlertValue):
            return f"F[{leaf.name!r}]"
        if isinstance(leaf, WindowValue):
            return f"W[{leaf.name!r}]"
        if isinstance(leaf, Local):
            return leaf.name
        if isinstance(leaf, EventTime):
            return "t"
        raise AssertionError(f"nothing to load {leaf!r} from when a match is complete")

    def _bound(self, leaf: StepField | StepTime) -> str:
        events = f"E[{self.steps.index(leaf.step)}]"
        there = events if leaf.index <= 0 else f"len({events}) > {leaf.index}"
        event = f"{events}[{leaf.index}]"
        if isinstance(leaf, StepTime):
            return f"({event}.t if {there} else None)"
        if not leaf.path:
            return f"(True if {there} else None)"
        value = self.on_event(leaf.step, Field(leaf.path, type=leaf.type))
        return f"({self._on_event(event, value)} if {there} else None)"

    def _on_event(self, event: str, value: Value) -> str:
        from cep.compile.expressions import careful_value

        env = EventEnv(self.around, event=event)
        return careful_value(value, env)

    def is_missing(self, leaf: Value) -> str:
        if isinstance(leaf, StepField):
            events = f"E[{self.steps.index(leaf.step)}]"
            there = events if leaf.index <= 0 else f"len({events}) > {leaf.index}"
            if not leaf.path:
                return f"(not {there})"
            value = self.on_event(leaf.step, Field(leaf.path))
            test = EventEnv(self.around, event=f"{events}[{leaf.index}]").is_missing(value)
            return f"(not {there} or {test})"
        return "False"

    def type_of(self, leaf: Value) -> Type:
        if isinstance(leaf, StepField) and leaf.path:
            value = self.on_event(leaf.step, Field(leaf.path))
            return self._field_type(value.path) if isinstance(value, Field) else Type.ANY
        return Type.TIME if isinstance(leaf, StepTime | EventTime) else Type.ANY

    def nullable(self, leaf: Value) -> bool:
        return True
