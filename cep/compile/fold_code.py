"""Writes the Python by which aggregates take in an event, and let go of one.

In: the aggregates of a rule, and which value of an event each takes (`cep.plan.windows`). Out:
lines that do what `Fold.add` and `Fold.remove` do (`cep.runtime.windows`), without a call for
numbers. A value of any other kind goes the plain way, `put_in` and `take_out`, so that what an
aggregate means stands in `cep.runtime.aggregates` only.

The values of an event are in `a0`, `a1`, …; those that some aggregate could not take are replaced
by what is to be kept of them.
"""

from __future__ import annotations

from collections.abc import Sequence

from cep.compile.writer import Writer
from dsl.checked import WindowField

NUMBER = "({0}.__class__ is float or {0}.__class__ is int)"
_SUMS = ("sum", "avg", "stddev")
_EXTREMES = {"min": ">", "max": "<"}
_RANKS = ("median", "percentile")


class FoldCode:
    """The aggregates of one rule. `fold` and `cell` name what the lines work on: a `Fold`, and,
    with the number of the aggregate behind it, each of its cells."""

    def __init__(self, fields: Sequence[WindowField], slots: Sequence[int]) -> None:
        self.fields = fields
        self.slots = slots
        self.values = [f"a{i}" for i in range(max(slots, default=-1) + 1)]

    def cells(self, fold: str, cell: str = "x") -> str:
        """The line that names the cells of a fold."""
        return f"{''.join(f'{cell}{i}, ' for i in range(len(self.fields)))}= {fold}.cells"

    def unpack(self, entry: str) -> str:
        """The line that names the values of an entry."""
        return f"{', '.join(['_', *self.values])} = {entry}" if self.values else entry

    def entry(self) -> str:
        """Code of the entry of an event."""
        return f"(t, {''.join(f'{value}, ' for value in self.values)})"

    def add(self, w: Writer, fold: str, cell: str = "x") -> None:
        """An event enters."""
        for i, (field, slot) in enumerate(zip(self.fields, self.slots, strict=True)):
            x, a = f"{cell}{i}", f"a{slot}"
            if slot < 0:
                w(f"{x}.n += 1")
            elif _is_count(field):
                with w.block(f"if {a} is not None:"):
                    w(f"{x}.n += 1")
            else:
                word = self._add_number(w, field, x, a)
                with w.block(f"{word} {a} is not None:"):
                    w(f"{a} = {fold}.put_in({i}, {a})")

    def _add_number(self, w: Writer, field: WindowField, x: str, a: str) -> str:
        """How a number enters; gives the word with which it goes on for other values."""
        if field.distinct:
            return "if"
        if field.function in _SUMS:
            _change_sum(w, field, x, a, "+")
        elif field.function in _EXTREMES:
            with w.block(f"if {NUMBER.format(a)} and {a} - {a} == 0:"):  # of infinity it is not
                w(f"line = {x}.numbers")
                with w.block(f"while line and line[-1] {_EXTREMES[field.function]} {a}:"):
                    w("line.pop()")
                w(f"line.append({a})")
                w(f"{x}.n_numbers += 1")
        elif field.function in _RANKS:
            with w.block(f"if {NUMBER.format(a)} and {a} - {a} == 0:"):
                w(f"{x}.add({a})")
        else:
            return "if"
        return "elif"

    def remove(self, w: Writer, fold: str) -> None:
        """The oldest event leaves, whose values are named already."""
        for i, (field, slot) in enumerate(zip(self.fields, self.slots, strict=True)):
            x, a = f"x{i}", f"a{slot}"
            if slot < 0:
                w(f"{x}.n -= 1")
            elif _is_count(field):
                with w.block(f"if {a} is not None:"):
                    w(f"{x}.n -= 1")
            else:
                word = self._remove_number(w, field, x, a)
                with w.block(f"{word} {a} is not None:"):
                    w(f"{fold}.take_out({i}, {a})")

    def _remove_number(self, w: Writer, field: WindowField, x: str, a: str) -> str:
        if field.distinct:
            return "if"
        if field.function in _SUMS:
            _change_sum(w, field, x, a, "-")
        elif field.function in _EXTREMES:
            with w.block(f"if {NUMBER.format(a)}:"):
                w(f"{x}.n_numbers -= 1")
                w(f"line = {x}.numbers")
                with w.block(f"if line[0] == {a}:"):
                    w("line.popleft()")
        elif field.function in _RANKS:
            with w.block(f"if {NUMBER.format(a)}:"):
                w(f"{x}.remove({a})")
        else:
            return "if"
        return "elif"


def _is_count(field: WindowField) -> bool:
    return field.function in ("count", "rate") and not field.distinct


def _change_sum(w: Writer, field: WindowField, x: str, a: str, sign: str) -> None:
    """A number comes or goes, in units of an exact sum. A float that is no whole number of units,
    or no finite one, goes the plain way."""
    with w.block(f"if {a}.__class__ is float and (u := {a} * {x}.fine).is_integer():"):
        w(f"{x}.floats {sign}= 1")
        if field.function == "stddev":
            w("u = int(u)")
            w(f"{x}.squares {sign}= u * u")
        w(f"{x}.total {sign}= {'u' if field.function == 'stddev' else 'int(u)'}")
    with w.block(f"elif {a}.__class__ is int:"):
        w(f"{x}.ints {sign}= 1")
        w(f"u = {a} << {x}.scale")
        w(f"{x}.total {sign}= u")
        if field.function == "stddev":
            w(f"{x}.squares {sign}= u * u")


def result(field: WindowField, x: str) -> str:
    """Code of what an aggregate has come to, of which no value is a misfit. A mean of floats is
    what `ExactSum.mean` gives, where it is within the range of floats by far; else that is asked,
    or the code raises."""
    if field.distinct or field.function not in _RESULTS:
        return f"{x}.result()"
    if field.function == "avg":
        near = f"{x}.total / {x}.fine / ({x}.floats + {x}.ints)"
        return f"({near} if {x}.floats and {x}.fine < 1e300 else {x}.mean())"
    return f"{x}.{_RESULTS[field.function]}"


_RESULTS = {"count": "n", "sum": "sum()", "avg": "mean()", "stddev": "deviation()"}
