"""Formats with one record on each line: syslog, access logs, logfmt, patterns, plain text.

In go lines, out come the records that a reader of one line makes of them. Blank lines are passed
over. Bytes that are not UTF-8 become `\\xNN` in the text: a log of attacks holds what attackers
send, and must not lose a line by it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import accumulate
from typing import Any, Protocol, runtime_checkable

from cep.source.base import RAW_KEPT, BadRecord, Block, Record, Reject
from cep.source.lines import LineBlock
from cep.source.opened import Opened

ReadLine = Callable[[str], Record]


@runtime_checkable
class Remembers(Protocol):
    """A reader of lines for whom earlier lines matter (a year, a time)."""

    context: Any
    """What it knows of them, as a JSON value; None at the beginning."""


BINARY = "binary data, not text"


class LineRecords:
    """A file whose lines `make()` reads; it is called for each reading of the file."""

    def __init__(self, opened: Opened, make: Callable[[], ReadLine]) -> None:
        self.name = opened.name
        self.input = opened
        self._make = make

    def blocks(self) -> Iterator[Block]:
        read = self._make()
        start = self.input.resumed_at
        if isinstance(read, Remembers) and start is not None:
            read.context = start.context
        for lines in self.input.lines():
            before = read.context if isinstance(read, Remembers) else None
            block = _read_block(lines, read)
            block.context = before
            block.end_context = read.context if isinstance(read, Remembers) else None
            yield block


def _read_block(block: LineBlock, read: ReadLine) -> Block:
    records: list[Record] = []
    passed_over: set[int] = set()
    offsets = list(accumulate(map(len, block.lines), initial=block.offset))
    for index, text in enumerate(texts(block.lines)):
        if not text or text.isspace():
            passed_over.add(index)
            continue
        try:
            records.append(read(text))
        except BadRecord as error:
            passed_over.add(index)
            number = block.line_number + index
            reject = Reject(offsets[index], number, str(error), block.lines[index])
            add_reject(block.rejects, reject)
    kept = [index for index in range(len(block.lines)) if index not in passed_over]
    positions = [offsets[index] for index in kept]
    numbers = [block.line_number + index for index in kept]
    return Block(
        None,
        records,
        positions,
        block.offset,
        block.line_number,
        block.rejects,
        numbers,
        end=offsets[-1],
        end_line=block.line_number + len(block.lines),
    )


def texts(lines: list[bytes]) -> list[str]:
    """The texts of lines, without their ends."""
    try:
        whole = b"".join(lines).decode("utf-8")
    except UnicodeDecodeError:
        return [line.decode("utf-8", errors="backslashreplace").rstrip("\r\n") for line in lines]
    found = whole.split("\n")
    del found[len(lines) :]
    return [text.rstrip("\r") for text in found] if "\r" in whole else found


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
