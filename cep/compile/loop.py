"""Writes the loop over events: finds what the rules do with an event, and does it.

In: the parts of a program (rules and observers) with the events they care for. Out: a function
`loop(program, events)`. Where one rule is alone, what it does is written into the loop itself, so
that an event costs no call; else the loop looks up the handlers that an event concerns.

An event that no rule can use costs the test for due timers and one look-up; in the loop of a rule
that is alone the look-up only: what is due by then is done before the next event that it can use,
or at the end of the batch, which nobody can tell from outside. A value that cannot be looked up
(unhashable, or of an unexpected type) equals no constant.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from textwrap import dedent, indent
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from cep.compile.program import Program

Loop = Callable[["Program", Sequence[Any]], None]

MOST_KINDS = 8
"""A rule with more kinds of events than this has them looked up and called."""

FEW = 4
"""So many texts are compared one by one."""

_HANDLER = re.compile(r"^    def on_(\d+)\(e\):\n((?:        .*\n)+)", re.MULTILINE)
_RETURN = re.compile(r"^ *return\b", re.MULTILINE)
_FOR = re.compile(r"(?m)^( *)for .*\n(?:\1 +.*\n)*")


@lru_cache(maxsize=256)
def calling_loop(find: str) -> Callable[..., Loop]:
    """Makes loops that call a handler: `find` is the code that finds the one of an event."""
    return made(
        f"""
def make(get=None, handler=None, merged=None, default=None):
    def loop(program, events):
        timers, emitted = program.timers, program._emitted
        for e in events:
            if e.t >= timers.due:
                program.fire(e.t)
            try:
                h = {find}
            except TypeError:
                h = default
            if h is not None:
                h(e)
                if emitted:
                    program.drain()
    return loop
"""
    )


def own_loop(text: str, attribute: str | None, kinds: Mapping[object, int]) -> str | None:
    """The module of a rule as the loop of a program that has no other rule.

    `text`: the module. `attribute`: of the event, which decides what it is to the rule, and `kinds`
    which handler there is for which value; None: all events are for the one handler of `kinds`.
    Its `make(find, run, constants)` gives the loop; `find` looks up the number of the handler. None
    where the handlers cannot be put into a loop as they stand.
    """
    handlers = {int(number): body for number, body in _HANDLER.findall(text)}
    wanted = sorted(set(kinds.values()))
    bodies = {number: _in_loop(handlers[number]) for number in wanted}
    if len(wanted) > MOST_KINDS or None in bodies.values():
        return None
    lines = _over_events(attribute, kinds, {n: str(body) for n, body in bodies.items()})
    head = text[: text.index("    return [")].replace("def make(", "def make(find, ", 1)
    loop = ["def loop(program, events):"]
    loop.append("    timers, emitted, fire = program.timers, program._emitted, program.fire")
    loop.append("    due = timers.due")
    loop.append(indent("\n".join(lines), "    "))
    loop.append("return loop")
    return head + indent("\n".join(loop), "    ") + "\n"


def _over_events(
    attribute: str | None, kinds: Mapping[object, int], bodies: Mapping[int, str]
) -> list[str]:
    """The loop itself: for which handler an event is, what is due by then, what is done with it."""
    lines = ["for e in events:"]
    if attribute is not None:
        lines += indent("\n".join(_which(attribute, kinds)), "    ").splitlines()
    lines += ["    t = e.t", "    if t >= due:", "        fire(t)", "        due = timers.due"]
    *others, (_, last) = bodies.items()
    for place, (number, body) in enumerate(others):
        lines.append(f"    {'el' if place else ''}if h == {number}:")
        lines.append(indent(body, "        "))
    lines += ["    else:"] if others else []
    lines.append(indent(last, "        " if others else "    "))
    lines += ["    if emitted:", "        program.drain()", "    due = timers.due"]
    if attribute is not None:
        lines += ["if e.t >= due:", "    fire(e.t)"]
    return lines


def _which(attribute: str, kinds: Mapping[object, int]) -> list[str]:
    """`h = …`, the number of the handler, or on with the next event where there is none. A few
    texts are compared one by one, which is cheaper than to look a new text up."""
    lines = ["try:"]
    if len(kinds) <= FEW and all(isinstance(value, str) for value in kinds):
        lines.append(f"    v = e.{attribute}")
        for place, (value, number) in enumerate(kinds.items()):
            lines += [f"    {'el' if place else ''}if v == {value!r}:", f"        h = {number}"]
        lines += ["    else:", "        continue"]
    else:
        lines += [f"    h = find(e.{attribute})", "    if h is None:", "        continue"]
    return [*lines, "except TypeError:", "    continue"]


def _in_loop(body: str) -> str | None:
    """The body of a handler as a part of the loop, which has `t` already: where the handler returns
    the loop goes on. None where it returns from within a loop of its own."""
    lines = dedent(body).removeprefix("t = e.t\n")
    if any(_RETURN.search(block.group()) for block in _FOR.finditer(lines)):
        return None
    lines = re.sub(r"(?m)^( *)return (unrouted\(\))$", r"\1\2\n\1continue", lines)
    lines = re.sub(r"(?m)^( *)return$", r"\1continue", lines)
    return None if _RETURN.search(lines) else lines.rstrip("\n")


def made(text: str) -> Callable[..., Loop]:
    """The function `make` of the code of a loop."""
    namespace: dict[str, Any] = {}
    exec(compile(text, "<loop>", "exec"), namespace)
    return namespace["make"]  # type: ignore[no-any-return]
