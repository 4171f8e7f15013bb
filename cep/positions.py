"""Where each input stands: what is durable of it, and where reading goes on after a restart.

In: the blocks of the sources as the engine takes them. Out: for each epoch one entry a source, from
which the next engine goes on as if nothing had happened. Events that wait for their turn are not
stored: an entry says where the oldest block begins that holds one (`mark`), how far reading came
(`read`), and up to where events have gone out (`frontier`). What lies between is read again, and
`Tracker.waited` tells those that were waiting from those that had gone out or were late. Only of an
input that cannot be read again (a pipe) the waiting events themselves are kept.
"""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import blake2b
from typing import Any, NamedTuple

from cep.source.base import Block, Input, Part, Reject, Start
from cep.source.parts import Contents, find
from cep.state.store import SourceRow
from cep.state.values import json_text

NEVER = -(2**63)
Frontier = tuple[int, int]


@dataclass(frozen=True, slots=True)
class Mark:
    """The beginning of a block: its place, the largest time that the source had shown before it,
    and what its reader knew."""

    offset: int
    line_number: int
    seen: int
    context: Any = None


@dataclass(slots=True)
class Tracker:
    """Follows one source. What an engine before has left is in `was`."""

    name: str
    index: int
    delay: int
    input: Input | None
    read: Mark = Mark(0, 1, NEVER)
    """Where the last block ended."""
    rejected: int = -1
    """The last place of what could not be read."""
    marks: deque[Mark] = field(default_factory=deque)
    was: Mapping[str, Any] | None = None
    seen_again: int = field(default=NEVER, init=False)
    """The largest time of what has been read again."""
    _told: bool = field(default=False, init=False)

    def __post_init__(self) -> None:
        if self.was is not None:
            offset, line, context = self.was["read"]
            self.read = Mark(offset, line, self.was["seen"], context)
            self.rejected = self.was["rejected"]
            self.seen_again = self.was["mark"][2]

    @property
    def read_to(self) -> int:
        """Up to where the source has been read."""
        return self.read.offset

    @property
    def has_gap(self) -> bool:
        """Whether something must be read again first."""
        return self.was is not None and self.was["mark"][0] < self.was["read"][0]

    def begin(self, block: Block, seen: int) -> None:
        """A block is about to be taken."""
        self.marks.append(Mark(block.offset, block.line_number, seen, block.context))
        self._told = False

    def end(self, block: Block, *, waits: bool) -> None:
        """It has been taken; `waits`: some events of the source are held back."""
        offset, line = block.place_after
        self.read = Mark(offset, line, NEVER, block.end_context)
        self.rejected = max([self.rejected, *(reject.position for reject in block.rejects)])
        if not waits:
            self.marks.clear()

    def new_rejects(self, block: Block) -> Iterable[Reject]:
        """The rejects of a block that have not been told before a restart."""
        return [reject for reject in block.rejects if reject.position > self.rejected]

    # ------------------------------------------------------------------ reading again

    def waited(self, events: Sequence[Any]) -> list[Any]:
        """Of events that are read again those that were held back: neither late nor gone out."""
        assert self.was is not None
        (time, last), index, delay = self.was["frontier"], self.was["index"], self.was["delay"]
        open_from = time + 1 if index <= last else time
        seen, waiting = self.seen_again, []
        for event in events:
            if event.t >= open_from and event.t >= seen - delay:
                waiting.append(event)
            seen = max(seen, event.t)
        self.seen_again = seen
        return waiting

    # ------------------------------------------------------------------ what is durable

    def entry(self, seen: int, frontier: Frontier, waiting: Sequence[Any]) -> dict[str, Any]:
        """What the next engine needs, as plain data (`held` is filled in by who can)."""
        mark = self._mark(waiting) if self.can_resume else self.read
        parts = self._parts(mark.offset)
        return {
            "mark": [mark.offset, mark.line_number, mark.seen, mark.context],
            "read": [self.read.offset, self.read.line_number, self.read.context],
            "rejected": self.rejected,
            "seen": seen,
            "delay": self.delay,
            "index": self.index,
            "frontier": list(frontier),
            "format": self.input.format if self.input is not None else "",
            "parts": [[p.base, p.fingerprint, p.device, p.inode] for p in parts],
            "waiting": len(waiting),
            "held": [],
        }

    def _mark(self, waiting: Sequence[Any]) -> Mark:
        """The beginning of the oldest block that holds a waiting event."""
        if not waiting or not self.marks:
            return self.read
        oldest = min(event.pos for event in waiting)
        while len(self.marks) > 1 and self.marks[1].offset <= oldest:
            self.marks.popleft()
        return self.marks[0]

    def _parts(self, offset: int) -> list[Part]:
        """The files from the one on that holds a position."""
        parts = list(self.input.parts) if self.input is not None else []
        while len(parts) > 1 and parts[1].base <= offset:
            del parts[0]
        return parts

    def is_unchanged(self, waiting: Sequence[Any]) -> bool:
        """Whether the entry that was made last still says all; `waiting`: events held back now."""
        unchanged = self._told and not waiting
        self._told = not waiting
        return unchanged

    @property
    def can_resume(self) -> bool:
        """Whether waiting events can be read again."""
        return self.input is not None and self.input.can_resume


class Identities:
    """What the sources of a run are in the ids of matches: a short hash of the first record that is
    an event, so that path, copies and compression make no difference, and a file may grow.

    It is known when that event has been read. Sources that begin alike are told apart by a number,
    in their order. One that was read before keeps the identity that it had; its name, where the
    state is of a time before there were any.
    """

    def __init__(self, names: Sequence[str], entries: Mapping[str, Mapping[str, Any]]) -> None:
        self._names = names
        self._known: list[str | None] = [
            entries[key_of(name)].get("identity", name) if key_of(name) in entries else None
            for name in names
        ]

    def known(self, index: int) -> str | None:
        """The identity of a source, if one of its events has been read."""
        return self._known[index]

    def of(self, index: int, first: bytes | Mapping[str, Any]) -> str:
        """The identity of a source of which an event comes now, with this original."""
        known = self._known[index]
        if known is None:
            known = self._untaken(_hash_of(first))
            self._known[index] = known
        return known

    def _untaken(self, own: str) -> str:
        number, identity = 1, own
        while identity in self._known:
            number += 1
            identity = f"{own}#{number}"
        return identity

    def name_of(self, identity: str) -> str:
        """The name of the source that has this identity."""
        return self._names[self._known.index(identity)] if identity in self._known else identity


def _hash_of(original: bytes | Mapping[str, Any]) -> str:
    line = original.strip() if isinstance(original, bytes) else json_text(dict(original)).encode()
    return blake2b(line, digest_size=8).hexdigest()


def common_frontier(trackers: Sequence[Tracker], clock: int | None) -> Frontier:
    """Up to where events have gone out, told in the present order of the sources; `clock`: where
    the rules stand."""
    known = [tracker.was for tracker in trackers if tracker.was is not None]
    if clock is not None and not known:
        return clock, 0
    time, last = max(((w["frontier"][0], w["frontier"][1]) for w in known), default=(NEVER, 0))
    if clock is not None and clock > time:
        return clock, len(trackers)
    passed = [t.index for t in trackers if t.was is not None and t.was["index"] <= last]
    if last > max((w["index"] for w in known), default=-1):
        return time, len(trackers)
    return time, max(passed, default=-1)


def source_row(name: str, entry: Mapping[str, Any]) -> SourceRow:
    """An entry for people: with the place in the present file."""
    offset, line = entry["mark"][:2]
    base, known = (entry["parts"][0][0], entry["parts"][0][1]) if entry["parts"] else (0, "")
    time = entry["frontier"][0]
    return SourceRow(
        name, known, offset - base, line, time if time != NEVER else None, entry["format"]
    )


SOURCE = "source "
"""How the names of entries begin among the counters of a state."""


def entries_of(counters: Mapping[str, Any]) -> dict[str, Any]:
    """The entries of all sources in a state, by name."""
    return {
        name.removeprefix(SOURCE): entry
        for name, entry in counters.items()
        if name.startswith(SOURCE)
    }


def key_of(name: str) -> str:
    """A name as a key of JSON: paths may hold bytes that are no text."""
    return name.encode("utf-8", "backslashreplace").decode()


# -------------------------------------------------------------------------- at the start


class Assigned(NamedTuple):
    """An input: its path, its logical name, where to go on (None: new), its format then."""

    path: str
    name: str
    start: Start | None = None
    format: str | None = None


def assign(paths: Sequence[str], entries: Mapping[str, Mapping[str, Any]]) -> list[Assigned]:
    """Which input is which of those known from before, by name and by content.

    A file that has been moved keeps its logical name; one that another input goes on with (it was
    rotated) is not an input of its own.
    """
    starts = {name: start_of(entry) for name, entry in entries.items()}
    contents = Contents()
    files = {name: start.parts[-1] for name, start in starts.items() if start.parts}
    lost = {name: part for name, part in files.items() if not contents.is_at(name, part)}
    moved = {}
    for path in paths:
        if key_of(path) not in files or key_of(path) in lost:
            name = contents.moved_to(path, lost)
            if name is not None and name != key_of(path):
                moved[path] = name
    own = [path for path in paths if path not in moved]
    taken = {
        os.path.realpath(piece.path)
        for path in own
        if key_of(path) in lost
        for piece in find(path, starts[key_of(path)]).pieces
        if piece.path != path
    }
    found = []
    for path in paths:
        name = moved.get(path, path)
        is_known = key_of(name) in starts
        if (path in moved and name in own) or (not is_known and os.path.realpath(path) in taken):
            continue
        entry = entries.get(key_of(name))
        kind = (entry["format"] or None) if entry is not None else None
        found.append(Assigned(path, name, starts.get(key_of(name)), kind))
    return found


def start_of(entry: Mapping[str, Any]) -> Start:
    """Where to go on in a source."""
    offset, line, _, context = entry["mark"]
    parts = tuple(Part(*part) for part in entry["parts"])
    return Start(offset, line, entry["read"][0], context, parts, entry["waiting"])
