"""Rules change while state is kept: what goes on, what finishes, what is dropped."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import cep
from cep.state.memory import MemoryStore

SECOND = 1_000_000
START = 1_699_999_200
"""A full hour, in seconds; times in tests count from it."""


def seconds(time: int) -> int:
    return time // SECOND - START


class Play:
    """An engine that is stopped and started with other rules, or reloads them."""

    def __init__(self, way: str, folder: Path, rules: str, **loading: Any) -> None:
        self.way = way
        self.store = MemoryStore() if way == "store" else None
        self.path = folder / "cep.db"
        self.found: list[cep.Match] = []
        self.engine = self._engine(cep.loads(rules, **loading))

    def _engine(self, ruleset: cep.Ruleset, **options: Any) -> cep.Engine:
        if self.way == "reload":
            return cep.Engine(ruleset)
        if self.way == "reload with state":
            return cep.Engine(ruleset, state=self.path, checkpoint_every=0)
        state = self.store if self.way == "store" else self.path
        return cep.Engine(ruleset, state=state, checkpoint_every=0, **options)

    def event(self, type_: str, at: int, **more: Any) -> None:
        given = {"type": type_, "time": START + at, "u": "ann", **more}
        self.found += self.engine.process(given)

    def change(self, rules: str, restart: tuple[str, ...] = (), **loading: Any) -> dict[str, str]:
        """The kind of change of each rule."""
        ruleset = cep.loads(rules, **loading)
        if self.way.startswith("reload"):
            done = self.engine.reload(ruleset, restart=restart)
            self.found += done.matches
            self.changes = done.changes
        else:
            self.engine.suspend(self.found.append)
            self.engine = self._engine(ruleset, restart=restart)
            self.changes = self.engine.changes
        for rule in self.engine.program.rules:
            rule.check()
        return {change.name: change.kind for change in self.changes}

    def restart(self) -> None:
        """The same rules in a new engine."""
        if not self.way.startswith("reload"):
            self.engine.suspend(self.found.append)
            self.engine = self._engine(self.engine.ruleset)

    def end(self, at: int | None = None) -> list[tuple[str, int]]:
        """(rule, time in seconds) of all matches."""
        if at is not None:
            self.found += self.engine.advance_to((START + at) * SECOND)
        self.engine.suspend(self.found.append)
        return [(match.rule, seconds(match.time)) for match in self.found]

    @property
    def versions(self) -> int:
        """How many rules run, earlier versions too."""
        return len(self.engine.program.rules)


WAYS = ["store", "file", "reload", "reload with state"]


@pytest.fixture(params=WAYS)
def play(request, tmp_path: Path):
    return lambda rules, **loading: Play(request.param, tmp_path, rules, **loading)


PAIR = """
rule pair {
  by u
  sequence within 10m { a: A where n > %d  b: B where n == a.n }
  alert "%s"
}
"""


def test_nothing_has_changed(play) -> None:
    run = play(PAIR % (1, "x"))
    run.event("A", 1, n=5)
    assert run.change("# another comment\n" + PAIR % (1, "x")) == {"pair": "kept"}
    assert (run.changes[0].keys, run.versions) == (1, 1)
    run.event("B", 2, n=5)
    assert run.end() == [("pair", 2)]


def test_other_constants_keep_the_runs(play) -> None:
    run = play(PAIR % (1, "x"))
    run.event("A", 1, n=5)
    assert run.change(PAIR % (7, "x")) == {"pair": "constants"}
    run.event("A", 2, n=6)
    run.event("B", 3, n=6)
    run.event("B", 4, n=5)
    assert run.end() == [("pair", 4)]


def test_other_output_keeps_the_runs(play) -> None:
    run = play(PAIR % (1, "x"))
    run.event("A", 1, n=5)
    other = (PAIR % (1, "{u} did it")).replace("by u", "by u severity high tags t description 'd'")
    assert run.change(other) == {"pair": "output"}
    run.event("B", 2, n=5)
    run.end()
    assert [(match.message, match.severity) for match in run.found] == [("ann did it", "high")]


def test_a_restart_drops_the_runs(play) -> None:
    run = play(PAIR % (1, "x"))
    run.event("A", 1, n=5)
    run.change(PAIR % (1, "x"), restart=("pair",))
    assert run.changes[0].restarted
    assert run.changes[0].loses_runs
    run.restart()
    run.event("B", 2, n=5)
    assert run.end() == []


def test_an_unknown_rule_cannot_start_over(play) -> None:
    run = play(PAIR % (1, "x"))
    with pytest.raises(cep.StateError, match="no rule other"):
        run.change(PAIR % (1, "x"), restart=("other",))


def test_the_earlier_version_finishes_its_runs(play) -> None:
    run = play(PAIR % (1, "old"))
    old_version = run.engine.compiled.rules[0].version
    run.event("A", 1, n=5)
    changed = (PAIR % (1, "new")).replace("b: B", "x: X  b: B")
    assert run.change(changed) == {"pair": "structure"}
    assert run.versions == 2
    run.event("A", 2, n=6)  # only for the new one
    run.restart()
    run.event("B", 3, n=5)  # ends the old run
    run.event("B", 4, n=6)  # no X before
    run.event("X", 5)
    run.event("B", 6, n=6)
    assert run.end() == [("pair", 3), ("pair", 6)]
    assert [match.message for match in run.found] == ["old", "new"]
    assert run.found[0].version == old_version


def test_an_earlier_version_is_gone_when_it_has_finished(play) -> None:
    run = play(PAIR % (1, "old"))
    run.event("A", 1, n=5)
    run.change((PAIR % (1, "new")).replace("b: B", "x: X  b: B"))
    run.event("B", 3, n=5)
    run.event("B", 4000, n=5)
    if run.engine.keeper is not None:
        run.found += run.engine.checkpoint()
        assert run.versions == 1
    assert run.engine.stats.per_rule["pair"].matches == 1
    run.change((PAIR % (1, "new")).replace("b: B", "x: X  b: B"))
    assert run.versions == 1
    assert run.end() == [("pair", 3)]


def test_several_earlier_versions_and_the_way_back(play) -> None:
    pair = PAIR.replace("alert", "skip nothing alert")
    first, second = pair % (1, "1"), (pair % (1, "2")).replace("b: B", "x: X  b: B")
    third = (pair % (1, "3")).replace("b: B", "x: X  y: Y  b: B")
    run = play(first)
    run.event("A", 1, n=1 + 1)
    run.change(second)
    run.event("A", 2, n=3)
    run.change(third)
    run.event("A", 3, n=4)
    assert run.versions == 3
    run.change(first)
    assert run.versions == 3
    run.event("A", 4, n=5)
    for number, n in enumerate((2, 3, 4, 5), 5):
        run.event("B", number, n=n)
    run.event("X", 10)
    run.event("B", 11, n=3)
    run.end()
    assert [(m.message, seconds(m.time)) for m in run.found] == [("1", 5), ("1", 8), ("2", 11)]


def test_a_rule_that_is_removed_is_reported(play) -> None:
    run = play(PAIR % (1, "x") + "rule one { on A where n > 100 }")
    run.event("A", 1, n=5)
    assert run.change("rule one { on A where n > 100 }") == {"pair": "removed", "one": "kept"}
    removed = next(change for change in run.changes if change.kind == "removed")
    assert removed.sentence().startswith("pair: removed; 1 run of 1 key")
    run.restart()
    assert run.change(PAIR % (1, "x")) == {"pair": "new", "one": "removed"}
    run.event("B", 2, n=5)
    assert run.end() == []


def test_an_earlier_version_keeps_its_lists_and_params(play, tmp_path: Path) -> None:
    (tmp_path / "good.txt").write_text("p\n")
    rules = """
    param most = 5   list good from "%s"   def small(x) = x < most
    stream S from A where kind == "s"
    rule r { by u sequence within 10m { a: S  b: B where small(n) and ip in good } alert "%s" }
    """
    run = play(rules % (tmp_path / "good.txt", "old"), params={"most": 7})
    run.event("A", 1, kind="s")
    (tmp_path / "good.txt").write_text("q\n")
    changed = (rules % (tmp_path / "good.txt", "new")).replace("b: B", "next x: X  b: B")
    changed = changed.replace('kind == "s"', 'kind == "t"')
    assert run.change(changed, params={"most": 3}) == {"r": "structure"}
    run.restart()
    run.event("B", 2, n=6, ip="q")
    run.event("B", 3, n=6, ip="p")
    assert run.end() == [("r", 3)]
    assert run.found[0].message == "old"


def test_an_earlier_version_goes_on_with_its_table(play) -> None:
    rules = """
    table last from P key sku ttl %s
    rule r { by u sequence within 10m { a: A  b: B where n > last[sku].price } }
    """
    run = play(rules % "1h")
    run.event("P", 1, sku="tea", price=4)
    run.event("A", 2)
    run.change((rules % "2h").replace("b: B", "x: X  b: B"))
    run.restart()
    run.event("B", 3, sku="tea", n=3)
    run.event("B", 4, sku="tea", n=5)
    run.event("A", 5)
    run.event("X", 6)
    run.event("B", 7, sku="tea", n=5)
    assert run.end() == [("r", 4), ("r", 7)]


def test_dedup_windows_pass_on(play) -> None:
    rules = PAIR.replace("alert", "dedup by u for 1h alert")
    run = play(rules % (1, "old"))
    for at, type_ in ((1, "A"), (2, "B"), (3, "A")):
        run.event(type_, at, n=5)
    run.change((rules % (1, "new")).replace("b: B", "x: X  b: B"))
    run.restart()
    run.event("B", 4, n=5)  # ends a run of the old version: hidden
    run.event("A", 5, n=5)
    run.event("X", 6)
    run.event("B", 7, n=5)  # of the new one: hidden too
    run.event("A", 3600, n=5)
    run.event("X", 3601)
    run.event("B", 3602, n=5)
    assert run.end() == [("pair", 2), ("pair", 3602)]
    assert run.found[1].suppressed == {
        "count": 2,
        "first": (START + 4) * SECOND,
        "last": (START + 7) * SECOND,
    }


def test_absences_are_due_by_the_new_time(play) -> None:
    rules = "rule quiet { by u sequence { a: A  no B within %s } }"
    run = play(rules % "2h")
    run.event("A", 1)
    assert run.change(rules % "1m") == {"quiet": "constants"}
    run.restart()
    assert run.end(at=62) == [("quiet", 61)]


def test_an_overdue_absence_is_due_at_once(play) -> None:
    rules = "rule quiet { by u sequence { a: A  no B within %s } }"
    run = play(rules % "2h")
    run.event("A", 1)
    run.event("Z", 100)
    run.change(rules % "1m")
    run.restart()
    assert run.end(at=101) == [("quiet", 100)]


def test_undecided_absences_of_earlier_versions_are_listed(play) -> None:
    run = play("rule quiet { by u sequence { a: A  no B within 2h } }")
    run.event("A", 1)
    run.change("rule quiet { by u sequence { a: A  x: X  no B within 2h } keep 1d }")
    assert [one.rule for one in run.engine.undecided] == ["quiet"]
    assert run.end(at=8000) == [("quiet", 7201)]


def test_windows_finish_beside_the_new_ones(play) -> None:
    rules = """
    rule many {
      by u aggregate A over tumbling 1m { n = %s } having n >= 1 alert "%s {n}"
    }
    """
    run = play(rules % ("count()", "old"))
    run.event("A", 1)
    assert run.change(rules % ("count(distinct x)", "new")) == {"many": "structure"}
    run.event("A", 2, x=1)
    run.restart()
    run.event("A", 61, x=1)
    run.event("A", 62, x=2)
    run.event("A", 121, x=1)
    run.end()
    assert sorted((seconds(m.time), m.message) for m in run.found) == [
        (60, "new 1"),
        (60, "old 2"),
        (120, "new 2"),
    ]
    assert run.engine.program.rules[0].since is None


def test_a_threshold_of_a_window_is_a_constant(play) -> None:
    rules = "rule many { by u aggregate A over sliding 1m { n = count() } having n >= %d }"
    run = play(rules % 9)
    for at in (1, 2, 3):
        run.event("A", at)
    assert run.change(rules % 4) == {"many": "constants"}
    run.event("A", 4)
    assert run.end() == [("many", 4)]


def test_held_back_events_are_read_anew(play) -> None:
    run = play("stream A { delay 10s } rule r { on A where n > 1 }")
    run.event("A", 1, n=2, m=3)
    run.change("stream A { delay 10s } rule r { on A where m > 2 and n > 1 }")
    run.event("A", 20, n=2)
    assert run.end() == [("r", 1)]


def test_expected_keys_of_a_changed_rule_are_expected_anew(play) -> None:
    rules = """
    list all_hosts = ["a", "b"]
    rule dead { by u sequence { h: beat  no beat within %s } keys from all_hosts }
    """
    run = play(rules % "1m")
    run.event("beat", 1, u="a")
    assert run.change(rules % "2m") == {"dead": "constants"}
    assert run.end(at=122) == [("dead", 121), ("dead", 121)]


def test_what_an_earlier_version_needs_must_be_there(tmp_path: Path) -> None:
    @cep.function
    def shout(text: str) -> str:
        return text.upper()

    rules = "rule r { by u sequence within 1h { a: A  b: B where shout(x) == 'OK' } }"
    play = Play("file", tmp_path, rules, functions=[shout])
    play.event("A", 1)
    play.engine.suspend()
    other = cep.loads("rule r { by u sequence within 1h { a: A  c: C  b: B } }")
    with pytest.raises(cep.StateError, match=r"cannot be compiled any more.*--restart r"):
        cep.Engine(other, state=play.path)
    engine = cep.Engine(other, state=play.path, restart=["r"])
    assert [change.restarted for change in engine.changes] == [True]
    engine.suspend()


def test_the_file_says_which_versions_there_are(tmp_path: Path) -> None:
    from cep.state.sqlite import read_view

    play = Play("file", tmp_path, PAIR % (1, "old"))
    play.event("A", 1, n=5)
    play.change((PAIR % (1, "new")).replace("b: B", "x: X  b: B"))
    play.end()
    rows = read_view(str(play.path), "rules")
    assert sorted(row["status"] for row in rows) == ["draining", "live"]
    assert all(row["source"].startswith("rule pair {") for row in rows)
    store = cep.Engine(play.engine.ruleset, state=play.path)
    assert store.keeper is not None
    assert store.keeper.store.check() == []
    store.suspend()


def test_what_was_noted_is_found_by_what_it_means(play) -> None:
    rules = """
    table owners from O key host
    stream S from A { select { host = host  owner = owners[host].who  %s } }
    rule r { by host sequence within 10m { a: S  b: B } alert "{a.owner}" { x = a.owner } }
    """
    run = play(rules % "")
    run.event("O", 1, host="h", who="eve")
    run.event("A", 2, host="h")
    run.event("O", 3, host="h", who="bob")
    changed = (rules % "first = owners[host].aa").replace("{ x = a", "{ y = a.first  x = a")
    assert run.change(changed) == {"r": "output"}
    run.restart()
    run.event("B", 4, host="h")
    run.end()
    assert [(m.message, m.fields) for m in run.found] == [("eve", {"x": "eve", "y": None})]


def test_a_table_of_which_more_is_asked(play) -> None:
    rules = """
    table last from P key sku
    rule r { by u sequence within 10m { a: A  b: B where n > last[sku].price } %s }
    """
    run = play(rules % "")
    run.event("P", 1, sku="tea", price=4, name="Tea")
    run.event("A", 2)
    assert run.change(rules % 'alert "x" { name = last[b.sku].name }') == {"r": "output"}
    run.event("B", 3, sku="tea", n=5)
    run.end()
    assert [match.fields for match in run.found] == [{"name": None}]
