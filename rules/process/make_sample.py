"""Writes sample.jsonl and expected.jsonl: two months of a small trading house.

python -m rules.process.make_sample
"""

from __future__ import annotations

from datetime import timedelta

from rules.sample_log import Log, at, filled, write

PEOPLE = ["ada", "ben", "cleo", "dario", "elif"]


def carts(log: Log) -> None:
    """Most carts are paid for; one is left, one is left with next to nothing in it."""
    for number in range(60):
        start = log.between(at(8), 30_000)
        session = f"s{number:03}"
        for i in range(log.whole(1, 6)):
            put = start + timedelta(minutes=3 * i)
            log.add(put, "cart_item", session=session, price=log.whole(5, 80))
        log.add(start + timedelta(minutes=30), "checkout", session=session, order=1000 + number)
    for session, price in (("s900", 40), ("s901", 10)):
        for i in range(3):
            log.add(at(10, 10 * i), "cart_item", session=session, price=price)
    log.expect(at(11, 20), "abandoned_cart", session="s900")


def shipments(log: Log) -> None:
    """Orders leave the house within a day or so; one is forgotten, one is cancelled."""
    for number in range(80):
        order = 1000 + number
        paid = log.add(
            log.between(at(6, days=number % 20 + 5), 40_000), "payment_captured", order=order
        )
        if order == 1033:
            log.expect(paid + timedelta(days=2), "payment_without_shipment", order=order)
        elif order == 1044:
            log.add(paid + timedelta(hours=20), "order_cancelled", order=order)
        else:
            sent = paid + timedelta(hours=log.whole(4, 47))
            log.add(sent, "shipment", order=order)


def order_to_cash(log: Log) -> None:
    """Each document names the one before it; of eight invoices one is never paid."""
    for number in range(8):
        customer, order, delivery, invoice = f"C{number % 3}", number, 100 + number, 200 + number
        start = at(9, number, days=50)
        log.add(start, "order_placed", order=order, customer=customer)
        log.add(
            start + timedelta(days=2), "delivery",
            delivery=delivery, order=order, customer=customer,
        )  # fmt: skip
        billed = log.add(
            start + timedelta(days=3), "invoice",
            invoice=invoice, delivery=delivery, customer=customer,
        )  # fmt: skip
        if number == 5:
            log.expect(billed + timedelta(days=30), "order_to_cash", customer=customer)
        else:
            paid = billed + timedelta(days=10 + number)
            log.add(paid, "payment", invoice=invoice, customer=customer)


def approvals(log: Log) -> None:
    """Two pairs of eyes, but for one request; small ones need only one."""
    for number in range(50):
        user, other = PEOPLE[number % 5], PEOPLE[(number + 1) % 5]
        amount = 300 if number % 7 == 0 else 1000 + 50 * number
        start = log.between(at(8, days=number), 20_000)
        own = number % 7 == 0 or number == 31
        log.add(start, "request_created", request=number, user=user, amount=amount)
        approved = log.add(
            start + timedelta(hours=3), "request_approved",
            request=number, user=user if own else other,
        )  # fmt: skip
        if number == 31:
            log.expect(approved, "four_eyes_violation", request=number)


def reviews(log: Log) -> None:
    """Case n is rejected n times before it is accepted."""
    for case in range(5):
        start = at(10, case, days=20)
        for i in range(case):
            rejected = log.add(start + timedelta(days=i), "review", case=case, result="rejected")
            log.add(start + timedelta(days=i, hours=6), "resubmission", case=case)
            if i == 2:
                log.expect(rejected, "rework_loop", case=case)
        log.add(start + timedelta(days=case), "review", case=case, result="accepted")


def tickets(log: Log) -> None:
    """Urgent tickets after one, seven and twelve hours; a normal one takes a day."""
    for ticket, (priority, hours) in enumerate(
        [("urgent", 1), ("urgent", 7), ("urgent", 12), ("normal", 20)]
    ):
        opened = at(0, ticket)
        log.add(opened, "ticket_opened", ticket=ticket, priority=priority, team="network")
        log.add(opened + timedelta(hours=hours), "ticket_solved", ticket=ticket)
        if priority == "urgent" and hours > 6:
            log.expect(opened + timedelta(hours=6), "sla_reminder", ticket=ticket)
        if priority == "urgent" and hours > 8:
            log.expect(opened + timedelta(hours=8), "sla_breach", ticket=ticket)


STORIES = (carts, shipments, order_to_cash, approvals, reviews, tickets)


def make() -> Log:
    return filled(Log(), STORIES)


if __name__ == "__main__":
    write(__file__, make())
