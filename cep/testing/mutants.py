"""Rules with one thing changed, for asking whether a test would notice.

In: a rule, `param` or `def` as it was parsed. Out: a `Mutant` for each condition, bound, count, key
part and guard that it says: the statement with that one thing changed or left out. Nothing is
checked here; what does not pass the checker was never a possible mistake.

What is changed:

- conditions: one operand of `and` or `or` left out, a comparison or test negated, `<` for `<=`, a
  number by one of its last digit, a duration by a tick (a microsecond), `distinct` left out
- bounds: `within`, `after`, `for`, `keep`, the size, gap and step of windows, by a tick each way
- counts: `{n,m}`, `N of`, `N events`, `limit`, by one each way
- keys: one part of `by` made the same for all events
- what guards or shapes a rule, left out: `no`, `unless`, `until`, `having`, `where`, `dedup`,
  `within`, `keep`, `limit`, `skip`, `start`, `keys from`, `report`, `strict`, `next`, `any`

Texts, patterns and lists are data, and what an alert says is no condition: these stay as they are.
Numbers that are measured or computed by roots, logarithms and deviations hardly ever meet a limit
exactly, so `<` and `<=` are the same there and not exchanged.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from typing import Any, TypeVar

from dsl import ast
from dsl.checker.keys import part_names
from dsl.source import Span
from dsl.text import duration_text, to_text

TICK = 1
"""The smallest difference of two times, in microseconds."""

NEGATED = {"==": "!=", "!=": "==", "<": ">=", ">=": "<", ">": "<=", "<=": ">"}
OTHER_SIDE = {"<": "<=", "<=": "<", ">": ">=", ">=": ">"}
INEXACT = {"haversine_km", "sqrt", "log", "stddev"}
LEFT_OUT = ""

NodeT = TypeVar("NodeT", bound=ast.Node)


@dataclass(frozen=True, slots=True)
class Change:
    """One node in place of another; `node` is None when it was left out. `was` and `now` are the
    texts of the place that differs."""

    node: Any
    span: Span
    was: str
    now: str


@dataclass(frozen=True, slots=True)
class Mutant:
    """A statement with one thing changed. `key_part` names the part of the key that was merged."""

    statement: ast.Rule | ast.Param | ast.Def
    changed: ast.Rule | ast.Param | ast.Def
    span: Span
    was: str
    now: str
    key_part: str | None = None

    @property
    def words(self) -> str:
        """What was changed, in a line.

        >>> from dsl.parser import parse
        >>> from dsl.source import Source
        >>> tree, _ = parse(Source("a.cep", "param low = 3"))
        >>> [mutant.words for mutant in mutants(tree.statements[0])]
        ['`3` is `2`', '`3` is `4`']
        """
        return f"`{self.was}` is `{self.now}`" if self.now else f"`{self.was}` is left out"


def mutants(statement: ast.Statement) -> Iterator[Mutant]:
    """All mutants of a rule, `param` or `def`, each different text once; none of anything else."""
    seen = {to_text(statement)}
    for mutant in _all(statement):
        text = to_text(mutant.changed)
        if text not in seen:
            seen.add(text)
            yield mutant


def _all(statement: ast.Statement) -> Iterator[Mutant]:
    match statement:
        case ast.Rule():
            yield from _with(statement, "clauses", _list_changes(statement.clauses, _clause))
            yield from _merged_keys(statement)
        case ast.Param():
            yield from _with(statement, "value", _value(statement.value))
        case ast.Def():
            yield from _with(statement, "body", _definition(statement.body))


def _with(
    statement: ast.Rule | ast.Param | ast.Def, name: str, changes: Iterator[Change]
) -> Iterator[Mutant]:
    for change in _in_field(statement, name, changes):
        yield Mutant(statement, change.node, change.span, change.was, change.now)


def _definition(body: ast.Expr) -> Iterator[Change]:
    logical = ast.Compare | ast.Is | ast.Not | ast.And | ast.Or
    return _condition(body) if isinstance(body, logical) else _value(body)


# ---------------------------------------------------------------------------- inside nodes


def _in_field(node: NodeT, name: str, changes: Iterator[Change]) -> Iterator[Change]:
    """The node with each change of what its field `name` holds."""
    for change in changes:
        yield replace(change, node=replace(node, **{name: change.node}))


def _list_changes(
    nodes: Sequence[ast.Node], changes: Callable[[Any], Iterator[Change]]
) -> Iterator[Change]:
    """A tuple of nodes with each change of one of them; one that is left out is not in it."""
    for i, node in enumerate(nodes):
        for change in changes(node):
            new = () if change.node is None else (change.node,)
            yield replace(change, node=(*nodes[:i], *new, *nodes[i + 1 :]))


def _left_out(node: ast.Node, text: str = "") -> Change:
    return Change(None, node.span, text or to_text(node), LEFT_OUT)


def _optional(
    node: NodeT, name: str, changes: Callable[[Any], Iterator[Change]], keyword: str
) -> Iterator[Change]:
    """The node with what is in an optional field changed, or left out with its keyword."""
    inside = getattr(node, name)
    if inside is not None:
        gone = Change(None, inside.span, f"{keyword} {to_text(inside)}", LEFT_OUT)
        yield from _in_field(node, name, iter([gone]))
        yield from _in_field(node, name, changes(inside))


def _word(node: NodeT, name: str) -> Iterator[Change]:
    """The node without the word (`strict`, `next`, `any`) that its field holds."""
    word = getattr(node, name)
    if word is not None:
        changes: dict[str, Any] = {name: None}
        yield Change(replace(node, **changes), node.span, word, LEFT_OUT)


# ---------------------------------------------------------------------------- clauses of rules


def _clause(clause: ast.RuleClause) -> Iterator[Change]:
    match clause:
        case ast.On():
            yield from _optional(clause, "where", _condition, "where")
        case ast.Sequence() | ast.All():
            yield from _pattern(clause)
        case ast.Aggregate():
            yield from _optional(clause, "where", _condition, "where")
            yield from _in_field(clause, "window", _window(clause.window))
            yield from _in_field(clause, "fields", _list_changes(clause.fields, _window_field))
        case ast.Having():
            yield _left_out(clause)
            yield from _in_field(clause, "condition", _condition(clause.condition))
        case ast.Unless():
            yield _left_out(clause)
            yield from _optional(clause, "where", _condition, "where")
        case ast.Dedup():
            yield _left_out(clause)
            yield from _in_field(clause, "duration", _duration(clause.duration))
            yield from _in_field(clause, "by", _list_changes(clause.by, _dropped))
        case ast.Keep():
            yield _left_out(clause)
            yield from _in_field(clause, "duration", _duration(clause.duration))
        case ast.Limit():
            yield _left_out(clause)
            for runs in _near(clause.runs):
                changed = replace(clause, runs=runs)
                yield Change(changed, clause.span, to_text(clause), to_text(changed))
        case ast.Skip() | ast.Start() | ast.KeysFrom() | ast.Report() | ast.WindowTimezone():
            yield _left_out(clause)


def _dropped(node: ast.Node) -> Iterator[Change]:
    yield _left_out(node)


def _pattern(pattern: ast.Sequence | ast.All) -> Iterator[Change]:
    yield from _optional(pattern, "within", _duration, "within")
    if isinstance(pattern, ast.All):
        yield from _in_field(pattern, "parts", _list_changes(pattern.parts, _node))
        for count in _near(pattern.count) if pattern.count is not None else ():
            changed = replace(pattern, count=count)
            yield Change(changed, pattern.span, f"{pattern.count} of", f"{count} of")
    else:
        yield from _word(pattern, "mode")
        yield from _in_field(pattern, "nodes", _list_changes(pattern.nodes, _node))


def _node(node: ast.PatternNode) -> Iterator[Change]:
    match node:
        case ast.Step():
            yield from _step(node)
        case ast.Absent():
            yield _left_out(node)
            yield from _optional(node, "where", _condition, "where")
            yield from _optional(node, "within", _duration, "within")
        case ast.OneOf():
            yield from _word(node, "mode")
            yield from _branches(node)
        case ast.AllOf():
            yield from _word(node, "mode")
            yield from _optional(node, "within", _duration, "within")
            yield from _in_field(node, "parts", _list_changes(node.parts, _node))
        case ast.Repeat():
            yield from _word(node, "mode")
            yield from _in_field(node, "quantifier", _quantifier(node.quantifier))
            yield from _in_field(node, "body", _list_changes(node.body, _node))


def _step(step: ast.Step) -> Iterator[Change]:
    yield from _word(step, "mode")
    if step.quantifier is not None:
        yield from _in_field(step, "quantifier", _quantifier(step.quantifier))
    yield from _optional(step, "where", _condition, "where")
    yield from _optional(step, "within", _duration, "within")
    yield from _optional(step, "after", _duration, "after")
    if step.until is not None:
        yield from _in_field(step, "until", iter([_left_out(step.until)]))
        where = _optional(step.until, "where", _condition, "where")
        yield from _in_field(step, "until", where)


def _branches(node: ast.OneOf) -> Iterator[Change]:
    for i, branch in enumerate(node.branches):
        for change in _list_changes(branch, _node):
            branches = (*node.branches[:i], change.node, *node.branches[i + 1 :])
            if change.node:
                yield replace(change, node=replace(node, branches=branches))


def _window(window: ast.Window) -> Iterator[Change]:
    for name in ("size", "step", "maximum"):
        duration = getattr(window, name)
        if duration is not None:
            yield from _in_field(window, name, _duration(duration))
    for count in _near(window.count) if window.count is not None else ():
        changed = replace(window, count=count)
        yield Change(changed, window.span, to_text(window), to_text(changed))


def _window_field(field: ast.AggregateField) -> Iterator[Change]:
    yield from _in_field(field, "value", _value(field.value))
    yield from _optional(field, "where", _condition, "where")


def _quantifier(quantifier: ast.Quantifier) -> Iterator[Change]:
    """Of `{n}` both ends move together, else one after the other."""
    low, high = quantifier.minimum, quantifier.maximum
    if low == high:
        pairs: list[tuple[int, int | None]] = [(n, n) for n in _near(low)]
    else:
        pairs = [(n, high) for n in (low - 1, low + 1)]
        pairs += [(low, n) for n in (high - 1, high + 1)] if high is not None else []
    for least, most in pairs:
        if least >= 0 and (most is None or most >= max(least, 1)):
            changed = replace(quantifier, minimum=least, maximum=most, written="")
            yield Change(changed, quantifier.span, to_text(quantifier), to_text(changed))


def _near(number: int) -> list[int]:
    """The counts beside a count, as far as there are any."""
    return [n for n in (number - 1, number + 1) if n >= 1]


def _duration(duration: ast.Duration) -> Iterator[Change]:
    for micros in (duration.micros - TICK, duration.micros + TICK):
        if micros > 0:
            changed = replace(duration, micros=micros, text="")
            yield Change(changed, duration.span, to_text(duration), duration_text(micros))


# ---------------------------------------------------------------------------- keys


def _merged_keys(rule: ast.Rule) -> Iterator[Mutant]:
    """The rule with each part of its key made the same for all events, in every `by`."""
    by = next((clause for clause in rule.clauses if isinstance(clause, ast.By)), None)
    for i, name in enumerate(part_names(by) if by else []):
        assert by is not None
        changed = _same_key(rule, i, name)
        part = by.parts[i]
        yield Mutant(rule, changed, part.span, f"by {to_text(part)}", LEFT_OUT, name)


def _same_key(node: NodeT, part: int, name: str) -> NodeT:
    """The node with that part of every `by` in it made a constant."""
    if isinstance(node, ast.By):
        alias = ast.Ident(name, quoted=True)
        same = ast.KeyPart(ast.Literal("all"), alias, span=node.parts[part].span)
        return replace(node, parts=(*node.parts[:part], same, *node.parts[part + 1 :]))
    if isinstance(node, ast.Rule | ast.Step | ast.Absent | ast.Unless | ast.Sequence | ast.All):
        changed = {f: _same_keys(getattr(node, f), part, name) for f in node.__dataclass_fields__}
        return replace(node, **changed)
    if isinstance(node, ast.AllOf | ast.OneOf | ast.Repeat):
        changed = {f: _same_keys(getattr(node, f), part, name) for f in node.__dataclass_fields__}
        return replace(node, **changed)
    return node


def _same_keys(value: Any, part: int, name: str) -> Any:
    if isinstance(value, tuple):
        return tuple(_same_keys(item, part, name) for item in value)
    return _same_key(value, part, name) if isinstance(value, ast.Node) else value


# ---------------------------------------------------------------------------- conditions


def _condition(value: ast.Expr) -> Iterator[Change]:
    """Changes of an expression that is true or not."""
    match value:
        case ast.And() | ast.Or():
            yield from _operands(value)
        case ast.Not():
            yield Change(value.operand, value.span, to_text(value), to_text(value.operand))
            yield from _in_field(value, "operand", _condition(value.operand))
        case ast.Is():
            yield _exchanged(value, replace(value, negated=not value.negated))
            yield from _in_field(value, "operand", _value(value.operand))
        case ast.Compare():
            yield from _comparison(value)
        case _:
            yield _exchanged(value, ast.Not(value, span=value.span))
            yield from _value(value)


def _exchanged(value: ast.Expr, other: ast.Expr) -> Change:
    return Change(other, value.span, to_text(value), to_text(other))


def _operands(value: ast.And | ast.Or) -> Iterator[Change]:
    joint = "and" if isinstance(value, ast.And) else "or"
    for i, part in enumerate(value.parts):
        rest = (*value.parts[:i], *value.parts[i + 1 :])
        node = rest[0] if len(rest) == 1 else replace(value, parts=rest)
        yield Change(node, part.span, f"{joint} {to_text(part)}", LEFT_OUT)
    yield from _in_field(value, "parts", _list_changes(value.parts, _condition))


def _comparison(value: ast.Compare) -> Iterator[Change]:
    op = value.op
    negated = NEGATED.get(op) or (op.removeprefix("not ") if op.startswith("not ") else f"not {op}")
    yield _exchanged(value, replace(value, op=negated))
    if op in OTHER_SIDE and not _inexact(value):
        yield _exchanged(value, replace(value, op=OTHER_SIDE[op]))
    yield from _in_field(value, "left", _value(value.left))
    yield from _in_field(value, "right", _value(value.right))


def _inexact(value: ast.Expr) -> bool:
    return any(isinstance(n, ast.Call) and n.function.name in INEXACT for n in value.walk())


def _value(value: ast.Expr) -> Iterator[Change]:
    """Changes of the constants in an expression, and of conditions inside calls."""
    match value:
        case ast.Literal():
            yield from number_changes(value)
        case ast.DurationLiteral():
            yield from _in_field(value, "value", _duration(value.value))
        case ast.Negative():
            yield from _in_field(value, "operand", _value(value.operand))
        case ast.Arithmetic():
            yield from _in_field(value, "left", _value(value.left))
            yield from _in_field(value, "right", _value(value.right))
        case ast.Index():
            yield from _in_field(value, "index", _value(value.index))
        case ast.Call():
            yield from _in_field(value, "arguments", _list_changes(value.arguments, _argument))
        case ast.Compare() | ast.Is() | ast.Not() | ast.And() | ast.Or():
            yield from _condition(value)


def _argument(argument: ast.Argument) -> Iterator[Change]:
    if argument.distinct:
        changed = replace(argument, distinct=False)
        yield Change(changed, argument.span, to_text(argument), to_text(changed))
    yield from _in_field(argument, "value", _value(argument.value))


def number_changes(literal: ast.Literal) -> Iterator[Change]:
    """A number with one of its last digit less and more; nothing of other constants."""
    number = literal.value
    if isinstance(number, bool) or not isinstance(number, int | float):
        return
    written = Decimal(literal.text or repr(number))
    exponent = written.as_tuple().exponent
    unit = Decimal(1).scaleb(exponent) if isinstance(exponent, int) else Decimal(1)
    for near in (written - unit, written + unit):
        changed = replace(literal, value=type(number)(near), text="")
        yield Change(changed, literal.span, to_text(literal), to_text(changed))
