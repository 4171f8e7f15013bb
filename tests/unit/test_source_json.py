"""JSON: one line read with care, and arrays read element by element."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from cep.source import BadRecord, Record, Reject, open_source, read_object
from cep.source import json_array as array_module


@pytest.mark.parametrize(
    ("line", "record"),
    [
        (b'{"a": 1}\n', {"a": 1}),
        (b'  {"a": [1, {"b": null}]}  \r\n', {"a": [1, {"b": None}]}),
        (b'{"a": 1, "a": 2}', {"a": 2}),
        (b'{"a": "\\u00fc\\ud83d\\ude00"}', {"a": "ü😀"}),
        (b'{"a": ' + b"9" * 400 + b"}", {"a": int("9" * 400)}),
        (b'{"a": 9007199254740993}', {"a": 2**53 + 1}),
        (b'{"a": 18446744073709551616}', {"a": 2**64}),
        (b'{"": 0}', {"": 0}),
    ],
)
def test_objects(line: bytes, record: Record) -> None:
    assert read_object(line) == record


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        (b"[1]\n", "an array, not an object"),
        (b"1\n", "a number, not an object"),
        (b'"a"\n', "a text, not an object"),
        (b"null\n", "null, not an object"),
        (b"true\n", "a truth value, not an object"),
        (b'{"a": 1}{"b": 2}\n', "more than one JSON value on the line"),
        (b'{"a": 1} {"b": 2}\n', "more than one JSON value on the line"),
        (b'{"a": 1},\n', "something after the JSON value on the line"),
        (b'{"a": 1,\n', "not JSON: the line ends before the object does"),
        (b'{"a": "x\n', "not JSON: the line ends before the object does"),
        (b'{"a": }\n', "not JSON: expecting value at character 7"),
        (b"hello\n", "not JSON: it does not begin with `{`"),
        (b"", "an empty line"),
        (b" \n", "an empty line"),
        (b'{"a": NaN}', "not JSON: the number NaN"),
        (b'{"a": -Infinity}', "not JSON: the number -Infinity"),
        (b'{"a": 1e999}', "a number that is too large"),
        (b'{"a": ' + b"9" * 5000 + b"}", "an integer of too many digits"),
        (b'{"a": "\xff"}', "invalid UTF-8 at byte 8 of the line"),
        (b'{"\xc3": 1}', "invalid UTF-8 at byte 3 of the line"),
        (b'{"a":' * 10_000, "nested too deep"),
        (b'{"a":' + b"[" * 10_000 + b"]" * 10_000 + b"}", "nested too deep"),
        (b'{"a": "\0"}', "not JSON: invalid control character at at character 8"),
    ],
)
def test_everything_else_has_a_reason(line: bytes, reason: str) -> None:
    with pytest.raises(BadRecord) as caught:
        read_object(line)
    assert str(caught.value) == reason


@pytest.mark.parametrize("line", [b'{"a": "\\ud800"}', b"\xef\xbb\xbf{}", b"\0\0\0", b"{" * 2000])
def test_odd_lines_are_refused_somehow(line: bytes) -> None:
    with pytest.raises(BadRecord):
        read_object(line)


def read_array(path: Path, content: bytes) -> tuple[list[Record], list[Reject]]:
    path.write_bytes(content)
    records: list[Record] = []
    rejects: list[Reject] = []
    for block in open_source(str(path), "json").blocks():
        assert block.records is not None
        assert block.positions is not None
        assert block.line_numbers is not None
        assert len(block.records) == len(block.positions) == len(block.line_numbers)
        places = list(zip(block.positions, block.line_numbers, strict=True))
        for position, number in places[::2000] + places[-1:]:
            assert content[position : position + 1] == b"{"
            assert content[:position].count(b"\n") + 1 == number
        records += block.records
        rejects += block.rejects
    return records, rejects


@pytest.mark.parametrize("indent", [None, 0, 2])
def test_arrays_of_any_layout(tmp_path: Path, indent: int | None) -> None:
    records: list[Record] = [{"n": n, "a": [{"b": "],}"}], "ü": 'ä\\"'} for n in range(30_000)]
    text = json.dumps(records, indent=indent, ensure_ascii=False)
    assert read_array(tmp_path / "a.json", text.encode()) == (records, [])


def test_an_array_may_be_empty(tmp_path: Path) -> None:
    assert read_array(tmp_path / "a.json", b" [ ] \n") == ([], [])


def test_what_is_no_object_is_rejected_where_it_stands(tmp_path: Path) -> None:
    content = b'[{"a": 1}, 17, "x", [{"b": 1}], null,\n {"a": NaN}, {"a": 2}]'
    records, rejects = read_array(tmp_path / "a.json", content)
    assert records == [{"a": 1}, {"a": 2}]
    assert [(r.line_number, r.reason) for r in rejects] == [
        (1, "a number, not an object"),
        (1, "a text, not an object"),
        (1, "an array, not an object"),
        (1, "null, not an object"),
        (2, "not JSON: the number NaN"),
    ]
    assert [r.raw for r in rejects][1] == b'"x"'


def test_a_broken_element_does_not_take_the_others_with_it(tmp_path: Path) -> None:
    content = b'[{"a": 1}, {"a": ,"b": [1,2]}, {"a": \xff"x"}, {"a": "\xff"}, {"a": 2}]'
    records, rejects = read_array(tmp_path / "a.json", content)
    assert records == [{"a": 1}, {"a": 2}]
    assert [r.reason for r in rejects] == [
        "not JSON: expecting value",
        "not JSON: expecting value",
        "invalid UTF-8",
    ]


@pytest.mark.parametrize(
    ("content", "count", "reason"),
    [
        (b'[{"a": 1}, {"a": 2}', 2, "the file ends before the array does"),
        (b'[{"a": 1}, {"a": 2', 1, "not JSON: expecting ',' delimiter"),
        (b'[{"a": 1}, {"a": "x', 1, "not JSON: unterminated string starting at"),
        (b'[{"a": 1}] [{"a": 2}]', 1, "something after the array"),
        (b'[{"a": 1}]]', 1, "something after the array"),
    ],
)
def test_broken_ends(tmp_path: Path, content: bytes, count: int, reason: str) -> None:
    records, rejects = read_array(tmp_path / "a.json", content)
    assert len(records) == count
    assert [r.reason for r in rejects] == [reason]


def test_deep_nesting_is_rejected(tmp_path: Path) -> None:
    deep = b'{"a": ' + b"[" * 10_000 + b"]" * 10_000 + b"}"
    records, rejects = read_array(tmp_path / "a.json", b'[{"a": 1}, ' + deep + b', {"a": 2}]')
    assert records == [{"a": 1}, {"a": 2}]
    assert [r.reason for r in rejects] == ["nested too deep"]


def test_long_integers(tmp_path: Path) -> None:
    content = b'[{"a": ' + b"9" * 400 + b'}, {"a": ' + b"9" * 5000 + b"}]"
    records, rejects = read_array(tmp_path / "a.json", content)
    assert records == [{"a": int("9" * 400)}]
    assert [r.reason for r in rejects] == ["an integer of too many digits"]


def test_elements_are_cut_anywhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    records: list[Record] = [
        {"n": n, "ü": "ö" * (n % 7), "x": [n, {"y": -1.5e3}]} for n in range(50)
    ]
    content = json.dumps(records, ensure_ascii=False).encode()
    for size in (1, 2, 3, 7, 64):
        monkeypatch.setattr(array_module, "BLOCK", size)
        monkeypatch.setattr("cep.source.opened.LOOK", 1)
        monkeypatch.setattr("cep.source.raw.CHUNK", 4)
        assert read_array(tmp_path / "a.json", content) == (records, [])


def test_json_files_are_arrays_or_lines(tmp_path: Path) -> None:
    (tmp_path / "a.json").write_bytes(b'\n[\n{"a": 1}\n]\n')
    (tmp_path / "b.json").write_bytes(b'{"a": 1}\n{"a": 2}\n')
    (array,) = open_source(str(tmp_path / "a.json")).blocks()
    assert array.records == [{"a": 1}]
    for format in (None, "json"):
        (lines,) = open_source(str(tmp_path / "b.json"), format).blocks()
        assert lines.lines == [b'{"a": 1}\n', b'{"a": 2}\n']
