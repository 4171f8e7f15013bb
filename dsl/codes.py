"""Every error and warning code of the language, once, with the page that explains it.

`cep check --explain E004` prints the explanation. E001 to E029 come from the parser (the text is
not a rule file), the others from the checker (the text is one, but makes no sense).
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Code:
    """A code, its title, and its page in Markdown with a wrong and a right example."""

    code: str
    title: str
    explanation: str


_ALL: tuple[Code, ...] = ()

CODES: dict[str, Code] = {code.code: code for code in _ALL}
"""All codes by their name (``CODES["E004"].title``)."""
