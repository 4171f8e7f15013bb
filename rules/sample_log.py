"""A log put together from stories, with what must be found in it.

What the `make_sample.py` of each pack has in common. Each story adds events and writes down, as it
puts them in, what the rules must find; nothing is found out by running the rules.

    python -m rules.fraud.make_sample           writes sample.jsonl and expected.jsonl of a pack

The same bytes on every machine: only `random.random()` of a seeded generator is used.
"""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TypeVar

Item = TypeVar("Item")
LogT = TypeVar("LogT", bound="Log")
DAY = datetime(2026, 3, 12, tzinfo=UTC)


class Log:
    """Collects the events and what must be found in them."""

    def __init__(self, seed: int = 7) -> None:
        self.random = random.Random(seed).random
        self.events: list[tuple[datetime, dict[str, object]]] = []
        self.expected: list[tuple[datetime, str, dict[str, object]]] = []

    def add(self, when: datetime, kind: str, **fields: object) -> datetime:
        self.events.append((when, {"type": kind, **fields}))
        return when

    def expect(self, when: datetime, rule: str, **key: object) -> None:
        self.expected.append((when, rule, key))

    def pick(self, items: Sequence[Item]) -> Item:
        return items[int(self.random() * len(items))]

    def whole(self, low: int, high: int) -> int:
        """A whole number from `low` up to but not including `high`."""
        return low + int(self.random() * (high - low))

    def between(self, start: datetime, seconds: float) -> datetime:
        """A moment within `seconds` after `start`."""
        return start + timedelta(milliseconds=int(self.random() * seconds * 1000))


def at(hours: int, minutes: int = 0, seconds: float = 0, days: int = 0) -> datetime:
    """A moment of the day that the sample is about, or of `days` before it."""
    return DAY + timedelta(days=-days, hours=hours, minutes=minutes, seconds=seconds)


def filled(log: LogT, stories: Sequence[Callable[[LogT], None]]) -> LogT:
    """The log with all stories in it, in no particular order yet."""
    for story in stories:
        story(log)
    return log


def sample_lines(log: Log) -> Iterator[str]:
    """The events as JSON lines in the order of time."""
    for when, fields in sorted(log.events, key=lambda event: event[0]):
        yield json.dumps({"timestamp": stamp(when), **fields}) + "\n"


def expected_lines(log: Log) -> Iterator[str]:
    """What must be found, in the order of time."""
    for when, rule, key in sorted(log.expected, key=lambda found: found[0]):
        yield json.dumps({"time": stamp(when), "rule": rule, "key": key}) + "\n"


def stamp(when: datetime) -> str:
    text = when.isoformat(timespec="milliseconds" if when.microsecond else "seconds")
    return text.replace("+00:00", "Z")


def write(script: str, log: Log) -> None:
    """Writes both files beside the script."""
    folder = Path(script).parent
    (folder / "sample.jsonl").write_text("".join(sample_lines(log)))
    (folder / "expected.jsonl").write_text("".join(expected_lines(log)))
