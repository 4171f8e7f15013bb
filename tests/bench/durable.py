"""State that survives: what a file costs beside memory alone (W8), and keys in less memory (W9).

In: a `Setting`. Out: rows, like those of `tests.bench.workloads`. Rates are of processor time, that
of the thread that writes included; only the longest call is of the clock on the wall.
"""

from __future__ import annotations

import random
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import cep
from cep.source import open_source
from cep.state.sqlite import SqliteStore

from . import questions
from .latency import rarely_collected
from .results import Row
from .setting import Setting

CALL = 1000
"""Events of one call."""

START = 1_700_000_000_000_000
"""Event time of the first event, in microseconds."""

PAUSE = 0.05
"""Seconds that a call may take at most."""


def w8_durable(setting: Setting) -> Iterator[Row]:
    """W1, W7 and W5 with a state file and a checkpoint each second."""
    with tempfile.TemporaryDirectory() as folder:
        yield _selective(setting, Path(folder))
        yield from _absences(setting, Path(folder))
        yield from _long_loop(setting, Path(folder))


def w9_spill(setting: Setting) -> Iterator[Row]:
    """W7 in a quarter of its memory, keys revisited at random."""
    keys = 20_000 if setting.quick else 100_000
    rules = questions.load(questions.W7)
    size = _bytes_of_keys(rules, keys)
    rnd = random.Random(9)
    order = [rnd.randrange(keys) for _ in range(keys)]
    given = [*_payments(0, keys), *_payments(keys, keys, order)]
    seconds, held = {}, 0.0
    with tempfile.TemporaryDirectory() as folder:
        for name, options in (
            ("memory", {"state": f"{folder}/memory.db"}),
            ("spill", {"state": f"{folder}/spill.db", "max_memory": size // 4}),
        ):
            engine = cep.Engine(rules, **options)  # type: ignore[arg-type]
            _calls(engine, given[:keys])
            began = time.process_time()
            for start in range(keys, 2 * keys, CALL):
                engine.process(given[start : start + CALL])
                if engine.keeper is not None and engine.keeper.spill is not None:
                    held = max(held, engine.keeper.spill.fill)
            seconds[name] = time.process_time() - began
            engine.abandon()
    ratio = seconds["memory"] / seconds["spill"]
    yield Row(
        name=f"W9 {keys:,} keys revisited, a quarter in memory",
        value=keys / seconds["spill"],
        unit="events/s",
        floor=keys / seconds["memory"],
        ratio=ratio,
        target="≥ 0.25 × all in memory",
        ok=ratio >= 0.25,
    )
    yield Row(
        name="W9 memory of keys at most",
        value=held,
        unit="of the limit",
        target="≤ 1",
        ok=held <= 1,
    )


def _bytes_of_keys(rules: cep.Ruleset, keys: int) -> int:
    """What the states of so many keys take, as the engine measures them."""
    from cep.spill import bytes_each

    engine = cep.Engine(rules)
    _calls(engine, _payments(0, 1000))
    return int(keys * bytes_each(engine.program.rules[0], 10))


# ---------------------------------------------------------------------------- W8


def _selective(setting: Setting, folder: Path) -> Row:
    """W1 from file, with a state file and without."""
    path, rules = setting.file("w1"), questions.load(questions.W1)
    seconds: dict[str, float] = {}
    found: dict[str, int] = {}
    for name in ("memory", "durable"):
        state = folder / "w1.db" if name == "durable" else None
        engine = cep.Engine(rules, state=state)
        matches: list[Any] = []
        began = time.process_time()
        cep.run_sources(engine, [open_source(str(path))], on_matches=matches.extend)
        matches += engine.close()
        if state is not None:
            matches += engine.checkpoint()
        seconds[name], found[name] = time.process_time() - began, len(matches)
        engine.abandon()
    ratio = seconds["memory"] / seconds["durable"]
    return Row(
        name="W8 W1 from file, durable",
        value=setting.events("w1") / seconds["durable"],
        unit="events/s",
        matches=found["durable"],
        answer=found["memory"],
        floor=setting.events("w1") / seconds["memory"],
        ratio=ratio,
        target="≥ 0.8 × in memory",
        ok=ratio >= 0.8 and found["durable"] == found["memory"],
    )


def _absences(setting: Setting, folder: Path) -> Iterator[Row]:
    """W7 with a state file: a new key with each event."""
    keys = 200_000 if setting.quick else 1_000_000
    rules, path = questions.load(questions.W7), folder / "w7.db"
    engine, given = cep.Engine(rules, state=path), _payments(0, keys)
    with rarely_collected():
        began = time.process_time()
        longest = _calls(engine, given)
        rate = keys / (time.process_time() - began)
    yield _row("W8 W7 new keys, durable", rate, "keys/s", "≥ 200,000", rate >= 200_000)
    yield _row(
        "W8 W7 longest call", longest * 1000, "ms", "≤ 50 ms", longest <= PAUSE,
        f"calls of {CALL:,} events",
    )  # fmt: skip
    engine.suspend()
    began = time.process_time()
    again = cep.Engine(rules, state=path)
    seconds = time.process_time() - began
    held = again.program.rules[0].keys
    again.abandon()
    yield _row(f"W8 W7 restart with {held:,} keys", seconds, "s", "≤ 3 s", seconds <= 3)
    store = SqliteStore(str(path))
    encoded = sum(len(key) + len(state) for _, key, state in store.load().states())
    ratio = store.size().file / encoded
    store.close()
    yield _row("W8 W7 file", ratio, "of the states", "≤ 2 × encoded", ratio <= 2)


def _long_loop(setting: Setting, folder: Path) -> Iterator[Row]:
    """W5 with a state file: what an epoch writes, and a new start, as the key grows."""
    rules, base = questions.load(questions.W5), 0.0
    for size in (2_000, 10_000) if setting.quick else (2_000, 60_000):
        path = folder / f"w5-{size}.db"
        engine = cep.Engine(rules, state=path, checkpoint_every=3600)
        _calls(engine, _failures(0, size))
        engine.checkpoint()
        longest = _calls(engine, _failures(size, 1000))
        engine.checkpoint()
        engine.suspend()
        store = SqliteStore(str(path))
        written = store._reader.execute("select bytes from _epochs where number = 2").fetchone()[0]
        store.close()
        base = base or written
        yield Row(
            name=f"W8 W5 epoch of 1,000 after {size:,} failures",
            value=written / 1000,
            unit="kB",
            ratio=written / base,
            target="≤ 1.5 × the smallest",
            ok=written <= 1.5 * base,
            note=f"longest call {longest * 1000:.0f} ms",
        )
        began = time.process_time()
        cep.Engine(rules, state=path).abandon()
        seconds = time.process_time() - began
        yield _row(f"W8 W5 restart with {size:,} failures", seconds, "s", "≤ 1.6 s", seconds <= 1.6)


# ---------------------------------------------------------------------------- events


def _payments(first: int, number: int, keys: Sequence[int] | None = None) -> list[bytes]:
    """Lines of payments; of new keys, or of these."""
    named = keys if keys is not None else range(first, first + number)
    return [
        b'{"type":"payment","order_id":"o%d","time":%d,"amount":12.5,"currency":"EUR",'
        b'"customer":"c%d"}' % (key, START + (first + place) * 10, key % 1000)
        for place, key in enumerate(named)
    ]


def _failures(first: int, number: int) -> list[bytes]:
    return [
        b'{"type":"login","user":"bob","ok":false,"time":%d,"ip":"10.0.0.%d","host":"web-17"}'
        % (START + place * 1000, place % 250)
        for place in range(first, first + number)
    ]


def _calls(engine: cep.Engine, given: Sequence[bytes]) -> float:
    """Gives the events to the engine; the seconds of the longest call."""
    longest = 0.0
    for start in range(0, len(given), CALL):
        began = time.perf_counter()
        engine.process(given[start : start + CALL])
        longest = max(longest, time.perf_counter() - began)
    return longest


def _row(name: str, value: float, unit: str, target: str, ok: bool, note: str = "") -> Row:
    return Row(name=name, value=value, unit=unit, target=target, ok=ok, note=note)
