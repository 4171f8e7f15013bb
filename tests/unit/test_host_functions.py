"""Functions of a host: signatures, calls from rules, failures, installed packages."""

import importlib.metadata
from datetime import UTC, datetime, timedelta
from typing import Any, Optional

import pytest

import cep
from cep import extend
from dsl.types import Type


@cep.function
def domain(address: str) -> str:
    """The part of an address behind the @.

    Of no use for others.
    """
    return address.rpartition("@")[2]


def values(text: str, events: list[dict[str, Any]], *functions: Any) -> list[Any]:
    """Field `x` of the alert of each match."""
    engine = cep.Engine(cep.loads(text, functions=functions))
    timed = [{"type": "A", "time": time, **event} for time, event in enumerate(events, 1)]
    return [match.fields["x"] for match in engine.process(timed)]


def value(function: Any, expression: str, **event: Any) -> Any:
    return values(f"rule r {{ on a: A  alert {{ x = {expression} }} }}", [event], function)[0]


def test_the_signature_comes_from_the_annotations():
    @cep.function(name="pick", example='pick(a, "b") == 1')
    def choose(a: str, b: int | None, c: float = 1.0, *rest: bool) -> Optional[list]:  # noqa: UP045
        raise NotImplementedError

    assert choose.name == "pick"
    assert choose.parameters == (Type.STRING, Type.INT, Type.NUMBER, Type.BOOL)
    assert choose.result is Type.ARRAY
    assert (choose.optional, choose.variadic) == (2, True)
    assert choose.example == 'pick(a, "b") == 1'


def test_the_documentation_is_that_of_the_function():
    assert domain.doc == "The part of an address behind the @.\n\nOf no use for others."


def test_a_host_can_still_call_its_function():
    assert domain("ann@example.org") == "example.org"


@pytest.mark.parametrize(
    ("annotation", "type_"),
    [
        (str, Type.STRING),
        (int, Type.INT),
        (float, Type.NUMBER),
        (int | float, Type.NUMBER),
        (bool, Type.BOOL),
        (datetime, Type.TIME),
        (timedelta, Type.DURATION),
        (list[str], Type.ARRAY),
        (tuple[int, ...], Type.ARRAY),
        (set[str], Type.ARRAY),
        (dict[str, int], Type.OBJECT),
        (object, Type.ANY),
        (Any, Type.ANY),
        (str | None, Type.STRING),
    ],
)
def test_types(annotation, type_):
    def f(x):
        return x

    f.__annotations__ = {"x": annotation, "return": annotation}
    made = cep.function(f)
    assert made.parameters == (type_,)
    assert made.result is type_


def test_a_function_without_annotations_is_refused():
    def f(x) -> int:
        return x

    with pytest.raises(TypeError, match=r"f\(\): annotate `x` with one of str, int"):
        cep.function(f)


def test_a_result_without_annotation_is_refused():
    def f(x: int):
        return x

    with pytest.raises(TypeError, match="annotate its result"):
        cep.function(f)


def test_a_type_that_rules_do_not_have_is_refused():
    def f(x: complex) -> int:
        return 1

    with pytest.raises(TypeError, match="`x` is <class 'complex'>, not one of"):
        cep.function(f)


def test_an_annotation_that_cannot_be_resolved_is_refused():
    def f(x: "Nowhere") -> int:  # noqa: F821
        return 1

    with pytest.raises(TypeError, match="cannot be resolved"):
        cep.function(f)


def test_keyword_only_parameters_are_refused():
    def f(x: int, *, y: int = 1) -> int:
        return x + y

    with pytest.raises(TypeError, match="rules pass no keywords"):
        cep.function(f)


@pytest.mark.parametrize("name", ["lower", "count", "prev", "any"])
def test_names_of_the_language_are_refused(name):
    with pytest.raises(ValueError, match="is a function of the language"):
        cep.function(name=name)(lambda: None)


@pytest.mark.parametrize("name", ["", "a b", "<lambda>", "class", "1a"])
def test_names_that_rules_cannot_write_are_refused(name):
    with pytest.raises(ValueError, match="cannot call"):
        extend._require_name(name)


def test_rules_call_it_in_conditions_and_alerts():
    text = 'rule r { on a: A where domain(to) == "b.c"  alert { x = upper(domain(a.to)) } }'
    assert values(text, [{"to": "a@b.c"}, {"to": "a@c.d"}], domain) == ["B.C"]


def test_the_checker_knows_its_types():
    text = "rule r { on A where domain(to) > 5 }"
    found = cep.loads(text, functions=[domain]).warnings
    assert any("domain" in one.span.text for one in found)
    with pytest.raises(cep.RuleError, match=r"domain\(\)"):
        cep.loads("rule r { on A where domain(to, to) == to }", functions=[domain])


def test_parameters_with_a_default_may_be_left_out():
    @cep.function
    def add(a: int, b: int = 10) -> int:
        return a + b

    assert value(add, "add(a.n)", n=1) == 11
    assert value(add, "add(a.n, 2)", n=1) == 3


def test_any_number_of_arguments():
    @cep.function
    def total(*numbers: float) -> float:
        return sum(numbers)

    assert value(total, "total()") == 0
    assert value(total, "total(a.n, 2, 3.5)", n=1) == 6.5


def test_times_and_durations():
    @cep.function
    def next_hour(moment: datetime, more: timedelta) -> datetime:
        assert moment.tzinfo is UTC
        return moment + more

    found = value(next_hour, "next_hour(a.time, 1h)")
    assert found == "1970-01-01T01:00:01Z"


def test_null_and_missing_arguments_give_null_without_a_call():
    calls = []

    @cep.function
    def seen(x: object) -> bool:
        calls.append(x)
        return True

    assert value(seen, "seen(a.x)") is None
    assert value(seen, "seen(a.x)", x=None) is None
    assert calls == []


def test_none_is_null():
    @cep.function
    def nothing(x: int) -> int | None:
        return None

    assert value(nothing, "nothing(a.n) ?? 5", n=1) == 5


def test_what_it_raises_is_null_and_counted():
    @cep.function
    def broken(x: int) -> int:
        raise RuntimeError("no")

    rules = cep.loads("rule r { on A where broken(n) == 1 or n == 2 }", functions=[broken])
    engine = cep.Engine(rules)
    found = engine.process([{"type": "A", "time": t, "n": t} for t in (1, 2, 3)])
    assert [match.time for match in found] == [2_000_000]
    assert engine.stats.unknown == 3


@pytest.mark.parametrize("result", ["text", True, 1.5, [1]])
def test_a_result_of_another_type_than_declared_is_null(result):
    @cep.function
    def liar(x: int) -> int:
        return result

    assert value(liar, "liar(a.n)", n=1) is None


def test_an_argument_of_another_type_is_null():
    assert value(domain, "domain(a.n)", n=1) is None


def test_what_is_no_function_is_refused():
    with pytest.raises(TypeError, match=r"decorate it with @cep\.function"):
        cep.loads("rule r { on A }", functions=[len])


# ---------------------------------------------------------------------------- installed packages


class Point:
    """An entry point of an installed package."""

    def __init__(self, name: str, value: object) -> None:
        self.name = name
        self.value = name
        self._value = value

    def load(self) -> object:
        if isinstance(self._value, Exception):
            raise self._value
        return self._value


@pytest.fixture
def install(monkeypatch):
    asked: list[str] = []

    def install(*points: Point) -> list[str]:
        def entry_points(group: str) -> list[Point]:
            asked.append(group)
            return list(points)

        monkeypatch.setattr(importlib.metadata, "entry_points", entry_points)
        return asked

    return install


CALLS_DOMAIN = 'rule r { on A where domain(to) == "b.c" }'


def test_installed_functions_are_found_by_name(install):
    asked = install(Point("mail", [domain]))
    engine = cep.Engine(cep.loads(CALLS_DOMAIN))
    assert len(engine.process({"type": "A", "time": 1, "to": "a@b.c"})) == 1
    assert asked == ["cep.functions"]


def test_they_are_not_looked_for_without_need(install):
    asked = install(Point("mail", domain))
    cep.loads("rule r { on A where lower(to) == to }")
    cep.loads(CALLS_DOMAIN, functions=[domain])
    assert asked == []


def test_only_those_that_rules_call_count(install):
    @cep.function
    def other(x: int) -> int:
        return x

    install(Point("mail", [domain, other]))
    rules = cep.loads(
        f"def other(x) = x + 1\n{CALLS_DOMAIN}\nrule s {{ on A where other(n) == 2 }}"
    )
    assert "other" not in rules.checked.functions


def test_the_host_comes_first(install):
    @cep.function(name="domain")
    def mine(address: str) -> str:
        return "mine"

    @cep.function
    def second(x: str) -> str:
        return x

    install(Point("mail", [domain, second]))
    text = 'rule r { on A  alert { x = domain(second("q")) } }'
    assert values(text, [{}], mine) == ["mine"]


def test_a_package_that_cannot_be_imported_is_told(install):
    install(Point("bad", ImportError("no such library")), Point("mail", 5))
    with pytest.raises(cep.RuleError) as error:
        cep.loads(CALLS_DOMAIN)
    messages = [one.message for one in error.value.diagnostics if one.severity == "error"]
    assert messages == [
        "the installed functions `bad` cannot be used: ImportError: no such library",
        "the installed functions `mail` cannot be used: "
        "TypeError: 5 is no function of rules: decorate it with @cep.function",
        "no function is called `domain`",
    ]


def test_one_bad_package_does_not_stop_the_others(install):
    install(Point("bad", ImportError("no")), Point("mail", domain))
    assert "domain" in cep.loads(CALLS_DOMAIN).checked.functions


def test_the_command_line_lists_them_and_tells_of_those_that_fail(install):
    from click.testing import CliRunner

    from cep.cli.functions import command

    install(Point("bad", ImportError("no")), Point("mail", domain))
    listed = CliRunner().invoke(command, [])
    assert "  domain(string) -> string" in listed.stdout
    assert "the installed functions `bad` cannot be used: ImportError: no" in listed.stderr
    page = CliRunner().invoke(command, ["domain"]).stdout
    assert "The part of an address behind the @." in page
