"""Numbers of an engine, and what it says of absences that are still open."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from cep.runtime.reporting import Reporting


@dataclass(slots=True)
class RuleStats:
    """Numbers of one rule. `unrouted`: events without a key; `unknown`: failed calls in conditions;
    `dropped`: runs over a limit, and of them `crowded`: those of keys that held more than a cap of
    the engine allows; `ended`: runs that `keep` has ended."""

    matches: int = 0
    timeouts: int = 0
    suppressed: int = 0
    unknown: int = 0
    unrouted: int = 0
    dropped: int = 0
    crowded: int = 0
    ended: int = 0
    untried: int = 0
    keys: int = 0
    first_unknown: str | None = None
    """What the first failed call was, with its values and why it failed."""

    def add(self, rule: Reporting) -> None:
        """The numbers of a version of the rule."""
        self.matches += rule.matches
        self.timeouts += rule.timeouts
        self.suppressed += rule.suppressed
        self.unknown += rule.careful.failures
        self.first_unknown = self.first_unknown or rule.careful.first
        self.unrouted += rule.unroutable
        self.dropped += rule.dropped
        self.crowded += rule.crowded
        self.ended += rule.ended
        self.untried += rule.untried
        self.keys += rule.keys


@dataclass(slots=True)
class Stats:
    """Numbers of an engine so far. `repeats`: events that a stream's `dedup` has dropped, counted
    for each such stream. `clock_us` is the engine clock (None before the first event)."""

    events: int = 0
    matches: int = 0
    timeouts: int = 0
    late: int = 0
    late_max_us: int = 0
    rejected: int = 0
    unknown: int = 0
    suppressed: int = 0
    dropped: int = 0
    repeats: int = 0
    clock_us: int | None = None
    per_rule: dict[str, RuleStats] = field(default_factory=dict)


TOTALS = ("matches", "timeouts", "suppressed", "unknown", "dropped")
"""The numbers of rules that `Stats` has the sums of."""


@dataclass(frozen=True, slots=True)
class Undecided:
    """An absence that is still open: the rule, its key, when it would become true."""

    rule: str
    key: dict[str, Any]
    deadline_us: int
    first_us: int
