"""A command for each match: what it gets, and what happens when it fails."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from sink_samples import a_match

from cep.sink.base import SinkError, UndeliveredError
from cep.sink.command import CommandSink, split_command


def test_the_command_gets_the_match_as_json(tmp_path: Path) -> None:
    path = tmp_path / "got"
    sink = CommandSink(f"sh -c 'cat >> {path}'")
    sink.write([a_match(id="a"), a_match(id="b")])
    sink.close()
    records = [json.loads(line) for line in path.read_text().splitlines()]
    assert [record["id"] for record in records] == ["a", "b"]


def test_what_the_command_prints_goes_to_standard_error(
    capfd: pytest.CaptureFixture[str],
) -> None:
    CommandSink("echo hello").write([a_match()])
    assert capfd.readouterr() == ("", "hello\n")


def test_nothing_of_a_match_is_ever_a_command(tmp_path: Path) -> None:
    path = tmp_path / "made"
    CommandSink("cat").write([a_match(message=f"$(touch {path}); `touch {path}` | touch {path}")])
    assert not path.exists()


def test_no_shell_is_between(capfd: pytest.CaptureFixture[str]) -> None:
    CommandSink("echo $HOME ; id").write([a_match()])
    assert capfd.readouterr().err == "$HOME ; id\n"


def test_a_failing_command_is_told_and_the_others_still_run(tmp_path: Path) -> None:
    path = tmp_path / "got"
    sink = CommandSink(f"sh -c 'cat >> {path}; exit 3'")
    with pytest.raises(UndeliveredError, match="ended with exit code 3 for match a") as caught:
        sink.write([a_match(id="a"), a_match(id="b")])
    assert caught.value.count == 2
    assert path.read_text().count("\n") == 2


def test_a_command_that_takes_too_long_is_ended() -> None:
    sink = CommandSink("sleep 30", timeout=0.05)
    with pytest.raises(UndeliveredError, match=r"took more than 0\.05 s"):
        sink.write([a_match()])


def test_a_command_that_is_killed_is_told() -> None:
    with pytest.raises(UndeliveredError, match="was ended by signal 9"):
        CommandSink("sh -c 'kill -9 $$'").write([a_match()])


def test_a_command_that_does_not_read_is_fine() -> None:
    CommandSink("true").write([a_match(message="x" * 200_000)])


@pytest.mark.parametrize(
    ("command", "reason"),
    [
        ("", "is empty"),
        ("no-such-program-here", "no program `no-such-program-here`"),
        ("sh -c 'open", "cannot read the command"),
    ],
)
def test_a_command_that_cannot_run_is_told_at_once(command: str, reason: str) -> None:
    with pytest.raises(SinkError, match=reason):
        split_command(command)
