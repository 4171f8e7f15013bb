"""A JSON array of objects, read element by element, so the file may be larger than memory.

An element that is broken, or is no object, is a reject; reading goes on after the comma that
follows its end, counted by brackets. Where no end can be found, the rest of the file is the reject.
The policy for numbers, nesting and equal keys is that of `json_line`.
"""

from __future__ import annotations

import codecs
import json
import re
from collections.abc import Iterator

from cep.source.base import BLOCK, LONGEST_LINE, RAW_KEPT, BadRecord, Block, Record, Reject
from cep.source.json_line import TOO_DEEP, as_object, refuse_constant
from cep.source.opened import Opened, unread
from cep.source.raw import Reader

_decode = json.JSONDecoder(parse_constant=refuse_constant).raw_decode
_GAP = re.compile(r"[\s,]*", re.ASCII)
_TOKEN = re.compile(r'"[^"\\]*(?:\\.[^"\\]*)*"?|[\[\]{},]', re.DOTALL)
_PER_BLOCK = 4096


class JsonArray:
    """A file that is one JSON array."""

    def __init__(self, opened: Opened) -> None:
        self.name = opened.name
        self.input = opened

    def blocks(self) -> Iterator[Block]:
        reader, offset = self.input.from_beginning()
        try:
            elements = _Elements(_Text(reader, offset))
            yield from unread(self.input, iter(elements.next_block, None))
        finally:
            reader.close()


class _Text:
    """A window of the file's text, with the place of its present index."""

    def __init__(self, reader: Reader, offset: int) -> None:
        self._reader = reader
        self._decoder = codecs.getincrementaldecoder("utf-8")("surrogateescape")
        self.text = ""
        self.index = 0
        self.offset = offset
        self.number = 1
        self.ended = False

    @property
    def problem(self) -> str | None:
        return self._reader.problem

    def fill(self) -> bool:
        """Reads more behind the present index; false at the end of the file."""
        if self.ended:
            return False
        chunk = self._reader.read(BLOCK)
        self.ended = not chunk
        self.text = self.text[self.index :] + self._decoder.decode(chunk, final=self.ended)
        self.index = 0
        return not self.ended

    def move(self, end: int) -> bytes:
        """Goes to index `end`, and gives the bytes that lie between."""
        passed = self.text[self.index : end].encode("utf-8", errors="surrogateescape")
        self.offset += len(passed)
        self.number += passed.count(b"\n")
        self.index = end
        return passed

    def next_sign(self) -> str:
        """The next character that is neither space nor comma; empty at the end of the file."""
        while True:
            match = _GAP.match(self.text, self.index)
            assert match is not None
            self.move(match.end())
            if self.index < len(self.text):
                return self.text[self.index]
            if not self.fill() and self.index >= len(self.text):
                return ""


class _Elements:
    """Takes the elements of the array out of the text, one by one."""

    def __init__(self, text: _Text) -> None:
        self._text = text
        self._open = False
        self._done = False
        self._rejects: list[Reject] = []
        """Those of the present block."""
        self._end = text.offset, text.number
        """Where the last element ends."""

    def next_block(self) -> Block | None:
        if self._done:
            return None
        self._rejects = []
        block = Block(None, [], [], self._text.offset, self._text.number, self._rejects, [])
        assert block.records is not None
        while len(block.records) < _PER_BLOCK and not self._done:
            self._step(block)
        block.end, block.end_line = self._end
        return block

    def _step(self, block: Block) -> None:
        text = self._text
        sign = text.next_sign()
        if not sign:
            self._done = True
            if text.problem or self._open:
                self._refuse(text.problem or "the file ends before the array does", b"")
        elif sign == "[" and not self._open:
            text.move(text.index + 1)
            self._open = True
        elif sign == "]" and self._open:
            text.move(text.index + 1)
            self._open = False
            if text.next_sign():
                self._refuse_rest("something after the array")
            self._done = True
        elif not self._open:
            self._refuse_rest("not a JSON array")
        else:
            self._element(block)

    def _element(self, block: Block) -> None:
        text = self._text
        place = text.offset, text.number
        try:
            record, end = self._decode_one()
            text.text[text.index : end].encode("utf-8")
        except UnicodeEncodeError:
            self._skip("invalid UTF-8")
        except BadRecord as error:
            self._skip(str(error))
        else:
            text.move(end)
            self._end = text.offset, text.number
            assert block.records is not None
            assert isinstance(block.positions, list)
            assert isinstance(block.line_numbers, list)
            block.records.append(record)
            block.positions.append(place[0])
            block.line_numbers.append(place[1])

    def _decode_one(self) -> tuple[Record, int]:
        """The object at the present index and where it ends; reads on while it is incomplete."""
        text = self._text
        while True:
            try:
                value, end = _decode(text.text, text.index)
            except RecursionError:
                raise BadRecord(TOO_DEEP) from None
            except json.JSONDecodeError as error:
                if not self._is_cut_off(error) or not self._more():
                    reason = f"{error.msg[:1].lower()}{error.msg[1:]}"
                    raise BadRecord(f"not JSON: {reason}") from None
            except BadRecord:
                raise
            except ValueError:
                raise BadRecord("an integer of too many digits") from None
            else:
                if end < len(text.text) or type(value) is dict or not self._more():
                    return as_object(value), end

    def _is_cut_off(self, error: json.JSONDecodeError) -> bool:
        """Whether the error may only be that the window ends here."""
        near_end = error.pos >= len(self._text.text) - 16
        return near_end or error.msg.startswith("Unterminated string")

    def _more(self) -> bool:
        text = self._text
        return len(text.text) - text.index <= LONGEST_LINE and text.fill()

    def _skip(self, reason: str) -> None:
        """Rejects the element at the present index and goes to where it ends."""
        while (end := _end_of_element(self._text.text, self._text.index)) is None:
            if not self._more():
                self._refuse_rest(self._text.problem or reason)
                return
        place = self._text.offset, self._text.number
        self._rejects.append(Reject(*place, reason, self._text.move(end)))
        self._end = self._text.offset, self._text.number

    def _refuse_rest(self, reason: str) -> None:
        text = self._text
        place = text.offset, text.number
        raw = text.move(len(text.text))[:RAW_KEPT]
        while text.fill():
            text.move(len(text.text))
        self._rejects.append(Reject(*place, reason, raw))
        self._done = True

    def _refuse(self, reason: str, raw: bytes) -> None:
        self._rejects.append(Reject(self._text.offset, self._text.number, reason, raw))


def _end_of_element(text: str, start: int) -> int | None:
    """Where the element ends: before a comma or the bracket of the array; None if not in sight."""
    depth = 0
    for match in _TOKEN.finditer(text, start):
        sign = match[0][0]
        if sign in "[{":
            depth += 1
        elif sign in "]}":
            if depth == 0:
                return match.start()
            depth -= 1
        elif sign == "," and depth == 0:
            return match.start()
    return None
