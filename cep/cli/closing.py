"""What is said at the end of a run: one line of numbers, open absences, numbers for each rule."""

from __future__ import annotations

from collections.abc import Container, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from cep.cli.speech import counted
from cep.sink.columns import json_text
from cep.sink.text import printable

if TYPE_CHECKING:
    from cep.stats import Stats, Undecided

SHOWN = 10
"""Open absences that are listed unless all are asked for."""


def closing_line(stats: Stats, undecided: int, seconds: float) -> str:
    """All that was read and found, in one line."""
    counts = [
        counted(stats.events, "event"),
        counted(stats.matches + stats.timeouts, "match", "matches"),
        f"{stats.late:,} late",
        f"{stats.rejected:,} rejected",
        f"{undecided:,} undecided",
        counted(stats.unknown, "unknown condition"),
    ]
    rate = stats.events / seconds if seconds > 0 else 0
    return f"{', '.join(counts)} in {seconds:.1f} s ({rate:,.0f} events/s)"


def undecided_lines(
    undecided: Sequence[Undecided], *, everything: bool, go_on: bool = False
) -> Iterator[str]:
    """The absences that were still open at the end, the earliest deadline first; `go_on`: the next
    run goes on with them."""
    from cep.event_time import format_time

    if not undecided:
        return
    if go_on:
        yield "still open, and kept for the next run:"
    else:
        yield "undecided at the end of the input (--at-end says what becomes of them):"
    listed = sorted(undecided, key=lambda one: (one.deadline_us, one.rule))
    for one in listed if everything else listed[:SHOWN]:
        key = " ".join(f"{name}={_value(value)}" for name, value in one.key.items())
        until = format_time(one.deadline_us)
        yield f"  {one.rule}  {printable(key)}  would match at {until}".replace("    ", "  ")
    if len(listed) > SHOWN and not everything:
        yield f"  … and {len(listed) - SHOWN:,} more (--stats lists all)"


def open_end_lines(open_ends: Mapping[str, int], windows: Container[str]) -> Iterator[str]:
    """What was still open at the end and has not been reported; `windows`: the rules with windows
    among these."""
    for rule, number in open_ends.items():
        if rule in windows:
            what = counted(number, "window")
        else:
            what = f"loops of {counted(number, 'key')}"
        was = "was" if number == 1 and rule in windows else "were"
        yield (
            f"rule {rule}: {what} {was} still open at the end of the input "
            "(--at-end assume-quiet reports what is in them)"
        )


def _value(value: object) -> str:
    return value if isinstance(value, str) else json_text(value)


_COLUMNS = ("matches", "suppressed", "unknown", "dropped", "untried", "unrouted")


def rule_table(stats: Stats) -> Iterator[str]:
    """The numbers of each rule, as a table."""
    width = max([len("rule"), *(len(name) for name in stats.per_rule)])
    yield "  ".join(["rule".ljust(width), *(column.rjust(10) for column in _COLUMNS)])
    for name, numbers in stats.per_rule.items():
        cells = (f"{getattr(numbers, column):,}".rjust(10) for column in _COLUMNS)
        yield "  ".join([name.ljust(width), *cells])
