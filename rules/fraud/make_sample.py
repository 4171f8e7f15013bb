"""Writes sample.jsonl and expected.jsonl: a day at a bank and at a shop, and the weeks before.

python -m rules.fraud.make_sample
"""

from __future__ import annotations

from datetime import timedelta

from rules.sample_log import Log, at, filled, write

SHOPS = ["grocer", "bakery", "books", "fuel", "cinema", "shoes", "phones"]
VENDORS = ["Acme", "Bolt & Co", "Cable GmbH", "Dune Ltd"]


def ordinary_charges(log: Log) -> None:
    """Four hundred cards; now and then a small sum, a large one, a declined one."""
    for number in range(400):
        card = f"4000-{number:04}"
        for _ in range(log.whole(1, 4)):
            small = log.random() < 0.1
            amount = 2 if small else round(5 + 300 * log.random() ** 3, 2)
            status = "declined" if log.random() < 0.05 else "approved"
            when = log.between(at(6), 16 * 3600)
            order = log.whole(100_000, 999_999)
            shop = log.pick(SHOPS)
            log.add(
                when, "charge",
                card=card, merchant=shop, amount=amount, status=status, order=order,
            )  # fmt: skip


def tested_cards(log: Log) -> None:
    """Three stolen cards: two are alive, the third is declined where it matters."""
    for i, (card, status) in enumerate(
        [("4999-0001", "approved"), ("4999-0002", "approved"), ("4999-0003", "declined")]
    ):
        start = at(2, 10 * i)
        for j in range(4):
            log.add(
                start + timedelta(seconds=40 * j), "charge",
                card=card, merchant="charity", amount=1, status="approved", order=500 + 10 * i + j,
            )  # fmt: skip
        haul = log.add(
            start + timedelta(minutes=6), "charge",
            card=card, merchant="phones", amount=899, status=status, order=590 + i,
        )  # fmt: skip
        if status == "approved":
            log.expect(haul, "card_testing", card=card)


def patient_customer(log: Log) -> None:
    """Three coffees and then a coat, but over two hours."""
    for i in range(3):
        log.add(
            at(9, 50 * i), "charge",
            card="4000-9001", merchant="bakery", amount=2, status="approved", order=600 + i,
        )  # fmt: skip
    log.add(
        at(11, 30), "charge",
        card="4000-9001", merchant="shoes", amount=240, status="approved", order=604,
    )  # fmt: skip


def refunds(log: Log) -> None:
    for i in range(12):
        order, card = 700 + i, f"4000-{i:04}"
        log.add(
            at(12, i, days=5), "charge",
            card=card, merchant="shoes", amount=90, status="approved", order=order,
        )  # fmt: skip
        back = "4999-0009" if i == 7 else card
        refunded = log.add(at(13, i), "refund", order=order, card=back, amount=90)
        if i == 7:
            log.expect(refunded, "refund_elsewhere", order=order)


def taken_accounts(log: Log) -> None:
    """One account is emptied, of another the owner was called; others pay their rent."""
    for account, confirmed in (("DE-17", False), ("DE-18", True)):
        log.add(at(8), "password_reset", account=account)
        log.add(at(8, 4), "payee_added", account=account, payee="XX-99")
        if confirmed:
            log.add(at(8, 20), "owner_confirmed", account=account)
        gone = log.add(at(8, 31), "transfer", account=account, payee="XX-99", amount=4800)
        if not confirmed:
            log.expect(gone, "account_takeover", account=account)
    for number in range(60):
        account = f"DE-{100 + number}"
        if number % 5 == 0:
            log.add(log.between(at(6), 3600), "password_reset", account=account)
        rent = log.whole(300, 1900)
        log.add(log.between(at(9), 30_000), "transfer", account=account, payee="rent", amount=rent)


def cash(log: Log) -> None:
    """One customer stays below the limit three times; shops bring what they took."""
    for i, branch in enumerate(["north", "south", "east"]):
        paid = log.add(
            at(10, days=2 - i), "cash_deposit", customer="C-31", branch=branch, amount=4200
        )
    log.expect(paid, "structuring", customer="C-31")
    for days in range(20):
        for number in range(6):
            when = log.between(at(15, days=days), 3600)
            amount = log.whole(150, 900)
            log.add(
                when, "cash_deposit", customer=f"C-{50 + number}", branch="north", amount=amount
            )
    log.add(at(11, days=3), "cash_deposit", customer="C-32", branch="south", amount=14_000)
    log.add(at(11, days=1), "cash_deposit", customer="C-32", branch="south", amount=9_900)


def bills(log: Log) -> None:
    for number in range(80):
        vendor = log.pick(VENDORS)
        amount = 100 + 10 * log.whole(1, 90)
        when = log.between(at(8, days=number), 8 * 3600)
        log.add(
            when, "invoice", vendor=vendor, number=f"2026-{number:04}", amount=amount,
            currency="EUR",
        )  # fmt: skip
    log.add(
        at(9, days=20), "invoice", vendor="Acme", number="RE 2025-117", amount=990, currency="EUR"
    )
    copy = log.add(at(16), "invoice", vendor="Acme", number="re2025117", amount=990, currency="EUR")
    log.expect(copy, "duplicate_invoice", vendor="Acme", amount=990, currency="EUR")
    log.add(at(16, 5), "invoice", vendor="Acme", number="re2025117", amount=991, currency="EUR")


STORIES = (
    ordinary_charges, tested_cards, patient_customer, refunds, taken_accounts, cash, bills,
)  # fmt: skip


def make() -> Log:
    return filled(Log(), STORIES)


if __name__ == "__main__":
    write(__file__, make())
