"""What bounds the memory of a rule, in words: how long a run may live and how many a key may hold.

Every rule that passes the check has an end for each of its runs; this says which one it is.
"""

from __future__ import annotations

from collections.abc import Iterator

from cep.explain.duration import duration
from dsl import checked


def bounds(rule: checked.Rule) -> list[str]:
    """The bounds of the rule's state, one line each; a rule without state says so."""
    pattern = rule.pattern
    if isinstance(pattern, checked.WindowPattern):
        lines = [_window_bound(pattern)]
    elif is_stateless(pattern):
        lines = ["keeps nothing: each event decides by itself"]
    else:
        lines = [_life(rule, pattern), _number(rule)]
    if rule.dedup is not None:
        lines.append(f"dedup keeps one entry per key for {duration(rule.dedup.duration)}")
    return lines


def is_stateless(pattern: checked.SequencePattern) -> bool:
    """Whether one event is the whole match."""
    match pattern.nodes:
        case (checked.Step(quantifier=checked.Quantifier(minimum=1, maximum=1)),):
            return True
    return False


def _life(rule: checked.Rule, pattern: checked.SequencePattern) -> str:
    """How long a run may live: the first that applies of within, the steps' own bounds, keep."""
    waiting = _trailing_wait(pattern)
    tail = f", then waits {duration(waiting)} for the absence" if waiting else ""
    if pattern.within is not None:
        within = duration(pattern.within)
        return f"a run ends at the latest {within} after its first event (within){tail}"
    longest = longest_run(pattern.nodes)
    if longest is not None:
        return f"a run ends at the latest {duration(longest)} after its first event (its steps)"
    if rule.keep is not None:
        return f"a run ends at the latest {duration(rule.keep)} after its first event (keep)"
    return "a run ends at its `until`"


def _number(rule: checked.Rule) -> str:
    """How many runs a key may hold."""
    if rule.start != "each":
        runs = (
            "a key holds runs of one first event at a time"
            if rule.start == "first"
            else ("opening events replace runs at their first step")
        )
        return f"{runs} (start {rule.start})"
    if rule.limit is not None:
        return f"a key holds runs of at most {rule.limit:,} first events (limit)"
    return "a key holds a run for each first event in that time (`limit N runs` caps it)"


def _trailing_wait(pattern: checked.SequencePattern) -> int | None:
    """The `within` of a `no` at the end, where the sequence has a `within` of its own."""
    last = pattern.nodes[-1] if pattern.nodes else None
    return last.within if isinstance(last, checked.Guard) else None


def longest_run(nodes: tuple[checked.Node, ...], *, first: bool = True) -> int | None:
    """Microseconds from the first event to the end that the nodes allow; None: no end."""
    total = 0
    for number, node in enumerate(nodes):
        longest = _longest(node, opens=first and number == 0, ends=number == len(nodes) - 1)
        if longest is None:
            return None
        total += longest
    return total


def _longest(node: checked.Node, *, opens: bool, ends: bool) -> int | None:
    match node:
        case checked.Step():
            return 0 if opens and not node.quantifier.is_loop else node.within
        case checked.Guard():
            return node.within if ends else 0
        case checked.AllOf():
            return node.within
        case checked.OneOf():
            return _maximum(longest_run(branch, first=opens) for branch in node.branches)
        case checked.Repeat():
            once = longest_run(node.body, first=False)
            return (
                None
                if once is None or node.quantifier.maximum is None
                else (once * node.quantifier.maximum)
            )


def _maximum(lengths: Iterator[int | None]) -> int | None:
    """The largest; None if one has no end."""
    known: list[int] = []
    for length in lengths:
        if length is None:
            return None
        known.append(length)
    return max(known, default=0)


def _window_bound(window: checked.WindowPattern) -> str:
    size = duration(window.size or 0)
    match window.kind:
        case "sliding":
            return f"a key holds the events of the last {size}"
        case "sliding_count":
            return f"a key holds its last {window.count:,} events"
        case "tumbling":
            return f"a key holds one bucket of {size}"
        case "hopping":
            buckets = -(-(window.size or 0) // (window.step or 1))
            return f"a key holds {buckets} buckets of {size}"
        case _:
            longest = f", at most {duration(window.maximum)}" if window.maximum else ""
            return f"a key holds one session, until {size} without an event{longest}"
