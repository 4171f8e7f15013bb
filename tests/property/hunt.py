"""The comparison with the reference matcher for as long as one likes:

    python tests/property/hunt.py --seconds 600 --seed 1

Prints each disagreement, its events made few, as a case to paste into `tests/spec/`, and at the
end how many cases were tried.
"""

from __future__ import annotations

import argparse
import time
import traceback

from comparing import difference, loaded
from drawn_rules import EventTuple, RuleWriter, Seeded

import cep
from cep.plan import build

UNROLLED = (32, 32, 32, 1)
"""Small numbers make ordinary loops use the forms that are meant for very long ones."""


def told(ruleset: cep.Ruleset, rule: str, events: list[EventTuple], quiet: bool) -> str | None:
    """The disagreement, or the traceback of what broke."""
    try:
        return difference(ruleset, rule, events, quiet)
    except Exception:
        return f"{rule}\n{events} quiet={quiet}\n{traceback.format_exc()}"


def fewer(ruleset: cep.Ruleset, rule: str, events: list[EventTuple], quiet: bool) -> str | None:
    """The disagreement over as few of the events as still show it."""
    index = 0
    while index < len(events):
        shorter = events[:index] + events[index + 1 :]
        if shorter and told(ruleset, rule, shorter, quiet) is not None:
            events = shorter
        else:
            index += 1
    return told(ruleset, rule, events, quiet)


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
            tried += 1
            if told(ruleset, rule, events, quiet) is not None:
                failed += 1
                case = fewer(ruleset, rule, events, quiet)
                print(f"\n# seed {seed}, loops unrolled up to {build.UNROLL}\n{case}", flush=True)
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
