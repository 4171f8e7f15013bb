"""State larger than memory: keys that are let go of, and come back."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pytest
from crashing import crashed_anywhere
from test_engine_state import RULES, events, undisturbed

import cep
from cep import spill
from cep.cli.main import run
from cep.state.memory import MemoryStore

START = 1_700_000_000


def here(engine: cep.Engine) -> int:
    """How many keys are in memory."""
    return sum(len(rule.states) for rule in engine.program.rules)


def event(type_: str, at: int, user: Any, **more: Any) -> dict[str, Any]:
    return {"type": type_, "time": START + at, "u": user, **more}


@pytest.mark.parametrize("memory", [1, 20_000, None])
@pytest.mark.parametrize("seed", range(4))
def test_crashed_anywhere_and_spilled(
    tmp_path: Path, monkeypatch, seed: int, memory: int | None
) -> None:
    monkeypatch.setattr(spill, "MANY", 1)  # without a limit, keys stay away after each crash
    given, rules, rnd = events(seed), cep.loads(RULES), random.Random(seed)
    found, _ = crashed_anywhere(rules, given, tmp_path / "cep.db", rnd, lambda: memory)
    assert found == undisturbed(given)


def test_memory_stays_small_and_keys_come_back(tmp_path: Path) -> None:
    rules = cep.loads("rule pair { by u sequence within 1d { a: A  b: B where n == a.n } }")
    with cep.Engine(rules, state=tmp_path / "cep.db", max_memory=300_000) as engine:
        for at in range(0, 5000, 100):
            engine.process([event("A", i, f"u{i}", n=i) for i in range(at, at + 100)])
            engine.checkpoint()
        assert here(engine) < 600
        assert engine.stats.per_rule["pair"].keys == 5000
        found = engine.process([event("B", 6000, f"u{i}", n=i) for i in range(0, 5000, 7)])
        found += engine.checkpoint()
        assert [match.key["u"] for match in found] == [f"u{i}" for i in range(0, 5000, 7)]


def test_new_keys_are_not_looked_for(tmp_path: Path, monkeypatch) -> None:
    rules = cep.loads("rule pair { by u sequence within 1d { a: A  b: B } }")
    with cep.Engine(rules, state=tmp_path / "cep.db", max_memory=1) as engine:
        assert engine.keeper is not None
        engine.process([event("A", i, f"u{i}") for i in range(100)])
        engine.checkpoint()
        assert here(engine) == 0
        asked: list[str] = []
        fetch = engine.keeper.store.fetch
        monkeypatch.setattr(
            engine.keeper.store,
            "fetch",
            lambda owner, keys: asked.extend(keys) or fetch(owner, keys),
        )
        given = [event("B", 200, f"new {i}") for i in range(100)] + [event("B", 201, "u7")]
        found = engine.process(given) + engine.checkpoint()
        assert asked == ['["u7"]']
        assert len(found) == 1


def test_what_is_due_is_done_in_its_order(tmp_path: Path) -> None:
    rules = cep.loads(
        """
        rule quiet { by u sequence { a: A  no B within 1m } }
        rule sums { by u aggregate A over tumbling 1m { n = count() } }
        rule late { by u sequence within 1m { a: A  b: B } on timeout { alert "late" } }
        """
    )
    given = [event("A", i * 7, f"u{i % 5}") for i in range(60)] + [event("Z", 1000, "z")]

    def played(**options: Any) -> list[tuple[Any, ...]]:
        engine = cep.Engine(rules, **options)
        found = []
        for one in given:
            found += engine.process(one)
            if engine.keeper is not None:
                found += engine.checkpoint()
        found += engine.close("assume-quiet")
        engine.suspend(found.append)
        return [(match.rule, match.time, match.kind, match.id) for match in found]

    plain = played()
    assert len(plain) > 60
    assert played(state=MemoryStore(), checkpoint_every=3600, max_memory=1) == plain
    assert played(state=tmp_path / "cep.db", checkpoint_every=3600, max_memory=1) == plain


def test_a_start_leaves_keys_where_they_are(tmp_path: Path) -> None:
    rules = cep.loads("rule quiet { by u sequence { a: A  no B within 1h } }")
    state = tmp_path / "cep.db"
    with cep.Engine(rules, state=state) as engine:
        engine.process([event("A", i, f"u{i}") for i in range(100)])
    engine = cep.Engine(rules, state=state, max_memory=1)
    assert (here(engine), engine.stats.per_rule["quiet"].keys) == (0, 100)
    assert len(engine.undecided) == 100
    engine.checkpoint()
    found = engine.advance_to((START + 3610) * 1_000_000) + engine.checkpoint()
    assert [match.key["u"] for match in found] == [f"u{i}" for i in range(10)]
    engine.suspend()
    assert len(engine.undecided) == 90


def test_a_start_with_many_keys_leaves_them_where_they_are(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setattr(spill, "MANY", 100)
    rules = cep.loads(
        """
        rule quiet { by u sequence { a: A  no B within 1h } }
        rule sums { by u aggregate A over tumbling 1m { n = count() } having n == 1 }
        """
    )
    state = tmp_path / "cep.db"
    with cep.Engine(rules, state=state) as engine:
        engine.process([event("A", i // 10, f"u{i}") for i in range(60)])
        assert len(engine.undecided) == 60
    with cep.Engine(rules, state=state) as engine:
        assert here(engine) == 0
        assert engine.stats.per_rule["quiet"].keys == 60
        engine.process([event("B", 30, "u7"), event("A", 30, "new")])
        assert here(engine) == 3, "u7 of one rule, the new key of both"
        assert len(engine.undecided) == 60
    assert len(engine.undecided) == 60, "also when the file is closed"
    with cep.Engine(rules, state=state) as engine:
        assert here(engine) == 0
        engine.reload(rules)
        assert here(engine) == 0, "nor do other rules need them"
        engine.advance_to((START + 7200) * 1_000_000)
        found = engine.checkpoint()
        assert [m.rule for m in found] == ["sums"] * 61 + ["quiet"] * 60
    with cep.Engine(rules, state=state) as engine:
        assert engine.undecided == []


def test_few_keys_are_read_at_the_start(tmp_path: Path) -> None:
    rules = cep.loads("rule quiet { by u sequence { a: A  no B within 1h } }")
    with cep.Engine(rules, state=tmp_path / "cep.db") as engine:
        engine.process([event("A", 1, "ann")])
    with cep.Engine(rules, state=tmp_path / "cep.db") as engine:
        assert here(engine) == 1


def test_rules_change_over_keys_that_are_away(tmp_path: Path) -> None:
    rules = "rule quiet { by u sequence { a: A  no B within %s } }"
    engine = cep.Engine(cep.loads(rules % "2h"), state=tmp_path / "cep.db", max_memory=1)
    engine.process([event("A", 1, "ann")])
    engine.checkpoint()
    assert here(engine) == 0
    engine.reload(cep.loads(rules % "1m"))
    engine.checkpoint()
    assert engine.reload(cep.loads(rules % "1m")).changes[0].kind == "kept"
    found = engine.advance_to((START + 62) * 1_000_000)
    engine.suspend(found.append)
    assert [match.time for match in found] == [(START + 61) * 1_000_000]


def test_keys_of_a_batch_come_together(tmp_path: Path, monkeypatch) -> None:
    rules = cep.loads(
        """
        rule pair { by u sequence within 1d { a: A  b: B } }
        rule both { by u, n sequence within 1d { a: A  b: B } }
        rule other { by u sequence within 1d { a: A  c: C } }
        """
    )
    with cep.Engine(rules, state=tmp_path / "cep.db", max_memory=1) as engine:
        assert engine.keeper is not None
        engine.process([event("A", i, f"u{i}", n=1) for i in range(100)])
        engine.checkpoint()
        assert here(engine) == 0
        asked: list[int] = []
        fetch = engine.keeper.store.fetch
        monkeypatch.setattr(
            engine.keeper.store,
            "fetch",
            lambda owner, keys: asked.append(len(keys)) or fetch(owner, keys),
        )
        given = [event("B", 200, f"u{i}", n=1) for i in range(100)]
        given[50] = event("B", 200, ["no", "key"], n=1) | {"type": ["no", "type"]}
        found = engine.process(given) + engine.checkpoint()
        assert asked == [99, 99]
        assert len(found) == 198


@pytest.mark.parametrize("cap", [{"max_runs": 700}, {"max_runs": 50}])
def test_caps_count_keys_that_are_away(tmp_path: Path, cap: dict[str, int]) -> None:
    rules = cep.loads(
        """
        rule pair { by u sequence within 1d { a: A  b: B } }
        rule sums { by u aggregate A over sliding 1d { n = count() } having n > 1 }
        """
    )

    def played(**options: Any) -> tuple[list[str], int]:
        engine, found = cep.Engine(rules, **cap, **options), list[cep.Match]()
        for at in range(0, 4000, 100):
            found += engine.process([event("A", i, f"u{i}") for i in range(at, at + 100)])
            found += engine.process([event("B", at + 99, f"u{i}") for i in range(0, at, 17)])
            if engine.keeper is not None:
                found += engine.checkpoint()
        found += engine.process([event("A", 5000, f"u{i}") for i in range(4000)])
        if engine.keeper is not None:
            found += engine.checkpoint()
        return [match.id for match in found], engine.stats.dropped

    plain = played(state=MemoryStore())
    assert plain[1] > 4000
    assert played(state=MemoryStore(), max_memory=1) == plain
    assert played(state=tmp_path / "cep.db", max_memory=300_000) == plain


def test_caps_count_keys_of_before(tmp_path: Path) -> None:
    rules = cep.loads("rule pair { by u sequence within 1d { a: A  b: B } }")
    state = tmp_path / "cep.db"
    with cep.Engine(rules, state=state) as engine:
        engine.process([event("A", i, f"u{i}") for i in range(3000)])
    with cep.Engine(rules, state=state, max_memory=1, max_runs=2000) as engine:
        engine.process([event("A", 3000 + i, f"v{i}") for i in range(1000)])
        assert engine.stats.dropped == 2200
        assert engine.stats.per_rule["pair"].keys == 1800


def test_after_the_end_open_absences_of_keys_that_are_away_are_told(tmp_path: Path) -> None:
    rules = cep.loads("rule quiet { by u sequence { a: A  no B within 1h } }")
    with cep.Engine(rules, state=tmp_path / "cep.db", max_memory=1) as engine:
        engine.process([event("A", i, f"u{i}") for i in range(100)])
        engine.checkpoint()
        engine.process([event("A", 100 + i, f"u{100 + i}") for i in range(10)])
        assert len(engine.undecided) == 110
        engine.process([event("A", 200, "u7")])
        engine.checkpoint()
        assert here(engine) == 0
    expected = [(f"u{i}", START + i) for i in range(110)] + [("u7", START + 200)]
    found = [(o.key["u"], o.first_us // 1_000_000, o.deadline_us) for o in engine.undecided]
    assert found == [(u, first, (first + 3600) * 1_000_000) for u, first in expected]


def test_after_a_fault_open_absences_of_keys_that_are_away_are_told(tmp_path: Path) -> None:
    rules = cep.loads("rule quiet { by u sequence { a: A  no B within 1h } }")
    engine = cep.Engine(rules, state=tmp_path / "cep.db", max_memory=1)
    engine.process([event("A", i, f"u{i}") for i in range(10)])
    engine.checkpoint()
    engine.abandon()
    assert len(engine.undecided) == 10
    engine = cep.Engine(rules, state=tmp_path / "cep.db")
    assert len(engine.undecided) == 10
    engine.abandon()


def test_what_goes_together(tmp_path: Path, monkeypatch) -> None:
    rules = cep.loads("rule r { on A }")
    with pytest.raises(ValueError, match="needs state"):
        cep.Engine(rules, max_memory=1)
    with pytest.raises(ValueError, match="at least 1"):
        cep.Engine(rules, state=MemoryStore(), max_memory=0)
    monkeypatch.chdir(tmp_path)
    Path("r.cep").write_text("rule r { on A }")
    Path("l.jsonl").write_text("")
    assert run(["run", "r.cep", "l.jsonl", "--max-memory", "1M"]) == 2
    state = ["--state", "cep.db", "--max-memory", "1M"]
    assert run(["run", "r.cep", "l.jsonl", *state, "--max-runs", "5"]) == 0
    assert run(["run", "r.cep", "l.jsonl", *state]) == 0


def test_a_run_with_little_memory(tmp_path: Path, monkeypatch) -> None:
    import json

    monkeypatch.chdir(tmp_path)
    Path("r.cep").write_text("rule pair { by u sequence within 1d { a: A  b: B where n == a.n } }")
    lines = [json.dumps(event("A", i, f"u{i}", n=i)) for i in range(3000)]
    lines += [json.dumps(event("B", 3000 + i, f"u{i}", n=i)) for i in range(3000)]
    Path("l.jsonl").write_text("\n".join(lines) + "\n")
    command = ["run", "r.cep", "l.jsonl", "--state", "cep.db", "--checkpoint-every", "1ms"]
    assert run([*command, "--max-memory", "100K", "-o", "out.jsonl", "--quiet"]) == 0
    assert len(Path("out.jsonl").read_text().splitlines()) == 3000
