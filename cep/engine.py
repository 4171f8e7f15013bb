"""An event's way, on one page: source → time and order → program → matches.

`Engine` is the in-process host: it takes events from a host program, gives each its time, puts them
in order within the allowed delay, and runs them through the rules. `cep.reading` feeds it from
files. The engine never reads the wall clock: the same events give the same matches.

**Threads.** An engine belongs to one thread at a time. Calls may come from different threads, but
not at the same time, and not from inside a callback: either raises `ConcurrentUse`.
"""

from __future__ import annotations

import dataclasses
from collections import deque
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import datetime, timedelta
from os import PathLike, fspath
from threading import Lock
from typing import TYPE_CHECKING, Any

from cep.caps import Caps
from cep.clock.reorder import Reorder
from cep.clock.timers import NEVER
from cep.compile.program import Program
from cep.compile.rules import CompiledRules, recompile
from cep.event import LateEvent
from cep.event_time import LATEST
from cep.given import (
    BadEvent,
    count_of,
    fields_of,
    instant,
    is_event,
    micros,
    no_ruleset,
    require_json,
    seconds_of,
)
from cep.ingest import Ingest
from cep.lookup_files import LookupFiles, Reloaded, refresh
from cep.match import Match
from cep.positions import (
    SOURCE,
    Identities,
    Tracker,
    common_frontier,
    entries_of,
    key_of,
    source_row,
)
from cep.ruleset import Ruleset
from cep.runtime.reporting import Reporting
from cep.runtime.tables import FileTable
from cep.sink.leftovers import late_record, reject_record
from cep.skim import Skimmer
from cep.source.base import BadRecord, Block, Reject, Source
from cep.state.store import StateError
from cep.stats import TOTALS, RuleStats, Stats, Undecided

if TYPE_CHECKING:
    from cep.keeper import Keeper
    from cep.spill import Spill
    from cep.state.change import RuleChange, Succession
    from cep.state.checkpoint import Progress
    from cep.state.store import RuleVersion, Store

AT_END = ("undecided", "assume-quiet", "discard")
"""What `close` may do with open absences."""

DELIVER = ("after-commit", "now")
"""When matches go out, with state."""

OnMatch = Callable[[Match], None]


class ConcurrentUse(RuntimeError):
    """Two threads, or a callback, used one engine at the same time."""


@dataclass(frozen=True, slots=True)
class RulesReloaded:
    """What `Engine.reload` has done: what became of each rule, and the matches that had to come
    before."""

    changes: list[RuleChange]
    matches: list[Match]


class Engine:
    """Runs a ruleset over events.

    >>> import cep
    >>> rules = cep.loads('rule big { on payment where amount > 100 alert "{payment.who}" }')
    >>> engine = Engine(rules)
    >>> found = engine.process({"type": "payment", "time": 1, "amount": 250, "who": "ann"})
    >>> [match.message for match in found]
    ['ann']

    `delay`: how much disorder is repaired, in microseconds or as a timedelta; by default what the
    rule files declare. `delays`: that of single sources by their names. `on_late` and `on_reject`,
    when set, are called with events that came too late and with input that is no event. `stats` has
    the numbers.

    `state`: a SQLite file (or a store) in which everything the engine remembers is kept, written
    every `checkpoint_every` seconds. An engine that is made with the same file later goes on where
    this one was. `position` is what the host gave to `process` with the last events that are
    durable: it goes on in its own input from there. Matches come once they are durable, by this
    call or a later one, so that after a crash none is missing; `deliver="now"` gives them at once.
    One that was returned counts as delivered with the next call, and with the regular end of a
    `with` block; one that `on_match` was given when that has returned. After a crash before that it
    comes again, with the same id. Use the engine as a context manager, or call `suspend()`, to
    leave the file in order. Raises StateError where the file cannot be used.

    `on_match` is called with each match as it comes, by all methods and at the end of a `with`
    block; they return none then. Where it raises, that match and those after it come again with the
    next call. Methods that take an `on_match` of their own use that one.

    Where the rules have changed since, `changes` says what became of each; the runs of a rule that
    is named in `restart` are dropped.

    `max_runs` and `max_state_bytes` are caps over all rules: above them the oldest first events are
    dropped with all their runs, and counted (`stats`). They are looked at between batches, not at
    each event, and so may be exceeded for a moment.

    With state, `max_memory` (bytes) lets go of keys that have been quiet for long, of those whose
    state is durable: they come back from the file when they are needed. The caps count them too.
    """

    def __init__(
        self,
        ruleset: Ruleset,
        *,
        delay: int | timedelta | None = None,
        delays: Mapping[str, int | timedelta] | None = None,
        state: str | PathLike[str] | Store | None = None,
        checkpoint_every: float = 1.0,
        deliver: str = "after-commit",
        restart: Collection[str] = (),
        max_runs: int | None = None,
        max_state_bytes: int | None = None,
        max_memory: int | None = None,
        on_match: OnMatch | None = None,
    ) -> None:
        if not isinstance(ruleset, Ruleset):
            raise TypeError(no_ruleset(ruleset))
        if deliver not in DELIVER:
            raise ValueError(f"deliver is one of {', '.join(DELIVER)}, not {deliver!r}")
        if on_match is not None and not callable(on_match):
            raise TypeError(f"on_match is a function, not {on_match!r}")
        if isinstance(restart, str):
            raise TypeError(f"restart is a list of rules: restart=[{restart!r}]")
        self.ruleset = ruleset
        self._on_match = on_match
        self._caps = Caps(
            count_of("max_runs", max_runs), count_of("max_state_bytes", max_state_bytes)
        )
        if max_memory is not None and state is None:
            raise ValueError("max_memory needs state: that is where keys go")
        self._max_memory = count_of("max_memory", max_memory)
        every = seconds_of("checkpoint_every", checkpoint_every)
        self.on_late: Callable[[LateEvent], None] | None = None
        self.on_reject: Callable[[str, Reject], None] | None = None
        self.changes: list[RuleChange] = []
        """With state: what the rules are to those that the file was last used with."""
        self.on_originals: Callable[[Sequence[Any]], None] | None = None
        """Looks at the originals of the events that are read from sources."""
        self.delay = micros(delay) if delay is not None else ruleset.checked.delay
        self.delays = {name: micros(each) for name, each in (delays or {}).items()}
        """The delays of sources that have one of their own, by name."""
        self._order: Reorder[Any] = Reorder([self.delay])
        self._names = [""]
        self._identities = Identities([""], {})
        self._trackers: list[Tracker] = []
        self._lock = Lock()
        self._count = 0
        self._events = 0
        self._late = 0
        self._late_max = 0
        self._rejected = 0
        self._closed = False
        self._has_ended = False
        """With state: whether that has been let go of."""
        self._position: Any = None
        """Where the host stood then."""
        self._durable = state is not None
        self._retired: dict[str, int] = {}
        """What rules have counted that were replaced."""
        self.keeper: Keeper | None = None
        self._spill: Spill | None = None
        """What lets go of keys; it knows what they waited for when the state is closed, too."""
        self._earlier: list[RuleVersion] = []
        """Without state: the versions of rules that were replaced."""
        if state is not None:
            self.keeper = self._keep(state, every, deliver, restart)
        else:
            self._take_rules(ruleset.compiled, ruleset.files)

    def _take_rules(
        self, compiled: CompiledRules, files: LookupFiles, spills: bool = False
    ) -> None:
        """A new program of these rules, without state."""
        self.compiled = compiled
        self._files = files
        self.program = Program(compiled, files.rows, durable=self._durable, spills=spills)
        self.ingest = Ingest(compiled, self._reject)
        self._skimmer = Skimmer(self.ingest)

    def _keep(
        self,
        state: str | PathLike[str] | Store,
        every: float,
        deliver: str,
        restart: Collection[str],
    ) -> Keeper:
        """Opens the state and goes on from it."""

        require_rules(self.ruleset)
        store: Store
        if not state or (not isinstance(state, str | PathLike) and not hasattr(state, "submit")):
            raise TypeError(f"state is the path of a file, or a store, not {state!r}")
        if isinstance(state, str | PathLike):
            from cep.state.sqlite import SqliteStore

            store = SqliteStore(fspath(state))
        else:
            store = state
        try:
            return self._go_on(store, every, deliver, restart)
        except BaseException:
            store.close()
            raise

    def _go_on(self, store: Store, every: float, deliver: str, restart: Collection[str]) -> Keeper:
        """Goes on where a store's last epoch was."""
        from cep.keeper import Keeper
        from cep.spill import is_wanted
        from cep.state.change import succession

        snapshot = store.load()
        held = snapshot.held()
        following = succession(self.ruleset, snapshot.rules, held, restart)
        self.changes = following.changes
        spills = is_wanted(self._max_memory, held)
        self._take_rules(following.compiled, following.files, spills)
        decode = self.ingest.decode
        keeper = Keeper(
            self.program,
            following,
            decode,
            store,
            snapshot,
            every=every,
            deliver=deliver,
            max_memory=self._max_memory,
            counts=self._caps.are_set,
        )
        self._spill = keeper.spill
        kept: Any = keeper.snapshot.counters.get("engine")
        if kept is not None:
            self._count, self._events, self._rejected = (
                kept["count"],
                kept["events"],
                kept["rejected"],
            )
            self._late, self._late_max = kept["late"], kept["late_max"]
            waiting = [keeper.read_event(row) for row in kept["held"]]
            self._order.restore(0, kept["seen"], kept["frontier"], waiting)
        return keeper

    def __enter__(self) -> Engine:
        return self

    def __exit__(self, fault: type[BaseException] | None, *_: object) -> None:
        """Lets go of the state: like `suspend()`, and after an exception like `abandon()`. Matches
        that wait, and after an exception those of the last call too, are not lost: the next engine
        with this state gives them."""
        try:
            if fault is None:
                self.suspend()
        finally:
            self.abandon()

    @property
    def position(self) -> Any:
        """What the host gave to `process` with the last events whose effects are durable; at the
        start, where it is to go on. None without state, or before any."""
        return self.keeper.durable_position if self.keeper is not None else self._position

    @property
    def state_problem(self) -> str | None:
        """Why the state cannot be written at the moment (it is tried again), or None."""
        return self.keeper.store.problem if self.keeper is not None else None

    def checkpoint(self, on_match: OnMatch | None = None) -> list[Match]:
        """Makes everything up to now durable before it returns; gives the matches that waited for
        it. Raises StateError where that fails, and ValueError without `state`."""
        if self.keeper is None:
            raise ValueError("the engine keeps no state: give it `state=` a file")
        with self._alone():
            found = self.keeper.checkpoint(self.program.take(), self._progress)
            return self._handed(found, on_match)

    def suspend(self, on_match: OnMatch | None = None) -> None:
        """Ends work without ending the input: makes all durable and lets go of the state file.

        What the last call has returned counts as delivered now. Matches that still wait are handed
        to `on_match`, here or of the engine; without one the next engine gives them, so call
        `checkpoint()` before to have them from this one. Raises StateError where the file cannot be
        written; the engine is then as it was. Without state there is nothing to do.
        """
        if self.keeper is None:
            return
        with self._alone():
            if on_match is not None or self._on_match is not None:
                found = self.keeper.checkpoint(self.program.take(), self._progress)
                self._handed(found, on_match)
            self.keeper.close(self.program.take(), self._progress)
        self._position = self.keeper.durable_position
        self.keeper, self._has_ended = None, True

    def abandon(self) -> None:
        """Lets go of the state file as it is: the next engine does again what came after the last
        checkpoint. For a host that cannot deliver what it was given. Without state nothing."""
        if self.keeper is not None:
            with suppress(StateError):  # of a file that cannot be written any more
                self._position = self.keeper.durable_position
            self.keeper.abandon()
            self.keeper, self._has_ended = None, True

    def _progress(self) -> Progress:
        """What is durable together with the states."""
        from cep.state.checkpoint import Progress

        assert self.keeper is not None
        seen, frontier, held = self._order.waiting(0)
        counters: dict[str, Any] = {
            "count": self._count,
            "events": self._events,
            "late": self._late,
            "late_max": self._late_max,
            "rejected": self._rejected,
            "seen": seen,
            "frontier": list(frontier),
            "held": [] if self._trackers else self._event_rows(held),
        }
        progress = Progress(counters={"engine": counters}, host_position=self.keeper.position)
        self._add_sources(progress)
        return progress

    def _event_rows(self, events: Iterable[Any]) -> list[Any]:
        assert self.keeper is not None
        return [self.keeper.event_row(event) for event in events]

    def _add_sources(self, progress: Progress) -> None:
        """Adds where each source stands, unless that is known from the last epoch."""
        for tracker in self._trackers:
            seen, frontier, waiting = self._order.waiting(tracker.index)
            if tracker.is_unchanged(waiting):
                continue
            entry = tracker.entry(seen, frontier, waiting)
            entry["identity"] = self._identities.known(tracker.index)
            if not tracker.can_resume:
                entry["held"] = self._event_rows(waiting)
            progress.counters[SOURCE + key_of(tracker.name)] = entry
            progress.sources.append(source_row(tracker.name, entry))

    # ------------------------------------------------------------------ for host programs

    def process(
        self, events: Any, on_match: OnMatch | None = None, *, position: Any = None
    ) -> list[Match]:
        """Takes one event or an iterable of events; returns the matches that are complete.

        An event is a mapping, a dataclass, a pydantic model, a msgspec struct, or JSON as bytes or
        text. With `on_match` each match is handed over as it comes, and the list is empty. What is
        no event is counted and given to `on_reject`; it never stops the others.

        With state, `position` (any JSON value) says where the host stands after these events; it
        becomes durable together with what they have done, all of them or none. Raises TypeError for
        another position, and RuntimeError once the state has been let go of. Where the iterable, or
        a callback, raises, events of the call may be lost: give them again from `position` on.
        """
        if position is not None:
            require_json(position)
        items = [events] if is_event(events) else events
        with self._alone():
            found: list[Match] = []
            for chunk in _chunks(items, 1000):
                self._take([event for item in chunk if (event := self._event(item)) is not None])
                if self.keeper is None:
                    found += self._matches(on_match)
            if self.keeper is not None:
                if position is not None:
                    self.keeper.position = position
                found = self._matches(on_match)
            return found

    def process_at(self, event: Mapping[str, Any], time: int) -> list[Match]:
        """Takes one event whose time is given (microseconds), whatever stands in it. It must not be
        older than the clock; delays do not apply."""
        with self._alone():
            made = self.ingest.shape.from_mapping(event)
            made.t = time
            made.pos = self._next_position()
            self._events += 1
            self.program.run([made])
            return self._matches(None)

    def advance_to(
        self, time: int | datetime | str, on_match: OnMatch | None = None
    ) -> list[Match]:
        """Moves the clock: nothing older than `time` will come any more. Returns what is due.

        `time` is microseconds since the epoch, a datetime (UTC where it names no zone) or a text as
        in an event. Raises TypeError for anything else, ValueError for a text that is no time.
        """
        moment = instant(time)
        with self._alone():
            self._run(self._order.advance(moment))
            self.program.advance(moment)
            return self._matches(on_match)

    def close(self, at_end: str = "undecided", on_match: OnMatch | None = None) -> list[Match]:
        """The input has ended: releases what was held back for order, and does what is due by the
        time of the clock, which is the last event's unless the clock was moved further. An end at
        just that time is over too (`within`, an absence): nothing can come any more.

        Open absences stay `undecided` by default. With `assume-quiet` the clock runs to the end of
        time, so that they come true; with `discard` they are dropped. Raises ValueError for
        another word.
        """
        if at_end not in AT_END:
            raise ValueError(f"at_end is one of {', '.join(AT_END)}, not {at_end!r}")
        with self._alone():
            self._run(self._order.flush())
            self.program.end()
            if at_end == "assume-quiet":
                self.program.advance(LATEST + 1)
            found = self._matches(on_match)
            self._closed = at_end == "discard"
            return found

    @property
    def undecided(self) -> list[Undecided]:
        """The open absences, by deadline, rule and key."""
        if self._closed:
            return []
        found = [
            Undecided(rule.name, self._key_names(rule, key), due, first)
            for rule, key, due, first in self._absences()
        ]
        return sorted(found, key=lambda one: (one.deadline_us, one.rule, str(one.key)))

    @property
    def open_ends(self) -> dict[str, int]:
        """By rule, how many windows, or keys with a loop `report on close`, are still open and
        would report if nothing more came. Not counted are keys that stand in the state file
        only."""
        if self._closed:
            return {}
        found: dict[str, int] = {}
        for rule in self.program.rules:
            number = rule.open_ends()
            if number:
                found[rule.name] = found.get(rule.name, 0) + number
        return found

    def _absences(self) -> Iterator[tuple[Reporting, Any, int, int]]:
        for rule in self.program.rules:
            for key, due, first, _ in rule.undecided():
                yield rule, key, due, first
        if self._spill is not None:
            yield from self._spill.absences()

    def _key_names(self, rule: Reporting, key: Any) -> dict[str, Any]:
        return dict(zip(rule.form.key_names, rule.form.key_parts(key), strict=False))

    @property
    def stats(self) -> Stats:
        """The numbers so far."""
        stats = Stats(
            events=self._events,
            late=self._late,
            late_max_us=self._late_max,
            rejected=self._rejected,
            repeats=sum(repeats.dropped for repeats in self.program.repeats.values()),
            clock_us=self.program.time if self.program.time > -NEVER else None,
        )
        for rule in self.program.rules:
            stats.per_rule.setdefault(rule.name, RuleStats()).add(rule)
        for name in TOTALS:
            now = sum(getattr(one, name) for one in stats.per_rule.values())
            setattr(stats, name, now + self._retired.get(name, 0))
        return stats

    def reload_files(self) -> Reloaded:
        """Reads again the files of lists and tables that have changed (`list … from "f"`,
        `table … from "f"`), for the events from now on; all runs and windows stay.

        Returns which have been read and, as diagnostics, which could not be: those go on with what
        they held. Costs a look at each file; for a changed list the rules are compiled again.
        """
        with self._alone():
            self._files, reloaded = refresh(self.compiled.checked, self._files)
            for name in reloaded.names:
                table = self.program.tables.get(name)
                if isinstance(table, FileTable):
                    table.rows = self._files.rows[name]
            if any(name in self._files.items for name in reloaded.names):
                self._recompile({**self.compiled.lists, **self._files.items})
            return reloaded

    def reload(self, ruleset: Ruleset, *, restart: Collection[str] = ()) -> RulesReloaded:
        """Runs other rules from now on, between two events; none is lost.

        Runs go on where a rule is the same but for its constants and what it says. The earlier
        version of a rule that has changed otherwise finishes its runs beside the new one. Runs of
        rules that are gone, or named in `restart`, are dropped. With state everything is durable
        before, and it raises StateError where that fails; the old rules then go on, as they do
        where there are no rules in what is given (ValueError). Costs as much as a start with as
        many states.

        >>> import cep
        >>> engine = cep.Engine(cep.loads("rule big { on payment where amount > 100 }"))
        >>> engine.reload(cep.loads("rule big { on payment where amount > 50 }")).changes[0].kind
        'constants'
        """
        require_rules(ruleset)
        before = self.stats
        with self._alone():
            if self.keeper is None:
                done = self._reload_in_memory(ruleset, restart)
            else:
                done = self._reload_with_state(self.keeper, ruleset, restart)
            done = dataclasses.replace(done, matches=self._handed(done.matches, None))
        now = self.stats
        for name in TOTALS:  # what rules have counted that are gone counts on
            lost = getattr(before, name) - getattr(now, name)
            self._retired[name] = self._retired.get(name, 0) + lost
        return done

    def _reload_with_state(
        self, keeper: Keeper, ruleset: Ruleset, restart: Collection[str]
    ) -> RulesReloaded:
        from cep.spill import is_wanted
        from cep.state.change import succession

        succession(ruleset, keeper.versions, keeper.held, restart)  # to know that it can be done
        matches = keeper.checkpoint(self.program.take(), self._progress)
        snapshot = keeper.store.load()
        held = snapshot.held()
        following = succession(ruleset, snapshot.rules, held, restart)
        self._change_rules(ruleset, following, is_wanted(self._max_memory, held))
        keeper.go_on(self.program, following, self.ingest.decode, snapshot)
        self._spill = keeper.spill
        return RulesReloaded(following.changes, matches)

    def _reload_in_memory(self, ruleset: Ruleset, restart: Collection[str]) -> RulesReloaded:
        from cep.state.change import Succession, held_by, succession
        from cep.state.resume import go_on, name_owners, rearm
        from cep.state.snapshot import Memory

        clock = self.program.time
        name_owners(self.program, self.compiled)
        memory = Memory(self.program, self.ingest.decode)
        rows, counters = list(memory.rows()), memory.counters()
        versions = Succession(self.compiled, self._files, kept=self._earlier).versions()
        following = succession(ruleset, versions, held_by(rows), restart)
        matches = self.program.take()
        self._change_rules(ruleset, following)
        self._earlier = versions
        name_owners(self.program, self.compiled)
        states = [(owner, row.key, row.state or "") for owner, row in rows]
        memory = Memory(self.program, self.ingest.decode)
        known = clock if clock > -NEVER else None
        go_on(memory, following, states, known, counters)
        rearm(self.program, following, known)
        return RulesReloaded(following.changes, matches)

    def _change_rules(self, ruleset: Ruleset, following: Succession, spills: bool = False) -> None:
        """A new program, and events that were held back for order in its shape."""
        from cep.state.event_codec import EventCodec

        before = EventCodec(self.program.shape, self.ingest.decode)
        self.ruleset, self.changes = ruleset, following.changes
        self._take_rules(following.compiled, following.files, spills)
        now = EventCodec(self.program.shape, self.ingest.decode)
        self._order.replace(lambda event: now.read_text(before.text(event)))

    def _recompile(self, lists: Mapping[str, Sequence[Any]]) -> None:
        self.compiled = recompile(self.compiled, lists)
        self.program.replace(self.compiled)
        self.ingest = Ingest(self.compiled, self._reject)
        self._skimmer = Skimmer(self.ingest)

    # ------------------------------------------------------------------ for sources

    def read_from(self, sources: Sequence[Source]) -> list[Tracker]:
        """Prepares for these sources; their order decides between events of one time.

        With state, gives a tracker for each: what lies before its `read_to` was read by an engine
        before, and goes to `feed_again` first.
        """
        self._names = [source.name for source in sources]
        self._identities = Identities(self._names, self.known_sources)
        self._order = Reorder([self._delay_of(name) for name in self._names])
        if self.keeper is not None:
            self._trackers = self._resume_sources(sources)
        return self._trackers

    def _delay_of(self, source: str) -> int:
        return self.delays.get(source, self.delay)

    @property
    def known_sources(self) -> Mapping[str, Any]:
        """What the state says of sources that have been read before, by name."""
        if self.keeper is None:
            return {}
        return entries_of(self.keeper.snapshot.counters)

    def _resume_sources(self, sources: Sequence[Source]) -> list[Tracker]:
        assert self.keeper is not None
        kept: Any = self.keeper.snapshot.counters.get("engine", {})
        if kept.get("held"):
            raise StateError(
                "this state belongs to a program that gives the engine its events itself, and some"
                " of them wait in it: name another state file"
            )
        known = self.known_sources
        trackers = [
            Tracker(
                source.name,
                index,
                self._delay_of(source.name),
                source.input,
                was=known.get(key_of(source.name)),
            )
            for index, source in enumerate(sources)
        ]
        clock = self.program.time if self.program.time > -NEVER else None
        frontier = common_frontier(trackers, clock)
        self._order.go_on(frontier)
        for tracker in trackers:
            if tracker.was is not None:
                self._order.restore(tracker.index, tracker.was["seen"], frontier, [])
        for tracker in trackers:
            if tracker.was is not None and tracker.was["held"]:
                held = [self.keeper.read_event(row) for row in tracker.was["held"]]
                self._order.readmit(tracker.index, held)
        return trackers

    def feed(self, source: int, block: Block) -> None:
        """Takes a block of source number `source`; matches wait in `take()`."""
        with self._alone():
            name = self._names[source]
            tracker = self._trackers[source] if self._trackers else None
            if tracker is not None:
                tracker.begin(block, self._order.seen(source))
            for reject in block.rejects if tracker is None else tracker.new_rejects(block):
                self._reject(name, reject)
            try:
                if not self._feed_in_order(source, block):
                    for events in self._decoded(name, block):
                        self._run(self._order.push(source, self._placed(source, *events)))
            except BadRecord as error:  # columns that turn out to be broken when they are read
                self._reject(name, Reject(block.offset, block.line_number, str(error), b""))
            self._report_late()
            self._caps.look(self.program, self._events, self._spill)
            if tracker is not None:
                tracker.end(block, waits=self._order.holds(source))

    def feed_again(self, source: int, block: Block) -> None:
        """Takes a block that an engine before has read: of its events those wait again that had
        been waiting for their turn; what became of all others is in the state."""
        with self._alone():
            name, tracker = self._names[source], self._trackers[source]
            tracker.begin(block, tracker.seen_again)
            self.ingest.on_reject = _ignore
            try:
                events = [
                    event
                    for parts in self._parts(name, block)
                    if parts[0]
                    for event in self._placed(source, *parts)
                ]
            finally:
                self.ingest.on_reject = self._reject
            self._order.readmit(source, tracker.waited(events))

    def set_idle(self, source: int) -> None:
        """A source is silent: it does not hold the clock back until it brings events again."""
        with self._alone():
            self._run(self._order.set_idle(source))

    def slowest(self) -> int | None:
        """The source that holds the clock back: the one to read next."""
        return self._order.slowest

    def finish(self, source: int) -> None:
        """A source has ended."""
        with self._alone():
            self._run(self._order.finish(source))

    def take(self) -> list[Match]:
        """The matches that may go out and have not been given yet.

        With state they come once they are durable: a host calls this now and then while no events
        come, so that checkpoints are made and what has become durable comes out.
        """
        with self._alone():
            return self._matches(None)

    def run_sorted(self, events: list[Any]) -> None:
        """Takes events that are in order already (after a sort)."""
        with self._alone():
            self._run(events)

    def decode(self, source: int, block: Block) -> Iterator[Any]:
        """The events of a block of source number `source`, with time, place and original, for a
        host that sorts them."""
        name = self._names[source]
        for reject in block.rejects:
            self._reject(name, reject)
        try:
            for events in self._decoded(name, block):
                yield from self._placed(source, *events)
        except BadRecord as error:
            self._reject(name, Reject(block.offset, block.line_number, str(error), b""))

    # ------------------------------------------------------------------ inside

    @contextmanager
    def _alone(self) -> Iterator[None]:
        if not self._lock.acquire(blocking=False):
            raise ConcurrentUse(
                "an Engine is used by one thread at a time, and not from inside its callbacks"
            )
        try:
            if self._has_ended:
                raise RuntimeError("the engine has let go of its state: make another to go on")
            yield
        finally:
            self._lock.release()

    def _decoded(
        self, name: str, block: Block
    ) -> Iterator[tuple[list[Any], list[int], list[int], Sequence[Any]]]:
        """(events, times, positions, originals) of a block, rejects taken out; counts them."""
        for parts in self._parts(name, block):
            self._count_in(parts[3])
            if parts[0]:
                yield parts

    def _parts(
        self, name: str, block: Block
    ) -> Iterator[tuple[list[Any], list[int], list[int], Sequence[Any]]]:
        if block.lines:
            yield self.ingest.timed(name, block, *self.ingest.lines(name, block))
        elif block.ready:
            yield self.ingest.timed(name, block, *self.ingest.records(name, block))

    def _count_in(self, originals: Sequence[Any]) -> None:
        if self.on_originals is not None:
            self.on_originals(originals)
        self._events += len(originals)

    def _placed(
        self,
        source: int,
        events: list[Any],
        times: list[int],
        positions: list[int],
        originals: Sequence[Any],
    ) -> list[Any]:
        """The events with time, place and original set."""
        identity = self._identities.of(source, originals[0])
        for event, time, position, original in zip(
            events, times, positions, originals, strict=True
        ):
            event.t = time
            event.pos = position
            event.raw = original
            event.src = identity
        return events

    def _feed_in_order(self, source: int, block: Block) -> bool:
        """Takes a block the short way, where it is open: one source without delay, and events that
        come in order. False: nothing was done."""
        delay = self._delay_of(self._names[source])
        if len(self._names) > 1 or delay or self._order.holds(source):
            return False  # with a delay before it may hold some without one now
        known = self._identities.known(source)
        skimmed = self._skimmer.skim(block, self.program.telling, known or "")
        if skimmed is None or skimmed.first < self.program.time:
            return False
        if known is None:
            identity = self._identities.of(source, skimmed.originals[0])
            for event in skimmed.events:
                event.src = identity
        self._count_in(skimmed.originals)
        self._order.pass_over(source, skimmed.last)
        self.program.advance(skimmed.first)  # of expected keys the first tick opens the runs
        self._play(skimmed.events)
        self.program.advance(skimmed.last)
        return True

    def _event(self, item: Any) -> Any:
        """An event from what a host gave, its time not set; None when it is rejected."""
        position = self._next_position()
        try:
            if isinstance(item, str):
                item = item.encode()
            if isinstance(item, bytes):
                event = self.ingest.decode(item)
                event.raw = item
            else:
                event = self.ingest.shape.from_mapping(fields_of(item))
        except (BadRecord, BadEvent) as error:
            raw = item if isinstance(item, bytes) else repr(item).encode()
            self._reject("", Reject(position, position + 1, str(error), raw))
            return None
        event.pos = position
        return event

    def _next_position(self) -> int:
        self._count += 1
        return self._count - 1

    def _take(self, events: list[Any]) -> None:
        """Gives events of the host their times and runs those whose turn has come."""
        times = self.ingest.times.read(events)
        timed = []
        for event, time in zip(events, times, strict=True):
            if time is None:
                raw = event.raw if isinstance(event.raw, bytes) else repr(event.raw).encode()
                reason = self.ingest.no_time(event)
                self._reject("", Reject(event.pos, event.pos + 1, reason, raw))
                continue
            event.t = time
            timed.append(event)
        self._events += len(timed)
        self._run(self._order.push(0, timed))
        self._report_late()

    def _run(self, events: list[Any]) -> None:
        """Runs events whose turn has come; the clock is where the order says.

        It first ticks with the first event whose turn comes (or when the host moves it), not while
        that one is still held back.
        """
        self._play(events)
        clock = self._order.clock
        if clock is not None and self.program.time > -NEVER:
            self.program.advance(clock)

    def _play(self, events: list[Any]) -> None:
        """Events through the rules."""
        if self._spill is None:
            self.program.run(events)
            return
        for piece in self._spill.pieces(events):
            self.program.run(piece)

    def _matches(self, on_match: OnMatch | None) -> list[Match]:
        self._caps.look(self.program, self._events, self._spill)
        found = self.program.take()
        if self.keeper is not None:
            found = self.keeper.step(found, self._progress)
        return self._handed(found, on_match)

    def _handed(self, found: list[Match], on_match: OnMatch | None) -> list[Match]:
        """The matches, or none where each has been handed over. Those that are not, since the host
        raises, come with the next call."""
        take = on_match or self._on_match
        if take is None:
            return found
        left = deque(found)
        try:
            while left:
                take(left[0])
                left.popleft()
        finally:
            if self.keeper is not None:
                self.keeper.not_taken(left)
            else:
                self.program.out[:0] = left
        return []

    def _report_late(self) -> None:
        for event, by in self._order.take_late():
            self._late += 1
            self._late_max = max(self._late_max, by)
            source = self._identities.name_of(event.src)
            late = LateEvent(source, event.pos, event.t, by, event.raw)
            if self.keeper is not None:
                self.keeper.note("late", (late.source, late.position), late_record(late))
            if self.on_late is not None:
                self.on_late(late)

    def _reject(self, source: str, reject: Reject) -> None:
        self._rejected += reject.count
        if self.keeper is not None:
            place = (source, reject.position, reject.reason)
            self.keeper.note("reject", place, reject_record(source, reject))
        if self.on_reject is not None:
            self.on_reject(source, reject)


def _ignore(_source: str, _reject: Reject) -> None:
    """What was told before is not told again."""


def _chunks(items: Iterable[Any], size: int) -> Iterator[list[Any]]:
    if isinstance(items, list) and len(items) <= size:
        yield items
        return
    chunk: list[Any] = []
    for item in items:
        chunk.append(item)
        if len(chunk) == size:
            yield chunk
            chunk = []
    if chunk:
        yield chunk


def require_rules(ruleset: Ruleset) -> None:
    """Raises ValueError for a ruleset without rules, which would drop all that is kept."""
    if not ruleset.rules:
        raise ValueError("there are no rules in it; all that is kept would be dropped")
