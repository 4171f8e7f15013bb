"""Counts the work of a rule: nodes made and conditions asked, by the lines of its code that run.

The code of a rule is written so that a line makes at most one node (`(e, position, …)`) and asks at
most one condition of runs (`ok = …`, or the look-up of a group). So counting lines counts the work,
the same on every machine. `lines` has those of what the code calls too.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from types import FrameType
from typing import Any

import cep
from cep.engine import Engine

NODE = re.compile(r"\(e, \d+, ")
CONDITION = re.compile(r"^\s*(ok = |g = d\.get\(hk\))")

Event = Mapping[str, Any]


@dataclass
class Work:
    """What was done for some events."""

    events: int
    nodes: int = 0
    conditions: int = 0
    lines: int = 0


def work(text: str, before: Iterable[Event], measured: list[Event]) -> Work:
    """The work for the events `measured`, after those `before`. Each has its `time`."""
    ruleset = cep.loads(text)
    (rule,) = ruleset.compiled.rules
    code = rule.handlers.splitlines()
    engine = Engine(ruleset)
    for event in before:
        engine.process_at(event, event["time"])
    done = Work(len(measured))

    def trace(frame: FrameType, kind: str, _: object) -> Any:
        if kind == "line":
            done.lines += 1
        if frame.f_code.co_filename == "<rule>" and frame.f_code.co_name.startswith("on_"):
            line = code[frame.f_lineno - 1] if kind == "line" else ""
            done.nodes += bool(NODE.search(line))
            done.conditions += bool(CONDITION.search(line))
        return trace

    outer = sys.gettrace()
    sys.settrace(trace)
    try:
        for event in measured:
            engine.process_at(event, event["time"])
    finally:
        sys.settrace(outer)
    return done
