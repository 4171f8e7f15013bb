"""The order of events over sources: what is released when, and what is late."""

from __future__ import annotations

import pytest

from cep.clock.reorder import Late, Reorder


class Event:
    """A time and a label."""

    def __init__(self, t: int, name: str = "") -> None:
        self.t = t
        self.name = name or str(t)

    def __repr__(self) -> str:
        return self.name


def events(*times: int) -> list[Event]:
    return [Event(t) for t in times]


def times(released: list[Event]) -> list[int]:
    return [event.t for event in released]


def test_a_batch_in_order_is_passed_on_as_it_is() -> None:
    order: Reorder[Event] = Reorder([0])
    batch = events(1, 1, 2, 5)
    assert order.push(0, batch) is batch
    assert order.clock == 5
    assert order.flush() == []


def test_without_delay_an_older_event_is_late() -> None:
    order: Reorder[Event] = Reorder([0])
    assert times(order.push(0, events(3, 2, 3, 4, 1))) == [3, 3, 4]
    assert [(late.event.t, late.by) for late in order.take_late()] == [(2, 1), (1, 3)]
    assert order.take_late() == []


def test_late_events_are_found_across_batches() -> None:
    order: Reorder[Event] = Reorder([0])
    order.push(0, events(10))
    assert order.push(0, events(9)) == []
    assert times(order.push(0, events(10, 11))) == [10, 11]
    assert [late.event.t for late in order.take_late()] == [9]


def test_a_delay_repairs_disorder_up_to_itself() -> None:
    order: Reorder[Event] = Reorder([3])
    assert times(order.push(0, events(5, 3, 2, 8, 6))) == [2, 3, 5]
    assert times(order.push(0, events(4))) == []
    assert [(late.event.t, late.by) for late in order.take_late()] == [(4, 1)]
    assert times(order.flush()) == [6, 8]
    assert order.clock == 8


def test_an_event_at_the_clock_is_released_and_not_late() -> None:
    order: Reorder[Event] = Reorder([2])
    assert times(order.push(0, events(5, 3))) == [3]
    assert times(order.push(0, events(3))) == [3]
    assert order.take_late() == []


def test_equal_times_keep_source_order_and_arrival() -> None:
    order: Reorder[Event] = Reorder([0, 0])
    assert order.push(1, [Event(5, "b1"), Event(5, "b2")]) == []
    assert order.clock is None
    assert [e.name for e in order.push(0, [Event(5, "a1")])] == ["a1"]
    assert [e.name for e in order.push(0, [Event(5, "a2"), Event(6, "a3")])] == ["a2", "b1", "b2"]
    assert [e.name for e in order.finish(1)] == ["a3"]


def test_a_source_that_ended_holds_nothing_back() -> None:
    order: Reorder[Event] = Reorder([0, 0])
    order.push(0, events(1, 9))
    assert order.slowest == 1
    assert times(order.finish(1)) == [1, 9]
    assert order.finish(0) == []
    assert order.slowest is None


def test_an_idle_source_holds_nothing_back_but_may_come_late() -> None:
    order: Reorder[Event] = Reorder([0, 0])
    order.push(0, events(1, 9))
    assert times(order.set_idle(1)) == [1, 9]
    assert order.push(1, events(4, 9)) == []
    assert [(late.event.t, late.by) for late in order.take_late()] == [(4, 5)]
    assert times(order.push(0, events(10))) == [9]


def test_the_clock_never_goes_back() -> None:
    order: Reorder[Event] = Reorder([0, 5])
    order.push(0, events(10))
    order.set_idle(1)
    assert order.clock == 10
    order.push(1, events(12))
    assert order.clock == 10


def test_the_host_may_advance_the_clock() -> None:
    order: Reorder[Event] = Reorder([10])
    order.push(0, events(5, 7))
    assert times(order.advance(6)) == [5]
    assert order.push(0, events(4)) == []
    assert order.take_late()[0].by == 2
    assert times(order.advance(7)) == [7]


def test_single_events_are_cheap_to_insert_into_many() -> None:
    order: Reorder[Event] = Reorder([1_000_000])
    order.push(0, events(*range(0, 2000, 2)))
    for t in range(1, 2000, 2):
        order.push(0, events(t))
    assert times(order.flush()) == list(range(2000))


def test_late_tells_the_event_and_by_how_much() -> None:
    event = Event(1)
    assert Late(event, 3) == (event, 3)


def test_a_negative_delay_is_refused() -> None:
    with pytest.raises(ValueError, match="negative"):
        Reorder([-1])
