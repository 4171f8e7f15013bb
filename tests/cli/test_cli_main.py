"""The command line as a whole: help, unknown commands, start-up, faults, the ways it can end."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from cli_samples import ROOT, Cep

from cep.cli import main
from cep.cli.exits import INTERNAL, INTERRUPTED, PIPE_CLOSED, TERMINATED, WRONG_USE
from cep.cli.interrupts import Terminated

HEAVY = ("lark", "rich", "sqlite_utils", "msgspec", "dsl", "cep.engine", "cep.ruleset", "re2")


def test_help_lists_every_command(cep: Cep) -> None:
    outcome = cep("--help")
    assert outcome.code == 0
    assert all(f"\n  {name} " in outcome.out for name in main.COMMANDS)


def test_help_loads_neither_the_language_nor_the_engine() -> None:
    code = f"""
import sys
from cep.cli.main import run
assert run(["--help"]) == 0
heavy = [name for name in {HEAVY!r} if name in sys.modules]
assert not heavy, heavy
"""
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("name", main.COMMANDS)
def test_every_command_has_help(cep: Cep, name: str) -> None:
    outcome = cep(name, "--help")
    assert outcome.code == 0
    assert outcome.out.startswith(f"Usage: cep {name}")


@pytest.mark.parametrize("name", main.COMMANDS)
def test_every_option_is_documented(name: str) -> None:
    page = (ROOT / "docs/reference/command-line.md").read_text()
    command = main.cli.get_command(None, name)  # type: ignore[arg-type]
    assert command is not None
    options = [option for parameter in command.params for option in parameter.opts]
    missing = [option for option in options if option.startswith("-") and option not in page]
    assert not missing
    assert f"## cep {name}" in page


def test_version(cep: Cep) -> None:
    outcome = cep("--version")
    assert outcome.code == 0
    assert outcome.out.startswith("cep ")


def test_no_command_shows_the_help(cep: Cep) -> None:
    outcome = cep()
    assert outcome.code == WRONG_USE
    assert "Commands:" in outcome.err + outcome.out


@pytest.mark.parametrize(
    ("word", "hint"),
    [
        ("chek", "did you mean `cep check`?"),
        ("my.cep", "cep run my.cep INPUT"),
        ("xyzzy", "`cep --help` lists them"),
    ],
)
def test_an_unknown_command_gets_a_hint(cep: Cep, word: str, hint: str) -> None:
    outcome = cep(word)
    assert outcome.code == WRONG_USE
    assert hint in outcome.err


def test_an_unknown_option_is_wrong_use(cep: Cep) -> None:
    outcome = cep("functions", "--nonsense")
    assert outcome.code == WRONG_USE
    assert "No such option" in outcome.err


class Faulty:
    """A command that raises what it is told."""

    def __init__(self, fault: BaseException) -> None:
        self.fault = fault

    def main(self, *_arguments: object, **_options: object) -> None:
        raise self.fault


@pytest.mark.parametrize(
    ("fault", "code"),
    [
        (KeyboardInterrupt(), INTERRUPTED),
        (Terminated(), TERMINATED),
        (BrokenPipeError(), PIPE_CLOSED),
        (PermissionError(13, "Permission denied", "x.cep"), WRONG_USE),
        (RuntimeError("boom"), INTERNAL),
        (RecursionError("too deep"), INTERNAL),
        (MemoryError(), WRONG_USE),
    ],
)
def test_no_fault_shows_a_traceback(
    cep: Cep, monkeypatch: pytest.MonkeyPatch, fault: BaseException, code: int
) -> None:
    monkeypatch.setattr(main, "cli", Faulty(fault))
    outcome = cep("run")
    assert outcome.code == code
    assert "Traceback" not in outcome.err


def test_an_internal_fault_says_what_to_do(cep: Cep, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(main, "cli", Faulty(RuntimeError("boom")))
    outcome = cep("run")
    assert "RuntimeError: boom" in outcome.err
    assert "CEP_DEBUG=1" in outcome.err


def test_cep_debug_shows_the_traceback(cep: Cep, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(main, "cli", Faulty(RuntimeError("boom")))
    monkeypatch.setenv("CEP_DEBUG", "1")
    outcome = cep("run")
    assert outcome.code == INTERNAL
    assert "Traceback" in outcome.err


def test_python_m_cep_is_the_command() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "cep", "--version"], cwd=ROOT, capture_output=True, text=True
    )
    assert done.stdout.startswith("cep ")


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion_prints_a_script(cep: Cep, shell: str) -> None:
    outcome = cep("completion", shell)
    assert outcome.code == 0
    assert "_CEP_COMPLETE" in outcome.out


def test_completion_of_an_unknown_shell(cep: Cep) -> None:
    assert cep("completion", "tcsh").code == WRONG_USE


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ("cep ch", "plain,check"),
        ("cep run pack:s", "plain,pack:security"),
        ("cep check --exp", "plain,--explain"),
        ("cep check mine", "file,mine"),
        ("cep completion z", "plain,zsh"),
    ],
)
def test_the_shell_is_told_what_fits(words: str, expected: str) -> None:
    position = str(len(words.split()) - 1)
    done = subprocess.run(
        [sys.executable, "-c", "from cep.cli.main import main; main()"],
        cwd=ROOT,
        env={
            **os.environ,
            "_CEP_COMPLETE": "bash_complete",
            "COMP_WORDS": words,
            "COMP_CWORD": position,
        },
        capture_output=True,
        text=True,
    )
    assert expected in done.stdout.splitlines()


def test_functions_lists_all_under_headings(cep: Cep) -> None:
    outcome = cep("functions")
    assert outcome.code == 0
    assert "\nNumbers\n" in outcome.out
    assert "haversine_km(" in outcome.out


def test_functions_explains_one(cep: Cep) -> None:
    outcome = cep("functions", "substr")
    assert outcome.out.startswith("substr(string, int, [int]) -> string\n  Text\n")
    assert "Example: substr(" in outcome.out


def test_functions_hints_at_a_near_name(cep: Cep) -> None:
    outcome = cep("functions", "lowr")
    assert outcome.code == WRONG_USE
    assert outcome.err == "error: no function `lowr`; did you mean `lower`?\n"


def test_start_up_is_quick(tmp_path: Path) -> None:
    """Not a benchmark: only far from the second that loading everything would take."""
    import time

    started = time.perf_counter()
    subprocess.run([sys.executable, "-m", "cep", "--help"], cwd=ROOT, capture_output=True)
    assert time.perf_counter() - started < 2
