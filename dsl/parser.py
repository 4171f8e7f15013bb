"""Rule text to `dsl.ast`, with everything that is wrong with it.

In comes a `Source`, out come the tree of all statements that can be read and the findings; no text
makes it raise. The grammar is in `grammar.lark`, worked out in `dsl.tables`; here it is driven word
by word, for four reasons: a keyword that cannot continue is turned back into a name, a failure is
seen with the words that would have been right (`dsl.syntax_errors` puts it in the user's words),
reading goes on with the next clause or statement, so that three mistakes give three messages, and a
statement is built as soon as it is whole, so that ten thousand rules never stand in memory raw.
"""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from typing import Any, cast

from dsl import ast
from dsl.builder import Locate, build
from dsl.diagnostics import Diagnostic, Diagnostics
from dsl.raw import RawNode, Word
from dsl.source import Source, Span
from dsl.syntax_errors import Failure, explain
from dsl.tables import END, Rule, Scanner, tables


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

    def take(tree: RawNode) -> None:
        statement = _build(tree, locate, found)
        if statement is not None:
            statements.append(statement)

    for reader in _read_statements(source.text, locate, take):
        if reader.failure is not None:
            found.add(explain(reader.failure))
        for start, end in reader.comments:
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
    reader = _read(text, 0, len(text), locate, "expression")
    if reader.failure is not None:
        found.add(explain(reader.failure))
    tree = reader.finish()
    expression = None if tree is None else _build(tree, locate, found)
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


# ------------------------------------------------------------------------------ reading


Take = Callable[[RawNode], None]
"""What is done with each whole statement."""

Steps = Sequence[tuple[Rule, int]]
"""Rules that are complete at a word, each with the state that the automaton then goes to."""


class _Reader:
    """Feeds the words of a stretch of text to the LALR automaton, one by one.

    Three stacks grow and shrink together: states, values (words and raw nodes), and the places in
    the text that the values take up (None: no place). The bottom state has no value. `failure` is
    what stopped it, `statement` where the last statement begins, `comments` those that were passed.
    """

    def __init__(self, text: str, start: int, end: int, kind: str, take: Take) -> None:
        self.tables = tables()
        self.text = text
        self.at = start
        self.end = end
        self.take_statement = take
        first, self.last = self.tables.starts[kind]
        self.states = [first]
        self.values: list[Any] = []
        self.places: list[tuple[int, int] | None] = []
        self.statement = start
        self.before: deque[Word] = deque(maxlen=5)
        self.opened: list[Word] = []
        self.comments: list[tuple[int, int]] = []
        self.unreadable = False
        self.failure: Failure | None = None

    def enter_rule(self, opener: Word) -> None:
        """Stand behind the brace that opens a rule. What comes is read for its mistakes: the rule
        itself is broken and is not taken."""
        head = _Reader("rule r {", 0, len("rule r {"), "file", self.take_statement)
        head.read()
        self.states, self.values, self.places = head.states, head.values, head.places
        self.opened = [opener]
        take, broken = self.take_statement, [True]

        def take_others(statement: RawNode) -> None:
            if broken:
                broken.clear()
            else:
                take(statement)

        self.take_statement = take_others

    def read(self) -> Word | None:
        """Take words up to the end or up to one that does not fit, which is given back; `self.at`
        is then its place. `self.unreadable` tells that no word of the language begins there."""
        states, tables, end = self.states, self.tables, self.end
        while True:
            self.pass_blanks()
            if self.at >= end:
                return None
            word = self.word(tables.scanner(states[-1]))
            if word is None:
                word = self.word(tables.scanner(-1))
                self.unreadable = word is None
                return word
            steps = self.fitted(word)
            if steps is None:
                return word
            self.take(word, steps)

    def pass_blanks(self) -> None:
        """Move on over blanks and comments; the comments are kept."""
        found = self.tables.blank(self.text, self.at, self.end)
        to = self.at if found is None else found.end()
        while (sign := self.text.find("#", self.at, to)) >= 0:
            line_end = self.text.find("\n", sign, to)
            self.at = to if line_end < 0 else line_end
            self.comments.append((sign, self.at))
        self.at = to

    def word(self, scanner: Scanner) -> Word | None:
        """The word that begins here, as some states read it."""
        found = scanner.match(self.text, self.at, self.end)
        if found is None:
            return None
        word = Word(found[0])
        kind = cast(str, found.lastgroup)
        keywords = scanner.unless.get(kind)
        word.type = kind if keywords is None else keywords.get(found[0], kind)
        word.start_pos, word.end_pos = found.span()
        return word

    def fitted(self, word: Word) -> Steps | None:
        """How the automaton can take the word. A keyword that cannot continue here is a name, if a
        name can."""
        steps = self.steps(word.type)
        if steps is None and word.type != "NAME" and word.isidentifier() and word.isascii():
            steps = self.steps("NAME")
            if steps is not None:
                word.type = "NAME"
        return steps

    def steps(self, terminal: str) -> Steps | None:
        """The rules that are complete when the terminal comes; None when it does not fit. Nothing
        changes: a word that does not fit is found before anything is made of those before it."""
        actions, rules, states = self.tables.actions, self.tables.rules, self.states
        action = actions[states[-1]].get(terminal)
        if action is None or action >= 0:
            return None if action is None else ()
        steps: list[tuple[Rule, int]] = []
        depth = len(states)
        pushed: list[int] = []
        while action < 0:
            rule = rules[~action]
            size, over = rule.size, len(pushed) - rule.size
            if over < 0:
                depth += over
            if size:
                del pushed[max(over, 0) :]
            below = pushed[-1] if pushed else states[depth - 1]
            state = actions[below][rule.origin]
            if rule.passes:
                state = self.tables.passed(below, state, terminal)
            pushed.append(state)
            steps.append((rule, state))
            if terminal == END and state == self.last:
                break
            action = actions[state].get(terminal)
            if action is None:
                return None
        return steps

    def take(self, word: Word, steps: Steps) -> None:
        states = self.states
        for rule, state in steps:
            if rule.passes:
                states[-1] = state
            else:
                self.complete(rule, state)
        states.append(self.tables.actions[states[-1]][word.type])
        self.values.append(word)
        self.places.append((word.start_pos, word.end_pos))
        self.before.append(word)
        self.at = word.end_pos
        if word in ("{", "(", "["):
            self.opened.append(word)
        elif word in ("}", ")", "]") and self.opened:
            self.opened.pop()
        if len(states) == 3:  # start, statements, and the first word of another
            self.statement = word.start_pos

    def complete(self, rule: Rule, state: int) -> None:
        """Put a node in the place of what it is made of."""
        below = len(self.values) - rule.size
        values, places = self.values[below:], self.places[below:]
        del self.states[below + 1 :], self.values[below:], self.places[below:]
        place = places[0] if places else None
        if len(places) > 1:
            taken = [place for place in places if place is not None]
            place = (taken[0][0], taken[-1][1]) if taken else None
        value = self.made(rule, values, place)
        if value.__class__ is Word:
            place = (value.start_pos, value.end_pos)
        self.states.append(state)
        self.values.append(value)
        self.places.append(place)

    def made(self, rule: Rule, children: list[Any], place: tuple[int, int] | None) -> Any:
        kept = children
        if rule.kept is not None:
            kept = []
            for at, inlined, gap in rule.kept:
                if gap:
                    kept += [None] * gap
                if not inlined:
                    kept.append(children[at])
                elif kept:
                    kept += children[at].children
                else:
                    kept = children[at].children  # not copied: a long list grows item by item
            if rule.tail:
                kept += [None] * rule.tail
        if rule.origin == "statements":
            if kept:
                statements, statement = kept
                self.take_statement(statement)
                return statements
        elif rule.single and len(kept) == 1:
            return kept[0]
        start, end = place or (-1, -1)
        return RawNode(rule.name, kept, start, end)

    def finish(self) -> RawNode | None:
        """The tree, if the text may end here. A last statement that is whole is taken."""
        steps = self.steps(END)
        if steps is None:
            return None
        for rule, state in steps:
            self.complete(rule, state)
        return cast(RawNode, self.values[-1])

    def forget(self, at: int) -> None:
        """What was read from this place on will be read again."""
        self.failure = None
        self.comments = [comment for comment in self.comments if comment[0] < at]

    def failed(self, locate: Locate, found: Word | None, ended: bool) -> Failure:
        expected = self.tables.actions[self.states[-1]]
        return Failure(
            self.text,
            locate,
            self.at,
            found,
            ended,
            frozenset(
                name
                for name in expected
                if (name.isupper() or name == END) and self.steps(name) is not None
            ),
            tuple(self.before),
            tuple(self.opened),
            self.tables.spelling,
        )


def _read(
    text: str,
    start: int,
    end: int,
    locate: Locate,
    kind: str,
    *,
    take: Take = lambda statement: None,
    closed_by: str | None = None,
    inside: Word | None = None,
) -> _Reader:
    """Read from `start` to `end` as a file or as an expression, which a `closed_by` may end. Each
    whole statement of a file is given to `take`. `inside`: the brace of a broken rule, in which the
    text begins."""
    reader = _Reader(text, start, end, kind, take)
    if inside is not None:
        reader.enter_rule(inside)
    stopped = reader.read()
    closed = stopped is not None and stopped == closed_by and not reader.opened
    ended = (stopped is None or closed) and not reader.unreadable
    if not ended or reader.steps(END) is None:
        reader.failure = reader.failed(locate, None if ended else stopped, ended)
    return reader


# ------------------------------------------------------------------------------ statements

_KEYWORDS = "stream|list|table|param|def|include|rule|test"
_CLAUSES = "on|sequence|all|aggregate|unless|having|skip|alert|emit|dedup|limit|keep|report"
_CLAUSES += "|severity|tags|description|meta"
"""Words with which a clause of a rule begins and that none goes on with."""
_AT_MARGIN = re.compile(rf"^(?:{_KEYWORDS})[ \t]+[\"'`A-Za-z_]", re.MULTILINE)
_LANDMARK = re.compile(
    r"\"(?:\\.|[^\"\\\n])*\"|'(?:\\.|[^'\\\n])*'|#[^\n]*|[{}]"
    rf"|^[ \t]*(?P<statement>(?:{_KEYWORDS})(?=[ \t]+[\"'`A-Za-z_]))"
    rf"|^[ \t]*(?P<clause>(?:{_CLAUSES})(?=[ \t]))",
    re.MULTILINE,
)
_CLOSERS = re.compile(r"(?:\s|#[^\n]*|\})*")
"""Braces that close nothing: what follows a statement whose opening brace was not understood."""


def _read_statements(text: str, locate: Locate, take: Take) -> Iterator[_Reader]:
    """Read the file; after each failure go on with the next clause of the rule, or with the next
    statement."""
    at: int | None = 1 if text.startswith("\ufeff") else 0
    inside: Word | None = None
    while at is not None:
        reader = _read(text, at, len(text), locate, "file", take=take, inside=inside)
        begin, outer = reader.statement, inside if reader.statement == at else None
        at = inside = None
        if reader.failure is not None:
            at, inside = _go_on(text, reader.failure, in_rule=bool(outer) or _is_rule(text, begin))
        swallowed = _AT_MARGIN.search(text, begin + 1)
        if reader.failure is not None and swallowed is not None and swallowed.start() <= reader.at:
            # A statement at the margin begins inside this one: what failed is what it ends.
            reader.forget(begin)
            yield reader
            at, inside = swallowed.start(), None
            reader = _read(text, begin, at, locate, "file", take=take, inside=outer)
        reader.finish()
        yield reader


def _is_rule(text: str, at: int) -> bool:
    return text.startswith("rule", at)


def _go_on(text: str, failure: Failure, in_rule: bool) -> tuple[int | None, Word | None]:
    """Where to go on after a failure, and the brace of the rule if that is inside it."""
    opener = failure.opened[0] if failure.opened else None
    following = _next_statement(text, failure)
    if in_rule and opener is not None and opener == "{":
        clause = _next_clause(text, failure, len(text) if following is None else following)
        if clause is not None:
            return clause, opener
    return following, None


def _next_clause(text: str, failure: Failure, end: int) -> int | None:
    """The next line of the rule that begins with a clause, outside all other braces."""
    depth = sum(1 for word in failure.opened if word == "{")
    for mark in _LANDMARK.finditer(text, failure.start, end):
        if mark.start("clause") > failure.start and depth == 1:
            return mark.start("clause")
        depth += (mark[0] == "{") - (mark[0] == "}")
        if depth <= 0:
            return None
    return None


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
    reader = _read(text, start + 1, len(text), locate, "expression", closed_by="}")
    if reader.failure is not None:
        found.add(explain(reader.failure))
        close = text.find("}", reader.at)
        return [], len(text) if close < 0 else close + 1
    if reader.at >= len(text):
        place = locate(start, start + 1)
        found.error("E012", place, "this `{` is never closed", help="for a brace, write `{{`")
        return [], len(text)
    tree = reader.finish()
    expression = None if tree is None else _build(tree, locate, found)
    return ([] if expression is None else [expression]), reader.at + 1


# ------------------------------------------------------------------------------ places


def _build(tree: RawNode, locate: Locate, found: Diagnostics) -> Any:
    """A statement or an expression from the raw tree."""

    def read_template(text: str, inside: Locate) -> tuple[str | ast.Expr, ...]:
        return _template(text, inside, found)

    return build(tree, locate, read_template, found)


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
