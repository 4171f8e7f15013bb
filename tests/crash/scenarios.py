"""What is killed: each scenario makes its input, says how the victim is started, and compares what
is there at the end with what an undisturbed run gives.

In: a folder, a seed, the number of events. Out: what a `Hunt` needs, and `verify`, which raises
AssertionError where a match is missing, stands twice, or is another one.
"""

from __future__ import annotations

import gzip
import json
import os
import random
import shutil
import signal
import sqlite3
import threading
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from cep.cli.main import run
from tests.crash.killing import KILLED, LONGEST, Hunt, Toll, Victim
from tests.crash.make_log import lines

RULES = Path(__file__).with_name("rules.cep")


def same(wanted: Iterable[str], found: Iterable[str], what: str) -> None:
    """The same texts, each as often, in the same order."""
    wanted, found = list(wanted), list(found)
    if wanted == found:
        return
    due, there = Counter(wanted), Counter(found)
    missing, more = due - there, there - due
    raise AssertionError(
        f"{what}: {missing.total()} of {len(wanted)} are missing, {more.total()} are too many"
        f" ({[m[:300] for m in [*missing][:2]]}, {[m[:300] for m in [*more][:2]]})"
        + ("; the order differs" if due == there else "")
    )


def text_lines(path: Path) -> list[str]:
    """The lines of a file, none where there is no file."""
    return path.read_text().splitlines() if path.exists() else []


class Scenario:
    """A log, the rules, and the folder in which the victim works."""

    name = "log"
    rounds = 1
    last = True
    """Whether this is the last round: the input then ends for good."""
    allowed: Sequence[int] = ()
    """Exit codes that only say that this was a bad moment to start."""
    endless = False
    """Whether the victim never ends of itself, but in the last round."""
    victim: Victim | None = None
    """The one that lives now."""

    def __init__(self, folder: Path, seed: int, events: int) -> None:
        self.folder = folder
        self.environment: dict[str, str] = {}
        """Of the victim, beside what catches it."""
        self.rnd = random.Random(seed)
        self.rnd_beside = random.Random(seed)
        self.log = folder / "log.jsonl"
        self.lines = lines(seed, events)
        self.log.write_text("".join(self.lines))
        self.rules = folder / "rules.cep"
        shutil.copy(RULES, self.rules)

    @property
    def arguments(self) -> list[str]:
        """Of the victim."""
        raise NotImplementedError

    def hunt(self, most: int, longest_life: float) -> Toll:
        """Kills until the work is done."""
        toll = Toll()
        for number in range(self.rounds):
            self.last = number + 1 == self.rounds
            self.begin(number)
            kills = most * (number + 1) // self.rounds - most * number // self.rounds
            errors = self.folder / "errors"
            hunt = Hunt(self.arguments, self.rnd, errors, kills, longest_life)
            hunt.allowed = self.allowed
            hunt.environment = self.environment
            hunt.on_life = self.meet
            hunt.endless = self.endless and not self.last
            with self.stirred():
                toll.add(hunt.run())
        return toll

    def meet(self, victim: Victim) -> None:
        """A new life begins."""
        self.victim = victim

    def begin(self, number: int) -> None:
        """Before each round of killing."""

    @contextmanager
    def stirred(self) -> Iterator[None]:
        """While this lasts, `stir` is called again and again, beside the victim."""
        over = threading.Event()

        def stir() -> None:
            while not over.wait(self.rnd_beside.uniform(0.02, 0.3)):
                self.stir()

        thread = threading.Thread(target=stir)
        thread.start()
        try:
            yield
        finally:
            over.set()
            thread.join()

    def stir(self) -> None:
        """Changes something while the victim runs."""

    def verify(self) -> None:
        """Raises AssertionError where not all is there, once."""
        raise NotImplementedError


class Host(Scenario):
    """A program that uses the engine, with its own position."""

    name = "host program"
    way = "returned"

    @property
    def arguments(self) -> list[str]:
        return [
            "host",
            self.way,
            *map(str, (self.rules, self.log, self.folder / "cep.db", self.folder)),
        ]

    def verify(self) -> None:
        import cep

        with self.log.open("rb") as log:
            found = cep.Engine(cep.load(str(self.rules))).process(log)
        wanted = [match.to_json().decode() for match in found]
        table = sqlite3.connect(self.folder / "found.db")
        same(sorted(wanted), (r for (r,) in table.execute(_SORTED)), "the host's table")
        same(set(wanted), set(text_lines(self.folder / "found.jsonl")), "the host's file")


class Handed(Host):
    """A program that is handed its matches by a callback, and stops and begins again and again."""

    name = "host with a callback"
    way = "handed"


class Iterated(Host):
    """A program that runs on asyncio."""

    name = "host on asyncio"
    way = "iterated"


_SORTED = "select record from found order by record"


class CommandLine(Scenario):
    """`cep run --state` over a file, with every kind of output."""

    name = "cep run"
    outputs = ("found.jsonl", "found.db", "found.csv", "found.txt")

    def inputs(self) -> Sequence[Path]:
        """What is read."""
        return [self.log]

    @property
    def arguments(self) -> list[str]:
        state = ["--state", str(self.folder / "cep.db"), "--checkpoint-every", "20ms"]
        end = ["--at-end", "undecided"] if self.last else []
        return [*self._run(self.folder, self.inputs()), *state, *end]

    def _run(self, folder: Path, inputs: Sequence[Path]) -> list[str]:
        places = [str(folder / name) for name in self.outputs]
        outputs = [part for place in places for part in ("-o", place)]
        leftovers = ["--late", folder / "late.jsonl", "--rejects", folder / "rejects.jsonl"]
        return ["run", str(self.rules), *map(str, inputs), *outputs, *map(str, leftovers)]

    def undisturbed(self) -> Path:
        """The folder with what a run gives that nobody disturbs and that keeps no state."""
        folder = self.folder / "undisturbed"
        folder.mkdir()
        assert run([*self._run(folder, self.inputs()), "--quiet"]) == 0
        return folder

    def verify(self) -> None:
        wanted = self.undisturbed()
        for name in ("found.jsonl", "found.csv", "found.txt", "late.jsonl", "rejects.jsonl"):
            same(text_lines(wanted / name), text_lines(self.folder / name), name)
        same(_rows(wanted / "found.db"), _rows(self.folder / "found.db"), "found.db")


def _rows(path: Path) -> list[str]:
    table = sqlite3.connect(path)
    return [json.dumps(row) for row in table.execute("select * from matches order by id")]


class Spilled(CommandLine):
    """With so little memory that most keys are in the state file only."""

    name = "little memory"

    @property
    def arguments(self) -> list[str]:
        return [*super().arguments, "--max-memory", "20k"]


class SetBack(CommandLine):
    """While it works the clock of the machine is set back and forth."""

    name = "clock set back"

    def __init__(self, folder: Path, seed: int, events: int) -> None:
        super().__init__(folder, seed, events)
        self.environment = {"VICTIM_CLOCK": str(seed)}


class TwoLogs(CommandLine):
    """Two inputs, merged by time, one of them compressed."""

    name = "two inputs"

    def __init__(self, folder: Path, seed: int, events: int) -> None:
        super().__init__(folder, seed, events)
        self.log.write_text("".join(self.lines[::2]))
        with gzip.open(folder / "other.jsonl.gz", "wt") as other:
            other.write("".join(self.lines[1::2]))

    def inputs(self) -> Sequence[Path]:
        return [self.log, self.folder / "other.jsonl.gz"]


class Growing(CommandLine):
    """A log that grows between the runs, by whole lines and by parts of them."""

    name = "growing log"
    rounds = 4

    def begin(self, number: int) -> None:
        whole = "".join(self.lines).encode()
        end = len(whole) * (number + 1) // self.rounds
        if not self.last:
            end = whole.rindex(b"\n", 0, end) + 1
        self.log.write_bytes(whole[:end])


class Changing(CommandLine):
    """Rules that change while they run: what a match says, rules that come and go, and files that
    are broken for a while."""

    name = "changing rules"
    allowed = (2,)
    outputs = ("found.jsonl",)

    @property
    def arguments(self) -> list[str]:
        return [*super().arguments, "--reload"]

    def stir(self) -> None:
        severity = self.rnd_beside.choice(["low", "medium", "critical"])
        text = RULES.read_text().replace("severity high", f"severity {severity}")
        if self.rnd_beside.random() < 0.5:
            text += "rule passing { by host  sequence within 20s { a: ping  b: ping } }\n"
        if self.rnd_beside.random() < 0.1:
            text += "rule broken {"
        beside = self.folder / "rules.new"
        beside.write_text(text)
        beside.replace(self.rules)

    def verify(self) -> None:
        shutil.copy(RULES, self.rules)
        wanted = text_lines(self.undisturbed() / "found.jsonl")
        found = text_lines(self.folder / "found.jsonl")
        same(_told(wanted), _told(found), "found.jsonl")
        once = {json.loads(line)["id"] for line in found}
        assert len(once) == len(found), "some ids stand twice"


def _told(records: Iterable[str]) -> Iterator[str]:
    """What the rules say that are always there, however they are called."""
    for line in records:
        record = json.loads(line)
        if record["rule"] != "passing":
            yield json.dumps({k: v for k, v in record.items() if k not in _CHANGING})


_CHANGING = {"id", "version", "severity"}


class Asked(Changing):
    """The same, asked for by a signal."""

    name = "reload by signal"
    allowed = (2, -signal.SIGHUP)
    """Where it has just stopped to listen the signal ends it."""

    def stir(self) -> None:
        super().stir()
        if self.victim is not None and self.victim.listens(signal.SIGHUP):
            self.victim.process.send_signal(signal.SIGHUP)


class Followed(CommandLine):
    """A log that is followed while it grows, in pieces that are no whole lines, and that is put
    aside once for a new one."""

    name = "followed log"
    rounds = 2
    endless = True

    def __init__(self, folder: Path, seed: int, events: int) -> None:
        super().__init__(folder, seed, events)
        middle = events // 2
        self._parts = [
            "".join(part).encode() for part in (self.lines[:middle], self.lines[middle:])
        ]
        self._rest = self._parts[0]
        self._rotates = True
        self.log.write_bytes(b"")

    @property
    def arguments(self) -> list[str]:
        return [*super().arguments, *([] if self.last else ["--follow"])]

    def begin(self, number: int) -> None:
        while self.last and (self._rest or self._rotates):
            if not self._rest and not self._has_found:
                self._rotates, self._rest = False, self._parts[1]  # it is too late to put it aside
            self.stir()

    @property
    def _has_found(self) -> bool:
        """Whether the victim has surely seen the log."""
        return bool(text_lines(self.folder / "found.jsonl"))

    def stir(self) -> None:
        if self._rest:
            end = self.rnd_beside.randrange(1, 12_000)
            with self.log.open("ab") as log:
                log.write(self._rest[:end])
            self._rest = self._rest[end:]
        elif self._rotates and self._has_found:
            self._rotates = False
            self.log.rename(self.folder / "log.jsonl.1")
            self._rest = self._parts[1]
            self.log.write_bytes(b"")

    def verify(self) -> None:
        with self.log.open("wb") as log:
            log.write(b"".join(self._parts))
        wanted = text_lines(self.undisturbed() / "found.jsonl")
        found = text_lines(self.folder / "found.jsonl")
        same(_told(wanted), _told(found), "found.jsonl")
        assert len(_rows(self.folder / "found.db")) == len(found), "some matches have the same id"


class PowerCut(CommandLine):
    """The disk as it is when the power fails: the files of a moment, where of the outputs only what
    was forced to the disk is sure to be there. The run goes on from each such moment."""

    name = "power cut"
    _kept = ("log.jsonl", "rules.cep", "errors", "cuts", "undisturbed", "syncs")

    def hunt(self, most: int, longest_life: float) -> Toll:
        toll = Toll(lives=1)
        syncs = {"VICTIM_SYNCS": str(self.folder / "syncs")}
        victim = Victim(self.arguments, "", self.folder / "errors", syncs)
        while toll.cuts < most:
            if victim.wait(self.rnd.uniform(0.01, 4 * longest_life / most)) is not None:
                break
            where = victim.asked()
            with victim.frozen():
                self._cut(self.folder / "cuts" / str(toll.cuts))
            toll.cuts += 1
            toll.count(where)
        code = victim.wait(LONGEST)
        victim.close()
        assert code == 0 or (code in KILLED and run([*self.arguments, "--quiet"]) == 0)
        return toll

    def _files(self, folder: Path) -> list[Path]:
        return [path for path in folder.iterdir() if path.name not in self._kept]

    def _cut(self, into: Path) -> None:
        into.mkdir(parents=True)
        for path in self._files(self.folder):
            shutil.copy(path, into)
            if path.suffix in (".jsonl", ".csv", ".txt"):
                length = path.stat().st_size
                os.truncate(into / path.name, self.rnd.randint(self._synced(path), length))

    def _synced(self, path: Path) -> int:
        """What of a file was last forced to the disk."""
        lengths = [line.split(" ", 1) for line in text_lines(self.folder / "syncs")]
        own = [int(length) for length, name in lengths if name == str(path)]
        return own[-1] if own else 0

    def verify(self) -> None:
        super().verify()
        for cut in sorted((self.folder / "cuts").glob("*")):
            for path in self._files(self.folder):
                path.unlink()
            for path in cut.iterdir():
                shutil.copy(path, self.folder)
            assert run([*self.arguments, "--quiet"]) == 0, f"the run does not go on from {cut}"
            shutil.rmtree(self.folder / "undisturbed")
            super().verify()


SCENARIOS: Sequence[Callable[[Path, int, int], Scenario]] = (
    Host,
    CommandLine,
    TwoLogs,
    Growing,
    Changing,
    Followed,
    PowerCut,
    Handed,
    Iterated,
    Spilled,
    SetBack,
    Asked,
)
