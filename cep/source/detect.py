"""Which format a file has, by its extension and its first lines.

An extension that says it (`.jsonl`, `.csv`, …, also before `.gz` or `.zst`) is believed, unless the
content is no text at all; for all others (`.log`, `.txt`, standard input) the first lines decide.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable

from cep.source.access_log import looks_like_access_log
from cep.source.logfmt import looks_like_logfmt
from cep.source.parquet import MAGIC
from cep.source.syslog import looks_like_syslog

FORMATS = ("jsonl", "json", "csv", "tsv", "logfmt", "syslog", "access", "text", "parquet")
"""The names of formats that are not `regex:PATTERN`."""

OTHER_NAMES = {
    "ndjson": "jsonl",
    "jsonlines": "jsonl",
    "json-lines": "jsonl",
    "apache": "access",
    "nginx": "access",
    "common": "access",
    "combined": "access",
    "plain": "text",
}
_EXTENSIONS = {
    ".jsonl": "jsonl",
    ".ndjson": "jsonl",
    ".csv": "csv",
    ".tsv": "tsv",
    ".tab": "tsv",
    ".logfmt": "logfmt",
    ".parquet": "parquet",
}
_PACKED = (".gz", ".gzip", ".zst", ".zstd")
_ARRAY = re.compile(rb"\s*\[\s*(?:[{\]]|$)")
_CONTROL = bytes(set(range(32)) - set(b"\t\n\r\f\v\x1b"))
_NAME = re.compile(r'\s*"?[A-Za-z_@][\w @./-]{0,60}"?\s*', re.ASCII)
_LINES = 20


def detect(path: str, head: bytes) -> str:
    """The format of a file called `path` that begins with `head`: one of `FORMATS`, or `binary`."""
    if head.startswith(MAGIC):
        return "parquet"
    if is_binary(head):
        return "binary"
    extension = _extension(path)
    if extension in _EXTENSIONS:
        return _EXTENSIONS[extension]
    if extension == ".json":
        return "json" if _ARRAY.match(head) else "jsonl"
    return _by_content(head)


def is_binary(head: bytes) -> bool:
    """Whether bytes are no text: more than one in ten is a control character."""
    return len(head.translate(None, _CONTROL)) < 0.9 * len(head)


def _extension(path: str) -> str:
    stem, extension = os.path.splitext(path.lower())
    return os.path.splitext(stem)[1] if extension in _PACKED else extension


def _by_content(head: bytes) -> str:
    if _ARRAY.match(head):
        return "json"
    lines = [line for line in head.decode("utf-8", errors="replace").splitlines() if line.strip()]
    if len(lines) > 1 and not head.endswith(b"\n"):
        del lines[-1]  # may be cut off
    lines = lines[:_LINES]
    if not lines or _most(lines, lambda line: line.lstrip().startswith("{")):
        return "jsonl"
    for name, looks in (
        ("access", looks_like_access_log),
        ("syslog", looks_like_syslog),
        ("logfmt", looks_like_logfmt),
    ):
        if _most(lines, looks):
            return name
    return _table(lines) or "text"


def _most(lines: list[str], looks: Callable[[str], bool]) -> bool:
    return sum(map(looks, lines)) * 2 > len(lines)


def _table(lines: list[str]) -> str | None:
    """A header of names, and as many delimiters on each line."""
    for delimiter, name in ((",", "csv"), ("\t", "tsv"), (";", "csv")):
        columns = lines[0].split(delimiter)
        if len(columns) < 2 or len(lines) < 2 or not all(map(_NAME.fullmatch, columns)):
            continue
        if all(line.count(delimiter) >= len(columns) - 1 for line in lines[1:]):
            return name
    return None
