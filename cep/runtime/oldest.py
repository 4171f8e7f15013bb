"""The first events of a key's runs: when they were, and dropping the oldest of them.

What a rule holds is counted in first events: with one, all runs that began with it are dropped. A
window counts as one, its first event.
"""

from __future__ import annotations

from typing import Any

from cep.runtime.reporting import Reporting
from cep.runtime.rule import RuleRun
from cep.runtime.runs import NEWEST_TIME, NUMBER
from cep.runtime.window_rule import WindowRun


def first_times(run: Reporting, state: Any) -> list[int]:
    """The times of the first events of a state's runs, the oldest first. O(shared nodes)."""
    if not isinstance(run, RuleRun):
        first = run.first_time(state) if isinstance(run, WindowRun) else None
        return [first] if first is not None else []
    return [start[NEWEST_TIME] for start in run.first_events(state)]


def drop_until(run: Reporting, state: Any, time: int) -> int:
    """Drops the first events of a state that are not after `time`; gives how many there were."""
    times = first_times(run, state)
    if not times or times[0] > time:
        return 0
    if state.epoch != run.epoch:
        run.touch(state)
    if not isinstance(run, RuleRun):
        _forget(run, state)
        return 1
    dropped = [start[NUMBER] for start in run.first_events(state) if start[NEWEST_TIME] <= time]
    state.floor = max(state.floor, *dropped)
    run.sweep(state)
    if not run.holds(state):
        _forget(run, state)
    return len(dropped)


def _forget(run: Reporting, state: Any) -> None:
    """The key has nothing any more; its pending wake-up is passed over."""
    state.wake = 0
    run.forget(state)
