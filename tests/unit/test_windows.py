"""Windows by the letter of section 6: what is in them, when events leave, when they close."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cep.runtime import aggregates
from cep.runtime.aggregates import factory
from cep.runtime.careful import Careful
from cep.runtime.window_grid import Grid
from cep.runtime.windows import (
    NEVER,
    Buckets,
    Closing,
    Panes,
    Sliding,
    Window,
    WindowPlan,
)

LISTS = (factory("list"),)
DAY = 86_400_000_000


def plan(kind: str, **lengths: Any) -> WindowPlan:
    return WindowPlan(kind, LISTS, Careful(), **lengths)


def closed(window: Window, now: int) -> list[list[Any]]:
    """What the windows hold that close at a moment."""
    assert isinstance(window, Closing)
    return [bucket.results()[0] for bucket in window.on_time(now)]


def open_ones(window: Window, clock: int = -NEVER) -> list[tuple[int, int, list[Any]]]:
    assert isinstance(window, Closing)
    return [(b.start, b.end, b.results()[0]) for b in window.open_ones(clock)]


def filled(made_by: WindowPlan, *events: tuple[int, Any]) -> Window:
    window = made_by.new("k")
    for t, value in events:
        window.on_event(t, (value,))
    return window


def test_a_sliding_window_lets_go_of_what_is_too_old() -> None:
    window = filled(plan("sliding", size=10), (0, 1), (0, 2), (10, 3))
    assert isinstance(window, Sliding)
    assert window.results() == [[1, 2, 3]]
    assert (window.next_due(), window.ends()) == (10, 20)
    window.forget_until(0)
    assert window.results() == [[3]]
    assert (window.first, window.last, window.count) == (10, 10, 1)
    window.forget_until(10)
    assert window.first is None
    assert window.next_due() is None


def test_the_last_n_events() -> None:
    window = plan("sliding_count", count=2).new("k")
    found = []
    for t in range(4):
        window.on_event(t, (t,))
        found.append(window.results()[0])
    assert found == [[0], [0, 1], [1, 2], [2, 3]]
    assert window.next_due() is None


def test_a_bucket_ends_before_the_events_at_its_end() -> None:
    window = filled(plan("tumbling", size=10), (3, 1), (9, 2))
    assert window.next_due() == 10
    assert open_ones(window) == [(0, 10, [1, 2])]
    assert closed(window, 9) == []
    assert closed(window, 10) == [[1, 2]]
    window.on_event(10, (3,))
    assert open_ones(window) == [(10, 20, [3])]


def test_buckets_before_the_epoch_are_aligned_too() -> None:
    assert open_ones(filled(plan("tumbling", size=10), (-1, 1))) == [(-10, 0, [1])]


@pytest.mark.parametrize("updates", [False, True], ids=["panes", "buckets"])
def test_hopping_windows_overlap(updates: bool) -> None:
    window = filled(plan("hopping", size=10, step=5, updates=updates), (7, 1))
    assert isinstance(window, Buckets if updates else Panes)
    assert open_ones(window) == [(0, 10, [1]), (5, 15, [1])]
    window.on_event(9, (2,))
    assert open_ones(window) == [(0, 10, [1, 2]), (5, 15, [1, 2])]
    assert closed(window, 10) == [[1, 2]]
    window.on_event(12, (3,))
    assert open_ones(window, 12) == [(5, 15, [1, 2, 3]), (10, 20, [3])]
    assert closed(window, 15) == [[1, 2, 3]]
    assert closed(window, 20) == [[3]]
    assert window.first is None


def test_a_window_that_holds_what_one_without_news_held_is_passed_over() -> None:
    window = filled(plan("hopping", size=100, step=1), (0, 1))
    assert isinstance(window, Panes)
    for time in (1, 2):
        assert window.next_due() == time
        assert closed(window, time) == [[1]]
        window.pass_over()
    assert window.next_due() == 100
    window.on_event(50, (2,))
    for time in (51, 52):
        assert window.next_due() == time
        assert closed(window, time) == [[1, 2]]
        window.pass_over()
    assert window.next_due() == 100
    assert closed(window, 100) == [[1, 2]]
    window.pass_over()
    assert window.next_due() == 101
    assert closed(window, 101) == [[2]]


def test_a_gap_of_exactly_the_gap_belongs_to_the_session() -> None:
    window = filled(plan("session", size=5), (0, 1))
    assert window.next_due() == 5
    window.on_event(5, (2,))
    assert window.next_due() == 10
    assert closed(window, 9) == []
    assert open_ones(window) == [(0, 5, [1, 2])]
    assert closed(window, 10) == [[1, 2]]
    assert window.first is None


def test_a_session_lasts_no_longer_than_its_maximum() -> None:
    window = filled(plan("session", size=5, maximum=8), (0, 0), (4, 4), (8, 8))
    assert window.next_due() == 8
    assert closed(window, 8) == [[0, 4, 8]]


def micros(text: str) -> int:
    return round(datetime.fromisoformat(text).replace(tzinfo=UTC).timestamp()) * 1_000_000


@pytest.mark.parametrize(
    ("zone", "t", "start", "end"),
    [
        ("Europe/Paris", "2026-01-15T12:00", "2026-01-14T23:00", "2026-01-15T23:00"),
        ("Europe/Paris", "2026-03-29T12:00", "2026-03-28T23:00", "2026-03-29T22:00"),  # 23 hours
        ("Europe/Paris", "2026-10-25T12:00", "2026-10-24T22:00", "2026-10-25T23:00"),  # 25 hours
        ("Africa/Cairo", "2026-04-24T12:00", "2026-04-23T22:00", "2026-04-24T21:00"),  # no midnight
        ("+05:30", "2026-01-15T19:00", "2026-01-15T18:30", "2026-01-16T18:30"),
    ],
)
def test_days_go_from_local_midnight_to_local_midnight(
    zone: str, t: str, start: str, end: str
) -> None:
    places = Grid(DAY, DAY, zone)
    assert places(micros(t)) == [(micros(start), micros(end))]
    assert places(micros(start)) == [(micros(start), micros(end))]
    assert places(micros(end) - 1) == [(micros(start), micros(end))]
    assert places(micros(end))[0][0] == micros(end)


def test_windows_of_several_days_overlap_in_local_days() -> None:
    places = Grid(2 * DAY, DAY, "Europe/Paris")
    found = places(micros("2026-03-29T12:00"))
    assert found == [
        (micros("2026-03-27T23:00"), micros("2026-03-29T22:00")),
        (micros("2026-03-28T23:00"), micros("2026-03-30T22:00")),
    ]


def test_a_time_zone_does_not_shift_hours() -> None:
    assert Grid(DAY // 24, DAY // 24, "+05:30")(DAY // 24 + 1) == [(DAY // 24, DAY // 12)]


@pytest.mark.parametrize("t", [-62_135_596_800_000_000, 253_402_300_799_999_999])
def test_the_ends_of_the_calendar_have_days(t: int) -> None:
    for zone in ("Asia/Tokyo", "America/New_York"):
        ((start, end),) = Grid(DAY, DAY, zone)(t)
        assert start <= t < end


def test_a_value_that_does_not_fit_is_counted_and_makes_its_aggregate_null() -> None:
    careful = Careful()
    made_by = WindowPlan(
        "sliding", (factory("sum"), factory("count")), careful, size=10, slots=(0, 0)
    )
    window = made_by.new("k")
    window.on_event(0, ("x",))
    window.on_event(5, (2,))
    assert window.results() == [None, 2]
    assert careful.failures == 1
    window = reloaded(window, made_by)
    assert window.results() == [None, 2]
    assert isinstance(window, Sliding)
    window.forget_until(0)
    assert window.results() == [2, 1]
    assert careful.failures == 1


def test_where_of_an_aggregate_leaves_values_out() -> None:
    window = WindowPlan("sliding", (factory("count"), factory("count")), Careful(), size=10).new(0)
    window.on_event(0, (None, True))
    window.on_event(1, (True, True))
    assert window.results() == [1, 2]


def test_impossible_constants_make_an_aggregate_null() -> None:
    for make in (factory("percentile", extra=(101,)), factory("rate"), factory("top", extra=(-1,))):
        window = WindowPlan("sliding", (make,), Careful(), size=1).new("k")
        window.on_event(0, (True,))
        assert window.results() == [None]


def reloaded(window: Window, made_by: WindowPlan) -> Window:
    dumped, items = window.dump(), [window.item_row(item) for item in window.items]
    stored = json.loads(json.dumps([dumped, items]))
    fresh = made_by.new(window.key)
    fresh.load(*stored)
    again = [fresh.dump(), [fresh.item_row(item) for item in fresh.items]]
    assert json.loads(json.dumps(again)) == stored
    assert fresh.next_due() == window.next_due()
    return fresh


PLANS = {
    "sliding": {"size": 6},
    "sliding_count": {"count": 3},
    "tumbling": {"size": 5},
    "hopping": {"size": 7, "step": 3},
    "session": {"size": 3, "maximum": 8},
}
NAMES = ("count", "sum", "avg", "min", "max", "median", "stddev", "list", "first", "last")
MAKERS = (*map(factory, NAMES), factory("count", distinct=True), factory("top", extra=(2,)))
values = st.one_of(st.integers(-4, 4), st.sampled_from([0.1, 2.5, -0.3]), st.none())


def expected(events: list[Any]) -> list[Any]:
    results = [getattr(aggregates, name)(events) for name in NAMES]
    return [*results, aggregates.count_distinct(events), aggregates.top(events, 2)]


@pytest.mark.parametrize("updates", [False, True])
@pytest.mark.parametrize("kind", sorted(PLANS))
@settings(max_examples=80, deadline=None)
@given(
    gaps=st.lists(st.tuples(st.integers(0, 5), values), max_size=25),
    reload=st.booleans(),
)
def test_windows_hold_what_their_definition_says(
    kind: str, updates: bool, gaps: list[tuple[int, Any]], reload: bool
) -> None:
    shape = WindowPlan(
        kind,
        MAKERS,
        Careful(),
        slots=(0,) * len(MAKERS),
        updates=updates,
        **PLANS[kind],  # type: ignore[arg-type]
    )
    window = shape.new("k")
    events: list[tuple[int, Any]] = []
    t = 0
    for gap, value in gaps:
        t += gap
        while (due := window.next_due()) is not None and due + shape.inclusive <= t:
            check_due(kind, window, events, due)
        if reload:
            window = reloaded(window, shape)
        events.append((t, value))
        window.on_event(t, (value,))
        if isinstance(window, Sliding):
            check_sliding(kind, window, events, t)
        else:
            assert isinstance(window, Closing)
            for bucket in window.open_ones(t):
                check_bucket(kind, bucket, events)


def check_due(kind: str, window: Window, events: list[tuple[int, Any]], due: int) -> None:
    if isinstance(window, Sliding):
        window.forget_until(due - PLANS[kind]["size"])
        if window.first is not None:
            check_sliding(kind, window, events, due + 1)
    else:
        assert isinstance(window, Closing)
        for bucket in window.on_time(due):
            check_bucket(kind, bucket, events)


def check_sliding(kind: str, window: Sliding, events: list[tuple[int, Any]], now: int) -> None:
    inside = [(t, v) for t, v in events if now - t <= PLANS[kind].get("size", now)]
    check_fold(window, inside[-3:] if kind == "sliding_count" else inside)


def check_bucket(kind: str, bucket: Any, events: list[tuple[int, Any]]) -> None:
    inside = [(t, v) for t, v in events if bucket.start <= t < bucket.end]
    check_fold(bucket, session(events) if kind == "session" else inside)


def check_fold(held: Any, inside: list[tuple[int, Any]]) -> None:
    assert held.count in (len(inside), 0)  # 0: of several panes
    assert (held.first, held.last) == (inside[0][0], inside[-1][0])
    assert held.results() == expected([value for _, value in inside])


def session(events: list[tuple[int, Any]]) -> list[tuple[int, Any]]:
    """The last session of the events."""
    current: list[tuple[int, Any]] = []
    for event in events:
        if current and (event[0] - current[-1][0] > 3 or event[0] - current[0][0] > 8):
            current = []
        current.append(event)
    return current
