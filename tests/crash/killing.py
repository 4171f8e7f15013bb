"""Kills a process again and again until its work is done, and notes where each kill has met it.

In: the arguments of a victim (`victim.py`) that can be started any number of times and ends with 0
when all is done. Out: a `Toll`: how many kills, and in which part of the product each one fell.
"""

from __future__ import annotations

import os
import random
import re
import select
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from tests.crash.victim import PARTS

VICTIM = Path(__file__).with_name("victim.py")

LONGEST = 120.0
"""Seconds after which a victim that nobody has killed must have ended."""

KILLED = (-signal.SIGKILL, -signal.SIGUSR1)
"""Exit codes of the killed. Python that is just ending dies of the question where it is."""

FAULT = "Fatal Python error: Segmentation fault\n\n"
"""What a victim says that ends with SIGSEGV. A fault of the product is followed by the stack that
led there. CPython that is asked where it is while it makes a frame may end so too: then no stack
follows, as it was printing one."""

AT_WORK = 0.8
"""Share of the kills at any moment that wait until the engine is open."""

DEEPEST = 3000
"""Most lines of a part that are passed before a trap closes."""

_FRAME = re.compile(r'File "([^"]+)", line (\d+) in (\S+)')
_PHASES = (
    ("commit", ("cep/state/sqlite/writing", "cep/state/sqlite/__init__", "cep/state/handover")),
    ("resume", ("cep/state/sqlite/", "cep/state/lock", "cep/state/resume", "cep/state/change")),
    ("checkpoint", ("cep/state/", "cep/keeper", "cep/async_engine")),
    ("sink", ("cep/sink/", "tests/crash/host.py")),
    ("source", ("cep/source/", "cep/clock/", "cep/ingest")),
    (
        "events",
        ("cep/runtime/", "cep/compile/program", "cep/engine", "cep/match", "<loop", "<rule"),
    ),
    ("rules", ("dsl/", "cep/ruleset", "cep/plan/", "cep/compile/")),
)
"""The phases by the files of the innermost frame that belongs to the product."""


@dataclass
class Toll:
    """What killing has come to."""

    kills: int = 0
    cuts: int = 0
    """Moments at which the power failed: nothing is killed there, but gone on from."""
    lives: int = 0
    phases: Counter[str] = field(default_factory=Counter)
    places: Counter[str] = field(default_factory=Counter)

    def count(self, where: str) -> None:
        """Takes in where the threads of a process were when it was hit."""
        threads = re.split(r"\n\n|^(?=(?:Current t|T)hread )", where, flags=re.MULTILINE)
        found = [found for thread in threads if (found := _phase(thread))[0]]
        for phase, place in found or [("elsewhere", where[:200])]:
            self.phases[phase] += 1
            self.places[place] += 1

    def add(self, other: Toll) -> None:
        """Takes in the toll of other work."""
        self.kills += other.kills
        self.cuts += other.cuts
        self.lives += other.lives
        self.phases += other.phases
        self.places += other.places

    def histogram(self) -> str:
        """The phases with a bar for each; a kill may stand in two (each thread has its own)."""
        longest = max(self.phases.values(), default=1)
        return "\n".join(
            f"{phase:12} {count:5}  {'█' * round(40 * count / longest)}"
            for phase, count in self.phases.most_common()
        )


class Victim:
    """One life of the process."""

    def __init__(
        self, arguments: Sequence[str], trap: str, errors: Path, more: Mapping[str, str]
    ) -> None:
        self._pipe, inner = os.pipe()
        environment = {**os.environ, "VICTIM_PIPE": str(inner), "VICTIM_AT": trap, **more}
        with open(errors, "ab") as heard:
            self.process = subprocess.Popen(
                [sys.executable, str(VICTIM), *arguments],
                pass_fds=[inner],
                env=environment,
                cwd=VICTIM.parents[2],
                stdout=heard,
                stderr=heard,
            )
        os.close(inner)
        self._said = self._hear(LONGEST).removeprefix("armed\n")

    def _hear(self, seconds: float) -> str:
        """What comes through the pipe within so many seconds; empty when nothing does."""
        if not select.select([self._pipe], [], [], seconds)[0]:
            return ""
        return os.read(self._pipe, 1 << 16).decode("utf-8", "replace")

    def open(self) -> None:
        """Waits until its engine is ready to work, or it stands in a trap, or has ended."""
        if not self._said:
            self._said = self._hear(LONGEST)

    def trapped(self, seconds: float) -> str:
        """Waits until it stands in the trap, has ended, or works for so long; where it stands."""
        self.open()
        return self._said.removeprefix("open\n") or self._hear(seconds)

    def asked(self) -> str:
        """Where each of its threads is now."""
        self.process.send_signal(signal.SIGUSR1)
        said = self._hear(0.5)
        while not said.endswith("in <module>\n") and (more := self._hear(0.02)):
            said += more
        return said

    @contextmanager
    def frozen(self) -> Iterator[None]:
        """While this lasts it stands still."""
        self.process.send_signal(signal.SIGSTOP)
        stat = Path(f"/proc/{self.process.pid}/stat")
        while stat.read_text().rpartition(")")[2].split()[0] not in "TZX":
            pass
        try:
            yield
        finally:
            self.process.send_signal(signal.SIGCONT)

    def listens(self, number: int) -> bool:
        """Whether it lives and does something of its own at this signal."""
        try:
            status = Path(f"/proc/{self.process.pid}/status").read_text()
        except OSError:
            return False
        caught = re.search(r"^SigCgt:\s*(\w+)$", status, re.MULTILINE)
        return caught is not None and bool(int(caught[1], 16) >> (number - 1) & 1)

    def kill(self) -> None:
        """Ends it at once, as a power cut ends it."""
        self.process.send_signal(signal.SIGKILL)

    def wait(self, seconds: float) -> int | None:
        """Its exit code, if it ends within so many seconds."""
        try:
            return self.process.wait(seconds)
        except subprocess.TimeoutExpired:
            return None

    def close(self) -> None:
        """Lets go of it, killed or ended."""
        self.process.wait()
        os.close(self._pipe)


@dataclass
class Hunt:
    """Kills until the work is done."""

    arguments: Sequence[str]
    rnd: random.Random
    errors: Path
    most: int = 40
    """Kills after which it is let live."""
    longest_life: float = 2.0
    """Seconds of the longest life before a kill at any moment."""
    parts: Sequence[str] = tuple(PARTS)
    allowed: Sequence[int] = ()
    """Exit codes after which it is just started again."""
    endless: bool = False
    """Whether it never ends of itself: then it is over with the last kill."""
    environment: Mapping[str, str] = field(default_factory=dict)
    """What the victim is told beside what catches it."""
    on_life: Callable[[Victim], None] = lambda _: None
    """Is told of each life that begins."""
    toll: Toll = field(default_factory=Toll)

    def run(self) -> Toll:
        """Kills and starts again. Raises AssertionError where it ends with another code than 0."""
        while not (self.endless and self._spared) and not self._lived_to_the_end():
            pass
        return self.toll

    @property
    def _spared(self) -> bool:
        return self.toll.kills >= self.most

    def _lived_to_the_end(self) -> bool:
        self.toll.lives += 1
        spared = self._spared
        trap = "" if spared or self.rnd.random() < 0.4 else self._some_trap()
        victim = Victim(self.arguments, trap, self.errors, self.environment)
        self.on_life(victim)
        try:
            where = self._caught(victim, trap, spared)
            if where:
                victim.kill()
            code = victim.wait(LONGEST)
        finally:
            victim.kill()
            victim.close()
        if code in KILLED or (code == -signal.SIGSEGV and self._died_of_the_question()):
            self.toll.kills += 1
            self.toll.count(where)
            return False
        if code in self.allowed:
            return False
        assert code == 0, f"exit code {code}: {self.errors.read_text()[-3000:]}"
        return True

    def _died_of_the_question(self) -> bool:
        """Whether the last fault was in the telling of where the victim is."""
        return self.errors.read_text().rpartition(FAULT)[2].startswith("\n")

    def _some_trap(self) -> str:
        depth = int(DEEPEST ** self.rnd.random())
        return f"{self.rnd.choice(list(self.parts))}:{depth}:{self.rnd.choice(['stay', 'go'])}"

    def _caught(self, victim: Victim, trap: str, spared: bool) -> str:
        """Waits for the moment of the kill; where the victim then is, empty if it has ended."""
        if spared:
            return ""
        if trap:
            return victim.trapped(5 * self.longest_life) or self._stopped(victim)
        if self.rnd.random() < AT_WORK:
            victim.open()
        if victim.wait(self.rnd.uniform(0.0, self.longest_life)) is not None:
            return ""
        return self._stopped(victim)

    def _stopped(self, victim: Victim) -> str:
        """Where it is at this moment, empty if it has ended."""
        return "" if victim.process.poll() is not None else victim.asked() or "unknown"


def _phase(stack: str) -> tuple[str, str]:
    """The phase that a stack of calls is in, and its place; empty for a thread at rest."""
    root = f"{VICTIM.parents[2]}/"
    frames = [(f.removeprefix(root), line, name) for f, line, name in _FRAME.findall(stack)]
    if any(name in ("get", "given_up") for file, _, name in frames if "handover" in file):
        return "", ""
    if any(file == "cep/spill.py" for file, _, _ in frames):
        return "spill", f"{frames[0][0]}:{frames[0][1]}"
    if any(file == "cep/cli/reloading.py" for file, _, _ in frames):
        return "reload", f"{frames[0][0]}:{frames[0][1]}"
    for file, line, _ in frames:
        for phase, beginnings in _PHASES:
            if file.startswith(beginnings):
                return phase, f"{file}:{line}"
    return ("start", frames[0][0]) if frames else ("", "")
