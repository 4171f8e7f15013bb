"""Times of events: texts, numbers of all magnitudes, zones, and everything that is no time."""

from __future__ import annotations

from datetime import UTC, date, datetime
from decimal import Decimal

import pytest

from cep.event_time import EARLIEST, LATEST, Unit, find_zone, format_time, parse_time, parse_times

NOON = 1_603_108_800_000_000  # 2020-10-19T12:00:00Z


@pytest.mark.parametrize(
    "text",
    [
        "2020-10-19T12:00:00Z",
        "2020-10-19T12:00:00z",
        "2020-10-19t12:00:00Z",
        "2020-10-19 12:00:00",
        "2020-10-19 12:00",
        "2020-10-19T12:00:00.000",
        "2020-10-19T12:00:00,000Z",
        "20201019T120000Z",
        "20201019T120000",
        "2020-10-19T14:00:00+02:00",
        "2020-10-19T14:00:00+0200",
        "2020-10-19T14:00:00+02",
        "2020-10-19 14:00:00 +0200",
        "2020-10-19 12:00:00 UTC",
        "2020-10-19T12:00:00 GMT",
        "  2020-10-19T12:00:00Z\n",
        "2020-10-19T11:59:60Z",
    ],
)
def test_forms_of_iso_8601(text: str) -> None:
    assert parse_time(text) == NOON


@pytest.mark.parametrize(
    "text",
    [
        "19/Oct/2020:12:00:00 +0000",
        "19/Oct/2020:14:00:00 +0200",
        "19/Oct/2020:12:00:00",
        "Mon, 19 Oct 2020 12:00:00 GMT",
        "Mon, 19 Oct 2020 12:00:00 +0000",
        "19 Oct 2020 08:00 -0400",
        "1603108800",
        " 1603108800.0 ",
        "1603108800000",
        "1603108800000000",
        "1603108800000000000",
    ],
)
def test_forms_of_other_texts(text: str) -> None:
    assert parse_time(text) == NOON
    assert parse_time(text, "iso") is None


def test_other_texts_without_a_zone_are_in_the_zone_of_the_stream() -> None:
    assert parse_time("19/Oct/2020:14:00:00", timezone="Europe/Paris") == NOON


@pytest.mark.parametrize(
    "text",
    [
        "20201019120000",  # a date and a time, or millis of the year 2610
        "202010191200",
        "16031088000",
        "-1603108800",
        "16031088",
        "32/Oct/2020:12:00:00 +0000",
        "10/19/2020 12:00:00",
        "19/10/2020",
        "Mon, 19 Oct 2020 12:00:00",
        "Mon, 19 Oct 2020 12:00:00 EST",
        "Mon, 30 Feb 2020 12:00:00 GMT",
    ],
)
def test_what_could_be_read_in_two_ways_is_no_time(text: str) -> None:
    assert parse_time(text) is None


def test_fractions() -> None:
    assert parse_time("2020-10-19T12:00:00.104Z") == NOON + 104_000
    assert parse_time("2020-10-19T12:00:00.1Z") == NOON + 100_000
    assert parse_time("2020-10-19T12:00:00.000001999Z") == NOON + 1


def test_a_date_is_its_midnight() -> None:
    assert parse_time("2020-10-19") == NOON - 12 * 3600 * 1_000_000
    assert parse_time("20201019") == parse_time("2020-10-19") == parse_time(date(2020, 10, 19))


@pytest.mark.parametrize(
    "value",
    [
        "",
        "yesterday",
        "12",
        "2020",
        "2020-13-01",
        "2020-02-30T00:00:00Z",
        "2020-10-19T25:00:00Z",
        "2020-10-19T12:00:61Z",
        "٢٠٢٠-١٠-١٩",
        "\ud800",
        "2020-10-19T12:00:00Z trailing",
        None,
        True,
        False,
        [],
        {"seconds": 1},
        float("nan"),
        float("inf"),
        -float("inf"),
        10**400,
        -(10**400),
        1e300,
        Decimal("NaN"),
        Decimal("1e999999"),
        b"2020-10-19",
    ],
)
def test_what_is_no_time(value: object) -> None:
    assert parse_time(value) is None


def test_numbers_by_magnitude() -> None:
    for scale in (1, 10**3, 10**6, 10**9):
        assert parse_time(1_603_108_800 * scale) == NOON
        assert parse_time(float(1_603_108_800 * scale)) == NOON
        assert parse_time(Decimal(1_603_108_800 * scale)) == NOON
    assert parse_time(0) == 0
    assert parse_time(-1) == -1_000_000
    assert parse_time(1_603_108_800_000_001_999) == NOON + 1


@pytest.mark.parametrize(
    ("unit", "value", "micros"),
    [
        ("seconds", 2, 2_000_000),
        ("millis", 2, 2_000),
        ("micros", 2, 2),
        ("nanos", 2_999, 2),
        ("seconds", 1.5, 1_500_000),
        ("millis", 1.5, 1_500),
        ("nanos", 1500.0, 2),
        ("seconds", "1603108800.5", NOON + 500_000),
        ("millis", "12", 12_000),
        ("seconds", "2020-10-19", None),
        ("iso", 5, None),
        ("iso", 5.0, None),
        ("iso", "2020-10-19T12:00:00Z", NOON),
    ],
)
def test_a_stated_unit(unit: Unit, value: object, micros: int | None) -> None:
    assert parse_time(value, unit) == micros


def test_float_seconds_are_exact_to_the_microsecond() -> None:
    for micros in range(1_588_205_199_824_370, 1_588_205_199_834_370, 7):
        assert parse_time(float(f"{micros // 10**6}.{micros % 10**6:06}")) == micros
    assert parse_time(5_000_000_000.123456) == 5_000_000_000_123_456


def test_the_ends_of_the_calendar() -> None:
    assert parse_time("0001-01-01") == EARLIEST
    assert parse_time("9999-12-31T23:59:59.999999Z") == LATEST
    assert parse_time("0001-01-01T00:00:00+05:00") is None
    assert parse_time("9999-12-31T23:59:59-05:00") is None
    assert parse_time("9999-12-31T23:59:60Z") is None
    assert parse_time(253_402_300_799, "seconds") == LATEST - 999_999
    assert parse_time(253_402_300_800, "seconds") is None


def test_zones() -> None:
    assert parse_time("2020-10-19T14:00:00", timezone="Europe/Paris") == NOON
    assert parse_time("2020-10-19T12:00:00Z", timezone="Europe/Paris") == NOON
    assert parse_time("2020-10-19T10:30:00", timezone="-01:30") == NOON
    assert parse_time(datetime(2020, 10, 19, 14), timezone="Europe/Paris") == NOON
    assert parse_time(datetime(2020, 10, 19, 12, tzinfo=UTC), timezone="Europe/Paris") == NOON


def test_an_hour_that_occurs_twice_is_its_first() -> None:
    first = parse_time("2020-10-25T02:30:00", timezone="Europe/Paris")
    assert first == parse_time("2020-10-25T00:30:00Z")


def test_an_unknown_zone() -> None:
    for name in ("Europe/Pairs", "", "../../etc/passwd", "x" * 5000):
        with pytest.raises(ValueError, match="no time zone"):
            find_zone(name)


def test_many_times_at_once() -> None:
    assert parse_times([]) == []
    assert parse_times([1, 2]) == [1_000_000, 2_000_000]
    assert parse_times([1_600_000_000_000, 1_600_000_000_001], "millis") == [
        1_600_000_000_000_000,
        1_600_000_000_001_000,
    ]
    mixed: list[object] = [1, 10**12, True, "1970-01-01", None, -(10**12), 10**16, 10**18, 10**30]
    assert parse_times(mixed) == [parse_time(value) for value in mixed]
    whole: list[object] = [1, 10**12, -(10**12), 10**30]
    assert parse_times(whole) == [parse_time(value) for value in whole]
    assert parse_times([2_999, 5_000], "nanos") == [2, 5]
    texts: list[object] = ["2026-03-12T09:00:00.5Z", "2026-03-12 09:00", "0001-01-01T00:00Z"]
    texts += ["2026-03-12T09:00:00+00:00", "2026-03-12T09:00:00+02:00", "1700000000", "no time"]
    for unit in (None, "iso", "seconds"):
        for zone in (None, "Asia/Tokyo"):
            every = [parse_time(text, unit, zone) for text in texts]
            assert parse_times(texts, unit, zone) == every


@pytest.mark.parametrize("micros", [EARLIEST, -1, 0, 1, 1_000, 999_999, NOON, LATEST])
def test_format_is_read_back(micros: int) -> None:
    assert parse_time(format_time(micros)) == micros
