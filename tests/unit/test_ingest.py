"""The time of lines that are read by blocks: its field is found once, and a change is seen."""

from __future__ import annotations

import json
from pathlib import Path

import cep
from cep.source import open_source

RULES = "rule r { on event alert '{n}' }"
BEGIN = 1_700_000_000


def times(path: Path) -> tuple[list[int], int]:
    """The seconds after `BEGIN` of what was found, and how many records were rejected."""
    engine, found = cep.Engine(cep.loads(RULES)), list[cep.Match]()
    cep.run_sources(engine, [open_source(str(path))], on_matches=found.extend)
    found += engine.close()
    return [match.time // 1_000_000 - BEGIN for match in found], engine.stats.rejected


def written(folder: Path, records: list[dict[str, object]]) -> Path:
    path = folder / "log.jsonl"
    path.write_text("".join(json.dumps(record) + "\n" for record in records))
    return path


def test_a_field_that_goes_before_comes_only_later(tmp_path: Path) -> None:
    plain: list[dict[str, object]] = [{"ts": BEGIN + n, "n": n} for n in range(20_000)]
    both: list[dict[str, object]] = [
        {"ts": BEGIN, "timestamp": BEGIN + n, "n": n} for n in range(20_000, 20_010)
    ]
    shown, rejected = times(written(tmp_path, plain + both + [{"ts": BEGIN + 30_000, "n": 0}]))
    assert shown == [*range(20_010), 30_000]
    assert rejected == 0


def test_a_field_that_goes_before_and_is_null_does_not_count(tmp_path: Path) -> None:
    plain: list[dict[str, object]] = [{"ts": BEGIN + n, "n": n} for n in range(5_000)]
    null: list[dict[str, object]] = [{"@timestamp": None, "ts": BEGIN + 5_000, "n": 1}]
    assert times(written(tmp_path, plain + null)) == ([*range(5_001)], 0)


def test_its_name_may_be_written_with_escapes(tmp_path: Path) -> None:
    path = written(tmp_path, [{"ts": BEGIN + n, "n": n} for n in range(5_000)])
    with path.open("a") as file:
        file.write(f'{{"ts": 1, "time\\u0073tamp": {BEGIN + 6_000}, "n": 1}}\n')
    assert times(path) == ([*range(5_000), 6_000], 0)


def test_a_stream_with_a_time_of_its_own_says_which_field_is_missing() -> None:
    rules = """stream door { where kind == "door"  time opened }
    rule r { on d: door alert "{d.id}" }"""
    reasons: list[str] = []
    engine = cep.Engine(cep.loads(rules))
    engine.on_reject = lambda _, reject: reasons.append(reject.reason)
    assert engine.process({"kind": "door", "timestamp": "2026-03-01T00:00:00Z"}) == []
    assert engine.process({"kind": "window", "opened": "2026-03-01T00:00:00Z"}) == []
    assert reasons == [
        "no time: there is no field `opened`",
        "no time: there is no field `@timestamp`, `timestamp`, `time`, `ts`",
    ]
