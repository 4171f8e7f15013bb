"""Outputs of runs that are killed and taken up again hold each match once, as if undisturbed."""

from __future__ import annotations

import csv
import sqlite3
import sys
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from killed_runs import RULES, STATE, events, lines, records, run, run_with_kills

from cep.sink.base import SinkError
from cep.sink.json_lines import JsonLinesSink

OUTPUTS = ("found.jsonl", "found.csv", "found.txt", "found.db")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "rules.cep").write_text(RULES)
    return tmp_path


def undisturbed(folder: Path, *inputs: str) -> None:
    """The outputs of a run without state, called `whole…`. Absences that only the end of the input
    decides are not in them, as a suspended run does not decide them either."""
    outputs = [output.replace("found", "whole") for output in OUTPUTS]
    run(folder, *inputs, output=outputs, late="whole-late.jsonl", rejects="whole-rejects.jsonl")


def same_prefix(folder: Path, name: str) -> None:
    """A suspended run holds back what later events could still change, and nothing else."""
    found, whole = (
        (folder / name).read_text(),
        (folder / name.replace("found", "whole")).read_text(),
    )
    assert whole.startswith(found)
    assert whole.count("\n") - found.count("\n") < 12
    assert found


def ids(path: Path) -> list[str]:
    with closing(sqlite3.connect(path)) as database:
        return [name for (name,) in database.execute("select id from matches")]


@pytest.mark.parametrize("deliver", ["after-commit", "now"])
@pytest.mark.parametrize("seed", range(4))
def test_every_sink_holds_each_match_once(folder: Path, seed: int, deliver: str) -> None:
    text = lines(events(seed))
    (folder / "log.jsonl").write_text(text.replace('"n": 77}', "broken", 1))
    undisturbed(folder, "log.jsonl")
    kills = run_with_kills(
        folder,
        "log.jsonl",
        seed=seed,
        output=OUTPUTS,
        late="found-late.jsonl",
        rejects="found-rejects.jsonl",
        deliver=deliver,
        **STATE,
    )
    assert kills > 1
    same_prefix(folder, "found.jsonl")
    found = [record["id"] for record in records(folder / "found.jsonl")]
    assert sorted(ids(folder / "found.db")) == sorted(found)
    with (folder / "found.csv").open() as table:
        assert [row["id"] for row in csv.DictReader(table)] == found
    assert len((folder / "found.txt").read_text().splitlines()) == len(found)
    for name in ("late", "rejects"):
        assert records(folder / f"found-{name}.jsonl") == records(folder / f"whole-{name}.jsonl")


def test_killed_after_every_block(folder: Path) -> None:
    (folder / "log.jsonl").write_text(lines(events(5, 120)))
    undisturbed(folder, "log.jsonl")
    options: dict[str, Any] = {"output": ["found.jsonl"], **STATE}
    for _ in range(100):
        if run(folder, "log.jsonl", kill_after=2, **options) == 0:
            break
    same_prefix(folder, "found.jsonl")


def test_at_the_end_that_is_said_nothing_is_left(folder: Path) -> None:
    (folder / "log.jsonl").write_text(lines(events(6)))
    undisturbed(folder, "log.jsonl")
    options: dict[str, Any] = {"output": ["found.jsonl"], "at_end": "undecided", **STATE}
    run_with_kills(folder, "log.jsonl", seed=6, **options)
    assert records(folder / "found.jsonl") == records(folder / "whole.jsonl")


def test_commands_may_be_started_again_with_the_same_id(folder: Path) -> None:
    (folder / "log.jsonl").write_text(lines(events(7, 120)))
    undisturbed(folder, "log.jsonl")
    (folder / "note.py").write_text(
        "import json, sys\nopen('started.txt', 'a').write(json.load(sys.stdin)['id'] + '\\n')\n"
    )
    command = f"{sys.executable} note.py"
    options: dict[str, Any] = {"output": ["found.jsonl"], "exec_command": command, **STATE}
    run_with_kills(folder, "log.jsonl", seed=7, **options)
    started = (folder / "started.txt").read_text().split()
    found = [record["id"] for record in records(folder / "found.jsonl")]
    assert list(dict.fromkeys(started)) == found


def test_an_output_that_fails_loses_nothing(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (folder / "log.jsonl").write_text(lines(events(8)))
    undisturbed(folder, "log.jsonl")
    options: dict[str, Any] = {"output": ["found.jsonl"], **STATE}
    write, calls = JsonLinesSink.write, []

    def fail_once(self: JsonLinesSink, matches: Any) -> None:
        calls.append(1)
        if len(calls) == 1:
            raise SinkError("cannot write found.jsonl: the disk is full")
        write(self, matches)

    run(folder, "log.jsonl", kill_after=9, **options)
    monkeypatch.setattr(JsonLinesSink, "write", fail_once)
    assert run(folder, "log.jsonl", **options) == 2
    assert run(folder, "log.jsonl", **options) == 0
    same_prefix(folder, "found.jsonl")


def test_what_was_written_after_the_last_checkpoint_is_cut(folder: Path) -> None:
    (folder / "log.jsonl").write_text(lines(events(9)))
    options: dict[str, Any] = {"output": ["found.jsonl"], **STATE}
    run(folder, "log.jsonl", **options)
    before = (folder / "found.jsonl").read_text()
    with (folder / "found.jsonl").open("a") as file:
        file.write('{"id": "half a rec')
    run(folder, "log.jsonl", **options)
    assert (folder / "found.jsonl").read_text() == before


def test_an_output_that_was_not_there_before_begins_empty(folder: Path) -> None:
    given = events(10)
    (folder / "log.jsonl").write_text(lines(given[:200]))
    (folder / "other.jsonl").write_text("left over from something else\n")
    run(folder, "log.jsonl", output=["found.jsonl"], **STATE)
    (folder / "log.jsonl").write_text(lines(given))
    run(folder, "log.jsonl", output=["found.jsonl", "other.jsonl"], **STATE)
    other, found = records(folder / "other.jsonl"), records(folder / "found.jsonl")
    assert other
    assert found[-len(other) :] == other
