"""The short way of a block gives what the long way gives: matches, their records, numbers."""

from __future__ import annotations

import csv
import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from random import Random
from typing import Any

import pytest

import cep
from cep.skim import Skimmer
from cep.source import open_source

RULES = {
    "one type for each step": """
        rule r { by user sequence within 1h { a: A  b: B where n > a.n } skip nothing
                 alert "{a.user} {b.n}" { n = b.n  text = b.text } }""",
    "numbers tell the events": """
        stream low from event where code in [1, 2]
        rule r { by user sequence within 1h { a: low{2} } alert "{user}" { n = a[0].n } }""",
    "all events": """
        rule r { by user sequence strict within 1h { t: event{2} where n > prev(n) }
                 alert "{user}" { n = last(t.n) } }""",
    "missing or null": """
        stream odd from event where type == "A" and text is missing
        rule r { by user on odd alert "{user}" }""",
    "expected keys": """
        list users = ["u1", "u2", "never"]
        rule r { by user sequence { a: A no A within 1s } keys from users alert "{user}" }""",
    "a nested field": """
        rule r { on A where geo.city == "Rome" alert "{A.geo.city}" { user = A.user } }""",
    "a nested field tells": """
        stream rome from event where geo.city in ["Rome", "Oslo"]
        rule r { by user sequence within 1h { a: rome b: rome } alert "{user} {b.geo.city}" }""",
}


def events(random: Random, *, odd: bool) -> Iterator[dict[str, Any]]:
    """Events in order, most of no use; with `odd` some values are of unexpected types."""
    time = 1_700_000_000_000
    for number in range(3000):
        time += random.randrange(3)
        event: dict[str, Any] = {
            "ts": time,
            "type": random.choice("ABCDEFGH"),
            "user": f"u{random.randrange(9)}",
            "n": random.choice([random.randrange(100), random.random()]),
            "code": random.randrange(9),
        }
        if random.random() < 0.5:
            event["text"] = random.choice(["x", "tr\u00e9s", '"', "007", "a, b"])
        if random.random() < 0.3:
            event["geo.city"] = random.choice(["Rome", "Oslo", "Lima"])
        if odd and number % 500 == 400:
            event[random.choice(["user", "n", "code"])] = random.choice([True, "12", 7])
        yield event


def write_lines(path: Path, records: list[dict[str, Any]]) -> None:
    text = "".join(json.dumps(record, ensure_ascii=False) + "\n" for record in records)
    path.write_text(text, encoding="utf-8")


def write_csv(path: Path, records: list[dict[str, Any]]) -> None:
    names = list(dict.fromkeys(name for record in records for name in record))
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, names)
        writer.writeheader()
        writer.writerows(records)


def write_parquet(path: Path, records: list[dict[str, Any]]) -> None:
    pyarrow = pytest.importorskip("pyarrow")
    from pyarrow import parquet

    names = list(dict.fromkeys(name for record in records for name in record))
    table = pyarrow.table({name: [record.get(name) for record in records] for name in names})
    parquet.write_table(table, path, row_group_size=700)


WRITERS = {"jsonl": write_lines, "csv": write_csv, "parquet": write_parquet}


def found(rules: cep.Ruleset, path: Path) -> tuple[list[Mapping[str, Any]], Any]:
    """The records of all matches in a file, and the numbers of the engine."""
    engine, matches = cep.Engine(rules), list[cep.Match]()
    cep.run_sources(engine, [open_source(str(path))], on_matches=matches.extend)
    matches += engine.close()
    return [match.to_dict() for match in matches], engine.stats


@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("form", WRITERS)
@pytest.mark.parametrize("odd", [False, True])
def test_both_ways_find_the_same(
    rule: str, form: str, odd: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if odd and form == "parquet":
        pytest.skip("a column of Parquet has one type")
    rules, path = cep.loads(RULES[rule]), tmp_path / f"events.{form}"
    WRITERS[form](path, list(events(Random(7), odd=odd)))
    monkeypatch.setattr("cep.source.lines.BLOCK", 1 << 14)
    monkeypatch.setattr("cep.source.parquet._MOST_ROWS", 500)
    taken = []
    skim = Skimmer.skim

    def spy(*arguments: Any) -> Any:
        skimmed = skim(*arguments)
        taken.append(skimmed is not None)
        return skimmed

    monkeypatch.setattr(Skimmer, "skim", spy)
    short = found(rules, path)
    monkeypatch.setattr(Skimmer, "skim", lambda *_: None)
    assert short == found(rules, path)
    assert short[0]
    assert sum(taken) > len(taken) / 3 or form == "jsonl"  # lines of other letters go the long way


def test_a_block_out_of_order_goes_the_long_way(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_text("time,type\n5,A\n3,A\n6,A\n")
    records, stats = found(cep.loads('rule r { on A alert "a" }'), path)
    assert [record["time"] for record in records] == [
        "1970-01-01T00:00:05Z",
        "1970-01-01T00:00:06Z",
    ]
    assert (stats.events, stats.late) == (3, 1)


def test_events_of_no_use_move_the_clock(tmp_path: Path) -> None:
    rules = cep.loads('rule r { by user sequence { a: A no B within 10s } alert "{user}" }')
    lines = "time,type,user\n1,A,ann\n2,X,bob\n30,X,bob\n"
    for name, text in (("a.csv", lines), ("a.tsv", lines.replace(",", "\t"))):
        (tmp_path / name).write_text(text)
        records, stats = found(rules, tmp_path / name)
        assert [record["time"] for record in records] == ["1970-01-01T00:00:11Z"]
        assert stats.events == 3


def test_expected_keys_begin_with_the_first_event_of_any_kind(tmp_path: Path) -> None:
    rules = cep.loads(
        """list hosts = ["a", "b"]
        rule silent { by host  sequence { s: beat  no beat within 40s }  keys from hosts
                      alert "{host}" }"""
    )
    path = tmp_path / "a.csv"
    path.write_text("time,type,host\n1,X,a\n30,beat,a\n100,X,a\n")
    records, _ = found(rules, path)
    assert [(record["message"], record["time"]) for record in records] == [
        ("b", "1970-01-01T00:00:41Z"),
        ("a", "1970-01-01T00:01:10Z"),
    ]


def test_row_groups_without_events_of_use_move_the_clock(tmp_path: Path) -> None:
    pyarrow = pytest.importorskip("pyarrow")
    from pyarrow import parquet

    times = list(range(1_700_000_000, 1_700_000_300))
    types = ["A"] * 100 + ["X"] * 100 + ["Y"] * 100
    path = tmp_path / "a.parquet"
    table = pyarrow.table({"time": times, "type": types, "user": ["u"] * 300})
    parquet.write_table(table, path, row_group_size=100)
    rules = cep.loads('rule r { by user sequence { a: A no B within 150s } alert "{user}" }')
    records, stats = found(rules, path)
    assert len(records) == 100
    assert stats.events == 300
