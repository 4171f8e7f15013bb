"""The Python that a rule has become, as it runs; comments say what its names stand for."""

from __future__ import annotations

from collections.abc import Iterator

from cep.compile.observers import CompiledObserver
from cep.compile.rules import CompiledRule, CompiledRules

LONGEST_CONSTANT = 100
"""Characters of a constant that are shown."""


def print_code(compiled: CompiledRules) -> str:
    """The modules of all rules, one after the other: a text that Python can compile."""
    rules = (line for rule in compiled.rules for line in _rule(rule, compiled))
    before = _observer("what streams do before the rules see an event", compiled.before)
    after = _observer("how tables change after the rules have seen an event", compiled.after)
    return "\n".join([*before, *rules, *after])


def _observer(what: str, observer: CompiledObserver | None) -> Iterator[str]:
    if observer is not None:
        yield f"# ---- {what}"
        yield from _constants(observer.constants)
        yield observer.text


def _rule(rule: CompiledRule, compiled: CompiledRules) -> Iterator[str]:
    yield f"# ---- rule {rule.rule.name}, version {rule.version}"
    yield "# fields of an event e: t is its time in microseconds"
    for path, attribute in compiled.shape.attributes.items():
        yield f"#   {attribute}  {'.'.join(path)!r}"
    yield ""
    yield "# what is done with an event"
    yield from _constants(rule.handler_constants)
    yield rule.handlers
    yield "# what is said of a match"
    yield from _constants(rule.match_constants)
    yield rule.matches


def _constants(constants: list[object]) -> Iterator[str]:
    for number, constant in enumerate(constants):
        shown = getattr(constant, "__name__", None) or " ".join(ascii(constant).split())
        if len(shown) > LONGEST_CONSTANT:
            shown = shown[: LONGEST_CONSTANT - 1] + "…"
        yield f"#   c{number}  {shown}"
