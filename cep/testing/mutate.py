"""Would a test notice? Runs the tests of rules over each mutant of them.

In: rule files and how they are loaded. Out: a `Report` with the mutants that all tests let pass,
each with a test that tells it from the rule where one is found (`proposals`).

A mutant that the checker refuses is no possible mistake, and one that means the same as the rule
(equal to the last condition once it is checked) is none at all; neither is counted. A merged key
part must be noticed by what is found and when, not by the value of the part in the match, so the
expectations do not look at that part.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from cep.extend import as_functions, installed_functions
from cep.lookup_files import LookupFiles, refresh, with_items
from cep.ruleset import Ruleset
from cep.testing.mutants import Mutant, mutants
from cep.testing.proposals import Engines, proposal
from cep.testing.runner import run_test
from dsl import ast
from dsl.checked import FunctionSignature
from dsl.checker import check
from dsl.checker.loading import load, read_file
from dsl.diagnostics import Diagnostics
from dsl.source import Source

Tree = tuple[ast.File, Source]


@dataclass(frozen=True, slots=True)
class Survivor:
    """A mutant that no test notices. `proposal` is the text of a test that would, if one was
    found."""

    mutant: Mutant
    rules: tuple[str, ...]
    proposal: str | None


@dataclass(slots=True)
class Report:
    """How many mutants were tried, which of them passed, and which rules have no test at all."""

    tried: int = 0
    survivors: list[Survivor] = field(default_factory=list)
    untested: list[ast.Rule] = field(default_factory=list)

    @property
    def passed(self) -> bool:
        """Whether every mutant was noticed."""
        return not self.survivors and not self.untested


def mutate(
    trees: Sequence[Tree],
    *,
    params: Mapping[str, object] | None = None,
    functions: Iterable[FunctionSignature] = (),
    type_field: str | None = None,
    only: Callable[[ast.Test], bool] | None = None,
    on_mutant: Callable[[int], None] | None = None,
) -> Report:
    """Try all mutants of the rules in these files, and of the `param`s and `def`s they use.

    The files must be free of errors and their tests pass. `only` chooses the tests that are run,
    and with them the rules; `on_mutant` is told how many mutants have been tried.

    >>> from dsl.parser import parse
    >>> source = Source("a.cep", '''rule big { on pay where sum > 9  alert "{pay.sum}" }
    ... test big "ten is big" { pay { sum: 10 }  expect big }''')
    >>> [survivor.mutant.words for survivor in mutate([(parse(source)[0], source)]).survivors]
    ['`where sum > 9` is left out', '`sum > 9` is `sum >= 9`', '`9` is `8`']
    """
    given = {one.name: one for one in as_functions(functions)}
    laboratory = _Laboratory(trees, params or {}, given, type_field, only)
    report = Report()
    for statement in laboratory.statements():
        _try_all(laboratory, statement, report, on_mutant)
    return report


def _try_all(
    laboratory: _Laboratory,
    statement: ast.Statement,
    report: Report,
    on_mutant: Callable[[int], None] | None,
) -> None:
    rules = laboratory.rules_of(statement)
    tests = laboratory.tests_of(rules)
    if not tests:
        if isinstance(statement, ast.Rule) and laboratory.only is None:
            report.untested.append(statement)
        return
    original = laboratory.ruleset(tests)
    assert original is not None
    for mutant in mutants(statement):
        changed = laboratory.ruleset(tests, mutant)
        if changed is None or _same(original, changed):
            continue
        report.tried += 1
        if not _noticed(changed, tests, mutant):
            found = proposal(original, changed, tests, mutant)
            report.survivors.append(Survivor(mutant, tuple(rules), found))
        if on_mutant is not None:
            on_mutant(report.tried)


def _same(original: Ruleset, changed: Ruleset) -> bool:
    """Whether the checker makes the same of both."""
    before, after = original.checked, changed.checked
    return before.rules == after.rules and before.streams == after.streams


def _noticed(changed: Ruleset, tests: list[ast.Test], mutant: Mutant) -> bool:
    """Whether a test fails; the one that does goes to the front, for it often is the next too."""
    engines = Engines()
    for i, test in enumerate(tests):
        if not run_test(changed, _blind(test, mutant), engines).passed:
            tests.insert(0, tests.pop(i))
            return True
    return False


def _blind(test: ast.Test, mutant: Mutant) -> ast.Test:
    """The test without a look at the part of the key that the mutant has merged, and at what the
    alert says of it: a match of the mutant is judged as if it kept the value."""
    if mutant.key_part is None:
        return test
    names = {mutant.key_part, *_told_by(mutant.statement, mutant.key_part)}
    return replace(test, steps=tuple(_without(step, names) for step in test.steps))


def _told_by(statement: ast.Statement, part: str) -> set[str]:
    """What of the alert names this part of the key: fields, and `message` for its text."""
    found: set[str] = set()
    for alert in (node for node in statement.walk() if isinstance(node, ast.Alert)):
        if any(not isinstance(text, str) and _names(text, part) for text in alert.parts):
            found.add("message")
        found |= {one.name.name for one in alert.assigns if _names(one.value, part)}
    return found


def _names(expr: ast.Expr, name: str) -> bool:
    return any(isinstance(node, ast.Name) and node.ident.name == name for node in expr.walk())


def _without(step: ast.TestStep, names: Collection[str]) -> ast.TestStep:
    if not isinstance(step, ast.TestExpect) or step.object is None:
        return step
    pairs = tuple(pair for pair in step.object.pairs if pair.path.dotted not in names)
    return replace(step, object=replace(step.object, pairs=pairs))


def _emits(rule: ast.Rule) -> bool:
    return any(isinstance(clause, ast.Emit | ast.OnTimeout) for clause in rule.clauses)


class _Laboratory:
    """The files, taken apart so that rules can be checked with only what they need."""

    def __init__(
        self,
        trees: Sequence[Tree],
        params: Mapping[str, object],
        functions: Mapping[str, FunctionSignature],
        type_field: str | None,
        only: Callable[[ast.Test], bool] | None,
    ) -> None:
        loaded = load(trees, read_file, Diagnostics())
        self.files = [(one.file, one.source) for one in loaded]
        self.named = {id(file) for file, _ in trees}
        self.params = params
        self.functions = {**installed_functions()[0], **functions}
        self.type_field = type_field
        self.only = only
        self.lookups = LookupFiles()
        everything = [s for file, _ in self.files for s in file.statements]
        self.rules = {s.name.name: s for s in everything if isinstance(s, ast.Rule)}
        self.tests = [s for s in everything if isinstance(s, ast.Test) and (not only or only(s))]
        self.declared: dict[str, list[ast.Statement]] = {}
        for s in everything:
            if not isinstance(s, ast.Test | ast.Include):
                self.declared.setdefault(s.name.name, []).append(s)
        self.emitters = [rule for rule in self.rules.values() if _emits(rule)]
        self.uses = {name: self._mentioned([rule]) for name, rule in self.rules.items()}

    def statements(self) -> Iterator[ast.Statement]:
        """What is to be mutated: all that stands in the files that were named."""
        for file, _ in self.files:
            if id(file) in self.named:
                for statement in file.statements:
                    if not (
                        isinstance(statement, ast.Param) and statement.name.name in self.params
                    ):
                        yield statement

    def rules_of(self, statement: ast.Statement) -> list[str]:
        """The rule itself, or the rules that use a `param` or `def`."""
        if isinstance(statement, ast.Rule):
            return [statement.name.name]
        if isinstance(statement, ast.Param | ast.Def):
            return [rule for rule, used in self.uses.items() if statement.name.name in used]
        return []

    def tests_of(self, rules: Iterable[str]) -> list[ast.Test]:
        """The tests that name one of the rules."""
        wanted = set(rules)
        return [t for t in self.tests if wanted & {rule.name for rule in t.rules}]

    def ruleset(self, tests: Sequence[ast.Test], mutant: Mutant | None = None) -> Ruleset | None:
        """Only what these tests need, with the mutant in its place; None if it is in error."""
        needed = self._mentioned([*tests, *self.emitters])
        trees = []
        for file, source in self.files:
            kept = [s for s in file.statements if self._is_needed(s, needed, tests)]
            if mutant is not None:
                kept = [mutant.changed if s is mutant.statement else s for s in kept]
            trees.append((ast.File(tuple(kept), span=file.span), source))
        checked, _ = check(
            trees, params=self.params, functions=self.functions, type_field=self.type_field
        )
        if checked is None:
            return None
        self.lookups, _ = refresh(checked, self.lookups)
        return Ruleset(with_items(checked, self.lookups), (), self.lookups)

    def _is_needed(
        self, statement: ast.Statement, names: set[str], tests: Sequence[ast.Test]
    ) -> bool:
        if isinstance(statement, ast.Test):
            return any(statement is test for test in tests)
        return not isinstance(statement, ast.Include) and statement.name.name in names

    def _mentioned(self, roots: Sequence[ast.Statement]) -> set[str]:
        """All names that statements mention, themselves or through what they mention, and the
        stream that holds the defaults of all others."""
        found = {"event"}
        todo = [*roots, *self.declared.get("event", ())]
        while todo:
            names = {node.name for node in todo.pop().walk() if isinstance(node, ast.Ident)}
            todo += [s for name in names - found for s in self.declared.get(name, ())]
            found |= names
        return found
