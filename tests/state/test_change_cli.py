"""`cep state`: looking into a state file and taking care of it; every option."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import cep
from cep.cli.main import run

START = 1_700_000_000
RULES = """
rule pair {
  by u
  sequence within 10m { a: A where n > 1  b: B where n == a.n }
  dedup by u for 1h
}
rule many { by u aggregate A over tumbling 1h { n = count() } having n > 100 }
"""


@pytest.fixture
def state(tmp_path: Path, monkeypatch) -> str:
    """A state file with three keys of each rule, and the rules beside it."""
    monkeypatch.chdir(tmp_path)
    Path("rules.cep").write_text(RULES)
    with cep.Engine(cep.load("rules.cep"), state="cep.db") as engine:
        engine.process([event("A", i, u) for i, u in enumerate(["ann", "bob", 5])])
        engine.process([event("A", 10, "zoe"), event("B", 11, "zoe")])
    return "cep.db"


def event(type_: str, at: int, user: Any) -> dict[str, Any]:
    return {"type": type_, "time": START + at, "u": user, "n": 2, "text": "x" * 20}


def cli(capfd, *arguments: str, code: int = 0) -> tuple[str, str]:
    """Standard output and standard error of a command."""
    capfd.readouterr()
    found = run(["state", *arguments])
    out, err = capfd.readouterr()
    assert found == code, err
    return out, err


def keys(capfd, **where: str) -> list[tuple[str, str]]:
    out, _ = cli(capfd, "show", "--state", "cep.db", "--json", *sum(where.items(), ()))
    return [(row["name"], row["key"]) for row in map(json.loads, out.splitlines())]


def test_plan_says_what_would_become_of_each_rule(state: str, capfd) -> None:
    text = RULES.replace("n > 1 ", "n > 7 ").replace("n > 100", "n > 1") + "rule new { on A }"
    Path("rules.cep").write_text(text)
    out, _ = cli(capfd, "plan", "rules.cep", "--state", state)
    assert out.splitlines() == [
        "many: constants changed; goes on with its 4 runs of 4 keys",
        "new: new",
        "pair: constants changed; goes on with its 3 runs of 3 keys",
    ]
    Path("rules.cep").write_text(RULES.partition("rule many")[0].replace("b: B", "x: X  b: B"))
    out, _ = cli(capfd, "plan", "rules.cep", "--state", state)
    assert out.splitlines() == [
        "many: removed; 4 runs of 4 keys are dropped",
        "pair: changed; the old version finishes its 3 runs of 3 keys beside the new one",
    ]


WARMING = "is warming up: it holds only events from now on"


def test_plan_and_run_say_what_is_warming_up(state: str, capfd) -> None:
    Path("rules.cep").write_text(
        RULES.replace("tumbling 1h", "tumbling 90m")
        + "rule minutes { by u aggregate A over tumbling 1m { n = count() } }"
        + "rule visits { by u aggregate A over session gap 1m { n = count() } }"
    )
    out, _ = cli(capfd, "plan", "rules.cep", "--state", state, "--restart", "pair")
    expected = [
        "many: changed; the old version finishes its 4 runs of 4 keys beside the new one; "
        f"its window of 1h30m {WARMING}",
        f"minutes: new; its window of 1m {WARMING}",
        "pair: unchanged; starts over: 3 runs of 3 keys are dropped",
        "visits: new",
    ]
    assert out.splitlines() == expected
    Path("log.jsonl").write_text("")
    assert run(["run", "rules.cep", "log.jsonl", "--state", state, "--restart", "pair"]) == 0
    said = capfd.readouterr().err.splitlines()
    assert [line for line in said if line in expected] == expected[:3]
    assert run(["run", "rules.cep", "log.jsonl", "--state", state]) == 0
    assert "warming" not in capfd.readouterr().err


def test_a_window_that_starts_over_is_warming_up(state: str, capfd) -> None:
    out, _ = cli(capfd, "plan", "rules.cep", "--state", state, "--restart", "many")
    dropped = "many: unchanged; starts over: 4 runs of 4 keys are dropped"
    assert f"{dropped}; its window of 1h {WARMING}" in out.splitlines()
    out, _ = cli(capfd, "plan", "rules.cep", "--state", "none.db", code=2)
    with cep.Engine(cep.load("rules.cep"), state="none.db") as engine:
        assert [change.warming for change in engine.changes] == [0, 0]


def test_plan_takes_the_options_of_run(state: str, capfd) -> None:
    Path("rules.cep").write_text("param most = 1\n" + RULES.replace("n > 1 ", "n > most "))
    arguments = ["plan", "rules.cep", "--state", state, "--type-field", "type"]
    out, _ = cli(capfd, *arguments)
    assert "pair: unchanged" in out
    out, _ = cli(capfd, *arguments, "--set", "most=3", "--restart", "pair")
    assert "pair: constants changed; starts over: 3 runs of 3 keys are dropped" in out
    _, err = cli(capfd, *arguments, "--restart", "other", code=2)
    assert "there is no rule other" in err


def test_plan_works_while_the_file_is_in_use(state: str, capfd) -> None:
    with cep.Engine(cep.load("rules.cep"), state=state):
        out, _ = cli(capfd, "plan", "rules.cep", "--state", state)
        assert "pair: unchanged; goes on with its 3 runs of 3 keys" in out
        _, err = cli(capfd, "drop", "--state", state, "--rule", "pair", code=2)
        assert "in use" in err or "uses" in err


def test_show_lists_rules_and_keys(state: str, capfd) -> None:
    out, _ = cli(capfd, "show", "--state", state)
    assert out.startswith("checkpoint ")
    assert "live" in out
    assert '["ann"]' in out
    out, err = cli(capfd, "show", "--state", state, "--rule", "pair", "--limit", "1")
    assert len(out.splitlines()) == 2
    assert "--limit" in err


def test_show_finds_keys_as_people_write_them(state: str, capfd) -> None:
    found = keys(capfd, **{"--key": "ann"})
    assert sorted(found) == [("many", '["ann"]'), ("pair", '["ann"]')]
    assert keys(capfd, **{"--key": '["ann"]', "--rule": "pair"}) == [("pair", '["ann"]')]
    assert keys(capfd, **{"--key": "5", "--rule": "pair"}) == [("pair", "[5]")]
    out, _ = cli(capfd, "show", "--state", state, "--key", "ann", "--rule", "pair", "--json")
    shown = json.loads(out)
    assert (shown["step"], shown["runs"], shown["events"][0]["u"]) == ("a", 1, "ann")


def test_top_shows_the_largest_first(state: str, capfd) -> None:
    out, _ = cli(capfd, "top", "--state", state, "--limit", "2")
    rules, _, largest = out.partition("\n\n")
    assert len(rules.splitlines()) == len(largest.splitlines()) == 3
    sizes = [int(line.split()[0].replace(",", "")) for line in largest.splitlines()[1:]]
    assert sizes == sorted(sizes, reverse=True)


@pytest.mark.parametrize("when", [["--before", "2023-11-14T22:13:21Z"], ["--older-than", "10s"]])
def test_expire_drops_what_began_early(state: str, capfd, when: list[str]) -> None:
    _, err = cli(capfd, "expire", "--state", state, "--rule", "pair", *when)
    assert err == "1 run dropped\n"
    assert ("pair", '["ann"]') not in keys(capfd)
    assert ("many", '["ann"]') in keys(capfd)
    cli(capfd, "expire", "--state", state, *when)
    assert ("many", '["ann"]') not in keys(capfd)


def test_expire_wants_one_time(state: str, capfd) -> None:
    cli(capfd, "expire", "--state", state, code=2)
    _, err = cli(capfd, "expire", "--state", state, "--before", "soon", code=2)
    assert "no time" in err


def test_expire_keeps_later_runs_of_a_key(state: str, capfd) -> None:
    rules = cep.load("rules.cep")
    with cep.Engine(rules, state=state) as engine:
        engine.process({**event("A", 20, "ann"), "n": 3})
    cli(capfd, "expire", "--state", state, "--older-than", "15s", "--rule", "pair")
    with cep.Engine(rules, state=state) as engine:
        engine.process([event("B", 21, "ann"), {**event("B", 22, "ann"), "n": 3}])
        found = engine.checkpoint()
    assert [len(match.events["a"]) and match.events["a"]["n"] for match in found] == [3]


def test_drop_forgets_a_rule_or_a_key(state: str, capfd) -> None:
    cli(capfd, "drop", "--state", state, "--rule", "pair", "--key", "ann", "--key", "5")
    left = {key for name, key in keys(capfd) if name == "pair"}
    assert left == {'["bob"]', '["zoe"]'}
    _, err = cli(capfd, "drop", "--state", state, "--rule", "pair", "--key", "x", code=2)
    assert "no such key" in err
    _, err = cli(capfd, "drop", "--state", state, "--rule", "pair")
    assert err == "3 states dropped\n"
    _, err = cli(capfd, "drop", "--state", state, "--rule", "none", code=2)
    assert "there is of: many, pair" in err


@pytest.mark.parametrize("by", ["file", "pipe"])
def test_export_and_import_make_the_same_state(state: str, capfd, by: str) -> None:
    if by == "file":
        cli(capfd, "export", "--state", state, "-o", "state.jsonl")
    else:
        out, _ = cli(capfd, "export", "--state", state)
        Path("state.jsonl").write_text(out)
    _, err = cli(capfd, "import", "state.jsonl", "--state", "other.db")
    assert "imported into other.db" in err
    cli(capfd, "verify", "--state", "other.db")
    again, _ = cli(capfd, "export", "--state", "other.db")
    assert sorted(again.splitlines()) == sorted(Path("state.jsonl").read_text().splitlines())
    with cep.Engine(cep.load("rules.cep"), state="other.db") as engine:
        assert [change.kind for change in engine.changes] == ["kept", "kept"]
        engine.process(event("B", 30, "ann"))
        assert len(engine.checkpoint()) == 1


def test_import_takes_only_exports_and_new_files(state: str, capfd) -> None:
    cli(capfd, "export", "--state", state, "-o", "state.jsonl")
    _, err = cli(capfd, "import", "state.jsonl", "--state", state, code=2)
    assert "in use already" in err
    Path("bad.jsonl").write_text('{"no": 1}\n')
    _, err = cli(capfd, "import", "bad.jsonl", "--state", "bad.db", code=2)
    assert "line 1 is not of an export" in err
    first = Path("state.jsonl").read_text().splitlines()[0]
    Path("bad.jsonl").write_text(first + '\n{"x": 2}\n')
    _, err = cli(capfd, "import", "bad.jsonl", "--state", "bad2.db", code=2)
    assert "line 2 is not of an export" in err


def test_vacuum_gives_room_back(state: str, capfd) -> None:
    with cep.Engine(cep.load("rules.cep"), state=state) as engine:
        engine.process([event("A", 100, f"user {i}") for i in range(5000)])
    cli(capfd, "drop", "--state", state, "--rule", "pair")
    cli(capfd, "drop", "--state", state, "--rule", "many")
    _, err = cli(capfd, "vacuum", "--state", state)
    before, after = (int(part.split()[-1].replace(",", "")) for part in _sizes(err))
    assert after < before / 2


def _sizes(text: str) -> list[str]:
    return [text.partition(" bytes")[0], text.partition(", ")[2].partition(" now")[0]]


def test_verify_reads_every_state(state: str, capfd) -> None:
    _, err = cli(capfd, "verify", "--state", state)
    assert err == "8 states read, 0 mistakes\n"


@pytest.mark.parametrize("end", ["\n", "\r\n", "  \n"])
def test_verify_finds_nothing_wrong_with_open_runs_of_lines(
    tmp_path: Path, monkeypatch, capfd, end: str
) -> None:
    """Lines are kept without what stands around them, as reading them gives them back."""
    monkeypatch.chdir(tmp_path)
    Path("rules.cep").write_text(
        "rule pair { by u sequence within 1h { a: A  b: B } }\n"
        "rule many { by u aggregate A over sliding 1h { xs = list(n)  c = count() }"
        " having c > 9 }\n"
        "rule chain { by u sequence within 1h { a: A{2,} where n > prev(n)  b: B } }\n"
    )
    lines = [json.dumps(event("A", i, user)) for i, user in enumerate(["ann", "bob", "ann"])]
    deep = json.dumps(event("A", 5, "eve") | {"deep": json.loads("[" * 300 + "]" * 300)})
    odd = json.dumps(event("A", 6, "joe"))[:-1] + ', "x": "\\u0000"}'
    log = [f" {line}{end}" for line in [*lines, deep, odd]]
    Path("log.jsonl").write_text("".join(log))
    assert run(["run", "rules.cep", "log.jsonl", "--state", "cep.db", "-o", "out.jsonl"]) == 0
    _, err = cli(capfd, "verify", "--state", "cep.db")
    assert err.endswith("0 mistakes\n")
    Path("log.jsonl").write_text("".join([*log, json.dumps(event("B", 9, "ann")) + "\n"]))
    _, err = cli(capfd, "verify", "rules.cep", "log.jsonl", "--state", "cep.db")
    assert "1 match, the same as the last of 1 match" in err
    with cep.Engine(cep.load("rules.cep"), state="host.db") as engine:
        engine.process([(line + end).encode() for line in log])
    _, err = cli(capfd, "verify", "--state", "host.db")
    assert err.endswith("0 mistakes\n")


def test_verify_finds_what_is_wrong(state: str, capfd) -> None:
    import sqlite3

    with sqlite3.connect(state) as file:
        file.execute("update _states set state = replace(state, '\"w\":17', '\"w\":16')")
        file.execute("update _states set state = '{}' where key = '[\"bob\"]'")
    _, err = cli(capfd, "verify", "--state", state, code=1)
    assert "error: " in err
    assert '["bob"]' in err


def test_what_is_not_there_is_told(state: str, capfd) -> None:
    for arguments, said in (
        (["--rule", "pairs"], "error: nothing is kept of `pairs`; did you mean `pair`?\n"),
        (["--rule", "x"], "error: nothing is kept of `x`; there is: many, pair\n"),
        (["--key", "nokey"], "error: there is no key nokey\n"),
        (["--rule", "pair", "--key", "nokey", "--json"], "error: pair has no key nokey\n"),
    ):
        out, err = cli(capfd, "show", "--state", state, *arguments, code=2)
        assert (out, err) == ("", said)


def test_a_file_of_something_else_stays_as_it_is(state: str, tmp_path: Path, capfd) -> None:
    Path("log.jsonl").write_text(json.dumps(event("A", 1, "ann")) + "\n")
    assert run(["run", "rules.cep", "log.jsonl", "-o", "out.db"]) == 0
    before = Path("out.db").read_bytes()
    for arguments in (["show"], ["top"], ["drop", "--rule", "r"], ["verify"], ["export"]):
        _, err = cli(capfd, *arguments, "--state", "out.db", code=2)
        assert err.startswith("error: out.db is no state file of cep")
    _, err = cli(capfd, "verify", "--state", "log.jsonl", code=2)
    assert "log.jsonl is not an SQLite file" in err
    assert Path("out.db").read_bytes() == before


def test_there_must_be_a_file(capfd, tmp_path: Path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    for arguments in (["show"], ["top"], ["drop", "--rule", "r"], ["verify"], ["export"]):
        _, err = cli(capfd, *arguments, "--state", "none.db", code=2)
        assert "there is no state file none.db" in err
        assert not Path("none.db").exists()


def test_verify_replays_a_log_from_the_state(tmp_path: Path, monkeypatch, capfd) -> None:
    monkeypatch.chdir(tmp_path)
    Path("rules.cep").write_text("rule pair { by u sequence within 1h { a: A  b: B } }")
    log = Path("log.jsonl")
    kinds = "ABAABBABBAAB"
    lines = [json.dumps(event(kind, i, "ann")) + "\n" for i, kind in enumerate(kinds)]
    log.write_text("".join(lines[:5]))
    assert run(["run", "rules.cep", "log.jsonl", "--state", "cep.db", "-o", "out.jsonl"]) == 0
    log.write_text("".join(lines))
    _, err = cli(capfd, "verify", "rules.cep", "log.jsonl", "--state", "cep.db")
    assert "the same as the last of 4 matches" in err
    log.write_text("".join(lines[:4] + lines[6:]).ljust(len("".join(lines))) + "\n")
    _, err = cli(capfd, "verify", "rules.cep", "log.jsonl", "--state", "cep.db", code=1)
    assert "not the same" in err
    log.write_text("".join(lines))
    Path("rules.cep").write_text(
        "rule pair { by u sequence within 1h { a: A  b: B } having a.n > 2 }"
    )
    _, err = cli(capfd, "verify", "rules.cep", "log.jsonl", "--state", "cep.db", code=2)
    assert "the rules are not those of the state: pair" in err
    cli(capfd, "verify", "rules.cep", "--state", "cep.db", code=2)
