"""Work that is meant to hurt: rules and events whose runs would multiply, each in its own process.

In: how many events. Out: for each case a row with the time of an event and one with the peak of
memory. Right is what costs at most ten times an event of W2 and 500 MB, or what a cap has stopped,
which the row says. The collector is set as `cep run` sets it. A case that takes too long is ended
after `PATIENCE` seconds: its time is that of the events by then.

`python -m tests.bench.hostile CASE EVENTS` runs one case and prints what it found as JSON.
"""

from __future__ import annotations

import gc
import os
import random
import resource
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import msgspec

from cep.cli.session import rare_collection

from . import questions
from .engines import made
from .results import Row

PATIENCE = 60.0
MOST_BYTES = 500_000_000
MOST_TIMES = 10

Record = dict[str, Any]
Events = Callable[[int], Iterator[Record]]


def _equal(number: int) -> Iterator[Record]:
    return ({"type": "x", "n": 1, "time": i * 1000} for i in range(number))


def _rising(number: int) -> Iterator[Record]:
    return ({"type": "x", "n": i, "time": i * 1000} for i in range(number))


def _falling(number: int) -> Iterator[Record]:
    return ({"type": "x", "n": -i, "time": i * 1000} for i in range(number))


def _random(number: int) -> Iterator[Record]:
    dice = random.Random(1)
    return ({"type": "x", "n": dice.randrange(10**6), "time": i * 1000} for i in range(number))


def _letters(number: int) -> Iterator[Record]:
    dice = random.Random(1)
    for i in range(number):
        amount = dice.random() * 1000
        yield {"type": dice.choice("ABC"), "user": "u", "amount": amount, "time": i * 1000}


def _waves(number: int) -> Iterator[Record]:
    """10,000 keys in a second, then nothing for so long that all of them are over at once."""
    keys, day = 10_000, 86_400_000_000
    for i in range(number):
        yield {"type": "x", "user": f"u{i % keys}", "time": i // keys * day + i % keys * 100}


@dataclass(frozen=True, slots=True)
class Case:
    """A pattern with its clauses, and the events that it gets."""

    pattern: str
    events: Events


_OPTIONAL = " ".join(f"o{i}: x?" for i in range(20))
_PARTS = " ".join(f"p{i}: x" for i in range(8))
_CHOICES = " ".join(f"c{i}: x where n == {i + 5}" for i in range(1000))

CASES = {
    "a+ b+ c+ d+": Case("sequence within 1d { a: x+ b: x+ c: x+ d: x+ } report at minimum", _equal),
    "a+ b+ c+ d+, no end": Case("sequence within 1d { a: x+ b: x+ c: x+ d: x+ z: z }", _equal),
    "a+ b+ c+ d+ on close": Case(
        "sequence within 1d { a: x+ b: x+ c: x+ d: x+ } report on close", _equal
    ),
    "a+ on close": Case("sequence within 1d { a: x+ } report on close", _equal),
    "20 optional steps": Case(f"sequence within 1d {{ s: x {_OPTIONAL} e: x }}", _equal),
    "20 optional steps, no end": Case(f"sequence within 1d {{ s: x {_OPTIONAL} z: z }}", _equal),
    "all of 8": Case(f"all within 1d {{ {_PARTS} }}", _equal),
    "all of 8, no end": Case(f"sequence within 1d {{ all of {{ {_PARTS} }} z: z }}", _equal),
    "1,000 alternatives": Case(f"sequence within 1d {{ s: x one of {{ {_CHOICES} }} }}", _equal),
    "rising loop": Case("sequence within 1d { a: x+ where n > prev(n)  z: z }", _rising),
    "rising loop, random": Case("sequence within 1d { a: x+ where n > prev(n)  z: z }", _random),
    "rising loop, falling": Case("sequence within 1d { a: x+ where n > prev(n)  z: z }", _falling),
    "{1000}, no end": Case("sequence within 1d { a: x{1000}  z: z }", _equal),
    "limit 1000 runs": Case(
        "sequence within 1d { a: x  b: x where n > a.n + 5000000 } limit 1000 runs", _random
    ),
    "one key, a list": Case(
        "by user sequence within 1d { a: A  b: B  c: C where amount > a.amount } skip nothing",
        _letters,
    ),
    "any, one key, a day": Case("sequence any within 1d { a: A  b: B  c: C }", _letters),
    "having refuses": Case(
        "sequence any within 1d { a: A  b: B  c: C } having a.amount > 2000", _letters
    ),
    "10,000 keys end at once": Case("by user sequence within 1h { a: x  z: z }", _waves),
    "10,000 absences at once": Case("by user sequence { a: x  no z within 1h }", _waves),
    "on timeout": Case('sequence within 10s { a: x  z: z } on timeout { alert "late" }', _equal),
}


class Outcome(msgspec.Struct):
    """What one case took: microseconds an event, bytes above those at the start."""

    events: int
    micros: float
    bytes: int
    found: int
    stopped: int


def measure(case: Case, number: int) -> Outcome:
    """Runs a case in this process. The events come in small batches, as from a live source."""
    rules = questions.load(f"rule r {{ {case.pattern} }}")
    program = rules.program()
    chunks = made(rules, case.events(number), chunk=64)
    gc.collect()
    gc.freeze()
    before = _peak()
    start = time.process_time()
    done = found = 0
    with rare_collection():
        for chunk in chunks:
            program.run(chunk)
            found += len(program.take())
            done += len(chunk)
            if time.process_time() - start > PATIENCE:
                break
    seconds = time.process_time() - start
    (run,) = program.rules
    return Outcome(
        events=done,
        micros=seconds / done * 1e6,
        bytes=_peak() - before,
        found=found,
        stopped=run.dropped + run.untried,
    )


def _peak() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def rows(number: int, dense: float) -> Iterator[Row]:
    """All cases. `dense`: microseconds of an event of W2 here."""
    for name in CASES:
        outcome = _in_a_process(name, number)
        over = outcome.micros > MOST_TIMES * dense or outcome.bytes > MOST_BYTES
        note = ""
        if outcome.events < number:
            note = f"ended after {outcome.events:,} events, {PATIENCE:.0f} s"
        if outcome.stopped:
            note = f"stopped by a cap, which is told {outcome.stopped:,} times; {note}".rstrip("; ")
        yield Row(
            name=f"hostile {name}",
            value=outcome.micros,
            unit="µs/event",
            matches=outcome.found,
            floor=dense,
            ratio=outcome.micros / dense,
            target=f"≤ {MOST_TIMES} × W2 and 500 MB, or a cap",
            ok=not over or outcome.stopped > 0,
            note=note,
        )
        yield Row(name=f"hostile {name}, memory", value=outcome.bytes / 1e6, unit="MB")


def _in_a_process(name: str, number: int) -> Outcome:
    asked = [sys.executable, "-m", "tests.bench.hostile", name, str(number)]
    done = subprocess.run(asked, stdout=subprocess.PIPE, check=True, env=os.environ)
    return msgspec.json.decode(done.stdout, type=Outcome)


if __name__ == "__main__":
    sys.stdout.write(msgspec.json.encode(measure(CASES[sys.argv[1]], int(sys.argv[2]))).decode())
