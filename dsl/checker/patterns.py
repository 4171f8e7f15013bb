"""Patterns: steps, guards and groups with all names resolved.

In comes the tree of a pattern, out comes its checked form. Which steps an expression may name
depends on where it stands (section 4): in a sequence those before it, in `all` all other parts, in
`repeat` all of the body. What the shape of a pattern must be is asked in `dsl.checker.shape`.
"""

from __future__ import annotations

from collections.abc import Mapping

from dsl import ast
from dsl.checked import (
    AllOf,
    Guard,
    Node,
    OneOf,
    Quantifier,
    Repeat,
    SequencePattern,
    Step,
    Value,
)
from dsl.checker.expressions import Resolver
from dsl.checker.keys import Keys
from dsl.checker.nodes import nodes_of, step_names, steps_of
from dsl.checker.scope import Scope, StepInfo
from dsl.checker.streams import Streams
from dsl.checker.world import World
from dsl.diagnostics import Label

_ONE = Quantifier()


def collect_steps(world: World, pattern: ast.Pattern) -> dict[str, StepInfo]:
    """All steps by name; reports equal names."""
    steps = steps_of(pattern)
    maybe_empty = _maybe_empty(pattern)
    out: dict[str, StepInfo] = {}
    for step, name in zip(steps, step_names(steps), strict=True):
        quantifier = step.quantifier if isinstance(step, ast.Step) else None
        info = StepInfo(
            name,
            step.stream.name,
            (step.label or step.stream).span,
            loop=quantifier is not None and quantifier.maximum != 1,
            may_be_empty=id(step) in maybe_empty
            or (quantifier is not None and quantifier.minimum == 0),
        )
        if name in out:
            world.found.error(
                "E044",
                info.span,
                f"two steps are called `{name}`",
                help="give one of them another name: `name: stream`",
                labels=[Label(out[name].span, "the other one")],
            )
        out.setdefault(name, info)
    return out


def _maybe_empty(pattern: ast.Pattern) -> set[int]:
    """Steps (by identity) that a complete match may leave without events, for the group's sake."""
    out: set[int] = set()
    for node in nodes_of(pattern):
        skippable = (
            isinstance(node, ast.OneOf)
            or (isinstance(node, ast.Repeat) and node.quantifier.minimum == 0)
            or (isinstance(node, ast.All) and node.count not in (None, len(node.parts)))
        )
        if skippable:
            out |= {id(inner) for inner in nodes_of(node) if isinstance(inner, ast.Step)}
    return out


class PatternBuilder:
    """Builds the checked form of one rule's pattern."""

    def __init__(
        self,
        world: World,
        streams: Streams,
        keys: Keys,
        pattern: ast.Pattern,
        steps: Mapping[str, StepInfo],
    ) -> None:
        self.world = world
        self.streams = streams
        self.keys = keys
        self.steps = steps
        written = steps_of(pattern)
        self.names = {
            id(step): name for step, name in zip(written, step_names(written), strict=True)
        }
        self.bound: dict[str, StepInfo] = {}
        """Steps bound so far; grows while a sequence is walked, so that no step copies it."""
        self.default_mode = "relaxed"
        self.leading = False

    # -------------------------------------------------------------------------- patterns

    def on(self, pattern: ast.On) -> SequencePattern:
        """`on S where E`: a sequence of one step."""
        name = self.names[id(pattern)]
        stream = self.use_stream(pattern.stream)
        where = self._where(pattern.where, stream, f"step `{name}`", self.steps[name])
        by = self.keys.values(None, stream, pattern, self.steps, f"step `{name}`")
        step = Step(name, stream, where, by, span=pattern.span)
        return SequencePattern("on", (step,), span=pattern.span)

    def sequence(self, pattern: ast.Sequence) -> SequencePattern:
        """`sequence { … }`"""
        modes = {"strict": "next", "any": "any", None: "relaxed"}
        self.default_mode = modes[pattern.mode]
        nodes = self._leading_guards(pattern.nodes)
        nodes += [self._node(node) for node in pattern.nodes[len(nodes) :]]
        within = pattern.within.micros if pattern.within else None
        return SequencePattern("sequence", tuple(nodes), within, span=pattern.span)

    def _leading_guards(self, nodes: tuple[ast.PatternNode, ...]) -> list[Node]:
        guards: list[Node] = []
        for node in nodes:
            if not isinstance(node, ast.Absent):
                break
            guards.append(self.absent(node, "a `no` at the start"))
        return guards

    def all(self, pattern: ast.All) -> SequencePattern:
        """`all { … }` and `N of { … }`"""
        parts, guards = self._parts(pattern.parts)
        count = len(parts) if pattern.count is None else pattern.count
        within = pattern.within.micros if pattern.within else None
        group = AllOf(parts, guards, count, within, span=pattern.span)
        return SequencePattern("all", (group,), within, span=pattern.span)

    # -------------------------------------------------------------------------- nodes

    def _node(self, node: ast.PatternNode) -> Node:
        if isinstance(node, ast.Step):
            step = self.step(node)
            self.bound[step.name] = self.steps[step.name]
            return step
        if isinstance(node, ast.Absent):
            return self.absent(node, f"`no {node.stream.name}`")
        if isinstance(node, ast.OneOf):
            return self._one_of(node)
        if isinstance(node, ast.AllOf):
            parts, guards = self._parts(node.parts)
            within = node.within.micros if node.within else None
            mode = node.mode or "relaxed"
            return AllOf(parts, guards, len(parts), within, mode, span=node.span)
        return self._repeat(node)

    def step(self, node: ast.Step) -> Step:
        """One step, with what is bound now in sight."""
        name = self.names[id(node)]
        info = self.steps[name]
        stream = self.use_stream(node.stream)
        what = f"step `{name}`"
        return Step(
            name,
            stream,
            self._where(node.where, stream, what, info),
            self.keys.values(node.by, stream, node, self.steps, what),
            self._mode(node.mode),
            _quantifier(node.quantifier),
            node.within.micros if node.within else None,
            node.after.micros if node.after else None,
            self._until(node, info),
            span=node.span,
        )

    def absent(self, node: ast.Absent, place: str) -> Guard:
        """`no S …`"""
        stream = self.use_stream(node.stream)
        return Guard(
            stream,
            self._where(node.where, stream, place, None),
            self.keys.values(node.by, stream, node, self.steps, f"`no {stream}`"),
            node.within.micros if node.within else None,
            span=node.span,
        )

    def unless(self, node: ast.Unless) -> Guard:
        """`unless S …`, which may name every step."""
        self.bound = dict(self.steps)
        stream = self.use_stream(node.stream)
        return Guard(
            stream,
            self._where(node.where, stream, "`unless`", None),
            self.keys.values(node.by, stream, node, self.steps, f"`unless {stream}`"),
            span=node.span,
        )

    def _until(self, node: ast.Step, info: StepInfo) -> Guard | None:
        until = node.until
        if until is None:
            return None
        stream = self.use_stream(until.stream)
        had = info.name in self.bound
        self.bound[info.name] = info
        where = self._where(until.where, stream, "`until`", None)
        if not had:
            del self.bound[info.name]
        by = self.keys.values(node.by, stream, until, self.steps, "`until`")
        return Guard(stream, where, by, span=until.span)

    def _one_of(self, node: ast.OneOf) -> OneOf:
        before = dict(self.bound)
        after = dict(before)
        branches = []
        for branch in node.branches:
            self.bound = dict(before)
            branches.append(tuple(self._node(inner) for inner in branch))
            after.update(self.bound)
        self.bound = after
        return OneOf(tuple(branches), node.mode or "relaxed", span=node.span)

    def _parts(
        self, nodes: tuple[ast.PatternNode, ...]
    ) -> tuple[tuple[Step, ...], tuple[Guard, ...]]:
        """The parts of an `all` and the `no`s in it: each part may name the others."""
        before = self.bound
        names = [self.names[id(node)] for node in nodes if isinstance(node, ast.Step)]
        every = {**before, **{name: self.steps[name] for name in names}}
        parts: list[Step] = []
        guards: list[Guard] = []
        self.bound = dict(every)
        for node in nodes:
            if isinstance(node, ast.Step):
                own = self.names[id(node)]
                self.bound.pop(own, None)
                self._check_part(node)
                parts.append(self.step(node))
                self.bound[own] = every[own]
            elif isinstance(node, ast.Absent):
                guards.append(self.absent(node, f"`no {node.stream.name}`"))
            else:
                self.world.found.error(
                    "E064",
                    node.span,
                    "a group cannot stand in `all`",
                    help="the parts of `all` are single steps",
                )
                self._node(node)
        self.bound = every
        return tuple(parts), tuple(guards)

    def _check_part(self, node: ast.Step) -> None:
        """A part of `all` takes one event, whenever it comes."""
        quantifier = node.quantifier
        if quantifier is not None:
            self.world.found.error(
                "E064",
                quantifier.span,
                "a part of `all` takes one event",
                help="for several events write several parts, or a `sequence`",
            )
        if node.mode is not None:
            self.world.found.error(
                "E064",
                node.span,
                f"`{node.mode}` does not fit in `all`: its parts come in any order",
                help="leave it out",
            )

    def _repeat(self, node: ast.Repeat) -> Repeat:
        for inner in nodes_of(node):
            if isinstance(inner, ast.Step):
                name = self.names[id(inner)]
                self.bound[name] = self.steps[name]
        body = tuple(self._node(inner) for inner in node.body)
        mode = node.mode or "relaxed"
        return Repeat(_quantifier(node.quantifier), body, mode, span=node.span)

    # -------------------------------------------------------------------------- small parts

    def _mode(self, mode: str | None) -> str:
        return self.default_mode if mode is None else mode

    def _where(
        self, where: ast.Expr | None, stream: str, place: str, own: StepInfo | None
    ) -> Value | None:
        if where is None:
            return None
        scope = Scope(place=place, event=stream, steps=self.bound, all_steps=self.steps, own=own)
        return Resolver(self.world, scope).condition(where)

    def use_stream(self, ident: ast.Ident) -> str:
        """Note that a stream is read."""
        return use_stream(self.world, self.streams, ident)


def use_stream(world: World, streams: Streams, ident: ast.Ident) -> str:
    """Note that a stream is read, and where first."""
    streams.need(ident.name)
    world.used.add(f"stream {ident.name}")
    world.first_use.setdefault(ident.name, ident.span)
    return ident.name


def _quantifier(quantifier: ast.Quantifier | None) -> Quantifier:
    if quantifier is None:
        return _ONE
    return Quantifier(quantifier.minimum, quantifier.maximum, quantifier.greedy)
