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
            offset, number = block.offset, block.line_number
            is_ascii = block.is_ascii
            yield Block(block.lines, None, None, offset, number, block.rejects, is_ascii=is_ascii)
