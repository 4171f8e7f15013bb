"""Streams: which events they hold and which fields those have.

Declared streams are resolved parents first; a stream that nobody declares is made when something
names it. Three sorts of fields: those that any event may have (types are learned from use), those
of a schema, and those that rules make themselves by `select` or `emit`.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TypeVar
from zoneinfo import ZoneInfo, available_timezones

from dsl import ast
from dsl.checked import SchemaField, Stream, StreamDedup, TimeFormat, Value
from dsl.checker.expressions import Resolver
from dsl.checker.keys import part_names, step_keys
from dsl.checker.scope import Scope
from dsl.checker.world import KnownFields, World
from dsl.diagnostics import Label, did_you_mean
from dsl.source import NOWHERE, Span
from dsl.types import Type

EVERY = "event"
"""The stream of all input events."""

DEFAULT_TIME_PATHS = (("@timestamp",), ("timestamp",), ("time",), ("ts",))
"""Where event time is looked for when no rule file says it."""

_SCHEMA_TYPES = {
    type_.value: type_
    for type_ in (
        Type.STRING,
        Type.NUMBER,
        Type.INT,
        Type.BOOL,
        Type.ARRAY,
        Type.OBJECT,
        Type.ANY,
    )
}

_OTHER_NAMES = {
    "text": "string",
    "str": "string",
    "float": "number",
    "double": "number",
    "integer": "int",
    "boolean": "bool",
    "list": "array",
    "dict": "object",
}
"""What types are called elsewhere."""

_NOT_DERIVED = {
    ast.StreamType: "type",
    ast.StreamTime: "time",
    ast.StreamTimezone: "timezone",
    ast.StreamId: "id",
    ast.StreamDelay: "delay",
    ast.StreamIdle: "idle",
}
"""Clauses that say how input is read, so not for streams that are made from others."""

_CLAUSES = {
    **_NOT_DERIVED,
    ast.StreamWhere: "where",
    ast.StreamFields: "fields",
    ast.StreamSelect: "select",
    ast.Dedup: "dedup",
}


class Streams:
    """Resolves streams into `world.checked_streams`."""

    def __init__(self, world: World, type_field: str | None) -> None:
        self.world = world
        self.emitters = _emitters(world.rules.values())
        self.defaults = world.streams.get(EVERY)
        self.type_path = self._default_type_path(type_field)
        self.open: list[str] = []

    def _default_type_path(self, type_field: str | None) -> tuple[str, ...]:
        if type_field is not None:
            return tuple(type_field.split("."))
        clause = _clause(self.defaults, ast.StreamType)
        return clause.path.names if clause is not None else ("type",)

    def resolve_all(self) -> None:
        """All streams that are declared or emitted."""
        for name, statement in self.world.streams.items():
            self._check_clauses(name, statement)
        for name in [EVERY, *self.world.streams, *self.emitters]:
            self.need(name)

    def need(self, name: str) -> None:
        """Make sure that a stream is there, and its parents before it."""
        if name in self.world.checked_streams or name in self.open:
            return
        statement = self.world.streams.get(name)
        self.open.append(name)
        for parent in statement.parents if statement else ():
            self.world.used.add(f"stream {parent.name}")
            if parent.name in self.open:
                self._cycle(parent)
            self.need(parent.name)
        self.open.pop()
        self.world.checked_streams[name] = self._stream(name, statement)

    def _cycle(self, parent: ast.Ident) -> None:
        chain = [*self.open[self.open.index(parent.name) :], parent.name]
        self.world.found.error(
            "E050",
            parent.span,
            "streams are made from each other in a circle: "
            + " ← ".join(f"`{name}`" for name in chain),
            help="one of them must be made from input events",
        )

    # -------------------------------------------------------------------------- one stream

    def _stream(self, name: str, statement: ast.Stream | None) -> Stream:
        emitted = name in self.emitters
        schema = self._schema(statement)
        parents = tuple(p.name for p in statement.parents) if statement else ()
        before = self._fields_before(name, statement, parents)
        where_clause = _clause(statement, ast.StreamWhere)
        where = None
        if where_clause is not None:
            where = self._resolver(before, "`where`").condition(where_clause.condition)
        select = self._select(name, statement, before)
        self._fields_after(name, statement, schema, before)
        type_clause = _clause(statement, ast.StreamType)
        tested = not (emitted or parents or name == EVERY)
        if where is not None and type_clause is None:
            tested = False
        return Stream(
            name,
            parents,
            where,
            type_clause.path.names if type_clause else self.type_path,
            name if tested else None,
            select,
            self._time(name, statement),
            _path(_clause(statement, ast.StreamId)),
            _micros(_clause(statement, ast.StreamDelay)),
            _micros(_clause(statement, ast.StreamIdle)),
            self._dedup(name, statement),
            schema,
            emitted=emitted,
            declared=statement is not None,
            span=statement.span if statement else NOWHERE,
        )

    def _resolver(self, event: str, place: str) -> Resolver:
        return Resolver(self.world, Scope(place=place, event=event))

    def _fields_before(
        self, name: str, statement: ast.Stream | None, parents: tuple[str, ...]
    ) -> str:
        """The stream whose fields `where` and `select` see."""
        if len(parents) == 1:
            return parents[0]
        before = f"{name} before" if _clause(statement, ast.StreamSelect) else name
        known = [self.world.known_fields.get(parent) for parent in parents]
        if parents and all(known):
            self.world.known_fields[before] = _merged([k for k in known if k is not None], name)
        schema = _clause(statement, ast.StreamFields)
        if schema is not None and not parents:
            types = {f.path.names: self._schema_type(f, quiet=True) for f in schema.fields}
            self.world.known_fields[before] = KnownFields(types, "", others=True)
        return before

    def _select(
        self, name: str, statement: ast.Stream | None, before: str
    ) -> tuple[tuple[str, Value], ...] | None:
        clause = _clause(statement, ast.StreamSelect)
        if clause is None:
            return None
        resolver = self._resolver(before, "`select`")
        out: dict[str, Value] = {}
        for assign in clause.assigns:
            if assign.name.name in out:
                self._twice(assign.name, "field")
            value = resolver.value(assign.value)
            out[assign.name.name] = value
            self.world.fields.define(name, (assign.name.name,), value.type)
        return tuple(out.items())

    def _twice(self, name: ast.Ident, what: str) -> None:
        self.world.found.error("E044", name.span, f"{what} `{name.name}` is given twice")

    def _fields_after(
        self,
        name: str,
        statement: ast.Stream | None,
        schema: tuple[SchemaField, ...] | None,
        before: str,
    ) -> None:
        """What is known of the fields of the stream's events."""
        world = self.world
        select = _clause(statement, ast.StreamSelect)
        if schema is not None:
            world.known_fields[name] = KnownFields(
                {f.path: f.type for f in schema},
                f"the schema of `{name}`",
                frozenset(f.path for f in schema if f.optional),
            )
        elif select is not None:
            paths: list[tuple[str, ...]] = [(assign.name.name,) for assign in select.assigns]
            self._made(name, paths, f"the `select` of `{name}`")
        elif name in self.emitters:
            self._made(name, _emitted_paths(self.emitters[name]), f"emitted stream `{name}`")
        elif before != name:
            world.homes[name] = world.homes.get(before, before)
            if before in world.known_fields:
                world.known_fields[name] = world.known_fields[before]
        elif EVERY in world.known_fields and not (statement and statement.parents):
            world.known_fields[name] = world.known_fields[EVERY]

    def _made(self, name: str, paths: list[tuple[str, ...]], what: str) -> None:
        types = {path: self.world.fields.type_of(name, path) for path in paths}
        self.world.known_fields[name] = KnownFields(types, what)

    def _dedup(self, name: str, statement: ast.Stream | None) -> StreamDedup | None:
        clause = _clause(statement, ast.Dedup)
        if clause is None:
            return None
        resolver = self._resolver(name, "`dedup`")
        by = tuple(resolver.value(expr) for expr in clause.by)
        return StreamDedup(by, clause.duration.micros)

    # -------------------------------------------------------------------------- clauses

    def _check_clauses(self, name: str, statement: ast.Stream) -> None:
        """Each clause once, and only those that fit this sort of stream."""
        seen: dict[type, Span] = {}
        for clause in statement.clauses:
            word = _CLAUSES[type(clause)]
            first = seen.setdefault(type(clause), clause.span)
            if first is not clause.span:
                self._clause_error(clause, f"`{word}` is given twice", [Label(first, "first here")])
                continue
            problem = self._misfit(name, statement, clause)
            if problem is not None:
                self._clause_error(clause, f"`{word}` does not fit here: {problem}")
            if isinstance(clause, ast.StreamTimezone):
                check_timezone(self.world, clause.zone, clause.span)
        if name == EVERY and statement.parents:
            self._clause_error(statement.parents[0], "`event` is every input event: no `from`")
        if name in self.emitters and statement.parents:
            self._clause_error(
                statement.parents[0],
                f"`{name}` is emitted by rule `{self.emitters[name][0][0].name.name}`: no `from`",
            )

    def _misfit(self, name: str, statement: ast.Stream, clause: ast.StreamClause) -> str | None:
        if name == EVERY and isinstance(clause, ast.StreamWhere | ast.StreamSelect):
            return "`event` is every input event as it is"
        reads_input = type(clause) in _NOT_DERIVED
        if statement.parents and reads_input:
            return f"`{name}` is made from other streams; say it where their events are read"
        if name in self.emitters and (
            reads_input or isinstance(clause, ast.StreamWhere | ast.StreamSelect)
        ):
            rule = self.emitters[name][0][0].name.name
            return f"`{name}` is emitted by rule `{rule}`"
        return None

    def _clause_error(self, node: ast.Node, message: str, labels: Iterable[Label] = ()) -> None:
        self.world.found.error("E051", node.span, message, labels=labels)

    def _schema(self, statement: ast.Stream | None) -> tuple[SchemaField, ...] | None:
        clause = _clause(statement, ast.StreamFields)
        if clause is None:
            return None
        out: dict[tuple[str, ...], SchemaField] = {}
        for f in clause.fields:
            if f.path.names in out:
                self.world.found.error(
                    "E052", f.path.span, f"field `{f.path.dotted}` is declared twice"
                )
            type_ = self._schema_type(f)
            out[f.path.names] = SchemaField(f.path.names, type_, f.optional)
        return tuple(out.values())

    def _schema_type(self, f: ast.SchemaField, *, quiet: bool = False) -> Type:
        name = f.type.name
        if name in _SCHEMA_TYPES:
            return _SCHEMA_TYPES[name]
        if quiet:
            return Type.ANY
        if name in ("time", "duration"):
            help: str | None = (
                "events hold strings and numbers; declare that and convert where needed: "
                f"`time({f.path.dotted})`"
            )
            if name == "duration":
                help = "events hold strings and numbers; declare that and write `field * 1s`"
        else:
            guess = _OTHER_NAMES.get(name.lower()) or did_you_mean(name, _SCHEMA_TYPES)
            known = ", ".join(_SCHEMA_TYPES)
            help = f"did you mean `{guess}`?" if guess else f"the types are {known}"
        self.world.found.error("E052", f.type.span, f"no field has the type `{name}`", help=help)
        return Type.ANY

    def _time(self, name: str, statement: ast.Stream | None) -> TimeFormat | None:
        time = _clause(statement, ast.StreamTime)
        zone = _clause(statement, ast.StreamTimezone)
        if time is None and zone is None:
            return None
        default_time = _clause(self.defaults, ast.StreamTime)
        default_zone = _clause(self.defaults, ast.StreamTimezone)
        time, zone = time or default_time, zone or default_zone
        return TimeFormat(
            (time.path.names,) if time else DEFAULT_TIME_PATHS,
            time.unit if time else None,
            zone.zone if zone else None,
        )


def check_timezone(world: World, zone: str, span: Span) -> None:
    """Report a time zone that nobody knows."""
    try:
        ZoneInfo(zone)
    except (KeyError, ValueError, OSError):
        guess = did_you_mean(zone, available_timezones())
        world.found.error(
            "E052",
            span,
            f"no time zone is called `{zone}`",
            help=f'did you mean "{guess}"?' if guess else 'for example "Europe/Paris" or "UTC"',
        )


# ---------------------------------------------------------------------------------- small parts


_Clause = TypeVar("_Clause")


def _clause(statement: ast.Stream | None, kind: type[_Clause]) -> _Clause | None:
    """The clause of this kind, if the stream has it."""
    for clause in statement.clauses if statement else ():
        if isinstance(clause, kind):
            return clause
    return None


def _path(clause: ast.StreamId | None) -> tuple[str, ...] | None:
    return None if clause is None else clause.path.names


def _micros(clause: ast.StreamDelay | ast.StreamIdle | None) -> int | None:
    return None if clause is None else clause.duration.micros


def _merged(known: list[KnownFields], name: str) -> KnownFields:
    """The fields of a union of streams."""
    types: dict[tuple[str, ...], Type] = {}
    for fields in known:
        for path, type_ in fields.types.items():
            types[path] = type_ if types.get(path, type_) == type_ else Type.ANY
    return KnownFields(types, f"stream `{name}`")


_Emitters = dict[str, list[tuple[ast.Rule, ast.Emit]]]


def _emitters(rules: Iterable[ast.Rule]) -> _Emitters:
    """For each emitted stream the rules that emit it."""
    out: _Emitters = {}
    for rule in rules:
        for emit in emits_of(rule):
            if emit.stream.name != EVERY:
                out.setdefault(emit.stream.name, []).append((rule, emit))
    return out


def emits_of(rule: ast.Rule) -> list[ast.Emit]:
    """All `emit`s of a rule, those `on timeout` included."""
    out: list[ast.Emit] = []
    for clause in rule.clauses:
        if isinstance(clause, ast.Emit):
            out.append(clause)
        elif isinstance(clause, ast.OnTimeout):
            out += [action for action in clause.actions if isinstance(action, ast.Emit)]
    return out


def _emitted_paths(emitters: list[tuple[ast.Rule, ast.Emit]]) -> list[tuple[str, ...]]:
    """The fields that the events of an emitted stream may have: keys and what rules give."""
    paths: dict[tuple[str, ...], None] = {}
    for rule, emit in emitters:
        own = [clause for clause in rule.clauses if isinstance(clause, ast.By)]
        by = next(iter([*own, *step_keys(rule)]), None)
        for name in part_names(by) if by else ():
            paths[tuple(name.split("."))] = None
        for assign in emit.assigns:
            paths[(assign.name.name,)] = None
    return list(paths)
