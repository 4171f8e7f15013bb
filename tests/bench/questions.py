"""The rules of the benchmarks, and their right answers.

The answers for the whole files are those on which several engines agree; on the first 200,000
events the loops of `floor` give them, where they are not stated here.
"""

from __future__ import annotations

import cep

_ABC = "rule w1 {{ by user sequence {mode} within 10m {{ a: A b: B c: C {test} }} {skip} {alert} }}"
_LARGER = "where amount > a.amount"
_SUM = 'alert "{a.user}" { total = a.seq + 3 * b.seq + 7 * c.seq }'
_PLAIN = 'alert "{a.user}"'

W1 = _ABC.format(mode="", test=_LARGER, skip="skip nothing", alert=_SUM)
W1_DEFAULT = _ABC.format(mode="", test=_LARGER, skip="", alert=_SUM)
W1_UNCONDITIONAL = _ABC.format(mode="", test="", skip="skip nothing", alert=_PLAIN)
W1_ANY = _ABC.format(mode="any", test="", skip="skip nothing", alert=_PLAIN)
W2 = """rule w2 {
  by user
  sequence strict { t: event{3} where amount > prev(amount) }
  keep 1d
  skip nothing
  alert "{t.user}"
}"""
W5 = """rule w5 {
  by user
  sequence within 1d { fail: login{5,} where ok == false  good: login where ok == true }
  alert "{fail.user}"
}"""
W6 = """rule w6 {
  all within 1h { o: order  p: payment where order_id == o.order_id }
  skip nothing
  alert "{o.order_id}"
}"""
W7 = """rule w7 {
  by order_id
  sequence { p: payment  no shipment within 2h }
  alert "{p.order_id}"
}"""


def _window(window: str, aggregate: str, having: str) -> str:
    return (
        f"rule w10 {{ by user aggregate event over {window} {{ x = {aggregate} }} "
        f'having {having} alert "{{user}}" }}'
    )


def sliding(aggregate: str, having: str, micros: int) -> str:
    """W10: an aggregate per user, of all events, over a window of a length in microseconds."""
    return _window(f"sliding {micros}us", aggregate, having)


def hopping(number: int) -> str:
    """A mean over windows of so many microseconds, one of which begins at each."""
    return _window(f"hopping {number}us every 1us", "avg(amount)", "x > 2")


W10_COUNT = _window("sliding 5m", "count()", "x >= 35")
W10_AVG = _window("sliding 5m", "avg(amount)", "x > 6000")
W10_MAX = _window("sliding 5m", "max(amount)", "x < 9000")
W10_PERCENTILE = _window("sliding 5m", "percentile(amount, 95)", "x < 9000")

GOLDEN = {
    "W1": 45_587,
    "W1 quick": 564,
    "W1 without amount": 68_496,
    "W1 any": 360_379,
    "W2": 330_272,
    "W10 count": 91_827,
    "W10 count quick": 22,
    "W10 avg": 29_010,
    "W10 avg quick": 9_783,
    "W10 max": 17_437,
    "W10 max quick": 8_966,
    "W10 percentile": 63_332,
    "W10 percentile quick": 12_470,
    "W3 10": 38_418,
    "W3 30": 339_384,
    "W3 100": 3_754_853,
    "W3 300": 33_483_225,
}
W1_QUICK_CHECKSUM = 774_878_745
W1_CHECKSUM = 540_731_087_562
"""The sum of a.seq + 3 b.seq + 7 c.seq over the matches of W1, on the first 200,000
events and on all."""


def explosion(within_ms: int, *, last: str = "C", skip: str = "nothing") -> str:
    """W3: every A, later B, later C of one key. With `last="D"`, of which there is none, runs only
    pile up."""
    return (
        f"rule w3 {{ sequence any within {within_ms}ms {{ a: A b: B c: {last} }} "
        f'skip {skip} alert "{{a.seq}}" }}'
    )


def many_types(rules: int) -> list[tuple[str, str, str]]:
    """W4: the types of the three steps of each rule; a thousand rules use all 2,000 types."""
    return [(f"T{2 * i}", f"T{2 * i + 1}", f"T{(2 * i + 2) % 2000}") for i in range(rules)]


def many_rules(rules: int) -> str:
    """W4: rules that differ in their constants only."""
    return "\n".join(
        f"rule r{i} {{ by user sequence within 10m {{ a: {a} b: {b} c: {c} "
        f'where amount > a.amount }} skip nothing alert "{{a.user}}" }}'
        for i, (a, b, c) in enumerate(many_types(rules))
    )


def various_rules(rules: int) -> str:
    """Rules whose texts, times and numbers differ, so that no two have the same code."""
    return "\n".join(
        f'rule r{i} "Rule {i}" {{ by user sequence within {5 + i % 50}m {{ '
        f'a: T{2 * i} where amount > {i} and ip != "10.0.0.{i}" b: T{2 * i + 1} '
        f"c: T{2 * i + 2} where amount > a.amount + {i / 7} }} "
        f'alert "{{a.user}} did {i}" }}'
        for i in range(rules)
    )


def union(streams: int) -> str:
    """A rule over a stream of many, each of which maps the events of one kind."""
    mapped = [
        f'stream s{i} from event where kind == "k{i}" {{ select {{ user = u{i % 7}  size = n }} }}'
        for i in range(streams)
    ]
    names = ", ".join(f"s{i}" for i in range(streams))
    rule = """rule grows {
      by user
      sequence within 10m { a: all_of_them  b: all_of_them where size > a.size }
      alert "{a.user}"
    }"""
    return "\n".join([*mapped, f"stream all_of_them from {names}", rule])


def load(text: str) -> cep.Ruleset:
    """The rules of a question."""
    return cep.loads(text, name="bench.cep")
