"""The comparison with the reference matcher for as long as one likes:

    python tests/property/hunt.py --seconds 600 --seed 1

Prints each disagreement, its events made few, as a case to paste into `tests/spec/`, and at the
end how many cases were tried.
"""

from __future__ import annotations

import argparse
import time
import traceback
from dataclasses import dataclass, replace

from comparing import difference, loaded
from drawn_rules import EventTuple, RuleWriter, Seeded

import cep
from cep.plan import build
from cep.testing.modes import ONE_RUN

MODES = [name for name in ONE_RUN if name != "other rules beside"]
UNROLLED = (32, 32, 32, 1)
"""Small numbers make ordinary loops use the forms that are meant for very long ones."""


@dataclass(frozen=True)
class Case:
    """A rule, what happens, and the further way in which it is run."""

    ruleset: cep.Ruleset
    rule: str
    events: list[EventTuple]
    quiet: bool
    mode: str

    def told(self) -> str | None:
        """The disagreement, or the traceback of what broke."""
        try:
            return difference(self.ruleset, self.rule, self.events, self.quiet, self.mode)
        except Exception:
            return (
                f"{self.rule}\n{self.events} quiet={self.quiet} {self.mode}\n"
                f"{traceback.format_exc()}"
            )

    def smallest(self) -> Case:
        """The case with as few of the events as still show it."""
        case, index = self, 0
        while index < len(case.events):
            shorter = replace(case, events=case.events[:index] + case.events[index + 1 :])
            if shorter.events and shorter.told() is not None:
                case = shorter
            else:
                index += 1
        return case


def hunt(seconds: float, seed: int, most: int) -> int:
    """Tries cases until the time is over; returns how many disagreed."""
    end = time.monotonic() + seconds
    first, tried, refused, failed = seed + 1, 0, 0, 0
    while time.monotonic() < end and failed < most:
        seed += 1
        writer = RuleWriter(Seeded(seed), wide=seed % 3 == 0)
        kind = seed % 8
        rule = writer.window_rule() if kind == 0 else writer.rule(groups=kind % 2 == 0)
        build.UNROLL = UNROLLED[seed // 8 % len(UNROLLED)]
        ruleset = loaded(rule)
        if ruleset is None:
            refused += 1
            continue
        for _ in range(6):
            events, quiet = writer.events(12), writer.chance(50)
            case = Case(ruleset, rule, events, quiet, writer.one(MODES))
            tried += 1
            if case.told() is not None:
                failed += 1
                told = case.smallest().told()
                print(f"\n# seed {seed}, loops unrolled up to {build.UNROLL}\n{told}", flush=True)
                break
    print(
        f"{tried} cases, {refused} rules refused, {failed} disagreements, "
        f"seeds {first} to {seed}, {time.process_time():.0f} s of CPU",
        flush=True,
    )
    return failed


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--most", type=int, default=10)
    given = parser.parse_args()
    raise SystemExit(1 if hunt(given.seconds, given.seed, given.most) else 0)
