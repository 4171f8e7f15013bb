"""The automaton of a rule as text: what it looks at, where its runs wait, and how they are kept."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from cep.compile.rules import CompiledRule, CompiledRules
from cep.explain.duration import duration
from cep.explain.expression import shown
from cep.plan.automaton import Absence, Atom, Automaton, Edge, State, Variable

FORMS = {
    "one": "runs in one group",
    "hash": "runs in groups, found by {by}",
    "list": "runs in a list, each one tested",
    "single": "one run at most",
}
"""How the runs of a state are kept, and what an event costs there."""


def print_plan(compiled: CompiledRules) -> str:
    """The plans of all rules."""
    return "\n\n".join("\n".join(_plan(rule)) for rule in compiled.rules)


def _plan(compiled: CompiledRule) -> Iterator[str]:
    automaton = compiled.automaton
    yield f"plan of {compiled.rule.name}, version {compiled.version}"
    for key in automaton.keys:
        yield f"  key: {', '.join(map(shown, key)) or 'none'}"
    if automaton.keep is not None:
        yield f"  a run lives at most {duration(automaton.keep)}"
    yield from _dispatch(compiled)
    yield "  looks at"
    yield from (f"    {_atom(atom)}" for atom in automaton.atoms)
    yield "  opens"
    yield from (f"    {_edge(edge, automaton)}" for edge in automaton.openings)
    yield from (line for state in automaton.states for line in _state(state, automaton))


def _dispatch(compiled: CompiledRule) -> Iterator[str]:
    """Which events get as far as this rule."""
    dispatch = compiled.dispatch
    values = [repr(entry.value) for entry in dispatch.entries if entry.source is None]
    if dispatch.path is not None:
        yield f"  dispatch: events whose {'.'.join(dispatch.path)} is {' or '.join(values)}"
    elif values:
        yield "  dispatch: every event"
    derived = sorted({entry.source for entry in dispatch.entries if entry.source is not None})
    if derived:
        yield f"  dispatch: derived events of {', '.join(derived)}"


def _atom(atom: Atom) -> str:
    name = f" {atom.step}" if atom.step is not None else ""
    filters = [shown(value) for origin in atom.origins[:1] for value in origin.filters]
    condition = f" where {' and '.join(filters)}" if filters else ""
    guards = "".join(f", guard {shown(guard)}" for guard in atom.guards)
    return f"{atom.index} {atom.kind}{name}: {atom.stream}{condition}{guards}"


def _state(state: State, automaton: Automaton) -> Iterator[str]:
    by = _variable(state.hash_variable) if state.hash_variable is not None else ""
    yield f"  s{state.index}: {FORMS[state.form].format(by=by)}"
    if state.variables:
        yield f"    holds {', '.join(map(_variable, state.variables))}"
    if automaton.is_strict_row:
        yield "    a run is the last events of its key, which all runs of the key share"
    elif state.path:
        yield "    a run is kept as its events alone"
    for edge in state.edges:
        yield f"    {_edge(edge, automaton)}"
    deadline, close = state.key.deadline, state.key.close
    if deadline is not None:
        ends = [(deadline.after, "last"), (deadline.since_first, "first")]
        when = " and ".join(f"{duration(d)} after the {which} event" for d, which in ends if d)
        yield f"    match {when}, if it stays quiet"
    if close is not None:
        yield "    match when the repetition closes"
    yield from (f"    {line}" for line in _other_ways(state, automaton))


def _other_ways(state: State, automaton: Automaton) -> Iterator[str]:
    """What becomes of a run by events that it does not take."""
    for absence, after in state.after_absence.items():
        yield f"after {_absence(absence, automaton)}: {_place(after)}"
    for until, after in state.after_until.items():
        yield f"until {automaton.atoms[until].stream}: {_place(after)}"
    if state.after_pass != state.index:
        yield f"after any other event: {_place(state.after_pass)}"


def _edge(edge: Edge, automaton: Automaton) -> str:
    """`take ok (next) unless x came, guard …: s2`"""
    position = automaton.positions[edge.target]
    mode = f" ({edge.mode})" if edge.mode != "relaxed" else ""
    absences = "".join(f", no {_absence(each, automaton)}" for each in _sorted(edge.absences))
    guards = "".join(f", guard {shown(guard)}" for guard in position.guards)
    after = automaton.entered[edge.target]
    goes = "match" if after is None else f"s{after}"
    return f"take {position.step}{mode}{_bounds(edge)}{absences}{guards}: {goes}"


def _bounds(edge: Edge) -> str:
    text = ""
    if edge.bounds is not None and edge.bounds.after is not None:
        text += f", at least {duration(edge.bounds.after)} later"
    if edge.bounds is not None and edge.bounds.within is not None:
        text += f", within {duration(edge.bounds.within)}"
    if edge.at_least is not None:
        text += f", after {edge.at_least} or more"
    if edge.below is not None:
        text += f", before {edge.below}"
    return text


def _sorted(absences: Iterable[Absence]) -> list[Absence]:
    return sorted(absences, key=lambda absence: (absence.atom, absence.within or 0))


def _absence(absence: Absence, automaton: Automaton) -> str:
    within = f" within {duration(absence.within)}" if absence.within is not None else ""
    return automaton.atoms[absence.atom].stream + within


def _place(state: int | None) -> str:
    return "the run ends" if state is None else f"s{state}"


def _variable(variable: Variable) -> str:
    argument = f".{shown(variable.argument)}" if variable.argument is not None else ""
    return f"{variable.kind}({variable.step}{argument})"
