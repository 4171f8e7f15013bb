"""The tables that `dsl.parser` is driven by: `grammar.lark`, worked out.

In: the grammar. Out: `Tables`: for each state what each word does there, how words are told, and
what becomes of the words of a rule. Lark works them out, once: they are plain data, kept as JSON in
the user's cache folder, so that another start needs neither the work nor Lark. The only module that
knows Lark.
"""

from __future__ import annotations

import json
import os
import re
import sys
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from functools import cache
from hashlib import blake2b
from pathlib import Path
from typing import Any

FORMAT = 1
"""Of the cached file: another one is worked out anew."""

END = "$END"
"""The terminal that stands for the end of the text."""


@dataclass(frozen=True, slots=True)
class Rule:
    """What is done when a rule of the grammar is complete.

    `origin` is the symbol that it makes, of `size` symbols; the raw node is called `name`. `kept`:
    which of them become children: place, whether the children of that one stand for it, how many
    None come before it; `tail` None come at the end. All are kept where `kept` is None. `single`: a
    node with one child is that child. `passes`: its one symbol stands for it as it is.
    """

    origin: str
    name: str
    size: int
    kept: tuple[tuple[int, bool, int], ...] | None
    tail: int
    single: bool
    passes: bool


Match = Callable[[str, int, int], "re.Match[str] | None"]


@dataclass(frozen=True, slots=True)
class Scanner:
    """How the next word is read in some states: `match` finds it and names its terminal; of a
    terminal in `unless` those texts are terminals of their own (keywords)."""

    match: Match
    unless: Mapping[str, Mapping[str, str]]


class Tables:
    """An LALR(1) automaton with a scanner for each state.

    `actions[state][symbol]`: the next state, or `~n` where rule n is complete. `starts`: for each
    kind of text the state that it begins in and the one that it ends in. `spelling`: how keywords
    and signs are written. `blank` finds the end of blanks and comments.
    """

    def __init__(self, plain: Mapping[str, Any]) -> None:
        self.actions: list[dict[str, int]] = plain["actions"]
        self.rules = [
            Rule(origin, name, size, _places(kept), tail, single, single and size == 1 and not kept)
            for origin, name, size, kept, tail, single in plain["rules"]
        ]
        self.starts: dict[str, tuple[int, int]] = plain["starts"]
        self.spelling: dict[str, str] = plain["spelling"]
        self.blank = re.compile(plain["blank"]).match
        self._scanners: list[tuple[str, dict[str, dict[str, str]]]] = plain["scanners"]
        self._scanner_of: list[int] = plain["scanner_of"]
        self._made: dict[str, Match] = {}
        self._by_state: dict[int, Scanner] = {}
        self._passed: dict[tuple[int, int, str], int] = {}

    def passed(self, below: int, state: int, terminal: str) -> int:
        """The state that follows `state` (on top of `below`) when the terminal comes, after all
        rules of one symbol that passes: a number is a product, a sum, a comparison, … before it is
        an item of a list. Found out once."""
        key = below, state, terminal
        found = self._passed.get(key)
        if found is None:
            found = state
            while (action := self.actions[found].get(terminal, 0)) < 0:
                rule = self.rules[~action]
                if not rule.passes:
                    break
                found = self.actions[below][rule.origin]
            self._passed[key] = found
        return found

    def scanner(self, state: int) -> Scanner:
        """How words are read in this state; in state -1 any word of the language is."""
        if state not in self._by_state:
            pattern, unless = self._scanners[self._scanner_of[state]]
            if pattern not in self._made:
                self._made[pattern] = re.compile(pattern).match
            self._by_state[state] = Scanner(self._made[pattern], unless)
        return self._by_state[state]


def _places(kept: list[list[Any]] | None) -> tuple[tuple[int, bool, int], ...] | None:
    return None if kept is None else tuple((at, whole, before) for at, whole, before in kept)


@cache
def tables() -> Tables:
    """The tables of the grammar; a start of the command finds them in the user's cache."""
    text = Path(__file__).with_name("grammar.lark").read_text(encoding="utf-8")
    version = f"{FORMAT} {blake2b(text.encode(), digest_size=16).hexdigest()}"
    path = _cache_file()
    plain = _cached(path, version)
    if plain is not None:
        try:
            return Tables(plain)
        except (KeyError, TypeError, ValueError, re.error):
            pass  # somebody else's file: made anew
    plain = {"version": version, **_worked_out(text)}
    _keep(path, plain)
    return Tables(plain)


# ------------------------------------------------------------------------------ the cache


def _cache_file() -> str | None:
    """Where the tables are kept between starts: in the user's own cache folder, since what is in
    there is believed. None where there is to be none."""
    if os.environ.get("CEP_NO_CACHE"):
        return None
    home = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
    return os.path.join(home, "cep", f"grammar-{sys.version_info[0]}{sys.version_info[1]}.json")


def _cached(path: str | None, version: str) -> dict[str, Any] | None:
    if path is None:
        return None
    try:
        with open(path, encoding="utf-8") as file:
            plain = json.load(file)
    except (OSError, ValueError, RecursionError):
        return None
    return plain if isinstance(plain, dict) and plain.get("version") == version else None


def _keep(path: str | None, plain: Mapping[str, Any]) -> None:
    """Several starts at once may write: each a file of its own, which then takes the place."""
    if path is None:
        return
    own = f"{path}.{os.getpid()}"
    try:
        os.makedirs(os.path.dirname(path), mode=0o700, exist_ok=True)
        with open(own, "w", encoding="utf-8") as file:
            json.dump(plain, file, separators=(",", ":"))
        os.replace(own, path)
    except OSError:
        return  # a cache that cannot be written is only a slower start


# ------------------------------------------------------------------------------ Lark


class _NamesEverywhere:
    """Makes the contextual lexer try a name in every state. Otherwise `whereas` would be read as
    `where` and `as` in states that take no name."""

    always_accept = ("NAME",)

    def process(self, stream: Any) -> Any:
        return stream


def _worked_out(text: str) -> dict[str, Any]:
    """The tables as plain data."""
    from lark import Lark
    from lark.lexer import PatternStr
    from lark.parsers.lalr_analysis import Shift

    kinds = ["file", "expression"]
    names_everywhere: Any = _NamesEverywhere()
    lark: Any = Lark(
        text,
        parser="lalr",
        lexer="contextual",
        start=kinds,
        maybe_placeholders=True,
        postlex=names_everywhere,
    )
    confs = {kind: lark.parse_interactive("", start=kind).parser_state.parse_conf for kind in kinds}
    states: Mapping[Any, Mapping[str, Any]] = confs["file"].states
    numbers = {state: number for number, state in enumerate(states)}
    rules: dict[Any, int] = {}

    def action(kind: Any, target: Any) -> int:
        return numbers[target] if kind is Shift else ~rules.setdefault(target, len(rules))

    actions = [
        {str(symbol): action(*found) for symbol, found in row.items()} for row in states.values()
    ]
    lexer = lark.parser.lexer.lexer
    scanners: list[list[Any]] = []
    scanner_of = []
    for one in (*(lexer.lexers[state] for state in states), lexer.root_lexer):
        scanner = _scanner(one, lark.ignore_tokens)
        if scanner not in scanners:
            scanners.append(scanner)
        scanner_of.append(scanners.index(scanner))
    ignored = [terminal for terminal in lark.terminals if terminal.name in lark.ignore_tokens]
    return {
        "actions": actions,
        "rules": [_rule(rule) for rule in rules],
        "starts": {k: [numbers[c.start_state], numbers[c.end_state]] for k, c in confs.items()},
        "scanners": scanners,
        "scanner_of": scanner_of,
        "spelling": {
            terminal.name: terminal.pattern.value
            for terminal in lark.terminals
            if isinstance(terminal.pattern, PatternStr)
        },
        "blank": f"(?:{'|'.join(terminal.pattern.to_regexp() for terminal in ignored)})*",
    }


def _scanner(lexer: Any, ignored: Collection[str]) -> list[Any]:
    """Pattern and exceptions of one of the lexers of the contextual lexer."""
    words = [terminal for terminal in lexer.scanner.terminals if terminal.name not in ignored]
    unless = {
        name: {keyword.pattern.value: keyword.name for keyword in callback.scanner.terminals}
        for name, callback in lexer.callback.items()
    }
    return ["|".join(f"(?P<{word.name}>{word.pattern.to_regexp()})" for word in words), unless]


def _rule(rule: Any) -> list[Any]:
    """See `Rule`; as Lark's own tree builder goes about it."""
    options, size = rule.options, len(rule.expansion)
    gaps = [0] * (size + 1)
    if options.empty_indices:
        marks = "".join(str(int(empty)) for empty in options.empty_indices)
        gaps = [len(ones) for ones in marks.split("0")]
    kept, before = [], 0
    for place, symbol in enumerate(rule.expansion):
        before += gaps[place]
        if options.keep_all_tokens or not (symbol.is_term and symbol.filter_out):
            inlined = not symbol.is_term and symbol.name.startswith("_")
            kept.append([place, inlined, before])
            before = 0
    tail = before + gaps[size]
    whole = len(kept) == size and not tail and not any(i or gap for _, i, gap in kept)
    return [
        str(rule.origin.name),
        str(rule.alias or rule.origin.name),
        size,
        None if whole else kept,
        tail,
        bool(options.expand1 and not rule.alias),
    ]
