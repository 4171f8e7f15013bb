"""Ids of matches: the same match has the same id, however its input is named, packed or read."""

from __future__ import annotations

import gzip
import json
import shutil
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest
from cli_samples import Cep

import cep as package

RULES = "rule pair { by u  sequence within 1h { a: A  b: B } }\nrule one { on C }\n"


def events(*kinds: str, start: int = 0) -> str:
    """JSON lines, one a second."""
    return "".join(
        json.dumps({"time": start + second, "type": kind, "u": "ann"}) + "\n"
        for second, kind in enumerate(kinds)
    )


LOG = "no json\n\n" + events(*"CABABC")


@pytest.fixture
def log(tmp_path: Path) -> Path:
    (tmp_path / "r.cep").write_text(RULES)
    path = tmp_path / "log.jsonl"
    path.write_text(LOG)
    return path


def ids(cep: Cep, *arguments: object, stdin: str = "") -> list[str]:
    outcome = cep("run", "r.cep", *arguments, "--quiet", stdin=stdin)
    assert outcome.code == 0, outcome.err
    return [record["id"] for record in outcome.records]


def test_the_way_an_input_is_named_makes_no_difference(cep: Cep, log: Path) -> None:
    expected = ids(cep, "log.jsonl")
    assert len(set(expected)) == 4
    assert ids(cep, "./log.jsonl") == expected
    assert ids(cep, log) == expected
    assert ids(cep, stdin=LOG) == expected
    assert ids(cep, "-", stdin=LOG) == expected
    shutil.copy(log, "copy.txt")
    assert ids(cep, "copy.txt", "--format", "jsonl") == expected
    Path("log.jsonl.gz").write_bytes(gzip.compress(LOG.encode()))
    assert ids(cep, "log.jsonl.gz") == expected
    assert ids(cep, "log.jsonl", "--sort") == expected
    assert ids(cep, "log.jsonl", "--delay", "1m") == expected


def test_a_file_that_grows_keeps_its_ids(cep: Cep, log: Path) -> None:
    before = ids(cep, log)
    log.write_text(LOG + events("C", "A", "B", start=100))
    assert ids(cep, log)[:4] == before


def test_other_contents_have_other_ids(cep: Cep, log: Path) -> None:
    before = set(ids(cep, log))
    log.write_text(LOG.replace("ann", "bob"))
    assert before.isdisjoint(ids(cep, log))


def test_ready_records_are_known_by_their_content_too(cep: Cep, log: Path) -> None:
    table = "time,type,u\n" + "".join(f"{second},C,ann\n" for second in range(3))
    for name in ("a.csv", "b.csv"):
        Path(name).write_text(table)
    Path("b.csv.gz").write_bytes(gzip.compress(table.encode()))
    expected = ids(cep, "a.csv")
    assert len(set(expected)) == 3
    assert ids(cep, "b.csv") == ids(cep, "b.csv.gz") == expected


def test_inputs_that_begin_alike_are_told_apart_in_their_order(cep: Cep, log: Path) -> None:
    single = ids(cep, log)
    shutil.copy(log, "copy.jsonl")
    both = ids(cep, log, "copy.jsonl")
    assert len(set(both)) == len(both)
    assert ids(cep, "copy.jsonl", log) == both
    assert ids(cep, "copy.jsonl", log, "--sort") == both
    assert single[0] in both


def test_restarts_and_rotation_make_no_difference(cep: Cep, log: Path) -> None:
    more = events("A", "B", "C", start=100)
    Path("whole.jsonl").write_text(LOG + more)
    expected = ids(cep, "whole.jsonl")
    with_state = ("--state", "cep.db", "--deliver", "now")
    lines = LOG.splitlines(keepends=True)
    log.write_text("".join(lines[:4]))
    found = ids(cep, "log.jsonl", *with_state)
    log.write_text(LOG)
    found += ids(cep, "log.jsonl", *with_state)
    log.rename("log.jsonl.1")
    log.write_text(more)
    found += ids(cep, "log.jsonl", *with_state)
    assert found == expected
    shutil.move("log.jsonl", "rest.jsonl")
    shutil.move("log.jsonl.1", "log.jsonl")
    again = ids(cep, "log.jsonl", *with_state, "--from", "beginning")
    assert again == expected[: len(again)]
    assert len(again) == 4


def test_what_waits_for_its_turn_at_a_restart_keeps_its_ids(cep: Cep, log: Path) -> None:
    expected = ids(cep, "log.jsonl", "--delay", "1m")
    with_state = ("--state", "cep.db", "--delay", "1m")
    assert ids(cep, "log.jsonl", *with_state) == []
    found = ids(cep, "log.jsonl", *with_state, "--at-end", "undecided")
    assert found == expected


def test_a_state_without_identities_goes_on_with_names(cep: Cep, log: Path) -> None:
    lines = LOG.splitlines(keepends=True)
    log.write_text("".join(lines[:4]))
    ids(cep, "log.jsonl", "--state", "cep.db")
    with closing(sqlite3.connect("cep.db")) as file, file:
        name = ("source log.jsonl",)
        (text,) = file.execute("select value from _counters where name = ?", name).fetchone()
        entry = json.loads(text)
        assert len(entry.pop("identity")) == 16
        file.execute("update _counters set value = ? where name = ?", (json.dumps(entry), *name))
    log.write_text(LOG)
    shutil.copy("cep.db", "other.db")
    found = ids(cep, "log.jsonl", "--state", "cep.db", "-o", "-")
    assert found == ids(cep, "log.jsonl", "--state", "other.db", "-o", "-")
    assert not set(found) & set(ids(cep, "log.jsonl"))


def test_events_of_a_host_are_known_by_their_number() -> None:
    def found(given: list[bytes]) -> list[str]:
        engine = package.Engine(package.loads(RULES))
        return [match.id for match in engine.process(given)]

    lines = [line.encode() for line in events(*"CABABC").splitlines()]
    others = [line.replace(b'"time": ', b'"time":  ') for line in lines]
    assert found(lines) == found(others)
    assert set(found(lines)).isdisjoint(found([b"no json", *lines]))
