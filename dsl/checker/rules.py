"""Rules: their clauses, each in its place, and what they say about a match.

In comes the tree of a rule, out comes a `dsl.checked.Rule`, or None when something in it was
reported. `having`, `alert`, `emit` and `dedup` see the match, not an event (section 4).
"""

from __future__ import annotations

from dataclasses import replace
from typing import TypeVar

from dsl import ast
from dsl.checked import (
    Guard,
    Rule,
    SequencePattern,
    WindowPattern,
)
from dsl.checker.declarations import constant
from dsl.checker.keys import Keys, step_keys
from dsl.checker.outputs import Outputs
from dsl.checker.patterns import PatternBuilder, collect_steps
from dsl.checker.scope import Scope, StepInfo
from dsl.checker.shape import Shape, has_deadline, open_ends
from dsl.checker.streams import Streams
from dsl.checker.windows import WindowBuilder
from dsl.checker.world import World, listing
from dsl.diagnostics import Label, did_you_mean
from dsl.source import Span
from dsl.types import Type

_Clause = TypeVar("_Clause")

_WORDS: dict[type, str] = {
    ast.By: "by",
    ast.Having: "having",
    ast.Skip: "skip",
    ast.Start: "start",
    ast.KeysFrom: "keys from",
    ast.Alert: "alert",
    ast.Dedup: "dedup",
    ast.OnTimeout: "on timeout",
    ast.Limit: "limit",
    ast.Keep: "keep",
    ast.Report: "report",
    ast.Severity: "severity",
    ast.Description: "description",
    ast.WindowTimezone: "timezone",
    ast.Unless: "unless",
}
"""Clauses by what people call them; those that may be given once, and `unless`."""

_NEEDS_RUNS = (ast.Skip, ast.Start, ast.Limit, ast.Keep, ast.Unless, ast.OnTimeout)
"""Clauses about runs that wait for further events."""


def check_rule(world: World, streams: Streams, statement: ast.Rule) -> Rule | None:
    """The checked rule, None when it has errors."""
    checker = _RuleChecker(world, streams, statement)
    checked: Rule | None = None

    def work() -> None:
        nonlocal checked
        checked = checker.check()

    return checked if world.succeeds(work) else None


class _RuleChecker:
    def __init__(self, world: World, streams: Streams, statement: ast.Rule) -> None:
        self.world = world
        self.streams = streams
        self.statement = statement
        self.steps: dict[str, StepInfo] = {}
        self.windows: dict[str, Type] = {}

    def check(self) -> Rule | None:
        """All clauses, in an order in which each finds the names that it needs."""
        self._once()
        written = self._pattern_clause()
        if written is None:
            return None
        self.keys = Keys(self.world, self._clause(ast.By), step_keys(self.statement))
        pattern = self._pattern(written)
        unless = self._unless(written)
        self.keys.warn_of_types()
        self._check_fit(pattern)
        if isinstance(pattern, SequencePattern):
            report = self._clause(ast.Report)
            keep = self._clause(ast.Keep) is not None
            Shape(self.world, pattern, self.steps).check(
                keep=keep, report=report.kind if report else None
            )
        self._check_names()
        return self._rule(pattern, unless)

    def _rule(self, pattern: SequencePattern | WindowPattern, unless: tuple[Guard, ...]) -> Rule:
        rule = Rule(
            name=self.statement.name.name,
            title=self.statement.title,
            description=None,
            severity=None,
            tags=self._tags(),
            meta=self._meta(),
            key=self.keys.parts,
            pattern=pattern,
            unless=unless,
            keys_from=self._keys_from(),
            ast=self.statement,
            span=self.statement.span,
        )
        return self._with_outputs(self._with_policies(rule))

    def _with_policies(self, rule: Rule) -> Rule:
        """The rule with the clauses that are a word or a number."""
        skip, start = self._clause(ast.Skip), self._clause(ast.Start)
        severity, description = self._clause(ast.Severity), self._clause(ast.Description)
        limit, keep = self._clause(ast.Limit), self._clause(ast.Keep)
        report = self._clause(ast.Report)
        return replace(
            rule,
            description=description.text if description else None,
            severity=severity.level if severity else None,
            skip=skip.kind if skip else "past_last",
            skip_step=self._skip_step(skip),
            start=start.kind if start else "each",
            limit=limit.runs if limit else None,
            keep=keep.duration.micros if keep else None,
            report=report.kind if report else None,
        )

    def _with_outputs(self, rule: Rule) -> Rule:
        """The rule with what it says about a match."""
        outputs = Outputs(self.world, self._match_scope(rule.pattern), self.keys.parts)
        having = outputs.having(self._clause(ast.Having))
        alert, fields = outputs.alert(self._clause(ast.Alert))
        clauses = [clause for clause in self.statement.clauses if isinstance(clause, ast.Emit)]
        emits = [outputs.emit(clause, fields) for clause in clauses]
        # A rule that only emits has no alert that `dedup` could look at; its first `emit` serves.
        of_match = emits[0][1] if emits and alert is None else fields
        dedup = outputs.dedup(self._clause(ast.Dedup), of_match)
        timeout_alert, timeout_emit = outputs.on_timeout(self._clause(ast.OnTimeout))
        return replace(
            rule,
            having=having,
            alert=alert,
            emit=tuple(emit for emit, _ in emits),
            dedup=dedup,
            timeout_alert=timeout_alert,
            timeout_emit=timeout_emit,
        )

    def _error(self, code: str, span: Span, message: str, help: str | None = None) -> None:
        self.world.found.error(code, span, message, help=help)

    # -------------------------------------------------------------------------- clauses

    def _clause(self, kind: type[_Clause]) -> _Clause | None:
        for clause in self.statement.clauses:
            if isinstance(clause, kind):
                return clause
        return None

    def _once(self) -> None:
        """Clauses that may be given once only."""
        first: dict[type, ast.Node] = {}
        for clause in self.statement.clauses:
            kind = type(clause)
            if kind not in _WORDS or kind is ast.Unless:
                continue
            known = first.setdefault(kind, clause)
            if known is not clause:
                self.world.found.error(
                    "E057",
                    _head(clause.span, _WORDS[kind]),
                    f"`{_WORDS[kind]}` is given twice",
                    labels=[Label(_head(known.span, _WORDS[kind]), "first here")],
                )

    def _pattern_clause(self) -> ast.Pattern | None:
        patterns = [clause for clause in self.statement.clauses if isinstance(clause, ast.Pattern)]
        if not patterns:
            self._error(
                "E056",
                self.statement.name.span,
                f"rule `{self.statement.name.name}` has no pattern",
                "add one: `on`, `sequence`, `all`, `2 of` or `aggregate`",
            )
            return None
        for other in patterns[1:]:
            self.world.found.error(
                "E056",
                _first_word(other.span),
                "a rule has one pattern only",
                help="make a second rule; `emit` and a derived stream connect rules",
                labels=[Label(_first_word(patterns[0].span), "the first pattern")],
            )
        return patterns[0]

    def _pattern(self, written: ast.Pattern) -> SequencePattern | WindowPattern:
        if isinstance(written, ast.Aggregate):
            builder = WindowBuilder(self.world, self.streams, self.keys)
            window = builder.build(written, self._clause(ast.WindowTimezone))
            self.windows = builder.types
            return window
        self.steps = collect_steps(self.world, written)
        self.builder = PatternBuilder(self.world, self.streams, self.keys, written, self.steps)
        if isinstance(written, ast.On):
            return self.builder.on(written)
        if isinstance(written, ast.Sequence):
            return self.builder.sequence(written)
        return self.builder.all(written)

    def _unless(self, written: ast.Pattern) -> tuple[Guard, ...]:
        if isinstance(written, ast.Aggregate):
            return ()
        return tuple(
            self.builder.unless(clause)
            for clause in self.statement.clauses
            if isinstance(clause, ast.Unless)
        )

    def _check_fit(self, pattern: SequencePattern | WindowPattern) -> None:
        """Clauses that make no sense with this pattern."""
        for clause in self.statement.clauses:
            problem = self._misfit(clause, pattern)
            if problem is not None:
                word = _WORDS[type(clause)]
                message, help = problem
                self._error(
                    "E058", _head(clause.span, word), f"`{word}` does not fit here: {message}", help
                )

    def _misfit(
        self, clause: ast.RuleClause, pattern: SequencePattern | WindowPattern
    ) -> tuple[str, str | None] | None:
        """Why a clause does not fit, and what to do."""
        window = isinstance(pattern, WindowPattern)
        kind = pattern.kind
        if isinstance(clause, _NEEDS_RUNS) and (window or kind == "on"):
            what = "a window" if window else "`on`"
            return f"{what} has no runs that wait for events", "leave it out"
        if isinstance(clause, ast.OnTimeout) and not _has_deadline(pattern):
            return "nothing in this pattern has a `within`", "add one, or leave it out"
        if isinstance(clause, ast.KeysFrom) and kind != "sequence":
            return "expected keys need a `sequence`", None
        if isinstance(clause, ast.WindowTimezone) and kind not in ("tumbling", "hopping"):
            return "it shifts the buckets of `tumbling` and `hopping` windows", None
        if isinstance(clause, ast.Report):
            return _report_misfit(clause, pattern)
        return None

    def _check_names(self) -> None:
        """Names of steps, parts of the key, alert fields, lists and tables differ."""
        taken: dict[str, tuple[str, Span]] = {}
        for name, step in self.steps.items():
            taken[name] = ("a step", step.span)
        model = self.keys.model
        for name, part in zip(self.keys.names, model.parts if model else (), strict=False):
            self._take(taken, name, "a part of the key", (part.alias or part).span)
        alert = self._clause(ast.Alert)
        for assign in alert.assigns if alert else ():
            self._take(taken, assign.name.name, "a field of the alert", assign.name.span)
        for name, (what, span) in taken.items():
            kind = (
                "a list"
                if name in self.world.lists
                else "a table"
                if name in self.world.tables
                else None
            )
            if kind is not None:
                self._error(
                    "E044",
                    span,
                    f"`{name}` is {what} here, and {kind} too",
                    "give one of them another name",
                )

    def _take(self, taken: dict[str, tuple[str, Span]], name: str, what: str, span: Span) -> None:
        known = taken.setdefault(name, (what, span))
        if known[1] is not span and known[0] != what:
            self.world.found.error(
                "E044",
                span,
                f"`{name}` is {what}, and {known[0]} too",
                help="give one of them another name",
                labels=[Label(known[1], f"{known[0]} here")],
            )

    # -------------------------------------------------------------------------- the match

    def _match_scope(self, pattern: SequencePattern | WindowPattern) -> Scope:
        on_step = next(iter(self.steps), None) if pattern.kind == "on" else None
        return Scope(
            place="a match",
            steps=self.steps,
            all_steps=self.steps,
            keys=self.keys.key_names,
            windows=self.windows,
            on_step=on_step,
        )

    # -------------------------------------------------------------------------- small clauses

    def _tags(self) -> tuple[str, ...]:
        tags: dict[str, None] = {}
        for clause in self.statement.clauses:
            if isinstance(clause, ast.Tags):
                tags.update((tag.dotted, None) for tag in clause.tags)
        return tuple(tags)

    def _meta(self) -> tuple[tuple[str, bool | int | float | str | None], ...]:
        out: dict[str, bool | int | float | str | None] = {}
        for clause in self.statement.clauses:
            if not isinstance(clause, ast.Meta):
                continue
            name = clause.name.name
            if name in out:
                self._error("E057", clause.name.span, f"`meta {name}` is given twice")
            value = constant(self.world, clause.value, "metadata")
            if value is not None:
                out[name] = getattr(value, "value", None)
        return tuple(out.items())

    def _skip_step(self, skip: ast.Skip | None) -> str | None:
        on = any(isinstance(clause, ast.On) for clause in self.statement.clauses)
        if skip is None or skip.step is None or on:
            return None
        name = skip.step.name
        step = self.steps.get(name)
        if step is None and self.steps:
            guess = did_you_mean(name, self.steps)
            self._error(
                "E069",
                skip.step.span,
                f"no step is called `{name}`",
                f"did you mean `{guess}`?" if guess else f"the steps are {listing([*self.steps])}",
            )
        elif step is not None and step.may_be_empty:
            self._error(
                "E069",
                skip.step.span,
                f"`{name}` may be without events, so there may be nothing to skip to",
                "choose a step that every match has",
            )
        return name

    def _keys_from(self) -> str | None:
        clause = self._clause(ast.KeysFrom)
        if clause is None:
            return None
        name = clause.name.name
        known = [*self.world.lists, *self.world.tables]
        self.world.used.add(name)
        if name not in known:
            guess = did_you_mean(name, known)
            self._error(
                "E075",
                clause.name.span,
                f"no list or table is called `{name}`",
                f"did you mean `{guess}`?" if guess else f'declare it: `list {name} = ["…"]`',
            )
        elif len(self.keys.names) != 1:
            self._error(
                "E075",
                clause.name.span,
                f"`keys from` needs a key of one part, this has {len(self.keys.names)}",
                "write `by` with one field",
            )
        return name


def _has_deadline(pattern: SequencePattern | WindowPattern) -> bool:
    return isinstance(pattern, SequencePattern) and has_deadline(pattern)


def _report_misfit(
    clause: ast.Report, pattern: SequencePattern | WindowPattern
) -> tuple[str, str | None] | None:
    if isinstance(pattern, SequencePattern):
        if clause.kind in ("every_event", "on_update"):
            return "this belongs to `aggregate`", "for a loop: `at minimum` or `on close`"
        if next(open_ends(pattern.nodes), None) is None:
            return "the pattern does not end in a loop that may go on", "leave it out"
        return None
    if clause.kind in ("at_minimum", "on_close"):
        return "this belongs to a loop at the end of a `sequence`", None
    sliding = pattern.kind.startswith("sliding")
    if clause.kind == "every_event" and not sliding:
        return "`every event` belongs to sliding windows", "write `report on update`"
    if clause.kind == "on_update" and sliding:
        return "sliding windows are tested at every event", "write `report every event`"
    return None


def _head(span: Span, word: str) -> Span:
    """The keyword that a clause begins with."""
    return Span(span.source, span.start, min(span.end, span.start + len(word)))


def _first_word(span: Span) -> Span:
    text = span.text
    return Span(span.source, span.start, span.start + len(text.split(None, 1)[0] if text else ""))
