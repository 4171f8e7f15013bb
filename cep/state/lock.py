"""One process for one state file: the lock that holds as long as the process lives.

The lock is the operating system's (`flock`) on a file of its own beside the state file, never on
the state file itself, where SQLite keeps locks that closing any other handle would drop. It ends
with the process, however that ends, so there is no stale lock to remove; the file that is left
behind means nothing. It holds the id of the process, for the message that the next one gets.
"""

from __future__ import annotations

import fcntl
import os
from contextlib import suppress

from cep.state.store import StateError


class FileLock:
    """Holds `PATH-lock` until `release`. Raises `StateError` if somebody else does.

    Two locks in the same process exclude each other too, and so do two names of one file.
    """

    def __init__(self, path: str) -> None:
        self._file = _locked(path, os.path.realpath(path) + "-lock")

    def release(self) -> None:
        """Let others have the file. May be called twice."""
        if self._file >= 0:
            os.close(self._file)
            self._file = -1


def _locked(path: str, beside: str) -> int:
    try:
        file = os.open(beside, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
    except OSError as error:
        raise StateError(f"cannot keep state in {path}: {beside}: {error.strerror}") from error
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        holder = os.pread(file, 20, 0).decode("ascii", "replace").strip()
        os.close(file)
        raise StateError(_refusal(path, beside, holder, error)) from error
    with suppress(OSError):  # a full disk: the lock holds without the name of its holder
        os.ftruncate(file, 0)
        os.pwrite(file, f"{os.getpid()}\n".encode(), 0)
    return file


def _refusal(path: str, beside: str, holder: str, error: OSError) -> str:
    if isinstance(error, BlockingIOError):
        who = f"process {holder}" if holder else "another process"
        return (
            f"{path} is in use by {who}: one state file serves one engine at a time; "
            f"stop the other, or name another file"
        )
    return f"cannot lock {path}: {beside}: {error.strerror}"
