"""An engine with state goes on after a restart or a crash as if nothing had happened."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pytest
from crashing import crash

import cep

RULES = """
stream event { delay 2s }

rule guessed {
  by user
  sequence within 1m {
    fail: login{2,} where ok == false
    good: login     where ok == true
  }
  alert "{user}: {count(fail)} failures, then success"
  dedup for 10s
}

rule quiet {
  by user
  sequence { last: login where ok == false  no login where ok == true within 5s }
  alert "nothing more from {user}"
}

rule busy {
  by user
  aggregate login over sliding 20s { n = count() }
  having n >= 4
  alert "{user}: {n} sign-ins"
}

table latest from login key user

rule told { on e: ask alert "{latest[e.user].n}" }
"""


def events(seed: int, number: int = 300) -> list[dict[str, Any]]:
    """Sign-ins of three users, out of order by less than the delay."""
    rnd, time, made = random.Random(seed), 1_700_000_000.0, []
    for n in range(number):
        time += rnd.random() * 2
        made.append(
            {
                "type": "login" if rnd.random() < 0.9 else "ask",
                "user": rnd.choice("abc"),
                "ok": rnd.random() < 0.3,
                "time": round(time - rnd.random() * 1.9, 6),
                "n": n,
            }
        )
    return made


def undisturbed(given: list[dict[str, Any]]) -> list[str]:
    engine = cep.Engine(cep.loads(RULES))
    return [match.id for match in engine.process(given)]


@pytest.mark.parametrize("seed", range(6))
def test_suspended_and_resumed_anywhere(tmp_path: Path, seed: int) -> None:
    given, rules, rnd = events(seed), cep.loads(RULES), random.Random(seed)
    found: list[str] = []
    position = 0
    while position < len(given):
        with cep.Engine(rules, state=tmp_path / "cep.db", checkpoint_every=0) as engine:
            position = engine.position or 0
            for _ in range(rnd.randrange(1, 30)):
                upto = min(position + rnd.randrange(1, 6), len(given))
                found += [m.id for m in engine.process(given[position:upto], position=upto)]
                position = upto
            found += [match.id for match in engine.checkpoint()]
    assert found == undisturbed(given)


@pytest.mark.parametrize("seed", range(6))
def test_crashed_anywhere(tmp_path: Path, seed: int) -> None:
    given, rules, rnd = events(seed), cep.loads(RULES), random.Random(seed)
    found: list[str] = []
    while True:
        engine = cep.Engine(rules, state=tmp_path / "cep.db", checkpoint_every=0)
        position = engine.position or 0
        if position == len(given):
            found += [match.id for match in engine.checkpoint()]
            engine.suspend()
            break
        for _ in range(rnd.randrange(2, 30)):
            upto = min(position + rnd.randrange(1, 6), len(given))
            found += [m.id for m in engine.process(given[position:upto], position=upto)]
            position = upto
        crash(engine)
    # What went out just before a crash may go out again, with the same id; nothing is missing.
    assert list(dict.fromkeys(found)) == undisturbed(given)


def test_matches_wait_until_they_are_durable(tmp_path: Path) -> None:
    rules = cep.loads("rule any_login { on login }")
    with cep.Engine(rules, state=tmp_path / "cep.db", checkpoint_every=3600) as engine:
        event = {"type": "login", "time": 1}
        assert engine.process(event, position="after one") == []
        assert engine.position is None
        assert [match.rule for match in engine.checkpoint()] == ["any_login"]
        assert engine.position == "after one"


def test_at_once_where_that_is_asked_for(tmp_path: Path) -> None:
    rules = cep.loads("rule any_login { on login }")
    with cep.Engine(rules, state=tmp_path / "cep.db", deliver="now") as engine:
        assert len(engine.process({"type": "login", "time": 1})) == 1
        with pytest.raises(ValueError, match="deliver is one of"):
            cep.Engine(rules, state=tmp_path / "other.db", deliver="later")


def test_one_engine_for_a_file(tmp_path: Path) -> None:
    rules = cep.loads("rule any_login { on login }")
    with cep.Engine(rules, state=tmp_path / "cep.db"), pytest.raises(cep.StateError):
        cep.Engine(rules, state=tmp_path / "cep.db")


def test_without_state_there_is_nothing_to_check_in() -> None:
    engine = cep.Engine(cep.loads("rule any_login { on login }"))
    with pytest.raises(ValueError, match="keeps no state"):
        engine.checkpoint()
    engine.suspend()
    assert engine.position is None


def test_what_is_given_to_an_engine_is_looked_at_at_once(tmp_path: Path) -> None:
    rules, state = cep.loads("rule any_login { on login }"), tmp_path / "cep.db"
    wrong: list[tuple[dict[str, Any], str]] = [
        ({"delay": "5s"}, "a delay is a timedelta or microseconds"),
        ({"delay": 1.5}, "a delay is a timedelta or microseconds"),
        ({"max_runs": "x"}, "max_runs is a whole number"),
        ({"max_memory": "5M"}, "max_memory is a whole number"),
        ({"checkpoint_every": "1s"}, "checkpoint_every is a number of seconds"),
        ({"restart": "any_login"}, r"restart=\['any_login'\]"),
        ({"on_match": 5}, "on_match is a function"),
        ({"state": 5}, "state is the path of a file"),
        ({"state": ""}, "state is the path of a file"),
    ]
    for options, words in wrong:
        with pytest.raises(TypeError, match=words):
            cep.Engine(rules, **{"state": state, **options})
    for more in ({"checkpoint_every": -1}, {"deliver": "later", "state": None}, {"max_runs": 0}):
        with pytest.raises(ValueError, match=r"is at least|is one of|or more"):
            cep.Engine(rules, **{"state": state, **more})
    assert not state.exists()
    with cep.Engine(rules, state=state) as engine:
        with pytest.raises(TypeError, match="a position is any JSON value"):
            engine.process({"type": "login", "time": 1}, position=object())
        assert engine.stats.events == 0


def test_after_its_state_has_gone_an_engine_takes_nothing_more(tmp_path: Path) -> None:
    rules = cep.loads("rule any_login { on login }")
    with cep.Engine(rules, state=tmp_path / "cep.db") as engine:
        engine.process({"type": "login", "time": 1}, position="one")
    assert engine.position == "one", "where it stood can still be asked for"
    for call in (lambda: engine.process({"type": "login"}), engine.close, engine.take):
        with pytest.raises(RuntimeError, match="has let go of its state"):
            call()
    with cep.Engine(rules, state=tmp_path / "cep.db") as engine:
        engine.abandon()
    assert engine.position == "one"


def test_rules_without_any_rule_do_not_take_the_place_of_others(tmp_path: Path) -> None:
    rules = cep.loads("rule pair { by u sequence { a: A  b: B within 1h } }")
    with cep.Engine(rules, state=tmp_path / "cep.db") as engine:
        engine.process({"type": "A", "time": 1, "u": "ann"})
        with pytest.raises(ValueError, match="no rules"):
            engine.reload(cep.loads("# nothing"))
        assert engine.stats.per_rule["pair"].keys == 1
    with pytest.raises(ValueError, match="no rules"):
        cep.Engine(cep.loads(""), state=tmp_path / "cep.db")
