"""States of all formats that were ever written can be read, and go on as they would have."""

from __future__ import annotations

import json

import pytest
from make_fixtures import CASES, FOLDER, WINDOWS, made, run

import cep
from cep.engine import Engine
from cep.state import window_codec
from cep.state.codec import FORMAT, FORMATS, UnreadableState
from cep.state.snapshot import restore

FIXTURES = sorted([*FOLDER.glob("format-*.json"), *FOLDER.glob("windows-*.json")])


def stored(path) -> tuple[Engine, dict]:
    fixture = json.loads(path.read_text())
    return Engine(cep.loads(fixture["rules"])), fixture


@pytest.mark.parametrize("path", FIXTURES, ids=lambda path: path.stem)
def test_a_stored_state_goes_on(path) -> None:
    engine, fixture = stored(path)
    restore(engine.program, fixture["kept"], engine.ingest.decode)
    assert fixture["found"], "a fixture shows nothing when nothing comes of it"
    assert run(engine, fixture["after"]) == fixture["found"]


@pytest.mark.parametrize("name", CASES)
def test_what_comes_later_depends_on_the_state(name) -> None:
    case = CASES[name]
    assert run(Engine(cep.loads(case.rules)), case.after) != made(case)["found"]


def test_every_form_of_the_present_format_has_a_fixture() -> None:
    assert {path.stem for path in FIXTURES} >= {f"format-{FORMAT}-{name}" for name in CASES}
    present = {f"windows-{window_codec.FORMAT}-{name}" for name in (*WINDOWS, "pieces")}
    assert {path.stem for path in FIXTURES} >= present
    kept = [json.loads(path.read_text())["kept"]["states"] for path in FIXTURES]
    kinds = {kind for states in kept for kind, *_ in states}
    assert kinds == {"runs", "windows", "dedup", "tables", "repeats"}
    for name in ("list", "one", "hash", "single"):
        program = cep.loads(CASES[name].rules).program()
        assert name in {slot.form for slot in program.rules[0].plan.slots}


@pytest.mark.parametrize("path", FIXTURES[:3] + FIXTURES[-3:], ids=lambda path: path.stem)
def test_a_format_of_a_newer_version_is_named(path) -> None:
    engine, fixture = stored(path)
    newer = max(FORMATS) + 1
    for row in fixture["kept"]["states"]:
        row[3] = json.dumps({**json.loads(row[3]), "f": newer})
    with pytest.raises(UnreadableState, match=rf"format {newer}, .* written by a newer one"):
        restore(engine.program, fixture["kept"], engine.ingest.decode)
