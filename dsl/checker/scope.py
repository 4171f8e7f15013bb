"""What names mean at one place of a rule: which event is tested, which steps are bound, …

A `Scope` is made by whoever checks a clause and read by `dsl.checker.expressions`; the two of them
hold section 4's rules of names.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from dsl.checked import KeyPart, Value, WindowField
from dsl.source import Span
from dsl.types import Type


@dataclass(frozen=True, slots=True)
class StepInfo:
    """A step as expressions see it."""

    name: str
    stream: str
    span: Span
    loop: bool = False
    may_be_empty: bool = False


@dataclass(frozen=True)
class KeyNames:
    """The parts of a rule's key, found by full path or, where it is unique, by last field."""

    parts: tuple[KeyPart, ...] = ()

    def find(self, path: tuple[str, ...]) -> tuple[int, int] | None:
        """Index of the part that `path` begins with, and how many names of the path it takes."""
        for length in range(len(path), 0, -1):
            dotted = ".".join(path[:length])
            for index, part in enumerate(self.parts):
                if part.name == dotted:
                    return index, length
        last = [i for i, part in enumerate(self.parts) if part.name.split(".")[-1] == path[0]]
        return (last[0], 1) if len(last) == 1 else None

    def names(self) -> list[str]:
        """All names that people may use."""
        return [part.name for part in self.parts] + [
            part.name.split(".")[-1] for part in self.parts if "." in part.name
        ]


@dataclass(frozen=True, kw_only=True)
class Scope:
    """What may be named.

    `event`: the stream of the event being tested (None where none is). `steps`: those that are
    bound; `all_steps`: all of the rule, to tell what comes too early. `own`: the step whose
    condition this is. `fields`: earlier fields of the alert. `locals`: variables of `any`, `all`
    and parameters of a `def`. `on_step`: the one step of an `on` rule, whose fields may be named
    bare. `windows`: the aggregates of the rule. `calls`: inside an `aggregate` block, collects
    the aggregates; `in_aggregate`: inside one; `any_aggregate`: in a `def` by itself, whose place
    of use is not known. `constant`: no event, step or key at all. `hygienic`: in the body of a
    `def`, where steps cannot be named.
    """

    place: str
    event: str | None = None
    steps: Mapping[str, StepInfo] = field(default_factory=dict)
    all_steps: Mapping[str, StepInfo] = field(default_factory=dict)
    own: StepInfo | None = None
    keys: KeyNames = KeyNames()
    fields: Mapping[str, Value] = field(default_factory=dict)
    locals: Mapping[str, Value] = field(default_factory=dict)
    on_step: str | None = None
    windows: Mapping[str, Type] = field(default_factory=dict)
    calls: list[WindowField] | None = None
    in_aggregate: bool = False
    any_aggregate: bool = False
    constant: bool = False
    hygienic: bool = False
