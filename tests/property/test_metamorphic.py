"""Changes of rules and events that must change nothing, or only what they say.

The reference matcher is not asked: here the engine is held against itself. Disorder that `delay`
repairs, keys that are split, events that no rule names, other rules beside it, and other names for
the fields.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import replace

from comparing import loaded
from drawn_rules import DECLARED, EVENTS, EventTuple, rules, steps_of, window_rules
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from test_engine_vs_reference import THOROUGH

import cep
from cep.testing.events import Given, Moved
from cep.testing.modes import Outcome, Script, one_batch, outcome, shuffled

ANY_RULE = st.one_of(rules(), rules(groups=True), window_rules())
KEYED_RULE = ANY_RULE.filter(
    lambda rule: "by k " in rule and "by j" not in rule and "keys from" not in rule
)
"""Rules with one key; not those that expect all keys of a list, whatever comes."""

Steps = Sequence[Given | Moved]


def right(rule: str) -> cep.Ruleset:
    ruleset = loaded(rule)
    assume(ruleset is not None)
    return ruleset


def found(ruleset: cep.Ruleset, steps: Steps) -> list[Outcome]:
    return [outcome(match) for match in one_batch(Script(ruleset, ["r"], steps))]


@THOROUGH
@given(ANY_RULE, EVENTS)
def test_disorder_within_the_delay(rule: str, events: list[EventTuple]) -> None:
    script = Script(right(rule), ["r"], steps_of(events))
    wanted = [outcome(match) for match in one_batch(script)]
    for matches in shuffled(script):
        assert [outcome(match) for match in matches] == wanted


@THOROUGH
@given(KEYED_RULE, EVENTS, st.booleans())
def test_keys_do_not_see_each_other(rule: str, events: list[EventTuple], quiet: bool) -> None:
    ruleset, steps = right(rule), steps_of(events, quiet)
    steps.append(Moved(steps[-1].time))
    apart = []
    for key in (1, 2):
        own = [s for s in steps if isinstance(s, Moved) or s.record["k"] == key]
        apart += found(ruleset, own)
    assert sorted(map(str, apart)) == sorted(map(str, found(ruleset, steps)))


NAMED = ANY_RULE.filter(lambda rule: not re.search(r"\b(event|N)\b", rule.removeprefix(DECLARED)))
"""Rules of which no stream holds every event, or every one with a field."""


@THOROUGH
@given(NAMED, EVENTS, st.lists(st.integers(0, 20), max_size=6), st.booleans())
def test_events_that_no_rule_names(
    rule: str, events: list[EventTuple], places: list[int], quiet: bool
) -> None:
    ruleset, steps = right(rule), steps_of(events, quiet)
    more = list(steps)
    for place in places:
        index = min(place, len(steps) - 1)
        record = {"type": "Z", "k": 1, "n": 1, "j": 1}
        time = steps[index].time
        stranger = Given(record, time, {**record, "@timestamp": time})
        more.insert(more.index(steps[index]) + (place % 2 if index else 1), stranger)
    more.sort(key=lambda step: step.time)
    assert found(ruleset, more) == found(ruleset, steps)


@THOROUGH
@given(ANY_RULE, ANY_RULE, EVENTS, st.booleans())
def test_another_rule_beside_it(
    rule: str, other: str, events: list[EventTuple], quiet: bool
) -> None:
    right(other)
    alone, steps = right(rule), steps_of(events, quiet)
    for name in ("a_first", "z_last"):
        beside = other.removeprefix(DECLARED).replace("rule r", f"rule {name}")
        both = right(f"{rule}\n{beside}")
        together = one_batch(Script(both, ["r", name], steps))
        assert [outcome(m) for m in together if m.rule == "r"] == found(alone, steps)


NAMES = {"n": "zz_number", "k": "`a-key`", "j": "deep.er", "m": "A"}
"""New names: a long one, one in quotes, a path, one that is also a type."""


def renamed(rule: str) -> str:
    return re.sub(r"\b([nkjm])\b(?!\s*[:=]\s*(?![=]))", lambda m: NAMES[m[1]], rule)


def with_new_names(step: Given | Moved) -> Given | Moved:
    if isinstance(step, Moved):
        return step
    fields = {NAMES.get(name, name).strip("`"): value for name, value in step.record.items()}
    if "deep.er" in fields:
        fields["deep"] = {"er": fields.pop("deep.er")}
    return replace(step, record=fields, timed={**fields, "@timestamp": step.time})


def bare(outcomes: list[Outcome]) -> list[object]:
    """Outcomes without the names of keys and fields of events."""
    return [
        (rule, kind, time, parts(key), fields, counts(taken), message, hidden)
        for rule, kind, time, key, fields, taken, message, hidden in outcomes
    ]


def parts(key: str) -> list[str]:
    return sorted(map(str, json.loads(key).values()))


def counts(taken: str) -> dict[str, int]:
    return {step: len(events) for step, events in json.loads(taken).items()}


@settings(THOROUGH)
@given(ANY_RULE, EVENTS, st.booleans())
def test_other_names_for_the_fields(rule: str, events: list[EventTuple], quiet: bool) -> None:
    ruleset, steps = right(rule), steps_of(events, quiet)
    other = right(renamed(rule))
    changed = [with_new_names(step) for step in steps]
    assert bare(found(other, changed)) == bare(found(ruleset, steps))
