"""All sinks of a run together: every match goes to each of them, and their faults are kept.

A sink that cannot go on is reported once and left out; the others go on, and what it missed is
counted. When none is left the run has no purpose: the last fault is raised. In a `strict` run,
which can be taken up again with nothing lost, the first fault is. A sink that holds up the run is
told of too.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from time import perf_counter
from typing import TYPE_CHECKING

from cep.sink.base import ClosedPipe, Sink, SinkError, UndeliveredError

if TYPE_CHECKING:
    from cep.match import Match

SLOW_SHARE = 0.3
"""A sink that took more than this share of the run's time is called slow …"""

SLOW_SECONDS = 2.0
"""… if that was more than this many seconds."""

LOUD = 5
"""Reports of undelivered matches that a sink may make; further ones are only counted."""


@dataclass(slots=True)
class Account:
    """What became of the matches given to one sink; `seconds` is the time spent in it."""

    sink: Sink
    delivered: int = 0
    undelivered: int = 0
    reports: int = 0
    seconds: float = 0.0
    failed: bool = False


class Fanout:
    """Gives each match to every sink.

    `report` is called with a line of plain words for each fault. After `close`, `undelivered`
    counts what some sink did not take.
    """

    def __init__(
        self, sinks: Sequence[Sink], report: Callable[[str], None], *, strict: bool = False
    ) -> None:
        self._strict = strict
        self.accounts = [Account(sink) for sink in sinks]
        self._report = report
        self._started = perf_counter()
        self._left: ClosedPipe | None = None

    def write(self, matches: Sequence[Match]) -> None:
        """Give the matches to all sinks and flush. Raises `SinkError` if no sink is left."""
        if not matches:
            return
        for account in self.accounts:
            if account.failed:
                account.undelivered += len(matches)
            else:
                self._deliver(account, matches)

    def _deliver(self, account: Account, matches: Sequence[Match]) -> None:
        start = perf_counter()
        missed = 0
        try:
            account.sink.write(matches)
            account.sink.flush()
        except UndeliveredError as fault:
            missed = fault.count
            self._report_undelivered(account, fault)
        except SinkError as fault:
            missed = len(matches)
            self._give_up(account, fault)
        finally:
            account.seconds += perf_counter() - start
            account.undelivered += missed
            account.delivered += len(matches) - missed

    def _report_undelivered(self, account: Account, fault: UndeliveredError) -> None:
        account.reports += 1
        if account.reports <= LOUD:
            more = f" (and {fault.count - 1} more matches)" if fault.count > 1 else ""
            self._report(f"{fault}{more}")
        elif account.reports == LOUD + 1:
            self._report(f"further failures of `{account.sink.name}` are only counted")

    def _give_up(self, account: Account, fault: SinkError) -> None:
        """Leave the sink out; the fault is raised if it was the last one or its reader left."""
        account.failed = True
        if isinstance(fault, ClosedPipe):
            self._left = fault
        if self._strict or self._left is not None or all(o.failed for o in self.accounts):
            raise fault
        self._report(f"{fault}; the run goes on without this output")

    def settle(self) -> dict[str, int]:
        """Make everything durable; the length of each file, by its absolute path. Raises
        `SinkError`."""
        lengths = {a.sink.name: a.sink.settle() for a in self.accounts if not a.failed}
        return {
            os.path.abspath(name): length for name, length in lengths.items() if length is not None
        }

    def close(self) -> None:
        """Close all sinks, also when one fails; then tell of undelivered matches and slow sinks.

        Raises `ClosedPipe` if a reader left, now or earlier; then nobody is told anything.
        """
        left = self._left
        for account in self.accounts:
            try:
                account.sink.close()
            except ClosedPipe as fault:
                left = fault
            except SinkError as fault:
                if not account.failed:
                    self._report(str(fault))
                account.failed = True
        if left is not None:
            raise left
        self._tell_faults(perf_counter() - self._started)

    def _tell_faults(self, elapsed: float) -> None:
        for account in self.accounts:
            if account.undelivered:
                self._report(f"{account.undelivered} matches did not reach {account.sink.name}")
            if account.seconds > max(SLOW_SECONDS, SLOW_SHARE * elapsed):
                self._report(
                    f"{account.sink.name} is slow: it took {account.seconds:.1f} s"
                    f" of the {elapsed:.1f} s of this run"
                )

    @property
    def undelivered(self) -> int:
        """Deliveries that failed, over all sinks."""
        return sum(account.undelivered for account in self.accounts)

    @property
    def complete(self) -> bool:
        """Whether every sink took every match and closed well."""
        return not any(account.undelivered or account.failed for account in self.accounts)
