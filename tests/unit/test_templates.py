"""How values read in alerts, and how they stand in match records."""

from __future__ import annotations

from typing import Any

import pytest

from cep.event import UNSET, Odd
from cep.runtime.templates import duration_text, plain, text_of

HOUR = 3_600_000_000


@pytest.mark.parametrize(
    ("value", "kind", "wanted"),
    [
        ("bob", "string", "bob"),
        (None, "string", "null"),
        (UNSET, "any", "null"),
        (True, "bool", "true"),
        (False, "any", "false"),
        (3, "number", "3"),
        (3.0, "number", "3"),
        (2.5, "number", "2.5"),
        (1e300, "number", "1e+300"),
        (float("inf"), "number", "inf"),
        (Odd(7), "string", "7"),
        (["a", 1.5, None], "array", '["a",1.5,null]'),
        ({"k": [1]}, "object", '{"k":[1]}'),
        (0, "time", "1970-01-01T00:00:00Z"),
        (1_500_000, "time", "1970-01-01T00:00:01.500Z"),
        (1, "time", "1970-01-01T00:00:00.000001Z"),
        (10**20, "time", "100000000000000000000us"),
        (90_000_000, "duration", "1m30s"),
        ("soon", "time", "soon"),
    ],
)
def test_text(value: Any, kind: str, wanted: str) -> None:
    assert text_of(value, kind) == wanted


def test_a_number_of_any_length_has_a_text() -> None:
    assert text_of(10**5000).startswith("0x")


@pytest.mark.parametrize(
    ("micros", "wanted"),
    [
        (0, "0s"),
        (7, "7us"),
        (1_500, "1.5ms"),
        (250_000, "250ms"),
        (1_500_000, "1.5s"),
        (1_000_001, "1.000001s"),
        (150_000_000, "2m30s"),
        (HOUR, "1h"),
        (25 * HOUR, "1d1h"),
        (24 * HOUR + 1_500_000, "1d1.5s"),
        (-90_000_000, "-1m30s"),
    ],
)
def test_duration(micros: int, wanted: str) -> None:
    assert duration_text(micros) == wanted


@pytest.mark.parametrize(
    ("value", "kind", "wanted"),
    [
        ("bob", "string", "bob"),
        (None, "time", None),
        (0, "time", "1970-01-01T00:00:00Z"),
        (90_000_000, "duration", 90),
        (1_500_000, "duration", 1.5),
        (3.0, "number", 3.0),
        (True, "bool", True),
        (float("nan"), "number", None),
        (Odd("x"), "number", "x"),
        ([Odd(1), float("inf")], "array", [1, None]),
        ({"a": (1, 2)}, "object", {"a": [1, 2]}),
    ],
)
def test_plain(value: Any, kind: str, wanted: Any) -> None:
    assert plain(value, kind) == wanted
    assert type(plain(value, kind)) is type(wanted)
