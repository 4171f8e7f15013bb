"""`cep peek`: what an input looks like."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from cli_samples import LOG, ROOT, Cep

from cep.cli.exits import DONE, WRONG_USE
from cep.cli.guess import time_field
from cep.source.detect import FORMATS


def test_the_first_records_the_fields_and_the_time(cep: Cep) -> None:
    outcome = cep("peek", "-", "-n", "2", stdin=LOG + "no json\n")
    assert outcome.code == DONE
    assert outcome.records == [json.loads(line) for line in LOG.splitlines()[:2]]
    assert outcome.err.splitlines() == [
        "format jsonl",
        "  field    type  in 4 records",
        "  type     text             4",
        "  time     text             4",
        "  user     text             4",
        "  outcome  text             4",
        "time time, the first at 2026-01-01T00:00:00Z",
        "warning: 1 record cannot be read. The first: line 5: not JSON: it does not begin with `{`",
    ]


def test_types_and_how_often(cep: Cep) -> None:
    records = [
        {"a b": 1, "o": {"x": None}},
        {"a b": "t", "o": {"x": True}, "l": []},
        {"a b": 1.5},
    ]
    text = "".join(json.dumps(record) + "\n" for record in records)
    lines = [line.split() for line in cep("peek", "-", stdin=text).err.splitlines()]
    assert ["`a", "b`", "number", "or", "text", "3"] in lines
    assert ["o.x", "boolean", "or", "null", "2"] in lines
    assert ["l", "array", "1"] in lines


def test_no_record_is_shown_where_none_is_wanted(cep: Cep) -> None:
    outcome = cep("peek", "-", "-n", "0", stdin=LOG)
    assert (outcome.code, outcome.out) == (DONE, "")


def test_a_field_that_looks_like_the_time_is_named(cep: Cep) -> None:
    outcome = cep("peek", "-", stdin='{"id": 1, "created": "2026-03-05T10:00:00Z"}\n')
    assert "but created looks like one: `stream event { time created }`" in outcome.err
    outcome = cep("peek", "-", stdin='{"id": 1}\n')
    assert "no time: none of the fields `@timestamp`, timestamp, time, ts is there" in outcome.err


@pytest.mark.parametrize(
    ("record", "field"),
    [
        ({"n": 1700000000, "a": "2026-03-05", "event_date": "2026-03-05"}, ("event_date",)),
        ({"when": "Thu, 05 Mar 2026 10:00:00 GMT"}, ("when",)),
        ({"seen_at": 1700000000123}, ("seen_at",)),
        ({"phone": "1700000000", "stamp": "1700000000"}, ("stamp",)),
        ({"x": {"created": 1700000000}}, ("x", "created")),
        ({"x": "2026-03-05T10:00:00Z"}, ("x",)),
        ({"created": 5, "at": True, "ts": "soon", "phone": "1700000000", "n": 1700000000}, None),
    ],
)
def test_what_looks_like_a_time(record: dict[str, object], field: tuple[str, ...] | None) -> None:
    assert time_field(record) == field


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("a.jsonl", '{"type": "login", "created": "2026-03-05T10:00:00Z"}\n'),
        ("a.csv", "type,created\nlogin,2026-03-05T10:00:00Z\n"),
    ],
)
def test_a_run_without_times_says_which_field_looks_like_one(
    cep: Cep, rules: Path, name: str, text: str
) -> None:
    Path(name).write_text(text)
    outcome = cep("run", rules, name)
    assert outcome.code == WRONG_USE, "every record was rejected"
    assert "created looks like a time: write `stream event { time created }`" in outcome.err
    rules.write_text("stream event { time created }\n" + rules.read_text())
    assert cep("run", rules, name).code == DONE


def test_a_run_in_which_one_record_is_good_is_done(cep: Cep, rules: Path) -> None:
    good = '{"type": "login", "time": 1}\n'
    assert cep("run", rules, "--format", "jsonl", stdin="no json\n").code == WRONG_USE
    assert cep("run", rules, "--format", "jsonl", stdin="no json\n" + good).code == DONE
    assert cep("run", rules, stdin="").code == DONE


def test_the_log_of_a_pack(cep: Cep) -> None:
    outcome = cep("peek", "pack:process/sample.jsonl", "-n", "1")
    assert outcome.code == DONE
    assert len(outcome.records) == 1


def test_what_cannot_be_peeked_at(cep: Cep, tmp_path: Path) -> None:
    assert cep("peek", "none.jsonl").err == "error: none.jsonl: there is no such file\n"
    (tmp_path / "a.jsonl").write_text("\n")
    outcome = cep("peek", "a.jsonl")
    assert (outcome.code, outcome.err) == (WRONG_USE, "format jsonl\nno records\n")
    (tmp_path / "b.jsonl").write_text("x\n")
    assert "cannot be read" in cep("peek", "b.jsonl").err


def test_the_names_of_formats_agree(cep: Cep) -> None:
    page = (ROOT / "docs/guide/inputs.md").read_text()
    wrong = cep("peek", "-", "--format", "nosuch", stdin=LOG).err
    for command in ("run", "peek"):
        shown = " ".join(cep(command, "--help").out.split())
        assert all(name in shown for name in [*FORMATS, "regex:PATTERN"])
    assert all(f"`{name}`" in page for name in [*FORMATS, "regex:PATTERN"])
    assert all(name in wrong for name in FORMATS)
