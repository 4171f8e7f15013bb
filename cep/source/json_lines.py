"""JSON lines: the lines as they are. The engine decodes them straight into what rules read."""

from __future__ import annotations

from collections.abc import Iterator

from cep.source.base import Block
from cep.source.opened import Opened


class JsonLines:
    """A file of JSON lines; what is on them is seen by those who decode them (`json_line`)."""

    def __init__(self, opened: Opened) -> None:
        self.name = opened.name
        self.input = opened

    def blocks(self) -> Iterator[Block]:
        for block in self.input.lines():
            found = Block(block.lines, None, None, block.offset, block.line_number, block.rejects)
            found.is_ascii = block.is_ascii
            if block.end is not None:
                found.end, found.end_line = block.end, block.line_number + len(block.lines)
            yield found
