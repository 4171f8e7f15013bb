"""A rule's way, on one page: files → trees → checked rules → plans → generated code.

`load` and `loads` are what a host calls; a `Ruleset` is what an engine is made from. Everything
that can be wrong with rule files is found here, before the first event.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from functools import cached_property, partial
from pathlib import Path

from cep.compile.program import Program
from cep.compile.rules import CompiledRules, compile_rules
from cep.extend import as_functions, installed_functions
from cep.lookup_files import LookupFiles, refresh, with_items
from cep.plan.limits import TooLarge
from dsl import checked
from dsl.checked import CheckedRules, FunctionSignature
from dsl.checker import check
from dsl.diagnostics import Diagnostic, RuleError
from dsl.source import NOWHERE, Source, Span

SUFFIX = ".cep"
UNKNOWN_FUNCTION = "E033"


class Ruleset:
    """Checked rules, ready to run. Unchanging: any number of engines may share one.

    `rules` by name; `warnings` are the diagnostics that did not stop the loading. Compiling is
    done when the first engine is made.

    >>> rules = loads('rule spike { on login where risk > 90 alert "{login.user}" }')
    >>> list(rules.rules)
    ['spike']
    """

    def __init__(
        self,
        rules: CheckedRules,
        warnings: Sequence[Diagnostic] = (),
        files: LookupFiles | None = None,
    ) -> None:
        self.checked = rules
        self.warnings = tuple(warnings)
        self.files = files or LookupFiles()

    @property
    def rules(self) -> Mapping[str, checked.Rule]:
        """The rules by name."""
        return self.checked.rules

    def select(self, names: Iterable[str]) -> Ruleset:
        """The same files with only these rules active. Raises KeyError for a name that is not
        there. Rules whose `emit` they read are not active (see `with_needed`)."""
        wanted = {name: self.rules[name] for name in names}
        others = [rule.span for name, rule in self.rules.items() if name not in wanted]
        warnings = [found for found in self.warnings if not _is_all_in(others, found)]
        return Ruleset(replace(self.checked, rules=wanted), warnings, self.files)

    def with_needed(self, names: Iterable[str]) -> list[str]:
        """These rules, and those whose `emit` they read, directly or through others."""
        wanted = dict.fromkeys(names)
        todo = list(wanted)
        while todo:
            needed = [name for name in self.checked.needs[todo.pop()] if name not in wanted]
            wanted.update(dict.fromkeys(needed))
            todo += needed
        return list(wanted)

    @cached_property
    def compiled(self) -> CompiledRules:
        """The plans and the generated code. Raises RuleError for a pattern that is too large."""
        try:
            lists = {name: values.items for name, values in self.checked.lists.items()}
            return compile_rules(self.checked, lists)
        except TooLarge as error:
            raise RuleError([Diagnostic("E900", error.span, str(error))]) from error

    def program(self, durable: bool = False) -> Program:
        """A new program with no state, for a host that keeps time and order itself. With `durable`
        its states tell when they change, so that they can be kept."""
        return Program(self.compiled, self.files.rows, durable)


def _is_all_in(rules: Sequence[Span], found: Diagnostic) -> bool:
    """Whether all that a diagnostic points at stands in these rules."""
    places = [found.span, *(label.span for label in found.labels)]
    return all(any(rule.covers(place) for rule in rules) for place in places)


def load(
    paths: str | Path | Iterable[str | Path],
    *,
    params: Mapping[str, object] | None = None,
    functions: Iterable[FunctionSignature] = (),
    type_field: str | None = None,
) -> Ruleset:
    """Reads and checks rule files; a folder stands for all `.cep` files in it.

    `params` overrides `param` values, `functions` are the host's (`cep.function`; those of
    installed packages are found without being named), `type_field` names the field that holds the
    type of an event where the rules do not (default `type`). Files of lists and tables are read
    too, whole.

    Raises `RuleError`, whose `diagnostics` are all the problems of all files, and OSError for a
    rule file that cannot be read.
    """
    single = isinstance(paths, str | Path)
    named = [Path(paths)] if single else [Path(path) for path in paths]  # type: ignore[arg-type,union-attr]
    sources = [_read(path) for path in _files(named)]
    return _checked(sources, params, functions, type_field)


def loads(
    text: str,
    *,
    name: str = "<rules>",
    params: Mapping[str, object] | None = None,
    functions: Iterable[FunctionSignature] = (),
    type_field: str | None = None,
) -> Ruleset:
    """Like `load`, for rules in a text; `name` stands for the file in messages."""
    return _checked([Source(name, text)], params, functions, type_field)


def _files(paths: Iterable[Path]) -> list[Path]:
    found: list[Path] = []
    for path in paths:
        found += sorted(path.rglob(f"*{SUFFIX}")) if path.is_dir() else [path]
    return found


def _read(path: Path) -> Source:
    return Source(str(path), path.read_text(encoding="utf-8"))


def _checked(
    sources: Sequence[Source],
    params: Mapping[str, object] | None,
    functions: Iterable[FunctionSignature],
    type_field: str | None,
) -> Ruleset:
    from dsl.parser import parse

    found: list[Diagnostic] = []
    trees = []
    for source in sources:
        tree, problems = parse(source)
        found += problems
        trees.append((tree, source))
    given = {function.name: function for function in as_functions(functions)}
    look = partial(check, trees, params=params or {}, type_field=type_field)
    rules, problems = look(functions=given)
    unknown = {d.span.text for d in problems if d.code == UNKNOWN_FUNCTION}
    if unknown:
        installed, failed = installed_functions()
        named = {name: one for name, one in installed.items() if name in unknown}
        rules, problems = look(functions={**named, **given})
        if any(d.code == UNKNOWN_FUNCTION for d in problems):
            found += [Diagnostic(UNKNOWN_FUNCTION, NOWHERE, reason) for reason in failed]
    found += problems
    if rules is None or any(problem.severity == "error" for problem in found):
        raise RuleError(found)
    files, read = refresh(rules, LookupFiles())
    if read.problems:
        raise RuleError([*found, *read.problems])
    return Ruleset(with_items(rules, files), found, files)
