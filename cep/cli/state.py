"""`cep state`: what a state file holds, what a change of rules would do, and upkeep of the file.

`show`, `top`, `plan` and `export` only read, also while a run uses the file; the others need it for
themselves.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from cep.cli.exits import DONE, FAILED
from cep.cli.parameters import DURATION, RULES, loading_options
from cep.cli.reading import Loading, load_rules
from cep.cli.rule_files import rule_files, split_arguments
from cep.cli.speech import Problem, complain, counted, say
from cep.sink.text import printable
from cep.state.store import StateError
from dsl.diagnostics import did_you_mean

if TYPE_CHECKING:
    from cep.state.sqlite import SqliteStore

CommandT = TypeVar("CommandT", bound=Callable[..., object])
SHOWN = 50
"""Keys that are shown unless another number is asked for."""


@click.group("state", no_args_is_help=True)
def command() -> None:
    """Look into a state file, and take care of it.

    show, top, plan and export may be used while a run uses the file. SQLite tools can read it too:
    its views are documented.
    """


def _state_option(command: CommandT) -> CommandT:
    option = click.option(
        "--state",
        "path",
        required=True,
        metavar="FILE",
        help="The state file of `cep run --state`.",
    )
    return option(command)


@contextmanager
def _plainly() -> Iterator[None]:
    """Errors of state become messages."""
    try:
        yield
    except StateError as error:
        raise Problem(str(error)) from error


@contextmanager
def _opened(path: str) -> Iterator[SqliteStore]:
    """The store of an existing file, for this process alone."""
    from cep.state.sqlite import SqliteStore
    from cep.state.sqlite.file import require_file

    with _plainly():
        require_file(path)
        store = SqliteStore(path)
        try:
            yield store
        finally:
            store.close()


# ---------------------------------------------------------------------------- looking


@command.command("plan")
@click.argument("rules", nargs=-1, required=True, type=RULES)
@_state_option
@click.option("--restart", multiple=True, metavar="RULE", help="As of `cep run`.")
@loading_options
def plan(
    rules: tuple[str, ...],
    path: str,
    restart: tuple[str, ...],
    settings: tuple[str, ...],
    type_field: str | None,
) -> None:
    """Say what would become of the state if these RULES were run with it.

    A rule goes on with its runs where only its constants or its output have changed. Where it has
    changed otherwise, its old version finishes its runs beside the new one. Nothing is changed.
    """
    from cep.state.change import succession
    from cep.state.sqlite import look

    loading = Loading(settings=settings, type_field=type_field)
    ruleset = load_rules(rule_files(rules), loading, warnings=False)
    with _plainly(), look(path) as snapshot:
        following = succession(ruleset, snapshot.rules, snapshot.held(), restart)
    for change in following.changes:
        click.echo(change.sentence())


@command.command("show")
@_state_option
@click.option("--rule", metavar="RULE", help="Only of this rule, table or stream.")
@click.option("--key", metavar="KEY", help="Only this key: a value, or a JSON array of its parts.")
@click.option("--limit", type=click.IntRange(min=1), default=SHOWN, show_default=True)
@click.option("--json", "as_json", is_flag=True, help="As lines of JSON, with the bound events.")
def show(path: str, rule: str | None, key: str | None, limit: int, as_json: bool) -> None:
    """Show the keys of rules: how far they are, since when, and what is due when."""
    with _plainly():
        rows = list(_found(path, rule, key, limit))
        if not rows and (rule is not None or key is not None):
            _require_known(path, rule, key)
        if as_json:
            for row in rows:
                click.echo(json.dumps(_with_events(path, row), ensure_ascii=False))
            return
        if rule is None and key is None:
            click.echo("\n".join(_overview(path)))
    click.echo("\n".join(_table(rows, _KEY_COLUMNS)))
    if len(rows) == limit:
        say(f"only the first {limit:,} keys; --limit shows more")


_KEY_COLUMNS = ("kind", "name", "key", "step", "runs", "first", "due", "size")


def _found(path: str, rule: str | None, key: str | None, limit: int) -> Iterable[dict[str, Any]]:
    """The rows of the keys that are asked for."""
    from cep.state.sqlite import read_view
    from cep.upkeep import key_texts

    where = {"name": rule} if rule is not None else {}
    if key is None:
        yield from read_view(path, "keys", where, limit)
        return
    for text in sorted(key_texts(key)):
        yield from read_view(path, "keys", {**where, "key": text}, limit)


def _require_known(path: str, rule: str | None, key: str | None) -> None:
    """`Problem` where nothing is kept of a rule, or of a key."""
    from cep.state.sqlite import read_view

    names = {row["name"] for row in read_view(path, "sizes")}
    names |= {row["rule"] for row in read_view(path, "rules")}
    if rule is not None and rule not in names:
        guess = did_you_mean(rule, names)
        hint = f"did you mean `{guess}`?" if guess else f"there is: {', '.join(sorted(names))}"
        raise Problem(printable(f"nothing is kept of `{rule}`; {hint}"))
    if key is not None:
        of = f"{rule} has" if rule is not None else "there is"
        raise Problem(printable(f"{of} no key {key}"))


def _with_events(path: str, row: dict[str, Any]) -> dict[str, Any]:
    from cep.state.sqlite import read_view

    if row["kind"] != "runs":
        return row
    where = {"rule": row["name"], "version": row["version"], "key": row["key"]}
    events = [json.loads(run["events"]) for run in read_view(path, "runs", where)]
    return {**row, "events": events[0] if events else []}


def _overview(path: str) -> Iterator[str]:
    """The last checkpoint and what each rule holds."""
    from cep.state.sqlite import read_view

    last = read_view(path, "checkpoints", limit=1, largest="number")
    for epoch in last:
        yield f"checkpoint {epoch['number']:,} of {epoch['time']}, clock {epoch['clock']}"
    status = {(row["rule"], row["version"]): row["status"] for row in read_view(path, "rules")}
    sizes = read_view(path, "sizes", largest="size")
    for row in sizes:
        row["status"] = status.get((row["name"], row["version"]), "")
    yield from _table(sizes, ("kind", "name", "version", "status", "keys", "runs", "size"))
    yield ""


@command.command("top")
@_state_option
@click.option("--limit", type=click.IntRange(min=1), default=10, show_default=True)
def top(path: str, limit: int) -> None:
    """Show the rules and the keys that take the most bytes."""
    from cep.state.sqlite import read_view

    with _plainly():
        sizes = read_view(path, "sizes", limit=limit, largest="size")
        keys = read_view(path, "keys", limit=limit, largest="size")
    click.echo("\n".join(_table(sizes, ("size", "kind", "name", "version", "keys", "runs"))))
    click.echo("")
    click.echo("\n".join(_table(keys, ("size", "kind", "name", "key", "step", "runs", "first"))))


def _table(rows: Sequence[Mapping[str, Any]], columns: Sequence[str]) -> Iterator[str]:
    """Rows as aligned text; numbers to the right."""
    cells = [[_cell(row[column]) for column in columns] for row in rows]
    widths = [max(map(len, column)) for column in zip(columns, *cells, strict=True)]
    yield "  ".join(name.ljust(width) for name, width in zip(columns, widths, strict=True)).rstrip()
    for row, texts in zip(rows, cells, strict=True):
        yield "  ".join(
            text.rjust(width) if isinstance(row[column], int) else text.ljust(width)
            for text, width, column in zip(texts, widths, columns, strict=True)
        ).rstrip()


def _cell(value: Any) -> str:
    if isinstance(value, int):
        return f"{value:,}"
    return "" if value is None else printable(str(value))


# ---------------------------------------------------------------------------- dropping


@command.command("expire")
@_state_option
@click.option("--before", metavar="TIME", help="What began before this time (ISO 8601).")
@click.option(
    "--older-than",
    type=DURATION,
    metavar="DURATION",
    help="What began longer ago than this, by the clock of the state.",
)
@click.option("--rule", multiple=True, metavar="RULE", help="Only of this rule; repeatable.")
def expire(path: str, before: str | None, older_than: int | None, rule: tuple[str, ...]) -> None:
    """Drop runs whose first event is old, before their time is over."""
    from cep import upkeep

    if (before is None) == (older_than is None):
        raise click.UsageError("say either --before TIME or --older-than DURATION")
    with _opened(path) as store:
        until = _moment(before) if before is not None else None
        if until is None:
            until = (store.load().clock_us or 0) - (older_than or 0)
        dropped = upkeep.expire(store, until, rule)
    say(f"{counted(dropped, 'run')} dropped")


def _moment(text: str) -> int:
    from cep.event_time import parse_time

    moment = parse_time(text)
    if moment is None:
        raise click.UsageError(f"{text!r} is no time; write it like 2026-01-31T12:00:00Z")
    return moment


@command.command("drop")
@_state_option
@click.option("--rule", required=True, metavar="RULE", help="The rule that is to forget.")
@click.option("--key", multiple=True, metavar="KEY", help="Only this key; repeatable.")
def drop(path: str, rule: str, key: tuple[str, ...]) -> None:
    """Let a rule forget everything, or some keys: runs, windows and what its `dedup` hides."""
    from cep import upkeep

    keys = {text for given in key for text in upkeep.key_texts(given)}
    with _opened(path) as store:
        dropped = upkeep.drop(store, rule, keys)
    say(f"{counted(dropped, 'state')} dropped")
    if key and not dropped:
        raise Problem(f"{rule} has no such key")


# ---------------------------------------------------------------------------- the file


@command.command("export")
@_state_option
@click.option("--output", "-o", metavar="FILE", help="Write there and not to standard output.")
def export(path: str, output: str | None) -> None:
    """Write the whole state as lines of JSON, of one checkpoint, for `cep state import`."""
    from cep import upkeep
    from cep.state.sqlite import look

    with _plainly(), look(path) as snapshot:
        if output is None:
            sys.stdout.buffer.writelines(upkeep.export(snapshot))
            return
        with Path(output).open("wb") as file:
            file.writelines(upkeep.export(snapshot))


@command.command("import")
@click.argument("file", metavar="FILE")
@_state_option
def import_(file: str, path: str) -> None:
    """Make a new state file of what `cep state export` wrote (`-`: standard input)."""
    from cep import upkeep
    from cep.state.sqlite import SqliteStore, start_over

    was_there = Path(path).exists()
    with _plainly(), _lines(file) as lines:
        store = SqliteStore(path)
        try:
            states = upkeep.import_into(store, lines)
        except BaseException:
            store.close()
            if not was_there:
                start_over(path)
            raise
        store.close()
    say(f"{counted(states, 'state')} imported into {path}")


@contextmanager
def _lines(file: str) -> Iterator[Iterable[bytes]]:
    if file == "-":
        yield sys.stdin.buffer
        return
    with Path(file).open("rb") as opened:
        yield opened


@command.command("vacuum")
@_state_option
def vacuum(path: str) -> None:
    """Give back the room in the file that is free."""
    with _opened(path) as store:
        before = store.size()
        store.vacuum()
        after = store.size()
    say(f"{path}: {before.file + before.log:,} bytes before, {after.file + after.log:,} now")


@command.command("verify")
@click.argument("arguments", nargs=-1, type=RULES, metavar="[RULES... INPUT...]")
@_state_option
@loading_options
def verify(
    arguments: tuple[str, ...], path: str, settings: tuple[str, ...], type_field: str | None
) -> int:
    """Check the file, and every state in it as its rule reads it.

    With RULES and the INPUTs from their beginning: also that going on from the state finds the same
    matches, by their ids, as a run over everything. Nothing is changed.
    """
    from cep import upkeep

    rules, inputs = split_arguments(arguments) if arguments else ([], [])
    if rules and not inputs:
        raise click.UsageError("name the inputs that were read from their beginning, too")
    with _opened(path) as store:
        found = upkeep.verify(store)
    for mistake in found.mistakes:
        complain(printable(mistake))
    say(f"{counted(found.states, 'state')} read, {counted(len(found.mistakes), 'mistake')}")
    if found.earlier:
        say(
            f"{counted(found.earlier, 'state')} in the form of an earlier version of cep, which "
            "this one reads; each is written in the present form when it changes"
        )
    if found.mistakes:
        return FAILED
    return _replayed(path, rules, inputs, settings, type_field) if rules else DONE


def _replayed(
    path: str,
    rules: Sequence[str],
    inputs: Sequence[str],
    settings: tuple[str, ...],
    type_field: str | None,
) -> int:
    """Compares a run from the state with one over everything."""
    from cep.cli.replay import replay

    loading = Loading(settings=settings, type_field=type_field)
    with _plainly():
        compared = replay(path, load_rules(rules, loading, warnings=False), inputs)
    say(compared.sentence())
    return DONE if compared.same else FAILED
