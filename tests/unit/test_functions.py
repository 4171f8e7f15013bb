"""Every function of the language: an ordinary value, the edges, and what makes it fail."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
import re2
from hypothesis import given
from hypothesis import strategies as st

from cep.event import Odd
from cep.runtime import functions as f
from cep.runtime import matching
from dsl import regex
from dsl.functions import FUNCTIONS

NOON = 1_767_268_800_000_000  # 2026-01-01T12:00:00Z, a Thursday


@pytest.mark.parametrize(
    ("got", "wanted"),
    [
        (f.lower("ÀB"), "àb"),
        (f.upper("é"), "É"),
        (f.trim(" \ta\n"), "a"),
        (f.length("añ"), 2),
        (f.length([1, 2]), 2),
        (f.length({}), 0),
        (f.substr("abcdef", 2), "cdef"),
        (f.substr("abcdef", 2, 3), "cde"),
        (f.substr("abcdef", -2), "ef"),
        (f.substr("abc", -9, 2), "ab"),
        (f.substr("abc", 5), ""),
        (f.substr("abc", 1.0), "bc"),
        (f.split("a,b,,c", ","), ["a", "b", "", "c"]),
        (f.starts_with("abc", ""), True),
        (f.ends_with("a.exe", ".exe"), True),
        (f.replace("a-b-c", "-", "_"), "a_b_c"),
        (f.absolute(-3), 3),
        (f.rounded(2.5), 2),
        (f.rounded(2.345, 1), 2.3),
        (f.rounded(1234, -2), 1200),
        (f.floor(-2.5), -3),
        (f.ceil(2.1), 3),
        (f.smallest(3, 1.5, 2), 1.5),
        (f.largest(3, 1), 3),
        (f.log(1), 0.0),
        (f.log(1000, 10), 3.0),
        (f.log(8, 2), 3.0),
        (f.sqrt(9), 3.0),
        (f.hour(NOON), 12),
        (f.hour(NOON, "Europe/Paris"), 13),
        (f.hour(NOON, "-05:30"), 6),
        (f.weekday(NOON), 4),
        (f.weekday(NOON, "Pacific/Kiritimati"), 5),
        (f.date(NOON), "2026-01-01"),
        (f.date(-1), "1969-12-31"),
        (f.seconds(1_500_000), 1.5),
        (f.minutes(90_000_000), 1.5),
        (f.hours(5_400_000_000), 1.5),
        (f.days(129_600_000_000), 1.5),
        (f.to_int("42"), 42),
        (f.to_int(" -7 "), -7),
        (f.to_int(2.9), 2),
        (f.to_int("2.9"), 2),
        (f.to_number("1e3"), 1000.0),
        (f.to_number("7"), 7),
        (f.to_text(3.0), "3"),
        (f.to_text([1]), "[1]"),
        (f.to_time("1970-01-01T00:00:01Z"), 1_000_000),
        (f.to_time(1), 1_000_000),
        (f.to_ip("::FFFF:10.0.0.1"), "10.0.0.1"),
        (f.to_ip(" 10.0.0.1 "), "10.0.0.1"),
        (f.to_ip("2001:DB8::0001"), "2001:db8::1"),
        (f.cidr("10.1.2.3", "10.0.0.0/8"), True),
        (f.cidr("10.1.2.3", "192.168.0.0/16", ["10.1.2.3", None]), True),
        (f.cidr("::1", "10.0.0.0/8"), False),
        (f.in_networks(["10.0.0.0/8"])("10.9.9.9"), True),
        (f.is_private("192.168.0.1"), True),
        (f.is_private("169.254.1.1"), True),
        (f.is_private("8.8.8.8"), False),
        (f.get_index([1, 2], -1), 2),
        (f.get_index([1, 2], 2), None),
        (f.get_field({"a": 1}, "a"), 1),
        (f.get_field("text", "a"), None),
        (f.modulo(-7, 3), 2),
        (f.multiply_micros(3, 0.5), 2),
        (f.divide_micros(10, 4), 2),
        (f.contains("abc", ["x", "b"]), True),
        (f.contains([1, "b"], "b"), True),
        (f.contains([True], 1), False),
        (f.member("a", ["a", None]), True),
        (f.contains("abc", [5, None, "b"]), True),
        (matching.like("abc", [5, "a*"]), True),
        (matching.matches("abc", ["x", "b."]), True),
    ],
)
def test_what_functions_give(got: Any, wanted: Any) -> None:
    assert got == wanted
    assert type(got) is type(wanted)


@pytest.mark.parametrize(
    ("function", "arguments"),
    [
        (f.lower, (1,)),
        (f.length, (1,)),
        (f.length, (Odd("x"),)),
        (f.substr, ("abc", 1.5)),
        (f.substr, ("abc", True)),
        (f.substr, ("abc", 1, -1)),
        (f.split, ("abc", "")),
        (f.replace, ("abc", "", "x")),
        (f.replace, ("a" * 10_000, "a", "b" * 10_000)),
        (f.absolute, (True,)),
        (f.rounded, ("1",)),
        (f.smallest, (1, "2")),
        (f.log, (0,)),
        (f.log, (-1, 10)),
        (f.sqrt, (-1,)),
        (f.hour, (10**20,)),
        (f.hour, (NOON, "Mars/Base")),
        (f.to_int, ("4x",)),
        (f.to_int, (True,)),
        (f.to_number, ("1_000",)),
        (f.to_number, ("nan",)),
        (f.to_number, ("1e999",)),
        (f.to_number, ("٣",)),
        (f.to_text, (Odd(1),)),
        (f.to_time, ("soon",)),
        (f.to_time, (True,)),
        (f.to_ip, ("10.0.0",)),
        (f.cidr, ("10.0.0.1", "10.0.0.0/99")),
        (f.cidr, (167772161, "10.0.0.0/8")),
        (f.haversine_km, (1, 2, 3, "4")),
        (f.hash_of, (Odd(1),)),
        (f.divide, (1, 0)),
        (f.modulo, (1, 0)),
        (f.add, ("a", "b")),
        (f.multiply, ("a", 10**12)),
        (f.negative, (True,)),
        (f.less, (1, "a")),
        (f.less, ([1], [2])),
        (f.less, (False, True)),
        (f.member, (1, "text")),
        (f.contains, (1, "a")),
        (f.contains, ("abc", [5, "x"])),
        (matching.like, ("abc", 5)),
        (matching.like, (5, "*")),
        (f.get_index, ("text", 0)),
        (f.get_index, ([1], "0")),
    ],
)
def test_what_makes_functions_fail(function: Any, arguments: tuple[Any, ...]) -> None:
    with pytest.raises((TypeError, ValueError, ArithmeticError)):
        function(*arguments)


def test_distances_are_those_of_the_earth() -> None:
    assert f.haversine_km(0, 0, 0, 180) == pytest.approx(20015.1, abs=0.1)
    assert f.haversine_km(52.5, 13.4, 52.5, 13.4) == 0


def test_hashes_stay_what_they_are() -> None:
    assert f.hash_of("bob", 7) == f.hash_of("bob", 7.0) == "0ebd9ee9d40e1860"
    assert len({f.hash_of(v) for v in (1, True, "1", [1], {"a": 1})}) == 5


# ---------------------------------------------------------------------------- texts and patterns


@pytest.mark.parametrize(
    ("pattern", "value", "wanted"),
    [
        ("a*", "abc", True),
        ("a*", "ba", False),
        ("*a", "ba", True),
        ("*a*", "xax", True),
        ("a*a", "a", False),
        ("a*a", "aa", True),
        ("*ab*ab*", "abab", True),
        ("*ab*ab*", "aab", False),
        ("?", "é", True),
        ("?", "", False),
        ("a?c*?", "abcd", True),
        ("a?c*?", "abc", False),
        ("", "", True),
        ("*", "", True),
        ("**", "x\ny", True),
        ("[a]", "a", False),
        ("a\\*", "a\\b", True),
    ],
)
def test_wildcards_cover_the_whole_text(pattern: str, value: str, wanted: bool) -> None:
    assert matching.wildcard(pattern)(value) is wanted


def test_wildcards_may_ignore_case() -> None:
    assert matching.wildcard("ADM*", ignore_case=True)("Administrator")


wild = st.text("ab*?", max_size=6)
plain_text = st.text("ab\n", max_size=8)


@given(wild, plain_text)
def test_wildcards_are_what_re2_says(pattern: str, value: str) -> None:
    expression = "".join({"*": ".*", "?": "."}.get(c, c) for c in pattern)
    wanted = re2.compile(f"(?s){expression}").fullmatch(value) is not None
    assert matching.wildcard(pattern)(value) is wanted


@given(st.lists(wild, min_size=1, max_size=12), plain_text, st.booleans())
def test_many_wildcards_are_each_of_them(patterns: list[str], value: str, upper: bool) -> None:
    wanted = any(matching.wildcard(pattern)(value) for pattern in patterns)
    if upper:
        patterns = [pattern.upper() for pattern in patterns]
    assert matching.wildcards(patterns, ignore_case=upper)(value) is wanted


@given(st.lists(plain_text, min_size=1, max_size=12), plain_text)
def test_many_parts_are_each_of_them(parts: list[str], value: str) -> None:
    assert matching.contains_any(parts)(value) is any(part in value for part in parts)


def test_many_parts_may_be_elements_or_half_characters() -> None:
    parts = ["a", "b.", "\ud800", "é"]
    assert matching.contains_any(parts)(["x", "b."])
    assert not matching.contains_any(parts)(["x", "bc"])
    assert not matching.contains_any(parts)("bc")
    assert matching.contains_any(parts)("x\ud800")
    assert matching.contains_any(parts[1:2] * 2 + parts[3:] + ["q"])("\ud800 é")
    with pytest.raises(f.Misfit):
        matching.wildcards(["a*", "b*", "c*"])(7)


def test_regular_expressions_search() -> None:
    assert matching.regex(regex.compiled("FAIL", "i"))("a failure")
    assert not matching.regex(regex.compiled("^b"))("a\nb")
    assert matching.regex(regex.compiled("^b", "m"))("a\nb")
    assert not matching.regex(regex.compiled("a.b"))("a\nb")
    assert matching.regex(regex.compiled("a.b", "s"))("a\nb")
    with pytest.raises(f.Misfit):
        matching.regex(regex.compiled("a"))(["a"])


def test_capture_gives_groups_by_number_and_name() -> None:
    pattern = regex.compiled(r"(?P<who>\w+)@(\w+)")
    assert matching.capture(pattern)("é bob@host") == "bob"
    assert matching.capture(pattern, 0)("é bob@host") == "bob@host"
    assert matching.capture(pattern, 2)("é bob@host") == "host"
    assert matching.capture(pattern, "who")("bob@host") == "bob"
    assert matching.capture(pattern)("nobody") is None
    assert matching.capture(regex.compiled("a|(b)"))("a") is None
    for group in (3, -1, "nobody"):
        with pytest.raises(KeyError):
            matching.capture(pattern, group)


def test_hostile_text_costs_linear_time() -> None:
    assert not matching.regex(regex.compiled("(a+)+$"))("a" * 50_000 + "b")


pieces = st.sampled_from(
    ["a", "b", "ab", ".", "a*", "b+", "(a|b)", "[ab]", r"\d", "(ab)?", "b{2}", "|", "^", r"\."]
)


@given(st.lists(pieces, max_size=6).map("".join), st.text("ab.1", max_size=8))
def test_a_required_text_is_in_all_that_matches(pattern: str, value: str) -> None:
    required = regex.required_text(pattern)
    if required is not None and regex.compiled(pattern).search(value):
        assert required in value


@pytest.mark.parametrize(
    ("pattern", "required"),
    [
        (r"Failed password for (invalid user )?(\S+)", "Failed password for "),
        (r"user=(?P<name>\w+) from", "user="),
        ("a|b", None),
        (r"\x41bc", None),
        ("[[:alpha:]]x", None),
        ("(?i)abc", None),
        (r"\.exe$", ".exe"),
        ("ab{2,3}cd", "cd"),
    ],
)
def test_required_texts(pattern: str, required: str | None) -> None:
    assert regex.required_text(pattern) == required


@pytest.mark.parametrize(
    ("pattern", "flags", "problem"),
    [
        ("a+", "ims", None),
        ("(a", "", "missing ): (a"),
        ("a(?=b)", "", "look-ahead and look-behind are not supported"),
        (r"(a)\1", "", "references to groups are not supported"),
        ("a", "x", "unknown flag `x`"),
        ("a" * 20_000, "", "longer than 10000 characters"),
    ],
)
def test_problems_of_expressions(pattern: str, flags: str, problem: str | None) -> None:
    found = regex.compile_problem(pattern, flags)
    assert found == problem or (found is not None and problem is not None and problem in found)


# ---------------------------------------------------------------------------- a host's functions


def test_a_host_is_given_what_it_declared() -> None:
    seen: list[Any] = []

    def call(*values: Any) -> Any:
        seen.extend(values)
        return values[0]

    run = f.host_function(call, ["time", "duration", "number"], "time")
    assert run(1_000_000, 2_000_000, 3) == 1_000_000
    assert seen == [datetime(1970, 1, 1, 0, 0, 1, tzinfo=UTC), timedelta(seconds=2), 3]
    with pytest.raises(TypeError):
        run(1, 2, "3")


def test_a_host_must_return_what_it_declared() -> None:
    assert f.host_function(lambda: None, [], "number")() is None
    assert f.host_function(lambda: {"a"}, [], "array")() == ["a"]
    assert f.host_function(lambda: timedelta(seconds=1), [], "duration")() == 1_000_000
    with pytest.raises(TypeError):
        f.host_function(lambda: "1", [], "number")()


def test_a_host_may_take_any_number_of_arguments() -> None:
    run = f.host_function(lambda *values: sum(values), ["number"], "number", variadic=True)
    assert run(1, 2, 3) == 6


def test_every_function_of_the_language_has_behaviour() -> None:
    from cep.compile.expressions.function_calls import FUNCTIONS as DONE
    from cep.compile.expressions.function_calls import SPECIAL

    elsewhere = {"if", "coalesce", "any", "all"}
    assert set(DONE) | set(SPECIAL) | elsewhere == set(FUNCTIONS)
