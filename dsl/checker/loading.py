"""Which files belong together: `include` followed, each file once, cycles reported."""

from __future__ import annotations

import os.path
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from dsl import ast
from dsl.diagnostics import Diagnostics, Label
from dsl.parser import parse
from dsl.source import Source, Span

Read = Callable[[str], str]
"""Gives the text of a path; raises OSError or UnicodeDecodeError."""


def read_file(path: str) -> str:
    """The text of a rule file on disk."""
    return Path(path).read_text(encoding="utf-8-sig")


@dataclass(frozen=True)
class Loaded:
    """One file with what it says; `included` when only another file asked for it, `shared` when
    another file asks for it, whether it is given as well (as all files of a folder are) or not."""

    file: ast.File
    source: Source
    included: bool
    shared: bool = False


def load(
    files: Sequence[tuple[ast.File, Source]], read: Read, found: Diagnostics
) -> tuple[Loaded, ...]:
    """The files given and all that they include, included ones before those that include them."""
    loader = _Loader(read, found)
    loader.given.update(_identity(source.name) for _, source in files)
    for file, source in files:
        loader.add(file, source, included=False)
    return tuple(
        replace(one, shared=_identity(one.source.name) in loader.asked_for) for one in loader.loaded
    )


def _identity(path: str) -> str:
    return os.path.normpath(path)


class _Loader:
    def __init__(self, read: Read, found: Diagnostics) -> None:
        self.read = read
        self.found = found
        self.given: set[str] = set()
        self.loaded: list[Loaded] = []
        self.texts: dict[str, tuple[ast.File, Source]] = {}
        self.done: set[str] = set()
        self.asked_for: set[str] = set()

    def add(self, file: ast.File, source: Source, *, included: bool) -> None:
        """Load a file after all that it includes. Not recursive: chains may be long."""
        name = _identity(source.name)
        if name in self.done and included:
            return
        open_files: dict[str, Span] = {name: Span(source, 0, 0)}
        stack = [(name, file, source, included, iter(_includes(file)))]
        while stack:
            name, file, source, included, includes = stack[-1]
            include = next(includes, None)
            if include is None:
                stack.pop()
                del open_files[name]
                if name not in self.done or not included:
                    self.done.add(name)
                    self.loaded.append(Loaded(file, source, included))
                continue
            child = self._find(include, source)
            if child is None:
                continue
            path = _identity(child[1].name)
            if path in open_files:
                self._cycle(include, open_files, path)
            elif path not in self.done and path not in self.given:
                open_files[path] = include.span
                stack.append((path, *child, True, iter(_includes(child[0]))))

    def _find(self, include: ast.Include, source: Source) -> tuple[ast.File, Source] | None:
        """The file that an `include` names, relative to the file it stands in."""
        path = os.path.normpath(os.path.join(os.path.dirname(source.name), include.path))
        self.asked_for.add(path)
        if path in self.given and path != _identity(source.name):
            return None if path in self.done else self._read(include, path)
        return self._read(include, path)

    def _read(self, include: ast.Include, path: str) -> tuple[ast.File, Source] | None:
        if path in self.texts:
            return self.texts[path]
        try:
            source = Source(path, self.read(path))
        except OSError as error:
            reason = error.strerror or str(error)
            self._unreadable(include, path, reason)
            return None
        except (UnicodeDecodeError, ValueError):
            self._unreadable(include, path, "it is not UTF-8 text")
            return None
        file, problems = parse(source)
        self.found.extend(problems)
        self.texts[path] = (file, source)
        return file, source

    def _unreadable(self, include: ast.Include, path: str, reason: str) -> None:
        self.found.error(
            "E048",
            include.span,
            f"cannot read `{path}`: {reason}",
            help="an include is looked for beside the file that it stands in",
        )

    def _cycle(self, include: ast.Include, open_files: dict[str, Span], path: str) -> None:
        names = list(open_files)
        chain = [*names[names.index(path) :], path]
        first = open_files[path]
        labels = [Label(first, "included here")] if first.end > first.start else []
        self.found.error(
            "E049",
            include.span,
            "files include each other in a circle: " + " → ".join(f"`{name}`" for name in chain),
            help="put what both need into a third file",
            labels=labels,
        )


def _includes(file: ast.File) -> list[ast.Include]:
    return [statement for statement in file.statements if isinstance(statement, ast.Include)]
