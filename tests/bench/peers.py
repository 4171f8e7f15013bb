"""What other engines need for the same questions: DuckDB by SQL, eql by its own query language.

In: the event files. Out: matches and processor time, from file to matches, of a process of its own,
start included. `install` makes a virtual environment of their own for them with `pip install duckdb
eql`, in the folder of the data; they are only run as programs from there.

DuckDB has no MATCH_RECOGNIZE; W1 becomes joins to the next event, W2 window functions. eql compares
no steps with each other: it is asked for A, B, C of one user without times and amounts, and keeps
only the newest A and the newest A, B of each user, as `floor.Newest` does.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from .measure import Measured

PACKAGES = ("duckdb", "eql")

_EVENTS = "events AS MATERIALIZED (SELECT ts, type, \"user\", amount, seq FROM read_json('{path}'))"

W1_SQL = f"""
WITH {_EVENTS},
a AS (SELECT * FROM events WHERE type = 'A'),
b AS (SELECT * FROM events WHERE type = 'B'),
c AS (SELECT * FROM events WHERE type = 'C'),
ab AS (
  SELECT a.*, b.seq AS b_seq FROM a ASOF JOIN b ON a."user" = b."user" AND a.seq < b.seq
)
SELECT count(DISTINCT ab.seq) FROM ab JOIN c
  ON ab."user" = c."user" AND c.seq > ab.b_seq AND c.amount > ab.amount
  AND c.ts BETWEEN ab.ts AND ab.ts + 600000
"""
"""Every A whose next B is followed by a larger C in time: the next such C completes it."""

W2_SQL = f"""
WITH {_EVENTS},
before AS (
  SELECT amount, lag(amount, 1) OVER rows AS one, lag(amount, 2) OVER rows AS two FROM events
  WINDOW rows AS (PARTITION BY "user" ORDER BY seq)
)
SELECT count(*) FROM before WHERE amount > one AND one > two
"""
EQL = "sequence by user " + " ".join(f'[any where type == "{kind}"]' for kind in "ABC")

_ASK_DUCKDB = """
import sys, duckdb
connection = duckdb.connect()
connection.execute("SET threads = 1")
connection.execute("SET enable_progress_bar = false")
print(connection.execute(sys.argv[1]).fetchone()[0])
"""


def install(folder: Path) -> Path:
    """The programs of the environment, which is made where it is missing. Raises CalledProcessError
    where that fails."""
    home = folder / "peers"
    programs = home / ("Scripts" if os.name == "nt" else "bin")
    if not (home / "complete").exists():
        subprocess.run([sys.executable, "-m", "venv", "--clear", home], check=True)
        command = [programs / "python", "-m", "pip", "install", "--quiet", *PACKAGES]
        subprocess.run(command, check=True)
        (home / "complete").touch()
    return programs


def version_of(programs: Path, package: str) -> str:
    """Which version of a package the environment has."""
    code = f"import importlib.metadata as m; print(m.version({package!r}))"
    asked = subprocess.run(
        [programs / "python", "-c", code], check=True, capture_output=True, text=True
    )
    return asked.stdout.strip()


def duckdb(programs: Path, query: str, path: Path) -> Measured:
    """Asks DuckDB, on one thread; the number it answers."""
    question = query.format(path=path)
    seconds, out = _run([str(programs / "python"), "-c", _ASK_DUCKDB, question])
    return Measured(seconds, int(out))


def eql(programs: Path, query: str, path: Path) -> Measured:
    """Asks eql, which prints the events of each match; the number of matches."""
    seconds, out = _run([str(programs / "eql"), "query", query, "-f", str(path)])
    return Measured(seconds, out.count(b"\n") // 3)


def _run(command: Sequence[str]) -> tuple[float, bytes]:
    """Processor seconds of a process from start to end, and what it printed."""
    process = subprocess.Popen(command, stdout=subprocess.PIPE)
    assert process.stdout is not None
    out = process.stdout.read()
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    process.stdout.close()
    if process.returncode:
        raise ValueError(f"{command[0]} ended with {process.returncode}")
    return usage.ru_utime + usage.ru_stime, out
