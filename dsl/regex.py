"""What can be said of a regular expression before it runs.

Expressions are RE2's: no look-around, no references to groups, and in return a match takes time
linear in the text. In comes a pattern with its flags, out comes what is wrong with it, the plain
text it amounts to, or a text that everything it matches must contain.
"""

from __future__ import annotations

import re
from typing import Any

import re2

FLAGS = {
    "i": "ignore case",
    "m": "^ and $ match at line breaks",
    "s": "a dot matches line breaks too",
}
"""The flags that may follow `/…/`."""

LONGEST = 10_000
"""Most characters of a pattern."""

_SPECIAL = frozenset(r"\.^$|?*+()[]{}")


def compiled(pattern: str, flags: str = "") -> Any:
    """The pattern as an RE2 object; `re2.error` when it is wrong."""
    options = re2.Options()
    options.log_errors = False
    options.case_sensitive = "i" not in flags
    inline = "".join(flag for flag in "ms" if flag in flags)
    return re2.compile(f"(?{inline}){pattern}" if inline else pattern, options)


def compile_problem(pattern: str, flags: str = "") -> str | None:
    """What is wrong with a pattern, in words; None when it is fine.

    >>> compile_problem("fail(ed|ure)")
    >>> compile_problem("(a")
    'missing ): (a'
    """
    for flag in flags:
        if flag not in FLAGS:
            known = ", ".join(f"{name} ({what})" for name, what in FLAGS.items())
            return f"unknown flag `{flag}`; there are {known}"
    if len(pattern) > LONGEST:
        return f"longer than {LONGEST} characters"
    try:
        compiled(pattern, flags)
    except re2.error as error:
        return _reason(error, pattern)
    except UnicodeEncodeError:
        return "holds half of a surrogate pair"
    return None


def group_problem(pattern: str, group: object) -> str | None:
    r"""Why an expression has no such group, by number or name; None when it has.

    >>> group_problem(r"(\d+)", 1), group_problem(r"(\d+)", 2)
    (None, 'there is no group 2: the expression has 1 group')
    """
    expression = compiled(pattern)
    if isinstance(group, str):
        names = sorted(expression.groupindex)
        there = f"its groups are called {', '.join(names)}" if names else "it has no named groups"
        return None if group in names else f"there is no group `{group}`: {there}"
    if isinstance(group, int) and 0 <= group <= expression.groups:
        return None
    plural = "" if expression.groups == 1 else "s"
    return f"there is no group {group}: the expression has {expression.groups} group{plural}"


def _reason(error: Exception, pattern: str) -> str:
    said = error.args[0] if error.args else ""
    reason = said.decode(errors="replace") if isinstance(said, bytes) else str(said)
    if reason.startswith("invalid perl operator: (?") and any(
        look in pattern for look in ("(?=", "(?!", "(?<=", "(?<!")
    ):
        return "look-ahead and look-behind are not supported"
    if reason.startswith("invalid escape sequence: \\") and reason[-1:] in "123456789":
        return "references to groups are not supported"
    return reason


def is_plain_text(pattern: str) -> str | None:
    r"""The text, when a pattern is nothing but that (`contains` says it better); None otherwise.

    >>> is_plain_text("su: failed"), is_plain_text(r"a\.b"), is_plain_text("a.b")
    ('su: failed', 'a.b', None)
    """
    text = []
    at = 0
    while at < len(pattern):
        char = pattern[at]
        if char == "\\" and at + 1 < len(pattern) and not pattern[at + 1].isalnum():
            at += 1
            char = pattern[at]
        elif char in _SPECIAL:
            return None
        text.append(char)
        at += 1
    return "".join(text)


def required_text(pattern: str, flags: str = "") -> str | None:
    r"""A text that stands in everything the pattern matches; None when none is obvious.

    Looking for it first is many times as fast as asking the expression.

    >>> required_text(r"Failed password for (\S+)"), required_text("a|b"), required_text("ab*c+de")
    ('Failed password for ', None, 'de')
    """
    if "i" in flags or _OBSCURE.search(pattern):
        return None
    best = run = ""
    depth = 0
    for token, quantifier in _TOKEN.findall(pattern):
        depth += (token == "(") - (token == ")")
        if depth == 0 and token == "|":
            return None
        literal = token[1:] if token[0] == "\\" else token
        if depth == 0 and not quantifier and not _MEANING.fullmatch(token):
            run += literal
        else:
            run = ""
        best = max(best, run, key=len)
    return best or None


_TOKEN = re.compile(
    r"(\\.|\[\^?\]?(?:\\.|[^\]\\])*\]|.)((?:[*+?]|\{\d+(?:,\d*)?\})?)\??", re.DOTALL
)
"""A unit of a pattern and how often it repeats."""

_MEANING = re.compile(r"\\[A-Za-z0-9]|\[.*|[.^$()|{}*+?]", re.DOTALL)
"""Units that do not stand for themselves."""

_OBSCURE = re.compile(r"\\[^\WdDwWsSbBAzntrfv]|\[:|\(\?(?!:|P<|<)")
"""What the units above do not understand: named classes, numeric escapes, flags inside."""
