"""Writes the pages of the reference that repeat what the code says: functions, errors, API.

In: the signatures of `dsl.functions`, the pages of `dsl.codes`, the docstrings of what is public in
`cep`. Out: functions.md, errors.md and api.md in `reference/`, the same for the same code; a test
holds that they are up to date. To bring them so:

    python docs/make_reference.py
"""

from __future__ import annotations

import dataclasses
import inspect
import re
import sys
import textwrap
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

DOCS = Path(__file__).resolve().parent
sys.path.insert(0, str(DOCS.parent))

import cep  # noqa: E402
from dsl.checked import FunctionSignature  # noqa: E402
from dsl.codes import CODES, Code  # noqa: E402
from dsl.formatter import format_file  # noqa: E402
from dsl.functions import AGGREGATES, FUNCTIONS, LOOP_FUNCTIONS, WINDOW_ONLY  # noqa: E402
from dsl.parser import parse  # noqa: E402
from dsl.source import Source  # noqa: E402

NOTE = "<!-- Written by docs/make_reference.py from the code; to change it, change that. -->"

# ---------------------------------------------------------------------------- functions

GROUPS = {
    "text": "Texts",
    "number": "Numbers",
    "time": "Times and durations",
    "conversion": "Conversions",
    "network": "Networks and places",
    "choice": "Choices and arrays",
}


def functions_page() -> str:
    """All functions by what they are for, with signature and example."""
    parts = [
        "# Functions",
        NOTE,
        "Arguments in brackets may be left out, and `…` means any number of them. A call that "
        "fails, or that is given a null where it needs a value, is null. `cep functions NAME` "
        "prints an entry; [hosts and packages](../guide/lookups.md#a-function) bring more.",
    ]
    for group, title in GROUPS.items():
        members = [one for one in FUNCTIONS.values() if one.group == group]
        parts += [f"## {title}", function_table(members)]
    parts += [
        "## Aggregates",
        "Over the events of a step (`count(a)`, `sum(a.f)`), or in the block of an "
        "[`aggregate`](aggregates.md) rule over those of its window. "
        + ", ".join(f"`{name}()`" for name in sorted(WINDOW_ONLY))
        + " is for windows only.",
        function_table(list(AGGREGATES.values())),
        "## In the condition of a loop",
        "Over the events that the step "
        "[has already taken](quantifiers.md#conditions-that-look-back).",
        function_table(list(LOOP_FUNCTIONS.values())),
    ]
    return "\n\n".join(parts) + "\n"


def function_table(functions: list[FunctionSignature]) -> str:
    rows = [
        f"| `{signature(one)}` | {cell(one.doc)} | `{cell(one.example)}` |" for one in functions
    ]
    return "\n".join(["| function | what it is | example |", "| --- | --- | --- |", *rows])


def signature(function: FunctionSignature) -> str:
    """`substr(string, int [, int]) -> string`"""
    names = [type_.value for type_ in function.parameters]
    needed = len(names) - function.optional
    text = ", ".join(names[:needed])
    for name in names[needed:]:
        text += f" [, {name}]" if text else f"[{name}]"
    more = ", …" if function.variadic else ""
    return f"{function.name}({text}{more}) -> {function.result.value}"


def cell(text: str) -> str:
    """Text that stands in a cell of a table."""
    return text.replace("|", "\\|").replace("\n", " ")


# ---------------------------------------------------------------------------- errors

KINDS = (
    ("Errors in the text", "The text is no rule file.", lambda code: "E001" <= code < "E030"),
    (
        "Errors in the meaning",
        "It is one, and makes no sense.",
        lambda code: "E030" <= code < "E900",
    ),
    ("Errors on loading", "It makes sense, and cannot be run.", lambda code: "E900" <= code < "F"),
    ("Warnings", "It runs, and may not be what is meant.", lambda code: code.startswith("W")),
)


NEED_MORE = {"E047": "it takes a setting", "E049": "it takes a second file"}
"""Codes whose wrong example is wrong only with something beside it."""


def errors_page() -> str:
    """Every code with its explanation."""
    parts = [
        "# Errors and warnings",
        NOTE,
        "What `cep check` finds in rules, by code. `cep check --explain E004` prints an entry.",
    ]
    for title, meaning, belongs in KINDS:
        codes = [code for code in CODES.values() if belongs(code.code)]
        links = [f"- [{one.code}](#{one.code.lower()}) {one.title}" for one in codes]
        parts += [f"## {title}", meaning, "\n".join(links)]
        parts += [error_entry(code) for code in codes]
    return "\n\n".join(parts) + "\n"


def error_entry(code: Code) -> str:
    """The heading is the code alone, so that its anchor stays whatever the title becomes."""
    why = NEED_MORE.get(code.code)
    note = f"not run: {why}" if why else f"wrong: {code.code}"
    text = code.explanation.replace("Wrong:\n\n", f"Wrong:\n\n<!-- {note} -->\n")
    text = re.sub(r"(^Right:\n\n```cep\n)(.*?)(?=^```)", canonical, text, flags=re.M | re.S)
    return f"### {code.code}\n\n**{code.title}**\n\n{text.strip()}"


def canonical(example: re.Match[str]) -> str:
    source = Source("example.cep", example[2])
    return example[1] + format_file(parse(source)[0], source)


# ---------------------------------------------------------------------------- API


INNER = {
    *(f"Engine.{name}" for name in ("read_from", "feed", "slowest", "finish", "take")),
    *(f"Engine.{name}" for name in ("run_sorted", "decode")),
    *(f"Match.{name}" for name in ("describe", "dedup_key", "emitted", "counts", "step_field")),
    "Ruleset.program",
}
"""Members that the parts of cep use among themselves, and hosts do not."""


def api_page() -> str:
    """What `import cep` gives, from the docstrings."""
    names = [name for name in cep.__all__ if name != "Diagnostic"] + ["Diagnostic"]
    functions = [name for name in names if inspect.isfunction(getattr(cep, name))]
    classes = [name for name in names if inspect.isclass(getattr(cep, name))]
    parts = [
        "# Python API",
        NOTE,
        "All public names stand in the module `cep`. The [guide](../guide/embedding.md) shows them "
        "at work.",
        "## Functions",
        *(function_entry(name, getattr(cep, name), "###") for name in functions),
        "## Classes",
        *(class_entry(name, getattr(cep, name)) for name in classes),
    ]
    return "\n\n".join(parts) + "\n"


def function_entry(name: str, function: Callable[..., Any], level: str, owner: str = "") -> str:
    shown = f"{owner}{name}{parameters(function)}"
    return f"{level} {name}\n\n`{shown}`\n\n{prose(function)}"


def class_entry(name: str, cls: type) -> str:
    parts = [
        f"### {name}",
        *([] if has_no_call(cls) else [f"`{name}{parameters(cls)}`"]),
        prose(cls),
    ]
    parts += members(name, cls)
    return "\n\n".join(part for part in parts if part)


def has_no_call(cls: type) -> bool:
    """Whether people only receive such objects: their fields are listed instead."""
    return dataclasses.is_dataclass(cls) or issubclass(cls, Exception) or cls is cep.Match


def members(owner: str, cls: type) -> Iterator[str]:
    """The fields, properties and methods that have a name of their own and a docstring."""
    fields = dataclasses.fields(cls) if dataclasses.is_dataclass(cls) else ()
    listed = [f"`{one.name}`: {annotation(one.type)}" for one in fields if one.name[0] != "_"]
    if listed:
        yield "Fields: " + "; ".join(listed) + "."
    rows = []
    for name, member in vars(cls).items():
        if name.startswith("_") or not inspect.getdoc(member):
            continue
        if f"{owner}.{name}" in INNER:
            continue
        if isinstance(member, property):
            rows.append(f"- `{name}`: {summary(member)}")
        elif inspect.isfunction(member):
            rows.append(f"- `{name}{parameters(member)}`: {summary(member)}")
    if rows:
        yield "\n".join(rows)


def parameters(function: Any) -> str:
    """What may be given, with defaults; types are told by the text, or by the field list."""
    shown = []
    star = False
    for one in inspect.signature(function).parameters.values():
        if one.name == "self":
            continue
        if one.kind is one.KEYWORD_ONLY and not star:
            shown.append("*")
            star = True
        shown.append(one.name if one.default is one.empty else f"{one.name}={one.default!r}")
    return f"({', '.join(shown)})"


def annotation(type_: Any) -> str:
    return f"`{type_ if isinstance(type_, str) else type_.__name__}`"


def summary(member: Any) -> str:
    """A docstring in one paragraph, its examples as a block below."""
    text, sign, example = (inspect.getdoc(member) or "").partition(">>> ")
    told = " ".join(text.split())
    block = example_block(sign + textwrap.dedent(example))
    return f"{told}\n\n{block}\n" if example else told


def prose(thing: Any) -> str:
    """A docstring as Markdown: examples become blocks that the tests run."""
    text = inspect.getdoc(thing) or ""
    return re.sub(
        r"(?:^>>> .*(?:\n(?!\n).*)*)+", lambda found: example_block(found[0]), text, flags=re.M
    )


def example_block(text: str) -> str:
    return f"```pycon\n{textwrap.dedent(text)}\n```"


# ---------------------------------------------------------------------------- all of them

PAGES: dict[str, Callable[[], str]] = {
    "functions.md": functions_page,
    "errors.md": errors_page,
    "api.md": api_page,
}
"""The pages in `reference/` and what makes them."""


def main() -> None:
    for name, make in PAGES.items():
        (DOCS / "reference" / name).write_text(make(), encoding="utf-8")


if __name__ == "__main__":
    main()
