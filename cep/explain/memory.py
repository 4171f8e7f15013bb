"""What a key of a rule takes in memory, measured with objects like those that the engine makes.

In: a compiled rule and the shape of events. Out: words with numbers: bytes (`sys.getsizeof`, with
all that hangs on an object) for a key and for each event that it holds, of JSON lines of 300 bytes;
and where the rule says how many runs a key may hold, and no step is without end, for all of them.
"""

from __future__ import annotations

from collections.abc import Iterable

from cep.caps import ENTRY, Sizes
from cep.compile.rules import CompiledRule, window_plan
from cep.event import EventShape
from cep.explain.bounds import is_stateless
from cep.runtime.careful import Careful
from cep.runtime.rule import RulePlan
from cep.runtime.runs import FIRST_VARIABLE
from dsl import checked

LINE = 300
"""Bytes of the line of an event."""


def memory(compiled: CompiledRule, shape: EventShape) -> list[str]:
    """A line about the bytes of a key; none for a rule that keeps nothing."""
    pattern = compiled.rule.pattern
    if isinstance(pattern, checked.WindowPattern):
        return [_window(compiled.rule, pattern)]
    if is_stateless(pattern) or not isinstance(compiled.plan, RulePlan):
        return []
    key, event = _key(compiled.plan), _event(compiled, shape)
    told = f"about {_bytes(key)} for a key, {_bytes(event)} for each event in its runs"
    most, longest = compiled.rule.limit, _longest(pattern.nodes)
    if compiled.rule.start == "first":
        most = 1
    if most is None or longest is None:
        return [told]
    return [f"{told}, so at most some {_bytes(key + most * longest * event)}"]


def _key(plan: RulePlan) -> int:
    state = plan.state_type()()
    state.key = "a key, some"
    return ENTRY + Sizes().of(state)


def _event(compiled: CompiledRule, shape: EventShape) -> int:
    """Bytes of an event with its place in a run."""
    event = shape.type(t=1 << 50, raw=bytes(LINE), pos=1 << 40)
    if compiled.automaton.is_bare:
        return Sizes().of([(event,)])
    seen = max((len(state.variables) for state in compiled.automaton.states), default=0)
    node = (event, *([None] * (FIRST_VARIABLE - 1 + seen)))
    return Sizes().of([node])


def _longest(nodes: Iterable[checked.Node]) -> int | None:
    """Most events of a run; None: no end."""
    total = 0
    for node in nodes:
        most = _most(node)
        if most is None:
            return None
        total += most
    return total


def _most(node: checked.Node) -> int | None:
    match node:
        case checked.Step():
            return node.quantifier.maximum
        case checked.Guard():
            return 0
        case checked.AllOf():
            return node.count or len(node.parts)
        case checked.OneOf():
            lengths = [_longest(branch) for branch in node.branches]
            return None if None in lengths else max(n for n in lengths if n is not None)
        case checked.Repeat():
            once, times = _longest(node.body), node.quantifier.maximum
            return None if once is None or times is None else once * times


def _window(rule: checked.Rule, pattern: checked.WindowPattern) -> str:
    few, many = (_filled(rule, number) for number in (10, 110))
    each = (many - few) // 100
    key = ENTRY + max(few - 10 * each, 0)
    if each < 8:
        return f"about {_bytes(key)} for a key, however many events there are"
    told = f"about {_bytes(key)} for a key, {_bytes(each)} for each event in its window"
    if pattern.count is not None:
        told += f", so at most some {_bytes(key + pattern.count * each)}"
    return told


def _filled(rule: checked.Rule, number: int) -> int:
    """Bytes of a window that so many events have entered."""
    plan = window_plan(rule, Careful())
    window = plan.new("")
    values = max(plan.slots, default=-1) + 1
    for place in range(number):
        window.on_event(0, tuple(float(place) for _ in range(values)))
    return Sizes().of(window)


def _bytes(number: int) -> str:
    """A number of bytes for people, with two digits.

    >>> _bytes(734), _bytes(12_345), _bytes(3_400_000)
    ('730 bytes', '12 kB', '3.4 MB')
    """
    size = float(f"{number:.2g}")
    for unit, scale in (("GB", 1e9), ("MB", 1e6), ("kB", 1e3)):
        if size >= scale:
            return f"{size / scale:g} {unit}"
    return f"{size:g} bytes"
