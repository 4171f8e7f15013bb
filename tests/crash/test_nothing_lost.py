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
