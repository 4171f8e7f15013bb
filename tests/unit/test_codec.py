"""States as text: equal states, shared histories, odd values, and what cannot be read."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta, timezone
from decimal import Decimal
from enum import Enum
from uuid import UUID

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

import cep
from cep.engine import Engine
from cep.event import UNSET, Odd
from cep.key import FLAGS
from cep.state.codec import UnreadableState
from cep.state.snapshot import Memory, restore, snapshot
from cep.state.store import Owner, StateError
from cep.state.values import (
    DEEPEST,
    from_json,
    from_json_text,
    json_text,
    key_from_text,
    key_text,
    to_json,
)
from cep.testing.modes import restart

HOUR = timedelta(hours=1)

# ---------------------------------------------------------------------------- values


@pytest.mark.parametrize(
    "value",
    [
        None,
        True,
        0,
        -(1 << 63),
        (1 << 64) - 1,
        1 << 64,
        -(10**5000),
        1.0,
        -0.0,
        1e308,
        math.inf,
        -math.inf,
        "",
        'a "quoted" text\x00\x1f\u2028',
        "ärger",
        "lone \ud800 surrogate",
        b"\xff\x00",
        [1, [2.5, None]],
        {"a": {"b": []}},
        {"$": 1},
        {"$": ["float", "nan"], "b": 2},
        {1: "a", None: [2]},
        {"lone \udcff": 1},
        (1, ("a",)),
        {1, 2},
        datetime(2026, 1, 2, 3, 4, 5, 6),
        datetime(2026, 1, 2, tzinfo=timezone(HOUR)),
        date(2026, 1, 2),
        time(1, 2, 3, tzinfo=UTC),
        timedelta(days=-1, microseconds=5),
        Decimal("1.10"),
        UUID(int=5),
    ],
    ids=lambda value: type(value).__name__,
)
def test_values_come_back_equal(value: object) -> None:
    text = json_text(value)
    back = from_json_text(text)
    assert back == value
    assert type(back) is type(value)
    assert math.copysign(1, back) == math.copysign(1, value) if value.__class__ is float else True


def test_what_has_no_equal_comes_back_as_it_was() -> None:
    assert math.isnan(from_json(to_json(math.nan)))
    assert from_json(to_json(UNSET)) is UNSET
    boxed = from_json(to_json(Odd([Odd("x")])))
    assert isinstance(boxed, Odd)
    assert boxed.value[0].value == "x"


JSON_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.text(max_size=3) | st.just("$"), inner, max_size=3)
        | st.tuples(inner)
        | st.dictionaries(st.integers(), inner, max_size=2)
    ),
    max_leaves=8,
)


@given(JSON_VALUES)
def test_any_values_come_back_equal(value: object) -> None:
    assert from_json_text(json_text(value)) == value
    assert repr(from_json_text(json_text(value))) == repr(value)


class Colour(Enum):
    RED = "red"


@dataclass
class Point:
    x: int


class Own:
    def __str__(self) -> str:
        return "my own"


class Hostile:
    def __str__(self) -> str:
        raise RuntimeError

    __repr__ = __str__


class Lazy(Mapping):
    def __getitem__(self, name: str) -> int:
        return {"a": 1}[name]

    def __iter__(self) -> Iterator[str]:
        return iter(["a"])

    def __len__(self) -> int:
        return 1


def test_objects_of_a_host_come_back_as_json_would_show_them() -> None:
    given = [Colour.RED, Point(1), Own(), Hostile(), Lazy()]
    assert from_json(to_json(given)) == ["red", {"x": 1}, "my own", "<Hostile>", {"a": 1}]


def test_what_is_nested_too_deep_is_cut() -> None:
    endless: list = []
    endless.append(endless)
    deep = from_json_text(json_text(endless))
    for _ in range(DEEPEST + 1):
        (deep,) = deep
    assert deep == f"<nested deeper than {DEEPEST} levels>"


@pytest.mark.parametrize(
    ("key", "text"),
    [
        ("a", '["a"]'),
        (1, "[1]"),
        ("1", '["1"]'),
        (FLAGS[True], "[true]"),
        ((), "[]"),
        (("a", FLAGS[False], 1.5), '["a",false,1.5]'),
        (1 << 70, '[{"$":["int","0x400000000000000000"]}]'),
        ("\ud800", '[{"$":["text","eda080"]}]'),
    ],
)
def test_keys_have_texts_of_their_own(key: object, text: str) -> None:
    assert key_text(key) == text
    assert key_from_text(text) == key


def test_equal_numbers_are_one_key() -> None:
    assert key_text(1.0) == key_text(1)
    assert key_text(-0.0) == key_text(0)
    assert key_text(1e300) == key_text(int(1e300))
    assert key_text((2.0, "a")) == key_text((2, "a"))


# ---------------------------------------------------------------------------- events in states

PAIR = 'rule r { by k sequence within 1h { a: A  b: B } alert "{a.x}" { x = a.x  y = a.y } }'


def found_after_restart(first: object, rule: str = PAIR) -> dict:
    """The one match of an event that is kept over a restart."""
    engine = Engine(cep.loads(rule))
    engine.process(first)
    restart(engine)
    (match,) = engine.process({"type": "B", "k": "a", "time": 2})
    return match.to_dict()


@pytest.mark.parametrize(
    "value",
    [1 << 80, math.inf, "\ud800", [1, {"$": 2}], "ä", datetime(2026, 1, 1), Decimal(1), None],
    ids=repr,
)
def test_events_of_a_host_are_kept(value: object) -> None:
    event = {"type": "A", "k": "a", "time": 1, "x": value, "y": "y"}
    engine = Engine(cep.loads(PAIR))
    engine.process(event)
    (match,) = engine.process({"type": "B", "k": "a", "time": 2})
    assert found_after_restart(event) == match.to_dict()
    assert match.events["a"] == event


def test_not_a_number_is_kept() -> None:
    shown = found_after_restart({"type": "A", "k": "a", "time": 1, "x": math.nan})
    assert math.isnan(shown["events"]["a"]["x"])


def test_names_of_fields_that_are_no_texts_are_kept() -> None:
    event = {"type": "A", "k": "a", "time": 1, 5: "five", None: 1}
    assert found_after_restart(event)["events"]["a"] == event


@pytest.mark.parametrize(
    "line",
    [
        b'{"type":"A","k":"a","time":1,"x":"\xc3\xa4","x":[{"$":["float","nan"]}]}',
        b'  {"type" : "A", "k":"a",\n"time":1, "x":123456789012345678901234567890}  \r\n',
        b'{"type":"A","k":"a","time":1,"z":' + b"[" * 800 + b"]" * 800 + b"}",
        b'{"type":"A","k":"a","time":1,"z":1e-400,"x":"\\u0000"}',
        b'{"type":"A","k":"a","time":1,"z":[1e999,' + b"9" * 5000 + b"]}",
    ],
    ids=["twice", "spaced", "deep", "tiny", "huge"],
)
def test_lines_are_kept_as_they_came(line: bytes) -> None:
    engine = Engine(cep.loads(PAIR))
    engine.process(line)
    (state,) = engine.program.rules[0].states.values()
    codec = Memory(engine.program, engine.ingest.decode).codecs["r"]
    text = codec.encode(state)
    json.loads(text, parse_int=str)
    (((event, *_),), *_) = codec.decode('["a"]', text).s0
    assert event.raw == line.strip()
    events = codec._events
    assert events.read_text(events.text(event)).raw == event.raw


def test_a_match_shows_numbers_that_no_computer_has() -> None:
    line = b'{"type":"A","k":"a","time":1,"z":[1e999,-1e999,1.5,7,' + b"9" * 5000 + b"]}"
    shown = found_after_restart(line)["events"]["a"]["z"]
    assert shown == ["1e999", "-1e999", 1.5, 7, "9" * 5000]


def test_a_line_that_is_read_again_far_down_the_stack() -> None:
    engine = Engine(cep.loads(PAIR))
    engine.process(b'{"type":"A","k":"a","time":1,"x":' + b"[" * 850 + b"]" * 850 + b"}")
    codec = Memory(engine.program, engine.ingest.decode).codecs["r"]
    (state,) = engine.program.rules[0].states.values()
    text = codec.encode(state)

    def down(levels: int) -> object:
        return down(levels - 1) if levels else codec.decode('["a"]', text)

    assert codec.encode(down(500)) == text


def test_sources_whose_names_are_no_texts() -> None:
    engine = Engine(cep.loads(PAIR))
    engine.process(b'{"type":"A","k":"a","time":1}')
    (state,) = engine.program.rules[0].states.values()
    event = state.s0[0][0][0]
    event.src = "log-\udcff.jsonl"
    codec = Memory(engine.program, engine.ingest.decode).codecs["r"]
    assert codec.decode('["a"]', codec.encode(state)).s0[0][0][0].src == event.src


# ---------------------------------------------------------------------------- states


def states_of(rule: str, *types: str, **fields: object) -> tuple[Engine, object, object]:
    """An engine after some events, the codec of its rule, and the state of the only key."""
    engine = Engine(cep.loads(rule))
    for second, kind in enumerate(types):
        engine.process({"type": kind, "k": "a", "time": second + 1, "n": second, **fields})
    (state,) = engine.program.rules[0].states.values()
    return engine, Memory(engine.program, engine.ingest.decode).codecs["r"], state


def test_lists_that_nodes_share_stay_one_list() -> None:
    rule = 'rule r { by k skip nothing sequence within 1h { a: A  any b: B  c: C } alert "" }'
    _, codec, state = states_of(rule, "A", "A", "B", "A", "B")
    back = codec.decode('["a"]', codec.encode(state))
    for one in (state, back):
        assert [node[2] is one.s0[0] for node in one.s1[0]] == [True, True]
        assert [node[3] for node in one.s1[0]] == [2, 3]
        assert len(one.s0[0]) == 3
    assert codec.encode(back) == codec.encode(state)


def test_a_list_is_kept_as_far_as_anything_knows_it() -> None:
    rule = 'rule r { by k skip nothing sequence within 1h { a: A  next b: B  c: C } alert "" }'
    _, codec, state = states_of(rule, "A", "B")
    row = json.loads(codec.encode(state))
    assert max(len(one) for one in row["l"]) == 1
    assert codec.encode(codec.decode('["a"]', json.dumps(row))) == codec.encode(state)


def test_a_timeout_that_was_told_is_not_told_again() -> None:
    rule = """rule r { by k sequence within 5s { a: A  any b: B } skip nothing
    alert "" on timeout { alert "late" } }"""
    engine, codec, state = states_of(rule, "A", "B")
    assert state.told
    assert codec.decode('["a"]', codec.encode(state)).told == state.told
    restart(engine)
    assert engine.advance_to(100_000_000) == []


def test_marks_of_dropped_starts_are_kept() -> None:
    rule = 'rule r { by k sequence within 5s { a: A  any b: B } skip to next alert "" }'
    _, codec, state = states_of(rule, "A")
    state.dead, state.floor = {7: 5, 3: 9}, 2
    back = codec.decode('["a"]', codec.encode(state))
    assert (back.dead, back.floor) == (state.dead, 2)


def test_a_key_is_shown_as_it_came() -> None:
    for number in (1, True, "1", 1 << 70, 2.5):
        engine = Engine(cep.loads(PAIR))
        engine.process({"type": "A", "k": number, "time": 1})
        restart(engine)
        (match,) = engine.process({"type": "B", "k": number, "time": 2})
        assert (match.key["k"], type(match.key["k"])) == (number, type(number))


def test_a_whole_number_is_one_key_however_it_is_written() -> None:
    engine = Engine(cep.loads(PAIR))
    engine.process({"type": "A", "k": 1.0, "time": 1})
    restart(engine)
    (match,) = engine.process({"type": "B", "k": 1, "time": 2})
    assert (match.key["k"], type(match.key["k"])) == (1, int)


def test_variables_of_odd_values() -> None:
    rule = """rule r { by k sequence within 1h { a: A  b: B where n > a.n and m is missing }
    alert "{b.n}" }"""
    for odd in ("text", None, [1], True):
        engine, _, _ = states_of(rule, "A", n=odd)
        restart(engine)
        assert engine.process({"type": "B", "k": "a", "time": 9, "n": 5}) == []
        assert engine.stats.per_rule["r"].unknown == (0 if odd is None else 1)


def test_a_row_says_what_is_in_it() -> None:
    rule = """rule r { by k skip nothing sequence within 1h { a: A  any b: B where n > a.n  c: C }
    alert "" }"""
    _, codec, state = states_of(rule, "A", "A", "B")
    row = codec.row(state)
    assert (row.key, row.step, row.first_us, row.due_us) == ('["a"]', "b", 1_000_000, state.wake)
    assert row.runs == 4
    assert len(json.loads(row.state)["events"]) == 3


def test_a_row_of_groups_tells_the_first_event() -> None:
    rule = 'rule r { by k skip nothing sequence within 1h { a: A  b: B+  c: C } alert "" }'
    _, codec, state = states_of(rule, "A", "A", "B")
    row = codec.row(state)
    assert (row.step, row.first_us) == ("b", 1_000_000)


def test_a_row_of_a_window() -> None:
    rule = """rule r { by k aggregate A over sliding 1h { s = sum(n)  l = list(n) }
    having s > 99 alert "" }"""
    _, codec, state = states_of(rule, "A", "A")
    row = codec.row(state)
    assert (row.step, row.first_us, row.runs, row.due_us) == (None, 1_000_000, 2, state.wake)


def test_windows_of_values_that_json_does_not_know() -> None:
    rule = """rule r { by k aggregate A over sliding 1h { l = list(x)  d = count(distinct x) }
    alert "" { l = l  d = d } }"""
    engine = Engine(cep.loads(rule))
    given = [datetime(2026, 1, 1), "\ud800", 1 << 70, [1]]
    for second, value in enumerate(given):
        engine.process({"type": "A", "k": "a", "time": second + 1, "x": value})
        restart(engine)
    (match,) = engine.process({"type": "A", "k": "a", "time": 9, "x": "\ud800"})
    assert match.fields["l"] == ["2026-01-01 00:00:00", *given[1:], "\ud800"]
    assert match.fields["d"] == 4


# ---------------------------------------------------------------------------- programs


def test_counters_and_clock_are_kept() -> None:
    rules = """stream once { where type == "A"  dedup by n for 1h }
    rule r { by k on a: once where n > 1 dedup for 1h alert "" }"""
    engine = Engine(cep.loads(rules))
    for number in (5, 5, 6, "odd"):
        engine.process({"type": "A", "k": "a", "time": 10, "n": number})
    engine.process({"type": "A", "time": 11, "n": 7})
    before = engine.stats
    restart(engine)
    assert engine.stats == before
    assert before.repeats == 1
    assert before.suppressed == 1
    assert before.per_rule["r"].unrouted == 1
    assert engine.program.time == 11_000_000


def test_all_of_a_program_is_kept_again_as_it_was() -> None:
    engine = Engine(cep.loads(PAIR + 'rule d { by k on a: A dedup for 1h alert "" }'))
    for second in range(5):
        engine.process({"type": "A", "k": second % 2, "time": second + 1})
    decode = engine.ingest.decode
    kept = snapshot(engine.program, decode)
    fresh = engine.ruleset.program()
    restore(fresh, json.loads(json.dumps(kept)), decode)
    assert snapshot(fresh, decode) == kept


def test_an_expected_key_is_expected_once() -> None:
    rules = """list hosts = ["a", "b"]
    rule r { by k keys from hosts sequence { h: beat  no beat within 10s } alert "{k}" }"""
    engine = Engine(cep.loads(rules))
    engine.process({"type": "beat", "k": "a", "time": 100})
    restart(engine)
    engine.process({"type": "beat", "k": "a", "time": 105})
    restart(engine)
    found = engine.process({"type": "other", "time": 130})
    assert [(match.message, match.time // 1_000_000) for match in found] == [("b", 110), ("a", 115)]


def test_waiting_matches_must_be_taken_first() -> None:
    engine = Engine(cep.loads('rule r { on a: A alert "" }'))
    engine.program.run([engine.ingest.shape.from_mapping({"type": "A"})])
    with pytest.raises(ValueError, match="take"):
        snapshot(engine.program, engine.ingest.decode)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "nonsense",
        "[]",
        '{"f":1}',
        '{"f":1,"n":1,"s":{"s9":[0]}}',
        '{"f":1,"n":1,"h":[[0,0,1]]}',
    ],
)
def test_what_is_no_state_is_told_in_words(text: str) -> None:
    _, codec, _ = states_of(PAIR, "A")
    with pytest.raises(StateError, match="cannot be read"):
        codec.decode('["a"]', text)


def test_states_of_rules_that_are_not_there() -> None:
    engine, _, _ = states_of(PAIR, "A")
    kept = snapshot(engine.program, engine.ingest.decode)
    other = cep.loads(PAIR.replace("rule r", "rule s")).program()
    with pytest.raises(UnreadableState, match="the runs of r, which is not there"):
        restore(other, kept, engine.ingest.decode)


@pytest.mark.parametrize("kind", ["windows", "dedup", "tables", "repeats", "unheard"])
def test_rows_of_the_wrong_kind(kind: str) -> None:
    engine = Engine(cep.loads(PAIR))
    memory = Memory(engine.program, engine.ingest.decode)
    name = "r" if kind == "windows" else "elsewhere"
    with pytest.raises(UnreadableState, match=name):
        memory.adopt(Owner(kind, name), '["a"]', '{"f":1,"end":1,"t":1}')


def test_a_decoder_that_refuses_an_event_is_told_of() -> None:
    engine = Engine(cep.loads(PAIR))
    engine.process(b'{"type":"A","k":"a","time":1}')
    kept = snapshot(engine.program, engine.ingest.decode)

    def refuse(line: bytes) -> object:
        raise msgspec.DecodeError("no more")

    with pytest.raises(UnreadableState, match="no more"):
        restore(engine.ruleset.program(), kept, refuse)
