"""Rules that are found by several fields: who is let in, in which order, what remains unknown."""

from __future__ import annotations

from typing import Any

import pytest

import cep
from cep.compile import merging

SOURCES = """
stream own   where type == "sign_in"
stream zeek  from event where _path == "ssh" or `@stream` == "ssh"
stream other from event where `event`.category contains "session" and `event`.kind == "event"
stream any_sign_in from own, zeek, other
rule seen { on s: any_sign_in  alert "x" }
rule twice { on s: zeek  alert "y" }
"""


def program(text: str) -> Any:
    return cep.loads(text).program()


def matches(one: Any, *records: dict[str, Any]) -> list[list[str]]:
    """The rules that match, for each record."""
    found = []
    for number, record in enumerate(records):
        event = one.shape.from_mapping(record)
        event.t, event.src, event.pos = number, "test", number
        one.run([event])
        found.append([match.rule for match in one.take()])
    return found


def test_a_condition_on_either_of_two_fields_lets_in_by_both() -> None:
    seen = cep.loads(SOURCES).compiled.rules[0]
    assert dict(seen.dispatch.gates) == {
        ("type",): ("sign_in",),
        ("_path",): ("ssh",),
        ("@stream",): ("ssh",),
        ("event", "kind"): ("event",),
    }


def test_rules_come_in_order_and_once() -> None:
    assert matches(
        program(SOURCES),
        {"type": "sign_in"},
        {"_path": "ssh", "@stream": "ssh", "type": "sign_in"},
        {"event": {"kind": "event", "category": ["session"]}},
        {"event": {"kind": "event", "category": ["file"]}},
        {"type": "sign_in", "_path": None},
        {"_path": "dns"},
        {},
    ) == [["seen"], ["seen", "twice"], ["seen"], [], ["seen"], [], []]


@pytest.mark.parametrize("strange", [[1], {"a": 1}, 7, True, 1.5, None])
def test_a_value_of_another_type_equals_no_constant(strange: Any) -> None:
    assert matches(
        program(SOURCES),
        {"type": strange, "_path": "ssh"},
        {"type": "sign_in", "_path": strange},
        {"type": strange, "_path": strange},
    ) == [["seen", "twice"], ["seen"], []]


def test_combinations_without_end_are_not_remembered(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(merging, "MOST_COMBINATIONS", 2)
    records = [{"type": "sign_in"}, {"_path": "ssh"}, {"@stream": "ssh"}, {}] * 3
    expected = [["seen"], ["seen", "twice"], ["seen", "twice"], []] * 3
    assert matches(program(SOURCES), *records) == expected
