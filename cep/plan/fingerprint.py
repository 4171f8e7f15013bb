"""Fingerprints of rules: what must be the same for one version to go on with another's state.

In: the automaton of a rule. Out: short hashes that are the same in every process and, as far as the
words of the rule are the same, in every version of cep:

* `structure`: the automaton and its conditions with constants apart, and what its states hold. Two
  versions with the same one understand each other's states.
* `constants`: the constants in the same: texts, numbers and lengths of time that are compared with.
* `layout`: only what the states hold: places, forms, visible values, steps.

What a rule says and to whom (alert, emit, dedup, severity, …) is in none of them. Inferred types
are left out: they depend on what other rules do with the same fields.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum
from functools import cache
from hashlib import blake2b
from typing import Any, NamedTuple

from cep.plan.automaton import Absence, Automaton, Bounds, Deadline, State
from dsl import checked
from dsl.checked import Const, Pattern, Value, attributes


class Fingerprint(NamedTuple):
    """The hashes of a rule; see the module's head."""

    structure: str
    constants: str
    layout: str


def fingerprint(automaton: Automaton) -> Fingerprint:
    """The fingerprints of a rule. O(size of its automaton)."""
    described, constants = _Description(), _Constants()
    layout = _Whole().of(_layout(automaton))
    structure = described.of([layout, *_structure(automaton)])
    constants.of(_structure(automaton))
    return Fingerprint(_hash(structure), _hash(repr(constants.found)), _hash(layout))


def meaning(*values: object) -> str:
    """A hash of all that checked values say, constants too; without types that were inferred."""
    return _hash(_Whole().of(values))


def _hash(text: str) -> str:
    return blake2b(text.encode(errors="surrogatepass"), digest_size=4).hexdigest()


# ---------------------------------------------------------------------------- what belongs to it


def _layout(automaton: Automaton) -> list[object]:
    """What the states of the rule hold."""
    pattern = automaton.rule.pattern
    window: list[object] = []
    if isinstance(pattern, checked.WindowPattern):
        window = [
            pattern.kind,
            str((pattern.size, pattern.count, pattern.step, pattern.maximum, pattern.timezone)),
            [(f.name, f.function, str(f.distinct), f.argument, f.extra) for f in pattern.fields],
        ]
    return [
        automaton.steps,
        [(position.step, str(position.copy)) for position in automaton.positions],
        [(state.form, state.variables, state.hash_variable) for state in automaton.states],
        str(len(automaton.quiet)),
        str(len(automaton.rule.key)),
        window,
    ]


def _structure(automaton: Automaton) -> list[object]:
    """What decides how runs go on and when they are complete."""
    rule = automaton.rule
    pattern = rule.pattern
    window: list[object] = []
    if isinstance(pattern, checked.WindowPattern):
        window = [[(f.name, f.where) for f in pattern.fields], pattern.derived]
    return [
        automaton.atoms,
        automaton.positions,
        automaton.openings,
        automaton.states,
        [str(item) for item in automaton.entered.items()],
        automaton.keys,
        _Length(automaton.within),
        automaton.quiet,
        sorted(automaton.greed.items()),
        rule.having,
        (rule.skip, rule.skip_step, rule.start, rule.keys_from, rule.report),
        (_Length(rule.keep), _Length(rule.limit)),
        window,
    ]


class _Length:
    """A number that is a constant of the rule: what matters of it is whether it is there."""

    def __init__(self, value: int | None) -> None:
        self.value = value


_LENGTHS: Mapping[type, tuple[str, ...]] = {
    Absence: ("within",),
    Bounds: ("within", "after"),
    Deadline: ("after", "since_first"),
}
"""Attributes that are lengths of time."""

_PASSED_OVER: Mapping[type, frozenset[str]] = {
    State: frozenset({"may_be_bound", "path", "rank"}),
    checked.KeyPart: frozenset({"type"}),
    checked.WindowField: frozenset({"type"}),
}
"""Attributes that say nothing that the others do not say too."""


_WRITTEN = frozenset({str, int, bool, float, type(None)})
"""Of what is written as it stands."""


class _Walk:
    """Writes values down as text; what becomes of constants is for those who derive from it."""

    def constant(self, value: object) -> str:
        """What is written for a constant."""
        raise NotImplementedError

    def of(self, value: Any) -> str:
        """The text of a value, the same in every process."""
        if value.__class__ in _WRITTEN:
            return repr(value)
        if isinstance(value, _Length):
            return "none" if value.value is None else self.constant(value.value)
        if isinstance(value, Const):
            return self.constant((value.type.value, type(value.value).__name__, value.value))
        if isinstance(value, Pattern):
            return self.constant((value.pattern, value.flags))
        if _is_constant_array(value):
            return self.constant([_plain(item) for item in value.items])
        if attributes(value.__class__):
            return self._dataclass(value)
        if isinstance(value, dict):
            value = frozenset(value.items())
        if isinstance(value, frozenset | set):
            value = sorted(value, key=_Whole().of)
        if isinstance(value, list | tuple):
            return f"[{','.join(map(self.of, value))}]"
        return str(value.value) if isinstance(value, Enum) else repr(value)

    def _dataclass(self, value: Any) -> str:
        kind: Any = type(value)
        lengths = _LENGTHS.get(kind, ())
        parts = []
        for name in _saying(kind):
            item = getattr(value, name)
            parts.append(f"{name}={self.of(_Length(item) if name in lengths else item)}")
        return f"{kind.__name__}({','.join(parts)})"


@cache
def _saying(kind: type) -> tuple[str, ...]:
    """The attributes of a class that are written down."""
    passed = _PASSED_OVER.get(kind, frozenset())
    if issubclass(kind, Value):
        passed |= {"type"}
    return tuple(name for name in attributes(kind) if name not in passed)


def _is_constant_array(value: Any) -> bool:
    return isinstance(value, checked.ArrayOf) and all(isinstance(v, Const) for v in value.items)


def _plain(value: Any) -> tuple[str, str]:
    """A constant in an array: of a list the length does not matter either."""
    return type(value.value).__name__, repr(value.value)


class _Description(_Walk):
    """With constants apart."""

    def constant(self, value: object) -> str:
        return "…"


class _Constants(_Walk):
    """Finds the constants, in the order in which they stand."""

    def __init__(self) -> None:
        self.found: list[object] = []

    def constant(self, value: object) -> str:
        self.found.append(value)
        return "…"


class _Whole(_Walk):
    """With constants in their places."""

    def constant(self, value: object) -> str:
        return repr(value)
