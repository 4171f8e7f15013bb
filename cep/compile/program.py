"""A program: compiled rules with their states, through which ordered events run.

In: events in order, each with its time set. Out: matches, appended to `out` in the order of the
reference: what is due before an event, then the event through all rules by name, then the events
that matches have caused. No IO, no clock of its own, no threads: the same events give the same
matches, however they are cut into batches.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import lru_cache
from operator import attrgetter
from typing import Any

from cep.clock.timers import NEVER, Timers
from cep.compile.rules import CompiledRule, CompiledRules, module
from cep.event import unbox
from cep.match import Match, MatchFormat
from cep.runtime.careful import Careful
from cep.runtime.rule import Emitted, RuleRun

Handler = Callable[[Any], None]
Ordered = tuple[int, Handler]


class Program:
    """The rules at work on one stream of events.

    `time` is the engine clock: no event older than it may come, and everything due by it has been
    done. `out` collects the matches; take them with `take()`.
    """

    def __init__(self, compiled: CompiledRules) -> None:
        self.shape = compiled.shape
        self.timers = Timers()
        self.out: list[Match] = []
        self.time = -NEVER
        self._emitted: list[Emitted] = []
        self._waiting: deque[Emitted] = deque()
        self.rules: list[RuleRun] = []
        self._handlers: list[list[Handler]] = []
        for order, rule in enumerate(compiled.rules):
            self._start(order, rule)
        self._find: Callable[[Any], Any] | None = None
        self._value: Callable[[Any], Any] = _nothing
        self._derived = self._by_source(compiled.rules)
        self._loop = self._make_loop(compiled.rules)

    def _start(self, order: int, compiled: CompiledRule) -> None:
        careful = Careful()
        form = match_format(compiled, careful)
        run = RuleRun(compiled.plan, form, order, self.timers, self.out, self._emitted)
        self.rules.append(run)
        make = module(compiled.handlers)
        self._handlers.append(make(run, compiled.handler_constants))

    # ------------------------------------------------------------------ running

    def run(self, events: Sequence[Any]) -> None:
        """Runs events, in order and none older than `time`, through the rules."""
        if events:
            self._loop(self, events)
            self.time = events[-1].t

    def useful(self, events: Sequence[Any]) -> Iterable[Any]:
        """For each event something that is true when any rule can use it."""
        if self._find is None:
            return [True] * len(events)
        try:
            return list(map(self._find, map(self._value, events)))
        except TypeError:
            return [True] * len(events)

    def advance(self, time: int) -> None:
        """Moves the clock to `time` without an event and does what is due by then."""
        if time > self.time:
            self.time = time
            self.fire(time)

    def fire(self, now: int) -> None:
        """Does what is due when the clock reaches `now`."""
        for moment, rule, state in self.timers.take(now):
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

    def _by_source(self, rules: Sequence[CompiledRule]) -> dict[str, list[Handler]]:
        """Handlers of derived events, by the stream that they are emitted to."""
        found: dict[str, list[Handler]] = {}
        for rule, handlers in zip(rules, self._handlers, strict=True):
            for entry in rule.dispatch.entries:
                if entry.source is not None:
                    found.setdefault(entry.source, []).append(handlers[entry.number])
        return found

    def _make_loop(self, rules: Sequence[CompiledRule]) -> Callable[[Program, Sequence[Any]], None]:
        always: list[Ordered] = []
        tables: dict[str, dict[Any, list[Ordered]]] = {}
        for order, (rule, handlers) in enumerate(zip(rules, self._handlers, strict=True)):
            path = rule.dispatch.path
            for entry in rule.dispatch.entries:
                if entry.source is not None:
                    continue
                item = (order, handlers[entry.number])
                if path is None:
                    always.append(item)
                else:
                    table = tables.setdefault(self.shape.attributes[path], {})
                    table.setdefault(entry.value, []).append(item)
        if len(tables) > 1:
            merged = _several_tables(tables, always)
            return _loop("merged(e)")(merged=merged)
        if not tables:
            if not always:
                return _loop("None")()
            return _loop("handler")(handler=_together(always))
        ((attribute, only),) = tables.items()
        if not always:
            self._find, self._value = only.get, attrgetter(attribute)
        table = {value: _together(sorted([*items, *always])) for value, items in only.items()}
        default = _together(always) if always else None
        return _loop(f"get(e.{attribute})")(get=_getter(table, default), default=default)


def _nothing(_: Any) -> None:
    return None


def _getter(table: Mapping[Any, Handler], default: Handler | None) -> Callable[[Any], Any]:
    if default is None:
        return table.get
    return lambda value: table.get(value, default)


def _together(items: Sequence[Ordered]) -> Handler:
    """One handler that calls all of these, in the order of the rules."""
    handlers = [handler for _, handler in items]
    if len(handlers) == 1:
        return handlers[0]

    def all_of_them(event: Any) -> None:
        for handler in handlers:
            handler(event)

    return all_of_them


def _several_tables(
    tables: Mapping[str, Mapping[Any, list[Ordered]]], always: list[Ordered]
) -> Callable[[Any], Handler | None]:
    """Rules that dispatch on different fields: one look-up a field, handlers in the order of rules."""
    lookups = list(tables.items())

    def find(event: Any) -> Handler | None:
        found = list(always)
        for attribute, table in lookups:
            try:
                found += table.get(getattr(event, attribute), ())
            except TypeError:
                continue
        if not found:
            return None
        found.sort(key=_by_order)
        return _together(found)

    return find


def _by_order(item: Ordered) -> int:
    return item[0]


@lru_cache(maxsize=256)
def _loop(find: str) -> Callable[..., Callable[[Program, Sequence[Any]], None]]:
    """The loop over events, with the code that finds the handler of an event written into it.

    An event that no rule can use costs the test for due timers and one look-up. A value that cannot
    be looked up (unhashable, or of an unexpected type) equals no constant.
    """
    text = f"""
def make(get=None, handler=None, merged=None, default=None):
    def loop(program, events):
        timers, emitted = program.timers, program._emitted
        for e in events:
            if e.t >= timers.due:
                program.fire(e.t)
            try:
                h = {find}
            except TypeError:
                h = default
            if h is not None:
                h(e)
                if emitted:
                    program.drain()
    return loop
"""
    namespace: dict[str, Any] = {}
    exec(compile(text, "<loop>", "exec"), namespace)
    return namespace["make"]  # type: ignore[no-any-return]


def match_format(compiled: CompiledRule, careful: Careful) -> MatchFormat:
    """How the matches of a rule describe themselves; failures are counted in `careful`."""
    rule = compiled.rule
    made = module(compiled.matches)(careful, compiled.match_constants)
    steps = tuple(compiled.automaton.steps)
    return MatchFormat(
        rule=rule.name,
        version=compiled.version,
        title=rule.title,
        severity=rule.severity,
        tags=rule.tags,
        key_names=tuple(part.name for part in rule.key),
        steps=steps,
        loops=compiled.automaton.loops,
        step_of=compiled.plan.layout.step_of,
        careful=careful,
        identity=_identity(compiled.identities),
        having=made.get("having"),
        alert=made.get("alert"),
        timeout_alert=made.get("timeout_alert"),
        emits=_named(made, "emit", [emit.stream for emit in rule.emit]),
        timeout_emits=_named(made, "timeout_emit", [emit.stream for emit in rule.timeout_emit]),
        dedup=made.get("dedup"),
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
