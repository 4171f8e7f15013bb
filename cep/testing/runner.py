"""Runs the `test` blocks of rule files (section 9 of the language).

In: a ruleset and a factory of engines; out: a `TestResult` for each test.
A test owns the clock: it starts at 2026-01-01T00:00:00Z, only the rules that it names are active,
and each `expect` takes the next match since the last one. The engine is the real one or the
reference matcher; the runner asks no more of it than `process_at`, `advance_to` and `undecided`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from cep.engine import Engine as CompiledEngine
from cep.testing.events import START, Action, Given, Moved, TestProblem, actions, constant, offset
from cep.testing.reference import ReferenceEngine
from cep.testing.reference_values import same
from dsl import ast, checked
from dsl.source import Span


class RuleSource(Protocol):
    """What is tested: a `cep.Ruleset`, or anything else with checked rules."""

    @property
    def checked(self) -> checked.CheckedRules: ...


class Engine(Protocol):
    """What the runner asks of an engine."""

    def process_at(self, record: Any, time_us: int, /) -> Sequence[Any]: ...

    def advance_to(self, time: Any, /) -> Sequence[Any]: ...

    @property
    def undecided(self) -> Sequence[Any]: ...


EngineFactory = Callable[[Any, Sequence[str]], Engine]
"""Makes an engine for (ruleset, names of the active rules)."""


@dataclass(frozen=True, slots=True)
class TestResult:
    """How a test went. `message` says for a failure what was expected, where, and what came."""

    __test__ = False  # pytest: this is no test class

    test: ast.Test
    passed: bool
    message: str = ""


def compiled_engine(ruleset: Any, names: Sequence[str]) -> Engine:
    """The real engine, with these rules only."""
    return CompiledEngine(ruleset.select(names))


def reference_engine(ruleset: RuleSource, names: Sequence[str]) -> Engine:
    """The reference matcher, with these rules only."""
    return ReferenceEngine(ruleset.checked, names=names)


def run_tests(
    ruleset: RuleSource,
    engine_factory: EngineFactory = compiled_engine,
    only: Callable[[ast.Test], bool] | None = None,
) -> list[TestResult]:
    """Run the tests of the rule files, in their order; with `only`, those for which it is true.

    Never raises for a test that fails or that is wrong itself.
    """
    tests = [test for test in ruleset.checked.tests if only is None or only(test)]
    return [run_test(ruleset, test, engine_factory) for test in tests]


def run_test(
    ruleset: RuleSource, test: ast.Test, engine_factory: EngineFactory = compiled_engine
) -> TestResult:
    """Run one test up to its first failure."""
    names = [rule.name for rule in test.rules]
    try:
        play = _Play(engine_factory(ruleset, names))
        for action in actions(ruleset.checked, test):
            play.act(action)
        play.end(test.span)
    except TestProblem as problem:
        return TestResult(test, passed=False, message=str(problem))
    return TestResult(test, passed=True)


@dataclass
class _Play:
    """A test that is being run: the clock, and the matches that no `expect` has taken."""

    engine: Engine
    clock: int = START
    waiting: list[Any] = field(default_factory=list)
    taken: list[Any] = field(default_factory=list)

    def act(self, action: Action) -> None:
        if isinstance(action, Given):
            self.clock = action.time
            self.waiting += self.engine.process_at(action.record, action.time)
        elif isinstance(action, Moved):
            self.clock = action.time
            self.waiting += self.engine.advance_to(action.time)
        else:
            self._expect(action)

    def end(self, span: Span) -> None:
        if self.waiting:
            raise TestProblem(
                span,
                "the test ends with a match that no `expect` takes:\n"
                + self._listed(self.waiting, "  "),
            )

    # ------------------------------------------------------------------------ expectations

    def _expect(self, step: ast.TestExpect) -> None:
        if step.kind == "nothing":
            if self.waiting:
                raise TestProblem(
                    step.span,
                    "expected nothing, but there came\n" + self._listed(self.waiting, "  "),
                )
        elif step.kind == "undecided":
            self._expect_undecided(step)
        else:
            self._expect_match(step)

    def _expect_match(self, step: ast.TestExpect) -> None:
        if not self.waiting:
            raise TestProblem(step.span, f"{_wanted(step)}\n{self._nothing_came()}")
        differences = self._differences(step, self.waiting[0])
        if differences:
            raise TestProblem(step.span, f"{_wanted(step)}\n{self._what_came(step)}")
        self.taken.append(self.waiting.pop(0))

    def _expect_undecided(self, step: ast.TestExpect) -> None:
        open_now = list(self.engine.undecided)
        for each in open_now:
            wanted = step.rule.name if step.rule else ""
            at = step.at is None or each.deadline_us == START + step.at.micros
            if each.rule == wanted and at and not _wrong_fields(step, each.key):
                return
        listed = "\n".join(
            f"  {each.rule} {_object(each.key)} until {_until(each.deadline_us)}"
            for each in open_now
        )
        raise TestProblem(step.span, f"{_wanted(step)}\nopen absences:\n{listed or '  none'}")

    def _differences(self, step: ast.TestExpect, match: Any) -> list[str]:
        """Why the match is not the expected one, the most telling reason first."""
        found = []
        if step.rule is not None and match.rule != step.rule.name:
            found.append(f"it is of rule {match.rule}")
        if match.kind != step.kind:
            found.append(f"it is a {match.kind}")
        if step.at is not None and match.time != START + step.at.micros:
            found.append(f"it comes at {offset(match.time)}")
        return found + _wrong_fields(step, facts(match))

    # ------------------------------------------------------------------------ words

    def _what_came(self, step: ast.TestExpect) -> str:
        nearest = min(self.waiting, key=lambda match: len(self._differences(step, match)))
        lines = ["what came since the last `expect`:", self._listed(self.waiting, "  ")]
        differences = self._differences(step, nearest)
        if nearest is not self.waiting[0]:
            place = self.waiting.index(nearest) + 1
            lines.append(f"the nearest is number {place}: an `expect` takes the next match")
        if differences:
            lines.append(f"the nearest differs: {', '.join(differences)}")
        return "\n".join(lines)

    def _nothing_came(self) -> str:
        lines = [f"nothing came; the clock is at {offset(self.clock)}"]
        if self.taken:
            lines += ["earlier matches, already taken:", self._listed(self.taken[-3:], "  ")]
        lines += [
            f"still open: {each.rule} {_object(each.key)} until {_until(each.deadline_us)}"
            for each in list(self.engine.undecided)[:3]
        ]
        return "\n".join(lines)

    def _listed(self, matches: Iterable[Any], indent: str) -> str:
        lines = [f"{indent}{describe(match)}" for match in matches]
        more = len(lines) - 10
        return "\n".join(lines[:10] + ([f"{indent}… and {more} more"] if more > 0 else []))


def facts(match: Any) -> dict[str, object]:
    """What an expectation may name: fields, key parts, `step` for how many events, `step.f`."""
    found: dict[str, object] = {}
    for step, shown in match.events.items():
        events = shown if isinstance(shown, list) else [shown]
        found[step] = len(events)
        for name, value in _flat(events[-1]):
            found[f"{step}.{name}"] = value
    suppressed = match.suppressed or {}
    found["suppressed"] = suppressed.get("count", 0)
    found["message"] = match.message
    return {**found, **match.key, **match.fields}


def _flat(record: Mapping[str, object], prefix: str = "") -> Iterable[tuple[str, object]]:
    for name, value in record.items():
        yield prefix + name, value
        if isinstance(value, Mapping):
            yield from _flat(value, f"{prefix}{name}.")


def _wrong_fields(step: ast.TestExpect, known: Mapping[str, object]) -> list[str]:
    """The given fields that are not as expected."""
    found = []
    for pair in step.object.pairs if step.object else ():
        name, wanted = pair.path.dotted, constant(pair.value)
        if name not in known:
            if wanted is not None and not _no_events(name, wanted, known):
                found.append(f"it has no {name}")
        elif not same(known[name], wanted):
            found.append(f"{name} is {shown_value(known[name])}")
    return found


def _no_events(name: str, wanted: object, known: Mapping[str, object]) -> bool:
    """`step: 0` holds when the step took nothing."""
    return wanted == 0 and not isinstance(wanted, bool) and "." not in name


# ---------------------------------------------------------------------------- how things read


def describe(match: Any) -> str:
    """A match in a line: time since the start, kind, rule, key, fields and numbers of events."""
    counts = {
        name: len(shown) if isinstance(shown, list) else 1 for name, shown in match.events.items()
    }
    kind = "" if match.kind == "match" else f"{match.kind} "
    text = f"at {offset(match.time)} {kind}{match.rule} "
    text += _object({**match.key, **match.fields, **counts})
    return text if match.message is None else f"{text} {shown_value(match.message)}"


def shown_value(value: object) -> str:
    """A value as a rule file would write it."""
    if isinstance(value, str):
        escaped = value.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
        return f'"{escaped}"'
    if value is None or isinstance(value, bool):
        return {None: "null", True: "true", False: "false"}[value]
    if isinstance(value, Mapping):
        return _object(value)
    if isinstance(value, list | tuple):
        return "[" + ", ".join(map(shown_value, value)) + "]"
    return str(value)


def _object(fields: Mapping[str, object]) -> str:
    if not fields:
        return "{}"
    return "{ " + ", ".join(f"{n}: {shown_value(v)}" for n, v in fields.items()) + " }"


def _until(deadline: int | None) -> str:
    return "the end" if deadline is None else offset(deadline)


def _wanted(step: ast.TestExpect) -> str:
    rule = step.rule.name if step.rule else ""
    at = f"at {offset(START + step.at.micros)} " if step.at else ""
    kind = "" if step.kind == "match" else f"{step.kind} "
    given = {p.path.dotted: constant(p.value) for p in step.object.pairs} if step.object else {}
    return f"expected {at}{kind}{rule}{' ' + _object(given) if given else ''}"
