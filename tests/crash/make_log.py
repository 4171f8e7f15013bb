"""The log of the crash tests: made by a seed, out of order by less than the rules allow, with some
events that come too late and some lines that are no events."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator

START = 1_700_000_000.0
LATE = 0.003
"""Share of events that come too late."""

BROKEN = 0.002
"""Share of lines that are no events."""


def lines(seed: int, number: int) -> list[str]:
    """`number` lines of JSON, with line ends."""
    rnd = random.Random(seed)
    timed = [(when + _disorder(rnd), event) for when, event in _happened(rnd, number)]
    timed.sort(key=lambda item: item[0])
    return [_line(rnd, event) for _, event in timed]


def _disorder(rnd: random.Random) -> float:
    """How many seconds after it has happened an event arrives."""
    return rnd.uniform(4, 9) if rnd.random() < LATE else rnd.uniform(0, 1.9)


def _line(rnd: random.Random, event: dict[str, object]) -> str:
    text = json.dumps(event)
    return (text[: len(text) // 2] if rnd.random() < BROKEN else text) + "\n"


def _happened(rnd: random.Random, number: int) -> Iterator[tuple[float, dict[str, object]]]:
    """Events with the time at which each has happened."""
    time = START
    for n in range(number):
        time += rnd.expovariate(4)
        event = _event(rnd, n)
        yield time, {**event, "time": round(time, 6), "n": n}


def _event(rnd: random.Random, n: int) -> dict[str, object]:
    kind = rnd.choices(_KINDS, _WEIGHTS)[0]
    user = f"user{rnd.randrange(40)}"
    order = f"o{max(0, n // 20 - rnd.randrange(4))}"
    item = rnd.choice(["tea", "milk", "räksmörgås", 'quoted "bread"'])
    match kind:
        case "login":
            return {"type": kind, "user": user, "ok": rnd.random() < 0.4}
        case "logout":
            return {"type": kind, "user": user}
        case "purchase" | "payment":
            return {"type": kind, "user": user, "order": order, "item": item}
        case "shipment":
            return {"type": kind, "order": order}
        case "price":
            return {"type": kind, "item": item, "amount": rnd.randrange(100)}
        case _:
            return {"type": kind, "host": rnd.randrange(12), "load": rnd.randrange(50)}


_KINDS = ("login", "logout", "purchase", "payment", "shipment", "price", "ping")
_WEIGHTS = (40, 4, 14, 12, 8, 3, 19)
