"""Trouble with the disk under the state: told in words, and nothing is lost."""

from __future__ import annotations

import json
import os
import signal
import sqlite3
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import pytest

import cep
from cep.cli.main import run
from cep.state import checkpoint
from cep.state.sqlite import SqliteStore

ROOT = Path(__file__).parents[2]

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
    found += ids(engine.process(given[5:], position=9)) + ids(engine.checkpoint())
    engine.suspend()
    assert found == wanted(given)
    with cep.Engine(cep.loads(RULES), state=path) as again:
        assert (again.position, again.process([])) == (9, [])


def test_at_the_end_there_is_one_wait_which_is_told_of(tmp_path: Path) -> None:
    path, told = tmp_path / "cep.db", list[str]()
    store = SqliteStore(str(path), patience=100_000)

    def work() -> None:
        with cep.Engine(cep.loads(RULES), state=store) as engine:
            assert engine.keeper is not None
            engine.keeper.on_waiting = told.append
            engine.process([login(n) for n in range(3)], position=3)

    with locked(path), pytest.raises(cep.StateError, match="is locked by another program"):
        work()
    assert [words.partition("; ")[2] for words in told] == ["waiting for it, 1 s at most"]
    with cep.Engine(cep.loads(RULES), state=path) as again:
        assert again.position is None


# ---------------------------------------------------------------------------- cep run


RUN = """
import resource, sys
limit = int(sys.argv[1])
if limit:
    resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))
sys.path.insert(0, sys.argv[2])
from cep.state import checkpoint, sqlite
checkpoint.PATIENCE = 2.0
checkpoint.SILENT = 0.2
sqlite.SqliteStore.__init__.__kwdefaults__["patience"] = 0.5
from cep.cli.main import run
sys.exit(run(sys.argv[3:]))
"""


class Runs:
    """`cep run --state` in processes of their own, over a log in a folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.state = folder / "cep.db"
        self.out = folder / "out.jsonl"
        (folder / "rules.cep").write_text(RULES)
        events = [login(n, text="x" * 300) for n in range(2000)]
        self.log = folder / "log.jsonl"
        self.log.write_text("".join(json.dumps(event) + "\n" for event in events))
        assert run(["run", *map(str, self._files), "--quiet"]) == 0
        self.wanted = self.found
        self.out.unlink()

    @property
    def _files(self) -> list[object]:
        return [self.folder / "rules.cep", self.log, "-o", self.out]

    def __call__(self, limit: int = 0, state: Path | None = None) -> tuple[int, str]:
        """Exit code and what was said; no file may become longer than `limit`."""
        return ended(self.start(limit, state))

    def start(
        self, limit: int = 0, state: Path | None = None, *options: str
    ) -> subprocess.Popen[str]:
        keep = ["--state", state or self.state, "--checkpoint-every", "1ms"]
        arguments = [limit, ROOT, "run", *self._files, *keep, *options]
        return subprocess.Popen(
            [sys.executable, "-c", RUN, *map(str, arguments)],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    @property
    def found(self) -> list[str]:
        return [json.loads(line)["id"] for line in self.out.read_text().splitlines()]


def ended(process: subprocess.Popen[str]) -> tuple[int, str]:
    _, said = process.communicate(timeout=60)
    return process.returncode, said


@pytest.fixture
def runs(tmp_path: Path) -> Runs:
    return Runs(tmp_path)


@pytest.mark.parametrize("kibibytes", [40, 200, 400])
def test_a_disk_that_is_full_ends_the_run_and_nothing_is_lost(runs: Runs, kibibytes: int) -> None:
    """The limit is met by the state, by its log or by the output: whatever comes first."""
    code, said = runs(limit=kibibytes << 10)
    assert code == 2
    assert "Traceback" not in said
    assert "the disk does not" in said or "File too large" in said or "is full" in said, said
    code, said = runs()
    assert (code, runs.found == runs.wanted) == (0, True), said


def test_a_small_disk_that_is_full(runs: Runs, tmp_path: Path) -> None:
    disk = tmp_path / "disk"
    disk.mkdir()
    if subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=300k", "tmpfs", disk], capture_output=True
    ).returncode:
        pytest.skip("a disk can only be mounted by root")
    try:
        code, said = runs(state=disk / "cep.db")
        assert (code, "Traceback" in said) == (2, False)
        assert "the disk is full" in said or "No space left" in said, said
        subprocess.run(["mount", "-o", "remount,size=50m", disk], check=True)
        code, said = runs(state=disk / "cep.db")
        assert (code, runs.found == runs.wanted) == (0, True), said
    finally:
        subprocess.run(["umount", disk], check=True)


def test_a_damaged_file_is_named_and_left_alone(runs: Runs) -> None:
    assert runs()[0] == 0
    content = bytearray(runs.state.read_bytes())
    for page in range(2, len(content) // 4096):
        content[page * 4096 : page * 4096 + 200] = b"\xff" * 200
    runs.state.write_bytes(content)
    before = runs.out.read_bytes()
    code, said = runs()
    assert (code, "Traceback" in said) == (2, False), said
    assert f"{runs.state} is damaged" in said
    assert runs.state.read_bytes() == bytes(content)
    assert runs.out.read_bytes() == before


def test_another_kind_of_file_is_no_state(runs: Runs) -> None:
    runs.state.write_text("my only copy of the thesis\n" * 500)
    code, said = runs()
    assert code == 2
    assert "is not an SQLite file" in said
    assert runs.state.read_text().startswith("my only copy")


def test_the_file_of_a_newer_version_is_left_alone(runs: Runs) -> None:
    assert runs()[0] == 0
    with closing(sqlite3.connect(runs.state)) as file, file:
        file.execute(
            "insert into _sqlite_migrations (migration_set, name, applied_at)"
            " values ('cep.state', '9999_later', '2999-01-01')"
        )
    before = runs.out.read_bytes()
    code, said = runs()
    assert (code, "was written by a newer version of cep" in said) == (2, True), said
    assert runs.out.read_bytes() == before


def test_a_place_where_nothing_can_be_written(runs: Runs) -> None:
    code, said = runs(state=Path("/proc/cep.db"))
    assert (code, "Traceback" in said) == (2, False)
    assert "cannot keep state in /proc/cep.db" in said


def test_a_file_that_must_only_be_read(runs: Runs) -> None:
    if os.geteuid() == 0:
        pytest.skip("root may write everything")
    assert runs()[0] == 0
    runs.state.chmod(0o400)
    code, said = runs()
    assert (code, "check the rights of file and folder" in said) == (2, True), said


def test_a_second_run_on_one_file_is_refused_and_changes_nothing(runs: Runs) -> None:
    first = runs.start(0, None, "--follow")
    while not runs.out.exists() or runs.out.read_bytes().count(b"\n") < len(runs.wanted):
        time.sleep(0.05)
    code, said = runs()
    assert (code, f"{runs.state} is in use by process {first.pid}" in said) == (2, True), said
    assert runs.found == runs.wanted
    first.send_signal(signal.SIGINT)
    ended(first)
    assert runs.found == runs.wanted


def test_a_file_that_another_program_holds_is_told_of(runs: Runs) -> None:
    assert runs()[0] == 0
    with locked(runs.state):
        code, said = runs()
    assert (code, "is locked by another program" in said) == (2, True), said
    assert runs()[0] == 0
    assert runs.found == runs.wanted
