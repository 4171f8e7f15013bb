"""Whatever the disorder and the cuts: the order is that of the definition, and nothing is lost."""

from __future__ import annotations

from typing import NamedTuple

from hypothesis import given
from hypothesis import strategies as st

from cep.clock.reorder import Reorder


class Event(NamedTuple):
    t: int
    source: int
    number: int


Input = list[list[Event]]

times = st.lists(st.integers(0, 12), max_size=12)


@st.composite
def inputs(draw: st.DrawFn) -> tuple[list[int], Input]:
    count = draw(st.integers(1, 3))
    delays = draw(st.lists(st.integers(0, 5), min_size=count, max_size=count))
    sources = [
        [Event(t, source, number) for number, t in enumerate(draw(times))]
        for source in range(count)
    ]
    return delays, sources


def expected(delays: list[int], sources: Input) -> tuple[list[Event], set[Event]]:
    """By definition: late is what is older than its source's clock; the rest comes sorted."""
    on_time, late = [], set()
    for delay, events in zip(delays, sources, strict=True):
        seen = -(10**9)
        for event in events:
            if event.t < seen - delay:
                late.add(event)
            else:
                on_time.append(event)
            seen = max(seen, event.t)
    return sorted(on_time), late


@given(inputs(), st.data())
def test_every_cut_gives_the_defined_order(
    given: tuple[list[int], Input], data: st.DataObject
) -> None:
    delays, sources = given
    order: Reorder[Event] = Reorder(delays)
    released: list[Event] = []
    late: set[Event] = set()
    left = {source: list(events) for source, events in enumerate(sources)}
    while left:
        source = data.draw(st.sampled_from(sorted(left)))
        if not left[source]:
            released += order.finish(source)
            del left[source]
            continue
        size = data.draw(st.integers(1, len(left[source])))
        batch, left[source] = left[source][:size], left[source][size:]
        before = order.clock
        released += order.push(source, batch)
        late |= {item.event for item in order.take_late()}
        assert before is None or (order.clock is not None and order.clock >= before)
    assert (released, late) == expected(delays, sources)
