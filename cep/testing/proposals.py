"""Proposes a test that tells a rule from a mutant of it.

In: both, and the tests that do not tell them apart. Out: the text of a test that does, or None.

The tests there are give the material: one thing in their events is varied at a time (a moment to a
tick before, at and after each bound; an event more, less, or of what ends a run; a number at each
limit; a part of the key changed or missing, also where it is captured from a text; the whole test
again after each bound), both rules run over it, and the first variation on which they differ is
written down with what the rule itself finds. What is proposed is therefore right if the rule is
right: whoever pastes it has to say so.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import islice
from string import ascii_lowercase, ascii_uppercase, digits
from typing import Any, NamedTuple

from cep.engine import Engine
from cep.ruleset import Ruleset
from cep.testing.events import START, Given, Moved, TestProblem, actions
from cep.testing.mutants import Mutant, number_changes
from cep.testing.runner import facts, shown_value
from dsl import ast, regex
from dsl.checked import (
    CallFunction,
    CheckedRules,
    Const,
    Field,
    Guard,
    Pattern,
    Step,
    WindowPattern,
)
from dsl.checker.keys import part_names
from dsl.text import duration_text, test_head, to_text

MOST_TRIALS = 3000
"""Variations tried for one mutant."""

MOST_BEGINNINGS = 12
"""Beginnings of a test that are varied too, so that an end which decides too much can go."""

MOST_COPIES = 200
"""Copies of one event at most; larger counts are not tried."""

NEAR = (0, -1, 1)


@dataclass(frozen=True, slots=True)
class Moment:
    """An event of a test at a time, in microseconds since its start."""

    time: int
    stream: ast.Ident
    object: ast.Object


Story = list[Moment]


class Engines:
    """Makes engines of one ruleset; each choice of rules is compiled once."""

    def __init__(self) -> None:
        self.selected: dict[tuple[str, ...], Ruleset] = {}

    def __call__(self, ruleset: Ruleset, names: Sequence[str]) -> Engine:
        key = tuple(names)
        if key not in self.selected:
            self.selected[key] = ruleset.select(names)
        return Engine(self.selected[key])


def proposal(
    original: Ruleset, changed: Ruleset, tests: Sequence[ast.Test], mutant: Mutant
) -> str | None:
    """The text of a test of the original that fails for the changed one. Costs some thousand short
    runs when there is none."""
    hints = _Hints(original, tests, mutant)
    trial = _Trial(original, changed, hints)
    for story, rules in islice(_variations(original, tests, hints), MOST_TRIALS):
        if trial.tells_apart(story, rules):
            return trial.text(_shortened(trial, story, rules), rules)
    return None


def _shortened(trial: _Trial, story: Story, rules: Sequence[ast.Ident]) -> Story:
    """The story without the events that it does not need, the last ones looked at first."""
    for i in reversed(range(len(story))):
        shorter = story[:i] + story[i + 1 :]
        if trial.tells_apart(shorter, rules):
            story = shorter
    return story


@dataclass(frozen=True, slots=True)
class _Trial:
    """The rule and its mutant side by side."""

    original: Ruleset
    changed: Ruleset
    hints: _Hints
    of_original: Engines = field(default_factory=Engines)
    of_changed: Engines = field(default_factory=Engines)

    def tells_apart(self, story: Story, rules: Sequence[ast.Ident]) -> bool:
        """Whether what the two find differs in something that a test can expect."""
        test = self._test(story, rules)
        try:
            wanted, got = self._both(test)
        except TestProblem:
            return False
        return _told(wanted, self.hints.key_part) != _told(got, self.hints.key_part)

    def text(self, story: Story, rules: Sequence[ast.Ident]) -> str:
        """The story as a test of what the rule finds."""
        test = self._test(story, rules)
        wanted, got = self._both(test)
        if isinstance(test.steps[-1], ast.TestAdvance) and not wanted[-1] and not got[-1]:
            test, wanted = replace(test, steps=test.steps[:-1]), wanted[:-1]
        return _text(test, wanted)

    def _both(self, test: ast.Test) -> tuple[list[list[Any]], list[list[Any]]]:
        wanted = _play(self.original, test, self.of_original)
        return wanted, _play(self.changed, test, self.of_changed)

    def _test(self, story: Story, rules: Sequence[ast.Ident]) -> ast.Test:
        return ast.Test(tuple(rules), self.hints.title, tuple(_steps(story, self.hints.horizon)))


# ---------------------------------------------------------------------------- running


def _steps(story: Story, horizon: int) -> Iterator[ast.TestStep]:
    """The events, and the time after them in which absences come to light."""
    for moment in story:
        yield ast.TestEvent(moment.stream, moment.object, "at", ast.Duration(moment.time))
    if horizon:
        yield ast.TestAdvance(ast.Duration(horizon))


def _play(ruleset: Ruleset, test: ast.Test, engines: Engines) -> list[list[Any]]:
    """The matches of each step."""
    engine = engines(ruleset, [rule.name for rule in test.rules])
    found: list[list[Any]] = []
    for action in actions(ruleset.checked, test):
        if isinstance(action, Given):
            found.append(engine.process_at(action.record, action.time))
        elif isinstance(action, Moved):
            found.append(engine.advance_to(action.time))
    return found[1:]


def _told(found: list[list[Any]], key_part: str | None) -> list[list[object]]:
    """What an expectation can tell of matches, without a merged part of the key."""
    return [[_seen(match, key_part) for match in step] for step in found]


def _seen(match: Any, key_part: str | None) -> object:
    known = {k: v for k, v in facts(match).items() if k not in (key_part, "message")}
    return match.rule, match.kind, match.time, known


# ---------------------------------------------------------------------------- variations


class _Hints:
    """What the rule says: its limits, its keys and its streams."""

    def __init__(self, ruleset: Ruleset, tests: Sequence[ast.Test], mutant: Mutant) -> None:
        rules = {rule.name for test in tests for rule in test.rules}
        trees = [ruleset.rules[name].ast for name in sorted(rules)]
        places: list[ast.Node] = [mutant.statement, *(tree for tree in trees if tree is not None)]
        nodes = [node for place in places for node in place.walk()]
        params = ruleset.checked.params
        self.key_part = mutant.key_part
        self.title = f"{mutant.was}, not {mutant.now}" if mutant.now else f"needs {mutant.was}"
        self.durations = sorted({n.micros for n in nodes if isinstance(n, ast.Duration)})
        constants = [n for n in nodes if isinstance(n, ast.Literal)]
        constants += [ast.Literal(p.value) for p in params.values() if isinstance(p, Const)]
        self.numbers = list(dict.fromkeys(near for each in constants for near in _near(each)))
        self.counts = sorted(
            {c for node in nodes for n in _counts_in(node) for c in range(n - 1, n + 2)}
        )
        self.keys = {
            name for node in nodes if isinstance(node, ast.By) for name in part_names(node)
        }
        self.guards = {
            node.stream.name: node.stream
            for node in nodes
            if isinstance(node, ast.Absent | ast.Unless | ast.Until)
        }
        self.captures = list(dict.fromkeys(_captures(ruleset.checked, rules)))
        self.horizon = max(self.durations, default=0) + 1


class _Capture(NamedTuple):
    """A part of a field of the event that the rules read by itself."""

    field: str
    pattern: Pattern
    group: int | str

    def span(self, text: str) -> tuple[int, int]:
        """Where the part stands in a text; (-1, -1) if it is not there."""
        compiled = regex.compiled(self.pattern.pattern, self.pattern.flags)
        group = self.group if isinstance(self.group, int) else compiled.groupindex[self.group]
        found = compiled.search(text)
        span: tuple[int, int] = found.span(group) if found is not None else (-1, -1)
        return span


def _captures(checked: CheckedRules, rules: Collection[str]) -> Iterator[_Capture]:
    """What streams select, and what keys are made of, by `capture` of one field."""
    values = [value for stream in checked.streams.values() for _, value in stream.select or ()]
    for name in rules:
        pattern = checked.rules[name].pattern
        nodes = (pattern,) if isinstance(pattern, WindowPattern) else pattern.nodes
        values += [v for n in nodes if isinstance(n, WindowPattern | Step | Guard) for v in n.by]
    for part in (part for value in values for part in value.walk()):
        match part:
            case CallFunction("capture", (Field() as source, Pattern() as expression, *group)):
                which = group[0].value if group and isinstance(group[0], Const) else 1
                if isinstance(which, int | str):
                    yield _Capture(".".join(source.path), expression, which)


def _counts_in(node: ast.Node) -> list[int]:
    """The counts that a quantifier, a window or a constant stands for."""
    match node:
        case ast.Quantifier():
            found = [node.minimum, node.maximum]
        case ast.Window():
            found = [node.count]
        case ast.Literal(value=int() as number) if not isinstance(number, bool):
            found = [number]
        case _:
            found = []
    return [n for n in found if n is not None and 2 <= n <= MOST_COPIES]


def _variations(
    ruleset: Ruleset, tests: Sequence[ast.Test], hints: _Hints
) -> Iterator[tuple[Story, Sequence[ast.Ident]]]:
    """Each kind of variation of each test in turn, so that no kind has to wait for another."""
    open_now: list[tuple[Iterator[Story], Sequence[ast.Ident]]] = []
    for test in sorted(tests, key=_length):
        story = _story(ruleset, test)
        open_now += [(_of_each_length(maker, story, hints), test.rules) for maker in MAKERS]
    while open_now:
        still_open = []
        for stories, rules in open_now:
            for varied in islice(stories, 1):
                yield varied, rules
                still_open.append((stories, rules))
        open_now = still_open


def _of_each_length(maker: Maker, story: Story, hints: _Hints) -> Iterator[Story]:
    """Variations of the whole story, then of its beginnings."""
    if story:
        yield from maker(story, hints)
    for length in range(1, min(len(story), MOST_BEGINNINGS)):
        yield from maker(story[:length], hints)


def _length(test: ast.Test) -> int:
    return sum(step.times for step in test.steps if isinstance(step, ast.TestEvent))


def _story(ruleset: Ruleset, test: ast.Test) -> Story:
    """The events of a test one by one."""
    events = [step for step in test.steps if isinstance(step, ast.TestEvent)]
    try:
        given = [a.time for a in actions(ruleset.checked, test) if isinstance(a, Given)]
    except TestProblem:
        return []
    single = [event for event in events for _ in range(event.times)]
    return [
        Moment(time - START, event.stream, event.object)
        for event, time in zip(single, given, strict=True)
    ]


def _times(story: Story, hints: _Hints) -> Iterator[Story]:
    """An event, and with it those after it, at a bound after an earlier one; the last first."""
    for j in range(len(story) - 1, 0, -1):
        for i in range(j):
            for duration in hints.durations:
                for near in NEAR:
                    shift = story[i].time + duration + near - story[j].time
                    if story[j].time + shift >= story[j - 1].time:
                        yield story[:j] + _later(story[j:], shift)


def _later(story: Story, shift: int) -> Story:
    return [replace(moment, time=moment.time + shift) for moment in story]


def _counts(story: Story, hints: _Hints) -> Iterator[Story]:
    """One event less, or one of those that are there once more."""
    kinds = {(moment.stream, moment.object): moment for moment in story}
    for i, moment in enumerate(story):
        yield story[:i] + story[i + 1 :]
        for other in kinds.values():
            yield [*story[: i + 1], replace(other, time=moment.time), *story[i + 1 :]]


def _repeated(story: Story, hints: _Hints) -> Iterator[Story]:
    """One of the events as often as a count says, and once less and more."""
    for i, moment in enumerate(story):
        for count in hints.counts:
            yield [*story[:i], *[moment] * count, *story[i + 1 :]]


def _again(story: Story, hints: _Hints) -> Iterator[Story]:
    """The whole test once more, so that its end comes at a bound after its first end."""
    length = story[-1].time - story[0].time
    for duration in hints.durations:
        for near in NEAR:
            for shift in {duration + near, duration + near + length}:
                if shift >= length:
                    yield story + _later(story, shift)


def _values(story: Story, hints: _Hints) -> Iterator[Story]:
    """A field of one event changed, or not there; first those of the key."""
    pairs = [(i, pair) for i, moment in enumerate(story) for pair in moment.object.pairs]
    for i, pair in sorted(pairs, key=lambda place: place[1].path.dotted not in hints.keys):
        yield _with_pair(story, i, pair, _other(pair.value))
        yield _with_pair(story, i, pair, None)


def _captured(story: Story, hints: _Hints) -> Iterator[Story]:
    """The part of a text that a stream or a key captures is another, the rest stays."""
    for i, moment in enumerate(story):
        for pair in moment.object.pairs:
            text = pair.value.value if isinstance(pair.value, ast.Literal) else None
            for capture in hints.captures:
                if isinstance(text, str) and capture.field == pair.path.dotted:
                    start, end = capture.span(text)
                    changed = text[:start] + _another(text[start:end]) + text[end:]
                    if 0 <= start < end and capture.span(changed) == (start, end):
                        yield _with_pair(story, i, pair, ast.Literal(changed))


def _another(text: str) -> str:
    """A text of the same length and kind: its last letter or digit is the next one."""
    for i in reversed(range(len(text))):
        if text[i] in _NEXT:
            return text[:i] + _NEXT[text[i]] + text[i + 1 :]
    return text


_NEXT = {
    one: row[(i + 1) % len(row)]
    for row in (digits[1:], ascii_lowercase, ascii_uppercase)
    for i, one in enumerate(row)
}


def _numbers(story: Story, hints: _Hints) -> Iterator[Story]:
    """A number, of no part of the key, at a limit and beside it."""
    for i, moment in enumerate(story):
        for pair in moment.object.pairs:
            if _number(pair.value) is not None and pair.path.dotted not in hints.keys:
                for number in hints.numbers:
                    yield _with_pair(story, i, pair, number)


def _near(literal: ast.Literal) -> list[ast.Literal]:
    """A number and those beside it; nothing for a text."""
    if _number(literal) is None:
        return []
    return [literal, *(change.node for change in number_changes(literal))]


def _number(value: ast.Expr | ast.Object) -> int | float | None:
    number = value.value if isinstance(value, ast.Literal) else None
    return number if isinstance(number, int | float) and not isinstance(number, bool) else None


def _same_values(story: Story, hints: _Hints) -> Iterator[Story]:
    """A value as it is in another event."""
    for i, moment in enumerate(story):
        for pair in moment.object.pairs:
            for other in story[:i]:
                value = {p.path: p.value for p in other.object.pairs}.get(pair.path, pair.value)
                if value != pair.value:
                    yield _with_pair(story, i, pair, value)


def _guards(story: Story, hints: _Hints) -> Iterator[Story]:
    """An event of a stream that ends or forbids something, with the fields of the one before."""
    for i, moment in enumerate(story):
        for stream in hints.guards.values():
            yield [*story[: i + 1], replace(moment, stream=stream), *story[i + 1 :]]
            for duration in hints.durations:
                for near in NEAR:
                    guard = Moment(moment.time + duration + near, stream, moment.object)
                    if i == len(story) - 1 or guard.time <= story[i + 1].time:
                        yield [*story[: i + 1], guard, *story[i + 1 :]]


def _with_pair(story: Story, i: int, pair: ast.Pair, value: ast.Expr | ast.Object | None) -> Story:
    """The story with another value of a field in event `i`; None: without the field."""
    new = () if value is None else (replace(pair, value=value),)
    pairs = [p for old in story[i].object.pairs for p in (new if old is pair else (old,))]
    changed = replace(story[i].object, pairs=tuple(pairs))
    return [*story[:i], replace(story[i], object=changed), *story[i + 1 :]]


def _other(value: ast.Expr | ast.Object) -> ast.Expr | ast.Object:
    """Another value of the same type."""
    if isinstance(value, ast.Literal) and isinstance(value.value, str):
        return ast.Literal(f"{value.value}-other")
    number = _number(value)
    return value if number is None else ast.Literal(number + 1)


Maker = Callable[[Story, _Hints], Iterator[Story]]

MAKERS: tuple[Maker, ...] = (
    _values,
    _captured,
    _counts,
    _repeated,
    _times,
    _numbers,
    _guards,
    _again,
    _same_values,
)


# ---------------------------------------------------------------------------- the text


def _text(test: ast.Test, found: list[list[Any]]) -> str:
    """The test with the matches that the rule finds, ready to paste."""
    lines = [f"{test_head(test)} {{"]
    waiting: list[ast.TestEvent] = []
    for step, matches in zip(test.steps, found, strict=True):
        if isinstance(step, ast.TestEvent):
            waiting.append(step)
        else:
            lines += [*_joined(waiting), f"  {to_text(step)}"]
            waiting = []
        if matches:
            lines += [*_joined(waiting), *(f"  {_expectation(match)}" for match in matches)]
            waiting = []
    lines += _joined(waiting)
    if not found or not found[-1]:
        lines.append("  expect nothing")
    return "\n".join([*lines, "}"])


def _joined(events: list[ast.TestEvent]) -> list[str]:
    """Equal events at even distances are written as one step."""
    lines = []
    i = 0
    while i < len(events):
        end, gap = i + 1, None
        while end < len(events) and _equal(events[i], events[end]):
            between = _at(events[end]) - _at(events[end - 1])
            if between == 0 or gap not in (None, between):
                break
            gap, end = between, end + 1
        step = events[i]
        if gap is not None:
            step = replace(step, times=end - i, every=ast.Duration(gap))
        lines.append(f"  {to_text(step)}")
        i = end
    return lines


def _equal(event: ast.TestEvent, other: ast.TestEvent) -> bool:
    return event.stream == other.stream and event.object == other.object


def _at(event: ast.TestEvent) -> int:
    return event.offset.micros if event.offset is not None else 0


def _expectation(match: Any) -> str:
    kind = "" if match.kind == "match" else f"{match.kind} "
    counts = {
        step: len(events) for step, events in match.events.items() if isinstance(events, list)
    }
    known = {**match.key, **counts}
    if match.suppressed:
        known["suppressed"] = match.suppressed["count"]
    given = ", ".join(f"{name}: {shown_value(value)}" for name, value in known.items())
    at = duration_text(match.time - START)
    return f"expect at {at} {kind}{match.rule}" + (f" {{ {given} }}" if given else "")
