"""Writes the Python of an `aggregate` rule: handlers that put events into windows and test them.

In: the one atom of the rule with the entries of its dispatch. Out: a function `make(run,
constants)` as for other rules. A handler finds the key, tests `where`, computes what each aggregate
takes from the event (the value of its argument, True for `count()`, None where its own `where` is
not true), folds it into the aggregates (`cep.compile.fold_code`), and tests `having` where an event
may make it true. `expire` lets events leave a sliding window, and tests it again.

In the code `s` is the state of the key, `q` the entries of a sliding window, `b` a bucket, `p` a
pane; see `cep.runtime.windows`. `having` is asked in its fast form; where that raises, or a value
did not fit, `run.holds` asks in the careful one.
"""

from __future__ import annotations

from collections.abc import Sequence

from cep.compile.environment import EventEnv, Surroundings
from cep.compile.expressions import careful, careful_value, compute, truth
from cep.compile.fold_code import NUMBER, FoldCode, result
from cep.compile.handlers.base import DURABLE
from cep.compile.rule_code import RuleCode
from cep.compile.writer import Writer
from cep.plan.automaton import Automaton
from cep.plan.dispatch import Entry
from cep.plan.streams import Streams
from cep.plan.windows import edge_condition, expires, guards, value_slots
from dsl import checked
from dsl.checked import Field, KeyValue, Value, WindowValue, conjuncts
from dsl.types import Type

_TYPES = {
    **dict.fromkeys(("count",), Type.INT),
    **dict.fromkeys(("sum", "avg", "stddev", "median", "percentile", "rate"), Type.NUMBER),
}


class WindowEnv(EventEnv):
    """An event enters a window, or `having` is asked; the key is known. `results`: the names of
    what the window has come to."""

    def __init__(self, around: Surroundings, pattern: checked.WindowPattern, single: bool) -> None:
        super().__init__(around)
        self.single = single
        self.results: dict[str, str] = {}
        self._fields = {field.name: field for field in pattern.fields}

    def load(self, leaf: Value) -> str:
        if isinstance(leaf, KeyValue):
            return "plain_key(k)" if self.single else f"plain_key(k[{leaf.index}])"
        if isinstance(leaf, WindowValue):
            return self.results[leaf.name]
        return super().load(leaf)

    def type_of(self, leaf: Value) -> Type:
        if isinstance(leaf, WindowValue):
            field = self._fields.get(leaf.name)
            if field is None:
                return Type.ANY
            return Type.INT if field.distinct else _TYPES.get(field.function, Type.ANY)
        return super().type_of(leaf)

    def nullable(self, leaf: Value) -> bool:
        field = self._fields.get(leaf.name) if isinstance(leaf, WindowValue) else None
        return field is None or field.function not in ("count", "sum")


def write_window_rule(
    automaton: Automaton,
    entries: Sequence[Entry],
    around: Surroundings,
    streams: Streams,
    earlier: bool,
) -> RuleCode:
    """The code of an aggregate rule, with one handler for each entry of its dispatch. `earlier`: it
    is an earlier version, which only finishes what it has."""
    return _WindowModule(automaton, around, streams, earlier).code(entries)


class _WindowModule:
    """The code of one rule."""

    def __init__(
        self, automaton: Automaton, around: Surroundings, streams: Streams, earlier: bool
    ) -> None:
        pattern = automaton.rule.pattern
        assert isinstance(pattern, checked.WindowPattern)
        self.rule = automaton.rule
        self.pattern = pattern
        self.key = automaton.keys[0]
        self.around = around
        self.streams = streams
        self.earlier = earlier
        self.expires = expires(automaton)
        self.edge = edge_condition(automaton.rule)
        self.slots = value_slots(pattern)
        self.folds = FoldCode(pattern.fields, self.slots)
        self.w = Writer()

    def env(self) -> WindowEnv:
        return WindowEnv(self.around, self.pattern, single=len(self.key) == 1)

    def code(self, entries: Sequence[Entry]) -> RuleCode:
        if self.pattern.kind == "sliding":
            self._write_expire()
        for entry in entries:
            self._write_handler(entry)
        w = Writer()
        with w.block("def make(run, constants):"):
            if self.around.constants.values:
                names = ", ".join(f"c{i}" for i in range(len(self.around.constants.values)))
                w(f"({names},) = constants")
            w("careful, unrouted, touch = run.careful, run.unrouted, run.touch")
            w("begin, opened, arm, found = run.begin, run.open, run.arm, run.found")
            w("holds, closes, get = run.holds, run.closes, run.states.get")
            w("timers, lane, by_key = run.timers, run.lane, run.by_key")
            w("emitted, drain = run.emitted, run.drain")
            w("SIZE, COUNT = run.windows.size, run.windows.count")
            w.lines(self.w.text())
            if self.pattern.kind == "sliding":
                w("run.expire = expire")
                if self.expires == "always":
                    w("run.expire_due = expire_due")
            w(f"return [{', '.join(f'on_{entry.number}' for entry in entries)}]")
        return RuleCode(w.text(), self.around.constants.values)

    # ------------------------------------------------------------------ an event

    def _write_handler(self, entry: Entry) -> None:
        w, env = self.w, self.env()
        with w.block(f"def on_{entry.number}(e):"):
            w("t = e.t")
            if not entry.filters:
                w("return")
                return
            self._write_key(entry, env)
            conditions = entry.filters[0]
            if conditions:
                with w.block("try:"):
                    w(f"ok = {' and '.join(f'({truth(c, env)})' for c in conditions)}")
                with w.block("except Exception:"):
                    w(f"ok = {' and '.join(f'{careful(c, env)} is True' for c in conditions)}")
                with w.block("if not ok:"):
                    w("return")
            w("s = get(k)")
            with w.block("if s is None:"):
                w("s = begin(k, t)")
                with w.block("if s is None:"):
                    w("return")
            w(f"{DURABLE}if s.epoch != run.epoch:")
            w(f"{DURABLE}    touch(s)")
            if self.pattern.kind in ("sliding", "sliding_count"):
                self._write_sliding(env)
            else:
                self._write_values(env)
                self._write_closing()
            if self.earlier:
                w("run.settle(s)")

    def _write_key(self, entry: Entry, env: WindowEnv) -> None:
        w = self.w
        parts = [f"key_of({careful_value(value, env)})" for value in self.key]
        if len(parts) == 1 and (plain := env.raw(self.key[0])) is not None:
            w(f"k = {plain}")
            with w.block("if k.__class__ is not str:"):
                w(f"k = {parts[0]}")
        else:
            joined = ", ".join(parts)
            w(f"k = {joined if len(parts) == 1 else f'({joined})'}")
        if parts:
            with w.block("if k is None:" if len(parts) == 1 else "if None in k:"):
                w("return unrouted()" if not entry.filters[0] else _unrouted(entry, env))

    def _write_values(self, env: WindowEnv) -> None:
        """Names the values that are taken of the event."""
        known = {-1}
        for slot, field in zip(self.slots, self.pattern.fields, strict=True):
            if slot not in known:
                known.add(slot)
                self._write_value(f"a{slot}", field, env)

    def _write_value(self, name: str, field: checked.WindowField, env: WindowEnv) -> None:
        """What an aggregate takes from the event."""
        if field.argument is None:
            value = "True"
        else:
            argument = self.streams.on_event(self.pattern.stream, field.argument)
            asks = (
                isinstance(argument, Field) and self.around.shape.uses[argument.path].asks_missing
            )
            if isinstance(argument, Field) and not asks and field.where is None:
                self.w(f"{name} = {env.load(argument)}")
                with self.w.block(f"if not {NUMBER.format(name)}:"):
                    self.w(f"{name} = unbox({name})")
                return
            value = careful_value(argument, env)
        tests = [
            f"{careful(self.streams.on_event(self.pattern.stream, part), env)} is True"
            for part in conjuncts(field.where)
        ]
        if tests:
            value = f"({value} if {' and '.join(tests)} else None)"
        self.w(f"{name} = {value}")

    # ------------------------------------------------------------------ sliding windows

    def _write_sliding(self, env: WindowEnv) -> None:
        w = self.w
        w("q = s.entries")
        w(self.folds.cells("s"))
        if self.pattern.kind == "sliding_count":
            with w.block("if len(q) == COUNT:"):
                self._write_leaving()
        elif self.expires != "always":
            with w.block("if q and q[0][0] < t - SIZE:"):
                self._write_expiry("t - SIZE")
                if self.expires == "lazily" and self.edge is not None:
                    self._write_rearmed()
        self._write_values(env)
        self.folds.add(w, "s")
        w(f"q.append({self.folds.entry()})")
        if self.pattern.kind == "sliding" and self.expires == "always":
            w("wake = t + SIZE + 1")
            with w.block("if not lane:"):
                w("timers.expect(wake, lane)")
            w("lane.append(wake)")
            w("lane.append(s)")
        self._write_sliding_test("e")
        if self.pattern.kind == "sliding" and self.expires == "guarded":
            with w.block(f"if s.wake > q[0][0] + SIZE + 1 and {self._guard()}:"):
                w("arm(s)")

    def _write_expiry(self, low: str) -> None:
        """Events before a time leave."""
        w = self.w
        w(f"low = {low}")
        with w.block("while q and q[0][0] < low:"):
            self._write_leaving()

    def _write_leaving(self) -> None:
        self.w(self.folds.unpack("q.popleft()"))
        self.folds.remove(self.w, "s")

    def _write_sliding_test(self, event: str) -> None:
        """Tests the window because of an event (None: because events have left it)."""
        w = self.w
        if self.rule.having is None:
            w("ok = True")
        else:
            self._write_having("s")
        if self.earlier:
            with w.block("if run.is_of_successor(q[0][0]):"):
                w("ok = False")
        with w.block("if ok:"):
            if self.edge is None:
                w(f"found(s, t, {event})")
            else:
                with w.block("if not s.marked:"):
                    w("s.marked = True")
                    w(f"found(s, t, {event})")
        if self.edge is not None:
            with w.block("elif s.marked:"):
                w("s.marked = False")

    def _write_rearmed(self) -> None:
        """A condition that no expiry makes true may have become false by one."""
        with self.w.block("if s.marked:"):
            self._write_having("s")
            with self.w.block("if not ok:"):
                self.w("s.marked = False")

    def _write_having(self, fold: str) -> None:
        """`ok`: whether `having` holds for a fold whose cells are named."""
        w = self.w
        having = self.rule.having
        assert having is not None
        with w.block(f"if {fold}.misfits:"):
            w(f"ok = holds(s.key, {fold}, t)")
        with w.block("else:"):
            with w.block("try:"):
                env = self.env()
                self._write_results(having, env)
                w(f"ok = {truth(having, env)}")
            with w.block("except Exception:"):
                w(f"ok = holds(s.key, {fold}, t)")

    def _write_results(self, asked: Value, env: WindowEnv) -> None:
        """Names what a condition asks of the window: aggregates, and what is computed from them."""
        derived = dict(self.pattern.derived)
        places = {field.name: i for i, field in enumerate(self.pattern.fields)}
        for part in asked.walk():
            if not isinstance(part, WindowValue) or part.name in env.results:
                continue
            if part.name in derived:
                self._write_results(derived[part.name], env)
                code = compute(derived[part.name], env)
            else:
                field = self.pattern.fields[places[part.name]]
                code = result(field, f"x{places[part.name]}")
            name = f"w{len(env.results)}"
            self.w(f"{name} = {code}")
            env.results[part.name] = name

    def _guard(self) -> str:
        """Code that is true as long as an expiry may make the condition true."""
        env = self.env()
        for i, field in enumerate(self.pattern.fields):
            env.results[field.name] = result(field, f"x{i}")
        return " and ".join(f"({truth(part, env)})" for part in guards(self.rule))

    def _write_expire(self) -> None:
        w = self.w
        with w.block("def expire(s, now):"):
            w("q = s.entries")
            w("t = now - 1")
            with w.block("if q[0][0] < now - SIZE:"):
                w(self.folds.cells("s"))
                self._write_expiry("now - SIZE")
                with w.block("if not q:"):
                    w("s.wake = 0")
                    w("run.forget(s)")
                    w("return")
                w("k = s.key")
                if self.edge is not None and self.expires == "lazily":
                    self._write_rearmed()
                elif self.edge is not None:
                    self._write_sliding_test("None")
            self._write_next_wake()
        if self.expires == "always":
            self._write_expire_due()

    def _write_expire_due(self) -> None:
        """All that is due by a moment in the lane of the rule, moment by moment, until something
        else is due before the next."""
        w = self.w
        with w.block("def expire_due(until):"), w.block("while lane and lane[0] <= until:"):
            w("now, s = lane.popleft(), lane.popleft()")
            with w.block("if lane and lane[0] == now:"):
                w("several = [s]")
                with w.block("while lane and lane[0] == now:"):
                    w("lane.popleft()")
                    w("several.append(lane.popleft())")
                w("several.sort(key=by_key)")
            with w.block("else:"):
                w("several = (s,)")
            with w.block("for s in several:"), w.block("if s.wake == now:"):
                w(f"{DURABLE}if s.epoch != run.epoch:")
                w(f"{DURABLE}    touch(s)")
                w("expire(s, now)")
                with w.block("if emitted:"):
                    w("drain()")
            with w.block("if timers.has_others(until):"):
                w("return")

    def _write_next_wake(self) -> None:
        w = self.w
        if self.earlier:
            w("s.wake = 0")
            w("arm(s)")
            w("run.settle(s)")
        elif self.expires == "lazily":
            w("s.wake = q[-1][0] + SIZE + 1")
            w("timers.add(s.wake, run, s)")
        elif self.expires == "guarded":
            w(self.folds.cells("s"))
            w(f"s.wake = (q[0][0] if {self._guard()} else q[-1][0]) + SIZE + 1")
            w("timers.add(s.wake, run, s)")
        else:
            w("s.wake = q[0][0] + SIZE + 1")
            with w.block("if q[0][0] <= s.known:"):
                w("timers.add(s.wake, run, s)")

    # ------------------------------------------------------------------ windows that close

    def _write_closing(self) -> None:
        w, pattern = self.w, self.pattern
        updates = self.rule.report == "on_update"
        if pattern.kind == "hopping" and (pattern.step or 0) < (pattern.size or 0):
            if updates:
                with w.block("for b in s.taking(t):"):
                    self._write_bucket(updates)
                with w.block("if not s.wake:"):
                    w("arm(s)")
            else:
                self._write_panes()
            return
        w("b = s.bucket")
        with w.block(
            "if b is None:" if pattern.kind == "session" else "if b is None or t >= b.end:"
        ):
            w("b = opened(s, t)")
        self._write_bucket(updates)
        if pattern.kind == "session":
            w("b.end = t")

    def _write_bucket(self, updates: bool) -> None:
        w = self.w
        w(self.folds.cells("b"))
        self.folds.add(w, "b")
        w("b.last = t")
        w("b.count += 1")
        if updates:
            with w.block("if not b.marked:"):
                if self.rule.having is None:
                    w("b.marked = closes(s.key, b, t)")
                else:
                    self._write_having("b")
                    with w.block("if ok:"):
                        w("b.marked = closes(s.key, b, t)")

    def _write_panes(self) -> None:
        w = self.w
        w("p = opened(s, t) if t >= s.until else s.panes[-1]")
        w(self.folds.cells("s"))
        self.folds.add(w, "s")
        w(self.folds.cells("p", "y"))
        self.folds.add(w, "p", "y")
        w("p.last = t")
        w("p.count += 1")
        with w.block("if s.older:"):
            w(f"s.enter_older(t, ({''.join(f'{value}, ' for value in self.folds.values)}))")
        with w.block("if s.next > s.closing:"):
            w("s.hasten()")
            w("arm(s)")


def _unrouted(entry: Entry, env: WindowEnv) -> str:
    """An event without a key counts only when it belongs to the stream."""
    inside = " and ".join(f"{careful(c, env)} is True" for c in entry.membership[0]) or "True"
    return f"return unrouted() if {inside} else None"
