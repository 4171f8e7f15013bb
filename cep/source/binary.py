"""A file that is no text: read to its end and rejected, in few words, but all of it counted."""

from __future__ import annotations

from collections.abc import Iterator

from cep.source.base import RAW_KEPT, Block, Reject
from cep.source.line_records import BINARY
from cep.source.opened import Opened


class Binary:
    """One reject for each block of lines, which counts them."""

    def __init__(self, opened: Opened) -> None:
        self.name = opened.name
        self.input = opened

    def blocks(self) -> Iterator[Block]:
        for block in self.input.lines():
            rejects = block.rejects
            if block.lines:
                raw = block.lines[0][:RAW_KEPT]
                rejects.append(
                    Reject(block.offset, block.line_number, BINARY, raw, len(block.lines))
                )
            end = block.offset + sum(map(len, block.lines))
            end_line = block.line_number + len(block.lines)
            yield Block(None, [], [], block.offset, block.line_number, rejects, [], end, end_line)
