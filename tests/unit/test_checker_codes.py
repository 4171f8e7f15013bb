"""The pages of the checker's codes are true: wrong examples give the code, right ones none."""

import re
from pathlib import Path

import pytest

import dsl.checker
from dsl.checker import check
from dsl.codes import CODES
from dsl.parser import parse
from dsl.source import Source

MEANING = [code for code in CODES.values() if "E030" <= code.code < "E900" or code.code[0] == "W"]


def found_in(text: str, **options: object) -> set[str]:
    source = Source("rules.cep", text)
    file, syntax = parse(source)
    assert syntax == []

    def read(path: str) -> str:
        if path != "rules.cep":
            raise FileNotFoundError(2, "No such file or directory")
        return text

    _, found = check([(file, source)], read=read, **options)
    return {diagnostic.code for diagnostic in found}


@pytest.mark.parametrize("code", MEANING, ids=lambda code: code.code)
def test_wrong_and_right_examples(code):
    wrong, right = re.findall(r"```cep\n(.*?)\n```", code.explanation, re.DOTALL)
    options = {"params": {"limit": "many"}} if code.code == "E047" else {}
    errors = {found for found in found_in(wrong, **options) if found[0] == "E"}
    assert code.code in found_in(wrong, **options)
    assert errors <= {code.code}
    after = found_in(right, **options)
    assert code.code not in after
    assert not any(found[0] == "E" for found in after)


def test_every_code_of_the_checker_has_a_page():
    folder = Path(dsl.checker.__file__).parent
    text = "".join(path.read_text() for path in sorted(folder.glob("*.py")))
    assert set(re.findall(r'"([EW]\d{3})"', text)) == {code.code for code in MEANING}
