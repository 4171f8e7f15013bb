"""Nothing that stands in a rule file or in the input raises, but for the errors that are promised.

Rule text: any text, and drawn rules with pieces lost, doubled and put elsewhere, give rules or
diagnostics. Input: any bytes, and events whose fields hold anything that JSON can say, are events
or rejects; and what comes of them does not depend on the form in which they come.
"""

from __future__ import annotations

import json
import re
from typing import Any

import pytest
from comparing import loaded
from drawn_rules import DECLARED, Drawn, RuleWriter, rules, steps_of, window_rules
from hypothesis import assume, given
from hypothesis import strategies as st
from test_engine_vs_reference import THOROUGH

import cep
from cep.source import open_source
from cep.source.base import SourceError
from cep.testing.events import START
from cep.testing.modes import Script, event_by_event, json_lines, outcome

ANY_RULE = st.one_of(rules(), rules(groups=True), window_rules())
PIECE = re.compile(r"\s*(?:\w+|.)")
STRAY = [
    "{",
    "}",
    "(",
    ")",
    '"',
    "/",
    "`",
    "#",
    "::",
    "=",
    "5",
    "5m",
    "where",
    "rule r",
    "\x00",
    "é",
]


@st.composite
def broken_rules(draw: Any) -> str:
    """A drawn rule, a few of its pieces lost, doubled, moved or replaced."""
    pieces = PIECE.findall(DECLARED + RuleWriter(Drawn(draw)).rule(groups=True))
    for _ in range(draw(st.integers(1, 4))):
        place = draw(st.integers(0, len(pieces) - 1))
        other = draw(st.integers(0, len(pieces) - 1))
        change = draw(st.integers(0, 4))
        if change == 0 and len(pieces) > 1:
            del pieces[place]
        elif change == 1:
            pieces.insert(place, pieces[other])
        elif change == 2:
            pieces[place], pieces[other] = pieces[other], pieces[place]
        elif change == 3:
            pieces.insert(place, " " + draw(st.sampled_from(STRAY)))
        else:
            pieces = pieces[: max(place, 1)]
    return "".join(pieces)


@THOROUGH
@given(st.one_of(st.text(max_size=60), broken_rules()))
def test_any_text_is_rules_or_has_diagnostics(text: str) -> None:
    try:
        ruleset = cep.loads(text)
    except cep.RuleError:
        return
    cep.Engine(ruleset).process({"type": "A", "time": 1, "n": 1, "k": 1})


JSON = st.recursive(
    st.one_of(
        st.none(), st.booleans(), st.integers(), st.floats(), st.text(max_size=5),
        st.sampled_from([2**53 + 1, 10**400, -0.0, "2026-01-01", "A", "", "1_0", 1e308]),
    ),
    lambda inner: st.one_of(
        st.lists(inner, max_size=3), st.dictionaries(st.text(max_size=3), inner, max_size=3)
    ),
    max_leaves=4,
)  # fmt: skip
RECORDS = st.lists(
    st.fixed_dictionaries(
        {"type": st.sampled_from(["A", "B", "C"]) | JSON},
        optional=dict.fromkeys(["k", "n", "j", "m", "time"], JSON),
    ),
    max_size=6,
)


@THOROUGH
@given(ANY_RULE, RECORDS)
def test_any_values_in_the_fields(rule: str, records: list[dict[str, Any]]) -> None:
    ruleset = loaded(rule)
    assume(ruleset is not None)
    engine = cep.Engine(ruleset)
    found = [
        match
        for second, record in enumerate(records)
        for match in engine.process_at(record, START + second * 1_000_000)
    ]
    for match in found + engine.close() + cep.Engine(ruleset).process(records):
        match.to_json()


@THOROUGH
@given(ANY_RULE, RECORDS)
def test_the_form_of_events_does_not_matter(rule: str, records: list[dict[str, Any]]) -> None:
    ruleset = loaded(rule)
    assume(ruleset is not None)
    plain = [record for record in records if is_plain_json(record)]
    steps = steps_of([("A", 1, 1, 1, 1)] * len(plain))
    for step, record in zip(steps[1:], plain, strict=True):
        step.record.clear()
        step.record.update(record)
        step.timed.clear()
        step.timed.update({**record, "@timestamp": step.time})
    script = Script(ruleset, ["r"], steps)
    assert list(map(outcome, json_lines(script))) == list(map(outcome, event_by_event(script)))


def is_plain_json(record: dict[str, Any]) -> bool:
    """Whether a strict reader of JSON takes the record, and gives back the same."""
    text = json.dumps(record)
    fits = "NaN" not in text and "Infinity" not in text and not re.search(r"\d{19}", text)
    return fits and "@timestamp" not in text


@pytest.fixture(scope="module")
def ruleset() -> cep.Ruleset:
    return cep.loads(
        "rule r { by k  sequence within 1m { a: A where n > 1  b: B{1,2} where n > a.n  c: C } }\n"
        'rule s { aggregate event over sliding 1m { c = count()  t = sum(n) } alert "{t}" }'
    )


def test_any_bytes_are_events_or_rejects(ruleset: cep.Ruleset) -> None:
    line = st.one_of(
        st.binary(max_size=40),
        RECORDS.map(lambda records: json.dumps(records).encode()[1:-1]),
        st.just(b'{"type": "A", "k": 1, "n": 2, "time": 1}'),
    )

    @THOROUGH
    @given(st.lists(line, max_size=6))
    def process(lines: list[bytes]) -> None:
        engine = cep.Engine(ruleset)
        rejects: list[object] = []
        engine.on_reject = lambda *reject: rejects.append(reject)
        engine.process(lines)
        engine.close()
        stats = engine.stats
        assert stats.events + stats.late + len(rejects) == len(lines) + stats.late

    process()


@pytest.mark.parametrize("ending", ["jsonl", "json", "csv", "log", "syslog", "gz", "zst", "logfmt"])
def test_any_file_is_read_to_its_end(ruleset: cep.Ruleset, tmp_path: Any, ending: str) -> None:
    @THOROUGH
    @given(st.binary(max_size=200) | st.text(max_size=80).map(str.encode))
    def read(content: bytes) -> None:
        path = tmp_path / f"input.{ending}"
        path.write_bytes(content)
        engine = cep.Engine(ruleset)
        try:
            cep.run_sources(engine, [open_source(str(path))], on_matches=lambda matches: None)
        except (SourceError, OSError):
            return
        engine.close()

    read()
