"""Where a benchmark finds its data, and how much of it is used."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from . import data, questions


@dataclass(frozen=True, slots=True)
class Setting:
    """Where the data is, whether only a part is used, how often everything is repeated."""

    folder: Path
    quick: bool
    repetitions: int

    def file(self, name: str) -> Path:
        """The path of a data file, or of its beginning."""
        return data.ensure(self.folder, f"{name}-quick" if self.quick else name)

    def events(self, name: str) -> int:
        return data.FILES[f"{name}-quick" if self.quick else name].events

    def golden(self, name: str) -> int | None:
        """The right answer that is known beforehand."""
        return questions.GOLDEN.get(f"{name} quick" if self.quick else name)
