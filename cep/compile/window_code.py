"""Writes the Python of an `aggregate` rule: handlers that tell windows what an event brings.

In: the one atom of the rule with the entries of its dispatch. Out: a function `make(run,
constants)` as for other rules. A handler finds the key, tests `where`, and computes what each
aggregate takes from the event: the value of its argument, True for `count()`, None where its own
`where` is not true.
"""

from __future__ import annotations

from collections.abc import Sequence

from cep.compile.environment import EventEnv, Surroundings
from cep.compile.expressions import careful, careful_value, truth
from cep.compile.rule_code import RuleCode
from cep.compile.writer import Writer
from cep.plan.automaton import Automaton
from cep.plan.dispatch import Entry
from cep.plan.streams import Streams
from dsl import checked
from dsl.checked import Field, KeyValue, Value, conjuncts


class WindowEnv(EventEnv):
    """An event enters a window; the key is known."""

    def __init__(self, around: Surroundings, single: bool) -> None:
        super().__init__(around)
        self.single = single

    def load(self, leaf: Value) -> str:
        if isinstance(leaf, KeyValue):
            return "plain_key(k)" if self.single else f"plain_key(k[{leaf.index}])"
        return super().load(leaf)


def write_window_rule(
    automaton: Automaton, entries: Sequence[Entry], around: Surroundings, streams: Streams
) -> RuleCode:
    """The code of an aggregate rule, with one handler for each entry of its dispatch."""
    bodies = Writer()
    for entry in entries:
        _write_handler(bodies, automaton, entry, around, streams)
    w = Writer()
    with w.block("def make(run, constants):"):
        if around.constants.values:
            names = ", ".join(f"c{i}" for i in range(len(around.constants.values)))
            w(f"({names},) = constants")
        w("careful, take, unrouted = run.careful, run.take, run.unrouted")
        for line in bodies.text().splitlines():
            w(line)
        w(f"return [{', '.join(f'on_{entry.number}' for entry in entries)}]")
    return RuleCode(w.text(), around.constants.values)


def _write_handler(
    w: Writer, automaton: Automaton, entry: Entry, around: Surroundings, streams: Streams
) -> None:
    pattern = automaton.rule.pattern
    assert isinstance(pattern, checked.WindowPattern)
    key = automaton.keys[0]
    env = WindowEnv(around, single=len(key) == 1)
    with w.block(f"def on_{entry.number}(e):"):
        w("t = e.t")
        if not entry.filters:
            return
        w(f"k = {_key_code(key, env)}")
        if key:
            with w.block("if k is None:" if len(key) == 1 else "if None in k:"):
                w("return unrouted()" if not entry.filters[0] else _unrouted(entry, env))
        conditions = entry.filters[0]
        if conditions:
            with w.block("try:"):
                w(f"ok = {' and '.join(f'({truth(c, env)})' for c in conditions)}")
            with w.block("except Exception:"):
                w(f"ok = {' and '.join(f'{careful(c, env)} is True' for c in conditions)}")
            with w.block("if not ok:"):
                w("return")
        values = "".join(
            f"{_taken(field, pattern.stream, env, streams)}, " for field in pattern.fields
        )
        w(f"take(k, t, e, ({values}))")


def _unrouted(entry: Entry, env: WindowEnv) -> str:
    """An event without a key counts only when it belongs to the stream."""
    inside = " and ".join(f"{careful(c, env)} is True" for c in entry.membership[0]) or "True"
    return f"return unrouted() if {inside} else None"


def _key_code(key: Sequence[Value], env: WindowEnv) -> str:
    parts = [f"key_of({careful_value(value, env)})" for value in key]
    if not parts:
        return "()"
    return parts[0] if len(parts) == 1 else f"({', '.join(parts)})"


def _taken(field: checked.WindowField, stream: str, env: WindowEnv, streams: Streams) -> str:
    """What an aggregate takes from the event."""
    if field.argument is None:
        value = "True"
    else:
        argument = streams.on_event(stream, field.argument)
        plain = (
            isinstance(argument, Field) and not env.around.shape.uses[argument.path].asks_missing
        )
        value = f"careful.open({env.load(argument)})" if plain else careful_value(argument, env)
    tests = [
        f"{careful(streams.on_event(stream, part), env)} is True" for part in conjuncts(field.where)
    ]
    return f"({value} if {' and '.join(tests)} else None)" if tests else value
