"""What the checker says, word for word.

Each `check/*.cep` has its messages beside it in a `.txt`. After a deliberate change of a message
run the tests once with `UPDATE_GOLDEN=1` in the environment and read the difference.
"""

import os
from pathlib import Path

import pytest

from dsl.checker import check
from dsl.diagnostics import draw
from dsl.parser import parse
from dsl.source import Source

CASES = sorted((Path(__file__).parent / "check").glob("*.cep"))


def nothing_to_read(path: str) -> str:
    raise FileNotFoundError(2, "No such file or directory")


@pytest.mark.parametrize("path", CASES, ids=lambda path: path.stem)
def test_messages(path):
    source = Source(path.name, path.read_text(encoding="utf-8"))
    file, syntax = parse(source)
    assert syntax == []
    _, found = check([(file, source)], read=nothing_to_read)
    told = [draw(d) for d in found if d.code != "W010" or path.stem == "tests"]
    drawn = "\n\n".join(told) + "\n"
    golden = path.with_suffix(".txt")
    if os.environ.get("UPDATE_GOLDEN"):
        golden.write_text(drawn, encoding="utf-8")
    assert drawn == golden.read_text(encoding="utf-8")


def test_what_follows_from_a_syntax_error_is_not_told():
    source = Source(
        "a.cep", 'rule a { on login where x = 1 }\ntest a "t" { login { x: 1 }  expect a }'
    )
    file, syntax = parse(source)
    _, found = check([(file, source)], read=nothing_to_read)
    assert [d.code for d in syntax] == ["E004"]
    assert found == []
