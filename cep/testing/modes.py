"""The ways in which a test's events can be run, all of which must give the same matches.

The result may not depend on how events are cut into batches, in which form they come, in which
order the rules stand, what other rules there are, or on disorder that `delay` repairs (section 5).
Each mode plays the events of a test block, ends the input, and returns what came.
"""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise
from typing import Any

import msgspec

from cep.engine import Engine
from cep.match import Match
from cep.ruleset import Ruleset
from cep.state.memory import MemoryStore
from cep.state.snapshot import restore, snapshot
from cep.testing.events import Given, Moved, actions
from cep.testing.reference import ReferenceEngine
from dsl import ast

Outcome = tuple[object, ...]
"""A match as far as every mode must agree on it."""

SHUFFLES = 5
"""How many disorders are tried."""


@dataclass(frozen=True)
class Script:
    """What happens in a test, without its expectations."""

    ruleset: Ruleset
    names: Sequence[str]
    steps: Sequence[Given | Moved]

    @cached_property
    def selected(self) -> Ruleset:
        """The rules of the test; compiled once, whatever the number of engines."""
        everyone = list(self.names) == list(self.ruleset.rules)
        return self.ruleset if everyone else self.ruleset.select(self.names)

    def engine(self, **options: Any) -> Engine:
        """A new engine with the rules of the test."""
        return Engine(self.selected, **options)


def script_of(ruleset: Ruleset, test: ast.Test) -> Script:
    """The events of a test and the movements of its clock."""
    steps = [s for s in actions(ruleset.checked, test) if not isinstance(s, ast.TestExpect)]
    return Script(ruleset, [rule.name for rule in test.rules], steps)


def outcome(match: Any) -> Outcome:
    """Rule, kind, time, key, fields, text, events and what was hidden before.

    Of times that stand in records only the step that took them is compared, since modes write
    them in different ways.
    """
    hidden = match.suppressed["count"] if match.suppressed else 0
    taken = {
        step: [_bare(event) for event in (shown if isinstance(shown, list) else [shown])]
        for step, shown in match.events.items()
    }
    facts = [match.key, match.fields, taken]
    texts = [msgspec.json.encode(fact, order="deterministic").decode() for fact in facts]
    return (match.rule, match.kind, match.time, *texts, match.message, hidden)


def _bare(event: Mapping[str, object]) -> dict[str, object]:
    return {name: value for name, value in event.items() if name != "@timestamp"}


# ---------------------------------------------------------------------------- modes


def by_reference(script: Script) -> list[Any]:
    """The reference matcher, event by event."""
    return play(script, ReferenceEngine(script.ruleset.checked, names=script.names))


def event_by_event(script: Script) -> list[Any]:
    """Each event by itself, its time given beside it."""
    return play(script, script.engine())


def one_batch(script: Script) -> list[Match]:
    """All events between two movements of the clock at once."""
    return _in_batches(script, script.engine(), lambda event: event.timed)


def json_lines(script: Script) -> list[Match]:
    """As lines of JSON, all at once."""
    return _in_batches(script, script.engine(), lambda event: msgspec.json.encode(event.timed))


def cut_everywhere(script: Script) -> Iterator[list[Match]]:
    """In two batches, cut at every place in turn."""
    places = range(1, sum(isinstance(step, Given) for step in script.steps))
    for place in places:
        yield _in_batches(script, script.engine(), lambda event: event.timed, place)


def rules_reversed(script: Script) -> list[Match]:
    """With the rules in the other order."""
    rules = script.ruleset.checked
    turned = Ruleset(replace(rules, rules=dict(reversed(list(rules.rules.items())))))
    return event_by_event(replace(script, ruleset=turned, names=script.names[::-1]))


def other_rules_beside(script: Script) -> list[Match]:
    """With all other rules of the file beside it (those that emit would feed the tested ones)."""
    rules = script.ruleset.checked.rules
    silent = [name for name, rule in rules.items() if not (rule.emit or rule.timeout_emit)]
    everyone = list(dict.fromkeys([*script.names, *silent]))
    found = event_by_event(replace(script, names=everyone))
    return [match for match in found if match.rule in script.names]


def shuffled(script: Script) -> Iterator[list[Match]]:
    """Out of order by less than `delay`; events of one time keep their order.

    Only for tests whose clock is moved by nothing but events.
    """
    if any(isinstance(step, Moved) for step in script.steps[1:]):
        return
    events = [step for step in script.steps if isinstance(step, Given)]
    longest = max((b.time - a.time for a, b in pairwise(events)), default=0)
    for seed in range(SHUFFLES):
        delay = max(1, 2 * longest)
        dice = random.Random(seed)
        moved = {event.time: event.time + dice.randint(0, delay) for event in events}
        arrival = sorted(events, key=lambda event: moved[event.time])
        engine = script.engine(delay=delay)
        found = [match for step in script.steps[:1] for match in engine.advance_to(step.time)]
        found += [match for event in arrival for match in engine.process(event.timed)]
        yield found + engine.close()


def restarted(script: Script) -> list[Match]:
    """With a new program after every event and every movement of the clock, which knows nothing
    but what was kept of the one before as text."""
    engine = script.engine()
    found: list[Match] = []
    for step in script.steps:
        if isinstance(step, Given):
            found += engine.process_at(step.record, step.time)
        else:
            found += engine.advance_to(step.time)
        restart(engine)
    return found + engine.close()


def restarted_lines(script: Script) -> list[Match]:
    """The same, with events that are lines of JSON."""
    engine = script.engine()
    found: list[Match] = []
    for step in script.steps:
        if isinstance(step, Given):
            found += engine.process(msgspec.json.encode(step.timed))
        else:
            found += engine.advance_to(step.time)
        restart(engine)
    return found + engine.close()


def spilled(script: Script) -> list[Match]:
    """With every key let go of after every event, to be found in a store."""
    engine = script.engine(state=MemoryStore(), checkpoint_every=3600, max_memory=1)
    found: list[Match] = []
    for step in script.steps:
        if isinstance(step, Given):
            found += engine.process_at(step.record, step.time)
        else:
            found += engine.advance_to(step.time)
        found += engine.checkpoint()
        assert not any(len(rule.states) for rule in engine.program.rules), "every key has gone"
    found += engine.close()
    while more := engine.checkpoint():
        found += more
    return found


def restart(engine: Engine) -> None:
    """Goes on with a new program in the state of the old one, by way of a text."""
    decode = engine.ingest.decode
    kept = json.dumps(snapshot(engine.program, decode))
    engine.program = engine.ruleset.program()
    restore(engine.program, json.loads(kept), decode)
    for rule in engine.program.rules:
        rule.check()


ONE_RUN: Mapping[str, Callable[[Script], list[Any]]] = {
    "event by event": event_by_event,
    "one batch": one_batch,
    "json lines": json_lines,
    "rules reversed": rules_reversed,
    "other rules beside": other_rules_beside,
    "restarted": restarted,
    "restarted, lines": restarted_lines,
    "spilled": spilled,
}
"""Modes that run a test once."""

MANY_RUNS: Mapping[str, Callable[[Script], Iterator[list[Any]]]] = {
    "cut everywhere": cut_everywhere,
    "shuffled": shuffled,
}
"""Modes that run it several times."""


# ---------------------------------------------------------------------------- playing


def play(script: Script, engine: Any, look: Callable[[], None] = lambda: None) -> list[Any]:
    """Event by event, with a `look` at the engine after each."""
    found: list[Any] = []
    for step in script.steps:
        if isinstance(step, Given):
            found += engine.process_at(step.record, step.time)
        else:
            found += engine.advance_to(step.time)
        look()
    return found + list(engine.close())


def open_absences(engine: Any) -> set[tuple[object, ...]]:
    """The absences that an engine says are undecided."""
    return {(u.rule, str(u.key), u.deadline_us, u.first_us) for u in engine.undecided}


def _in_batches(
    script: Script, engine: Engine, form: Callable[[Given], Any], cut: int | None = None
) -> list[Match]:
    """Give all events between two movements of the clock at once, or in two parts at `cut`."""
    found: list[Match] = []
    batch: list[Any] = []
    seen = 0
    for step in script.steps:
        if isinstance(step, Moved):
            found += engine.process(batch)
            batch = []
            found += engine.advance_to(step.time)
            continue
        if seen == cut:
            found += engine.process(batch)
            batch = []
        batch.append(form(step))
        seen += 1
    return found + engine.process(batch) + engine.close()
