"""The workloads: each asks one question and gives its rows.

In: a `Setting`. Out: rows, one after the other as they are measured. Rates are events (or matches,
keys, rules) a second of processor time. A ratio is engine ÷ loop where loops are beside it, and
time ÷ time of the smallest size where the question is whether time grows.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import msgspec

import cep
from cep.cli.session import rare_collection
from cep.clock.timers import NEVER
from cep.compile.program import Program

from . import data, floor, hostile, latency, peers, questions, reading
from .durable import w8_durable, w9_spill
from .engines import decoded, from_file, in_process, in_program, made, matches_of
from .measure import (
    Measured,
    Prepare,
    Work,
    command_seconds,
    in_turn,
    once,
    patiently,
    resident_bytes,
)
from .results import Row
from .setting import Setting

PATIENCE = 20.0
"""Seconds after which a size is given up, and larger ones are not tried."""


# ---------------------------------------------------------------------------- beside a loop


def w1_selective(setting: Setting) -> Iterator[Row]:
    """A, then B, then C where amount > a.amount, of one user within ten minutes."""
    path = setting.file("w1")
    rules = questions.load(questions.W1)
    yield from _beside(setting, "W1", rules, path, floor.Selective, (0.7, 0.8))
    yield _checksum(setting, rules, path)
    default = questions.load(questions.W1_DEFAULT)
    yield from _beside(setting, "W1 default skip", default, path, floor.SelectiveOne, (0.7, 0.8))
    unconditional = questions.load(questions.W1_UNCONDITIONAL)
    yield from _beside(
        setting, "W1 without amount", unconditional, path, floor.Unconditional, (None, None)
    )
    every = questions.load(questions.W1_ANY)
    triples = partial(floor.Triples, floor.TEN_MINUTES)
    yield from _beside(setting, "W1 any", every, path, triples, (None, None))
    yield from _reading(setting, path)


def w2_dense(setting: Setting) -> Iterator[Row]:
    """Three events of a user in a row, amounts rising: every event matters."""
    rules = questions.load(questions.W2)
    yield from _beside(setting, "W2", rules, setting.file("w1"), floor.Rising, (0.6, 0.7))


def _beside(
    setting: Setting,
    name: str,
    rules: cep.Ruleset,
    path: Path,
    loop: Callable[[], floor.Loop],
    targets: tuple[float | None, float | None],
) -> Iterator[Row]:
    """A question in process and from file, engine and loop in turn."""
    memory = _in_memory(rules, path, loop, setting.repetitions)
    yield _against_loop(setting, f"{name} in process", memory, targets[0], setting.golden(name))
    files = _in_files(rules, path, loop, setting.repetitions)
    yield _against_loop(setting, f"{name} from file", files, targets[1], setting.golden(name))


def _in_memory(
    rules: cep.Ruleset, path: Path, loop: Callable[[], floor.Loop], repetitions: int
) -> dict[str, Measured]:
    """Engine and loop over events that each has decoded before."""
    plain = list(floor.read_lines(path))
    return in_turn(
        {"engine": in_process(rules, decoded(rules, path)), "loop": _looping(loop, lambda: plain)},
        repetitions,
    )


def _in_files(
    rules: cep.Ruleset, path: Path, loop: Callable[[], floor.Loop], repetitions: int
) -> dict[str, Measured]:
    """Engine and loop from the bytes of a file to matches, both line by line."""
    return in_turn(
        {
            "engine": from_file(rules, path),
            "loop": _looping(loop, lambda: floor.read_lines(path)),
        },
        repetitions,
    )


def _looping(
    loop: Callable[[], floor.Loop], parts: Callable[[], Iterable[list[floor.Event]]]
) -> Prepare:
    def prepare() -> Work:
        new = loop()
        return lambda: floor.run(new, parts())

    return prepare


def _against_loop(
    setting: Setting,
    name: str,
    measured: Mapping[str, Measured],
    target: float | None,
    golden: int | None,
) -> Row:
    engine, loop = measured["engine"], measured["loop"]
    ratio = loop.seconds / engine.seconds
    answer = golden if golden is not None else loop.found
    right = engine.found == answer == loop.found
    events = setting.events("w1")
    return Row(
        name=name,
        value=events / engine.seconds,
        unit="events/s",
        matches=engine.found,
        answer=answer,
        floor=events / loop.seconds,
        ratio=ratio,
        target="" if target is None else f"≥ {target} × loop",
        ok=right and (target is None or ratio >= target),
        note="" if right else f"the loop found {loop.found:,}",
    )


def _checksum(setting: Setting, rules: cep.Ruleset, path: Path) -> Row:
    """Not only how many matches W1 has, but which."""
    found = matches_of(rules, path)
    total = sum(match.fields["total"] for match in found)
    answer = questions.W1_QUICK_CHECKSUM if setting.quick else questions.W1_CHECKSUM
    return Row(
        name="W1 checksum", value=None, unit="", matches=total, answer=answer, ok=total == answer
    )


def _reading(setting: Setting, path: Path) -> Iterator[Row]:
    """What it costs to decode the events and do nothing."""
    ways = {"line": floor.read_lines, "chunk": floor.read_chunks}
    contenders = {
        name: _looping(floor.DecodeOnly, lambda read=read: read(path))  # type: ignore[misc]
        for name, read in ways.items()
    }
    for name, measured in in_turn(contenders, setting.repetitions).items():
        rate = setting.events("w1") / measured.seconds
        yield Row(name=f"decoding only, by {name}", value=rate, unit="events/s")


# ---------------------------------------------------------------------------- explosion


def w3_explosion(setting: Setting) -> Iterator[Row]:
    """One key, every A, later B, later C: detecting must not feel the width, matches be cheap."""
    path = data.ensure(setting.folder, "w3")
    yield from _detection(setting, "W3 detection", path, last="C")
    yield from _detection(setting, "W3 nothing completes", path, last="D")
    for width in (10, 30, 100) if setting.quick else (10, 30, 100, 300):
        yield _enumeration(setting, path, width)


def _detection(setting: Setting, name: str, path: Path, last: str) -> Iterator[Row]:
    events, base = data.W3.events, None
    for width in (10, 100, 1_000, 10_000):
        rules = questions.load(questions.explosion(width, last=last, skip="past last"))
        loop = partial(floor.OneTriple, width, last)
        measured = _in_memory(rules, path, loop, setting.repetitions)
        engine, plain = measured["engine"], measured["loop"]
        micros = engine.seconds / events * 1e6
        base = base or micros
        yield Row(
            name=f"{name} W={width:,} ms",
            value=micros,
            unit="µs/event",
            matches=engine.found,
            answer=plain.found,
            ratio=micros / base,
            target="≤ 2 µs, ≤ 1.5 × W=10",
            ok=engine.found == plain.found and micros <= 2 and micros <= 1.5 * base,
        )


def _enumeration(setting: Setting, path: Path, width: int) -> Row:
    rules = questions.load(questions.explosion(width))
    plain = list(floor.read_lines(path))
    measured = in_turn(
        {
            "engine": in_process(rules, decoded(rules, path, chunk=64)),
            "loop": _looping(lambda: floor.Triples(width), lambda: plain),
        },
        1 if width >= 100 else setting.repetitions,
    )
    engine, loop = measured["engine"], measured["loop"]
    micros = engine.seconds / engine.found * 1e6
    answer = questions.GOLDEN[f"W3 {width}"]
    return Row(
        name=f"W3 enumeration W={width} ms",
        value=micros,
        unit="µs/match",
        matches=engine.found,
        answer=answer,
        floor=loop.seconds / loop.found * 1e6,
        ratio=loop.seconds / engine.seconds,
        target="≤ 1 µs",
        ok=engine.found == answer == loop.found and micros <= 1,
    )


# ---------------------------------------------------------------------------- many rules


def w4_many_rules(setting: Setting) -> Iterator[Row]:
    """Rules like W1 that differ in their constants: what a thousand cost beside one."""
    path = setting.file("w4")
    base: dict[str, float] = {}
    for count in (1, 10, 100, 1_000):
        rules, compiling = _compiled(questions.many_rules(count))
        types = questions.many_types(count)
        for where, measure in (("in process", _in_memory), ("from file", _in_files)):
            measured = measure(rules, path, partial(floor.ManyRules, types), setting.repetitions)
            micros = measured["engine"].seconds / setting.events("w4") * 1e6
            base.setdefault(where, micros)
            yield _many(setting, f"W4 {count:,} rules {where}", types, measured, base[where])
        yield _compiling(f"{count:,} rules", compiling, 5 if count == 1_000 else None)
    if not setting.quick:
        _, ten = _compiled(questions.many_rules(10_000))
        yield _compiling("10,000 rules", ten, 15 * compiling)
    _, apart = _compiled(questions.various_rules(1_000))
    yield _compiling("1,000 rules that have nothing in common", apart, None)
    yield from _growing("W4 an event of so many united streams", (3, 30, 300), _united)


def _compiled(text: str) -> tuple[cep.Ruleset, float]:
    """Rules, and the seconds from their text to a program."""
    start = time.process_time()
    rules = questions.load(text)
    rules.program()
    return rules, time.process_time() - start


def _compiling(name: str, seconds: float, limit: float | None) -> Row:
    return Row(
        name=f"W4 compiling {name}",
        value=seconds,
        unit="s",
        target="" if limit is None else f"≤ {limit:.0f} s",
        ok=None if limit is None else seconds <= limit,
    )


def _united(streams: int) -> Load:
    """Events of one kind, of a stream that unites so many, each with fields of its own."""
    events = [{"kind": "k2", "u2": f"u{i}", "n": 1, "time": i} for i in range(4_000)]
    return Load(questions.load(questions.union(streams)), events[:2_000], events[2_000:], answer=0)


def _many(
    setting: Setting,
    name: str,
    types: list[tuple[str, str, str]],
    measured: Mapping[str, Measured],
    base: float,
) -> Row:
    engine, loop = measured["engine"], measured["loop"]
    events = setting.events("w4")
    micros = engine.seconds / events * 1e6
    slow = len(types) == 1_000 and micros > 1.5 * base
    return Row(
        name=name,
        value=micros,
        unit="µs/event",
        matches=engine.found,
        answer=loop.found,
        floor=loop.seconds / events * 1e6,
        ratio=micros / base,
        target="≤ 1.5 × 1 rule" if len(types) == 1_000 else "",
        ok=engine.found == loop.found and not slow,
        note=f"{_share(types):.1%} of the events are of types that the rules name",
    )


def _share(types: list[tuple[str, str, str]]) -> float:
    """Which part of the types of W4 the rules name."""
    return len({kind for rule in types for kind in rule}) / len(data.W4.types)


# ---------------------------------------------------------------------------- flat as work grows


@dataclass(frozen=True, slots=True)
class Load:
    """Events that come first, then those whose time is taken."""

    rules: cep.Ruleset
    before: list[dict[str, Any]]
    timed: list[dict[str, Any]]
    answer: int


def w5_long_loop(setting: Setting) -> Iterator[Row]:
    """One user fails again and again, then gets in: an event must not feel those before it, and
    the match that has them all costs as much for each of them."""
    rules = questions.load(questions.W5)

    def logins(first: int, end: int, *, ok: bool) -> list[dict[str, Any]]:
        return [{"type": "login", "user": "bob", "ok": ok, "time": i} for i in range(first, end)]

    def more(size: int) -> Load:
        before, timed = logins(0, size, ok=False), logins(size, size + 1000, ok=False)
        return Load(rules, before, timed, answer=0)

    def whole(size: int) -> Load:
        everything = logins(0, size, ok=False) + logins(size, size + 1, ok=True)
        return Load(rules, [], everything, answer=1)

    yield from _growing("W5 a failure after", _sizes(setting), more)
    yield from _growing("W5 match of failures", _sizes(setting), whole)


def w6_join(setting: Setting) -> Iterator[Row]:
    """Payments find their orders among many open ones; every second one has no order."""
    rules = questions.load(questions.W6)
    payments = 2_000

    def load(size: int) -> Load:
        orders = [{"type": "order", "order_id": f"o{i}", "time": i} for i in range(size)]
        names = (f"o{i // 2}" if i % 2 else f"none{i}" for i in range(payments))
        paid = [
            {"type": "payment", "order_id": name, "time": size + i} for i, name in enumerate(names)
        ]
        return Load(rules, orders, paid, answer=payments // 2)

    yield from _growing("W6 open orders", _sizes(setting), load)


def _sizes(setting: Setting) -> tuple[int, ...]:
    return (1_000, 10_000) if setting.quick else (1_000, 10_000, 100_000)


def _growing(name: str, sizes: Iterable[int], make: Callable[[int], Load]) -> Iterator[Row]:
    """Time of an event at growing sizes, until patience ends."""
    base = None
    for size in sizes:
        row = _one_size(f"{name} {size:,}", make(size), base)
        yield row
        base = base or row.value
        if row.note:
            break


def _one_size(name: str, load: Load, base: float | None) -> Row:
    program = load.rules.program()
    before, timed = made(load.rules, load.before), made(load.rules, load.timed)
    prepared = patiently(in_program(program, before), PATIENCE)
    measured = patiently(in_program(program, timed), PATIENCE) if prepared else None
    if measured is None:
        note = f"given up after {PATIENCE:.0f} s"
        return Row(name=name, value=None, unit="µs/event", answer=load.answer, ok=False, note=note)
    micros = measured.seconds / len(load.timed) * 1e6
    return Row(
        name=name,
        value=micros,
        unit="µs/event",
        matches=measured.found,
        answer=load.answer,
        ratio=micros / (base or micros),
        target="≤ 1.5 × the smallest",
        ok=measured.found == load.answer and micros <= 1.5 * (base or micros),
    )


# ---------------------------------------------------------------------------- absence


def w7_absence(setting: Setting) -> Iterator[Row]:
    """Every payment opens a deadline of its own, and none is ever met."""
    keys = 200_000 if setting.quick else 1_000_000
    rules = questions.load(questions.W7)
    payments = ({"type": "payment", "order_id": f"o{i}", "time": i * 10} for i in range(keys))
    chunks = made(rules, payments)
    program = rules.program()
    before = resident_bytes()
    opening = once(in_program(program, chunks))
    per_key = (resident_bytes() - before) / keys
    yield _rate("W7 opening deadlines", keys / opening.seconds, 500_000, "keys/s")
    yield Row(
        name="W7 memory",
        value=per_key,
        unit="bytes/key",
        target="≤ 400 beyond the event",
        ok=per_key <= 400,
    )
    yield _firing(program, keys)


def _firing(program: Program, keys: int) -> Row:
    """All deadlines come true, at once, in order."""
    due: list[int] = []

    def work() -> int:
        program.advance(NEVER - 1)
        due.extend(match.time for match in program.take())
        return len(due)

    fired = once(work)
    ordered = due == sorted(due)
    return Row(
        name="W7 firing deadlines",
        value=keys / fired.seconds,
        unit="keys/s",
        matches=fired.found,
        answer=keys,
        target="≥ 500,000, in order",
        ok=fired.found == keys and ordered and keys / fired.seconds >= 500_000,
        note="" if ordered else "not in order",
    )


def _rate(name: str, rate: float, target: int | None, unit: str = "events/s") -> Row:
    return Row(
        name=name,
        value=rate,
        unit=unit,
        target="" if target is None else f"≥ {target:,}",
        ok=None if target is None else rate >= target,
    )


# ---------------------------------------------------------------------------- windows


def w10_windows(setting: Setting) -> Iterator[Row]:
    """An aggregate over the last five minutes of each of 10,000 users, of every event; and what an
    event costs as its window, or the number of windows it is in, grows."""
    path = setting.file("w1")
    for name, (text, loop, target) in questions_of_windows().items():
        rules = questions.load(text)
        measured = _in_memory(rules, path, loop, setting.repetitions)
        yield _against_rate(setting, f"W10 {name}", measured, target)
    yield from _growing("W10 events in the window", _sizes(setting), _wide_window)
    yield from _growing("W10 windows open at once", (10, 100, 3_600), _many_windows)


def questions_of_windows() -> dict[str, tuple[str, Callable[[], floor.Loop], int | None]]:
    """W10: rule, the loop that asks the same, events a second that are the target."""
    return {
        "count": (questions.W10_COUNT, partial(floor.Counting, 35), 500_000),
        "avg": (questions.W10_AVG, partial(floor.Averaging, 6000), 500_000),
        "max": (questions.W10_MAX, partial(floor.Highest, 9000), None),
        "percentile": (questions.W10_PERCENTILE, partial(floor.Ranking, 9000), None),
    }


def _against_rate(
    setting: Setting, name: str, measured: Mapping[str, Measured], target: int | None
) -> Row:
    """Engine beside loop, with a rate as the target."""
    engine, loop = measured["engine"], measured["loop"]
    rate = setting.events("w1") / engine.seconds
    answer = setting.golden(name)
    return Row(
        name=f"{name} in process",
        value=rate,
        unit="events/s",
        matches=engine.found,
        answer=answer,
        floor=setting.events("w1") / loop.seconds,
        ratio=loop.seconds / engine.seconds,
        target="" if target is None else f"≥ {target:,}",
        ok=engine.found == answer == loop.found and (target is None or rate >= target),
    )


def _wide_window(size: int) -> Load:
    """A mean of so many events, tested at each event and each expiry: none rises above."""
    rules = questions.load(questions.sliding("avg(amount)", "x > 2", size))
    events = [{"user": "u", "amount": i % 3, "time": i} for i in range(size + 2_000)]
    return Load(rules, events[:size], events[size:], answer=0)


def _many_windows(number: int) -> Load:
    """So many windows contain each event, and one closes at each."""
    rules = questions.load(questions.hopping(number))
    events = [{"user": "u", "amount": i % 3, "time": i} for i in range(number + 2_000)]
    return Load(rules, events[:number], events[number:], answer=0)


# ---------------------------------------------------------------------------- one by one


def one_by_one(setting: Setting) -> Iterator[Row]:
    """W1 over mappings that a host gives: one call for one event, and one call for many."""
    rules = questions.load(questions.W1)
    path = data.ensure(setting.folder, "w1-quick")
    with path.open("rb") as file:
        mappings = [msgspec.json.decode(line) for line in file]
    thousands = [mappings[i : i + 1000] for i in range(0, len(mappings), 1000)]
    plain = [[event] for part in floor.read_lines(path) for event in part]
    measured = in_turn(
        {
            "single": _processing(rules, mappings),
            "thousand": _processing(rules, thousands),
            "loop": _looping(floor.Selective, lambda: plain),
        },
        setting.repetitions,
    )
    loop = measured["loop"]
    for name, way in (("one by one", "single"), ("a thousand a call", "thousand")):
        found = measured[way]
        yield Row(
            name=f"W1 mappings, {name}",
            value=len(mappings) / found.seconds,
            unit="events/s",
            matches=found.found,
            answer=questions.GOLDEN["W1 quick"],
            floor=len(mappings) / loop.seconds,
            ratio=loop.seconds / found.seconds,
            ok=found.found == questions.GOLDEN["W1 quick"],
        )
    yield from _latency(rules, mappings)


def _processing(rules: cep.Ruleset, items: list[Any]) -> Prepare:
    def prepare() -> Work:
        process = cep.Engine(rules).process
        return lambda: sum(len(process(item)) for item in items)

    return prepare


def _latency(rules: cep.Ruleset, mappings: list[Any]) -> Iterator[Row]:
    """How long a host waits for one call, after half of the events have filled the state."""
    engine = cep.Engine(rules)
    half = len(mappings) // 2
    engine.process(mappings[:half])
    clock, process = time.perf_counter_ns, engine.process
    waits = []
    for mapping in mappings[half:]:
        start = clock()
        process(mapping)
        waits.append(clock() - start)
    waits.sort()
    for name, place in (("median", 0.5), ("99 of 100", 0.99), ("longest", 1.0)):
        wait = waits[min(int(len(waits) * place), len(waits) - 1)]
        yield Row(
            name=f"process() of one event, {name}",
            value=wait / 1000,
            unit="µs",
            target="≤ 20 ms" if place == 1.0 else "",
            ok=wait <= 20_000_000 if place == 1.0 else None,
        )


def one_call(setting: Setting) -> Iterator[Row]:
    """How long a call with one event takes, with few and with many keys, in memory and kept."""
    for keys in (10_000, 100_000) if setting.quick else (10_000, 1_000_000):
        for durable in (False, True):
            yield from latency.rows(keys, durable=durable)


# ---------------------------------------------------------------------------- hostile work


def hostile_work(setting: Setting) -> Iterator[Row]:
    """Rules and events whose runs would multiply: what they cost, and whether a cap stops them."""
    rules = questions.load(questions.W2)
    path = data.ensure(setting.folder, "w1-quick")
    with rare_collection():
        dense = once(in_process(rules, decoded(rules, path))()).seconds
    events = data.FILES["w1-quick"].events
    yield from hostile.rows(10_000 if setting.quick else 100_000, dense / events * 1e6)


# ---------------------------------------------------------------------------- the command


def start_up(setting: Setting) -> Iterator[Row]:
    """What the command costs before it does anything."""
    with tempfile.TemporaryDirectory() as folder:
        rules, events = Path(folder, "w1.cep"), Path(folder, "one.jsonl")
        rules.write_text(questions.W1, encoding="utf-8")
        events.write_text('{"type":"A","user":"u1","ts":1700000000000,"amount":1}\n')
        bare = command_seconds(["-c", "pass"], 5)
        help_ = command_seconds(["-m", "cep", "--help"], 5)
        run = command_seconds(["-m", "cep", "run", str(rules), str(events)], 5)
    for name, seconds, limit in (("cep --help", help_, 0.15), ("cep run, one line", run, 0.35)):
        yield Row(
            name=name,
            value=seconds,
            unit="s",
            floor=bare,
            target=f"≤ {limit} s",
            ok=seconds <= limit,
        )


# ---------------------------------------------------------------------------- reading


def other_formats(setting: Setting) -> Iterator[Row]:
    """W1 out of CSV, gzip and Parquet, from file to matches, each beside a loop of its own."""
    lines = setting.file("w1")
    table = reading.as_csv(lines)
    rules = questions.load(questions.W1)
    for name, path, loop, parts, target in (
        ("CSV", table, floor.Selective, reading.csv_events, 0.6),
        ("gzip", reading.as_gzip(lines), floor.Selective, reading.gzip_events, 0.6),
    ):
        files = in_turn(
            {
                "engine": from_file(rules, path),
                "loop": _looping(loop, partial(parts, path)),
            },
            setting.repetitions,
        )
        yield _against_loop(setting, f"W1 from {name}", files, target, setting.golden("W1"))
    yield _from_parquet(setting, rules, reading.as_parquet(table))


def _from_parquet(setting: Setting, rules: cep.Ruleset, path: Path) -> Row:
    decode = _looping(floor.DecodeOnly, partial(reading.arrow_rows, path))
    measured = in_turn({"engine": from_file(rules, path), "decode": decode}, setting.repetitions)
    engine, bare = measured["engine"], measured["decode"]
    events, answer = setting.events("w1"), setting.golden("W1")
    rate = events / engine.seconds
    return Row(
        name="W1 from Parquet",
        value=rate,
        unit="events/s",
        matches=engine.found,
        answer=answer,
        floor=events / bare.seconds,
        ratio=bare.seconds / engine.seconds,
        target="≥ 5,000,000",
        ok=engine.found == answer and rate >= 5_000_000,
        note="the floor decodes all columns and does nothing",
    )


# ---------------------------------------------------------------------------- peers


def others(setting: Setting) -> Iterator[Row]:
    """W1 and W2 from file, by us and by engines out of PyPI; our matches are the right answer."""
    programs, path = peers.install(setting.folder), setting.file("w1")
    questions_of_duckdb = {"W1": (questions.W1, peers.W1_SQL), "W2": (questions.W2, peers.W2_SQL)}
    for name, (text, query) in questions_of_duckdb.items():
        ours = once(from_file(questions.load(text), path)())
        theirs = peers.duckdb(programs, query, path)
        note = f"DuckDB {peers.version_of(programs, 'duckdb')}, one thread"
        yield _peer(setting, f"{name} from file, DuckDB", theirs, ours, ours.found, note)
    ours = once(from_file(questions.load(questions.W1_UNCONDITIONAL), path)())
    newest = once(_looping(floor.Newest, lambda: floor.read_lines(path))())
    theirs = peers.eql(programs, peers.EQL, path)
    note = (
        f"eql {peers.version_of(programs, 'eql')}, without times and amounts; "
        f"all matches, as we find them within 10m, are {ours.found:,}"
    )
    yield _peer(setting, "W1 without amount, eql", theirs, ours, newest.found, note)


def _peer(
    setting: Setting, name: str, theirs: Measured, ours: Measured, answer: int, note: str
) -> Row:
    """The rate of another engine, with ours as the floor: the ratio is theirs ÷ ours."""
    events = setting.events("w1")
    return Row(
        name=name,
        value=events / theirs.seconds,
        unit="events/s",
        matches=theirs.found,
        answer=answer,
        floor=events / ours.seconds,
        ratio=ours.seconds / theirs.seconds,
        target="same matches",
        ok=theirs.found == answer,
        note=f"{note}; the floor is what we do",
    )


WORKLOADS: dict[str, Callable[[Setting], Iterator[Row]]] = {
    "w1": w1_selective,
    "w2": w2_dense,
    "w3": w3_explosion,
    "w4": w4_many_rules,
    "w5": w5_long_loop,
    "w6": w6_join,
    "w7": w7_absence,
    "w8": w8_durable,
    "w9": w9_spill,
    "w10": w10_windows,
    "calls": one_by_one,
    "reading": other_formats,
    "latency": one_call,
    "hostile": hostile_work,
    "start": start_up,
    "peers": others,
}

ON_REQUEST = frozenset({"peers"})
"""What is measured only where it is named: it installs programs."""
