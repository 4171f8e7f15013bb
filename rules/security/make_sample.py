"""Writes sample.jsonl and expected.jsonl: the log that `cep demo` runs the pack over.

A small company with thirty people, from the end of January to one busy day in March. Among the
ordinary noise stand, for each rule, something that it must find and something that only looks like
it. Most events have the names of the pack; those of an SSH server and of a Windows host come as
these write them.

    python -m rules.security.make_sample
"""

from __future__ import annotations

from datetime import datetime, timedelta

from rules.sample_log import Log, at, filled, stamp, write

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


class SecurityLog(Log):
    """A log with people who have a laptop and an address each."""

    def login(
        self, when: datetime, user: str, outcome: str = "success", **changed: object
    ) -> datetime:
        city = str(changed.pop("city", "Lyon"))
        lat, lon = PLACES[city]
        number = PEOPLE.index(user) if user in PEOPLE else 90
        usual = {"ip": f"192.0.2.{number + 10}", "device": f"laptop-{number + 1:02}"}
        where = {"city": city, "lat": lat, "lon": lon}
        return self.add(when, "login", user=user, outcome=outcome, **{**usual, **changed, **where})

    def sshd(self, when: datetime, message: str) -> datetime:
        """A line of the SSH server on bastion, as syslog has it."""
        self.events.append((when, {"host": "bastion", "app": "sshd", "message": message}))
        return when

    def windows(self, when: datetime, number: int, **data: str) -> datetime:
        """An event of Windows or Sysmon with its own names."""
        fields = {"EventID": number, "TimeCreated": stamp(when), "Hostname": "app3", **data}
        self.events.append((when, fields))
        return when


# ---------------------------------------------------------------------------- the ordinary


def ordinary_days(log: SecurityLog) -> None:
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


def ordinary_traffic(log: SecurityLog) -> None:
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


def guessed_password(log: SecurityLog) -> None:
    start = at(11, 3)
    for i in range(23):
        log.login(
            start + timedelta(seconds=7 * i), "gita", "failure", ip="203.0.113.66", device="unknown"
        )
    log.expect(start + timedelta(seconds=28), "address_guessing", ip="203.0.113.66")
    entry = log.login(start + timedelta(seconds=171), "gita", ip="203.0.113.66", device="unknown")
    log.expect(entry, "password_guessing", user="gita")


def forgotten_password(log: SecurityLog) -> None:
    """Four tries, and the fifth is right; later twelve tries over an hour."""
    for i in range(4):
        log.login(at(8, 40, 15 * i), "hugo", "failure")
    log.login(at(8, 41, 30), "hugo")
    for i in range(12):
        log.login(at(14, 5 * i), "nils", "failure")
    log.login(at(15), "nils")


def sprayed_password(log: SecurityLog) -> None:
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
    log.expect(at(3, 12, 44), "address_guessing", ip="198.51.100.23")


def shared_kiosk(log: SecurityLog) -> None:
    """Nine people fail at one terminal within a few minutes, some of them twice."""
    for i, user in enumerate([*PEOPLE[15:22], *PEOPLE[15:24]]):
        if user != "wim":
            log.login(at(12, 30, 20 * i), user, "failure", ip="192.0.2.200")
    log.expect(at(12, 31, 20), "address_guessing", ip="192.0.2.200")


def worn_down(log: SecurityLog) -> None:
    for i in range(6):
        log.add(at(22, 50, 35 * i), "mfa", user="rosa", ip="203.0.113.80", outcome="denied")
    gave_in = log.add(at(22, 54), "mfa", user="rosa", ip="203.0.113.80", outcome="approved")
    log.expect(gave_in, "push_fatigue", user="rosa")
    for i in range(2):
        log.add(at(13, 10, 40 * i), "mfa", user="sami", ip="192.0.2.1", outcome="denied")
    log.add(at(13, 12), "mfa", user="sami", ip="192.0.2.1", outcome="approved")


# ---------------------------------------------------------------------------- accounts


def two_places(log: SecurityLog) -> None:
    log.login(at(15, 20), "kira", city="Lyon")
    far = log.login(at(16, 5), "kira", city="Singapore", ip="203.0.113.7", device="unknown")
    log.expect(far, "impossible_travel", user="kira")
    log.login(at(16), "liam", city="Lyon")
    log.login(at(16, 50), "liam", city="Geneva")
    log.login(at(18), "mona", city="Paris")
    log.login(at(20, 30), "mona", city="Lisbon")


def woken_account(log: SecurityLog) -> None:
    log.login(at(8, 30, days=41), "wim")
    back = log.login(at(2, 47), "wim", ip="203.0.113.99", device="phone-77")
    log.expect(back, "dormant_account", user="wim")


def passing_account(log: SecurityLog) -> None:
    log.add(at(1, 15), "account", user="svc-tmp", admin="dario", action="created")
    for minute in (20, 44):
        log.login(at(1, minute), "svc-tmp", device="server-3")
    gone = log.add(at(2, 30), "account", user="svc-tmp", admin="dario", action="deleted")
    log.expect(gone, "short_lived_account", user="svc-tmp")
    log.add(at(9, 0, days=4), "account", user="intern-4", admin="ines", action="created")
    log.add(at(9, 30), "account", user="intern-4", admin="ines", action="deleted")


# ---------------------------------------------------------------------------- traces


def wiped_log(log: SecurityLog) -> None:
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


def stopped_agents(log: SecurityLog) -> None:
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


def scanned_ports(log: SecurityLog) -> None:
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


def swept_hosts(log: SecurityLog) -> None:
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


def called_home(log: SecurityLog) -> None:
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


def explored_server(log: SecurityLog) -> None:
    """The attacker asks the domain controller who is who; others only open its shares."""
    here, there = "10.0.1.66", "10.0.0.5"
    log.add(at(1, 30), "lookup", source=here, query="dc1.corp.example", answers=[there])
    log.add(at(1, 31), "share", source=here, target=there, share="\\\\dc1\\IPC$")
    asked = log.add(at(1, 33), "call", source=here, target=there, interface="samr")
    log.expect(asked, "server_explored", source=here)
    for i in range(20):
        source, when = f"10.0.1.{10 + i}", log.between(at(7), 7200)
        log.add(when, "lookup", source=source, query="files.corp.example", answers=["10.0.0.12"])
        opened = when + timedelta(seconds=1)
        log.add(opened, "share", source=source, target="10.0.0.12", share="\\\\files\\home")


def trusted_nobody(log: SecurityLog) -> None:
    for i in range(12):
        when = at(3, 5 * i, 1)
        seen = {"source": "10.0.1.66", "target": "203.0.113.200"}
        log.add(when, "tls", judgement="self signed certificate", **seen)
        if i % 2 == 0:
            log.expect(when, "self_signed_session", **seen)
    for _ in range(50):
        source, target = f"10.0.1.{log.whole(10, 40)}", f"198.51.100.{log.whole(80, 90)}"
        log.add(log.between(at(7), 36000), "tls", source=source, target=target, judgement="ok")


# ---------------------------------------------------------------------------- hosts


def moved_sideways(log: SecurityLog) -> None:
    """From dc1 to db1 with a tool that installs a service; administrators install services too."""
    log.add(at(2, 40), "log_cleared", host="db1", user="svc-tmp", log="Security")
    log.add(at(2, 40, 0.1), "log_cleared", host="db1", user="svc-tmp", log="System")
    installed = log.add(at(2, 40, 6), "service", host="db1", service="PSEXESVC")
    log.expect(installed, "wiped_then_service", host="db1")
    image = "C:\\windows\\PSEXESVC.exe"
    log.add(at(2, 40, 6.1), "pipe", host="db1", pipe="\\PSEXESVC", image=image)
    command = "reg save HKLM\\security\\policy\\secrets C:\\Temp\\s"
    ran = log.add(at(2, 40, 7), "process", host="db1", parent=image, command=command)
    log.expect(ran, "remote_service", host="db1")
    log.expect(ran, "secrets_saved", host="db1")
    log.add(at(10, 30), "service", host="app1", service="backup")
    log.add(at(10, 30, 2), "process", host="app1", parent="services.exe", command="backup.exe /now")
    log.add(at(10, 31), "process", host="app1", parent="cmd.exe", command="reg query HKLM\\sam")


# ---------------------------------------------------------------------------- logs as they are


def knocked_at_ssh(log: SecurityLog) -> None:
    """Failures that syslog has put into one line: two and four are enough, two and two are not."""
    for number, times, minute in ((120, 4, 10), (121, 2, 20)):
        line = f"Failed password for root from 203.0.113.{number} port 40{number} ssh2"
        for second in (0, 3):
            log.sshd(at(4, minute, second), line)
        again = log.sshd(at(4, minute, 15), f"message repeated {times} times: [ {line}]")
        if times == 4:
            log.expect(again, "address_guessing", ip="203.0.113.120")
    log.sshd(at(8, 2), "Accepted publickey for ines from 192.0.2.18 port 40500 ssh2")


def audited_programs(log: SecurityLog) -> None:
    """The audit log and Sysmon tell of one program, which counts once; others are harmless or have
    no command."""
    image = "C:\\Windows\\System32\\reg.exe"
    shell = "C:\\Windows\\System32\\cmd.exe"
    command = "reg save HKLM\\sam C:\\Temp\\m"
    saved = log.windows(
        at(4, 31), 4688,
        SubjectUserName="svc-tmp", NewProcessName=image, ParentProcessName=shell,
        CommandLine=command,
    )  # fmt: skip
    log.expect(saved, "secrets_saved", host="app3")
    log.windows(
        at(4, 31, 0.2), 1,
        User="CORP\\svc-tmp", Image=image, ParentImage=shell, CommandLine=command,
    )  # fmt: skip
    log.windows(
        at(9, 12), 4688,
        SubjectUserName="ines", NewProcessName=image, ParentProcessName=shell,
        CommandLine="reg query HKLM\\sam",
    )  # fmt: skip
    log.windows(
        at(9, 13), 4688,
        SubjectUserName="ines", NewProcessName=image, ParentProcessName=shell,
    )  # fmt: skip


STORIES = (
    ordinary_days, ordinary_traffic,
    guessed_password, forgotten_password, sprayed_password, shared_kiosk, worn_down,
    two_places, woken_account, passing_account,
    wiped_log, stopped_agents,
    scanned_ports, swept_hosts, called_home, explored_server, trusted_nobody,
    moved_sideways,
    knocked_at_ssh, audited_programs,
)  # fmt: skip


def make() -> Log:
    return filled(SecurityLog(), STORIES)


if __name__ == "__main__":
    write(__file__, make())
