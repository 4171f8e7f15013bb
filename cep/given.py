"""What host programs give an engine: events, times and rules, in the forms that they have them.

In: any object. Out: it as the engine takes it, or an error that says what to give instead.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping
from datetime import datetime, timedelta
from os import PathLike, fspath
from typing import Any

import msgspec

from cep.event_time import parse_time


class BadEvent(ValueError):
    """What a host gave cannot be used as an event: it is rejected."""


def is_event(given: Any) -> bool:
    """Whether this is one event and not several. A pydantic model can be iterated, but is one."""
    if isinstance(given, Mapping | bytes | str) or hasattr(given, "model_dump"):
        return True
    return not isinstance(given, Iterable)


def fields_of(item: Any) -> Mapping[str, Any]:
    """A host's event as a mapping of its fields."""
    if isinstance(item, Mapping):
        return item
    if dataclasses.is_dataclass(item) and not isinstance(item, type):
        return {f.name: getattr(item, f.name) for f in dataclasses.fields(item)}
    if hasattr(item, "model_dump"):
        return item.model_dump()  # type: ignore[no-any-return]
    if isinstance(item, msgspec.Struct):
        return msgspec.structs.asdict(item)
    raise BadEvent(
        f"an event is a mapping, a dataclass, a model or JSON, not {type(item).__name__}"
    )


def micros(duration: int | timedelta) -> int:
    """The microseconds of a delay that a host gave."""
    if isinstance(duration, timedelta):
        return duration // timedelta(microseconds=1)
    if isinstance(duration, int) and not isinstance(duration, bool):
        return duration
    raise TypeError(f"a delay is a timedelta or microseconds (int), not {duration!r}")


def count_of(name: str, given: int | None) -> int | None:
    """An option that is a whole number, or None where it was left out."""
    if given is None:
        return None
    if not isinstance(given, int) or isinstance(given, bool):
        raise TypeError(f"{name} is a whole number, not {given!r}")
    if given < 1:
        raise ValueError(f"{name} is at least 1, not {given!r}")
    return given


def seconds_of(name: str, given: float) -> float:
    """An option that is a number of seconds."""
    if not isinstance(given, int | float) or isinstance(given, bool):
        raise TypeError(f"{name} is a number of seconds, not {given!r}")
    if not given >= 0:
        raise ValueError(f"{name} is 0 or more seconds, not {given!r}")
    return given


def require_json(position: Any) -> None:
    """Raises TypeError for a position that cannot be kept."""
    try:
        msgspec.json.encode(position)
    except (TypeError, ValueError, RecursionError) as error:
        raise TypeError(f"a position is any JSON value, not {position!r}") from error


def instant(time: int | datetime | str) -> int:
    """The microseconds of a time that a host gave."""
    if isinstance(time, int) and not isinstance(time, bool):
        return time
    if not isinstance(time, datetime | str):
        kind = type(time).__name__
        raise TypeError(f"a time is microseconds (int), a datetime or a text, not {kind}")
    parsed = parse_time(time)
    if parsed is None:
        raise ValueError(f"{time!r} is no time; write it like 2026-01-31T12:00:00Z")
    return parsed


def no_ruleset(given: object) -> str:
    """What to write where an engine was given something else than rules."""
    if isinstance(given, str | PathLike):
        path = fspath(given)
        made = "load" if str(path).endswith(".cep") else "loads"
        shown = repr(path) if made == "load" else "text"
        return f"an Engine is made of loaded rules: Engine(cep.{made}({shown}))"
    return f"an Engine is made of loaded rules (cep.load, cep.loads), not {type(given).__name__}"
