"""The raw tree: what the grammar makes of a text, before `dsl.builder` gives it a meaning.

Inner nodes are named as in `grammar.lark`; leaves are the words of the text, or None for what could
be left out and was. Both know where they stand.
"""

from __future__ import annotations

from typing import Any


class Word(str):
    """A word of the text: `type` names its terminal; it stands from `start_pos` to `end_pos`."""

    __slots__ = ("end_pos", "start_pos", "type")

    type: str
    start_pos: int
    end_pos: int


class RawNode:
    """An inner node: `data` names it. `built` and `depth` belong to the builder."""

    __slots__ = ("built", "children", "data", "depth", "end", "start")

    def __init__(self, data: str, children: list[Any], start: int, end: int) -> None:
        self.data = data
        self.children = children
        self.start = start
        self.end = end
        self.depth = 0
        self.built: Any = None

    def bottom_up(self) -> list[RawNode]:
        """This node and all in it, each behind those that it holds. Not recursive."""
        nodes = [self]
        for node in nodes:
            nodes += [child for child in node.children if child.__class__ is RawNode]
        nodes.reverse()
        return nodes
