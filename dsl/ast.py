"""What the text says: the tree that the parser makes and the formatter prints.

One frozen dataclass for each construct of the language, in the order of the reference. Nothing is
resolved here: a `Name` may turn out to be a field, a step, a list or nothing at all; that is the
checker's business (`dsl.checked` holds what it makes). Spans do not take part in comparisons, so
`parse(format(tree)) == tree` can be asked as it stands.
"""

from __future__ import annotations

import typing
from collections.abc import Iterator
from dataclasses import dataclass, field

from dsl.source import NOWHERE, Span


@dataclass(frozen=True, slots=True, kw_only=True)
class Node:
    """Anything that stands in a rule file."""

    span: Span = field(default=NOWHERE, compare=False, repr=False)

    def children(self) -> Iterator[Node]:
        """The nodes directly inside this one, in the order of their fields."""
        for name in self.__dataclass_fields__:
            yield from _nodes(getattr(self, name))

    def walk(self) -> Iterator[Node]:
        """This node and all nodes inside it, parents first. Not recursive: depth is the user's."""
        todo: list[Node] = [self]
        while todo:
            node = todo.pop()
            yield node
            todo.extend(reversed(list(node.children())))


def _nodes(value: object) -> Iterator[Node]:
    if isinstance(value, Node):
        yield value
    elif isinstance(value, tuple):
        for item in value:
            yield from _nodes(item)


# ---------------------------------------------------------------------------- names and literals


@dataclass(frozen=True, slots=True)
class Ident(Node):
    """A name; `quoted` when it was written between backticks. Equal names are equal either way."""

    name: str
    quoted: bool = field(default=False, compare=False)


@dataclass(frozen=True, slots=True)
class Path(Node):
    """`a.b.c`: the way to a field, or a tag."""

    parts: tuple[Ident, ...]

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(part.name for part in self.parts)

    @property
    def dotted(self) -> str:
        return ".".join(self.names)


@dataclass(frozen=True, slots=True)
class Duration(Node):
    """`1h30m`. `micros` is what counts; `text` is how it was written. `x * 2m` is an expression."""

    micros: int
    text: str = field(default="", compare=False)


# ---------------------------------------------------------------------------- expressions


@dataclass(frozen=True, slots=True)
class Literal(Node):
    """A constant: None, bool, int, float or str. `text` keeps how a number was written."""

    value: bool | int | float | str | None
    text: str = field(default="", compare=False)

    def __eq__(self, other: object) -> bool:
        # In Python 1 == 1.0 == True; in a rule file they are different texts.
        return (
            isinstance(other, Literal)
            and type(self.value) is type(other.value)
            and self.value == other.value
        )

    def __hash__(self) -> int:
        return hash((type(self.value), self.value))


@dataclass(frozen=True, slots=True)
class DurationLiteral(Node):
    """A duration used as a value."""

    value: Duration


@dataclass(frozen=True, slots=True)
class Regex(Node):
    """`/pattern/flags`; `pattern` without the slashes, `\\/` already turned into `/`."""

    pattern: str
    flags: str


@dataclass(frozen=True, slots=True)
class Array(Node):
    """`[a, b]`; in the events of a test an item may also be an `Object`."""

    items: tuple[Expr, ...]


@dataclass(frozen=True, slots=True)
class Name(Node):
    """A bare name in an expression."""

    ident: Ident


@dataclass(frozen=True, slots=True)
class Attribute(Node):
    """`value.name`"""

    value: Expr
    name: Ident


@dataclass(frozen=True, slots=True)
class Index(Node):
    """`value[index]`"""

    value: Expr
    index: Expr


@dataclass(frozen=True, slots=True)
class Argument(Node):
    """One argument of a call; `distinct` only in `count(distinct x)`."""

    value: Expr
    distinct: bool = False


@dataclass(frozen=True, slots=True)
class Call(Node):
    """`function(arguments)`"""

    function: Ident
    arguments: tuple[Argument, ...]


@dataclass(frozen=True, slots=True)
class Negative(Node):
    """`-x`"""

    operand: Expr


@dataclass(frozen=True, slots=True)
class Arithmetic(Node):
    """`left op right`; op is one of `+ - * / % ??`."""

    op: str
    left: Expr
    right: Expr


@dataclass(frozen=True, slots=True)
class Compare(Node):
    """`left op right`; op is one of `== != < <= > >= in like ilike matches contains`, or with
    `not ` before it for the last five."""

    op: str
    left: Expr
    right: Expr


@dataclass(frozen=True, slots=True)
class Is(Node):
    """`operand is [not] null|missing`"""

    operand: Expr
    what: str
    negated: bool = False


@dataclass(frozen=True, slots=True)
class Not(Node):
    """`not x`"""

    operand: Expr


@dataclass(frozen=True, slots=True)
class And(Node):
    """`a and b and c`: two or more, none of them an `And` unless it stood in parentheses."""

    parts: tuple[Expr, ...]


@dataclass(frozen=True, slots=True)
class Or(Node):
    """`a or b or c`"""

    parts: tuple[Expr, ...]


Expr = (
    Literal
    | DurationLiteral
    | Regex
    | Array
    | Name
    | Attribute
    | Index
    | Call
    | Negative
    | Arithmetic
    | Compare
    | Is
    | Not
    | And
    | Or
)


@dataclass(frozen=True, slots=True)
class Assign(Node):
    """`name = value`, in an alert, emit, select, meta or aggregate block."""

    name: Ident
    value: Expr


# ---------------------------------------------------------------------------- declarations


@dataclass(frozen=True, slots=True)
class SchemaField(Node):
    """`path: type` or `path: type?`"""

    path: Path
    type: Ident
    optional: bool


@dataclass(frozen=True, slots=True)
class StreamWhere(Node):
    condition: Expr


@dataclass(frozen=True, slots=True)
class StreamType(Node):
    path: Path


@dataclass(frozen=True, slots=True)
class StreamTime(Node):
    """`time path [as unit]`; unit is seconds, millis, micros, nanos, iso or None (by magnitude)."""

    path: Path
    unit: str | None = None


@dataclass(frozen=True, slots=True)
class StreamTimezone(Node):
    zone: str


@dataclass(frozen=True, slots=True)
class StreamId(Node):
    path: Path


@dataclass(frozen=True, slots=True)
class StreamDelay(Node):
    duration: Duration


@dataclass(frozen=True, slots=True)
class StreamIdle(Node):
    duration: Duration


@dataclass(frozen=True, slots=True)
class StreamFields(Node):
    fields: tuple[SchemaField, ...]


@dataclass(frozen=True, slots=True)
class StreamSelect(Node):
    assigns: tuple[Assign, ...]


@dataclass(frozen=True, slots=True)
class Dedup(Node):
    """`dedup [by e, …] for D`, of a stream or of a rule."""

    by: tuple[Expr, ...]
    duration: Duration


StreamClause = (
    StreamWhere
    | StreamType
    | StreamTime
    | StreamTimezone
    | StreamId
    | StreamDelay
    | StreamIdle
    | StreamFields
    | StreamSelect
    | Dedup
)


@dataclass(frozen=True, slots=True)
class Stream(Node):
    """`stream name [from a, b] [where e] { clauses }`; a `where` before the block is the first
    clause, with `where_first` true."""

    name: Ident
    parents: tuple[Ident, ...]
    clauses: tuple[StreamClause, ...]
    where_first: bool = False


@dataclass(frozen=True, slots=True)
class List(Node):
    """`list name = [..]` (then `items`) or `list name from "file"` (then `file`)."""

    name: Ident
    items: Array | None
    file: str | None


@dataclass(frozen=True, slots=True)
class Table(Node):
    """`table name from "file" key path` (then `file`), or `from stream key path [ttl D]`."""

    name: Ident
    file: str | None
    stream: Ident | None
    key: Path
    ttl: Duration | None = None


@dataclass(frozen=True, slots=True)
class Param(Node):
    name: Ident
    value: Expr


@dataclass(frozen=True, slots=True)
class Def(Node):
    name: Ident
    params: tuple[Ident, ...]
    body: Expr


@dataclass(frozen=True, slots=True)
class Include(Node):
    path: str


# ---------------------------------------------------------------------------- rules


@dataclass(frozen=True, slots=True)
class KeyPart(Node):
    """`expr [as name]`"""

    value: Expr
    alias: Ident | None = None


@dataclass(frozen=True, slots=True)
class By(Node):
    parts: tuple[KeyPart, ...]


@dataclass(frozen=True, slots=True)
class Quantifier(Node):
    """How many events: `minimum` to `maximum` (None: no end). `written` is the canonical text
    (``+``, ``*?``, ``{2,}``, ``?``, ``??``)."""

    minimum: int
    maximum: int | None
    greedy: bool = True
    written: str = field(default="", compare=False)


@dataclass(frozen=True, slots=True)
class Until(Node):
    stream: Ident
    where: Expr | None = None


@dataclass(frozen=True, slots=True)
class Step(Node):
    """One step. `mode` is None (relaxed), "next" or "any"."""

    stream: Ident
    label: Ident | None = None
    mode: str | None = None
    quantifier: Quantifier | None = None
    where: Expr | None = None
    within: Duration | None = None
    after: Duration | None = None
    by: By | None = None
    until: Until | None = None


@dataclass(frozen=True, slots=True)
class Absent(Node):
    """`no stream [where e] [within D] [by …]`"""

    stream: Ident
    where: Expr | None = None
    within: Duration | None = None
    by: By | None = None


@dataclass(frozen=True, slots=True)
class OneOf(Node):
    """`one of { x: A  y: B }`: each branch is a tuple of nodes; `braced` when the branches were
    written with braces of their own."""

    branches: tuple[tuple[PatternNode, ...], ...]
    braced: bool = False
    mode: str | None = None


@dataclass(frozen=True, slots=True)
class AllOf(Node):
    """`all of [within D] { … }` inside a sequence."""

    parts: tuple[PatternNode, ...]
    within: Duration | None = None
    mode: str | None = None


@dataclass(frozen=True, slots=True)
class Repeat(Node):
    quantifier: Quantifier
    body: tuple[PatternNode, ...]
    mode: str | None = None


PatternNode = Step | Absent | OneOf | AllOf | Repeat


@dataclass(frozen=True, slots=True)
class On(Node):
    stream: Ident
    label: Ident | None = None
    where: Expr | None = None


@dataclass(frozen=True, slots=True)
class Sequence(Node):
    """`sequence [strict|any] [within D] { … }`; `mode` is None, "strict" or "any"."""

    nodes: tuple[PatternNode, ...]
    mode: typing.Literal["strict", "any"] | None = None
    within: Duration | None = None


@dataclass(frozen=True, slots=True)
class All(Node):
    """`all [within D] { … }` (`count` None) or `N of [within D] { … }`."""

    parts: tuple[PatternNode, ...]
    within: Duration | None = None
    count: int | None = None


@dataclass(frozen=True, slots=True)
class Window(Node):
    """`kind` is sliding, sliding_count, tumbling, hopping or session.

    `size`: the length (sliding, tumbling, hopping) or the gap (session); `count`: events of a
    sliding_count window; `step`: the `every` of hopping; `maximum`: the `max` of session.
    """

    kind: str
    size: Duration | None = None
    count: int | None = None
    step: Duration | None = None
    maximum: Duration | None = None


@dataclass(frozen=True, slots=True)
class AggregateField(Node):
    """`name = count() [where e]`"""

    name: Ident
    value: Expr
    where: Expr | None = None


@dataclass(frozen=True, slots=True)
class Aggregate(Node):
    stream: Ident
    where: Expr | None
    window: Window
    fields: tuple[AggregateField, ...]


Pattern = On | Sequence | All | Aggregate


@dataclass(frozen=True, slots=True)
class Unless(Node):
    stream: Ident
    where: Expr | None = None
    by: By | None = None


@dataclass(frozen=True, slots=True)
class Having(Node):
    condition: Expr


@dataclass(frozen=True, slots=True)
class Skip(Node):
    """`kind`: past_last, to_next, to_first, to_last (these two with `step`) or nothing."""

    kind: str
    step: Ident | None = None


@dataclass(frozen=True, slots=True)
class Start(Node):
    """`kind`: each, first or latest."""

    kind: str


@dataclass(frozen=True, slots=True)
class KeysFrom(Node):
    name: Ident


@dataclass(frozen=True, slots=True)
class Alert(Node):
    """`message` is the text between the quotes, unescaped, its `{E}` not yet parsed: see
    `dsl.parser.parse_template`. `parts` holds it parsed: texts and expressions in turn."""

    message: str | None
    parts: tuple[str | Expr, ...]
    assigns: tuple[Assign, ...]


@dataclass(frozen=True, slots=True)
class Emit(Node):
    stream: Ident
    assigns: tuple[Assign, ...]


@dataclass(frozen=True, slots=True)
class OnTimeout(Node):
    actions: tuple[Alert | Emit, ...]


@dataclass(frozen=True, slots=True)
class Limit(Node):
    runs: int


@dataclass(frozen=True, slots=True)
class Keep(Node):
    duration: Duration


@dataclass(frozen=True, slots=True)
class Report(Node):
    """`kind`: at_minimum, on_close, every_event or on_update."""

    kind: str


@dataclass(frozen=True, slots=True)
class Severity(Node):
    level: str


@dataclass(frozen=True, slots=True)
class Tags(Node):
    tags: tuple[Path, ...]


@dataclass(frozen=True, slots=True)
class Description(Node):
    text: str


@dataclass(frozen=True, slots=True)
class Meta(Node):
    name: Ident
    value: Expr


@dataclass(frozen=True, slots=True)
class WindowTimezone(Node):
    """`timezone "Europe/Paris"` of an aggregate rule: shifts its buckets of whole days."""

    zone: str


RuleClause = (
    By
    | Pattern
    | Unless
    | Having
    | Skip
    | Start
    | KeysFrom
    | Alert
    | Emit
    | Dedup
    | OnTimeout
    | Limit
    | Keep
    | Report
    | Severity
    | Tags
    | Description
    | Meta
    | WindowTimezone
)


@dataclass(frozen=True, slots=True)
class Rule(Node):
    """A rule; its clauses in the order in which they were written."""

    name: Ident
    title: str | None
    clauses: tuple[RuleClause, ...]


# ---------------------------------------------------------------------------- tests


@dataclass(frozen=True, slots=True)
class Pair(Node):
    """`path: value`. `key` is the dotted path as written, `quoted` when the key was a string."""

    path: Path
    value: Expr | Object
    quoted: bool = field(default=False, compare=False)


@dataclass(frozen=True, slots=True)
class Object(Node):
    """`{ f: v, … }`"""

    pairs: tuple[Pair, ...]


@dataclass(frozen=True, slots=True)
class TestEvent(Node):
    """`[at D|after D] stream { … } [times n every D]`; `when` is None, "at" or "after"."""

    stream: Ident
    object: Object
    when: str | None = None
    offset: Duration | None = None
    times: int = 1
    every: Duration | None = None


@dataclass(frozen=True, slots=True)
class TestAdvance(Node):
    duration: Duration


@dataclass(frozen=True, slots=True)
class TestExpect(Node):
    """`kind`: match, timeout, undecided or nothing (then `rule` is None)."""

    kind: str
    rule: Ident | None = None
    object: Object | None = None
    at: Duration | None = None


TestStep = TestEvent | TestAdvance | TestExpect


@dataclass(frozen=True, slots=True)
class Test(Node):
    rules: tuple[Ident, ...]
    name: str
    steps: tuple[TestStep, ...]


Statement = Stream | List | Table | Param | Def | Include | Rule | Test


@dataclass(frozen=True, slots=True)
class Comment(Node):
    """`# text`, without the line break; kept beside the tree for the formatter."""

    text: str


@dataclass(frozen=True, slots=True)
class File(Node):
    """One rule file. `comments` do not take part in comparisons."""

    statements: tuple[Statement, ...]
    comments: tuple[Comment, ...] = field(default=(), compare=False)
