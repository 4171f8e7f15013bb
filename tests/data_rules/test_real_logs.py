"""Rules over real logs: what the engine finds is what plain loops count, match by match.

The logs are not part of the project; without them these tests are skipped. The numbers stand here
too, so that a mistake made on both sides alike would show as a changed number.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

import pytest

import cep
from cep.source import open_source

HERE = Path(__file__).parent
LOGS = HERE.parents[1].parent / "shared" / "data"

NUMBERS = {
    "sshd": {
        "guessing": 96,
        "guessing_hourly": 10,
        "many_names": 17,
        "break_in": 85,
        "break_in_hourly": 4,
        "guessed": 0,
        "gave_up": 10,
    },
    "zeek": {
        "server_explored": 2,
        "server_explored_every_way": 332,
        "service_created": 0,
        "beaconing": 2,
        "idle_share": 9,
        "self_signed": 2,
    },
    "windows": {
        "log_wiped_then_service": 1,
        "remote_service": 1,
        "secrets_saved": 2,
        "share_of_the_tool": 1,
    },
}
CASES = [(log, rule) for log, rules in NUMBERS.items() for rule in rules]

_spec = importlib.util.spec_from_file_location("real_log_counts", HERE / "counts.py")
assert _spec is not None
assert _spec.loader is not None
counts = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(counts)

Found = dict[str, list[tuple]]


@pytest.fixture(scope="module")
def counted() -> Callable[[str], Found]:
    return _remember(lambda log: counts.LOGS[log][0](_path(log)))


@pytest.fixture(scope="module")
def found() -> Callable[[str], Found]:
    return _remember(_run)


def _remember(make: Callable[[str], Found]) -> Callable[[str], Found]:
    known: dict[str, Found] = {}

    def get(log: str) -> Found:
        if log not in known:
            known[log] = make(log)
        return known[log]

    return get


def _path(log: str) -> Path:
    path = LOGS / counts.LOGS[log][1]
    if not path.exists():
        pytest.skip(f"no {path}")
    return path


def _run(log: str, *, sort: bool = False, rules: str = "") -> Found:
    """The matches of each rule over a log, as (time, key parts…) like `counts` gives them."""
    ruleset = cep.loads(rules, name=f"{log}.cep") if rules else cep.load([HERE / f"{log}.cep"])
    engine = cep.Engine(ruleset)
    matches: list[cep.Match] = []
    source = open_source(str(_path(log)), format="syslog" if log == "sshd" else None)
    cep.run_sources(engine, [source], on_matches=matches.extend, sort=sort)
    matches += engine.close()
    assert engine.stats.rejected == 0
    assert engine.stats.late == 0
    found: Found = {rule: [] for rule in ruleset.rules}
    for match in matches:
        time = _second_of_day(match.time) if log == "sshd" else match.time
        found[match.rule].append((time, *match.key.values()))
    return found


def _second_of_day(time: int) -> int:
    """The syslog format has no year; this log lies within one day."""
    moment = datetime.fromtimestamp(time // 1_000_000, UTC)
    return moment.hour * 3600 + moment.minute * 60 + moment.second


@pytest.mark.parametrize(("log", "rule"), CASES)
def test_engine_and_plain_loop_find_the_same(
    log: str,
    rule: str,
    found: Callable[[str], Found],
    counted: Callable[[str], Found],
) -> None:
    assert sorted(found(log)[rule]) == sorted(counted(log)[rule])
    assert len(found(log)[rule]) == NUMBERS[log][rule]


@pytest.mark.parametrize("log", NUMBERS)
def test_matches_come_in_the_order_of_time(log: str, found: Callable[[str], Found]) -> None:
    for matches in found(log).values():
        assert [time for time, *_ in matches] == sorted(time for time, *_ in matches)


@pytest.mark.parametrize("log", ["zeek", "windows"])
def test_sorting_does_what_a_delay_does(log: str, found: Callable[[str], Found]) -> None:
    rules = (HERE / f"{log}.cep").read_text()
    without = rules.replace("  delay 40m", "").replace("  delay 15s", "")
    assert without != rules
    assert _run(log, sort=True, rules=without) == found(log)
