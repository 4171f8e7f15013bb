"""Generated Python, line by line, with indentation."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager


class Writer:
    """Collects lines of code.

    >>> w = Writer()
    >>> with w.block("if x:"):
    ...     w("y = 1")
    >>> print(w.text(), end="")
    if x:
        y = 1
    """

    def __init__(self) -> None:
        self._lines: list[str] = []
        self._depth = 0

    def __call__(self, line: str) -> None:
        self._lines.append("    " * self._depth + line)

    def lines(self, text: str) -> None:
        """Writes lines that were made elsewhere, at this depth."""
        for line in text.splitlines():
            self(line)

    @contextmanager
    def block(self, head: str) -> Iterator[None]:
        """Indents what is written inside; a block that stays empty gets a `pass`."""
        self(head)
        before = len(self._lines)
        self._depth += 1
        yield
        if len(self._lines) == before:
            self("pass")
        self._depth -= 1

    def text(self) -> str:
        return "\n".join(self._lines) + "\n"
