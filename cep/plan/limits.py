"""How large the plan of a rule may become, and what is raised beyond it.

A few lines of rules can ask for a plan of any size: the parts of an `all` arrive in any order, each
optional step may be left out, streams are unions of unions. In: sizes as they grow. Out: `TooLarge`
as soon as one is over its limit, so that nobody waits for a plan that is refused in the end.
"""

from __future__ import annotations

from dsl.source import NOWHERE, Span

PLACES = 4096
"""Most positions of one rule."""

WAYS = 50_000
"""Most edges of one rule, from one place to the next."""

WAITS = 200_000
"""Most edges of all states of one rule together: what a run may be waiting for."""

ORIGINS = 1000
"""Most ways in which an event may belong to one stream."""

FIELD_SIZE = 10_000
"""Most values that a field of a stream may be made of, written out on the original event."""


class TooLarge(ValueError):
    """A rule or stream whose plan is over a limit. The message says so in the user's words; `span`
    is where it stands."""

    def __init__(self, message: str, span: Span = NOWHERE) -> None:
        super().__init__(message)
        self.span = span


MOST_RUNS = 10_000
"""Most runs of a key that wait at one place where each is tested; a larger `limit` raises it."""

MOST_NODES = 1_000_000
"""Most nodes that the runs of a key may hold, of a rule in which one event may make many."""
