"""What becomes of kept state when the rules have changed.

In: the versions of rules that a store has state of, and the rules that are to run now. Out: a
`Succession`: for every rule what has changed and what that means for its runs, the rules compiled
together with the earlier versions that still have something to finish, and who goes on with which
stored rows.

* **kept**, **output**, **constants**: the new version understands the states of the old one, and
  goes on with them (`cep.plan.fingerprint`), unless a restart of the rule is asked for.
* **structure**: it does not. The old version is compiled again from the text that the store kept,
  with its lists and params, and runs beside the new one: it opens no runs, finishes those that it
  has, and is gone when it has none. Windows of `dedup` pass on where both have the same key, so
  that both together report at most once.
* **removed**: the rule is not there any more; what it remembered is dropped.

An earlier version reads its own streams, lists and tables. Those that mean something else now are
compiled under another name (`login@5f1c2a3b`), for it alone.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields, is_dataclass, replace
from typing import Any, Literal, TypeVar

import msgspec

from cep.compile.rules import CompiledRule, CompiledRules, Earlier, compile_rules, names_behind
from cep.lookup_files import LookupFiles, refresh
from cep.plan.fingerprint import meaning
from cep.plan.limits import TooLarge
from cep.ruleset import Ruleset, loads
from cep.runtime.templates import duration_text
from cep.state.store import Owner, RuleVersion, StateError, StateRow
from dsl import checked
from dsl.canonical import canonical_text, type_field_of
from dsl.checked import CheckedRules
from dsl.diagnostics import RuleError

ValueT = TypeVar("ValueT")
Kind = Literal["new", "kept", "constants", "output", "structure", "removed"]
Held = Mapping[Owner, tuple[int, int]]
"""How many keys with runs, and runs (of windows: events), are stored, by owner."""


@dataclass(frozen=True, slots=True)
class RuleChange:
    """What becomes of a rule. `keys` and `runs`: what the store holds of it.

    `restarted`: it was asked for that its runs are dropped. `left`: earlier versions that finish
    their runs. `warming`: length in microseconds of its window where that begins empty although
    there were events before: so long it is warming up. 0: it is not.
    """

    name: str
    kind: Kind
    keys: int = 0
    runs: int = 0
    restarted: bool = False
    left: tuple[str, ...] = ()
    warming: int = 0

    @property
    def loses_runs(self) -> bool:
        """Whether something that was remembered is dropped."""
        return self.keys > 0 and (self.kind == "removed" or self.restarted)

    def sentence(self) -> str:
        """The change in words.

        >>> RuleChange("guessed", "constants", keys=2, runs=3).sentence()
        'guessed: constants changed; goes on with its 3 runs of 2 keys'
        """
        if not self.warming:
            return self._what_becomes_of_runs()
        return (
            f"{self._what_becomes_of_runs()}; its window of {duration_text(self.warming)} is "
            "warming up: it holds only events from now on"
        )

    def _what_becomes_of_runs(self) -> str:
        what, then = _WORDS[self.kind]
        held = f"{_counted(self.runs, 'run')} of {_counted(self.keys, 'key')}"
        if self.kind == "new":
            return f"{self.name}: {what}"
        if not self.keys:
            return f"{self.name}: {what}; it holds no runs"
        if self.restarted:
            then = "starts over: {} are dropped"
        return f"{self.name}: {what}; {then.format(held)}"


_WORDS: Mapping[Kind, tuple[str, str]] = {
    "new": ("new", ""),
    "kept": ("unchanged", "goes on with its {}"),
    "constants": ("constants changed", "goes on with its {}"),
    "output": ("output changed", "goes on with its {}"),
    "structure": ("changed", "the old version finishes its {} beside the new one"),
    "removed": ("removed", "{} are dropped"),
}


def _counted(number: int, noun: str) -> str:
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def held_by(rows: Iterable[tuple[Owner, StateRow]]) -> Held:
    """How many keys and runs these rows are."""
    held: dict[Owner, tuple[int, int]] = {}
    for owner, row in rows:
        keys, runs = held.get(owner, (0, 0))
        held[owner] = keys + (row.runs > 0), runs + row.runs
    return held


# ---------------------------------------------------------------------------- the plan


def plan_change(
    kept: Sequence[RuleVersion],
    compiled: CompiledRules,
    held: Held,
    restart: Collection[str] = (),
) -> list[RuleChange]:
    """What becomes of every rule, by name: those of the store, and those that are to run.

    `restart` names rules whose runs are to be dropped.
    """
    versions = _by_name(kept)
    found = []
    for rule in compiled.rules:
        olds = versions.pop(rule.name, [])
        kind = _kind(rule, olds)
        restarted = rule.name in restart and bool(olds)
        left = tuple(v.id for v in _to_drain(rule, olds, held)) if not restarted else ()
        keys, runs = _total(olds, held)
        begins = kind in ("new", "structure") or (restarted and keys > 0)
        warming = _window_length(rule) if kept and begins else 0
        found.append(RuleChange(rule.name, kind, keys, runs, restarted, left, warming))
    found += [RuleChange(name, "removed", *_total(olds, held)) for name, olds in versions.items()]
    return sorted(found, key=lambda change: change.name)


def _window_length(rule: CompiledRule) -> int:
    """How far back the window of a rule goes; 0 where it has none of a fixed length."""
    pattern = rule.rule.pattern
    if not isinstance(pattern, checked.WindowPattern) or pattern.kind == "session":
        return 0
    return pattern.size or 0


def _by_name(kept: Iterable[RuleVersion]) -> dict[str, list[RuleVersion]]:
    versions: dict[str, list[RuleVersion]] = {}
    for version in kept:
        if version.status != "gone":
            versions.setdefault(version.name, []).append(version)
    return versions


def _kind(rule: CompiledRule, olds: Sequence[RuleVersion]) -> Kind:
    same = next((old for old in olds if old.id == rule.id), None)
    if same is None:
        return "structure" if olds else "new"
    if same.structure != _structure(rule):
        return "constants"
    return "kept" if same.version == rule.version else "output"


def _structure(rule: CompiledRule) -> str:
    """The fingerprint of automaton and conditions, with constants."""
    return f"{rule.fingerprint.structure}.{rule.fingerprint.constants}"


def _to_drain(rule: CompiledRule, olds: Iterable[RuleVersion], held: Held) -> Iterable[RuleVersion]:
    """The earlier versions that have runs to finish."""
    return [old for old in olds if old.id != rule.id and _total([old], held)[0]]


def _total(versions: Iterable[RuleVersion], held: Held) -> tuple[int, int]:
    """The keys and runs of some versions."""
    counted = [
        held.get(Owner(kind, version.id), (0, 0))
        for version in versions
        for kind in ("runs", "windows")
    ]
    return sum(keys for keys, _ in counted), sum(runs for _, runs in counted)


# ---------------------------------------------------------------------------- who goes on


@dataclass
class Succession:
    """The rules that run from now on, with what came before them; see the module's head."""

    compiled: CompiledRules
    files: LookupFiles
    changes: list[RuleChange] = field(default_factory=list)
    kept: list[RuleVersion] = field(default_factory=list)
    """The versions that the store knows."""
    copied: dict[Owner, list[Owner]] = field(default_factory=dict)
    """Whose tables and streams an earlier version has of its own from now on."""

    def __post_init__(self) -> None:
        self._ids = {rule.id: rule for rule in self.compiled.rules}
        self._live = {r.name: r.id for r in self.compiled.rules if r.earlier is None}
        self._restarted = {change.name for change in self.changes if change.restarted}
        self._names = {version.id: version.name for version in self.kept}

    def heirs(self, owner: Owner) -> list[Owner]:
        """Who goes on with the stored rows of an owner; none: they are dropped."""
        if owner.kind not in ("runs", "windows", "dedup"):
            known = self.compiled.checked.tables.keys() | self.compiled.checked.streams.keys()
            own = [owner] if owner.name in known else []
            return own + self.copied.get(owner, [])
        name = self._names.get(owner.name, owner.name.partition("@")[0])
        if name in self._restarted:
            return []
        if owner.kind == "dedup":
            owner = Owner("dedup", self._dedup_owner(owner.name))
        heir = self._ids.get(owner.name)
        if heir is None or (owner.kind == "dedup" and heir.rule.dedup is None):
            return []
        return [owner]

    def staying(self, owners: Iterable[Owner]) -> set[Owner]:
        """Those of which every row stays with its owner alone."""
        return {owner for owner in owners if self.heirs(owner) == [owner]}

    def _dedup_owner(self, id_: str) -> str:
        """Whose the windows of a `dedup` are: those of an earlier version pass on."""
        old = self._ids.get(id_)
        heir = self._ids.get(self._live.get(old.name, "")) if old is not None else None
        if old is None or heir is None or not old.shares_dedup(heir):
            return id_
        return heir.id

    def versions(self) -> list[RuleVersion]:
        """The versions as the store is to know them from now on."""
        known = {version.id: version for version in self.kept}
        found = []
        for rule in self.compiled.rules:
            if rule.earlier is not None:
                found.append(msgspec.structs.replace(known[rule.id], status="draining"))
                continue
            found.append(
                RuleVersion(
                    id=rule.id,
                    name=rule.name,
                    version=rule.version,
                    structure=_structure(rule),
                    layout=rule.fingerprint.layout,
                    source=canonical_text(self.compiled.checked, rule.name),
                )
            )
        left = [v for v in self.kept if v.id not in self._ids and v.status != "gone"]
        return found + [gone(version) for version in left]


def gone(version: RuleVersion) -> RuleVersion:
    """The version, with nothing left to do."""
    return msgspec.structs.replace(version, status="gone")


def succession(
    ruleset: Ruleset,
    kept: Sequence[RuleVersion],
    held: Held,
    restart: Collection[str] = (),
) -> Succession:
    """Plans the change and compiles what is to run.

    Raises StateError where an earlier version that has runs cannot be compiled any more, and for
    a name in `restart` that no rule has.
    """
    for name in restart:
        if name not in ruleset.rules:
            raise StateError(f"there is no rule {name} that could start over")
    changes = plan_change(kept, ruleset.compiled, held, restart)
    known = {version.id: version for version in kept}
    draining = [known[id_] for change in changes for id_ in change.left]
    if not draining:
        return Succession(ruleset.compiled, ruleset.files, changes, list(kept))
    merged = _Merged(ruleset)
    for version in draining:
        merged.add(version)
    files, _ = refresh(merged.rules, ruleset.files)
    try:
        lists = {name: values.items for name, values in merged.rules.lists.items()}
        compiled = compile_rules(merged.rules, lists, merged.earlier)
    except TooLarge as error:
        raise StateError(f"an earlier version of a rule cannot be compiled: {error}") from error
    return Succession(compiled, files, changes, list(kept), merged.copied)


# ---------------------------------------------------------------------------- earlier versions


class _Merged:
    """The rules that are to run, with earlier versions of them beside."""

    def __init__(self, ruleset: Ruleset) -> None:
        self.rules = ruleset.checked
        self.earlier: dict[str, Earlier] = {}
        self.copied: dict[Owner, list[Owner]] = {}
        self._functions = [f for f in ruleset.checked.functions.values() if f.call is not None]

    def add(self, version: RuleVersion) -> None:
        """Takes in an earlier version, with what it stands on under names of its own where that
        means something else now."""
        old = self._compiled_again(version)
        own = _OwnNames(old, self.rules, old.rules[version.name], version.id.partition("@")[2])
        rule = own.renamed(old.rules[version.name])
        self.rules = replace(
            self.rules,
            rules={**self.rules.rules, version.id: replace(rule, name=version.id)},
            streams={**self.rules.streams, **_further(own.streams(), self.rules.streams)},
            tables={**self.rules.tables, **_further(own.tables(), self.rules.tables)},
            lists={**self.rules.lists, **_further(own.lists(), self.rules.lists)},
        )
        self.earlier[version.id] = Earlier(version.name, version.version, version.id)
        if version.status == "live":  # one that drains already has its own rows
            self._copy("tables", own.table_names)
            self._copy("repeats", own.stream_names)

    def _copy(self, kind: str, names: Mapping[str, str]) -> None:
        for name, renamed in names.items():
            if name != renamed:
                self.copied.setdefault(Owner(kind, name), []).append(Owner(kind, renamed))

    def _compiled_again(self, version: RuleVersion) -> CheckedRules:
        try:
            text = version.source
            ruleset = loads(
                text,
                name=f"{version.name} as it was",
                functions=self._functions,
                type_field=type_field_of(text),
            )
            return ruleset.checked
        except RuleError as error:
            raise StateError(
                f"the rule {version.name} has changed, and its earlier version, which still has "
                f"runs to finish, cannot be compiled any more: {error.diagnostics[0].message}. "
                f"Give the rule back what it needs, or drop its runs (--restart {version.name})"
            ) from error


def _further(own: Mapping[str, ValueT], known: Mapping[str, ValueT]) -> dict[str, ValueT]:
    """Those whose names are not known."""
    return {name: one for name, one in own.items() if name not in known}


class _OwnNames:
    """What an earlier version stands on, and the names under which it is compiled."""

    def __init__(
        self, old: CheckedRules, new: CheckedRules, rule: checked.Rule, suffix: str
    ) -> None:
        behind = names_behind(rule, old)
        self._old = old
        self._event_id = old.streams["event"].id if "event" in old.streams else None

        def named(names: Iterable[str], differs: Callable[[str], bool]) -> dict[str, str]:
            return {n: f"{n}@{suffix}" if differs(n) else n for n in names}

        self.list_names = named(
            sorted(behind.lists), lambda n: _differ(old.lists, new.lists, n, _items)
        )
        self.table_names = named(
            sorted(behind.tables), lambda n: _differ(old, new, n, _table_meaning)
        )
        parents_first = [name for name in old.streams if name in behind.streams]
        self.stream_names = named(parents_first, lambda n: _differ(old, new, n, _stream_meaning))

    def streams(self) -> dict[str, checked.Stream]:
        """All its streams. They have no say in the times of events any more."""
        found = {}
        for name, own in self.stream_names.items():
            stream = self.renamed(self._old.streams[name])
            id_ = stream.id if stream.id is not None else self._event_id
            found[own] = replace(stream, time=None, delay=None, idle=None, id=id_)
        return found

    def tables(self) -> dict[str, checked.Table]:
        """Its tables, by name."""
        return {own: self.renamed(self._old.tables[n]) for n, own in self.table_names.items()}

    def lists(self) -> dict[str, checked.NamedValues]:
        """Its lists, by name, with the items that they had."""
        return {own: self.renamed(self._old.lists[n]) for n, own in self.list_names.items()}

    def renamed(self, value: ValueT) -> ValueT:
        """A checked value that asks for streams, tables and lists by these names."""
        if isinstance(value, tuple):
            return tuple(map(self.renamed, value))  # type: ignore[return-value]
        if not is_dataclass(value) or isinstance(value, type):
            return value
        updates: dict[str, Any] = {}
        for f in fields(value):
            if f.name in ("span", "ast"):
                continue
            item = getattr(value, f.name)
            changed = self._attribute(value, f.name, item)
            if changed is not item:
                updates[f.name] = changed
        return replace(value, **updates) if updates else value

    def _attribute(self, owner: object, name: str, item: Any) -> Any:
        if name == "stream" and not isinstance(owner, checked.Emit):
            return self.stream_names.get(item, item)
        if name == "parents":
            return tuple(self.stream_names.get(parent, parent) for parent in item)
        if name == "table":
            return self.table_names.get(item, item)
        if name == "keys_from":
            return self.list_names.get(item, self.table_names.get(item, item))
        if name == "name":
            return self._names_of(owner).get(item, item)
        return self.renamed(item)

    def _names_of(self, owner: object) -> Mapping[str, str]:
        match owner:
            case checked.Stream():
                return self.stream_names
            case checked.Table():
                return self.table_names
            case checked.NamedList() | checked.NamedValues():
                return self.list_names
        return {}


def _differ(old: Any, new: Any, name: str, describe: Callable[[Any, str], object]) -> bool:
    """Whether a name means something else in the new rules; where it means nothing, the old
    meaning may keep it."""
    now = describe(new, name)
    return now is not None and now != describe(old, name)


def _items(lists: Mapping[str, checked.NamedValues], name: str) -> object:
    return [(type(v), v) for v in lists[name].items] if name in lists else None


def _table_meaning(rules: CheckedRules, name: str) -> object:
    table = rules.tables.get(name)
    return None if table is None else (meaning(table), _meaning_behind(table, rules))


def _stream_meaning(rules: CheckedRules, name: str) -> object:
    stream = rules.streams.get(name)
    if stream is None:
        return None
    if stream.emitted:  # what comes out of rules goes to all who ask for it
        return "emitted"
    return meaning(_untimed(stream)), _meaning_behind(stream, rules)


def _meaning_behind(value: object, rules: CheckedRules) -> object:
    """What everything that a value stands on means."""
    behind = names_behind(value, rules)
    streams = [meaning(_untimed(rules.streams[name])) for name in sorted(behind.streams)]
    tables = [meaning(rules.tables[name]) for name in sorted(behind.tables)]
    return streams, tables, [_items(rules.lists, name) for name in sorted(behind.lists)]


def _untimed(stream: checked.Stream) -> checked.Stream:
    return replace(stream, time=None, delay=None, idle=None)
