"""`cep fmt`: rule files in their canonical form."""

from __future__ import annotations

import difflib
import os
import sys
import tempfile
from pathlib import Path

import click

from cep.cli.exits import DONE, FAILED, WRONG_USE
from cep.cli.parameters import RULES
from cep.cli.reading import read_trees, show_diagnostics
from cep.cli.rule_files import rule_files
from cep.cli.speech import colored, complain, counted, paint, say


@click.command("fmt")
@click.argument("rules", nargs=-1, required=True, type=RULES)
@click.option("--check", is_flag=True, help="Change nothing; exit code 1 if a file would change.")
@click.option("--diff", is_flag=True, help="Change nothing; show what would change.")
def command(rules: tuple[str, ...], check: bool, diff: bool) -> int:
    """Format rule files in place.

    RULES are files, folders or `-`: then standard input is formatted to standard output. A file
    that does not parse is left as it is.
    """
    paths = list(rules) if rules == ("-",) else rule_files(rules)
    changed = broken = 0
    for path in paths:
        texts = _formatted(path)
        if texts is None:
            broken += 1
            continue
        changed += _deal_with(path, *texts, check=check, diff=diff)
    if paths != ["-"]:
        _summary(changed, len(paths) - changed - broken, dry=check or diff)
    if broken:
        complain(f"{counted(broken, 'file')} with errors left as they are")
        return WRONG_USE
    return FAILED if check and changed else DONE


def _formatted(path: str) -> tuple[str, str] | None:
    """Text and formatted text of a file; None, with the errors shown, if it does not parse."""
    from dsl.formatter import format_file

    [(tree, source, diagnostics)] = read_trees([path])
    if any(found.severity == "error" for found in diagnostics):
        show_diagnostics(diagnostics)
        return None
    return source.text, format_file(tree, source)


def _deal_with(path: str, before: str, after: str, *, check: bool, diff: bool) -> bool:
    """Write or show the formatted text; whether it differs."""
    if diff:
        sys.stdout.write(_difference(path, before, after))
    elif check:
        if before != after:
            say(f"would format {path}")
    elif path == "-":
        sys.stdout.write(after)
    elif before != after:
        replace_text(Path(path), after)
        say(f"formatted {path}")
    return before != after


def _difference(path: str, before: str, after: str) -> str:
    """A unified diff, coloured on a terminal."""
    color = colored(sys.stdout)
    tones = {"+": "32", "-": "31", "@": "36"}
    lines = difflib.unified_diff(
        before.splitlines(keepends=True), after.splitlines(keepends=True), path, path
    )
    return "".join(
        paint(line.rstrip("\n"), tones.get(line[0], ""), color and line[0] in tones) + "\n"
        for line in lines
    )


def replace_text(path: Path, text: str) -> None:
    """Put the text in place of the file's: all or nothing, with the file's permissions."""
    path = path.resolve()
    mode = path.stat().st_mode
    handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with open(handle, "w", encoding="utf-8", newline="") as file:
            file.write(text)
        os.chmod(temporary, mode & 0o7777)
        os.replace(temporary, path)
    except BaseException:
        os.unlink(temporary)
        raise


def _summary(changed: int, same: int, *, dry: bool) -> None:
    verb = "would be formatted" if dry else "formatted"
    left = "left as it was" if same == 1 else "left as they were"
    say(f"{counted(changed, 'file')} {verb}, {counted(same, 'file')} {left}")
