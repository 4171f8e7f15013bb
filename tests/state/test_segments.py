"""Large keys: what a checkpoint writes is what has changed, and what is read is the whole."""

from __future__ import annotations

import random
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from crashing import crashed_anywhere

import cep
from cep.cli.main import run
from cep.state import segments
from cep.state.memory import MemoryStore
from cep.state.sqlite import SqliteStore, read_view
from cep.state.store import Epoch

START = 1_700_000_000

LOGINS = """
rule w5 {
  by user
  sequence within 1d { fail: login{5,} where ok == false  good: login where ok == true }
  alert "{user}: {count(fail)}"
}
"""

MANY_SHAPES = """
rule shared { by user skip nothing sequence within 90s { a: A  b: B+  c: C } alert "{count(b)}" }
rule group { by user sequence within 2m { a: A{2,}  b: B where n > 5 } alert "{count(a)}" }
rule listed { by user sequence within 1m { a: A  any b: B where n > a.n  c: C where n > b.n } }
rule hashed { by user skip to next sequence within 1m { a: A  b: B where n == a.n } }
rule late { by user sequence within 20s { a: A  any b: C } on timeout { alert "late" } }
rule quiet { by user sequence { a: A  no C within 5s } }
rule sums { by user aggregate A over sliding 30s { n = count() } having n > 20 }
"""


class Counting(MemoryStore):
    """Notes how many characters of states each epoch has."""

    def __init__(self) -> None:
        super().__init__()
        self.sizes: list[int] = []

    def commit(self, epoch: Epoch) -> None:
        rows = [row for rows in epoch.states.values() for row in rows]
        self.sizes.append(sum(len(row.state or "") + sum(map(len, row.segments)) for row in rows))
        super().commit(epoch)


def login(at: float, ok: bool = False) -> dict[str, Any]:
    return {"type": "login", "time": START + at, "user": "ann", "ok": ok}


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Histories are large already when they have some nodes."""
    monkeypatch.setattr(segments, "LARGE", 12)
    monkeypatch.setattr(segments, "SEALED", 5)


def test_what_an_epoch_writes_does_not_grow_with_the_key() -> None:
    store = Counting()
    with cep.Engine(cep.loads(LOGINS), state=store, checkpoint_every=3600) as engine:
        for part in range(40):
            engine.process([login(part * 100 + i) for i in range(100)])
            engine.checkpoint()
        assert max(store.sizes[20:40]) < 1.5 * max(store.sizes[5:10])
        assert sum(store.sizes[5:40]) < 1.5 * len(next(store.load().states())[2])
    with cep.Engine(cep.loads(LOGINS), state=store) as engine:
        found = engine.process(login(5000, ok=True)) + engine.checkpoint()
        assert [match.message for match in found] == ["ann: 4000"]


LARGE_KEYS = {
    "groups by value": (
        "rule r { all within 1d { o: A  p: B where n == o.n } skip nothing }",
        ["bb"],
    ),
    "groups by value, restarted": (
        "rule r { sequence within 1d { o: A  p: B where n == o.n  q: C where n == o.n } }",
        ["bb"],
    ),
    "bare runs": ("rule r { sequence within 1d { a: A  b: B where n > a.n + 10000000 } }", []),
    "runs one by one": (
        "rule r { sequence within 1d { a: A  b: B where n > a.n + 10000000 }"
        " on timeout { alert } }",
        [],
    ),
    "one group": ("rule r { sequence within 1d { a: A+  b: C } }", []),
    "absences": ("rule r { sequence { a: A  no C within 1d } }", []),
    "timeouts": (
        "rule r { sequence within 1d { a: A  any b: B where n == a.n } skip nothing"
        " on timeout { alert } }",
        ["bb"],
    ),
    "skip to next": (
        "rule r { skip to next sequence within 1d { a: A  b: B where n == a.n } }",
        ["bb"],
    ),
    "dedup": ("rule r { on A dedup by n for 1d }", []),
    "tables": ("table t from A key n  rule r { on B where t[n].x > 1 }", []),
    "repeats": ("stream A { dedup by n for 1d }  rule r { on A where n < 0 }", []),
}
"""Rules with a key that grows, and whether other events come between."""


@pytest.mark.parametrize("name", LARGE_KEYS)
def test_what_an_epoch_writes_does_not_grow_with_any_kind_of_key(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(segments, "LARGE", 100)
    monkeypatch.setattr(segments, "SEALED", 25)
    rules, other = LARGE_KEYS[name]
    store = Counting()
    events = iter(range(10_000_000))

    def more(number: int) -> list[dict[str, Any]]:
        given = []
        for i in (next(events) for _ in range(number)):
            given.append({"type": "A", "time": START + i / 1000, "n": i})
            if other and i % 10 == 9:
                given.append({"type": "B", "time": START + i / 1000, "n": i // 2})
        return given

    with cep.Engine(cep.loads(rules), state=store, checkpoint_every=3600) as engine:
        for size in (300, 900):
            engine.process(more(size))
            for _ in range(3):
                engine.process(more(20))
                engine.checkpoint()
        small, large = max(store.sizes[1:3]), max(store.sizes[4:6])
        assert large < 2 * small
        for rule in engine.program.rules:
            rule.check()


@pytest.mark.parametrize("seed", range(6))
def test_crashed_anywhere(tmp_path: Path, seed: int, small: None) -> None:
    rnd, rules = random.Random(seed), cep.loads(MANY_SHAPES)
    given = [
        {
            "type": rnd.choices("ABCZ", [8, 4, 1 if i % 150 > 120 else 0.05, 1])[0],
            "time": START + i,
            "user": rnd.choice(["ann", "bob"]),
            "n": rnd.randrange(9),
        }
        for i in range(600)
    ]
    wanted = [match.id for match in cep.Engine(rules).process(given)]
    some = partial(rnd.choice, [None, None, 20_000])
    found, pieces = crashed_anywhere(rules, given, tmp_path / "cep.db", rnd, some)
    assert found == wanted
    assert pieces > 5


def test_a_new_engine_goes_on_with_the_pieces_that_are_there() -> None:
    store = Counting()
    for part in range(20):
        with cep.Engine(cep.loads(LOGINS), state=store) as engine:
            engine.process([login(part * 100 + i) for i in range(100)])
    assert max(store.sizes[10:]) < 1.5 * max(store.sizes[3:6])
    with cep.Engine(cep.loads(LOGINS), state=store) as engine:
        found = engine.process(login(5000, ok=True)) + engine.checkpoint()
        assert [match.message for match in found] == ["ann: 2000"]


def test_a_key_that_is_large_when_it_is_first_written_is_read_whole() -> None:
    """The loop holds lists of one node and of two."""
    rule = LOGINS.replace("{5,}", "{3,}")
    store = Counting()
    with cep.Engine(cep.loads(rule), state=store) as engine:
        engine.process([login(i) for i in range(3000)])
    with cep.Engine(cep.loads(rule), state=store) as engine:
        found = engine.process(login(5000, ok=True)) + engine.checkpoint()
        assert [match.message for match in found] == ["ann: 3000"]


def test_pieces_go_with_their_key(tmp_path: Path, small: None) -> None:
    path = tmp_path / "cep.db"

    def pieces() -> int:
        with closing(SqliteStore(str(path))) as store:
            assert store.check() == []
            return int(store._reader.execute("select count(*) from _segments").fetchone()[0])

    with cep.Engine(cep.loads(LOGINS), state=path, checkpoint_every=3600) as engine:
        for part in range(10):
            engine.process([login(part * 10 + i) for i in range(10)])
            engine.checkpoint()
    assert pieces() == 10
    with cep.Engine(cep.loads(LOGINS), state=path) as engine:
        engine.process(login(101))
    assert pieces() == 11
    with cep.Engine(cep.loads(LOGINS), state=path) as engine:
        engine.process([login(102, ok=True), login(103)])
    assert pieces() == 0


def test_what_is_of_no_use_any_more_is_written_no_longer(small: None) -> None:
    """A window that moves on: what is stored is as large as what is alive."""
    store = MemoryStore()
    rules = cep.loads(LOGINS.replace("1d", "100s"))
    with cep.Engine(rules, state=store, checkpoint_every=3600) as engine:
        for part in range(100):
            engine.process([login(part * 10 + i) for i in range(10)])
            engine.checkpoint()
        ((_, row),) = store._rows()
        alive = len(next(iter(engine.keeper.memory.rows()))[1].state or "")  # type: ignore[union-attr]
        assert len(row.state or "") < 3 * alive


def test_views_and_commands_know_the_pieces(tmp_path: Path, small: None, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("r.cep").write_text(LOGINS)
    with cep.Engine(cep.load("r.cep"), state="cep.db", checkpoint_every=3600) as engine:
        for part in range(10):
            engine.process([login(part * 10 + i) for i in range(10)])
            engine.checkpoint()
        engine.process([login(100 + i) for i in range(2)])
    (shown,) = read_view("cep.db", "runs")
    assert shown["events"].count('"login"') == 102
    assert shown["step"] == "fail"
    (size,) = read_view("cep.db", "sizes")
    assert size["size"] > 102 * 50
    assert run(["state", "verify", "--state", "cep.db"]) == 0
    assert run(["state", "export", "--state", "cep.db", "-o", "kept.json"]) == 0
    assert run(["state", "import", "kept.json", "--state", "other.db"]) == 0
    assert run(["state", "vacuum", "--state", "cep.db"]) == 0
    for state in ("cep.db", "other.db"):
        with cep.Engine(cep.load("r.cep"), state=state) as engine:
            found = engine.process(login(200, ok=True)) + engine.checkpoint()
        assert [match.message for match in found] == ["ann: 102"]
