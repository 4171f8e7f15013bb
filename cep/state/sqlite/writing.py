"""An epoch as one transaction of few, large statements.

Each statement runs in C without Python's lock; with a statement for each row, the writer would have
to win that lock back row by row from a busy event thread, five milliseconds each. States go in as
columns: keys as a JSON array that SQLite walks, states as one text cut by the length of each,
numbers as text of fixed width. Rows as JSON cost SQLite twice as much, for every cell of them is
looked up, and every state unescaped.
"""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from itertools import accumulate
from typing import Any, Final

import msgspec

from cep.state.sqlite.file import LOG_KEPT, stored_name
from cep.state.store import Epoch, OutRow, Owner, RuleVersion, StateRow

PIECE_ROWS = 2_000
"""Most rows of one statement: its parameters take some 2 ms of Python's lock."""

PIECE_BYTES = 16 << 20
"""Most characters of states of one statement, unless a single one is longer."""

EPOCHS_KEPT = 1000
"""Epochs that the view `checkpoints` looks back."""

LEFTOVERS_KEPT = 10_000
"""Records kept in the outbox to be looked at when nobody waits for them any more."""

_WIDTH: Final = 20
"""Characters of a packed number: enough for any of 64 bits."""

_NULL: Final = -(1 << 63)
"""Stands for NULL among packed numbers."""


def _unpacked(numbers: str) -> str:
    """SQL: the packed number that belongs to the key at hand."""
    return f"cast(substr({numbers}, key * {_WIDTH} + 1, {_WIDTH}) as integer)"


_SAVE: Final = f"""
    insert into _states (owner, key, state, step, first_us, due_us, runs, ends_us)
    select :owner, value,
        cast(substr(:states, {_unpacked(":starts")}, {_unpacked(":lengths")}) as text), :step,
        nullif({_unpacked(":firsts")}, {_NULL}), nullif({_unpacked(":dues")}, {_NULL}),
        {_unpacked(":runs")}, nullif({_unpacked(":ends")}, {_NULL})
    from json_each(:keys) where true
    on conflict (owner, key) do update set state = excluded.state, step = excluded.step,
        first_us = excluded.first_us, due_us = excluded.due_us, runs = excluded.runs,
        ends_us = excluded.ends_us"""

_ROWS: Final = "from _states where owner = ? and key in (select value from json_each(?))"

_DELETE: Final = f"delete {_ROWS}"

_UNSEAL: Final = f"delete from _segments where row in (select number {_ROWS})"


class Writing:
    """Writes epochs through a connection that nobody else uses."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection
        self._numbers: dict[Owner, int] = {}
        self._delivered: list[str] = []
        self._took: tuple[int, int] | None = None
        self._has_segments: bool | None = None
        """Whether there may be segments, which most files have none of; None: not looked yet."""

    def delivered(self, ids: Iterable[str]) -> None:
        """Records that leave the outbox with the next epoch. Any thread may say so."""
        self._delivered.extend(ids)

    def settle(self) -> None:
        """At the end: what has been delivered leaves the outbox, without another epoch."""
        if self._delivered:
            self._connection.execute("begin immediate")
            self._write_outbox([], self._delivered)
            self._connection.execute("commit")

    def write(self, epoch: Epoch) -> None:
        """Write it whole, or raise `sqlite3.Error` and leave the file as it was."""
        began = time.monotonic()
        delivered = self._delivered[:]
        self._connection.execute("begin immediate")
        try:
            rows, size = self._write_states(epoch)
            self._write_progress(epoch)
            self._write_rules(epoch.rules)
            self._write_outbox(epoch.outbox, [*delivered, *epoch.delivered])
            self._write_epoch(epoch, _micros_since(began), rows, size)
            self._connection.execute("commit")
        except BaseException:
            self._numbers.clear()
            with suppress(sqlite3.Error):
                self._connection.rollback()
            raise
        del self._delivered[: len(delivered)]
        self._took = _micros_since(began), epoch.number
        if size > LOG_KEPT:
            self._shorten_log()

    def _shorten_log(self) -> None:
        """Give back the room that one large epoch took in the write-ahead log."""
        with suppress(sqlite3.Error):  # it can wait: a reader holds it, or the disk is full
            self._connection.execute("pragma wal_checkpoint(truncate)")

    def _write_states(self, epoch: Epoch) -> tuple[int, int]:
        """Returns how many rows, and how many characters of states, were written."""
        if self._has_segments is None:
            query = "select exists (select 1 from _segments)"
            self._has_segments = bool(self._connection.execute(query).fetchone()[0])
        rows = size = 0
        for owner, given in epoch.states.items():
            number = self._number(owner)
            changed = {row.key: row for row in given}.values()  # the last one for a key counts
            gone = [row.key for row in changed if row.state is None]
            if self._has_segments:
                self._change(_UNSEAL, number, [row.key for row in changed if not row.sealed])
            self._change(_DELETE, number, gone)
            for step, kept in _by_step(changed).items():
                for some in _pieces(kept):
                    packed = _packed(some)
                    self._connection.execute(_SAVE, {"owner": number, "step": step, **packed})
                    size += len(packed["states"])
            size += sum(
                self._write_segments(number, row) for row in changed if row.segments or row.dropped
            )
            rows += len(changed)
        return rows, size

    def _change(self, statement: str, owner: int, keys: Sequence[str]) -> None:
        for start in range(0, len(keys), PIECE_ROWS):
            piece = _json(keys[start : start + PIECE_ROWS])
            self._connection.execute(statement, (owner, piece))

    def _write_segments(self, owner: int, row: StateRow) -> int:
        """Adds the further pieces of a state that has been written, behind those that still belong
        to it; gives how many characters."""
        self._has_segments = True
        run = self._connection.execute
        find = "select number from _states where owner = ? and key = ?"
        (state,) = run(find, (owner, row.key)).fetchone()
        oldest = "select coalesce(min(number), 0) from _segments where row = ?"
        first = run(oldest, (state,)).fetchone()[0] + row.dropped
        end = first + row.sealed
        others = "delete from _segments where row = ? and not (number >= ? and number < ?)"
        run(others, (state, first, end))
        for number, content in enumerate(row.segments, end):
            run("insert into _segments values (?, ?, ?)", (state, number, content))
        return sum(map(len, row.segments))

    def _number(self, owner: Owner) -> int:
        number = self._numbers.get(owner)
        if number is None:
            run = self._connection.execute
            run("insert or ignore into _owners (kind, name) values (?, ?)", owner)
            found = run("select number from _owners where kind = ? and name = ?", owner)
            number = self._numbers[owner] = int(found.fetchone()[0])
        return number

    def _write_progress(self, epoch: Epoch) -> None:
        sources = [
            (stored_name(s.name), s.fingerprint, s.offset, s.line_number, s.frontier_us, s.format)
            for s in epoch.sources
        ]
        self._replace("_sources", sources)
        self._replace("_counters", [(name, _json(v)) for name, v in epoch.counters.items()])
        lengths = epoch.sink_lengths.items()
        self._replace("_sinks", [(stored_name(name), length) for name, length in lengths])

    def _write_rules(self, rules: Sequence[RuleVersion]) -> None:
        self._replace("_rules", [_rule_row(rule) for rule in rules])
        for rule in rules:
            if rule.status == "gone":
                run = self._connection.execute
                owners = "select number from _owners where name = ?"
                states = f"select number from _states where owner in ({owners})"
                run(f"delete from _segments where row in ({states})", (rule.id,))
                run(f"delete from _states where owner in ({owners})", (rule.id,))
                run("delete from _owners where name = ?", (rule.id,))
                self._numbers.clear()

    def _write_outbox(self, outbox: Sequence[OutRow], delivered: Sequence[str]) -> None:
        rows = [(None, r.id, r.kind, r.record, r.rule, r.time_us, r.pending) for r in outbox]
        self._replace("_outbox", rows)
        if not rows and not delivered:
            return
        run, ids = self._connection.execute, _json(delivered)
        some = "id in (select value from json_each(?))"
        run(f"delete from _outbox where kind = 'match' and {some}", (ids,))
        run(f"update _outbox set pending = 0 where {some}", (ids,))
        newest = "select number from _outbox where not pending order by number desc limit 1 offset"
        run(f"delete from _outbox where not pending and number <= ({newest} ?)", (LEFTOVERS_KEPT,))

    def _write_epoch(self, epoch: Epoch, duration_us: int, rows: int, size: int) -> None:
        run = self._connection.execute
        if self._took is not None:  # now it is known how long the commit took, too
            run("update _epochs set duration_us = ? where number = ?", self._took)
        position = _json(epoch.host_position)
        now = time.time_ns() // 1000
        run(
            "insert into _epochs values (?, ?, ?, ?, ?, ?, ?)",
            (epoch.number, now, epoch.clock_us, position, duration_us, rows, size),
        )
        run("delete from _epochs where number <= ?", (epoch.number - EPOCHS_KEPT,))

    def _replace(self, table: str, rows: Sequence[tuple[Any, ...]]) -> None:
        """Insert rows, in place of those with the same name or id."""
        if not rows:
            return
        cells = ", ".join(f"json_extract(value, '$[{n}]')" for n in range(len(rows[0])))
        self._connection.execute(
            f"insert or replace into {table} select {cells} from json_each(?)", (_json(rows),)
        )


def _micros_since(began: float) -> int:
    return int((time.monotonic() - began) * 1_000_000)


def _json(value: object) -> str:
    return msgspec.json.encode(value).decode()


def _rule_row(rule: RuleVersion) -> tuple[str, ...]:
    source = "" if rule.status == "gone" else rule.source
    return rule.id, rule.name, rule.version, rule.structure, rule.layout, source, rule.status


def _by_step(rows: Iterable[StateRow]) -> dict[str | None, list[StateRow]]:
    """The rows that hold a state, by step: so the step is one parameter and not one a row."""
    steps: dict[str | None, list[StateRow]] = {}
    for row in rows:
        if row.state is not None:
            steps.setdefault(row.step, []).append(row)
    return steps


def _pieces(rows: Sequence[StateRow]) -> Iterator[Sequence[StateRow]]:
    """Cuts rows into what one statement takes."""
    for start in range(0, len(rows), PIECE_ROWS):
        yield from _halves(rows[start : start + PIECE_ROWS])


def _halves(rows: Sequence[StateRow]) -> Iterator[Sequence[StateRow]]:
    if len(rows) > 1 and sum(len(row.state or "") for row in rows) > PIECE_BYTES:
        middle = len(rows) // 2
        yield from _halves(rows[:middle])
        yield from _halves(rows[middle:])
    else:
        yield rows


def _packed(rows: Sequence[StateRow]) -> dict[str, Any]:
    """The parameters of `_SAVE` for rows that hold a state."""
    texts = [row.state or "" for row in rows]
    joined = "".join(texts)
    states = joined.encode()
    lengths = list(map(len, texts))
    if len(states) != len(joined):
        lengths = [len(text.encode()) for text in texts]
    return {
        "keys": _json([row.key for row in rows]),
        "states": states,
        "starts": _numbers(accumulate(lengths[:-1], initial=1)),
        "lengths": _numbers(lengths),
        "firsts": _numbers(_NULL if (at := row.first_us) is None else at for row in rows),
        "dues": _numbers(_NULL if (at := row.due_us) is None else at for row in rows),
        "runs": _numbers(row.runs for row in rows),
        "ends": _numbers(_NULL if (at := row.ends_us) is None else at for row in rows),
    }


def _numbers(values: Iterable[int]) -> bytes:
    """Packs numbers; a number of more than 64 bits, which SQLite cannot hold, is an error."""
    numbers = tuple(values)
    packed = (b"%%%dd" % _WIDTH * len(numbers)) % numbers
    if len(packed) != _WIDTH * len(numbers):
        raise OverflowError("a number of a state has more than 64 bits")
    return packed
