"""Writes sample.jsonl and expected.jsonl: a day of four services and their certificates.

python -m rules.operations.make_sample
"""

from __future__ import annotations

from datetime import timedelta

from rules.sample_log import Log, at, filled, write

SERVICES = ["shop", "search", "billing", "images"]


def ordinary_requests(log: Log) -> None:
    """One request in twenty seconds or so to each service; one in two hundred fails."""
    for service in SERVICES:
        when = at(6)
        while when < at(10):
            when += timedelta(seconds=log.whole(10, 30))
            number = len(log.events)
            status = 500 if number % 200 == 0 else 404 if number % 17 == 0 else 200
            log.add(when, "request", service=service, status=status)


def bad_release(log: Log) -> None:
    """billing fails after a release; images was released too, and fails hours later."""
    log.add(at(11, 0), "deployment", service="billing", version="4.2.0")
    log.add(at(9, 0), "deployment", service="images", version="2.0.1")
    for service, start in (("billing", at(11, 2)), ("images", at(13))):
        for i in range(120):
            failed = i >= 50
            when = start + timedelta(seconds=i)
            log.add(when, "request", service=service, status=503 if failed else 200)
        began = start + timedelta(seconds=52)
        log.expect(began, "error_burst", service=service)
        if service == "billing":
            log.expect(began, "bad_deployment", service=service)


def rolled_back(log: Log) -> None:
    """search is rolled back at once; its errors come all the same."""
    log.add(at(15), "deployment", service="search", version="7.7.0")
    log.add(at(15, 1), "rollback", service="search")
    for i in range(60):
        log.add(at(15, 2, i), "request", service="search", status=500)
    log.expect(at(15, 2, 49), "error_burst", service="search")


def quiet_night(log: Log) -> None:
    """Thirty requests, all of which fail, are too few to tell."""
    for i in range(30):
        log.add(at(3, 0, 5 * i), "request", service="shop", status=500)


def health_checks(log: Log) -> None:
    """search flaps; shop goes down twice in an hour."""
    for i in range(4):
        log.add(at(8, 2 * i), "health", service="search", state="down")
        up = log.add(at(8, 2 * i, 50), "health", service="search", state="up")
        if i == 2:
            log.expect(up, "flapping_service", service="search")
    for i in range(2):
        log.add(at(8, 25 * i), "health", service="shop", state="down")
        log.add(at(8, 25 * i + 2), "health", service="shop", state="up")


def crashes(log: Log) -> None:
    """images crashes at its start; billing has a worker that ends cleanly every minute."""
    for i in range(7):
        end = log.add(at(12, i), "process_exit", service="images", exit_code=137, uptime_s=20)
        if i == 3:
            log.expect(end, "crash_loop", service="images")
        log.add(at(12, i), "process_exit", service="billing", exit_code=0, uptime_s=30)
        log.add(at(12, 9 * i), "process_exit", service="shop", exit_code=1, uptime_s=400)


def certificates(log: Log) -> None:
    """Looked at every day for three weeks; www is renewed, mail is forgotten, and told of
    again when the look after the first alert has gone unanswered too."""
    for day in range(21):
        for number, host in enumerate(["www", "mail", "api"]):
            left = (80 if host == "api" else 26) - day
            renewed = host == "www" and left <= 13
            left = 90 - day if renewed else left
            when = at(5, 0, number, days=20 - day)
            log.add(when, "certificate", host=host, days_left=left)
    log.add(at(16, days=8), "certificate_renewed", host="www")
    seen = at(5, 0, 1, days=8)
    for days in (3, 7):
        log.expect(seen + timedelta(days=days), "certificate_unanswered", host="mail")


STORIES = (
    ordinary_requests, bad_release, rolled_back, quiet_night, health_checks, crashes, certificates,
)  # fmt: skip


def make() -> Log:
    return filled(Log(), STORIES)


if __name__ == "__main__":
    write(__file__, make())
