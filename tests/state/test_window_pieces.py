"""Large windows: a checkpoint writes what has come, drops what has left, and reads the whole."""

from __future__ import annotations

import json
import random
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from crashing import crashed_anywhere
from test_segments import Counting

import cep
from cep.state import window_codec
from cep.state.sqlite import read_view

START = 1_700_000_000

MEAN = """rule mean { by user aggregate reading over sliding 1h { a = avg(n) }
having a > 50 alert "{user}" }"""

MANY_SHAPES = """
rule mean { by user aggregate A over sliding 40s { a = avg(n)  m = max(n) } having a > 5 }
rule often { by user aggregate A over sliding 40s { c = count() } having c > 25 }
rule both { by user aggregate A over sliding 40s {
  c = count() where n > 3  p = median(n)  d = count(distinct n) } having c > 9 and p > 4 }
rule last { by user aggregate A over sliding 15 events { s = sum(n) } having s > 70 }
rule hops { by user aggregate A over hopping 40s every 1s { c = count()  l = last(n) }
  having c > 25 }
rule all { by user aggregate A over hopping 30s every 7s { s = sum(n)  m = min(n) } }
"""


def reading(at: float, n: float = 1) -> dict[str, Any]:
    return {"type": "reading", "time": START + at, "user": "ann", "n": n}


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Windows are large already when they hold some events."""
    monkeypatch.setattr(window_codec, "LARGE", 12)
    monkeypatch.setattr(window_codec, "SEALED", 5)


def pieces_of(store: Counting) -> int:
    ((row,),) = [list(rows.values()) for rows in store._states.values()]
    return len(row.segments)


def test_what_an_epoch_writes_does_not_grow_with_the_window() -> None:
    store = Counting()
    with cep.Engine(cep.loads(MEAN), state=store, checkpoint_every=3600) as engine:
        for part in range(60):
            engine.process([reading(part * 120 + i) for i in range(120)])
            engine.checkpoint()
    grown = store.sizes[12:]
    assert max(grown) < 370 * 25, "a tail of 250 events at most, and those that have come"
    assert sum(grown) / len(grown) < 250 * 25
    assert 10 < pieces_of(store) < 40, "half an hour's pieces would have gone"


def test_a_window_that_has_become_small_is_written_whole_again(small: None) -> None:
    store = Counting()
    with cep.Engine(cep.loads(MEAN), state=store, checkpoint_every=3600) as engine:
        for part in range(5):
            engine.process([reading(part * 10 + i) for i in range(10)])
            engine.checkpoint()
        assert pieces_of(store) > 3
        engine.process([reading(3646), reading(3647)])
        engine.checkpoint()
        assert pieces_of(store) == 0


@pytest.mark.parametrize("seed", range(6))
def test_crashed_anywhere(tmp_path: Path, seed: int, small: None) -> None:
    rnd, rules = random.Random(seed), cep.loads(MANY_SHAPES)
    time, given = float(START), []
    for i in range(600):
        time += rnd.choice([0, 0.5, 1, 1, 2, 30 if i % 150 == 149 else 1])
        n = rnd.choice(["odd", None]) if rnd.random() < 0.05 else rnd.randrange(10)
        given.append({"type": "A", "time": time, "user": rnd.choice(["ann", "bob"]), "n": n})
    wanted = [match.id for match in cep.Engine(rules).process(given)]
    assert len({match.rule for match in cep.Engine(rules).process(given)}) == 6
    some = partial(rnd.choice, [None, None, 20_000])
    found, pieces = crashed_anywhere(rules, given, tmp_path / "cep.db", rnd, some)
    assert found == wanted
    assert pieces > 10


def test_a_view_shows_all_events_of_a_window_in_pieces(tmp_path: Path, small: None) -> None:
    path = tmp_path / "cep.db"
    with cep.Engine(cep.loads(MEAN), state=path, checkpoint_every=0) as engine:
        for i in range(30):
            engine.process([reading(i, i)])
            engine.checkpoint()
        engine.process([reading(3610, 30)])
        engine.checkpoint()
    (row,) = read_view(str(path), "windows")
    assert row["events"] == 21
    assert [n for _, n in json.loads(row["content"])["holds"]] == list(range(10, 31))
    assert row["due"] == "2023-11-15T00:13:30Z"
