"""The security pack over real logs, as they are: what it finds is what plain loops count.

The logs are not part of the project; without them these tests are skipped.
"""

from __future__ import annotations

import importlib.util
import json
import re
from collections import Counter
from pathlib import Path

import pytest

import cep
from cep.source import open_source

HERE = Path(__file__).parent
PACK = HERE.parents[1] / "rules" / "security"
LOGS = HERE.parents[1].parent / "shared" / "data"

FOUND = {
    "sshd": {"address_guessing": 12, "password_spraying": 4},
    "windows": {"wiped_then_service": 1, "remote_service": 1, "secrets_saved": 2},
    "zeek": {"server_explored": 2, "self_signed_session": 2},
}
"""All that the pack finds in each log."""

COUNTED_AS = {
    "wiped_then_service": "log_wiped_then_service",
    "remote_service": "remote_service",
    "secrets_saved": "secrets_saved",
    "server_explored": "server_explored",
    "self_signed_session": "self_signed",
}
"""The rules that look for the same as those of `counts.py`, under another name."""

_spec = importlib.util.spec_from_file_location("real_log_counts", HERE / "counts.py")
assert _spec is not None
assert _spec.loader is not None
counts = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(counts)


def path_of(log: str) -> Path:
    path = LOGS / counts.LOGS[log][1]
    if not path.exists():
        pytest.skip(f"no {path}")
    return path


def found_in(log: str, path: Path | None = None) -> list[cep.Match]:
    engine = cep.Engine(cep.load([PACK]))
    matches: list[cep.Match] = []
    read = str(path or path_of(log))
    cep.run_sources(engine, [open_source(read)], on_matches=matches.extend, sort=True)
    matches += engine.close()
    assert engine.stats.rejected == 0
    assert engine.stats.late == 0
    return matches


@pytest.mark.parametrize("log", FOUND)
def test_the_pack_finds_what_is_there(log: str) -> None:
    assert Counter(match.rule for match in found_in(log)) == FOUND[log]


@pytest.mark.parametrize("log", FOUND)
def test_it_is_what_plain_loops_count(log: str) -> None:
    matches = found_in(log)
    counted = counts.LOGS[log][0](path_of(log))
    for rule, name in COUNTED_AS.items():
        if name in counted:
            keys = sorted(tuple(m.key.values()) for m in matches if m.rule == rule)
            assert keys == sorted(tuple(key) for _, *key in counted[name])


@pytest.mark.parametrize("rule", ["password_spraying", "address_guessing"])
def test_guessing_is_what_plain_loops_count(rule: str) -> None:
    found = [
        (m.time // 1_000_000 % 86_400, m.key["ip"]) for m in found_in("sshd") if m.rule == rule
    ]
    count = spraying if rule == "password_spraying" else guessing
    assert found == count(failures(path_of("sshd")))


Failure = tuple[int, str, str]


def failures(path: Path) -> list[Failure]:
    """Second of the day, address and name of each failure, those of repeated lines too."""
    found = []
    for line in path.read_text().splitlines():
        hours, minutes, seconds = map(int, line[7:15].split(":"))
        failed = re.search(r"Failed \S+ for (?:invalid user )?(.*) from (\S+) port", line)
        repeated = re.search(r"message repeated (\d+) times", line)
        if failed is not None:
            times = int(repeated[1]) if repeated is not None else 1
            found += [(hours * 3600 + minutes * 60 + seconds, failed[2], failed[1])] * times
    return found


def guessing(failed: list[Failure]) -> list[tuple[int, str]]:
    """Five of an address within ten minutes, shown once an hour."""
    by_ip: dict[str, list[tuple]] = {}
    for number, (now, ip, user) in enumerate(failed):
        by_ip.setdefault(ip, []).append((number, now, user))
    every = sorted(found for ip, fails in by_ip.items() for found in counts.fives(fails, ip, 600))
    return counts.once_in(every, 3600)


def spraying(failed: list[Failure]) -> list[tuple[int, str]]:
    """Where the names of the last ten minutes become ten, at most once an hour for each address."""
    fails: dict[str, list[tuple[int, str]]] = {}
    enough: dict[str, bool] = {}
    shown: dict[str, int] = {}
    found = []
    for now, ip, user in failed:
        kept = [(t, name) for t, name in fails.get(ip, []) if now - t <= 600]
        was_enough = enough.get(ip, False) and len({name for _, name in kept}) >= 10
        fails[ip] = [*kept, (now, user)]
        enough[ip] = len({name for _, name in fails[ip]}) >= 10
        if enough[ip] and not was_enough and now >= shown.get(ip, -3600) + 3600:
            shown[ip] = now
            found.append((now, ip))
    return found


@pytest.mark.parametrize("as_text", [False, True])
def test_without_sysmon_and_with_event_ids_as_texts_secrets_are_seen(
    tmp_path: Path, as_text: bool
) -> None:
    records = [json.loads(line) for line in path_of("windows").open()]
    left = [record for record in records if record["Channel"] in ("Security", "System")]
    if as_text:
        left = [{**record, "EventID": str(record["EventID"])} for record in left]
    log = tmp_path / "security.jsonl"
    log.write_text("".join(json.dumps(record) + "\n" for record in left))
    found = Counter(match.rule for match in found_in("windows", log))
    assert found == {"wiped_then_service": 1, "secrets_saved": 2}


def test_event_ids_as_texts_make_no_difference(tmp_path: Path) -> None:
    records = [json.loads(line) for line in path_of("windows").open()]
    log = tmp_path / "texts.jsonl"
    texts = ({**record, "EventID": str(record["EventID"])} for record in records)
    log.write_text("".join(json.dumps(record) + "\n" for record in texts))
    assert Counter(match.rule for match in found_in("windows", log)) == FOUND["windows"]
