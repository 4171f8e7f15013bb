"""What every store keeps, and gives back: in memory, and in a file that is closed and opened again.

`again(store)` is what a new engine would see: the same store in memory, a new one on the same file.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cep.state.memory import MemoryStore
from cep.state.sqlite import SqliteStore
from cep.state.store import (
    Epoch,
    OutRow,
    Owner,
    RuleVersion,
    Snapshot,
    SourceRow,
    StateRow,
    Store,
)

RUNS = Owner("runs", "r@1")
OTHER = Owner("windows", "w@1")
OPENED: list[Store] = []


def again(store: Store) -> Store:
    if isinstance(store, SqliteStore):
        store.close()
        store = SqliteStore(store.path)
        OPENED.append(store)
    return store


@pytest.fixture(params=["memory", "sqlite"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Any:
    yield MemoryStore() if request.param == "memory" else SqliteStore(str(tmp_path / "cep.db"))
    while OPENED:
        OPENED.pop().close()


def held(snapshot: Snapshot) -> dict[tuple[Owner, str], str]:
    return {(owner, key): state for owner, key, state in snapshot.states()}


def test_a_new_store_is_empty(store: Store) -> None:
    kept = store.load()
    assert (kept.number, kept.clock_us, kept.host_position) == (0, None, None)
    assert (kept.rules, kept.sources, kept.counters, kept.sink_lengths) == ([], [], {}, {})
    assert list(kept.states()) == list(kept.outbox()) == []
    assert store.next_due() is None
    assert store.check() == []


def test_states_are_added_changed_and_taken_away(store: Store) -> None:
    store.commit(Epoch(1, states={RUNS: [StateRow("[1]", "{}"), StateRow("[2]", '{"a":1}')]}))
    store.commit(Epoch(2, states={OTHER: [StateRow("[1]", '{"w":1}')]}))
    store.commit(Epoch(3, states={RUNS: [StateRow("[1]", None), StateRow("[2]", '{"a":2}')]}))
    kept = again(store).load()
    assert kept.number == 3
    assert held(kept) == {(RUNS, "[2]"): '{"a":2}', (OTHER, "[1]"): '{"w":1}'}


def test_taking_away_what_is_not_there_is_fine(store: Store) -> None:
    store.commit(Epoch(1, states={RUNS: [StateRow("[1]", None)], OTHER: []}))
    assert held(again(store).load()) == {}


def test_the_last_row_of_a_key_counts(store: Store) -> None:
    there, gone = StateRow("[1]", "{}", step="b"), StateRow("[1]", None)
    changed = StateRow("[1]", '{"a":1}', step="a")
    store.commit(Epoch(1, states={RUNS: [gone, there]}))
    assert held(store.load()) == {(RUNS, "[1]"): "{}"}
    store.commit(Epoch(2, states={RUNS: [changed, there, changed, StateRow("[2]", "{}", "b")]}))
    assert held(store.load())[RUNS, "[1]"] == '{"a":1}'
    store.commit(Epoch(3, states={RUNS: [there, gone]}))
    assert held(store.load()) == {(RUNS, "[2]"): "{}"}


AWKWARD = [
    '["é"]',
    '["日本"]',
    '["\\u0000"]',
    '["a\\"b"]',
    "[true]",
    "[1]",
    '["1"]',
    "[null]",
    "[]",
]


def test_texts_come_back_as_they_were(store: Store) -> None:
    rows = [StateRow(key, f'{{"of":{key},"x":"…"}}', step="schön") for key in AWKWARD]
    store.commit(Epoch(1, states={RUNS: rows}))
    assert held(again(store).load()) == {(RUNS, row.key): row.state for row in rows}


def test_progress_comes_back(store: Store) -> None:
    source = SourceRow("/var/log/a.jsonl", "f00", 4711, 12, 1_000_000, "jsonl")
    odd = SourceRow('"quoted"', "", 0, 1)
    undecodable = SourceRow("/var/\udcff.log", "", 1, 1)
    position = {"topic": "t", "offsets": [1, 2**60, None]}
    store.commit(
        Epoch(
            1,
            clock_us=-5,
            sources=[source, odd, undecodable],
            counters={"events": 3, "rules": {"r": {"matches": 2**70}}},
            sink_lengths={"out.jsonl": 100, "x\udcff": 1},
            host_position=position,
        )
    )
    kept = again(store).load()
    assert kept.clock_us == -5
    assert {s.name: s for s in kept.sources} == {s.name: s for s in (source, odd, undecodable)}
    assert kept.counters["events"] == 3
    assert kept.sink_lengths == {"out.jsonl": 100, "x\udcff": 1}
    assert kept.host_position == position


def test_what_is_given_again_is_replaced_and_what_is_not_stays(store: Store) -> None:
    source = SourceRow("a", "f", 1, 1)
    store.commit(Epoch(1, clock_us=7, sources=[source], counters={"a": 1, "b": 1}))
    store.commit(Epoch(2, sources=[SourceRow("a", "f", 9, 2)], counters={"b": 2}))
    kept = again(store).load()
    assert kept.sources == [SourceRow("a", "f", 9, 2)]
    assert kept.counters == {"a": 1, "b": 2}
    assert kept.clock_us is None


def test_numbers_of_epochs_only_grow(store: Store) -> None:
    store.commit(Epoch(5))
    store = again(store)
    for number in (5, 4):
        with pytest.raises(ValueError, match="cannot come after epoch 5"):
            store.commit(Epoch(number))
    store.commit(Epoch(9))
    assert again(store).load().number == 9


def out(name: str, kind: Any = "match", **more: Any) -> OutRow:
    return OutRow(name, kind, f'{{"id":"{name}"}}', **more)


def test_the_outbox_holds_what_was_not_delivered(store: Store) -> None:
    rows = [out(f"m{n}", rule="r", time_us=n) for n in range(5)]
    store.commit(Epoch(1, outbox=rows))
    store.delivered(["m0", "m3"])
    assert [row.id for row in store.load().outbox()] == ["m0", "m1", "m2", "m3", "m4"]
    store.commit(Epoch(2, outbox=[out("m5")]))
    store = again(store)
    assert list(store.load().outbox()) == [rows[1], rows[2], rows[4], out("m5")]


def test_what_was_delivered_last_does_not_need_another_epoch(store: Store) -> None:
    store.commit(Epoch(1, outbox=[out("m1"), out("m2")]))
    store.delivered(["m1"])
    store.close()
    assert [row.id for row in again(store).load().outbox()] == ["m2"]


def test_what_is_delivered_before_its_epoch_is_written_never_waits(store: Store) -> None:
    store.delivered(["m1"])
    store.commit(Epoch(1, outbox=[out("m1"), out("l1", "late"), out("r1", "reject")]))
    assert [row.id for row in again(store).load().outbox()] == ["l1", "r1"]


def test_the_same_record_again_is_one(store: Store) -> None:
    store.commit(Epoch(1, outbox=[out("m1", time_us=1)]))
    store.commit(Epoch(2, outbox=[out("m1", time_us=2), out("x", "late", pending=False)]))
    assert list(again(store).load().outbox()) == [out("m1", time_us=2)]


def version(name: str, status: Any = "live") -> RuleVersion:
    return RuleVersion(f"{name}@1", name, "1.0", "s", "l", "rule …", status)


def test_a_rule_that_is_gone_takes_its_states(store: Store) -> None:
    dedup = Owner("dedup", "r@1")
    rows = [StateRow("[1]", "{}"), StateRow("[2]", "{}")]
    store.commit(Epoch(1, rules=[version("r"), version("w")], states={RUNS: rows, OTHER: rows}))
    store.commit(Epoch(2, states={dedup: rows}, rules=[version("r", "draining")]))
    assert len(held(store.load())) == 6
    store.commit(Epoch(3, rules=[version("r", "gone")]))
    store = again(store)
    kept = store.load()
    assert held(kept) == {(OTHER, "[1]"): "{}", (OTHER, "[2]"): "{}"}
    assert {rule.name: rule.status for rule in kept.rules} == {"r": "gone", "w": "live"}
    store.commit(Epoch(4, rules=[version("r")], states={RUNS: rows[:1]}))
    assert len(held(again(store).load())) == 3


def test_single_states_can_be_asked_for(store: Store) -> None:
    rows = [StateRow(f"[{n}]", f'{{"n":{n}}}') for n in range(20)]
    store.commit(Epoch(1, states={RUNS: rows, OTHER: [StateRow("[3]", "{}")]}))
    assert store.fetch(RUNS, ["[3]", "[99]", "[7]"]) == {"[3]": '{"n":3}', "[7]": '{"n":7}'}
    assert store.fetch(Owner("runs", "nobody"), ["[3]"]) == {}
    assert store.fetch(RUNS, []) == {}


def test_what_is_due_can_be_asked_for(store: Store) -> None:
    rows = [StateRow(f"[{n}]", "{}", due_us=None if n == 2 else 10 * n) for n in range(-1, 5)]
    store.commit(Epoch(1, states={RUNS: rows}))
    assert sorted(key for _, key, _ in store.due(30)) == ["[-1]", "[0]", "[1]", "[3]"]
    assert store.due(-11) == []
    assert store.next_due() == -10
    assert (store.next_due(-10), store.next_due(30), store.next_due(40)) == (0, 40, None)


def test_every_number_of_64_bits_fits(store: Store) -> None:
    extremes = [-(1 << 63) + 1, -1, 0, (1 << 63) - 1]
    rows = [
        StateRow(f"[{n}]", "{}", first_us=at, due_us=at, runs=n) for n, at in enumerate(extremes)
    ]
    store.commit(Epoch(1, states={RUNS: rows}))
    seen, at = [], store.next_due()
    while at is not None:
        seen.append(at)
        at = store.next_due(at)
    assert seen == extremes


KEYS = st.sampled_from(['["a"]', '["ü"]', "[1]", "[2]"])
ROWS = st.dictionaries(KEYS, st.none() | st.sampled_from(["{}", '{"x":"é"}', '{"y":1}']))
EPOCHS = st.lists(
    st.fixed_dictionaries(
        {
            "states": st.dictionaries(st.sampled_from([RUNS, OTHER]), ROWS),
            "out": st.lists(st.sampled_from("abc"), max_size=2, unique=True),
            "delivered": st.lists(st.sampled_from("abc"), max_size=2),
            "gone": st.booleans(),
            "restart": st.booleans(),
        }
    ),
    max_size=6,
)


def seen(store: Store) -> tuple[object, ...]:
    kept = store.load()
    waiting = sorted(row.id for row in kept.outbox())
    return kept.number, held(kept), waiting, {rule.id: rule.status for rule in kept.rules}


@settings(deadline=None, max_examples=40)
@given(EPOCHS)
def test_file_and_memory_hold_the_same(
    tmp_path_factory: pytest.TempPathFactory, epochs: list[dict[str, Any]]
) -> None:
    memory: Store = MemoryStore()
    file: Store = SqliteStore(str(tmp_path_factory.mktemp("model") / "cep.db"))
    for number, drawn in enumerate(epochs, 1):
        rule = version("r", "gone" if drawn["gone"] else "live")
        for store in (memory, file):
            store.delivered(drawn["delivered"])
            states = {
                owner: [StateRow(key, state) for key, state in rows.items()]
                for owner, rows in drawn["states"].items()
            }
            outbox = [out(name) for name in drawn["out"]]
            store.commit(Epoch(number, states=states, outbox=outbox, rules=[rule]))
        if drawn["restart"]:
            file = again(file)
        assert seen(file) == seen(memory)
    file.close()
    OPENED.clear()


def test_handing_over_and_waiting(store: Store) -> None:
    store.submit(Epoch(1))
    store.submit(Epoch(2))
    assert store.wait()
    assert not store.busy
    assert store.problem is None
    assert store.load().number == 2


def test_room_is_measured_and_given_back(store: Store) -> None:
    many = [StateRow(f"[{n}]", '{"x":"' + "y" * 500 + '"}') for n in range(2000)]
    store.commit(Epoch(1, states={RUNS: many}))
    full = store.size()
    store.commit(Epoch(2, states={RUNS: [StateRow(row.key, None) for row in many]}))
    store.vacuum()
    assert store.size().file < full.file + full.log
    assert store.size().free == 0
    assert held(store.load()) == {}
