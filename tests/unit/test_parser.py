"""The parser: every construct, names that look like keywords, places, and hostile text."""

import time
from pathlib import Path

import pytest

from dsl import ast
from dsl.parser import parse, parse_expression, parse_template
from dsl.source import Source

DATA = Path(__file__).parent / "data"


def read(text: str) -> ast.File:
    file, found = parse(Source("test.cep", text))
    assert found == []
    return file


def rule(body: str) -> tuple:
    (statement,) = read(f"rule r {{ {body} }}").statements
    return statement.clauses


def clause(body: str):
    (only,) = rule(body)
    return only


def expression(text: str):
    value, found = parse_expression(text)
    assert found == []
    return value


def name(text: str) -> ast.Name:
    return ast.Name(ast.Ident(text))


def number(value) -> ast.Literal:
    return ast.Literal(value)


@pytest.mark.parametrize("path", sorted(DATA.glob("*.cep")), ids=lambda path: path.stem)
def test_samples_parse(path):
    assert read(path.read_text(encoding="utf-8")).statements


def test_every_node_of_the_tree_is_made():
    text = "".join(path.read_text(encoding="utf-8") for path in DATA.glob("*.cep"))
    made = {type(node) for node in read(text).walk()}
    wanted = {
        value
        for value in vars(ast).values()
        if isinstance(value, type) and issubclass(value, ast.Node) and value is not ast.Node
    }
    assert wanted - made == set()


# ------------------------------------------------------------------------------ expressions


@pytest.mark.parametrize(
    ("text", "same"),
    [
        ("a or b and c", "a or (b and c)"),
        ("not a == b", "not (a == b)"),
        ("a == b ?? c", "a == (b ?? c)"),
        ("a ?? b + c", "a ?? (b + c)"),
        ("a + b * c", "a + (b * c)"),
        ("a - b - c", "(a - b) - c"),
        ("-a * b", "(-a) * b"),
        ("-a.b[0]", "-((a.b)[0])"),
        ("not not a", "not (not a)"),
        ("a not in b or c is not null", "(a not in b) or (c is not null)"),
        ("f(a, b).c", "(f(a, b)).c"),
    ],
)
def test_precedence(text, same):
    assert expression(text) == expression(same)


def test_parentheses_keep_groups_apart():
    assert expression("(a and b) and c") != expression("a and b and c")


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("1", 1),
        ("1.5", 1.5),
        ("2e3", 2000.0),
        ("1.5e-3", 0.0015),
        ("true", True),
        ("false", False),
        ("null", None),
        (r'"a\n\t\r\"\'\\\u00e9"', "a\n\t\r\"'\\é"),
        ("'it\"s'", 'it"s'),
        ("12345678901234567890123", 12345678901234567890123),
    ],
)
def test_literals(text, value):
    literal = expression(text)
    assert (type(literal.value), literal.value) == (type(value), value)


@pytest.mark.parametrize(
    ("text", "micros"),
    [("5m", 300_000_000), ("1h30m", 5_400_000_000), ("1.5s", 1_500_000), ("7us", 7), ("2ms", 2000)],
)
def test_durations(text, micros):
    assert expression(text) == ast.DurationLiteral(ast.Duration(micros))


def test_regular_expression():
    assert expression(r"/a\/b\.[{]/i") == ast.Regex(r"a/b\.[{]", "i")
    assert expression("a / b / c") == expression("(a / b) / c")


def test_distinct_is_a_word_only_before_a_value():
    assert expression("count(distinct a)").arguments[0].distinct
    assert expression("count(distinct)").arguments[0] == ast.Argument(name("distinct"))


# ------------------------------------------------------------------------------ names and words


def test_keywords_are_names_where_nothing_else_can_be_meant():
    on = clause("on login where count == 1 and time > 3 and by == on and no == where")
    names = [part.left.ident.name for part in on.where.parts]
    assert names == ["count", "time", "by", "no"]


def test_steps_and_fields_named_like_keywords():
    sequence = clause("sequence { within: login where where == 1  by: login where no.x == 1 }")
    assert [step.label.name for step in sequence.nodes] == ["within", "by"]


def test_words_that_begin_like_keywords():
    by, on = rule("by whereas on login where bystander == 1")
    assert by.parts[0].value == name("whereas")
    assert on.where.left == name("bystander")


def test_clauses_of_a_stream_named_like_its_fields():
    (stream,) = read("stream s { type type  time time  id id }").statements
    assert [c.path.dotted for c in stream.clauses] == ["type", "time", "id"]


def test_backticks():
    ident = expression("`user-agent`").ident
    assert (ident.name, ident.quoted) == ("user-agent", True)
    assert ident == ast.Ident("user-agent")


def test_where_after_until_belongs_to_it():
    (step,) = clause("sequence { a: A+ until B where x where y }").nodes
    assert step.until.where == name("x")
    assert step.where == name("y")


def test_coalesce_and_reluctant_optional():
    first, second = clause("sequence { a: A?? where b ?? c  d: D }").nodes
    assert first.quantifier == ast.Quantifier(0, 1, False)
    assert first.where == ast.Arithmetic("??", name("b"), name("c"))
    assert second.quantifier is None


@pytest.mark.parametrize(
    ("text", "quantifier"),
    [
        ("+", (1, None, True)),
        ("+?", (1, None, False)),
        ("*", (0, None, True)),
        ("?", (0, 1, True)),
        ("{3}", (3, 3, True)),
        ("{3,}", (3, None, True)),
        ("{3,5}?", (3, 5, False)),
    ],
)
def test_quantifiers(text, quantifier):
    (step,) = clause(f"sequence {{ A{text} }}").nodes
    assert step.quantifier == ast.Quantifier(*quantifier)
    assert step.quantifier.written == text


# ------------------------------------------------------------------------------ alert texts


def test_template():
    parts, found = parse_template("a {b} {{c}} {d + 1}}}")
    assert found == []
    plus = ast.Arithmetic("+", name("d"), number(1))
    assert parts == ("a ", name("b"), " {c} ", plus, "}")


def test_expressions_in_alerts_point_into_the_file():
    text = r'rule r { alert "\"{first} \u00e9 {second.x}" }'
    (alert,) = read(text).statements[0].clauses
    expressions = [part for part in alert.parts if not isinstance(part, str)]
    assert [e.span.text for e in expressions] == ["first", "second.x"]


def test_strings_and_regular_expressions_with_braces_in_alerts():
    alert = clause("""alert "{capture(x, /a{2}/, 1)} {if(a, '}', 'b')}" """)
    assert len(alert.parts) == 3


# ------------------------------------------------------------------------------ spans


def test_spans():
    file = read("\nrule r {\n  on login where a == 1\n}\n")
    (on,) = file.statements[0].clauses
    assert str(file.statements[0].span) == "test.cep:2:1"
    assert str(on.span) == "test.cep:3:3"
    assert on.where.span.text == "a == 1"


def test_comments_are_kept_beside_the_tree():
    file = read('# one\nlist a = ["#"] # two\r\n')
    assert [comment.text for comment in file.comments] == ["# one", "# two"]


# ------------------------------------------------------------------------------ strange text


@pytest.mark.parametrize("text", ["", " \n\t ", "# only a comment", "\ufeff", "\ufeffinclude 'a'"])
def test_almost_nothing(text):
    read(text)


def test_windows_line_ends():
    text = "rule r {\n  # note\n  on login\n}\n"
    assert read(text.replace("\n", "\r\n")) == read(text)


def test_three_mistakes_give_three_messages():
    text = "rule a { on x where = }\nrule b { on y }\nrul c { }\nlist l = [1 2]\nlist m = [1]"
    file, found = parse(Source("test.cep", text))
    assert [diagnostic.span.line for diagnostic in found] == [1, 3, 4]
    assert [statement.name.name for statement in file.statements] == ["b", "m"]


def test_deep_parentheses_are_no_depth():
    assert expression("(" * 1000 + "x" + ")" * 1000) == name("x")


@pytest.mark.parametrize(
    "deep",
    [
        "f(" * 1000 + "x" + ")" * 1000,
        "[" * 1000 + "]" * 1000,
        "not " * 1000 + "x",
        "-" * 1000 + "x",
        "1" + " + 1" * 1000,
        "x" + ".a" * 1000,
        "x" + "[0]" * 1000,
    ],
)
def test_deep_expressions_are_refused(deep):
    file, found = parse(Source("test.cep", f"rule a {{ on x where {deep} }}\nrule b {{ on y }}"))
    assert {diagnostic.code for diagnostic in found} == {"E011"}
    assert [statement.name.name for statement in file.statements] == ["b"]


def test_deep_groups_are_refused():
    text = "rule a { sequence { " + "repeat+ { " * 500 + "A" + " }" * 502
    _, found = parse(Source("test.cep", text))
    assert {diagnostic.code for diagnostic in found} == {"E011"}


def test_deep_expressions_in_alerts_are_refused():
    text = f'rule a {{ alert "{{{"-" * 500}x}}" }}'
    _, found = parse(Source("test.cep", text))
    assert [diagnostic.code for diagnostic in found] == ["E011"]


def test_a_rule_with_very_many_steps():
    steps = "\n".join(f"s{i}: login where n == {i}" for i in range(10_000))
    start = time.perf_counter()
    sequence = clause(f"sequence {{ {steps} }}")
    assert len(sequence.nodes) == 10_000
    assert time.perf_counter() - start < 60


def test_a_binary_file_gives_one_message():
    _, found = parse(Source("test.cep", "\x7fELF\0\0\0" * 100))
    assert [diagnostic.code for diagnostic in found] == ["E013"]
