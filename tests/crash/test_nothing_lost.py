"""Whatever ends an engine, no match is lost between it and its host."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import cep

RULES = 'rule any_login { on e: login alert "{e.n}" }'


def login(n: int) -> dict[str, Any]:
    return {"type": "login", "time": 1000 + n, "n": n}


def engine(tmp_path: Path, **options: Any) -> cep.Engine:
    return cep.Engine(cep.loads(RULES), state=tmp_path / "cep.db", **options)


def messages(found: list[cep.Match]) -> list[str | None]:
    return [match.message for match in found]


@pytest.mark.parametrize("deliver", ["after-commit", "now"])
def test_what_waits_at_the_end_of_a_block_comes_with_the_next_engine(
    tmp_path: Path, deliver: str
) -> None:
    with engine(tmp_path, checkpoint_every=3600, deliver=deliver) as first:
        given = messages(first.process([login(1), login(2)], position=2))
    with engine(tmp_path) as second:
        assert second.position == 2
        assert given + messages(second.process([])) == ["1", "2"]
    with engine(tmp_path) as third:
        assert third.process([]) == []


def test_after_an_exception_what_was_being_handled_comes_again(tmp_path: Path) -> None:
    def stumble() -> None:
        with engine(tmp_path) as first:
            first.process([login(1)], position=1)
            assert messages(first.checkpoint()) == ["1"]
            raise RuntimeError

    with pytest.raises(RuntimeError):
        stumble()
    with engine(tmp_path) as second:
        assert second.position == 1
        assert messages(second.process([])) == ["1"]


def test_a_callback_that_fails_loses_nothing(tmp_path: Path) -> None:
    taken: list[str | None] = []

    def take(match: cep.Match) -> None:
        if match.message == "2" and len(taken) == 1:
            raise OSError("disk full")
        taken.append(match.message)

    def fail() -> None:
        with engine(tmp_path) as first:
            first.process([login(n) for n in (1, 2, 3)], position=3)
            first.suspend(take)

    with pytest.raises(OSError, match="disk full"):
        fail()
    assert taken == ["1"]
    with engine(tmp_path) as second:
        second.process([], take)
    assert taken == ["1", "1", "2", "3"]


def test_a_host_that_dies_with_matches_in_its_hands_gets_them_again(tmp_path: Path) -> None:
    """What a call gives is delivered when the next call comes, not when an epoch ends."""
    first = engine(tmp_path, checkpoint_every=0)
    found = first.process([login(1)], position=1)
    while not found:
        found = first.process([])
    assert first.keeper is not None
    first.keeper.store.close()  # as if killed before it could use them
    with engine(tmp_path) as second:
        assert messages(second.process([])) == ["1"]


def test_suspended_with_matches_that_nobody_has_they_come_next(tmp_path: Path) -> None:
    """What waits when work ends is not taken for delivered."""
    first = engine(tmp_path)
    assert first.process([login(n) for n in (1, 2)], position=2) == []
    first.suspend()
    with engine(tmp_path) as second:
        assert messages(second.process([])) == ["1", "2"]


def test_a_block_without_a_callback_hands_over_nothing_unseen(tmp_path: Path) -> None:
    with engine(tmp_path) as first:
        first.process([login(n) for n in (1, 2)], position=2)
    taken: list[cep.Match] = []
    with engine(tmp_path, on_match=taken.append) as second:
        assert second.process([login(3)], position=3) == []
    assert messages(taken) == ["1", "2", "3"]
    with engine(tmp_path) as third:
        assert (third.position, third.process([])) == (3, [])


@pytest.mark.parametrize("deliver", ["after-commit", "now"])
def test_a_match_that_was_not_taken_comes_with_the_next_call(tmp_path: Path, deliver: str) -> None:
    """Also where the host goes on after its callback has failed."""
    taken: list[str | None] = []

    def take(match: cep.Match) -> None:
        if match.message == "2" and taken.count("1") == 1 and fails.pop():
            raise OSError("disk full")
        taken.append(match.message)

    def work(first: cep.Engine) -> None:
        first.process([login(n) for n in (1, 2, 3)], position=3)
        first.checkpoint()

    fails = [False, True]
    with engine(tmp_path, on_match=take, deliver=deliver) as first:
        with pytest.raises(OSError, match="disk full"):
            work(first)
        assert taken == ["1"]
        first.process([login(4)], position=4)
    assert taken == ["1", "2", "3", "4"]
    with engine(tmp_path) as second:
        assert second.process([]) == []


def test_without_state_a_match_that_was_not_taken_comes_with_the_next_call() -> None:
    taken: list[str | None] = []
    fails = [False, False, True]

    def take(match: cep.Match) -> None:
        if fails.pop():
            raise OSError("disk full")
        taken.append(match.message)

    one = cep.Engine(cep.loads(RULES), on_match=take)
    with pytest.raises(OSError, match="disk full"):
        one.process([login(n) for n in (1, 2)])
    assert one.process([]) == []
    assert taken == ["1", "2"]
