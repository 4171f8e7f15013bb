"""What is wrong with a rule file, as data, and how it is shown to people.

In come findings of the parser and the checker, each with a code, a place and a hint; out comes
either a list of them in reading order, or their drawing with the source line and a caret. One
mistake gives one message, and all mistakes are told at once.
"""

from __future__ import annotations

import difflib
import unicodedata
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Literal

from dsl.source import Span

Severity = Literal["error", "warning"]

TAB = 4
"""Columns that a tab is drawn with."""

WIDEST = 100
"""Columns of source text drawn at most; a longer line is cut around the place meant."""


@dataclass(frozen=True)
class Label:
    """A second place that helps to understand a diagnostic, with a few words."""

    span: Span
    text: str


@dataclass(frozen=True)
class Diagnostic:
    """One finding: `code` (see `dsl.codes`), where, what, and how to repair it.

    >>> from dsl.diagnostics import Diagnostic, draw
    >>> from dsl.source import Source, Span
    >>> span = Span(Source("a.cep", "rule x"), 5, 6)
    >>> print(draw(Diagnostic("E001", span, "expected a title")))
    error[E001]: expected a title
     --> a.cep:1:6
      |
    1 | rule x
      |      ^
    """

    code: str
    span: Span
    message: str
    help: str | None = None
    labels: tuple[Label, ...] = ()
    severity: Severity = "error"


class RuleError(ValueError):
    """Rules that cannot be used; `diagnostics` says why, `str()` is the drawing of all of them."""

    def __init__(self, diagnostics: Iterable[Diagnostic]) -> None:
        self.diagnostics = tuple(diagnostics)
        super().__init__("\n\n".join(draw(diagnostic) for diagnostic in self.diagnostics))


class Diagnostics:
    """Collects findings; iterating gives them in reading order, each once."""

    def __init__(self, found: Iterable[Diagnostic] = ()) -> None:
        self._found: dict[Diagnostic, None] = dict.fromkeys(found)

    def error(
        self,
        code: str,
        span: Span,
        message: str,
        *,
        help: str | None = None,
        labels: Iterable[Label] = (),
    ) -> None:
        """Add a finding that makes the rules unusable."""
        self.add(Diagnostic(code, span, message, help, tuple(labels), "error"))

    def warning(
        self,
        code: str,
        span: Span,
        message: str,
        *,
        help: str | None = None,
        labels: Iterable[Label] = (),
    ) -> None:
        """Add a finding that leaves the rules usable."""
        self.add(Diagnostic(code, span, message, help, tuple(labels), "warning"))

    def add(self, diagnostic: Diagnostic) -> None:
        """Add a finding; one that is already there is not added again."""
        self._found.setdefault(diagnostic)

    def extend(self, diagnostics: Iterable[Diagnostic]) -> None:
        """Add several findings."""
        for diagnostic in diagnostics:
            self.add(diagnostic)

    @property
    def has_errors(self) -> bool:
        """Whether anything found makes the rules unusable."""
        return any(diagnostic.severity == "error" for diagnostic in self._found)

    def sorted(self) -> list[Diagnostic]:
        """All findings: files in the order they were met, then by place, then by code."""
        files: dict[int, int] = {}
        for diagnostic in self._found:
            files.setdefault(id(diagnostic.span.source), len(files))
        return sorted(
            self._found,
            key=lambda d: (files[id(d.span.source)], d.span.start, d.span.end, d.code),
        )

    def raise_errors(self) -> None:
        """Raise `RuleError` with all errors, if there are any."""
        errors = [diagnostic for diagnostic in self.sorted() if diagnostic.severity == "error"]
        if errors:
            raise RuleError(errors)

    def __iter__(self) -> Iterator[Diagnostic]:
        return iter(self.sorted())

    def __len__(self) -> int:
        return len(self._found)


def did_you_mean(name: str, candidates: Iterable[str]) -> str | None:
    """The candidate that looks most like `name`, if one looks like it at all.

    >>> did_you_mean("usr", ["host", "user"])
    'user'
    """
    by_lower = {candidate.lower(): candidate for candidate in candidates if candidate != name}
    close = difflib.get_close_matches(name.lower(), by_lower, n=1, cutoff=0.66)
    return by_lower[close[0]] if close else None


def slip_of(name: str, candidates: Iterable[str]) -> str | None:
    """The candidate of which `name` is a slip: another case, or a letter in three wrong, missing,
    too many or exchanged with the next. For names that may well be right as they are.

    >>> slip_of("amuont", ["amount"]), slip_of("Login", ["login"]), slip_of("usr", ["user"])
    ('amount', 'login', 'user')
    >>> slip_of("message", ["times_changed"]), slip_of("ip", ["pid", "id"]), slip_of("a", ["b"])
    (None, None, None)
    """
    most = len(name) // 3
    near = [(_slips(name.lower(), other.lower()), other) for other in candidates if other != name]
    slips, best = min(near, default=(most + 1, name))
    return best if slips <= most else None


def _slips(name: str, other: str) -> int:
    """How many letters must change for one name to become the other (Damerau and Levenshtein)."""
    before: list[int] = []
    row = list(range(len(other) + 1))
    for i, letter in enumerate(name):
        next_row = [i + 1]
        for j, another in enumerate(other):
            cost = min(row[j] + (letter != another), row[j + 1] + 1, next_row[j] + 1)
            if i and j and letter == other[j - 1] and name[i - 1] == another:
                cost = min(cost, before[j - 1] + 1)
            next_row.append(cost)
        before, row = row, next_row
    return row[-1]


# ------------------------------------------------------------------------------------- drawing


def draw(diagnostic: Diagnostic, color: bool = False) -> str:
    """The diagnostic as text for a terminal: code, place, source line with carets, help."""
    paint = _Paint(color)
    marks = sorted(
        [
            (diagnostic.span, "", True),
            *((label.span, label.text, False) for label in diagnostic.labels),
        ],
        key=lambda mark: not mark[2],
    )
    margin = len(str(max(_last_line(span) for span, _, _ in marks)))
    tone = "red" if diagnostic.severity == "error" else "yellow"
    head = paint(tone, f"{diagnostic.severity}[{diagnostic.code}]")
    out = [f"{head}{paint('bold', ': ' + diagnostic.message)}"]
    out += _places(marks, margin, tone, paint)
    if diagnostic.help is not None:
        out += _help(diagnostic.help, margin, paint)
    return "\n".join(out)


_TONES = {"red": "1;31", "yellow": "1;33", "blue": "1;34", "green": "1;32", "bold": "1"}


class _Paint:
    """Puts ANSI colours around text, or does not."""

    def __init__(self, color: bool) -> None:
        self.color = color

    def __call__(self, tone: str, text: str) -> str:
        return f"\x1b[{_TONES[tone]}m{text}\x1b[0m" if self.color and text else text


_Mark = tuple[Span, str, bool]  # where, what to say there, whether it is the main place


def _places(marks: list[_Mark], margin: int, tone: str, paint: _Paint) -> list[str]:
    """The source lines of all marks, the file of the main one first."""
    out: list[str] = []
    gutter = paint("blue", " " * margin + " |")
    for source in dict.fromkeys(span.source for span, _, _ in marks):
        here = [mark for mark in marks if mark[0].source is source]
        arrow = "-->" if not out else ":::"
        out.append(f"{' ' * margin}{paint('blue', arrow)} {here[0][0]}")
        out.append(gutter)
        previous = 0
        for number, on_line in _by_line(here):
            if previous and number > previous + 1:
                out.append(paint("blue", "..."))
            previous = number
            text = source.line(number)
            out += _line(text, number, on_line, margin, tone, paint)
    return out


@dataclass(frozen=True)
class _Stretch:
    """A mark on one line: character columns from 0, `end` exclusive."""

    start: int
    end: int
    text: str
    main: bool


def _by_line(marks: list[_Mark]) -> list[tuple[int, list[_Stretch]]]:
    """The stretches to underline, by line number; a mark over lines gives its first and last."""
    lines: dict[int, list[_Stretch]] = {}
    for span, text, main in marks:
        first, last = span.line, _last_line(span)
        start = span.column - 1
        if first == last:
            end = max(span.end - span.source.line_starts[first - 1], start + 1)
            lines.setdefault(first, []).append(_Stretch(start, end, text, main))
            continue
        end_first = max(len(span.source.line(first)), start + 1)
        lines.setdefault(first, []).append(_Stretch(start, end_first, "", main))
        tail = span.source.line(last)
        indent = len(tail) - len(tail.lstrip())
        end = span.end - span.source.line_starts[last - 1]
        lines.setdefault(last, []).append(_Stretch(min(indent, end - 1), end, text, main))
    return sorted(lines.items())


def _last_line(span: Span) -> int:
    return span.source.position(max(span.start, span.end - 1))[0]


def _line(
    text: str, number: int, stretches: list[_Stretch], margin: int, tone: str, paint: _Paint
) -> list[str]:
    """One source line and, under it, a line for each stretch."""
    cells = [_cell(char) for char in text]
    edges = [0]
    for cell in cells:
        edges.append(edges[-1] + _width(cell))
    left, right = _window(edges, stretches)
    shown = "".join(cells[left:right])
    before = "…" if left else ""
    after = "…" if right < len(cells) else ""
    out = [f"{paint('blue', f'{number:>{margin}} |')} {before}{shown}{after}".rstrip()]
    for stretch in sorted(stretches, key=lambda s: not s.main):
        start = min(max(stretch.start, left), len(cells))
        end = min(stretch.end, right)
        pad = len(before) + edges[start] - edges[left]
        length = max(edges[end] - edges[start], 1) if end > start else 1
        underline = ("^" if stretch.main else "-") * length
        note = f" {stretch.text}" if stretch.text else ""
        shade = tone if stretch.main else "blue"
        gutter = paint("blue", " " * margin + " |")
        out.append(f"{gutter} {' ' * pad}{paint(shade, underline + note)}")
    return out


def _cell(char: str) -> str:
    """How one character is drawn: tabs as blanks, what cannot be seen as a sign for it."""
    if char == "\ufeff":
        return ""
    if char == "\t":
        return " " * TAB
    if unicodedata.category(char) in ("Cc", "Cf", "Cs", "Zl", "Zp"):
        return "\N{REPLACEMENT CHARACTER}"
    return char


def _width(cell: str) -> int:
    """Terminal columns of a drawn character."""
    if not cell or unicodedata.combining(cell[0]):
        return 0
    wide = unicodedata.east_asian_width(cell[0]) in ("W", "F")
    return len(cell) * (2 if wide else 1)


def _window(edges: list[int], stretches: list[_Stretch]) -> tuple[int, int]:
    """The range of characters to show: all, or in a very long line those around the main mark."""
    count = len(edges) - 1
    if edges[-1] <= WIDEST:
        return 0, count
    main = min(stretches, key=lambda s: (not s.main, s.start))
    left = right = min(main.start, count)
    while left > 0 and edges[right] - edges[left] < WIDEST // 3:
        left -= 1
    while right < count and edges[right + 1] - edges[left] <= WIDEST:
        right += 1
    while left > 0 and edges[right] - edges[left - 1] <= WIDEST:
        left -= 1
    return left, right


def _help(text: str, margin: int, paint: _Paint) -> list[str]:
    """The help line; further lines of the text are indented under the first."""
    first, *rest = text.splitlines() or [""]
    pad = " " * margin
    bar = paint("blue", "=")
    return [
        f"{pad} {bar} {paint('green', 'help')}: {first}",
        *(f"{pad}         {line}" for line in rest),
    ]
