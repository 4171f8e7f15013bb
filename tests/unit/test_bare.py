"""Runs that are kept as their events alone: for which rules, and how they are told apart."""

from __future__ import annotations

from typing import Any

import pytest

import cep
from cep.compile.program import Program
from cep.runtime.rule import held_in
from cep.runtime.runs import NEWEST_START, NUMBER

ROW = "rule r { by user sequence within 1h { a: A  b: B  c: C where n > a.n } alert '{a.n}' }"

START = 1_700_000_000
WAITS = "rule r { by k sequence { a: A no B within 10s } alert '{k}' }"


def is_bare(rule: str) -> bool:
    return cep.loads(rule).compiled.rules[0].automaton.is_bare


@pytest.mark.parametrize(
    "rule",
    [
        ROW,
        ROW.replace("alert", "skip nothing alert"),
        ROW.replace("alert", "dedup by user for 1h alert"),
        "rule r { sequence strict within 1h { a: event{3} where n > prev(n) } alert '' }",
        WAITS,
        WAITS.replace("alert", "skip nothing alert"),
    ],
)
def test_a_plain_row_of_steps(rule: str) -> None:
    assert is_bare(rule)


@pytest.mark.parametrize(
    ("rule", "why"),
    [
        (ROW.replace("where n > a.n", ""), "one group is cheaper"),
        (WAITS.replace("no B", "no B where n > a.n"), "the absence looks back"),
        (WAITS.replace("a: A", "a: A  b: C within 5s"), "runs may end each other"),
        (WAITS.replace("alert", "keep 1h alert"), "two times may end a run"),
        (ROW.replace("b: B", "b: B where n > a.n"), "runs may pass each other"),
        (ROW.replace("b: B", "no X  b: B"), "an absence closes a way"),
        (ROW.replace("b: B", "b: B?"), "there are two ways"),
        (ROW.replace("b: B", "b: B+"), "the number of events is open"),
        (ROW.replace("sequence", "sequence any"), "a run stays where it was too"),
        (ROW.replace("alert", "skip to next alert"), "starts are dropped one by one"),
        (ROW.replace("alert", "start latest alert"), "first events are replaced"),
        (ROW.replace("alert", "limit 5 runs alert"), "the oldest are dropped"),
        (ROW.replace("alert", "having count(a) > 0 alert"), "candidates are tried"),
        (ROW.replace("alert", "on timeout { alert '' } alert"), "what was told is marked"),
        (ROW.replace("sequence", "unless X sequence"), "runs are ended"),
    ],
)
def test_anything_else_is_not(rule: str, why: str) -> None:
    assert not is_bare(rule), why


def events(program: Program, *records: tuple[str, int, int]) -> list[Any]:
    made = []
    for kind, minute, n in records:
        event = program.shape.from_mapping({"type": kind, "user": "ann", "n": n})
        event.t, event.pos, event.src = minute * 60_000_000, minute, "log"
        made.append(event)
    return made


def test_runs_are_told_apart_by_where_they_wait() -> None:
    program = cep.loads(ROW).program()
    a, b, c, d = events(program, ("A", 0, 5), ("A", 1, 7), ("B", 2, 0), ("A", 3, 1))
    program.run([a, b, c, d])
    (run,) = program.rules
    state = run.states["ann"]
    assert state.s0 == [(d,)]
    assert state.s1 == [(a, c), (b, c)]
    first, second = (held_in(state, slot) for slot in run.plan.slots)
    assert [node[NEWEST_START] for node in second] == [1, 3]
    assert [node[NUMBER] for node in first] == [5]
    assert [node[7:] for node in second] == [(5,), (7,)]


STRICT = "rule r { by user sequence strict within 1h { a: A  b: B where n > a.n  c: C } alert '' }"


def test_runs_of_a_strict_row_share_their_events() -> None:
    program = cep.loads(STRICT.replace("a: A", "a: event")).program()
    a, b, c = events(program, ("A", 0, 5), ("B", 1, 7), ("A", 2, 1))
    program.run([a, b])
    (run,) = program.rules
    state = run.states["ann"]
    assert (state.e2, state.e1, state.waits) == (a, b, 0b11)
    assert (state.s0, state.s1) == ((b,), (a, b))
    program.run([c])
    assert (state.e1, state.s0, state.s1) == (c, (c,), None)


def test_a_strict_row_is_held_by_its_places_as_any_other() -> None:
    program = cep.loads(STRICT).program()
    a, b, c = events(program, ("A", 0, 5), ("B", 1, 7), ("C", 2, 1))
    program.run([a])
    (run,) = program.rules
    state = run.states["ann"]
    state.s0, state.s1 = None, (a, b)
    assert next(held_in(state, slot) for slot in run.plan.slots) is None
    program.run([c])
    assert len(program.take()) == 1
    assert not run.holds(state)


def test_a_long_strict_row_keeps_each_run_by_itself() -> None:
    rule = "rule r {{ by user sequence strict within 1h {{ a: event{{{}}} }} alert '' }}"
    shared = [cep.loads(rule.format(n)).compiled.rules[0].automaton.is_strict_row for n in (31, 32)]
    assert shared == [True, False]


def test_runs_whose_time_is_over_are_taken_out_when_the_key_is_woken() -> None:
    program = cep.loads(ROW).program()
    program.run(events(program, ("A", 0, 5), ("A", 50, 7)))
    (run,) = program.rules
    program.advance(70 * 60_000_000)
    assert [held[0].t for held in run.states["ann"].s0] == [50 * 60_000_000]
    program.advance(200 * 60_000_000)
    assert not run.states


def test_the_oldest_are_dropped_and_later_ones_go_on() -> None:
    from cep.runtime.oldest import drop_until

    program = cep.loads(ROW).program()
    program.run(events(program, ("A", 0, 5), ("A", 1, 7)))
    (run,) = program.rules
    assert drop_until(run, run.states["ann"], 0) == 1
    program.run(events(program, ("A", 2, 6), ("B", 3, 0), ("C", 4, 9)))
    assert [match.message for match in program.take()] == ["7"]


def absences(events: list[tuple[int, str, str]], rules: str = WAITS) -> list[tuple[int, str]]:
    """Times and keys of matches, in order, the clock moved to the end in one go and in steps."""
    found = []
    for steps in (1, 7):
        engine = cep.Engine(cep.loads(rules))
        matches = engine.process([{"type": k, "time": START + t, "k": key} for t, k, key in events])
        for step in range(1, steps + 1):
            matches += engine.advance_to((START + 100 * step // steps) * 1_000_000)
            for rule in engine.program.rules:
                rule.check()
        found.append([(m.time // 1_000_000 - START, m.key["k"]) for m in matches if m.key])
    assert found[0] == found[1]
    return found[0]


def test_absences_come_true_in_the_order_of_their_moments_and_keys() -> None:
    assert absences([(0, "A", "c"), (0, "A", "a"), (0, "A", "b"), (1, "A", "a")]) == [
        (10, "a"),
        (10, "b"),
        (10, "c"),
        (11, "a"),
    ]


def test_an_event_that_comes_ends_all_waits_of_its_key() -> None:
    given = [(0, "A", "a"), (2, "A", "a"), (3, "B", "a"), (4, "A", "a"), (5, "A", "b")]
    assert absences(given) == [(14, "a"), (15, "b")]


def test_what_an_absence_causes_stands_in_the_order_of_all_others() -> None:
    rules = (
        "rule first { by k sequence { a: A no B within 10s } emit gone }"
        'rule second { by k sequence { g: gone no B within 5s } alert "{k}" }'
    )
    given = [(0, "A", "b"), (0, "A", "a"), (3, "A", "c")]
    assert absences(given, rules) == [(15, "a"), (15, "b"), (18, "c")]
