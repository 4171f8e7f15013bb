"""Imports go down the ladder: a room knows the rooms below it and none above."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]

LADDER = [
    {"cep.__main__"},
    {"cep.cli"},
    {"cep.explain", "cep.testing"},
    {"cep.async_engine", "cep.reading"},
    {"cep.engine"},
    {"cep.keeper", "cep.upkeep"},
    {"cep.skim"},
    {"cep.ingest", "cep.positions", "cep.spill"},
    {"cep.sink", "cep.state"},
    {"cep.caps", "cep.ruleset", "cep.stats"},
    {"cep.lookup_files"},
    {"cep.compile"},
    {"cep.source"},
    {"cep.clock"},
    {"cep.runtime"},
    {"cep.plan"},
    {"cep.match"},
    {"cep.key"},
    {"cep.event", "cep.given"},
    {"cep.event_time"},
    {"dsl"},
]
"""The rooms from the top down. Rooms of one step may not import each other unless `BESIDE` says."""

BESIDE = {("cep.state", "cep.sink"), ("cep.testing", "cep.explain")}
"""Pairs of one step of which the first may import the second."""

ONLY = {
    "lark": {"dsl/tables.py"},
    "click": {"cep/cli"},
    "rich": {"cep/cli", "cep/sink/text.py"},
    "sqlite3": {"cep/state/sqlite", "cep/sink/sqlite.py", "cep/source/tables.py"},
    "sqlite_utils": {"cep/state/sqlite", "cep/sink/sqlite.py"},
}
"""Libraries and the only places that may import them."""


def modules() -> list[Path]:
    """All modules of the product."""
    return sorted([*ROOT.glob("dsl/**/*.py"), *ROOT.glob("cep/**/*.py")])


def imported(path: Path) -> set[str]:
    """Names of all modules that a file imports, wherever in it."""
    names: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module is not None:
            names.add(node.module)
            names |= {f"{node.module}.{alias.name}" for alias in node.names}
    return names


def room(name: str) -> tuple[int, str] | None:
    """The step of the ladder, and the room, that a module name stands in."""
    for step, rooms in enumerate(LADDER):
        for each in rooms:
            if name == each or name.startswith(each + "."):
                return step, each
    return None


def name_of(path: Path) -> str:
    parts = path.relative_to(ROOT).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


@pytest.mark.parametrize("path", modules(), ids=name_of)
def test_imports_go_down(path: Path) -> None:
    own = room(name_of(path))
    if own is None:
        assert name_of(path) in ("cep", "cep.extend"), "every module stands in a room"
        return
    for name in imported(path):
        other = room(name)
        if other is None or other[1] == own[1]:
            continue
        beside = other[0] == own[0] and (own[1], other[1]) in BESIDE
        assert other[0] > own[0] or beside, f"{name_of(path)} imports {name}, which stands above it"


@pytest.mark.parametrize("path", modules(), ids=name_of)
def test_libraries_stay_in_their_rooms(path: Path) -> None:
    place = path.relative_to(ROOT).as_posix()
    for name in imported(path):
        allowed = ONLY.get(name.split(".")[0])
        if allowed is not None:
            assert any(place == each or place.startswith(each + "/") for each in allowed), name


def test_the_reference_matcher_stands_alone() -> None:
    """It exists to be compared with: it shares nothing with what it is compared to."""
    for path in ROOT.glob("cep/testing/reference*.py"):
        for name in imported(path):
            assert not name.startswith(("cep.plan", "cep.compile", "cep.runtime", "cep.engine"))
