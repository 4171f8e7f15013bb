"""From what the user names to a source: paths, folders and patterns, format and compression."""

from __future__ import annotations

import glob
import os
from collections.abc import Callable, Iterable

from cep.source.access_log import read_access_line
from cep.source.base import Source, SourceError, SourceOptions, Start
from cep.source.binary import Binary
from cep.source.delimited import Delimited
from cep.source.detect import FORMATS, OTHER_NAMES, detect
from cep.source.json_array import JsonArray
from cep.source.json_lines import JsonLines
from cep.source.line_records import LineRecords, ReadLine
from cep.source.logfmt import Logfmt
from cep.source.opened import Opened
from cep.source.parquet import Parquet
from cep.source.pattern import Pattern
from cep.source.plain_text import PlainText
from cep.source.stamps import Stamps, Years
from cep.source.syslog import Syslog
from dsl.diagnostics import did_you_mean

_WHOLE = {"json": "a JSON array", "parquet": "Parquet"}


def open_source(
    path: str,
    format: str | None = None,
    options: SourceOptions | None = None,
    *,
    start: Start | None = None,
    name: str | None = None,
) -> Source:
    """The source for one path, or `-` for standard input; from `start`, if it was read before.

    `format` is one of `FORMATS` or `regex:PATTERN`; `syslog:2024`, `text:2024` say the year of the
    first line. Without it extension and content decide. `name`: its logical name, by default the
    path. Raises `SourceError` if the path cannot be read or there is no such format.
    """
    kind, _, argument = (format or "").partition(":")
    kind = _known_format(kind, argument) if format else ""
    opened = Opened(path, options or SourceOptions(), start, name)
    kind = kind or detect(path, opened.head)
    if kind == "json" and not opened.head.lstrip().startswith(b"["):
        kind = "jsonl"
    opened.format = kind
    if opened.options.follow and kind in _WHOLE:
        raise SourceError(f"{path}: {_WHOLE[kind]} cannot be followed")
    if kind in _WITH_LINES:
        _WITH_LINES[kind](opened, argument)  # a wrong pattern is told now, not while reading
        return LineRecords(opened, lambda: _WITH_LINES[kind](opened, argument))
    return _OTHERS[kind](opened)


def expand(inputs: Iterable[str]) -> list[str]:
    """Paths for what the user wrote: files, folders (all files in and below), patterns, `-`.

    Each path once, in the order given, the files of a folder or pattern sorted by name; hidden
    ones are left out. Raises `SourceError` where a folder or pattern has no file.
    """
    paths: dict[str, None] = {}
    for item in inputs:
        if item == "-" or os.path.isfile(item):
            found = [item]
        elif os.path.isdir(item):
            found = _files_below(item)
        elif glob.has_magic(item) and not os.path.exists(item):
            found = sorted(filter(os.path.isfile, glob.glob(item, recursive=True)))
            if not found:
                raise SourceError(f"{item}: no file matches this pattern")
        else:
            found = [item]
        paths.update(dict.fromkeys(found))
    return list(paths)


def _files_below(folder: str) -> list[str]:
    found = []
    for place, folders, names in os.walk(folder):
        folders[:] = sorted(name for name in folders if not name.startswith("."))
        found += [os.path.join(place, name) for name in names if not name.startswith(".")]
    if not found:
        raise SourceError(f"{folder}: there is no file in this folder")
    return sorted(found)


def _known_format(kind: str, argument: str) -> str:
    kind = OTHER_NAMES.get(kind.lower(), kind.lower())
    if kind == "regex" and not argument:
        raise SourceError("the format regex needs a pattern: regex:(?P<user>\\w+) logged in")
    if kind in _DATED and argument and not _is_year(argument):
        raise SourceError(f"{kind}:{argument}: after the colon stands the year of the first line")
    if kind == "regex" or (kind in FORMATS and (kind in _DATED or not argument)):
        return kind
    known = [*FORMATS, *OTHER_NAMES, "regex:PATTERN"]
    guess = did_you_mean(kind, known)
    hint = f"did you mean `{guess}`?" if guess else f"there are: {', '.join(FORMATS)}, regex:…"
    raise SourceError(f"there is no format called `{kind}`; {hint}")


def _is_year(text: str) -> bool:
    return len(text) == 4 and text.isascii() and text.isdigit() and text > "0000"


def _stamps(opened: Opened, argument: str) -> Stamps:
    return Stamps(Years(opened.latest, int(argument) if argument else None))


def _pattern(opened: Opened, argument: str) -> ReadLine:
    return Pattern(argument, opened.options.types, _stamps(opened, ""))


_DATED = frozenset({"syslog", "text"})
_WITH_LINES: dict[str, Callable[[Opened, str], ReadLine]] = {
    "syslog": lambda opened, argument: Syslog(_stamps(opened, argument)),
    "text": lambda opened, argument: PlainText(_stamps(opened, argument)),
    "access": lambda opened, argument: read_access_line,
    "logfmt": lambda opened, argument: Logfmt(opened.options.types),
    "regex": _pattern,
}
_OTHERS: dict[str, Callable[[Opened], Source]] = {
    "jsonl": JsonLines,
    "json": JsonArray,
    "csv": lambda opened: Delimited(opened, None),
    "tsv": lambda opened: Delimited(opened, "\t"),
    "parquet": Parquet,
    "binary": Binary,
}
