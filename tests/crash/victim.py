"""A process that is going to be killed: runs `cep` with its arguments, or the host program below.

In: the arguments, and in the environment how it is to be caught. Two ways, so that kills fall at
any moment and also where a fault would hurt most:

* on the signal USR1 it writes to the pipe `VICTIM_PIPE` where each of its threads is, and goes on;
  whoever sent it kills it as soon as that has come;
* with `VICTIM_AT=part:n:stay` it counts the lines that run in a part of the product (`PARTS`); at
  the n-th it says so on the pipe and stands still there until it is killed, or (`go`) runs on.

With `VICTIM_CLOCK`, a seed, the clock of the machine jumps for it, back and forth. With
`VICTIM_SYNCS` it notes in that file which lengths of files have been forced to the disk.

The product itself knows nothing of this.
"""

from __future__ import annotations

import faulthandler
import os
import random
import signal
import sys
import threading
import time
from pathlib import Path
from types import FrameType
from typing import Any

ROOT = Path(__file__).parents[2]

PARTS = {
    "checkpoint": ("cep/keeper.py", "cep/state/checkpoint.py"),
    "open": ("cep/state/sqlite/", "cep/state/lock.py"),
    "commit": ("cep/state/sqlite/writing.py", "cep/state/handover.py"),
    "sink": ("cep/sink/",),
    "encode": ("cep/state/codec.py", "cep/state/snapshot.py", "cep/state/values.py"),
    "source": ("cep/source/", "cep/clock/"),
    "run": (
        "cep/engine.py",
        "cep/reading.py",
        "cep/positions.py",
        "cep/cli/session.py",
        "cep/cli/durable.py",
    ),
    "spill": ("cep/spill.py", "cep/runtime/cold.py"),
    "asyncio": ("cep/async_engine.py",),
    "reload": ("cep/cli/reloading.py", "cep/state/change.py", "cep/state/resume.py"),
}
"""Parts of the product in which a kill is tried on purpose, by the beginnings of their paths."""

STANDS_STILL = 30.0
"""Seconds to wait for the kill."""

BLOCK = 1 << 14
"""Bytes that are read at once: less than usual, so that there are more places between blocks."""

_FUNCTION = 1
"""Flag of code that is a function's and not a module's or a class's."""


class Trap:
    """Catches whichever thread comes to the `count`-th line that runs in `part`."""

    def __init__(self, part: str, count: int, stay: bool, pipe: int) -> None:
        self._paths = tuple(f"{ROOT}/{path}" for path in PARTS[part])
        self._left = count
        self._stay = stay
        self._pipe = pipe

    def set(self) -> None:
        """From now on, for this thread and all that come."""
        threading.settrace(self._enter)
        sys.settrace(self._enter)

    def _enter(self, frame: FrameType, event: str, arg: object) -> Any:
        code = frame.f_code
        inside = code.co_flags & _FUNCTION and code.co_filename.startswith(self._paths)
        return self._line if inside else None

    def _line(self, frame: FrameType, event: str, arg: object) -> Any:
        self._left -= 1
        if self._left == 0:
            os.write(self._pipe, _stack(frame).encode())
            time.sleep(STANDS_STILL if self._stay else 0)
        return self._line


def _stack(frame: FrameType | None) -> str:
    """The calls that have led here, the innermost first, as `faulthandler` writes them."""
    calls = []
    while frame is not None:
        code = frame.f_code
        calls.append(f'  File "{code.co_filename}", line {frame.f_lineno} in {code.co_name}\n')
        frame = frame.f_back
    return "".join(calls)


def tell_when_open(pipe: int) -> None:
    """An engine that is ready to work is told of on the pipe."""
    from cep.engine import Engine

    make = Engine.__init__

    def told(*given: Any, **options: Any) -> None:
        make(*given, **options)
        if not told_already:
            told_already.append(True)
            os.write(pipe, b"open\n")

    told_already: list[bool] = []
    Engine.__init__ = told  # type: ignore[method-assign]


def note_syncs(path: str) -> None:
    """From now on each `fsync` of a file is noted there, once it is done."""
    sync = os.fsync

    def noted(file: Any) -> None:
        sync(file)
        number = file if isinstance(file, int) else file.fileno()
        with open(path, "a") as notes:
            name = os.readlink(f"/proc/self/fd/{number}")
            notes.write(f"{os.fstat(number).st_size} {name}\n")

    os.fsync = noted


def disturb_clock(seed: str) -> None:
    """From now on each look at the clock of the machine may be hours before the last one."""
    rnd, look, look_ns = random.Random(seed), time.time, time.time_ns

    def jump() -> int:
        return rnd.choice([0, 0, -3600, -7 * 86400, 3600])

    time.time = lambda: look() + jump()
    time.time_ns = lambda: look_ns() + jump() * 1_000_000_000


def main() -> int:
    """Arms what the environment asks for, then does the work."""
    pipe = int(os.environ["VICTIM_PIPE"])
    faulthandler.enable()
    faulthandler.register(signal.SIGUSR1, file=pipe, all_threads=True, chain=False)
    os.write(pipe, b"armed\n")
    sys.path.insert(0, str(ROOT))
    if seed := os.environ.get("VICTIM_CLOCK"):
        disturb_clock(seed)
    from cep.cli import reloading
    from cep.source import base

    base.BLOCK = BLOCK
    reloading.EVERY = 0.05
    tell_when_open(pipe)
    if syncs := os.environ.get("VICTIM_SYNCS"):
        note_syncs(syncs)
    if trap := os.environ.get("VICTIM_AT"):
        part, count, way = trap.split(":")
        Trap(part, int(count), way == "stay", pipe).set()
    if sys.argv[1] == "host":
        from tests.crash.host import serve

        return serve(*sys.argv[2:])
    from cep.cli.main import run

    return run(sys.argv[1:])


if __name__ == "__main__":
    sys.exit(main())
