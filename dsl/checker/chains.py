"""Rules that feed each other: who emits what others read, in which order, and no circles."""

from __future__ import annotations

from collections.abc import Mapping

from dsl.checked import Guard, Node, OneOf, Repeat, Rule, SequencePattern, Step
from dsl.checker.world import World

Needs = Mapping[str, tuple[str, ...]]
"""For each rule those whose emitted streams it reads."""


def needs_of(world: World, rules: Mapping[str, Rule]) -> Needs:
    """Which rules feed which."""
    makers: dict[str, dict[str, None]] = {}
    for name, rule in rules.items():
        for emit in (*rule.emit, *rule.timeout_emit):
            makers.setdefault(emit.stream, {})[name] = None
    return {
        name: tuple(
            maker
            for stream in _with_parents(world, streams_read(rule))
            for maker in makers.get(stream, ())
        )
        for name, rule in rules.items()
    }


def streams_read(rule: Rule) -> set[str]:
    """The streams whose events a rule looks at."""
    pattern = rule.pattern
    if not isinstance(pattern, SequencePattern):
        return {pattern.stream}
    out = {guard.stream for guard in rule.unless}
    todo: list[Node] = list(pattern.nodes)
    while todo:
        node = todo.pop()
        if isinstance(node, Step | Guard):
            out.add(node.stream)
            if isinstance(node, Step) and node.until is not None:
                out.add(node.until.stream)
        elif isinstance(node, OneOf):
            todo += [inner for branch in node.branches for inner in branch]
        elif isinstance(node, Repeat):
            todo += node.body
        else:
            todo += [*node.parts, *node.absent]
    return out


def _with_parents(world: World, streams: set[str]) -> list[str]:
    out: dict[str, None] = {}
    todo = sorted(streams, reverse=True)
    while todo:
        name = todo.pop()
        if name not in out:
            out[name] = None
            stream = world.checked_streams.get(name)
            todo += stream.parents if stream else ()
    return list(out)


def emit_order(world: World, rules: Mapping[str, Rule], needs: Needs) -> tuple[str, ...]:
    """Rule names such that a rule comes after those whose emitted streams it reads.

    Reports circles: an event would cause events without an end. Depth first, without recursion:
    chains of rules may be long.
    """
    done: dict[str, None] = {}
    for start in rules:
        path: dict[str, list[str]] = {start: list(needs[start])} if start not in done else {}
        while path:
            name = next(reversed(path))
            if not path[name]:
                del path[name]
                done[name] = None
                continue
            other = path[name].pop(0)
            if other in path:
                _circle(world, rules, [*list(path)[list(path).index(other) :], other])
            elif other not in done:
                path[other] = list(needs[other])
    return tuple(done)


def _circle(world: World, rules: Mapping[str, Rule], chain: list[str]) -> None:
    rule = rules[chain[0]]
    span = rule.ast.name.span if rule.ast else rule.span
    world.found.error(
        "E055",
        span,
        "rules feed each other in a circle: " + " ← ".join(f"`{name}`" for name in chain),
        help="one of them must read input events only",
    )
