"""What a compiled rule reads of input events: fields, and values of the field of the type.

Streams are resolved already: a field that a `select` makes counts as the fields it is made of, and
what is read of derived events does not count. Nor does what a step reads that events reach in
several ways (`from a, b`): each way may well go unused.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from cep.compile.rules import CompiledRule, CompiledRules
from cep.plan.automaton import Atom
from cep.plan.dispatch import mentioned
from dsl.checked import Alert, Comparison, Const, Emit, Field, StepField, Value

Path = tuple[str, ...]


class TypeRead(NamedTuple):
    """A stream that is told by its type: the field, and the value that it must have."""

    stream: str
    path: Path
    value: str


def fields_read(rule: CompiledRule, compiled: CompiledRules) -> list[Path]:
    """The fields of input events that the rule reads, each once; none it asks `is missing` of."""
    values = [*_in_conditions(rule), *_in_words(rule, compiled)]
    return list(dict.fromkeys(path for path, _, asked in mentioned(values) if not asked))


def types_read(rule: CompiledRule, compiled: CompiledRules) -> list[TypeRead]:
    """The types of events that the rule's steps wait for, each once."""
    paths = {stream.type_path for stream in compiled.checked.streams.values()}
    found = [
        TypeRead(atom.stream, value.left.path, value.right.value)
        for atom in _steps(rule)
        for value in _of_input(atom)
        if isinstance(value, Comparison)
        and value.op == "=="
        and isinstance(value.left, Field)
        and value.left.path in paths
        and isinstance(value.right, Const)
        and isinstance(value.right.value, str)
    ]
    return list(dict.fromkeys(found))


def _steps(rule: CompiledRule) -> Iterator[Atom]:
    """Whatever takes events in one way, and nothing that forbids them: an absence may well see
    none."""
    return (a for a in rule.automaton.atoms if a.kind == "step" and len(a.origins) == 1)


def _of_input(atom: Atom) -> Iterator[Value]:
    """The conditions on input events."""
    for origin in atom.origins:
        if origin.source is None:
            yield from origin.filters


def _in_conditions(rule: CompiledRule) -> Iterator[Value]:
    steps = list(_steps(rule))
    for atom in steps:
        if any(origin.source is None for origin in atom.origins):
            yield from _of_input(atom)
            yield from rule.automaton.keys[atom.key]
            yield from atom.guards
    for position in rule.automaton.positions:
        if rule.automaton.atoms[position.atom] in steps:
            yield from position.guards


def _in_words(rule: CompiledRule, compiled: CompiledRules) -> Iterator[Value]:
    """What alert, emit and having read of the steps, as values over an input event."""
    streams = {atom.step: atom for atom in _steps(rule)}
    for value in _said(rule):
        for part in value.walk():
            if isinstance(part, StepField) and part.step in streams:
                atom = streams[part.step]
                if all(origin.source is None for origin in atom.origins):
                    yield compiled.streams.on_event(atom.stream, Field(part.path, type=part.type))


def _said(rule: CompiledRule) -> Iterator[Value]:
    checked = rule.rule
    if checked.having is not None:
        yield checked.having
    described: list[Alert | Emit] = [*checked.emit, *checked.timeout_emit]
    described += [alert for alert in (checked.alert, checked.timeout_alert) if alert is not None]
    for each in described:
        yield from (value for _, value in each.fields)
        if isinstance(each, Alert) and each.message is not None:
            yield from (part for part in each.message.parts if isinstance(part, Value))
