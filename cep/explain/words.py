"""A checked rule in words: what it waits for, per what key, and what it says."""

from __future__ import annotations

from collections.abc import Iterator

from cep.explain.bounds import bounds
from cep.explain.duration import duration
from cep.explain.expression import shown
from dsl import checked

_SKIPS = {
    "past_last": "runs that began before the match ended are dropped (skip past last)",
    "to_next": "other runs with the same first event are dropped (skip to next)",
    "to_first": "runs that began before the first {step} are dropped (skip to first {step})",
    "to_last": "runs that began before the last {step} are dropped (skip to last {step})",
    "nothing": "all other runs go on (skip nothing)",
}
_STARTS = {
    "each": "",
    "first": "an event opens a run only while its key has none (start first)",
    "latest": "an opening event replaces runs still at their first step (start latest)",
}


def describe(rule: checked.Rule) -> str:
    """The rule in a few lines, without a line break at the end."""
    return "\n".join(_lines(rule))


def _lines(rule: checked.Rule) -> Iterator[str]:
    title = f' "{rule.title}"' if rule.title else ""
    yield f"rule {rule.name}{title}  ({rule.span})"
    if rule.description:
        yield f"  {rule.description}"
    if rule.severity or rule.tags:
        yield "  " + ", ".join(filter(None, [rule.severity, *rule.tags]))
    yield f"  {_key(rule)}:"
    yield from (f"    {line}" for line in _pattern(rule.pattern))
    yield from (f"  unless {_guard(guard)}" for guard in rule.unless)
    if rule.having is not None:
        yield f"  having {shown(rule.having)}"
    yield from (f"  {line}" for line in _policy(rule))
    yield from (f"  bound: {line}" for line in bounds(rule))


def _key(rule: checked.Rule) -> str:
    names = ", ".join(part.name for part in rule.key)
    return f"for each {names}" if names else "over all events"


def _pattern(pattern: checked.SequencePattern | checked.WindowPattern) -> Iterator[str]:
    if isinstance(pattern, checked.WindowPattern):
        yield from _window(pattern)
        return
    yield from _nodes(pattern.nodes, first=True)
    if pattern.within is not None:
        yield f"all within {duration(pattern.within)}"


def _nodes(nodes: tuple[checked.Node, ...], *, first: bool) -> Iterator[str]:
    for node in nodes:
        yield from _node(node, first)
        first = False


def _node(node: checked.Node, first: bool) -> Iterator[str]:
    match node:
        case checked.Step():
            yield _lead(node.mode, first) + step_text(node)
        case checked.Guard():
            yield f"no {_guard(node)}"
        case checked.OneOf():
            yield f"{_lead(_entry_mode(node), first)}one of"
            for number, branch in enumerate(node.branches, 1):
                inside = [line.strip() for line in _nodes(branch, first=True)]
                yield f"  {number}) {'; '.join(inside)}"
        case checked.AllOf():
            count = "all" if node.count in (0, len(node.parts)) else str(node.count)
            yield f"{_lead(_entry_mode(node), first)}{count} of, in any order"
            yield from (f"  {step_text(part)}" for part in node.parts)
            yield from (f"  no {_guard(guard)}" for guard in node.absent)
        case checked.Repeat():
            yield f"{_lead(_entry_mode(node), first)}{times(node.quantifier)} times"
            yield from (f"  {line}" for line in _nodes(node.body, first=True))


def _entry_mode(node: checked.Node) -> str:
    """How a node is entered: as a group says itself, else as its first step says."""
    if isinstance(node, checked.Guard):
        return "relaxed"
    if node.mode != "relaxed" or isinstance(node, checked.Step):
        return node.mode
    if isinstance(node, checked.OneOf):
        return _entry_mode(node.branches[0][0])
    return _entry_mode(node.parts[0] if isinstance(node, checked.AllOf) else node.body[0])


def _lead(mode: str, first: bool) -> str:
    if first:
        return ""
    return {"next": "immediately then ", "any": "then any "}.get(mode, "then ")


def step_text(step: checked.Step) -> str:
    """`fail: login {5,} where outcome == "failure"` with its times and its `until`."""
    parts = [f"{step.name}:", step.stream]
    if step.quantifier != checked.Quantifier():
        parts.append(f"({repetitions(step)})")
    if step.where is not None:
        parts.append(f"where {shown(step.where)}")
    if step.after is not None:
        parts.append(f"at least {duration(step.after)} later")
    if step.within is not None:
        parts.append(f"within {duration(step.within)}")
    if step.until is not None:
        parts.append(f"until {_guard(step.until)}")
    return " ".join(part for part in parts if part)


def repetitions(step: checked.Step) -> str:
    """How many events a step takes, and whether others may come between them."""
    row = ", in a row" if step.mode == "next" and step.quantifier.is_loop else ""
    return times(step.quantifier) + row


def times(quantifier: checked.Quantifier) -> str:
    """How many, in words.

    >>> times(checked.Quantifier(5, None)), times(checked.Quantifier(0, 1))
    ('5 or more', '0 to 1')
    """
    if quantifier.maximum is None:
        count = f"{quantifier.minimum} or more"
    elif quantifier.minimum == quantifier.maximum:
        count = str(quantifier.minimum)
    else:
        count = f"{quantifier.minimum} to {quantifier.maximum}"
    return count if quantifier.greedy else f"{count}, as few as possible"


def _guard(guard: checked.Guard) -> str:
    where = f" where {shown(guard.where)}" if guard.where is not None else ""
    within = f" within {duration(guard.within)}" if guard.within is not None else ""
    return guard.stream + where + within


def _window(window: checked.WindowPattern) -> Iterator[str]:
    where = f" where {shown(window.where)}" if window.where is not None else ""
    yield f"{window.stream}{where} over a window: {window_text(window)}"
    for field in window.fields:
        if not field.name.startswith("_"):
            argument = shown(field.argument) if field.argument is not None else ""
            distinct = "distinct " if field.distinct else ""
            condition = f" where {shown(field.where)}" if field.where is not None else ""
            yield f"{field.name} = {field.function}({distinct}{argument}){condition}"
    for name, value in window.derived:
        yield f"{name} = {shown(value)}"


def window_text(window: checked.WindowPattern) -> str:
    """`sliding 5m`, `hopping 10m every 1m`, … as it is written in a rule."""
    if window.kind == "sliding_count":
        return f"sliding {window.count} events"
    size = duration(window.size or 0)
    if window.kind == "session":
        longest = f" max {duration(window.maximum)}" if window.maximum is not None else ""
        return f"session gap {size}{longest}"
    every = f" every {duration(window.step)}" if window.step is not None else ""
    return f"{window.kind} {size}{every}"


def _policy(rule: checked.Rule) -> Iterator[str]:
    if isinstance(rule.pattern, checked.SequencePattern) and rule.pattern.kind != "on":
        yield f"after a match {_SKIPS[rule.skip].format(step=rule.skip_step)}"
    if _STARTS[rule.start]:
        yield _STARTS[rule.start]
    if rule.report is not None:
        yield f"report {rule.report.replace('_', ' ')}"
    if rule.dedup is not None:
        by = rule.dedup.by
        per = ", ".join(shown(value) for value in by) if by else "key"
        yield f"at most one match per {per} in {duration(rule.dedup.duration)}"
    yield from (f"each match becomes an event of {emit.stream}" for emit in rule.emit)
    if rule.timeout_alert is not None or rule.timeout_emit:
        yield "a run that ends incomplete is reported (on timeout)"
