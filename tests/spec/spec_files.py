"""The files of the specification, read and checked once."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from pathlib import Path

from dsl.checked import CheckedRules
from dsl.checker import check
from dsl.diagnostics import Diagnostic, draw
from dsl.parser import parse
from dsl.source import Source

FOLDER = Path(__file__).parent
FILES = sorted(FOLDER.glob("*.cep"))


@dataclass(frozen=True)
class Spec:
    """A file of the specification. It is a `cep.testing.runner.RuleSource`."""

    path: Path
    checked: CheckedRules


@cache
def read_spec(path: Path) -> Spec:
    """The checked rules of a file; an error in it fails whoever asks."""
    checked, found = check_text(path.read_text(), path.name)
    errors = [draw(each) for each in found if each.severity == "error"]
    assert checked is not None, "\n".join(errors)
    return Spec(path, checked)


def check_text(text: str, name: str = "<spec>") -> tuple[CheckedRules | None, list[Diagnostic]]:
    """Checked rules of a text, or None, and all findings."""
    source = Source(name, text)
    file, found = parse(source)
    if any(each.severity == "error" for each in found):
        return None, found
    checked, more = check([(file, source)])
    return checked, found + more
