"""The engine gives what the reference matcher gives, over random rules and random events.

Rules are drawn as text from the grammar, events over a tiny alphabet, so that repeats, ties and
boundaries are common. A failure is printed as a `.cep` file ready to be pasted into `tests/spec/`.
`CEP_PROPERTY_EXAMPLES` says how many cases are tried (default 100).
"""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass

from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

import cep
from cep.testing.events import START, Given, Moved
from cep.testing.modes import Script, by_reference, event_by_event, one_batch, outcome, shuffled
from cep.testing.runner import describe, offset

EXAMPLES = int(os.environ.get("CEP_PROPERTY_EXAMPLES", "100"))
SECOND = 1_000_000

STREAMS = ["A", "B", "C"]
DURATIONS = ["1s", "2s", "3s", "5s", "8s"]
LOOPS = ["{2}", "{1,2}", "{2,3}", "+", "*", "?", "{2,}"]
RELUCTANT = ["{1,2}?", "+?", "*?", "??"]

# ---------------------------------------------------------------------------- rules


@dataclass
class Writer:
    """Draws the parts of one rule and knows which steps are bound so far."""

    draw: Callable[[st.SearchStrategy], object]
    bound: list[str]
    count: int = 0
    open_end: bool = False
    """Whether the last node may take more events, so that a `report` is needed."""

    def chance(self, percent: int) -> bool:
        # Shrinks towards False: plain rules first.
        return self.draw(st.integers(0, 99)) >= 100 - percent

    def one(self, choices: list[str]) -> str:
        return str(self.draw(st.sampled_from(choices)))

    def name(self) -> str:
        self.count += 1
        return f"s{self.count}"

    def condition(self, loop: bool = False) -> str:
        """A condition on one event, sometimes looking at earlier ones."""
        tests = ["n == 1", "n > 1", "n < 2", "n != 0", "not n == 2", "n is not null", "m is null"]
        for step in self.bound[-2:]:
            tests += [f"n > {step}.n", f"n == {step}.n", f"n != {step}.n"]
        if loop:
            tests += ["n >= prev(n)", "not n == prev(n)", "count() < 2", "(sum(n) ?? 0) < 3"]
        first = self.one(tests)
        if self.chance(15):
            return f"{first} {self.one(['and', 'or'])} {self.one(tests)}"
        return first

    def where(self, percent: int = 45, loop: bool = False) -> str:
        return f" where {self.condition(loop)}" if self.chance(percent) else ""

    def step(self, first: bool) -> str:
        name, stream = self.name(), self.one(STREAMS)
        mode = self.one(["next ", "any "]) if not first and self.chance(25) else ""
        quantifier = ""
        if self.chance(40):
            choices = [q for q in LOOPS if not (first and q in ("*", "?"))]
            quantifier = self.one(choices + ([] if first else RELUCTANT))
        loop = quantifier not in ("", "?", "??")
        self.open_end = quantifier not in ("", "{2}")
        text = f"{mode}{name}: {stream}{quantifier}{self.where(45, loop)}"
        if not first and self.chance(12):
            text += f" within {self.one(DURATIONS)}"
        if not first and self.chance(8):
            text += f" after {self.one(['1s', '2s'])}"
        if loop and quantifier in ("+", "*", "{2,}") and self.chance(25):
            text += f" until {self.one(STREAMS)}{self.where(50)}"
        if quantifier not in ("*", "?", "*?", "??"):
            self.bound.append(name)
        return text

    def absent(self, within: bool) -> str:
        self.open_end = False
        text = f"no {self.one(STREAMS)}{self.where(40)}"
        return f"{text} within {self.one(DURATIONS)}" if within else text

    def one_of(self) -> str:
        before = list(self.bound)
        branches = []
        open_ends = []
        for _ in range(2):
            self.bound = list(before)
            branches.append(f"{{ {self.step(False)} }}")
            open_ends.append(self.open_end)
        self.bound = before
        self.open_end = any(open_ends)
        return f"one of {{ {' '.join(branches)} }}"

    def all_of(self) -> str:
        names = [self.name(), self.name()]
        parts = [f"{name}: {self.one(STREAMS)}{self.where(30)}" for name in names]
        self.bound += names
        self.open_end = False
        return f"all of {{ {'  '.join(parts)} }}"

    def repeat(self) -> str:
        names = [self.name(), self.name()]
        parts = [f"{name}: {self.one(STREAMS)}{self.where(30)}" for name in names]
        times = self.one(["{2}", "{1,2}"])
        self.open_end = times != "{2}"
        return f"repeat{times} {{ {'  '.join(parts)} }}"

    def sequence(self, groups: bool) -> str:
        nodes = []
        if self.chance(8):
            nodes.append(self.absent(within=True))
        nodes.append(self.step(first=True))
        for _ in range(self.draw(st.integers(0, 3))):
            if self.chance(18):
                nodes.append(self.absent(within=self.chance(30)))
            if groups and self.chance(25):
                nodes.append(self.draw(st.sampled_from([self.one_of, self.all_of, self.repeat]))())
            else:
                nodes.append(self.step(first=False))
        if self.chance(18):
            nodes.append(self.absent(within=self.chance(80)))
        mode = self.one(["strict ", "any "]) if self.chance(12) else ""
        return f"sequence {mode}within {self.one(DURATIONS)} {{ {'  '.join(nodes)} }}"

    def all_parts(self) -> str:
        names = [self.name() for _ in range(self.draw(st.integers(2, 3)))]
        parts = []
        for name in names:
            others = [other for other in names if other != name]
            self.bound = others
            parts.append(f"{name}: {self.one(STREAMS)}{self.where(40)}")
        self.bound = names
        if self.chance(20):
            parts.append(self.absent(within=False))
        head = "2 of" if self.chance(25) else "all"
        return f"{head} within {self.one(DURATIONS)} {{ {'  '.join(parts)} }}"

    def clauses(self, pattern: str) -> list[str]:
        found = []
        if self.chance(15):
            found.append(f"unless {self.one(STREAMS)} where {self.condition()}")
        if self.chance(15) and self.bound:
            step = self.one(self.bound)
            found.append(f"having {self.one([f'{step}.n > 0', f'count({step}) > 1'])}")
        skips = ["to next", "nothing", *[f"to first {s}" for s in self.bound[-1:]]]
        if self.chance(40):
            found.append(f"skip {self.one(skips)}")
        if self.chance(25):
            found.append(f"start {self.one(['first', 'latest'])}")
        if self.chance(12):
            found.append(f"dedup for {self.one(DURATIONS)}")
        if self.open_end:
            found.append(self.one(["report at minimum", "report on close"]))
        if self.chance(15):
            found.append('on timeout { alert "late" }')
        if self.chance(8):
            found.append("limit 1 runs")
        if self.chance(8):
            found.append(f"keep {self.one(DURATIONS)}")
        return found


@st.composite
def rules(draw, groups: bool = False) -> str:
    """The text of one rule named r; not all of them are right, most are."""
    writer = Writer(draw, [])
    by = "by k  " if writer.chance(50) else ""
    pattern = writer.all_parts() if groups and writer.chance(30) else writer.sequence(groups)
    return f"rule r {{ {by}{pattern}  {'  '.join(writer.clauses(pattern))} }}"


WINDOWS = [
    "sliding 3s", "sliding 5s", "sliding 2 events", "tumbling 3s", "hopping 4s every 2s",
    "session gap 2s", "session gap 2s max 3s",
]  # fmt: skip


@st.composite
def window_rules(draw) -> str:
    """The text of an aggregate rule named r."""
    writer = Writer(draw, [])
    by = "by k  " if writer.chance(50) else ""
    window = writer.one(WINDOWS)
    where = writer.where(25)
    aggregates = "c = count()  t = sum(n)  d = count(distinct n)  h = max(n)  l = list(n)"
    having = writer.one(["", "having c >= 2", "having t > 2", "having c < 2", "having h > 1"])
    report = ""
    if writer.chance(25):
        report = "report every event" if "sliding" in window else "report on update"
    shown = "alert { c = c  t = t  d = d  h = h  l = l }"
    pattern = f"aggregate A{where} over {window} {{ {aggregates} }}"
    return f"rule r {{ {by}{pattern}  {having}  {report}  {shown} }}"


# ---------------------------------------------------------------------------- events

EVENT = st.tuples(
    st.sampled_from(STREAMS),
    st.sampled_from([1, 1, 1, 2]),
    st.sampled_from([0, 1, 2, 3, None]),
    st.sampled_from([1, 1, 0, 2, 3, 5]),
)
EVENTS = st.lists(EVENT, min_size=1, max_size=9)


def steps_of(events: list[tuple]) -> list[Given | Moved]:
    time = START
    steps: list[Given | Moved] = [Moved(START)]
    for stream, key, number, gap in events:
        record = {"type": stream, "k": key} | ({} if number is None else {"n": number})
        time += gap * SECOND
        steps.append(Given(record, time, {**record, "@timestamp": time}))
    return steps


def as_case(rule: str, steps: list[Given | Moved], matches: list) -> str:
    """The case as a file for `tests/spec/`, with what the reference says."""
    lines = [rule, "", 'test r "found by chance" {']
    for step in steps[1:]:
        if isinstance(step, Given):
            fields = ", ".join(f"{n}: {v}" for n, v in step.record.items() if n != "type")
            lines.append(f"  at {offset(step.time)} {step.record['type']} {{ {fields} }}")
        else:
            lines.append(f"  advance {offset(step.time)}")
    lines += [f"  # the reference: {describe(match)}" for match in matches]
    for match in matches:
        kind = "timeout " if match.kind == "timeout" else ""
        counts = ", ".join(f"{n}: {len(taken)}" for n, taken in match.orders.items())
        lines.append(f"  expect at {offset(match.time)} {kind}r {{ {counts} }}")
    return "\n".join([*lines, "}"])


# ---------------------------------------------------------------------------- the comparison


def compare(rule: str, events: list[tuple], quiet: bool) -> None:
    try:
        ruleset = cep.loads(rule)
    except cep.RuleError:
        assume(False)
    steps = steps_of(events)
    if quiet:
        steps.append(Moved(steps[-1].time + 60 * SECOND))
    script = Script(ruleset, ["r"], steps)
    expected = by_reference(script)
    wanted = [outcome(match) for match in expected]
    case = as_case(rule, steps, expected)
    for mode in (event_by_event, one_batch):
        found = mode(script)
        came = "\n".join(f"  # the engine: {describe(match)}" for match in found)
        told = f"{mode.__name__}\n{case}\n{came}"
        assert [outcome(match) for match in found] == wanted, f"\n{told}"
    for found in shuffled(script):
        assert [outcome(match) for match in found] == wanted, f"\nshuffled\n{case}"


THOROUGH = settings(
    max_examples=EXAMPLES,
    deadline=None,
    print_blob=True,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much],
)


@THOROUGH
@given(rules(), EVENTS, st.booleans())
def test_sequences_of_steps(rule: str, events: list[tuple], quiet: bool) -> None:
    compare(rule, events, quiet)


@THOROUGH
@given(rules(groups=True), EVENTS, st.booleans())
def test_sequences_with_groups(rule: str, events: list[tuple], quiet: bool) -> None:
    compare(rule, events, quiet)


@THOROUGH
@given(window_rules(), EVENTS, st.booleans())
def test_windows(rule: str, events: list[tuple], quiet: bool) -> None:
    compare(rule, events, quiet)
