"""Canonical layout of rule files.

In comes a parsed file with its source (for the comments and for what the author wrote on one line),
out comes text that parses to an equal tree; formatting it again changes nothing.

- A statement or block that stood on one line and fits in 100 columns stays on one line.
- Otherwise a block has one clause a line, two blanks deeper; `severity` and `tags` may share one.
- Labels, streams and conditions of steps stand in columns, and so do the `=` of fields.
- What is too long even so is broken before its clauses, and before `and` and `or`.
- Statements have one blank line between them; short ones that stood together stay together. Inside
  blocks the author's blank lines are kept, at most one at a time.
- A comment keeps to what it was with: on its own line before it, or at the end of its line. One in
  the middle of a clause moves before it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from dsl import ast
from dsl.source import Source, Span
from dsl.text import (
    GAP,
    action_head,
    aggregate_head,
    event_frame,
    expect_head,
    has_branch_braces,
    parts_of,
    pattern_head,
    rule_head,
    step_clauses,
    step_head,
    step_stream,
    stream_clauses,
    stream_head,
    test_head,
    to_text,
    words,
)

WIDTH = 100
"""Columns of a line; longer ones are broken where that is possible."""

INDENT = 2


def format_file(file: ast.File, source: Source) -> str:
    """The canonical text of a file that was parsed without errors from `source`. O(length).

    >>> from dsl.parser import parse
    >>> source = Source("a.cep", "rule a{on x   where(y==1)}# why")
    >>> print(format_file(parse(source)[0], source), end="")
    rule a { on x where y == 1 }  # why
    """
    printer = _Printer(source, sorted(file.comments, key=lambda comment: comment.span.start))
    printer.statements([_Item(s.span, s) for s in file.statements])
    text = "\n".join(printer.lines).strip("\n")
    return f"{text}\n" if text else ""


# ------------------------------------------------------------------------------ what to print


@dataclass(frozen=True)
class _Item:
    """Something that gets lines of its own: a node, a branch (a tuple of nodes), or two nodes that
    share a line. `tail` is written behind it (the comma of a list)."""

    span: Span
    node: ast.Node | tuple[ast.Node, ...]
    tail: str = ""
    beside: ast.Node | None = None

    @property
    def flat(self) -> str:
        """The item on one line."""
        if isinstance(self.node, tuple):
            return f"{{ {GAP.join(map(to_text, self.node))} }}"
        text = to_text(self.node)
        if self.beside is not None:
            text += f" {GAP}{to_text(self.beside)}"
        return text + self.tail


@dataclass(frozen=True)
class _Block:
    """A node that may go over several lines: head, items between brackets, and what follows.
    `search` is the offset from which the opening bracket is to be found in the source."""

    head: str
    items: list[_Item]
    search: int
    brackets: str = "{}"
    after: str = ""


def _items(nodes: Iterable[ast.Node], tail: str = "") -> list[_Item]:
    return [_Item(node.span, node, tail) for node in nodes]


def _separated(nodes: Sequence[ast.Node]) -> list[_Item]:
    """Items with a comma after each but the last."""
    return [*_items(nodes[:-1], ","), *_items(nodes[-1:])]


def _block(node: ast.Node | tuple[ast.Node, ...]) -> _Block | None:
    """The node as a block, if it is one."""
    if isinstance(node, tuple):
        return _Block("", _items(node), node[0].span.start, after="")
    start = node.span.start
    match node:
        case ast.Rule():
            return _Block(rule_head(node), _paired(node.clauses), start)
        case ast.Stream() if inside := stream_clauses(node):
            search = node.clauses[0].span.end if node.where_first else start
            return _Block(stream_head(node), _items(inside), search)
        case ast.Test():
            return _Block(test_head(node), _items(node.steps), start)
        case ast.List(items=ast.Array() as array):
            head = f"list {to_text(node.name)} ="
            return _Block(head, _items(array.items, ","), start, "[]")
        case ast.OnTimeout():
            return _Block("on timeout", _items(node.actions), start)
        case ast.StreamFields():
            return _Block("fields", _items(node.fields, ","), start)
        case ast.StreamSelect():
            return _Block("select", _items(node.assigns), start)
        case ast.Aggregate():
            return _Block(aggregate_head(node), _items(node.fields), node.window.span.end)
        case ast.Alert() | ast.Emit() if node.assigns:
            return _Block(action_head(node), _items(node.assigns), start)
    return _object_block(node) or _group_block(node)


def _group_block(node: ast.Node) -> _Block | None:
    """Patterns and groups."""
    start = node.span.start
    match node:
        case ast.Sequence():
            return _Block(pattern_head(node), _items(node.nodes), start)
        case ast.All() | ast.AllOf():
            return _Block(pattern_head(node), _items(node.parts), start)
        case ast.Repeat():
            return _Block(pattern_head(node), _items(node.body), node.quantifier.span.end)
        case ast.OneOf() if has_branch_braces(node):
            items = [_Item(b[0].span.to(b[-1].span), b) for b in node.branches]
            return _Block(pattern_head(node), items, start)
        case ast.OneOf():
            return _Block(pattern_head(node), _items(b[0] for b in node.branches), start)
    return None


def _object_block(node: ast.Node) -> _Block | None:
    """Steps of a test that have an object."""
    match node:
        case ast.TestEvent():
            before, after = event_frame(node)
            return _Block(
                before, _separated(node.object.pairs), node.object.span.start, "{}", after
            )
        case ast.TestExpect(object=ast.Object() as fields):
            return _Block(expect_head(node), _separated(fields.pairs), fields.span.start)
    return None


def _paired(clauses: Sequence[ast.Node]) -> list[_Item]:
    """The clauses of a rule; severity and tags on one line of the source share one."""
    items: list[_Item] = []
    for clause in clauses:
        last = items[-1] if items else None
        if last is not None and last.beside is None and isinstance(last.node, ast.Node):
            kinds = {type(last.node), type(clause)}
            span = last.span.to(clause.span)
            if kinds == {ast.Severity, ast.Tags} and "\n" not in span.text:
                items[-1] = _Item(span, last.node, beside=clause)
                continue
        items.append(_Item(clause.span, clause))
    return items


def _segments(node: ast.Node) -> list[tuple[str, ast.Node | None]]:
    """A clause in the pieces between which it may be broken: a text, and a node after it."""
    match node:
        case ast.Step():
            head = words(step_head(node), step_stream(node))
            return [(head, None), *step_clauses(node)]
        case ast.Absent():
            return [(f"no {to_text(node.stream)}", None), *step_clauses(node)]
        case ast.Unless():
            return [(f"unless {to_text(node.stream)}", None), *step_clauses(node)]
        case ast.On() if node.where is not None:
            label = None if node.label is None else f"{to_text(node.label)}:"
            return [(words("on", label, to_text(node.stream)), None), ("where", node.where)]
        case ast.Having():
            return [("having", node.condition)]
        case ast.StreamWhere():
            return [("where", node.condition)]
        case ast.AggregateField() if node.where is not None:
            return [(f"{to_text(node.name)} =", node.value), ("where", node.where)]
        case ast.Assign() | ast.AggregateField():
            return [(f"{to_text(node.name)} =", node.value)]
        case ast.Param():
            return [(f"param {to_text(node.name)} =", node.value)]
        case ast.Def():
            params = ", ".join(map(to_text, node.params))
            return [(f"def {to_text(node.name)}({params}) =", node.body)]
    return [(to_text(node), None)]


def _cells(node: ast.Node | tuple[ast.Node, ...]) -> tuple[str, ...] | None:
    """The columns of a line, for items that are written as a table."""
    match node:
        case ast.Step(label=ast.Ident()):
            rest = words(*(words(keyword, to_text(value)) for keyword, value in step_clauses(node)))
            return step_head(node), step_stream(node), rest
        case ast.Assign():
            return to_text(node.name), f"= {to_text(node.value)}"
        case ast.AggregateField():
            where = "" if node.where is None else f"where {to_text(node.where)}"
            return to_text(node.name), words(f"= {to_text(node.value)}", where)
    return None


def _aligned(items: list[_Item], room: int) -> dict[int, str]:
    """The lines of those items that stand in columns, by their position among the items."""
    if any(isinstance(item.node, ast.Step) and item.node.label is None for item in items):
        return {}
    table = {i: cells for i, item in enumerate(items) if (cells := _cells(item.node))}
    table = {i: cells for i, cells in table.items() if len(words(*cells)) <= room}
    if len(table) < 2:
        return {}
    width = [max(len(cells[k]) for cells in table.values()) for k in (0, 1)]
    lines = {}
    for i, cells in table.items():
        padded = [cell.ljust(width[k]) for k, cell in enumerate(cells[:-1])]
        lines[i] = " ".join([*padded, cells[-1]]).rstrip()
    return lines if max(map(len, lines.values())) <= room else {}


# ------------------------------------------------------------------------------ printing


@dataclass
class _Printer:
    """Writes lines and weaves the comments in; `seen` is how many of them are written."""

    source: Source
    comments: list[ast.Comment]
    lines: list[str] = field(default_factory=list)
    seen: int = 0
    at: int = 0

    # -------------------------------------------------------------------- statements

    def statements(self, items: list[_Item]) -> None:
        """All statements of a file and the comments between them."""
        tall = False
        for item in items:
            before = len(self.lines)
            self.comments_before(item.span.start, 0, tall)
            commented = len(self.lines) > before
            start = len(self.lines)
            gap = self.blank_before(item.span.start)
            self.item(item, 0)
            now_tall = len(self.lines) - start > 1
            if self.lines[:start] and (gap or (not commented and (tall or now_tall))):
                self.lines.insert(start, "")
            tall = now_tall
        self.comments_before(len(self.source.text) + 1, 0, tall)

    # -------------------------------------------------------------------- comments

    def comments_before(self, offset: int, indent: int, apart: bool = False) -> None:
        """The comments that begin before `offset`, on lines of their own; `apart`: the first one
        gets a blank line before it."""
        while self.seen < len(self.comments) and self.comments[self.seen].span.start < offset:
            comment = self.comments[self.seen]
            self.seen += 1
            if self.lines and (apart or self.blank_before(comment.span.start)):
                self.blank_line()
            apart = False
            self.lines.append(" " * indent + comment.text)
            self.at = comment.span.end

    def comment_behind(self, offset: int) -> None:
        """A comment that follows `offset` on the same line, behind the last line written."""
        self.at = offset
        if self.seen == len(self.comments):
            return
        comment = self.comments[self.seen]
        between = self.source.text[offset : comment.span.start]
        if comment.span.start >= offset and _NOTHING.fullmatch(between):
            self.lines[-1] += f"{GAP}{comment.text}"
            self.seen += 1
            self.at = comment.span.end

    def blank_before(self, offset: int) -> bool:
        """Whether the author left a blank line between what was written last and `offset`."""
        return _BLANK_LINE.search(self.source.text[self.at : offset]) is not None

    def blank_line(self) -> None:
        """A blank line, unless there is one."""
        if self.lines and self.lines[-1]:
            self.lines.append("")

    # -------------------------------------------------------------------- items

    def item(self, item: _Item, indent: int, aligned: str | None = None) -> None:
        """One item with the comments before and behind it."""
        room = WIDTH - indent
        block = _block(item.node)
        commented = self.commented(item.span)
        if block is None:
            self.comments_before(item.span.end, indent)
        if block is None and len(item.flat) <= room:
            self.lines.append(" " * indent + (aligned or item.flat))
        elif block is None:
            assert isinstance(item.node, ast.Node)
            self.broken(item.node, indent, item.tail)
        elif not commented and "\n" not in item.span.text and len(item.flat) <= room:
            self.lines.append(" " * indent + item.flat)
        else:
            self.block(block, item, indent)
        self.comment_behind(item.span.end)

    def commented(self, span: Span) -> bool:
        """Whether a comment stands inside the span."""
        if self.seen == len(self.comments):
            return False
        return self.comments[self.seen].span.start < span.end

    def block(self, block: _Block, item: _Item, indent: int) -> None:
        """Head, items and end on lines of their own."""
        opening = self.opening(block, item)
        if block.head:
            self.comments_before(opening, indent)
        head = words(block.head, block.brackets[0])
        self.lines.append(" " * indent + head)
        self.comment_behind(opening)
        aligned = _aligned(block.items, WIDTH - indent - INDENT)
        inner = indent + INDENT
        for i, inside in enumerate(block.items):
            self.comments_before(inside.span.start, inner)
            if i and self.blank_before(inside.span.start):
                self.blank_line()
            self.item(inside, inner, aligned.get(i))
        self.comments_before(self.closing(block, item), inner)
        self.lines.append(" " * indent + words(block.brackets[1], block.after) + item.tail)

    def opening(self, block: _Block, item: _Item) -> int:
        """The offset behind the opening bracket."""
        if not block.head:
            return item.span.start
        for mark in _MARKS.finditer(self.source.text, block.search, item.span.end):
            if mark[0] == block.brackets[0]:
                return mark.end()
        return item.span.start

    def closing(self, block: _Block, item: _Item) -> int:
        """The offset of the closing bracket: comments before it are inside the block."""
        if not block.head:
            close = self.source.text.find("}", item.span.end)
            gap = self.source.text[item.span.end : max(close, item.span.end)]
            return close if "#" in gap else item.span.end
        if block.after:
            return self.source.text.rfind(block.brackets[1], 0, item.span.end)
        return item.span.end

    # -------------------------------------------------------------------- long clauses

    def broken(self, node: ast.Node, indent: int, tail: str) -> None:
        """A clause that does not fit on a line: broken before its parts."""
        deep = indent
        for text, value in _segments(node):
            whole = words(text, None if value is None else to_text(value))
            if deep + len(whole) <= WIDTH or not isinstance(value, ast.And | ast.Or):
                self.lines.append(" " * deep + whole)
            else:
                self.condition(text, value, deep)
            deep = indent + INDENT
        self.lines[-1] += tail

    def condition(self, keyword: str, value: ast.And | ast.Or, indent: int) -> None:
        """A condition with a line for each operand of its `and` or `or`."""
        first, *rest = parts_of(value)
        joint = "and" if isinstance(value, ast.And) else "or"
        self.lines.append(" " * indent + words(keyword, first))
        self.lines += [" " * (indent + INDENT) + words(joint, part) for part in rest]


_NOTHING = re.compile(r"[ \t,)]*")
_BLANK_LINE = re.compile(r"\n[ \t\r]*\n")
_MARKS = re.compile(
    r"\"(?:\\.|[^\"\\\n])*\"|'(?:\\.|[^'\\\n])*'|`[^`\n]*`|#[^\n]*|[{\[]",
)
