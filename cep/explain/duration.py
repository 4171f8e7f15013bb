"""Durations for people, as they are written in rules."""

from __future__ import annotations

_UNITS = (
    ("d", 86_400_000_000),
    ("h", 3_600_000_000),
    ("m", 60_000_000),
    ("s", 1_000_000),
    ("ms", 1_000),
    ("us", 1),
)


def duration(micros: int) -> str:
    """Microseconds as a duration.

    >>> duration(5_400_000_000), duration(1_500_000), duration(0)
    ('1h30m', '1s500ms', '0s')
    """
    sign, rest = ("-", -micros) if micros < 0 else ("", micros)
    parts = []
    for unit, size in _UNITS:
        count, rest = divmod(rest, size)
        if count:
            parts.append(f"{count}{unit}")
    return sign + ("".join(parts) or "0s")
