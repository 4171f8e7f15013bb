"""Trouble with the disk under the state: told in words, and nothing is lost."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import pytest

import cep
from cep.state import checkpoint

RULES = """
rule any_login { on e: login alert "{e.n}" }
rule three { by user  sequence within 1h { s: login{3} } alert "{list(s.n)}" }
"""


@pytest.fixture(autouse=True)
def _short_patience(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(checkpoint, "PATIENCE", 1.3)


def login(n: int, **fields: Any) -> dict[str, Any]:
    return {"type": "login", "time": 1000 + n, "n": n, "user": "ann", **fields}


def ids(found: list[cep.Match]) -> list[str]:
    return [match.id for match in found]


def wanted(events: list[dict[str, Any]]) -> list[str]:
    return ids(cep.Engine(cep.loads(RULES)).process(events))


@contextmanager
def locked(path: Path) -> Iterator[None]:
    """Another program writes to the file and does not come to an end."""
    with closing(sqlite3.connect(path, isolation_level=None)) as other:
        other.execute("begin immediate")
        yield
        other.execute("rollback")


@pytest.mark.parametrize("deliver", ["after-commit", "now"])
def test_a_locked_file_is_told_of_and_nothing_is_lost(tmp_path: Path, deliver: str) -> None:
    path = tmp_path / "cep.db"
    given = [login(n) for n in range(9)]
    engine = cep.Engine(cep.loads(RULES), state=path, checkpoint_every=0, deliver=deliver)
    found = ids(engine.process(given[:2], position=2)) + ids(engine.checkpoint())
    with locked(path):
        for n in range(2, 5):
            found += ids(engine.process(given[n], position=n + 1))
            with pytest.raises(cep.StateError, match="is locked by another program"):
                found += ids(engine.checkpoint())
        assert engine.position == 2
    found += ids(engine.checkpoint())
    assert engine.position == 5
    found += ids(engine.process(given[5:], position=9)) + ids(engine.suspend())
    assert found == wanted(given)
    with cep.Engine(cep.loads(RULES), state=path) as again:
        assert (again.position, again.process([])) == (9, [])
