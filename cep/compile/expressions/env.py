"""The code around an expression, as the expression sees it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

from cep.compile.expressions.call import Scalar
from dsl.checked import FunctionSignature, Lookup, Value
from dsl.types import Type


class Env(Protocol):
    """How the code around an expression holds what the expression reads.

    A leaf is any value that is not one of the operators, functions and constants of this module.
    """

    @property
    def careful(self) -> str:
        """The name of the rule's `Careful` object."""

    def load(self, leaf: Value) -> str:
        """Code of a leaf: cheap, without effects, None when the leaf is null or missing."""

    def is_missing(self, leaf: Value) -> str:
        """Code that is true when the leaf is missing (and not null)."""

    def type_of(self, leaf: Value) -> Type:
        """What `load` surely holds besides None and `Odd`; ANY when nothing is sure."""

    def nullable(self, leaf: Value) -> bool:
        """Whether `load` may be None."""

    def constant(self, obj: object) -> str:
        """The name under which the code finds a Python object."""

    def temporary(self) -> str:
        """A fresh name for a local variable."""

    def list_items(self, name: str) -> Sequence[Scalar]:
        """The items of a named list, those of its file too."""

    def host_function(self, name: str) -> FunctionSignature | None:
        """The function that the host has registered under a name."""

    def finder(self, lookup: Lookup) -> Any:
        """What stands for the function from a key to the value in its row of the table."""
