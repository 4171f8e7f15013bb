"""What the benchmarks say: rows, the table of them, the JSON file, and two files compared.

A row has a value with its unit and, where there is one, the floor it is compared with and the
ratio that the target speaks of.
"""

from __future__ import annotations

import platform
import subprocess
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path

import msgspec

import cep


class Row(msgspec.Struct, kw_only=True, frozen=True):
    """One measured thing. `ok`: whether answer and target are met (None: there is no target)."""

    name: str
    value: float | None
    unit: str
    matches: int | None = None
    answer: int | None = None
    floor: float | None = None
    ratio: float | None = None
    target: str = ""
    ok: bool | None = None
    note: str = ""


class Result(msgspec.Struct, kw_only=True, frozen=True):
    """All rows of one run, and where it ran."""

    date: str
    quick: bool
    machine: dict[str, str]
    versions: dict[str, str]
    rows: list[Row]


def result(rows: Iterable[Row], quick: bool) -> Result:
    """The rows with the machine, the versions and the date beside them."""
    return Result(
        date=datetime.now(UTC).isoformat(timespec="seconds"),
        quick=quick,
        machine={
            "processor": _processor(),
            "system": platform.platform(),
            "memory_mib": str(_memory_mib()),
        },
        versions={
            "python": f"{platform.python_implementation()} {platform.python_version()}",
            "cep": cep.__version__,
            "commit": _commit(),
            "msgspec": version("msgspec"),
        },
        rows=list(rows),
    )


def save(result: Result, path: Path) -> None:
    """Writes the result as JSON."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(msgspec.json.format(msgspec.json.encode(result), indent=2) + b"\n")


def read(path: Path) -> Result:
    """A result that `save` has written."""
    return msgspec.json.decode(path.read_bytes(), type=Result)


def table(rows: Sequence[Row]) -> str:
    """All rows as text in columns."""
    head = ["workload", "matches", "right", "measured", "unit", "floor", "ratio", "target", "ok"]
    cells = [head, *(_cells(row) for row in rows)]
    return _columns(cells, left={0, 4, 7, 8}) + "".join(
        f"\n{row.name}: {row.note}" for row in rows if row.note
    )


def comparison(old: Result, new: Result) -> str:
    """Rows that both results have, side by side. `change` is new ÷ old, of the ratios to the floor
    where there are any (they drift less than the values)."""
    before = {row.name: row for row in old.rows}
    cells = [["workload", "unit", "old", "new", "old ratio", "new ratio", "change"]]
    for row in new.rows:
        other = before.get(row.name)
        if other is not None:
            cells.append(
                [
                    row.name,
                    row.unit,
                    _number(other.value),
                    _number(row.value),
                    _number(other.ratio),
                    _number(row.ratio),
                    _number(_change(other, row)),
                ]
            )
    return _columns(cells, left={0, 1})


def _change(old: Row, new: Row) -> float | None:
    if old.ratio and new.ratio:
        return new.ratio / old.ratio
    return new.value / old.value if old.value and new.value else None


def _cells(row: Row) -> list[str]:
    verdict = {None: "", True: "yes", False: "NO"}[row.ok]
    return [
        row.name,
        _number(row.matches),
        _number(row.answer),
        _number(row.value),
        row.unit,
        _number(row.floor),
        _number(row.ratio),
        row.target,
        verdict,
    ]


def _number(value: float | None) -> str:
    if value is None:
        return ""
    if isinstance(value, int) or value >= 1000:
        return f"{value:,.0f}"
    return f"{value:.3g}" if value < 1 else f"{value:.2f}"


def _columns(rows: Sequence[Sequence[str]], left: set[int]) -> str:
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = []
    for row in rows:
        cells = [
            cell.ljust(width) if index in left else cell.rjust(width)
            for index, (cell, width) in enumerate(zip(row, widths, strict=True))
        ]
        lines.append("  ".join(cells).rstrip())
    return "\n".join(lines)


def _processor() -> str:
    for line in _lines("/proc/cpuinfo"):
        if line.startswith("model name"):
            return line.partition(":")[2].strip()
    return platform.processor() or platform.machine()


def _memory_mib() -> int:
    for line in _lines("/proc/meminfo"):
        if line.startswith("MemTotal"):
            return int(line.split()[1]) // 1024
    return 0


def _lines(path: str) -> list[str]:
    file = Path(path)
    return file.read_text(encoding="utf-8").splitlines() if file.exists() else []


def _commit() -> str:
    asked = subprocess.run(
        ["git", "describe", "--always", "--dirty"],
        cwd=Path(__file__).parent,
        capture_output=True,
        text=True,
        check=False,
    )
    return asked.stdout.strip() if asked.returncode == 0 else "unknown"
