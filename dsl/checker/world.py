"""Everything that the rule files declare, as the parts of the checker share it.

A `World` is made anew for each walk over the files: its diagnostics count only in the last walk,
its `fields` are carried from walk to walk.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from dsl import ast
from dsl.checked import ArrayOf, Const, FunctionSignature, NamedValues, Stream, Table, Value
from dsl.checker.field_types import FieldTypes
from dsl.diagnostics import Diagnostics, did_you_mean
from dsl.functions import FUNCTIONS
from dsl.source import Span
from dsl.types import Type

BROKEN = Const(None)
"""Stands for an expression that was reported; its type `any` causes no further reports."""


@dataclass(frozen=True)
class KnownFields:
    """The fields of a stream that has no others. `what` says who fixed them."""

    types: Mapping[tuple[str, ...], Type]
    what: str
    optional: frozenset[tuple[str, ...]] = frozenset()
    others: bool = False
    """Whether there may be other fields all the same (before a `where` has chosen events)."""

    def type_of(self, path: tuple[str, ...]) -> Type | None:
        """The type of a field, None when there is no such field."""
        if path in self.types:
            return self.types[path]
        for length in range(len(path) - 1, 0, -1):
            if self.types.get(path[:length]) in (Type.OBJECT, Type.ANY):
                return Type.ANY
        inner = any(known[: len(path)] == path for known in self.types)
        return Type.OBJECT if inner else None


@dataclass
class World:
    """Names of the files and what was found about them."""

    found: Diagnostics
    fields: FieldTypes
    functions: Mapping[str, FunctionSignature]
    streams: dict[str, ast.Stream] = field(default_factory=dict)
    lists: dict[str, NamedValues] = field(default_factory=dict)
    tables: dict[str, Table] = field(default_factory=dict)
    params: dict[str, Const | ArrayOf] = field(default_factory=dict)
    defs: dict[str, ast.Def] = field(default_factory=dict)
    broken_defs: set[str] = field(default_factory=set)
    rules: dict[str, ast.Rule] = field(default_factory=dict)
    used: set[str] = field(default_factory=set)
    """Lists, tables, params, defs and streams (these as `stream NAME`) that something names."""
    list_uses: dict[str, set[str]] = field(default_factory=dict)
    """What is done with the items of lists that must be of a kind (see `dsl.items`)."""
    first_use: dict[str, Span] = field(default_factory=dict)
    """Where rules first name each stream that they read."""
    checked_streams: dict[str, Stream] = field(default_factory=dict)
    known_fields: dict[str, KnownFields] = field(default_factory=dict)
    homes: dict[str, str] = field(default_factory=dict)
    """Streams whose field types are learned together with those of their only parent."""

    def succeeds(self, work: Callable[[], object]) -> bool:
        """Do some checking; whether it found no error."""
        before, self.found = self.found, Diagnostics()
        try:
            work()
            return not self.found.has_errors
        finally:
            before.extend(self.found)
            self.found = before

    def field_type(self, stream: str, path: tuple[str, ...], span: Span) -> Type:
        """The type of a field of a stream; reports one that the stream cannot have."""
        known = self.known_fields.get(stream)
        if known is None:
            return self.fields.type_of(self.homes.get(stream, stream), path)
        type_ = known.type_of(path)
        if type_ is not None:
            return type_
        if known.others:
            return Type.ANY
        dotted = ".".join(path)
        names = [".".join(name) for name in known.types]
        guess = did_you_mean(dotted, names)
        self.found.error(
            "E032",
            span,
            f"{known.what} has no field `{dotted}`",
            help=f"did you mean `{guess}`?" if guess else f"it has {listing(names)}",
        )
        return Type.ANY

    def learn(
        self, stream: str, path: tuple[str, ...], type_: Type, span: Span, *, weak: bool = False
    ) -> None:
        """Note a use of a field, unless its type is fixed."""
        if stream not in self.known_fields:
            self.fields.learn(self.homes.get(stream, stream), path, type_, span, weak=weak)

    def function(self, name: str) -> FunctionSignature | None:
        """An ordinary function: built in or the host's."""
        return FUNCTIONS.get(name) or self.functions.get(name)


@dataclass(frozen=True)
class Condition:
    """A condition and where it stood, for the lints."""

    value: Value
    stream: str


def listing(names: list[str], limit: int = 6) -> str:
    """`a`, `b` and `c`, with … when there are many."""
    if not names:
        return "none"
    quoted = [f"`{name}`" for name in names[:limit]]
    if len(names) > limit:
        return ", ".join(quoted) + ", …"
    return quoted[0] if len(quoted) == 1 else f"{', '.join(quoted[:-1])} and {quoted[-1]}"


def noun(type_: Type) -> str:
    """A type in the user's words."""
    return _NOUNS[type_]


_NOUNS = {
    Type.ANY: "a value",
    Type.NULL: "null",
    Type.BOOL: "true or false",
    Type.INT: "a number",
    Type.NUMBER: "a number",
    Type.STRING: "a string",
    Type.TIME: "a time",
    Type.DURATION: "a duration",
    Type.ARRAY: "an array",
    Type.OBJECT: "an object",
    Type.REGEX: "a regular expression",
}
