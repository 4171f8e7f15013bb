"""Rule text to `dsl.ast`, with everything that is wrong with it.

In comes a `Source`, out come the tree of all statements that can be read and the findings; no text
makes it raise. The grammar is in `grammar.lark`; here it is driven word by word, for three reasons:
a keyword that cannot continue is turned back into a name, a failure is seen with the words that
would have been right (`dsl.syntax_errors` puts it in the user's words), and reading goes on with
the next statement, so that three mistakes give three messages. The only module that knows Lark.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from importlib import resources
from pickle import PickleError
from typing import Any, cast

from lark import Lark, Token, Tree
from lark.exceptions import UnexpectedCharacters, UnexpectedToken
from lark.lexer import PatternStr
from lark.parsers.lalr_analysis import Shift
from lark.utils import TextSlice

from dsl import ast
from dsl.builder import Locate, Word, build
from dsl.diagnostics import Diagnostic, Diagnostics
from dsl.source import Source, Span
from dsl.syntax_errors import Failure, explain


def parse(source: Source) -> tuple[ast.File, list[Diagnostic]]:
    """The statements of a rule file and all syntax errors in it.

    Never raises. With errors the tree holds the statements that could be read. O(length).

    >>> file, found = parse(Source("a.cep", 'list safe = ["a", "b"]'))
    >>> file.statements[0].name.name, found
    ('safe', [])
    """
    found = Diagnostics()
    whole = Span(source, 0, len(source.text))
    if "\0" in source.text:
        _not_text(source, found)
        return ast.File((), span=whole), found.sorted()
    locate = _locate_in(source)
    statements: list[ast.Statement] = []
    comments: list[ast.Comment] = []
    for reading in _read_statements(source.text, locate):
        if reading.tree is not None:
            statements += _build(reading.tree, locate, found)
        if reading.failure is not None:
            found.add(explain(reading.failure))
        for start, end in reading.comments:
            span = locate(start, end)
            comments.append(ast.Comment(span.text.rstrip(), span=span))
    return ast.File(tuple(statements), tuple(comments), span=whole), found.sorted()


def parse_expression(
    text: str, locate: Locate | None = None
) -> tuple[ast.Expr | None, list[Diagnostic]]:
    """One expression, as on the right of `where`; None when it cannot be read.

    `locate` says where in a file the text stands; without it spans point into the text itself.

    >>> parse_expression("a + 1")[0].op
    '+'
    """
    found = Diagnostics()
    locate = locate or _locate_in(Source("<expression>", text))
    reading = _read(text, 0, len(text), locate, "expression")
    if reading.failure is not None:
        found.add(explain(reading.failure))
    expression = None if reading.tree is None else _build(reading.tree, locate, found)
    return expression, found.sorted()


def parse_template(
    text: str, locate: Locate | None = None
) -> tuple[tuple[str | ast.Expr, ...], list[Diagnostic]]:
    """The texts and expressions of an alert's message, in turn.

    `text` is what stands between the quotes with its escapes already resolved: first the escapes of
    the string, then the braces. `{E}` is an expression; `{{` and `}}` are literal braces.

    >>> parts, found = parse_template("{user}: {{{n + 1}}}")
    >>> [part if isinstance(part, str) else type(part).__name__ for part in parts]
    ['Name', ': {', 'Arithmetic', '}']
    """
    found = Diagnostics()
    parts = _template(text, locate or _locate_in(Source("<text>", text)), found)
    return parts, found.sorted()


# ------------------------------------------------------------------------------ the grammar


class _NamesEverywhere:
    """Makes the contextual lexer try a name in every state. Otherwise `whereas` would be read as
    `where` and `as` in states that take no name."""

    always_accept = ("NAME",)

    def process(self, stream: Iterator[Token]) -> Iterator[Token]:
        return stream


@dataclass(frozen=True)
class _Grammar:
    """The parser and how its keywords and signs are spelt, by the name of their terminal."""

    lark: Lark
    spelling: dict[str, str]


def _lark(text: str, cached: str | None) -> Lark:
    """The parser. Lark keeps the tables it computes in `cached`, with a hash of their grammar."""
    return Lark(
        text,
        parser="lalr",
        lexer="contextual",
        start=["file", "expression"],
        propagate_positions=True,
        maybe_placeholders=True,
        postlex=cast(Any, _NamesEverywhere()),
        cache=cached if cached is not None else False,
    )


def _cache_file() -> str | None:
    """Where the tables are kept between starts: in the user's own cache folder, since what is in
    there is believed. None where there is none."""
    if os.environ.get("CEP_NO_CACHE"):
        return None
    home = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
    folder = os.path.join(home, "cep")
    os.makedirs(folder, mode=0o700, exist_ok=True)
    return os.path.join(folder, f"grammar-{sys.version_info[0]}{sys.version_info[1]}.lark")


@cache
def _grammar() -> _Grammar:
    """Built at the first use, once; a start of the command finds it in the user's cache."""
    text = resources.files("dsl").joinpath("grammar.lark").read_text(encoding="utf-8")
    try:
        lark = _lark(text, _cache_file())
    except (OSError, ValueError, EOFError, AttributeError, ImportError, PickleError):
        lark = _lark(text, None)  # a cache that cannot be used is only a slower start
    spelling = {
        terminal.name: terminal.pattern.value
        for terminal in lark.terminals
        if isinstance(terminal.pattern, PatternStr)
    }
    return _Grammar(lark, spelling)


# ------------------------------------------------------------------------------ reading


@dataclass(frozen=True)
class _Reading:
    """What was read: the raw tree (of the statements before a failure), the failure if there was
    one, where the statement that failed begins, where reading ended, and the comments passed."""

    tree: Tree[Token] | None
    failure: Failure | None
    statement: int
    end: int
    comments: tuple[tuple[int, int], ...]


class _Reader:
    """Feeds the words of a stretch of text to the LALR automaton, one by one."""

    def __init__(self, text: str, start: int, end: int, kind: str) -> None:
        self.grammar = _grammar()
        self.text = text
        self.at = start
        self.end = end
        stretch = cast(Any, TextSlice(text, start, end))
        self.interactive: Any = self.grammar.lark.parse_interactive(stretch, start=kind)
        self.state: Any = self.interactive.parser_state
        self.table: dict[Any, dict[str, tuple[Any, Any]]] = self.state.parse_conf.states
        self.statement = start
        self.before: list[Token] = []
        self.opened: list[Token] = []
        self.comments: list[tuple[int, int]] = []

    def read(self) -> Token | None:
        """Take words up to the end or up to one that does not fit, which is given back; `self.at`
        is then its place. Raises Lark's UnexpectedCharacters where no word begins."""
        try:
            for token in self.interactive.lexer_thread.lex(self.state):
                self.pass_blanks(token.start_pos or 0)
                token = self.fitted(token)
                if not self.fits(token.type):
                    return token
                self.take(token)
        except UnexpectedToken as error:
            stopped: Token = error.token
            self.pass_blanks(stopped.start_pos or 0)
            return stopped
        self.pass_blanks(self.end)
        return None

    def pass_blanks(self, to: int) -> None:
        """Move on over blanks and comments; the comments are kept."""
        while (sign := self.text.find("#", self.at, to)) >= 0:
            line_end = self.text.find("\n", sign, to)
            self.at = to if line_end < 0 else line_end
            self.comments.append((sign, self.at))
        self.at = to

    def fitted(self, token: Token) -> Token:
        """The token, or if a keyword cannot continue here and a name can, a name."""
        if token.type == "NAME" or not (token.value.isidentifier() and token.value.isascii()):
            return token
        if self.fits(token.type) or not self.fits("NAME"):
            return token
        return Token.new_borrow_pos("NAME", token.value, token)

    def fits(self, terminal: str) -> bool:
        """Whether the automaton, after whatever it reduces, can take the terminal."""
        stack: list[Any] | None = None
        state = self.state.state_stack[-1]
        while True:
            action = self.table[state].get(terminal)
            if action is None:
                return False
            if action[0] is Shift:
                return True
            rule = action[1]
            if stack is None:
                stack = list(self.state.state_stack)
            if rule.expansion:
                del stack[-len(rule.expansion) :]
            state = self.table[stack[-1]][rule.origin.name][1]
            stack.append(state)
            if terminal == "$END" and state == self.state.parse_conf.end_state:
                return True

    def take(self, token: Token) -> None:
        self.state.feed_token(token)
        self.before = [*self.before[-4:], token]
        self.at = token.end_pos or 0
        if token.value in ("{", "(", "["):
            self.opened.append(token)
        elif token.value in ("}", ")", "]") and self.opened:
            self.opened.pop()
        if len(self.state.state_stack) == 3:  # start, statements, and the first word of another
            self.statement = token.start_pos or 0

    def finish(self) -> Tree[Token] | None:
        """The tree, if the text may end here; else that of the whole statements so far."""
        if self.fits("$END"):
            return cast("Tree[Token]", self.interactive.feed_eof())
        first = self.state.value_stack[0] if self.state.value_stack else None
        if isinstance(first, Tree) and first.data == "statements":
            return first
        return None

    def failure(self, locate: Locate, found: Token | None, ended: bool) -> Failure:
        state = self.state.state_stack[-1]
        expected = {name for name in self.table[state] if name.isupper() or name == "$END"}
        return Failure(
            self.text,
            locate,
            self.at,
            cast("Word | None", found),
            ended,
            frozenset(name for name in expected if self.fits(name)),
            cast("tuple[Word, ...]", tuple(self.before)),
            cast("tuple[Word, ...]", tuple(self.opened)),
            self.grammar.spelling,
        )


def _read(
    text: str, start: int, end: int, locate: Locate, kind: str, closed_by: str | None = None
) -> _Reading:
    """Read from `start` to `end` as a file or as an expression, which a `closed_by` may end."""
    reader = _Reader(text, start, end, kind)
    try:
        stopped = reader.read()
        closed = stopped is not None and stopped.value == closed_by and not reader.opened
        ended = stopped is None or closed
        failed = not (ended and reader.fits("$END"))
    except UnexpectedCharacters as error:
        reader.pass_blanks(error.pos_in_stream or 0)
        stopped, ended, failed = None, False, True
    failure = reader.failure(locate, None if ended else stopped, ended) if failed else None
    tree = reader.finish()
    return _Reading(tree, failure, reader.statement, reader.at, tuple(reader.comments))


# ------------------------------------------------------------------------------ statements

_KEYWORDS = "stream|list|table|param|def|include|rule|test"
_AT_MARGIN = re.compile(rf"^(?:{_KEYWORDS})[ \t]+[\"'`A-Za-z_]", re.MULTILINE)
_LANDMARK = re.compile(
    r"\"(?:\\.|[^\"\\\n])*\"|'(?:\\.|[^'\\\n])*'|#[^\n]*|[{}]"
    rf"|^[ \t]*(?P<statement>(?:{_KEYWORDS})(?=[ \t]+[\"'`A-Za-z_]))",
    re.MULTILINE,
)
_CLOSERS = re.compile(r"(?:\s|#[^\n]*|\})*")
"""Braces that close nothing: what follows a statement whose opening brace was not understood."""


def _read_statements(text: str, locate: Locate) -> Iterator[_Reading]:
    """Read the file; after each failure go on with the next statement."""
    at: int | None = 1 if text.startswith("\ufeff") else 0
    while at is not None:
        reading = _read(text, at, len(text), locate, "file")
        if reading.failure is None:
            yield reading
            return
        swallowed = _AT_MARGIN.search(text, reading.statement + 1)
        if swallowed is not None and swallowed.start() <= reading.end:
            # A statement at the margin begins inside this one: what failed is what it ends.
            yield _read(text, at, swallowed.start(), locate, "file")
            at = swallowed.start()
        else:
            yield reading
            at = _next_statement(text, reading.failure)


def _next_statement(text: str, failure: Failure) -> int | None:
    """Where to go on: behind the brace that ends the broken statement, or where another begins, at
    the margin or at a line's start outside all braces."""
    depth = sum(1 for word in failure.opened if word == "{")
    for mark in _LANDMARK.finditer(text, failure.start):
        start = mark.start("statement")
        if start > failure.start and (depth == 0 or start == mark.start()):
            return start
        if mark[0] == "{":
            depth += 1
        elif mark[0] == "}":
            depth -= 1
            if depth <= 0:
                return _CLOSERS.match(text, mark.end()).end()  # type: ignore[union-attr]
    return None


# ------------------------------------------------------------------------------ templates


def _template(text: str, locate: Locate, found: Diagnostics) -> tuple[str | ast.Expr, ...]:
    """See `parse_template`."""
    parts: list[str | ast.Expr] = []
    plain: list[str] = []
    at = 0
    while at < len(text):
        char = text[at]
        if char not in "{}":
            plain.append(char)
            at += 1
        elif text.startswith(char * 2, at):
            plain.append(char)
            at += 2
        elif char == "}":
            place = locate(at, at + 1)
            found.error("E012", place, "this `}` closes nothing", help="for a brace, write `}}`")
            at += 1
        else:
            if plain:
                parts.append("".join(plain))
                plain = []
            expression, at = _hole(text, at, locate, found)
            parts += expression
    if plain:
        parts.append("".join(plain))
    return tuple(parts)


def _hole(text: str, start: int, locate: Locate, found: Diagnostics) -> tuple[list[ast.Expr], int]:
    """The expression of the `{` at `start`, if it can be read, and where the text goes on."""
    close = text.find("}", start)
    if close < 0:
        found.error(
            "E012",
            locate(start, start + 1),
            "this `{` is never closed",
            help="an expression ends with `}`; for a brace, write `{{`",
        )
        return [], len(text)
    if not text[start + 1 : close].strip():
        found.error(
            "E012",
            locate(start, close + 1),
            "nothing stands between these braces",
            help="put an expression there; for braces, write `{{}}`",
        )
        return [], close + 1
    reading = _read(text, start + 1, len(text), locate, "expression", closed_by="}")
    if reading.failure is not None:
        found.add(explain(reading.failure))
        close = text.find("}", reading.end)
        return [], len(text) if close < 0 else close + 1
    if reading.end >= len(text):
        place = locate(start, start + 1)
        found.error("E012", place, "this `{` is never closed", help="for a brace, write `{{`")
        return [], len(text)
    expression = None if reading.tree is None else _build(reading.tree, locate, found)
    return ([] if expression is None else [expression]), reading.end + 1


# ------------------------------------------------------------------------------ places


def _build(tree: Tree[Token], locate: Locate, found: Diagnostics) -> Any:
    """Statements or an expression from the raw tree."""
    if tree.data == "file":
        tree = cast("Tree[Token]", tree.children[0])

    def read_template(text: str, inside: Locate) -> tuple[str | ast.Expr, ...]:
        return _template(text, inside, found)

    return build(cast(Any, tree), locate, read_template, found)


def _locate_in(source: Source) -> Locate:
    return lambda start, end: Span(source, start, end)


def _not_text(source: Source, found: Diagnostics) -> None:
    """One message for a binary file instead of hundreds."""
    at = source.text.index("\0")
    found.error(
        "E013",
        Span(source, at, at + 1),
        "there is a NUL character here: this is not a text file",
        help="rule files are UTF-8 text; save it as UTF-8 (not UTF-16) and try again",
    )
