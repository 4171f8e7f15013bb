"""The tables of the grammar: worked out once, kept, and made anew where what is kept is no good."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from dsl import tables
from dsl.parser import parse
from dsl.source import Source

ROOT = Path(__file__).parents[2]


@pytest.fixture
def kept(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """The file of a user whose cache folder is empty."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.delenv("CEP_NO_CACHE", raising=False)
    path = tables._cache_file()
    assert path is not None
    return Path(path)


def fresh() -> tables.Tables:
    return tables.tables.__wrapped__()


def test_tables_are_kept_and_read_again(kept: Path) -> None:
    made = fresh()
    assert [path.name for path in kept.parent.iterdir()] == [kept.name]
    read = fresh()
    assert read.actions == made.actions
    assert read.rules == made.rules
    assert read.scanner(-1) == made.scanner(-1)


@pytest.mark.parametrize(
    "text", ["", "{", "[]", "[" * 100_000, '{"version": "of another release"}', "\0"]
)
def test_a_file_that_is_no_good_is_made_anew(kept: Path, text: str) -> None:
    kept.parent.mkdir(parents=True)
    kept.write_text(text)
    assert fresh().actions
    assert json.loads(kept.read_text())["actions"]


def test_a_file_that_is_cut_short_is_made_anew(kept: Path) -> None:
    fresh()
    version = json.loads(kept.read_text())["version"]
    kept.write_text(json.dumps({"version": version}))
    assert fresh().actions == json.loads(kept.read_text())["actions"]


def test_a_folder_that_cannot_be_written_is_only_slower(kept: Path) -> None:
    kept.parent.parent.joinpath("cep").write_text("a file where the folder should be")
    assert fresh().actions


def test_nothing_is_kept_where_that_is_not_wanted(
    kept: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CEP_NO_CACHE", "1")
    assert fresh().actions
    assert not kept.parent.exists()


def test_a_start_that_finds_the_tables_does_not_load_lark(kept: Path) -> None:
    fresh()
    code = """
import sys
import cep
cep.loads('rule a { on login alert "x" }')
assert "lark" not in sys.modules
"""
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_words_are_read_as_the_state_expects_them() -> None:
    file, found = parse(Source("a.cep", "rule where { on rule where where == 1 }"))
    assert not found
    assert file.statements[0].name.name == "where"
