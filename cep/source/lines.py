"""Lines of a stream, in blocks: split by functions written in C, with bounded memory.

A block holds the whole lines that one read brought, so a pipe is handled as it speaks. A last
line without a line break counts; one that a truncated file broke off is a reject. Lines end with
LF or CR LF; nothing else ends a line.
"""

from __future__ import annotations

import io
from collections.abc import Generator
from dataclasses import dataclass, field
from time import sleep

from cep.source.base import BLOCK, LONGEST_LINE, RAW_KEPT, Reject, SourceOptions
from cep.source.follow import Followed
from cep.source.raw import Piped, Reader


@dataclass(slots=True)
class LineBlock:
    """Lines that follow each other: the place of the first, what was no line, and whether all are
    known to be ASCII."""

    lines: list[bytes]
    offset: int
    line_number: int
    rejects: list[Reject] = field(default_factory=list)
    is_ascii: bool = False
    end: int | None = None
    """Where what comes after them begins, where that is known."""


class LineReader:
    """Splits a stream; `offset` is the position of its first byte, `number` that of its first line.

    `has_loose_end`: whether a last line without an end was left where it is.
    """

    def __init__(
        self, reader: Reader, offset: int, options: SourceOptions, number: int = 1
    ) -> None:
        self._reader = reader
        self._options = options
        self._offset = offset
        self._number = number
        self.has_loose_end = False
        self._begun: list[bytes] = []
        """The line that has begun but not ended, in pieces."""
        self._length = 0
        """Its bytes so far; of a line that is too long only the first are kept."""

    def blocks(self) -> Generator[LineBlock, None, None]:
        try:
            while True:
                if chunk := self._reader.read(BLOCK):
                    if block := self._split(chunk):
                        yield block
                elif not isinstance(self._reader, Followed | Piped):
                    break
                elif self._reader.turned:
                    yield self._last()
                    self._offset = self._reader.position
                elif self._reader.over or self._reader.problem:
                    break
                elif self._wait():
                    yield LineBlock([], self._offset, self._number)
                else:
                    break
            self.has_loose_end = self._leaves_loose_end()
            last = LineBlock([], self._offset, self._number)
            if not self.has_loose_end:
                last = self._last()
            if last.lines or last.rejects:
                yield last
        finally:
            self._reader.close()

    def _leaves_loose_end(self) -> bool:
        return self._options.whole_lines and self._length > 0 and not self._reader.problem

    def _wait(self) -> bool:
        """Waits at the end of a followed file; false when the host says stop."""
        stop = self._options.stop
        if stop is not None:
            return not stop.wait(self._options.poll)
        sleep(self._options.poll)
        return True

    def _split(self, chunk: bytes) -> LineBlock | None:
        cut = chunk.rfind(b"\n") + 1
        if not cut:
            self._begin(chunk)
            return None
        block = LineBlock([], self._offset, self._number)
        if self._length > LONGEST_LINE:
            end = chunk.find(b"\n") + 1
            block.rejects.append(self._too_long())
            self._offset += self._length + end
            self._number += 1
            block.offset, block.line_number = self._offset, self._number
            data = chunk[end:cut]
        else:
            self._begun.append(chunk[:cut])
            data = b"".join(self._begun)
        block.lines = io.BytesIO(data).readlines()
        block.is_ascii = data.isascii()
        self._offset += len(data)
        self._number += len(block.lines)
        block.end = self._offset
        self._begun, self._length = [], 0
        if cut < len(chunk):
            self._begin(chunk[cut:])
        return block

    def _begin(self, piece: bytes) -> None:
        self._length += len(piece)
        if self._length <= LONGEST_LINE:
            self._begun.append(piece)
        else:
            self._begun = [b"".join(self._begun)[:RAW_KEPT]]

    def _too_long(self) -> Reject:
        reason = f"a line of more than {LONGEST_LINE >> 20} MiB"
        return Reject(self._offset, self._number, reason, b"".join(self._begun)[:RAW_KEPT])

    def _last(self) -> LineBlock:
        """What is left when the stream ends: a line without an end, or what broke it off."""
        block = LineBlock([], self._offset, self._number)
        rest = b"".join(self._begun)
        problem = self._reader.problem
        if problem:
            block.rejects.append(Reject(self._offset, self._number, problem, rest[:RAW_KEPT]))
        elif self._length > LONGEST_LINE:
            block.rejects.append(self._too_long())
        elif rest:
            block.lines = [rest]
        self._offset += self._length
        self._number += bool(rest)
        self._begun, self._length = [], 0
        return block
