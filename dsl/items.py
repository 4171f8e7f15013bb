"""What items must be for what rules do with them: networks for `cidr`, expressions for `matches`.

In: an item of a list, or a constant. Out: what is wrong with it, in words. An item that is neither
would make every condition that asks it unknown, so it is an error of the rules.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Callable

from dsl.regex import compile_problem


def network_problem(item: object) -> str | None:
    """Why an item is no network; None when it is one.

    >>> network_problem("10.0.0.0/8"), network_problem("10.0.0.0/33")
    (None, '`10.0.0.0/33` is no network')
    """
    try:
        ipaddress.ip_network(item if isinstance(item, str) else "", strict=False)
    except ValueError:
        return f"`{item}` is no network"
    return None


def expression_problem(item: object) -> str | None:
    """Why an item is no regular expression; None when it is one."""
    problem = compile_problem(item, "") if isinstance(item, str) else "not a string"
    return None if problem is None else f"`{item}` is not a regular expression: {problem}"


PROBLEMS: dict[str, Callable[[object], str | None]] = {
    "cidr": network_problem,
    "matches": expression_problem,
}
"""By what is done with the items."""


def item_problem(item: object, uses: frozenset[str]) -> str | None:
    """The first thing that is wrong with an item, given all that rules do with its list."""
    for use in sorted(uses):
        problem = PROBLEMS[use](item)
        if problem is not None:
            return problem
    return None
