"""What can be said of an `aggregate` rule before it runs: what it keeps of events, and when its
sliding windows must be looked at although no event comes.

In: a checked rule. Out: which values of an event the aggregates share, what an expiry may do to
`having`, and what `having` asks at all.
"""

from __future__ import annotations

from cep.plan.automaton import Automaton
from dsl import checked
from dsl.checked import Comparison, Conjunction, Const, Disjunction, Value, WindowValue, conjuncts

_STEADY = (
    checked.Arith,
    checked.Coalesce,
    Comparison,
    Conjunction,
    Const,
    Disjunction,
    checked.IsNull,
    checked.KeyValue,
    checked.Minus,
    checked.Negation,
    WindowValue,
)
"""Kinds of values that are the same as long as the aggregates are."""


def value_slots(pattern: checked.WindowPattern) -> tuple[int, ...]:
    """Which value of an event each aggregate takes, by its number; -1: it takes any event.

    Aggregates of the same field share a value. Where one has a condition or an expression they do
    not: it may change with the constants of the rule, and what is stored must still fit.
    """
    slots: list[int] = []
    shared: dict[checked.Field, int] = {}
    for field in pattern.fields:
        free = max(slots, default=-1) + 1
        if field.where is not None or not isinstance(field.argument, checked.Field | None):
            slots.append(free)
        elif field.argument is None:
            slots.append(-1)
        else:
            slots.append(shared.setdefault(field.argument, free))
    return tuple(slots)


def edge_condition(rule: checked.Rule) -> Value | None:
    """The condition that a sliding window reports when it becomes true; None where it reports at
    events only."""
    return None if rule.report == "every_event" else rule.having


def guards(rule: checked.Rule) -> list[Value]:
    """The parts of the condition that cannot become true when events leave: lower bounds of
    counts."""
    return [part for part in conjuncts(edge_condition(rule)) if _only_falls(part, rule)]


def expires(automaton: Automaton) -> str:
    """How keys are woken when events leave a sliding window (see `cep.runtime.window_rule`)."""
    rule = automaton.rule
    found = guards(rule)
    if len(found) == len(conjuncts(edge_condition(rule))):
        return "lazily"
    return "guarded" if found else "always"


def _only_falls(condition: Value, rule: checked.Rule) -> bool:
    if isinstance(condition, Conjunction | Disjunction):
        return all(_only_falls(part, rule) for part in condition.parts)
    if not isinstance(condition, Comparison):
        return False
    sides = {">": (0, 1), ">=": (0, 1), "<": (1, 0), "<=": (1, 0)}.get(condition.op)
    if sides is None:
        return False
    both = (condition.left, condition.right)
    return _is_count(both[sides[0]], rule) and isinstance(both[sides[1]], Const)


def _is_count(value: Value, rule: checked.Rule) -> bool:
    """Whether a value is how many events, or how many for a time."""
    assert isinstance(rule.pattern, checked.WindowPattern)
    return isinstance(value, WindowValue) and any(
        field.name == value.name and field.function in ("count", "rate") and not field.distinct
        for field in rule.pattern.fields
    )


def is_steady(rule: checked.Rule) -> bool:
    """Whether `having` has the same answer as long as the aggregates are the same."""
    assert isinstance(rule.pattern, checked.WindowPattern)
    asked = [value for _, value in rule.pattern.derived]
    asked += [rule.having] if rule.having is not None else []
    return rule.having is not None and all(
        isinstance(part, _STEADY) for value in asked for part in value.walk()
    )
