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


def page(text: str, wrong: str, right: str) -> str:
    """An explanation: what it means, a wrong example and a right one, as Markdown."""
    shown = [
        f"{title}:\n\n```cep\n{example.strip()}\n```\n"
        for title, example in (("Wrong", wrong), ("Right", right))
    ]
    return "\n\n".join([text, "\n".join(shown)])


_SYNTAX: tuple[Code, ...] = (
    Code(
        "E001",
        "unexpected text",
        page(
            "The text stops being a rule file here. The message says what could have stood there "
            "instead; often the mistake is just before the place that is marked. Reading goes on "
            "with the next statement.",
            "rule probe { on login where port > }",
            "rule probe { on login where port > 1024 }",
        ),
    ),
    Code(
        "E002",
        "brackets that do not match",
        page(
            "Every `{`, `(` and `[` needs its `}`, `)` or `]`. A statement that begins at the "
            "left margin ends whatever is still open: a forgotten bracket spoils one statement.",
            "rule probe { on login where (port > 1024 }",
            "rule probe { on login where (port > 1024) }",
        ),
    ),
    Code(
        "E003",
        "a text, name or regular expression that is never closed",
        page(
            "Texts stand between two `\"` or two `'`, regular expressions between two `/`, and "
            "unusual names between two backticks. They begin and end on the same line; write a "
            "line break in a text as `\\n`.",
            'rule probe { on login where user == "root }',
            'rule probe { on login where user == "root" }',
        ),
    ),
    Code(
        "E004",
        "`=` where `==` is meant",
        page(
            "`=` gives a value a name, as in a `param` or in the fields of an alert. To compare "
            "two values, write `==`.",
            'rule probe { on login where user = "root" }',
            'rule probe { on login where user == "root" }',
        ),
    ),
    Code(
        "E005",
        "chained comparison",
        page(
            "A comparison has two sides. Write two comparisons and join them with `and`.",
            "rule probe { on login where 0 < port < 1024 }",
            "rule probe { on login where 0 < port and port < 1024 }",
        ),
    ),
    Code(
        "E006",
        "a sign of another language",
        page(
            "Conditions are joined with the words `and`, `or` and `not`. Signs that other "
            "languages have for them, and for powers, arrows or the end of a clause, do not exist.",
            'rule probe { on login where port > 1024 && user == "root" }',
            'rule probe { on login where port > 1024 and user == "root" }',
        ),
    ),
    Code(
        "E007",
        "a duration without a unit",
        page(
            "A length of time is a number with a unit: `us`, `ms`, `s`, `m` (minutes), `h`, `d` or "
            "`w`, without a blank between them. Several can be put together: `1h30m`.",
            "rule probe { sequence within 10 { a: login  b: logout } }",
            "rule probe { sequence within 10m { a: login  b: logout } }",
        ),
    ),
    Code(
        "E008",
        "neither a number nor a duration",
        page(
            "Numbers look like `5` or `1.5`, durations like `5m` or `1h30m`. The units are `us`, "
            "`ms`, `s`, `m` (minutes), `h`, `d` and `w`. The name of a field that begins with a "
            "digit stands between backticks.",
            "rule probe { sequence within 10min { a: login  b: logout } }",
            "rule probe { sequence within 10m { a: login  b: logout } }",
        ),
    ),
    Code(
        "E009",
        "unknown escape in a text",
        page(
            'In a text a backslash begins one of `\\n` (line break), `\\t` (tab), `\\r`, `\\"`, '
            "`\\'`, `\\\\` (a backslash) and `\\uXXXX` (a character by its number). For a "
            "backslash write two. Regular expressions between slashes need no doubling.",
            r'rule probe { on login where path like "C:\Windows*" }',
            r'rule probe { on login where path like "C:\\Windows*" }',
        ),
    ),
    Code(
        "E010",
        "misspelt word",
        page(
            "A word that is no keyword stands where only certain keywords can, and it looks like "
            "one of them. Keywords are written in small letters.",
            "rule probe { on login wher port > 1024 }",
            "rule probe { on login where port > 1024 }",
        ),
    ),
    Code(
        "E011",
        "nested too deep",
        page(
            "Expressions and groups may stand inside each other up to 100 deep; a sum counts as "
            "deep as it is long. Name a part of it with `def`, or use a list and `in`. Any number "
            "of conditions may be joined with `and` and `or`.",
            f"rule probe {{ on login where {'-' * 101}port == 1 }}",
            "rule probe { on login where -port == 1 }",
        ),
    ),
    Code(
        "E012",
        "braces in the text of an alert",
        page(
            "In the text of an alert, `{` and `}` enclose an expression. For a brace itself write "
            "it twice: `{{` and `}}`. The escapes of the text are resolved first, then the braces: "
            'inside an expression use the other kind of quotes, or `\\"`.',
            'rule probe { on login  alert "set {a, b} of {}" }',
            'rule probe { on login  alert "set {{a, b}} of {user}" }',
        ),
    ),
    Code(
        "E013",
        "a character that cannot stand here",
        page(
            "Names are made of the letters a to z and A to Z, digits and `_`. A field with any "
            "other name stands between backticks. Texts stand between straight quotes. Outside of "
            "texts, blanks are ordinary ones. Rule files are UTF-8.",
            "rule probe { on login where größe > 5 }",
            "rule probe { on login where `größe` > 5 }",
        ),
    ),
    Code(
        "E014",
        "a clause written twice",
        page(
            "The clauses of a step may come in any order, but each only once. Join two conditions "
            "with `and`. A `where` directly after `until S` belongs to the `until`.",
            "rule probe { sequence within 1m { a: login where x == 1 where y == 2  b: logout } }",
            "rule probe { sequence within 1m { a: login where x == 1 and y == 2  b: logout } }",
        ),
    ),
    Code(
        "E015",
        "a number that is too large or too fine",
        page(
            "Numbers reach to 1.79e308, durations to 146,000 years, counts to 999,999,999. Time is "
            "measured in whole microseconds.",
            "rule probe { on login  dedup for 0.1us }",
            "rule probe { on login  dedup for 1us }",
        ),
    ),
    Code(
        "E016",
        "a quantifier that cannot be met",
        page(
            "In `{n,m}` the larger number comes last, and it is at least 1. A step that may be "
            "left out has the quantifier `?` or `*`.",
            "rule probe { sequence within 1m { a: login{5,2}  b: logout } }",
            "rule probe { sequence within 1m { a: login{2,5}  b: logout } }",
        ),
    ),
    Code(
        "E017",
        "unknown flags of a regular expression",
        page(
            "The only flag of a regular expression is `i`: upper and lower case are the same.",
            "rule probe { on login where user matches /^adm/g }",
            "rule probe { on login where user matches /^adm/i }",
        ),
    ),
)

_MEANING: tuple[Code, ...] = ()

CODES: dict[str, Code] = {code.code: code for code in (*_SYNTAX, *_MEANING)}
"""All codes by their name (``CODES["E004"].title``)."""
