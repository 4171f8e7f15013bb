"""What is allowed but looks like a slip: warnings, each with the fix in its help.

Runs only over rules without errors. Each lint is one function; they share nothing but `_Rule`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from itertools import pairwise

from dsl import ast
from dsl.checked import (
    AllOf,
    ArrayOf,
    CheckedRules,
    Comparison,
    Conjunction,
    Const,
    Field,
    Guard,
    IsMissing,
    IsNull,
    Negation,
    Node,
    OneOf,
    Pattern,
    Repeat,
    Rule,
    SequencePattern,
    Step,
    StepAggregate,
    StepField,
    StepTime,
    Value,
    WindowPattern,
    conjuncts,
)
from dsl.checker.loading import Loaded
from dsl.checker.shape import head
from dsl.checker.world import World
from dsl.diagnostics import Label, did_you_mean
from dsl.regex import is_plain_text
from dsl.source import Span


def lint(world: World, checked: CheckedRules, loaded: Sequence[Loaded]) -> None:
    """All lints over all rules."""
    _unused(world, loaded)
    _untested(world, checked, loaded)
    _slips_in_streams(world, checked)
    _equal_rules(world, checked)
    for rule in checked.rules.values():
        for condition in _conditions(rule):
            _never_true(world, condition)
            _optional_negated(world, condition)
            _plain_regex(world, condition)
        if isinstance(rule.pattern, SequencePattern):
            if rule.skip != "nothing":
                _swallowed(world, rule.pattern.nodes)
            _lossy_start(world, rule, rule.pattern)
            _absence_of_anything(world, rule, rule.pattern)
            _shorter_than_delay(world, rule.pattern, checked.delay)


@dataclass(frozen=True)
class _Tested:
    """A condition on events of a stream (None: on a match)."""

    value: Value
    stream: str | None


def _conditions(rule: Rule) -> Iterator[_Tested]:
    """All conditions of a rule."""
    if rule.having is not None:
        yield _Tested(rule.having, None)
    pattern = rule.pattern
    if isinstance(pattern, WindowPattern):
        wheres = [pattern.where, *(field.where for field in pattern.fields)]
        yield from (_Tested(where, pattern.stream) for where in wheres if where is not None)
        return
    nodes: list[Step | Guard] = [*rule.unless, *_tested_nodes(pattern.nodes)]
    for node in nodes:
        if node.where is not None:
            yield _Tested(node.where, node.stream)


def _tested_nodes(nodes: Sequence[Node]) -> Iterator[Step | Guard]:
    todo: list[Node] = list(reversed(nodes))
    while todo:
        node = todo.pop()
        if isinstance(node, Step):
            yield node
            if node.until is not None:
                yield node.until
        elif isinstance(node, Guard):
            yield node
        elif isinstance(node, OneOf):
            todo += [inner for branch in node.branches for inner in branch]
        elif isinstance(node, Repeat):
            todo += node.body
        else:
            todo += [*node.parts, *node.absent]


# ---------------------------------------------------------------------------------- declarations


def _unused(world: World, loaded: Sequence[Loaded]) -> None:
    """Declarations that nothing names, but for those of files that others include."""
    if not world.rules:
        return
    for file in loaded:
        if file.shared:
            continue
        for statement in file.file.statements:
            if isinstance(statement, ast.List | ast.Table | ast.Param | ast.Def):
                name, mark = statement.name, statement.name.name
            elif isinstance(statement, ast.Stream):
                name, mark = statement.name, f"stream {statement.name.name}"
            else:
                continue
            if mark in world.used or mark == "stream event":
                continue
            kind = type(statement).__name__.lower()
            world.found.warning(
                "W009",
                name.span,
                f"{kind} `{name.name}` is not used",
                help="remove it, or name it in a rule",
            )


def _untested(world: World, checked: CheckedRules, loaded: Sequence[Loaded]) -> None:
    tested = {ident.name for test in checked.tests for ident in test.rules}
    for file in loaded:
        for statement in file.file.statements:
            if isinstance(statement, ast.Rule) and not file.included:
                name = statement.name.name
                if name not in tested:
                    world.found.warning(
                        "W010",
                        statement.name.span,
                        f"rule `{name}` has no test",
                        help=f'`test {name} "finds …" {{ … }}`',
                    )


def _slips_in_streams(world: World, checked: CheckedRules) -> None:
    """Streams that nobody declares and that are called almost like one that somebody does."""
    known = [name for name, stream in checked.streams.items() if stream.declared or stream.emitted]
    for name, span in world.first_use.items():
        if re.fullmatch(r"[xX]\d+", name) and name not in known:
            world.found.warning(
                "W013",
                span,
                f"no stream `{name}` is declared, so it means events of type `{name}`",
                help=f"how often a step comes stands in braces: `{{{name[1:]}}}`",
            )
            continue
        guess = None if name in known or name == "event" else did_you_mean(name, known)
        if guess is not None and _looks_like_a_slip(name, guess):
            world.found.warning(
                "W013",
                span,
                f"no stream `{name}` is declared, so it means events of type `{name}`",
                help=f"did you mean `{guess}`?",
            )


def _looks_like_a_slip(name: str, other: str) -> bool:
    """Nearly the same letters. Names that differ in a number or a word are meant to differ."""
    if SequenceMatcher(None, name, other).ratio() < 0.8:
        return False
    words, others = (set(re.findall(r"[^\W\d_]+|\d", text)) for text in (name, other))
    return not (words < others or others < words)


def _equal_rules(world: World, checked: CheckedRules) -> None:
    """Rules that find the same: the later one adds nothing but its alert."""
    seen: dict[object, Rule] = {}
    for rule in checked.rules.values():
        what = (
            *(rule.pattern, rule.having, rule.unless, rule.dedup, rule.alert, rule.emit),
            *(rule.start, rule.skip, rule.skip_step, rule.report, rule.keys_from),
            *(rule.limit, rule.keep, rule.timeout_alert, rule.timeout_emit),
        )
        first = seen.setdefault(what, rule)
        if first is not rule:
            _warn_of_equal(world, first, rule, "finds the same matches as")
    ons = [rule for rule in checked.rules.values() if rule.pattern.kind == "on"]
    by_stream: dict[object, list[tuple[frozenset[Value], Rule]]] = {}
    for rule in ons:
        step = rule.pattern.nodes[0] if isinstance(rule.pattern, SequencePattern) else None
        if isinstance(step, Step) and rule.having is None and rule.dedup is None:
            parts = frozenset(conjuncts(step.where))
            by_stream.setdefault((step.stream, step.by), []).append((parts, rule))
    for rules in by_stream.values():
        _subsumed(world, rules)


def _subsumed(world: World, rules: list[tuple[frozenset[Value], Rule]]) -> None:
    """`on` rules whose every match another rule reports in the same way too."""
    for parts, rule in rules[:200]:
        for other_parts, other in rules[:200]:
            alike = (rule.severity, rule.alert, rule.emit) == (
                other.severity,
                other.alert,
                other.emit,
            )
            if alike and other_parts and other_parts < parts:
                _warn_of_equal(world, other, rule, "finds nothing that is not found by")
                break


def _warn_of_equal(world: World, first: Rule, rule: Rule, what: str) -> None:
    here, there = _name_span(rule), _name_span(first)
    world.found.warning(
        "W011",
        here,
        f"rule `{rule.name}` {what} rule `{first.name}`",
        help="remove one of them, or make them differ",
        labels=[Label(there, "the other rule")],
    )


def _name_span(rule: Rule) -> Span:
    return rule.ast.name.span if rule.ast else rule.span


# ---------------------------------------------------------------------------------- conditions


def _never_true(world: World, condition: _Tested) -> None:
    """Parts of an `and` that contradict each other."""
    for value in condition.value.walk():
        if isinstance(value, Conjunction) or value is condition.value:
            found = _contradiction(conjuncts(value))
            if found is not None:
                first, second = found
                world.found.warning(
                    "W003",
                    second.span,
                    "this condition is never true together with the other",
                    help="for one or the other write `or`",
                    labels=[Label(first.span, "the other")],
                )
                return


def _contradiction(parts: Sequence[Value]) -> tuple[Value, Value] | None:
    """Two parts that cannot both be true."""
    facts: dict[Value, list[tuple[str, object, Value]]] = {}
    for part in parts:
        fact = _fact(part)
        if fact is None:
            continue
        subject, op, value = fact
        for other_op, other_value, other in facts.get(subject, ()):
            if _exclude(op, value, other_op, other_value):
                return other, part
        facts.setdefault(subject, []).append((op, value, part))
    return None


_FLIPPED = {"<": ">", "<=": ">=", ">": "<", ">=": "<=", "==": "==", "!=": "!="}


def _fact(part: Value) -> tuple[Value, str, object] | None:
    """A part as (what it is about, operator, constant)."""
    if isinstance(part, IsNull):
        return part.operand, "null", None
    if isinstance(part, Negation) and isinstance(part.operand, Comparison):
        inner = part.operand
        if inner.op == "==" and isinstance(inner.right, Const):
            return inner.left, "!=", inner.right.value
        return None
    if not isinstance(part, Comparison):
        return None
    if part.op == "in" and isinstance(part.right, ArrayOf):
        items = [item.value for item in part.right.items if isinstance(item, Const)]
        return (part.left, "in", items) if len(items) == len(part.right.items) else None
    if part.op in _FLIPPED and isinstance(part.right, Const):
        return part.left, part.op, part.right.value
    if part.op in _FLIPPED and isinstance(part.left, Const):
        return part.right, _FLIPPED[part.op], part.left.value
    return None


def _exclude(op: str, value: object, other_op: str, other: object) -> bool:
    """Whether `x op value` and `x other_op other` cannot both be true."""
    if "null" in (op, other_op):
        return op != other_op
    if op == "in" or other_op == "in":
        if op != "in":
            op, value, other_op, other = other_op, other, op, value
        assert isinstance(value, list)
        return all(_exclude("==", item, other_op, other) for item in value)
    if other_op == "in":
        return False
    if op == "==" or other_op == "==":
        if op != "==":
            op, value, other_op, other = other_op, other, op, value
        return not _holds(value, other_op, other)
    if isinstance(value, bool | str | None) or isinstance(other, bool | str | None):
        return False
    return _empty_range(op, value, other_op, other)


def _holds(value: object, op: str, other: object) -> bool:
    """Whether the constants compare; unlike types are not judged."""
    same = type(value) is type(other) or (_is_number(value) and _is_number(other))
    if op in ("==", "!="):
        return (same and value == other) is (op == "==")
    if not same or isinstance(value, bool) or value is None:
        return True
    left, right = (value, other)
    assert isinstance(left, int | float | str)
    results = {
        "<": left < right,  # type: ignore[operator]
        "<=": left <= right,  # type: ignore[operator]
        ">": left > right,  # type: ignore[operator]
        ">=": left >= right,  # type: ignore[operator]
    }
    return results[op]


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _empty_range(op: str, value: object, other_op: str, other: object) -> bool:
    """`x > 5 and x < 3`."""
    if op[0] == other_op[0] or op == "!=" or other_op == "!=":
        return False
    if op[0] == "<":
        op, value, other_op, other = other_op, other, op, value
    assert isinstance(value, int | float)
    assert isinstance(other, int | float)
    return value > other or (value == other and (op == ">" or other_op == "<"))


def _optional_negated(world: World, condition: _Tested) -> None:
    """`x != 1` where the schema says that x may be missing: then it does not hold."""
    known = world.known_fields.get(condition.stream or "")
    if known is None or not known.optional:
        return
    asked = {
        value.operand for value in condition.value.walk() if isinstance(value, IsNull | IsMissing)
    }
    for value in condition.value.walk():
        for field in _negated_fields(value):
            if field.path in known.optional and field not in asked:
                name = ".".join(field.path)
                world.found.warning(
                    "W005",
                    value.span,
                    f"this is not true for events without `{name}`",
                    help=f"if it should be, write `({name} is null or {value.span.text})`, else "
                    f"`{name} is not null and …`",
                )


def _negated_fields(value: Value) -> list[Field]:
    if isinstance(value, Negation) and isinstance(value.operand, Comparison):
        value = value.operand
        negated = value.op != "!="
    else:
        negated = isinstance(value, Comparison) and value.op == "!="
    if not negated or not isinstance(value, Comparison):
        return []
    return [side for side in (value.left, value.right) if isinstance(side, Field)]


def _plain_regex(world: World, condition: _Tested) -> None:
    """`matches /abc/` is `contains "abc"`, which says more and costs less."""
    for value in condition.value.walk():
        if not isinstance(value, Comparison) or value.op != "matches":
            continue
        pattern = value.right
        if not isinstance(pattern, Pattern):
            continue
        text = is_plain_text(pattern.pattern)
        if text is not None:
            better = f'ilike "*{text}*"' if "i" in pattern.flags else f'contains "{text}"'
            world.found.warning(
                "W008",
                pattern.span,
                "this regular expression is a plain text",
                help=f"write `{better}`",
            )


# ---------------------------------------------------------------------------------- patterns


def _swallowed(world: World, nodes: Sequence[Node]) -> None:
    """A step that may be empty after a greedy loop that takes all of its events."""
    for before, after in pairwise(nodes):
        if not isinstance(before, Step) or not isinstance(after, Step):
            continue
        loop, step = before.quantifier, after.quantifier
        endless = loop.maximum is None and loop.greedy and before.until is None
        if not endless or step.minimum > 0 or before.stream != after.stream:
            continue
        bounded = before.within is not None or before.by != after.by
        if not bounded and set(conjuncts(before.where)) <= set(conjuncts(after.where)):
            world.found.warning(
                "W004",
                after.span,
                f"`{after.name}` never gets an event: the loop `{before.name}` takes them all",
                help=f"make the loop reluctant (`+?`), or tell its events from those of "
                f"`{after.name}` by a condition",
                labels=[Label(before.span, "this loop")],
            )


def _lossy_start(world: World, rule: Rule, pattern: SequencePattern) -> None:
    """`start first` and `start latest` drop events that a later condition might have wanted."""
    first = next((node for node in pattern.nodes if isinstance(node, Step)), None)
    clause = (
        next((c for c in rule.ast.clauses if isinstance(c, ast.Start)), None) if rule.ast else None
    )
    if rule.start == "each" or first is None or clause is None:
        return
    for node in _tested_nodes(pattern.nodes):
        for value in node.where.walk() if node.where else ():
            if isinstance(value, StepField | StepTime | StepAggregate) and value.step == first.name:
                which = "later" if rule.start == "first" else "earlier"
                world.found.warning(
                    "W012",
                    clause.span,
                    f"`start {rule.start}` may lose matches: a condition looks at `{first.name}`, "
                    f"and a {which} `{first.name}` might fit it",
                    help="leave it out (`start each`), or put what must be equal into `by`",
                    labels=[Label(value.span, f"looks at `{first.name}`")],
                )
                return


def _absence_of_anything(world: World, rule: Rule, pattern: SequencePattern) -> None:
    """`no S` at the end of a rule without a key, for which any S of anybody counts. Where it is of
    the stream of a step (a heartbeat) that is meant."""
    streams = {node.stream for node in _tested_nodes(pattern.nodes) if isinstance(node, Step)}
    last = pattern.nodes[-1] if len(pattern.nodes) > 1 else None
    if rule.key or not isinstance(last, Guard) or last.stream in streams:
        return
    parts = last.where.walk() if last.where is not None else ()
    if any(isinstance(part, StepField | StepTime | StepAggregate) for part in parts):
        return
    world.found.warning(
        "W017",
        last.span,
        f"any `{last.stream}` at all ends the wait, for the rule has no key",
        help=f"say what both have in common, as in `by order_id`, or `no {last.stream} where order "
        f"== {_a_step(pattern)}.order`",
    )


def _a_step(pattern: SequencePattern) -> str:
    """The name of a step of the pattern."""
    return next(node.name for node in _tested_nodes(pattern.nodes) if isinstance(node, Step))


def _shorter_than_delay(world: World, pattern: SequencePattern, delay: int) -> None:
    """Events that wait for stragglers longer than the whole pattern may last."""
    spans = _within_spans(pattern)
    for micros, span in spans:
        if micros < delay:
            world.found.warning(
                "W007",
                span,
                "this `within` is shorter than the `delay` of a stream",
                help="matches come `delay` late: check that both durations are meant",
            )


def _within_spans(pattern: SequencePattern) -> list[tuple[int, Span]]:
    out: list[tuple[int, Span]] = []
    if pattern.within is not None:
        out.append((pattern.within, head(pattern.span)))
    for node in _tested_nodes(pattern.nodes):
        if node.within is not None:
            out.append((node.within, head(node.span)))
    for group in pattern.nodes:
        if isinstance(group, AllOf) and group.within is not None and group.within != pattern.within:
            out.append((group.within, head(group.span)))
    return out
