"""The canonical text of any node of `dsl.ast`, on one line.

In comes a node, out comes text that parses to an equal node: two blanks between clauses, one around
operators, parentheses only where they are needed, backticks only where they were or must be. The
formatter breaks this text into lines; messages and explanations show it as it is.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable
from functools import singledispatch

from dsl import ast

GAP = "  "
"""Between clauses on one line."""


@singledispatch
def to_text(node: ast.Node) -> str:
    """The node as one line of a rule file.

    >>> to_text(ast.Not(ast.Name(ast.Ident("a"))))
    'not a'
    """
    raise TypeError(f"no text for {type(node).__name__}")


def quote(text: str) -> str:
    """A text as a literal, in double quotes unless it has some itself and no single ones.

    >>> quote('say "hi"')
    '\\'say "hi"\\''
    """
    sign = "'" if '"' in text and "'" not in text else '"'
    return sign + "".join(_escaped(char, sign) for char in text) + sign


def _escaped(char: str, sign: str) -> str:
    if char in _ESCAPES:
        return _ESCAPES[char]
    if char == sign:
        return f"\\{sign}"
    if char <= "\uffff" and unicodedata.category(char) in ("Cc", "Cf", "Zl", "Zp"):
        return f"\\u{ord(char):04x}"
    return char


_ESCAPES = {"\n": "\\n", "\t": "\\t", "\r": "\\r", "\\": "\\\\"}
_PLAIN_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


@to_text.register
def _(node: ast.Ident) -> str:
    plain = not node.quoted and _PLAIN_NAME.fullmatch(node.name)
    return node.name if plain else f"`{node.name}`"


@to_text.register
def _(node: ast.Path) -> str:
    return ".".join(to_text(part) for part in node.parts)


@to_text.register
def _(node: ast.Duration) -> str:
    return node.text or duration_text(node.micros)


def duration_text(micros: int) -> str:
    """A length of time in the largest units that say it exactly.

    >>> duration_text(5_400_000_000)
    '1h30m'
    """
    parts = []
    for unit, size in _UNITS:
        count, micros = divmod(micros, size)
        if count:
            parts.append(f"{count}{unit}")
    return "".join(parts) or "0s"


_UNITS = (
    ("w", 604_800_000_000),
    ("d", 86_400_000_000),
    ("h", 3_600_000_000),
    ("m", 60_000_000),
    ("s", 1_000_000),
    ("ms", 1_000),
    ("us", 1),
)


def joined(nodes: Iterable[ast.Node], between: str = ", ") -> str:
    """Several nodes with the same text between them."""
    return between.join(to_text(node) for node in nodes)


def words(*parts: str | None) -> str:
    """Words with a blank between them, those that are None or empty left out."""
    return " ".join(part for part in parts if part)


def optional(keyword: str, node: ast.Node | None) -> str | None:
    """A keyword and a node, if the node is there."""
    return None if node is None else f"{keyword} {to_text(node)}"


def block(texts: Iterable[str], between: str = GAP) -> str:
    """Texts between braces."""
    inside = between.join(texts)
    return f"{{ {inside} }}" if inside else "{}"


# ------------------------------------------------------------------------------ expressions

_OR, _AND, _NOT, _COMPARE, _COALESCE, _SUM, _PRODUCT, _UNARY, _POSTFIX, _ATOM = range(10)
_BINARY = {
    **dict.fromkeys(["??"], _COALESCE),
    **dict.fromkeys(["+", "-"], _SUM),
    **dict.fromkeys(["*", "/", "%"], _PRODUCT),
}


def _level(node: ast.Expr) -> int:
    """How tightly an expression holds together."""
    if isinstance(node, ast.Arithmetic):
        return _BINARY[node.op]
    return _LEVELS.get(type(node), _ATOM)


_LEVELS: dict[type, int] = {
    ast.Or: _OR,
    ast.And: _AND,
    ast.Not: _NOT,
    ast.Compare: _COMPARE,
    ast.Is: _COMPARE,
    ast.Negative: _UNARY,
    ast.Attribute: _POSTFIX,
    ast.Index: _POSTFIX,
}


def _inside(node: ast.Expr, level: int) -> str:
    """An operand, in parentheses if it does not hold together at `level`."""
    text = to_text(node)
    return text if _level(node) >= level else f"({text})"


def parts_of(node: ast.Or | ast.And) -> list[str]:
    """The operands of `or` or `and` as texts."""
    level = _AND if isinstance(node, ast.Or) else _NOT
    return [_inside(part, level) for part in node.parts]


@to_text.register
def _(node: ast.Or) -> str:
    return " or ".join(parts_of(node))


@to_text.register
def _(node: ast.And) -> str:
    return " and ".join(parts_of(node))


@to_text.register
def _(node: ast.Not) -> str:
    return f"not {_inside(node.operand, _NOT)}"


@to_text.register
def _(node: ast.Compare) -> str:
    return f"{_inside(node.left, _COALESCE)} {node.op} {_inside(node.right, _COALESCE)}"


@to_text.register
def _(node: ast.Is) -> str:
    negated = "not " if node.negated else ""
    return f"{_inside(node.operand, _COALESCE)} is {negated}{node.what}"


@to_text.register
def _(node: ast.Arithmetic) -> str:
    level = _BINARY[node.op]
    return f"{_inside(node.left, level)} {node.op} {_inside(node.right, level + 1)}"


@to_text.register
def _(node: ast.Negative) -> str:
    return f"-{_inside(node.operand, _UNARY)}"


def _receiver(node: ast.Expr) -> str:
    """What stands before `.f` or `[i]`; a number there would swallow the point."""
    numeric = isinstance(node, ast.DurationLiteral) or (
        isinstance(node, ast.Literal) and type(node.value) in (int, float)
    )
    return f"({to_text(node)})" if numeric else _inside(node, _POSTFIX)


@to_text.register
def _(node: ast.Attribute) -> str:
    return f"{_receiver(node.value)}.{to_text(node.name)}"


@to_text.register
def _(node: ast.Index) -> str:
    return f"{_receiver(node.value)}[{to_text(node.index)}]"


@to_text.register
def _(node: ast.Name) -> str:
    return to_text(node.ident)


@to_text.register
def _(node: ast.Call) -> str:
    return f"{to_text(node.function)}({joined(node.arguments)})"


@to_text.register
def _(node: ast.Argument) -> str:
    return words("distinct" if node.distinct else None, to_text(node.value))


@to_text.register
def _(node: ast.Literal) -> str:
    if node.value is None:
        return "null"
    if isinstance(node.value, bool):
        return "true" if node.value else "false"
    if isinstance(node.value, str):
        return quote(node.value)
    return node.text or repr(node.value)


@to_text.register
def _(node: ast.DurationLiteral) -> str:
    return to_text(node.value)


@to_text.register
def _(node: ast.Regex) -> str:
    pattern = re.sub(r"\\.|/", lambda m: "\\/" if m[0] == "/" else m[0], node.pattern)
    return f"/{pattern}/{node.flags}"


@to_text.register
def _(node: ast.Array) -> str:
    return f"[{joined(node.items)}]"


@to_text.register
def _(node: ast.Assign) -> str:
    return f"{to_text(node.name)} = {to_text(node.value)}"


# ------------------------------------------------------------------------------ declarations


@to_text.register
def _(node: ast.SchemaField) -> str:
    return f"{to_text(node.path)}: {to_text(node.type)}{'?' if node.optional else ''}"


@to_text.register
def _(node: ast.StreamWhere) -> str:
    return f"where {to_text(node.condition)}"


@to_text.register
def _(node: ast.StreamType) -> str:
    return f"type {to_text(node.path)}"


@to_text.register
def _(node: ast.StreamTime) -> str:
    return words("time", to_text(node.path), f"as {node.unit}" if node.unit else None)


@to_text.register(ast.StreamTimezone)
@to_text.register(ast.WindowTimezone)
def _(node: ast.StreamTimezone | ast.WindowTimezone) -> str:
    return f"timezone {quote(node.zone)}"


@to_text.register
def _(node: ast.StreamId) -> str:
    return f"id {to_text(node.path)}"


@to_text.register
def _(node: ast.StreamDelay) -> str:
    return f"delay {to_text(node.duration)}"


@to_text.register
def _(node: ast.StreamIdle) -> str:
    return f"idle {to_text(node.duration)}"


@to_text.register
def _(node: ast.StreamFields) -> str:
    return f"fields {block(map(to_text, node.fields), ', ')}"


@to_text.register
def _(node: ast.StreamSelect) -> str:
    return f"select {block(map(to_text, node.assigns))}"


@to_text.register
def _(node: ast.Dedup) -> str:
    by = f"by {joined(node.by)}" if node.by else None
    return words("dedup", by, f"for {to_text(node.duration)}")


def stream_head(node: ast.Stream) -> str:
    """A stream up to its block."""
    parents = f"from {joined(node.parents)}" if node.parents else None
    where = to_text(node.clauses[0]) if node.where_first else None
    return words("stream", to_text(node.name), parents, where)


def stream_clauses(node: ast.Stream) -> tuple[ast.StreamClause, ...]:
    """The clauses of a stream that stand in its block."""
    return node.clauses[1:] if node.where_first else node.clauses


@to_text.register
def _(node: ast.Stream) -> str:
    inside = stream_clauses(node)
    return words(stream_head(node), block(map(to_text, inside)) if inside else None)


@to_text.register
def _(node: ast.List) -> str:
    if node.items is not None:
        return f"list {to_text(node.name)} = {to_text(node.items)}"
    return f"list {to_text(node.name)} from {quote(node.file or '')}"


@to_text.register
def _(node: ast.Table) -> str:
    origin = quote(node.file or "") if node.stream is None else to_text(node.stream)
    head = f"table {to_text(node.name)} from {origin} key {to_text(node.key)}"
    return words(head, optional("ttl", node.ttl))


@to_text.register
def _(node: ast.Param) -> str:
    return f"param {to_text(node.name)} = {to_text(node.value)}"


@to_text.register
def _(node: ast.Def) -> str:
    return f"def {to_text(node.name)}({joined(node.params)}) = {to_text(node.body)}"


@to_text.register
def _(node: ast.Include) -> str:
    return f"include {quote(node.path)}"


# ------------------------------------------------------------------------------ rules


def rule_head(node: ast.Rule) -> str:
    """A rule up to its block."""
    return words("rule", to_text(node.name), None if node.title is None else quote(node.title))


@to_text.register
def _(node: ast.Rule) -> str:
    return f"{rule_head(node)} {block(map(to_text, node.clauses))}"


@to_text.register
def _(node: ast.By) -> str:
    return f"by {joined(node.parts)}"


@to_text.register
def _(node: ast.KeyPart) -> str:
    return words(to_text(node.value), optional("as", node.alias))


@to_text.register
def _(node: ast.Quantifier) -> str:
    if node.written:
        return node.written
    lazy = "" if node.greedy else "?"
    if node.minimum == node.maximum:
        return f"{{{node.minimum}}}{lazy}"
    short = {(1, None): "+", (0, None): "*", (0, 1): "?"}.get((node.minimum, node.maximum))
    most = "" if node.maximum is None else node.maximum
    return f"{short or f'{{{node.minimum},{most}}}'}{lazy}"


@to_text.register
def _(node: ast.Until) -> str:
    return words("until", to_text(node.stream), optional("where", node.where))


def step_head(node: ast.Step) -> str:
    """Mode and label of a step: what stands before its stream."""
    label = None if node.label is None else f"{to_text(node.label)}:"
    return words(node.mode, label)


def step_stream(node: ast.Step) -> str:
    """Stream and quantifier of a step."""
    return to_text(node.stream) + ("" if node.quantifier is None else to_text(node.quantifier))


def step_clauses(node: ast.Step | ast.Absent | ast.Unless) -> list[tuple[str, ast.Node]]:
    """What follows the stream, with its keyword, in canonical order. `until` comes last, since a
    `where` after it would belong to it."""
    clauses = []
    for keyword in ("where", "within", "after"):
        value = getattr(node, keyword, None)
        if value is not None:
            clauses.append((keyword, value))
    clauses += [("", value) for value in (node.by, getattr(node, "until", None)) if value]
    return clauses


def _clause_texts(node: ast.Step | ast.Absent | ast.Unless) -> list[str]:
    return [words(keyword, to_text(value)) for keyword, value in step_clauses(node)]


@to_text.register
def _(node: ast.Step) -> str:
    return words(step_head(node), step_stream(node), *_clause_texts(node))


@to_text.register
def _(node: ast.Absent) -> str:
    return words("no", to_text(node.stream), *_clause_texts(node))


@to_text.register
def _(node: ast.Unless) -> str:
    return words("unless", to_text(node.stream), *_clause_texts(node))


def pattern_head(node: ast.Sequence | ast.All | ast.AllOf | ast.OneOf | ast.Repeat) -> str:
    """A pattern or group up to its block."""
    if isinstance(node, ast.Sequence):
        return words("sequence", node.mode, optional("within", node.within))
    if isinstance(node, ast.All):
        kind = "all" if node.count is None else f"{node.count} of"
        return words(kind, optional("within", node.within))
    if isinstance(node, ast.AllOf):
        return words(node.mode, "all of", optional("within", node.within))
    if isinstance(node, ast.OneOf):
        return words(node.mode, "one of")
    return words(node.mode, f"repeat{to_text(node.quantifier)}")


@to_text.register
def _(node: ast.Sequence) -> str:
    return f"{pattern_head(node)} {block(map(to_text, node.nodes))}"


@to_text.register(ast.All)
@to_text.register(ast.AllOf)
def _(node: ast.All | ast.AllOf) -> str:
    return f"{pattern_head(node)} {block(map(to_text, node.parts))}"


@to_text.register
def _(node: ast.Repeat) -> str:
    return f"{pattern_head(node)} {block(map(to_text, node.body))}"


@to_text.register
def _(node: ast.OneOf) -> str:
    if has_branch_braces(node):
        inside = block((block(map(to_text, branch)) for branch in node.branches), " ")
    else:
        inside = block(to_text(branch[0]) for branch in node.branches)
    return f"{pattern_head(node)} {inside}"


def has_branch_braces(node: ast.OneOf) -> bool:
    """Whether the branches need braces of their own, or had them."""
    return node.braced or any(len(branch) != 1 for branch in node.branches)


@to_text.register
def _(node: ast.On) -> str:
    label = None if node.label is None else f"{to_text(node.label)}:"
    return words("on", label, to_text(node.stream), optional("where", node.where))


@to_text.register
def _(node: ast.Window) -> str:
    size = None if node.size is None else to_text(node.size)
    if node.kind == "sliding_count":
        return f"sliding {node.count} events"
    if node.kind == "session":
        return words("session gap", size, optional("max", node.maximum))
    return words(node.kind, size, optional("every", node.step))


@to_text.register
def _(node: ast.AggregateField) -> str:
    return words(f"{to_text(node.name)} =", to_text(node.value), optional("where", node.where))


@to_text.register
def _(node: ast.Aggregate) -> str:
    return f"{aggregate_head(node)} {block(map(to_text, node.fields))}"


def aggregate_head(node: ast.Aggregate) -> str:
    """An aggregate up to its block."""
    where = optional("where", node.where)
    return words("aggregate", to_text(node.stream), where, f"over {to_text(node.window)}")


@to_text.register
def _(node: ast.Having) -> str:
    return f"having {to_text(node.condition)}"


@to_text.register
def _(node: ast.Skip) -> str:
    kind = node.kind.replace("_", " ")
    return words("skip", kind, None if node.step is None else to_text(node.step))


@to_text.register
def _(node: ast.Start) -> str:
    return f"start {node.kind}"


@to_text.register
def _(node: ast.KeysFrom) -> str:
    return f"keys from {to_text(node.name)}"


def action_head(node: ast.Alert | ast.Emit) -> str:
    """An alert or emit up to its block."""
    if isinstance(node, ast.Emit):
        return f"emit {to_text(node.stream)}"
    return words("alert", None if node.message is None else quote(node.message))


@to_text.register(ast.Alert)
@to_text.register(ast.Emit)
def _(node: ast.Alert | ast.Emit) -> str:
    fields = block(map(to_text, node.assigns)) if node.assigns else None
    return words(action_head(node), fields)


@to_text.register
def _(node: ast.OnTimeout) -> str:
    return f"on timeout {block(map(to_text, node.actions))}"


@to_text.register
def _(node: ast.Limit) -> str:
    return f"limit {node.runs} runs"


@to_text.register
def _(node: ast.Keep) -> str:
    return f"keep {to_text(node.duration)}"


@to_text.register
def _(node: ast.Report) -> str:
    return f"report {node.kind.replace('_', ' ')}"


@to_text.register
def _(node: ast.Severity) -> str:
    return f"severity {node.level}"


@to_text.register
def _(node: ast.Tags) -> str:
    return f"tags {', '.join(tag.dotted for tag in node.tags)}"


@to_text.register
def _(node: ast.Description) -> str:
    return f"description {quote(node.text)}"


@to_text.register
def _(node: ast.Meta) -> str:
    return f"meta {to_text(node.name)} = {to_text(node.value)}"


# ------------------------------------------------------------------------------ tests


@to_text.register
def _(node: ast.Pair) -> str:
    key = quote(node.path.names[0]) if node.quoted else to_text(node.path)
    return f"{key}: {to_text(node.value)}"


@to_text.register
def _(node: ast.Object) -> str:
    return block(map(to_text, node.pairs), ", ")


def event_frame(node: ast.TestEvent) -> tuple[str, str]:
    """What stands before and after the object of a test event."""
    when = None if node.when is None or node.offset is None else optional(node.when, node.offset)
    many = None if node.every is None else f"times {node.times} every {to_text(node.every)}"
    return words(when, to_text(node.stream)), many or ""


@to_text.register
def _(node: ast.TestEvent) -> str:
    before, after = event_frame(node)
    return words(before, to_text(node.object), after)


@to_text.register
def _(node: ast.TestAdvance) -> str:
    return f"advance {to_text(node.duration)}"


def expect_head(node: ast.TestExpect) -> str:
    """An expectation up to its object."""
    kind = None if node.kind == "match" else node.kind
    rule = None if node.rule is None else to_text(node.rule)
    return words("expect", optional("at", node.at), kind, rule)


@to_text.register
def _(node: ast.TestExpect) -> str:
    return words(expect_head(node), None if node.object is None else to_text(node.object))


def test_head(node: ast.Test) -> str:
    """A test up to its block."""
    return f"test {joined(node.rules)} {quote(node.name)}"


@to_text.register
def _(node: ast.Test) -> str:
    return f"{test_head(node)} {block(map(to_text, node.steps))}"
