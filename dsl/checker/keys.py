"""Keys: the parts of `by`, their names, and the values that route an event to its keys.

Every step, `no`, `unless` and `until` takes its key from its own `by` or from the rule's, so one
written part gives one value for each stream.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

from dsl import ast
from dsl.checked import KeyPart, Value
from dsl.checker.expressions import Resolver
from dsl.checker.names import flatten
from dsl.checker.nodes import nodes_of
from dsl.checker.scope import KeyNames, Scope, StepInfo
from dsl.checker.world import World, noun
from dsl.diagnostics import Label
from dsl.source import Span
from dsl.types import Type


def part_path(part: ast.KeyPart) -> tuple[str, ...]:
    """The path of the field that a part of a key is; () when it is something else."""
    base, links = flatten(part.value)
    if not isinstance(base, ast.Name):
        return ()
    names = [base.ident.name]
    for link in links:
        if not isinstance(link, ast.Ident):
            return ()
        names.append(link.name)
    if names[0] == "this" and not base.ident.quoted and len(names) > 1:
        names = names[1:]
    return tuple(names)


def part_names(by: ast.By) -> list[str]:
    """What the parts are called in records: by alias or path; "" for what has neither."""
    return [p.alias.name if p.alias else ".".join(part_path(p)) for p in by.parts]


def step_keys(rule: ast.Rule) -> list[ast.By]:
    """The `by`s of steps, `no`s and `unless`es, in the order in which they are written."""
    out: list[ast.By] = []
    for clause in rule.clauses:
        if isinstance(clause, ast.Pattern) and not isinstance(clause, ast.On | ast.Aggregate):
            for node in nodes_of(clause):
                if isinstance(node, ast.Step | ast.Absent) and node.by is not None:
                    out.append(node.by)
        elif isinstance(clause, ast.Unless) and clause.by is not None:
            out.append(clause.by)
    return out


class Keys:
    """The key of one rule, filled while its steps are checked."""

    def __init__(self, world: World, rule_by: ast.By | None, others: Iterable[ast.By]) -> None:
        self.world = world
        self.rule_by = rule_by
        self.model = rule_by or next(iter(others), None)
        """The `by` that names the parts."""
        self.names = self._check_names()
        self._values: dict[tuple[int, str], tuple[Value, ...]] = {}
        self._types: list[dict[Type, Span]] = [{} for _ in self.names]

    @property
    def parts(self) -> tuple[KeyPart, ...]:
        """The parts with the types that they have over all steps."""
        return tuple(
            KeyPart(name, next(iter(types)) if len(types) == 1 else Type.ANY)
            for name, types in zip(self.names, self._types, strict=True)
        )

    @property
    def key_names(self) -> KeyNames:
        """The parts as expressions see them."""
        return KeyNames(self.parts)

    @property
    def _model_parts(self) -> tuple[ast.KeyPart, ...]:
        return self.model.parts if self.model else ()

    def _check_names(self) -> list[str]:
        names: dict[str, Span] = {}
        out: list[str] = []
        written = part_names(self.model) if self.model else []
        for part, name in zip(self._model_parts, written, strict=True):
            if not name:
                self.world.found.error(
                    "E059",
                    part.value.span,
                    "this part of the key needs a name",
                    help=f"add one: `{part.value.span.text} as name`",
                )
                name = f"_{len(out) + 1}"
            elif name in names:
                self.world.found.error(
                    "E059",
                    part.span,
                    f"two parts of the key are called `{name}`",
                    help="rename one: `as other`",
                    labels=[Label(names[name], "the other one")],
                )
            names.setdefault(name, part.span)
            out.append(name)
        return out

    def values(
        self,
        by: ast.By | None,
        stream: str,
        owner: ast.Node,
        steps: Mapping[str, StepInfo],
        what: str,
    ) -> tuple[Value, ...]:
        """The key that events of `stream` have at a step or guard (`what`) with this `by`."""
        by = by or self.rule_by
        if by is None:
            if self.model is not None:
                self._missing(owner, what)
            return ()
        if len(by.parts) != len(self.names):
            self._wrong_number(by)
            return ()
        known = self._values.get((id(by), stream))
        if known is None:
            known = self._resolve(by, stream, steps)
            self._values[id(by), stream] = known
        return known

    def _resolve(self, by: ast.By, stream: str, steps: Mapping[str, StepInfo]) -> tuple[Value, ...]:
        plain = Scope(place="`by`", event=stream)
        guarded = Scope(place="`by`", event=stream, all_steps=steps)
        values = tuple(
            # A bare name is the field, and a step of that name is reported as a clash.
            Resolver(self.world, plain if isinstance(part.value, ast.Name) else guarded).value(
                part.value
            )
            for part in by.parts
        )
        for index, value in enumerate(values):
            if value.type in (Type.ARRAY, Type.OBJECT, Type.REGEX, Type.NULL):
                self.world.found.error("E035", value.span, f"a key cannot be {noun(value.type)}")
            elif value.type is not Type.ANY:
                type_ = Type.NUMBER if value.type is Type.INT else value.type
                self._types[index].setdefault(type_, value.span)
        return values

    def _missing(self, owner: ast.Node, what: str) -> None:
        assert self.model is not None
        self.world.found.error(
            "E061",
            owner.span,
            f"{what} has no key, others have one",
            help=self._where_by_belongs(),
            labels=[Label(self.model.span, "the key of another step")],
        )

    def _where_by_belongs(self) -> str:
        """`unless logout by ip sequence …`: the `by` was meant for the rule."""
        assert self.model is not None
        own = self.model.span
        before = own.source.text[: own.start].rstrip()
        if re.search(r"\bunless\s+\w+$", before):
            return f"`{own.text}` belongs to `unless` here: put it before `unless` for all steps"
        return "give it a `by`, or the rule one for all steps"

    def _wrong_number(self, by: ast.By) -> None:
        assert self.model is not None
        parts = "part" if len(self.names) == 1 else "parts"
        self.world.found.error(
            "E060",
            by.span,
            f"the key has {len(self.names)} {parts}, this `by` has {len(by.parts)}",
            help="keys are compared part by part",
            labels=[Label(self.model.span, "the key")],
        )

    def warn_of_types(self) -> None:
        """Parts that have different types at different steps never meet."""
        for name, types in zip(self.names, self._types, strict=True):
            if len(types) > 1:
                (first, here), (second, there), *_ = types.items()
                self.world.found.warning(
                    "W006",
                    there,
                    f"`{name}` is {noun(second)} here and {noun(first)} at another step, "
                    "so they never meet",
                    help="convert one of them with `str()` or `num()`",
                    labels=[] if here == there else [Label(here, f"{noun(first)} here")],
                )
