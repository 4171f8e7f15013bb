"""Matches as text: one line each, whatever stands in them."""

from __future__ import annotations

from pathlib import Path

import pytest
from sink_samples import a_match

from cep.sink.text import TextSink, match_line, printable


def test_a_match_is_a_line_with_time_severity_rule_and_message() -> None:
    assert match_line(a_match()) == (
        "2026-01-01 00:00:45Z  high      brute_force  bob: 5 failures, then success"
    )


def test_rules_of_different_length_are_aligned(tmp_path: Path) -> None:
    path = tmp_path / "out.txt"
    sink = TextSink(str(path))
    sink.write([a_match(rule="ab", message="one"), a_match(rule="abcd", message="two")])
    sink.close()
    first, second = path.read_text().splitlines()
    assert first.index("one") == second.index("two")


def test_without_a_text_title_key_and_fields_are_shown() -> None:
    line = match_line(a_match(message="Password guessing that worked"))
    assert line.endswith("  Password guessing that worked user=bob ips=2")


def test_without_text_and_title_key_and_fields_are_shown() -> None:
    line = match_line(a_match(message="brute_force", title=None))
    assert line.endswith("  brute_force  user=bob ips=2")


def test_a_timeout_and_suppressed_matches_are_remarked() -> None:
    line = match_line(a_match(kind="timeout", suppressed={"count": 3}))
    assert line.endswith("(timed out, 3 more before it suppressed)")


def test_colours_only_when_asked_for() -> None:
    assert "\x1b[" not in match_line(a_match())
    assert "\x1b[31mhigh" in match_line(a_match(), color=True)


@pytest.mark.parametrize(
    "hostile",
    ["a\nb", "\x1b[2Jcleared", "\x9b31m", "\u202eright to left", "bell\x07", "\ud800", "a\u2028b"],
)
def test_hostile_text_cannot_move_the_cursor(hostile: str) -> None:
    line = match_line(a_match(message=hostile, rule="r"))
    assert line.isprintable()
    assert len(line.splitlines()) == 1


def test_a_terminal_escape_is_harmless_in_colour_too() -> None:
    assert "\x1b[2J" not in match_line(a_match(message="\x1b[2J"), color=True)


def test_visible_characters_stay() -> None:
    assert printable("Zoë – 東京 🚀") == "Zoë – 東京 🚀"


def test_a_lone_surrogate_can_be_written(tmp_path: Path) -> None:
    path = tmp_path / "out.txt"
    sink = TextSink(str(path))
    sink.write([a_match(message="\ud800")])
    sink.close()
    assert "\\ud800" in path.read_text()
