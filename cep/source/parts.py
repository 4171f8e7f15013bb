"""The files that are read one after the other under one name, and how to find them again.

A log is rotated: `app.log` becomes `app.log.1`, perhaps compressed, and a new `app.log` begins.
Positions count through all of them, so each file is a `Part` that begins at its `base`. A part is
known by the fingerprint of its content, which neither renaming nor copying nor compressing changes;
device and number of the file only help where there is little content yet. In go the parts that
were read before, out come the `Piece`s that are to be read now.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from hashlib import blake2b

from cep.source.base import Part, SourceError, Start
from cep.source.raw import open_file, read_head, unpack

HEAD = 1024
"""Bytes of content that a fingerprint covers, if there are so many."""

TELLING = 64
"""Bytes of content that tell one file from all others where nothing else does."""

_SUFFIX = r"[._-]\d[\dTt:._-]*(?:\.(?:gz|gzip|zst|zstd))?"
"""What rotation appends to a name: `.1`, `.2.gz`, `-20260101`, `.2026-01-01T00`."""


@dataclass(frozen=True, slots=True)
class Piece:
    """A file, or some of it, that is to be read: from byte `skip` of its content up to byte `stop`
    (None: to its end). Its first byte has position `base`; None: where the piece before ends."""

    path: str
    base: int | None
    skip: int = 0
    stop: int | None = None


@dataclass(frozen=True, slots=True)
class Found:
    """What is to be read, and a sentence on what has become of the file, if that must be said."""

    pieces: tuple[Piece, ...]
    remark: str | None = None


def fingerprint(head: bytes) -> str:
    """The length and a hash of the beginning of a content.

    >>> fingerprint(b"")
    '0:'
    """
    head = head[:HEAD]
    return f"{len(head)}:{blake2b(head, digest_size=16).hexdigest() if head else ''}"


def fits(known: str, head: bytes) -> bool:
    """Whether a content that begins with `head` may be the one of this fingerprint, grown since."""
    length = int(known.partition(":")[0])
    return len(head) >= length and fingerprint(head[:length]) == known


def find(path: str, start: Start) -> Found:
    """Where the parts that were read before are now, and what came after them."""
    last, contents = start.parts[-1], Contents()
    is_here = contents.is_at(path, last)
    if is_here and not _is_shorter(path, start.read_to - last.base):
        if len(start.parts) == 1:
            return Found((Piece(path, last.base, start.offset - last.base),))
    elif len(start.parts) == 1 and is_here:
        remark = f"has been cut: read from its beginning{_loss(start)}"
        return Found((Piece(path, start.read_to),), remark)
    return _after_rotation(path, start, contents)


def _after_rotation(path: str, start: Start, contents: Contents) -> Found:
    family = [*([path] if os.path.exists(path) else []), *_family(path)]
    places = [next((p for p in family if contents.is_at(p, part)), None) for part in start.parts]
    pieces = _known_pieces(start, places)
    if not pieces:
        remark = "is another file than before, which is gone: read from its beginning"
        remark += _loss(start)
        return Found((Piece(path, start.read_to),), remark)
    newest = _changed(pieces[-1].path)
    seen = {piece.path for piece in pieces} | {path}
    between = [p for p in family if p not in seen and _changed(p) >= newest]
    between.sort(key=lambda p: (_changed(p), p))
    pieces += [Piece(p, None) for p in between]
    if os.path.exists(path) and pieces[-1].path != path:
        pieces.append(Piece(path, None))
    names = ", then ".join(os.path.basename(piece.path) for piece in pieces)
    return Found(tuple(pieces), f"has been rotated: read on in {names}")


def _loss(start: Start) -> str:
    if not start.waiting:
        return ""
    return f"; the last {start.waiting:,} events of it, which waited for their turn, are lost"


def _known_pieces(start: Start, places: Sequence[str | None]) -> list[Piece]:
    """The parts that are still there, from where reading begins."""
    ends = [part.base for part in start.parts[1:]]
    pieces = []
    for index, (part, place) in enumerate(zip(start.parts, places, strict=True)):
        if place is not None:
            stop = ends[index] - part.base if index < len(ends) else None
            pieces.append(Piece(place, part.base, max(start.offset - part.base, 0), stop))
    return pieces


def _family(path: str) -> list[str]:
    """The files beside `path` that may have been it."""
    folder, name = os.path.split(path)
    is_one = re.compile(re.escape(name) + _SUFFIX).fullmatch
    with suppress(OSError):
        names = sorted(entry.name for entry in os.scandir(folder or ".") if entry.is_file())
        return [os.path.join(folder, other) for other in names if is_one(other)]
    return []


def _is_shorter(path: str, length: int) -> bool:
    """Whether a plain file has less than what has been read of it; of a compressed one that is
    found when it is read."""
    try:
        file = open_file(path)
    except SourceError:
        return True
    try:
        _, compression, _ = unpack(file, path)
        return not compression and os.fstat(file.descriptor).st_size < length
    finally:
        file.close()


def _changed(path: str) -> int:
    try:
        return os.stat(path).st_mtime_ns
    except OSError:
        return 0


def head_of(path: str) -> bytes:
    """The first bytes of a file's content."""
    reader, _, _ = unpack(open_file(path), path)
    try:
        return read_head(reader, HEAD)[:HEAD]
    finally:
        reader.close()


class Contents:
    """Which of the files that were read before are where, by their content. Each file is looked at
    once, however many it is compared with."""

    def __init__(self) -> None:
        self._looks: dict[str, _Look | None] = {}

    def is_at(self, path: str, part: Part) -> bool:
        """Whether the file at `path` may be this part."""
        look = self._look(path)
        if look is None or not fits(part.fingerprint, look.head):
            return False
        return look.place == (part.device, part.inode) or not part.fingerprint.startswith("0:")

    def moved_to(self, path: str, parts: Mapping[str, Part]) -> str | None:
        """The name of the part that the file at `path` is beyond doubt."""
        look = self._look(path)
        if look is None:
            return None
        for name, part in parts.items():
            length = int(part.fingerprint.partition(":")[0])
            same_place = length and look.place == (part.device, part.inode)
            if (same_place or length >= TELLING) and look.fits(part.fingerprint, length):
                return name
        return None

    def _look(self, path: str) -> _Look | None:
        if path not in self._looks:
            self._looks[path] = _look_at(path)
        return self._looks[path]


@dataclass(slots=True)
class _Look:
    """What was seen of a file: the beginning of its content, and its place on the disk."""

    head: bytes
    place: tuple[int, int]
    known: dict[int, str] = field(default_factory=dict)

    def fits(self, known: str, length: int) -> bool:
        if length not in self.known:
            self.known[length] = fingerprint(self.head[:length])
        return self.known[length] == known


def _look_at(path: str) -> _Look | None:
    try:
        status = os.stat(path)
        return _Look(head_of(path), (status.st_dev, status.st_ino))
    except (OSError, SourceError, ValueError):
        return None
