"""Many keys that appear once, through every kind of rule: in the end nothing is left.

`python tests/state/soak.py [KEYS]` prints what was measured; a million keys unless said otherwise.
"""

from __future__ import annotations

import gc
import sys
import time
from dataclasses import dataclass

import cep

START = 1_700_000_000


@dataclass(frozen=True)
class Found:
    """What a soak has measured: things that are left at the end, and bytes of objects that Python
    knows, after a third and at the end of the events."""

    left: int
    early: int
    later: int


def soak(keys: int, rules: str | None = None) -> Found:
    """Plays `keys` keys, ten a second of event time; each rule remembers a key for a minute."""
    if rules is None:
        from test_bounds import EVERY_KIND as rules
    engine = cep.Engine(cep.loads(rules))
    early = 0
    for at in range(0, keys, 1000):
        lines = [
            f'{{"type":"A","time":{START + i / 10},"k":"k{i}","n":{i % 7}}}'.encode()
            for i in range(at, min(at + 1000, keys))
        ]
        engine.process(lines)
        if early == 0 and at >= keys // 3:
            early = _held()
    later = _held()
    engine.advance_to((START + keys + 10_000) * 1_000_000)
    for rule in engine.program.rules:
        rule.check()
    return Found(_left(engine), early, later)


def _held() -> int:
    """Blocks of memory that Python has given out."""
    gc.collect()
    return sys.getallocatedblocks()


def _left(engine: cep.Engine) -> int:
    """Everything that the engine still remembers."""
    program = engine.program
    left = sum(len(rule.states) for rule in program.rules)
    left += sum(len(d.windows) for rule in program.rules for d in (rule.dedups or {}).values())
    left += sum(len(repeats.windows) for repeats in program.repeats.values())
    left += sum(len(getattr(table, "rows", ())) for table in program.tables.values())
    return left + len(program.timers._pending)


if __name__ == "__main__":
    number = int(sys.argv[1]) if len(sys.argv) > 1 else 1_000_000
    began = time.perf_counter()
    found = soak(number)
    print(f"{number:,} keys in {time.perf_counter() - began:.0f} s; left: {found.left}")
    print(f"blocks of memory after a third: {found.early:,}; at the end: {found.later:,}")
    sys.exit(1 if found.left else 0)
