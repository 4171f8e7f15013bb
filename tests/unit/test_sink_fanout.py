"""All sinks of a run: one that fails does not stop the others, and nothing fails in silence."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from sink_samples import a_match

from cep.match import Match
from cep.sink.base import ClosedPipe, SinkError, UndeliveredError
from cep.sink.fanout import LOUD, Fanout


class Memory:
    """A sink that keeps ids and fails as it is told."""

    def __init__(self, name: str = "memory", fault: Exception | None = None) -> None:
        self.name = name
        self.fault = fault
        self.ids: list[str] = []
        self.closed = False

    def write(self, matches: Sequence[Match]) -> None:
        if self.fault is not None:
            raise self.fault
        self.ids += [match.id for match in matches]

    def flush(self) -> None:
        pass

    def close(self) -> None:
        self.closed = True


def test_every_sink_gets_every_match() -> None:
    sinks = [Memory(), Memory()]
    fanout = Fanout(sinks, pytest.fail)
    fanout.write([a_match(id="a")])
    fanout.write([])
    fanout.close()
    assert [sink.ids for sink in sinks] == [["a"], ["a"]]
    assert all(sink.closed for sink in sinks)
    assert fanout.complete


def test_a_sink_that_fails_is_left_out_and_what_it_missed_is_counted() -> None:
    said: list[str] = []
    good, bad = Memory(), Memory("bad.csv", SinkError("cannot write bad.csv: disk full"))
    fanout = Fanout([bad, good], said.append)
    for _ in range(3):
        fanout.write([a_match()])
    fanout.close()
    assert said == [
        "cannot write bad.csv: disk full; the run goes on without this output",
        "3 matches did not reach bad.csv",
    ]
    assert good.ids == ["m1"] * 3
    assert bad.closed
    assert fanout.undelivered == 3
    assert not fanout.complete


def test_when_no_sink_is_left_the_fault_is_raised() -> None:
    fanout = Fanout([Memory(fault=SinkError("disk full"))], pytest.fail)
    with pytest.raises(SinkError, match="disk full"):
        fanout.write([a_match()])


def test_a_closed_pipe_ends_the_run_though_others_are_left() -> None:
    fanout = Fanout([Memory(), Memory(fault=ClosedPipe("gone"))], pytest.fail)
    with pytest.raises(ClosedPipe):
        fanout.write([a_match()])


def test_undelivered_matches_are_told_a_few_times_and_then_counted() -> None:
    said: list[str] = []
    fanout = Fanout([Memory("cmd", UndeliveredError(2, "exit code 3"))], said.append)
    for _ in range(LOUD + 5):
        fanout.write([a_match(), a_match()])
    fanout.close()
    assert said == [
        *["exit code 3 (and 1 more matches)"] * LOUD,
        "further failures of `cmd` are only counted",
        f"{2 * (LOUD + 5)} matches did not reach cmd",
    ]


def test_a_sink_that_fails_at_the_close_is_told() -> None:
    class Closing(Memory):
        def close(self) -> None:
            raise SinkError("disk full")

    said: list[str] = []
    fanout = Fanout([Closing()], said.append)
    fanout.close()
    assert said == ["disk full"]
    assert not fanout.complete


def test_a_slow_sink_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    now = [0.0]
    monkeypatch.setattr("cep.sink.fanout.perf_counter", lambda: now[0])

    class Slow(Memory):
        def write(self, matches: Sequence[Match]) -> None:
            now[0] += 8

    said: list[str] = []
    fanout = Fanout([Slow("slow.db"), Memory()], said.append)
    fanout.write([a_match()])
    now[0] += 2
    fanout.close()
    assert said == ["slow.db is slow: it took 8.0 s of the 10.0 s of this run"]
