"""Values that are nested as deep as a reader of JSON takes them go through every part of a rule."""

from __future__ import annotations

import json

import pytest

import cep
from cep.event import LEVELS, TOO_DEEP, shallow

RULES = {
    "alert": 'rule r { on e: a alert "{e.n}" { f = e.n } }',
    "loop": 'rule r { sequence within 1h { x: a{2} } alert "{list(x.n)}" { l = list(x.n) } }',
    "key": 'rule r { by n on e: a alert "x" }',
    "equality": 'rule r { sequence within 1h { x: a  y: a where n == x.n } alert "x" }',
    "functions": 'rule r { on e: a where hash(n) != str(n) or len(n) > 0 alert "{hash(e.n)}" }',
    "aggregate": "rule r { aggregate a over sliding 1h { l = list(n) d = count(distinct n) "
    't = top(n, 2) } alert "{l} {t}" { x = t  n = d } }',
    "emit": "rule r { on e: a emit q { n = e.n } }  "
    'rule s { sequence within 1h { x: q  y: q where n == x.n } alert "{x.n}" { z = x.n } }',
    "dedup": 'rule r { on e: a alert "x" dedup by e.n for 1h }',
    "select": 'stream s { where type == "a" select { m = n } } rule r { on e: s alert "{e.m}" }',
    "identity": 'stream a { where type == "a" id n } rule r { on e: a alert "x" }',
}
PAIRS = {"arrays": "[]", "objects": ('{"a":', "}")}


@pytest.mark.parametrize("depth", [100, LEVELS - 10, LEVELS + 10, 900, 985])
@pytest.mark.parametrize("pair", PAIRS.values(), ids=PAIRS)
@pytest.mark.parametrize("rules", RULES.values(), ids=RULES)
def test_deep_values_stop_nothing(rules: str, pair: tuple[str, str], depth: int) -> None:
    opened, closed = pair
    value = opened * depth + ("1" if opened != "[" else "") + closed * depth
    engine = cep.Engine(cep.loads(rules))
    found = []
    for second in range(3):
        found += engine.process(f'{{"type":"a","time":{second + 1},"n":{value}}}'.encode())
    for match in found + engine.close():
        assert json.loads(match.to_json())["rule"] in ("r", "s")
    assert engine.stats.events + engine.stats.rejected == 3


def test_what_is_too_deep_is_shown_as_an_ellipsis() -> None:
    engine = cep.Engine(cep.loads('rule r { on e: a alert "x" { f = e.n } }'))
    line = b'{"type":"a","time":1,"n":%s%s}' % (b"[" * 700, b"]" * 700)
    [match] = engine.process(line)
    assert match.to_json().count(TOO_DEEP.encode()) == 2


def test_mappings_of_a_host_may_be_deep_too() -> None:
    deep: list[object] = []
    for _ in range(5000):
        deep = [deep]
    engine = cep.Engine(cep.loads('rule r { on e: a alert "{e.n}" { f = e.n } }'))
    [match] = engine.process({"type": "a", "time": 1, "n": deep})
    assert TOO_DEEP.encode() in match.to_json()


def test_what_is_not_too_deep_is_not_copied() -> None:
    value = {"a": [1, {"b": ()}]}
    assert shallow(value) is value
