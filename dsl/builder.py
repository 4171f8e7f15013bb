"""From the parser's raw tree to `dsl.ast`.

In comes the tree that the grammar makes (nodes named as in `grammar.lark`, words as leaves), out
come the frozen dataclasses of `dsl.ast`, with findings about what the grammar cannot see: clauses
written twice, chained comparisons, numbers out of range, wrong escapes, nesting without end. The
walk is not recursive, so no text is too deep for it.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Literal, cast

from dsl import ast
from dsl.diagnostics import Diagnostics, Label
from dsl.raw import RawNode, Word
from dsl.source import Span

MAX_DEPTH = 100
"""How deep expressions and groups may nest. Whatever walks the tree later may be recursive."""

MAX_MICROS = 2**62
"""Longest duration in microseconds, so that a time plus a duration always fits in 64 bits."""

Locate = Callable[[int, int], Span]
"""From the offsets of a piece of text to the place in the file where it was written."""

ReadTemplate = Callable[[str, Locate], tuple[str | ast.Expr, ...]]
"""Parses the text of an alert with its `{E}`."""


@dataclass(frozen=True)
class _Clause:
    """A part of a step that may come in any order, before it finds its place."""

    kind: str
    value: Any
    span: Span


_UNITS = {
    "us": 1,
    "ms": 1_000,
    "s": 1_000_000,
    "m": 60_000_000,
    "h": 3_600_000_000,
    "d": 86_400_000_000,
    "w": 604_800_000_000,
}

_ESCAPES = {"n": "\n", "t": "\t", "r": "\r", '"': '"', "'": "'", "\\": "\\"}

_CHAINS = {"sum", "product", "coalesce"}
_NESTING = {"negation", "negative", "compare", "attribute", "index", "call", "array", "and_", "or_"}
_NESTING |= {"one_of", "one_of_branches", "all_of", "repeat", "object_"}
_WHOLE = {"stream", "list_", "table", "param", "def_", "include", "rule", "test"}


def unescape(word: str, locate: Locate, start: int, found: Diagnostics) -> tuple[str, list[int]]:
    """The text that a quoted literal means, and the offset in the file of each of its characters
    (with one more for the end). `start` is the offset of the opening quote."""
    chars: list[str] = []
    offsets: list[int] = []
    at, end = 1, len(word) - 1
    while at < end:
        offsets.append(start + at)
        if word[at] != "\\":
            chars.append(word[at])
            at += 1
            continue
        char, length = _escape(word, at, locate, start, found)
        chars.append(char)
        at += length
    offsets.append(start + end)
    return "".join(chars), offsets


def _escape(word: str, at: int, locate: Locate, start: int, found: Diagnostics) -> tuple[str, int]:
    """The character that the escape at `at` stands for, and the length of the escape."""
    kind = word[at + 1]
    if kind in _ESCAPES:
        return _ESCAPES[kind], 2
    digits = re.compile(r"u([0-9A-Fa-f]{4})").match(word, at + 1)
    if digits is not None:
        char = chr(int(digits[1], 16))
        if not "\ud800" <= char <= "\udfff":
            return char, 6
        found.error(
            "E009",
            locate(start + at, start + at + 6),
            f"`{word[at : at + 6]}` is half of a surrogate pair, not a character",
            help="write the character itself; rule files are UTF-8",
        )
        return "\N{REPLACEMENT CHARACTER}", 6
    found.error(
        "E009",
        locate(start + at, start + at + 2),
        f"unknown escape `\\{kind}`",
        help="known are \\n \\t \\r \\\" \\' \\\\ and \\uXXXX (four hexadecimal digits)"
        if kind == "u"
        else f"for a backslash write `\\\\{kind}`; known are \\n \\t \\r \\\" \\' \\\\ and \\uXXXX",
    )
    return kind, 2


def build(tree: RawNode, locate: Locate, read_template: ReadTemplate, found: Diagnostics) -> Any:
    """The `dsl.ast` form of a raw tree, a statement or an expression. What nests too deep is
    reported and becomes None. O(size of the tree)."""
    builder = _Builder(locate, read_template, found)
    for node in tree.bottom_up():
        children: list[Any] = []
        below = 0
        for child in node.children:
            if child.__class__ is RawNode:
                below = max(below, child.depth)
                child = child.built
            children.append(child)
        node.depth = depth = below + _weight(node)
        if depth > MAX_DEPTH:
            if below <= MAX_DEPTH:
                builder.too_deep(node)
            if node.data in _WHOLE:
                return None
        node.built = getattr(builder, node.data)(node, *children)
    if tree.depth > MAX_DEPTH:
        return None
    if not isinstance(tree.built, ast.Test):
        builder.refuse_objects()
    return tree.built


def _weight(node: RawNode) -> int:
    """How many levels the tree gets deeper by this node: a sum is as deep as it is long."""
    if node.data in _CHAINS:
        return len(node.children) // 2
    return int(node.data in _NESTING)


class _Builder:
    """One method for each rule of the grammar, in its order: the raw node, then its children, which
    are built already (words stay words, what was left out is None)."""

    def __init__(self, locate: Locate, read_template: ReadTemplate, found: Diagnostics) -> None:
        self.locate = locate
        self.read_template = read_template
        self.found = found
        self.objects: list[Span] = []

    # ---------------------------------------------------------------------------- helpers

    def span(self, node: RawNode) -> Span:
        return self.locate(node.start, node.end)

    def place(self, word: Word) -> Span:
        return self.locate(word.start_pos, word.end_pos)

    def too_deep(self, node: RawNode) -> None:
        self.found.error(
            "E011",
            self.span(node),
            f"this is nested more than {MAX_DEPTH} deep",
            help="name a part of it with `def`, or use a `list` and `in`",
        )

    def refuse_objects(self) -> None:
        """Objects in arrays are for the events of tests only."""
        for span in self.objects:
            self.found.error("E001", span, "an object can only stand in the events of a test")

    def ident(self, word: Word) -> ast.Ident:
        """A name from a word that may stand between backticks."""
        quoted = word.startswith("`")
        return ast.Ident(word[1:-1] if quoted else str(word), quoted, span=self.place(word))

    def count(self, word: Word) -> int:
        """A whole number that counts something."""
        if len(word) <= 9:
            return int(word)
        self.found.error("E015", self.place(word), "this number is too large to count with")
        return 1

    def gather(self, node: RawNode, clauses: Sequence[_Clause | ast.By]) -> dict[str, Any]:
        """Clauses in any order, by their keyword; a second one of a kind is an error."""
        values: dict[str, Any] = {}
        spans: dict[str, Span] = {}
        for clause in clauses:
            by = isinstance(clause, ast.By)
            kind = "by" if isinstance(clause, ast.By) else clause.kind
            if kind in values:
                self.twice(kind, clause.span, spans[kind])
                continue
            values[kind] = clause if by else clause.value  # type: ignore[union-attr]
            spans[kind] = clause.span
        return values

    def twice(self, kind: str, second: Span, first: Span) -> None:
        self.found.error(
            "E014",
            second,
            f"`{kind}` is written twice",
            help="join the conditions with `and`" if kind == "where" else "keep one of them",
            labels=[Label(first, f"the first `{kind}`")],
        )

    # ---------------------------------------------------------------------------- 1 statements

    def stream(
        self,
        node: RawNode,
        name: ast.Ident,
        parents: tuple[ast.Ident, ...] | None,
        where: ast.Expr | None,
        block: tuple[ast.StreamClause, ...] | None,
    ) -> ast.Stream:
        clauses = block or ()
        if where is not None:
            clauses = (ast.StreamWhere(where, span=where.span), *clauses)
        return ast.Stream(name, parents or (), clauses, where is not None, span=self.span(node))

    def stream_block(self, node: RawNode, *clauses: Any) -> tuple[Any, ...]:
        return clauses

    def stream_where(self, node: RawNode, condition: ast.Expr) -> ast.StreamWhere:
        return ast.StreamWhere(condition, span=self.span(node))

    def stream_type(self, node: RawNode, path: ast.Path) -> ast.StreamType:
        return ast.StreamType(path, span=self.span(node))

    def stream_time(self, node: RawNode, path: ast.Path, unit: str | None) -> ast.StreamTime:
        return ast.StreamTime(path, unit, span=self.span(node))

    def time_unit(self, node: RawNode, word: Word) -> str:
        return str(word)

    def timezone(self, node: RawNode, zone: ast.Literal) -> ast.StreamTimezone:
        return ast.StreamTimezone(str(zone.value), span=self.span(node))

    def stream_id(self, node: RawNode, path: ast.Path) -> ast.StreamId:
        return ast.StreamId(path, span=self.span(node))

    def stream_delay(self, node: RawNode, duration: ast.Duration) -> ast.StreamDelay:
        return ast.StreamDelay(duration, span=self.span(node))

    def stream_idle(self, node: RawNode, duration: ast.Duration) -> ast.StreamIdle:
        return ast.StreamIdle(duration, span=self.span(node))

    def stream_fields(self, node: RawNode, *fields: ast.SchemaField) -> ast.StreamFields:
        return ast.StreamFields(fields, span=self.span(node))

    def schema_field(
        self, node: RawNode, path: ast.Path, type_: ast.Ident, optional: Word | None
    ) -> ast.SchemaField:
        return ast.SchemaField(path, type_, optional is not None, span=self.span(node))

    def stream_select(self, node: RawNode, assigns: tuple[ast.Assign, ...]) -> ast.StreamSelect:
        return ast.StreamSelect(assigns, span=self.span(node))

    def list_(self, node: RawNode, name: ast.Ident, content: ast.Array | ast.Literal) -> ast.List:
        if isinstance(content, ast.Array):
            return ast.List(name, content, None, span=self.span(node))
        return ast.List(name, None, str(content.value), span=self.span(node))

    def table(
        self,
        node: RawNode,
        name: ast.Ident,
        source: ast.Literal | ast.Ident,
        key: ast.Path,
        ttl: ast.Duration | None,
    ) -> ast.Table:
        span = self.span(node)
        if isinstance(source, ast.Ident):
            return ast.Table(name, None, source, key, ttl, span=span)
        if ttl is not None:
            self.found.error(
                "E001",
                ttl.span,
                "a table from a file has no `ttl`",
                help="rows of a file never expire; only a table from a stream takes `ttl`",
            )
        return ast.Table(name, str(source.value), None, key, span=span)

    def param(self, node: RawNode, name: Word, value: ast.Expr) -> ast.Param:
        return ast.Param(self.ident(name), value, span=self.span(node))

    def def_(
        self,
        node: RawNode,
        name: ast.Ident,
        params: tuple[ast.Ident, ...] | None,
        body: ast.Expr,
    ) -> ast.Def:
        return ast.Def(name, params or (), body, span=self.span(node))

    def include(self, node: RawNode, path: ast.Literal) -> ast.Include:
        return ast.Include(str(path.value), span=self.span(node))

    # ---------------------------------------------------------------------------- 3 rules

    def rule(
        self, node: RawNode, name: ast.Ident, title: ast.Literal | None, *clauses: Any
    ) -> ast.Rule:
        text = None if title is None else str(title.value)
        own = tuple(
            ast.WindowTimezone(clause.zone, span=clause.span)
            if isinstance(clause, ast.StreamTimezone)
            else clause
            for clause in clauses
        )
        return ast.Rule(name, text, own, span=self.span(node))

    def by(self, node: RawNode, *parts: ast.KeyPart) -> ast.By:
        return ast.By(parts, span=self.span(node))

    def key_part(self, node: RawNode, value: ast.Expr, alias: ast.Ident | None) -> ast.KeyPart:
        return ast.KeyPart(value, alias, span=self.span(node))

    def unless(self, node: RawNode, stream: ast.Ident, *clauses: Any) -> ast.Unless:
        return ast.Unless(stream, **self.gather(node, clauses), span=self.span(node))

    def having(self, node: RawNode, condition: ast.Expr) -> ast.Having:
        return ast.Having(condition, span=self.span(node))

    def skip_past_last(self, node: RawNode) -> ast.Skip:
        return ast.Skip("past_last", span=self.span(node))

    def skip_to_next(self, node: RawNode) -> ast.Skip:
        return ast.Skip("to_next", span=self.span(node))

    def skip_to_first(self, node: RawNode, step: ast.Ident) -> ast.Skip:
        return ast.Skip("to_first", step, span=self.span(node))

    def skip_to_last(self, node: RawNode, step: ast.Ident) -> ast.Skip:
        return ast.Skip("to_last", step, span=self.span(node))

    def skip_nothing(self, node: RawNode) -> ast.Skip:
        return ast.Skip("nothing", span=self.span(node))

    def start(self, node: RawNode, kind: str) -> ast.Start:
        return ast.Start(kind, span=self.span(node))

    def start_kind(self, node: RawNode, word: Word) -> str:
        return str(word)

    def keys_from(self, node: RawNode, name: ast.Ident) -> ast.KeysFrom:
        return ast.KeysFrom(name, span=self.span(node))

    def alert(
        self, node: RawNode, message: Word | None, assigns: tuple[ast.Assign, ...] | None
    ) -> ast.Alert:
        if message is None:
            return ast.Alert(None, (), assigns or (), span=self.span(node))
        text, offsets = unescape(message, self.locate, message.start_pos, self.found)

        def inside(start: int, end: int) -> Span:
            return self.locate(offsets[start], offsets[end])

        parts = self.read_template(text, inside)
        return ast.Alert(text, parts, assigns or (), span=self.span(node))

    def emit(
        self, node: RawNode, stream: ast.Ident, assigns: tuple[ast.Assign, ...] | None
    ) -> ast.Emit:
        return ast.Emit(stream, assigns or (), span=self.span(node))

    def dedup(
        self, node: RawNode, by: tuple[ast.Expr, ...] | None, duration: ast.Duration
    ) -> ast.Dedup:
        return ast.Dedup(by or (), duration, span=self.span(node))

    def on_timeout(self, node: RawNode, *actions: Any) -> ast.OnTimeout:
        return ast.OnTimeout(actions, span=self.span(node))

    def limit(self, node: RawNode, runs: Word) -> ast.Limit:
        return ast.Limit(self.count(runs), span=self.span(node))

    def keep(self, node: RawNode, duration: ast.Duration) -> ast.Keep:
        return ast.Keep(duration, span=self.span(node))

    def report(self, node: RawNode, kind: str) -> ast.Report:
        return ast.Report(kind, span=self.span(node))

    def report_kind(self, node: RawNode, *words: Word) -> str:
        return "_".join(words)

    def severity(self, node: RawNode, level: str) -> ast.Severity:
        return ast.Severity(level, span=self.span(node))

    def level(self, node: RawNode, word: Word) -> str:
        return str(word)

    def tags(self, node: RawNode, *tags: Word) -> ast.Tags:
        return ast.Tags(tuple(self.tag(tag) for tag in tags), span=self.span(node))

    def tag(self, word: Word) -> ast.Path:
        span = self.place(word)
        parts = (ast.Ident(part, span=span) for part in word.split("."))
        return ast.Path(tuple(parts), span=span)

    def description(self, node: RawNode, text: ast.Literal) -> ast.Description:
        return ast.Description(str(text.value), span=self.span(node))

    def meta(self, node: RawNode, name: Word, value: ast.Expr) -> ast.Meta:
        return ast.Meta(self.ident(name), value, span=self.span(node))

    def assigns(self, node: RawNode, *assigns: ast.Assign) -> tuple[ast.Assign, ...]:
        return assigns

    def assign(self, node: RawNode, name: Word, value: ast.Expr) -> ast.Assign:
        return ast.Assign(self.ident(name), value, span=self.span(node))

    def on(
        self, node: RawNode, label: ast.Ident | None, stream: ast.Ident, where: ast.Expr | None
    ) -> ast.On:
        return ast.On(stream, label, where, span=self.span(node))

    def sequence(
        self,
        node: RawNode,
        mode: Literal["strict", "any"] | None,
        within: ast.Duration | None,
        *nodes: Any,
    ) -> ast.Sequence:
        return ast.Sequence(nodes, mode, within, span=self.span(node))

    def sequence_mode(self, node: RawNode, word: Word) -> Literal["strict", "any"]:
        return "strict" if word == "strict" else "any"

    def all_(self, node: RawNode, within: ast.Duration | None, *parts: Any) -> ast.All:
        return ast.All(parts, within, span=self.span(node))

    def some_of(
        self, node: RawNode, count: Word, within: ast.Duration | None, *parts: Any
    ) -> ast.All:
        return ast.All(parts, within, self.count(count), span=self.span(node))

    # ---------------------------------------------------------------------------- 4 sequences

    def step(
        self,
        node: RawNode,
        mode: str | None,
        label: ast.Ident | None,
        stream: ast.Ident,
        quantifier: ast.Quantifier | None,
        *clauses: Any,
    ) -> ast.Step:
        parts = self.gather(node, clauses)
        if stream.span.text == "not":
            self.found.error(
                "E010",
                stream.span,
                "`not` cannot stand here",
                help="for what must not come write `no`; a stream of that name stands between "
                "backticks",
            )
        return ast.Step(stream, label, mode, quantifier, **parts, span=self.span(node))

    def mode(self, node: RawNode, word: Word) -> str:
        return str(word)

    def label(self, node: RawNode, word: Word) -> ast.Ident:
        return self.ident(word)

    def where(self, node: RawNode, condition: ast.Expr) -> _Clause:
        return _Clause("where", condition, self.span(node))

    def within(self, node: RawNode, duration: ast.Duration) -> _Clause:
        return _Clause("within", duration, self.span(node))

    def after(self, node: RawNode, duration: ast.Duration) -> _Clause:
        return _Clause("after", duration, self.span(node))

    def until(self, node: RawNode, stream: ast.Ident, where: ast.Expr | None) -> _Clause:
        span = self.span(node)
        return _Clause("until", ast.Until(stream, where, span=span), span)

    def one_or_more(self, node: RawNode, plus: Word, lazy: Word | None) -> ast.Quantifier:
        return self.quantifier(node, 1, None, "+", lazy)

    def any_number(self, node: RawNode, star: Word, lazy: Word | None) -> ast.Quantifier:
        return self.quantifier(node, 0, None, "*", lazy)

    def optional(self, node: RawNode, question: Word) -> ast.Quantifier:
        return self.quantifier(node, 0, 1, "?", None)

    def optional_reluctant(self, node: RawNode, both: Word) -> ast.Quantifier:
        return self.quantifier(node, 0, 1, "?", both)

    def exactly(self, node: RawNode, count: Word, lazy: Word | None) -> ast.Quantifier:
        number = self.count(count)
        return self.quantifier(node, number, number, f"{{{number}}}", lazy)

    def between(
        self, node: RawNode, low: Word, high: Word | None, lazy: Word | None
    ) -> ast.Quantifier:
        minimum = self.count(low)
        maximum = None if high is None else self.count(high)
        written = f"{{{minimum},{'' if maximum is None else maximum}}}"
        return self.quantifier(node, minimum, maximum, written, lazy)

    def quantifier(
        self, node: RawNode, minimum: int, maximum: int | None, written: str, lazy: Word | None
    ) -> ast.Quantifier:
        span = self.span(node)
        if maximum == 0:
            self.found.error("E016", span, "a step that takes no event is no step")
        elif maximum is not None and maximum < minimum:
            self.found.error(
                "E016",
                span,
                f"at least {minimum} and at most {maximum} cannot both be",
                help=f"write `{{{maximum},{minimum}}}`",
            )
        written += "?" if lazy is not None else ""
        return ast.Quantifier(minimum, maximum, lazy is None, written, span=span)

    def absent(self, node: RawNode, stream: ast.Ident, *clauses: Any) -> ast.Absent:
        return ast.Absent(stream, **self.gather(node, clauses), span=self.span(node))

    def one_of(self, node: RawNode, mode: str | None, *nodes: Any) -> ast.OneOf:
        return ast.OneOf(tuple((n,) for n in nodes), False, mode, span=self.span(node))

    def one_of_branches(self, node: RawNode, mode: str | None, *branches: Any) -> ast.OneOf:
        return ast.OneOf(branches, True, mode, span=self.span(node))

    def branch(self, node: RawNode, *nodes: Any) -> tuple[Any, ...]:
        return nodes

    def all_of(
        self, node: RawNode, mode: str | None, within: ast.Duration | None, *parts: Any
    ) -> ast.AllOf:
        return ast.AllOf(parts, within, mode, span=self.span(node))

    def repeat(
        self, node: RawNode, mode: str | None, quantifier: ast.Quantifier, *body: Any
    ) -> ast.Repeat:
        return ast.Repeat(quantifier, body, mode, span=self.span(node))

    # ---------------------------------------------------------------------------- 6 aggregates

    def aggregate(
        self,
        node: RawNode,
        stream: ast.Ident,
        where: ast.Expr | None,
        window: ast.Window,
        *fields: ast.AggregateField,
    ) -> ast.Aggregate:
        return ast.Aggregate(stream, where, window, fields, span=self.span(node))

    def sliding(self, node: RawNode, size: ast.Duration) -> ast.Window:
        return ast.Window("sliding", size, span=self.span(node))

    def sliding_count(self, node: RawNode, count: Word) -> ast.Window:
        return ast.Window("sliding_count", count=self.count(count), span=self.span(node))

    def tumbling(self, node: RawNode, size: ast.Duration) -> ast.Window:
        return ast.Window("tumbling", size, span=self.span(node))

    def hopping(self, node: RawNode, size: ast.Duration, step: ast.Duration) -> ast.Window:
        return ast.Window("hopping", size, step=step, span=self.span(node))

    def session(self, node: RawNode, gap: ast.Duration, maximum: ast.Duration | None) -> ast.Window:
        return ast.Window("session", gap, maximum=maximum, span=self.span(node))

    def aggregate_field(
        self, node: RawNode, name: Word, value: ast.Expr, where: ast.Expr | None
    ) -> ast.AggregateField:
        return ast.AggregateField(self.ident(name), value, where, span=self.span(node))

    # ---------------------------------------------------------------------------- 7 expressions

    def expressions(self, node: RawNode, *items: Any) -> tuple[Any, ...]:
        return items

    def or_(self, node: RawNode, *parts: Any) -> ast.Or:
        return ast.Or(parts, span=self.span(node))

    def and_(self, node: RawNode, *parts: Any) -> ast.And:
        return ast.And(parts, span=self.span(node))

    def negation(self, node: RawNode, *children: Any) -> ast.Not:
        return ast.Not(children[-1], span=self.span(node))

    def compare(self, node: RawNode, left: ast.Expr, *comparisons: _Clause) -> ast.Expr:
        if len(comparisons) > 1:
            self.chained(node, comparisons)
        span = self.span(node)
        result: ast.Expr = left
        for clause in comparisons:
            if isinstance(clause.value, str):
                result = ast.Is(result, clause.value, clause.kind == "is not", span=span)
            else:
                result = ast.Compare(clause.kind, result, clause.value, span=span)
        return result

    def chained(self, node: RawNode, comparisons: tuple[_Clause, ...]) -> None:
        """`a < b < c`: show the form with `and`."""
        span = self.span(node)
        left = span.source.text[span.start : comparisons[0].span.start].strip()
        parts = []
        for clause in comparisons:
            parts.append(f"{left} {clause.span.text}")
            left = clause.span.text[len(clause.kind) :].strip()
        self.found.error(
            "E005", span, "comparisons cannot be chained", help=f"write `{' and '.join(parts)}`"
        )

    def compare_sign(self, node: RawNode, sign: Word, right: ast.Expr) -> _Clause:
        return _Clause(str(sign), right, self.span(node))

    def compare_word(
        self, node: RawNode, negated: Word | None, operator: str, right: ast.Expr
    ) -> _Clause:
        return _Clause(operator if negated is None else f"not {operator}", right, self.span(node))

    def compare_is(self, node: RawNode, negated: Word | None, what: str) -> _Clause:
        return _Clause("is" if negated is None else "is not", what, self.span(node))

    def word_operator(self, node: RawNode, word: Word) -> str:
        return str(word)

    def is_what(self, node: RawNode, word: Word) -> str:
        return str(word)

    def coalesce(self, node: RawNode, left: ast.Expr, *rest: Any) -> ast.Expr:
        return self.fold(node, left, rest)

    def sum(self, node: RawNode, left: ast.Expr, *rest: Any) -> ast.Expr:
        return self.fold(node, left, rest)

    def product(self, node: RawNode, left: ast.Expr, *rest: Any) -> ast.Expr:
        return self.fold(node, left, rest)

    def fold(self, node: RawNode, left: ast.Expr, rest: tuple[Any, ...]) -> ast.Expr:
        """`a - b - c` as `(a - b) - c`."""
        start = self.span(node)
        for operator, right in zip(rest[::2], rest[1::2], strict=True):
            left = ast.Arithmetic(str(operator), left, right, span=start.to(right.span))
        return left

    def negative(self, node: RawNode, minus: Word, operand: ast.Expr) -> ast.Negative:
        return ast.Negative(operand, span=self.span(node))

    def attribute(self, node: RawNode, value: ast.Expr, name: ast.Ident) -> ast.Attribute:
        return ast.Attribute(value, name, span=self.span(node))

    def index(self, node: RawNode, value: ast.Expr, index: ast.Expr) -> ast.Index:
        return ast.Index(value, index, span=self.span(node))

    def name_value(self, node: RawNode, ident: ast.Ident) -> ast.Name:
        return ast.Name(ident, span=ident.span)

    def call(
        self, node: RawNode, function: ast.Ident, arguments: tuple[ast.Argument, ...] | None
    ) -> ast.Call:
        return ast.Call(function, arguments or (), span=self.span(node))

    def arguments(self, node: RawNode, *arguments: ast.Argument) -> tuple[ast.Argument, ...]:
        return arguments

    def argument(self, node: RawNode, distinct: Word | None, value: ast.Expr) -> ast.Argument:
        return ast.Argument(value, distinct is not None, span=self.span(node))

    def integer(self, node: RawNode, word: Word) -> ast.Literal:
        return self.number(word, int)

    def real(self, node: RawNode, word: Word) -> ast.Literal:
        return self.number(word, float)

    def number(self, word: Word, convert: Callable[[str], int | float]) -> ast.Literal:
        """A number; one beyond what a float can hold would break arithmetic later."""
        span = self.place(word)
        if math.isinf(float(word)):
            self.found.error("E015", span, "this number is too large", help="at most 1.79e308")
            return ast.Literal(0, str(word), span=span)
        return ast.Literal(convert(word), str(word), span=span)

    def string_value(self, node: RawNode, literal: ast.Literal) -> ast.Literal:
        return literal

    def duration_value(self, node: RawNode, duration: ast.Duration) -> ast.DurationLiteral:
        return ast.DurationLiteral(duration, span=duration.span)

    def true(self, node: RawNode) -> ast.Literal:
        return ast.Literal(True, span=self.span(node))

    def false(self, node: RawNode) -> ast.Literal:
        return ast.Literal(False, span=self.span(node))

    def null(self, node: RawNode) -> ast.Literal:
        return ast.Literal(None, span=self.span(node))

    def array(self, node: RawNode, *items: ast.Expr | ast.Object | None) -> ast.Array:
        given = tuple(item for item in items if item is not None)
        self.objects += [item.span for item in given if isinstance(item, ast.Object)]
        return ast.Array(cast("tuple[ast.Expr, ...]", given), span=self.span(node))

    def regex(self, node: RawNode, word: Word) -> ast.Regex:
        end = word.rindex("/")
        flags = word[end + 1 :]
        if flags not in ("", "i"):
            self.found.error(
                "E017",
                self.locate(word.start_pos + end + 1, word.end_pos),
                f"unknown flags `{flags}` of a regular expression",
                help="the only flag is `i` (upper and lower case are the same)",
            )
        pattern = re.sub(r"\\(.)", lambda m: "/" if m[1] == "/" else m[0], word[1:end])
        return ast.Regex(pattern, flags, span=self.place(word))

    # ---------------------------------------------------------------------------- 9 tests

    def test(
        self, node: RawNode, rules: tuple[ast.Ident, ...], name: ast.Literal, *steps: Any
    ) -> ast.Test:
        return ast.Test(rules, str(name.value), steps, span=self.span(node))

    def test_event(
        self,
        node: RawNode,
        when: tuple[str, ast.Duration] | None,
        stream: ast.Ident,
        fields: ast.Object,
        times: Word | None,
        every: ast.Duration | None,
    ) -> ast.TestEvent:
        kind, offset = when or (None, None)
        count = 1 if times is None else self.count(times)
        return ast.TestEvent(stream, fields, kind, offset, count, every, span=self.span(node))

    def test_when(self, node: RawNode, kind: str, offset: ast.Duration) -> tuple[str, ast.Duration]:
        return kind, offset

    def test_when_kind(self, node: RawNode, word: Word) -> str:
        return str(word)

    def test_advance(self, node: RawNode, duration: ast.Duration) -> ast.TestAdvance:
        return ast.TestAdvance(duration, span=self.span(node))

    def expect_nothing(self, node: RawNode, at: ast.Duration | None) -> ast.TestExpect:
        return ast.TestExpect("nothing", at=at, span=self.span(node))

    def test_expect(
        self,
        node: RawNode,
        at: ast.Duration | None,
        kind: str | None,
        rule: ast.Ident,
        fields: ast.Object | None,
    ) -> ast.TestExpect:
        return ast.TestExpect(kind or "match", rule, fields, at, span=self.span(node))

    def test_at(self, node: RawNode, duration: ast.Duration) -> ast.Duration:
        return duration

    def expect_kind(self, node: RawNode, word: Word) -> str:
        return str(word)

    def object_(self, node: RawNode, *pairs: ast.Pair | None) -> ast.Object:
        given = tuple(pair for pair in pairs if pair is not None)
        return ast.Object(given, span=self.span(node))

    def pair(
        self, node: RawNode, key: ast.Path | ast.Literal, value: ast.Expr | ast.Object
    ) -> ast.Pair:
        if isinstance(key, ast.Path):
            return ast.Pair(key, value, span=self.span(node))
        ident = ast.Ident(str(key.value), True, span=key.span)
        return ast.Pair(ast.Path((ident,), span=key.span), value, True, span=self.span(node))

    # ---------------------------------------------------------------------------- words

    def names(self, node: RawNode, *names: ast.Ident) -> tuple[ast.Ident, ...]:
        return names

    def path(self, node: RawNode, *parts: ast.Ident) -> ast.Path:
        return ast.Path(parts, span=self.span(node))

    def name(self, node: RawNode, word: Word) -> ast.Ident:
        return self.ident(word)

    def string(self, node: RawNode, word: Word) -> ast.Literal:
        text, _ = unescape(word, self.locate, word.start_pos, self.found)
        return ast.Literal(text, span=self.place(word))

    def duration(self, node: RawNode, word: Word) -> ast.Duration:
        span = self.place(word)
        micros = _micros(word)
        if micros.denominator != 1:
            self.found.error(
                "E015", span, "this duration is finer than a microsecond", help="write it in `us`"
            )
        elif micros > MAX_MICROS:
            self.found.error(
                "E015", span, "this duration is too long", help="at most 146,000 years"
            )
        else:
            return ast.Duration(int(micros), str(word), span=span)
        return ast.Duration(1, str(word), span=span)


def _micros(word: str) -> Fraction:
    """The length of `1h30m` in microseconds, exactly."""
    total = Fraction(0)
    for amount, unit in re.findall(r"(\d+(?:\.\d+)?)(ms|us|s|m|h|d|w)", word):
        if len(amount) > 100:
            return Fraction(MAX_MICROS + 1)
        total += Fraction(amount) * _UNITS[unit]
    return total
