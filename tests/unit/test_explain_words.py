"""Rules in words and pictures, for every kind of pattern."""

from __future__ import annotations

import pytest

from cep.explain.bounds import bounds
from cep.explain.diagram import diagram, to_dot, to_mermaid
from cep.explain.duration import duration
from cep.explain.tree import print_tree
from cep.explain.words import describe
from dsl import ast
from dsl.checked import (
    AllOf,
    Dedup,
    Field,
    Guard,
    KeyPart,
    Node,
    OneOf,
    Quantifier,
    Repeat,
    Rule,
    SequencePattern,
    Step,
    WindowField,
    WindowPattern,
)
from dsl.source import Source, Span

SECOND = 1_000_000
MINUTE = 60 * SECOND


def step(name: str, **more: object) -> Step:
    return Step(name, name.upper(), None, (), **more)  # type: ignore[arg-type]


def no(stream: str, within: int | None = None) -> Guard:
    return Guard(stream, None, (), within)


def rule(*nodes: Node, within: int | None = None, kind: str = "sequence", **more: object) -> Rule:
    pattern = SequencePattern(kind, nodes, within)
    return Rule("r", None, None, None, (), (), (KeyPart("user"),), pattern, **more)  # type: ignore[arg-type]


def window(**more: object) -> Rule:
    fields = (WindowField("n", "count", None, False, (), None),)
    given = {"kind": "sliding", "size": MINUTE, "count": None, "step": None, "maximum": None}
    pattern = WindowPattern(
        "log",
        None,
        (),
        **{**given, **more},
        timezone=None,
        fields=fields,  # type: ignore[arg-type]
    )
    return Rule("w", None, None, None, (), (), (), pattern)


@pytest.mark.parametrize(
    ("micros", "text"),
    [
        (0, "0s"),
        (1, "1us"),
        (1500, "1ms500us"),
        (MINUTE, "1m"),
        (26 * 60 * MINUTE, "1d2h"),
        (-MINUTE, "-1m"),
    ],
)
def test_durations_are_written_as_in_rules(micros: int, text: str) -> None:
    assert duration(micros) == text


# ---------------------------------------------------------------------- bounds

PLUS = Quantifier(1, None)


@pytest.mark.parametrize(
    ("checked", "line"),
    [
        (rule(step("a"), kind="on"), "keeps nothing: each event decides by itself"),
        (rule(step("a")), "keeps nothing: each event decides by itself"),
        (
            rule(step("a"), step("b"), within=MINUTE),
            "a run ends at the latest 1m after its first event (within)",
        ),
        (
            rule(step("a"), step("b", within=MINUTE), step("c", within=SECOND)),
            "a run ends at the latest 1m1s after its first event (its steps)",
        ),
        (
            rule(step("a"), no("x", MINUTE)),
            "a run ends at the latest 1m after its first event (its steps)",
        ),
        (
            rule(step("a"), step("b"), no("x", MINUTE), within=SECOND),
            "a run ends at the latest 1s after its first event (within), then waits 1m for the "
            "absence",
        ),
        (
            rule(step("a"), OneOf(((step("b", within=SECOND),), (step("c", within=MINUTE),)))),
            "a run ends at the latest 1m after its first event (its steps)",
        ),
        (
            rule(step("a"), Repeat(Quantifier(2, 3), (step("b", within=SECOND),))),
            "a run ends at the latest 3s after its first event (its steps)",
        ),
        (
            rule(step("a"), step("b"), keep=MINUTE),
            "a run ends at the latest 1m after its first event (keep)",
        ),
        (
            rule(step("a"), OneOf(((step("b"),), (step("c", within=MINUTE),))), keep=SECOND),
            "a run ends at the latest 1s after its first event (keep)",
        ),
        (rule(step("a", quantifier=PLUS, until=no("X"))), "a run ends at its `until`"),
        (window(), "a key holds the events of the last 1m"),
        (window(kind="sliding_count", size=None, count=100), "a key holds its last 100 events"),
        (window(kind="tumbling"), "a key holds one bucket of 1m"),
        (window(kind="hopping", step=25 * SECOND), "a key holds 3 buckets of 1m"),
        (window(kind="session"), "a key holds one session, until 1m without an event"),
        (
            window(kind="session", maximum=2 * MINUTE),
            "a key holds one session, until 1m without an event, at most 2m",
        ),
    ],
)
def test_what_bounds_a_rule(checked: Rule, line: str) -> None:
    assert bounds(checked)[0] == line


@pytest.mark.parametrize(
    ("more", "line"),
    [
        ({}, "a key holds a run for each first event in that time (`limit N runs` caps it)"),
        ({"limit": 1000}, "a key holds runs of at most 1,000 first events (limit)"),
        ({"start": "first"}, "a key holds runs of one first event at a time (start first)"),
        ({"start": "latest"}, "opening events replace runs at their first step (start latest)"),
    ],
)
def test_how_many_runs_a_key_holds(more: dict[str, object], line: str) -> None:
    assert bounds(rule(step("a"), step("b"), within=MINUTE, **more))[1] == line


def test_dedup_is_state_too() -> None:
    checked = rule(step("a"), kind="on", dedup=Dedup(None, MINUTE))
    assert bounds(checked)[1] == "dedup keeps one entry per key for 1m"


# ---------------------------------------------------------------------- words


def test_every_kind_of_node_in_words() -> None:
    checked = rule(
        step("a", quantifier=Quantifier(2, 3, greedy=False)),
        no("X"),
        step("b", mode="next", after=SECOND, within=MINUTE),
        OneOf(((step("c"), step("d")), (step("e"),)), mode="any"),
        AllOf((step("f"), step("g")), (no("Y"),), 2),
        Repeat(Quantifier(1, 2), (step("h"),)),
        within=MINUTE,
        skip="to_first",
        skip_step="b",
        start="first",
        report="on_close",
        unless=(no("Z"),),
    )
    assert describe(checked).splitlines()[1:-2] == [
        "  for each user:",
        "    a: A (2 to 3, as few as possible)",
        "    no X",
        "    immediately then b: B at least 1s later within 1m",
        "    then any one of",
        "      1) c: C; then d: D",
        "      2) e: E",
        "    then all of, in any order",
        "      f: F",
        "      g: G",
        "      no Y",
        "    then 1 to 2 times",
        "      h: H",
        "    all within 1m",
        "  unless Z",
        "  after a match runs that began before the first b are dropped (skip to first b)",
        "  an event opens a run only while its key has none (start first)",
        "  report on close",
    ]


def test_a_window_in_words() -> None:
    assert describe(window(kind="hopping", step=SECOND)).splitlines()[1:4] == [
        "  over all events:",
        "    log over a window: hopping 1m every 1s",
        "    n = count()",
    ]


# ---------------------------------------------------------------------- diagrams


def test_optional_steps_branches_and_absences_in_a_diagram() -> None:
    checked = rule(
        step("a"),
        no("X"),
        step("b", quantifier=Quantifier(0, 1)),
        OneOf(((step("c"),), (step("d"),))),
        no("Y", MINUTE),
        within=MINUTE,
        unless=(no("Z"),),
    )
    lines = [line.strip() for line in to_mermaid(diagram(checked)).splitlines()]
    assert 'n1 -- "no X" --> n2' in lines
    assert "n1 --> n3" in lines
    assert "n2 --> n3" in lines
    assert "n2 --> n4" in lines
    assert 'n3 -- "no Y within 1m" --> n5' in lines
    assert 'n6{{"unless Z"}}' in lines


def test_all_and_repeat_in_a_diagram() -> None:
    checked = rule(
        AllOf((step("a"), step("b"), step("c")), (no("X"),), 2),
        Repeat(Quantifier(2, 4), (step("d"), step("e"))),
        within=MINUTE,
    )
    lines = [line.strip() for line in to_mermaid(diagram(checked)).splitlines()]
    assert 'n1(["2, in any order<br/>no X"])' in lines
    assert 'n6 -- "again, 2 to 4 rounds" --> n5' in lines


def test_windows_in_a_diagram() -> None:
    assert '"log<br/>sliding 1m<br/>n = count"' in to_mermaid(diagram(window()))


def test_hostile_text_cannot_leave_its_label() -> None:
    source = Source("x", 'a == "</script>\\" ]; n0 --> n9 #`"')
    where = Field(("a",), span=Span(source, 0, len(source.text)))
    checked = rule(Step("a", "A", where, ()), kind="on")
    [label] = [line for line in to_mermaid(diagram(checked)).splitlines() if "n1[" in line]
    assert label.count('"') == 2
    assert "<script" not in label
    dot = to_dot(diagram(checked))
    assert '\\"</script>\\\\\\" ]; n0 --> n9 #`\\"' in dot


def test_long_conditions_are_cut_in_a_diagram() -> None:
    source = Source("x", "a" * 200)
    where = Field(("a",), span=Span(source, 0, 200))
    assert "a" * 59 + "…" in to_mermaid(diagram(rule(Step("a", "A", where, ()))))


# ---------------------------------------------------------------------- trees


def test_the_tree_of_branches_and_literals() -> None:
    branch = (ast.Step(ast.Ident("a")),)
    group = ast.OneOf((branch, branch), braced=True)
    assert print_tree(group) == (
        "OneOf braced=True\n  branches:\n    Step stream=a\n  branches:\n    Step stream=a"
    )
    compare = ast.Compare("==", ast.Name(ast.Ident("x")), ast.Literal("it's"))
    assert print_tree(compare) == ("Compare op='=='\n  Name ident=x\n  Literal value=\"it's\"")
    assert print_tree(ast.Keep(ast.Duration(1_000_000, "1s"))) == ("Keep duration=1s")
