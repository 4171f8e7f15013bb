"""Warnings that teach: what the numbers of a run say about the rules and the way they were run."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from cep.cli.speech import counted
from cep.explain.duration import duration
from cep.runtime.runs import CANDIDATES

if TYPE_CHECKING:
    from cep.cli.session import RunOptions
    from cep.engine import Engine

_NICE = (1, 2, 5, 10, 15, 20, 30, 45, 60, 90, 120, 300, 600, 900, 1800, 3600, 7200, 14400, 43200)
"""Seconds that people give as a delay. What is later is better repaired by sorting."""

SECOND = 1_000_000
LISTED = 8
"""Values of a field that are listed at most."""


def nice_delay(micros: int) -> str | None:
    """The least round delay that is not smaller, or None where a delay is no help.

    >>> nice_delay(4_200_000), nice_delay(61_000_000), nice_delay(10**12)
    ('5s', '1m30s', None)
    """
    for seconds in _NICE:
        if seconds * SECOND >= micros:
            return duration(seconds * SECOND)
    return None


def late_advice(late: int, longest: int, options: RunOptions) -> str:
    """What to do about events that came after the clock had passed them."""
    text = f"{counted(late, 'event')} {_were(late)} late by up to {_rounded(longest)}"
    delay = nice_delay(longest)
    can_sort = not options.follow and options.state is None
    if delay is None and can_sort:
        return f"{text}: try --sort"
    sort = "" if not can_sort or longest < 60 * SECOND else ", or --sort"
    return f"{text}: try --delay {delay or duration(longest)}{sort}"


def _were(number: int) -> str:
    return "was" if number == 1 else "were"


def _rounded(micros: int) -> str:
    """A length of time in one unit: `4.2 s`, `3.5 h`."""
    for unit, size in (("d", 86400 * SECOND), ("h", 3600 * SECOND), ("min", 60 * SECOND)):
        if micros >= 2 * size:
            return f"{micros / size:.1f}".removesuffix(".0") + f" {unit}"
    return f"{micros / SECOND:.3g} s"


def reject_advice(rejected: int, options: RunOptions, first: str | None = None) -> str:
    """Where to find what could not be read; `first` is the place and the reason of the first."""
    text = f"{counted(rejected, 'record')} {_were(rejected)} rejected"
    if options.rejects is not None:
        return f"{text}: see {options.rejects} for the reasons"
    if first is None:
        return f"{text}: --rejects FILE writes them there with the reasons"
    return f"{text}; --rejects FILE writes them there with the reasons. The first: {first}"


def field_advice(field: str, rules: Iterable[str], seen: Iterable[str], none: str) -> str:
    """A field that rules read and no event had; `none` says how many events were looked at."""
    names = list(rules)
    reads = f"rule {names[0]} reads" if len(names) == 1 else f"rules {', '.join(names)} read"
    close = difflib.get_close_matches(field, list(seen), n=1)
    hint = f" (did you mean `{close[0]}`?)" if close else ""
    return f"{none} had the field `{field}` that {reads}{hint}"


def stream_advice(stream: str, type_field: str, seen: Iterable[object], none: str) -> str:
    """A stream that is told by its type and got no event."""
    values = [str(value) for value in seen]
    shown = ", ".join(values[:LISTED]) + (", …" if len(values) > LISTED else "")
    other = f"--type-field names another, `stream {stream} where …` needs none"
    found = f"values seen: {shown}" if values else f"no event has that field; {other}"
    got = "no events" if none == NO_EVENT else none
    return f"stream {stream} got {got}: type field is `{type_field}`; {found}"


def untried_advice(rule: str, times: int) -> str:
    """A rule whose `having` refuses more candidates than are tried."""
    return (
        f"rule {rule}: `having` refused {CANDIDATES:,} candidates for one event, and the rest was "
        f"not tried, {counted(times, 'time')}: what it asks may be asked by a step's `where`"
    )


def advice(engine: Engine, options: RunOptions, first_reject: str | None = None) -> Iterator[str]:
    """One line for each thing that the user may want to change, the most certain first."""
    stats = engine.stats
    if stats.events == 0 and stats.rejected == 0:
        yield "the input is empty"
    if stats.late:
        yield late_advice(stats.late, stats.late_max_us, options)
    if stats.rejected:
        yield reject_advice(stats.rejected, options, first_reject)
    for rule, numbers in stats.per_rule.items():
        if numbers.untried:
            yield untried_advice(rule, numbers.untried)
    if stats.events:
        yield from _advice_on_silent_rules(engine)


def _advice_on_silent_rules(engine: Engine) -> Iterator[str]:
    """Why rules that found nothing may never find anything: wrong types, wrong fields."""
    from cep.explain.reads import fields_read, types_read

    sample, stats, compiled = engine.sample, engine.stats, engine.ruleset.compiled
    silent = [rule for rule in compiled.rules if stats.per_rule[rule.rule.name].matches == 0]
    none = _none(sample.events, stats.events)
    absent: dict[str, list[str]] = {}
    unmet = dict.fromkeys(
        read
        for rule in silent
        for read in types_read(rule, compiled)
        if read.value not in sample.types
    )
    for read in unmet:
        yield stream_advice(read.stream, ".".join(read.path), sample.types, none)
    for rule in silent:
        if unmet.keys().isdisjoint(types_read(rule, compiled)):
            for path in fields_read(rule, compiled):
                if path[0] not in sample.names and ".".join(path) not in sample.names:
                    absent.setdefault(".".join(path), []).append(rule.rule.name)
    for field, names in absent.items():
        yield field_advice(field, names, sample.names, none)


NO_EVENT = "no event"


def _none(looked_at: int, events: int) -> str:
    """No event, or as much as is known of it."""
    return NO_EVENT if looked_at >= events else f"none of the first {looked_at:,} events"
