"""Walking over the nodes of a pattern, and the names of its steps."""

from __future__ import annotations

from collections.abc import Iterator

from dsl import ast


def steps_of(pattern: ast.Pattern) -> list[ast.Step | ast.On]:
    """All steps of a pattern in the order in which they are written."""
    if isinstance(pattern, ast.On):
        return [pattern]
    return [node for node in nodes_of(pattern) if isinstance(node, ast.Step)]


def nodes_of(node: ast.Pattern | ast.PatternNode) -> Iterator[ast.Pattern | ast.PatternNode]:
    """A pattern and all nodes in it, in the order in which they are written."""
    todo: list[ast.Pattern | ast.PatternNode] = [node]
    while todo:
        node = todo.pop()
        yield node
        if isinstance(node, ast.Sequence):
            todo += reversed(node.nodes)
        elif isinstance(node, ast.All | ast.AllOf):
            todo += reversed(node.parts)
        elif isinstance(node, ast.Repeat):
            todo += reversed(node.body)
        elif isinstance(node, ast.OneOf):
            todo += [inner for branch in reversed(node.branches) for inner in reversed(branch)]


def step_names(steps: list[ast.Step | ast.On]) -> list[str]:
    """The name of each step: its label, else its stream if no other step has it, else `_n`."""
    streams = [step.stream.name for step in steps]
    once = {stream for stream, count in _counts(streams).items() if count == 1}
    names: list[str] = []
    unnamed = 0
    for step in steps:
        if step.label is not None:
            names.append(step.label.name)
            continue
        unnamed += 1
        stream = step.stream.name
        names.append(stream if stream in once else f"_{unnamed}")
    return names


def _counts(names: list[str]) -> dict[str, int]:
    counts: dict[str, int] = {}
    for name in names:
        counts[name] = counts.get(name, 0) + 1
    return counts
