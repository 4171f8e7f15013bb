"""A program: compiled rules with their states, through which ordered events run.

In: events in order, each with its time set. Out: matches, appended to `out` in the order of the
reference: what is due before an event, then the event through all rules by name, then the events
that matches have caused. No IO, no clock of its own, no threads: the same events give the same
matches, however they are cut into batches.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Collection, Container, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from cep.clock.timers import NEVER, Timers
from cep.compile.environment import Placed
from cep.compile.loop import Loop, calling_loop, own_loop
from cep.compile.merging import Handler, Merging, Ordered, by_order, together
from cep.compile.observers import CompiledObserver
from cep.compile.rules import CompiledRule, CompiledRules, module, window_plan
from cep.event import unbox
from cep.match import Match, MatchFormat
from cep.plan.dispatch import Dispatch
from cep.runtime.careful import Careful
from cep.runtime.cold import SpilledStates
from cep.runtime.reporting import Emitted
from cep.runtime.rule import RulePlan, RuleRun
from cep.runtime.tables import AFTER_RULES, FileTable, Repeats, Rows, StreamTable
from cep.runtime.window_rule import WindowRun

BEFORE_RULES = -1
"""Where the telling of repeats stands in the order of rules."""


@dataclass(slots=True)
class Part:
    """A rule or an observer: its place in the order, the events it cares for, its handlers."""

    order: int
    dispatch: Dispatch
    handlers: list[Handler]


class Program:
    """The rules at work on one stream of events.

    `time` is the engine clock: no event older than it may come, and everything due by it has been
    done. `out` collects the matches; take them with `take()`. `rows`: those of the tables that
    come from files. `durable`: states tell when they change. `spills`: some may be elsewhere
    (`cep.spill`).
    """

    def __init__(
        self,
        compiled: CompiledRules,
        rows: Mapping[str, Rows] | None = None,
        durable: bool = False,
        spills: bool = False,
    ) -> None:
        self.durable = durable
        self.spills = spills
        self.shape = compiled.shape
        self.timers = Timers()
        self.out: list[Match] = []
        self.time = -NEVER
        self._emitted: list[Emitted] = []
        self._waiting: deque[Emitted] = deque()
        self.tables: dict[str, FileTable | StreamTable] = {
            table.name: FileTable((rows or {}).get(table.name, {}))
            if table.stream is None
            else StreamTable(table.ttl, self.timers)
            for table in compiled.checked.tables.values()
        }
        self.repeats = {
            stream.name: Repeats(stream.dedup.duration, self.timers)
            for stream in compiled.checked.streams.values()
            if stream.dedup is not None
        }
        self.observing = Careful()
        """Counts what fails while events are told to be repeats and tables are kept."""
        self.rules: list[RuleRun | WindowRun] = [
            self._new_run(order, rule) for order, rule in enumerate(compiled.rules)
        ]
        depths = compiled.checked.depths()
        for run, rule in zip(self.rules, compiled.rules, strict=True):
            run.depth = depths.get(rule.name, 0)
        if spills:
            for run in self.rules:
                run.states = SpilledStates()
        self._share_dedups(compiled)
        self._lists = compiled.lists
        self._expecting = [
            (run, rule.rule.keys_from)
            for run, rule in zip(self.rules, compiled.rules, strict=True)
            if rule.rule.keys_from is not None
        ]
        self.telling: tuple[str, Mapping[Any, Any]] | None = None
        """What tells events that a rule can use: an attribute, and its values among others."""
        self._take_code(compiled)

    def _new_run(self, order: int, compiled: CompiledRule) -> RuleRun | WindowRun:
        form = self._form(compiled, Careful())
        plan = compiled.plan
        if isinstance(plan, RulePlan):
            return RuleRun(plan, form, order, self.timers, self.out, self._emitted)
        windows = window_plan(compiled.rule, form.careful)
        clock = partial(getattr, self, "time")
        within = (self.timers, clock, self.drain, self.out, self._emitted)
        return WindowRun(plan, windows, form, order, *within)

    def _share_dedups(self, compiled: CompiledRules) -> None:
        """Versions of one rule report at most once together."""
        paired = list(zip(self.rules, compiled.rules, strict=True))
        live = {rule.name: (run, rule) for run, rule in paired if rule.earlier is None}
        for run, rule in paired:
            run.owner = rule.rule.name
            if rule.earlier is not None and rule.name in live:
                heir, present = live[rule.name]
                if rule.shares_dedup(present):
                    run.dedups, run.shares_dedups = heir.dedups, True

    def drop(self, owners: Collection[str], compiled: CompiledRules) -> None:
        """Goes on without the rules whose states these owners have; `compiled` is what is left."""
        self.rules = [run for run in self.rules if run.owner not in owners]
        self._take_code(compiled)

    def _form(self, compiled: CompiledRule, careful: Careful) -> MatchFormat:
        return match_format(compiled, careful, self._placed(compiled.match_constants))

    def replace(self, compiled: CompiledRules) -> None:
        """Goes on with recompiled code (`recompile`); all states stay."""
        for run, rule in zip(self.rules, compiled.rules, strict=True):
            run.form = self._form(rule, run.careful)
        self._take_code(compiled)

    def _take_code(self, compiled: CompiledRules) -> None:
        parts = [
            *self._observer(compiled.before, BEFORE_RULES),
            *(self._part(rule, run) for rule, run in zip(compiled.rules, self.rules, strict=True)),
            *self._observer(compiled.after, AFTER_RULES),
        ]
        self._derived = _by_source(parts)
        self.telling = None
        calling = self._make_loop(parts)
        self._loop = (self._own_loop(compiled) if len(parts) == 1 else None) or calling

    def _part(self, rule: CompiledRule, run: RuleRun | WindowRun) -> Part:
        make = module(rule.durable_handlers if self.durable else rule.handlers)
        handlers = make(run, self._placed(rule.handler_constants))
        return Part(run.order, rule.dispatch, handlers)

    def _observer(self, observer: CompiledObserver | None, order: int) -> list[Part]:
        if observer is None:
            return []
        make = module(observer.text)
        handlers = make(self.observing, self._placed(observer.constants))
        return [Part(order, observer.dispatch, handlers)]

    def _placed(self, constants: Iterable[object]) -> list[object]:
        """The constants of a module with this program's own objects in their places."""
        return [self._own(c) if isinstance(c, Placed) else c for c in constants]

    def _own(self, placed: Placed) -> object:
        if placed.kind == "repeats":
            return self.repeats[placed.name]
        table = self.tables[placed.name]
        return table.finder(placed.path) if placed.path else table

    # ------------------------------------------------------------------ running

    def run(self, events: Sequence[Any]) -> None:
        """Runs events, in order and none older than `time`, through the rules."""
        if events:
            if self._expecting:
                self._expect(events[0].t)
            self._loop(self, events)
            self.time = events[-1].t

    def advance(self, time: int) -> None:
        """Moves the clock to `time` without an event and does what is due by then."""
        if time > self.time:
            if self._expecting:
                self._expect(time)
            self.time = time
            self.fire(time)

    def resume(self, time: int, known: Container[str]) -> None:
        """Goes on at `time` with the states that have been put in. Expected keys of the rules that
        are `known` from before have had their runs."""
        self.time = time
        self._expecting = [(run, name) for run, name in self._expecting if run.owner not in known]

    def _expect(self, time: int) -> None:
        """The first tick of the clock: keys that are expected have runs from now on."""
        for run, name in self._expecting:
            event = self.shape.type(t=time, src="expected", pos=time)
            table = self.tables.get(name)
            run.expect(self._lists[name] if table is None else list(table.keys()), event)
        self._expecting = []

    def fire(self, now: int) -> None:
        """Does what is due when the clock reaches `now`."""
        while (rule := self.timers.alone(now)) is not None:
            rule.expire_due(now)
            if self._emitted:
                self.drain()
        if self.timers.due <= now:
            self._wake(self.timers.take(now))

    def end(self) -> None:
        """The input has ended: nothing comes at the time of the clock any more, so that what ends
        with this moment is over too. The clock stays where it is."""
        self._wake(self.timers.take_passed(self.time))

    def _wake(self, due: Iterable[tuple[int, Any, Any]]) -> None:
        for moment, rule, state in due:
            rule.on_time(state, moment)
            if self._emitted:
                self.drain()

    def drain(self) -> None:
        """Lets the events enter that matches have caused, and those that these cause in turn."""
        waiting = self._waiting
        waiting.extend(self._emitted)
        self._emitted.clear()
        while waiting:
            emitted = waiting.popleft()
            handlers = self._derived.get(emitted.stream)
            if handlers:
                event = self._event_of(emitted)
                for handler in handlers:
                    handler(event)
                waiting.extend(self._emitted)
                self._emitted.clear()

    def _event_of(self, emitted: Emitted) -> Any:
        event = self.shape.from_mapping(emitted.fields)
        event.t = emitted.time
        event.s = emitted.stream
        event.src = f"{emitted.stream}@{emitted.match.id}"
        event.pos = 0
        return event

    def take(self) -> list[Match]:
        """The matches since the last call."""
        found = self.out[:]
        self.out.clear()
        return found

    # ------------------------------------------------------------------ dispatch

    def _own_loop(self, compiled: CompiledRules) -> Loop | None:
        """The loop of a program of one rule and nothing else, if there is one."""
        if len(compiled.rules) != 1:
            return None
        (rule,), (run,) = compiled.rules, self.rules
        path, entries = rule.dispatch.path, rule.dispatch.entries
        kinds = {entry.value: entry.number for entry in entries if entry.source is None}
        if rule.dispatch.gates or not kinds:
            return None
        attribute = self.shape.attributes[path] if path is not None else None
        text = own_loop(rule.durable_handlers if self.durable else rule.handlers, attribute, kinds)
        if text is None:
            return None
        make = module(text)
        return make(kinds.get, run, self._placed(rule.handler_constants))  # type: ignore[no-any-return]

    def _make_loop(self, parts: Sequence[Part]) -> Loop:
        always: list[Ordered] = []
        tables: dict[str, dict[Any, list[Ordered]]] = {}
        for part in parts:
            path = part.dispatch.path
            for entry in part.dispatch.entries:
                if entry.source is not None:
                    continue
                item = (part.order, part.handlers[entry.number])
                gates = part.dispatch.gates if path is None else ((path, (entry.value,)),)
                if not gates:
                    always.append(item)
                for field, values in gates:
                    by_value = tables.setdefault(self.shape.attributes[field], {})
                    for value in values:
                        by_value.setdefault(value, []).append(item)
        if len(tables) > 1:
            # Also where gates let one rule in by several fields.
            return Merging(tables, always, self._absent()).loop()
        if not tables:
            if not always:
                return calling_loop("None")()
            return calling_loop("handler")(handler=together(always))
        ((attribute, only),) = tables.items()
        if not always:
            self.telling = attribute, only
        table = {v: together(sorted([*items, *always], key=by_order)) for v, items in only.items()}
        default = together(always) if always else None
        return calling_loop(f"get(e.{attribute})")(get=_getter(table, default), default=default)

    def _absent(self) -> dict[str, str]:
        """The code of what an attribute of an event holds where the field is missing."""
        uses = self.shape.uses
        return {
            attribute: "UNSET" if uses[path].asks_missing else "None"
            for path, attribute in self.shape.attributes.items()
        }


def _by_source(parts: Iterable[Part]) -> dict[str, list[Handler]]:
    """Handlers of derived events, by the stream that they are emitted to."""
    found: dict[str, list[Handler]] = {}
    for part in parts:
        for entry in part.dispatch.entries:
            if entry.source is not None:
                found.setdefault(entry.source, []).append(part.handlers[entry.number])
    return found


def _getter(table: Mapping[Any, Handler], default: Handler | None) -> Callable[[Any], Any]:
    if default is None:
        return table.get
    return lambda value: table.get(value, default)


def match_format(
    compiled: CompiledRule, careful: Careful, constants: Sequence[object]
) -> MatchFormat:
    """How the matches of a rule describe themselves; failures are counted in `careful`."""
    rule = compiled.rule
    made = module(compiled.matches)(careful, constants)
    steps = tuple(compiled.automaton.steps)
    return MatchFormat(
        rule=compiled.name,
        version=compiled.version,
        title=rule.title,
        severity=rule.severity,
        tags=rule.tags,
        key_names=tuple(part.name for part in rule.key),
        steps=steps,
        loops=compiled.automaton.loops,
        step_of=tuple(steps.index(place.step) for place in compiled.automaton.positions),
        path=compiled.automaton.path,
        careful=careful,
        identity=_identity(compiled.identities),
        having=made.get("having"),
        alert=made.get("alert"),
        timeout_alert=made.get("timeout_alert"),
        emits=_named(made, "emit", [emit.stream for emit in rule.emit]),
        timeout_emits=_named(made, "timeout_emit", [emit.stream for emit in rule.timeout_emit]),
        dedup=made.get("dedup"),
        derived=made.get("derived"),
        eager=compiled.looks_up,
        records={
            "match": rule.reports,
            "timeout": rule.timeout_alert is not None or not rule.timeout_emit,
        },
    )


def _named(
    made: Mapping[str, Any], prefix: str, streams: Iterable[str]
) -> tuple[tuple[str, Any], ...]:
    return tuple((stream, made[f"{prefix}_{i}"]) for i, stream in enumerate(streams))


def _identity(attributes: Sequence[str | None]) -> Callable[[Any, int], Any]:
    """What identifies an event bound to a step: its `id` field, else source and position."""

    def identity(event: Any, step: int) -> Any:
        attribute = attributes[step]
        if attribute is not None and event.s is None:
            value = unbox(getattr(event, attribute))
            if value is not None:
                return value
        return [event.src, event.pos]

    return identity
