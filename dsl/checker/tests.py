"""`test` blocks: rules and fields that exist, values that are constants, a clock that goes on.

What an event then does is the runner's business; here only what can be seen from the text.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from dsl import ast
from dsl.checked import Rule
from dsl.checker.nodes import step_names, steps_of
from dsl.checker.streams import DEFAULT_TIME_PATHS, EVERY, Streams
from dsl.checker.world import World, listing
from dsl.diagnostics import did_you_mean

_SECOND = 1_000_000

MATCH_FIELDS = frozenset({"message", "suppressed"})
"""Parts of the match record that an expectation may name besides the rule's own."""


def check_tests(
    world: World, streams: Streams, rules: Mapping[str, Rule], tests: Sequence[ast.Test]
) -> None:
    """Check all test blocks. Rules that have errors are left out of the check of fields."""
    for test in tests:
        _Checker(world, streams, rules, test).check()


class _Checker:
    def __init__(
        self, world: World, streams: Streams, rules: Mapping[str, Rule], test: ast.Test
    ) -> None:
        self.world = world
        self.streams = streams
        self.rules = rules
        self.test = test
        self.clock: int | None = 0
        """Micros since the start; None once an event brings a time of its own."""
        self.began = False

    def check(self) -> None:
        """The rules that are named, then step by step."""
        unknown = [ident for ident in self.test.rules if ident.name not in self.world.rules]
        if any(_stands_unread(ident) for ident in unknown):
            return  # the syntax error of the rule is told; all else would follow from it
        for ident in unknown:
            self._unknown_rule(ident)
        for step in self.test.steps:
            if isinstance(step, ast.TestEvent):
                self._event(step)
            elif isinstance(step, ast.TestAdvance):
                self.clock = None if self.clock is None else self.clock + step.duration.micros
            else:
                self._expect(step)

    def _unknown_rule(self, ident: ast.Ident) -> None:
        guess = did_you_mean(ident.name, self.world.rules)
        self.world.found.error(
            "E071",
            ident.span,
            f"no rule is called `{ident.name}`",
            help=f"did you mean `{guess}`?" if guess else None,
        )

    # -------------------------------------------------------------------------- events

    def _event(self, step: ast.TestEvent) -> None:
        name = step.stream.name
        known = name in self.world.checked_streams
        self.streams.need(name)
        if not known and name != EVERY:
            self._unread_stream(step.stream)
        self._values(step.object)
        self._fields(name, step.object)
        self._move(step)

    def _unread_stream(self, ident: ast.Ident) -> None:
        guess = did_you_mean(ident.name, self.world.checked_streams)
        self.world.found.warning(
            "W014",
            ident.span,
            f"no rule reads a stream `{ident.name}`",
            help=f"did you mean `{guess}`?" if guess else None,
        )

    def _fields(self, stream: str, given: ast.Object) -> None:
        """With a schema only its fields may be given (and those that say type, time and id)."""
        statement = self.world.streams.get(stream)
        schema = self.world.checked_streams[stream].fields
        if schema is None or statement is None:
            return
        free = self._technical(stream)
        for pair in given.pairs:
            if pair.path.names not in free:
                self.world.field_type(stream, pair.path.names, pair.path.span)

    def _technical(self, stream: str) -> set[tuple[str, ...]]:
        checked = self.world.checked_streams
        out: set[tuple[str, ...]] = {checked[stream].type_path}
        for each in (checked[stream], checked[EVERY]):
            out |= {each.id} if each.id else set()
            out |= set(each.time.paths) if each.time else set(DEFAULT_TIME_PATHS)
        return out

    def _move(self, step: ast.TestEvent) -> None:
        """Where the clock of the test is after the event."""
        own_time = any(
            pair.path.names in self._times(step.stream.name) for pair in step.object.pairs
        )
        if step.when is None and own_time:
            self.clock = None
        if self.clock is None:
            self.clock = step.offset.micros if step.when == "at" and step.offset else None
            if self.clock is None:
                return
        offset = step.offset.micros if step.offset else 0
        if step.when == "at":
            if offset < self.clock:
                self.world.found.error(
                    "E072",
                    step.offset.span if step.offset else step.span,
                    f"the clock of the test is already at {_shown(self.clock)}",
                    help="`at` counts from the start of the test, `after` from its clock",
                )
            self.clock = max(offset, self.clock)
        elif step.when == "after":
            self.clock += offset
        elif self.began or self.clock > 0:
            self.clock += _SECOND
        self.began = True
        every = step.every.micros if step.every else 0
        self.clock += max(step.times - 1, 0) * every

    def _times(self, stream: str) -> set[tuple[str, ...]]:
        checked = self.world.checked_streams
        time = checked[stream].time or checked[EVERY].time
        return set(time.paths if time else DEFAULT_TIME_PATHS)

    def _values(self, given: ast.Object) -> None:
        for pair in given.pairs:
            self._value(pair.value)

    def _value(self, value: ast.Expr | ast.Object) -> None:
        if isinstance(value, ast.Object):
            self._values(value)
        elif isinstance(value, ast.Array):
            for item in value.items:
                self._value(item)
        elif isinstance(value, ast.Negative) and isinstance(value.operand, ast.Literal):
            self._value(value.operand)
        elif not isinstance(value, ast.Literal | ast.DurationLiteral):
            self.world.found.error(
                "E074",
                value.span,
                "a value in a test must be a literal",
                help='texts stand in quotes: `"…"`' if isinstance(value, ast.Name) else None,
            )

    # -------------------------------------------------------------------------- expectations

    def _expect(self, step: ast.TestExpect) -> None:
        if step.rule is None:
            return
        name = step.rule.name
        if step.object is not None:
            self._values(step.object)
        active = {ident.name for ident in self.test.rules}
        if name not in self.world.rules:
            if name not in active:  # else it has been told at the beginning of the test
                self._unknown_rule(step.rule)
            return
        if name not in active:
            self.world.found.error(
                "E071",
                step.rule.span,
                f"rule `{name}` is not active in this test",
                help=f"name it: `test {', '.join([i.name for i in self.test.rules] + [name])} …`",
            )
            return
        rule = self.rules.get(name)
        if rule is not None and step.object is not None:
            names = _names_of(rule, key_only=step.kind == "undecided")
            for pair in step.object.pairs:
                self._expected_name(pair, rule, names)

    def _expected_name(self, pair: ast.Pair, rule: Rule, names: list[str]) -> None:
        dotted = pair.path.dotted
        steps = _steps(rule)
        if dotted in names or (pair.path.names[0] in steps and pair.path.names[0] in names):
            return
        guess = did_you_mean(dotted, names)
        self.world.found.error(
            "E073",
            pair.path.span,
            f"a match of `{rule.name}` has nothing called `{dotted}`",
            help=f"did you mean `{guess}`?" if guess else _what_it_has(rule, dotted, names),
        )


def _stands_unread(ident: ast.Ident) -> bool:
    """Whether the file has a rule of this name, which then was not understood."""
    rule = rf"^[ \t]*rule[ \t]+`?{re.escape(ident.name)}\b"
    return re.search(rule, ident.span.source.text, re.MULTILINE) is not None


def _what_it_has(rule: Rule, name: str, names: list[str]) -> str:
    if name in _aggregates(rule):
        return f'give it to the match: `alert "…" {{ {name} = {name} }}`'
    return f"it has {listing(names)}"


def _aggregates(rule: Rule) -> list[str]:
    """The names of the values that a window computes."""
    clauses = rule.ast.clauses if rule.ast is not None else ()
    windows = [clause for clause in clauses if isinstance(clause, ast.Aggregate)]
    return [field.name.name for window in windows for field in window.fields]


def _steps(rule: Rule) -> list[str]:
    if rule.ast is None:
        return []
    for clause in rule.ast.clauses:
        if isinstance(clause, ast.Pattern) and not isinstance(clause, ast.Aggregate):
            return step_names(steps_of(clause))
    return []


def _names_of(rule: Rule, *, key_only: bool) -> list[str]:
    """What an expectation may name: parts of the key, fields and steps."""
    names = [part.name for part in rule.key]
    if key_only:
        return names
    for alert in (rule.alert, rule.timeout_alert):
        names += [name for name, _ in alert.fields] if alert else []
    names += _steps(rule)
    return [*dict.fromkeys(names), *sorted(MATCH_FIELDS)]


def _shown(micros: int) -> str:
    """A time since the start of the test, as people write it."""
    for unit, size in (("h", 3_600_000_000), ("m", 60_000_000), ("s", _SECOND), ("ms", 1000)):
        if micros % size == 0 and micros >= size:
            return f"{micros // size}{unit}"
    return f"{micros}us" if micros else "0s"
