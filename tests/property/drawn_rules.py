"""Rules drawn as text from the grammar, and events over a tiny alphabet to run through them.

Repeats, ties and boundaries are common on purpose. A `Chooser` says what is drawn: hypothesis,
which makes a failing case small, or a seeded generator, which is much faster and for long runs
(`hunt.py`).
"""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Sequence
from typing import Protocol, TypeVar

from hypothesis import strategies as st

from cep.testing.events import START, Given, Moved
from cep.testing.runner import describe, offset

T = TypeVar("T")

SECOND = 1_000_000

TYPES = ["A", "B", "C"]
STREAMS = ["A", "B", "C", "A", "B", "C", "A", "B", "C", "AB", "N", "event"]
DECLARED = """stream AB from A, B { where n != 3 }
stream N { where n > 0 or j == 1 }
list ks = [1, 2, 7]
"""
WIDE_STREAMS = ["O", "M", "D", "D", "OD", "F"]
WIDE = """stream O from A { dedup by n for 3s }
stream M from B, C where j is not null { select { k = k  n = n + 1  j = j  m = n } }
stream OD from O, D where n is not null { dedup by k, n for 2s }
table look from C key n ttl 4s
table seen from D key j
"""
"""Streams that drop repeats, map fields and come from rules, and tables of streams."""
DERIVED = [
    "on a: A where n > 0  emit D { n = a.n  j = a.j }",
    "on a: B  emit D { n = look[a.n].j  j = a.n }  dedup for 2s",
    "sequence within 3s { a: A  b: B }  emit D { n = b.n  j = a.n }",
    "sequence { a: B  no C within 2s }  skip nothing  emit D { n = a.n  j = 1 }  alert",
    "sequence within 2s { a: C  b: B }  on timeout { emit D { n = a.n  j = 2 } }",
    "aggregate A over tumbling 3s { c = count() }  emit D { n = c  j = 1 }",
    "aggregate B over sliding 3s { c = count() }  having c > 1  emit D { n = c  j = c }",
]
"""What a rule beside the drawn one may be: it makes the events of D."""
DERIVED_AGAIN = [
    "on d: D where n > 0  emit F { n = d.n  j = d.j }",
    "sequence within 2s { a: D  b: A }  emit F { n = a.n  j = b.n }",
    "sequence { a: D  no B within 1s }  start latest  emit F { n = a.n  j = 1 }",
    "aggregate OD over session gap 2s { c = count() }  emit F { n = c  j = 2 }",
]
"""And a second one, which makes those of F from them."""
NUMBERS = [0, 1, 2, 3, 0, 1, 2, 3, None, "x", 1.0, True]
OTHERS = [1, 1, 1, 2, 2, None, "1"]
DURATIONS = ["1s", "2s", "3s", "5s", "8s"]
LOOPS = ["{2}", "{1,2}", "{2,3}", "+", "*", "?", "{2,}", "{3}"]
RELUCTANT = ["{1,2}?", "+?", "*?", "??", "{2,}?"]
WINDOWS = [
    "sliding 3s", "sliding 5s", "sliding 2 events", "tumbling 3s", "hopping 4s every 2s",
    "session gap 2s", "session gap 2s max 3s", "hopping 5s every 1s", "hopping 5s every 3s",
]  # fmt: skip

HAVINGS = [
    "having c >= 2 and a < 2", "having c > 1 and (h > 1 or m < 1)", "having r > 0 and 2 <= c",
    "having a < 2 or c >= 3", "having w is null", "having not h > 1 and c >= 1",
]  # fmt: skip
"""Conditions of windows that an expiry makes true, or cannot make true."""

EventTuple = tuple[str, int, object, object, int]
"""(type, k, n, j, seconds since the event before)."""


class Chooser(Protocol):
    """Where choices come from. Small numbers and first items are the plainest."""

    def number(self, low: int, high: int) -> int: ...

    def one(self, items: Sequence[T]) -> T: ...


class Drawn:
    """Choices of hypothesis."""

    def __init__(self, draw: Callable[..., int]) -> None:
        self._draw = draw

    def number(self, low: int, high: int) -> int:
        return self._draw(st.integers(low, high))

    def one(self, items: Sequence[T]) -> T:
        return items[self.number(0, len(items) - 1)]


class Seeded:
    """Choices of a seeded generator."""

    def __init__(self, seed: int) -> None:
        self._dice = random.Random(seed)

    def number(self, low: int, high: int) -> int:
        return self._dice.randint(low, high)

    def one(self, items: Sequence[T]) -> T:
        return self._dice.choice(items)


class RuleWriter:
    """Draws the parts of one rule and knows which steps are bound so far.

    With `wide` it draws from all kinds of streams, asks tables, and sets a rule beside it whose
    matches are events.
    """

    def __init__(self, chooser: Chooser, wide: bool = False) -> None:
        self.chooser = chooser
        self.wide = wide
        self.streams = STREAMS + WIDE_STREAMS if wide else STREAMS
        self.bound: list[str] = []
        self.maybe: list[str] = []
        """Steps that may have taken nothing."""
        self.count = 0
        self.open_end = False
        """Whether the last node may take more events, so that a `report` is needed."""
        self.has_key = self.chance(50)
        self.key = self.one(["k", "k", "k", "k", "k", "k", "k, j"]) if self.has_key else ""

    def chance(self, percent: int) -> bool:
        # Shrinks towards False: plain rules first.
        return self.chooser.number(0, 99) >= 100 - percent

    def one(self, choices: Sequence[T]) -> T:
        return self.chooser.one(choices)

    def name(self) -> str:
        self.count += 1
        return f"s{self.count}"

    # ------------------------------------------------------------------ conditions

    def condition(self, loop: bool = False) -> str:
        """A condition on one event, sometimes looking at earlier ones."""
        first = self.test(loop)
        if self.chance(20):
            return f"{first} {self.one(['and', 'or'])} {self.test(loop)}"
        return first

    def test(self, loop: bool) -> str:
        tests = ["n == 1", "n > 1", "n < 2", "n != 0", "not n == 2", "n is not null", "m is null"]
        tests += ["n is missing", "n is not missing", "n in [0, 2]", "n != 1 or j == 1"]
        tests += ["n + 1 > j", 'n == "x"', "if(n > 1, j, n) == 1", "n / j > 1", "this.n == 1"]
        if self.wide and self.chance(25):
            tests = ["look[n].j == 1", "look[n].n is null", "look[n].k == k", "seen[k].n == n"]
        for step in (self.bound + self.maybe)[-3:]:
            tests += self.looking_back(step)
        if loop:
            tests += ["n >= prev(n)", "not n == prev(n)", "count() < 2", "(sum(n) ?? 0) < 3"]
            tests += ["n > prev(n) or n == 0", "n >= first(n)", "n > (avg(n) ?? 0)"]
            tests += ["n <= (max(n) ?? 1)", "(min(n) ?? 1) < 2", "prev(n) == 1"]
            tests += ["time - prev(time) <= 2s"]
        return self.one(tests)

    def looking_back(self, step: str) -> list[str]:
        return [
            f"n > {step}.n", f"n == {step}.n", f"n != {step}.n", f"n == {step}.n", f"j == {step}.n",
            f"{step}.n == 1", f"not {step}.n == 1", f"{step}.n is null", f"{step}.n is missing",
            f"count({step}) > 1", f"count({step}) == n", f"sum({step}.n) > 1",
            f"avg({step}.n) < 2", f"n < max({step}.n)", f"n > min({step}.n)",
            f"n == first({step}.n)", f"n == last({step}.n)", f"n == {step}[1].n",
            f"count(distinct {step}.n) > 1", f"time - {step}.time > 1s",
            f"(n == {step}.n and j == {step}.j)", f"{step} is null", f"{step} is not null",
        ]  # fmt: skip

    def where(self, percent: int = 45, loop: bool = False) -> str:
        return f" where {self.condition(loop)}" if self.chance(percent) else ""

    def by(self) -> str:
        """Another key for a step or a `no`."""
        return " by j" if self.key == "k" and self.chance(6) else ""

    # ------------------------------------------------------------------ steps

    def step(self, first: bool, quantified: bool = True) -> str:
        name, stream = self.name(), self.one(self.streams)
        mode = self.one(["next ", "any "]) if not first and self.chance(25) else ""
        quantifier = ""
        if quantified and self.chance(40):
            choices = [q for q in LOOPS if not (first and q in ("*", "?"))]
            quantifier = self.one(choices + ([] if first else RELUCTANT))
        loop = quantifier not in ("", "?", "??")
        self.open_end = quantifier not in ("", "{2}", "{3}")
        text = f"{mode}{name}: {stream}{quantifier}{self.where(45, loop)}{self.by()}"
        if not first and self.chance(12):
            text += f" within {self.one(DURATIONS)}"
        if not first and self.chance(8):
            text += f" after {self.one(['1s', '2s'])}"
        if loop and quantifier in ("+", "*", "{2,}") and self.chance(25):
            text += f" until {self.one(self.streams)}{self.where(50)}"
        (self.maybe if quantifier in ("*", "?", "*?", "??") else self.bound).append(name)
        return text

    def absent(self, within: bool, looks_back: bool = True) -> str:
        self.open_end = False
        kept = self.bound, self.maybe
        if not looks_back:
            self.bound, self.maybe = [], []
        text = f"no {self.one(self.streams)}{self.where(40)}{self.by()}"
        self.bound, self.maybe = kept
        return f"{text} within {self.one(DURATIONS)}" if within else text

    # ------------------------------------------------------------------ groups

    def group_mode(self) -> str:
        return self.one(["next ", "any "]) if self.chance(15) else ""

    def one_of(self) -> str:
        bound, maybe = list(self.bound), list(self.maybe)
        branches, added, open_ends = [], [], []
        for _ in range(2 + self.chance(20)):
            self.bound, self.maybe = list(bound), list(maybe)
            nodes = [self.inner() for _ in range(1 + self.chance(35))]
            if len(nodes) == 2 and self.chance(20):
                nodes.insert(1, self.absent(within=False))
            branches.append(f"{{ {' '.join(nodes)} }}")
            open_ends.append(self.open_end)
            added += self.bound[len(bound) :] + self.maybe[len(maybe) :]
        self.bound, self.maybe = bound, maybe + added
        self.open_end = any(open_ends)
        return f"{self.group_mode()}one of {{ {' '.join(branches)} }}"

    def inner(self) -> str:
        """A node of a branch: a step, sometimes a group."""
        return self.one([self.all_of, self.repeat])() if self.chance(8) else self.step(False)

    def all_of(self) -> str:
        names = [self.name() for _ in range(2 + self.chance(20))]
        parts = []
        kept = list(self.bound)
        for name in names:
            self.bound = kept + [other for other in names if other != name]
            parts.append(f"{name}: {self.one(self.streams)}{self.where(35)}")
        self.bound = kept + names
        if self.chance(15):
            parts.append(self.absent(within=False))
        within = f" within {self.one(DURATIONS)}" if self.chance(25) else ""
        self.open_end = False
        return f"{self.group_mode()}all of{within} {{ {'  '.join(parts)} }}"

    def repeat(self) -> str:
        nodes = [self.step(False, quantified=self.chance(30)) for _ in range(1 + self.chance(70))]
        if self.chance(8):
            nodes.append(self.one([self.all_of, self.one_of, self.repeat])())
        inner_open = self.open_end
        if len(nodes) == 2 and self.chance(25):
            nodes.insert(1, self.absent(within=self.chance(20)))
        times = self.one(["{2}", "{1,2}", "{2,}", "+", "?", "*", "{1,2}?", "{2,3}"])
        self.open_end = inner_open or times != "{2}"
        return f"{self.group_mode()}repeat{times} {{ {'  '.join(nodes)} }}"

    # ------------------------------------------------------------------ patterns

    def sequence(self, groups: bool) -> str:
        nodes = []
        if self.chance(8):
            nodes.append(self.absent(within=True, looks_back=False))
        if groups and self.chance(15):
            nodes.append(self.one([self.one_of, self.all_of, self.repeat])())
        else:
            nodes.append(self.step(first=True))
        for _ in range(self.chooser.number(0, 3)):
            for _ in range(self.chance(18) + self.chance(4)):
                nodes.append(self.absent(within=self.chance(30)))
            if groups and self.chance(35):
                nodes.append(self.one([self.one_of, self.all_of, self.repeat])())
            else:
                nodes.append(self.step(first=False))
        for _ in range(self.chance(18) + self.chance(4)):
            nodes.append(self.absent(within=self.chance(80)))
        mode = self.one(["strict ", "any "]) if self.chance(15) else ""
        within = f"within {self.one(DURATIONS)} " if not self.chance(4) else ""
        return f"sequence {mode}{within}{{ {'  '.join(nodes)} }}"

    def all_parts(self) -> str:
        names = [self.name() for _ in range(2 + self.chance(50))]
        parts = []
        for name in names:
            self.bound = [other for other in names if other != name]
            parts.append(f"{name}: {self.one(self.streams)}{self.where(45)}{self.by()}")
        self.bound = names
        if self.chance(20):
            parts.append(self.absent(within=False))
        head = "2 of" if self.chance(25) else "all"
        self.maybe = names if head == "2 of" else []
        return f"{head} within {self.one(DURATIONS)} {{ {'  '.join(parts)} }}"

    def clauses(self) -> list[str]:
        found = []
        if self.chance(20):
            by = " by j" if self.key == "k" and self.chance(10) else ""
            found.append(f"unless {self.one(self.streams)} where {self.condition()}{by}")
        if self.chance(15) and self.bound:
            step = self.one(self.bound)
            found.append(f"having {self.one([f'{step}.n > 0', f'count({step}) > 1'])}")
        skips = ["to next", "nothing", *[f"to first {s}" for s in self.bound[-1:]]]
        skips += [f"to last {s}" for s in self.bound[-2:]]
        if self.chance(40):
            found.append(f"skip {self.one(skips)}")
        if self.chance(25):
            found.append(f"start {self.one(['first', 'latest'])}")
        if self.chance(12):
            by = f" by {self.bound[0]}.n" if self.bound and self.chance(40) else ""
            found.append(f"dedup{by} for {self.one(DURATIONS)}")
        if self.open_end and not self.chance(5):
            found.append(self.one(["report at minimum", "report on close"]))
        if self.chance(15):
            found.append('on timeout { alert "late" }')
        if self.chance(8):
            found.append(f"limit {self.one([1, 2])} runs")
        if self.chance(8):
            found.append(f"keep {self.one(DURATIONS)}")
        if self.chance(30):
            found.append(self.alert())
        return found

    def alert(self) -> str:
        fields = []
        for number, step in enumerate((self.bound + self.maybe)[:3]):
            value = self.one(
                [f"count({step})", f"{step}.n", f"list({step}.n)", f"sum({step}.n)",
                 f"first({step}.n)", f"max({step}.n)", f"{step}[1].n", f"avg({step}.n)"]
            )  # fmt: skip
            fields.append(f"f{number} = {value}")
        text = self.one(["", f'"{{{self.bound[0]}.n}}" ']) if self.bound else ""
        return f"alert {text}{{ {'  '.join(fields)} }}" if fields else ""

    def rule(self, groups: bool = False) -> str:
        """The text of one rule named r, behind declarations; not all are right, most are."""
        by = f"by {self.key}  " if self.has_key else ""
        if self.chance(3):
            pattern = f"on {self.one(['s1: ', ''])}{self.one(self.streams)}{self.where(60)}"
        elif groups and self.chance(25):
            pattern = self.all_parts()
        else:
            pattern = self.sequence(groups)
        if self.key == "k" and self.chance(4):
            by += "keys from ks  "
        return f"{self.declared()}rule r {{ {by}{pattern}  {'  '.join(self.clauses())} }}"

    def declared(self) -> str:
        """What stands before the rule: its streams, lists and tables, and the rule beside it."""
        if not self.wide:
            return DECLARED
        name = self.one(["q", "s"])
        rules = f"rule {name} {{ by k  {self.one(DERIVED)} }}\n"
        if self.chance(40):
            rules += f"rule {self.one(['a', 'z'])} {{ by k  {self.one(DERIVED_AGAIN)} }}\n"
        return f"{DECLARED}{WIDE}{rules}"

    def window_rule(self) -> str:
        """The text of an aggregate rule named r."""
        by = f"by {self.key}  " if self.has_key else ""
        window = self.one(WINDOWS)
        where = self.where(25)
        own = self.where(20)
        aggregates = f"c = count(){own}  t = sum(n)  d = count(distinct n)  h = max(n)  l = list(n)"
        aggregates += "  a = avg(n)  w = last(n)  p = median(n)  m = min(n)  o = top(n, 1)"
        aggregates += "  r = avg(n) - min(n)"
        having = self.one(
            ["", "having c >= 2", "having t > 2", "having c < 2", "having h > 1", "having a > 1"]
        )
        if self.chance(30):
            having = self.one(HAVINGS)
        report = ""
        if self.chance(25):
            report = "report every event" if "sliding" in window else "report on update"
        dedup = f"dedup for {self.one(DURATIONS)}" if self.chance(12) else ""
        shown = (
            "alert { c = c  t = t  d = d  h = h  l = l  a = a  w = w  p = p  m = m  o = o  r = r }"
        )
        stream = self.one(["A", "A", "A", "AB", "event", *(WIDE_STREAMS if self.wide else [])])
        pattern = f"aggregate {stream}{where} over {window} {{ {aggregates} }}"
        return f"{self.declared()}rule r {{ {by}{pattern}  {having}  {report}  {dedup}  {shown} }}"

    def events(self, most: int = 9) -> list[EventTuple]:
        return [self.event() for _ in range(self.chooser.number(1, most))]

    def event(self) -> EventTuple:
        return (
            self.one(TYPES),
            self.one([1, 1, 1, 2]),
            self.one(NUMBERS),
            self.one(OTHERS),
            self.one([1, 1, 0, 2, 3, 5]),
        )


@st.composite
def rules(draw, groups: bool = False, wide: bool = False) -> str:
    """The text of one rule named r."""
    return RuleWriter(Drawn(draw), wide).rule(groups)


@st.composite
def window_rules(draw, wide: bool = False) -> str:
    """The text of an aggregate rule named r."""
    return RuleWriter(Drawn(draw), wide).window_rule()


EVENT = st.tuples(
    st.sampled_from(TYPES),
    st.sampled_from([1, 1, 1, 2]),
    st.sampled_from(NUMBERS),
    st.sampled_from(OTHERS),
    st.sampled_from([1, 1, 0, 2, 3, 5]),
)
EVENTS = st.lists(EVENT, min_size=1, max_size=9)


def steps_of(events: Sequence[EventTuple], quiet: bool = False) -> list[Given | Moved]:
    """What happens: the events and, after a `quiet` end, a minute without any."""
    time = START
    steps: list[Given | Moved] = [Moved(START)]
    for stream, key, number, other, gap in events:
        fields = {"type": stream, "k": key, "n": number, "j": other}
        record = {name: value for name, value in fields.items() if value is not None}
        time += gap * SECOND
        steps.append(Given(record, time, {**record, "@timestamp": time}))
    if quiet:
        steps.append(Moved(time + 60 * SECOND))
    return steps


def as_case(
    rule: str, names: Sequence[str], steps: Sequence[Given | Moved], matches: Sequence[object]
) -> str:
    """The case as a file for `tests/spec/`, with what the reference says."""
    lines = [rule, "", f'test {", ".join(names)} "found by chance" {{']
    for step in steps[1:]:
        if isinstance(step, Given):
            fields = ", ".join(
                f"{n}: {json.dumps(v)}" for n, v in step.record.items() if n != "type"
            )
            lines.append(f"  at {offset(step.time)} {step.record['type']} {{ {fields} }}")
        else:
            lines.append(f"  advance {offset(step.time)}")
    for match in matches:
        kind = "timeout " if match.kind == "timeout" else ""
        counts = ", ".join(f"{n}: {len(taken)}" for n, taken in match.orders.items())
        lines.append(f"  expect at {offset(match.time)} {kind}{match.rule} {{ {counts} }}")
        lines.append(f"  # the reference: {describe(match)}")
    return "\n".join([*lines, "}"])
