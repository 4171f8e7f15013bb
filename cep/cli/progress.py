"""The progress line of a run, on standard error and only for people.

It is drawn at most ten times a second, from the loop of the run itself: there is no thread, and
nothing is drawn while a match is written.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from time import perf_counter
from types import TracebackType
from typing import TYPE_CHECKING, Self

if TYPE_CHECKING:
    from rich.progress import Progress as Bar

    from cep.stats import Stats

EVERY = 0.1
"""Seconds between two drawings."""


class Progress:
    """A bar over the bytes of the inputs with rate, matches and event time.

    Where the size is not known (standard input, compressed or followed files) the line has no bar.
    """

    def __init__(self, total: int | None) -> None:
        from rich.console import Console
        from rich.progress import BarColumn, TaskProgressColumn, TextColumn
        from rich.progress import Progress as Bar
        from rich.table import Column

        bar = [BarColumn(bar_width=16), TaskProgressColumn()] if total else []
        one_line = Column(no_wrap=True, overflow="ellipsis")
        self._bar: Bar = Bar(
            *bar,
            TextColumn("{task.description}", markup=False, table_column=one_line),
            console=Console(stderr=True, highlight=False),
            auto_refresh=False,
            transient=True,
        )
        self._task = self._bar.add_task("reading", total=total)
        self._started = perf_counter()
        self._drawn = 0.0

    def __enter__(self) -> Self:
        self._bar.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._bar.stop()

    def update(self, stats: Stats, done: int) -> None:
        """Draw the state of the run, if the last drawing is old enough."""
        now = perf_counter()
        if now - self._drawn < EVERY:
            return
        self._drawn = now
        rate = stats.events / max(now - self._started, 1e-9)
        self._bar.update(self._task, completed=done, description=progress_text(stats, rate))
        self._bar.refresh()

    @contextmanager
    def hidden(self) -> Iterator[None]:
        """Take the line away while something else is written to the terminal."""
        self._bar.stop()
        try:
            yield
        finally:
            self._bar.start()


def progress_text(stats: Stats, rate: float) -> str:
    """`1,200,000 events  640,000/s  12 matches  at 2026-01-01 00:00:45Z`"""
    from cep.event_time import format_time

    parts = [f"{stats.events:,} events", f"{rate:,.0f}/s", f"{stats.matches:,} matches"]
    if stats.clock_us is not None:
        parts.append(f"at {format_time(stats.clock_us).replace('T', ' ')}")
    return "  ".join(parts)


def total_size(paths: Sequence[str]) -> int | None:
    """Bytes of all inputs, or None where they are not known or not what is counted."""
    total = 0
    for path in paths:
        if path == "-" or path.endswith((".gz", ".zst", ".parquet")) or not Path(path).is_file():
            return None
        total += Path(path).stat().st_size
    return total


def wanted(quiet: bool) -> bool:
    """Whether anyone is there to see a progress line."""
    return not quiet and sys.stderr.isatty()
