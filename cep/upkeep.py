"""Work on kept state without an engine: expire, drop, export, import, verify.

In: a store that no engine uses. The versions of rules are compiled from the texts that the store
keeps, so the rule files need not be at hand. What is changed is one epoch: all of it is durable, or
nothing.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

import msgspec

from cep.ingest import Ingest
from cep.ruleset import loads
from cep.runtime.oldest import drop_until
from cep.source.base import Reject
from cep.state.codec import codec_of, is_in_pieces
from cep.state.store import (
    Epoch,
    OutRow,
    Owner,
    RuleVersion,
    Snapshot,
    SourceRow,
    StateError,
    StateRow,
    Store,
    in_pieces,
)
from dsl.canonical import type_field_of
from dsl.diagnostics import RuleError

FORMAT = 1
"""The number of the form in which state is exported."""


class Version:
    """A version of a rule as a store keeps it, able to read the states that it has there."""

    def __init__(self, version: RuleVersion) -> None:
        self.version = version
        text = version.source
        try:
            kept = loads(text, name=f"kept rule {version.name}", type_field=type_field_of(text))
        except RuleError as error:
            raise StateError(
                f"the kept text of rule {version.name} cannot be compiled here: "
                f"{error.diagnostics[0].message}"
            ) from error
        ruleset = kept.select([version.name])
        program = ruleset.program()
        (self.run,) = program.rules
        ingest = Ingest(ruleset.compiled, _ignore)
        self.codec: Any = codec_of(self.run, program.shape, ingest.decode)

    def adopt(self, key: str, text: str) -> Any:
        """A stored state, living in the rule."""
        return self.codec.adopt(key, text)


def _ignore(_: str, __: Reject) -> None:
    """Events in states have been accepted before."""


def versions_of(snapshot: Snapshot) -> dict[str, Version]:
    """The versions of rules that may have states, by id."""
    return {one.id: Version(one) for one in snapshot.rules if one.status != "gone"}


def _epoch(snapshot: Snapshot, states: dict[Owner, list[StateRow]]) -> Epoch:
    """An epoch that changes these states and nothing else."""
    return Epoch(
        snapshot.number + 1,
        clock_us=snapshot.clock_us,
        states=states,
        host_position=snapshot.host_position,
    )


# ---------------------------------------------------------------------------- dropping


def expire(store: Store, before_us: int, rules: Collection[str] = ()) -> int:
    """Drops the runs whose first event was before `before_us`, of all rules or these; gives how
    many first events there were. The runs that began later stay."""
    snapshot = store.load()
    for rule in rules:
        _ids_of(snapshot, rule)
    versions = versions_of(snapshot)
    changed: dict[Owner, list[StateRow]] = {}
    dropped = 0
    for owner, key, text in snapshot.states():
        version = versions.get(owner.name) if owner.kind in ("runs", "windows") else None
        if version is None or (rules and version.version.name not in rules):
            continue
        state = version.adopt(key, text)
        gone = drop_until(version.run, state, before_us - 1)
        if gone:
            dropped += gone
            left = version.run.states.get(state.key) is state
            row = version.codec.row(state) if left else StateRow(key, None)
            changed.setdefault(owner, []).append(row)
        version.run.states.pop(state.key, None)
    if changed:
        store.commit(_epoch(snapshot, changed))
    return dropped


def drop(store: Store, rule: str, keys: Collection[str] = ()) -> int:
    """Drops all that is remembered of a rule, or of these keys (their texts) of it: runs, windows
    and what its `dedup` hides. Gives how many rows there were."""
    snapshot = store.load()
    ids = _ids_of(snapshot, rule)
    changed: dict[Owner, list[StateRow]] = {}
    for owner, key, _ in snapshot.states():
        wanted = owner.kind in ("runs", "windows", "dedup") and owner.name in ids
        if wanted and (not keys or _bare_key(key) in keys):
            changed.setdefault(owner, []).append(StateRow(key, None))
    if changed:
        store.commit(_epoch(snapshot, changed))
    return sum(map(len, changed.values()))


def _ids_of(snapshot: Snapshot, rule: str) -> set[str]:
    """The versions of a rule. Raises StateError where there are none."""
    ids = {one.id for one in snapshot.rules if one.name == rule and one.status != "gone"}
    if not ids:
        known = ", ".join(sorted({one.name for one in snapshot.rules if one.status != "gone"}))
        raise StateError(f"there is no state of a rule {rule}; there is of: {known or 'none'}")
    return ids


def _bare_key(key: str) -> str:
    """The key of a window of `dedup` for timeouts, too."""
    return key.removeprefix('{"timeout":').removesuffix("}") if key.startswith("{") else key


def key_texts(given: str) -> set[str]:
    """The texts that a key has in a store, for what a person wrote: `ann`, `5`, `["ann", 5]`.

    >>> sorted(key_texts("ann")), sorted(key_texts("5"))
    (['["ann"]'], ['["5"]', '[5]'])
    """
    texts = {msgspec.json.encode([given]).decode()}
    try:
        value = msgspec.json.decode(given)
    except msgspec.DecodeError:
        return texts
    texts.add(msgspec.json.encode([value]).decode())
    if isinstance(value, list):
        texts.add(msgspec.json.encode(value).decode())
    return texts


# ---------------------------------------------------------------------------- export and import


def export(snapshot: Snapshot) -> Iterator[bytes]:
    """The whole state as lines of JSON: first `{"cep_state": …}`, then one line for each version
    of a rule, source, record that waits to be delivered, and state; last how many states."""
    yield _line(
        {
            "cep_state": FORMAT,
            "epoch": snapshot.number,
            "clock_us": snapshot.clock_us,
            "counters": snapshot.counters,
            "sink_lengths": snapshot.sink_lengths,
            "host_position": snapshot.host_position,
        }
    )
    for version in snapshot.rules:
        yield _line({"rule": version})
    for source in snapshot.sources:
        yield _line({"source": source})
    for record in snapshot.outbox():
        yield _line({"record": record})
    number = 0
    for owner, row in snapshot.rows():
        number += 1
        yield _line({"of": owner, "row": row})
    yield _line({"end": number})


def _line(content: object) -> bytes:
    return msgspec.json.encode(content) + b"\n"


class _Head(msgspec.Struct):
    """The first line of an export."""

    cep_state: int
    epoch: int
    clock_us: int | None
    counters: dict[str, Any]
    sink_lengths: dict[str, int]
    host_position: Any


class _Line(msgspec.Struct):
    """Any further line: only what it is about is there."""

    rule: RuleVersion | None = None
    source: SourceRow | None = None
    record: OutRow | None = None
    of: tuple[str, str] | None = None
    row: StateRow | None = None
    end: int | None = None


def import_into(store: Store, lines: Iterable[bytes]) -> int:
    """Fills a new store with what `export` gave, as one epoch; gives how many states there were.

    Raises StateError where the store holds something already, for lines of another kind, and where
    some are missing.
    """
    if store.load().number:
        raise StateError("the state file is in use already: import into a new one")
    rest = iter(lines)
    head = _read(next(rest, b""), _Head, 1)
    if head.cep_state != FORMAT:
        raise StateError(
            f"the export has form {head.cep_state}, which this version of cep does not know"
        )
    epoch = Epoch(
        head.epoch,
        clock_us=head.clock_us,
        counters=head.counters,
        sink_lengths=head.sink_lengths,
        host_position=head.host_position,
    )
    end: int | None = None
    for number, text in enumerate(rest, 2):
        line = _read(text, _Line, number)
        end = line.end
        if end is None:
            _take(epoch, line, number)
    states = sum(map(len, epoch.states.values()))
    if end != states:
        raise StateError("the export is not whole: lines of it are missing, at its end or before")
    store.commit(epoch)
    return states


def _read(text: bytes, kind: Any, number: int) -> Any:
    try:
        return msgspec.json.decode(text, type=kind)
    except msgspec.MsgspecError as error:
        raise StateError(f"line {number} is not of an export of state: {error}") from error


def _take(epoch: Epoch, line: _Line, number: int) -> None:
    if line.rule is not None:
        epoch.rules.append(line.rule)
    elif line.source is not None:
        epoch.sources.append(line.source)
    elif line.record is not None:
        epoch.outbox.append(line.record)
    elif line.of is not None and line.row is not None:
        epoch.states.setdefault(Owner(*line.of), []).append(in_pieces(line.row))
    else:
        raise StateError(f"line {number} is not of an export of state")


# ---------------------------------------------------------------------------- verifying


@dataclass(slots=True)
class Verified:
    """What a check of a store has found: how many states were read, how many of them are in a form
    that this version reads and writes no more, and what is wrong."""

    states: int = 0
    earlier: int = 0
    mistakes: list[str] = field(default_factory=list)


MOST_TOLD = 20
"""Mistakes that are told."""


def verify(store: Store) -> Verified:
    """Reads everything: the file, and every state as its rule reads it. A state must keep its
    invariants, and be written again as it was."""
    found = Verified(mistakes=store.check())
    snapshot = store.load()
    versions = versions_of(snapshot)
    for owner, key, text in snapshot.states():
        if owner.kind in ("runs", "windows"):
            found.states += 1
            version = versions.get(owner.name)
            wrong = _mistake(version, key, text)
            if wrong is not None:
                found.mistakes.append(f"{owner.name} {key}: {wrong}")
            elif version is not None and version.codec.is_earlier_form(key, text):
                found.earlier += 1
        if len(found.mistakes) >= MOST_TOLD:
            break
    return found


def _mistake(version: Version | None, key: str, text: str) -> str | None:
    """What is wrong with a state."""
    if version is None:
        return "it belongs to no version of a rule"
    try:
        state = version.adopt(key, text)
        version.run.check()
        again = version.codec.row(state)
        in_other_words = is_in_pieces(text) or version.codec.kind == "windows"
        if in_other_words or version.codec.is_earlier_form(key, text):
            # Then the whole, or the present format, says the same.
            text = version.codec.encode(version.codec.decode(key, again.state or ""))
    except (StateError, AssertionError) as error:
        return str(error)
    version.run.states.clear()
    if (again.key, again.state) != (key, text):
        return "it is not what its rule would write"
    return None
