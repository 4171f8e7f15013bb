"""Which events a rule can care about, found out from the constants in its conditions.

In: an automaton. Out: its `Dispatch`: a field and, for each constant that the rule's conditions
compare it with, an `Entry`: the atoms that such an event may concern and what is still to be asked
of it. An event with another value in that field is nothing to the rule, and costs one look-up,
however many rules there are. A rule without such a field has one entry for all input events.
Derived events have entries of their own, by the name of their stream.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from cep.plan.automaton import Atom, Automaton, Origin
from cep.plan.settle import Deciding, Known, Path, gathered
from cep.plan.values import FALSE, TRUE
from dsl.checked import (
    Conjunction,
    Disjunction,
    Field,
    Value,
    conjuncts,
)
from dsl.types import Type

Gates = tuple[tuple[Path, tuple[object, ...]], ...]
"""Fields, each with constants."""

MOST = 2000
"""More constants than this in one rule are tested, not dispatched on."""


@dataclass(frozen=True, slots=True)
class Entry:
    """What a rule does with one kind of event.

    `source`: None for input events, else the derived stream. `value`: the constant in the dispatch
    field (None: any). `filters[a]`: what is left to be asked for atom a; `membership[a]`: what is
    left to be asked of its stream alone. `members`: atoms to whose streams the event may belong.
    `known`: what the constant settles in other values of the rule.
    """

    number: int
    source: str | None
    value: object
    filters: Mapping[int, tuple[Value, ...]]
    membership: Mapping[int, tuple[Value, ...]]
    known: Known | None = None

    @property
    def atoms(self) -> list[int]:
        return sorted(self.filters)

    @property
    def members(self) -> list[int]:
        return sorted(self.membership)


@dataclass(frozen=True, slots=True)
class Dispatch:
    """`path`: the field that decides (None: none does alone); the entries of a rule.

    `gates`, where no field decides alone: fields with constants, one of which every event has that
    the rule can use. They come of streams that are made of several others, each told by a field of
    its own. The one entry for input events is then only for events that a gate lets through.
    """

    path: Path | None
    entries: tuple[Entry, ...]
    gates: Gates = ()


def dispatch(
    automaton: Automaton,
    lists: Callable[[str], Sequence[object]],
    type_of: Callable[[Path], Type],
) -> Dispatch:
    """How events find their way to a rule.

    `lists` gives the items of a named list, `type_of` the type that a field is decoded as.
    """
    strict = any(state.is_strict for state in automaton.states)
    return dispatch_atoms(automaton.atoms, lists, type_of, strict=strict)


def dispatch_atoms(
    atoms: Sequence[Atom],
    lists: Callable[[str], Sequence[object]],
    type_of: Callable[[Path], Type],
    *,
    strict: bool = False,
) -> Dispatch:
    """How events find their way to these atoms; with `strict` all events of their streams do."""
    finder = _Finder(atoms, strict, lists, type_of)
    path = finder.best_path()
    gates = finder.gates() if path is None else ()
    entries: list[Entry] = []
    if path is None:
        _append(entries, finder, None, None, None)
    else:
        for value in finder.constants(path):
            _append(entries, finder, None, path, value)
    for source in finder.sources():
        _append(entries, finder, source, None, None)
    return Dispatch(path, tuple(entries), gates)


def _append(
    entries: list[Entry], finder: _Finder, source: str | None, path: Path | None, value: object
) -> None:
    known = None if path is None else Known(finder.deciding(path), value)
    filters, membership = finder.entry(source, known)
    if membership:
        entries.append(Entry(len(entries), source, value, filters, membership, known))


class _Finder:
    def __init__(
        self,
        atoms: Sequence[Atom],
        strict: bool,
        lists: Callable[[str], Sequence[object]],
        type_of: Callable[[Path], Type],
    ) -> None:
        self.atoms = atoms
        self.strict = strict
        self.lists = lists
        self.type_of = type_of
        self._deciding_by: dict[Path, Deciding] = {}

    def sources(self) -> list[str]:
        """Derived streams that concern the rule."""
        names = {o.source for atom in self.atoms for o in atom.origins if o.source is not None}
        return sorted(names)

    def _deciding(self) -> list[Origin]:
        """The conditions that every dispatch constant must come from: strict rules must see all
        events of their streams, also those that fit no step."""
        chosen = [atom.membership if self.strict else atom.origins for atom in self.atoms]
        return [o for origins in chosen for o in origins if o.source is None]

    def best_path(self) -> Path | None:
        """The field that all input events of the rule are compared on, with fewest constants."""
        origins = self._deciding()
        if not origins:
            return None
        common = set.intersection(*(self._paths(origin.filters) for origin in origins))
        sized = [(len(self.constants(path)), path) for path in common]
        fitting = sorted(
            (size, path) for size, path in sized if size <= MOST and self._hashes_well(path)
        )
        return fitting[0][1] if fitting else None

    def gates(self) -> Gates:
        """For each way to belong a field with constants, or several of which one has them; none
        where some way has none."""
        found: dict[Path, dict[object, None]] = {}
        for origin in self._deciding():
            gates = self._gates_of(origin.filters)
            if gates is None:
                return ()
            for path, values in gates:
                found.setdefault(path, {}).update(dict.fromkeys(values))
        return tuple((path, tuple(values)) for path, values in found.items())

    def _gates_of(self, conditions: Sequence[Value]) -> Gates | None:
        """The fewest constants that let through every event for which all conditions are true."""
        choices: list[Gates] = []
        for path in sorted(self._paths(conditions)):
            values = self._allowed_by(conditions, path) or []
            if len(values) <= MOST and self._lets_through(path, values):
                choices.append(((path, tuple(values)),))
        for condition in conditions:
            if isinstance(condition, Disjunction):
                ways = [self._gates_of(conjuncts(part)) for part in condition.parts]
                whole = [gate for way in ways if way is not None for gate in way]
                if None not in ways:
                    choices.append(tuple(whole))
        return min(choices, key=_cost, default=None)

    def _paths(self, conditions: Iterable[Value]) -> set[Path]:
        """The fields that these conditions compare with constants."""
        found: set[Path] = set()
        for condition in conditions:
            for part in condition.walk():
                if isinstance(part, Field) and self.allowed(condition, part.path) is not None:
                    found.add(part.path)
        return found

    def _lets_through(self, path: Path, values: Sequence[object]) -> bool:
        """A gate may let more through than needed, so numbers stand beside texts in it: they are
        told apart by the conditions that follow."""
        if self.type_of(path) is Type.ANY:
            return all(isinstance(value, str | int | float) for value in values)
        return self._hash_well(path, values)

    def _hashes_well(self, path: Path) -> bool:
        return self._hash_well(path, self.constants(path))

    def _hash_well(self, path: Path, values: Sequence[object]) -> bool:
        """Texts can be looked up where a text is not a value of an unexpected type; numbers only
        where no boolean can stand."""
        if all(isinstance(value, str) for value in values):
            return self.type_of(path) in (Type.STRING, Type.ANY)
        numbers = all(isinstance(v, int | float) and not isinstance(v, bool) for v in values)
        return numbers and self.type_of(path) in (Type.NUMBER, Type.INT)

    def constants(self, path: Path) -> list[object]:
        """All constants that the deciding conditions compare the field with, in a fixed order."""
        values: dict[object, None] = {}
        for origin in self._deciding():
            allowed = self._allowed_by(origin.filters, path)
            for value in allowed or ():
                values.setdefault(value)
        return list(values)

    def _allowed_by(self, conditions: Iterable[Value], path: Path) -> list[object] | None:
        for condition in conditions:
            values = self.allowed(condition, path)
            if values is not None:
                return values
        return None

    def deciding(self, path: Path) -> Deciding:
        """What conditions ask of this field."""
        if path not in self._deciding_by:
            self._deciding_by[path] = Deciding(path, self.lists)
        return self._deciding_by[path]

    def allowed(self, condition: Value, path: Path) -> list[object] | None:
        """The only values of the field with which the condition can be true; None: no such list."""
        return self.deciding(path).allowed(condition)

    def entry(
        self, source: str | None, known: Known | None
    ) -> tuple[dict[int, tuple[Value, ...]], dict[int, tuple[Value, ...]]]:
        """What is left of the atoms' conditions for events of this source with this constant."""
        filters: dict[int, tuple[Value, ...]] = {}
        membership: dict[int, tuple[Value, ...]] = {}
        for atom in self.atoms:
            left = self._left(atom.origins, source, known)
            if left is not None:
                filters[atom.index] = left
            inside = self._left(atom.membership, source, known)
            if inside is not None:
                membership[atom.index] = inside
        return filters, membership

    def _left(
        self, origins: Iterable[Origin], source: str | None, known: Known | None
    ) -> tuple[Value, ...] | None:
        ways = []
        for origin in origins:
            if origin.source != source:
                continue
            left = self._residue(origin.filters, known)
            if left is not None:
                ways.append(left)
        if not ways:
            return None
        if () in ways:
            return ()
        if len(ways) == 1:
            return ways[0]
        parts = tuple(w[0] if len(w) == 1 else Conjunction(w, type=Type.BOOL) for w in ways)
        return (Disjunction(parts, type=Type.BOOL),)

    def _residue(
        self, conditions: Iterable[Value], known: Known | None
    ) -> tuple[Value, ...] | None:
        """The conditions that the constant does not settle; None when it makes one false."""
        if known is None:
            return tuple(map(gathered, conditions))
        left: list[Value] = []
        for condition in conditions:
            if known.rules_out(condition):
                return None
            settled = known.settled(condition)
            if settled == FALSE:
                return None
            if settled != TRUE:
                left.append(settled)
        return tuple(map(gathered, left))


def _cost(gates: Gates) -> tuple[int, Gates]:
    """Of gates that let the same through the ones with the fewest constants are the best."""
    return sum(len(values) for _, values in gates), tuple((path, ()) for path, _ in gates)


def mentioned(conditions: Iterable[Value]) -> Iterable[tuple[Path, Type, bool]]:
    """The fields in these values: path, type by use, whether it is asked if they are missing."""
    from dsl.checked import IsMissing

    for condition in conditions:
        asked = {
            part.operand.path
            for part in condition.walk()
            if isinstance(part, IsMissing) and isinstance(part.operand, Field)
        }
        for part in condition.walk():
            if isinstance(part, Field):
                yield part.path, part.type, part.path in asked
