"""Runs of `cep run` that are killed between two blocks, in this process, and taken up again.

A killed run leaves what a killed process leaves: the state file as the last commit made it, and the
output files with whatever had been written to them.
"""

from __future__ import annotations

import itertools
import json
import random
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from cep.cli.interrupts import Stop
from cep.cli.reloading import Hangup
from cep.cli.session import RunOptions, Session
from cep.ruleset import load

RULES = """
stream event { delay 3s }

rule guessed {
  by user
  sequence within 1m {
    fail: login{2,} where ok == false
    good: login     where ok == true
  }
  alert "{user}: {count(fail)} failures, then success"
  dedup for 10s
}

rule quiet {
  by user
  sequence { last: login where ok == false  no login where ok == true within 5s }
  alert "nothing more from {user}"
}

rule busy {
  by user
  aggregate login over sliding 20s { n = count() }
  having n >= 6
  alert "{user}: {n} sign-ins"
}
"""


class Killed(BaseException):
    """As if the process had ended here."""


def events(seed: int, number: int = 300, start: float = 1_700_000_000.0) -> list[dict[str, Any]]:
    """Sign-ins of three users; a few are later than the delay repairs."""
    rnd, time, made = random.Random(seed), start, []
    for n in range(number):
        time += rnd.random()
        late = rnd.random() * 2.9 if rnd.random() < 0.97 else 6
        user, ok = rnd.choice("abc"), rnd.random() < 0.3
        made.append(
            {"type": "login", "user": user, "ok": ok, "time": round(time - late, 6), "n": n}
        )
    return made


def lines(given: list[dict[str, Any]]) -> str:
    return "".join(json.dumps(event) + "\n" for event in given)


@contextmanager
def small_blocks(size: int = 1500) -> Iterator[None]:
    """While this lasts, files are read in small pieces."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("cep.source.lines.BLOCK", size)
        patch.setattr("cep.source.raw.CHUNK", size)
        yield


def run(folder: Path, *inputs: str, kill_after: int | None = None, **options: Any) -> int:
    """A run in `folder` with the rules there; killed after so many blocks. Gives the exit code."""
    with pytest.MonkeyPatch.context() as patch, small_blocks():
        patch.chdir(folder)
        given = RunOptions(rules=["rules.cep"], inputs=inputs, **{"quiet": True, **options})
        session = Session(load("rules.cep"), given, Stop(), Hangup())
        if kill_after is None:
            return session.run()
        return _run_until(session, kill_after)


def _run_until(session: Session, blocks: int) -> int:
    read = itertools.count(1)
    between: Callable[[], None] = session._between

    def kill() -> None:
        between()
        if next(read) >= blocks:
            raise Killed

    session._between = kill  # type: ignore[method-assign]
    try:
        return session.run()
    except Killed:
        session._engine.abandon()
        return -9


def run_with_kills(folder: Path, *inputs: str, seed: int, **options: Any) -> int:
    """Runs until it comes to the end, killed ever again; gives how often it was killed."""
    rnd = random.Random(seed)
    for kills in itertools.count():
        if run(folder, *inputs, kill_after=rnd.randrange(1, 12), **options) == 0:
            return kills
    raise AssertionError


STATE: dict[str, Any] = {"state": "cep.db", "checkpoint_every": 0}


def records(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines()]
