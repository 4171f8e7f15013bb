"""Writes the fixtures of the present format of state: `python tests/state/make_fixtures.py`.

A fixture is a file of JSON: rules, the state after some events, the events that come later, and
the matches that these then give. It is made once for a format and kept for ever: what a released
version has written can be read by every later one. Only what is missing is written.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import cep
from cep.engine import Engine
from cep.state import segments, window_codec
from cep.state.codec import FORMAT, IN_PIECES
from cep.state.memory import MemoryStore
from cep.state.snapshot import snapshot
from cep.testing.modes import outcome

FOLDER = Path(__file__).parent / "fixtures"
BEGIN = 1_767_225_600
"""Seconds: 2026-01-01."""


@dataclass(frozen=True)
class Case:
    """Rules, what comes before the state is kept, and what comes after: events as (second, type,
    fields)."""

    rules: str
    before: list[tuple[int, str, dict[str, Any]]]
    after: list[tuple[int, str, dict[str, Any]]]


CASES = {
    "list": Case(
        """rule r { by user skip nothing sequence within 1m {
          a: A  any b: B where amount > a.amount  c: C where amount > b.amount }
        alert "{user}" { rise = c.amount - a.amount } }""",
        [(0, "A", {"amount": 1.5}), (1, "A", {"amount": 2}), (2, "B", {"amount": 3})],
        [(3, "B", {"amount": 4}), (4, "C", {"amount": 5})],
    ),
    "one": Case(
        """rule r { by user skip nothing sequence within 1m { a: A  b: B+  c: C }
        alert "{user}" { n = count(b) } }""",
        [(0, "A", {}), (1, "A", {}), (2, "B", {}), (3, "A", {})],
        [(4, "B", {}), (5, "C", {})],
    ),
    "hash": Case(
        """rule r { by user skip to next sequence within 1m { a: A  b: B where ip == a.ip }
        alert "{user} {a.ip}" }""",
        [(0, "A", {"ip": "x"}), (1, "A", {"ip": "y"}), (2, "A", {"ip": "x"}), (3, "A", {"ip": 7})],
        [(4, "B", {"ip": "x"}), (5, "B", {"ip": 7.0}), (6, "B", {"ip": "z"})],
    ),
    "single": Case(
        """rule r { by user sequence strict within 1m { a: A{3} where amount > prev(amount) }
        alert "{user}" { last = last(a.amount) } }""",
        [(0, "A", {"amount": 1}), (1, "A", {"amount": 2})],
        [(2, "A", {"amount": 3})],
    ),
    "absence": Case(
        """rule r { by user sequence { a: A  no B within 10s } alert "{user} waits" }""",
        [(0, "A", {}), (2, "A", {})],
        [(20, "Z", {})],
    ),
    "quiet": Case(
        """rule r { by user sequence within 5s { no X within 5s  a: A  b: B } alert "{user}" }""",
        [(0, "X", {})],
        [(4, "A", {}), (5, "B", {}), (20, "A", {}), (21, "B", {})],
    ),
    "timeout": Case(
        """rule r { by user sequence within 5s { a: A  any b: B } skip nothing alert "{user}"
        on timeout { alert "{user} is late" } }""",
        [(0, "A", {}), (1, "B", {}), (2, "A", {})],
        [(20, "Z", {})],
    ),
    "sliding": Case(
        """rule r { by user aggregate A over sliding 10s {
          n = count()  t = sum(amount)  h = max(amount)  d = count(distinct ip)
          p = median(amount) }
        having n >= 3 alert "{user}: {t}" { n = n  h = h  d = d  p = p } }""",
        [(0, "A", {"amount": 0.1, "ip": "x"}), (4, "A", {"amount": 0.2, "ip": True})],
        [(8, "A", {"amount": 0.3, "ip": "x"}), (30, "Z", {})],
    ),
    "tumbling": Case(
        """rule r { by user aggregate A over tumbling 10s { n = count()  l = list(amount) }
        alert "{user}" { n = n  l = l } }""",
        [(0, "A", {"amount": 1}), (9, "A", {"amount": "odd"})],
        [(9, "A", {}), (10, "A", {"amount": 3}), (30, "Z", {})],
    ),
    "hopping": Case(
        """rule r { by user aggregate A over hopping 10s every 3s {
          n = count()  a = avg(amount)  h = max(amount)  l = list(ip) }
        alert "{user}" { n = n  a = a  h = h  l = l } }""",
        [
            (0, "A", {"amount": 1, "ip": "x"}),
            (4, "A", {"amount": 0.5}),
            (7, "A", {"amount": "odd"}),
        ],
        [(8, "A", {"amount": 3, "ip": "y"}), (11, "A", {"amount": 2}), (40, "Z", {})],
    ),
    "session": Case(
        """rule r { by user aggregate A over session gap 5s max 20s { n = count()  a = avg(amount) }
        alert "{user}" { n = n  a = a } }""",
        [(0, "A", {"amount": 1}), (5, "A", {"amount": 2.5})],
        [(9, "A", {"amount": 3}), (30, "Z", {})],
    ),
    "last_events": Case(
        """rule r { by user aggregate A over sliding 3 events { t = sum(amount) }
        having t > 5 alert "{user} {t}" }""",
        [(0, "A", {"amount": 1}), (1, "A", {"amount": 2}), (2, "A", {"amount": 2})],
        [(3, "A", {"amount": 2}), (4, "A", {"amount": 9})],
    ),
    "dedup": Case(
        """rule r { by user on a: A dedup for 10s alert "{user}" }
        rule by_ip { by user on a: A dedup by a.ip for 10s alert "{user}" }""",
        [(0, "A", {"ip": "x"}), (1, "A", {"ip": "x"}), (2, "A", {"ip": "y"})],
        [(3, "A", {"ip": "x"}), (12, "A", {"ip": "x"}), (13, "A", {"ip": "y"})],
    ),
    "tables": Case(
        """table seen from B key user ttl 20s
        stream once { where type == "A"  dedup by ip for 5s }
        rule r { by user on a: once where seen[user].city == "Rome" alert "{user}" }""",
        [(0, "B", {"city": "Rome"}), (1, "A", {"ip": "x"})],
        [(2, "A", {"ip": "x"}), (7, "A", {"ip": "x"}), (21, "A", {"ip": "x"})],
    ),
    "derived": Case(
        """rule low { by user on a: A emit step { amount = a.amount } }
        rule r { by user sequence within 1m { s: step  b: B } alert "{user}" { x = s.amount } }""",
        [(0, "A", {"amount": 7})],
        [(1, "B", {})],
    ),
    "keys": Case(
        """rule r { by amount, ip sequence within 1m { a: A  b: B } alert "{amount} {ip}" }
        rule all { sequence within 1m { a: A  b: B } alert "" }""",
        [(0, "A", {"amount": 1.0, "ip": True}), (1, "A", {"amount": 1, "ip": "true"})],
        [(2, "B", {"amount": 1, "ip": True}), (3, "B", {"amount": 1.0, "ip": "true"})],
    ),
}


def line(event: tuple[int, str, dict[str, Any]]) -> bytes:
    """An event as a line of JSON."""
    second, kind, fields = event
    return json.dumps({"time": BEGIN + second, "type": kind, "user": "ann", **fields}).encode()


def run(engine: Engine, events: list[tuple[int, str, dict[str, Any]]]) -> list[Any]:
    """What comes of events, as far as every version must agree on it."""
    return [list(outcome(match)) for event in events for match in engine.process(line(event))]


LARGE = Case(
    """rule r { by user skip nothing sequence within 1m { a: A  b: B{2,}  c: C }
    alert "{user}" { n = count(b) } }""",
    [(0, "A", {"amount": 2}), *((i, "AB"[i % 3 > 0], {}) for i in range(1, 20))],
    [(20, "B", {}), (21, "C", {})],
)
"""Histories that share much."""


def made(case: Case) -> dict[str, Any]:
    """The fixture of a case, by an engine that is not stopped in between."""
    engine = Engine(cep.loads(case.rules))
    run(engine, case.before)
    kept = snapshot(engine.program, engine.ingest.decode)
    return {
        "rules": case.rules,
        "kept": kept,
        "after": case.after,
        "found": run(engine, case.after),
    }


def made_in_pieces(case: Case, kind: str = "runs") -> dict[str, Any]:
    """The fixture of a case whose states count as large: as a store gives them back."""
    segments.LARGE, segments.SEALED = window_codec.LARGE, window_codec.SEALED = 4, 2
    store = MemoryStore()
    engine = Engine(cep.loads(case.rules), state=store, checkpoint_every=0)
    for event in case.before:
        run(engine, [event])
        engine.checkpoint()
    fixture = made(case)
    fixture["kept"]["states"] = [[kind, "r", key, text] for _, key, text in store.load().states()]
    return fixture


WIDE = Case(
    """rule r { by user aggregate A over sliding 10s {
      n = count()  t = sum(amount)  h = max(amount) } having n >= 3 and t < 8
    alert "{user}: {t}" { n = n  h = h } }""",
    [(i, "A", {"amount": i % 3}) for i in range(30)],
    [(31, "A", {"amount": 3}), (50, "Z", {})],
)
"""A window the first pieces of which are gone."""

WINDOWS = ("sliding", "tumbling", "hopping", "session", "last_events")
"""Cases of windows, which have formats of their own."""


def main() -> None:
    for name in WINDOWS:
        path = FOLDER / f"windows-{window_codec.FORMAT}-{name}.json"
        if not path.exists():
            path.write_text(json.dumps(made(CASES[name]), indent=1) + "\n")
    path = FOLDER / f"windows-{window_codec.FORMAT}-pieces.json"
    if not path.exists():
        path.write_text(json.dumps(made_in_pieces(WIDE, "windows"), indent=1) + "\n")
    path = FOLDER / f"format-{IN_PIECES}-pieces.json"
    if not path.exists():
        path.write_text(json.dumps(made_in_pieces(LARGE), indent=1) + "\n")
    for name, case in CASES.items():
        path = FOLDER / f"format-{FORMAT}-{name}.json"
        if not path.exists():
            path.write_text(json.dumps(made(case), indent=1) + "\n")


if __name__ == "__main__":
    main()
