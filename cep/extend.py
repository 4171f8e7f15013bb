"""Functions of a host for use in rules: `@function`, and those that installed packages bring.

In: Python functions with annotated parameters and result. Out: `HostFunction`, a signature that
the checker knows types from and the engine calls. A host passes its own to `cep.load` as
`functions=[…]`.

A package brings functions to every program and to the command line by entry points of the group
`cep.functions`, each a `HostFunction` or an iterable of them:

    [project.entry-points."cep.functions"]
    geo = "my_package.geo:functions"

These are imported only when rules call a function that nothing else defines, so they cost nothing
to those who do not use them; the names of the language and of the host come first.
"""

from __future__ import annotations

import inspect
import keyword
import re
import types
import typing
from collections.abc import Callable, Iterable, Mapping
from datetime import datetime, timedelta
from typing import Any

from dsl.checked import FunctionSignature
from dsl.functions import AGGREGATES, FUNCTIONS, LOOP_FUNCTIONS, QUANTIFIERS
from dsl.types import Type

GROUP = "cep.functions"
"""The entry points of installed packages."""

_TYPES: dict[object, Type] = {
    str: Type.STRING,
    int: Type.INT,
    float: Type.NUMBER,
    bool: Type.BOOL,
    datetime: Type.TIME,
    timedelta: Type.DURATION,
    list: Type.ARRAY,
    tuple: Type.ARRAY,
    set: Type.ARRAY,
    frozenset: Type.ARRAY,
    dict: Type.OBJECT,
    object: Type.ANY,
    Any: Type.ANY,
}
_IN_WORDS = "str, int, float, bool, datetime, timedelta, list, dict and object"
_POSITIONAL = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)


class HostFunction(FunctionSignature):
    """A Python function with its signature in the language of rules. It can still be called."""

    __slots__ = ()

    def __call__(self, *arguments: Any) -> Any:
        assert self.call is not None
        return self.call(*arguments)


@typing.overload
def function(call: Callable[..., Any], /) -> HostFunction: ...


@typing.overload
def function(
    *, name: str | None = None, example: str = ""
) -> Callable[[Callable[..., Any]], HostFunction]: ...


def function(
    call: Callable[..., Any] | None = None, /, *, name: str | None = None, example: str = ""
) -> HostFunction | Callable[[Callable[..., Any]], HostFunction]:
    """Makes a Python function one of the language of rules.

    Types come from the annotations: str, int, float (any number), bool, datetime (a time, in UTC),
    timedelta (a duration), list, dict, and object for anything. `X | None` may be written, but None
    is never passed: where an argument is null or missing, the result is null without a call.
    Parameters with a default may be left out, `*values: str` takes any number. The function must
    give the same result for the same arguments, quickly and without side effects: it may be called
    more than once for an event. What it raises, and a result of another type than it declares, is
    null in the rule and counted (`RuleStats.unknown`).

    `name`: how rules call it (default: its own name). `example`: shown by `cep functions`. Raises
    TypeError for a function that rules cannot call, ValueError for a name they cannot.

    >>> import cep
    >>> @cep.function
    ... def domain(address: str) -> str:
    ...     return address.rpartition("@")[2]
    >>> text = 'rule inside { on mail where domain(to) == "example.org" }'
    >>> engine = cep.Engine(cep.loads(text, functions=[domain]))
    >>> len(engine.process({"type": "mail", "to": "ann@example.org", "time": 1}))
    1
    """
    if call is None:
        return lambda made: _host_function(made, name or made.__name__, example)
    return _host_function(call, name or call.__name__, example)


def _host_function(call: Callable[..., Any], name: str, example: str) -> HostFunction:
    _require_name(name)
    try:
        hints = typing.get_type_hints(call)
    except NameError as error:
        raise TypeError(f"{name}(): an annotation cannot be resolved: {error}") from None
    parameters = list(inspect.signature(call).parameters.values())
    for parameter in parameters:
        if parameter.kind not in (*_POSITIONAL, inspect.Parameter.VAR_POSITIONAL):
            raise TypeError(f"{name}(): rules pass no keywords, so `{parameter}` cannot be given")
    return HostFunction(
        name=name,
        parameters=tuple(_type_of(name, p.name, hints) for p in parameters),
        result=_type_of(name, "return", hints),
        doc=(inspect.getdoc(call) or "").split("\n>>>")[0].strip(),
        optional=sum(_may_be_left_out(parameter) for parameter in parameters),
        variadic=any(p.kind is inspect.Parameter.VAR_POSITIONAL for p in parameters),
        example=example,
        group="Functions of the host and of installed packages",
        call=call,
    )


def _may_be_left_out(parameter: inspect.Parameter) -> bool:
    is_variadic = parameter.kind is inspect.Parameter.VAR_POSITIONAL
    return is_variadic or parameter.default is not inspect.Parameter.empty


def _require_name(name: str) -> None:
    if not re.fullmatch(r"[A-Za-z_]\w*", name, re.ASCII) or keyword.iskeyword(name):
        raise ValueError(f"rules cannot call a function `{name}`: give it a name of letters")
    if name in {*FUNCTIONS, *AGGREGATES, *LOOP_FUNCTIONS, *QUANTIFIERS}:
        raise ValueError(f"`{name}` is a function of the language: choose another name")


def _type_of(function: str, part: str, hints: Mapping[str, Any]) -> Type:
    """The type in the language of a parameter, or of the result (`return`)."""
    where = "its result" if part == "return" else f"`{part}`"
    if part not in hints:
        raise TypeError(f"{function}(): annotate {where} with one of {_IN_WORDS}")
    hint = _without_none(hints[part])
    found = _TYPES.get(typing.get_origin(hint) or hint)
    if found is None:
        raise TypeError(f"{function}(): {where} is {hint!r}, not one of {_IN_WORDS}")
    return found


def _without_none(hint: Any) -> Any:
    """`X` of `X | None`; float of `int | float`."""
    if typing.get_origin(hint) in (typing.Union, types.UnionType):
        left = [part for part in typing.get_args(hint) if part is not type(None)]
        if set(left) == {int, float}:
            return float
        if len(left) == 1:
            return left[0]
    return hint


# ---------------------------------------------------------------------------- installed packages


def installed_functions() -> tuple[dict[str, FunctionSignature], list[str]]:
    """The functions of installed packages by name, and in words what could not be imported.

    A package that cannot be imported does not stop the others. Of two functions with one name the
    one counts whose entry point comes first by its name.
    """
    from importlib.metadata import entry_points

    found: dict[str, FunctionSignature] = {}
    problems: list[str] = []
    for point in sorted(entry_points(group=GROUP), key=lambda point: (point.name, point.value)):
        try:
            for one in as_functions(point.load()):
                found.setdefault(one.name, one)
        except Exception as error:  # whatever a package does when it is imported
            reason = f"{type(error).__name__}: {error}"
            problems.append(f"the installed functions `{point.name}` cannot be used: {reason}")
    return found, problems


def as_functions(given: object) -> list[FunctionSignature]:
    """One function or several as a list; TypeError for what is none."""
    several = given if isinstance(given, Iterable) else [given]
    found = []
    for one in several:
        if not isinstance(one, FunctionSignature):
            raise TypeError(f"{one!r} is no function of rules: decorate it with @cep.function")
        found.append(one)
    return found
