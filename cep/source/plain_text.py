"""Lines that nobody taught us to read: the text, and the time where the line begins with one.

Fields: `message`, the whole line, and `timestamp` (ISO text), a stamp of any form that `stamps`
knows at the start of the line, also in brackets. A line without one belongs to what was said
before, as the lines of a stack trace do, and gets the time of its predecessor.
"""

from __future__ import annotations

from cep.source.base import Record
from cep.source.stamps import Stamps


class PlainText:
    """Reads the lines of one file."""

    def __init__(self, stamps: Stamps) -> None:
        self._stamps = stamps
        self._last: str | None = None

    @property
    def context(self) -> list[str | None]:
        """The last time, and what is known of earlier stamps."""
        return [self._last, self._stamps.context]

    @context.setter
    def context(self, known: list[str | None] | None) -> None:
        self._last, self._stamps.context = known or (None, None)

    def __call__(self, line: str) -> Record:
        """Any line is a record."""
        found = self._stamps.leading(line, 1 if line.startswith(("[", "<", "(")) else 0)
        if found is not None:
            self._last = found[0]
        return (
            {"message": line}
            if self._last is None
            else {
                "timestamp": self._last,
                "message": line,
            }
        )
