"""From positions and edges to states: where runs wait, and what must be kept of them there.

A run that has taken an event at a position is in the state "all edges of that position are open".
Absences, ends of repetitions and events that are passed over close edges, which gives further
states. For each state the live variables are computed (backwards, to a fixed point, as in any
compiler), and from these the form in which its runs are kept:

* **single**: a strict place with one way in, so a key never has more than one run there.
* **one**: nothing of a run can be seen any more. All runs are one group, moved in one step.
* **hash**: one value can be seen, and the next steps ask for equality with it; or it is the last
  value of a repetition, so that all who take an event see the same. One group a value.
* **list**: anything else. Runs one by one.

In a plain row of steps a run is kept as nothing but the events that it has taken (`State.path`):
what later conditions see of it stands in these, and the order of the runs is that of the places. So
is one that waits for nothing but an absence.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from heapq import heappop, heappush

from cep.plan.automaton import Absence, Automaton, Edge, Position, State, StateKey, Variable
from cep.plan.limits import MOST_RUNS, WAITS, TooLarge
from cep.plan.values import Seen, Tally, looks_back
from dsl.checked import Comparison, Field, IsMissing, Value
from dsl.source import NOWHERE

STRUCTURAL = frozenset({"before", "began", "counter"})
"""Kinds of variables that belong to the pattern and not to a step's events."""


def add_states(automaton: Automaton) -> None:
    """Fills in `states` and `entered` of an automaton whose positions and edges are complete."""
    _find_states(automaton)
    _find_bound(automaton)
    _find_variables(automaton)
    _rank(automaton)
    for state in automaton.states:
        state.form, state.hash_variable = _form(automaton, state)
    if any(_each_start_ends_alone(automaton, state) for state in automaton.states):
        for state in automaton.states:
            state.form, state.hash_variable = "list", None
    _find_single(automaton)
    find_paths(automaton)


# ---------------------------------------------------------------------------- states


def _find_states(automaton: Automaton) -> None:
    known: dict[StateKey, State] = {}
    first = _first_places(automaton) if automaton.rule.start == "latest" else frozenset()
    waits = 0

    def state_of(key: StateKey) -> int | None:
        nonlocal waits
        if not key.edges and key.deadline is None:
            return None
        if key not in known:
            waits += len(key.edges) + 1
            if waits > WAITS:
                raise _too_many(automaton)
            known[key] = State(len(known), key)
            automaton.states.append(known[key])
        return known[key].index

    for position in automaton.positions:
        if position.accepts:
            automaton.entered[position.index] = None
            continue
        counted = position.index if position.counted else None
        edges = tuple(position.edges)
        key = StateKey(edges, position.deadline, position.close, counted, position.index in first)
        automaton.entered[position.index] = state_of(key)
    for state in automaton.states:  # grows while it is walked
        _follow(state, state_of)


def _too_many(automaton: Automaton) -> TooLarge:
    rule = automaton.rule
    return TooLarge(
        f"the pattern of rule {rule.name} has more than {WAITS} combinations of what it can wait "
        "for",
        rule.ast.name.span if rule.ast is not None else NOWHERE,
    )


def _first_places(automaton: Automaton) -> frozenset[int]:
    """The positions that are reached by events of one step only."""
    places = automaton.positions
    alone: dict[int, None] = dict.fromkeys(edge.target for edge in automaton.openings)
    for index in list(alone):
        _spread(automaton, alone, index, places[index].step)
    later: dict[int, None] = {}
    for index in range(len(places)):
        if index not in alone:
            _spread(automaton, later, index, None)
    for index in list(alone):
        for edge in places[index].edges:
            if places[edge.target].step != places[index].step:
                _spread(automaton, later, edge.target, None)
    return frozenset(alone) - frozenset(later)


def _spread(automaton: Automaton, reached: dict[int, None], start: int, step: str | None) -> None:
    """Adds the positions that follow from `start`, all of them or those of one step."""
    todo = [start]
    while todo:
        index = todo.pop()
        reached[index] = None
        targets = [edge.target for edge in automaton.positions[index].edges]
        todo += [
            target
            for target in targets
            if target not in reached and step in (None, automaton.positions[target].step)
        ]


def _follow(state: State, find: Callable[[StateKey], int | None]) -> None:
    """The states that follow from `state` when edges close."""
    key = state.key
    absences = {a for edge in key.edges for a in edge.absences}
    if key.deadline is not None:
        absences |= key.deadline.absences
    for absence in sorted(absences, key=lambda a: (a.atom, a.within or 0)):
        edges = tuple(edge for edge in key.edges if absence not in edge.absences)
        deadline = key.deadline
        if deadline is not None and absence in deadline.absences:
            deadline = None
        state.after_absence[absence] = find(replace(key, edges=edges, deadline=deadline))
    for until in sorted({edge.until for edge in key.edges if edge.until is not None}):
        edges = tuple(edge for edge in key.edges if edge.until != until)
        state.after_until[until] = find(replace(key, edges=edges))
    relaxed = tuple(edge for edge in key.edges if edge.mode != "next")
    if len(relaxed) == len(key.edges):
        state.after_pass = state.index
    else:
        state.after_pass = find(replace(key, edges=relaxed))


def successors(state: State) -> Iterable[int]:
    """States that follow without an event being taken."""
    for target in (*state.after_absence.values(), *state.after_until.values(), state.after_pass):
        if target is not None and target != state.index:
            yield target


# ---------------------------------------------------------------------------- what may be bound


def _find_bound(automaton: Automaton) -> None:
    """Which steps may have events in each state, forwards to a fixed point. States are looked at in
    the order in which the pattern is written, so that most are looked at once."""
    changed: list[int] = []
    waiting: set[int] = set()

    def reach(index: int, bound: frozenset[str]) -> None:
        state = automaton.states[index]
        if state.rank and bound <= state.may_be_bound:
            return
        state.rank = 1  # visited; the real rank is set later
        state.may_be_bound |= bound
        if index not in waiting:
            waiting.add(index)
            heappush(changed, index)

    def enter(edges: Iterable[Edge], bound: frozenset[str]) -> None:
        for edge in edges:
            target = automaton.entered[edge.target]
            if target is not None:
                reach(target, bound | {automaton.positions[edge.target].step})

    enter(automaton.openings, frozenset())
    while changed:
        index = heappop(changed)
        waiting.remove(index)
        state = automaton.states[index]
        enter(state.edges, state.may_be_bound)
        for target in successors(state):
            reach(target, state.may_be_bound)


def _rank(automaton: Automaton) -> None:
    """How far a state is from the start: handlers visit the far ones first."""
    for state in automaton.states:
        state.rank = 0
    todo = [(edge.target, 1) for edge in automaton.openings]
    seen: set[int] = set()
    while todo:
        position, rank = todo.pop(0)
        index = automaton.entered[position]
        if index is None or index in seen:
            continue
        for reached in _closure(automaton, index):
            if reached in seen:
                continue
            seen.add(reached)
            automaton.states[reached].rank = rank
            todo += [(edge.target, rank + 1) for edge in automaton.states[reached].edges]


def _closure(automaton: Automaton, index: int) -> list[int]:
    reached = [index]
    for state in reached:  # grows while it is walked
        reached += [s for s in successors(automaton.states[state]) if s not in reached]
    return reached


# ---------------------------------------------------------------------------- what must be kept


def variables_in(values: Iterable[Value]) -> set[Variable]:
    """The variables of a run that these conditions look at."""
    found: set[Variable] = set()
    for value in values:
        for part in value.walk():
            if isinstance(part, Seen):
                found.add(part.variable)
            elif isinstance(part, Tally):
                found.add(Variable(part.aggregate.step, "history"))
    return found


def tracked(automaton: Automaton) -> frozenset[Variable]:
    """Variables of which it is asked whether they are missing."""
    guards = [g for p in automaton.positions for g in p.guards]
    guards += [g for a in automaton.atoms for g in a.guards]
    return frozenset(
        part.operand.variable
        for guard in guards
        for part in guard.walk()
        if isinstance(part, IsMissing) and isinstance(part.operand, Seen)
    )


def edge_variables(automaton: Automaton, edge: Edge) -> set[Variable]:
    """The variables that taking this edge looks at."""
    position = automaton.positions[edge.target]
    found = variables_in(position.guards)
    if edge.bounds is not None and not edge.bounds.entering:
        found.add(Variable(edge.bounds.step, "before"))
    if position.group_start is not None and not position.group_first:
        found.add(Variable(str(position.group_start[0]), "began"))
    return found


def _uses(automaton: Automaton, state: State) -> set[Variable]:
    found = {v for edge in state.edges for v in edge_variables(automaton, edge)}
    found |= variables_in(_guards(automaton, state))
    if state.key.counted is not None:
        found.add(Variable(str(state.key.counted), "counter"))
    return found


def survives(variable: Variable, edge: Edge, position: Position, state: State) -> bool:
    """Whether the variable's value after taking `edge` to `position` depends on the one before, in
    `state`."""
    before = state.may_be_bound
    if variable.kind == "before":
        return not (variable.step == position.step and edge.bounds and edge.bounds.entering)
    if variable.kind == "began":
        group = position.group_start
        return not (group is not None and str(group[0]) == variable.step and position.group_first)
    if variable.kind == "counter":
        return variable.step == str(position.index) and state.key.counted == position.index
    if variable.kind == "history" or variable.step != position.step:
        return variable.step in before
    return variable.kind != "last" and variable.step in before


def _find_variables(automaton: Automaton) -> None:
    live: dict[int, set[Variable]] = {}
    for state in automaton.states:
        live[state.index] = {v for v in _uses(automaton, state) if _known(v, state)}
    changed = True
    while changed:
        changed = False
        for state in reversed(automaton.states):
            wanted = set(live[state.index])
            for edge in state.edges:
                position = automaton.positions[edge.target]
                target = automaton.entered[edge.target]
                after = live[target] if target is not None else set()
                wanted |= {v for v in after if survives(v, edge, position, state)}
            for target in successors(state):
                wanted |= live[target]
            wanted = {v for v in wanted if _known(v, state)}
            if wanted != live[state.index]:
                live[state.index] = wanted
                changed = True
    for state in automaton.states:
        state.variables = tuple(sorted(live[state.index], key=repr))


def _known(variable: Variable, state: State) -> bool:
    return variable.kind in STRUCTURAL or variable.step in state.may_be_bound


# ---------------------------------------------------------------------------- how runs are kept


def _find_single(automaton: Automaton) -> None:
    """Strict places with one way in: whoever was there has gone on or died when the next comes."""
    ways: dict[int, list[State | None]] = {state.index: [] for state in automaton.states}
    for edge in automaton.openings:
        _note_way(automaton, ways, None, edge)
    for state in automaton.states:
        for edge in state.edges:
            _note_way(automaton, ways, state, edge)
        for target in successors(state):
            ways[target] += [state, state]  # by other than taking an event: any number may come
    for state in sorted(automaton.states, key=lambda state: state.rank):
        came = ways[state.index]
        one_way_in = len(came) == 1 and (came[0] is None or came[0].form == "single")
        if one_way_in and state.is_strict and state.after_pass is None:
            state.form, state.hash_variable = "single", None


def _note_way(
    automaton: Automaton, ways: dict[int, list[State | None]], source: State | None, edge: Edge
) -> None:
    target = automaton.entered[edge.target]
    if target is not None:
        ways[target] += [source] if edge.mode != "any" else [source, source]


def find_paths(automaton: Automaton) -> None:
    """Fills in `State.path` where the pattern is a row of places, each entered in one way, or one
    event after which something does not come."""
    if _waits_alone(automaton):
        automaton.states[0].path = (automaton.openings[0].target,)
        return
    path = _row(automaton)
    if path is None or not _takes_in_order(automaton):
        return
    for length, position in enumerate(path[:-1], start=1):
        index = automaton.entered[position]
        assert index is not None
        automaton.states[index].path = path[:length]


def _has_plain_clauses(automaton: Automaton) -> bool:
    """Whether no clause of the rule needs more of a run than its events."""
    rule = automaton.rule
    if rule.skip not in ("nothing", "past_last") or rule.start != "each":
        return False
    if rule.timeout_alert is not None or rule.timeout_emit or rule.having is not None:
        return False
    return rule.limit is None and rule.keys_from is None


def _waits_alone(automaton: Automaton) -> bool:
    """Whether the pattern is one event and an absence, of which nothing is seen later: `p: payment
    no shipment within 2h`. Runs are complete in the order in which they began, and a match is in
    the way of none."""
    if not _has_plain_clauses(automaton) or len(automaton.states) != 1:
        return False
    if automaton.keep is not None or automaton.quiet or len(automaton.openings) != 1:
        return False
    if any(atom.kind not in ("step", "no") or atom.guards for atom in automaton.atoms):
        return False
    (state,) = automaton.states
    deadline, place = state.key.deadline, automaton.positions[automaton.openings[0].target]
    if deadline is None or deadline.after is None or deadline.since_first is not None:
        return False
    plain = not (place.guards or place.counted or place.group_start or place.accepts)
    timed = any(absence.within != deadline.after for absence in deadline.absences)
    ends = all(target is None for target in state.after_absence.values())
    return plain and ends and not (timed or state.edges or state.variables or state.key.close)


def _row(automaton: Automaton) -> tuple[int, ...] | None:
    """The positions, first to last, of a pattern in which one follows the other and nothing else
    is to be kept of a run."""
    places = automaton.positions
    if not _has_plain_clauses(automaton) or automaton.keep is None:
        return None
    if any(atom.kind != "step" for atom in automaton.atoms) or len(automaton.openings) != 1:
        return None
    path = [automaton.openings[0].target]
    while not places[path[-1]].accepts:
        edges = places[path[-1]].edges
        if len(edges) != 1 or not _is_plain_edge(edges[0]) or edges[0].target in path:
            return None
        path.append(edges[0].target)
    plain = all(_is_plain_place(places[index]) for index in path) and not places[path[0]].guards
    return tuple(path) if plain and len(path) > 1 else None


def _is_plain_edge(edge: Edge) -> bool:
    counts = edge.at_least is not None or edge.below is not None
    return not (
        edge.mode == "any" or edge.absences or edge.until is not None or edge.bounds or counts
    )


def _is_plain_place(place: Position) -> bool:
    waits = place.deadline is not None or place.close is not None
    return not (waits or (place.edges and place.accepts) or place.counted or place.group_start)


def _takes_in_order(automaton: Automaton) -> bool:
    """Whether runs are always complete in the order in which they began: at every place but the
    last all that wait there go on together, or there is only one. And whether all that is seen of
    them are fields of their events."""
    seen = tracked(automaton)
    for state in automaton.states:
        (edge,) = state.edges
        alone, last = state.form == "single", automaton.entered[edge.target] is None
        if state.form not in ("list", "single"):
            return False
        if automaton.positions[edge.target].guards and not (alone or last):
            return False
        if state.after_pass not in (None, state.index):
            return False
        for variable in state.variables:
            is_field = isinstance(variable.argument, Field)
            if variable.kind not in ("first", "last") or not is_field or variable in seen:
                return False
    return True


def place_of(variable: Variable, state: State, automaton: Automaton) -> int | None:
    """Which event of a bare run in `state` a variable is a field of; None: none of them yet."""
    steps = [automaton.positions[index].step for index in state.path]
    places = [place for place, step in enumerate(steps) if step == variable.step]
    if not places:
        return None
    return places[0] if variable.kind == "first" else places[-1]


def _form(automaton: Automaton, state: State) -> tuple[str, Variable | None]:
    one_by_one = (
        any(edge.bounds is not None for edge in state.edges)
        or bool(group_bounds(automaton, state))
        or bool(_timed_absences(state))
    )
    if one_by_one:
        return "list", None
    if not state.variables:
        return "one", None
    if len(state.variables) == 1:
        (variable,) = state.variables
        if variable.kind in ("last", "first") and any(
            equality(guard, variable) is not None
            for edge in state.edges
            for guard in automaton.positions[edge.target].guards
        ):
            return "hash", variable
        if _becomes_alike(automaton, state, variable):
            return "hash", variable
    return "list", None


def _becomes_alike(automaton: Automaton, state: State, variable: Variable) -> bool:
    """Whether runs of a repetition that take the same event look alike from then on: all that is
    seen of them is the last event's value. It must be one that is only put in order: to that all
    values are alike that have no order with numbers or texts."""
    if variable.kind != "last" or variable in tracked(automaton):
        return False
    again = [e for e in state.edges if automaton.entered[e.target] == state.index]
    if not any(automaton.positions[edge.target].step == variable.step for edge in again):
        return False
    return all(
        isinstance(guard, Comparison) and guard.op in _ORDERS
        for guard in _guards(automaton, state)
        if variable in variables_in((guard,))
    )


_ORDERS = ("<", "<=", ">", ">=")


def _guards(automaton: Automaton, state: State) -> list[Value]:
    """All that is asked of the runs of a state."""
    guards = [guard for e in state.edges for guard in automaton.positions[e.target].guards]
    atoms = [absence.atom for absence in state.after_absence] + list(state.after_until)
    atoms += [atom.index for atom in automaton.atoms if atom.kind == "unless"]
    return guards + [guard for index in atoms for guard in automaton.atoms[index].guards]


def _each_start_ends_alone(automaton: Automaton, state: State) -> bool:
    """Whether something is due at times that differ for the first events of one group; then no
    runs of the rule are grouped."""
    rule, deadline, close = automaton.rule, state.key.deadline, state.key.close
    return (
        rule.limit is not None
        or rule.keep is not None
        or rule.timeout_alert is not None
        or bool(rule.timeout_emit)
        # A run that is kept by itself would be complete when its newest first event is over.
        or (close is not None and close.on_end and state.form == "list")
        or (
            deadline is not None
            and (
                deadline.since_first is not None
                # The sequence's time ends when the wait begins: of a group that begins to wait,
                # some first events would be too old.
                or (automaton.within is not None and (bool(state.edges) or state.rank > 1))
            )
        )
    )


def _timed_absences(state: State) -> list[Absence]:
    """Absences that forbid for a part of the gap only; a trailing one ends with its deadline."""
    deadline = state.key.deadline
    timed = [a for edge in state.edges for a in edge.absences if a.within is not None]
    if deadline is not None:
        timed += [a for a in deadline.absences if a.within != deadline.after]
    return timed


def equality(guard: Value, variable: Variable) -> Value | None:
    """The event's side of `expression == variable`, when the guard is just that."""
    if not isinstance(guard, Comparison) or guard.op != "==":
        return None
    for own, other in ((guard.left, guard.right), (guard.right, guard.left)):
        if isinstance(other, Seen) and other.variable == variable and not looks_back(own):
            return own
    return None


def reach_of(state: State) -> tuple[tuple[int | None, int], ...]:
    """When a run in `state` can take nothing any more, where its steps bound that: for each edge
    (place of the variable with the time it counts from, None for that of the last event; length).
    Empty when an edge has no bound of its own."""
    if state.key.deadline is not None or not state.edges:
        return ()
    bounds: list[tuple[int | None, int]] = []
    for edge in state.edges:
        if edge.bounds is None or edge.bounds.within is None:
            return ()
        before = Variable(edge.bounds.step, "before")
        place = None if edge.bounds.entering else state.variables.index(before)
        bounds.append((place, edge.bounds.within))
    return tuple(bounds)


def group_bounds(automaton: Automaton, state: State) -> tuple[tuple[int, int], ...]:
    """Where all edges of a state stay inside an `all of … within`: (place of the variable with the
    group's first time, length) of each; else empty."""
    bounds: list[tuple[int, int]] = []
    for edge in state.edges:
        position = automaton.positions[edge.target]
        if position.group_start is None or position.group_first:
            return ()
        group, within = position.group_start
        bounds.append((state.variables.index(Variable(str(group), "began")), within))
    return tuple(bounds)


def closes_late(automaton: Automaton) -> bool:
    """Whether a group may come to a place where its runs are complete when their time is over, so
    that the oldest of it is due before what was known to be due next."""
    closing = any(s.key.close is not None and s.key.close.on_end for s in automaton.states)
    grouped = any(state.form in ("one", "hash") for state in automaton.states)
    return closing and grouped and len(automaton.states) > 1


def in_order(automaton: Automaton, state: State) -> bool:
    """Whether the runs of a state are kept in the order in which they are over (or, where nothing
    but the sequence ends them, began): so that what is due is found without looking at all."""
    if state.form != "list" or state.path:
        return False
    rule = automaton.rule
    tells = rule.timeout_alert is not None or bool(rule.timeout_emit)
    return tells or any(_is_due(automaton, other) for other in automaton.states)


def _is_due(automaton: Automaton, state: State) -> bool:
    """Whether something is due for the runs of a state at a time of their own."""
    closes = state.key.close is not None and state.key.close.on_end
    bounded = bool(reach_of(state) or group_bounds(automaton, state))
    return closes or bounded or state.key.deadline is not None


def one_run_each(automaton: Automaton) -> bool:
    """Whether a first event never has more than one run."""
    ways = [automaton.openings, *(state.edges for state in automaton.states)]
    return all(len(edges) <= 1 and all(e.mode != "any" for e in edges) for edges in ways)


def most_runs(automaton: Automaton) -> int:
    """Most runs of a key that may wait at one place where each is tested."""
    return max(MOST_RUNS, automaton.rule.limit or 0)


def is_weighed(automaton: Automaton) -> bool:
    """Whether the nodes that the runs of a key hold are counted: where one event may make many, or
    runs that are kept one by one take event after event, so that they grow with the square."""
    if automaton.is_bare:
        return False
    again = any(
        automaton.entered[edge.target] == state.index
        for state in automaton.states
        if state.form in ("list", "hash")
        for edge in state.edges
    )
    edges = sum(len(state.edges) for state in automaton.states if state.form != "list")
    return again or len(automaton.openings) + edges > FEW


FEW = 12
"""An event that makes so many nodes is like any other."""
