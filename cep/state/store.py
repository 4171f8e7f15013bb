"""What a store of state is: plain data that goes in and comes out, and the protocol.

In: an `Epoch`, everything that one step of the engine makes durable, whole or not at all. Out, at
the next start: a `Snapshot` of the last epoch that was committed. A store knows nothing of rules:
states are JSON text that the codec has written, with a few columns beside it for people and timers.

`cep.state.memory` keeps epochs in memory; `cep.state.sqlite` keeps them in a file.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Literal, NamedTuple, Protocol, TypeAlias

import msgspec

Json: TypeAlias = bool | int | float | str | list["Json"] | dict[str, "Json"] | None
"""What may stand in counters and positions."""


class StateError(Exception):
    """State that cannot be read or written; `str()` says why, and what to do, in plain words."""


class Owner(NamedTuple):
    """Whose states they are: `Owner("runs", "guessed@5f1c")`, `Owner("tables", "prices")`.

    The kinds that the views of the file know are `runs` and `windows` and `dedup` (the name is the
    id of a rule version), `tables` (of a table) and `repeats` (of a stream). Other kinds are kept
    just the same.
    """

    kind: str
    name: str


class StateRow(msgspec.Struct, gc=False):
    """The state of one key. What the columns mean is the same for every kind where it applies."""

    key: str
    """JSON text that tells `1`, `true` and `"1"` apart."""
    state: str | None
    """JSON text; None: this key holds nothing any more."""
    step: str | None = None
    """The step that the run furthest on has reached."""
    first_us: int | None = None
    """Event time of the first event, in microseconds."""
    due_us: int | None = None
    """When the clock must look at this key again, in microseconds."""
    runs: int = 0
    """How many runs; of a window how many events; of `dedup` how many matches it has hidden."""
    ends_us: int | None = None
    """When time decides over the runs, in microseconds; for people who look, `due_us` is later."""
    segments: tuple[str, ...] = ()
    """Further pieces of the state, as JSON objects, that are never written again; `state` is read
    with all of them in a member `g`."""
    sealed: int = 0
    """How many pieces that were written before still belong to it."""
    dropped: int = 0
    """How many that were written before those do not belong to it any more."""


def with_segments(state: str, segments: Iterable[str]) -> str:
    """A state as it is read, with its further pieces.

    >>> with_segments('{"f":3}', ['{"h":[1]}', '{"h":[2]}'])
    '{"f":3,"g":[{"h":[1]},{"h":[2]}]}'
    """
    return f'{state[:-1]},"g":[{",".join(segments)}]}}'


class _Whole(msgspec.Struct):
    g: list[msgspec.Raw] = []


def in_pieces(row: StateRow) -> StateRow:
    """A row as it was read, as one to be written: its further pieces apart.

    Raises `StateError` for one that `with_segments` has not made.
    """
    text = row.state or ""
    if not text.startswith(('{"f":2,', '{"f":3,')):
        return row
    pieces = [bytes(piece).decode() for piece in msgspec.json.decode(text, type=_Whole).g]
    if not pieces:
        return row
    last = with_segments("}", pieces)
    if not text.endswith(last):
        raise StateError(f"the state of {row.key} has been written by another program")
    state = text.removesuffix(last) + "}"
    return msgspec.structs.replace(row, state=state, segments=tuple(pieces), sealed=0, dropped=0)


class SourceRow(msgspec.Struct, frozen=True):
    """How far an input has been read."""

    name: str
    """The logical name, the path as the user gave it."""
    fingerprint: str
    """Tells whether it is still the same file."""
    offset: int
    """Where to go on, in bytes of the uncompressed stream."""
    line_number: int
    frontier_us: int | None = None
    """Event time up to which its events have been released to the rules, in microseconds."""
    format: str | None = None


class OutRow(msgspec.Struct, frozen=True):
    """A record for the outside: a match, a late event or a rejected record."""

    id: str
    """Stable over replays; the same id again replaces the record."""
    kind: Literal["match", "late", "reject"]
    record: str
    """JSON text, as a sink writes it."""
    rule: str | None = None
    time_us: int | None = None
    pending: bool = True
    """Whether it waits to be delivered. One that does not is only kept to be looked at."""


class RuleVersion(msgspec.Struct, frozen=True):
    """A version of a rule. One that is `gone` takes its states with it."""

    id: str
    """Its name and its structure: the name of its owners."""
    name: str
    version: str
    """The version as it stands in match records."""
    structure: str
    """Fingerprint of automaton and conditions."""
    layout: str
    """Fingerprint of what its states hold."""
    source: str
    """The canonical text with its lists and parameters, enough to compile it again."""
    status: Literal["live", "draining", "gone"] = "live"


@dataclass(slots=True)
class Epoch:
    """All that one transaction makes durable: the changes since the epoch before.

    What is left out stays as it was, except `clock_us` and `host_position`, which are always those
    of this epoch. A counter, source or sink length that is given replaces the one of that name.

    >>> Epoch(1, clock_us=0, states={Owner("runs", "r@1"): [StateRow('["ann"]', "{}", runs=1)]})
    ... # doctest: +ELLIPSIS
    Epoch(number=1, ...)
    """

    number: int
    """Greater than that of every epoch before."""
    clock_us: int | None = None
    """Event time of the engine, in microseconds."""
    states: dict[Owner, list[StateRow]] = field(default_factory=dict)
    """Only what has changed. The last one of several rows for a key counts."""
    rules: list[RuleVersion] = field(default_factory=list)
    sources: list[SourceRow] = field(default_factory=list)
    counters: dict[str, Json] = field(default_factory=dict)
    sink_lengths: dict[str, int] = field(default_factory=dict)
    """Bytes of each output file that belong to this epoch or an earlier one."""
    outbox: list[OutRow] = field(default_factory=list)
    delivered: list[str] = field(default_factory=list)
    """Records of earlier epochs that have gone out, and leave the outbox with this one."""
    host_position: Json = None
    """Where the host stands in its own input."""


StateText: TypeAlias = tuple[Owner, str, str]
"""Owner, key and state."""


@dataclass(slots=True)
class Snapshot:
    """The last committed epoch and all before it, as one.

    The functions read from the store while they are iterated: finish with them before the next
    epoch is committed.
    """

    number: int
    """0 for a store that is new."""
    clock_us: int | None
    rules: list[RuleVersion]
    sources: list[SourceRow]
    counters: dict[str, Json]
    sink_lengths: dict[str, int]
    host_position: Json
    states_of: Callable[[Collection[Owner] | None], Iterator[StateText]]
    """The states of these owners, or of all, in one pass and in no particular order."""
    keys: Callable[[Owner], Iterator[str]]
    """The keys of an owner, without their states."""
    outbox: Callable[[], Iterator[OutRow]]
    """What waits to be delivered, oldest first."""
    rows: Callable[[], Iterator[tuple[Owner, StateRow]]]
    """The same as `states`, with the columns beside the states."""
    held: Callable[[], dict[Owner, tuple[int, int]]]
    """How many keys with runs, and how many runs in them, are stored of each owner."""

    def states(self) -> Iterator[StateText]:
        """The states of all owners."""
        return self.states_of(None)


class Size(NamedTuple):
    """What a store takes, in bytes."""

    file: int
    log: int
    """Changes that are durable already and not yet moved into the file itself."""
    free: int
    """Part of the file that is empty; it is used again, or given back by `vacuum`."""


class Store(Protocol):
    """Keeps epochs. One thread uses it; the work may be done on another."""

    @property
    def problem(self) -> str | None:
        """Why the epoch at hand cannot be written at the moment (it is tried again), or None."""
        ...

    @property
    def busy(self) -> bool:
        """Whether an epoch is still being written."""
        ...

    def load(self) -> Snapshot:
        """What was committed last; also of a store that is closed."""
        ...

    def submit(self, epoch: Epoch) -> None:
        """Hand over an epoch and go on; `epoch` is the store's from now on.

        Waits while the epoch before is being written. Raises `StateError` if that has failed.
        """
        ...

    def wait(self, timeout: float | None = None) -> bool:
        """Wait until the epoch handed over is durable; False if it still is not after `timeout`
        seconds. Raises `StateError` if it has failed for good."""
        ...

    def commit(self, epoch: Epoch) -> None:
        """Write an epoch and wait until it is durable.

        Raises `StateError` if that does not succeed in reasonable time. Then nothing of the epoch
        is durable; unless the failure is one for good, the store goes on trying.
        """
        ...

    def delivered(self, ids: Iterable[str]) -> None:
        """These records of the outbox have gone out. Takes effect with the next epoch, or `close`.

        After a crash before that they are in the outbox again: they may go out twice."""
        ...

    def fetch(self, owner: Owner, keys: Sequence[str]) -> dict[str, str]:
        """The committed states of some keys, in one query; keys without one are left out."""
        ...

    def due(self, until_us: int) -> list[StateText]:
        """The committed states whose `due_us` is not after `until_us`, earliest first."""
        ...

    def next_due(self, after_us: int | None = None) -> int | None:
        """The earliest `due_us` (after `after_us`) of a committed state."""
        ...

    def vacuum(self) -> None:
        """Give back the room that is free."""
        ...

    def size(self) -> Size:
        """What it takes now."""
        ...

    def check(self) -> list[str]:
        """What is wrong with what is stored, in words; empty when all is well. Reads everything."""
        ...

    def close(self) -> None:
        """Wait for the epoch at hand and close. Raises `StateError` if it cannot be written."""
        ...
