"""`cep state verify` of states that an earlier version of cep has written."""

from __future__ import annotations

import json
from contextlib import closing
from pathlib import Path

import pytest
from make_fixtures import FOLDER

import cep
from cep.cli.main import run
from cep.state.sqlite import SqliteStore
from cep.state.store import Epoch, Owner, StateRow


def stored(folder: Path, name: str) -> str:
    """A state file with the states of a fixture, of its rules."""
    fixture = json.loads((FOLDER / f"{name}.json").read_text())
    path = str(folder / "cep.db")
    engine = cep.Engine(cep.loads(fixture["rules"]), state=path)
    owner = engine.program.rules[0].owner
    engine.suspend()
    with closing(SqliteStore(path)) as store:
        number = store.load().number
        for kind, _, key, state in fixture["kept"]["states"]:
            number += 1
            store.commit(Epoch(number, states={Owner(kind, owner): [StateRow(key, state)]}))
    return path


@pytest.mark.parametrize(
    ("name", "earlier"),
    [("format-1-absence", True), ("format-2-pieces", True), ("format-1-one", False)],
)
def test_an_earlier_form_is_no_mistake_and_is_named(
    tmp_path: Path, name: str, earlier: bool, capsys: pytest.CaptureFixture[str]
) -> None:
    path = stored(tmp_path, name)
    assert run(["state", "verify", "--state", path]) == 0
    said = capsys.readouterr().err
    assert "1 state read, 0 mistakes" in said
    assert ("1 state in the form of an earlier version of cep" in said) is earlier


def test_a_state_that_says_something_else_is_a_mistake(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = stored(tmp_path, "format-1-one")
    with closing(SqliteStore(path)) as store:
        ((owner, key, text),) = store.load().states()
        wrong = {**json.loads(text), "unheard_of": 1}
        row = StateRow(key, json.dumps(wrong))
        store.commit(Epoch(store.load().number + 1, states={owner: [row]}))
    assert run(["state", "verify", "--state", path]) != 0
    assert "it is not what its rule would write" in capsys.readouterr().err
