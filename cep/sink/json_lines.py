"""Matches as JSON lines: one match record (docs/reference/match.md) on each line."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from cep.sink.files import OutputFile

if TYPE_CHECKING:
    from cep.match import Match


class JsonLinesSink:
    """Writes each match as one line of JSON to `path`, or to standard output for `-`."""

    def __init__(self, path: str, keep: int | None = None) -> None:
        self._out = OutputFile(path, keep)
        self.name = self._out.name

    def write(self, matches: Sequence[Match]) -> None:
        self._out.write(b"".join([match.to_json() + b"\n" for match in matches]))

    def flush(self) -> None:
        self._out.flush()

    def settle(self) -> int | None:
        return self._out.settle()

    def close(self) -> None:
        self._out.close()
