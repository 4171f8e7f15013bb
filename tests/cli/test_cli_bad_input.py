"""Bad input, end to end: never a traceback, never a stop, nothing lost in silence.

Each case puts something bad between the failures and the success of a log that has one match: the
match must still be found, and what was bad must be counted.
"""

from __future__ import annotations

import gzip
import json
import os
import re
from pathlib import Path

import pytest
from cli_samples import LOG, Cep, Outcome, line

from cep.cli.exits import DONE, FAILED, WRONG_USE

BEFORE = "".join(LOG.splitlines(keepends=True)[:3]).encode()
AFTER = LOG.splitlines(keepends=True)[3].encode()


def number_of(what: str, outcome: Outcome) -> int:
    """A number of the closing line."""
    found = re.search(rf"([\d,]+) {what}", outcome.err.splitlines()[-1])
    assert found is not None, outcome.err
    return int(found[1].replace(",", ""))


def login(**fields: object) -> bytes:
    """A login of ann ten seconds before her success; its raw fields can be set."""
    outcome = {"outcome": "failure", **fields}
    return line(25, **outcome).encode()


REJECTED = {
    "broken": b'{"type": "login", "time":\n',
    "text": b"what is this\n",
    "array": b"[1, 2]\n",
    "number": b"12\n",
    "string": b'"login"\n',
    "null": b"null\n",
    "two on a line": login().rstrip() + b" " + login(),
    "one over two lines": b'{"type":\n"login"}\n',
    "invalid UTF-8": login(user="X").replace(b"X", b"\xc3\x28"),
    "NUL": b"\x00\x00\x00\n",
    "deep nesting": b'{"a":' * 10_000 + b"1" + b"}" * 10_000 + b"\n",
    "deep list": b'{"time": "2026-01-01T00:00:25Z", "a": ' + b"[" * 100_000 + b"\n",
    "NaN": b'{"type": "login", "time": "2026-01-01T00:00:25Z", "x": NaN}\n',
    "no time": b'{"type": "login", "user": "ann", "outcome": "failure"}\n',
    "null time": b'{"type": "login", "time": null, "outcome": "failure"}\n',
    "time that is no time": b'{"type": "login", "time": "soon", "outcome": "failure"}\n',
    "time that is an object": b'{"type": "login", "time": {}, "outcome": "failure"}\n',
    "year 10000": b'{"type": "login", "time": 1e300, "outcome": "failure"}\n',
}


@pytest.mark.parametrize("bad", REJECTED.values(), ids=REJECTED)
def test_a_bad_line_is_rejected_and_told(cep: Cep, rules: Path, bad: bytes) -> None:
    outcome = cep("run", rules, "--rejects", "rejects.jsonl", stdin=BEFORE + bad + AFTER)
    assert outcome.code == DONE, outcome.err
    assert len(outcome.records) == 1
    assert number_of("rejected", outcome) >= 1
    records = [json.loads(text) for text in Path("rejects.jsonl").read_text().splitlines()]
    assert records[0]["line"] == 4
    assert records[0]["reason"]


ODD = {
    "blank lines": b"\n  \n\r\n",
    "10 MB line": login(user="eve", note="x" * 10_000_000),
    "400 digits": login(user="eve", n=10**400),
    "duplicate keys": b'{"type": "x", "type": "y", "time": "2026-01-01T00:00:25Z"}\n',
    "mixed types": login(user="eve", outcome=5) + login(user="eve", outcome=["failure"]),
    "key that is an object": login(user={"name": "ann"}),
    "key that is a list": login(user=["ann"]),
    "key that is null": login(user=None),
    "key that is a number": login(user=5),
    "carriage returns": login(user="eve").replace(b"\n", b"\r\n"),
    "escapes": login(user="\ud83d\ude00 \u0000 \x1b[2J"),
    "lone surrogate": login(user="X").replace(b'"X"', rb'"\ud800"'),
}


@pytest.mark.parametrize("odd", ODD.values(), ids=ODD)
def test_an_odd_line_stops_nothing(cep: Cep, rules: Path, odd: bytes) -> None:
    outcome = cep("run", rules, stdin=BEFORE + odd + AFTER)
    assert outcome.code == DONE, outcome.err
    assert len(outcome.records) == 1
    lines = sum(1 for text in (BEFORE + odd + AFTER).splitlines() if text.strip())
    assert number_of("event", outcome) + number_of("rejected", outcome) == lines


@pytest.mark.parametrize("year", ["0001", "9999"])
def test_absurd_years_move_the_clock_and_nothing_breaks(cep: Cep, rules: Path, year: str) -> None:
    data = BEFORE + login(user="eve", time=f"{year}-01-01T00:00:00Z") + AFTER
    outcome = cep("run", rules, stdin=data)
    assert outcome.code == DONE, outcome.err
    assert number_of("late", outcome) == 1


def test_negative_times_are_times(cep: Cep, rules: Path) -> None:
    data = "".join(
        json.dumps({"type": "login", "time": second, "user": "ann", "outcome": outcome}) + "\n"
        for second, outcome in [
            (-40, "failure"),
            (-30, "failure"),
            (-20, "failure"),
            (-10, "success"),
        ]
    )
    [match] = cep("run", rules, stdin=data).records
    assert match["time"] == "1969-12-31T23:59:50Z"


# ---------------------------------------------------------------------- files


def test_an_empty_file(cep: Cep, rules: Path, tmp_path: Path) -> None:
    (tmp_path / "log.jsonl").touch()
    outcome = cep("run", rules, "log.jsonl")
    assert outcome.code == DONE
    assert "the input is empty" in outcome.err


def test_a_binary_file(cep: Cep, rules: Path, tmp_path: Path) -> None:
    (tmp_path / "log.bin").write_bytes(os.urandom(100_000) + b"\x00" * 1000)
    outcome = cep("run", rules, "log.bin")
    assert outcome.code in (DONE, WRONG_USE)
    assert "Traceback" not in outcome.err
    assert len(outcome.err) < 5000


def test_a_truncated_gzip_file(cep: Cep, rules: Path, tmp_path: Path) -> None:
    more = "".join(line(40 + n % 10, "failure", f"u{n}{os.urandom(8).hex()}") for n in range(5000))
    data = gzip.compress((LOG + more).encode())
    (tmp_path / "log.jsonl.gz").write_bytes(data[: len(data) // 2])
    outcome = cep("run", rules, "log.jsonl.gz", "--rejects", "rejects.jsonl")
    assert outcome.code == DONE
    assert len(outcome.records) == 1
    assert number_of("rejected", outcome) >= 1
    reasons = [
        json.loads(text)["reason"] for text in Path("rejects.jsonl").read_text().splitlines()
    ]
    assert any("gzip" in reason or "compressed" in reason for reason in reasons)


def test_csv_with_a_missing_column(cep: Cep, rules: Path, tmp_path: Path) -> None:
    (tmp_path / "log.csv").write_text(
        "time,type,user,outcome\n"
        "2026-01-01T00:00:00Z,login,ann,failure\n"
        "2026-01-01T00:00:10Z,login\n"
        "2026-01-01T00:00:20Z,login,ann,failure\n"
        "2026-01-01T00:00:25Z,login,ann,failure,more,and more\n"
        "2026-01-01T00:00:28Z,login,ann,failure\n"
        "2026-01-01T00:00:30Z,login,ann,success\n"
    )
    outcome = cep("run", rules, "log.csv")
    assert outcome.code == DONE
    assert len(outcome.records) == 1
    assert number_of("event", outcome) + number_of("rejected", outcome) == 6


@pytest.mark.parametrize("name", ["no/such.jsonl", "missing.jsonl", "nothing*.jsonl"])
def test_an_input_that_is_not_there(cep: Cep, rules: Path, name: str) -> None:
    outcome = cep("run", rules, name)
    assert outcome.code == WRONG_USE
    assert name in outcome.err
    assert outcome.err.count("\n") == 1


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_an_input_that_may_not_be_read(cep: Cep, rules: Path, log: Path) -> None:
    log.chmod(0)
    outcome = cep("run", rules, log)
    assert outcome.code == WRONG_USE
    assert "ermission" in outcome.err


def test_an_input_folder_without_files(cep: Cep, rules: Path, tmp_path: Path) -> None:
    (tmp_path / "logs").mkdir()
    outcome = cep("run", rules, "logs")
    assert outcome.code == WRONG_USE
    assert "logs: there is no file in this folder" in outcome.err


# ---------------------------------------------------------------------- rules


def test_rules_with_ten_thousand_steps(cep: Cep, tmp_path: Path) -> None:
    steps = "\n".join(f"    s{number}: login where n == {number}" for number in range(10_000))
    (tmp_path / "long.cep").write_text(
        f'rule long {{\n  sequence within 1h {{\n{steps}\n  }}\n  alert "hi"\n}}\n'
    )
    outcome = cep("run", "long.cep", stdin=LOG)
    assert outcome.code in (DONE, WRONG_USE)
    assert "internal fault" not in outcome.err
    assert "Traceback" not in outcome.err


@pytest.mark.parametrize("depth", [90, 1_000, 10_000])
def test_rules_with_deep_parentheses(cep: Cep, tmp_path: Path, depth: int) -> None:
    condition = "(" * depth + 'user == "ann"' + ")" * depth
    (tmp_path / "deep.cep").write_text(f'rule deep {{ on login where {condition}  alert "hi" }}\n')
    outcome = cep("run", "deep.cep", stdin=LOG)
    assert outcome.code in (DONE, WRONG_USE)
    assert "internal fault" not in outcome.err


def test_rules_with_very_many_alternatives(cep: Cep, tmp_path: Path) -> None:
    condition = " or ".join(f"n + {number} == {number}" for number in range(3_000))
    (tmp_path / "wide.cep").write_text(f'rule wide {{ on login where {condition}  alert "hi" }}\n')
    outcome = cep("run", "wide.cep", stdin=LOG)
    assert outcome.code in (DONE, WRONG_USE)
    assert "internal fault" not in outcome.err


CODE = "__import__('os').system('touch made')"


@pytest.mark.parametrize(
    "text",
    [
        f'rule r {{ on e: login where user == "\\"+{CODE}+\\""  alert "hi" }}',
        f'rule r {{ on e: login where `{CODE}` == 1  alert "hi" }}',
        f'rule r {{ on e: login  alert "{{e.user}} {CODE}" }}',
        f'rule r {{ on e: login  alert "{{{CODE}}}" }}',
        f'stream `{CODE}` {{ where user == "ann" }}\nrule r {{ on `{CODE}`  alert "hi" }}',
        'rule r { on e: login where e.__class__.__mro__ == 1  alert "hi" }',
        'rule r { on e: login where eval("1") == 1  alert "hi" }',
        'rule r { on e: login where user matches /"""+exit()+"""/  alert "hi" }',
        'rule r { on e: login where user == "\\n\'\'\'\\"\\"\\"\\\\"  alert "hi" }',
        'rule __import__ { on __builtins__: login  alert "{__builtins__.user}" }',
        'rule r { by `import`, `class` on lambda: login  alert "hi" }',
    ],
)
def test_rules_that_try_to_become_code(cep: Cep, tmp_path: Path, text: str) -> None:
    (tmp_path / "code.cep").write_text(text + "\n")
    for command in (["check", "code.cep"], ["run", "code.cep"], ["explain", "code.cep"]):
        outcome = cep(*command, stdin=LOG)
        assert outcome.code in (DONE, FAILED, WRONG_USE)
        assert "internal fault" not in outcome.err
        assert not (tmp_path / "made").exists()


@pytest.mark.parametrize(
    "data", [b"", b"\x00", b"\xff\xfe", b"\xef\xbb\xbf", b"# only\n", b"}" * 999]
)
def test_rule_files_that_are_none(cep: Cep, tmp_path: Path, data: bytes) -> None:
    (tmp_path / "odd.cep").write_bytes(data)
    outcome = cep("check", "odd.cep")
    assert outcome.code in (DONE, FAILED, WRONG_USE)
    assert "internal fault" not in outcome.err


TAKEN = {
    "400 digits": {"n": 10**400},
    "very small": {"n": 1e-320},
    "deep": {"n": json.loads("[" * 500 + "]" * 500)},
    "escapes": {"n": "\x1b[2J\u2028\u0000"},
    "same name twice": {"N": 1, "n": 2},
    "names with dots and blanks": {"a.b c": 1, "": 2},
}


@pytest.mark.parametrize("output", ["-", "found.csv", "found.db", "found.txt"])
@pytest.mark.parametrize("fields", TAKEN.values(), ids=TAKEN)
def test_odd_values_can_be_part_of_a_match(
    cep: Cep, rules: Path, fields: dict[str, object], output: str
) -> None:
    data = BEFORE + login(**fields) + AFTER
    outcome = cep("run", rules, "-o", output, stdin=data)
    assert outcome.code == DONE, outcome.err
    assert number_of("match", outcome) == 1
    if output == "-":
        assert outcome.records[0]["events"]["fail"][3].items() >= fields.items()


def test_when_memory_runs_out_it_is_said_and_the_outputs_are_whole(
    cep: Cep, rules: Path, log: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from cep.engine import Engine

    def close(engine: Engine, at_end: str) -> None:
        raise MemoryError

    monkeypatch.setattr(Engine, "close", close)
    outcome = cep("run", rules, log, "-o", "found.csv")
    assert outcome.code == WRONG_USE
    assert "out of memory" in outcome.err
    assert "internal fault" not in outcome.err
    assert number_of("match", outcome) == 1
    assert Path("found.csv").read_text().count("\n") == 2
