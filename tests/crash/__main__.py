"""`python -m tests.crash`: kills engines at random moments until none of it is luck any more.

In: how many kills, with which seed. Each scenario in turn is killed until its log is through, then
what it has found is compared with an undisturbed run. Out: for each run its kills, and at the end
a histogram of where the kills fell; exit code 1 where something was missing or stood twice.
"""

from __future__ import annotations

import argparse
import itertools
import shutil
import sys
import tempfile
import time
from pathlib import Path

from tests.crash.killing import Toll
from tests.crash.scenarios import SCENARIOS

MOST_FAILURES = 10
"""After so many it is of no use to go on."""


def main() -> int:
    """Kills as often as it is asked to."""
    options = _options()
    total, failed, began = Toll(), 0, time.monotonic()
    for seed in itertools.count(options.seed):
        if total.kills >= options.kills or failed >= MOST_FAILURES:
            break
        make = SCENARIOS[seed % len(SCENARIOS)] if options.only is None else SCENARIOS[options.only]
        folder = Path(tempfile.mkdtemp(prefix="cep-crash-"))
        scenario = make(folder, seed, options.events)
        toll = Toll()
        try:
            toll = scenario.hunt(options.each, options.life)
            scenario.verify()
        except AssertionError as error:
            failed += 1
            print(f"seed {seed}, {scenario.name}: FAILED in {folder}\n  {error}", flush=True)
        else:
            shutil.rmtree(folder)
            hits = f"{toll.cuts} cuts" if toll.cuts else f"{toll.kills} kills"
            print(f"seed {seed}, {scenario.name}: {hits}, all is there", flush=True)
        total.add(toll)
    seconds = time.monotonic() - began
    print(f"\n{total.kills} kills, {total.cuts} power cuts in {seconds:.0f} s; where they fell:")
    print(total.histogram())
    if options.places:
        print(*(f"{n:5} {place}" for place, n in total.places.most_common()), sep="\n")
    return 1 if failed else 0


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.crash", description=__doc__)
    parser.add_argument("--kills", type=int, default=200, help="how many in all")
    parser.add_argument("--each", type=int, default=20, help="how many for one log, at most")
    parser.add_argument("--events", type=int, default=8000, help="length of a log")
    parser.add_argument("--life", type=float, default=2.0, help="longest life in seconds")
    parser.add_argument("--seed", type=int, default=1, help="of the first log")
    parser.add_argument("--only", type=int, help="number of the one scenario to run")
    parser.add_argument("--places", action="store_true", help="also print the lines of the kills")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
