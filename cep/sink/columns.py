"""A match as one row of a table, the same for CSV and SQLite.

The columns are those of the match record and do not depend on the rule, so the matches of all
rules fit in one table. What is an object or a list in the record is JSON text in its cell.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import msgspec

if TYPE_CHECKING:
    from cep.match import Match

COLUMNS = (
    "id",
    "rule",
    "version",
    "kind",
    "time",
    "first",
    "last",
    "severity",
    "tags",
    "message",
    "key",
    "fields",
    "events",
    "suppressed",
)
"""The columns, in the order of the match record, except that the short ones come first."""


def row(match: Match) -> dict[str, str | None]:
    """The cells of a match by column: text, or None where the record has nothing."""
    record = match.to_dict()
    return {column: _cell(record.get(column)) for column in COLUMNS}


def _cell(value: object) -> str | None:
    if value is None or isinstance(value, str):
        return value
    return json_text(value)


def json_text(value: object) -> str:
    """The value as compact JSON. What msgspec cannot write (integers of more than 64 bits) goes
    through the slower encoder of the standard library; objects JSON does not know are texts.
    """
    try:
        return msgspec.json.encode(value, enc_hook=str).decode()
    except (OverflowError, TypeError, ValueError):
        return json.dumps(value, default=str, separators=(",", ":"))
