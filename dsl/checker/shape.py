"""What the shape of a pattern must be: where `no` may stand, what bounds a run, how it ends.

In comes a pattern with its names resolved, out come diagnostics. Three questions of section 4 and 8
are answered here: may each node stand where it stands; does a loop at the end say when it reports;
does every run have an end.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence

from dsl.checked import AllOf, Guard, Node, OneOf, Repeat, SequencePattern, Step
from dsl.checker.scope import StepInfo
from dsl.checker.world import World
from dsl.source import Span


def head(span: Span) -> Span:
    """The first word of a construct, to point at it without underlining all of it."""
    word = re.match(r"\w+(\s+of\b)?", span.text)
    return Span(span.source, span.start, span.start + word.end()) if word else span


class Shape:
    """Checks the shape of one rule's pattern."""

    def __init__(
        self, world: World, pattern: SequencePattern, steps: Mapping[str, StepInfo]
    ) -> None:
        self.world = world
        self.pattern = pattern
        self.steps = steps

    def check(self, *, keep: bool, report: str | None) -> None:
        """All questions; `keep`: the rule says `keep D`; `report`: its `report at/on …`."""
        if not self.steps:
            self._error(
                "E064", head(self.pattern.span), "this pattern has no step", "add one: `a: stream`"
            )
            return
        first = self._first_index()
        self._leading(self.pattern.nodes[:first])
        self._check_first(self.pattern.nodes[first])
        self._trailing()
        for node in self.pattern.nodes:
            self._check_node(node)
        self._check_end(report)
        if not keep:
            self._check_bounds()

    def _error(self, code: str, span: Span, message: str, help: str | None = None) -> None:
        self.world.found.error(code, span, message, help=help)

    def _place(self, node: Node) -> Span:
        if isinstance(node, Step):
            return self.steps[node.name].span
        return head(node.span)

    # -------------------------------------------------------------------------- places

    def _first_index(self) -> int:
        nodes = self.pattern.nodes
        return next(i for i, node in enumerate(nodes) if not isinstance(node, Guard))

    def _leading(self, guards: Sequence[Node]) -> None:
        for guard in guards:
            assert isinstance(guard, Guard)
            if guard.within is None:
                self._error(
                    "E063",
                    guard.span,
                    "a `no` at the start must say how far it looks back",
                    f"for example `no {guard.stream} within 10m`",
                )

    def _trailing(self) -> None:
        """A `no` at the end, also where only what may be left out follows, ends at some time."""
        where = "at the end"
        for node in reversed(self.pattern.nodes):
            if not isinstance(node, Guard):
                if not (isinstance(node, Step | Repeat) and node.quantifier.minimum == 0):
                    return
                where = "before an optional last step"
            elif node.within is None and self.pattern.within is None:
                self._error(
                    "E063",
                    node.span,
                    f"a `no` {where} must say how long to wait",
                    f"for example `no {node.stream} within 10m`",
                )

    def _check_first(self, node: Node) -> None:
        """The first step starts the clock and must take an event."""
        if isinstance(node, Step):
            for word, given in (("within", node.within), ("after", node.after)):
                if given is not None:
                    self._error(
                        "E062",
                        self._place(node),
                        f"`{word}` on the first step: there is no event before it to count from",
                        "`sequence within D` bounds the whole match"
                        if self.pattern.kind == "sequence"
                        else "`all within D` bounds the whole match",
                    )
            if node.quantifier.minimum == 0:
                self._error(
                    "E062",
                    self._place(node),
                    "the first step must take at least one event",
                    "write `+` or `{1,n}`, or leave the step out",
                )
        elif isinstance(node, OneOf):
            for branch in node.branches:
                if branch:
                    self._check_first(branch[0])
        elif isinstance(node, AllOf):
            for part in node.parts:
                self._check_first(part)
        elif isinstance(node, Repeat):
            if node.quantifier.minimum == 0:
                self._error(
                    "E062", self._place(node), "the first group must take at least one event"
                )
            if node.body:
                self._check_first(node.body[0])

    def _check_node(self, node: Node) -> None:
        if isinstance(node, Step):
            self._check_step(node)
        elif isinstance(node, OneOf):
            self._check_one_of(node)
        elif isinstance(node, AllOf):
            self._check_all_of(node)
        elif isinstance(node, Repeat):
            self._check_repeat(node)

    def _check_step(self, step: Step) -> None:
        quantifier = step.quantifier
        if step.until is not None and quantifier.minimum == quantifier.maximum:
            self._error(
                "E066",
                step.until.span,
                f"`until` ends a loop, but `{step.name}` is none that may go on",
                "make it one: `+`, `*`, `{n,}` or `{n,m}`",
            )
        if step.within is not None and step.after is not None and step.after > step.within:
            self._error(
                "E077",
                self._place(step),
                f"no event can come to `{step.name}`: `after` is longer than `within`",
            )

    def _check_one_of(self, group: OneOf) -> None:
        for branch in group.branches:
            if not branch:
                self._error("E064", head(group.span), "a branch of `one of` is empty")
            for node in branch:
                if isinstance(node, Guard):
                    self._error(
                        "E063",
                        node.span,
                        "a `no` cannot stand in `one of`",
                        "put it before or after the group",
                    )
                else:
                    self._check_node(node)

    def _check_all_of(self, group: AllOf) -> None:
        if not group.parts:
            self._error("E064", head(group.span), "`all` has no parts")
        elif not 1 <= group.count <= len(group.parts):
            self._error(
                "E064",
                head(group.span),
                f"{group.count} of {len(group.parts)} parts cannot be",
                f"the number is from 1 to {len(group.parts)}",
            )
        for part in group.parts:
            self._check_step(part)

    def _check_repeat(self, group: Repeat) -> None:
        if not any(not isinstance(node, Guard) for node in group.body):
            self._error("E064", head(group.span), "this `repeat` has no step")
            return
        for index, node in enumerate(group.body):
            if isinstance(node, Guard) and index in (0, len(group.body) - 1):
                self._error(
                    "E063",
                    node.span,
                    "a `no` in `repeat` must stand between two steps",
                    "put it before or after the group",
                )
            self._check_node(node)

    # -------------------------------------------------------------------------- the end

    def _check_end(self, report: str | None) -> None:
        if report is not None:
            return
        for node in open_ends(self.pattern.nodes):
            if isinstance(node, Step) and node.until is not None:
                continue
            name = f"`{node.name}`" if isinstance(node, Step) else "this group"
            self._error(
                "E067",
                self._place(node),
                f"{name} ends the pattern and may always go on: when is the match complete?",
                "say `report at minimum` (as soon as there are enough), `report on close` (when "
                "nothing more can come),\nend the loop with `until …`, or take a fixed number "
                "`{n}`",
            )
            return

    # -------------------------------------------------------------------------- bounds

    def _check_bounds(self) -> None:
        """Section 8: every run has an end."""
        if self.pattern.within is not None:
            return
        wait = next(self._unbounded(self.pattern.nodes, first=True), None)
        if wait is None:
            return
        if self.pattern.kind == "all":
            self._error(
                "E068",
                head(self.pattern.span),
                "runs of this rule could wait for ever for the missing parts",
                "say how long: `within 10m` after `all` or `of`, or `keep 30d` as a clause",
            )
            return
        what = f"`{wait.name}`" if isinstance(wait, Step) else "this group"
        self._error(
            "E068",
            self._place(wait),
            f"runs of this rule could wait for ever for {what}",
            "say how long: `sequence within 10m { … }`, `within 10m` on the step, or `keep 30d` "
            "as a clause",
        )

    def _unbounded(self, nodes: Sequence[Node], *, first: bool) -> Iterator[Node]:
        """Nodes that a run may wait for without an end. `first`: no event is bound yet."""
        for node in nodes:
            if isinstance(node, Guard):
                continue
            yield from self._unbounded_node(node, first=first)
            first = False

    def _unbounded_node(self, node: Node, *, first: bool) -> Iterator[Node]:
        if isinstance(node, Step):
            waits = not first or node.quantifier.maximum != 1
            if waits and node.within is None and node.until is None:
                yield node
        elif isinstance(node, OneOf):
            for branch in node.branches:
                yield from self._unbounded(branch, first=first)
        elif isinstance(node, AllOf):
            bounded = first and (node.within is not None or node.count == 1)
            if not bounded and any(part.within is None for part in node.parts):
                yield node
        elif isinstance(node, Repeat):
            yield from self._unbounded(node.body, first=first)
            if first and node.quantifier.maximum != 1:
                yield from self._unbounded(node.body, first=False)


def open_ends(nodes: Sequence[Node]) -> Iterator[Node]:
    """Loops and groups at the end that may go on after the match is complete."""
    if not nodes:
        return
    last = nodes[-1]
    if isinstance(last, Step):
        if last.quantifier.minimum != last.quantifier.maximum:
            yield last
    elif isinstance(last, OneOf):
        for branch in last.branches:
            yield from open_ends(branch)
    elif isinstance(last, Repeat):
        if last.quantifier.minimum != last.quantifier.maximum:
            yield last
        else:
            yield from open_ends(last.body)


def has_deadline(pattern: SequencePattern) -> bool:
    """Whether a run can end incomplete because time is over: some `within`."""
    todo: list[Node] = list(pattern.nodes)
    while todo:
        node = todo.pop()
        if isinstance(node, Step | AllOf) and node.within is not None:
            return True
        if isinstance(node, OneOf):
            todo += [inner for branch in node.branches for inner in branch]
        elif isinstance(node, AllOf):
            todo += node.parts
        elif isinstance(node, Repeat):
            todo += node.body
    return pattern.within is not None
