"""A rule as a diagram: steps as boxes, in Mermaid text, in Graphviz DOT, and as SVG by `dot`."""

from __future__ import annotations

import shutil
import subprocess
from dataclasses import dataclass, field

from cep.explain.duration import duration
from cep.explain.expression import shown
from cep.explain.words import repetitions, times, window_text
from dsl import checked


class NoGraphviz(Exception):
    """The program `dot` is not installed, or failed."""


START = "n0"
"""The box that every diagram begins with."""

_MODES = {"next": "immediately", "any": "any later"}


@dataclass
class Graph:
    """Boxes and arrows. `nodes` maps an id to its label lines and its shape."""

    title: str
    nodes: dict[str, tuple[list[str], str]] = field(default_factory=dict)
    edges: list[tuple[str, str, str]] = field(default_factory=list)

    def node(self, lines: list[str], shape: str = "box") -> str:
        """Add a box; its id."""
        name = f"n{len(self.nodes)}"
        self.nodes[name] = (lines, shape)
        return name

    def edge(self, sources: list[str], target: str, label: str = "") -> None:
        self.edges += [(source, target, label) for source in sources]


def diagram(rule: checked.Rule) -> Graph:
    """The diagram of a rule: from its first event through its steps to the match."""
    graph = Graph(rule.title or rule.name)
    key = ", ".join(part.name for part in rule.key)
    start = graph.node([f"each {key}" if key else "all events"], "round")
    if isinstance(rule.pattern, checked.WindowPattern):
        window = rule.pattern
        lines = [window.stream, window_text(window)]
        lines += [f"{f.name} = {f.function}" for f in window.fields if f.name[0] != "_"]
        box = graph.node(lines)
        graph.edge([start], box)
        ends, waiting = [box], ""
    else:
        ends, waiting = _sequence(graph, rule.pattern.nodes, [start])
    having = f"having {shown(rule.having)}" if rule.having is not None else ""
    graph.edge(ends, graph.node(_match_lines(rule), "round"), _joined(waiting, having))
    for guard in rule.unless:
        killer = graph.node([f"unless {guard.stream}", *_where(guard.where)], "hexagon")
        graph.edge([killer], start, "ends the runs")
    return graph


def _match_lines(rule: checked.Rule) -> list[str]:
    lines = [rule.name]
    if isinstance(rule.pattern, checked.SequencePattern) and rule.pattern.within is not None:
        lines.append(f"within {duration(rule.pattern.within)}")
    return lines


def _sequence(
    graph: Graph, nodes: tuple[checked.Node, ...], before: list[str], waiting: str = ""
) -> tuple[list[str], str]:
    """Add the nodes after the boxes `before`; the last boxes, and the `no`s still to be written."""
    for node in nodes:
        match node:
            case checked.Guard():
                waiting = _joined(waiting, _no(node))
            case checked.Step():
                before, waiting = _step(graph, node, before, waiting), ""
            case checked.OneOf():
                before, waiting = _one_of(graph, node, before, waiting)
            case checked.AllOf():
                before, waiting = _all_of(graph, node, before, waiting), ""
            case checked.Repeat():
                before, waiting = _repeat(graph, node, before, waiting)
    return before, waiting


def _step(graph: Graph, step: checked.Step, before: list[str], waiting: str) -> list[str]:
    """A box for a step, with its loop; a step that may be left out can be passed by."""
    lines = [f"{step.name}: {step.stream}" if step.name != step.stream else step.stream]
    lines += _where(step.where)
    if step.until is not None:
        lines.append(f"until {step.until.stream}{_condition(step.until.where)}")
    box = graph.node(lines)
    how = _MODES.get(step.mode, "") if before != [START] else ""
    graph.edge(before, box, _joined(waiting, how, *_times(step)))
    if step.quantifier.is_loop:
        graph.edge([box], box, repetitions(step))
    return [box] if step.quantifier.minimum else [box, *before]


def _one_of(
    graph: Graph, group: checked.OneOf, before: list[str], waiting: str
) -> tuple[list[str], str]:
    ends: list[str] = []
    left = ""
    for branch in group.branches:
        branch_ends, left = _sequence(graph, branch, before, waiting)
        ends += branch_ends
    return ends, left


def _all_of(graph: Graph, group: checked.AllOf, before: list[str], waiting: str) -> list[str]:
    """The parts side by side, joined in a small box."""
    number = "all" if group.count in (0, len(group.parts)) else f"{group.count}"
    absent = [_no(guard) for guard in group.absent]
    join = graph.node([f"{number}, in any order", *absent], "round")
    for part in group.parts:
        graph.edge(_step(graph, part, before, waiting), join)
    return [join]


def _repeat(
    graph: Graph, group: checked.Repeat, before: list[str], waiting: str
) -> tuple[list[str], str]:
    first = f"n{len(graph.nodes)}"
    ends, left = _sequence(graph, group.body, before, waiting)
    graph.edge(ends, first, f"again, {times(group.quantifier)} rounds")
    return ends, left


def _no(guard: checked.Guard) -> str:
    within = f" within {duration(guard.within)}" if guard.within is not None else ""
    return f"no {guard.stream}{_condition(guard.where)}{within}"


def _times(step: checked.Step) -> list[str]:
    after = [f"after {duration(step.after)}"] if step.after is not None else []
    within = [f"within {duration(step.within)}"] if step.within is not None else []
    return after + within


def _where(condition: checked.Value | None) -> list[str]:
    return [] if condition is None else [_shortened(shown(condition))]


def _condition(condition: checked.Value | None) -> str:
    return "" if condition is None else f" where {_shortened(shown(condition))}"


def _shortened(words: str, width: int = 60) -> str:
    return words if len(words) <= width else words[: width - 1] + "…"


def _joined(*parts: str) -> str:
    return ", ".join(part for part in parts if part)


# ------------------------------------------------------------------------------------- drawing

_MERMAID_SHAPES = {"box": ("[", "]"), "round": ("([", "])"), "hexagon": ("{{", "}}")}
_MERMAID_ESCAPES = str.maketrans(
    {'"': "#quot;", "<": "#lt;", ">": "#gt;", "#": "#35;", "&": "#amp;", "\\": "#92;", "`": "#96;"}
)


def to_mermaid(graph: Graph) -> str:
    """The graph as Mermaid text, as Markdown viewers draw it."""
    lines = ["flowchart LR", f"    %% {' '.join(graph.title.split())}"]
    for name, (label, shape) in graph.nodes.items():
        left, right = _MERMAID_SHAPES[shape]
        inside = "<br/>".join(line.translate(_MERMAID_ESCAPES) for line in label)
        lines.append(f'    {name}{left}"{inside}"{right}')
    for source, target, text in graph.edges:
        arrow = f'-- "{text.translate(_MERMAID_ESCAPES)}" -->' if text else "-->"
        lines.append(f"    {source} {arrow} {target}")
    return "\n".join(lines) + "\n"


_DOT_SHAPES = {"box": 'box, style="rounded"', "round": "ellipse", "hexagon": "hexagon"}


def to_dot(graph: Graph) -> str:
    """The graph in the language of Graphviz."""
    lines = ["digraph rule {", f"  label={_quoted(graph.title)}; rankdir=LR;"]
    lines.append('  node [fontname="sans-serif"]; edge [fontname="sans-serif", fontsize=10];')
    for name, (label, shape) in graph.nodes.items():
        lines.append(f"  {name} [label={_quoted(*label)}, shape={_DOT_SHAPES[shape]}];")
    for source, target, text in graph.edges:
        lines.append(f"  {source} -> {target} [label={_quoted(text)}];")
    return "\n".join([*lines, "}"]) + "\n"


def _quoted(*lines: str) -> str:
    escaped = [line.replace("\\", "\\\\").replace('"', '\\"') for line in lines]
    return '"' + "\\n".join(escaped) + '"'


def to_svg(graph: Graph) -> bytes:
    """The graph as SVG, drawn by Graphviz. Raises `NoGraphviz`."""
    program = shutil.which("dot")
    if program is None:
        raise NoGraphviz("SVG needs Graphviz, whose program `dot` is not installed")
    done = subprocess.run(
        [program, "-Tsvg"], input=to_dot(graph).encode(), capture_output=True, check=False
    )
    if done.returncode:
        raise NoGraphviz(f"`dot` failed: {done.stderr.decode(errors='replace').strip()}")
    return done.stdout
