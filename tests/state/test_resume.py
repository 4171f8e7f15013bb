"""Inputs are read on from where they were: grown, rotated, cut, moved, compressed, several."""

from __future__ import annotations

import gzip
import json
import os
import re
import shutil
from pathlib import Path
from typing import Any

import pytest
from killed_runs import RULES, STATE, events, lines, records, run, run_with_kills

FOUND: dict[str, Any] = {"output": ["found.jsonl"], **STATE}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "rules.cep").write_text(RULES)
    return tmp_path


def whole(folder: Path, *inputs: str, **options: Any) -> list[str]:
    """What an undisturbed run finds, without what only the end of the input decides."""
    (folder / "once").mkdir(exist_ok=True)
    shutil.copy(folder / "rules.cep", folder / "once")
    for name in inputs:
        shutil.copy(folder / name, folder / "once")
    run(folder / "once", *inputs, output=["found.jsonl"], state="once.db", **options)
    return said(folder / "once")


def said(folder: Path) -> list[str]:
    """Time and message of each match; the ids hold the name of the input."""
    found = records(folder / "found.jsonl")
    assert len({one["id"] for one in found}) == len(found)
    return [f"{one['time']} {one['rule']} {one['message']}" for one in found]


def whole_text(folder: Path, text: str, **options: Any) -> list[str]:
    (folder / "all.jsonl").write_text(text)
    return whole(folder, "all.jsonl", **options)


@pytest.mark.parametrize("seed", range(4))
def test_a_file_that_grows_between_runs(folder: Path, seed: int) -> None:
    text = lines(events(seed))
    for part in (1, 2, 3, 4):
        (folder / "log.jsonl").write_text(text[: len(text) * part // 4])
        run_with_kills(folder, "log.jsonl", seed=seed, **FOUND)
    assert said(folder) == whole_text(folder, text)


@pytest.mark.parametrize("seed", range(4))
def test_several_files_are_merged_as_if_undisturbed(folder: Path, seed: int) -> None:
    given = events(seed, 400)
    for number in range(3):
        mine = [event for event in given if event["n"] % 3 == number]
        (folder / f"{number}.jsonl").write_text(lines(mine))
    names = ("0.jsonl", "1.jsonl", "2.jsonl")
    assert run_with_kills(folder, *names, seed=seed, late="late.jsonl", **FOUND) > 1
    assert said(folder) == whole(folder, *names)


def test_files_of_one_day_after_the_other(folder: Path) -> None:
    given = events(1, 300)
    for number in range(3):
        (folder / f"{number}.jsonl").write_text(lines(given[number * 100 : number * 100 + 100]))
    names = ("0.jsonl", "1.jsonl", "2.jsonl")
    run_with_kills(folder, *names, seed=1, **FOUND)
    assert said(folder) == whole(folder, *names)


@pytest.mark.parametrize("pack", ["plain", "gzip"])
def test_a_rotated_file_is_read_to_its_end_first(folder: Path, pack: str) -> None:
    text = lines(events(2))
    cut = [text.index("\n", len(text) * part // 5) + 1 for part in (1, 2, 3, 4)]
    log = folder / "log.jsonl"
    log.write_text(text[: cut[0]])
    run(folder, "log.jsonl", **FOUND)
    log.write_text(text[: cut[1]])  # grown, and not read before it is rotated
    rotate(folder, pack)
    log.write_text(text[cut[1] : cut[2]])
    rotate(folder, pack)  # never seen under its first name
    log.write_text(text[cut[2] : cut[3]])
    run_with_kills(folder, "log.jsonl", seed=2, **FOUND)
    with log.open("a") as file:
        file.write(text[cut[3] :])
    run(folder, "log.jsonl", **FOUND)
    assert said(folder) == whole_text(folder, text)


def rotate(folder: Path, pack: str) -> None:
    """log.jsonl becomes log.jsonl.1, that log.jsonl.2."""
    ending = ".gz" if pack == "gzip" else ""
    for number in (2, 1):
        older = folder / f"log.jsonl.{number}{ending}"
        if older.exists():
            older.rename(folder / f"log.jsonl.{number + 1}{ending}")
    content = (folder / "log.jsonl").read_bytes()
    stamp = os.stat(folder / "log.jsonl").st_mtime_ns
    (folder / "log.jsonl").unlink()
    newest = folder / f"log.jsonl.1{ending}"
    newest.write_bytes(gzip.compress(content) if pack == "gzip" else content)
    os.utime(newest, ns=(stamp, stamp))


def test_rotated_inputs_that_a_pattern_names_too_are_read_once(folder: Path) -> None:
    text = lines(events(3))
    cut = text.index("\n", len(text) // 2) + 1
    (folder / "log.jsonl").write_text(text[:cut])
    run(folder, "log.jsonl*", **FOUND)
    rotate(folder, "plain")
    (folder / "log.jsonl").write_text(text[cut:])
    run(folder, "log.jsonl*", **FOUND)
    assert said(folder) == whole_text(folder, text)


def test_a_file_that_was_moved_and_compressed_is_the_same(folder: Path) -> None:
    text = lines(events(4))
    cut = text.index("\n", len(text) // 2) + 1
    (folder / "log.jsonl").write_text(text[:cut])
    run(folder, "log.jsonl", **FOUND)
    (folder / "log.jsonl").unlink()
    (folder / "old.jsonl.gz").write_bytes(gzip.compress(text.encode()))
    run(folder, "old.jsonl.gz", **FOUND)
    assert said(folder) == whole_text(folder, text)


def test_a_copy_in_its_place_is_the_same(folder: Path) -> None:
    text = lines(events(5))
    (folder / "log.jsonl").write_text(text[: len(text) // 2])
    run(folder, "log.jsonl", **FOUND)
    (folder / "copy").write_text(text)
    os.replace(folder / "copy", folder / "log.jsonl")
    run(folder, "log.jsonl", **FOUND)
    assert said(folder) == whole_text(folder, text)


def test_another_file_in_its_place_is_read_from_its_beginning(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    first, second = events(6, 100), events(7, 100, start=1_700_001_000.0)
    (folder / "log.jsonl").write_text(lines(first))
    run(folder, "log.jsonl", delay=0, **FOUND)
    (folder / "log.jsonl").write_text(lines(second))
    run(folder, "log.jsonl", delay=0, **FOUND)
    assert said(folder) == whole_text(folder, lines(first) + lines(second), delay=0)


def test_events_that_are_lost_with_their_file_are_told(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (folder / "log.jsonl").write_text(lines(events(6, 100)))
    run(folder, "log.jsonl", **FOUND)
    (folder / "log.jsonl").write_text(lines(events(7, 100, start=1_700_001_000.0)))
    run(folder, "log.jsonl", **FOUND | {"quiet": False})
    told = capsys.readouterr().err
    assert "log.jsonl is another file than before, which is gone" in told
    assert re.search(r"the last \d events of it, which waited for their turn, are lost", told)


def test_a_file_that_was_cut_is_read_from_its_beginning(folder: Path) -> None:
    start = json.dumps({"type": "other", "time": 1_699_999_000, "filler": "x" * 2000}) + "\n"
    first, second = events(6, 100), events(7, 50, start=1_700_001_000.0)
    log = folder / "log.jsonl"
    log.write_text(start + lines(first))
    run(folder, "log.jsonl", delay=0, **FOUND)
    log.write_text(start + lines(second))
    run(folder, "log.jsonl", delay=0, **FOUND)
    text = start + lines(first) + lines(second)
    assert said(folder) == whole_text(folder, text, delay=0)


def test_a_last_line_without_an_end_waits_for_it(folder: Path) -> None:
    text = lines(events(8))
    (folder / "log.jsonl").write_text(text[: len(text) // 2])
    assert text[len(text) // 2 - 1] != "\n"
    run(folder, "log.jsonl", rejects="rejects.jsonl", **FOUND)
    (folder / "log.jsonl").write_text(text)
    run(folder, "log.jsonl", rejects="rejects.jsonl", **FOUND)
    assert said(folder) == whole_text(folder, text)
    assert (folder / "rejects.jsonl").read_text() == ""


FORMATS = {
    "log.csv": lambda e: f"{e['time']},{e['type']},{e['user']},{str(e['ok']).lower()},{e['n']}\n",
    "log.logfmt": lambda e: (
        f"time={e['time']} type={e['type']} user={e['user']} ok={str(e['ok']).lower()}\n"
    ),
}


@pytest.mark.parametrize("name", FORMATS)
def test_other_formats_of_lines(folder: Path, name: str) -> None:
    given = events(9)
    head = "time,type,user,ok,n\n" if name.endswith("csv") else ""
    text = head + "".join(map(FORMATS[name], given))
    (folder / name).write_text(text[: len(text) // 2])
    run_with_kills(folder, name, seed=9, **FOUND)
    (folder / name).write_text(text)
    run_with_kills(folder, name, seed=10, **FOUND)
    assert len(said(folder)) > 20
    assert said(folder) == whole(folder, name)


def test_a_json_array_and_its_longer_version(folder: Path) -> None:
    given = events(10)
    (folder / "log.json").write_text(json.dumps(given[:150]))
    run_with_kills(folder, "log.json", seed=10, **FOUND)
    (folder / "log.json").write_text(json.dumps(given))
    run(folder, "log.json", **FOUND)
    assert said(folder) == whole_text(folder, lines(given))


def test_years_of_syslog_stamps_are_remembered(folder: Path) -> None:
    (folder / "rules.cep").write_text(
        'stream event { time timestamp }\nrule all { on e: event alert "{e.message}" }\n'
    )
    days = [(month, day) for month in ("Nov", "Dec", "Jan") for day in range(10, 29)]
    text = "".join(
        f"{month} {day} 10:00:00 host app: line of {month} {day}\n" for month, day in days
    )
    log = folder / "old.log"
    log.write_text(text[: len(text) // 2])
    os.utime(log, (1_707_000_000, 1_707_000_000))  # February 2024
    run(folder, "old.log", **FOUND)
    log.write_text(text)  # changed now, which is years later
    run(folder, "old.log", **FOUND)
    assert said(folder)[0].startswith("2023-11-10")
    assert said(folder)[-1].startswith("2024-01-28")
    assert len(said(folder)) == len(days)


def test_a_smaller_delay_after_a_restart(folder: Path) -> None:
    (folder / "log.jsonl").write_text(lines(events(11)))
    run(folder, "log.jsonl", kill_after=4, delay=5_000_000, **FOUND)
    run(folder, "log.jsonl", delay=1_000_000, **FOUND)
    found = said(folder)
    assert found == sorted(found, key=lambda text: text.split()[0])


def test_from_the_beginning(folder: Path) -> None:
    (folder / "log.jsonl").write_text(lines(events(12)))
    run(folder, "log.jsonl", **FOUND)
    before = said(folder)
    run(folder, "log.jsonl", start_from="beginning", **FOUND)
    assert said(folder) == before


def test_an_input_that_is_left_out_once_keeps_its_place(folder: Path) -> None:
    given = events(13)
    (folder / "a.jsonl").write_text(lines(given[:150]))
    (folder / "b.jsonl").write_text(lines(events(14, 10, start=1_700_000_400.0)))
    run(folder, "a.jsonl", **FOUND)
    run(folder, "b.jsonl", **FOUND)
    run(folder, "a.jsonl", "b.jsonl", **FOUND)
    found = [one["id"] for one in records(folder / "found.jsonl")]
    assert len(set(found)) == len(found)


def test_another_file_that_is_older_than_what_has_been_read_is_late(folder: Path) -> None:
    rule = "rule pair { by u sequence within 1h { a: A  b: B } }"
    (folder / "rules.cep").write_text(rule)
    noon = 1_770_000_000
    for name, type_, time in (("a", "A", noon), ("b", "B", noon - 600), ("c", "B", noon)):
        event = {"type": type_, "u": "ann", "time": time}
        (folder / f"{name}.jsonl").write_text(json.dumps(event) + "\n")
        run(folder, f"{name}.jsonl", output=["found.jsonl"], late=f"{name}.late", **STATE)
    assert [late["late_by_s"] for late in records(folder / "b.late")] == [600]
    assert not (folder / "c.late").read_text(), "one of the same time is not"
    (match,) = records(folder / "found.jsonl")
    assert match["first"] <= match["last"]
