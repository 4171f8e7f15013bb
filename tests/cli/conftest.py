"""How the tests call the command line: in this process, with what it printed and its exit code."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from cli_samples import LOG, ROOT, RULES, Cep, Outcome

from cep.cli.main import run


@pytest.fixture
def cep(
    tmp_path: Path,
    tmp_path_factory: pytest.TempPathFactory,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> Cep:
    """Call `cep` in this process, in an empty folder: `cep("run", "a.cep", stdin="{}")`."""
    monkeypatch.chdir(tmp_path)
    standard_input = tmp_path_factory.mktemp("stdin") / "data"
    for name in ("NO_COLOR", "CEP_DEBUG"):
        monkeypatch.delenv(name, raising=False)

    def call(*arguments: object, stdin: str | bytes = "") -> Outcome:
        standard_input.write_bytes(stdin.encode() if isinstance(stdin, str) else stdin)
        with standard_input.open() as text:
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
