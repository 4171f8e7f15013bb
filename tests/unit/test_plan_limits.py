"""Rules that ask for a plan beyond any size are refused, soon and at the place where they stand."""

from __future__ import annotations

from time import perf_counter

import pytest

import cep

SOON = 20.0
"""Seconds: generous for a busy machine; without the limits each of these takes for ever."""


def _steps(number: int, quantifier: str = "") -> str:
    return " ".join(f"s{i}: a{quantifier} where n == {i}" for i in range(number))


def _chain(number: int, stream: str) -> str:
    """The declaration for each of the numbers from 1, with `NEW` and `OLD` filled in."""
    return "\n".join(
        stream.replace("NEW", str(new)).replace("OLD", str(new - 1)) for new in range(1, number)
    )


UNTILS = " ".join(f"x{i}: a* where n == {i} until b where n == {i}" for i in range(30))
TWINS = """\
stream sNEW from sOLD, tOLD { where n == NEW }
stream tNEW from sOLD, tOLD { where n == NEW }"""

TOO_LARGE = {
    "all parts in any order": (
        f'rule r {{ all within 1h {{ {_steps(1000)} }} alert "x" }}',
        "the pattern of rule r has more than 4096 places to be in",
    ),
    "some parts in any order": (
        f'rule r {{ 10 of within 1h {{ {_steps(30)} }} alert "x" }}',
        "the pattern of rule r has more than 4096 places to be in",
    ),
    "any order inside a sequence": (
        f'rule r {{ sequence within 1h {{ s: b all of {{ {_steps(12)} }} }} alert "x" }}',
        "the pattern of rule r has more than 4096 places to be in",
    ),
    "optional steps": (
        f'rule r {{ sequence within 1h {{ s: b {_steps(1000, "?")} z: b }} alert "x" }}',
        "the pattern of rule r has more than 50000 ways from one place to the next",
    ),
    "loops that end alone": (
        f'rule r {{ sequence within 1h {{ s: a one of {{ {UNTILS} }} z: b }} alert "x" }}',
        "the pattern of rule r has more than 200000 combinations of what it can wait for",
    ),
    "unions of unions": (
        "stream s0 { where n == 0 }\nstream t0 { where n == 0 }\n"
        f'{_chain(40, TWINS)}\nrule r {{ on e: s39 alert "x" }}',
        "there are more than 1000 ways to belong to stream s10",
    ),
    "fields that double": (
        "stream s0 { select { n = n } }\n"
        f"{_chain(40, 'stream sNEW from sOLD { select { n = n + n } }')}\n"
        'rule r { on e: s39 where n > 1 alert "x" }',
        "field n of stream s13 is made of more than 10000 values",
    ),
}


@pytest.mark.parametrize(("text", "message"), TOO_LARGE.values(), ids=TOO_LARGE)
def test_a_plan_without_bounds_is_refused_soon(text: str, message: str) -> None:
    started = perf_counter()
    with pytest.raises(cep.RuleError) as caught:
        _ = cep.loads(text).compiled
    assert perf_counter() - started < SOON
    [diagnostic] = caught.value.diagnostics
    assert diagnostic.code == "E900"
    assert diagnostic.message == message
    assert diagnostic.span.source.text == text


def test_many_optional_steps_are_planned_soon() -> None:
    started = perf_counter()
    rules = cep.loads(
        f'rule r {{ sequence within 1h {{ s: b {_steps(120, "?")} z: b }} alert "{{count(s5)}}" }}'
    )
    assert perf_counter() - started < SOON
    engine = cep.Engine(rules)
    found = engine.process([{"type": t, "n": 5, "time": 1 + i} for i, t in enumerate("bab")])
    assert [match.message for match in found] == ["1"]
