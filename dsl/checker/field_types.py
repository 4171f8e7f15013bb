"""Types of fields, learned from how the rules use them.

Events carry no types and few users write schemas, but `amount > 5` says that `amount` is a number.
The checker walks all rules until nothing new is learned; each walk reads the types that the walks
before have settled. Two kinds of use: *strong* ones beside a constant or as an argument, and *weak*
ones beside another expression, which count only where there is no strong one. Strong uses that
disagree leave the field `any` and are reported; the rules then mean what they say, only slower.
"""

from __future__ import annotations

from dsl.source import Span
from dsl.types import Type

Key = tuple[str, tuple[str, ...]]
"""A stream and the path of a field."""

LEARNABLE = frozenset({Type.STRING, Type.NUMBER, Type.INT, Type.BOOL})


class FieldTypes:
    """What is known of fields so far."""

    def __init__(self) -> None:
        self._settled: dict[Key, Type] = {}
        self._strong: dict[Key, dict[Type, Span]] = {}
        self._weak: dict[Key, set[Type]] = {}
        self._made: dict[Key, Type] = {}

    def type_of(self, stream: str, path: tuple[str, ...]) -> Type:
        """What the walks before have settled; `any` when nothing is known."""
        return self._settled.get((stream, path), Type.ANY)

    def learn(
        self, stream: str, path: tuple[str, ...], type_: Type, span: Span, *, weak: bool = False
    ) -> None:
        """Note that a field is used as this type."""
        if type_ not in LEARNABLE:
            return
        type_ = Type.NUMBER if type_.is_numeric else type_
        if weak:
            self._weak.setdefault((stream, path), set()).add(type_)
        else:
            self._strong.setdefault((stream, path), {}).setdefault(type_, span)

    def define(self, stream: str, path: tuple[str, ...], type_: Type) -> None:
        """Note the type of a field that rules themselves make, by `select` or `emit`."""
        known = self._made.setdefault((stream, path), type_)
        if known != type_:
            numeric = known.is_numeric and type_.is_numeric
            self._made[stream, path] = Type.NUMBER if numeric else Type.ANY

    def settle(self) -> bool:
        """End of a walk: decide the types for the next one. True when something changed."""
        settled = dict(self._made)
        for key, uses in self._weak.items():
            if len(uses) == 1:
                settled[key] = next(iter(uses))
        for key, strong in self._strong.items():
            settled[key] = next(iter(strong)) if len(strong) == 1 else Type.ANY
        changed = settled != self._settled
        self._settled = settled
        self._made = {}
        return changed

    def conflicts(self) -> list[tuple[Key, list[tuple[Type, Span]]]]:
        """Fields whose strong uses disagree, with one place for each type."""
        return [(key, list(uses.items())) for key, uses in self._strong.items() if len(uses) > 1]
