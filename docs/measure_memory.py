"""Measures what runs, windows and tables hold in memory, and writes it into guide/costs.md.

In: small rules, each with events that differ in what is counted. Out: the table of the page, bytes
for each of those events; the line of an event has about a hundred bytes, and is part of it where it
is kept. The numbers differ a little between versions of Python.

    python docs/measure_memory.py
"""

from __future__ import annotations

import gc
import re
import sys
import tracemalloc
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

DOCS = Path(__file__).resolve().parent
sys.path.insert(0, str(DOCS.parent))

import cep  # noqa: E402

COUNT = 20_000
PAGE = DOCS / "guide" / "costs.md"
TABLE = re.compile(r"(?<=<!-- measured by docs/measure_memory.py -->\n).*?(?=\n\n|\Z)", re.S)


@dataclass(frozen=True)
class Case:
    """A thing that costs memory: events of `rule` of which each adds one."""

    what: str
    rule: str
    user: Callable[[int], int]


def many_keys(number: int) -> int:
    return number


def one_key(number: int) -> int:
    return 1


CASES = (
    Case("a key with one run", "sequence within 1d { a: A  b: B }", many_keys),
    Case("a further run of the key, kept as a group", "sequence within 1d { a: A  b: B }", one_key),
    Case(
        "a further run of the key, found by a value",
        "sequence within 1d { a: A  b: B where n == a.n }",
        one_key,
    ),
    Case(
        "a further run of the key, kept by itself",
        "sequence within 1d { a: A  b: B where n > a.n }",
        one_key,
    ),
    Case("a further event of a loop", "sequence within 1d { a: A{5,}  b: B }", one_key),
    Case("a key that waits for an absence", "sequence { a: A  no B within 1d }", many_keys),
    Case(
        "a key with a sliding window",
        "aggregate A over sliding 1d { c = count() }  having c > 5",
        many_keys,
    ),
    Case(
        "a further event in a sliding `count()`",
        "aggregate A over sliding 1d { c = count() }  having c > 5",
        one_key,
    ),
    Case(
        "a further event in a sliding `avg`",
        "aggregate A over sliding 1d { c = avg(n) }  having c < 0",
        one_key,
    ),
    Case(
        "a further event in a tumbling `avg`",
        "aggregate A over tumbling 1d { c = avg(n) }",
        one_key,
    ),
    Case("a key that `dedup` remembers", "on A  emit found { x = 1 }  dedup for 1d", many_keys),
)


def bytes_each(case: Case) -> float:
    """What an event of the case adds."""
    engine = cep.Engine(cep.loads(f"rule r {{ by user  {case.rule} }}"))
    engine.process([event(case, n) for n in range(1000)])
    gc.collect()
    tracemalloc.start()
    try:
        engine.process(event(case, n) for n in range(1000, 1000 + COUNT))
        gc.collect()
        return tracemalloc.get_traced_memory()[0] / COUNT
    finally:
        tracemalloc.stop()


def event(case: Case, number: int) -> bytes:
    return (
        b'{"type":"A","time":"2026-01-01T00:00:%09.6fZ","user":%d,"n":%d,"ip":"203.0.113.%d"}'
        % (number / 1000, case.user(number), number, number % 250)
    )


def table() -> str:
    rows = [f"| {case.what} | {round(bytes_each(case), -1):,.0f} |" for case in CASES]
    return "\n".join(["| one more | bytes |", "| --- | ---: |", *rows])


def main() -> None:
    page = PAGE.read_text(encoding="utf-8")
    PAGE.write_text(TABLE.sub(lambda _: table(), page, count=1), encoding="utf-8")


if __name__ == "__main__":
    main()
