"""Expressions with some of their parts replaced."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from dsl.checked import Value, attributes


def rewrite(value: Value, change: Callable[[Value], Value | None]) -> Value:
    """`value` with each part replaced by what `change` gives for it; None leaves it."""
    changed = change(value)
    if changed is not None:
        return changed
    new: dict[str, Any] = {}
    for name in attributes(type(value)):
        item = getattr(value, name)
        if isinstance(item, Value):
            new[name] = rewrite(item, change)
        elif isinstance(item, tuple) and any(isinstance(part, Value) for part in item):
            new[name] = tuple(rewrite(part, change) for part in item)
    return replace(value, **new) if new else value
