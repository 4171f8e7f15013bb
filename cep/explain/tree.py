"""The tree of a rule file as indented text: a line for each node, names and numbers beside it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import fields

from dsl import ast

_INLINE = (ast.Ident, ast.Path, ast.Duration, ast.Quantifier)


def print_tree(node: ast.Node) -> str:
    """The node and everything in it.

    >>> print(print_tree(ast.By((ast.KeyPart(ast.Name(ast.Ident("user"))),))))
    By
      KeyPart
        Name ident=user
    """
    return "\n".join(_lines(node, ""))


def _lines(node: ast.Node, indent: str) -> Iterator[str]:
    scalars = []
    children: list[tuple[str, object]] = []
    for field in fields(node):
        value = getattr(node, field.name)
        if field.name in ("span", "text") or value is None or value == ():
            continue
        if _is_inline(value):
            scalars.append(f"{field.name}={_inline(value)}")
        else:
            children.append((field.name, value))
    yield indent + " ".join([type(node).__name__, *scalars])
    for name, child in children:
        yield from _child(name, child, indent + "  ")


def _child(name: str, child: object, indent: str) -> Iterator[str]:
    """A node below another; tuples of tuples (branches) get a line with the field's name."""
    if isinstance(child, ast.Node):
        yield from _lines(child, indent)
    elif isinstance(child, tuple):
        for item in child:
            if isinstance(item, tuple):
                yield f"{indent}{name}:"
                yield from _child(name, item, indent + "  ")
            else:
                yield from _child(name, item, indent)
    else:
        yield f"{indent}{child!r}"


def _is_inline(value: object) -> bool:
    if isinstance(value, tuple):
        return all(isinstance(item, _INLINE) for item in value)
    return not isinstance(value, ast.Node) or isinstance(value, _INLINE)


def _inline(value: object) -> str:
    match value:
        case tuple():
            return ",".join(_inline(item) for item in value)
        case ast.Ident():
            return value.name
        case ast.Path():
            return value.dotted
        case ast.Duration():
            return value.text or f"{value.micros}us"
        case ast.Quantifier():
            return value.written or f"{{{value.minimum},{value.maximum or ''}}}"
        case _:
            return repr(value)
