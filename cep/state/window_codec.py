"""The window state of a key as JSON text, and back.

In: the state of one key of an `aggregate` rule. Out: one line of JSON, as `cep.state.codec` has it
for runs:

    {"f":2, "w":1700000600000001, "d":{"marked":false}, "i":[[1700000000000000,12.5], …]}

* `f`: the number of the format; `w`: when the key is woken; `d`: what the window dumps; `k`: the
  key, where its text does not tell it exactly.
* `i`: what the window holds one after the other, the oldest first: of a sliding one its events, as
  [time, value, …], or as {"values": […], "unfit": [[place, aggregates], …]} where an aggregate
  could not take a value; of a hopping one its panes, each as buckets are dumped.

A window only grows at its new end, and only shrinks at its old one. So a large one is written in
pieces: `g` holds those before, each with an `i` of its own, that are never written again; `x` is
how many at the front of them have left the window. Pieces all of which has left are dropped.

Format 1 had all events in `d`, with a value for each aggregate, and for each open window of a
hopping one a bucket.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import msgspec

from cep.runtime.window_rule import WindowRun
from cep.runtime.windows import Window
from cep.state.codec import Gradual, format_of, require_known, unreadable
from cep.state.segments import LARGE, SEALED, STEP
from cep.state.store import StateRow
from cep.state.values import exact_key, from_json, key_from_exact, key_from_text, key_text, to_json

FORMAT = 2
"""The number of the format that is written."""


class _Piece(msgspec.Struct):
    """A further piece of a window."""

    i: list[Any] = []


class _Row(msgspec.Struct):
    """The state of a window as it is written; see the module's head."""

    f: int
    w: int
    d: Any
    i: list[Any] = []
    x: int = 0
    g: list[_Piece] = []
    k: list[Any] | None = None


_encode = msgspec.json.Encoder().encode
_read = msgspec.json.Decoder(_Row).decode


class Queue:
    """What has been written of the items of one window."""

    def __init__(self, state: Window) -> None:
        self.state = state
        self.gone = 0
        """How many at the front of the pieces are not there any more."""
        self._pieces: deque[int] = deque()
        """How many items each piece has."""
        self._written = 0
        """How many all of them have."""
        self._newest: Any = None
        """The last item of the last piece."""

    @classmethod
    def read(cls, state: Window, pieces: Sequence[int], tail: int) -> Queue:
        """That of a state that was read: how many items its pieces have, and the row itself."""
        made = cls(state)
        made._pieces.extend(pieces)
        made._written = sum(pieces)
        if len(state.items) > tail:
            made._newest = state.items[-1 - tail]
        return made

    def advance(self) -> tuple[int, int, list[Any]]:
        """How many of the oldest pieces are of no use any more, how many of those after them are,
        and the items that are in none. O(such items)."""
        items, tail = self.state.items, []
        for item in reversed(items):
            if item is self._newest:
                break
            tail.append(item)
        tail.reverse()
        dropped, self.gone = 0, self._written - (len(items) - len(tail))
        while self._pieces and self.gone >= self._pieces[0]:
            size = self._pieces.popleft()
            self.gone -= size
            self._written -= size
            dropped += 1
        return dropped, len(self._pieces), tail

    def seal(self, items: Sequence[Any]) -> None:
        """These items, which are in no piece, are a new one."""
        self._pieces.append(len(items))
        self._written += len(items)
        self._newest = items[-1]


class WindowCodec:
    """Writes and reads the states of an aggregate rule. O(what the window holds); `changed_row` of
    a large one O(what has changed)."""

    kind = "windows"

    def __init__(self, run: WindowRun) -> None:
        self.run = run
        self._queues: dict[int, Queue] = {}
        """By identity of the state: what of it has been written in pieces."""
        self._queue: Queue | None = None
        """That of the state that was decoded last, where it is in pieces."""

    # ------------------------------------------------------------------ writing

    def encode(self, state: Window) -> str:
        """The state as text, without its key."""
        return self._text(state, state.items, 0)

    def row(self, state: Window) -> StateRow:
        """The state with its key, the time of its first event, when it is woken, when it is over
        if nothing else comes, and how many events it holds. Events that have left a sliding window
        count until the next event comes, where nothing can come of it."""
        row = _glance(state)
        row.state = self.encode(state)
        return row

    def changed_row(self, state: Window) -> StateRow | Gradual:
        """The same for a state that has changed, to be written over the one of before: of a large
        window only what is new since the last call, and which pieces are of no use any more."""
        queue = self._queues.get(id(state))
        if len(state.items) <= (LARGE if queue is None else LARGE // 2):
            self.forget(state)
            return self.row(state)
        if queue is None:
            queue = self._queues[id(state)] = Queue(state)
        row = _glance(state)
        row.dropped, row.sealed, tail = queue.advance()
        end = len(tail) - state.open_items
        pieces: list[list[Any]] = []
        if end > SEALED:
            pieces = [tail[at : min(at + STEP, end)] for at in range(0, end, STEP)]
            tail = tail[end:]
        for piece in pieces:
            queue.seal(piece)
        row.state = self._text(state, tail, queue.gone)
        return self._with_pieces(state, row, pieces) if pieces else row

    def _with_pieces(self, state: Window, row: StateRow, pieces: Sequence[list[Any]]) -> Gradual:
        """The row with new pieces, a step for each. The window may change between the steps: what
        is in pieces stays as it is."""
        texts: list[str] = []
        for piece in pieces:
            texts.append(_encode({"i": self._rows(state, piece)}).decode())
            yield None
        row.segments = tuple(texts)
        yield row

    def _text(self, state: Window, items: Iterable[Any], gone: int) -> str:
        """The state with only these items in its row."""
        made: dict[str, Any] = {"f": FORMAT, "w": state.wake, "d": to_json(state.dump())}
        more = {"i": self._rows(state, items), "x": gone, "k": exact_key(state.key)}
        made.update((name, content) for name, content in more.items() if content)
        return _encode(made).decode()

    @staticmethod
    def _rows(state: Window, items: Iterable[Any]) -> list[Any]:
        return [to_json(state.item_row(item)) for item in items]

    def forget(self, state: Window) -> None:
        """The state is not written any more by this program, or is gone."""
        self._queues.pop(id(state), None)

    # ------------------------------------------------------------------ reading

    def decode(self, key: str, text: str | bytes) -> Window:
        """The state that `encode` was given. Raises `UnreadableState` for what is no such text, or
        one of another rule or version."""
        self._queue = None
        try:
            row = _read(text)
            require_known(row.f)
            found = key_from_text(key) if row.k is None else key_from_exact(row.k)
            state = self.run.windows.new(found)
            state.wake = row.w
            _READERS[row.f](self, state, row)
        except Exception as error:
            raise unreadable(text, error) from error
        return state

    def read_1(self, state: Window, row: _Row) -> None:
        """Reads format 1."""
        state.load_1(from_json(row.d))

    def read_2(self, state: Window, row: _Row) -> None:
        """Reads format 2."""
        written = [item for piece in row.g for item in piece.i]
        state.load(from_json(row.d), from_json([*written[row.x :], *row.i]))
        if row.g:
            self._queue = Queue.read(state, [len(piece.i) for piece in row.g], len(row.i))

    def is_earlier_form(self, _: str, text: str) -> bool:
        """Whether a text that can be read is of a form that is written no more."""
        return format_of(text) != FORMAT

    def adopt(self, key: str, text: str | bytes) -> Window:
        """Decodes a state and lets it live in the rule: it will be found and woken."""
        state = self.decode(key, text)
        self.run.adopt(state)
        queue, self._queue = self._queue, None
        if queue is not None:
            self._queues[id(state)] = queue
        return state


_READERS: Mapping[int, Callable[[WindowCodec, Window, _Row], None]] = {
    1: WindowCodec.read_1,
    2: WindowCodec.read_2,
}


def _glance(state: Window) -> StateRow:
    """What can be said of a state at a glance."""
    return StateRow(
        key_text(state.key),
        None,
        first_us=state.first,
        due_us=state.wake or None,
        runs=state.count,
        ends_us=state.ends(),
    )
