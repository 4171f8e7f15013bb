"""`cep run --state`: its options, what it says, and live inputs with state."""

from __future__ import annotations

import json
import signal
import subprocess
import time
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

import pytest
from cli_samples import LOG, Cep, line

from cep.cli.exits import INTERRUPTED

Start = Callable[..., subprocess.Popen[bytes]]

ENOUGH = 30
"""Seconds after which something is broken."""


def wait_for(condition: Callable[[], bool]) -> None:
    end = time.monotonic() + ENOUGH
    while not condition():
        assert time.monotonic() < end, "it did not happen in time"
        time.sleep(0.02)


def found_in(path: Path) -> list[str]:
    """The messages of the matches in a file."""
    if not path.exists():
        return []
    return [json.loads(text)["message"] for text in path.read_text().splitlines()]


def append(path: Path, text: str) -> None:
    with path.open("a") as file:
        file.write(text)


# -------------------------------------------------------------------------- options


def test_the_next_run_goes_on(cep: Cep, rules: Path, log: Path) -> None:
    first, rest = LOG[:-20], LOG[-20:]
    log.write_text(first)
    done = cep("run", rules, log, "--state", "cep.db", "-o", "found.jsonl")
    assert done.code == 0
    assert "the last line has no end yet" in done.err
    append(log, rest)
    done = cep("run", rules, log, "--state", "cep.db", "-o", "found.jsonl")
    assert "goes on from cep.db (checkpoint " in done.err
    assert found_in(Path("found.jsonl")) == ["ann: 3 failures, then success"]
    done = cep("run", rules, log, "--state", "cep.db", "-o", "found.jsonl", "--fail-on-match")
    assert done.code == 0, "the match was found by another run"
    assert "0 events, 0 matches" in done.err
    assert found_in(Path("found.jsonl")) == ["ann: 3 failures, then success"]


def test_standard_output_has_only_what_is_new(cep: Cep, rules: Path, log: Path) -> None:
    assert len(cep("run", rules, log, "--state", "cep.db").records) == 1
    assert cep("run", rules, log, "--state", "cep.db").records == []
    again = cep("run", rules, log, "--state", "cep.db", "--from", "beginning")
    assert len(again.records) == 1
    assert "goes on" not in again.err


def test_open_absences_are_kept_until_the_end_is_said(cep: Cep, tmp_path: Path) -> None:
    (tmp_path / "quiet.cep").write_text(
        'rule quiet { by user sequence { a: login no logout within 1h } alert "{user}" }'
    )
    (tmp_path / "log.jsonl").write_text(LOG)
    arguments = ("run", "quiet.cep", "log.jsonl", "--state", "cep.db")
    done = cep(*arguments)
    assert "still open, and kept for the next run:" in done.err
    assert done.records == []
    assert [record["rule"] for record in cep(*arguments, "--at-end", "assume-quiet").records] == [
        "quiet",
    ] * 4


@pytest.mark.parametrize("deliver", ["after-commit", "now"])
def test_delivery_and_interval(cep: Cep, rules: Path, log: Path, deliver: str) -> None:
    options = ("--state", "cep.db", "--deliver", deliver, "--checkpoint-every", "10ms")
    assert len(cep("run", rules, log, *options).records) == 1


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        (("--checkpoint-every", "5s"), "--checkpoint-every needs --state FILE"),
        (("--deliver", "now"), "--deliver needs --state FILE"),
        (("--from", "beginning"), "--from needs --state FILE"),
        (("--state", "cep.db", "--sort"), "leave out --state, or use --delay"),
        (("--state", "log.jsonl"), "log.jsonl is read by this run"),
        (("--state", "found.db", "-o", "found.db"), "found.db is read by this run"),
        (("--state", "rules.cep"), "rules.cep is read by this run"),
        (("--state", "missing/cep.db"), "cannot keep state in missing/cep.db"),
    ],
)
def test_what_does_not_go_together(
    cep: Cep, rules: Path, log: Path, options: tuple[str, ...], reason: str
) -> None:
    Path("found.db").touch()
    done = cep("run", rules.name, log.name, *options)
    assert done.code == 2
    assert reason in done.err


def test_only_a_state_file_is_removed(cep: Cep, rules: Path, log: Path) -> None:
    cep("run", rules, log, "-o", "other.db")
    done = cep("run", rules, log, "--state", "other.db", "--from", "beginning")
    assert done.code == 2
    assert "other.db is no state file of cep" in done.err
    assert Path("other.db").exists()


def test_standard_input_is_read_and_its_limits_are_told(cep: Cep, rules: Path) -> None:
    first, rest = LOG[: LOG.index("\n") + 1], LOG[LOG.index("\n") + 1 :]
    done = cep("run", rules, "-", "--state", "cep.db", stdin=first)
    assert "standard input cannot be read again" in done.err
    assert len(cep("run", rules, "-", "--state", "cep.db", stdin=rest).records) == 1


def test_events_of_a_pipe_that_wait_are_kept(cep: Cep, rules: Path) -> None:
    options = ("--state", "cep.db", "--delay", "1h")
    assert cep("run", rules, "-", *options, stdin=LOG).records == []
    later = line(4000, "failure", "bob") * 2 + line(8000, "failure", "bob")
    assert len(cep("run", rules, "-", *options, stdin=later[:0]).records) == 0
    ended = cep("run", rules, "-", *options, "--at-end", "undecided", stdin="")
    assert len(ended.records) == 1


# -------------------------------------------------------------------------- live


def test_a_signal_suspends_a_run(process: Start, tmp_path: Path) -> None:
    (tmp_path / "some.cep").write_text(
        'rule some { on login where n % 100 == 0 alert "{login.n}" }'
    )
    log, found = tmp_path / "log.jsonl", tmp_path / "found.jsonl"
    log.write_text("".join(line(0, "failure", n=n) for n in range(100_000)))
    arguments = (
        "run",
        "some.cep",
        log,
        "--state",
        "cep.db",
        "-o",
        found,
        "--checkpoint-every",
        "50ms",
    )
    child = process(*arguments)
    wait_for(lambda: found.exists() and found.stat().st_size > 0)
    child.send_signal(signal.SIGINT)
    _, err = child.communicate(timeout=ENOUGH)
    assert child.returncode in (INTERRUPTED, 0)
    assert b"Traceback" not in err
    child = process(*arguments)
    _, err = child.communicate(timeout=ENOUGH)
    assert child.returncode == 0
    assert b"goes on from cep.db" in err
    assert found_in(found) == [str(n) for n in range(0, 100_000, 100)]


def test_matches_of_a_silent_pipe_come_out(process: Start, rules: Path, tmp_path: Path) -> None:
    found = tmp_path / "found.jsonl"
    child = process("run", rules, "-", "--state", "cep.db", "-o", found)
    assert child.stdin is not None
    child.stdin.write(LOG.encode())
    child.stdin.flush()
    wait_for(lambda: len(found_in(found)) == 1)
    child.send_signal(signal.SIGINT)
    child.communicate(timeout=ENOUGH)
    assert child.returncode == INTERRUPTED


def test_a_followed_file_is_killed_and_rotated(process: Start, tmp_path: Path) -> None:
    log, found = tmp_path / "log.jsonl", tmp_path / "found.jsonl"
    (tmp_path / "each.cep").write_text('rule each { on e: login alert "{e.user}" }')
    arguments = ("run", "each.cep", log, "--follow", "--state", "cep.db", "-o", found)
    log.write_text("")
    expected = []
    for round in range(4):
        child = process(*arguments, "--checkpoint-every", "20ms")
        for n in range(5):
            user = f"u{round}{n}"
            append(log, line(round * 10 + n, "failure", user))
            expected.append(user)
            if n == 2 and round > 0:  # before that nobody knows what was in it
                log.rename(tmp_path / f"log.jsonl.{9 - round}")
        wait_for(lambda: len(found_in(found)) >= len(expected) - 2)
        child.kill()
        child.communicate()
        append(log, line(round * 10 + 6, "failure", f"between{round}"))
        expected.append(f"between{round}")
    child = process(*arguments, "--checkpoint-every", "20ms")
    wait_for(lambda: len(found_in(found)) >= len(expected))
    child.send_signal(signal.SIGINT)
    child.communicate(timeout=ENOUGH)
    assert found_in(found) == expected


def test_a_silent_source_does_not_hold_others_back(process: Start, tmp_path: Path) -> None:
    (tmp_path / "each.cep").write_text(
        'stream event { idle 500ms }\nrule each { on e: login alert "{e.user}" }'
    )
    silent, busy, found = tmp_path / "a.jsonl", tmp_path / "b.jsonl", tmp_path / "found.jsonl"
    silent.write_text(line(0, "failure", "first"))
    busy.write_text("".join(line(n, "failure", f"u{n}") for n in range(5)))
    child = process("run", "each.cep", silent, busy, "--follow", "-o", found)
    wait_for(lambda: len(found_in(found)) == 6)
    child.send_signal(signal.SIGINT)
    child.communicate(timeout=ENOUGH)


def test_with_all_sources_silent_the_clock_is_that_of_the_wall(
    process: Start, tmp_path: Path
) -> None:
    (tmp_path / "quiet.cep").write_text(
        "stream event { idle 300ms }\n"
        'rule quiet { by user sequence { a: login no logout within 1s } alert "{user}" }'
    )
    log, found = tmp_path / "log.jsonl", tmp_path / "found.jsonl"
    now = datetime.now(UTC).isoformat()
    log.write_text(json.dumps({"type": "login", "user": "ann", "time": now}) + "\n")
    child = process("run", "quiet.cep", log, "--follow", "--state", "cep.db", "-o", found)
    wait_for(lambda: found_in(found) == ["ann"])
    child.send_signal(signal.SIGINT)
    child.communicate(timeout=ENOUGH)


def test_lists_are_read_again_while_a_file_is_followed(process: Start, tmp_path: Path) -> None:
    (tmp_path / "bad.cep").write_text(
        'list bad from "bad.txt"\nrule hit { on e: login where user in bad alert "{e.user}" }'
    )
    (tmp_path / "bad.txt").write_text("mallory\n")
    log, found = tmp_path / "log.jsonl", tmp_path / "found.jsonl"
    log.write_text(line(0, "failure", "mallory") + line(1, "failure", "eve"))
    child = process("run", "bad.cep", log, "--follow", "-o", found)
    wait_for(lambda: found_in(found) == ["mallory"])
    (tmp_path / "bad.txt").write_text("mallory\neve\n")
    seconds = iter(range(2, 1000))

    def eve_is_found() -> bool:
        append(log, line(next(seconds), "failure", "eve"))
        time.sleep(0.1)
        return "eve" in found_in(found)

    wait_for(eve_is_found)
    child.send_signal(signal.SIGINT)
    child.communicate(timeout=ENOUGH)


# -------------------------------------------------------------------------- what is shown of keys

SHOWN = {
    "within": ("by k  sequence within 10m { a: A  b: B }", "00:10:00"),
    "keep": ("by k  sequence { a: A  b: B } keep 10m", "00:10:00"),
    "group": ("by k  sequence within 10m { a: A  b: B+  c: C }", "00:10:00"),
    "absence": ("by k  sequence within 1h { a: A  no B within 10m }", "00:10:00"),
    "timeout": ('by k  sequence within 10m { a: A  b: B } on timeout { alert "x" }', "00:10:00"),
    "two runs": ("by k  sequence any within 10m { a: A  c: C }", "00:10:00"),
}


@pytest.mark.parametrize(("rule", "due"), SHOWN.values(), ids=list(SHOWN))
def test_a_run_is_shown_as_due_when_its_time_is_over_and_no_longer(
    cep: Cep, rules: Path, log: Path, rule: str, due: str
) -> None:
    rules.write_text(f'rule r {{ {rule}  alert "found" }}')

    def shown_after(*events: tuple[str, str, int]) -> list[dict[str, object]]:
        records = [
            {"time": f"2026-01-01T{at}Z", "type": kind, "k": key} for at, kind, key in events
        ]
        append(log, "".join(json.dumps(record) + "\n" for record in records))
        assert cep("run", rules, log, "--state", "cep.db", "-o", "found.jsonl").code == 0
        return cep("state", "show", "--state", "cep.db", "--json").records

    log.write_text("")
    [row] = shown_after(("00:00:00", "A", 1))
    assert (row["due"], row["runs"]) == (f"2026-01-01T{due}Z", 1)
    [row] = shown_after(("00:09:59.999999", "X", 1), ("00:10:00", "X", 1))
    assert (row["due"], row["runs"]) == (f"2026-01-01T{due}Z", 1)
    assert shown_after(("00:10:00.000001", "X", 1), ("00:10:01", "X", 1)) == []
    told = cep("state", "show", "--state", "cep.db").out
    assert "00:1" not in told.split("\n", 1)[1]
    gone = cep("state", "show", "--state", "cep.db", "--key", "1")
    assert "there is no key 1" in gone.err


def test_the_last_of_several_runs_says_how_long_a_key_lives(
    cep: Cep, rules: Path, log: Path
) -> None:
    rules.write_text('rule r { by k  sequence within 10m { a: A  b: B }  alert "found" }')
    times = ("00:00", "00:05", "00:12")
    log.write_text(
        "".join(
            json.dumps({"time": f"2026-01-01T00:{at}Z", "type": "A", "k": 1}) + "\n" for at in times
        )
    )
    cep("run", rules, log, "--state", "cep.db", "-o", "found.jsonl")
    [row] = cep("state", "show", "--state", "cep.db", "--json").records
    assert row["due"] == "2026-01-01T00:10:12Z"


def test_a_longer_time_is_shown_once_the_rule_has_it(cep: Cep, rules: Path, log: Path) -> None:
    text = 'rule r { by k  sequence within 10m { a: A  b: B }  alert "found" }'
    rules.write_text(text)
    log.write_text('{"time": "2026-01-01T00:00:00Z", "type": "A", "k": 1}\n')
    cep("run", rules, log, "--state", "cep.db", "-o", "found.jsonl")
    rules.write_text(text.replace("10m", "1h"))
    append(log, '{"time": "2026-01-01T00:20:00Z", "type": "X"}\n')
    append(log, '{"time": "2026-01-01T00:20:01Z", "type": "X"}\n')
    cep("run", rules, log, "--state", "cep.db", "-o", "found.jsonl")
    [row] = cep("state", "show", "--state", "cep.db", "--json").records
    assert row["due"] == "2026-01-01T01:00:00Z"


def test_an_export_that_is_not_whole_is_refused(cep: Cep, rules: Path, log: Path) -> None:
    log.write_text(line(1, "failure", "ann") + line(2, "failure", "bob"))
    cep("run", rules, log, "--state", "cep.db", "--quiet")
    whole = cep("state", "export", "--state", "cep.db").out.splitlines(keepends=True)
    for kept in (whole[:-1], [*whole[:-2], whole[-1]], whole[:1]):
        Path("part.jsonl").write_text("".join(kept))
        refused = cep("state", "import", "part.jsonl", "--state", "new.db")
        assert refused.code == 2
        assert "the export is not whole" in refused.err
        assert not Path("new.db").exists()
    Path("all.jsonl").write_text("".join(whole))
    assert "2 states imported" in cep("state", "import", "all.jsonl", "--state", "new.db").err


def test_a_rule_that_is_not_there_expires_nothing(cep: Cep, rules: Path, log: Path) -> None:
    cep("run", rules, log, "--state", "cep.db", "--quiet")
    told = cep("state", "expire", "--state", "cep.db", "--older-than", "1h", "--rule", "gessed")
    assert told.code == 2
    assert "there is of: guessed" in told.err


@pytest.mark.parametrize("ending", ["jsonl", "csv", "db"])
def test_matches_of_a_run_are_those_of_a_replay(
    cep: Cep, rules: Path, log: Path, ending: str
) -> None:
    written = f"found.{ending}"
    cep("run", rules, log, "--state", "cep.db", "--quiet", "-o", written)
    same = cep("verify", rules, log, written)
    assert (same.code, same.err) == (0, "1 match the same, 0 missing, 0 extra\n")
    log.write_text("".join(log.read_text().splitlines(keepends=True)[:-2]))
    told = cep("verify", rules, log, written)
    assert told.code == 1
    assert "error: extra: id " in told.err
    assert "0 matches the same, 0 missing, 1 extra" in told.err


def test_a_match_that_is_missing_is_told(cep: Cep, rules: Path, log: Path) -> None:
    Path("found.jsonl").write_text("")
    told = cep("verify", rules, log, "found.jsonl")
    assert told.code == 1
    assert "missing: guessed 2026-01-01T" in told.err
    assert "user=ann" in told.err
    for none in (rules, "nowhere.db", "nowhere.jsonl"):
        assert "holds no matches" in cep("verify", rules, log, none).err
    assert "last the file of the matches" in cep("verify", rules, "found.jsonl").err
