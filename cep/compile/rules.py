"""From checked rules to compiled ones: plans, the shape of events, and generated functions.

In: `CheckedRules` and the items of lists. Out: `CompiledRules`, which does not change any more and
from which any number of programs can be started (`cep.compile.program`).

The text of a rule's module is compiled once for all rules with the same text, that is, for rules
that differ in their constants only.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache, cached_property, lru_cache
from typing import Any

from cep.compile.environment import Surroundings
from cep.compile.expressions import said
from cep.compile.match_code import MatchCode
from cep.compile.observers import (
    CompiledObserver,
    Observed,
    compile_after,
    compile_before,
    observed,
)
from cep.compile.rule_code import write_rule
from cep.compile.window_code import write_window_rule
from cep.event import UNSET, EventShape, FieldUse, merge_uses, unbox
from cep.key import key_of, plain_key
from cep.plan.automaton import Automaton, State, Variable
from cep.plan.build import build, steps_of
from cep.plan.dispatch import Dispatch, dispatch, mentioned
from cep.plan.fingerprint import Fingerprint, fingerprint, meaning
from cep.plan.limits import MOST_NODES
from cep.plan.states import (
    closes_late,
    group_bounds,
    in_order,
    most_runs,
    one_run_each,
    place_of,
    reach_of,
    tracked,
    variables_in,
)
from cep.plan.streams import Streams
from cep.plan.windows import expires, is_steady, value_slots
from cep.runtime import aggregates
from cep.runtime.bare import BareRuns
from cep.runtime.careful import Careful
from cep.runtime.rule import RulePlan, Slot
from cep.runtime.runs import Layout, Skip
from cep.runtime.templates import plain, text_of
from cep.runtime.window_rule import WindowRulePlan
from cep.runtime.windows import WindowPlan
from dsl import checked
from dsl.checked import CheckedRules, Comparison, Field, StepAggregate, StepField, Value
from dsl.types import Type

DEFAULT_TIMES = (("@timestamp",), ("timestamp",), ("time",), ("ts",))
"""Where the time of an event is looked for when nothing says so; the first present one counts."""

NAMES: dict[str, Any] = {
    "UNSET": UNSET,
    "aggregates": aggregates,
    "key_of": key_of,
    "plain": plain,
    "plain_key": plain_key,
    "text_of": text_of,
    "unbox": unbox,
}
"""What generated code finds under fixed names; everything else is a constant of its rule."""


@dataclass(frozen=True, slots=True)
class Earlier:
    """What an earlier version of a rule is called, which only finishes the runs that it has: its
    name and version as they stand in matches, and the id of its states."""

    name: str
    version: str
    id: str


@dataclass
class CompiledRule:
    """One rule: its automaton, how events find it, and text and constants of its two modules.

    `earlier`: it is an earlier version, which opens no runs.
    """

    rule: checked.Rule
    automaton: Automaton
    dispatch: Dispatch
    version: str
    plan: RulePlan | WindowRulePlan
    handlers: str
    durable_handlers: str
    handler_constants: list[object]
    matches: str
    match_constants: list[object]
    looks_up: bool
    identities: tuple[str | None, ...] = ()
    earlier: Earlier | None = None

    @property
    def name(self) -> str:
        """The name that people know."""
        return self.rule.name if self.earlier is None else self.earlier.name

    @cached_property
    def fingerprint(self) -> Fingerprint:
        """What decides whether another version can go on with its states."""
        return fingerprint(self.automaton)

    @property
    def id(self) -> str:
        """Whose its states are: name and structure."""
        if self.earlier is not None:
            return self.earlier.id
        return f"{self.rule.name}@{self.fingerprint.structure}"

    def shares_dedup(self, other: CompiledRule) -> bool:
        """Whether two versions of a rule hide each other's matches: their `dedup` has one key."""
        own, others = self.rule.dedup, other.rule.dedup
        if own is None or others is None:
            return False
        if own.by is None and others.by is None:
            return len(self.rule.key) == len(other.rule.key)
        return meaning(own.by) == meaning(others.by)


@dataclass(slots=True)
class CompiledRules:
    """All rules, in the order of their names, and the shape of the events that they read.

    `before` and `after`: what is done with an event before and after the rules (see `observers`).
    """

    checked: CheckedRules
    streams: Streams
    shape: EventShape
    lists: Mapping[str, Sequence[Any]]
    observed: Observed
    earlier: Mapping[str, Earlier] = field(default_factory=dict)
    rules: list[CompiledRule] = field(default_factory=list)
    before: CompiledObserver | None = None
    after: CompiledObserver | None = None


def compile_rules(
    rules: CheckedRules,
    lists: Mapping[str, Sequence[Any]],
    earlier: Mapping[str, Earlier] | None = None,
) -> CompiledRules:
    """Compiles all rules. `earlier`: which of them, by name, are earlier versions of others.

    Raises `cep.plan.limits.TooLarge` for a pattern that is too large.
    """
    streams = Streams(rules.streams)
    watched = observed(rules, streams)
    automata = [build(rules.rules[name], streams) for name in sorted(rules.rules)]
    uses = [use for automaton in automata for use in _uses(automaton, streams)]
    uses += _stream_uses(rules, streams)
    uses += [(path, FieldUse(kind, asked)) for path, kind, asked in watched.uses()]
    shape = EventShape(
        merge_uses(uses), marks_repeats=bool(watched.bits), notes=[*map(meaning, watched.notes)]
    )
    fresh = CompiledRules(rules, streams, shape, lists, watched, earlier or {})
    return _compile_all(automata, fresh)


def recompile(compiled: CompiledRules, lists: Mapping[str, Sequence[Any]]) -> CompiledRules:
    """The same rules with other items in their lists. Plans and the shape of events stay, so the
    states of a program that runs the old code go on with the new one."""
    fresh = CompiledRules(
        compiled.checked,
        compiled.streams,
        compiled.shape,
        lists,
        compiled.observed,
        compiled.earlier,
    )
    return _compile_all([rule.automaton for rule in compiled.rules], fresh)


def _compile_all(automata: Sequence[Automaton], compiled: CompiledRules) -> CompiledRules:
    for automaton in automata:
        around, at_match = surroundings(compiled), surroundings(compiled)
        compiled.rules.append(_compile(automaton, compiled, around, at_match))
    watched = compiled.observed
    compiled.before = compile_before(watched.before, surroundings(compiled))
    compiled.after = compile_after(watched.tables, surroundings(compiled))
    return compiled


def surroundings(compiled: CompiledRules) -> Surroundings:
    """What the code of a new module stands in."""
    return Surroundings(
        compiled.shape,
        compiled.lists,
        compiled.checked.functions,
        compiled.observed.bits,
        compiled.observed.notes,
    )


def _compile(
    automaton: Automaton, compiled: CompiledRules, around: Surroundings, at_match: Surroundings
) -> CompiledRule:
    rule = automaton.rule
    shape = compiled.shape
    earlier = compiled.earlier.get(rule.name)
    plan = _plan(automaton, shape)
    if earlier is not None:
        automaton = replace(automaton, openings=[], quiet=[])
    found = dispatch(
        automaton, lambda name: compiled.lists[name], lambda path: shape.uses[path].type
    )
    if isinstance(rule.pattern, checked.WindowPattern):
        code = write_window_rule(
            automaton, found.entries, around, compiled.streams, earlier is not None
        )
    else:
        code = write_rule(automaton, found.entries, around)
    matches = _match_code(automaton, compiled.streams, at_match)
    return CompiledRule(
        rule=rule,
        automaton=automaton,
        dispatch=found,
        version=_version(rule, compiled.checked) if earlier is None else earlier.version,
        plan=plan,
        handlers=code.text,
        durable_handlers=code.durable,
        handler_constants=code.constants,
        matches=matches.text(),
        match_constants=at_match.constants.values,
        looks_up=matches.looks_up,
        identities=_identities(automaton, compiled),
        earlier=earlier,
    )


def _match_code(automaton: Automaton, streams: Streams, around: Surroundings) -> MatchCode:
    rule = automaton.rule
    stream_of = {atom.step: atom.stream for atom in automaton.atoms if atom.step is not None}
    code = MatchCode(around, automaton.steps, stream_of, streams)
    code.condition("having", rule.having)
    code.description("alert", rule.alert)
    code.description("timeout_alert", rule.timeout_alert)
    if isinstance(rule.pattern, checked.WindowPattern):
        code.derived("derived", rule.pattern.derived)
    for number, emit in enumerate(rule.emit):
        code.event(f"emit_{number}", emit)
    for number, emit in enumerate(rule.timeout_emit):
        code.event(f"timeout_emit_{number}", emit)
    if rule.dedup is not None:
        code.key("dedup", rule.dedup.by)
    return code


def _version(rule: checked.Rule, rules: CheckedRules) -> str:
    """A hash of what the rule means: of its checked form and of the streams that it reads."""
    return meaning(rule, [rules.streams[name] for name in streams_of(rule, rules)])


def streams_of(rule: checked.Rule, rules: CheckedRules) -> list[str]:
    """The streams that a rule reads, those that these are made from, and those of its tables."""
    return sorted(names_behind(rule, rules).streams | {"event"} & rules.streams.keys())


@dataclass(slots=True)
class Names:
    """Names of declarations."""

    streams: set[str] = field(default_factory=set)
    tables: set[str] = field(default_factory=set)
    lists: set[str] = field(default_factory=set)


def names_behind(value: object, rules: CheckedRules) -> Names:
    """The streams, tables and lists that a checked value stands on, also by way of others."""
    found, todo = Names(), [value]
    while todo:
        for part in _parts(todo.pop()):
            if isinstance(part, checked.NamedList):
                found.lists.add(part.name)
            if not _naming(part.__class__):
                continue
            tables: set[Any] = {getattr(part, "table", None), getattr(part, "keys_from", None)}
            for name in (tables & rules.tables.keys()) - found.tables:
                found.tables.add(name)
                todo.append(rules.tables[name])
            found.lists |= tables & rules.lists.keys()
            streams: set[Any] = {getattr(part, "stream", None), *getattr(part, "parents", ())}
            for name in (streams & rules.streams.keys()) - found.streams:
                found.streams.add(name)
                todo.append(rules.streams[name])
    return found


@cache
def _naming(kind: type) -> bool:
    """Whether such a part may name a stream or a table."""
    return not {"table", "keys_from", "stream", "parents"}.isdisjoint(checked.attributes(kind))


def _parts(value: object) -> Iterable[Any]:
    """A checked value and all inside it."""
    todo = [value]
    while todo:
        part = todo.pop()
        if isinstance(part, tuple):
            todo += part
        elif names := checked.attributes(part.__class__):
            yield part
            todo += [getattr(part, name) for name in names]


def _identities(automaton: Automaton, compiled: CompiledRules) -> tuple[str | None, ...]:
    """For each step the attribute of its stream's `id` field; None: source and position count."""
    streams = compiled.checked.streams
    stream_of = {atom.step: atom.stream for atom in automaton.atoms if atom.step is not None}
    found = []
    read = [stream_of[step] for step in automaton.steps]
    if isinstance(automaton.rule.pattern, checked.WindowPattern):
        read = [automaton.rule.pattern.stream]
    for stream in read:
        path = streams[stream].id or (streams["event"].id if "event" in streams else None)
        found.append(compiled.shape.attributes[path] if path is not None else None)
    return tuple(found)


# ---------------------------------------------------------------------------- the runtime's view


def _plan(automaton: Automaton, shape: EventShape) -> RulePlan | WindowRulePlan:
    rule = automaton.rule
    if isinstance(rule.pattern, checked.WindowPattern):
        return WindowRulePlan(
            names=tuple(field.name for field in rule.pattern.fields),
            kind=rule.pattern.kind,
            report=rule.report,
            dedup=rule.dedup.duration if rule.dedup is not None else None,
            expires=expires(automaton),
            steady=is_steady(rule),
        )
    steps = automaton.steps
    skip_step = steps.index(rule.skip_step) if rule.skip_step is not None else -1
    return RulePlan(
        layout=Layout(
            step_of=tuple(steps.index(p.step) for p in automaton.positions),
            node_of=_nodes_of(automaton),
            branches=tuple(p.branches for p in automaton.positions),
            greed=tuple(automaton.greed[step] for step in steps),
            plain=automaton.is_row,
        ),
        slots=tuple(_slot(automaton, state, shape) for state in automaton.states),
        quiet=tuple(absence.within or 0 for absence in automaton.quiet),
        skip=Skip(rule.skip, skip_step),
        within=automaton.within,
        keep=rule.keep,
        limit=rule.limit,
        timeouts=rule.timeout_alert is not None or bool(rule.timeout_emit),
        dedup=rule.dedup.duration if rule.dedup is not None else None,
        reports=rule.reports,
        is_strict_row=automaton.is_strict_row,
        most_runs=most_runs(automaton),
        most_nodes=MOST_NODES,
        one_run_each=one_run_each(automaton),
        closes_late=closes_late(automaton),
    )


def _nodes_of(automaton: Automaton) -> tuple[int, ...]:
    """For each step the place of the pattern's node that it stands in."""
    pattern = automaton.rule.pattern
    assert isinstance(pattern, checked.SequencePattern)
    found = {
        step.name: place for place, node in enumerate(pattern.nodes) for step in steps_of((node,))
    }
    return tuple(found[step] for step in automaton.steps)


def _slot(automaton: Automaton, state: State, shape: EventShape) -> Slot:
    key = state.key
    deadline = key.deadline
    return Slot(
        name=f"s{state.index}",
        form="list" if state.path and state.form == "one" else state.form,
        deadline=((deadline.after, deadline.since_first) if deadline is not None else None),
        closes=key.close is not None and key.close.on_end,
        within=automaton.within if deadline is None else None,
        reach=reach_of(state) or group_bounds(automaton, state),
        bare=_bare_runs(automaton, state, shape) if state.path else None,
        in_order=in_order(automaton, state),
    )


def _bare_runs(automaton: Automaton, state: State, shape: EventShape) -> BareRuns:
    seen: list[tuple[int, str] | None] = []
    for variable in state.variables:
        place, field = place_of(variable, state, automaton), variable.argument
        assert isinstance(field, checked.Field)
        seen.append((place, shape.attributes[field.path]) if place is not None else None)
    ahead = [other for other in automaton.states if len(other.path) > len(state.path)]
    return BareRuns(
        state.path, tuple(seen), tuple((f"s{other.index}", len(other.path)) for other in ahead)
    )


def window_plan(rule: checked.Rule, careful: Careful) -> WindowPlan:
    """How the windows of an aggregate rule are kept; failures are counted in `careful`."""
    pattern = rule.pattern
    assert isinstance(pattern, checked.WindowPattern)
    length = pattern.size if pattern.kind != "session" else None
    return WindowPlan(
        kind=pattern.kind,
        aggregates=tuple(
            aggregates.factory(f.function, f.distinct, tuple(map(_constant, f.extra)), length)
            for f in pattern.fields
        ),
        careful=careful,
        size=pattern.size,
        count=pattern.count,
        step=pattern.step,
        maximum=pattern.maximum,
        timezone=pattern.timezone,
        says=tuple(
            f"{f.function}({said(f.argument) if f.argument is not None else ''})"
            for f in pattern.fields
        ),
        slots=value_slots(pattern),
        updates=rule.report == "on_update",
    )


def _constant(value: Value) -> Any:
    """A further argument of an aggregate: the checker lets only constants through."""
    return value.value if isinstance(value, checked.Const) else None


# ---------------------------------------------------------------------------- which fields are read


def _uses(automaton: Automaton, streams: Streams) -> Iterable[tuple[tuple[str, ...], FieldUse]]:
    """The fields that one rule reads of events, and as what."""
    values: list[Value] = [value for key in automaton.keys for value in key]
    for atom in automaton.atoms:
        values += [c for origin in (*atom.origins, *atom.membership) for c in origin.filters]
        values += atom.guards
    values += [guard for position in automaton.positions for guard in position.guards]
    values += [variable.argument for variable in _variables(automaton) if variable.argument]
    values += [
        checked.IsMissing(variable.argument)
        for variable in tracked(automaton)
        if variable.argument is not None
    ]
    values += _values_at_match(automaton, streams)
    values += _values_of_windows(automaton, streams)
    for path, kind, asked in mentioned(values):
        yield path, FieldUse(kind, asked)
    for path in _ordered_fields(values):
        yield path, FieldUse(Type.NUMBER)


def _ordered_fields(values: Iterable[Value]) -> Iterable[tuple[str, ...]]:
    """Fields that are put in order with other fields of unknown type: most likely numbers.

    A wrong guess costs time (the values are boxed, the careful form decides) but changes nothing.
    """
    for value in values:
        for part in value.walk():
            if isinstance(part, Comparison) and part.op in ("<", "<=", ">", ">="):
                sides = (part.left, part.right)
                if all(side.type is Type.ANY for side in sides):
                    fields = [getattr(s, "variable", s) for s in sides]
                    fields = [getattr(field, "argument", field) for field in fields]
                    yield from (field.path for field in fields if isinstance(field, Field))


def _values_of_windows(automaton: Automaton, streams: Streams) -> list[Value]:
    """What the aggregates of a window rule take from an event."""
    pattern = automaton.rule.pattern
    if not isinstance(pattern, checked.WindowPattern):
        return []
    read = [f.argument for f in pattern.fields] + [f.where for f in pattern.fields]
    return [streams.on_event(pattern.stream, value) for value in read if value is not None]


def _variables(automaton: Automaton) -> Iterable[Variable]:
    guards = [guard for position in automaton.positions for guard in position.guards]
    guards += [guard for atom in automaton.atoms for guard in atom.guards]
    return variables_in(guards)


def _values_at_match(automaton: Automaton, streams: Streams) -> list[Value]:
    """What the rule asks of bound events when a match is complete, as values over one event."""
    rule = automaton.rule
    stream_of = {atom.step: atom.stream for atom in automaton.atoms if atom.step is not None}
    asked: list[Value] = [rule.having] if rule.having is not None else []
    for alert in (rule.alert, rule.timeout_alert):
        if alert is not None:
            asked += [value for _, value in alert.fields]
            asked += (
                [p for p in alert.message.parts if isinstance(p, Value)] if alert.message else []
            )
    asked += [value for emit in (*rule.emit, *rule.timeout_emit) for _, value in emit.fields]
    asked += rule.dedup.by if rule.dedup is not None and rule.dedup.by is not None else ()
    found: list[Value] = []
    for value in asked:
        missing = [v.operand for v in value.walk() if isinstance(v, checked.IsMissing)]
        for part in value.walk():
            if isinstance(part, StepField) and part.path:
                leaf = Field(part.path, type=part.type)
                on_event = streams.on_event(stream_of[part.step], leaf)
                found.append(checked.IsMissing(on_event) if part in missing else on_event)
            elif isinstance(part, StepAggregate) and part.argument is not None:
                found.append(streams.on_event(stream_of[part.step], part.argument))
    return found


def _stream_uses(
    rules: CheckedRules, streams: Streams
) -> Iterable[tuple[tuple[str, ...], FieldUse]]:
    """The fields that hold times and identities, and those that decide whose times they are."""
    formats = [stream.time for stream in rules.streams.values() if stream.time is not None]
    event = rules.streams.get("event")
    if event is None or event.time is None:
        yield from ((path, FieldUse()) for path in DEFAULT_TIMES)
    for time in formats:
        yield from ((path, FieldUse()) for path in time.paths)
    for stream in rules.streams.values():
        if stream.id is not None:
            yield stream.id, FieldUse()
        if stream.time is not None:
            conditions = [c for o in streams.origins(stream.name) for c in o.filters]
            for path, kind, asked in mentioned(conditions):
                yield path, FieldUse(kind, asked)


# ---------------------------------------------------------------------------- generated modules


@lru_cache(maxsize=4096)
def module(text: str) -> Callable[..., Any]:
    """The function `make` of a generated module."""
    namespace = dict(NAMES)
    exec(compile(text, "<rule>", "exec"), namespace)
    return namespace["make"]  # type: ignore[no-any-return]
