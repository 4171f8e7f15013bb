"""The engine as a host program uses it."""

from __future__ import annotations

import threading
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import msgspec
import pytest
from pydantic import BaseModel

import cep

BIG = 'rule big { by who  on payment where amount > 100  alert "{who} paid {payment.amount}" }'
UNSHIPPED = """
rule unshipped {
  by order
  sequence { p: payment  no shipment within 2h }
  alert "order {order} was paid and not shipped"
}
"""
HOUR = 3_600_000_000


@dataclass
class Payment:
    who: str
    amount: float
    time: float
    type: str = "payment"


class PaymentModel(BaseModel):
    who: str
    amount: float
    time: float
    type: str = "payment"


class PaymentStruct(msgspec.Struct):
    who: str
    amount: float
    time: float
    type: str = "payment"


FORMS: dict[str, Any] = {
    "mapping": {"type": "payment", "who": "ann", "amount": 250, "time": 5},
    "dataclass": Payment("ann", 250, 5),
    "pydantic model": PaymentModel(who="ann", amount=250, time=5),
    "msgspec struct": PaymentStruct("ann", 250, 5),
    "bytes": b'{"type":"payment","who":"ann","amount":250,"time":5}',
    "text": '{"type":"payment","who":"ann","amount":250,"time":5}',
}


@pytest.mark.parametrize("form", FORMS)
def test_events_of_many_forms(form: str) -> None:
    engine = cep.Engine(cep.loads(BIG))
    (match,) = engine.process(FORMS[form])
    assert (match.key, match.message) == ({"who": "ann"}, "ann paid 250")


def test_one_event_or_many() -> None:
    rules = cep.loads(BIG)
    event = FORMS["mapping"]
    assert len(cep.Engine(rules).process([event, event])) == 2
    assert len(cep.Engine(rules).process(iter([event] * 2500))) == 2500


def test_matches_can_be_handed_over_as_they_come() -> None:
    engine, seen = cep.Engine(cep.loads(BIG)), []
    assert engine.process([FORMS["mapping"]] * 3, on_match=seen.append) == []
    assert [match.rule for match in seen] == ["big"] * 3


def test_what_is_no_event_is_told_and_stops_nothing() -> None:
    engine, told = cep.Engine(cep.loads(BIG)), []
    engine.on_reject = lambda source, reject: told.append(reject.reason)
    events: list[Any] = [b"{", 17, {"type": "payment"}, {"time": "no time"}, FORMS["mapping"]]
    assert len(engine.process(events)) == 1
    assert engine.stats.rejected == 4
    assert len(told) == 4
    assert any("not int" in reason for reason in told)
    assert any("no time" in reason for reason in told)


def test_late_events_are_told_and_counted() -> None:
    engine, told = cep.Engine(cep.loads(BIG), delay=timedelta(seconds=1)), []
    engine.on_late = told.append
    times = [10, 9.5, 8.9, 20]
    found = engine.process([{**FORMS["mapping"], "time": time} for time in times])
    assert [match.time for match in found] == [9_500_000, 10_000_000]
    assert [(late.time_us, late.by_us) for late in told] == [(8_900_000, 100_000)]
    assert (engine.stats.late, engine.stats.late_max_us) == (1, 100_000)
    assert [match.time for match in engine.close()] == [20_000_000]


def test_the_clock_can_be_moved_without_an_event() -> None:
    engine = cep.Engine(cep.loads(UNSHIPPED))
    start = datetime(2026, 1, 1, tzinfo=UTC)
    assert engine.process({"type": "payment", "order": 7, "time": start.isoformat()}) == []
    assert engine.advance_to(start + timedelta(hours=2)) == []
    (match,) = engine.advance_to(start + timedelta(hours=2, microseconds=1))
    assert match.time_iso == "2026-01-01T02:00:00Z"


@pytest.mark.parametrize(("at_end", "found", "undecided"), [
    ("undecided", 0, 1),
    ("assume-quiet", 1, 0),
    ("discard", 0, 0),
])  # fmt: skip
def test_what_becomes_of_an_open_absence(at_end: str, found: int, undecided: int) -> None:
    engine = cep.Engine(cep.loads(UNSHIPPED))
    engine.process({"type": "payment", "order": 7, "time": 0})
    assert len(engine.close(at_end)) == found
    assert len(engine.undecided) == undecided


def test_an_open_absence_says_until_when() -> None:
    engine = cep.Engine(cep.loads(UNSHIPPED))
    engine.process({"type": "payment", "order": 7, "time": 0})
    (one,) = engine.undecided
    assert one == cep.Undecided("unshipped", {"order": 7}, 2 * HOUR, 0)


def test_an_absence_that_keep_ends_first_is_not_open() -> None:
    rule = "rule r {{ by k  sequence {{ a: A  no B within 5s }}  keep {}s }}"
    for keep, still_open in ((4, 0), (5, 1)):
        engine = cep.Engine(cep.loads(rule.format(keep)))
        engine.process({"type": "A", "k": 1, "time": 0})
        assert len(engine.undecided) == still_open


def test_another_word_for_the_end_is_refused() -> None:
    with pytest.raises(ValueError, match="assume-quiet"):
        cep.Engine(cep.loads(BIG)).close("whatever")


def test_an_engine_is_made_of_loaded_rules() -> None:
    for given, said in (
        ("hosts.cep", r"Engine\(cep.load\('hosts.cep'\)\)"),
        (Path("hosts.cep"), r"Engine\(cep.load\('hosts.cep'\)\)"),
        ("rule x { on A }", r"Engine\(cep.loads\(text\)\)"),
        (None, "not NoneType"),
    ):
        with pytest.raises(TypeError, match=said):
            cep.Engine(given)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "later",
    [
        "1970-01-01T00:01:00Z",
        datetime(1970, 1, 1, 0, 1),
        datetime(1970, 1, 1, 0, 1, tzinfo=UTC),
        60_000_000,
    ],
)
def test_the_clock_is_moved_by_any_form_of_a_time(later: Any) -> None:
    engine = cep.Engine(cep.loads("rule r { sequence { a: A  no B within 30s } }"))
    engine.process({"type": "A", "time": datetime(1970, 1, 1, 0, 0, 1)})
    assert len(engine.advance_to(later)) == 1
    assert engine.stats.clock_us == 60_000_000


def test_what_is_no_time_does_not_move_the_clock() -> None:
    engine = cep.Engine(cep.loads("rule r { on A }"))
    for time, error in ((1.5, TypeError), (None, TypeError), (True, TypeError), ("x", ValueError)):
        with pytest.raises(error):
            engine.advance_to(time)  # type: ignore[arg-type]


def test_a_callback_cannot_use_its_own_engine() -> None:
    engine = cep.Engine(cep.loads(BIG))

    def again(_: cep.Match) -> None:
        engine.process(FORMS["mapping"])

    with pytest.raises(cep.ConcurrentUse):
        engine.process(FORMS["mapping"], on_match=again)
    found = engine.process(FORMS["mapping"])
    assert len(found) == 2, "what the callback has not taken comes again"


def test_two_threads_cannot_use_it_at_once() -> None:
    engine = cep.Engine(cep.loads(BIG))
    inside, go_on = threading.Event(), threading.Event()

    def wait(_: cep.Match) -> None:
        inside.set()
        go_on.wait(5)

    thread = threading.Thread(target=engine.process, args=(FORMS["mapping"], wait))
    thread.start()
    inside.wait(5)
    with pytest.raises(cep.ConcurrentUse):
        engine.process(FORMS["mapping"])
    go_on.set()
    thread.join()


def test_the_record_of_a_match() -> None:
    rules = cep.loads(
        """
        rule pair "Two in a row" {
          severity high  tags a.b, c
          by who
          sequence within 10s { first_one: payment{1,2} where amount > 1  second: refund }
          alert "{who}" { since = first(first_one.time)  gap = second.time - first_one.time }
        }
        """
    )
    engine = cep.Engine(rules)
    pay = {"type": "payment", "who": "ann", "amount": 2, "time": 1}
    refund = {"type": "refund", "who": "ann", "time": 2.5}
    (match,) = engine.process([pay, refund])
    assert match.to_dict() == {
        "id": match.id,
        "rule": "pair",
        "version": rules.compiled.rules[0].version,
        "kind": "match",
        "time": "1970-01-01T00:00:02.500Z",
        "first": "1970-01-01T00:00:01Z",
        "last": "1970-01-01T00:00:02.500Z",
        "key": {"who": "ann"},
        "severity": "high",
        "tags": ["a.b", "c"],
        "message": "ann",
        "fields": {"since": "1970-01-01T00:00:01Z", "gap": 1.5},
        "events": {"first_one": [pay], "second": refund},
    }
    assert msgspec.json.decode(match.to_json()) == match.to_dict()


def test_the_same_match_has_the_same_id_in_a_replay() -> None:
    rules, events = cep.loads(BIG), [FORMS["mapping"], {**FORMS["mapping"], "amount": 300}]
    once = [match.id for match in cep.Engine(rules).process(events)]
    engine = cep.Engine(rules)
    again = [match.id for event in events for match in engine.process(event)]
    assert once == again
    assert len(set(once)) == 2


def test_an_id_field_makes_ids_that_do_not_depend_on_the_place() -> None:
    rules = cep.loads("stream payment { id uid }\n" + BIG)
    one = {**FORMS["mapping"], "uid": "p1"}
    first = cep.Engine(rules).process([one])
    second = cep.Engine(rules).process([{"type": "other", "time": 1}, one])
    assert first[0].id == second[0].id


def test_the_numbers() -> None:
    rules = cep.loads(BIG.replace("alert", "dedup for 1h  alert"))
    engine = cep.Engine(rules)
    bad = {"type": "payment", "who": "ann", "amount": "much", "time": 5}
    engine.process([FORMS["mapping"], FORMS["mapping"], bad, {**FORMS["mapping"], "who": None}])
    stats = engine.stats
    assert (stats.events, stats.matches, stats.suppressed) == (4, 1, 1)
    assert stats.per_rule["big"].unrouted == 1
    assert stats.unknown == 1
    assert stats.clock_us == 5_000_000


def test_a_key_without_runs_holds_nothing() -> None:
    engine = cep.Engine(cep.loads(UNSHIPPED))
    for n in range(100):
        engine.process({"type": "payment", "order": n, "time": n})
    assert engine.stats.per_rule["unshipped"].keys == 100
    engine.advance_to(3 * HOUR)
    assert engine.stats.per_rule["unshipped"].keys == 0


def test_all_problems_of_the_rules_at_once() -> None:
    with pytest.raises(cep.RuleError) as caught:
        cep.loads("rule a { on x where y = 1 }\nrule b { sequence { a: A  b: B } }")
    assert len(caught.value.diagnostics) == 2


def test_constants_of_two_types_let_only_their_events_in() -> None:
    rules = cep.loads(
        'stream a from event where code in [1, "1"]\n'
        'stream b from event where word == "go"\n'
        "stream c from a, b\nrule r { on c }"
    )
    assert rules.compiled.rules[0].dispatch.gates == (
        (("code",), (1, "1")),
        (("word",), ("go",)),
    )
