"""Records that entered no match: late events and rejects, as JSON lines with the reason.

The original text of the record is in `raw`; bytes that are not UTF-8 are in `raw_base64` instead,
so that nothing is lost.
"""

from __future__ import annotations

import base64
from typing import TYPE_CHECKING

from cep.event_time import format_time
from cep.sink.columns import json_text
from cep.sink.files import OutputFile

if TYPE_CHECKING:
    from cep.event import LateEvent
    from cep.source.base import Reject


class LeftoverFile:
    """A JSON lines file of records that the engine could not use."""

    def __init__(self, path: str, keep: int | None = None) -> None:
        self._out = OutputFile(path, keep)
        self.name = path

    def late(self, event: LateEvent) -> None:
        """Write an event that came after the clock had passed its time."""
        self.write(late_record(event))

    def reject(self, source: str, record: Reject) -> None:
        """Write a record that could not be read as an event."""
        self.write(reject_record(source, record))

    def write(self, record: str) -> None:
        """Write a record that is text already."""
        self._out.write(record.encode() + b"\n")

    def flush(self) -> None:
        self._out.flush()

    def settle(self) -> int | None:
        """Make what was written durable; the length of the file."""
        return self._out.settle()

    def close(self) -> None:
        self._out.close()


def late_record(event: LateEvent) -> str:
    """An event that came too late, as JSON text."""
    return json_text(
        {
            "source": event.source,
            "position": event.position,
            "time": format_time(event.time_us),
            "late_by_s": event.by_us / 1_000_000,
            **_raw(event.raw),
        }
    )


def reject_record(source: str, record: Reject) -> str:
    """A record that could not be read as an event, as JSON text."""
    return json_text(
        {
            "source": source,
            "position": record.position,
            "line": record.line_number,
            "reason": record.reason,
            **_raw(record.raw),
        }
    )


def _raw(raw: object) -> dict[str, object]:
    """The original record under the name that says its form."""
    if not isinstance(raw, bytes):
        return {"raw": raw}
    try:
        return {"raw": raw.decode().rstrip("\r\n")}
    except UnicodeDecodeError:
        return {"raw_base64": base64.b64encode(raw).decode()}
