"""Warnings that teach: what the numbers of a run say about the rules and the way they were run."""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Container, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

from cep.cli.sample import Kind, Sample, Want, type_name
from cep.cli.speech import counted
from cep.explain.duration import duration
from cep.plan.limits import MOST_NODES, MOST_RUNS
from cep.runtime.runs import CANDIDATES
from dsl.diagnostics import slip_of

if TYPE_CHECKING:
    from cep.cli.session import RunOptions
    from cep.explain.reads import Constant, Path, Reads, Told
    from cep.ruleset import Ruleset
    from cep.stats import Stats

_NICE = (1, 2, 5, 10, 15, 20, 30, 45, 60, 90, 120, 300, 600, 900, 1800, 3600, 7200, 14400, 43200)
"""Seconds that people give as a delay. What is later is better repaired by sorting."""

SECOND = 1_000_000
LISTED = 8
"""Values of a field, and names, that are listed at most."""

FEW = 3
"""Rules without events that are told one by one, by what each of them misses."""


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
    if delay is None and options.state is not None:
        return f"{text}: the state has come further; inputs of other times want one of their own"
    if delay is None:
        return f"{text}: with `idle` the clock is that on the wall; read old logs without --follow"
    sort = "" if not can_sort or longest < 60 * SECOND else ", or --sort"
    return f"{text}: try --delay {delay}{sort}"


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


def field_advice(
    field: str, rules: Sequence[str], names: Iterable[str], stream: str | None = None
) -> str:
    """A field that rules read and no event had, or no event of a stream; `names`: what it had."""
    guess = slip_of(field, names)
    hint = f" (did you mean `{guess}`?)" if guess else ""
    of = f" of stream {stream}" if stream is not None else ""
    return f"no event{of} had the field `{field}` that {_do(rules, 'read')}{hint}"


def _do(rules: Sequence[str], verb: str) -> str:
    """`rule a reads`, `rules a, b read`."""
    if len(rules) == 1:
        return f"rule {rules[0]} {verb}s"
    return f"rules {_some(rules)} {verb}"


def _some(values: Iterable[object]) -> str:
    """The first of many, for a list in a sentence."""
    texts = [str(value) for value in values]
    return ", ".join(texts[:LISTED]) + (", …" if len(texts) > LISTED else "")


def stream_advice(
    streams: Sequence[str], field: str, seen: Iterable[object], *, is_type: bool = True
) -> str:
    """Streams that are told by the values of a field and got no event; `seen`: its values;
    `is_type`: it is the one that says the type of an event."""
    values = [str(value) for value in seen]
    which = f"stream {streams[0]}" if len(streams) == 1 else f"streams {_some(streams)}"
    other = f"--type-field names another, `stream {streams[0]} where …` needs none"
    if not is_type:
        asks = "it asks" if len(streams) == 1 else "they ask"
        text = f"{which} got no events: {asks} for a value of `{field}`"
        return f"{text}; values seen: {_some(values)}" if values else f"{text}; no event has it"
    found = f"values seen: {_some(values)}" if values else f"no event has that field; {other}"
    guess = slip_of(streams[0], values) if len(streams) == 1 else None
    hint = f" (did you mean `{guess}`?)" if guess else ""
    return f"{which} got no events: type field is `{field}`; {found}{hint}"


def type_advice(
    field: str, rules: Sequence[str], constants: Sequence[object], types: Collection[str]
) -> str:
    """A field that rules compare with constants of another type than it has."""
    shown = _some(json.dumps(constant, ensure_ascii=False) for constant in constants)
    found = " or ".join(sorted(types))
    text = f"{_do(rules, 'compare')} `{field}` with {shown}, but in the events it is {_a(found)}"
    return f"{text}: {_instead(field, constants[0], types)}"


def _a(type_: str) -> str:
    return f"an {type_}" if type_[0] in "ao" else type_ if type_ == "text" else f"a {type_}"


def _instead(field: str, constant: object, types: Collection[str]) -> str:
    """What to write where a constant is of another type than the field."""
    if isinstance(constant, str):
        bare = constant.strip().lower()
        if "boolean" in types and bare in ("true", "false"):
            return f"write {bare} without quotes"
        if "number" in types and _NUMBER.fullmatch(bare):
            return f"write {bare} without quotes"
    elif types == {"text"}:
        if isinstance(constant, bool):
            return f'write "{json.dumps(constant)}" with quotes'
        return f"`num({field})` makes a number of it"
    return "values of different types are never equal, and none is larger"


_NUMBER = re.compile(r"-?\d+(\.\d+)?")


def untried_advice(rule: str, times: int) -> str:
    """A rule whose `having` refuses more candidates than are tried."""
    return (
        f"rule {rule}: `having` refused {CANDIDATES:,} candidates for one event, and the rest was "
        f"not tried, {counted(times, 'time')}: what it asks may be asked by a step's `where`"
    )


def crowded_advice(rule: str, dropped: int) -> str:
    """A rule of which a key held so much that its oldest runs were dropped."""
    return (
        f"rule {rule}: a key held more runs than are tested one by one ({MOST_RUNS:,}), or more "
        f"events in them than are kept ({MOST_NODES:,}); the runs of "
        f"{counted(dropped, 'first event')} were dropped: a shorter `within` or a finer `by` "
        "needs fewer, `limit N runs` sets the number"
    )


def unknown_advice(rule: str, times: int, first: str) -> str:
    """A rule of which calls failed, so that what they stand in was neither true nor false."""
    return f"rule {rule}: {counted(times, 'unknown condition')}, the first: {first}"


def idle_advice(ruleset: Ruleset) -> str | None:
    """What keeps rules that wait for a time from reporting while live inputs are silent."""
    if ruleset.checked.idle is not None:
        return None
    waiting = [
        rule.name
        for rule in ruleset.compiled.rules
        if any(position.deadline is not None for position in rule.automaton.positions)
    ]
    if not waiting:
        return None
    return (
        f"{_do(waiting, 'wait')} for something not to happen: while no event comes the clock "
        "stands still; `stream event { idle 30s }` lets it go on after 30 seconds of silence"
    )


def advice(
    stats: Stats, read: Stats, options: RunOptions, sample: Sample | None, first_reject: str | None
) -> Iterator[str]:
    """One line for each thing that the user may want to change, the most certain first. `read`: the
    numbers of this run alone. `sample`: what events look like, where they have been looked at."""
    if stats.events == 0 and stats.rejected == 0:
        yield "the input is empty"
    if read.late:
        yield late_advice(read.late, stats.late_max_us, options)
    if read.rejected:
        yield reject_advice(read.rejected, options, first_reject)
    for rule, numbers in stats.per_rule.items():
        if numbers.untried:
            yield untried_advice(rule, numbers.untried)
        if numbers.crowded:
            yield crowded_advice(rule, numbers.crowded)
        if numbers.first_unknown is not None:
            yield unknown_advice(rule, numbers.unknown, numbers.first_unknown)
    if sample is not None and sample.events:
        yield from sample_advice(sample, everything=options.stats)


def sample_advice(sample: Sample, *, everything: bool = False) -> Iterator[str]:
    """What rules read that no event has: streams, fields, values of other types. A rule that finds
    something is no exception: what it does not find, or finds too much, is not seen. Many rules
    without any event are told together, `everything`: with all their names."""
    idle = sample.without_events()
    together = {rule.name for rule in idle} if len(idle) > FEW else set()
    if together:
        yield idle_rules_advice([rule.name for rule in idle], len(sample.rules), everything)
    yield from _advice_on_streams(sample, together)
    yield from _advice_on_unions(sample, together)
    silent = {
        stream for rule in sample.rules for stream in rule.streams if _unmet(sample, rule, stream)
    }
    yield from _advice_on_fields(sample, silent, together)
    yield from _advice_on_types(sample, silent)


def _unmet(sample: Sample, rule: Reads, stream: str) -> Told | None:
    """The value that the events of a stream are told by and that no event has."""
    return next((told for told in rule.told_by(stream) if not sample.has(Want(told, None))), None)


def _advice_on_streams(sample: Sample, together: Collection[str]) -> Iterator[str]:
    """Streams that are told by a value that no event has. Where no rule has events at all the
    field that says the type may be another."""
    unmet: dict[Path, dict[str, None]] = {}
    types: set[Path] = set()
    for rule in sample.rules:
        for stream in rule.streams:
            told = _unmet(sample, rule, stream)
            if told is None:
                continue
            is_type = rule.is_type(told.path)
            if is_type:
                types.add(told.path)
            if (
                rule.name not in together
                or (is_type and len(together) == len(sample.rules))
                or slip_of(stream, map(str, sample.values[told.path]))
            ):
                unmet.setdefault(told.path, {}).setdefault(stream)
    for path, streams in unmet.items():
        field, values = ".".join(path), sample.values[path]
        yield stream_advice(list(streams), field, values, is_type=path in types)


def idle_rules_advice(idle: Sequence[str], rules: int, everything: bool) -> str:
    """Rules that none of the events was for, of so many."""
    names = ", ".join(idle) if everything else _some(idle)
    more = "" if everything or len(idle) <= LISTED else " (--stats lists all)"
    return f"{len(idle)} of {counted(rules, 'rule')} had no events to look at: {names}{more}"


def _advice_on_unions(sample: Sample, together: Container[str]) -> Iterator[str]:
    """Streams with several parents, none of which got an event."""
    derived = sample.derived()
    unmet = dict.fromkeys(
        stream
        for rule in sample.rules
        if rule.name not in together
        for stream in rule.needs
        if len(rule.ways(stream)) > 1 and not sample.may_have(rule, stream, derived)
    )
    if unmet:
        which = f"stream {_some(unmet)}" if len(unmet) == 1 else f"streams {_some(unmet)}"
        yield f"{which} got no events: none of the streams named after `from` has any"


def _advice_on_fields(
    sample: Sample, silent: Collection[str], together: Container[str]
) -> Iterator[str]:
    """Fields that no event of a stream has."""
    absent: dict[tuple[str, str | None], dict[str, None]] = {}
    names: dict[tuple[str, str | None], list[str]] = {}
    for rule in sample.rules:
        for stream, paths in rule.fields:
            kind = sample.kind_of(rule, stream)
            if stream in silent or any(sample.has(Want(kind, path)) for path in paths):
                continue
            is_anywhere = sample.has(Want(None, paths[0]))
            told = ".".join(paths[0]), stream if is_anywhere else None
            if rule.name in together and not slip_of(told[0], _names(sample, kind)):
                continue
            absent.setdefault(told, {}).setdefault(rule.name)
            names[told] = _names(sample, kind)
    for (field, of), rules in absent.items():
        yield field_advice(field, list(rules), names[field, of], of)


def _names(sample: Sample, kind: Kind) -> list[str]:
    """The fields that the events of a kind have."""
    return [".".join(path) for path in sample.types[kind]]


def _advice_on_types(sample: Sample, silent: Collection[str]) -> Iterator[str]:
    """Fields that are compared with values of another type than they ever have."""
    odd: dict[tuple[str, tuple[Constant, ...], frozenset[str]], dict[str, None]] = {}
    for rule in sample.rules:
        for stream, path, constants in rule.compared:
            types = sample.types[sample.kind_of(rule, stream)].get(path)
            if stream in silent or not types:
                continue
            if types.isdisjoint(map(type_name, constants)):
                told = ".".join(path), constants, frozenset(types)
                odd.setdefault(told, {}).setdefault(rule.name)
    for (field, constants, seen), rules in odd.items():
        yield type_advice(field, list(rules), constants, seen)
