"""What the command line says at the end of a run, word for word."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

import cep
from cep.cli.advice import (
    field_advice,
    idle_advice,
    late_advice,
    nice_delay,
    reject_advice,
    stream_advice,
    type_advice,
)
from cep.cli.closing import closing_line, rule_table, undecided_lines
from cep.cli.session import RunOptions
from cep.cli.speech import counted

SECOND = 1_000_000
HOUR = 3600 * SECOND


def options(**more: object) -> RunOptions:
    return RunOptions(rules=[], inputs=[], **more)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("micros", "delay"),
    [
        (1, "1s"),
        (SECOND, "1s"),
        (4_200_000, "5s"),
        (61 * SECOND, "1m30s"),
        (12 * HOUR, "12h"),
        (12 * HOUR + 1, None),
    ],
)
def test_a_delay_is_round_and_long_enough(micros: int, delay: str | None) -> None:
    assert nice_delay(micros) == delay


def test_late_events() -> None:
    assert late_advice(312, 4_200_000, options()) == (
        "312 events were late by up to 4.2 s: try --delay 5s"
    )
    assert late_advice(1, 90 * 60 * SECOND, options()) == (
        "1 event was late by up to 90 min: try --delay 2h, or --sort"
    )
    assert late_advice(2, 100 * HOUR, options()) == (
        "2 events were late by up to 4.2 d: try --sort"
    )
    assert "with `idle` the clock" in late_advice(2, 100 * HOUR, options(follow=True))
    assert "the state has come further" in late_advice(2, 100 * HOUR, options(state="cep.db"))


def test_rejects() -> None:
    assert reject_advice(1, options()) == (
        "1 record was rejected: --rejects FILE writes them there with the reasons"
    )
    assert reject_advice(7, options(), "a.csv:2: no time: there is no field `time`") == (
        "7 records were rejected; --rejects FILE writes them there with the reasons. "
        "The first: a.csv:2: no time: there is no field `time`"
    )
    assert reject_advice(2, options(rejects="bad.jsonl")) == (
        "2 records were rejected: see bad.jsonl for the reasons"
    )


def test_fields_that_no_event_has() -> None:
    assert field_advice("usr", ["x"], ["host", "user"]) == (
        "no event had the field `usr` that rule x reads (did you mean `user`?)"
    )
    assert field_advice("q", ["x", "y"], ["host", "user"], "login") == (
        "no event of stream login had the field `q` that rules x, y read"
    )
    for other in ("times_changed", "mess", "age"):
        assert "did you mean" not in field_advice("message", ["x"], [other])
    assert "did you mean" not in field_advice("ip", ["x"], ["pid"])
    assert field_advice("q", list("abcdefghij"), []).endswith(
        "rules a, b, c, d, e, f, g, h, … read"
    )


def test_streams_without_events() -> None:
    assert stream_advice(["login"], "type", ["Login", "logout"]) == (
        "stream login got no events: type field is `type`; values seen: Login, logout"
        " (did you mean `Login`?)"
    )
    assert stream_advice(["login", "x"], "type", range(20)) == (
        "streams login, x got no events: type field is `type`; "
        "values seen: 0, 1, 2, 3, 4, 5, 6, 7, …"
    )
    assert stream_advice(["login"], "kind", []) == (
        "stream login got no events: type field is `kind`; no event has that field; "
        "--type-field names another, `stream login where …` needs none"
    )


@pytest.mark.parametrize(
    ("constants", "types", "told"),
    [
        (["false"], {"boolean"}, 'with "false", but in the events it is a boolean: write false'),
        (["100"], {"number"}, 'with "100", but in the events it is a number: write 100 without'),
        (["x"], {"number"}, "it is a number: values of different types are never equal"),
        ([True], {"text"}, 'with true, but in the events it is text: write "true" with quotes'),
        ([5, 6], {"text"}, "with 5, 6, but in the events it is text: `num(f)` makes a number"),
        ([5], {"array", "object"}, "it is an array or object: values of different types"),
    ],
)
def test_fields_of_other_types(constants: list[object], types: set[str], told: str) -> None:
    text = type_advice("f", ["r"], constants, types)
    assert text.startswith("rule r compares `f` with ")
    assert told in text


@pytest.mark.parametrize(
    ("rules", "waiting"),
    [
        ("rule a { sequence { x: X  no Y within 1h } }", "rule a waits for something"),
        (
            "rule a { sequence { x: X  no Y within 1h } } rule b { on X }"
            " rule c { sequence within 1h { x: X  y: Y  no Z } }",
            "rules a, c wait for something",
        ),
        ("rule b { on X } rule m { sequence within 1h { x: X  no Z  y: Y } }", None),
        ("stream event { idle 5s } rule a { sequence { x: X  no Y within 1h } }", None),
    ],
)
def test_absences_in_silence(rules: str, waiting: str | None) -> None:
    said = idle_advice(cep.loads(rules))
    assert (said is None) if waiting is None else (said or "").startswith(waiting)


def test_the_closing_line() -> None:
    stats = SimpleNamespace(events=1_204_331, matches=12, timeouts=1, late=3, rejected=1, unknown=7)
    assert closing_line(stats, 2, 2.0) == (  # type: ignore[arg-type]
        "1,204,331 events, 13 matches, 3 late, 1 rejected, 2 undecided, 7 unknown conditions "
        "in 2.0 s (602,166 events/s)"
    )


def test_open_absences_stand_in_the_order_of_their_deadlines() -> None:
    def one(name: str, deadline: int) -> SimpleNamespace:
        return SimpleNamespace(
            rule=name, key={"id": deadline, "s": "\x1b"}, deadline_us=deadline * SECOND, first_us=0
        )

    lines = list(undecided_lines([one("b", 9), one("a", 9), one("c", 8)], everything=False))  # type: ignore[list-item]
    assert lines[1:] == [
        "  c  id=8 s=\\x1b  would match at 1970-01-01T00:00:08Z",
        "  a  id=9 s=\\x1b  would match at 1970-01-01T00:00:09Z",
        "  b  id=9 s=\\x1b  would match at 1970-01-01T00:00:09Z",
    ]


def test_the_table_of_the_rules() -> None:
    numbers = SimpleNamespace(
        matches=1234, suppressed=5, unknown=0, dropped=0, untried=2, unrouted=7
    )
    stats = SimpleNamespace(per_rule={"brute_force": numbers})
    assert list(rule_table(stats)) == [  # type: ignore[arg-type]
        "rule            matches  suppressed     unknown     dropped     untried    unrouted",
        "brute_force       1,234           5           0           0           2           7",
    ]


def test_counted() -> None:
    assert counted(1, "match", "matches") == "1 match"
    assert counted(0, "event") == "0 events"
