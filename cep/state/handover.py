"""Where two threads meet: the engine's hands over epochs, the writer's makes them durable.

One epoch at a time: who hands over the next one waits for the one before, so a slow disk slows the
engine instead of filling the memory. What cannot be written for now stays here, nothing is lost.
"""

from __future__ import annotations

import threading

from cep.state.store import Epoch, StateError


class Handover:
    """Holds the epoch that is being written, and what became of it."""

    def __init__(self) -> None:
        self.epoch: Epoch | None = None
        """What is being written, or waits to be."""
        self.problem: str | None = None
        """Why it cannot be written at the moment."""
        self.closed = False
        self._failure: Exception | None = None
        self._told = False
        self._giving_up = False
        self._in_vain: Epoch | None = None
        """What has been waited for until patience was over."""
        self._changed = threading.Condition()

    def put(self, epoch: Epoch) -> None:
        """Hand over an epoch; the one before has been waited for."""
        with self._changed:
            self.epoch = epoch
            self._changed.notify_all()

    def wait(self, timeout: float | None = None) -> bool:
        """Whether the epoch is durable after at most `timeout` seconds; raises if it failed."""
        with self._changed:
            done = self._changed.wait_for(lambda: self.epoch is None, timeout)
            if not done:
                self._in_vain = self.epoch
        if self._failure is not None:
            self._told = True
            raise self._failure
        if self.closed:
            raise StateError("the state file is closed")
        return done

    def close(self, patience: float) -> None:
        """Wait for the epoch, unless that was in vain before, and end the writer; `finish` says
        whether that went well."""
        with self._changed:
            self.closed = True
            self._changed.notify_all()
            if self.epoch is not self._in_vain:
                self._changed.wait_for(lambda: self.epoch is None, patience)
            self._giving_up = True
            self._changed.notify_all()

    def finish(self) -> None:
        """After the writer has ended: raise what it could not do, unless that has been told."""
        if self._failure is not None and not self._told:
            raise self._failure
        if self.epoch is not None:
            raise StateError(f"{self.problem}; what came after the last checkpoint is not saved")

    def get(self) -> Epoch | None:
        """For the writer: the next epoch, or None when there will be none."""
        with self._changed:
            self._changed.wait_for(lambda: self.epoch is not None or self.closed)
            return None if self._giving_up else self.epoch

    def done(self) -> None:
        """For the writer: the epoch is durable."""
        with self._changed:
            self.epoch = self.problem = None
            self._changed.notify_all()

    def fail(self, error: Exception) -> None:
        """For the writer: the epoch can never be written."""
        with self._changed:
            self.epoch, self._failure = None, error
            self._changed.notify_all()

    def given_up(self, problem: str, pause: float) -> bool:
        """For the writer: wait before the next try; True if there is to be none."""
        with self._changed:
            self.problem = problem
            return self._changed.wait_for(lambda: self._giving_up, pause)
