"""The state file: what people see in it, and what becomes of it when things go wrong."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import sqlite3
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from random import Random

import pytest

import cep
from cep.engine import Engine
from cep.state.lock import FileLock
from cep.state.snapshot import Memory
from cep.state.sqlite import SqliteStore, read_view, reading, writing
from cep.state.sqlite.schema import VIEWS
from cep.state.store import Epoch, OutRow, Owner, RuleVersion, SourceRow, StateError, StateRow

RUNS = Owner("runs", "r@1")
START = 1_767_225_600_000_000


@pytest.fixture
def path(tmp_path: Path) -> str:
    return str(tmp_path / "cep.db")


@pytest.fixture
def store(path: str) -> Iterator[SqliteStore]:
    made = SqliteStore(path)
    yield made
    made.close()


def rows(count: int, content: str = "") -> list[StateRow]:
    return [StateRow(f"[{n}]", f'{{"c":"{content}"}}') for n in range(count)]


def keys_in(path: str) -> int:
    with closing(SqliteStore(path)) as store:
        return len(list(store.load().states()))


# ---------------------------------------------------------------------------- for people

RULES = """\
stream login { where type == "login" }
stream price { where type == "price" }
table prices from price key item ttl 1h

rule guessed "Guessed" {
  by user
  sequence within 10m { fail: login where not ok  fine: login where ok }
  dedup for 1h
  alert "{user}"
}

rule many "Many" {
  by user
  aggregate login over sliding 5m { n = count() }
  having n > 100
  alert "{user}"
}

rule cheap "Cheap" { on l: login where prices[item].p < 2  alert "{l.item}" }
"""


def events(minute: int, *facts: tuple[str, bool]) -> list[dict[str, object]]:
    return [
        {"time": f"2026-01-01T00:{minute:02}:{s:02}.5Z", "type": "login", "user": user, "ok": ok}
        for s, (user, ok) in enumerate(facts)
    ]


def filled(path: str) -> None:
    """A state file as an engine would leave it."""
    engine = Engine(cep.loads(RULES))
    engine.process(events(0, ("ann", False), ("ann", True), ("ann", False), ("ann", True)))
    engine.process([{"time": "2026-01-01T00:02:00Z", "type": "price", "item": "tea", "p": 2}])
    engine.process(events(3, ("bob", False)))
    states: dict[Owner, list[StateRow]] = {}
    for owner, row in Memory(engine.program, engine.ingest.decode).rows():
        name = owner.name if owner.kind == "tables" else f"{owner.name}@1"
        states.setdefault(Owner(owner.kind, name), []).append(row)
    late = {"source": "a.jsonl", "position": 7, "time": "2026-01-01T00:00:00Z", "late_by_s": 1.5}
    reject = {"source": "a.jsonl", "position": 9, "line": 2, "reason": "no JSON", "raw": "{"}
    with closing(SqliteStore(path)) as store:
        store.commit(
            Epoch(
                1,
                clock_us=START + 180_500_000,
                states=states,
                rules=[
                    RuleVersion(f"{name}@1", name, "2.1", "s1", "l1", "rule …")
                    for name in ("guessed", "many", "cheap")
                ],
                sources=[SourceRow("a.jsonl", "ff", 300, 6, START, "jsonl")],
                counters={"events": 6},
                sink_lengths={"out.jsonl": 99},
                outbox=[
                    OutRow("m1", "match", '{"id":"m1"}', "guessed", START + 1),
                    OutRow("l1", "late", json.dumps(late)),
                    OutRow("r1", "reject", json.dumps(reject), pending=False),
                ],
            )
        )


def only(path: str, view: str, **where: str) -> dict[str, object]:
    found = read_view(path, view, where)
    assert len(found) == 1, found
    return found[0]


def test_runs_show_the_events_taken_so_far(path: str) -> None:
    filled(path)
    row = only(path, "runs", key='["bob"]')
    assert json.loads(str(row.pop("events"))) == events(3, ("bob", False))
    assert row == {
        "rule": "guessed",
        "version": "2.1",
        "key": '["bob"]',
        "step": "fail",
        "runs": 1,
        "first": "2026-01-01T00:03:00.500Z",
        "deadline": "2026-01-01T00:13:00.500Z",
    }


def test_windows_show_what_they_hold(path: str) -> None:
    filled(path)
    row = only(path, "windows", key='["ann"]')
    assert (row["rule"], row["version"], row["events"]) == ("many", "2.1", 4)


def test_suppressed_matches_are_shown(path: str) -> None:
    filled(path)
    assert only(path, "suppressed") == {
        "rule": "guessed",
        "version": "2.1",
        "key": '["ann"]',
        "hidden": 1,
        "first": "2026-01-01T00:00:03.500Z",
        "last": "2026-01-01T00:00:03.500Z",
        "until": "2026-01-01T01:00:01.500Z",
    }


def test_tables_show_their_rows(path: str) -> None:
    filled(path)
    row = only(path, "tables")
    assert (row["table"], row["key"], row["time"]) == ("prices", '["tea"]', "2026-01-01T00:02:00Z")
    assert json.loads(str(row["row"]))["p"] == 2


def test_progress_and_records_are_shown(path: str) -> None:
    filled(path)
    assert only(path, "outbox") == {
        "id": "m1",
        "rule": "guessed",
        "time": "2026-01-01T00:00:00.000001Z",
        "record": '{"id":"m1"}',
    }
    late = only(path, "late")
    assert (late["position"], late["late_by_s"], late["delivered"]) == (7, 1.5, 0)
    reject = only(path, "rejects")
    assert (reject["line"], reject["reason"], reject["raw"]) == (2, "no JSON", "{")
    assert reject["delivered"] == 1
    assert only(path, "sources")["frontier"] == "2026-01-01T00:00:00Z"
    assert only(path, "outputs") == {"name": "out.jsonl", "length": 99}
    assert only(path, "counters") == {"name": "events", "value": "6"}
    assert len(read_view(path, "rules")) == 3
    point = only(path, "checkpoints")
    assert (point["number"], point["clock"]) == (1, "2026-01-01T00:03:00.500Z")
    assert point["rows"] == sum(row["keys"] for row in read_view(path, "sizes"))  # type: ignore[misc]


@pytest.mark.parametrize("view", VIEWS)
def test_every_view_can_be_read(path: str, view: str) -> None:
    filled(path)
    assert read_view(path, view, limit=1) == read_view(path, view)[:1]
    times = [
        value
        for row in read_view(path, view)
        for name, value in row.items()
        if name in ("first", "deadline", "due", "until", "time", "clock", "frontier", "expires")
    ]
    assert all(str(value).endswith("Z") for value in times if value is not None)


def test_the_documentation_names_all_views_and_their_columns(path: str) -> None:
    page = Path(__file__).parents[2] / "docs" / "reference" / "state-file.md"
    listed = re.findall(r"^\| `(\w+)` \| [^|]+ \| (.+) \|$", page.read_text(), re.M)
    told = {view: re.findall(r"`(\w+)`", columns) for view, columns in listed}
    SqliteStore(path).close()
    with closing(sqlite3.connect(path)) as other:
        there = {
            view: [column[1] for column in other.execute(f"pragma table_info({view})")]
            for view in VIEWS
        }
    assert told == there


def test_a_view_can_be_read_while_an_engine_writes(path: str, store: SqliteStore) -> None:
    store.commit(Epoch(1, states={RUNS: rows(3)}))
    assert len(read_view(path, "keys")) == 3


def test_times_of_any_year_are_shown(path: str, store: SqliteStore) -> None:
    times = [-62_135_596_800_000_000, -1, 0, 253_402_300_799_999_999, (1 << 62)]
    store.commit(
        Epoch(1, states={RUNS: [StateRow(f"[{t}]", "{}", first_us=t, due_us=t) for t in times]})
    )
    assert [row["due"] for row in read_view(path, "timers")] == [
        "0001-01-01T00:00:00Z",
        "1969-12-31T23:59:59.999999Z",
        "1970-01-01T00:00:00Z",
        "9999-12-31T23:59:59.999999Z",
        "9999-12-31T23:59:59.999999Z",
    ]


def test_wrong_questions_are_answered_in_words(path: str, tmp_path: Path) -> None:
    with pytest.raises(StateError, match="there is no state file"):
        read_view(path, "runs")
    filled(path)
    with pytest.raises(StateError, match="has no view rums: it has runs, timers"):
        read_view(path, "rums")
    with pytest.raises(StateError, match="the view outputs has no rule: it has name, length"):
        read_view(path, "outputs", {"rule": "x"})


def test_it_is_told_how_long_the_last_commits_took(path: str, store: SqliteStore) -> None:
    for number in range(1, 4):
        store.commit(Epoch(number, states={RUNS: rows(10, "x")}))
    points = read_view(path, "checkpoints")
    assert [(point["number"], point["rows"]) for point in points] == [(1, 10), (2, 10), (3, 10)]
    assert all(point["bytes"] == 90 and point["duration_ms"] > 0 for point in points)


# ---------------------------------------------------------------------------- large and many


def test_many_rows_go_in_pieces(
    path: str, store: SqliteStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(writing, "PIECE_ROWS", 7)
    monkeypatch.setattr(writing, "PIECE_BYTES", 1000)
    monkeypatch.setattr(reading, "PIECE_BYTES", 2000)
    some = [StateRow(f"[{n}]", f'"{"ä" * (n * 37 % 900)}"', step=f"s{n % 3}") for n in range(100)]
    store.commit(Epoch(1, states={RUNS: some}))
    assert {key: state for _, key, state in store.load().states()} == {
        row.key: row.state for row in some
    }
    store.commit(Epoch(2, states={RUNS: [StateRow(row.key, None) for row in some[:50]]}))
    assert len(list(store.load().states())) == 50


def test_the_number_of_statements_does_not_grow_with_the_rows(store: SqliteStore) -> None:
    counts = []
    for number, count in enumerate((10, 5000), 1):
        said: list[str] = []
        store._writer.set_trace_callback(said.append)
        store.commit(Epoch(number, states={RUNS: rows(count)}))
        counts.append(len(said))
    store._writer.set_trace_callback(None)
    assert counts[1] <= counts[0] + 2


def test_texts_longer_than_sqlite_takes_at_once_are_read_in_smaller_pieces(
    store: SqliteStore,
) -> None:
    store.commit(Epoch(1, states={RUNS: rows(600, "x" * 1000)}))
    store._reader.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, 50_000)
    assert len(list(store.load().states())) == 600
    assert len(store.fetch(RUNS, [row.key for row in rows(600)])) == 600


def test_the_log_is_short_again_after_a_large_epoch(
    path: str, store: SqliteStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(writing, "LOG_KEPT", 100_000)
    store.commit(Epoch(1, states={RUNS: rows(2000, "x" * 200)}))
    assert store.size().log == 0
    assert store.size().file > 400_000


def test_few_records_are_kept_for_looking_at(
    path: str, store: SqliteStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(writing, "LEFTOVERS_KEPT", 5)
    for number in range(1, 5):
        outbox = [OutRow(f"r{number}.{n}", "reject", "{}", pending=False) for n in range(4)]
        waiting = OutRow(f"w{number}", "reject", "{}")
        store.commit(Epoch(number, outbox=[*outbox, waiting]))
    assert len(read_view(path, "rejects", {"delivered": "1"})) == 0
    found = [row["id"] for row in read_view(path, "rejects") if row["delivered"]]
    assert found == ["r3.3", "r4.0", "r4.1", "r4.2", "r4.3"]
    assert len(list(store.load().outbox())) == 4


def test_few_checkpoints_are_remembered(
    path: str, store: SqliteStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(writing, "EPOCHS_KEPT", 3)
    for number in range(1, 8):
        store.commit(Epoch(number))
    assert [row["number"] for row in read_view(path, "checkpoints")] == [5, 6, 7]


# ---------------------------------------------------------------------------- when it fails


def test_a_number_that_does_not_fit_is_refused_whole(store: SqliteStore) -> None:
    with pytest.raises(OverflowError):
        store.commit(Epoch(1, states={RUNS: [*rows(3), StateRow("[9]", "{}", due_us=10**20)]}))
    assert list(store.load().states()) == []


def test_a_locked_file_is_waited_for(path: str, store: SqliteStore) -> None:
    with closing(sqlite3.connect(path, isolation_level=None)) as other:
        other.execute("begin immediate")
        store.submit(Epoch(1, states={RUNS: rows(3)}))
        while store.problem is None:
            assert not store.wait(0.01)
        assert store.busy
        assert store.problem == f"{path} is locked by another program that writes to it"
        other.execute("rollback")
    assert store.wait(20)
    assert store.problem is None
    assert len(list(store.load().states())) == 3


def test_commit_does_not_wait_for_ever_and_nothing_is_lost(path: str) -> None:
    store = SqliteStore(path, patience=0.1)
    with closing(sqlite3.connect(path, isolation_level=None)) as other:
        other.execute("begin immediate")
        with pytest.raises(StateError, match=r"is locked by another program|takes too long"):
            store.commit(Epoch(1, states={RUNS: rows(3)}))
        other.execute("rollback")
    assert store.wait(20)
    store.close()
    assert keys_in(path) == 3


def test_what_was_waited_for_in_vain_is_not_waited_for_again_at_the_end(path: str) -> None:
    store = SqliteStore(path, patience=100_000)
    with closing(sqlite3.connect(path, isolation_level=None)) as other:
        other.execute("begin immediate")
        store.submit(Epoch(1, states={RUNS: rows(3)}))
        assert not store.wait(0.1)
        with pytest.raises(StateError, match=r"is locked by another program.*is not saved"):
            store.close()
        other.execute("rollback")
    assert keys_in(path) == 0


def test_a_full_disk_is_waited_for(path: str, store: SqliteStore) -> None:
    store.commit(Epoch(1, states={RUNS: rows(3)}))
    pages = store._writer.execute("pragma page_count").fetchone()[0]
    store._writer.execute(f"pragma max_page_count = {pages + 2}")
    store.submit(Epoch(2, states={RUNS: rows(5000, "x" * 100)}))
    while store.problem is None:
        assert not store.wait(0.01)
    assert store.problem == f"the disk is full, {path} cannot grow"
    assert len(read_view(path, "keys")) == 3
    store._writer.execute("pragma max_page_count = 1000000")
    assert store.wait(20)
    assert len(read_view(path, "keys")) == 5000


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    disk = tmp_path / "disk"
    disk.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=2m", "tmpfs", str(disk)]
    if shutil.which("mount") is None or subprocess.run(mount, capture_output=True).returncode:
        pytest.skip("no right to mount a small disk")
    yield disk
    subprocess.run(["umount", "--lazy", str(disk)], check=True)


def test_a_disk_that_is_really_full(small_disk: Path) -> None:
    with closing(SqliteStore(str(small_disk / "cep.db"))) as store:
        store.commit(Epoch(1, states={RUNS: rows(3)}))
        filler = small_disk / "filler"
        filler.write_bytes(bytes(1_500_000))
        store.submit(Epoch(2, states={RUNS: rows(5000, "x" * 100)}))
        while store.problem is None:
            assert not store.wait(0.01)
        assert "full" in store.problem
        assert len(list(store.load().states())) == 3
        filler.unlink()
        assert store.wait(20)
        assert len(list(store.load().states())) == 5000


def test_closing_while_the_disk_is_full_says_what_is_not_saved(path: str) -> None:
    store = SqliteStore(path, patience=0.2)
    store.commit(Epoch(1, states={RUNS: rows(3)}))
    store._writer.execute("pragma max_page_count = 1")
    store.submit(Epoch(2, states={RUNS: rows(5000, "x" * 100)}))
    with pytest.raises(StateError, match=r"the disk is full.*is not saved"):
        store.close()
    store.close()
    assert keys_in(path) == 3


def test_a_file_that_must_not_be_written_ends_the_store(path: str) -> None:
    store = SqliteStore(path)
    store._writer.execute("pragma query_only = on")
    with pytest.raises(StateError, match=r"cannot write .*: check the rights of file and folder"):
        store.commit(Epoch(1))
    with pytest.raises(StateError, match="cannot write"):
        store.submit(Epoch(2))
    store.close()


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_a_read_only_folder_is_refused(path: str) -> None:
    os.chmod(os.path.dirname(path), 0o500)
    with pytest.raises(StateError, match="cannot keep state in"):
        SqliteStore(path)


def test_a_folder_that_is_not_there_is_refused(tmp_path: Path) -> None:
    with pytest.raises(StateError, match=r"cannot keep state in .*No such file or directory"):
        SqliteStore(str(tmp_path / "none" / "cep.db"))


def test_another_kind_of_file_is_refused_and_left_alone(path: str) -> None:
    Path(path).write_text("these are my notes, " * 500)
    with pytest.raises(StateError, match="is not an SQLite file, or its beginning is damaged"):
        SqliteStore(path)
    assert Path(path).read_text().startswith("these are my notes")


def test_a_file_of_a_newer_version_is_refused_and_left_alone(path: str) -> None:
    SqliteStore(path).close()
    with closing(sqlite3.connect(path)) as other, other:
        other.execute(
            "insert into _sqlite_migrations (migration_set, name, applied_at)"
            " values ('cep.state', '0099_future', '')"
        )
    before = Path(path).read_bytes()
    with pytest.raises(StateError, match=r"written by a newer version of cep \(0099_future\)"):
        SqliteStore(path)
    assert Path(path).read_bytes() == before


def test_state_may_live_beside_other_tables(path: str) -> None:
    with closing(sqlite3.connect(path)) as other, other:
        other.execute("create table matches (id text primary key)")
        other.execute("insert into matches values ('m1')")
    with closing(SqliteStore(path)) as store:
        store.commit(Epoch(1, states={RUNS: rows(1)}))
        assert store.load().number == 1
    assert only(path, "matches") == {"id": "m1"}


def damage(path: str, page: int, content: bytes) -> None:
    with open(path, "r+b") as file:
        file.seek((page - 1) * 4096)
        file.write(content)


def test_damage_is_never_taken_for_state(path: str) -> None:
    """Each page in turn is overwritten: it is noticed, or nothing in use stood there."""
    with closing(SqliteStore(path)) as store:
        store.commit(Epoch(1, rules=[RuleVersion("r@1", "r", "1", "s", "l", "rule")]))
        store.commit(Epoch(2, states={RUNS: rows(200, "x" * 100)}))
        whole = list(store.load().states())
    copy = path + ".copy"
    told = 0
    for page in range(1, os.path.getsize(path) // 4096 + 1):
        shutil.copy(path, copy)
        damage(copy, page, Random(page).randbytes(4096))
        found, said = looked_at(copy)
        told += bool(said)
        assert said or found == whole
        assert all(copy in words for words in said[:1] if "damaged" in words)
    assert told > 5


def looked_at(path: str) -> tuple[object, list[str]]:
    """The states in a file, and what is said to be wrong with it."""
    try:
        with closing(SqliteStore(path)) as store:
            return list(store.load().states()), store.check()
    except StateError as error:
        return None, [str(error)]


def test_check_finds_what_does_not_belong(path: str, store: SqliteStore) -> None:
    store.commit(Epoch(1, states={RUNS: rows(2)}))
    assert store.check() == ["1 owners of states belong to no version of a rule"]
    store._writer.execute("update _states set state = 'x', owner = 77 where key = '[1]'")
    assert "1 states belong to no owner" in store.check()
    assert "1 states are not JSON" in store.check()


# ---------------------------------------------------------------------------- one process

HOLD = """
import sys, time
from cep.state.sqlite import SqliteStore
store = SqliteStore(sys.argv[1])
print("open", flush=True)
time.sleep(60)
"""


def started(program: str, path: str) -> subprocess.Popen[bytes]:
    return subprocess.Popen([sys.executable, "-c", program, path], stdout=subprocess.PIPE)


def test_a_second_process_is_told_who_has_the_file(path: str, tmp_path: Path) -> None:
    process = started(HOLD, path)
    assert process.stdout is not None
    process.stdout.readline()
    link = tmp_path / "link.db"
    link.symlink_to(path)
    for name in (path, str(link)):
        with pytest.raises(StateError, match=f"is in use by process {process.pid}: one state file"):
            SqliteStore(name)
    process.send_signal(signal.SIGKILL)
    process.wait()
    process.stdout.close()
    SqliteStore(path).close()


def test_two_stores_in_one_process_exclude_each_other(path: str, store: SqliteStore) -> None:
    with pytest.raises(StateError, match=f"is in use by process {os.getpid()}"):
        SqliteStore(path)


def test_a_store_that_could_not_open_leaves_no_lock(path: str) -> None:
    Path(path).write_text("no database " * 1000)
    with pytest.raises(StateError):
        SqliteStore(path)
    FileLock(path).release()


def test_a_closed_store_says_so(path: str) -> None:
    store = SqliteStore(path)
    store.close()
    with pytest.raises(StateError, match="the state file is closed"):
        store.commit(Epoch(1))


# ---------------------------------------------------------------------------- pulled plugs

WRITE = """
import sys
from cep.state.sqlite import SqliteStore
from cep.state.store import Epoch, OutRow, Owner, StateRow
store = SqliteStore(sys.argv[1])
number = store.load().number
print("open", flush=True)
while True:
    number += 1
    rows = [StateRow(f"[{n}]", f'{{"n":{number}}}') for n in range(2000)]
    outbox = [OutRow(f"m{number}", "match", "{}")]
    states = {Owner("runs", "r@1"): rows[:1000], Owner("dedup", "r@1"): rows[1000:]}
    store.submit(Epoch(number, states=states, outbox=outbox, counters={"n": number}))
"""


def whole(path: str) -> int:
    """The number of the epoch in a file, of which everything is there and nothing else."""
    with closing(SqliteStore(path)) as store:
        kept = store.load()
        states = [state for _, _, state in kept.states()]
        if kept.number:
            assert kept.counters == {"n": kept.number}
            assert states == [f'{{"n":{kept.number}}}'] * 2000
            assert [row.id for row in kept.outbox()] == [f"m{n + 1}" for n in range(kept.number)]
        assert not [problem for problem in store.check() if "version of a rule" not in problem]
        return kept.number


def test_a_killed_process_leaves_a_whole_epoch(path: str) -> None:
    random, seen = Random(1), 0
    for _ in range(6):
        process = started(WRITE, path)
        assert process.stdout is not None
        process.stdout.readline()
        time.sleep(random.uniform(0.02, 0.3))
        process.send_signal(signal.SIGKILL)
        process.wait()
        process.stdout.close()
        number = whole(path)
        assert number >= seen
        seen = number
    assert seen > 0


def test_a_disk_that_lost_the_end_of_the_log_holds_a_whole_epoch(path: str) -> None:
    """The log is cut anywhere, or its end is garbage: an earlier epoch is there, whole."""
    process = started(WRITE, path)
    assert process.stdout is not None
    process.stdout.readline()
    while not os.path.exists(path + "-wal") or os.path.getsize(path + "-wal") < 1_000_000:
        time.sleep(0.01)
    process.send_signal(signal.SIGKILL)
    process.wait()
    process.stdout.close()
    base, log = Path(path).read_bytes(), Path(path + "-wal").read_bytes()
    random = Random(2)
    for attempt in range(10):
        cut = random.randrange(len(log))
        copy = f"{path}.{attempt}"
        Path(copy).write_bytes(base)
        rest = random.randbytes(len(log) - cut) if attempt % 2 else b""
        Path(copy + "-wal").write_bytes(log[:cut] + rest)
        whole(copy)
