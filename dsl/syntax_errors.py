"""What to say when the text stops being a rule file.

In comes a `Failure`: the place, what stood there, which words the grammar would have taken, and
what came just before. Out comes one diagnostic in the user's words. The usual slips (an assignment
sign for a comparison, a missing unit, an unclosed quote, an operator of another language, a
misspelt keyword) have messages of their own; all else is "expected …, found …".
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Mapping
from dataclasses import dataclass

from dsl.builder import Locate
from dsl.diagnostics import Diagnostic, Label, did_you_mean
from dsl.raw import Word
from dsl.source import Span


@dataclass(frozen=True)
class Failure:
    """Where reading stopped and why.

    `found` is None when no word at all begins at `start`, or when the text ends there (`ended`).
    `expected` names terminals of the grammar, `spelling` says how keywords among them are written.
    """

    text: str
    locate: Locate
    start: int
    found: Word | None
    ended: bool
    expected: frozenset[str]
    before: tuple[Word, ...]
    opened: tuple[Word, ...]
    spelling: Mapping[str, str]

    @property
    def span(self) -> Span:
        """The word found, or one character, or the empty place at the end."""
        if self.found is not None:
            return self.locate(self.start, self.found.end_pos)
        return self.locate(self.start, self.start if self.ended else self.start + 1)

    @property
    def rest(self) -> str:
        """The line from the failure on."""
        return re.compile(r"[^\r\n]*").match(self.text, self.start)[0]  # type: ignore[index]

    @property
    def last(self) -> Word | None:
        """The word before."""
        return self.before[-1] if self.before else None


def explain(failure: Failure) -> Diagnostic:
    """The one diagnostic for a failure."""
    for slip in _SLIPS:
        diagnostic = slip(failure)
        if diagnostic is not None:
            return diagnostic
    return Diagnostic(
        "E001",
        failure.span,
        f"expected {_expected(failure)}, found {_found(failure)}",
        help=next((help for hint in _HINTS if (help := hint(failure)) is not None), None),
    )


# ------------------------------------------------------------------------------ slips of signs


def _bracket(failure: Failure) -> Diagnostic | None:
    """A bracket that is never closed, or closed by another kind."""
    if not failure.opened:
        return None
    opener = failure.opened[-1]
    closer = _CLOSING[opener]
    place = failure.locate(opener.start_pos, opener.end_pos)
    if failure.ended:
        return Diagnostic(
            "E002",
            place,
            f"this `{opener}` is never closed",
            help=f"add `{closer}`",
            labels=(Label(failure.span, f"expected `{closer}` before this"),),
        )
    if failure.found is None or failure.found not in _CLOSING.values() or failure.found == closer:
        return None
    return Diagnostic(
        "E002",
        failure.span,
        f"expected `{closer}`, found `{failure.found}`",
        labels=(Label(place, f"this `{opener}` is still open"),),
    )


_CLOSING = {"{": "}", "(": ")", "[": "]"}


def _extra_closer(failure: Failure) -> Diagnostic | None:
    if failure.opened or failure.found not in ("}", ")", "]"):
        return None
    return Diagnostic("E002", failure.span, f"this `{failure.found}` closes nothing")


def _unclosed(failure: Failure) -> Diagnostic | None:
    """A quote without its partner on the same line."""
    if failure.ended or failure.found not in (None, "/"):
        return None
    sign = failure.rest[0] if failure.rest else ""
    what = {'"': "text", "'": "text", "`": "name", "/": "regular expression"}.get(sign)
    if what is None or (sign == "/" and "REGEX" not in failure.expected):
        return None
    end = failure.start + len(failure.rest.rstrip())
    if failure.rest.startswith("//"):
        return Diagnostic(
            "E003",
            failure.locate(failure.start, failure.start + 2),
            "this regular expression is empty",
            help="comments begin with `#`",
        )
    if failure.rest.startswith("``"):
        return Diagnostic(
            "E003", failure.locate(failure.start, failure.start + 2), "this name is empty"
        )
    return Diagnostic(
        "E003",
        failure.locate(failure.start, end),
        f"this {what} is never closed",
        help=f"add `{sign}` at its end; it must end on the same line"
        if sign != "`"
        else "add a backtick at its end; it must end on the same line",
    )


def _assignment(failure: Failure) -> Diagnostic | None:
    if failure.found != "=" or "COMPARISON" not in failure.expected:
        return None
    return Diagnostic(
        "E004",
        failure.span,
        "`=` gives a value a name; it does not compare",
        help="to compare, write `==`",
    )


_FOREIGN = {
    "&&": "write `and`",
    "||": "write `or`",
    "&": "write `and`",
    "|": "write `or`",
    "===": "write `==`",
    "=~": "write `matches /…/`",
    "<>": "write `!=`",
    "!": "write `not`",
    "=>": "write `>=`",
    "=<": "write `<=`",
    "**": "there are no powers; write `x * x`",
    "->": "steps follow each other without a sign",
    ";": "nothing stands between clauses: leave it out",
    "//": "comments begin with `#`",
    "/*": "comments begin with `#`, on each line",
}


def _foreign_sign(failure: Failure) -> Diagnostic | None:
    """Operators of other languages, also where the first half was taken as one of ours."""
    if failure.ended:
        return None
    start = failure.start
    last = failure.last
    if last is not None and last.end_pos == start and last in ("==", "<", "*", "-"):
        start = last.start_pos
    for sign, advice in sorted(_FOREIGN.items(), key=lambda item: -len(item[0])):
        if failure.text.startswith(sign, start):
            span = failure.locate(start, start + len(sign))
            return Diagnostic("E006", span, f"there is no sign `{sign}`", help=advice)
    return None


_FOREIGN_WORDS = {
    "startswith": ("LIKE", 'write `like "…*"`'),
    "endswith": ("LIKE", 'write `like "*…"`'),
    "regex": ("MATCHES", "write `matches /…/`"),
    "regexp": ("MATCHES", "write `matches /…/`"),
    "rlike": ("MATCHES", "write `matches /…/`"),
    "group": ("BY", "write `by`"),
    "informational": ("INFO", "write `info`"),
    "where": ("HAVING", "a condition on the aggregates is `having …`"),
    "sequence": (
        "RULE",
        "a pattern stands in a rule: `rule NAME { by …  sequence within … { a: …  b: … } }`",
    ),
    "select": (
        "RULE",
        "a query is a rule: `rule NAME { by …  aggregate … over sliding … { … } }`",
    ),
}
"""Words of other languages: the keyword that stands there instead, and what to write."""


def _foreign_word(failure: Failure) -> Diagnostic | None:
    keyword, advice = _FOREIGN_WORDS.get(str(failure.found or "").lower(), ("", ""))
    if not keyword or keyword not in failure.expected:
        return None
    return Diagnostic("E010", failure.span, f"`{failure.found}` cannot stand here", help=advice)


# ------------------------------------------------------------------------------ slips of numbers


_LONG_UNITS = {
    "us": ("micro", "micros", "microsecond", "microseconds", "usec"),
    "ms": ("milli", "millis", "millisecond", "milliseconds", "msec"),
    "s": ("sec", "secs", "second", "seconds", "S"),
    "m": ("min", "mins", "minute", "minutes", "M"),
    "h": ("hr", "hrs", "hour", "hours", "H"),
    "d": ("day", "days", "D"),
    "w": ("week", "weeks", "W"),
}
_SHORT = {long: unit for unit, longs in _LONG_UNITS.items() for long in longs}
_SHORT |= {unit: unit for unit in _LONG_UNITS}
_UNITS = "the units are us, ms, s, m, h, d and w"


def _number(failure: Failure) -> Diagnostic | None:
    """`5x`, `5min`, `1.`: digits that are neither a number nor a duration."""
    if failure.found is not None or failure.ended:
        return None
    digits = re.compile(r"\d[\w.]*").match(failure.text, failure.start)
    if digits is None:
        return None
    word = digits[0]
    span = failure.locate(failure.start, digits.end())
    amount, unit = re.compile(r"([\d.]*)(.*)").match(word).groups()  # type: ignore[union-attr]
    if unit in _SHORT:
        advice = f"write `{amount}{_SHORT[unit]}`"
    elif "DURATION" in failure.expected and "INTEGER" not in failure.expected:
        advice = f"{_UNITS}, as in `1h30m`"
    elif not unit:
        advice = "a number is written like `1` or `1.5`"
    else:
        advice = f"{_UNITS}; a name does not begin with a digit, unless it stands between backticks"
    return Diagnostic("E008", span, f"`{word}` is neither a number nor a duration", help=advice)


def _unit(failure: Failure) -> Diagnostic | None:
    """`within 10`, `within 10 minutes`, `sliding 10 {`."""
    found, last = failure.found, failure.last
    if found is not None and "DURATION" in failure.expected and _is_number(found):
        number, after = found, re.compile(r"[ \t]*([A-Za-z]*)").match(failure.text, found.end_pos)
        word = after[1] if after is not None else ""
        end = after.end() if after is not None and word in _SHORT else found.end_pos
    elif last is not None and _is_number(last) and "EVENTS" in failure.expected:
        number, word, end = last, str(found or ""), last.end_pos
        if word in _SHORT and found is not None:
            end = found.end_pos
    else:
        return None
    if word in _SHORT:
        advice = f"write `{number}{_SHORT[word]}`"
    else:
        count = f", or `{number} events`" if "EVENTS" in failure.expected else ""
        advice = f"write for example `{number}s` or `{number}m`{count}; {_UNITS}"
    return Diagnostic(
        "E007", failure.locate(number.start_pos, end), "this duration has no unit", help=advice
    )


def _is_number(word: Word) -> bool:
    return word.type in ("INTEGER", "REAL")


# ------------------------------------------------------------------------------ slips of words


def _misspelt(failure: Failure) -> Diagnostic | None:
    """A word that looks like a keyword that could stand here, or could have stood just before."""
    keywords = {failure.spelling[name] for name in failure.expected if name in failure.spelling}
    keywords = {word for word in keywords if word.isalpha()}
    found = failure.found
    if found is not None and found.type == "NAME":
        close = did_you_mean(found, keywords)
        if close is not None:
            return _unknown_word(failure, found, close)
    for previous, word in reversed(list(zip(failure.before, failure.before[1:], strict=False))):
        if word.type != "NAME":
            break
        close = did_you_mean(word, _EVERYWHERE)
        follows = previous.type in _COMPLETE or previous in (")", "]", "}")
        if follows and close is not None and word not in _EVERYWHERE:
            return _unknown_word(failure, word, close)
    return None


_COMPLETE = {"NAME", "QUOTED", "STRING", "INTEGER", "REAL", "DURATION", "REGEX", "PLUS", "STAR"}
"""After one of these a name begins something new; after others it is part of an expression."""


_EVERYWHERE = {
    *("where", "within", "after", "until", "sequence", "aggregate", "having", "alert", "unless"),
    *("dedup", "repeat", "severity", "description", "rule", "stream", "expect", "advance", "times"),
}
"""Keywords whose misspelling is first taken for a name, and found out one or two words later."""


def _unknown_word(failure: Failure, word: Word, close: str) -> Diagnostic:
    return Diagnostic(
        "E010",
        failure.locate(word.start_pos, word.end_pos),
        f"`{word}` cannot stand here",
        help=f"did you mean `{close}`?",
    )


def _nameless_value(failure: Failure) -> Diagnostic | None:
    """`{ a }` where fields are given names: there is a name, but no sign after it."""
    found = failure.found
    if found is None or found.type != "NAME" or "ASSIGNED" not in failure.expected:
        return None
    return Diagnostic("E001", failure.span, f"expected `=` after `{found}`")


def _dashed_name(failure: Failure) -> Diagnostic | None:
    """`user-agent` where a name is meant."""
    last = failure.last
    if failure.found != "-" or last is None or last.type != "NAME" or last.end_pos != failure.start:
        return None
    tail = re.compile(r"(?:-\w+)+").match(failure.text, failure.start)
    if tail is None:
        return None
    name = f"{last}{tail[0]}"
    return Diagnostic(
        "E013",
        failure.locate(last.start_pos, tail.end()),
        f"`{name}` is not a name",
        help=f"names are made of a to z, A to Z, 0 to 9 and _; others stand between backticks: "
        f"`` `{name}` ``",
    )


def _strange_character(failure: Failure) -> Diagnostic | None:
    """What is no part of any word: typographic quotes, letters of other alphabets, blanks."""
    if failure.found is not None or failure.ended:
        return None
    char = failure.rest[0] if failure.rest else failure.text[failure.start]
    if char.isalpha() or char.isalnum():
        start = failure.start
        last = failure.last
        if last is not None and last.type == "NAME" and last.end_pos == start:
            start = last.start_pos
        name = re.compile(r"\w+").match(failure.text, start)
        end = failure.start + 1 if name is None else name.end()
        word = failure.text[start:end]
        return Diagnostic(
            "E013",
            failure.locate(start, end),
            f"`{word}` is not a name",
            help="names are made of a to z, A to Z, 0 to 9 and _; others stand between backticks: "
            f"`` `{word}` ``",
        )
    if char in "“”„«»‘’‚":
        straight = "'" if char in "‘’‚" else '"'
        return Diagnostic(
            "E013",
            failure.span,
            f"texts stand between straight quotes, not `{char}`",
            help=f"write `{straight}`",
        )
    if char.isprintable():
        name = re.compile(r"@[\w.-]+").match(failure.text, failure.start)
        help = None if name is None else f"write such a name between backticks: `` `{name[0]}` ``"
        return Diagnostic("E013", failure.span, f"`{char}` cannot stand here", help=help)
    name_of = unicodedata.name(char, "a control character").lower()
    return Diagnostic(
        "E013",
        failure.span,
        f"U+{ord(char):04X} ({name_of}) cannot stand here",
        help="delete it, or write an ordinary blank",
    )


_SLIPS = (
    _unclosed,
    _foreign_word,
    _number,
    _unit,
    _foreign_sign,
    _assignment,
    _misspelt,
    _nameless_value,
    _dashed_name,
    _strange_character,
    _bracket,
    _extra_closer,
)


# ------------------------------------------------------------------------------ likely reasons


def _percent(failure: Failure) -> str | None:
    """`having bad / total > 10%`, noticed a word or two later."""
    for number, sign in zip(failure.before, failure.before[1:], strict=False):
        if sign == "%" and _is_number(number) and sign.start_pos == number.end_pos:
            return f"`%` is the remainder of a division; {number} per cent is `{number} / 100`"
    return None


def _choice_in_parentheses(failure: Failure) -> str | None:
    """`user in ("a", "b")`."""
    if failure.found == "," and "in" in failure.before and failure.opened[-1:] == ("(",):
        return 'a choice stands in brackets: `in ["a", "b"]`'
    return None


def _text_in_text(failure: Failure) -> str | None:
    """`alert "{if(x, "a", "b")}"`: the second quote has ended the text."""
    last = failure.last
    if last is None or last.type != "STRING" or last.end_pos != failure.start:
        return None
    if last.count("{") == last.count("}"):
        return None
    other = "'" if last.startswith('"') else '"'
    return f"the text ends before this; for a text inside its braces write {other}…{other}"


def _comparison_as_quantifier(failure: Failure) -> str | None:
    """`login{>=5}`."""
    number = re.compile(r"(>=?|<=?|==?)\s*(\d+)\s*}").match(failure.text, failure.start)
    if number is None or failure.last != "{":
        return None
    count = int(number[2])
    least, most = {">": (count + 1, ""), ">=": (count, ""), "<": (0, count - 1)}.get(
        number[1], (0, count)
    )
    wanted = f"{{{count}}}" if number[1].startswith("=") else f"{{{least},{most}}}"
    return f"write `{wanted}`"


def _slash_in_regex(failure: Failure) -> str | None:
    """`matches /^/etc/passwd/`: the second slash has ended the expression."""
    for word in reversed(failure.before):
        if word.type == "REGEX":
            after = failure.text[word.end_pos : failure.start]
            glued = re.match(r"\w*/|\w", failure.text[word.end_pos :])
            if glued is not None and "\n" not in after:
                return "a `/` inside of an expression is written `\\/`"
            return None
    return None


def _number_before_step(failure: Failure) -> str | None:
    """`sequence { 5 login }`, and `login *5`."""
    if failure.last == "*" and failure.found is not None and failure.found.type == "INTEGER":
        return f"how often stands in braces: `{failure.before[-2]}{{{failure.found}}}`"
    if failure.found is None or failure.found.type != "INTEGER" or "LABEL" not in failure.expected:
        return None
    step = re.compile(r"\s*(\w+)").match(failure.text, failure.found.end_pos)
    return f"how many stands behind the step: `{step[1]}{{{failure.found}}}`" if step else None


def _forgotten_brace(failure: Failure) -> str | None:
    """A clause of the rule inside the braces of another clause."""
    if failure.opened.count("{") < 2 or failure.opened[-1] != "{" or failure.expected >= _CLAUSE:
        return None
    clause = failure.found
    if clause is not None and clause.type == "STRING" and failure.last == "alert":
        clause = failure.last  # among steps it was taken for the name of a stream
    if clause not in _RULE_CLAUSES:
        return None
    return f"is a `}}` missing before `{clause}`?"


def _kind_of_window(failure: Failure) -> str | None:
    """`over 5m`."""
    if failure.found is None or failure.last != "over" or "SLIDING" not in failure.expected:
        return None
    length = str(failure.found) if failure.found.type == "DURATION" else "5m"
    return (
        f"write `over sliding {length}` (the last {length} at each event), or `tumbling {length}` "
        "(one after the other)"
    )


def _inside_count(failure: Failure) -> str | None:
    """`count(*)`, `count(where x == 1)`."""
    words = [str(word) for word in failure.before[-3:]] + [str(failure.found)]
    if failure.found == "*" and words[-3:] == ["count", "(", "*"]:
        return "all events are counted by `count()`"
    if words[-4:-1] == ["count", "(", "where"]:
        return f"the condition stands behind: `count() where {failure.found} …`"
    return None


def _dedup_within(failure: Failure) -> str | None:
    """`dedup by user within 1d`."""
    if failure.found == "within" and "FOR" in failure.expected and "dedup" in failure.before:
        return "how long stands behind `for`: `dedup by … for 1d`"
    return None


_RULE_CLAUSES = {"alert", "having", "severity", "tags", "skip", "unless", "start", "keys", "dedup"}

_HINTS = (
    _percent,
    _choice_in_parentheses,
    _text_in_text,
    _comparison_as_quantifier,
    _slash_in_regex,
    _number_before_step,
    _kind_of_window,
    _inside_count,
    _dedup_within,
    _forgotten_brace,
)


# ------------------------------------------------------------------------------ in general

_STATEMENT = frozenset({"STREAM", "LIST", "TABLE", "PARAM", "DEF", "INCLUDE", "RULE", "TEST"})
_CLAUSE = frozenset({"BY", "ALERT", "HAVING", "SEQUENCE", "AGGREGATE", "SEVERITY", "TAGS", "SKIP"})
_STREAM_CLAUSE = frozenset({"TYPE", "TIME", "ID", "DELAY", "IDLE", "FIELDS", "SELECT"})
_OPERATOR = frozenset({"COMPARISON", "AND", "OR", "PLUS", "STAR", "SLASH", "IN", "IS", "LIKE"})
_VALUE = frozenset({"NAME", "STRING", "INTEGER", "DURATION", "REGEX", "LPAR", "LSQB", "TRUE"})
_NODE = frozenset({"NO", "ONE", "ALL", "REPEAT", "LABEL", "NAME"})
_STEP_CLAUSE = frozenset({"WHERE", "WITHIN", "AFTER", "UNTIL", "BY"})
_TEST_STEP = frozenset({"AT", "AFTER", "ADVANCE", "EXPECT", "NAME"})
_ABSENT_CLAUSE = frozenset({"WHERE", "WITHIN", "BY"})
_QUANTIFIER = frozenset({"PLUS", "STAR", "QUESTION", "COALESCE"})

_ALL_OPERATORS = _OPERATOR | {
    *("COALESCE", "MINUS", "PERCENT", "NOT", "ILIKE", "MATCHES", "CONTAINS", "LSQB", "DOT"),
    *("LPAR",),
}
_ALL_VALUES = _VALUE | {
    *("QUOTED", "REAL", "FALSE", "NULL", "NOT", "MINUS", "DISTINCT"),
}
_ALL_CLAUSES = _CLAUSE | {
    *("ON", "ALL", "INTEGER", "UNLESS", "START", "KEYS", "EMIT", "DEDUP", "LIMIT", "KEEP"),
    *("REPORT", "DESCRIPTION", "META", "TIMEZONE"),
}
_GROUPS: tuple[tuple[frozenset[str], frozenset[str], str], ...] = (
    # all of these terminals, then all of those are covered by, the words
    (_STATEMENT, _STATEMENT, "a statement (`rule`, `stream`, `list`, `table`, `test`, …)"),
    (_CLAUSE, _ALL_CLAUSES, "a clause of the rule (`by`, `sequence`, `alert`, …)"),
    (
        _STREAM_CLAUSE,
        _STREAM_CLAUSE | {"WHERE", "TIMEZONE", "DEDUP"},
        "a clause of the stream (`where`, `time`, `id`, …)",
    ),
    (_VALUE, _ALL_VALUES, "a value"),
    (_OPERATOR, _ALL_OPERATORS, "an operator"),
    (_QUANTIFIER, _QUANTIFIER | {"LBRACE"}, "a quantifier"),
    (_STEP_CLAUSE, _STEP_CLAUSE, "a clause of the step (`where`, `within`, …)"),
    (_ABSENT_CLAUSE, _ABSENT_CLAUSE, "`where`, `within` or `by`"),
    (_NODE, _NODE | {"QUOTED", "NEXT", "ANY"}, "a step"),
    (_TEST_STEP, _TEST_STEP | {"QUOTED"}, "an event, `advance` or `expect`"),
)

_WORDS = {
    "NAME": "a name",
    "QUOTED": "a name",
    "ASSIGNED": "a name and `=`",
    "LABEL": "a step name and `:`",
    "TAG": "a tag",
    "STRING": "a text in quotes",
    "INTEGER": "a whole number",
    "REAL": "a number",
    "DURATION": "a duration such as `10m`",
    "REGEX": "a regular expression",
    "COMPARISON": "a comparison",
    "$END": "the end of the file",
}


def _expected(failure: Failure) -> str:
    """What would have been taken, in words."""
    left = set(failure.expected)
    groups: list[str] = []
    for needed, covered, text in _GROUPS:
        if needed <= left:
            groups.append(text)
            left -= covered
    if groups or len(left) > 1:
        left.discard("$END")
    if left & {"NAME", "ASSIGNED"}:
        left -= {"LABEL", "QUOTED"}
    order = {name: i for i, name in enumerate(_WORDS)}
    rest = sorted(left, key=lambda name: (order.get(name, 99), name))
    words = [_WORDS.get(name) or f"`{failure.spelling.get(name, name)}`" for name in rest]
    words = list(dict.fromkeys([*groups[:-1], *words, *groups[-1:]]))
    if len(words) > 8:
        words = [*words[:7], "…"]
    if len(words) == 1:
        return words[0]
    return f"{', '.join(words[:-1])} or {words[-1]}"


def _found(failure: Failure) -> str:
    if failure.ended:
        if failure.start >= len(failure.text):
            return "the end of the text"
        return "`}`" if failure.text[failure.start] == "}" else "the next statement"
    if failure.found is None:
        return f"`{failure.text[failure.start]}`"
    text = str(failure.found)
    return f"`{text if len(text) <= 40 else text[:39] + '…'}`"
