"""A match to write, for the tests of the sinks."""

from __future__ import annotations

from typing import Any

from cep.match import Match


def a_match(**changes: Any) -> Match:
    """A match of the rule `brute_force` at 2026-01-01T00:00:45Z, with `changes`."""
    fields: dict[str, Any] = {
        "id": "m1",
        "rule": "brute_force",
        "version": "v1",
        "kind": "match",
        "time": 1_767_225_645_000_000,
        "first": 1_767_225_600_000_000,
        "last": 1_767_225_645_000_000,
        "key": {"user": "bob"},
        "severity": "high",
        "tags": ("attack.t1110",),
        "title": "Password guessing that worked",
        "message": "bob: 5 failures, then success",
        "fields": {"ips": 2},
        "events": {"ok": {"type": "login", "user": "bob"}},
        "suppressed": None,
    }
    return Match(**{**fields, **changes})
