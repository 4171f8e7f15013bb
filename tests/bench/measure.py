"""How times are taken: processor time, contenders in turn, the median.

In: contenders, each a function that prepares a run and gives the work to be timed. Out: for each
the median of its seconds, and what the work found. The collector is on, as in any host program;
what was there before is frozen, so that no contender pays for the events in memory.
"""

from __future__ import annotations

import gc
import os
import signal
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from types import FrameType
from typing import NoReturn

Work = Callable[[], int]
Prepare = Callable[[], Work]


@dataclass(frozen=True, slots=True)
class Measured:
    """Median of the processor seconds, and the number that the work gave back."""

    seconds: float
    found: int


@contextmanager
def _settled_collector() -> Iterator[None]:
    gc.collect()
    gc.freeze()
    try:
        yield
    finally:
        gc.unfreeze()


def once(work: Work) -> Measured:
    """One run of the work."""
    with _settled_collector():
        start = time.process_time()
        found = work()
        return Measured(time.process_time() - start, found)


class _GivenUp(BaseException):
    """Not an Exception, so that nothing on the way takes it for a fault of its own."""


def patiently(work: Work, seconds: float) -> Measured | None:
    """One run of the work, or None when it takes more than so many seconds (of the clock on the
    wall: a timer of processor time makes `process_time` coarse)."""
    before = signal.signal(signal.SIGALRM, _give_up)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        return once(work)
    except _GivenUp:
        return None
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def _give_up(number: int, frame: FrameType | None) -> NoReturn:
    raise _GivenUp


def in_turn(contenders: Mapping[str, Prepare], repetitions: int) -> dict[str, Measured]:
    """All contenders one after the other, as often as asked; raises ValueError where one of them
    does not find the same every time."""
    runs: dict[str, list[Measured]] = {name: [] for name in contenders}
    for _ in range(repetitions):
        for name, prepare in contenders.items():
            runs[name].append(once(prepare()))
    return {name: _median(name, done) for name, done in runs.items()}


def _median(name: str, runs: list[Measured]) -> Measured:
    if len({run.found for run in runs}) > 1:
        raise ValueError(f"{name} found different numbers: {[run.found for run in runs]}")
    return Measured(statistics.median(run.seconds for run in runs), runs[0].found)


def command_seconds(arguments: list[str], repetitions: int) -> float:
    """Median of the processor time that a Python process takes from start to end."""
    return statistics.median(_one_command(arguments) for _ in range(repetitions))


def _one_command(arguments: list[str]) -> float:
    process = subprocess.Popen(
        [sys.executable, *arguments], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise ValueError(f"{' '.join(arguments)} ended with {process.returncode}")
    return usage.ru_utime + usage.ru_stime


def resident_bytes() -> int:
    """The memory that the process holds now."""
    with open("/proc/self/statm", encoding="ascii") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")
