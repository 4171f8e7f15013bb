"""Events, runs and matches are no cycles: what is over is freed at once, without the collector."""

from __future__ import annotations

import gc
import random
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import cep

RULES = """
rule list {
  by user
  sequence within 1h { a: A  b: B  c: C where amount > a.amount }
  skip nothing
  alert "{a.user}"
}
rule strict_row {
  by user
  sequence strict { t: event{3} where amount > prev(amount) }
  keep 1d
  skip nothing
}
rule every { by user  sequence any within 5m { a: A  b: B  c: C }  skip nothing }
rule loop {
  by user
  sequence within 1h { a: A+ where amount > prev(amount)  b: B }
  on timeout { alert "late" }
  dedup for 1m
}
rule closing { by user  sequence within 5m { a: A+  b: B+ }  report on close }
rule quiet { by user  sequence { a: A  no C within 10m }  emit D { n = 1 } }
rule sliding {
  by user
  aggregate event over sliding 5m { n = count()  m = max(amount)  p = percentile(amount, 0.9) }
  having n > 3
  alert
}
rule session {
  by user
  aggregate event over session gap 5m { n = count()  d = count(distinct type) }
  alert
}
rule parts { by user  all within 1h { a: A  b: B  c: C }  having a.amount > 2 }
rule failing { on A where num(user) > 1 or amount / 0 > 1  alert }
rule after { on D  alert "{user}" }
"""


def _events(first: int, end: int) -> Iterator[dict[str, Any]]:
    dice = random.Random(first)
    for i in range(first, end):
        yield {"type": dice.choice("ABC"), "user": f"u{dice.randrange(20)}"} | {
            "amount": dice.random() * 100,
            "time": 1_700_000_000_000_000 + i * 5_000_000,
        }


def _garbage_in_cycles() -> tuple[int, int]:
    """How many matches were found, and how many objects in cycles became garbage meanwhile."""
    engine = cep.Engine(cep.loads(RULES))
    for event in _events(0, 300):
        engine.process(event)
    gc.collect()
    gc.set_debug(gc.DEBUG_SAVEALL)
    found = 0
    for event in _events(300, 1500):
        for match in engine.process(event):
            match.to_dict()
            found += 1
    gc.collect()
    return found, len(gc.garbage)


def test_nothing_that_runs_make_is_a_cycle() -> None:
    """In a process of its own, where no other test leaves garbage."""
    done = subprocess.run([sys.executable, __file__], capture_output=True, text=True, check=True)
    found, garbage = map(int, done.stdout.split())
    assert found > 1000
    assert garbage == 0


if __name__ == "__main__":
    print(*_garbage_in_cycles())
