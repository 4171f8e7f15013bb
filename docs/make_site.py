"""What the site does with the pages that a plain Markdown viewer does not: titles and colours.

A hook of MkDocs (see mkdocs.yml). The comments above code blocks, which say to the tests what a
block is, become titles of the blocks; blocks of rules get colours by a small Pygments lexer.
"""

from __future__ import annotations

import re
from typing import Any, ClassVar

from pygments.lexer import RegexLexer, words
from pygments.lexers import LEXERS
from pygments.token import Comment, Keyword, Name, Number, Operator, Punctuation, String, Text

__all__ = ["CepLexer", "on_page_markdown"]  # where Pygments looks for lexers

TITLES = {"file": "{}", "append": "{}, at its end", "wrong": "{}", "output": "prints"}
"""The title of a block by what its comment begins with; {} is the rest."""

NOTED = re.compile(r"^<!-- (?P<kind>\w+)(?:: (?P<rest>[^\n]*))? -->\n```(?P<language>\w+)$", re.M)


def on_page_markdown(markdown: str, **_: Any) -> str:
    """The page with the notes on its blocks as titles."""
    return NOTED.sub(titled, markdown)


def titled(note: re.Match[str]) -> str:
    title = TITLES.get(note["kind"])
    if title is None:
        return note[0]
    return f'``` {{ .{note["language"]} title="{title.format(note["rest"])}" }}'


class CepLexer(RegexLexer):
    """The words of the rule language, in colours."""

    name = "cep"
    aliases: ClassVar = ["cep"]

    STATEMENTS = ("stream", "list", "table", "param", "def", "include", "rule", "test")
    CLAUSES = (
        *("by", "sequence", "all", "of", "one", "repeat", "aggregate", "over", "on", "timeout"),
        *("strict", "any", "next", "no", "until", "unless", "having", "where", "within", "after"),
        *("skip", "to", "past", "last", "nothing", "start", "first", "latest", "each", "report"),
        *("minimum", "close", "every", "event", "update", "alert", "emit", "dedup", "for"),
        *("limit", "runs", "keep", "keys", "from", "severity", "tags", "description", "meta"),
        *("sliding", "tumbling", "hopping", "session", "gap", "max", "timezone", "type", "time"),
        *("id", "delay", "select", "fields", "key", "ttl", "as", "at", "advance", "expect"),
        *("undecided", "times", "events"),
    )
    OPERATORS = ("and", "or", "not", "in", "is", "like", "ilike", "matches", "contains", "distinct")

    tokens: ClassVar[dict[str, list[Any]]] = {
        "root": [
            (r"#.*", Comment),
            (r'"(\\.|[^"\\])*"', String),
            (r"'(\\.|[^'\\])*'", String),
            (r"`[^`]*`", Name),
            (r"/(\\.|[^/\\\n ])(\\.|[^/\\\n])*/\w*", String.Regex),
            (r"\d[\d.]*(us|ms|[smhdw])(\d+(us|ms|[smhdw]))*\b", Number),
            (r"\d[\d.]*(e[+-]?\d+)?", Number),
            (r"\w+(?=\s*:)", Name.Label),
            (r"[.]\w+", Name),
            (words(STATEMENTS, prefix=r"^", suffix=r"\b"), Keyword.Declaration),
            (words(("true", "false", "null", "missing"), suffix=r"\b"), Keyword.Constant),
            (words(OPERATORS, suffix=r"\b"), Operator.Word),
            (r"\w+(?=\()", Name.Function),
            (words(CLAUSES, suffix=r"\b(?!\s*=[^=])"), Keyword),
            (r"\w+", Name),
            (r"[{}()\[\],]", Punctuation),
            (r"[^\w\s]", Operator),
            (r"\s+", Text),
        ]
    }
    flags = re.M


LEXERS["CepLexer"] = (__name__, "cep", ("cep",), ("*.cep",), ())
"""How Pygments finds lexers by name."""
