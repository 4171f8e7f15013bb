"""A match to write, for the tests of the sinks: what they see of a `cep.Match`, no engine."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

import msgspec

from cep.event_time import format_time


@dataclass(frozen=True)
class SampleMatch:
    """The public attributes of `cep.Match` as plain data."""

    id: str = "m1"
    rule: str = "brute_force"
    version: str = "v1"
    kind: str = "match"
    time: int = 1_767_225_645_000_000
    first: int | None = 1_767_225_600_000_000
    last: int | None = 1_767_225_645_000_000
    key: dict[str, Any] = field(default_factory=lambda: {"user": "bob"})
    severity: str | None = "high"
    tags: tuple[str, ...] = ("attack.t1110",)
    title: str | None = "Password guessing that worked"
    message: str | None = "bob: 5 failures, then success"
    fields: dict[str, Any] = field(default_factory=lambda: {"ips": 2})
    events: dict[str, Any] = field(default_factory=lambda: {"ok": {"type": "login", "user": "bob"}})
    suppressed: dict[str, int] | None = None

    @property
    def time_iso(self) -> str:
        return format_time(self.time)

    def to_dict(self) -> dict[str, Any]:
        times = {"time": self.time_iso, "first": self.first, "last": self.last}
        return {**vars(self), **times, "tags": list(self.tags)}

    def to_json(self) -> bytes:
        return msgspec.json.encode(self.to_dict())


def a_match(**changes: Any) -> Any:
    """A match of the rule `brute_force` at 2026-01-01T00:00:45Z, with `changes`."""
    return replace(SampleMatch(), **changes)
