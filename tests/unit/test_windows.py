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
from cep.runtime.windows import Bucket, Window, WindowPlan, grid

LISTS = (factory("list"),)
DAY = 86_400_000_000


def plan(kind: str, **lengths: Any) -> WindowPlan:
    return WindowPlan(kind, LISTS, Careful(), **lengths)


def held(buckets: list[Bucket]) -> list[Any]:
    return [bucket.results()[0] for bucket in buckets]


def test_an_event_leaves_a_sliding_window_when_the_clock_passes_its_end() -> None:
    window = plan("sliding", size=10).new()
    window.on_event(0, (1,))
    assert held(window.on_event(10, (2,))) == [[1, 2]]
    assert window.next_due() == 10
    assert held(window.on_time(10)) == [[2]]
    assert window.on_time(19) == []
    assert window.on_time(20) == []
    assert window.is_empty
    assert window.next_due() is None


def test_events_of_one_moment_leave_a_sliding_window_together() -> None:
    window = plan("sliding", size=5).new()
    for t, value in ((0, 1), (0, 2), (3, 3)):
        window.on_event(t, (value,))
    assert held(window.on_time(5)) == [[3]]


def test_a_sliding_window_knows_its_bounds() -> None:
    window = plan("sliding", size=10).new()
    window.on_event(3, (1,))
    (bucket,) = window.on_event(9, (2,))
    assert (bucket.start, bucket.end, bucket.first, bucket.last, bucket.count) == (-1, 9, 3, 9, 2)
    window.on_time(13)
    assert (bucket.start, bucket.end, bucket.first, bucket.last, bucket.count) == (3, 13, 9, 9, 1)


def test_an_empty_sliding_window_is_armed_again() -> None:
    window = plan("sliding", size=10).new()
    (bucket,) = window.on_event(0, (1,))
    bucket.marked = True
    window.on_time(10)
    assert not bucket.marked


def test_the_last_n_events() -> None:
    window = plan("sliding_count", count=2).new()
    found = [held(window.on_event(t, (t,))) for t in range(4)]
    assert found == [[[0]], [[0, 1]], [[1, 2]], [[2, 3]]]
    assert window.next_due() is None


def test_a_bucket_ends_before_the_events_at_its_end() -> None:
    window = plan("tumbling", size=10).new()
    window.on_event(3, (1,))
    window.on_event(9, (2,))
    assert window.next_due() == 10
    closed = window.on_time(10)
    assert held(closed) == [[1, 2]]
    assert (closed[0].start, closed[0].end, closed[0].first) == (0, 10, 3)
    assert held(window.on_event(10, (3,))) == [[3]]


def test_buckets_before_the_epoch_are_aligned_too() -> None:
    (bucket,) = plan("tumbling", size=10).new().on_event(-1, (1,))
    assert (bucket.start, bucket.end) == (-10, 0)


def test_hopping_windows_overlap() -> None:
    window = plan("hopping", size=10, step=5).new()
    assert [(b.start, b.end) for b in window.on_event(7, (1,))] == [(0, 10), (5, 15)]
    assert held(window.on_event(9, (2,))) == [[1, 2], [1, 2]]
    assert held(window.on_time(10)) == [[1, 2]]
    assert held(window.on_event(12, (3,))) == [[1, 2, 3], [3]]
    assert held(window.on_time(15)) == [[1, 2, 3]]


def test_hopping_windows_may_leave_gaps() -> None:
    window = plan("hopping", size=2, step=10).new()
    assert window.on_event(5, (1,)) == []
    assert window.is_empty
    assert held(window.on_event(11, (2,))) == [[2]]


def test_a_gap_of_exactly_the_gap_belongs_to_the_session() -> None:
    window = plan("session", size=5).new()
    window.on_event(0, (1,))
    assert window.next_due() == 5
    assert held(window.on_event(5, (2,))) == [[1, 2]]
    assert window.next_due() == 10
    assert window.on_time(9) == []
    closed = window.on_time(10)
    assert held(closed) == [[1, 2]]
    assert (closed[0].start, closed[0].end) == (0, 5)
    assert window.is_empty


def test_a_session_lasts_no_longer_than_its_maximum() -> None:
    window = plan("session", size=5, maximum=8).new()
    for t in (0, 4, 8):
        window.on_event(t, (t,))
    assert window.next_due() == 8
    assert held(window.on_time(8)) == [[0, 4, 8]]


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
    places = grid(DAY, DAY, zone)
    assert places(micros(t)) == [(micros(start), micros(end))]
    assert places(micros(start)) == [(micros(start), micros(end))]
    assert places(micros(end) - 1) == [(micros(start), micros(end))]
    assert places(micros(end))[0][0] == micros(end)


def test_windows_of_several_days_overlap_in_local_days() -> None:
    places = grid(2 * DAY, DAY, "Europe/Paris")
    found = places(micros("2026-03-29T12:00"))
    assert found == [
        (micros("2026-03-27T23:00"), micros("2026-03-29T22:00")),
        (micros("2026-03-28T23:00"), micros("2026-03-30T22:00")),
    ]


def test_a_time_zone_does_not_shift_hours() -> None:
    assert grid(DAY // 24, DAY // 24, "+05:30")(DAY // 24 + 1) == [(DAY // 24, DAY // 12)]


@pytest.mark.parametrize("t", [-62_135_596_800_000_000, 253_402_300_799_999_999])
def test_the_ends_of_the_calendar_have_days(t: int) -> None:
    for zone in ("Asia/Tokyo", "America/New_York"):
        ((start, end),) = grid(DAY, DAY, zone)(t)
        assert start <= t < end


def test_a_value_that_does_not_fit_is_counted_and_makes_its_aggregate_null() -> None:
    careful = Careful()
    both = (factory("sum"), factory("count"))
    window = WindowPlan("sliding", both, careful, size=10).new()
    window.on_event(0, ("x", True))
    (bucket,) = window.on_event(5, (2, True))
    assert bucket.results() == [None, 2]
    assert careful.failures == 1
    window = reloaded(window, WindowPlan("sliding", both, careful, size=10))
    (bucket,) = window.on_time(10)
    assert bucket.results() == [2, 1]
    assert careful.failures == 1


def test_where_of_an_aggregate_leaves_values_out() -> None:
    window = WindowPlan("sliding", (factory("count"), factory("count")), Careful(), size=10).new()
    window.on_event(0, (None, True))
    (bucket,) = window.on_event(1, (True, True))
    assert bucket.results() == [1, 2]


def test_impossible_constants_make_an_aggregate_null() -> None:
    for make in (factory("percentile", extra=(101,)), factory("rate"), factory("top", extra=(-1,))):
        bucket = WindowPlan("sliding", (make,), Careful(), size=1).bucket(0, 1)
        bucket.add(0, (True,))
        assert bucket.results() == [None]


def reloaded(window: Window, made_by: WindowPlan) -> Window:
    dumped = json.loads(json.dumps(window.dump()))
    fresh = made_by.new()
    fresh.load(dumped)
    assert json.loads(json.dumps(fresh.dump())) == dumped
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


@pytest.mark.parametrize("kind", sorted(PLANS))
@settings(max_examples=80, deadline=None)
@given(
    gaps=st.lists(st.tuples(st.integers(0, 5), values), max_size=25),
    reload=st.booleans(),
)
def test_windows_hold_what_their_definition_says(
    kind: str, gaps: list[tuple[int, Any]], reload: bool
) -> None:
    shape = WindowPlan(kind, MAKERS, Careful(), **PLANS[kind])  # type: ignore[arg-type]
    window = shape.new()
    events: list[tuple[int, Any]] = []
    t = 0
    for gap, value in gaps:
        t += gap
        while (due := window.next_due()) is not None and due + shape.inclusive <= t:
            for bucket in window.on_time(due):
                check(kind, bucket, events, due + shape.inclusive)
        if reload:
            window = reloaded(window, shape)
        events.append((t, value))
        for bucket in window.on_event(t, (value,) * len(MAKERS)):
            check(kind, bucket, events, t)


def check(kind: str, bucket: Bucket, events: list[tuple[int, Any]], now: int) -> None:
    lengths = PLANS[kind]
    if kind == "sliding_count":
        inside = events[-3:]
    elif kind == "sliding":
        inside = [(t, v) for t, v in events if now - t <= lengths["size"]]
    elif kind == "session":
        inside = session(events)
    else:
        inside = [(t, v) for t, v in events if bucket.start <= t < bucket.end]
    assert bucket.count == len(inside)
    assert (bucket.first, bucket.last) == (inside[0][0], inside[-1][0])
    assert bucket.results() == expected([value for _, value in inside])


def session(events: list[tuple[int, Any]]) -> list[tuple[int, Any]]:
    """The last session of the events."""
    current: list[tuple[int, Any]] = []
    for event in events:
        if current and (event[0] - current[-1][0] > 3 or event[0] - current[0][0] > 8):
            current = []
        current.append(event)
    return current
