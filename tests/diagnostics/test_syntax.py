"""What is said about text that is no rule file, word for word.

Each `syntax/*.cep` has its messages beside it in a `.txt`. After a deliberate change of a message
run the tests once with `UPDATE_GOLDEN=1` in the environment and read the difference.
"""

import os
from pathlib import Path

import pytest

from dsl.diagnostics import draw
from dsl.parser import parse
from dsl.source import Source

CASES = sorted((Path(__file__).parent / "syntax").glob("*.cep"))


@pytest.mark.parametrize("path", CASES, ids=lambda path: path.stem)
def test_messages(path):
    text = path.read_bytes().decode("utf-8")
    _, found = parse(Source(path.name, text))
    drawn = "\n\n".join(draw(diagnostic) for diagnostic in found) + "\n"
    golden = path.with_suffix(".txt")
    if os.environ.get("UPDATE_GOLDEN"):
        golden.write_text(drawn, encoding="utf-8")
    assert drawn == golden.read_text(encoding="utf-8")
