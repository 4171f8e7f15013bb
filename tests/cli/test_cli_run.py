"""`cep run`: what every option does, seen from outside."""

from __future__ import annotations

import csv
import json
import sqlite3
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from cli_samples import LOG, Cep, line

from cep.cli.exits import DONE, FAILED, WRONG_USE

QUIET_RULES = """\
stream order { where type == "order" }
stream shipped { where type == "shipped" }

rule unshipped {
  by id
  sequence { o: order  no shipped within 2h }
  alert "{id} was not shipped"
}
"""


@pytest.fixture
def orders(tmp_path: Path) -> Path:
    """A rule that waits for an absence, and a log that ends before it is certain."""
    (tmp_path / "orders.cep").write_text(QUIET_RULES)
    path = tmp_path / "orders.jsonl"
    path.write_text(
        '{"time": "2026-01-01T00:00:00Z", "type": "order", "id": 1}\n'
        '{"time": "2026-01-01T03:00:00Z", "type": "order", "id": 2}\n'
    )
    return path


# ---------------------------------------------------------------------- standard output


def test_in_a_pipe_matches_are_json_lines(cep: Cep, rules: Path, log: Path) -> None:
    outcome = cep("run", rules, log)
    assert outcome.code == DONE
    [match] = outcome.records
    assert match["rule"] == "guessed"
    assert match["time"] == "2026-01-01T00:00:30Z"
    assert match["key"] == {"user": "ann"}
    assert match["message"] == "ann: 3 failures, then success"
    assert len(match["events"]["fail"]) == 3


def test_the_closing_line_has_the_numbers(cep: Cep, rules: Path, log: Path) -> None:
    last = cep("run", rules, log).err.splitlines()[-1]
    assert last.startswith(
        "4 events, 1 match, 0 late, 0 rejected, 0 undecided, 0 unknown conditions in "
    )
    assert last.endswith(" events/s)")


OPEN = """
rule t { by k  aggregate A over tumbling 10m { n = count() }  having n > 1 }
rule s { by k  aggregate A over session gap 10m { n = count() } }
rule h { by k  aggregate A over hopping 10m every 5m { n = count() } }
rule u { by k  aggregate A over tumbling 10m { n = count() }  having n > 1  report on update }
rule v { by k  aggregate A over sliding 10m { n = count() } }
rule l { by k  sequence within 1h { a: A  b: A+ }  report on close }
rule m { by k  sequence within 1h { a: A  b: A+ }  report at minimum }
rule n { by k  sequence within 1h { a: A  b: A* until B }  report on close }
"""


def test_windows_and_loops_that_are_open_at_the_end_are_told(
    cep: Cep, rules: Path, tmp_path: Path
) -> None:
    rules.write_text(OPEN)
    events = [{"type": "A", "time": time, "k": key} for time, key in ((1, 1), (2, 1), (3, 2))]
    (tmp_path / "l.jsonl").write_text("".join(json.dumps(event) + "\n" for event in events))
    outcome = cep("run", rules, "l.jsonl")
    assert [line for line in outcome.err.splitlines() if "still open" in line] == [
        f"rule {what} still open at the end of the input "
        "(--at-end assume-quiet reports what is in them)"
        for what in (
            "h: 4 windows were",
            "l: loops of 1 key were",
            "n: loops of 2 keys were",
            "s: 2 windows were",
            "t: 1 window was",
        )
    ]
    quiet = cep("run", rules, "l.jsonl", "--at-end", "assume-quiet")
    assert len(quiet.records) == len(outcome.records) + 10
    assert "still open" not in quiet.err
    assert "still open" not in cep("run", rules, "l.jsonl", "--at-end", "discard").err
    assert "still open" not in cep("run", rules, "l.jsonl", "--state", "s.db").err


def test_the_first_of_the_unknown_conditions_is_shown(
    cep: Cep, rules: Path, tmp_path: Path
) -> None:
    rules.write_text(
        'rule a { on login where user != "bob" and int(code) == 5 }\n'
        "rule b { by user  aggregate login over tumbling 1m { s = sum(code) }  having s > 3 }\n"
        "rule c { by user  sequence within 1m { x: login{3} }  having sum(x.code) > 0 }\n"
        "rule d { on login where any(xs, x, x > 1) }\n"
        "rule e { by user  sequence within 1m { x: login{3} where sum(code) > 0 or n < 9 } }\n"
        "rule f { by user  sequence within 1m { x: login{3} where max(code) > 0 or n < 9 } }\n"
    )
    events = [
        {"type": "login", "time": 1, "user": "bob", "code": "xyz", "n": 1},
        {"type": "login", "time": 2, "user": "ann", "code": "abc" * 30, "n": 1},
        {"type": "login", "time": 3, "user": "ann", "code": "abc", "xs": ["q"], "n": 1},
        {"type": "login", "time": 4, "user": "ann", "code": "abc", "xs": 7, "n": 1},
    ]
    (tmp_path / "l.jsonl").write_text("".join(json.dumps(event) + "\n" for event in events))
    said = cep("run", rules, "l.jsonl").err
    long = '"' + ("abc" * 30)[:58] + "…"
    assert f"rule a: 3 unknown conditions, the first: `int(code)` of {long}: not a number" in said
    assert 'rule b: 4 unknown conditions, the first: `sum(code)` of "xyz": not a number' in said
    assert "rule c: 1 unknown condition, the first: `sum(x.code)` of" in said
    assert 'rule d: 2 unknown conditions, the first: `x > 1` of "q", 1: values without an' in said
    assert "rule e:" in said
    assert "rule f:" in said
    assert "rule b" not in cep("run", rules, "l.jsonl", "--quiet").err


def test_standard_input_is_read_without_an_input(cep: Cep, rules: Path) -> None:
    assert len(cep("run", rules, stdin=LOG).records) == 1


def test_a_dash_is_standard_input(cep: Cep, rules: Path) -> None:
    assert len(cep("run", rules, "-", stdin=LOG).records) == 1


def test_several_inputs_are_merged_by_time(cep: Cep, rules: Path, tmp_path: Path) -> None:
    lines = LOG.splitlines(keepends=True)
    (tmp_path / "a.jsonl").write_text(lines[3] + line(40, "failure", "eve"))
    (tmp_path / "b.jsonl").write_text("".join(lines[:3]))
    assert len(cep("run", rules, "a.jsonl", "b.jsonl").records) == 1
    assert len(cep("run", rules, "[ab].jsonl").records) == 1


def test_rules_and_inputs_come_in_any_order(cep: Cep, rules: Path, log: Path) -> None:
    assert len(cep("run", log, rules).records) == 1


def test_a_folder_of_rules(cep: Cep, log: Path, rules: Path, tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    rules.rename(tmp_path / "folder" / "rules.cep")
    assert len(cep("run", "folder", log).records) == 1


# ---------------------------------------------------------------------- outputs


def test_output_json_lines(cep: Cep, rules: Path, log: Path) -> None:
    outcome = cep("run", rules, log, "--output", "found.jsonl")
    assert outcome.out == ""
    assert json.loads(Path("found.jsonl").read_text())["rule"] == "guessed"


def test_output_csv(cep: Cep, rules: Path, log: Path) -> None:
    cep("run", rules, log, "-o", "found.csv")
    with open("found.csv", newline="") as file:
        [row] = csv.DictReader(file)
    assert row["message"] == "ann: 3 failures, then success"


def test_output_text(cep: Cep, rules: Path, log: Path) -> None:
    cep("run", rules, log, "-o", "found.txt")
    assert Path("found.txt").read_text() == (
        "2026-01-01 00:00:30Z  high      guessed  ann: 3 failures, then success\n"
    )


def test_output_sqlite_twice_leaves_one_row(cep: Cep, rules: Path, log: Path) -> None:
    for _ in range(2):
        assert cep("run", rules, log, "-o", "found.db").code == DONE
    with closing(sqlite3.connect("found.db")) as connection:
        assert connection.execute("select count(*), rule from matches").fetchall() == [
            (1, "guessed")
        ]


def test_several_outputs(cep: Cep, rules: Path, log: Path) -> None:
    outcome = cep("run", rules, log, "-o", "a.jsonl", "-o", "b.csv", "-o", "-")
    assert Path("a.jsonl").read_text() == outcome.out
    assert "guessed" in Path("b.csv").read_text()


def test_an_output_that_is_an_input_is_refused(cep: Cep, rules: Path, log: Path) -> None:
    before = log.read_text()
    for option in ("--output", "--late", "--rejects"):
        outcome = cep("run", rules, log, option, log)
        assert outcome.code == WRONG_USE
        assert "is read by this run; choose another output" in outcome.err
    assert cep("run", rules, log, "-o", rules).code == WRONG_USE
    assert log.read_text() == before


def test_an_output_that_cannot_be_opened(cep: Cep, rules: Path, log: Path) -> None:
    outcome = cep("run", rules, log, "-o", "no/such/found.jsonl")
    assert outcome.code == WRONG_USE
    assert "cannot write no/such/found.jsonl: No such file or directory" in outcome.err


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="this system has no /dev/full")
def test_a_full_disk_is_told_and_the_exit_code_says_so(cep: Cep, rules: Path, log: Path) -> None:
    outcome = cep("run", rules, log, "-o", "/dev/full")
    assert outcome.code == WRONG_USE
    assert "error: cannot write /dev/full: No space left on device\n" in outcome.err


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="this system has no /dev/full")
def test_one_full_disk_does_not_stop_the_other_output(cep: Cep, rules: Path, log: Path) -> None:
    outcome = cep("run", rules, log, "-o", "/dev/full", "-o", "found.jsonl")
    assert outcome.code == WRONG_USE
    assert Path("found.jsonl").read_text().count("\n") == 1
    assert "the run goes on without this output" in outcome.err
    assert "1 matches did not reach /dev/full" in outcome.err


def test_exec_runs_a_command_for_each_match(cep: Cep, rules: Path, log: Path) -> None:
    outcome = cep("run", rules, log, "--exec", "sh -c 'cat >> got; echo done'")
    assert outcome.code == DONE
    assert Path("got").read_text() == outcome.out
    assert "done\n" in outcome.err


def test_exec_that_fails_is_told_and_the_exit_code_says_so(
    cep: Cep, rules: Path, log: Path
) -> None:
    outcome = cep("run", rules, log, "--exec", "false")
    assert outcome.code == WRONG_USE
    assert "`false` ended with exit code 1 for match " in outcome.err
    assert "1 matches did not reach false" in outcome.err
    assert len(outcome.records) == 1


def test_exec_of_no_program(cep: Cep, rules: Path, log: Path) -> None:
    outcome = cep("run", rules, log, "--exec", "no-such-program")
    assert outcome.code == WRONG_USE
    assert "no program `no-such-program`" in outcome.err


def test_exec_timeout(cep: Cep, rules: Path, log: Path) -> None:
    outcome = cep("run", rules, log, "--exec", "sleep 20", "--exec-timeout", "0.05")
    assert outcome.code == WRONG_USE
    assert "took more than 0.05 s" in outcome.err


# ---------------------------------------------------------------------- which rules, which events


def test_rule_runs_only_the_named_ones(cep: Cep, rules: Path, log: Path) -> None:
    more = '\nrule any_success { on login where outcome == "success"  alert "in" }\n'
    rules.write_text(rules.read_text() + more)
    assert len(cep("run", rules, log).records) == 2
    [match] = cep("run", rules, log, "--rule", "any_success").records
    assert match["rule"] == "any_success"
    both = cep("run", rules, log, "--rule", "any_success", "--rule", "guessed")
    assert len(both.records) == 2


def test_rule_runs_with_those_whose_emit_it_reads(cep: Cep, rules: Path, log: Path) -> None:
    rules.write_text(
        'rule one { on login where outcome == "success"  emit first { who = login.user } }\n'
        "stream second from first where who is not null\n"
        'rule two { on s: second  emit third { who = s.who }  alert "two" }\n'
        'rule three { on t: third  alert "in: {t.who}" }\n'
        'rule four { on login  alert "four" }\n'
    )
    outcome = cep("run", rules, log, "--rule", "three")
    assert [match["message"] for match in outcome.records] == ["two", "in: ann"]


def test_rule_that_does_not_exist(cep: Cep, rules: Path, log: Path) -> None:
    outcome = cep("run", rules, log, "--rule", "gessed")
    assert outcome.code == WRONG_USE
    assert "no rule `gessed`; did you mean `guessed`?" in outcome.err


def test_warnings_are_of_the_rules_that_run(cep: Cep, tmp_path: Path, log: Path) -> None:
    (tmp_path / "r.cep").write_text(
        'rule a { on login where port == 22 }\nrule b { on login where port == "22" }\n'
        "rule c { on login }\nrule d { sequence { p: login  no out within 1h } }\n"
    )
    assert "W001" in cep("run", "r.cep", log).err
    assert "W001" in cep("run", "r.cep", log, "--rule", "b").err, "its other use is shown too"
    for name, codes in (("c", set()), ("d", {"W017"}), ("b", {"W001"})):
        found = cep("run", "r.cep", log, "--rule", name).err
        assert {code for code in ("W001", "W017") if code in found} == codes


def test_set_gives_a_param_its_value(cep: Cep, tmp_path: Path, log: Path) -> None:
    (tmp_path / "p.cep").write_text(
        'param who = "nobody"\nrule one { on e: login where user == who  alert "{e.user}" }\n'
    )
    assert cep("run", "p.cep", log).records == []
    assert len(cep("run", "p.cep", log, "--set", "who=ann").records) == 4


@pytest.mark.parametrize(
    ("setting", "reason"),
    [("who", "write it as name=value"), ("whom=ann", "whom")],
)
def test_set_that_makes_no_sense(
    cep: Cep, tmp_path: Path, log: Path, setting: str, reason: str
) -> None:
    (tmp_path / "p.cep").write_text(
        'param who = "nobody"\nrule one { on e: login where user == who  alert "hi" }\n'
    )
    outcome = cep("run", "p.cep", log, "--set", setting)
    assert outcome.code == WRONG_USE
    assert reason in outcome.err


def test_type_field(cep: Cep, tmp_path: Path) -> None:
    (tmp_path / "t.cep").write_text('rule one { on login  alert "hi" }\n')
    data = '{"time": "2026-01-01T00:00:00Z", "kind": "login"}\n'
    assert cep("run", "t.cep", stdin=data).records == []
    assert len(cep("run", "t.cep", "--type-field", "kind", stdin=data).records) == 1


def test_format_overrides_what_the_name_says(cep: Cep, tmp_path: Path) -> None:
    (tmp_path / "t.cep").write_text('rule one { on e: login  alert "{e.user}" }\n')
    (tmp_path / "log.txt").write_text("time=2026-01-01T00:00:00Z type=login user=bob\n")
    [match] = cep("run", "t.cep", "log.txt", "--format", "logfmt").records
    assert match["message"] == "bob"


def test_a_format_that_does_not_exist(cep: Cep, rules: Path, log: Path) -> None:
    outcome = cep("run", rules, log, "--format", "jsonll")
    assert outcome.code == WRONG_USE
    assert "did you mean `jsonl`?" in outcome.err


# ---------------------------------------------------------------------- time


LATE = line(0, "failure") + line(20, "failure") + line(16, "failure") + line(30, "success")


def test_late_events_are_counted_and_advice_is_given(cep: Cep, rules: Path) -> None:
    outcome = cep("run", rules, stdin=LATE)
    assert outcome.records == []
    assert "1 event was late by up to 4 s: try --delay 5s" in outcome.err
    assert " 1 late, " in outcome.err


def test_delay_repairs_the_order(cep: Cep, rules: Path) -> None:
    outcome = cep("run", rules, "--delay", "5s", stdin=LATE)
    assert len(outcome.records) == 1
    assert " 0 late, " in outcome.err
    assert len(cep("run", rules, "--delay", "0", stdin=LATE).records) == 0


def test_a_delay_of_one_input(cep: Cep, rules: Path, tmp_path: Path) -> None:
    tidy, late = tmp_path / "tidy.jsonl", tmp_path / "late.jsonl"
    tidy.write_text(LATE)
    late.write_text(LATE)
    outcome = cep("run", rules, tidy, late, "--source-delay", f"{late}=5s")
    assert " 1 late, " in outcome.err, "only the other input's event is late"
    wrong = cep("run", rules, tidy, "--source-delay", "5s")
    assert wrong.code == WRONG_USE
    assert "write it as INPUT=DURATION" in wrong.err


def test_a_delay_without_a_unit(cep: Cep, rules: Path) -> None:
    outcome = cep("run", rules, "--delay", "5", stdin=LATE)
    assert outcome.code == WRONG_USE
    assert "'5' is no duration; write it like 30s, 5m or 1h30m" in outcome.err


def test_sort_repairs_any_order(cep: Cep, rules: Path, tmp_path: Path) -> None:
    path = tmp_path / "reversed.jsonl"
    path.write_text("".join(reversed(LOG.splitlines(keepends=True))))
    assert cep("run", rules, path).records == []
    assert len(cep("run", rules, path, "--sort").records) == 1


def test_late_events_are_written(cep: Cep, rules: Path) -> None:
    cep("run", rules, "--late", "late.jsonl", stdin=LATE)
    [late] = [json.loads(text) for text in Path("late.jsonl").read_text().splitlines()]
    assert late["source"] == "-"
    assert late["time"] == "2026-01-01T00:00:16Z"
    assert late["late_by_s"] == 4
    assert json.loads(late["raw"])["user"] == "ann"


def test_at_end_undecided_lists_open_absences(cep: Cep, orders: Path) -> None:
    outcome = cep("run", "orders.cep", orders)
    assert [match["key"] for match in outcome.records] == [{"id": 1}]
    assert "unshipped  id=2  would match at 2026-01-01T05:00:00Z" in outcome.err
    assert " 1 undecided, " in outcome.err


def test_at_end_assume_quiet_reports_them(cep: Cep, orders: Path) -> None:
    outcome = cep("run", "orders.cep", orders, "--at-end", "assume-quiet")
    assert [match["key"] for match in outcome.records] == [{"id": 1}, {"id": 2}]
    assert outcome.records[1]["time"] == "2026-01-01T05:00:00Z"
    assert " 0 undecided, " in outcome.err


def test_at_end_discard_drops_them(cep: Cep, orders: Path) -> None:
    outcome = cep("run", "orders.cep", orders, "--at-end", "discard")
    assert len(outcome.records) == 1
    assert " 0 undecided, " in outcome.err


# ---------------------------------------------------------------------- what is said


def test_stats_prints_a_table_of_the_rules(cep: Cep, rules: Path, log: Path) -> None:
    lines = cep("run", rules, log, "--stats").err.splitlines()
    [head] = [number for number, text in enumerate(lines) if text.startswith("rule ")]
    assert lines[head].split() == [
        "rule",
        "matches",
        "suppressed",
        "unknown",
        "dropped",
        "untried",
        "unrouted",
    ]
    assert lines[head + 1].split()[:2] == ["guessed", "1"]


def test_stats_lists_every_open_absence(cep: Cep, orders: Path) -> None:
    with orders.open("a") as file:
        for number in range(20):
            file.write(f'{{"time": "2026-01-01T04:00:00Z", "type": "order", "id": "x{number}"}}\n')
    few = cep("run", "orders.cep", orders).err
    assert "id=x19" not in few
    assert "… and 11 more (--stats lists all)" in few
    assert "id=x19" in cep("run", "orders.cep", orders, "--stats").err


def test_quiet_says_nothing(cep: Cep, rules: Path) -> None:
    outcome = cep("run", rules, "--quiet", stdin=LATE + LOG.replace("2026", "2027"))
    assert outcome.err == ""
    assert len(outcome.records) == 1


def test_fail_on_match(cep: Cep, rules: Path, log: Path) -> None:
    outcome = cep("run", rules, log, "--fail-on-match")
    assert outcome.code == FAILED
    assert len(outcome.records) == 1
    log.write_text("")
    assert cep("run", rules, log, "--fail-on-match").code == DONE


def test_rejects_are_counted_told_and_written(cep: Cep, rules: Path) -> None:
    data = LOG.encode() + b"not json\n" + b'{"type": "login", "time": "soon"}\n' + b"\xff\xfe{\n"
    outcome = cep("run", rules, "--rejects", "rejects.jsonl", stdin=data)
    assert outcome.code == DONE
    assert len(outcome.records) == 1
    assert " 3 rejected, " in outcome.err
    records = [json.loads(text) for text in Path("rejects.jsonl").read_text().splitlines()]
    records.sort(key=lambda record: record["line"])
    assert [record["line"] for record in records] == [5, 6, 7]
    assert records[0]["raw"] == "not json"
    assert records[2]["raw_base64"]
    assert all(record["reason"] for record in records)


def test_rejects_without_the_option_are_advised(cep: Cep, rules: Path) -> None:
    outcome = cep("run", rules, stdin=LOG + "not json\n")
    assert "1 record was rejected" in outcome.err
    assert "--rejects FILE" in outcome.err


def test_a_field_that_no_event_has(cep: Cep, tmp_path: Path, log: Path) -> None:
    (tmp_path / "f.cep").write_text('rule typo { on login where usr == "ann"  alert "hi" }\n')
    outcome = cep("run", "f.cep", log)
    assert "no event had the field `usr` that rule typo reads (did you mean `user`?)" in outcome.err


def test_a_stream_that_got_no_events(cep: Cep, tmp_path: Path, log: Path) -> None:
    (tmp_path / "s.cep").write_text('rule none { on logn  alert "hi" }\n')
    outcome = cep("run", "s.cep", log)
    assert "stream logn got no events: type field is `type`; values seen: login" in outcome.err


SHOP = [
    {"type": "payment", "order": 1, "usr_name": None, "ok": True, "amount": 5, "by": {"id": 7}},
    {"type": "shipment", "order": 1, "carrier": "dhl", "ok": False, "amount": 5},
    {"type": "refund", "order": 1, "ok": True, "amount": 5},
]


def shop(times: int = 1, records: Sequence[dict[str, Any]] = SHOP) -> str:
    """So many rounds of a shop's events, a second between two."""
    return "".join(
        json.dumps({"time": second, **record}) + "\n"
        for second, record in enumerate(list(records) * times)
    )


@pytest.mark.parametrize(
    ("rule", "told"),
    [
        ("sequence { p: payment  no shipmnt within 2d }", "stream shipmnt got no events: type"),
        ("sequence { p: payment  no shipmnt within 2d }", "(did you mean `shipment`?)"),
        (
            'sequence { p: payment  no shipment where carier == "x" within 2d }',
            "no event had the field `carier` that rule r reads (did you mean `carrier`?)",
        ),
        (
            "sequence { p: payment  no shipment where usr_name == 5 within 2d }",
            "no event of stream shipment had the field `usr_name` that rule r reads",
        ),
        ("sequence within 1h { p: payment s: shipment } unless refunded", "stream refunded got no"),
        (
            "sequence within 1h { p: payment+ until refnd s: shipment }",
            "stream refnd got no events",
        ),
        ("on payment where usr is null", "no event had the field `usr` that rule r reads"),
        ('on payment where usr ?? "x" == "x"', "no event had the field `usr` that rule r reads"),
        ('on payment where coalesce(usr, "x") == "x"', "no event had the field `usr`"),
        (
            "by order aggregate payment over tumbling 1h { n = count() where okk == false }",
            "no event had the field `okk` that rule r reads (did you mean `ok`?)",
        ),
        ('on s: payment alert "{s.amuont}"', "no event had the field `amuont` that rule r reads"),
        ('on s: payment alert "x" { y = s.by.ident }', "no event had the field `by.ident`"),
        (
            "sequence within 1h { p: payment{2} } having sum(p.amuont) > 5",
            "no event had the field `amuont`",
        ),
        (
            "sequence within 1h { p: payment s: shipment where ordr == p.order }",
            "no event had the field `ordr`",
        ),
        (
            "sequence within 1h { p: payment s: shipment where order == p.ordr }",
            "no event had the field `ordr`",
        ),
        ("by ordr on payment", "no event had the field `ordr`"),
        ("on payment dedup by payment.ordr for 1h", "no event had the field `ordr`"),
        (
            'on payment where ok == "false"',
            'rule r compares `ok` with "false", but in the events it is a boolean: write false',
        ),
        ('on payment where amount > "100"', "write 100 without quotes"),
        ('on p: payment having p.amount in ["5", "6"]', "rule r compares `amount` with"),
    ],
)
@pytest.mark.parametrize("rounds", [1, 2000])
def test_what_a_rule_reads_and_no_event_has(
    cep: Cep, tmp_path: Path, rule: str, told: str, rounds: int
) -> None:
    rules = f'rule r {{ {rule} }}\nrule finds {{ on payment alert "found" dedup for 1d }}\n'
    (tmp_path / "r.cep").write_text(rules)
    outcome = cep("run", "r.cep", "-o", "out.jsonl", stdin=shop(rounds))
    assert outcome.code == 0
    warnings = [line for line in outcome.err.splitlines() if line.startswith("warning: ")]
    warnings = [line for line in warnings if "unknown condition" not in line]
    assert any(told in line for line in warnings), outcome.err
    assert len(warnings) == 1


@pytest.mark.parametrize("form", ["jsonl", "json"])
def test_what_only_the_last_event_has_is_there(cep: Cep, tmp_path: Path, form: str) -> None:
    last = {"type": "voidé", "order": 1, "geo.city": "Rome", "deep": {"x": 1}, "amount": 1}
    records = [{"time": i, **each} for i, each in enumerate([*SHOP * 1000, last])]
    text = json.dumps(records)
    if form == "jsonl":
        text = "".join(json.dumps(record) + "\n" for record in records)
    (tmp_path / f"log.{form}").write_text(text)
    (tmp_path / "r.cep").write_text(
        'stream void { where type == "voidé" }\n'
        "rule r { sequence { p: payment  no void where geo.city == 'x' within 1d } }\n"
        "rule q { on event where deep.x > 5 }\n"
        "rule p { on refund where user ?? order == 0 }\n"
    )
    outcome = cep("run", "r.cep", f"log.{form}", "-o", "out.jsonl")
    assert outcome.code == 0
    assert "warning: " not in outcome.err


def test_streams_without_events_are_told_on_one_line(cep: Cep, tmp_path: Path, log: Path) -> None:
    (tmp_path / "r.cep").write_text("rule r { sequence within 1h { a: A b: B } unless C }\n")
    outcome = cep("run", "r.cep", log)
    assert "warning: streams A, B, C got no events" in outcome.err.replace("C, A, B", "A, B, C")


MANY = """
stream ssh from event where app == "sshd"
stream failed from ssh where message like "Failed *"
stream windows from event where EventID in [4624, 4625] and TimeCreated is not null
stream signed from windows, accepted
stream zeek from event where _path == "conn" or kind == "conn"
stream any_sign from signed, zeek

rule found { on failed  emit again { ip = 1 } }
rule chained { on again }
rule unions { on any_sign }
rule windowed { aggregate signed over tumbling 1h { n = count() } }
rule derived { on signed_again }
rule feeds { on signed  emit signed_again { ip = 1 } }
rule optional { sequence within 1h { a: signed  b: failed*  c: signed } }
rule absence { by host sequence { f: failed  no acepted within 1h } }
rule misspelt { on faild }
"""


def test_many_rules_without_events_are_told_together(cep: Cep, tmp_path: Path) -> None:
    (tmp_path / "r.cep").write_text(MANY)
    log = "".join(
        json.dumps({"time": i, "app": "sshd", "message": "Failed x", "type": "failed"}) + "\n"
        for i in range(3000)
    )
    outcome = cep("run", "r.cep", "-o", "out.jsonl", stdin=log)
    assert advice_in(outcome.err) == [
        "6 of 9 rules had no events to look at: "
        "derived, feeds, misspelt, optional, unions, windowed",
        "streams acepted, faild got no events: type field is `type`; values seen: failed",
        "no event had the field `host` that rule absence reads",
    ]


def advice_in(err: str) -> list[str]:
    """The warnings of a run that are no warnings of rules or of conditions that fail."""
    lines = [line for line in err.splitlines() if line.startswith("warning: ")]
    return [line.removeprefix("warning: ") for line in lines if "unknown condition" not in line]


@pytest.mark.parametrize("rounds", [1, 3000])
@pytest.mark.parametrize(
    ("event", "idle"),
    [
        ({"EventID": 4625, "TimeCreated": 1}, "absence, chained, found, misspelt"),
        ({"type": "accepted"}, "absence, chained, found, misspelt"),
        ({"kind": "conn"}, "absence, chained, derived, feeds, found, misspelt, optional, windowed"),
    ],
)
def test_each_way_to_a_stream_counts(
    cep: Cep, tmp_path: Path, event: dict[str, Any], idle: str, rounds: int
) -> None:
    (tmp_path / "r.cep").write_text(MANY)
    records = [{"x": "faild"}] * (rounds - 1) + [event]
    outcome = cep("run", "r.cep", "-o", "out.jsonl", stdin=shop(records=records))
    told = advice_in(outcome.err)[0]
    assert told == f"{len(idle.split(', '))} of 9 rules had no events to look at: {idle}"


@pytest.mark.parametrize(
    "event",
    [
        {"EventID": 4625},
        {"EventID": 1, "TimeCreated": 1},
        {"EventID": True, "TimeCreated": 1},
        {"typ": "faild"},
    ],
)
def test_where_no_rule_has_events_the_type_field_is_told(
    cep: Cep, tmp_path: Path, event: dict[str, Any]
) -> None:
    (tmp_path / "r.cep").write_text(MANY)
    outcome = cep("run", "r.cep", "-o", "out.jsonl", stdin=shop(records=[event]))
    assert advice_in(outcome.err) == [
        "9 of 9 rules had no events to look at: absence, chained, derived, feeds, found, misspelt, "
        "optional, unions, … (--stats lists all)",
        "streams acepted, faild got no events: type field is `type`; no event has that field; "
        "--type-field names another, `stream acepted where …` needs none",
    ]
    outcome = cep("run", "r.cep", "--stats", "-o", "out.jsonl", stdin=shop(records=[event]))
    assert advice_in(outcome.err)[0].endswith("optional, unions, windowed")


def test_a_stream_of_several_parents_that_got_no_events(cep: Cep, tmp_path: Path) -> None:
    (tmp_path / "r.cep").write_text(
        'stream ssh where app == "sshd"\nstream both from ssh, refunded\nrule r { on both }\n'
        "rule s { on ssh }\n"
    )
    outcome = cep("run", "r.cep", stdin=shop())
    assert advice_in(outcome.err) == [
        "stream ssh got no events: it asks for a value of `app`; no event has it",
        "stream both got no events: none of the streams named after `from` has any",
    ]


def test_a_run_that_goes_on_does_not_wonder_at_the_few_events_it_sees(
    cep: Cep, tmp_path: Path
) -> None:
    (tmp_path / "r.cep").write_text("rule r { sequence { p: payment no shipment within 2d } }\n")
    (tmp_path / "log.jsonl").write_text(shop())
    cep("run", "r.cep", "log.jsonl", "--state", "cep.db", "-o", "out.txt")
    with (tmp_path / "log.jsonl").open("a") as file:
        file.write(json.dumps({"type": "payment", "time": 100}) + "\n")
    outcome = cep("run", "r.cep", "log.jsonl", "--state", "cep.db", "-o", "out.txt")
    assert "1 event, " in outcome.err
    assert "warning: " not in outcome.err


def test_an_empty_input(cep: Cep, rules: Path) -> None:
    outcome = cep("run", rules, stdin="")
    assert outcome.code == DONE
    assert "the input is empty" in outcome.err


# ---------------------------------------------------------------------- wrong use


def test_no_rules(cep: Cep, log: Path) -> None:
    outcome = cep("run", log)
    assert outcome.code == WRONG_USE
    assert "no rules among: " in outcome.err


def test_rules_with_errors_are_shown(cep: Cep, tmp_path: Path, log: Path) -> None:
    (tmp_path / "bad.cep").write_text('rule a { on login where x = 1  alert "hi" }\n')
    outcome = cep("run", "bad.cep", log)
    assert outcome.code == WRONG_USE
    assert "bad.cep:1:" in outcome.err
    assert "error: the rules have 1 error" in outcome.err


def test_an_input_that_is_missing(cep: Cep, rules: Path) -> None:
    outcome = cep("run", rules, "missing.jsonl")
    assert outcome.code == WRONG_USE
    assert "missing.jsonl" in outcome.err
    assert "Traceback" not in outcome.err


def test_demo_finds_something_for_each_rule(cep: Cep) -> None:
    outcome = cep("demo")
    assert outcome.code == DONE
    assert len(outcome.records) >= 4
    assert "$ cep run pack:security " in outcome.err
    assert "cep new first.cep" in outcome.err


def test_demo_quiet(cep: Cep) -> None:
    outcome = cep("demo", "--quiet")
    assert outcome.err == ""
    assert outcome.records == cep("demo").records


def test_candidates_that_were_not_tried_are_told(cep: Cep, tmp_path: Path) -> None:
    (tmp_path / "r.cep").write_text(
        "rule r { sequence any within 1h { a: a  b: a  c: a  z: z }  having a.n < 0 }\n"
    )
    data = "".join(json.dumps({"type": "a", "time": n + 1, "n": n}) + "\n" for n in range(60))
    outcome = cep("run", "r.cep", stdin=data + '{"type": "z", "time": 100}\n')
    assert outcome.code == DONE
    assert "rule r: `having` refused 10,000 candidates for one event, and the rest" in outcome.err


def test_what_has_no_end_cannot_be_sorted(cep: Cep, rules: Path, log: Path) -> None:
    outcome = cep("run", rules, log, "--sort", "--follow")
    assert outcome.code == WRONG_USE
    assert "with --follow it has no end: use --delay" in outcome.err
