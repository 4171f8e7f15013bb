"""The reference matcher shares nothing with what it is compared with."""

from __future__ import annotations

import ast
import sys
from pathlib import Path

import pytest

FOLDER = Path(__file__).resolve().parents[2] / "cep" / "testing"
FILES = sorted(FOLDER.glob("reference*.py"))
OUTSIDE = {"re2"}


def imported(path: Path) -> set[str]:
    names: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            names.add(node.module or "")
    return names


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_it_imports_only_the_language(path: Path) -> None:
    for name in imported(path):
        top = name.split(".")[0]
        fine = top == "dsl" or top in sys.stdlib_module_names or top in OUTSIDE
        assert fine or name.startswith("cep.testing.reference"), name


def test_there_are_such_files() -> None:
    assert len(FILES) >= 5
