"""Every error and warning code of the language, once, with the page that explains it.

`cep check --explain E004` prints the explanation. E001 to E029 come from the parser (the text is
not a rule file), those from E900 from loading checked rules, the others from the checker (the text
is one, but makes no sense).
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

_MEANING: tuple[Code, ...] = (
    Code(
        "E030",
        "a name that means nothing here",
        page(
            "In `having`, `alert`, `emit` and `dedup` no event is being tested, so a bare field "
            "means nothing. What may be named there: parts of the key, `step.field`, aggregates, "
            "and earlier fields of the alert (an `on` rule also has the fields of its event).",
            'rule pair { by host  sequence within 1m { a: A  b: B }  alert "{ip}" }',
            'rule pair { by host  sequence within 1m { a: A  b: B }  alert "{host}: {b.ip}" }',
        ),
    ),
    Code(
        "E031",
        "a step that is not bound yet",
        page(
            "Steps are bound in order. A condition may name the steps before its own, in `all` the "
            "other parts, in `repeat` all of the body. The event being tested is named without a "
            "step; `this.f` always means a field of it.",
            "rule pair { sequence within 1m { a: A where ip == b.ip  b: B } }",
            "rule pair { sequence within 1m { a: A  b: B where ip == a.ip } }",
        ),
    ),
    Code(
        "E032",
        "a field that the stream does not have",
        page(
            "A stream with a schema (`fields`), with `select`, or that rules emit to, has the "
            "fields that are said there and no others.",
            'stream login { fields { user: string } }\nrule root { on login where usr == "root" }',
            'stream login { fields { user: string } }\nrule root { on login where user == "root" }',
        ),
    ),
    Code(
        "E033",
        "an unknown function",
        page(
            "There is no function or `def` of this name. `cep functions` lists the functions; a "
            "host program may register further ones.",
            'rule root { on login where lowr(user) == "root" }',
            'rule root { on login where lower(user) == "root" }',
        ),
    ),
    Code(
        "E034",
        "a wrong number of arguments",
        page(
            "The function or `def` takes another number of arguments.",
            "rule agent { on request where starts_with(agent) }",
            'rule agent { on request where starts_with(agent, "curl/") }',
        ),
    ),
    Code(
        "E035",
        "a value of the wrong type",
        page(
            "Nothing is converted silently. `num()`, `str()`, `int()`, `time()` and `ip()` "
            "convert; `seconds()`, `minutes()`, `hours()` and `days()` make a number of a "
            "duration, and `x * 1s` a duration of a number. Events hold strings, numbers, truth "
            "values, arrays and objects, but no times: only `time` and `step.time` are times.",
            "rule slow { on request where latency > 5s }",
            "rule slow { on request where latency * 1s > 5s }",
        ),
    ),
    Code(
        "E036",
        "a condition that is neither true nor false",
        page(
            "Where a condition stands, a number, text, time, … says nothing. Compare it with "
            "something.",
            "rule named { on login where lower(user) }",
            "rule named { on login where user is not null }",
        ),
    ),
    Code(
        "E037",
        "a comparison with null",
        page(
            "A comparison with a missing or null value is unknown, and so never true. `is null` "
            "asks for it (a missing field is null too), `is missing` only for a missing one.",
            "rule nameless { on login where user == null }",
            "rule nameless { on login where user is null }",
        ),
    ),
    Code(
        "E038",
        "a step used as a value",
        page(
            "A step stands for the events bound to it. Name a field (`a.ip`), the time (`a.time`) "
            "or a number (`count(a)`) of them.",
            'rule pair { by ip  sequence within 1m { a: A  b: B }  alert "{a}" }',
            'rule pair { by ip  sequence within 1m { a: A  b: B }  alert "{a.user}" }',
        ),
    ),
    Code(
        "E039",
        "an aggregate in the wrong place",
        page(
            "Aggregates range over the events of one step (`sum(a.bytes)`), over the events that a "
            "loop has taken (`sum(bytes)` in its own condition; `prev` only there), or over a "
            "window (in an `aggregate` block, where each gets a name).",
            "rule growing { on reading where temp > prev(temp) }",
            "rule growing { by sensor  sequence within 10m { t: reading{3} "
            "where temp > prev(temp) } }",
        ),
    ),
    Code(
        "E040",
        "a wrong index of a step",
        page(
            "`a[0].f` is the field of the first event of step a, `a[1].f` of the second. The index "
            "is a whole number that is known beforehand.",
            'rule many { by ip  sequence within 1m { a: A{3} }  alert "{a[n].user}" { n = 1 } }',
            'rule many { by ip  sequence within 1m { a: A{3} }  alert "{a[0].user}" }',
        ),
    ),
    Code(
        "E041",
        "not a regular expression",
        page(
            "Regular expressions are those of RE2: no look-around and no back-references, and in "
            "return every match takes linear time.",
            "rule odd { on login where user matches /ad(min/ }",
            "rule odd { on login where user matches /ad(min)?/ }",
        ),
    ),
    Code(
        "E042",
        "a list, table or def used as a value",
        page(
            "A list is asked with `x in name`, a table with `name[key].field`, a `def` is called.",
            'list trusted = ["a", "b"]\nrule odd { on login where host == trusted }',
            'list trusted = ["a", "b"]\nrule odd { on login where host in trusted }',
        ),
    ),
    Code(
        "E043",
        "a name declared twice",
        page(
            "Rules have names of their own, so have streams; lists, tables, params and defs share "
            "theirs, and a def cannot be called like a function of the language.",
            "param most = 3\nparam most = 5\nrule odd { on login where tries > most }",
            "param most = 3\nrule odd { on login where tries > most }",
        ),
    ),
    Code(
        "E044",
        "a name that means two things in a rule",
        page(
            "Steps, parts of the key, fields of the alert, and the lists and tables have different "
            "names, so that every name has one meaning.",
            "rule pair { by user  sequence within 1m { user: A  b: B } }",
            "rule pair { by user  sequence within 1m { a: A  b: B } }",
        ),
    ),
    Code(
        "E045",
        "a definition in a circle, or an expression that is too large",
        page(
            "A `def` is replaced by its body and a `param` by its value, so neither can be defined "
            "by itself; and what comes out must have a reasonable size: 10,000 parts, 150 levels, "
            "numbers of 1,200 digits.",
            "def odd(n) = n > 1 and odd(n - 2)\nrule odds { on draw where odd(ball) }",
            "def odd(n) = n % 2 == 1\nrule odds { on draw where odd(ball) }",
        ),
    ),
    Code(
        "E046",
        "something that must be a constant",
        page(
            "Params, items of lists and metadata are known before any event comes: literals, other "
            "params and arithmetic with them.",
            "list ports = [22, port]\nrule probe { on login where port in ports }",
            "param ssh = 22\nlist ports = [ssh, 2222]\nrule probe { on login where port in ports }",
        ),
    ),
    Code(
        "E047",
        "a setting that does not fit",
        page(
            "`--set name=value` (or `params=` of the library) gives a param another value. The "
            "param must exist, and the value must be of the type of its declaration.",
            "param limit = 5\nrule many { on login where tries > limit }",
            'param limit = "5"\nrule many { on login where tries == limit }',
        ),
    ),
    Code(
        "E048",
        "an include that cannot be read",
        page(
            "The file named by `include` is looked for beside the file in which it stands.",
            'include "missing.cep"\nrule probe { on login }',
            "rule probe { on login }",
        ),
    ),
    Code(
        "E049",
        "files that include each other",
        page(
            "A file cannot include itself, directly or through others. Put what two files need "
            "into a third one that both include; including a file twice does no harm.",
            'include "rules.cep"\nrule probe { on login }',
            "rule probe { on login }",
        ),
    ),
    Code(
        "E050",
        "streams in a circle",
        page(
            "A stream that is made from others cannot be one of those that they are made from.",
            "stream a from b { }\nstream b from a { }\nrule probe { on a }",
            "stream a from b { }\nstream b { }\nrule probe { on a }",
        ),
    ),
    Code(
        "E051",
        "a clause that does not fit a stream",
        page(
            "Each clause is given once. `type`, `time`, `timezone`, `id`, `delay` and `idle` say "
            "how input is read, so not for streams made from others; `event` is every input event "
            "as it is; a stream that rules emit to takes only `fields` and `dedup`.",
            "stream failed from login { where ok == false  delay 5s }\nrule probe { on failed }",
            "stream login { delay 5s }\nstream failed from login { where ok == false }\n"
            "rule probe { on failed }",
        ),
    ),
    Code(
        "E052",
        "a type or time zone that does not exist",
        page(
            "Fields of events have the types `string`, `number`, `int`, `bool`, `array`, `object` "
            "or `any`, with `?` when they may be missing. Time zones have names of the IANA "
            'database, such as `"Europe/Paris"`.',
            "stream login { fields { user: text } }\nrule probe { on login }",
            "stream login { fields { user: string } }\nrule probe { on login }",
        ),
    ),
    Code(
        "E054",
        "a stream that nothing can be emitted to",
        page(
            "`event` holds all events of the input. What a rule emits goes to a stream of its own.",
            "rule big { on payment where amount > 100  emit event { size = amount } }",
            "rule big { on payment where amount > 100  emit large { size = amount } }",
        ),
    ),
    Code(
        "E055",
        "rules in a circle",
        page(
            "A rule that reads what it emits, directly or through other rules, could go on for "
            "ever.",
            "rule more { on x  emit x { n = 1 } }",
            "rule more { on x  emit y { n = 1 } }",
        ),
    ),
    Code(
        "E056",
        "a rule without a pattern, or with two",
        page(
            "A rule says once what it looks for: `on`, `sequence`, `all`, `N of` or `aggregate`.",
            'rule probe { severity high  alert "?" }',
            'rule probe { severity high  on login  alert "!" }',
        ),
    ),
    Code(
        "E057",
        "a clause given twice",
        page(
            "Apart from `unless`, `emit`, `tags` and `meta` a rule has each clause once.",
            "rule probe { on login  having count(login) > 0  having user is not null }",
            "rule probe { on login  having count(login) > 0 and user is not null }",
        ),
    ),
    Code(
        "E058",
        "a clause that does not fit the pattern",
        page(
            "`skip`, `start`, `unless`, `limit`, `keep` and `on timeout` are about runs that wait "
            "for further events; `report` says when a loop at the end or a window reports; "
            "`keys from` needs a sequence.",
            "rule probe { on login  start first }",
            "rule probe { sequence within 1m { a: login  b: logout }  start first }",
        ),
    ),
    Code(
        "E059",
        "a part of a key without a name of its own",
        page(
            "A part of a key is called like its field. Anything but a field needs a name by `as`, "
            "and two parts need two names.",
            "rule pair { by lower(user)  sequence within 1m { a: A  b: B } }",
            "rule pair { by lower(user) as who  sequence within 1m { a: A  b: B } }",
        ),
    ),
    Code(
        "E060",
        "keys with different numbers of parts",
        page(
            "A `by` of a step, `no` or `unless` takes the place of the rule's, part by part.",
            "rule pair { by user, host  sequence within 1m { a: A  b: B by account } }",
            "rule pair { by user, host  sequence within 1m { a: A  b: B by account, host } }",
        ),
    ),
    Code(
        "E061",
        "a step without a key",
        page(
            "When the rule has no `by`, either every step, `no` and `unless` has one or none has.",
            "rule pair { sequence within 1m { a: A by user  b: B } }",
            "rule pair { sequence within 1m { a: A by user  b: B by account } }",
        ),
    ),
    Code(
        "E062",
        "a first step that is not one",
        page(
            "The first step begins the match: it takes at least one event, and no time can be "
            "counted from an event before it.",
            "rule pair { by ip  sequence { a: A within 5m  b: B within 5m } }",
            "rule pair { by ip  sequence { a: A  b: B within 5m } }",
        ),
    ),
    Code(
        "E063",
        "a `no` that cannot be decided",
        page(
            "A `no` at the start must say how far it looks back, one at the end how long to wait "
            "(its own `within`, or that of the sequence). A last step that may be left out leaves "
            "the `no` before it at the end. In `one of` there is none, in `repeat` only between "
            "two steps.",
            "rule lost { by id  sequence { p: paid  no shipped } }",
            "rule lost { by id  sequence { p: paid  no shipped within 2h } }",
        ),
    ),
    Code(
        "E064",
        "a pattern or group with the wrong parts",
        page(
            "A pattern has at least one step. The parts of `all` and `N of` are single steps that "
            "take one event each, and N is not more than there are.",
            "rule any { by host  3 of within 1m { a: A  b: B } }",
            "rule any { by host  2 of within 1m { a: A  b: B } }",
        ),
    ),
    Code(
        "E066",
        "an `until` without a loop",
        page(
            "`until` ends a loop that may go on: `+`, `*`, `{n,}` or `{n,m}`.",
            "rule pair { by ip  sequence within 1h { a: A{2} until B } }",
            "rule pair { by ip  sequence within 1h { a: A{2,} until B } }",
        ),
    ),
    Code(
        "E067",
        "a loop at the end that may always go on",
        page(
            "When a pattern ends in `+`, `*`, `?`, `{n,}` or `{n,m}`, every further event could "
            "still belong to the match. `report at minimum` reports as soon as there are enough; "
            "`report on close` when nothing more can come (at the `within`, at `until`, at the "
            "maximum, at a break of strict order); `until` names the event that ends it; a fixed "
            "`{n}` needs none of them.",
            "rule many { by ip  sequence within 1m { a: A  b: B+ } }",
            "rule many { by ip  sequence within 1m { a: A  b: B+ }  report on close }",
        ),
    ),
    Code(
        "E068",
        "runs that could wait for ever",
        page(
            "Every run must have an end, or memory grows without bound: a `within` of the "
            "sequence, one on every step after the first, `until` for a loop, or as the explicit "
            "choice `keep D`, after which a run is given up. Strict order is no bound, since a key "
            "may simply fall silent.",
            "rule pair { by ip  sequence { a: A  b: B } }",
            "rule pair { by ip  sequence within 1h { a: A  b: B } }",
        ),
    ),
    Code(
        "E069",
        "a step that cannot be skipped to",
        page(
            "`skip to first x` and `skip to last x` go to an event of step x: the step exists, and "
            "every match has an event of it.",
            "rule pair { sequence within 1h { a: A  b: B*  c: C }  skip to first b }",
            "rule pair { sequence within 1h { a: A  b: B+  c: C }  skip to first b }",
        ),
    ),
    Code(
        "E071",
        "a test of a rule that is not there",
        page(
            "A test names the rules that are active in it; an `expect` names one of them.",
            'rule probe { on login }\ntest prob "fires" { login { }  expect prob }',
            'rule probe { on login }\ntest probe "fires" { login { }  expect probe }',
        ),
    ),
    Code(
        "E072",
        "a test whose clock would go back",
        page(
            "`at` counts from the start of the test, `after` from its clock. Without them an event "
            "comes one second after the clock.",
            'rule probe { on login }\ntest probe "t" { at 10s login { }  at 5s logout { }  '
            "expect probe }",
            'rule probe { on login }\ntest probe "t" { at 10s login { }  after 5s logout { }  '
            "expect probe }",
        ),
    ),
    Code(
        "E073",
        "an expectation that no match can have",
        page(
            "An `expect` may give parts of the key, fields of the alert, `message`, `step: n` (the "
            "number of its events) and `step.field`.",
            'rule probe { on l: login }\ntest probe "t" { login { }  expect probe { who: "bob" } }',
            'rule probe { on l: login }\ntest probe "t" { login { user: "bob" }  '
            'expect probe { l.user: "bob" } }',
        ),
    ),
    Code(
        "E074",
        "a value of a test that is no literal",
        page(
            "Events and expectations of tests are given as literals, arrays and objects.",
            'rule probe { on login }\ntest probe "t" { login { user: bob }  expect probe }',
            'rule probe { on login }\ntest probe "t" { login { user: "bob" }  expect probe }',
        ),
    ),
    Code(
        "E075",
        "expected keys that cannot be had",
        page(
            "`keys from` names a list or a table with the keys that must come; the rule's key has "
            "one part then.",
            "rule silent { by host  keys from hosts  sequence { h: beat  no beat within 5m } }",
            'list hosts = ["a", "b"]\n'
            "rule silent { by host  keys from hosts  sequence { h: beat  no beat within 5m } }",
        ),
    ),
    Code(
        "E077",
        "durations that contradict each other",
        page(
            "Windows have a length, `hopping` ones start at least as often as they are long, and "
            "not so often that an event is in more than 10,000 of them; an `after` is not longer "
            "than the `within` beside it.",
            "rule rate { aggregate log over hopping 1m every 5m { n = count() } }",
            "rule rate { aggregate log over hopping 5m every 1m { n = count() } }",
        ),
    ),
    Code(
        "E078",
        "a network that is none",
        page(
            "The networks of `cidr` are addresses with a number of bits, or single addresses. With "
            "one that is none every call would fail, and a condition on it never be true. Those of "
            "a list in a file are looked at when it is read (E910).",
            'rule inside { on login where cidr(ip, "10.0.0.0/33") }',
            'rule inside { on login where cidr(ip, "10.0.0.0/8") }',
        ),
    ),
    Code(
        "E079",
        "a group that an expression does not have",
        page(
            "`capture` takes a group of a regular expression by its number, counted by opening "
            "parentheses, or by its name. With one that is not there every call would fail.",
            r"rule ip { on l: log where capture(message, /from (\S+)/, 2) == user }",
            r"rule ip { on l: log where capture(message, /from (\S+)/, 1) == user }",
        ),
    ),
    Code(
        "W001",
        "a field used as two types",
        page(
            "The type of a field is learned from its use. When one condition treats it as a string "
            "and another as a number, one of them will not hold. Nothing is converted silently.",
            'rule a { on login where port == 22 }\nrule b { on login where port == "22" }',
            'rule a { on login where port == 22 }\nrule b { on login where str(port) like "2*" }',
        ),
    ),
    Code(
        "W002",
        "values of different types compared",
        page(
            "Values of different types are never equal and have no order. Convert one of them.",
            "stream login { fields { port: string } }\nrule ssh { on login where port == 22 }",
            "stream login { fields { port: string } }\nrule ssh { on login where num(port) == 22 }",
        ),
    ),
    Code(
        "W003",
        "a condition that is never true",
        page(
            "Two parts of an `and` exclude each other.",
            'rule odd { on login where user == "root" and user == "admin" }',
            'rule odd { on login where user in ["root", "admin"] }',
        ),
    ),
    Code(
        "W004",
        "a step whose events a loop takes",
        page(
            "A greedy loop takes whatever fits. An optional step after it that wants the same "
            "events never gets one.",
            "rule odd { by ip  sequence within 1m { a: A+  b: A?  c: C } }",
            "rule odd { by ip  sequence within 1m { a: A+ where ok == false  b: A?  c: C } }",
        ),
    ),
    Code(
        "W005",
        "a negation that missing values do not fulfil",
        page(
            "Neither `x == 1` nor `x != 1` holds for an event without x. The schema says that this "
            "field may be missing; say what is meant for such events.",
            "stream login { fields { user: string  mfa: string? } }\n"
            'rule odd { on login where mfa != "ok" }',
            "stream login { fields { user: string  mfa: string? } }\n"
            'rule odd { on login where mfa is null or mfa != "ok" }',
        ),
    ),
    Code(
        "W006",
        "keys of different types",
        page(
            'The key `1` and the key `"1"` are different. If one step has a number and another a '
            "text, they never meet.",
            "rule pair { sequence within 1m { a: A by int(id) as id  b: B by lower(id) as id } }",
            "rule pair { sequence within 1m { a: A by str(id) as id  b: B by lower(id) as id } }",
        ),
    ),
    Code(
        "W007",
        "a pattern shorter than the delay",
        page(
            "With `delay D` events wait up to D for stragglers, so matches come D late. A pattern "
            "that must be complete in less time than that is often a slip in one of the two.",
            "stream a { delay 1h }\nrule pair { sequence within 1m { x: a  y: b } }",
            "stream a { delay 10s }\nrule pair { sequence within 1m { x: a  y: b } }",
        ),
    ),
    Code(
        "W008",
        "a regular expression that is a plain text",
        page(
            "`contains` says the same and is faster.",
            "rule odd { on login where agent matches /curl/ }",
            'rule odd { on login where agent contains "curl" }',
        ),
    ),
    Code(
        "W009",
        "a declaration that is not used",
        page(
            "Nothing names this list, table, param, def or stream. (Files that are included may "
            "hold more than is used.)",
            "param limit = 3\nrule many { on login where tries > 3 }",
            "param limit = 3\nrule many { on login where tries > limit }",
        ),
    ),
    Code(
        "W010",
        "a rule without a test",
        page(
            "A `test` block shows what a rule finds and what it must not find; `cep test` runs it.",
            "rule probe { on login where port == 22 }",
            "rule probe { on login where port == 22 }\n"
            'test probe "fires on port 22" { login { port: 22 }  expect probe }',
        ),
    ),
    Code(
        "W011",
        "two rules that find the same",
        page(
            "This rule finds nothing that the other one does not find too.",
            'rule a { on login where user == "root" }\n'
            'rule b { on login where user == "root" and port == 22 }',
            'rule a { on login where user == "root" }\n'
            'rule b { on login where user == "admin" and port == 22 }',
        ),
    ),
    Code(
        "W012",
        "a `start` that may lose matches",
        page(
            "With `start first` and `start latest` a key has one run. When a later condition looks "
            "at the first step, another first event might have fitted.",
            "rule more { by user  start first  sequence within 1h { a: pay  b: pay where amount > "
            "a.amount } }",
            "rule more { by user  sequence within 1h { a: pay  b: pay where amount > a.amount } }",
        ),
    ),
    Code(
        "W013",
        "a stream whose name looks like another's",
        page(
            "A stream that is not declared means the events of that type. This one is called "
            "almost like a declared one.",
            "stream logins { delay 1s }\nrule a { on logins }\nrule b { on login }",
            "stream logins { delay 1s }\nrule a { on logins }\nrule b { on logins where port > 1 }",
        ),
    ),
    Code(
        "W014",
        "a test event that no rule reads",
        page(
            "The test gives an event of a stream that no rule of these files names.",
            'rule a { on login }\ntest a "t" { logon { }  expect nothing }',
            'rule a { on login }\ntest a "t" { login { }  expect a }',
        ),
    ),
    Code(
        "W015",
        "a control character in a text that is compared",
        page(
            "In a text `\\n`, `\\r` and `\\t` are a new line, a carriage return and a tab. In a "
            "path of Windows that is hardly meant, and the condition is never true. A backslash is "
            "written as two.",
            r'rule look { on p: process where image ilike "*\nslookup.exe" }',
            r'rule look { on p: process where image ilike "*\\nslookup.exe" }',
        ),
    ),
    Code(
        "W016",
        "a `%` that is no wildcard",
        page(
            "`%` is a wildcard in SQL. Here `like` covers the whole text, `*` stands for any "
            "characters and `?` for one, and `%` for itself.",
            'rule fail { on l: log where message like "%Failed%" }',
            'rule fail { on l: log where message like "*Failed*" }',
        ),
    ),
    Code(
        "W017",
        "an absence of anything",
        page(
            "A rule without `by` has one key for all events. Its `no` at the end is then about any "
            "event of that stream, whoever it is about: the shipment of another order ends the "
            "wait for this one.",
            "rule unshipped { sequence { p: payment  no shipment within 2h } }",
            "rule unshipped { by order_id  sequence { p: payment  no shipment within 2h } }",
        ),
    ),
)

_LOADING: tuple[Code, ...] = (
    Code(
        "E900",
        "a pattern that is too large",
        page(
            "A pattern becomes an automaton with a place for each step and each counted "
            "repetition in a group. This one would have more than 4096 of them, or more than "
            "50,000 ways from one to the next. The parts of an `all` may come in any order and so "
            "need the most: nine of them fit, ten do not. Streams have limits too: 1,000 ways to "
            "belong to one (`from` of unions of unions), and 10,000 values that a selected field "
            "is made of.",
            "rule big { by user  sequence within 1h { repeat{5000} { a: login  b: logout } } }",
            "rule big { by user  sequence within 1h { repeat{5} { a: login  b: logout } } }",
        ),
    ),
    Code(
        "E910",
        "a file of a list or table that cannot be used",
        page(
            "The file named by `list` or `table` is looked for beside the rule file. A list is "
            "text, one item a line; `#` at the start of a line or after white space begins a "
            "comment. Where rules ask `cidr` or `matches` of a list, each item is a network or a "
            "regular expression. A table is CSV, JSON lines, Parquet or SQLite, and every row of "
            "it has the key. One line that cannot be read makes the whole file unusable: nothing "
            "is looked up in half a table.",
            'list trusted from "missing.txt"\nrule probe { on login where ip in trusted }',
            'list trusted = ["10.0.0.8"]\nrule probe { on login where ip in trusted }',
        ),
    ),
)

CODES: dict[str, Code] = {code.code: code for code in (*_SYNTAX, *_MEANING, *_LOADING)}
"""All codes by their name (``CODES["E004"].title``)."""
