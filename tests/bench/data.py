"""The event files of the benchmarks: the same bytes on every machine, from a seeded generator.

In: a folder and the name of a file. Out: its path; the file is written when it is not there yet,
and its SHA-256 is compared with what it must be. Events come about a thousand a second of event
time, a third of the neighbours at the same time; a line has 123 bytes.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from random import Random

EPOCH_MS = 1_700_000_000_000
HOSTS = 200


@dataclass(frozen=True, slots=True)
class EventFile:
    """What stands in a file: how many events, of which types, of how many users."""

    events: int
    types: tuple[str, ...]
    users: int
    seed: int
    sha256: str
    """The first digits of the hash of the whole file."""

    def head(self, events: int, sha256: str) -> EventFile:
        """The file of only the first events of this one."""
        return EventFile(events, self.types, self.users, self.seed, sha256)


W1 = EventFile(2_000_000, ("A", "B", "C", *(f"T{i}" for i in range(3, 20))), 10_000, 1, "e893e86d")
W3 = EventFile(20_000, ("A", "B", "C"), 1, 3, "5947d27d")
W4 = EventFile(500_000, tuple(f"T{i}" for i in range(2000)), 10_000, 4, "cbf5f778")

FILES = {
    "w1": W1,
    "w1-quick": W1.head(200_000, "cc8f9163"),
    "w3": W3,
    "w4": W4,
    "w4-quick": W4.head(200_000, "72cf1ca4"),
}


def lines(file: EventFile) -> Iterator[str]:
    """The lines of a file, with their line breaks. The order of the draws must not change."""
    draw = Random(file.seed)
    below = draw.randrange
    time = EPOCH_MS
    for number in range(file.events):
        time += below(3)
        kind = file.types[below(len(file.types))]
        user = below(file.users)
        cents = below(1_000_000)
        ok = "true" if draw.random() < 0.9 else "false"
        ip = f"10.{below(256)}.{below(256)}.{below(256)}"
        yield (
            f'{{"ts":{time},"type":"{kind}","user":"u{user}","ip":"{ip}","ok":{ok},'
            f'"amount":{cents / 100:.2f},"host":"h{below(HOSTS)}","seq":{number}}}\n'
        )


def ensure(folder: Path, name: str) -> Path:
    """The path of a file of `FILES`, written first where it is missing.

    Raises ValueError when the bytes are not the ones that the right answers belong to.
    """
    path = folder / f"{name}.jsonl"
    if not path.exists():
        folder.mkdir(parents=True, exist_ok=True)
        unfinished = path.with_suffix(".unfinished")
        with unfinished.open("w", encoding="ascii", newline="\n") as out:
            out.writelines(lines(FILES[name]))
        unfinished.rename(path)
    with path.open("rb") as file:
        found = hashlib.file_digest(file, "sha256").hexdigest()
    if not found.startswith(FILES[name].sha256):
        raise ValueError(f"{path} is not the file of the benchmarks: its hash is {found[:8]}")
    return path
