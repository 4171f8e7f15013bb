"""How long a host waits for `engine.process` with one event, and for the collector of garbage.

In: how many keys have runs, and whether they are kept in a file. Out: rows with the median, 99 of
100 and the longest of the calls, and the longest pause of the collector among them. The collector
is set as the guide tells hosts with many keys to set it.
"""

from __future__ import annotations

import gc
import random
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import cep

from . import questions
from .results import Row

RULE = """rule latency {
  by user
  sequence within 1d { a: A  b: B  c: C where amount > a.amount }
  skip nothing
  alert "{a.user}"
}"""
CALLS = 200_000
FILLING = 1_000
MOST_PAUSE = 20_000_000
THRESHOLDS = (20_000, 1_000_000, 1_000_000)


def _record(user: int, kind: str, number: int, amount: float) -> dict[str, Any]:
    return {"type": kind, "user": f"u{user}", "amount": amount, "time": number + 1}


def rows(keys: int, *, durable: bool) -> Iterator[Row]:
    """The calls after so many keys have a run each; one in three goes on with one of them."""
    with tempfile.TemporaryDirectory() as folder, rarely_collected():
        state = Path(folder, "latency.state") if durable else None
        with cep.Engine(questions.load(RULE), state=state) as engine:
            for first in range(0, keys, FILLING):
                engine.process([_record(n, "A", n, 1.0) for n in range(first, first + FILLING)])
            gc.freeze()
            waits, pauses = _calls(engine, keys)
            gc.unfreeze()
    kept = "with state" if durable else "without state"
    name = f"process() of one event, {keys:,} keys {kept}"
    waits.sort()
    for said, place in (("median", 0.5), ("99 of 100", 0.99), ("longest", 1.0)):
        wait = waits[min(int(len(waits) * place), len(waits) - 1)]
        yield Row(name=f"{name}, {said}", value=wait / 1000, unit="µs")
    longest = max(pauses, default=0)
    yield Row(
        name=f"{name}, collector",
        value=longest / 1000,
        unit="µs",
        target="≤ 20 ms",
        ok=longest <= MOST_PAUSE,
    )


def _calls(engine: cep.Engine, keys: int) -> tuple[list[int], list[int]]:
    """Nanoseconds of each call, and of each search of the collector."""
    dice = random.Random(1)
    records = [
        _record(dice.randrange(keys), dice.choice("ABCDEF"), keys + n, dice.random() * 2)
        for n in range(CALLS)
    ]
    waits, pauses = [], list[int]()
    clock, process = time.perf_counter_ns, engine.process
    with _watched_collector(pauses):
        for record in records:
            start = clock()
            process(record)
            waits.append(clock() - start)
    return waits, pauses


@contextmanager
def rarely_collected() -> Iterator[None]:
    before = gc.get_threshold()
    gc.set_threshold(*THRESHOLDS)
    try:
        yield
    finally:
        gc.set_threshold(*before)


@contextmanager
def _watched_collector(pauses: list[int]) -> Iterator[None]:
    begun = 0

    def watch(phase: str, _: dict[str, int]) -> None:
        nonlocal begun
        now = time.perf_counter_ns()
        if phase == "start":
            begun = now
        else:
            pauses.append(now - begun)

    gc.callbacks.append(watch)
    try:
        yield
    finally:
        gc.callbacks.remove(watch)
