"""Events as the state keeps them: their originals, byte for byte, and what the engine noted.

In: an event as rules see it. Out: the row `[original, time, position, source]` that the head of
`cep.state.codec` describes, as text or for the encoder; and of such a row an event, decoded again
into the shape of the rules that run then.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import msgspec

from cep.event import Deferred, EventShape
from cep.state.values import from_json, json_text, to_json

DecodeLine = Callable[[bytes], Any]
"""Makes an event of a JSON line (`cep.ingest.Ingest.decode`)."""

_LONG, _DEEP = 400, 200
"""A line shorter than the one, or with fewer brackets than the other, is not nested too deep for
any reader of JSON."""


class Event(msgspec.Struct, array_like=True, gc=False):
    """A row of an event, as it is read."""

    raw: msgspec.Raw
    t: int
    pos: int
    src: Any
    more: dict[str, Any] | None = None


_encode = msgspec.json.Encoder().encode
_read = msgspec.json.Decoder(Event).decode


class EventCodec:
    """Writes and reads the rows of events. Lines come with their line breaks, which are left out:
    reading would not find them again."""

    def __init__(self, shape: EventShape, decode_line: DecodeLine) -> None:
        self.shape = shape
        self.decode_line = decode_line
        self._notes = {name: f"n{i}" for i, name in enumerate(shape.notes)}
        self._marks = shape.marks_repeats or bool(shape.notes)
        self._source = ("", '""')
        """The source of the last event and how it is written: most have the same."""

    def line(self, event: Any) -> str | None:
        """The row of an event that is a JSON line of no stream and without notes, as text; None for
        any other."""
        raw = event.raw
        if raw.__class__ is not bytes or event.s is not None or self._marks:
            return None
        if len(raw) >= _LONG and _is_deep(raw):
            return None
        source = event.src
        if source != self._source[0]:
            self._source = (source, json_text(source))
        try:
            return f"[{raw.strip().decode()},{event.t},{event.pos},{self._source[1]}]"
        except UnicodeDecodeError:
            return None

    def row(self, event: Any) -> list[Any]:
        """The row of an event, for the encoder."""
        row = [self._original(event.raw), event.t, event.pos, to_json(event.src)]
        if self._marks or event.s is not None:
            more = {"s": event.s} if event.s is not None else {}
            if self.shape.marks_repeats and event.r:
                more["r"] = event.r
            for name, attribute in self._notes.items():
                noted = getattr(event, attribute)
                if noted is not None:
                    more[name] = to_json(noted)
            row.append(more)
        return row

    def _original(self, raw: Any) -> Any:
        if isinstance(raw, bytes | bytearray | memoryview):
            line = bytes(raw).strip()
            try:
                text = line.decode()
            except UnicodeDecodeError:
                return ["b", line.hex()]
            return text if _is_deep(line) else msgspec.Raw(line)
        if isinstance(raw, Deferred):
            raw = raw.record()
        return None if raw is None else msgspec.Raw(f'["m",{json_text(raw)}]'.encode())

    def text(self, event: Any) -> str:
        """The row of an event as text, which holds its original as it came but for white space
        around it."""
        return _encode(self.row(event)).decode()

    def read_text(self, text: str) -> Any:
        """The event that `text` was given."""
        return self.read(_read(text))

    def read(self, row: Event) -> Any:
        """The event of a row."""
        raw = bytes(row.raw)
        if raw[:1] == b"{" and len(raw) < _LONG:
            event = self.decode_line(raw)
            event.raw = raw
        else:
            event = self._decoded(raw)
        event.t, event.pos = row.t, row.pos
        event.src = sys.intern(row.src) if row.src.__class__ is str else from_json(row.src)
        for name, content in (row.more or {}).items():
            attribute = self._notes.get(name, name)
            if hasattr(event, attribute):  # other rules may note other things
                setattr(event, attribute, from_json(content))
        return event

    def _decoded(self, original: bytes) -> Any:
        if original[:1] == b"{":
            return self._of_line(original)
        if original == b"null":
            return self.shape.type()
        if original[:1] == b'"':
            return self._of_line(msgspec.json.decode(original).encode())
        kind, content = msgspec.json.decode(original)
        if kind == "b":
            return self._of_line(bytes.fromhex(content))
        return self.shape.from_mapping(from_json(content))

    def _of_line(self, line: bytes) -> Any:
        if _is_deep(line):
            with _more_room():
                event = self.decode_line(line)
        else:
            event = self.decode_line(line)
        event.raw = line
        return event


def _is_deep(line: bytes) -> bool:
    """Whether a line may be nested so deep that not every reader of JSON would take it."""
    return len(line) >= _LONG and line.count(b"[") + line.count(b"{") > _DEEP


@contextmanager
def _more_room() -> Iterator[None]:
    """What could be read when it came can be read again, however deep the caller stands."""
    limit = sys.getrecursionlimit()
    sys.setrecursionlimit(limit + 1000)
    try:
        yield
    finally:
        sys.setrecursionlimit(limit)
