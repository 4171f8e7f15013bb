"""The exit codes of the command line, documented in docs/reference/command-line.md."""

from typing import Final

DONE: Final = 0
FAILED: Final = 1
"""Rule tests failed, the check found errors, files are not formatted, or `--fail-on-match`."""

WRONG_USE: Final = 2
"""Wrong use, rules that cannot be used, an unreadable input, an output that failed."""

INTERNAL: Final = 70
"""A bug of ours."""

INTERRUPTED: Final = 130
"""Ctrl-C, as shells count it: 128 + SIGINT."""

PIPE_CLOSED: Final = 141
"""The reader of standard output went away: 128 + SIGPIPE."""

TERMINATED: Final = 143
"""128 + SIGTERM."""
