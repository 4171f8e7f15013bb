"""The sink for a path: its ending says the form."""

from __future__ import annotations

from pathlib import PurePath

from cep.sink.base import Sink

FORMS = {
    ".csv": "csv",
    ".txt": "text",
    ".db": "sqlite",
    ".sqlite": "sqlite",
    ".sqlite3": "sqlite",
}
"""Endings with a form of their own; everything else is JSON lines."""


def open_sink(path: str, keep: int | None = None, *, color: bool = False) -> Sink:
    """A sink that writes to `path` (`-`: standard output) in the form that its ending says.

    With `keep` a file goes on after that many bytes, else it is replaced. Only the code of that
    form is loaded. Raises `SinkError` if the place cannot be written.
    """
    form = FORMS.get(PurePath(path).suffix.lower(), "json")
    if form == "csv":
        from cep.sink.csv_table import CsvSink

        return CsvSink(path, keep)
    if form == "text":
        from cep.sink.text import TextSink

        return TextSink(path, keep, color=color)
    if form == "sqlite":
        from cep.sink.sqlite import SqliteSink

        return SqliteSink(path)
    from cep.sink.json_lines import JsonLinesSink

    return JsonLinesSink(path, keep)
