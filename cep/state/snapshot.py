"""All that a program remembers, as rows of text, and back.

In: a `Program` between two batches (its matches taken). Out: rows, one for each key of each rule,
table and stream, and a few counters. From these another program with the same rules, also in
another process, goes on as if nothing had happened: the same matches, with the same ids.

`Memory` is what hosts with a store use, row by row; `snapshot` and `restore` do all of it at once.

Rows besides those of `cep.state.codec`, each with its format `f`:

* `dedup` of a rule: `{"f":1,"end":…,"hidden":2,"first":…,"last":…}`, of each window that hides
  or is still told of; the key is `{"timeout":[…]}` for those of timeouts;
* `tables` of streams: `{"f":1,"t":time,"row":[[["path"],value],…]}`, with `k` where the text of the
  key does not tell it exactly;
* `repeats` of streams with `dedup`: `{"f":1,"end":…}`.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from functools import partial
from typing import Any

import msgspec

from cep.clock.timers import NEVER
from cep.compile.program import Program
from cep.runtime.reporting import Dedup
from cep.runtime.rule import RuleRun
from cep.runtime.tables import Path, Repeats, StreamTable
from cep.runtime.window_rule import WindowRun
from cep.state.codec import FORMAT, UnreadableState, codec_of, require_known
from cep.state.event_codec import DecodeLine
from cep.state.store import Owner, StateRow
from cep.state.values import (
    exact_key,
    from_json,
    key_from_exact,
    key_from_text,
    key_text,
    parts_from_text,
    to_json,
)

Run = RuleRun | WindowRun

COUNTERS = (
    "matches",
    "timeouts",
    "suppressed",
    "unroutable",
    "dropped",
    "crowded",
    "ended",
    "untried",
)
"""What a rule counts, by the names of its attributes."""


class Memory:
    """The rows of a program: gives them out, and takes them into a program that is new.

    `adopt` every row, in any order, then call `resume` once.
    """

    def __init__(self, program: Program, decode_line: DecodeLine) -> None:
        self.program = program
        self._rules = {run.owner: run for run in program.rules}
        self.codecs = {
            name: codec_of(run, program.shape, decode_line) for name, run in self._rules.items()
        }
        self._waiting: list[tuple[int, Callable[[], None]]] = []

    # ------------------------------------------------------------------ out

    def rows(self) -> Iterator[tuple[Owner, StateRow]]:
        """All rows; the names of their owners are those of rules (`run.owner`), tables and
        streams."""
        for name, run in self._rules.items():
            codec = self.codecs[name]
            for state in run.states.values():
                yield Owner(codec.kind, name), codec.row(state)
            for row in () if run.shares_dedups else dedup_rows(run):
                yield Owner("dedup", name), row
        for name, table in self.program.tables.items():
            if isinstance(table, StreamTable):
                for row in table_rows_of(table, table.rows) or ():
                    yield Owner("tables", name), row
        for name, repeats in self.program.repeats.items():
            for row in repeat_rows_of(repeats, repeats.windows) or ():
                yield Owner("repeats", name), row

    def counters(self) -> dict[str, Any]:
        """What has been counted so far, by rule and stream."""
        rules = {}
        for name, run in self._rules.items():
            counted = {each: n for each in COUNTERS if (n := getattr(run, each))}
            if run.careful.failures:
                counted["unknown"] = run.careful.failures
                counted["first_unknown"] = run.careful.first
            if isinstance(run, WindowRun) and run.since is not None:
                counted["since"] = run.since
            rules[name] = counted
        repeats = {name: one.dropped for name, one in self.program.repeats.items()}
        observing = self.program.observing.failures
        return {"rules": rules, "repeats": repeats, "observing": observing}

    # ------------------------------------------------------------------ in

    def adopter(self, owner: Owner) -> Callable[[str, str], object]:
        """Takes in rows of one owner, given as key and text; see `adopt`."""
        if owner.kind in ("runs", "windows"):
            adopt: Callable[[str, str], object] = self._codec(owner).adopt
            return adopt
        return partial(self.adopt, owner)

    def adopt(self, owner: Owner, key: str, text: str) -> None:
        """Takes in a row. Raises `UnreadableState` for one of an owner that the program does not
        have, or that this version cannot read."""
        kind, name = owner
        if kind in ("runs", "windows"):
            self._codec(owner).adopt(key, text)
            return
        row = _content(text)
        if kind == "dedup":
            run = self._rule(owner)
            self._later(row["end"], lambda: _take_dedup(run, key, row))
        elif kind == "tables" and isinstance(table := self.program.tables.get(name), StreamTable):
            self._later(row["t"], lambda: _take_row(table, key, row))
        elif kind == "repeats" and name in self.program.repeats:
            repeats = self.program.repeats[name]
            begin = row["end"] - repeats.duration
            self._later(begin, lambda: _take_repeat(repeats, key, begin))
        else:
            raise _unknown(owner)

    def resume(self, clock: int | None, counters: Mapping[str, Any]) -> None:
        """All rows are there: the program goes on at this time of its clock."""
        for _, take in sorted(self._waiting, key=lambda item: item[0]):
            take()
        self._waiting.clear()
        for name, counted in counters["rules"].items():
            run = self._rule(Owner("runs", name))
            for each in COUNTERS:
                setattr(run, each, counted.get(each, 0))
            run.careful.failures = counted.get("unknown", 0)
            run.careful.first = counted.get("first_unknown")
            if isinstance(run, WindowRun):
                run.since = counted.get("since")
            if run.dedups is not None:
                run.forget_dedups(-NEVER)  # forgets nothing, and asks to be woken
        for name, dropped in counters["repeats"].items():
            self.program.repeats[name].dropped = dropped
        self.program.observing.failures = counters["observing"]
        if clock is not None:
            self.program.resume(clock, counters["rules"])

    def _later(self, order: int, take: Callable[[], None]) -> None:
        """Rows that end one after the other are kept in this order; rows come in any."""
        self._waiting.append((order, take))

    def _rule(self, owner: Owner) -> Run:
        if owner.name not in self._rules:
            raise _unknown(owner)
        return self._rules[owner.name]

    def _codec(self, owner: Owner) -> Any:
        run = self._rule(owner)
        if isinstance(run, RuleRun) != (owner.kind == "runs"):
            raise _unknown(owner)
        return self.codecs[owner.name]


def _unknown(owner: Owner) -> UnreadableState:
    return UnreadableState(
        f"there is state of the {owner.kind} of {owner.name}, which is not there"
    )


def _content(text: str) -> dict[str, Any]:
    try:
        row: dict[str, Any] = msgspec.json.decode(text)
        require_known(row["f"])
    except (msgspec.MsgspecError, LookupError, TypeError) as error:
        raise UnreadableState(f"a stored row cannot be read: {error} (in {text[:80]} …)") from error
    return row


# ---------------------------------------------------------------------------- dedup


def dedup_rows(run: Run) -> Iterator[StateRow]:
    """The windows of a rule's `dedup`."""
    for kind, dedup in (run.dedups or {}).items():
        yield from dedup_rows_of(dedup, kind, dedup.windows) or ()


def dedup_rows_of(dedup: Dedup, kind: str, keys: Collection[Any]) -> Iterator[StateRow] | None:
    """The windows of some keys of a `dedup` as they are now, or that there is none any more;
    `due_us`: when it may be forgotten. They are written when they are asked for."""
    if not keys:
        return None
    windows, duration = dedup.windows, dedup.duration
    found = [
        (key, w.end, w.hidden, w.first, w.last) if (w := windows.get(key)) is not None else (key,)
        for key in keys
    ]
    return (_dedup_row(duration, kind, *one) for one in found)


def _dedup_row(
    duration: int,
    kind: str,
    key: Any,
    end: int | None = None,
    hidden: int = 0,
    first: int = 0,
    last: int = 0,
) -> StateRow:
    name = key_text(key)
    if kind == "timeout":
        name = f'{{"timeout":{name}}}'
    if end is None:
        return StateRow(name, None)
    text = f'{{"f":{FORMAT},"end":{end},"hidden":{hidden},"first":{first},"last":{last}}}'
    since = first if hidden else None
    return StateRow(name, text, first_us=since, due_us=end + duration, runs=hidden)


def _take_dedup(run: Run, key: str, row: Mapping[str, Any]) -> None:
    assert run.dedups is not None
    kind = "match"
    if key.startswith("{"):
        kind, key = "timeout", key.removeprefix('{"timeout":').removesuffix("}")
    named = parts_from_text(key)
    found = named if run.form.dedup is not None else key_from_text(key)
    dedup = run.dedups[kind]
    dedup.admit(found, row["end"] - dedup.duration)
    window = dedup.windows[found]
    window.hidden, window.first, window.last = row["hidden"], row["first"], row["last"]


# ---------------------------------------------------------------------------- tables and streams


def repeat_rows_of(repeats: Repeats, keys: Collection[Any]) -> Iterator[StateRow] | None:
    """The windows of some keys of a stream's `dedup` as they are now, or that there is none."""
    if not keys:
        return None
    found = list(zip(keys, map(repeats.windows.get, keys), strict=True))
    return (_repeat_row(key, end) for key, end in found)


def _repeat_row(key: tuple[Any, ...], end: int | None) -> StateRow:
    if end is None:
        return StateRow(key_text(key), None)
    return StateRow(key_text(key), f'{{"f":{FORMAT},"end":{end}}}', due_us=end)


def table_rows_of(table: StreamTable, keys: Collection[Any]) -> Iterator[StateRow] | None:
    """The rows of some keys of a table as they are now, or that there is none any more."""
    if not keys:
        return None
    found, ttl = list(zip(keys, map(table.rows.get, keys), strict=True)), table.ttl
    return (_table_row(ttl, key, kept) for key, kept in found)


def _table_row(ttl: int | None, key: Any, kept: tuple[int, Mapping[Path, Any]] | None) -> StateRow:
    if kept is None:
        return StateRow(key_text(key), None)
    time, values = kept
    content: dict[str, Any] = {"f": FORMAT, "t": time}
    content["row"] = [[list(path), to_json(value)] for path, value in values.items()]
    exact = exact_key(key)
    if exact is not None:
        content["k"] = exact
    due = None if ttl is None else time + ttl + 1
    text = msgspec.json.encode(content).decode()
    return StateRow(key_text(key), text, first_us=time, due_us=due)


def _take_row(table: StreamTable, key: str, row: Mapping[str, Any]) -> None:
    found = key_from_exact(row["k"]) if "k" in row else key_from_text(key)
    table.put(found, row["t"], {tuple(path): from_json(value) for path, value in row["row"]})


def _take_repeat(repeats: Repeats, key: str, begin: int) -> None:
    repeats.has(parts_from_text(key), begin)


# ---------------------------------------------------------------------------- all at once


def snapshot(program: Program, decode_line: DecodeLine) -> dict[str, Any]:
    """Everything that a program remembers, as plain data for JSON.

    Its matches must have been taken: raises ValueError where some are waiting.
    """
    if program.out:
        raise ValueError("matches are waiting: take() them before the state is kept")
    memory = Memory(program, decode_line)
    return {
        "f": FORMAT,
        "clock": program.time if program.time > -NEVER else None,
        "counters": memory.counters(),
        "states": [[*owner, row.key, row.state] for owner, row in memory.rows()],
    }


def restore(program: Program, kept: Mapping[str, Any], decode_line: DecodeLine) -> None:
    """Lets a new program go on where a snapshot was taken.

    Raises `UnreadableState` where it was taken of other rules, or by a newer version.
    """
    require_known(kept["f"])
    memory = Memory(program, decode_line)
    for kind, name, key, text in kept["states"]:
        memory.adopt(Owner(kind, name), key, text)
    memory.resume(kept["clock"], kept["counters"])
