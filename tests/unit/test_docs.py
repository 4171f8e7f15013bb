"""Runs every code block of the README and of the pages under docs/.

The blocks of a page are run from top to bottom in one empty folder, so that a page is a session
that a reader can type along with. What a block is for is said by its language, and where that is
not enough by an HTML comment on the line above it, which readers do not see:

* `<!-- file: NAME -->`    the block is written to a file of that name
* `<!-- append: NAME -->`  the block is written to the end of that file
* `console`                lines after `$ ` are run by a shell, the others are what it must print
* `python`                 run as a program; a block after `<!-- output -->` is what it must print
* `pycon`                  a session of Python, in which the public names of cep are known
* `cep`                    must pass the check, and its tests must pass (a file too)
* `<!-- wrong: E012 -->`   rules that the check refuses, or warns of, with that code
* `<!-- diagram: RULE FILE -->` what `cep explain --diagram` shows for a rule of a file of the page
* `json`                   each line must be JSON
* `<!-- tree -->`          the paths in the first column must exist in the project
* `<!-- not run: WHY -->`  for what cannot be run here

In printed text `…` stands for any text within a line, or alone for any number of lines.
"""

from __future__ import annotations

import doctest
import importlib.util
import io
import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

import cep
from cep.explain.diagram import diagram, to_mermaid
from cep.testing.runner import run_tests
from dsl.formatter import format_file
from dsl.parser import parse
from dsl.source import Source

ROOT = Path(__file__).resolve().parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
BLOCK = re.compile(
    r"^(?:<!-- (?P<note>[^\n]*) -->\n)?```(?P<language>\w*)\n(?P<text>.*?)^```$", re.M | re.S
)


class NotSo(Exception):
    """Something is not as the page says; what, is the message."""


@dataclass(frozen=True)
class Block:
    """A fenced block: `note` is what the comment above it says."""

    line: int
    language: str
    note: str
    text: str


def blocks(page: Path) -> Iterator[Block]:
    text = page.read_text(encoding="utf-8")
    for found in BLOCK.finditer(text):
        line = text.count("\n", 0, found.start("language")) + 1
        yield Block(line, found["language"], found["note"] or "", found["text"])


@dataclass
class Session:
    """A reader who types along in the folder `home`."""

    home: Path
    printed: str | None = None

    def follow(self, block: Block) -> None:
        """Do what the block shows. Raises NotSo if it turns out otherwise."""
        kind, _, name = block.note.partition(": ")
        if kind in ("file", "append"):
            self.write(name, block, "a" if kind == "append" else "w")
        elif kind == "output":
            check_printed(block.text, self.printed or "")
        elif kind == "tree":
            check_tree(block.text)
        elif kind == "wrong":
            check_wrong(block.text, name)
        elif kind == "diagram":
            self.check_diagram(block.text, *name.split())
        elif kind != "not run":
            self.run(block)

    def write(self, name: str, block: Block, mode: str) -> None:
        path = self.home / name
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open(mode, encoding="utf-8") as file:
            file.write(block.text)
        if block.language == "cep":
            self.check_rules(name)

    def run(self, block: Block) -> None:
        if block.language == "console":
            for command, shown in commands(block.text):
                check_printed(shown, self.shell(command))
        elif block.language == "python":
            (self.home / "_block.py").write_text(block.text, encoding="utf-8")
            self.printed = self.shell("python _block.py")
        elif block.language == "pycon":
            check_session(block.text)
        elif block.language == "cep":
            (self.home / "_block.cep").write_text(block.text, encoding="utf-8")
            self.check_rules("_block.cep")
        elif block.language == "json":
            for line in block.text.splitlines():
                json.loads(line)
        else:
            raise AssertionError(
                f"a block in {block.language or 'no language'}, not run by anything"
            )

    def check_rules(self, name: str) -> None:
        try:
            ruleset = cep.load(self.home / name)
            failed = [result for result in run_tests(ruleset) if not result.passed]
        except cep.RuleError as error:
            raise NotSo(str(error)) from None
        if failed:
            raise NotSo("\n\n".join(f'"{one.test.name}": {one.message}' for one in failed))

    def check_diagram(self, text: str, rule: str, file: str) -> None:
        drawn = to_mermaid(diagram(cep.load(self.home / file).rules[rule]))
        if drawn.strip() != text.strip():
            raise NotSo(f"the diagram is\n{drawn}")

    def shell(self, command: str) -> str:
        """What a command prints, its errors included; `cep` and `python` are those under test."""
        tools = self.home.parent / "tools"
        environment = {
            **os.environ,
            "PATH": f"{tools}{os.pathsep}{os.environ['PATH']}",
            "PYTHONPATH": str(ROOT),
            "NO_COLOR": "1",
            "COLUMNS": "100",
        }
        done = subprocess.run(
            ["/bin/sh", "-c", command],
            cwd=self.home,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            timeout=120,
        )
        return done.stdout.decode("utf-8", "replace")


def commands(text: str) -> Iterator[tuple[str, str]]:
    """The commands of a console block, each with what it prints."""
    for part in re.split(r"^\$ ", text, flags=re.M)[1:]:
        lines = part.split("\n")
        end = 1
        while lines[end - 1].endswith("\\"):
            end += 1
        yield "\n".join(lines[:end]), "\n".join(lines[end:])


def check_printed(shown: str, printed: str) -> None:
    pattern = "".join(
        r"(?:.*\n)*?" if line.strip() == "…" else line_pattern(line) + r"[ \t]*\n"
        for line in shown.strip("\n").split("\n")
        if shown.strip()
    )
    printed = printed.strip("\n") + "\n" if printed.strip() else ""
    if not re.fullmatch(pattern, printed):
        raise NotSo(f"shown:\n{shown}\nprinted:\n{printed}")


def check_session(text: str) -> None:
    names = {name: getattr(cep, name) for name in cep.__all__}
    example = doctest.DocTestParser().get_doctest(text, names, "session", None, None)
    said = io.StringIO()
    doctest.DocTestRunner().run(example, out=said.write)
    if said.getvalue():
        raise NotSo(said.getvalue())


def check_wrong(text: str, code: str) -> None:
    try:
        ruleset = cep.loads(text)
        found = {one.code for one in ruleset.warnings} if ruleset.compiled else set()
    except cep.RuleError as error:
        found = {one.code for one in error.diagnostics}
    if code not in found:
        raise NotSo(f"shown as {code}, found: {', '.join(sorted(found)) or 'nothing'}")


def line_pattern(line: str) -> str:
    return ".*".join(re.escape(part) for part in line.rstrip().split("…"))


def check_tree(text: str) -> None:
    for line in text.splitlines():
        if line.strip() and not (ROOT / line.split()[0]).exists():
            raise NotSo(f"no {line.split()[0]} in the project")


@pytest.fixture
def session(tmp_path: Path) -> Session:
    tools, home = tmp_path / "tools", tmp_path / "home"
    for folder in (tools, home):
        folder.mkdir()
    for name, command in (("cep", f"{sys.executable} -m cep"), ("python", sys.executable)):
        (tools / name).write_text(f'#!/bin/sh\nexec {command} "$@"\n')
        (tools / name).chmod(0o755)
    return Session(home)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_every_block_does_what_the_page_says(page: Path, session: Session) -> None:
    for block in blocks(page):
        try:
            session.follow(block)
        except NotSo as error:
            mistake = f"{page.relative_to(ROOT)}:{block.line}\n{error}"
            break
    else:
        return
    pytest.fail(mistake, pytrace=False)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_every_fence_is_seen(page: Path) -> None:
    fences = re.findall(r"^\s*```", page.read_text(encoding="utf-8"), re.M)
    assert len(fences) == 2 * len(list(blocks(page)))


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_lead_somewhere(page: Path) -> None:
    for target in re.findall(r"\]\(([^)#]+)[^)]*\)", page.read_text(encoding="utf-8")):
        if "://" not in target:
            assert (page.parent / target).exists(), f"{page.name} links to {target}"


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_rules_are_in_canonical_form(page: Path) -> None:
    for block in blocks(page):
        if block.language == "cep" and not block.note.startswith("wrong"):
            source = Source(f"{page.relative_to(ROOT)}:{block.line}", block.text)
            assert format_file(parse(source)[0], source) == block.text


def test_a_wrong_output_is_noticed() -> None:
    check_printed("a\n…\nz…\n", "a\nb\nc\nzz top\n")
    with pytest.raises(NotSo):
        check_printed("a\n", "b\n")
    with pytest.raises(NotSo):
        check_printed("a\n", "a\nb\n")
    with pytest.raises(NotSo):
        check_printed("", "something\n")


def script(name: str) -> Any:
    """A script of the documentation, as a module."""
    spec = importlib.util.spec_from_file_location(name, ROOT / "docs" / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_generated_pages_are_up_to_date() -> None:
    for name, make in script("make_reference").PAGES.items():
        text = (ROOT / "docs/reference" / name).read_text(encoding="utf-8")
        assert text == make(), f"run docs/make_reference.py: {name} is not what the code says"


def test_diagrams_are_up_to_date() -> None:
    making = script("make_pictures")
    for page in PAGES:
        text = page.read_text(encoding="utf-8")
        assert making.with_diagrams(text) == text, f"run docs/make_pictures.py: {page.name}"


def test_the_six_rules_are_those_of_the_pages_that_compare_them() -> None:
    folder = ROOT / "docs/coming-from"
    with_tests = "".join(block.text for block in blocks(folder / "six-rules.md"))
    for page in folder.glob("*.md"):
        rules = [block.text for block in blocks(page) if block.language == "cep"][:6]
        assert len(rules) == 6
        assert all(rule.split("\ntest ")[0] in with_tests for rule in rules), page.name


def test_examples_to_copy_are_free_of_warnings() -> None:
    pages = [ROOT / "docs/guide/patterns.md", *(ROOT / "docs/reference").glob("*.md")]
    pages.remove(ROOT / "docs/reference/errors.md")  # they show one thing each
    for page in pages:
        for block in blocks(page):
            if block.language == "cep" and not block.note:
                found = [one.message for one in cep.loads(block.text).warnings]
                assert not found, (page.name, block.line, found)


def test_the_site_is_built(tmp_path: Path) -> None:
    pytest.importorskip("material", reason="the extra `docs` is not installed")
    done = subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", "--strict", "-q", "-d", str(tmp_path)],
        cwd=ROOT,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert (tmp_path / "search/search_index.json").exists()
