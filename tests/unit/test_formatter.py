"""The formatter: canonical samples stay as they are, layout, comments."""

from pathlib import Path

import pytest

from dsl.formatter import format_file
from dsl.parser import parse
from dsl.source import Source

DATA = Path(__file__).parent / "data"


def formatted(text: str) -> str:
    """The text formatted; also checks what always holds."""
    source = Source("test.cep", text)
    file, found = parse(source)
    assert found == []
    result = format_file(file, source)
    again_source = Source("test.cep", result)
    again, found = parse(again_source)
    assert found == []
    assert again == file
    assert [comment.text for comment in again.comments] == [c.text for c in file.comments]
    assert format_file(again, again_source) == result
    return result


def lines(*texts: str) -> str:
    return "".join(f"{text}\n" for text in texts)


@pytest.mark.parametrize("path", sorted(DATA.glob("*.cep")), ids=lambda path: path.stem)
def test_canonical_samples_stay(path):
    text = path.read_text(encoding="utf-8")
    assert formatted(text) == text


def test_all_on_one_line():
    text = (DATA / "reference.cep").read_text(encoding="utf-8")
    assert formatted(text.replace("\n", " ")).count("\nrule ") == 6


def test_nothing():
    assert formatted("") == ""
    assert formatted("  \n\n") == ""
    assert formatted("\n# only this") == "# only this\n"


def test_one_line_stays_one_line():
    text = "rule a{by host all within 1m{a:A b:B}alert'x'}"
    assert formatted(text) == 'rule a { by host  all within 1m { a: A  b: B }  alert "x" }\n'


def test_what_does_not_fit_is_opened():
    text = f"rule a {{ by host  on login where name == '{'x' * 60}'  alert 'a text' }}"
    assert formatted(text) == lines(
        "rule a {",
        "  by host",
        f'  on login where name == "{"x" * 60}"',
        '  alert "a text"',
        "}",
    )


def test_what_was_open_stays_open():
    assert formatted("rule a { on login\n}") == "rule a {\n  on login\n}\n"


def test_steps_stand_in_columns():
    text = """rule a { sequence {
      first: login{2,} where a == 1
      b: logout where b == 2 within 5m
    } }"""
    assert formatted(text) == lines(
        "rule a {",
        "  sequence {",
        "    first: login{2,} where a == 1",
        "    b:     logout    where b == 2 within 5m",
        "  }",
        "}",
    )


def test_long_conditions_are_broken_at_and():
    text = f"rule a {{ on login where {'a' * 40} == 1 and {'b' * 40} == 2 or {'c' * 40} == 3 }}"
    assert formatted(text) == lines(
        "rule a {",
        "  on login",
        f"    where {'a' * 40} == 1 and {'b' * 40} == 2",
        f"      or {'c' * 40} == 3",
        "}",
    )


def test_statements_have_a_blank_line_between_them():
    text = "rule a {\non x\n}\nrule b {\non y\n}\n\n\n\nlist c = []\nlist d = []"
    assert formatted(text) == lines(
        "rule a {",
        "  on x",
        "}",
        "",
        "rule b {",
        "  on y",
        "}",
        "",
        "list c = []",
        "list d = []",
    )


def test_blank_lines_inside_blocks_are_kept_one_at_a_time():
    text = "rule a {\n\n  by x\n\n\n  on y\n\n}"
    assert formatted(text) == lines("rule a {", "  by x", "", "  on y", "}")


def test_parentheses_only_where_needed():
    text = "param p = ((a + b)) * (c) - (d - e) - ((f))"
    assert formatted(text) == "param p = (a + b) * c - (d - e) - f\n"
    text = "rule a { on x where (not (a == 1)) and ((b) or c) and (d and e) }"
    assert formatted(text) == "rule a { on x where not a == 1 and (b or c) and (d and e) }\n"


@pytest.mark.parametrize(
    ("text", "canonical"),
    [
        ("'a'", '"a"'),
        (r"'it\'s'", '"it\'s"'),
        (r'"say \"hi\""', "'say \"hi\"'"),
        (r'"\"both\' "', r'''"\"both' "'''),
        (r'"a\\b\n"', r'"a\\b\n"'),
        (r'"\u00e9"', '"é"'),
        (r'"\u0000\u202e"', r'"\u0000\u202e"'),
    ],
)
def test_quotes(text, canonical):
    assert formatted(f"param p = {text}") == f"param p = {canonical}\n"


def test_numbers_and_durations_are_kept_as_written():
    text = "param p = [1.50, 1e3, 90s, 1h30m]\n"
    assert formatted(text) == text


def test_comments_keep_to_what_they_were_with():
    text = """# the file

# the rule
rule a { # head
    # before by
    by x # behind by
  # before on
  on y
    # in the middle
    where z == 1  # behind on

  # last
} # end
# after
"""
    assert formatted(text) == lines(
        "# the file",
        "",
        "# the rule",
        "rule a {  # head",
        "  # before by",
        "  by x  # behind by",
        "  # before on",
        "  # in the middle",
        "  on y where z == 1  # behind on",
        "",
        "  # last",
        "}  # end",
        "",
        "# after",
    )


def test_comments_open_a_list():
    text = 'list a = ["x", # one\n "y"]'
    assert formatted(text) == lines("list a = [", '  "x",  # one', '  "y",', "]")


def test_objects_of_tests_are_opened():
    values = ", ".join(f"{letter * 12}: 1" for letter in "abcdef")
    text = f'test r "t" {{ at 5s login {{ {values} }} times 3 every 5s }}'
    assert formatted(text) == lines(
        'test r "t" {',
        "  at 5s login {",
        *(f"    {letter * 12}: 1," for letter in "abcde"),
        f"    {'f' * 12}: 1",
        "  } times 3 every 5s",
        "}",
    )


def test_until_is_written_last():
    text = "rule a { sequence { a: A+ until B where x where y } }"
    assert formatted(text) == "rule a { sequence { a: A+ where y until B where x } }\n"


def test_expressions_as_deep_as_allowed():
    text = f"rule a {{ on x where {'f(' * 98}x{')' * 98} == 1 }}"
    assert formatted(text).count("f(") == 98
