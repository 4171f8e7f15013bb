"""How large and how deep an expression is once its `def`s are written out.

Parts are shared, so what looks small may be huge when it is walked: `f(f(f(x)))` with
`def f(x) = x + x` doubles at each call. Each part is measured once. Not recursive.
"""

from __future__ import annotations

from dsl.checked import Value


class Measure:
    """Measures values, remembering the parts it has seen."""

    def __init__(self) -> None:
        self._known: dict[int, tuple[Value, int, int]] = {}

    def of(self, value: Value) -> tuple[int, int]:
        """The number of parts and the levels of nesting."""
        todo = [value]
        while todo:
            part = todo[-1]
            inner = list(part.operands())
            unknown = [each for each in inner if id(each) not in self._known]
            if unknown and id(part) not in self._known:
                todo += unknown
                continue
            todo.pop()
            sizes = [self._known[id(each)] for each in inner]
            size = 1 + sum(known[1] for known in sizes)
            depth = 1 + max((known[2] for known in sizes), default=0)
            self._known[id(part)] = (part, size, depth)
        return self._known[id(value)][1:]
