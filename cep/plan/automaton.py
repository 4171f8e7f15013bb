"""The automaton of a rule: what an event can do to a run, written down as data.

A pattern becomes *positions* (a step, or one of its repetitions) and *edges* between them: the
automaton of Glushkov, in which every position is entered by taking an event. Around it:

* An **atom** is anything in a rule that looks at events: a step, a `no`, an `until`, an `unless`.
  It says which events it looks at (`filters`, conditions on the event alone) and by which key.
* A **position** adds the `guards`: conditions that look at earlier events of the run too.
* An **edge** leads from a position to the next one. It has a mode (relaxed, next, any), the
  absences of the gap that it crosses, and time bounds.
* A **state** is what a run is in after taking an event: the edges that are still open to it. A `no`
  closes edges, an event that is not taken closes the strict ones; so from a state others follow.
  When no edge is left the run is dead.
* A **variable** is what some later condition can still see of a run's events. Two runs in one state
  with equal live variables have the same future and may be kept as one group.

Words as in "SASE+" (Agrawal et al., SIGMOD 2008) and Flink's NFA: take, ignore (a run stays),
proceed (an optional step is left out) — here proceeding is already part of the edges.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from dsl import checked
from dsl.checked import Value

Path = tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Origin:
    """A way to belong to a stream: to come from `source` (None: the input), with `filters` true."""

    source: str | None
    filters: tuple[Value, ...]


@dataclass(frozen=True, slots=True)
class Atom:
    """Something that looks at events. `kind`: step, no, until, unless, quiet (a leading `no`) or
    window (the events of an aggregate).

    `origins` are the ways in which an event gets here; `key` is an index into `Automaton.keys`.
    `stream_filters` of an origin tell which of its filters are the stream's own (strictness counts
    every event of the streams, taken or not).
    """

    index: int
    kind: str
    stream: str
    origins: tuple[Origin, ...]
    membership: tuple[Origin, ...]
    key: int
    guards: tuple[Value, ...] = ()
    step: str | None = None


@dataclass(frozen=True, slots=True)
class Variable:
    """What later conditions see of the events of `step`.

    `kind`: last, first, count, sum, total (a sum that is 0 of nothing), avg, min, max; before (time
    of the event bound before the step); began (time of the first event of group `step`); counter
    (how many events the counted position `step` has taken); history (all of its events, read from
    the run's own record). `argument` is an
    expression over one event of the step.
    """

    step: str
    kind: str
    argument: Value | None = None

    def __hash__(self) -> int:
        """Without the argument, which may be large: a rule has few variables."""
        return hash((self.step, self.kind))


@dataclass(frozen=True, slots=True)
class Absence:
    """A `no` in a gap: its atom, and how long after the last event before it it forbids."""

    atom: int
    within: int | None


@dataclass(frozen=True, slots=True)
class Bounds:
    """The taken event must lie in `[p + after, p + within]`.

    p is the time of the last event bound before the step: the run's last event when the step is
    entered, and kept as a `before` variable while it repeats.
    """

    after: int | None
    within: int | None
    step: str
    entering: bool


@dataclass(frozen=True, slots=True)
class Edge:
    """Taking an event at position `target`.

    `until`: the atom whose event closes this repetition. `at_least`, `below`: bounds on how many
    events the counted position that it leaves has taken.
    """

    target: int
    mode: str
    absences: frozenset[Absence] = frozenset()
    until: int | None = None
    bounds: Bounds | None = None
    at_least: int | None = None
    below: int | None = None


@dataclass(frozen=True, slots=True)
class Deadline:
    """A trailing absence: the run is complete when its time is over.

    That is `after` microseconds after the last bound event, and `since_first` after the first one;
    where both are given (some absences have a time of their own, others last as long as the
    sequence), when both are over.
    """

    absences: frozenset[Absence]
    after: int | None
    since_first: int | None


@dataclass(frozen=True, slots=True)
class Close:
    """A repetition at the end that is complete already and may go on.

    It is reported when an `until` or a `no` closes the last way on, and if `on_end` (`report on
    close`) also when a strict repetition breaks and when the time is over in which it may go on.
    """

    on_end: bool


@dataclass(slots=True)
class Position:
    """A step, or one repetition of it, as a place in the pattern.

    `guards` are the conditions that look at earlier events. `branches`: which branch of which
    `one of` this stands in. `counted`: how many repetitions at most this position stands for, where
    it is more than one and not any number.
    """

    index: int
    atom: int
    step: str
    guards: tuple[Value, ...]
    copy: int
    edges: list[Edge] = field(default_factory=list)
    branches: tuple[tuple[int, int], ...] = ()
    counted: int | None = None
    deadline: Deadline | None = None
    close: Close | None = None
    accepts: bool = False
    group_start: tuple[int, int] | None = None
    """(group, within) of the `all of … within` that this position stands in."""
    group_first: bool = False
    """Whether the event taken here is the first one of that group."""


LONGEST_ROW = 30
"""The runs of a longer strict row do not share their events: most of the members of a state would
be empty for most keys."""


@dataclass(frozen=True, slots=True)
class StateKey:
    """What makes two states the same: what is open from here."""

    edges: tuple[Edge, ...]
    deadline: Deadline | None
    close: Close | None
    counted: int | None
    """The position whose repetitions are being counted."""
    first: bool = False
    """Whether only the step of the first event has taken any; told apart for `start latest`."""


@dataclass(slots=True)
class State:
    """A waiting place of runs.

    `after_absence[a]`: the state of a run after an event of absence a (None: there is no way on, so
    that it closes or is dead). `after_until[u]`: after an event that ends the repetition.
    `after_pass`: after an event that was not taken. `variables`: what must be kept of a run here.
    `form`: one, hash, single or list, with `hash_variable` for hash. `path`: the positions whose
    events a run here has taken, where it is kept as nothing but these events; () elsewhere.
    """

    index: int
    key: StateKey
    may_be_bound: frozenset[str] = frozenset()
    after_absence: dict[Absence, int | None] = field(default_factory=dict)
    after_until: dict[int, int | None] = field(default_factory=dict)
    after_pass: int | None = None
    variables: tuple[Variable, ...] = ()
    form: str = "list"
    hash_variable: Variable | None = None
    path: tuple[int, ...] = ()
    rank: int = 0

    @property
    def at_first_step(self) -> bool:
        return self.key.first

    @property
    def edges(self) -> tuple[Edge, ...]:
        return self.key.edges

    @property
    def is_strict(self) -> bool:
        return any(edge.mode == "next" for edge in self.key.edges)


@dataclass(slots=True)
class Automaton:
    """A rule's pattern, ready to be compiled.

    `openings` are the edges from nothing to the first events. `entered[p]` is the state of a run
    that has just taken an event at position p (None: it is complete there).
    `keys`: the distinct tuples of key expressions; `atoms[i].key` chooses one.
    """

    rule: checked.Rule
    atoms: list[Atom]
    positions: list[Position]
    openings: list[Edge]
    states: list[State]
    entered: dict[int, int | None]
    keys: list[tuple[Value, ...]]
    within: int | None
    steps: list[str]
    """Names of the steps in the order in which they are written."""
    greed: dict[str, int]
    """+1 where more events of the step are preferred, −1 where fewer are."""
    quiet: list[Absence]
    """Leading absences: none of these events may have come in the time before a first event."""
    loops: frozenset[str]
    """Steps that may take more than one event: their events are shown as an array."""

    @property
    def path(self) -> tuple[int, ...]:
        """The positions of a complete run, where all of these take the same steps; else ()."""
        if self.is_bare:
            longest = max(self.states, key=lambda state: len(state.path))
            return (*longest.path, *(edge.target for edge in longest.edges))
        if not self.is_row:
            return ()
        step_of = [position.step for position in self.positions]
        return tuple(step_of.index(step) for step in self.steps)

    @property
    def is_row(self) -> bool:
        """Whether the pattern is a row of steps that take one event each."""
        pattern = self.rule.pattern
        if not isinstance(pattern, checked.SequencePattern):
            return False
        steps = [node for node in pattern.nodes if not isinstance(node, checked.Guard)]
        return all(
            isinstance(step, checked.Step) and step.quantifier == checked.Quantifier()
            for step in steps
        )

    @property
    def is_bare(self) -> bool:
        """Whether the runs of all states are kept as nothing but their events."""
        return bool(self.states) and all(state.path for state in self.states)

    @property
    def is_strict_row(self) -> bool:
        """Whether bare runs are the last events of their key, since each event is taken or ends
        them, so that the runs of all states can share these."""
        alone = all(state.form == "single" for state in self.states)
        return self.is_bare and alone and len(self.states) <= LONGEST_ROW

    @property
    def keep(self) -> int | None:
        """How long a run may live after its first event: `within`, or `keep`, the shorter one."""
        bounds = [d for d in (self.within, self.rule.keep) if d is not None]
        return min(bounds) if bounds else None
