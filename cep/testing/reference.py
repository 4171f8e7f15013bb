"""The reference matcher: what the rules mean, by enumeration from the definitions. For tests only.

In: checked rules and events in order. Out: the matches, in order. Slow and obvious: every run that
the definitions allow is kept as a value of its own, nothing is shared, merged or looked up. The
engine must give the same; so nothing of its plans, compiled code or runtime is imported here.

The way of an event (section 2): due timers; then for each rule in the order of names and each key
in order: `unless`, `no` and `until`, steps of live runs, openings, selection; then tables; then the
derived events that it caused, each with all that it causes itself.

Decisions where the language leaves a choice:

* Of timers at one time those of a rule come before those of the rules that read what it emits:
  else an inclusive end at T would come before derived events of T, and names would decide.
* An event that fits both a `no` (or an `until`) and the step after it closes the gap first.
* `until` counts from when the loop can be entered: an event before the first of the loop's events
  closes the way into it.
* A `no … within D` in the middle forbids up to `p + D`, inclusive. Of several at the end all must
  be over.
* `start first` asks after the steps of live runs; a run that ended on this event without taking it
  is gone, a run that took it is not.
* A waiting end completes a run once; the loop before it does not go on after that.
* `on timeout` waits until the last run with the same first event is gone, and stays silent when a
  match with that first event has been reported. Furthest: the latest node of the pattern, then the
  most steps with events.
* Of an optional step left out at the end the gaps merge; all absences in it must be over.
* A group's word (`next`, `any`) says how it is entered, before the word of its first step; of
  groups that begin together the outermost one's does. `sequence strict|any` is the word of steps.
* A `repeat` whose steps may all be left out may have empty rounds; they end it.
* A step that has taken nothing is null in any condition, its counts and sums are 0.
* The end of the input is over with the moment at which the clock stands: inclusive ends too.
* A hidden match's `suppressed` is carried by a report in `[t + D, t + 2D)`.
* `limit` is applied when an event is finished.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from cep.testing.reference_functions import plain, text_of
from cep.testing.reference_sequences import SequenceMatcher
from cep.testing.reference_streams import Streams, Tables
from cep.testing.reference_values import (
    Event,
    Found,
    Key,
    Scope,
    Taken,
    World,
    key_of,
    value_of,
)
from cep.testing.reference_windows import WindowMatcher
from dsl import checked


@dataclass(frozen=True, slots=True)
class ReferenceMatch:
    """A match; `events` holds the records of each step, `orders` the numbers of its events."""

    rule: str
    kind: str
    time: int
    key: Mapping[str, object]
    events: Mapping[str, object]
    orders: Mapping[str, tuple[int, ...]]
    fields: Mapping[str, object]
    message: str
    suppressed: Mapping[str, object] | None
    first: int | None
    last: int | None


@dataclass(frozen=True, slots=True)
class ReferenceUndecided:
    """An absence that is still open."""

    rule: str
    key: Mapping[str, object]
    deadline_us: int | None
    first_us: int


@dataclass(frozen=True, slots=True)
class ReferenceEvent:
    """An input event: its time in microseconds and its record."""

    time_us: int
    record: Mapping[str, object]


def reference_matches(
    rules: checked.CheckedRules, events: Iterable[ReferenceEvent], until_us: int | None = None
) -> tuple[list[ReferenceMatch], list[ReferenceUndecided]]:
    """All matches of all rules over `events`, and the absences that are open at the end.

    The events are in order. `until_us` moves the clock on after the last of them.
    """
    engine = ReferenceEngine(rules)
    matches = [m for event in events for m in engine.process_at(event.record, event.time_us)]
    if until_us is not None:
        matches += engine.advance_to(until_us)
    matches += engine.close()
    return matches, engine.undecided


class ReferenceEngine:
    """The same by and by. `tables` and `lists` hold the contents of those that come from files."""

    def __init__(
        self,
        rules: checked.CheckedRules,
        *,
        names: Sequence[str] | None = None,
        lists: Mapping[str, Sequence[object]] | None = None,
        tables: Mapping[str, Sequence[Mapping[str, object]]] | None = None,
    ) -> None:
        contents = {name: given.items for name, given in rules.lists.items()}
        self.world = World(rules, {**contents, **(lists or {})}, self._row)
        self._tables = Tables(rules, tables or {})
        self._streams = Streams(self.world)
        chosen = sorted(rules.rules if names is None else names)
        self._depths = rules.depths()
        self._rules = [_RuleState(rules.rules[name], self.world, self._expected) for name in chosen]
        self._clock: int | None = None
        self._count = 0

    def process_at(self, record: Mapping[str, object], time_us: int) -> list[ReferenceMatch]:
        """Give it an event; it returns what the event and the timers before it complete.

        An event older than the clock is late and never enters a match.
        """
        if self._clock is not None and time_us < self._clock:
            return []
        matches = self.advance_to(time_us)
        return matches + self._handle(self._new_event(time_us, record))

    def advance_to(self, time_us: int) -> list[ReferenceMatch]:
        """Let the clock reach `time_us`: what is due before it, and exclusive ends at it."""
        self._tick(time_us)
        return self._fire((time_us, 0))

    def close(self, at_end: str = "undecided") -> list[ReferenceMatch]:
        """The input is over: what is due by the time of the clock fires now, its end included.

        `at_end` "assume-quiet" runs the clock to the end of time.
        """
        if at_end == "assume-quiet":
            return self._fire(None)
        return [] if self._clock is None else self._fire((self._clock, 1))

    @property
    def undecided(self) -> list[ReferenceUndecided]:
        """The absences that wait for their deadline, one for each rule, key and first event."""
        found = [
            ReferenceUndecided(state.rule.name, state.key_names(key), deadline, first)
            for state in self._rules
            for key, deadline, first in state.matcher.waiting()
        ]
        return list({(u.rule, str(u.key), u.deadline_us, u.first_us): u for u in found}.values())

    # ------------------------------------------------------------------------ the way of an event

    def _tick(self, time: int) -> None:
        if self._clock is None:
            for state in self._rules:
                state.matcher.begin(time)
        self._clock = time if self._clock is None else max(self._clock, time)

    def _fire(self, limit: tuple[int, int] | None) -> list[ReferenceMatch]:
        """Run the timers that are due by `limit`: (time, 0) when it is reached, 1 when passed."""
        matches: list[ReferenceMatch] = []
        while True:
            timers = [
                (timer.time, timer.phase, self._depths[state.rule.name], index, timer.key)
                for index, state in enumerate(self._rules)
                for timer in state.matcher.timers()
            ]
            if not timers or (limit is not None and min(timers)[:2] > limit):
                return matches
            time, *_, index, key = min(timers)
            self._clock = time if self._clock is None else max(self._clock, time)
            state = self._rules[index]
            reports = [state.report(found, time) for found in state.matcher.fire(time, key)]
            matches += self._deliver(reports)

    def _handle(self, event: Event) -> list[ReferenceMatch]:
        views = self._streams.views(event)
        reports = [
            state.report(found, event.time)
            for state in self._rules
            for found in state.matcher.event(event, views)
        ]
        self._tables.update(event, views)
        return self._deliver(reports)

    def _deliver(self, reports: Iterable[_Report]) -> list[ReferenceMatch]:
        """The matches of one cause, then everything that its derived events cause, in turn."""
        shown = [report for report in reports if not report.hidden]
        matches = [report.match for report in shown if report.match is not None]
        for report in shown:
            for stream, record in report.emitted:
                matches += self._handle(self._new_event(report.time, record, stream))
        return matches

    def _new_event(
        self, time: int, record: Mapping[str, object], stream: str | None = None
    ) -> Event:
        self._count += 1
        return Event(self._count - 1, time, record, stream)

    def _row(self, table: str, key: object, now: int) -> Mapping[str, object] | None:
        return self._tables.row(table, key, now)

    def _expected(self, name: str) -> list[object]:
        """The keys that a LIST or TABLE names."""
        if name in self.world.lists:
            return list(self.world.lists[name])
        return self._tables.keys(name)


# ---------------------------------------------------------------------------- reports


@dataclass(frozen=True, slots=True)
class _Report:
    """What becomes of a completed pattern."""

    time: int
    hidden: bool
    match: ReferenceMatch | None
    emitted: tuple[tuple[str, Mapping[str, object]], ...]


@dataclass(slots=True)
class _Window:
    """A dedup window: when it opened, and the times of what it has hidden."""

    opened: int
    hidden: list[int] = field(default_factory=list)


class _RuleState:
    """A rule with its matcher, and what `dedup` remembers."""

    def __init__(self, rule: checked.Rule, world: World, expected: object) -> None:
        self.rule = rule
        self.world = world
        self.matcher: SequenceMatcher | WindowMatcher
        if isinstance(rule.pattern, checked.WindowPattern):
            self.matcher = WindowMatcher(rule, rule.pattern, world)
        else:
            keys = expected(rule.keys_from) if rule.keys_from and callable(expected) else []
            self.matcher = SequenceMatcher(rule, rule.pattern, world, keys)
        self._windows: dict[tuple[str, Key], _Window] = {}

    def key_names(self, key: Key) -> dict[str, object]:
        """The key as people see it."""
        return {part.name: value for part, (_, value) in zip(self.rule.key, key, strict=True)}

    def report(self, found: Found, now: int) -> _Report:
        """The match record and the derived events of a completed pattern, after `dedup`."""
        scope = self._scope(found, now)
        hidden, suppressed = self._dedup(found, scope)
        timeout = found.kind == "timeout"
        alert = self.rule.timeout_alert if timeout else self.rule.alert
        emits = self.rule.timeout_emit if timeout else self.rule.emit
        shows = alert is not None or not emits
        return _Report(
            time=found.time,
            hidden=hidden,
            match=self._match(found, alert, scope, suppressed) if shows else None,
            emitted=tuple((emit.stream, self._record(found, emit, scope)) for emit in emits),
        )

    def _scope(self, found: Found, now: int) -> Scope:
        bound: dict[str, list[Taken]] = {}
        for name, taken in found.bound:
            bound.setdefault(name, []).append(taken)
        pattern = self.rule.pattern
        on = isinstance(pattern, checked.SequencePattern) and pattern.kind == "on"
        return Scope(
            self.world,
            now=now,
            tested=found.bound[-1][1] if on and found.bound else None,
            bound=bound,
            key=[value for _, value in found.key],
            window=found.window,
        )

    def _dedup(self, found: Found, scope: Scope) -> tuple[bool, dict[str, object] | None]:
        """Whether the match is hidden, and what was hidden since the last one."""
        dedup = self.rule.dedup
        if dedup is None:
            return False, None
        by = (
            [value for _, value in found.key]
            if dedup.by is None
            else [value_of(value, scope) for value in dedup.by]
        )
        key = key_of(by)
        if key is None:
            return False, None
        window = self._windows.get((found.kind, key))
        if window is not None and found.time < window.opened + dedup.duration:
            window.hidden.append(found.time)
            return True, None
        self._windows[found.kind, key] = _Window(found.time)
        remembered = window is not None and found.time < window.opened + 2 * dedup.duration
        if window is None or not window.hidden or not remembered:
            return False, None
        first, last = min(window.hidden), max(window.hidden)
        return False, {"count": len(window.hidden), "first": first, "last": last}

    def _match(
        self,
        found: Found,
        alert: checked.Alert | None,
        scope: Scope,
        suppressed: Mapping[str, object] | None,
    ) -> ReferenceMatch:
        events, orders = self._events(found)
        fields: dict[str, object] = {}
        shown: dict[str, object] = {}
        for name, value in alert.fields if alert else ():
            fields[name] = value_of(value, replace(scope, alert=fields))
            shown[name] = plain(fields[name], value.type)
        message = alert.message if alert else None
        return ReferenceMatch(
            rule=self.rule.name,
            kind=found.kind,
            time=found.time,
            key=self.key_names(found.key),
            events=events,
            orders=orders,
            fields=shown,
            message=self._message(message, replace(scope, alert=fields)),
            suppressed=suppressed,
            first=found.first,
            last=found.last,
        )

    def _message(self, message: checked.Template | None, scope: Scope) -> str:
        """The text of the alert; without one the title, or the rule's name."""
        if message is None:
            return self.rule.title or self.rule.name
        return _print(message, scope)

    def _events(self, found: Found) -> tuple[dict[str, object], dict[str, tuple[int, ...]]]:
        """The records and the numbers of the events of each step; expected ones are no events."""
        taken: dict[str, list[Event]] = {}
        for name, each in found.bound:
            if each.event.order >= 0:
                taken.setdefault(name, []).append(each.event)
        loops = _loops(self.rule.pattern)
        records: dict[str, object] = {
            name: [event.record for event in events] if name in loops else events[0].record
            for name, events in taken.items()
        }
        orders = {name: tuple(event.order for event in events) for name, events in taken.items()}
        return records, orders

    def _record(self, found: Found, emit: checked.Emit, scope: Scope) -> dict[str, object]:
        """A derived event: the parts of the key and the emitted fields."""
        fields: dict[str, object] = {}
        for name, value in emit.fields:
            fields[name] = value_of(value, replace(scope, alert=fields))
        return {**self.key_names(found.key), **fields}


def _print(template: checked.Template, scope: Scope) -> str:
    return "".join(
        part if isinstance(part, str) else text_of(value_of(part, scope), part.type)
        for part in template.parts
    )


def _loops(pattern: checked.SequencePattern | checked.WindowPattern) -> set[str]:
    """The steps whose events are shown as an array."""
    found: set[str] = set()
    nodes = [] if isinstance(pattern, checked.WindowPattern) else list(pattern.nodes)
    inside_repeat: set[int] = set()
    while nodes:
        node = nodes.pop()
        inner: list[checked.Node] = []
        if isinstance(node, checked.Step):
            if node.quantifier.is_loop or id(node) in inside_repeat:
                found.add(node.name)
        elif isinstance(node, checked.OneOf):
            inner = [each for branch in node.branches for each in branch]
        elif isinstance(node, checked.AllOf):
            inner = list(node.parts)
        elif isinstance(node, checked.Repeat):
            inner = list(node.body)
            inside_repeat |= {id(each) for each in inner}
        if id(node) in inside_repeat:
            inside_repeat |= {id(each) for each in inner}
        nodes += inner
    return found
