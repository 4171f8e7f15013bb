"""Lists and tables from files, tables from streams, streams that drop repeats, and reloading."""

import gzip
import json
import os
import sqlite3
from pathlib import Path
from typing import Any

import pytest

import cep
from cep.clock.timers import Timers
from cep.runtime.tables import FileTable, Repeats, StreamTable
from cep.source.tables import TableError, read_list, read_table

S = 1_000_000


def write(path: Path, content: str | bytes) -> Path:
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return path


class Run:
    """An engine for rules in a text, given events as `(seconds, stream, fields)`."""

    def __init__(self, text: str, folder: Path | None = None) -> None:
        name = str(folder / "rules.cep") if folder is not None else "rules.cep"
        self.engine = cep.Engine(cep.loads(text, name=name))

    def __call__(self, *events: tuple[float, str, dict[str, Any]]) -> list[Any]:
        """For each match its rule's alert field `x`, or its time in seconds."""
        given = [{"type": kind, "time": at, **fields} for at, kind, fields in events]
        found = self.engine.process(given)
        for table in self.engine.program.tables.values():
            if isinstance(table, StreamTable):
                table.check()
        for repeats in self.engine.program.repeats.values():
            repeats.check()
        return [match.fields.get("x", match.time / S) for match in found]


def errors(text: str, folder: Path) -> list[str]:
    with pytest.raises(cep.RuleError) as error:
        cep.loads(text, name=str(folder / "rules.cep"))
    found = [one for one in error.value.diagnostics if one.severity == "error"]
    assert all(one.code == "E910" for one in found)
    return [one.message.replace(str(folder) + os.sep, "") for one in found]


# ---------------------------------------------------------------------------- lists from files


def test_a_list_has_one_item_a_line(tmp_path):
    path = write(tmp_path / "l.txt", "# all of them\n\n a b \r\nc#d\n  # no\nc#d\n10\n")
    assert read_list(str(path)) == ("a b", "c#d", "10")


@pytest.mark.parametrize(
    ("line", "item"),
    [
        ("10.0.0.0/8   # lan", "10.0.0.0/8"),
        ("10.0.0.0/8\t#lan", "10.0.0.0/8"),
        ("a#b", "a#b"),
        ('"a # b"', "a # b"),
        ("'a # b'  # two", "a # b"),
        ('" a "', " a "),
        ('"a"#b', '"a"#b'),
        ('"a', '"a'),
        ("it's", "it's"),
        ("#", None),
    ],
)
def test_comments_and_quotes(tmp_path, line, item):
    path = write(tmp_path / "l.txt", line + "\n")
    assert read_list(str(path)) == (() if item is None else (item,))


def test_networks_of_a_file_are_networks(tmp_path):
    write(tmp_path / "nets.txt", "10.0.0.0/8   # lan\n'192.168.0.0/16'\n2001:db8::/32\n")
    run = Run('list nets from "nets.txt"\nrule r { on A where not cidr(ip, nets) }', tmp_path)
    assert run((1, "A", {"ip": "10.1.2.3"}), (2, "A", {"ip": "8.8.8.8"})) == [2]
    write(tmp_path / "nets.txt", "10.0.0.0/8\n\n10.0.0.0/33\n")
    assert errors(
        'list nets from "nets.txt"\ndef own(x) = cidr(x, nets)\nrule r { on A where own(ip) }',
        tmp_path,
    ) == ["cannot use `nets.txt`: line 3: `10.0.0.0/33` is no network"]


def test_expressions_of_a_file_are_expressions(tmp_path):
    write(tmp_path / "l.txt", "a+b\n(a\n")
    assert errors('list l from "l.txt"\nrule r { on A where k matches l }', tmp_path) == [
        "cannot use `l.txt`: line 2: `(a` is not a regular expression: missing ): (a"
    ]


def test_a_network_that_is_none_does_not_replace_those_that_are(tmp_path):
    write(tmp_path / "nets.txt", "10.0.0.0/8\n")
    run = Run('list nets from "nets.txt"\nrule r { on A where cidr(ip, nets) }', tmp_path)
    write(tmp_path / "nets.txt", "10.0.0.0/8 and more\n")
    problems = run.engine.reload_files().problems
    assert [one.message.endswith("`10.0.0.0/8 and more` is no network") for one in problems] == [
        True
    ]
    assert run((1, "A", {"ip": "10.1.2.3"})) == [1]


def test_a_list_may_be_empty_and_may_begin_with_a_byte_order_mark(tmp_path):
    assert read_list(str(write(tmp_path / "e.txt", ""))) == ()
    assert read_list(str(write(tmp_path / "m.txt", b"\xef\xbb\xbfa\n"))) == ("a",)


@pytest.mark.parametrize(
    ("content", "reason"),
    [(b"a\nb\xff\n", "line 2 is not UTF-8 text"), (None, "there is no such file")],
)
def test_a_file_that_is_no_list(tmp_path, content, reason):
    path = tmp_path / "l.txt"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(TableError, match=reason):
        read_list(str(path))
    with pytest.raises(TableError, match="folder"):
        read_list(str(tmp_path))


def test_rules_use_the_items(tmp_path):
    write(tmp_path / "l.txt", "a\nb\n")
    run = Run('list l from "l.txt"\nrule r { on A where k in l }', tmp_path)
    assert run((1, "A", {"k": "a"}), (2, "A", {"k": "c"}), (3, "A", {"k": "b"})) == [1, 3]


def test_items_match_as_patterns_too(tmp_path):
    write(tmp_path / "l.txt", "a*\n")
    run = Run('list l from "l.txt"\nrule r { on A where k like l }', tmp_path)
    assert run((1, "A", {"k": "ab"}), (2, "A", {"k": "b"})) == [1]


def test_items_are_texts(tmp_path):
    write(tmp_path / "l.txt", "1\n")
    run = Run('list l from "l.txt"\nrule r { on A where k in l or str(k) in l }', tmp_path)
    assert run((1, "A", {"k": "1"}), (2, "A", {"k": 1})) == [1, 2]
    run = Run('list l from "l.txt"\nrule r { on A where k in l }', tmp_path)
    assert run((1, "A", {"k": "1"}), (2, "A", {"k": 1})) == [1]


def test_a_list_is_looked_for_beside_its_rule_file(tmp_path):
    (tmp_path / "rules").mkdir()
    write(tmp_path / "rules" / "l.txt", "a\n")
    write(tmp_path / "rules" / "in.cep", 'list l from "l.txt"\nrule r { on A where k in l }')
    write(tmp_path / "out.cep", 'include "rules/in.cep"')
    rules = cep.load(tmp_path / "out.cep")
    assert rules.checked.lists["l"].items == ("a",)


def test_what_is_wrong_with_files_is_told_at_their_declarations(tmp_path):
    write(tmp_path / "t.csv", "k,v\n1,2\n")
    text = (
        'list l from "l.txt"\n'
        'table t from "t.csv" key key\n'
        "rule r { on A where k in l and t[k].v == 1 }\n"
    )
    assert errors(text, tmp_path) == [
        "cannot use `l.txt`: there is no such file",
        "cannot use `t.csv`: line 2 has no `key`",
    ]
    with pytest.raises(cep.RuleError) as error:
        cep.loads(text, name=str(tmp_path / "rules.cep"))
    spans = [one.span.text for one in error.value.diagnostics if one.code == "E910"]
    assert spans == ['list l from "l.txt"', 'table t from "t.csv" key key']


# ---------------------------------------------------------------------------- tables from files

ROWS = [{"ip": "1", "city": "Rome", "n": 1}, {"ip": "2", "city": "Oslo", "n": 2}]


def as_csv(path: Path) -> None:
    write(path, 'ip,city,n\n"x1",Rome,1\n"x2",Oslo,2\n')


def as_json_lines(path: Path) -> None:
    lines = [json.dumps({**row, "ip": f"x{row['ip']}"}) + "\n" for row in ROWS]
    write(path, "\n".join(lines))


def as_array(path: Path) -> None:
    write(path, json.dumps([{**row, "ip": f"x{row['ip']}"} for row in ROWS]))


def as_parquet(path: Path) -> None:
    pyarrow = pytest.importorskip("pyarrow")
    from pyarrow import parquet

    rows = [{**row, "ip": f"x{row['ip']}"} for row in ROWS]
    parquet.write_table(pyarrow.Table.from_pylist(rows), path)


def as_database(path: Path) -> None:
    database = sqlite3.connect(path)
    database.execute("create table geo (ip text, city text, n integer)")
    database.executemany("insert into geo values (?, ?, ?)", [("x1", "Rome", 1), ("x2", "Oslo", 2)])
    database.commit()
    database.close()


def as_packed(path: Path) -> None:
    write(path, gzip.compress(b"ip,city,n\nx1,Rome,1\nx2,Oslo,2\n"))


@pytest.mark.parametrize(
    ("name", "make"),
    [
        ("geo.csv", as_csv),
        ("geo.csv.gz", as_packed),
        ("geo.jsonl", as_json_lines),
        ("geo.json", as_array),
        ("geo.parquet", as_parquet),
        ("geo.db", as_database),
        ("geo.sqlite", as_database),
    ],
)
def test_a_table_from_each_kind_of_file(tmp_path, name, make):
    make(tmp_path / name)
    run = Run(
        f'table geo from "{name}" key ip\nrule r {{ on a: A  alert {{ x = geo[a.ip].city }} }}',
        tmp_path,
    )
    events = [(1, "A", {"ip": "x1"}), (2, "A", {"ip": "x2"}), (3, "A", {"ip": "x3"}), (4, "A", {})]
    assert run(*events) == ["Rome", "Oslo", None, None]
    assert read_table(str(tmp_path / name), ("ip",), "geo")["x2"]["n"] == 2


def test_the_last_row_of_a_key_counts(tmp_path):
    path = write(tmp_path / "t.csv", "k,v\n1,a\n2,b\n1,c\n")
    assert read_table(str(path), ("k",), "t") == {1: {"k": 1, "v": "c"}, 2: {"k": 2, "v": "b"}}


def test_keys_are_those_of_the_language(tmp_path):
    path = write(tmp_path / "t.jsonl", '{"k":1,"v":"n"}\n{"k":true,"v":"b"}\n{"k":"1","v":"s"}\n')
    table = FileTable(read_table(str(path), ("k",), "t"))
    found = [table.find(key, ("v",)) for key in (1, 1.0, True, "1", False, None, [1])]
    assert found == ["n", "n", "b", "s", None, None, None]
    assert list(table.keys()) == [1, True, "1"]


def test_nested_keys_and_fields(tmp_path):
    path = write(tmp_path / "t.jsonl", '{"a":{"k":1},"b":{"v":2}}\n{"a.k":2,"b.v":3}\n')
    table = FileTable(read_table(str(path), ("a", "k"), "t"))
    assert table.find(1, ("b", "v")) == 2
    assert table.find(2, ("b", "v")) == 3
    assert table.find(2, ("b", "w")) is None


def test_a_condition_may_ask_a_table_and_is_unknown_without_a_row(tmp_path):
    write(tmp_path / "t.csv", "k,v\na,1\nb,2\n")
    run = Run('table t from "t.csv" key k\nrule r { on A where not t[k].v == 2 }', tmp_path)
    assert run((1, "A", {"k": "a"}), (2, "A", {"k": "b"}), (3, "A", {"k": "c"})) == [1]


def test_a_key_may_be_looked_up(tmp_path):
    write(tmp_path / "t.csv", "host,site\na,1\nb,1\nc,2\n")
    text = """
    table t from "t.csv" key host
    rule r { by t[host].site as site  sequence within 1m { x: A{2} } }
    """
    run = Run(text, tmp_path)
    events = [(1, "A", {"host": "a"}), (2, "A", {"host": "c"}), (3, "A", {"host": "z"})]
    assert run(*events, (4, "A", {"host": "b"})) == [4]
    assert run.engine.stats.per_rule["r"].unrouted == 1


@pytest.mark.parametrize(
    ("name", "content", "reason"),
    [
        ("t.csv", None, "there is no such file"),
        ("t.csv", "ip,city\n1,Rome,3\n", "line 2: "),
        ("t.csv", "ipp,city\n1,Rome\n", "line 2 has no `ip`; did you mean `ipp`?"),
        ("t.csv", "ip,city\n,Rome\n", "line 2 has no `ip`"),
        ("t.jsonl", '{"ip":1}\n{"ip"\n', "line 2: not JSON"),
        ("t.jsonl", '{"ip":[1]}\n', "line 1: the key `ip` is neither text, number nor"),
        ("t.jsonl", '{"ip":1}\n5\n', "line 2: a number, not an object"),
        ("t.parquet", "no parquet", "arquet"),
        ("t.log", "just a line\nand another\n", "it is no table: CSV, JSON lines, Parquet or"),
        ("t.csv", b"\0\1\2\3\0\1\2\3", "it is no table"),
        ("t.db", None, "there is no such file"),
        ("t.db", "no database at all, but long enough to be taken for one", "SQLite says"),
    ],
)
def test_a_file_that_is_no_table(tmp_path, name, content, reason):
    if content is not None:
        write(tmp_path / name, content)
    (message,) = errors(
        f'table t from "{name}" key ip\nrule r {{ on A where t[k].v == 1 }}', tmp_path
    )
    assert message.startswith(f"cannot use `{name}`: ")
    assert reason in message


def test_a_database_with_several_tables(tmp_path):
    database = sqlite3.connect(tmp_path / "t.db")
    database.execute("create table t (k integer primary key, v)")
    database.execute('create table "o""dd" (k text)')
    database.execute("insert into t values (1, x'61ff')")
    database.commit()
    database.close()
    assert read_table(str(tmp_path / "t.db"), ("k",), "t") == {1: {"k": 1, "v": "a\\xff"}}
    assert read_table(str(tmp_path / "t.db"), ("k",), 'o"dd') == {}
    with pytest.raises(TableError, match=r"no table `u`; there are: `o\"dd`, `t`"):
        read_table(str(tmp_path / "t.db"), ("k",), "u")


def test_a_database_without_tables(tmp_path):
    sqlite3.connect(tmp_path / "t.db").close()
    with pytest.raises(TableError, match=r"it has no table `t`$"):
        read_table(str(tmp_path / "t.db"), ("k",), "t")


def test_a_view_is_a_table_too_and_is_only_read(tmp_path):
    database = sqlite3.connect(tmp_path / "t.db")
    database.execute("create table raw (k, v)")
    database.execute("insert into raw values (1, 2)")
    database.execute("create view t as select k, v + 1 as v from raw")
    database.commit()
    database.close()
    before = (tmp_path / "t.db").read_bytes()
    assert read_table(str(tmp_path / "t.db"), ("k",), "t") == {1: {"k": 1, "v": 3}}
    assert (tmp_path / "t.db").read_bytes() == before


# ---------------------------------------------------------------------------- tables from streams

ENRICH = "rule r { on a: A  alert { x = t[a.k].v } }\n"


def test_the_latest_event_of_each_key():
    run = Run(f"table t from P key k\n{ENRICH}")
    puts = [
        (1, "P", {"k": 1, "v": "a"}),
        (2, "P", {"k": 1, "v": "b"}),
        (3, "P", {"k": 2, "v": "c"}),
    ]
    assert run(*puts, (4, "A", {"k": 1}), (5, "A", {"k": 2}), (6, "A", {"k": 3})) == [
        "b",
        "c",
        None,
    ]


def test_an_event_without_a_key_is_no_row():
    run = Run(f"table t from P key k\n{ENRICH}")
    assert run((1, "P", {"v": 1}), (2, "P", {"k": [1], "v": 1}), (3, "A", {"k": 1})) == [None]
    assert not run.engine.program.tables["t"].rows


def test_a_later_event_replaces_the_whole_row():
    run = Run(f"table t from P key k\n{ENRICH}")
    assert run((1, "P", {"k": 1, "v": 1}), (2, "P", {"k": 1}), (3, "A", {"k": 1})) == [None]


def test_a_table_changes_after_all_rules_have_seen_the_event():
    text = """
    table t from A key k
    rule before { on a: A  alert { x = t[a.k].v } }
    rule zlast { on a: A where t[k].v == 1 }
    """
    run = Run(text)
    assert run((1, "A", {"k": "k", "v": 1}), (2, "A", {"k": "k", "v": 2})) == [None, 1, 2]


def test_events_of_one_time_come_one_after_the_other():
    run = Run(f"table t from P key k\n{ENRICH}")
    events = [(1, "A", {"k": 1}), (1, "P", {"k": 1, "v": 1}), (1, "A", {"k": 1})]
    assert run(*events) == [None, 1]


def test_all_tables_change_at_once():
    """What an event means to a table does not depend on the other tables that it changes."""
    text = """
    stream first_seen from P where seen[k].k is null
    table seen from P key k
    table origin from first_seen key k
    rule r { on a: A  alert { x = origin[a.k].v } }
    """
    run = Run(text)
    puts = [(1, "P", {"k": 1, "v": "first"}), (2, "P", {"k": 1, "v": "second"})]
    assert run(*puts, (3, "A", {"k": 1})) == ["first"]


@pytest.mark.parametrize(("after", "found"), [(10 - 1e-6, 7), (10, 7), (10 + 1e-6, None)])
def test_a_row_expires_when_the_clock_passes_its_ttl(after, found):
    run = Run(f"table t from P key k ttl 10s\n{ENRICH}")
    assert run((1, "P", {"k": 1, "v": 7}), (1 + after, "A", {"k": 1})) == [found]


def test_a_new_event_gives_a_row_new_life():
    run = Run(f"table t from P key k ttl 10s\n{ENRICH}")
    puts = [(1, "P", {"k": 1, "v": 1}), (5, "P", {"k": 2, "v": 2}), (8, "P", {"k": 1, "v": 3})]
    assert run(*puts, (15, "A", {"k": 2}), (16, "A", {"k": 2})) == [2, None]
    assert run((18, "A", {"k": 1}), (19, "A", {"k": 1})) == [3, None]


def test_rows_are_forgotten_without_events_of_their_key():
    run = Run(f"table t from P key k ttl 10s\n{ENRICH}")
    run(*((n / 10, "P", {"k": n, "v": n}) for n in range(1000)))
    assert len(run.engine.program.tables["t"].rows) == 101
    run.engine.advance_to(1_000 * S)
    assert not run.engine.program.tables["t"].rows


def test_a_row_is_there_for_what_is_due_at_its_last_moment():
    text = """
    table t from P key k ttl 10s
    rule r { by k  sequence { a: A  no B within 10s }  alert { x = t[a.k].v } }
    """
    run = Run(text)
    run((1, "P", {"k": 1, "v": 7}), (1, "A", {"k": 1}))
    assert [m.fields["x"] for m in run.engine.advance_to(100 * S)] == [7]


def test_a_table_of_a_derived_stream():
    text = """
    table t from D key k
    rule makes { on a: A  emit D { k = a.k  v = a.v } }
    rule r { on b: B  alert { x = t[b.k].v } }
    """
    assert Run(text)((1, "A", {"k": 1, "v": 5}), (1, "B", {"k": 1})) == [5]


def test_a_derived_event_sees_the_row_of_its_cause():
    text = """
    table t from A key k
    rule makes { on a: A  emit D { k = a.k } }
    rule r { on d: D  alert { x = t[d.k].v } }
    """
    assert Run(text)((1, "A", {"k": 1, "v": 5})) == [5]


def test_a_table_of_a_stream_with_conditions_and_selected_fields():
    text = """
    stream P2 from P where ok { select { k = upper(name)  v = n * 2 } }
    table t from P2 key k
    rule r { on a: A  alert { x = t[a.k].v } }
    """
    puts = [(1, "P", {"ok": True, "name": "a", "n": 4}), (2, "P", {"ok": 5, "name": "a", "n": 5})]
    assert Run(text)(*puts, (3, "A", {"k": "A"})) == [8]


def test_a_value_of_another_type_is_in_the_row_as_it_is():
    text = """
    table t from P key k
    rule q { on P where v > 5 }
    rule r { on a: A  alert { x = t[a.k].v } }
    """
    assert Run(text)((1, "P", {"k": 1, "v": "text"}), (2, "A", {"k": 1})) == ["text"]


SELECTS = """
table t from P key k
stream s from A { select { k = k  v = t[k].v  any_ops = any(ks, x, t[x].v == "old") } }
stream child from s where v == "old"
stream both from s, B
"""


@pytest.mark.parametrize(
    "rule",
    [
        "on a: s  alert { x = a.v }",
        "on a: child  alert { x = a.v }",
        "on a: s where v == this.v  alert { x = a.v }",
        "by k  sequence within 1m { a: s  b: C }  alert { x = a.v }",
        'by k  sequence within 1m { a: s  b: C where a.v == "old" }  alert { x = a.v }',
        "by k  sequence within 1m { a: child  b: C }  alert { x = a.v }",
        "by k  sequence within 1m { a: both  b: C }  alert { x = a.v }",
        "by k  sequence within 1m { a: s+  b: C }  alert { x = max(a.v) }",
        'by k  sequence within 1m { a: s  b: C }  alert { x = if(a.any_ops, "old", "new") }',
        "by v  sequence within 1m { a: s  b: C by was }  alert { x = v }",
    ],
)
def test_a_selected_field_is_what_the_table_held_when_the_event_came(rule):
    events = [
        (1, "P", {"k": 1, "v": "old"}),
        (2, "A", {"k": 1, "ks": [2, 1]}),
        (3, "P", {"k": 1, "v": "new"}),
        (4, "C", {"k": 1, "was": "old"}),
    ]
    assert Run(f"{SELECTS}rule r {{ {rule} }}")(*events) == ["old"]


def test_a_selected_field_of_another_parent():
    text = f"{SELECTS}rule r {{ on b: both where kind == 2  alert {{ x = b.v }} }}"
    assert Run(text)((1, "B", {"k": 1, "v": 5, "kind": 2})) == [5]


def test_dedup_by_a_field_that_asks_a_table():
    text = """
    table t from P key k
    stream s from A { select { v = t[k].v } dedup by v for 1m }
    rule r { on s }
    """
    events = [(1, "P", {"k": 1, "v": 1}), (2, "P", {"k": 2, "v": 1}), (3, "P", {"k": 3, "v": 2})]
    assert Run(text)(*events, *((3 + n, "A", {"k": n}) for n in (1, 2, 3))) == [4, 6]


def test_a_table_may_ask_itself():
    text = """
    stream rising from P where v > (t[k].v ?? 0)
    table t from rising key k
    rule r { on a: A  alert { x = t[a.k].v } }
    """
    puts = [(n, "P", {"k": 1, "v": v}) for n, v in enumerate([3, 1, 5, 4])]
    assert Run(text)(*puts, (9, "A", {"k": 1})) == [5]


def test_engines_of_one_ruleset_have_tables_of_their_own():
    rules = cep.loads(f"table t from P key k\n{ENRICH}")
    first, second = cep.Engine(rules), cep.Engine(rules)
    first.process({"type": "P", "time": 1, "k": 1, "v": 1})
    event = {"type": "A", "time": 2, "k": 1}
    assert [m.fields["x"] for m in first.process(event)] == [1]
    assert [m.fields["x"] for m in second.process(event)] == [None]


def test_a_table_that_nothing_asks_keeps_nothing():
    run = Run("table t from P key k\nrule r { on A }")
    run((1, "P", {"k": 1}))
    assert not run.engine.program.tables["t"].rows


def test_a_stream_with_a_time_of_its_own_may_ask_a_table():
    text = """
    stream A { where t[k].v == 1  time at }
    table t from P key k
    rule r { on A }
    """
    run = Run(text)
    events = [{"type": "P", "time": 1, "at": 1, "k": 1, "v": 1}, {"at": 5, "k": 1}]
    assert [m.time for m in run.engine.process(events)] == [5 * S]


# ---------------------------------------------------------------------------- repeats


@pytest.mark.parametrize(("after", "found"), [(10 - 1e-6, 1), (10, 2), (10 + 1e-6, 2)])
def test_a_window_of_dedup_ends_before_t_plus_d(after, found):
    run = Run("stream A { type type  dedup by k for 10s }\nrule r { on A }")
    assert len(run((1, "A", {"k": 1}), (1 + after, "A", {"k": 1}))) == found
    assert run.engine.stats.repeats == 2 - found


def test_a_repeat_does_not_extend_the_window():
    run = Run("stream A { type type  dedup by k for 10s }\nrule r { on A }")
    assert run(*((at, "A", {"k": 1}) for at in (0, 6, 10, 19, 20))) == [0, 10, 20]


def test_windows_are_kept_for_each_key():
    run = Run("stream A { type type  dedup by k, l for 10s }\nrule r { on A }")
    events = [(0, 1, 1), (1, 1, 2), (2, 1, 1), (3, 2, 1), (4, 1.0, 2.0), (5, True, 1), (6, "1", 1)]
    assert run(*((at, "A", {"k": k, "l": m}) for at, k, m in events)) == [0, 1, 3, 5, 6]


def test_a_missing_part_is_never_a_repeat():
    run = Run("stream A { type type  dedup by k, l for 10s }\nrule r { on A }")
    assert run((0, "A", {"k": 1}), (1, "A", {"k": 1}), (2, "A", {"k": 1, "l": None})) == [0, 1, 2]


def test_without_by_all_events_are_repeats_of_each_other():
    run = Run("stream A { type type  dedup for 10s }\nrule r { on A }")
    assert run((0, "A", {"k": 1}), (0, "A", {"k": 2}), (10, "A", {})) == [0, 10]


def test_windows_are_forgotten_without_events_of_their_key():
    run = Run("stream A { type type  dedup by k for 10s }\nrule r { on A }")
    run(*((n / 10, "A", {"k": n}) for n in range(1000)))
    assert len(run.engine.program.repeats["A"].windows) <= 111
    run.engine.advance_to(1_000 * S)
    assert not run.engine.program.repeats["A"].windows


STREAM = "stream once from A { where ok  dedup by k for 10s }\n"
EVENTS = [
    (0, "A", {"k": 1, "ok": False, "n": 0}),
    (1, "A", {"k": 1, "ok": True, "n": 1}),
    (2, "A", {"k": 1, "ok": True, "n": 2}),
    (12, "A", {"k": 1, "ok": True, "n": 3}),
]


def test_only_events_of_the_stream_open_a_window():
    assert Run(f"{STREAM}rule r {{ on once }}")(*EVENTS) == [1, 12]


@pytest.mark.parametrize(
    "others",
    [
        "",
        "rule a { on once where n == 2 }",
        "rule z { on once where n == 0 }",
        "rule a { by k  sequence within 5s { x: once where n == 2  y: once } }",
        "rule a { on once where num(n) > 1 / (n - 1) }",
    ],
)
def test_what_rules_ask_has_no_influence(others):
    """A rule's own condition comes after the dedup of the stream, whoever asks first."""
    run = Run(f"{STREAM}rule r {{ on once where n > 0  alert {{ x = 5 }} }}\n{others}")
    assert run(*EVENTS).count(5) == 2


def test_a_condition_of_the_only_rule_has_no_influence():
    assert Run(f"{STREAM}rule r {{ on once where n > 1 }}")(*EVENTS) == [12]


def test_all_rules_and_steps_get_the_same_answer():
    text = f"""{STREAM}
    rule a {{ on once }}
    rule b {{ by k  sequence within 1m {{ x: once  y: once }} }}
    rule c {{ by k  sequence within 1m {{ x: A where ok  y: once }} }}
    """
    assert Run(text)(*EVENTS) == [1, 12, 12, 12]


def test_what_a_stream_drops_its_children_do_not_see():
    text = f"{STREAM}stream child from once where n != 1\nrule r {{ on child }}"
    assert Run(text)(*EVENTS) == [12]


def test_a_child_may_drop_repeats_of_its_own():
    text = f"{STREAM}stream child from once {{ dedup for 20s }}\nrule r {{ on child }}"
    assert Run(text)(*EVENTS, (22, "A", {"k": 2, "ok": True, "n": 1})) == [1, 22]


def test_dedup_is_by_the_fields_that_the_stream_selects():
    text = """
    stream s from A { select { half = floor(n / 2) } dedup by half for 1m }
    rule r { on s }
    """
    assert Run(text)(*((n, "A", {"n": n}) for n in range(5))) == [0, 2, 4]


def test_a_table_of_a_stream_that_drops_repeats():
    text = f"{STREAM}table t from once key k\nrule r {{ on b: B  alert {{ x = t[b.k].n }} }}"
    run = Run(text)
    assert run(*EVENTS[:3], (3, "B", {"k": 1}), EVENTS[3], (13, "B", {"k": 1})) == [1, 3]


def test_derived_streams_drop_repeats_too():
    text = """
    stream D { dedup by k for 10s }
    rule makes { on a: A  emit D { k = a.k } }
    rule r { on D }
    """
    assert Run(text)((0, "A", {"k": 1}), (5, "A", {"k": 1}), (10, "A", {"k": 1})) == [0, 10]


def test_engines_without_dedup_have_events_without_a_mark():
    marked = cep.loads(f"{STREAM}rule r {{ on once }}").compiled.shape.type
    plain = cep.loads("rule r { on A }").compiled.shape.type
    assert ("r" in marked.__struct_fields__, "r" in plain.__struct_fields__) == (True, False)
    assert "n0" not in marked.__struct_fields__


def test_no_window_for_no_time():
    repeats = Repeats(0, Timers())
    assert [repeats.has((1,), 5), repeats.has((1,), 5)] == [False, False]


# ---------------------------------------------------------------------------- reloading

BOTH = """
list l from "l.txt"
table t from "t.csv" key k
rule r { by s  sequence within 1h { a: A where k in l  b: A where t[k].v == 1 } }
"""


def touch(path: Path, content: str) -> None:
    """Writes a file so that its time of change differs, whatever the clock's grain."""
    before = path.stat().st_mtime_ns if path.exists() else 0
    path.write_text(content)
    os.utime(path, ns=(before + S, before + S))


@pytest.fixture
def run(tmp_path) -> Run:
    write(tmp_path / "l.txt", "a\n")
    write(tmp_path / "t.csv", "k,v\na,0\n")
    return Run(BOTH, tmp_path)


def test_nothing_is_read_when_nothing_has_changed(run):
    assert run.engine.reload_files() == cep.Reloaded((), ())


def test_a_changed_table_counts_from_now_on(run, tmp_path):
    assert run((1, "A", {"s": 1, "k": "a"}), (2, "A", {"s": 1, "k": "c"})) == []
    touch(tmp_path / "t.csv", "k,v\nc,1\n")
    assert run.engine.reload_files().names == ("t",)
    assert run((3, "A", {"s": 1, "k": "c"})) == [3]


def test_a_changed_list_counts_from_now_on_and_runs_stay(run, tmp_path):
    touch(tmp_path / "t.csv", "k,v\nc,1\n")
    run((1, "A", {"s": 1, "k": "a"}), (2, "A", {"s": 2, "k": "b"}))
    touch(tmp_path / "l.txt", "b\n")
    assert run.engine.reload_files().names == ("l", "t")
    assert run((3, "A", {"s": 2, "k": "c"}), (4, "A", {"s": 1, "k": "c"})) == [4]
    assert run((5, "A", {"s": 3, "k": "a"}), (6, "A", {"s": 3, "k": "c"})) == []
    assert run((7, "A", {"s": 4, "k": "b"}), (8, "A", {"s": 4, "k": "c"})) == [8]


def test_a_list_that_events_are_found_by_may_change(tmp_path):
    write(tmp_path / "l.txt", "A\n")
    text = (
        'list l from "l.txt"\nstream s where type in l\nrule r { on a: s  alert { x = a.n in l } }'
    )
    run = Run(text, tmp_path)
    assert run((1, "A", {"n": "B"}), (2, "B", {"n": "B"})) == [False]
    touch(tmp_path / "l.txt", "B\n")
    run.engine.reload_files()
    assert run((3, "A", {"n": "B"}), (4, "B", {"n": "B"})) == [True]


def test_ids_do_not_change_when_a_file_does(run, tmp_path):
    touch(tmp_path / "t.csv", "k,v\nc,1\n")
    events = [{"type": "A", "time": n, "s": 1, "k": k} for n, k in enumerate("ac", 1)]
    run.engine.reload_files()
    touch(tmp_path / "l.txt", "a\nb\n")
    run.engine.reload_files()
    fresh = Run(BOTH, tmp_path)
    found, expected = run.engine.process(events), fresh.engine.process(events)
    assert [m.id for m in found] == [m.id for m in expected] != []


def test_a_broken_file_leaves_what_was_read_and_says_why_once(run, tmp_path):
    touch(tmp_path / "t.csv", "k,v\na,1\nb\n")
    touch(tmp_path / "l.txt", "b\n")
    found = run.engine.reload_files()
    assert found.names == ("l",)
    (problem,) = found.problems
    assert problem.code == "E910"
    assert "t.csv`: line 3: " in problem.message
    assert problem.span.text == 'table t from "t.csv" key k'
    assert run.engine.program.tables["t"].find("a", ("v",)) == 0
    assert run.engine.reload_files() == cep.Reloaded((), ())
    touch(tmp_path / "t.csv", "k,v\na,1\n")
    assert run.engine.reload_files().names == ("t",)
    assert run.engine.program.tables["t"].find("a", ("v",)) == 1


def test_a_file_that_has_gone_leaves_what_was_read(run, tmp_path):
    (tmp_path / "l.txt").unlink()
    found = run.engine.reload_files()
    assert [one.message.partition(": ")[2] for one in found.problems] == ["there is no such file"]
    touch(tmp_path / "t.csv", "k,v\nc,1\n")
    run.engine.reload_files()
    assert run((1, "A", {"s": 1, "k": "a"}), (2, "A", {"s": 1, "k": "c"})) == [2]


def test_engines_reload_for_themselves(run, tmp_path):
    other = cep.Engine(run.engine.ruleset)
    touch(tmp_path / "t.csv", "k,v\na,9\n")
    run.engine.reload_files()
    assert run.engine.program.tables["t"].find("a", ("v",)) == 9
    assert other.program.tables["t"].find("a", ("v",)) == 0
    assert other.reload_files().names == ("t",)


def test_selected_rules_have_the_same_files(run, tmp_path):
    engine = cep.Engine(run.engine.ruleset.select(["r"]))
    assert engine.program.tables["t"].find("a", ("v",)) == 0
