"""`cep run` with rules that change: between two runs, and while one goes on."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from cep.cli.main import run

ROOT = Path(__file__).parents[2]
START = 1_700_000_000
PAIR = "rule pair { by u sequence within 1h { a: A  b: B } }\n"
LONGER = "rule pair { by u sequence within 1h { a: A  x: X  b: B } }\n"


def line(type_: str, at: int, user: str = "ann") -> str:
    return json.dumps({"type": type_, "time": START + at, "u": user}) + "\n"


def found(path: str = "out.jsonl") -> list[str]:
    if not Path(path).exists():
        return []
    return [json.loads(text)["rule"] for text in Path(path).read_text().splitlines()]


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)


def cep_run(*more: str) -> int:
    return run(["run", "rules.cep", "log.jsonl", "--state", "cep.db", "-o", "out.jsonl", *more])


def test_run_does_what_the_plan_says_and_reports_it(capfd) -> None:
    Path("rules.cep").write_text(PAIR)
    Path("log.jsonl").write_text(line("A", 1))
    assert cep_run() == 0
    Path("rules.cep").write_text(LONGER)
    Path("log.jsonl").write_text(line("A", 1) + line("B", 2))
    capfd.readouterr()
    assert cep_run() == 0
    assert "pair: changed; the old version finishes its 1 run of 1 key" in capfd.readouterr().err
    assert found() == ["pair"]


def test_restart_drops_the_runs_of_a_rule(capfd) -> None:
    Path("rules.cep").write_text(PAIR)
    Path("log.jsonl").write_text(line("A", 1))
    assert cep_run() == 0
    Path("log.jsonl").write_text(line("A", 1) + line("B", 2))
    capfd.readouterr()
    assert cep_run("--restart", "pair") == 0
    assert "pair: unchanged; starts over: 1 run of 1 key are dropped" in capfd.readouterr().err
    assert found() == []
    assert cep_run("--restart", "none") == 2
    assert run(["run", "rules.cep", "log.jsonl", "--restart", "pair"]) == 2


def test_caps_drop_and_count(capfd) -> None:
    Path("rules.cep").write_text(PAIR)
    Path("log.jsonl").write_text("".join(line("A", i, f"u{i}") for i in range(5000)))
    for cap in (["--max-runs", "1000"], ["--max-state-bytes", "500K"]):
        capfd.readouterr()
        assert run(["run", "rules.cep", "log.jsonl", "--stats", *cap]) == 0
        row = next(text for text in capfd.readouterr().err.splitlines() if "pair" in text)
        assert int(row.split()[4].replace(",", "")) > 2000
    for bad in (["--max-runs", "0"], ["--max-state-bytes", "many"], ["--max-state-bytes", "0"]):
        assert run(["run", "rules.cep", "log.jsonl", *bad]) == 2


def test_reload_and_sort_do_not_go_together() -> None:
    Path("rules.cep").write_text(PAIR)
    Path("log.jsonl").write_text("")
    assert run(["run", "rules.cep", "log.jsonl", "--reload", "--sort"]) == 2


# ---------------------------------------------------------------------------- while it runs


class Following:
    """A `cep run --follow --reload` in a process of its own."""

    def __init__(self, *options: str) -> None:
        Path("log.jsonl").touch()
        command = [sys.executable, "-m", "cep", "run", "rules.cep", "log.jsonl", "--follow"]
        self.err = Path("err.txt").open("wb")  # noqa: SIM115 - closed by `stop`
        self.process = subprocess.Popen(
            [*command, "--reload", "-o", "out.jsonl", *options],
            stderr=self.err,
            env={**os.environ, "PYTHONPATH": str(ROOT)},
        )

    def add(self, *lines: str) -> None:
        with Path("log.jsonl").open("a") as log:
            log.writelines(lines)

    def said(self, text: str) -> None:
        self.wait(lambda: text in Path("err.txt").read_text(), f"`{text}` to be said")

    def reports(self, number: int) -> None:
        self.wait(lambda: len(found()) == number, f"{number} matches")

    def wait(self, ready: Any, what: str) -> None:
        until = time.monotonic() + 30
        while not ready():
            assert self.process.poll() is None, Path("err.txt").read_text()
            assert time.monotonic() < until, f"no {what}: {Path('err.txt').read_text()}"
            time.sleep(0.05)

    def stop(self) -> int:
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
        code = self.process.wait(30)
        self.err.close()
        return code


@pytest.fixture(params=["with state", "without"])
def following(request) -> Iterator[Any]:
    started: list[Following] = []

    def start(rules: str) -> Following:
        Path("rules.cep").write_text(rules)
        state = ["--state", "cep.db", "--checkpoint-every", "50ms"]
        started.append(Following(*(state if request.param == "with state" else [])))
        return started[0]

    yield start
    for each in started:
        each.stop()


def test_a_changed_file_is_loaded_between_two_events(following) -> None:
    running = following(PAIR + "rule b { on B }\n")
    running.add(line("A", 1), line("B", 2), line("A", 3))
    running.reports(2)
    Path("rules.cep").write_text(LONGER)
    running.said("the rules have been loaded again")
    running.said("pair: changed; the old version finishes its 1 run")
    running.said("b: removed")
    running.add(line("A", 4), line("B", 5), line("X", 6), line("B", 7))
    running.reports(4)
    running.stop()
    assert found() == ["pair", "b", "pair", "pair"] or found() == ["b", "pair", "pair", "pair"]
    assert "4 matches" in Path("err.txt").read_text()


@pytest.mark.skipif(not hasattr(signal, "SIGHUP"), reason="no SIGHUP here")
def test_a_broken_file_keeps_the_old_rules(following) -> None:
    running = following(PAIR)
    running.add(line("A", 1), line("B", 2))
    running.reports(1)
    Path("rules.cep").write_text("rule pair { by")
    running.said("the rules go on as they were")
    assert "error" in Path("err.txt").read_text()
    running.add(line("A", 3), line("B", 4))
    running.reports(2)
    Path("rules.cep").write_text("rule b { on B }")
    running.said("the rules have been loaded again")
    os.kill(running.process.pid, signal.SIGHUP)
    running.add(line("B", 5))
    running.reports(3)
    running.wait(lambda: Path("err.txt").read_text().count("loaded again") == 2, "a second reload")
    Path("rules.cep").unlink()
    running.wait(lambda: Path("err.txt").read_text().count("as they were") == 2, "a complaint")
    running.add(line("B", 6))
    running.reports(4)
    Path("rules.cep").write_text("# saved half")
    running.wait(lambda: Path("err.txt").read_text().count("as they were") == 3, "a complaint")
    assert "there are no rules in rules.cep" in Path("err.txt").read_text()
    running.add(line("B", 7))
    running.reports(5)


@pytest.mark.skipif(not hasattr(signal, "SIGHUP"), reason="no SIGHUP here")
def test_a_signal_before_there_are_rules_does_not_end_the_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    from cep.cli import session

    monkeypatch.chdir(tmp_path)
    Path("rules.cep").write_text(PAIR)
    Path("log.jsonl").write_text(line("A", 1) + line("B", 2))
    load = session.rules_to_run

    def hung_up(*arguments: Any, **options: Any) -> Any:
        os.kill(os.getpid(), signal.SIGHUP)
        return load(*arguments, **options)

    monkeypatch.setattr(session, "rules_to_run", hung_up)
    before = signal.getsignal(signal.SIGHUP)
    assert run(["run", "rules.cep", "log.jsonl", "--reload"]) == 0
    shown = capsys.readouterr()
    assert "1 match" in shown.err
    assert "loaded again" in shown.err
    assert signal.getsignal(signal.SIGHUP) is before
