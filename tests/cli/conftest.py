"""How the tests call the command line: in this process, with what it printed and its exit code."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from cep.cli.main import run

ROOT = Path(__file__).resolve().parents[2]


@dataclass(frozen=True)
class Outcome:
    """What a call of `cep` left."""

    code: int
    out: str
    err: str

    @property
    def records(self) -> list[dict[str, Any]]:
        """Standard output as JSON lines."""
        return [json.loads(line) for line in self.out.splitlines()]


Cep = Callable[..., Outcome]


@pytest.fixture
def cep(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> Cep:
    """Call `cep` in this process, in an empty folder: `cep("run", "a.cep", stdin="{}")`."""
    monkeypatch.chdir(tmp_path)
    for name in ("NO_COLOR", "CEP_DEBUG"):
        monkeypatch.delenv(name, raising=False)

    def call(*arguments: object, stdin: str | bytes = "") -> Outcome:
        data = stdin.encode() if isinstance(stdin, str) else stdin
        read, write = os.pipe()
        with open(write, "wb") as file:
            file.write(data)
        with open(read) as text:
            monkeypatch.setattr(sys, "stdin", text)
            capfd.readouterr()
            code = run([str(argument) for argument in arguments])
        sys.stdout.flush()
        printed = capfd.readouterr()
        return Outcome(code, printed.out, printed.err)

    return call


@pytest.fixture
def process(tmp_path: Path) -> Callable[..., subprocess.Popen[bytes]]:
    """Start `cep` as a process of its own, with pipes."""

    def start(*arguments: object, **options: Any) -> subprocess.Popen[bytes]:
        pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
        return subprocess.Popen(
            [sys.executable, "-m", "cep", *map(str, arguments)],
            cwd=tmp_path,
            env={**os.environ, "PYTHONPATH": str(ROOT)},
            **{**pipes, **options},
        )

    return start


RULES = """\
stream login { where type == "login" }

rule guessed "Guessing that worked" {
  severity high   tags attack.t1110
  by user
  sequence within 10m {
    fail: login{3,} where outcome == "failure"
    ok: login where outcome == "success"
  }
  alert "{user}: {count(fail)} failures, then success"
}

test guessed "fires" {
  login { user: "ann", outcome: "failure" } times 3 every 10s
  login { user: "ann", outcome: "success" }
  expect guessed { user: "ann", fail: 3 }
}
"""


def line(second: int, outcome: str, user: str = "ann", **more: object) -> str:
    """One login as a JSON line, `second` seconds after the start of 2026."""
    record = {
        "type": "login",
        "time": f"2026-01-01T00:{second // 60:02}:{second % 60:02}Z",
        "user": user,
        "outcome": outcome,
    }
    return json.dumps({**record, **more}) + "\n"


LOG = "".join(line(second, "failure") for second in (0, 10, 20)) + line(30, "success")


@pytest.fixture
def rules(tmp_path: Path) -> Path:
    """A file with one rule and its test."""
    path = tmp_path / "rules.cep"
    path.write_text(RULES)
    return path


@pytest.fixture
def log(tmp_path: Path) -> Path:
    """A log in which the rule finds one match."""
    path = tmp_path / "log.jsonl"
    path.write_text(LOG)
    return path


__all__ = ["LOG", "ROOT", "RULES", "Cep", "Outcome", "line"]
