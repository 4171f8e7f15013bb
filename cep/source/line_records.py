"""Formats with one record on each line: syslog, access logs, logfmt, patterns, plain text.

In go lines, out come the records that a reader of one line makes of them. Blank lines are passed
over. Bytes that are not UTF-8 become `\\xNN` in the text: a log of attacks holds what attackers
send, and must not lose a line by it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from cep.source.base import RAW_KEPT, BadRecord, Block, Record, Reject
from cep.source.lines import LineBlock
from cep.source.opened import Opened

ReadLine = Callable[[str], Record]
BINARY = "binary data, not text"


class LineRecords:
    """A file whose lines `make()` reads; it is called for each reading of the file."""

    def __init__(self, opened: Opened, make: Callable[[], ReadLine]) -> None:
        self.name = opened.name
        self._opened = opened
        self._make = make

    def blocks(self) -> Iterator[Block]:
        read = self._make()
        for lines in self._opened.lines():
            yield _read_block(lines, read)


def _read_block(lines: LineBlock, read: ReadLine) -> Block:
    records: list[Record] = []
    positions: list[int] = []
    numbers: list[int] = []
    rejects = lines.rejects
    offset = lines.offset
    for number, line in enumerate(lines.lines, lines.line_number):
        text = as_text(line)
        if text:
            try:
                records.append(read(text))
                positions.append(offset)
                numbers.append(number)
            except BadRecord as error:
                add_reject(rejects, Reject(offset, number, str(error), line))
        offset += len(line)
    return Block(None, records, positions, lines.offset, lines.line_number, rejects, numbers)


def as_text(line: bytes) -> str:
    """The text of a line without its end; empty for a blank line."""
    try:
        text = line.decode("utf-8")
    except UnicodeDecodeError:
        text = line.decode("utf-8", errors="backslashreplace")
    text = text.rstrip("\r\n")
    return "" if text.isspace() else text


def add_reject(rejects: list[Reject], reject: Reject) -> None:
    """Adds a reject; neighbours that are binary data are told as one, but each is counted."""
    if b"\0" not in reject.raw:
        rejects.append(reject)
        return
    last = rejects[-1] if rejects else None
    if last is None or last.reason != BINARY or _next_line(last) != reject.line_number:
        raw = reject.raw[:RAW_KEPT]
        rejects.append(Reject(reject.position, reject.line_number, BINARY, raw, reject.count))
        return
    count = last.count + reject.count
    rejects[-1] = Reject(last.position, last.line_number, BINARY, last.raw, count)


def _next_line(reject: Reject) -> int:
    return reject.line_number + reject.count
