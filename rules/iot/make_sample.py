"""Writes sample.jsonl and expected.jsonl: a day of a plant with sensors, gateways and cold rooms.

python -m rules.iot.make_sample
"""

from __future__ import annotations

from datetime import timedelta

from rules.sample_log import Log, at, filled, write

BEATING = ["gateway-1", "gateway-2", "pump-1", "valve-1"]


def ordinary_readings(log: Log) -> None:
    """Twelve sensors that wander up and down around twenty degrees, every five minutes."""
    for number in range(12):
        for i in range(12 * 12):
            up = 0.4 if i % 2 else -0.4
            value = round(20 + up + 0.3 * log.random(), 2)
            when = at(6, 5 * i, number)
            log.add(when, "reading", sensor=f"T{number:02}", value=value)


def overheating(log: Log) -> None:
    """T90 climbs to its end; T91 climbs as often, but less than noise does."""
    for i in range(5):
        hot = log.add(at(10, 2 * i), "reading", sensor="T90", value=60 + 3 * i)
        log.add(at(10, 2 * i, 1), "reading", sensor="T91", value=60 + 0.5 * i)
    log.expect(hot, "rising_sensor", sensor="T90")


def frozen_sensor(log: Log) -> None:
    """T92 stops moving at noon; T93 is read too seldom to tell."""
    for i in range(20):
        stuck = log.add(at(12, 5 * i), "reading", sensor="T92", value=21.7)
        if i == 9:
            log.expect(stuck, "stuck_sensor", sensor="T92")
    for i in range(8):
        log.add(at(12, 20 * i), "reading", sensor="T93", value=21.7)


def heartbeats(log: Log) -> None:
    """Every four minutes; pump-1 dies at 14:00, valve-1 pauses for exactly a quarter of an hour,
    probe-7 is taken out of use, and pump-2 is in the list but was never heard of."""
    for device in BEATING:
        for i in range(12 * 15):
            when = at(6, 4 * i, BEATING.index(device))
            paused = device == "valve-1" and at(9) < when < at(9, 11)
            dead = device == "pump-1" and when > at(14)
            if not paused and not dead:
                log.add(when, "heartbeat", device=device)
    log.add(at(9, 0, 3), "heartbeat", device="valve-1")
    log.expect(at(14, 11, 2), "missing_heartbeat", device="pump-1")
    log.add(at(11), "heartbeat", device="probe-7")
    log.add(at(11, 5), "retired", device="probe-7")


def never_heard_of(log: Log) -> None:
    """The clock begins with the first event, at six."""
    log.expect(at(6, 15), "missing_heartbeat", device="pump-2")


def doors(log: Log) -> None:
    """Doors are closed within a minute, but for one that is not, and one that is just in time."""
    for i in range(60):
        opened = log.add(log.between(at(7, 10 * i), 300), "door", door=f"D{i % 6}", state="open")
        log.add(
            opened + timedelta(seconds=log.whole(5, 60)), "door", door=f"D{i % 6}", state="closed"
        )
    log.add(at(13), "door", door="D8", state="open")
    log.add(at(13, 30), "door", door="D8", state="closed")
    log.expect(at(13, 5), "door_left_open", door="D8")
    log.add(at(15), "door", door="D9", state="open")
    log.add(at(15, 5), "door", door="D9", state="closed")


def cold_rooms(log: Log) -> None:
    """Room R1 has its door open for a while, room R2 a compressor that fails at four."""
    for i in range(12 * 12):
        when = at(6, 5 * i)
        log.add(when, "temperature", room="R1", celsius=15 if i == 40 else 3 + i % 2)
        broken = at(16) <= when < at(16, 30)
        log.add(when, "temperature", room="R2", celsius=9.5 if broken else 4)
    log.expect(at(16, 15), "cold_chain_broken", room="R2")
    log.expect(at(16, 30), "cold_chain_broken", room="R2")


STORIES = (
    ordinary_readings, overheating, frozen_sensor, heartbeats, never_heard_of, doors, cold_rooms,
)  # fmt: skip


def make() -> Log:
    return filled(Log(), STORIES)


if __name__ == "__main__":
    write(__file__, make())
