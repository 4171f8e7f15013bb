"""Writes sample.jsonl and expected.jsonl: the log that `cep demo` runs the pack over.

A small company with thirty people, from the end of January to one busy day in March. Among the
ordinary noise stand, for each rule, something that it must find and something that only looks like
it. What must be found is written down here, as it is put in, not found by running the rules.

    python rules/security/make_sample.py           writes both files beside this script

The same bytes on every machine: only `random.random()` of a seeded generator is used.
"""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TypeVar

Item = TypeVar("Item")
HERE = Path(__file__).parent
DAY = datetime(2026, 3, 12, tzinfo=UTC)
PEOPLE = [
    "ada", "ben", "cleo", "dario", "elif", "finn", "gita", "hugo", "ines", "jonas",
    "kira", "liam", "mona", "nils", "olga", "pia", "quinn", "rosa", "sami", "tilda",
    "umut", "vera", "wim", "xenia", "yann", "zoe", "arne", "bella", "carl", "dora",
]  # fmt: skip
PLACES = {
    "Lyon": (45.76, 4.84),
    "Geneva": (46.2, 6.14),
    "Paris": (48.86, 2.35),
    "Lisbon": (38.72, -9.14),
    "Singapore": (1.35, 103.82),
}


class Log:
    """Collects the events and what must be found in them."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed).random
        self.events: list[tuple[datetime, dict[str, object]]] = []
        self.expected: list[tuple[datetime, str, dict[str, object]]] = []

    def add(self, when: datetime, kind: str, **fields: object) -> datetime:
        self.events.append((when, {"type": kind, **fields}))
        return when

    def expect(self, when: datetime, rule: str, **key: object) -> None:
        self.expected.append((when, rule, key))

    def pick(self, items: list[Item]) -> Item:
        return items[int(self.random() * len(items))]

    def between(self, start: datetime, seconds: float) -> datetime:
        return start + timedelta(milliseconds=int(self.random() * seconds * 1000))

    def login(
        self, when: datetime, user: str, outcome: str = "success", **changed: object
    ) -> datetime:
        city = str(changed.pop("city", "Lyon"))
        lat, lon = PLACES[city]
        number = PEOPLE.index(user) if user in PEOPLE else 90
        usual = {"ip": f"192.0.2.{number + 10}", "device": f"laptop-{number + 1:02}"}
        where = {"city": city, "lat": lat, "lon": lon}
        return self.add(when, "login", user=user, outcome=outcome, **{**usual, **changed, **where})


def at(hours: int, minutes: int = 0, seconds: float = 0, days: int = 0) -> datetime:
    """A moment of the busy day, or of `days` before it."""
    return DAY + timedelta(days=-days, hours=hours, minutes=minutes, seconds=seconds)


# ---------------------------------------------------------------------------- the ordinary


def ordinary_days(log: Log) -> None:
    """People sign in now and then in the weeks before, and all of them on the busy day.

    wim is not among them: his account sleeps from the first day on.
    """
    for days in range(40, 0, -2):
        for _ in range(8):
            user = log.pick([person for person in PEOPLE if person != "wim"])
            log.login(log.between(at(7, days=days), 3 * 3600), user)
    for user in PEOPLE:
        if user == "wim":
            continue
        came = log.between(at(6), 5400)
        if log.random() < 0.4:
            log.login(came - timedelta(seconds=20), user, "failure")
        log.login(came, user)
        log.add(came + timedelta(seconds=8), "mfa", user=user, ip="192.0.2.1", outcome="approved")


def ordinary_traffic(log: Log) -> None:
    """Connections at random moments, a few refused, and a time server asked every 64 seconds."""
    servers = ["10.0.0.10", "10.0.0.11", "10.0.0.12", "10.0.0.20"]
    for _ in range(900):
        source, target = f"10.0.1.{int(log.random() * 30) + 10}", log.pick(servers)
        outcome = "refused" if log.random() < 0.03 else "allowed"
        port = log.pick([22, 53, 80, 443, 443, 443, 445, 5432])
        when = log.between(at(6), 12 * 3600)
        log.add(when, "connection", source=source, target=target, port=port, outcome=outcome)
    for i in range(60):
        when = at(9, seconds=64 * i)
        log.add(
            when, "connection", source="10.0.1.17", target="10.0.0.1", port=123, outcome="allowed"
        )


# ---------------------------------------------------------------------------- passwords


def guessed_password(log: Log) -> None:
    start = at(11, 3)
    for i in range(23):
        log.login(
            start + timedelta(seconds=7 * i), "gita", "failure", ip="203.0.113.66", device="unknown"
        )
    entry = log.login(start + timedelta(seconds=171), "gita", ip="203.0.113.66", device="unknown")
    log.expect(entry, "password_guessing", user="gita")


def forgotten_password(log: Log) -> None:
    """Four tries, and the fifth is right; later twelve tries over an hour."""
    for i in range(4):
        log.login(at(8, 40, 15 * i), "hugo", "failure")
    log.login(at(8, 41, 30), "hugo")
    for i in range(12):
        log.login(at(14, 5 * i), "nils", "failure")
    log.login(at(15), "nils")


def sprayed_password(log: Log) -> None:
    """One address goes through the staff, twice; the second round is within the hour."""
    for start in (at(3, 12), at(3, 40)):
        for i, user in enumerate(PEOPLE[:14]):
            tried = log.login(
                start + timedelta(seconds=11 * i),
                user,
                "failure",
                ip="198.51.100.23",
                device="unknown",
            )
            if start == at(3, 12) and i == 9:
                log.expect(tried, "password_spraying", ip="198.51.100.23")


def shared_kiosk(log: Log) -> None:
    """Nine people fail at one terminal within a few minutes, some of them twice."""
    for i, user in enumerate([*PEOPLE[15:22], *PEOPLE[15:24]]):
        if user != "wim":
            log.login(at(12, 30, 20 * i), user, "failure", ip="192.0.2.200")


def worn_down(log: Log) -> None:
    for i in range(6):
        log.add(at(22, 50, 35 * i), "mfa", user="rosa", ip="203.0.113.80", outcome="denied")
    gave_in = log.add(at(22, 54), "mfa", user="rosa", ip="203.0.113.80", outcome="approved")
    log.expect(gave_in, "push_fatigue", user="rosa")
    for i in range(2):
        log.add(at(13, 10, 40 * i), "mfa", user="sami", ip="192.0.2.1", outcome="denied")
    log.add(at(13, 12), "mfa", user="sami", ip="192.0.2.1", outcome="approved")


# ---------------------------------------------------------------------------- accounts


def two_places(log: Log) -> None:
    log.login(at(15, 20), "kira", city="Lyon")
    far = log.login(at(16, 5), "kira", city="Singapore", ip="203.0.113.7", device="unknown")
    log.expect(far, "impossible_travel", user="kira")
    log.login(at(16), "liam", city="Lyon")
    log.login(at(16, 50), "liam", city="Geneva")
    log.login(at(18), "mona", city="Paris")
    log.login(at(20, 30), "mona", city="Lisbon")


def woken_account(log: Log) -> None:
    log.login(at(8, 30, days=41), "wim")
    back = log.login(at(2, 47), "wim", ip="203.0.113.99", device="phone-77")
    log.expect(back, "dormant_account", user="wim")


def passing_account(log: Log) -> None:
    log.add(at(1, 15), "account", user="svc-tmp", admin="dario", action="created")
    for minute in (20, 44):
        log.login(at(1, minute), "svc-tmp", device="server-3")
    gone = log.add(at(2, 30), "account", user="svc-tmp", admin="dario", action="deleted")
    log.expect(gone, "short_lived_account", user="svc-tmp")
    log.add(at(9, 0, days=4), "account", user="intern-4", admin="ines", action="created")
    log.add(at(9, 30), "account", user="intern-4", admin="ines", action="deleted")


# ---------------------------------------------------------------------------- traces


def wiped_log(log: Log) -> None:
    group = "Domain Admins"
    log.add(
        at(1, 50), "group_change",
        host="dc1", admin="dario", member="svc-tmp", group=group, action="added",
    )  # fmt: skip
    wiped = log.add(at(2, 21), "log_cleared", host="dc1", user="svc-tmp", log="Security")
    log.expect(wiped, "admin_wipes_log", host="dc1")
    log.add(
        at(10), "group_change",
        host="app1", admin="ines", member="jonas", group="Administrators", action="added",
    )  # fmt: skip
    log.add(at(10, 20), "log_cleared", host="app1", user="vera", log="Application")
    log.add(at(11, 10), "log_cleared", host="app1", user="jonas", log="Application")


def stopped_agents(log: Log) -> None:
    """dc1 stays unprotected; others are updated, shut down, or too slow by a second."""
    log.add(at(2, 5), "agent", host="dc1", status="stopped")
    log.expect(at(2, 15), "agent_silenced", host="dc1")
    for i in range(12):
        stopped = log.add(at(5, 3 * i), "agent", host=f"pc{i + 1:02}", status="stopped")
        log.add(stopped + timedelta(seconds=95), "agent", host=f"pc{i + 1:02}", status="started")
    for i in range(6):
        stopped = log.add(at(18, 7 * i), "agent", host=f"pc{i + 1:02}", status="stopped")
        log.add(stopped + timedelta(seconds=20), "shutdown", host=f"pc{i + 1:02}")
    log.add(at(7), "agent", host="app2", status="stopped")
    log.add(at(7, 10, 1), "agent", host="app2", status="started")
    log.expect(at(7, 10), "agent_silenced", host="app2")
    log.add(at(23, 55), "agent", host="pc30", status="stopped")


# ---------------------------------------------------------------------------- network


def scanned_ports(log: Log) -> None:
    ports = [21, 22, 23, 25, 80, 110, 135, 139, 143, 443, 445, 1433, 3306, 3389, 5432, 8080]
    for i, port in enumerate(ports):
        knock = log.add(
            at(2, 55, 0.4 * i), "connection",
            source="10.0.1.66", target="10.0.0.20", port=port, outcome="refused",
        )  # fmt: skip
        if i == 14:
            log.expect(knock, "port_scan", source="10.0.1.66", target="10.0.0.20")
    for i, port in enumerate(ports[:14]):
        log.add(
            at(13, 30, i), "connection",
            source="10.0.1.30", target="10.0.0.11", port=port, outcome="refused",
        )  # fmt: skip


def swept_hosts(log: Log) -> None:
    for i in range(25):
        knock = log.add(
            at(2, 58, 0.5 * i), "connection",
            source="10.0.1.66", target=f"10.0.0.{30 + i}", port=445, outcome="refused",
        )  # fmt: skip
        if i == 9:
            log.expect(knock, "host_sweep", source="10.0.1.66", port=445)
    for i in range(40):
        log.add(
            at(10, 5, i), "connection",
            source="10.0.1.22", target=f"10.0.0.{10 + i % 3}", port=8443, outcome="refused",
        )  # fmt: skip


def called_home(log: Log) -> None:
    """Every five minutes, give or take; and a reader of news, as regular as people are."""
    for i in range(40):
        call = log.add(
            log.between(at(3, 5 * i), 12), "connection",
            source="10.0.1.66", target="203.0.113.200", port=443, outcome="allowed",
        )  # fmt: skip
        if i == 11:
            log.expect(call, "beaconing", source="10.0.1.66", target="203.0.113.200", port=443)
    when = at(8)
    for _ in range(40):
        when += timedelta(seconds=int(120 + 600 * log.random()))
        log.add(
            when, "connection",
            source="10.0.1.25", target="198.51.100.80", port=443, outcome="allowed",
        )  # fmt: skip


STORIES = (
    ordinary_days, ordinary_traffic,
    guessed_password, forgotten_password, sprayed_password, shared_kiosk, worn_down,
    two_places, woken_account, passing_account,
    wiped_log, stopped_agents,
    scanned_ports, swept_hosts, called_home,
)  # fmt: skip


def make(seed: int = 7) -> Log:
    """The whole log, in no particular order yet."""
    log = Log(seed)
    for story in STORIES:
        story(log)
    return log


def sample_lines(log: Log) -> Iterator[str]:
    """The events as JSON lines in the order of time."""
    for when, fields in sorted(log.events, key=lambda event: event[0]):
        yield json.dumps({"timestamp": stamp(when), **fields}) + "\n"


def expected_lines(log: Log) -> Iterator[str]:
    """What must be found, in the order of time."""
    for when, rule, key in sorted(log.expected, key=lambda found: found[0]):
        yield json.dumps({"time": stamp(when), "rule": rule, "key": key}) + "\n"


def stamp(when: datetime) -> str:
    text = when.isoformat(timespec="milliseconds" if when.microsecond else "seconds")
    return text.replace("+00:00", "Z")


if __name__ == "__main__":
    log = make()
    (HERE / "sample.jsonl").write_text("".join(sample_lines(log)))
    (HERE / "expected.jsonl").write_text("".join(expected_lines(log)))
