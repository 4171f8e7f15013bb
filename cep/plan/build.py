"""From a checked rule to the positions and edges of its automaton.

The pattern is walked once, keeping the *ends* that are open: positions after which the next node
may come, each with the absences met since. A node connects all open ends to its first positions
and leaves its own ends open. This is Glushkov's construction with two additions: absences are
collected on the edges, and repetitions are unrolled into copies, so that a state alone says how
often a step has been taken (up to `UNROLL` copies; beyond that a counter is kept).
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import comb

from cep.plan.automaton import (
    Absence,
    Atom,
    Automaton,
    Bounds,
    Close,
    Deadline,
    Edge,
    Origin,
    Position,
    Variable,
)
from cep.plan.limits import PLACES, WAYS, TooLarge
from cep.plan.states import add_states
from cep.plan.streams import Streams
from cep.plan.values import (
    FALSE,
    TRUE,
    OwnAggregate,
    Seen,
    Tally,
    looks_back,
    on_first,
    rewrite,
    simplify,
    when_unbound,
)
from dsl import checked
from dsl.checked import (
    Coalesce,
    Comparison,
    Const,
    EventTime,
    Field,
    IsMissing,
    IsNull,
    LoopValue,
    StepAggregate,
    StepField,
    StepTime,
    Value,
    conjuncts,
)
from dsl.source import NOWHERE
from dsl.types import Type

UNROLL = 32
"""Repetitions up to this many are unrolled into positions of their own."""

START = -1
"""The place before the first event."""

ROUND = -2
"""The place before a round of a `repeat`, while the round is built."""

INCREMENTAL = frozenset({"count", "sum", "avg", "min", "max", "first", "last"})
"""Aggregates of a bound step that are carried along event by event."""


ZERO = Const(0, type=Type.INT)


@dataclass(frozen=True, slots=True)
class End:
    """An open end: a position (or START), and what has been met since."""

    position: int
    absences: frozenset[Absence] = frozenset()


@dataclass(frozen=True, slots=True)
class Context:
    """Where a node stands: branches chosen; `entry`: from which places outside a group steps are
    entered in the mode of the group; rounds."""

    branches: tuple[tuple[int, int], ...] = ()
    entry: Mapping[int, str] = field(default_factory=dict)
    repeated: bool = False
    greedy: bool = True
    group: tuple[int, int] | None = None


def build(rule: checked.Rule, streams: Streams) -> Automaton:
    """The automaton of a rule. That of an `aggregate` has one atom, and no positions or states.

    Raises TooLarge for a pattern beyond what `cep.plan.limits` allows.
    """
    if isinstance(rule.pattern, checked.WindowPattern):
        pattern = rule.pattern
        builder = _Builder(rule, checked.SequencePattern("aggregate", ()), streams)
        return builder.build_window(pattern)
    return _Builder(rule, rule.pattern, streams).build()


class _Builder:
    def __init__(
        self, rule: checked.Rule, pattern: checked.SequencePattern, streams: Streams
    ) -> None:
        self.rule = rule
        self.pattern = pattern
        self.streams = streams
        self.atoms: list[Atom] = []
        self.positions: list[Position] = []
        self.openings: list[Edge] = []
        self.keys: list[tuple[Value, ...]] = []
        self.steps: list[str] = []
        self.greed: dict[str, int] = {}
        self.loops: set[str] = set()
        self.quiet: list[Absence] = []
        self.stream_of = {s.name: s.stream for s in steps_of(self.pattern.nodes)}
        self.groups = 0
        self._atoms_of_nodes: dict[object, int] = {}
        self._entries: list[list[Edge]] = []
        self._known: set[tuple[int, Edge]] = set()

    def build(self) -> Automaton:
        for guard in self.rule.unless:
            self._guard_atom(guard, "unless")
        nodes = self._leading_absences(self.pattern.nodes)
        ends = self._sequence(nodes, [End(START)], Context())
        self._finish(ends)
        automaton = self._automaton()
        add_states(automaton)
        return automaton

    def build_window(self, pattern: checked.WindowPattern) -> Automaton:
        """The events of an aggregate and their key."""
        self._atom("window", pattern.stream, pattern.where, pattern.by)
        return self._automaton()

    def _automaton(self) -> Automaton:
        return Automaton(
            rule=self.rule,
            atoms=self.atoms,
            positions=self.positions,
            openings=self.openings,
            states=[],
            entered={},
            keys=self.keys,
            within=self.pattern.within,
            steps=self.steps,
            greed=self.greed,
            quiet=self.quiet,
            loops=frozenset(self.loops),
        )

    # ------------------------------------------------------------------ atoms

    def _atom(self, kind: str, stream: str, where: Value | None, by: tuple[Value, ...]) -> Atom:
        """An atom without its guards; those are returned by `_split` and put where they belong."""
        membership = self.streams.origins(stream)
        own = tuple(
            self.streams.on_event(stream, part) for part in conjuncts(where) if not looks_back(part)
        )
        key = tuple(self.streams.on_event(stream, value) for value in by)
        atom = Atom(
            index=len(self.atoms),
            kind=kind,
            stream=stream,
            origins=tuple(Origin(o.source, o.filters + own) for o in membership),
            membership=membership,
            key=self._key(key),
        )
        self.atoms.append(atom)
        return atom

    def _key(self, key: tuple[Value, ...]) -> int:
        """The number of a key. Fields are the same whatever type they are taken for: that depends
        on what other rules do with them."""
        for number, known in enumerate(self.keys):
            if known == key or (_paths(key) is not None and _paths(known) == _paths(key)):
                return number
        self.keys.append(key)
        return len(self.keys) - 1

    def _guard_atom(self, guard: checked.Guard, kind: str) -> int:
        known = self._atoms_of_nodes.get((kind, id(guard)))
        if known is not None:
            return known
        atom = self._atom(kind, guard.stream, guard.where, guard.by)
        guards = tuple(
            self._seeing(part, guard.stream) for part in conjuncts(guard.where) if looks_back(part)
        )
        self.atoms[atom.index] = replace(atom, guards=guards)
        self._atoms_of_nodes[(kind, id(guard))] = atom.index
        return atom.index

    def _step_atom(self, step: checked.Step) -> Atom:
        known = self._atoms_of_nodes.get(("step", id(step)))
        if known is not None:
            return self.atoms[known]
        atom = replace(self._atom("step", step.stream, step.where, step.by), step=step.name)
        self.atoms[atom.index] = atom
        self._atoms_of_nodes[("step", id(step))] = atom.index
        return atom

    # ------------------------------------------------------------------ guards

    def _seeing(self, condition: Value, stream: str, step: str | None = None) -> Value:
        """A condition whose references to earlier events have become variables of the run."""

        def change(value: Value) -> Value | None:
            if isinstance(value, IsNull | IsMissing) and _is_step(value.operand):
                return self._unbound(_step_of(value.operand))
            if isinstance(value, StepField):
                return self._seen(value.step, Field(value.path, type=value.type), value.index)
            if isinstance(value, StepTime):
                return self._seen(value.step, EventTime(type=Type.TIME), value.index)
            if isinstance(value, LoopValue):
                assert step is not None
                return self._loop_value(value, step)
            if isinstance(value, StepAggregate):
                return self._step_aggregate(value)
            if isinstance(value, OwnAggregate):
                return replace(value, aggregate=self._on_events_of(value.aggregate))
            if isinstance(value, Field):
                return self.streams.on_event(stream, value)
            return None

        return rewrite(condition, change)

    def _unbound(self, step: str) -> Value:
        """Whether a step has taken nothing (`a is null` of a whole step)."""
        taken = Coalesce(Seen(Variable(step, "count"), type=Type.INT), ZERO, type=Type.INT)
        return Comparison("==", taken, ZERO, type=Type.BOOL)

    def _seen(self, step: str, argument: Value, index: int) -> Value:
        on_event = self.streams.on_event(self.stream_of[step], argument)
        if index > 0:
            nth = StepAggregate("nth", step, on_event, extra=(Const(index, type=Type.INT),))
            return Tally(nth, type=argument.type, span=argument.span)
        variable = Variable(step, "last" if index < 0 else "first", on_event)
        return Seen(variable, type=argument.type, span=argument.span)

    def _loop_value(self, value: LoopValue, step: str) -> Value:
        kind = "last" if value.function == "prev" else value.function
        argument = value.argument
        if argument is not None:
            argument = self.streams.on_event(self.stream_of[step], argument)
        return Seen(Variable(step, kind, argument), type=value.type, span=value.span)

    def _on_events_of(self, value: StepAggregate) -> StepAggregate:
        if value.argument is None:
            return value
        argument = self.streams.on_event(self.stream_of[value.step], value.argument)
        return replace(value, argument=argument)

    def _step_aggregate(self, value: StepAggregate) -> Value:
        value = self._on_events_of(value)
        if value.function in INCREMENTAL and not value.distinct:
            kind = "total" if value.function == "sum" else value.function
            return Seen(Variable(value.step, kind, value.argument), type=value.type)
        return Tally(value, type=value.type)

    def _step_guards(self, step: checked.Step, copy: int, repeated: bool) -> tuple[Value, ...]:
        """The guards of one copy of a step. At the first copy the loop has taken nothing yet; in a
        group that repeats that is only known at run time."""
        guards: list[Value] = []
        for part in conjuncts(step.where):
            if not looks_back(part):
                continue
            if copy == 0 and not repeated:
                part = on_first(part)
            elif copy == 0:
                part = when_unbound(part, self._unbound(step.name))
            seeing = simplify(self._seeing(part, step.stream, step.name))
            if seeing != TRUE:
                guards.append(seeing)
        return tuple(guards)

    # ------------------------------------------------------------------ nodes

    def _leading_absences(self, nodes: Sequence[checked.Node]) -> tuple[checked.Node, ...]:
        """Takes the `no`s before the first step off: they are conditions on opening a run."""
        rest = list(nodes)
        while rest and isinstance(rest[0], checked.Guard):
            guard = rest.pop(0)
            assert isinstance(guard, checked.Guard)
            self.quiet.append(Absence(self._guard_atom(guard, "quiet"), guard.within))
        return tuple(rest)

    def _sequence(
        self, nodes: Iterable[checked.Node], ends: list[End], context: Context
    ) -> list[End]:
        for node in nodes:
            if isinstance(node, checked.Guard):
                absence = Absence(self._guard_atom(node, "no"), node.within)
                ends = [replace(end, absences=end.absences | {absence}) for end in ends]
                continue
            ends = self._node(node, ends, context)
        return ends

    def _node(self, node: checked.Node, ends: list[End], context: Context) -> list[End]:
        if isinstance(node, checked.Step):
            return self._step(node, ends, context)
        if isinstance(node, checked.OneOf):
            return self._one_of(node, ends, context)
        if isinstance(node, checked.AllOf):
            return self._all_of(node, ends, context)
        assert isinstance(node, checked.Repeat)
        return self._repeat(node, ends, context)

    def _position(
        self, atom: int, step: str, guards: tuple[Value, ...], copy: int, context: Context
    ) -> Position:
        if len(self.positions) >= PLACES:
            raise self._too_many(PLACES, "places to be in")
        position = Position(
            index=len(self.positions),
            atom=atom,
            step=step,
            guards=guards,
            copy=copy,
            branches=context.branches,
            group_start=context.group,
        )
        self.positions.append(position)
        return position

    def _too_many(self, most: int, what: str) -> TooLarge:
        span = self.rule.ast.name.span if self.rule.ast is not None else NOWHERE
        message = f"the pattern of rule {self.rule.name} has more than {most} {what}"
        return TooLarge(message, span)

    def _connect(self, end: End, edge: Edge) -> None:
        if end.position == ROUND:
            entries = self._entries[-1]
            if edge not in entries:
                entries.append(edge)
            return
        if (end.position, edge) in self._known:
            return
        if len(self._known) >= WAYS:
            raise self._too_many(WAYS, "ways from one place to the next")
        self._known.add((end.position, edge))
        at_start = end.position == START
        edges = self.openings if at_start else self.positions[end.position].edges
        edges.append(edge)

    def _note_step(self, step: checked.Step, greedy: bool, repeated: bool) -> None:
        if step.name not in self.steps:
            self.steps.append(step.name)
            own = step.quantifier.greedy if step.quantifier != checked.Quantifier() else greedy
            self.greed[step.name] = 1 if own else -1
            if step.quantifier.is_loop or repeated:
                self.loops.add(step.name)

    def _step(self, step: checked.Step, ends: list[End], context: Context) -> list[End]:
        self._note_step(step, context.greedy, context.repeated)
        quantifier = step.quantifier
        again = "next" if step.mode == "next" else "relaxed"
        until = None if step.until is None else self._guard_atom(step.until, "until")
        atom = self._step_atom(step)
        looks = step.where is not None and looks_back(step.where)
        left: list[End] = list(ends) if quantifier.minimum == 0 else []
        previous: Position | None = None
        taken = 0
        for length in _stretches(quantifier, looks):
            copy = int(previous is not None)
            guards = self._step_guards(step, copy, context.repeated)
            position = self._position(atom.index, step.name, guards, copy, context)
            position.counted = length if length > 1 else None
            bounds = _bounds(step, entering=previous is None)
            if previous is None:
                self._enter(ends, position, step.mode, bounds, context, until)
            else:
                edge = Edge(position.index, again, until=until, bounds=bounds)
                previous.edges.append(replace(edge, at_least=previous.counted))
            if length > 1:
                self._repeat_position(position, step, again, until, below=length)
            taken += length
            if taken >= quantifier.minimum and (
                length == 1 or taken - length >= quantifier.minimum
            ):
                left.append(End(position.index))
            previous = position
        assert previous is not None
        if quantifier.maximum is None:
            self._repeat_position(previous, step, again, until)
        return left

    def _repeat_position(
        self,
        position: Position,
        step: checked.Step,
        again: str,
        until: int | None,
        below: int | None = None,
    ) -> None:
        bounds = _bounds(step, entering=False)
        position.edges.append(Edge(position.index, again, until=until, bounds=bounds, below=below))

    def _enter(
        self,
        ends: list[End],
        position: Position,
        mode: str,
        bounds: Bounds | None,
        context: Context,
        until: int | None = None,
    ) -> None:
        """Edges from the open ends into a step; from outside a group in the mode of the group."""
        for end in ends:
            chosen = context.entry.get(end.position, mode)
            self._connect(end, Edge(position.index, chosen, end.absences, until, bounds))

    def _inside(self, mode: str, ends: list[End], context: Context) -> Context:
        """The context of a group's inner nodes. Of groups that begin together the outer one says
        how they are entered."""
        if mode == "relaxed":
            return context
        return replace(context, entry={**{end.position: mode for end in ends}, **context.entry})

    def _one_of(self, node: checked.OneOf, ends: list[End], context: Context) -> list[End]:
        self.groups += 1
        inside = self._inside(node.mode, ends, context)
        left: list[End] = []
        for number, branch in enumerate(node.branches):
            branches = (*context.branches, (self.groups, number))
            left += self._sequence(branch, ends, replace(inside, branches=branches))
        return list(dict.fromkeys(left))

    def _repeat(self, node: checked.Repeat, ends: list[End], context: Context) -> list[End]:
        """Rounds as copies of the body; the last copy of an open end leads back to itself.

        Each copy is built from a place of its own (`ROUND`), so that its entries can be joined to
        the ends before it and, for the last one, to its own ends.
        """
        quantifier, minimum = node.quantifier, node.quantifier.minimum
        entry = {place: mode for place, mode in context.entry.items() if place != ROUND}
        inside = replace(context, repeated=True, greedy=quantifier.greedy, entry=entry)
        left: list[End] = list(ends) if minimum == 0 else []
        modes = self._inside(node.mode, ends, context).entry
        entries: list[Edge] = []
        for number in range(max(minimum, quantifier.maximum or 1)):
            self._entries.append(entries := [])
            body = self._sequence(node.body, [End(ROUND)], inside)
            self._entries.pop()
            self._join(ends, entries, modes)
            empty = [end for end in body if end.position == ROUND]
            if empty and number == 0:  # a round may take nothing, and so may all of them
                minimum = 0
                left += [replace(e, absences=e.absences | o.absences) for e in ends for o in empty]
            ends = [end for end in body if end.position != ROUND]
            modes = {end.position: "next" for end in ends} if node.mode == "next" else {}
            if number + 1 >= minimum:
                left += ends
        if quantifier.maximum is None:
            self._join(ends, entries, modes)
        return list(dict.fromkeys(left))

    def _join(self, ends: Iterable[End], entries: Iterable[Edge], modes: Mapping[int, str]) -> None:
        for end in ends:
            for entry in entries:
                self._connect(
                    end,
                    replace(
                        entry,
                        mode=modes.get(end.position, entry.mode),
                        absences=end.absences | entry.absences,
                    ),
                )

    # ------------------------------------------------------------------ any order

    def _all_of(self, node: checked.AllOf, ends: list[End], context: Context) -> list[End]:
        self.groups += 1
        absences = frozenset(
            Absence(self._guard_atom(guard, "no"), guard.within) for guard in node.absent
        )
        for part in node.parts:
            self._note_step(part, context.greedy, context.repeated)
        inside = self._inside(node.mode, ends, context)
        if node.within is not None and self.pattern.kind != "all":
            inside = replace(inside, group=(self.groups, node.within))
        places = self._places(node, inside)
        for (taken, number), place in places.items():
            mode = node.parts[number].mode
            if taken == 0:
                self._enter(ends, place, mode, None, inside)
            for other in range(len(node.parts)):
                came_from = places.get((taken & ~(1 << other), other))
                if taken & 1 << other and came_from is not None:
                    came_from.edges.append(Edge(place.index, mode, absences))
        return [
            End(place.index)
            for (taken, part), place in places.items()
            if (taken | 1 << part).bit_count() == node.count
        ]

    def _places(self, node: checked.AllOf, context: Context) -> dict[tuple[int, int], Position]:
        """A position for each part arriving after each set of other parts: (bit set, part). Of
        parts that nothing tells apart the one written first arrives first."""
        places: dict[tuple[int, int], Position] = {}
        numbers = range(len(node.parts))
        wants = self._written_before(node, context)
        if not any(wants) and _number_of_places(len(numbers), node.count) > PLACES:
            raise self._too_many(PLACES, "places to be in")
        todo = deque((0, part) for part in numbers if not wants[part])
        while todo:
            taken, part = todo.popleft()
            if (taken, part) in places:
                continue
            places[taken, part] = self._part(node, taken, part, context)
            now = taken | 1 << part
            if now.bit_count() < node.count:
                todo += [
                    (now, other)
                    for other in numbers
                    if not now & 1 << other and not wants[other] & ~now
                ]
        return places

    def _written_before(self, node: checked.AllOf, context: Context) -> list[int]:
        """For each part, as a bit set, the one written before it that takes the same events where
        nothing else sees which of them took which. The runs that differ only in that take the same
        events, and the one in the order of writing is preferred; so it is the only one made, but
        where all are asked for."""
        wants = [0] * len(node.parts)
        rule = self.rule
        if rule.skip == "nothing" or rule.having is not None or rule.start == "latest":
            return wants
        if context.repeated:
            return wants
        seen = set[str]()
        for condition in self._conditions():
            seen |= _steps_named(condition)
        known: dict[object, int] = {}
        for number, part in enumerate(node.parts):
            if part.name in seen or (part.where is not None and looks_back(part.where)):
                continue
            kind = replace(part, name="")
            if kind in known:
                wants[number] = 1 << known[kind]
            known[kind] = number
        return wants

    def _conditions(self) -> Iterable[Value]:
        """All conditions of the pattern and of what kills its runs."""
        guards = [*self.rule.unless, *guards_of(self.pattern.nodes)]
        asked = [*(g.where for g in guards), *(s.where for s in steps_of(self.pattern.nodes))]
        return [condition for condition in asked if condition is not None]

    def _part(self, node: checked.AllOf, taken: int, part: int, context: Context) -> Position:
        """The place of one part when the parts in `taken` are already there."""
        step = node.parts[part]
        atom = self._step_atom(step)
        names = {p.name: i for i, p in enumerate(node.parts)}
        guards: list[Value] = []
        for owner, other in enumerate(node.parts):
            for condition in conjuncts(other.where):
                named = {names[s] for s in _steps_named(condition) if s in names} | {owner}
                present = all(n == part or taken & 1 << n for n in named)
                if not present or part not in named or not looks_back(condition):
                    continue
                if owner != part:
                    condition = _turned(condition, other.name, step.name)
                guards.append(self._seeing(condition, step.stream, step.name))
        place = self._position(atom.index, step.name, tuple(guards), 0, context)
        place.group_first = taken == 0
        return place

    # ------------------------------------------------------------------ the end of the pattern

    def _finish(self, ends: list[End]) -> None:
        for end in ends:
            assert end.position != START, "the checker refuses patterns that match nothing"
            position = self.positions[end.position]
            if end.absences:
                position.deadline = self._deadline(end)
            elif not position.edges or self.rule.report == "at_minimum":
                position.accepts = True
                position.edges = []
            else:
                position.close = Close(on_end=self.rule.report == "on_close")

    def _deadline(self, end: End) -> Deadline:
        lengths = [absence.within for absence in end.absences]
        after = max((length for length in lengths if length is not None), default=None)
        since_first = self.pattern.within if None in lengths else None
        return Deadline(end.absences, after, since_first)


def _stretches(quantifier: checked.Quantifier, looks: bool) -> list[int]:
    """How many events each of the positions of a loop stands for. The last one of a loop without
    end stands for any number; a first one whose conditions look back for no more than one."""
    minimum, maximum = quantifier.minimum, quantifier.maximum
    lengths = [1] * minimum if minimum <= UNROLL else [1, minimum - 2, 1]
    if maximum is None:
        lengths += [1] * (int(minimum == 0) + int(minimum <= 1 and looks))
    elif maximum - minimum <= UNROLL:
        lengths += [1] * (maximum - minimum)
    else:
        first = int(minimum == 0)
        lengths += [1] * first + [maximum - minimum - first - 1, 1]
    return [length for length in lengths if length > 0]


def _number_of_places(parts: int, count: int) -> int:
    """How many places `count` of so many parts need: each part after each set of others. Counted
    no further than over the limit."""
    places = 0
    for taken in range(count):
        places += comb(parts, taken) * (parts - taken)
        if places > PLACES:
            break
    return places


def _is_step(value: Value) -> bool:
    return isinstance(value, StepField) and not value.path


def _bounds(step: checked.Step, entering: bool) -> Bounds | None:
    if step.within is None and step.after is None:
        return None
    return Bounds(step.after, step.within, step.name, entering)


def steps_of(nodes: Iterable[checked.Node]) -> Iterable[checked.Step]:
    """All steps in these nodes, in the order in which they are written."""
    for node in nodes:
        if isinstance(node, checked.Step):
            yield node
        elif isinstance(node, checked.OneOf):
            for branch in node.branches:
                yield from steps_of(branch)
        elif isinstance(node, checked.AllOf):
            yield from node.parts
        elif isinstance(node, checked.Repeat):
            yield from steps_of(node.body)


def guards_of(nodes: Iterable[checked.Node]) -> Iterable[checked.Guard]:
    """All `no`s and `until`s in these nodes."""
    for node in nodes:
        if isinstance(node, checked.Guard):
            yield node
        elif isinstance(node, checked.Step):
            yield from (node.until,) if node.until is not None else ()
        elif isinstance(node, checked.OneOf):
            for branch in node.branches:
                yield from guards_of(branch)
        elif isinstance(node, checked.AllOf):
            yield from (*node.absent, *guards_of(node.parts))
        elif isinstance(node, checked.Repeat):
            yield from guards_of(node.body)


def _steps_named(condition: Value) -> set[str]:
    return {
        part.step
        for part in condition.walk()
        if isinstance(part, StepField | StepTime | StepAggregate)
    }


def _turned(condition: Value, owner: str, arriving: str) -> Value:
    """A condition of part `owner`, asked when `arriving` is the event being tested."""

    def change(value: Value) -> Value | None:
        if isinstance(value, IsNull | IsMissing) and _is_step(value.operand):
            return FALSE if _step_of(value.operand) == arriving else value
        if isinstance(value, StepAggregate):
            return OwnAggregate(value, type=value.type) if value.step == arriving else value
        if isinstance(value, StepField) and value.step == arriving:
            if value.index > 0:
                return Const(None, type=Type.NULL)
            return Field(value.path, type=value.type)
        if isinstance(value, StepTime) and value.step == arriving:
            return EventTime(type=Type.TIME) if value.index <= 0 else Const(None, type=Type.NULL)
        if isinstance(value, Field):
            return StepField(owner, value.path, type=value.type)
        if isinstance(value, EventTime):
            return StepTime(owner, type=Type.TIME)
        return None

    return rewrite(condition, change)


def _step_of(value: Value) -> str:
    assert isinstance(value, StepField)
    return value.step


def _paths(key: tuple[Value, ...]) -> list[tuple[str, ...]] | None:
    """The fields of a key that is made of fields alone."""
    paths = [part.path for part in key if isinstance(part, checked.Field)]
    return paths if len(paths) == len(key) else None
