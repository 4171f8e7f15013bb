"""The short form of `python -m tests.crash`: a kill of each kind of run."""

from __future__ import annotations

from pathlib import Path

from tests.crash.killing import Toll
from tests.crash.scenarios import SCENARIOS

KILLS = 8
EVENTS = 1200
EACH = 1
LONGEST_LIFE = 0.5


def test_killed_at_any_moment_each_match_is_there_once(tmp_path: Path) -> None:
    toll, seed = Toll(), 0
    while seed < len(SCENARIOS) or toll.kills < KILLS:
        folder = tmp_path / str(seed)
        folder.mkdir()
        scenario = SCENARIOS[seed % len(SCENARIOS)](folder, seed, EVENTS)
        toll.add(scenario.hunt(EACH, LONGEST_LIFE))
        scenario.verify()
        seed += 1
    print(toll.histogram())
