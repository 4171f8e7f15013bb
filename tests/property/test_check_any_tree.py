"""The checker answers any tree with diagnostics, never with an exception."""

import os
import re
from pathlib import Path

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from dsl import ast
from dsl.checker import check
from dsl.diagnostics import draw
from dsl.parser import parse
from dsl.source import Source

EXAMPLES = int(os.environ.get("CEP_EXAMPLES", "40"))
ROOT = Path(__file__).parents[1]
WORDS = [
    word
    for path in sorted((ROOT / "diagnostics" / "check").glob("*.cep"))
    for word in re.findall(r"\w+|\"[^\"\n]*\"|\S", path.read_text(encoding="utf-8"))
]
STATEMENTS = [
    line
    for path in sorted((ROOT / "diagnostics" / "check").glob("*.cep"))
    for line in path.read_text(encoding="utf-8").splitlines()
    if re.match(r"(rule|stream|def|list|param|table|test|include)\b.*[}\])\w\"]$", line)
]


def no_file(path: str) -> str:
    raise FileNotFoundError(2, "No such file or directory")


def check_and_draw(file: ast.File, source: Source) -> None:
    result, found = check([(file, source)], read=no_file)
    assert (result is None) == any(diagnostic.severity == "error" for diagnostic in found)
    for diagnostic in found:
        draw(diagnostic)


@st.composite
def mutated(draw: st.DrawFn) -> str:
    """Some statements with a few words replaced, dropped or put in."""
    words = re.findall(
        r"\s+|\w+|\"[^\"\n]*\"|\S",
        "\n".join(draw(st.lists(st.sampled_from(STATEMENTS), min_size=1, max_size=4))),
    )
    for _ in range(draw(st.integers(0, 4))):
        at = draw(st.integers(0, len(words) - 1))
        what = draw(st.sampled_from(["drop", "replace", "insert"]))
        if what == "drop":
            words[at] = " "
        elif what == "replace":
            words[at] = draw(st.sampled_from(WORDS))
        else:
            words[at] += f" {draw(st.sampled_from(WORDS))} "
    return "".join(words)


@settings(max_examples=EXAMPLES, deadline=None, suppress_health_check=list(HealthCheck))
@given(mutated())
def test_texts_that_are_nearly_right(text):
    source = Source("x.cep", text)
    file, _ = parse(source)
    check_and_draw(file, source)


NAMES = st.sampled_from(["a", "b", "x", "event", "time", "this", "count", "lower", "s.t", ""])
st.register_type_strategy(ast.Ident, st.builds(ast.Ident, NAMES, st.booleans()))
st.register_type_strategy(
    ast.Path,
    st.builds(
        lambda parts: ast.Path(tuple(parts)),
        st.lists(st.builds(ast.Ident, NAMES), min_size=1, max_size=3),
    ),
)
st.register_type_strategy(ast.Duration, st.builds(ast.Duration, st.integers(0, 10**9)))
st.register_type_strategy(
    ast.Compare,
    st.builds(
        ast.Compare,
        st.sampled_from(
            ["==", "!=", "<", ">=", "in", "ilike", "matches", "contains", "not in", "not like"]
        ),
    ),
)
st.register_type_strategy(ast.Arithmetic, st.builds(ast.Arithmetic, st.sampled_from("+-*/%")))


@settings(max_examples=EXAMPLES, deadline=None, suppress_health_check=list(HealthCheck))
@given(st.lists(st.from_type(ast.Statement), max_size=4))
def test_any_tree(statements):
    check_and_draw(ast.File(tuple(statements)), Source("x.cep", ""))
