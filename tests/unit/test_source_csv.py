"""CSV and TSV: types, quotes, broken rows; and which texts become numbers."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest

from cep.source import BadRecord, Block, Record, Reject, SourceOptions, open_source
from cep.source.values import as_bool, as_number, infer


def read(
    path: Path, content: str | bytes, options: SourceOptions | None = None
) -> tuple[list[Record], list[Reject]]:
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    blocks: list[Block] = list(open_source(str(path), None, options).blocks())
    records = [record for block in blocks for record in block.ready]
    return records, [reject for block in blocks for reject in block.rejects]


def test_a_table(tmp_path: Path) -> None:
    content = "user,n,ok,note\nann,1,true,\nbob,-2.50,false,007\n"
    assert read(tmp_path / "a.csv", content) == (
        [
            {"user": "ann", "n": 1, "ok": True},
            {"user": "bob", "n": -2.5, "ok": False, "note": "007"},
        ],
        [],
    )


@pytest.mark.parametrize(("name", "mark"), [("a.tsv", "\t"), ("a.csv", ";"), ("b.csv", "|")])
def test_delimiters(tmp_path: Path, name: str, mark: str) -> None:
    content = "a,b\n1,2\n".replace(",", mark)
    assert read(tmp_path / name, content)[0] == [{"a": 1, "b": 2}]


def test_quotes_and_line_breaks_inside(tmp_path: Path) -> None:
    content = 'a,b\r\n"x, ""y""\nz",1\r\n"",2\r\n'
    (tmp_path / "a.csv").write_bytes(content.encode())
    (block,) = open_source(str(tmp_path / "a.csv")).blocks()
    assert list(block.ready) == [{"a": 'x, "y"\nz', "b": 1}, {"b": 2}]
    assert block.positions == [5, 5 + len('"x, ""y""\nz",1\r\n')]
    assert block.line_numbers == [2, 4]


def test_rows_of_another_width_are_rejected(tmp_path: Path) -> None:
    content = "a,b,c\n1,2,3\n1,2\n1,2,3,4\n1,2,3,,\n\n4,5,6"
    records, rejects = read(tmp_path / "a.csv", content)
    assert records == [{"a": 1, "b": 2, "c": 3}] * 2 + [{"a": 4, "b": 5, "c": 6}]
    assert [(r.line_number, r.position, r.reason, r.raw) for r in rejects] == [
        (3, 12, "2 columns, but the header has 3", b"1,2\n"),
        (4, 16, "4 columns, but the header has 3", b"1,2,3,4\n"),
    ]


def test_a_row_of_empty_cells_is_a_record_all_the_same(tmp_path: Path) -> None:
    assert read(tmp_path / "a.csv", "a,b\n,\n")[0] == [{}]


def test_names_of_columns(tmp_path: Path) -> None:
    assert read(tmp_path / "a.csv", "\ufeffa,,a, b \n1,2,3,4\n")[0] == [
        {"a": 1, "column_2": 2, "a_2": 3, "b": 4}
    ]


def test_a_header_that_comes_again_is_no_record(tmp_path: Path) -> None:
    assert read(tmp_path / "a.csv", "a,b\n1,2\na,b\n3,4\n")[0] == [
        {"a": 1, "b": 2},
        {"a": 3, "b": 4},
    ]


def test_a_followed_table(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_text("a,b\n1,2\n")
    stop = threading.Event()
    options = SourceOptions(follow=True, poll=0, stop=stop)
    blocks = open_source(str(path), None, options).blocks()
    assert list(next(blocks).ready) == [{"a": 1, "b": 2}]
    assert list(next(blocks).ready) == []
    with path.open("a") as file:
        file.write('3,"x\ny"\n')
    assert list(next(blocks).ready) == [{"a": 3, "b": "x\ny"}]
    path.rename(tmp_path / "a.csv.1")
    path.write_text("a,b\n5,6\n")
    records = [record for _ in range(4) for record in next(blocks).ready]
    assert records == [{"a": 5, "b": 6}]
    stop.set()
    assert [list(block.ready) for block in blocks] == []


def test_only_wanted_columns_are_made(tmp_path: Path) -> None:
    options = SourceOptions(wanted=frozenset({"b", "z"}))
    assert read(tmp_path / "a.csv", "a,b\n1,2\n", options)[0] == [{"b": 2}]


def test_stated_types(tmp_path: Path) -> None:
    options = SourceOptions(types={"id": "string", "n": "number", "ok": "bool"})
    records, rejects = read(
        tmp_path / "a.csv", "id,n,ok\n12,007,YES\n13,x,no\n14,+1.5,maybe\n,,\n", options
    )
    assert records == [{"id": "12", "n": 7, "ok": True}, {}]
    assert [r.reason for r in rejects] == ["not a number: 'x'", "not a truth value: 'maybe'"]


def test_invalid_utf_8_is_rejected(tmp_path: Path) -> None:
    records, rejects = read(tmp_path / "a.csv", b"a,b\n\xff,1\nx,2\n")
    assert records == [{"a": "x", "b": 2}]
    assert [(r.reason, r.raw) for r in rejects] == [("invalid UTF-8", b"\xff,1\n")]


def test_a_quote_that_never_ends(tmp_path: Path) -> None:
    content = 'a,b\n1,2\n"x,3\n' + "4,5\n" * 100_000
    records, rejects = read(tmp_path / "a.csv", content)
    assert records[0] == {"a": 1, "b": 2}
    assert rejects[0].line_number == 3
    assert rejects[0].reason == "no CSV: field larger than field limit (131072)"
    assert len(records) + sum(r.count for r in rejects) == 100_002


@pytest.mark.parametrize("content", ["", "\n\n", "a,b\n", "a,b"])
def test_no_rows(tmp_path: Path, content: str) -> None:
    assert read(tmp_path / "a.csv", content) == ([], [])


def test_many_rows_over_several_blocks(tmp_path: Path) -> None:
    rows = "".join(f'{n},"line one\nline two {n}"\n' for n in range(60_000))
    path = tmp_path / "a.csv"
    path.write_text("n,text\n" + rows)
    content = path.read_bytes()
    seen = 0
    for block in open_source(str(path)).blocks():
        for record, position in zip(block.ready, block.positions or [], strict=True):
            assert record["n"] == seen
            assert content.startswith(b"%d," % seen, position)
            seen += 1
    assert seen == 60_000


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("0", 0),
        ("-12", -12),
        ("0.50", 0.5),
        ("1.5e-07", 1.5e-07),
        ("1e-07", 1e-07),
        ("1e+20", 1e20),
        ("9" * 400, int("9" * 400)),
        ("true", True),
        ("false", False),
        ("", None),
    ],
)
def test_texts_that_have_a_type(text: str, value: object) -> None:
    found = infer(text)
    assert (found, type(found)) == (value, type(value))


@pytest.mark.parametrize(
    "text",
    [
        *("007", "00", "-01", "+5", "-0", "1.", ".5", "1e5", "1e999", "0x10", "1_000", "1,5"),
        *("-", "--", "12a", "٣", "True", "TRUE", "null", "NaN", "inf", " 5", "5 "),
        *("9" * 401, "1" * 5000),
    ],
)
def test_texts_that_stay_text(text: str) -> None:
    assert infer(text) == text


@pytest.mark.parametrize("text", ["x", "1_0", "nan", "inf", "1e999", "9" * 5000])
def test_no_stated_number(text: str) -> None:
    with pytest.raises(BadRecord, match="not a number"):
        as_number(text)


def test_stated_values() -> None:
    assert [as_number(text) for text in ("007", " 5 ", "+1", "1e3", "")] == [7, 5, 1, 1000.0, None]
    assert [as_bool(text) for text in ("1", "No", " TRUE ", "")] == [True, False, True, None]


def test_blocks_are_taken_apart_as_far_as_needed(tmp_path: Path) -> None:
    """Whatever is asked for first, a column and the rows chosen by it are the same."""
    lines = [f"{i},{'AB'[i % 2]},u{i % 3},{i}.5,é{i}" for i in range(100, 150)]
    texts = {
        "plain": "\n".join(["t,type,user,x,text", *lines]) + "\n",
        "crlf": "\r\n".join(["t,type,user,x,text", *lines]) + "\r\n",
        "quoted": "\n".join(["t,type,user,x,text", *lines, '150,"A","u0",150.5,é150']) + "\n",
    }
    for name, text in texts.items():
        path = tmp_path / f"{name}.csv"
        path.write_bytes(text.encode())
        for first in ("t", "type", "x", "text"):
            (block,) = open_source(str(path)).blocks()
            rows = block.rows
            assert rows is not None, name
            assert (rows.rising(first) is not None) == (first == "t")
            chosen = rows.only("type", {"A", 7})
            expected = range(100, 151 if name == "quoted" else 150, 2)
            assert chosen.whole("t") == list(expected), name
            assert chosen.column("text") == [f"é{i}" for i in expected]
            assert [row.record()["x"] for row in chosen.originals()] == [i + 0.5 for i in expected]
            assert next(iter(chosen.at([1])))["user"] == f"u{102 % 3}"
            assert rows.only("type", {"C"}).column("t") == []
            assert rows.column("text") == [f"é{i}" for i in range(100, 100 + len(rows))]


def test_a_header_in_the_middle_is_seen_with_its_blanks(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_text("a,b \n1,2\na,b \na,b\n3,4\n")
    records = [record for block in open_source(str(path)).blocks() for record in block.ready]
    assert records == [{"a": 1, "b": 2}, {"a": "a", "b": "b"}, {"a": 3, "b": 4}]
