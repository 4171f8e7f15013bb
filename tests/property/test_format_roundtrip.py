"""Formatting keeps the meaning, the comments, and itself; and no text makes the parser raise."""

from itertools import pairwise
from pathlib import Path

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from dsl import ast
from dsl.diagnostics import draw
from dsl.formatter import format_file
from dsl.parser import parse
from dsl.source import Source
from dsl.text import to_text

SAMPLES = "".join(
    path.read_text(encoding="utf-8")
    for path in sorted((Path(__file__).parents[1] / "unit" / "data").glob("*.cep"))
)
relaxed = settings(max_examples=30, deadline=None, suppress_health_check=list(HealthCheck))

# ------------------------------------------------------------------------------ trees

plain = st.sampled_from(["a", "user", "x1", "event_id", "B"]).map(ast.Ident)
wordy = st.sampled_from(["by", "where", "count", "time", "on", "no", "first", "as", "in", "alert"])
odd = st.sampled_from(["user-agent", "@timestamp", "é", "where", "a b", "5x"])
quoted = odd.map(lambda name: ast.Ident(name, True))
idents = plain | wordy.map(ast.Ident) | quoted
names = plain | quoted
texts = st.text(st.characters(codec="utf-8"), max_size=8).map(lambda text: text.replace("  ", " "))
durations = st.integers(1, 10**13).map(ast.Duration)
paths = st.lists(names, min_size=1, max_size=3).map(lambda parts: ast.Path(tuple(parts)))
numbers = st.integers(0, 10**25) | st.floats(0, allow_nan=False, allow_infinity=False)
literals = (st.none() | st.booleans() | numbers | texts).map(ast.Literal)
patterns = st.sampled_from(["a", "a/b", r"\d+/[{\"]", r"\\/x", r"\."])
regexes = st.builds(ast.Regex, patterns, st.sampled_from(["", "i"]))
signs = st.sampled_from(["==", "!=", "<", "<=", ">", ">="])
word_signs = st.sampled_from(["in", "like", "ilike", "matches", "contains"])
comparisons = signs | word_signs | word_signs.map(lambda sign: f"not {sign}")


def tuples(inner, low=0, high=3):
    return st.lists(inner, min_size=low, max_size=high).map(tuple)


def larger(inner):
    return st.one_of(
        st.builds(ast.Or, tuples(inner, 2)),
        st.builds(ast.And, tuples(inner, 2)),
        st.builds(ast.Not, inner),
        st.builds(ast.Compare, comparisons, inner, inner),
        st.builds(ast.Is, inner, st.sampled_from(["null", "missing"]), st.booleans()),
        st.builds(ast.Arithmetic, st.sampled_from(["+", "-", "*", "/", "%", "??"]), inner, inner),
        st.builds(ast.Negative, inner),
        st.builds(ast.Attribute, inner, idents),
        st.builds(ast.Index, inner, inner),
        st.builds(ast.Call, idents, tuples(st.builds(ast.Argument, inner))),
        st.builds(
            ast.Call,
            plain,
            st.builds(ast.Argument, idents.map(ast.Name), st.just(True)).map(
                lambda argument: (argument,)
            ),
        ),
        st.builds(ast.Array, tuples(inner)),
    )


leaves = literals | idents.map(ast.Name) | durations.map(ast.DurationLiteral) | regexes
expressions = st.recursive(leaves, larger, max_leaves=8)
assigns = st.builds(ast.Assign, idents, expressions)
key_parts = st.builds(ast.KeyPart, expressions, st.none() | names)
bys = st.builds(ast.By, tuples(key_parts, 1))


@st.composite
def quantifiers(draw):
    low = draw(st.integers(0, 4))
    high = draw(st.none() | st.integers(max(low, 1), 6))
    return ast.Quantifier(low, high, draw(st.booleans()))


some = st.none()
modes = st.none() | st.sampled_from(["next", "any"])
untils = st.builds(ast.Until, names, some | expressions)
steps = st.builds(
    ast.Step,
    names,
    label=some | idents,
    mode=modes,
    quantifier=some | quantifiers(),
    where=some | expressions,
    within=some | durations,
    after=some | durations,
    by=some | bys,
    until=some | untils,
)
absents = st.builds(ast.Absent, names, some | expressions, some | durations, some | bys)


def groups(inner):
    return st.one_of(
        st.builds(ast.OneOf, tuples(tuples(inner, 1, 1), 1), st.just(False), modes),
        st.builds(ast.OneOf, tuples(tuples(inner, 1), 1), st.just(True), modes),
        st.builds(ast.AllOf, tuples(inner, 1), some | durations, modes),
        st.builds(ast.Repeat, quantifiers(), tuples(inner, 1), modes),
    )


nodes = tuples(st.recursive(steps | absents, groups, max_leaves=4), 1)
windows = st.one_of(
    st.builds(ast.Window, st.just("sliding"), durations),
    st.builds(ast.Window, st.just("sliding_count"), count=st.integers(1, 999)),
    st.builds(ast.Window, st.just("tumbling"), durations),
    st.builds(ast.Window, st.just("hopping"), durations, step=durations),
    st.builds(ast.Window, st.just("session"), durations, maximum=some | durations),
)
aggregate_fields = st.builds(ast.AggregateField, idents, expressions, some | expressions)


@st.composite
def alerts(draw):
    """The text and its parts go together: no empty texts, no two in a row."""
    parts = []
    message = ""
    for is_text in draw(st.lists(st.booleans(), max_size=4)):
        if is_text and not (parts and isinstance(parts[-1], str)):
            text = draw(texts.filter(bool))
            parts.append(text)
            message += text.replace("{", "{{").replace("}", "}}")
        elif not is_text:
            parts.append(draw(expressions))
            message += "{" + to_text(parts[-1]) + "}"
    fields = draw(tuples(assigns))
    return ast.Alert(message, tuple(parts), fields)


emits = st.builds(ast.Emit, names, tuples(assigns))
dedups = st.builds(ast.Dedup, tuples(expressions), durations)
clauses = st.one_of(
    bys,
    st.builds(ast.On, names, some | idents, some | expressions),
    st.builds(ast.Sequence, nodes, some | st.sampled_from(["strict", "any"]), some | durations),
    st.builds(ast.All, nodes, some | durations, some | st.integers(1, 5)),
    st.builds(ast.Aggregate, names, some | expressions, windows, tuples(aggregate_fields, 1)),
    st.builds(ast.Unless, names, some | expressions, bys),
    st.builds(ast.Having, expressions),
    st.builds(ast.Skip, st.sampled_from(["past_last", "to_next", "nothing"])),
    st.builds(ast.Skip, st.sampled_from(["to_first", "to_last"]), names),
    st.builds(ast.Start, st.sampled_from(["each", "first", "latest"])),
    st.builds(ast.KeysFrom, names),
    alerts(),
    emits,
    dedups,
    st.builds(ast.OnTimeout, tuples(alerts() | emits)),
    st.builds(ast.Limit, st.integers(1, 10**6)),
    st.builds(ast.Keep, durations),
    st.builds(ast.Report, st.sampled_from(["at_minimum", "on_close", "every_event", "on_update"])),
    st.builds(ast.Severity, st.sampled_from(["info", "low", "medium", "high", "critical"])),
    st.builds(ast.Tags, tuples(tuples(plain, 1).map(ast.Path), 1)),
    st.builds(ast.Description, texts),
    st.builds(ast.Meta, idents, literals),
    st.builds(ast.WindowTimezone, texts),
)


def writable(found):
    """A `by` that follows an `unless` is read as a part of it."""
    return not any(isinstance(a, ast.Unless) and isinstance(b, ast.By) for a, b in pairwise(found))


rule_clauses = tuples(clauses, 0, 4).filter(writable)
stream_clauses = st.one_of(
    st.builds(ast.StreamWhere, expressions),
    st.builds(ast.StreamType, paths),
    st.builds(ast.StreamTime, paths, some | st.sampled_from(["seconds", "iso"])),
    st.builds(ast.StreamTimezone, texts),
    st.builds(ast.StreamId, paths),
    st.builds(ast.StreamDelay, durations),
    st.builds(ast.StreamIdle, durations),
    st.builds(ast.StreamFields, tuples(st.builds(ast.SchemaField, paths, plain, st.booleans()), 1)),
    st.builds(ast.StreamSelect, tuples(assigns)),
    dedups,
)


@st.composite
def streams(draw):
    first = draw(st.booleans())
    inside = draw(tuples(stream_clauses))
    if first:
        inside = (ast.StreamWhere(draw(expressions)), *inside)
    return ast.Stream(draw(names), draw(tuples(names)), inside, first)


pairs = st.deferred(
    lambda: (
        st.builds(ast.Pair, paths, expressions | objects)
        | st.builds(
            ast.Pair, texts.map(lambda t: ast.Path((ast.Ident(t),))), literals, st.just(True)
        )
    )
)
objects = tuples(pairs, 0, 2).map(ast.Object)


@st.composite
def event_steps(draw):
    when = draw(some | st.sampled_from(["at", "after"]))
    offset = None if when is None else draw(durations)
    every = draw(some | durations)
    times = 1 if every is None else draw(st.integers(1, 99))
    return ast.TestEvent(draw(plain), draw(objects), when, offset, times, every)


expects = st.builds(
    ast.TestExpect,
    st.sampled_from(["match", "timeout", "undecided"]),
    names,
    some | objects,
    some | durations,
) | st.builds(ast.TestExpect, st.just("nothing"), at=some | durations)
test_steps = event_steps() | expects | st.builds(ast.TestAdvance, durations)
statements = st.one_of(
    st.builds(ast.Rule, names, some | texts, rule_clauses),
    st.builds(ast.Rule, names, some | texts, rule_clauses),
    streams(),
    st.builds(ast.List, names, tuples(expressions).map(ast.Array), st.none()),
    st.builds(ast.List, names, st.none(), texts),
    st.builds(ast.Table, names, texts, st.none(), paths),
    st.builds(ast.Table, names, st.none(), names, paths, some | durations),
    st.builds(ast.Param, idents, expressions),
    st.builds(ast.Def, names, tuples(names), expressions),
    st.builds(ast.Include, texts),
    st.builds(ast.Test, tuples(names, 1), texts, tuples(test_steps)),
)
files = tuples(statements, 0, 3).map(ast.File)

# ------------------------------------------------------------------------------ properties


def read(text: str) -> tuple[Source, ast.File]:
    source = Source("test.cep", text)
    file, found = parse(source)
    assert not found, "\n".join(map(draw, found)) + "\n" + text
    return source, file


def check(text: str, tree: ast.File) -> str:
    """The text means the tree, and formatting it keeps everything there is."""
    source, file = read(text)
    assert file == tree
    result = format_file(file, source)
    again_source, again = read(result)
    assert again == tree
    assert format_file(again, again_source) == result
    assert [c.text for c in again.comments] == [c.text for c in file.comments]
    return result


@relaxed
@given(files)
def test_generated_trees_come_back(tree):
    check(format_file(tree, Source("", "")), tree)


@relaxed
@given(files, st.data())
def test_other_layouts_and_comments(tree, data):
    """Blanks between clauses become line breaks and comments in any way."""
    pieces = "\n".join(map(to_text, tree.statements)).split("  ")
    layouts = ["  ", "\n", "\n\n\n", " # note\n", "\n# own line\n  ", "\n\n# apart\n\n"]
    text = pieces[0]
    for piece in pieces[1:]:
        text += data.draw(st.sampled_from(layouts)) + piece
    check(text, tree)


@relaxed
@given(st.text(st.characters(codec="utf-8"), max_size=60))
def test_any_text(text):
    file, found = parse(Source("test.cep", text))
    assert file.statements == () or text.strip()
    for diagnostic in found:
        assert draw(diagnostic)


@relaxed
@given(st.lists(st.sampled_from([*SAMPLES.split(), *"{}()'\"/`", "5x"])))
def test_any_words(words):
    _, found = parse(Source("test.cep", " ".join(words)))
    for diagnostic in found:
        assert draw(diagnostic)


@relaxed
@given(st.integers(0, len(SAMPLES)), st.integers(0, 12), st.text(max_size=3))
def test_damaged_rules(at, length, instead):
    """A few characters changed: never an exception, and what cannot be read is reported."""
    text = SAMPLES[:at] + instead + SAMPLES[at + length :]
    source = Source("test.cep", text)
    file, found = parse(source)
    for diagnostic in found:
        assert draw(diagnostic)
    if not found:
        check(text, file)
