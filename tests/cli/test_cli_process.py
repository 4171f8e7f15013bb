"""`cep` as a process of its own: pipes that close, signals, files that grow, terminals."""

from __future__ import annotations

import json
import os
import pty
import re
import select
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from cli_samples import LOG, ROOT, line

from cep.cli.exits import INTERRUPTED, PIPE_CLOSED, TERMINATED

Start = Callable[..., subprocess.Popen[bytes]]

ENOUGH = 20
"""Seconds after which something is broken."""


def test_a_closed_pipe_ends_quietly(process: Start, tmp_path: Path) -> None:
    (tmp_path / "all.cep").write_text('rule all { on login  alert "hi" }\n')
    (tmp_path / "log.jsonl").write_text(line(0, "failure") * 200_000)
    child = process("run", "all.cep", "log.jsonl")
    assert child.stdout is not None
    assert child.stderr is not None
    assert child.stdout.readline().startswith(b"{")
    child.stdout.close()
    assert child.wait(ENOUGH) == PIPE_CLOSED
    assert child.stderr.read() == b""


def test_head_of_a_listing_ends_quietly(tmp_path: Path) -> None:
    done = subprocess.run(
        f"{sys.executable} -m cep functions | head -1",
        shell=True,
        cwd=ROOT,
        capture_output=True,
        text=True,
    )
    assert done.stdout == "Text\n"
    assert done.stderr == ""


def _wait_for(condition: Callable[[], bool]) -> None:
    """Wait until it holds; fail if it does not in time."""
    end = time.monotonic() + ENOUGH
    while not condition():
        assert time.monotonic() < end, "it did not happen in time"
        time.sleep(0.02)


@pytest.mark.parametrize(
    ("number", "code"), [(signal.SIGINT, INTERRUPTED), (signal.SIGTERM, TERMINATED)]
)
def test_a_signal_ends_a_run_with_its_matches_written(
    process: Start, rules: Path, tmp_path: Path, number: int, code: int
) -> None:
    found = tmp_path / "found.jsonl"
    child = process("run", rules, "-", "-o", found)
    assert child.stdin is not None
    child.stdin.write(LOG.encode())
    child.stdin.flush()
    _wait_for(lambda: found.exists() and found.stat().st_size > 0)
    child.send_signal(number)
    _, err = child.communicate(timeout=ENOUGH)
    assert child.returncode == code
    assert b"Traceback" not in err
    assert b" 1 match, " in err
    assert json.loads(found.read_text())["rule"] == "guessed"


@pytest.mark.parametrize(("idle", "told"), [("", 1), ("stream event { idle 1h }", 0)])
def test_follow_says_once_that_absences_wait_for_events(
    process: Start, tmp_path: Path, idle: str, told: int
) -> None:
    log, found = tmp_path / "log.jsonl", tmp_path / "found.jsonl"
    log.write_text(LOG)
    (tmp_path / "r.cep").write_text(f"{idle} rule r {{ sequence {{ a: login  no x within 1h }} }}")
    child = process("run", "r.cep", log, "--follow", "-o", found)
    _wait_for(found.exists)
    child.send_signal(signal.SIGINT)
    _, err = child.communicate(timeout=ENOUGH)
    assert err.count(b"`stream event { idle 30s }`") == told


@pytest.mark.parametrize(
    ("number", "code"), [(signal.SIGINT, INTERRUPTED), (signal.SIGTERM, TERMINATED)]
)
def test_follow_takes_what_is_added_until_the_signal(
    process: Start, rules: Path, tmp_path: Path, number: int, code: int
) -> None:
    log, found = tmp_path / "log.jsonl", tmp_path / "found.jsonl"
    first, *rest = LOG.splitlines(keepends=True)
    log.write_text(first)
    child = process("run", rules, log, "--follow", "-o", found)
    _wait_for(found.exists)
    with log.open("a") as file:
        for text in rest:
            file.write(text)
            file.flush()
            time.sleep(0.05)
    _wait_for(lambda: found.stat().st_size > 0)
    child.send_signal(number)
    _, err = child.communicate(timeout=ENOUGH)
    assert child.returncode == code
    assert b"Traceback" not in err
    assert b"4 events, 1 match, " in err


def test_follow_goes_over_to_the_new_file_when_the_log_is_rotated(
    process: Start, rules: Path, tmp_path: Path
) -> None:
    log, found = tmp_path / "log.jsonl", tmp_path / "found.jsonl"
    lines = LOG.splitlines(keepends=True)
    log.write_text("".join(lines[:2]))
    child = process("run", rules, log, "--follow", "-o", found)
    _wait_for(found.exists)
    time.sleep(0.5)
    log.rename(tmp_path / "log.jsonl.1")
    log.write_text("".join(lines[2:]))
    _wait_for(lambda: found.stat().st_size > 0)
    child.send_signal(signal.SIGINT)
    child.communicate(timeout=ENOUGH)
    assert child.returncode == INTERRUPTED


# ---------------------------------------------------------------------- terminals


def _on_terminal(folder: Path, *arguments: object, **environment: str) -> tuple[int, str]:
    """Run `cep` with a terminal for all its streams; exit code and what stood on it."""
    master, slave = pty.openpty()
    child = subprocess.Popen(
        [sys.executable, "-m", "cep", *map(str, arguments)],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(ROOT), "TERM": "xterm-256color", **environment},
        stdin=slave,
        stdout=slave,
        stderr=slave,
        start_new_session=True,
    )
    os.close(slave)
    shown = b""
    while select.select([master], [], [], ENOUGH)[0]:
        try:
            data = os.read(master, 65536)
        except OSError:
            break
        if not data:
            break
        shown += data
    os.close(master)
    return child.wait(ENOUGH), shown.decode()


def test_on_a_terminal_a_match_is_a_coloured_line(rules: Path, log: Path, tmp_path: Path) -> None:
    code, shown = _on_terminal(tmp_path, "run", rules, log)
    assert code == 0
    assert "\x1b[31mhigh" in shown
    plain = re.sub(r"\x1b\[[0-9;?]*[a-zA-Z]", "", shown)
    assert "2026-01-01 00:00:30Z  high      guessed  ann: 3 failures, then success" in plain
    assert "4 events, 1 match, " in plain


def test_no_color(rules: Path, log: Path, tmp_path: Path) -> None:
    _, shown = _on_terminal(tmp_path, "run", rules, log, NO_COLOR="1")
    assert "2026-01-01 00:00:30Z  high      guessed  ann: 3 failures, then success" in shown
    assert not re.search(r"\x1b\[[0-9;]*m", shown)


def test_quiet_shows_only_matches(rules: Path, log: Path, tmp_path: Path) -> None:
    _, shown = _on_terminal(tmp_path, "run", rules, log, "--quiet", NO_COLOR="1")
    assert shown.replace("\r\n", "\n") == (
        "2026-01-01 00:00:30Z  high      guessed  ann: 3 failures, then success\n"
    )


def test_progress_is_shown_while_it_reads(rules: Path, tmp_path: Path) -> None:
    (tmp_path / "log.jsonl").write_text(line(0, "failure") * 300_000)
    _, shown = _on_terminal(tmp_path, "run", rules, "log.jsonl")
    assert re.search(r"[\d,]+ events  [\d,]+/s  [\d,]+ match", shown)
    assert "%" in shown


def test_without_an_input_on_a_terminal_it_does_not_wait(rules: Path, tmp_path: Path) -> None:
    code, shown = _on_terminal(tmp_path, "run", rules)
    assert code == 2
    assert "no input: name a file, or pipe one in" in shown


def test_diagnostics_are_coloured_for_people(tmp_path: Path) -> None:
    (tmp_path / "bad.cep").write_text("rule {")
    code, shown = _on_terminal(tmp_path, "check", "bad.cep")
    assert code == 1
    assert "\x1b[1;31merror" in shown
