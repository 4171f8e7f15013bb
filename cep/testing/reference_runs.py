"""What a run may do next, read from section 4 of the language by unfolding the pattern.

A run has taken some events; of the pattern there is a rest, written as a list of `Item`s: nodes
not yet begun, and nodes in the middle of which it stands. `unfold` goes through that rest along
every way that leaves out what may be left out, and gives what can come next: an `Option` for each
step that might take the next event, an `End` for each way that reaches the end of the pattern.

Nothing is shared and nothing is merged: every run is a value of its own.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace

from cep.testing.reference_values import Taken
from dsl import checked
from dsl.checked import AllOf, Guard, OneOf, Repeat, Step


@dataclass(frozen=True, slots=True, eq=False)
class InStep:
    """In a step that has taken `taken` events; `before`: the last event bound before it."""

    step: Step
    taken: int
    before: Taken | None


@dataclass(frozen=True, slots=True, eq=False)
class InAll:
    """In a group of any order that has these parts; `begin`: its first event."""

    node: AllOf
    parts: frozenset[int]
    begin: Taken | None = None


@dataclass(frozen=True, slots=True, eq=False)
class InRepeat:
    """Before round `rounds` (from 0) of a `repeat`; the last one began after `events` events."""

    node: Repeat
    rounds: int
    events: int = -1


@dataclass(frozen=True, slots=True, eq=False)
class GroupEnd:
    """The end of a group that was entered in `mode` when the run had `events` events."""

    mode: str
    events: int


Item = checked.Node | InStep | InAll | InRepeat | GroupEnd


@dataclass(frozen=True, slots=True, eq=False)
class Option:
    """A step that might take the next event.

    `guards`: the `no`s of the gap. `until`: what ends the loop. `rest`: what is left afterwards.
    `group`: the group of any order that this is a part of, with the parts it has. `deadline`: after
    it the step takes nothing any more (None: never ends). `repeats`: the step has taken events.
    """

    step: Step
    mode: str
    repeats: bool
    guards: tuple[Guard, ...]
    until: Guard | None
    before: Taken | None
    rest: tuple[Item, ...]
    choices: Choices
    group: InAll | None = None
    deadline: int | None = None


@dataclass(frozen=True, slots=True, eq=False)
class End:
    """A way to the end of the pattern. With `guards` it waits for `deadline`."""

    guards: tuple[Guard, ...]
    deadline: int | None


@dataclass(frozen=True, slots=True)
class Choices:
    """What was chosen on the way: branches in turn, and the rounds of each `repeat` (by id)."""

    branches: tuple[int, ...] = ()
    rounds: tuple[tuple[int, int], ...] = ()

    def branch(self, index: int) -> Choices:
        return replace(self, branches=(*self.branches, index))

    def round(self, node: Repeat) -> Choices:
        return replace(self, rounds=(*self.rounds, (id(node), 1)))


@dataclass(frozen=True, slots=True, eq=False)
class Run:
    """An assignment of events to steps, and what may follow.

    `closing` is true when the pattern is complete but a loop at its end may still go on.
    """

    bound: tuple[tuple[str, Taken], ...]
    options: tuple[Option, ...]
    waits: tuple[End, ...]
    closing: bool
    choices: Choices = field(default_factory=Choices)

    @property
    def first(self) -> Taken:
        return self.bound[0][1]

    @property
    def last(self) -> Taken:
        return self.bound[-1][1]

    @property
    def complete(self) -> bool:
        """Complete, and nothing can be added."""
        return self.closing and not self.options

    @property
    def at_first_step(self) -> bool:
        """Only the step that took the first event has taken any."""
        return all(name == self.bound[0][0] for name, _ in self.bound)

    def by_step(self) -> dict[str, list[Taken]]:
        """The events of each step, in order."""
        found: dict[str, list[Taken]] = {}
        for name, taken in self.bound:
            found.setdefault(name, []).append(taken)
        return found


# ---------------------------------------------------------------------------- unfolding


def openings(pattern: checked.SequencePattern) -> list[Option]:
    """The steps that may take the first event; the guards of each are the leading `no`s."""
    found = _Unfolding(pattern, ()).unfold(pattern.nodes, (), "relaxed", Choices())
    return [each for each in found if isinstance(each, Option)]


def take(pattern: checked.SequencePattern, run: Run | None, option: Option, taken: Taken) -> Run:
    """The run after `option` has taken an event."""
    bound = (*(run.bound if run else ()), (option.step.name, taken))
    found = list(_Unfolding(pattern, bound).unfold(option.rest, (), "relaxed", option.choices))
    ends = [each for each in found if isinstance(each, End)]
    return Run(
        bound=bound,
        options=tuple(each for each in found if isinstance(each, Option)),
        waits=tuple(end for end in ends if end.guards),
        closing=any(not end.guards for end in ends),
        choices=option.choices,
    )


@dataclass(frozen=True)
class _Unfolding:
    pattern: checked.SequencePattern
    bound: tuple[tuple[str, Taken], ...]

    @property
    def last(self) -> Taken | None:
        return self.bound[-1][1] if self.bound else None

    def unfold(
        self, rest: tuple[Item, ...], gap: tuple[Guard, ...], mode: str, choices: Choices
    ) -> Iterator[Option | End]:
        """`gap`: the absences passed so far; `mode`: how the group begins that is being entered."""
        if not rest:
            yield End(gap, self._end_deadline(gap))
            return
        head, tail = rest[0], rest[1:]
        if isinstance(head, GroupEnd):
            left_empty = head.events == len(self.bound)
            yield from self.unfold(tail, gap, head.mode if left_empty else "relaxed", choices)
        elif isinstance(head, Guard):
            yield from self.unfold(tail, (*gap, head), mode, choices)
        elif isinstance(head, Step):
            yield from self._step(InStep(head, 0, self.last), tail, gap, mode, choices)
        elif isinstance(head, InStep):
            yield from self._step(head, tail, gap, mode, choices)
        elif isinstance(head, OneOf):
            inner = _first_mode(head.mode, mode)
            for index, branch in enumerate(head.branches):
                inside = (*branch, GroupEnd(mode, len(self.bound)), *tail)
                yield from self.unfold(inside, gap, inner, choices.branch(index))
        elif isinstance(head, AllOf):
            yield from self._all(InAll(head, frozenset()), tail, gap, mode, choices)
        elif isinstance(head, InAll):
            yield from self._all(head, tail, gap, mode, choices)
        elif isinstance(head, Repeat):
            yield from self._repeat(InRepeat(head, 0), tail, gap, mode, choices)
        else:
            yield from self._repeat(head, tail, gap, mode, choices)

    def _step(
        self,
        at: InStep,
        tail: tuple[Item, ...],
        gap: tuple[Guard, ...],
        mode: str,
        choices: Choices,
    ) -> Iterator[Option | End]:
        step, quantifier = at.step, at.step.quantifier
        if quantifier.maximum is None or at.taken < quantifier.maximum:
            repeating = "next" if step.mode == "next" else "relaxed"
            yield Option(
                step=step,
                mode=repeating if at.taken else _first_mode(step.mode, mode),
                repeats=at.taken > 0,
                guards=gap,
                until=step.until,
                before=at.before,
                rest=(InStep(step, at.taken + 1, at.before), *tail),
                choices=choices,
                deadline=self._deadline(at.before, step.within),
            )
        if at.taken >= quantifier.minimum:
            yield from self.unfold(tail, gap, mode if at.taken == 0 else "relaxed", choices)

    def _all(
        self,
        at: InAll,
        tail: tuple[Item, ...],
        gap: tuple[Guard, ...],
        mode: str,
        choices: Choices,
    ) -> Iterator[Option | End]:
        node = at.node
        begin = at.begin or (self.last if at.parts else None)
        entering = _first_mode(node.mode, mode)
        for index, part in enumerate(node.parts):
            if index in at.parts:
                continue
            parts = at.parts | {index}
            done = len(parts) >= (node.count or len(node.parts))
            yield Option(
                step=part,
                mode=part.mode if at.parts else _first_mode(part.mode, entering),
                repeats=False,
                guards=node.absent if at.parts else gap,
                until=None,
                before=self.last,
                rest=tail if done else (InAll(node, parts, begin), *tail),
                choices=choices,
                group=at,
                deadline=_earlier(
                    self._deadline(self.last, part.within),
                    _plus(begin, node.within),
                ),
            )

    def _repeat(
        self,
        at: InRepeat,
        tail: tuple[Item, ...],
        gap: tuple[Guard, ...],
        mode: str,
        choices: Choices,
    ) -> Iterator[Option | End]:
        node, quantifier = at.node, at.node.quantifier
        empty_round = at.events == len(self.bound)
        if not empty_round and (quantifier.maximum is None or at.rounds < quantifier.maximum):
            again = "next" if node.mode == "next" else "relaxed"
            inner = again if at.rounds else _first_mode(node.mode, mode)
            following = InRepeat(node, at.rounds + 1, len(self.bound))
            inside = (*node.body, GroupEnd(mode, len(self.bound)), following, *tail)
            yield from self.unfold(inside, gap, inner, choices.round(node))
        if at.rounds >= quantifier.minimum or empty_round:
            yield from self.unfold(tail, gap, mode if at.rounds == 0 else "relaxed", choices)

    # ------------------------------------------------------------------------ deadlines

    def _deadline(self, before: Taken | None, within: int | None) -> int | None:
        first = self.bound[0][1] if self.bound else None
        return _earlier(_plus(first, self.pattern.within), _plus(before, within))

    def _end_deadline(self, gap: tuple[Guard, ...]) -> int | None:
        """When a trailing absence is over: all of them must be, also those of a gap that has merged
        with the end."""
        if not gap:
            return None
        times = [
            _plus(self.last, guard.within)
            if guard.within is not None
            else _plus(self.bound[0][1], self.pattern.within)
            for guard in gap
        ]
        known = [time for time in times if time is not None]
        return max(known) if len(known) == len(times) else None


def _first_mode(own: str, of_group: str) -> str:
    """How the first step of a group is entered: as the group says, else as it says itself."""
    return of_group if of_group != "relaxed" else own


def _plus(taken: Taken | None, duration: int | None) -> int | None:
    return None if taken is None or duration is None else taken.event.time + duration


def _earlier(left: int | None, right: int | None) -> int | None:
    known = [time for time in (left, right) if time is not None]
    return min(known) if known else None
