"""What the tests of the command line share: the outcome of a call, rules and a log."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]


@dataclass(frozen=True)
class Outcome:
    """What a call of `cep` left."""

    code: int
    out: str
    err: str

    @property
    def records(self) -> list[dict[str, Any]]:
        """Standard output as JSON lines."""
        return [json.loads(line) for line in self.out.split("\n") if line]


Cep = Callable[..., Outcome]


RULES = """\
stream login { where type == "login" }

rule guessed "Guessing that worked" {
  severity high   tags attack.t1110
  by user
  sequence within 10m {
    fail: login{3,} where outcome == "failure"
    ok: login where outcome == "success"
  }
  alert "{user}: {count(fail)} failures, then success"
}

test guessed "fires" {
  login { user: "ann", outcome: "failure" } times 3 every 10s
  login { user: "ann", outcome: "success" }
  expect guessed { user: "ann", fail: 3 }
}
"""


def line(second: int, outcome: object, user: object = "ann", **more: object) -> str:
    """One login as a JSON line, `second` seconds after the start of 2026."""
    record = {
        "type": "login",
        "time": f"2026-01-01T00:{second // 60:02}:{second % 60:02}Z",
        "user": user,
        "outcome": outcome,
    }
    return json.dumps({**record, **more}) + "\n"


LOG = "".join(line(second, "failure") for second in (0, 10, 20)) + line(30, "success")
