"""Which field of a record is likely to be its time, for those who have not said it yet."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from cep.event_time import parse_time
from cep.source.base import BadRecord, Reject

Path = tuple[str, ...]

_CALLED_SO = re.compile(r"time|date|stamp|epoch|created|when|(?:^|[_.@-])(?:ts|at|on)$", re.I)
_SHORTEST = 8
"""Characters that the text of a time has at least: those of `20260305`."""
_ERAS = [(10**8 * scale, 10**10 * scale) for scale in (1, 10**3, 10**6, 10**9)]
"""Numbers that may be epochs of our days: from 1973 to 2286, in each unit."""


def time_field(record: Mapping[str, Any]) -> Path | None:
    """The path of the field that is most likely the time: its name and its value say so.

    >>> time_field({"id": 1700000000, "created": "2026-03-05T10:00:00Z"})
    ('created',)
    >>> time_field({"id": 1700000000, "meta": {"ts": 1700000000}})
    ('meta', 'ts')
    >>> time_field({"id": 1700000000}) is None
    True
    """
    found = [(path, value) for path, value in _leaves(record) if _may_be_time(path[-1], value)]
    found.sort(key=lambda one: (_CALLED_SO.search(one[0][-1]) is None, len(one[0])))
    return found[0][0] if found else None


def time_hint(reject: Reject) -> str:
    """What to write where a record was rejected because nothing is known to be its time, if one of
    its fields looks like it."""
    from cep.source.json_line import read_object

    if not reject.reason.startswith("no time:"):
        return ""
    try:
        path = time_field(read_object(reject.raw))
    except BadRecord:
        return ""
    if path is None:
        return ""
    field = written(path)
    return f"; {field} looks like a time: write `stream event {{ time {field} }}` in the rules"


def written(path: Path) -> str:
    """A field as it is written in a rule.

    >>> written(("meta", "ts")), written(("@timestamp",))
    ('meta.ts', '`@timestamp`')
    """
    return ".".join(name if _PLAIN.fullmatch(name) else f"`{name}`" for name in path)


_PLAIN = re.compile(r"[A-Za-z_]\w*", re.ASCII)


def _leaves(record: Mapping[str, Any]) -> list[tuple[Path, Any]]:
    """The fields of a record and of the objects in it."""
    leaves: list[tuple[Path, Any]] = []
    for name, value in record.items():
        if isinstance(value, Mapping):
            leaves += [((str(name), str(inner)), each) for inner, each in value.items()]
        else:
            leaves.append(((str(name),), value))
    return leaves


def _may_be_time(name: str, value: Any) -> bool:
    if isinstance(value, str):
        is_named = _CALLED_SO.search(name) is not None
        is_number = value.strip().replace(".", "", 1).isdigit()
        return (
            len(value) >= _SHORTEST
            and (is_named or not is_number)
            and parse_time(value) is not None
        )
    if isinstance(value, int | float) and not isinstance(value, bool):
        in_our_days = any(low <= value < high for low, high in _ERAS)
        return in_our_days and _CALLED_SO.search(name) is not None
    return False
