"""State that is larger, longer or stranger than expected, and restarts in the midst of it."""

from __future__ import annotations

import json
import random
import time
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

import cep
from cep.cli.main import run
from cep.state.sqlite import SqliteStore, read_view
from tests.crash.make_log import lines
from tests.crash.scenarios import RULES, same

LARGE = 1 << 20
SECOND = 1_000_000


def engine(folder: Path, rules: str, **options: Any) -> cep.Engine:
    return cep.Engine(
        cep.loads(rules), state=folder / "cep.db", **{"checkpoint_every": 0, **options}
    )


def records(found: Sequence[cep.Match]) -> list[str]:
    return [match.to_json().decode() for match in found]


def wanted(rules: str, events: Sequence[Any]) -> list[str]:
    return records(cep.Engine(cep.loads(rules)).process(events))


def restarted(
    folder: Path, rules: str, batches: Sequence[Sequence[Any]], **options: Any
) -> list[str]:
    """What a new engine for each batch finds, in all."""
    found: list[str] = []
    for events in batches:
        with engine(folder, rules, **options) as one:
            found += records(one.process(list(events)))
            found += records(one.checkpoint())
    with closing(SqliteStore(str(folder / "cep.db"))) as store:
        assert store.check() == []
    return found


def by_ones(events: Sequence[Any]) -> list[list[Any]]:
    return [[event] for event in events]


EVERYTHING = """
table latest from login key user
stream seen { where type == "login"  dedup by user for 1m }
rule pair { by user  sequence within 1h { a: login  b: login } alert "{latest[a.user].n}" }
rule many {
  by user
  aggregate login over sliding 1h { n = count()  all = list(text) }
  having n > 1
}
rule once { by user  on e: login  dedup by user for 1h }
rule told { by user  on seen }
rule still { by user  sequence { a: login  no logout within 1h } }
"""


def login(n: int, **fields: Any) -> dict[str, Any]:
    return {"type": "login", "time": 1000 + n, "n": n, "user": "ann", "text": "", **fields}


# ---------------------------------------------------------------------------- size


def test_keys_of_a_megabyte(tmp_path: Path) -> None:
    keys = ["x" * LARGE, "x" * LARGE + "y", "\0\ud7ff\"'\\" * 1000]
    events = [login(n, user=keys[n % 3]) for n in range(9)]
    assert restarted(tmp_path, EVERYTHING, by_ones(events)) == wanted(EVERYTHING, events)


def test_events_of_a_megabyte(tmp_path: Path) -> None:
    events = [login(n, text=str(n) * LARGE) for n in range(8)]
    assert restarted(tmp_path, EVERYTHING, by_ones(events)) == wanted(EVERYTHING, events)


LOOP = """
rule loop {
  by user
  sequence within 10h { s: login{3,} where n >= 0  t: login where n < 0 }
  alert "{count(s)} {sum(s.n)}"
}
rule window { by user  aggregate login over sliding 10h { n = count() } having n >= 9000 }
"""


def test_ten_thousand_events_in_one_key(tmp_path: Path) -> None:
    events = [*map(login, range(10_000)), {**login(10_000), "n": -1}]
    began = time.monotonic()
    batches = [events[:4000], events[4000:9999], events[9999:]]
    assert restarted(tmp_path, LOOP, batches) == wanted(LOOP, events)
    assert time.monotonic() - began < 60


def test_many_checkpoints_of_a_key_that_grows(tmp_path: Path) -> None:
    """Each one may cost as much as the key holds, and no more."""
    events = [*map(login, range(2000)), {**login(2000), "n": -1}]
    with engine(tmp_path, LOOP) as one:
        found = [record for event in events for record in records(one.process(event))]
        found += records(one.checkpoint())
    assert found == wanted(LOOP, events)


# ---------------------------------------------------------------------------- time

LAST = "9999-12-31T23:59:59.999999Z"


def test_the_clock_jumps_to_the_end_of_time_and_stays_there(tmp_path: Path) -> None:
    events = [login(0), login(1), login(2, time=LAST), login(3, time=LAST), login(4)]
    found = restarted(tmp_path, EVERYTHING, by_ones(events))
    assert found == wanted(EVERYTHING, events)
    for view in ("keys", "timers", "runs", "windows", "suppressed", "checkpoints"):
        read_view(str(tmp_path / "cep.db"), view)
    with engine(tmp_path, EVERYTHING) as one:
        assert one.stats.late == 1
        assert one.stats.clock_us == 253_402_300_799_999_999


def test_the_first_year_and_before_1970(tmp_path: Path) -> None:
    times = ["0001-01-01T00:00:00Z", "0001-01-01T00:30:00Z", "1969-12-31T23:59:59Z", -1, 0, 1]
    events = [login(n, time=at) for n, at in enumerate(times)]
    assert restarted(tmp_path, EVERYTHING, by_ones(events)) == wanted(EVERYTHING, events)


@pytest.mark.parametrize("seed", range(3))
def test_another_delay_at_each_restart_loses_no_event_that_came_in_order(
    tmp_path: Path, seed: int
) -> None:
    """Events in order: whatever the delay is, the matches are the same."""
    rnd, rules = random.Random(seed), RULES.read_text()
    events = sorted(sound(seed, 600), key=lambda event: event["time"])
    found: list[str] = []
    at = 0
    while at < len(events):
        delay = rnd.choice([0, 1, 2 * SECOND, 60 * SECOND])
        with engine(tmp_path, rules, delay=delay) as one:
            assert one.position in (None, at)
            upto = min(at + rnd.randrange(1, 60), len(events))
            found += records(one.process(events[at:upto], position=upto))
            found += records(one.checkpoint())
            at = upto
    with engine(tmp_path, rules) as one:
        found += records(one.close()) + records(one.checkpoint())
        assert (one.stats.late, one.stats.events) == (0, len(events))
    undisturbed = cep.Engine(cep.loads(rules), delay=0)
    due = records(undisturbed.process(events)) + records(undisturbed.close())
    same(due, found, "matches")


def test_a_shorter_delay_lets_go_of_what_waited(tmp_path: Path) -> None:
    rules = 'rule any_login { on e: login alert "{e.n}" }'
    with engine(tmp_path, rules, delay=3600 * SECOND) as one:
        one.process([login(5), login(3), login(4)])
        assert one.checkpoint() == []
    with engine(tmp_path, rules, delay=0) as one:
        found = one.process([login(6), login(2)]) + one.checkpoint()
        assert [match.message for match in found] == ["3", "4", "5", "6"]
        assert one.stats.late == 1


@pytest.mark.parametrize("seed", range(2))
def test_another_delay_at_each_run_over_a_file(tmp_path: Path, seed: int) -> None:
    """The log grows, and is read with whatever delay: as it is in order, that changes nothing."""
    rnd, log, out = random.Random(seed), tmp_path / "log.jsonl", tmp_path / "out.jsonl"
    rules = tmp_path / "rules.cep"
    rules.write_text(RULES.read_text())
    events = sorted(sound(seed, 400), key=lambda event: event["time"])
    texts = [json.dumps(event) + "\n" for event in events]
    line = ["run", str(rules), str(log), "-o", str(out), "--quiet"]
    keep = ["--state", str(tmp_path / "cep.db")]
    for upto in [*range(1, len(texts), 60), len(texts)]:
        log.write_text("".join(texts[:upto]))
        assert run([*line, *keep, "--delay", rnd.choice(["0s", "2s", "1m"])]) == 0
    assert run([*line, *keep, "--delay", "0s", "--at-end", "undecided"]) == 0
    found = out.read_text().splitlines()
    assert run([*line, "--delay", "0s"]) == 0
    same(out.read_text().splitlines(), found, "matches")


def sound(seed: int, number: int) -> list[dict[str, Any]]:
    """Events of a log, without the lines that are none."""
    import msgspec

    made = []
    for line in lines(seed, number):
        try:
            made.append(msgspec.json.decode(line))
        except msgspec.DecodeError:
            continue
    return made


# ---------------------------------------------------------------------------- odd values

ODD = [
    None,
    True,
    1,
    1.0,
    "1",
    1e308,
    -0.0,
    2**63,
    10**300,
    "",
    "\0",
    "\N{MUSICAL SYMBOL G CLEF}",
    "'; drop table runs; --",
    '["ann"]',
    {"a": 1},
    [1],
]


def test_keys_of_every_kind_are_the_same_after_a_restart(tmp_path: Path) -> None:
    events = [login(n, user=value) for n, value in enumerate([*ODD, *ODD])]
    assert restarted(tmp_path, EVERYTHING, by_ones(events)) == wanted(EVERYTHING, events)


def test_values_of_every_kind_are_the_same_after_a_restart(tmp_path: Path) -> None:
    events = [login(n, text=value) for n, value in enumerate([*ODD, *ODD])]
    assert restarted(tmp_path, EVERYTHING, by_ones(events)) == wanted(EVERYTHING, events)


def test_what_a_position_may_be(tmp_path: Path) -> None:
    for place in (0, "", "\0", [1, {"topic": 7}], {"a": None}, 2**53 + 1, -1.5, False):
        with engine(tmp_path, EVERYTHING) as one:
            one.process([], position=place)
            one.checkpoint()
            assert one.position == place
        with engine(tmp_path, EVERYTHING) as one:
            assert one.position == place
