"""Bytes of a file as they are meant: uncompressed, decoded to UTF-8, without a byte order mark.

In goes a path (or `-`), out comes a `Reader` whose `read` gives whatever is there, as soon as it
is there, and b"" at the end. What goes wrong on the way (a truncated gzip file, a disk error) ends
the stream and stands in `problem`: all that could be read before it has been given.
"""

from __future__ import annotations

import codecs
import errno
import os
import select
import stat
import sys
import zlib
from typing import Any, Protocol

from cep.source.base import SourceError

CHUNK = 1 << 18
ZSTD_STEP = 1 << 12
_SALVAGE = 1 << 10
GZIP_MAGIC = b"\x1f\x8b"
ZSTD_MAGIC = b"\x28\xb5\x2f\xfd"
_UTF16_MARKS = {codecs.BOM_UTF16_LE: "utf-16-le", codecs.BOM_UTF16_BE: "utf-16-be"}


class Reader(Protocol):
    """A stream of bytes with a memory of what went wrong."""

    @property
    def problem(self) -> str | None: ...

    def read(self, size: int) -> bytes:
        """Up to about `size` bytes, what there is now; b"" at the end."""
        ...

    def close(self) -> None:
        """Gives the file back."""
        ...


class FileReader:
    """A file, pipe or device by its descriptor, unbuffered."""

    def __init__(self, descriptor: int, *, owned: bool = True) -> None:
        self.problem: str | None = None
        self.descriptor = descriptor
        self._owned = owned

    def read(self, size: int) -> bytes:
        try:
            return os.read(self.descriptor, size)
        except OSError as error:
            self.problem = f"reading failed: {os.strerror(error.errno or errno.EIO)}"
            return b""

    def close(self) -> None:
        if self._owned:
            self._owned = False
            os.close(self.descriptor)


class Piped:
    """A pipe that does not wait: its b"" means that it says nothing at the moment, until `over`."""

    turned = False

    def __init__(self, inner: Reader, file: FileReader) -> None:
        self._inner = inner
        self._file = file
        self._begun = False
        self.over = False

    @property
    def problem(self) -> str | None:
        return self._inner.problem

    @property
    def position(self) -> int:
        """A pipe never goes over to another file."""
        raise NotImplementedError

    def read(self, size: int) -> bytes:
        if self._begun and not select.select([self._file.descriptor], [], [], 0)[0]:
            return b""
        self._begun = True  # what was seen of it when it was opened needs no waiting
        chunk = self._inner.read(size)
        self.over = not chunk
        return chunk

    def close(self) -> None:
        self._inner.close()


class Prefixed:
    """A stream whose beginning has been looked at: gives it once more, then goes on."""

    def __init__(self, head: bytes, inner: Reader) -> None:
        self._head = head
        self._inner = inner

    @property
    def problem(self) -> str | None:
        return self._inner.problem

    def read(self, size: int) -> bytes:
        if self._head:
            head, self._head = self._head, b""
            return head
        return self._inner.read(size)

    def close(self) -> None:
        self._inner.close()


class Inflated:
    """The content of a gzip or zstd stream, of one or of several parts after each other."""

    def __init__(self, inner: Reader, kind: str) -> None:
        self._inner = inner
        self._kind = kind
        self._part: Any = None
        self._rest = b""
        self.problem: str | None = None

    def read(self, size: int) -> bytes:
        while self.problem is None:
            packed = self._rest or self._inner.read(CHUNK)
            self._rest = b""
            content = self._inflate(packed, size) if packed else self._finish()
            if content or not packed:
                return content
        return b""

    def _inflate(self, packed: bytes, size: int) -> bytes:
        if self._part is None:
            if not packed.strip(b"\0"):  # gzip files may be padded with zeros
                return b""
            self._part = _inflater(self._kind)
        before = self._part.copy() if self._kind == "gzip" else None
        try:
            content = self._step(packed, size)
        except Exception as error:  # each library has errors of its own
            self.problem = f"broken {self._kind} data: {str(error).splitlines()[0]}"
            return _salvage(before, packed) if before is not None else b""
        if self._part.eof:
            # zlib may leave what follows the part in `unconsumed_tail` too: it is there only once
            left = b"" if self._kind == "gzip" else self._rest
            self._rest = self._part.unused_data + left
            self._part = None
        return content

    def _step(self, packed: bytes, size: int) -> bytes:
        """Inflates some of `packed`, so little that hostile data cannot fill the memory."""
        if self._kind == "gzip":
            content: bytes = self._part.decompress(packed, size)
            self._rest = self._part.unconsumed_tail
        else:
            content = self._part.decompress(packed[:ZSTD_STEP])
            self._rest = packed[ZSTD_STEP:]
        return content

    def _finish(self) -> bytes:
        """At the end of the packed bytes: what is still in the works, else the problem, if any."""
        if self._part is not None and self._kind == "gzip":
            content: bytes = self._part.flush()
            if self._part.eof:
                self._part = None
            if content:
                return content
        if self._inner.problem:
            self.problem = self._inner.problem
        elif self._part is not None:
            self.problem = f"truncated: the {self._kind} data end before their end mark"
        return b""

    def close(self) -> None:
        self._inner.close()


class Transcoded:
    """UTF-16 text, as some systems write their logs, as UTF-8."""

    def __init__(self, inner: Reader, encoding: str) -> None:
        self._inner = inner
        self._decoder = codecs.getincrementaldecoder(encoding)(errors="replace")

    @property
    def problem(self) -> str | None:
        return self._inner.problem

    def read(self, size: int) -> bytes:
        while chunk := self._inner.read(size):
            if text := self._decoder.decode(chunk):
                return text.encode("utf-8", errors="replace")
        return self._decoder.decode(b"", final=True).encode("utf-8", errors="replace")

    def close(self) -> None:
        self._inner.close()


def open_file(path: str) -> FileReader:
    """Opens a path, or standard input for `-`; `SourceError` says what is wrong with it."""
    if path == "-":
        return FileReader(_standard_input(), owned=False)
    try:
        descriptor = os.open(path, os.O_RDONLY | getattr(os, "O_CLOEXEC", 0))
    except (OSError, ValueError) as error:
        raise SourceError(_why_not(path, error)) from None
    if stat.S_ISDIR(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise SourceError(f"{path}: this is a folder, not a file")
    return FileReader(descriptor)


def _standard_input() -> int:
    try:
        return sys.stdin.fileno()
    except (AttributeError, OSError, ValueError):  # closed, or replaced by the host
        raise SourceError("standard input is closed") from None


def is_regular(reader: FileReader) -> bool:
    """Whether it is a file that can be opened again from its beginning, not a pipe."""
    return stat.S_ISREG(os.fstat(reader.descriptor).st_mode)


def unpack(reader: Reader, path: str) -> tuple[Reader, str, int]:
    """Looks through compression and text encoding.

    Returns the stream of UTF-8, the compression (`gzip`, `zstd` or ""), and the bytes of a byte
    order mark that were left out at its start.
    """
    head = read_head(reader, 4)
    stream: Reader = Prefixed(head, reader)
    compression = ""
    if head.startswith(GZIP_MAGIC):
        compression = "gzip"
    elif head.startswith(ZSTD_MAGIC):
        compression = "zstd"
        _need_zstandard(path)
    if compression:
        stream = Inflated(stream, compression)
        head = read_head(stream, 4)
        stream = Prefixed(head, stream)
    if head.startswith(codecs.BOM_UTF8):
        return _without_mark(stream, 3), compression, 3
    encoding = _UTF16_MARKS.get(head[:2])
    if encoding and head[2:4] != b"\0\0":
        return Transcoded(_without_mark(stream, 2), encoding), compression, 0
    return stream, compression, 0


def read_head(reader: Reader, size: int) -> bytes:
    """At least `size` bytes from the start, if there are so many."""
    head = b""
    while len(head) < size and (chunk := reader.read(CHUNK)):
        head += chunk
    return head


def _without_mark(reader: Reader, length: int) -> Reader:
    return Prefixed(read_head(reader, length)[length:], reader)


def _inflater(kind: str) -> Any:
    if kind == "gzip":
        return zlib.decompressobj(wbits=31)
    import zstandard

    return zstandard.ZstdDecompressor().decompressobj()


def _salvage(part: Any, packed: bytes) -> bytes:
    """What comes before the place where gzip data are broken: a failing call gives nothing."""
    pieces = []
    try:
        while packed:
            pieces.append(part.decompress(packed, _SALVAGE))
            packed = part.unconsumed_tail
    except zlib.error:
        pass
    return b"".join(pieces)


def _need_zstandard(path: str) -> None:
    try:
        import zstandard  # noqa: F401
    except ImportError:
        raise SourceError(
            f"{path}: this file is compressed with zstd; to read it: pip install 'cep[zstd]'"
        ) from None


def _why_not(path: str, error: OSError | ValueError) -> str:
    if isinstance(error, FileNotFoundError):
        return f"{path}: there is no such file"
    if isinstance(error, PermissionError):
        return f"{path}: no permission to read it"
    if isinstance(error, OSError) and error.errno:
        return f"{path}: cannot be opened: {os.strerror(error.errno).lower()}"
    return f"{path!r} cannot be a path"
