"""The loop over events where handlers are found by several fields.

In: for each field a table from its constants to the handlers that may care. Out: a loop. An event
costs the test of each field for being there, and a look-up where it is: a log that has none of the
fields of some source pays next to nothing for its rules. Which handlers go together is found out
once for each combination of constants that comes.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from cep.compile.loop import Loop, made

Handler = Callable[[Any], None]
Ordered = tuple[int, Handler]
"""The place of a rule among all, and what it does with an event."""

MOST_COMBINATIONS = 10_000
"""More combinations than this are not remembered: whoever sends events may make up any number."""


def by_order(item: Ordered) -> int:
    return item[0]


def together(items: Sequence[Ordered]) -> Handler:
    """One handler that calls all of these, in the order of the rules."""
    handlers = [handler for _, handler in items]
    if len(handlers) == 1:
        return handlers[0]

    def all_of_them(event: Any) -> None:
        for handler in handlers:
            handler(event)

    return all_of_them


class Merging:
    """Rules that are found by different fields, a rule that several fields let in once.

    `tables`: attribute of an event → constant → handlers; `always`: those that any event concerns;
    `absent`: the code of what an attribute holds where the field is missing.

    A combination is a number, whose digits say which group of handlers each field has found; each
    table has a base of its own.
    """

    def __init__(
        self,
        tables: Mapping[str, Mapping[Any, list[Ordered]]],
        always: Sequence[Ordered],
        absent: Mapping[str, str],
    ) -> None:
        self.always = always
        self.absent = absent
        self.weights: dict[str, dict[Any, int]] = {}
        self.digits: list[tuple[int, int, list[list[Ordered]]]] = []
        self.known: dict[int, Handler | None] = {}
        weight = 1
        for attribute, table in tables.items():
            groups: list[list[Ordered]] = [[]]
            numbers: dict[tuple[int, ...], int] = {}
            self.weights[attribute] = {}
            for constant, items in table.items():
                number = numbers.setdefault(tuple(id(h) for _, h in items), len(groups))
                if number == len(groups):
                    groups.append(items)
                self.weights[attribute][constant] = number * weight
            self.digits.append((weight, len(groups), groups))
            weight *= len(groups)

    def handler(self, combination: int) -> Handler | None:
        """What is done with an event of this combination, in the order of the rules."""
        found = list(self.always)
        for weight, base, groups in self.digits:
            found += groups[combination // weight % base]
        found.sort(key=by_order)
        unique = list({id(handler): (order, handler) for order, handler in found}.values())
        if len(self.known) >= MOST_COMBINATIONS:
            self.known.clear()
        self.known[combination] = together(unique) if unique else None
        return self.known[combination]

    def careful(self, event: Any) -> int:
        """The combination of an event with a value that cannot be looked up: it equals none."""
        combination = 0
        for attribute, weights in self.weights.items():
            try:
                combination += weights.get(getattr(event, attribute), 0)
            except TypeError:
                continue
        return combination

    def loop(self) -> Loop:
        """The loop over events."""
        tables = [weights.get for weights in self.weights.values()]
        make = made(_text(tuple((name, self.absent[name]) for name in self.weights)))
        return make(tables, self.known, self.handler, self.careful)


def _text(fields: tuple[tuple[str, str], ...]) -> str:
    """The code of the loop."""
    lines = [
        "from msgspec import UNSET",
        "def make(tables, known, find, careful):",
        f"    ({''.join(f'get{i}, ' for i in range(len(fields)))}) = tables",
        "    def loop(program, events):",
        "        timers, emitted = program.timers, program._emitted",
        "        for e in events:",
        "            if e.t >= timers.due:",
        "                program.fire(e.t)",
        "            n = 0",
        "            try:",
    ]
    for i, (attribute, absent) in enumerate(fields):
        lines.append(f"                if (v := e.{attribute}) is not {absent}:")
        lines.append(f"                    n += get{i}(v, 0)")
    lines += [
        "            except TypeError:",
        "                n = careful(e)",
        "            try:",
        "                h = known[n]",
        "            except KeyError:",
        "                h = find(n)",
        "            if h is not None:",
        "                h(e)",
        "                if emitted:",
        "                    program.drain()",
        "    return loop",
    ]
    return "\n".join(lines) + "\n"
