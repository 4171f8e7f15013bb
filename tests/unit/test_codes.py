"""The pages of the error codes tell the truth: wrong examples give the code, right ones do not."""

import re

import pytest

import cep
from dsl.codes import CODES
from dsl.parser import parse
from dsl.source import Source

SYNTAX = [code for code in CODES.values() if code.code < "E030"]


def examples(explanation: str) -> list[str]:
    return re.findall(r"```cep\n(.*?)\n```", explanation, re.DOTALL)


@pytest.mark.parametrize("code", SYNTAX, ids=lambda code: code.code)
def test_wrong_and_right_examples(code):
    wrong, right = examples(code.explanation)
    _, found = parse(Source("wrong.cep", wrong))
    assert code.code in {diagnostic.code for diagnostic in found}
    _, found = parse(Source("right.cep", right))
    assert found == []


LOADING = [code for code in CODES.values() if "E900" <= code.code < "F"]


@pytest.mark.parametrize("code", LOADING, ids=lambda code: code.code)
def test_examples_of_what_is_found_while_loading(code):
    wrong, right = examples(code.explanation)
    with pytest.raises(cep.RuleError) as error:
        assert cep.loads(wrong).compiled
    found = {one.code for one in error.value.diagnostics if one.severity == "error"}
    assert found == {code.code}
    assert cep.loads(right).compiled.rules
