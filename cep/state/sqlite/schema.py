"""The tables of a state file, and the views that people look at.

Tables begin with `_`: their form may change, and the steps of `MIGRATIONS` bring the file of any
older version to the present one. The views are documented (docs/reference/state-file.md) and are
made anew with each version: times in them are ISO 8601 text in UTC.

All states are in one table, whatever kind they are of, so that an epoch is a few large statements
and a start is one pass. Rows are appended and found by an index over owner and key: keys that came
together lie together, and will expire together. Deadlines have an index of their own.
"""

from __future__ import annotations

LATEST_US = 253_402_300_799_999_999
"""The last moment that text can say: the end of the year 9999."""

MIGRATIONS: dict[str, tuple[str, ...]] = {
    "0001_first": (
        """create table _owners (
            number integer primary key,
            kind text not null,
            name text not null,
            unique (kind, name)
        )""",
        """create table _states (
            number integer primary key,
            owner integer not null references _owners(number),
            key text not null,
            state text not null,
            step text,
            first_us integer,
            due_us integer,
            runs integer not null,
            unique (owner, key)
        )""",
        "create index _states_due on _states(due_us) where due_us is not null",
        """create table _rules (
            id text primary key,
            name text not null,
            version text not null,
            structure text not null,
            layout text not null,
            source text not null,
            status text not null
        )""",
        """create table _epochs (
            number integer primary key,
            committed_us integer not null,
            clock_us integer,
            host_position text not null,
            duration_us integer not null,
            rows integer not null,
            bytes integer not null
        )""",
        """create table _sources (
            name text primary key,
            fingerprint text not null,
            offset integer not null,
            line_number integer not null,
            frontier_us integer,
            format text
        )""",
        "create table _counters (name text primary key, value text not null)",
        "create table _sinks (name text primary key, length integer not null)",
        """create table _outbox (
            number integer primary key,
            id text not null unique,
            kind text not null,
            record text not null,
            rule text,
            time_us integer,
            pending integer not null
        )""",
        "create index _outbox_kept on _outbox(number) where not pending",
    ),
    "0002_segments": (
        """create table _segments (
            row integer not null references _states(number),
            number integer not null,
            content text not null,
            unique (row, number)
        )""",
    ),
    "0003_ends": ("alter table _states add column ends_us integer",),
}
"""The steps from an empty file to the present form, by name: each is one transaction."""


def _iso(micros: str) -> str:
    """SQL: the text of a time in microseconds, as in match records."""
    time = f"min({micros}, {LATEST_US})"
    fraction = f"(({time} % 1000000 + 1000000) % 1000000)"
    return (
        f"strftime('%Y-%m-%dT%H:%M:%S', ({time} - {fraction}) / 1000000, 'unixepoch')"
        f" || case when {fraction} = 0 then ''"
        f" when {fraction} % 1000 = 0 then printf('.%03d', {fraction} / 1000)"
        f" else printf('.%06d', {fraction}) end || 'Z'"
    )


def _states_of(kind: str) -> str:
    """SQL: the states of one kind with their rule versions."""
    return (
        f"from _states as s join _owners as o on o.number = s.owner and o.kind = '{kind}'"
        f" left join _rules as r on r.id = o.name"
    )


_EVENTS = """(
        select json_group_array(json(case json_type(event.value, '$[0]')
            when 'object' then json_extract(event.value, '$[0]')
            when 'array' then json_quote(json_extract(event.value, '$[0][1]'))
            else json_quote(json_extract(event.value, '$[0]')) end))
        from (
            select event.value from _segments as g, json_each(g.content, '$.events') as event
                where g.row = s.number
            union all select value from json_each(s.state, '$.events')
        ) as event)"""
"""SQL: the events that runs have taken so far, as they came."""

_HELD = """(
        select json_group_array(json(value)) from (
            select value, row_number() over () as place from (
                select item.value from (
                    select content from _segments where row = s.number order by number
                ) as g, json_each(g.content, '$.i') as item
                union all select value from json_each(s.state, '$.i')))
        where place > coalesce(json_extract(s.state, '$.x'), 0))"""
"""SQL: what a window holds one after the other."""

_WINDOW = f"""case when json_extract(s.state, '$.f') = 1 then json_extract(s.state, '$.d')
        else json_set(json_extract(s.state, '$.d'), '$.holds', json({_HELD})) end"""
"""SQL: what a window holds."""

_SIZE = """(length(s.key) + length(s.state) + coalesce(
        (select sum(length(content)) from _segments where row = s.number), 0))"""
"""SQL: the characters of a state with its key."""

WHOLE = """case when exists (select 1 from _segments where row = _states.number)
        then substr(state, 1, length(state) - 1) || ',"g":[' || (
            select group_concat(content, ',') from (
                select content from _segments where row = _states.number order by number
            )) || ']}' else state end"""
"""SQL: a state as it is read, with its further pieces."""

_FIELDS = """(
        select json_group_object(
            (select group_concat(value, '.') from json_each(field.value, '$[0]')),
            json_extract(field.value, '$[1]'))
        from json_each(s.state, '$.row') as field)"""
"""SQL: the row of a table as an object."""


def _ended(path: str) -> str:
    """SQL: a time that stands in a state."""
    return _iso(f"json_extract(s.state, '{path}')")


def _leftover(kind: str, columns: str) -> str:
    """SQL: records of a kind that entered no match."""
    return f"""
    select id, json_extract(record, '$.source') as source,
        json_extract(record, '$.position') as position, {columns},
        coalesce(json_extract(record, '$.raw'), json_extract(record, '$.raw_base64')) as raw,
        not pending as delivered
    from _outbox where kind = '{kind}'"""


_ENDS = "coalesce(s.ends_us, s.due_us)"
"""SQL: when time decides over the runs of a state; older files know the wake-up only."""

_OVER = """coalesce(s.ends_us < (select clock_us from _epochs order by number desc limit 1), 0)"""
"""SQL: whether the clock has passed the end of all runs of a state, which is cleaned up later."""

VIEWS = {
    "runs": f"""
    select r.name as rule, r.version, s.key, s.step, s.runs, {_iso("s.first_us")} as first,
        {_iso(_ENDS)} as deadline, {_EVENTS} as events
    {_states_of("runs")} where s.runs > 0 and not {_OVER}""",
    "timers": f"""
    select o.kind, coalesce(r.name, o.name) as name, r.version, s.key, {_iso("s.due_us")} as due
    from _states as s join _owners as o on o.number = s.owner
    left join _rules as r on r.id = o.name
    where s.due_us is not null""",
    "suppressed": f"""
    select r.name as rule, r.version, s.key, s.runs as hidden, {_ended("$.first")} as first,
        {_ended("$.last")} as last, {_ended("$.end")} as until
    {_states_of("dedup")} where s.runs > 0""",
    "windows": f"""
    select r.name as rule, r.version, s.key, s.runs as events, {_iso("s.first_us")} as first,
        {_iso(_ENDS)} as due, {_WINDOW} as content
    {_states_of("windows")}""",
    "tables": f"""
    select o.name as "table", s.key, {_iso("s.first_us")} as time, {_FIELDS} as "row",
        {_iso("s.due_us")} as expires
    {_states_of("tables")}""",
    "repeats": f"""
    select o.name as stream, s.key, {_iso("s.due_us")} as until
    {_states_of("repeats")}""",
    "keys": f"""
    select o.kind, coalesce(r.name, o.name) as name, r.version, s.key, s.step, s.runs,
        {_iso("s.first_us")} as first, {_iso(_ENDS)} as due,
        {_SIZE} as size
    from _states as s join _owners as o on o.number = s.owner
    left join _rules as r on r.id = o.name where not {_OVER}""",
    "sizes": f"""
    select o.kind, coalesce(r.name, o.name) as name, r.version, count(*) as keys,
        sum(iif({_OVER}, 0, s.runs)) as runs, sum({_SIZE}) as size
    from _states as s join _owners as o on o.number = s.owner
    left join _rules as r on r.id = o.name group by o.number""",
    "outbox": f"""
    select id, rule, {_iso("time_us")} as time, record
    from _outbox where kind = 'match' and pending""",
    "late": _leftover(
        "late",
        "json_extract(record, '$.time') as time, json_extract(record, '$.late_by_s') as late_by_s",
    ),
    "rejects": _leftover(
        "reject",
        "json_extract(record, '$.line') as line, json_extract(record, '$.reason') as reason",
    ),
    "sources": f"""
    select name, offset, line_number, {_iso("frontier_us")} as frontier, format, fingerprint
    from _sources""",
    "checkpoints": f"""
    select number, {_iso("committed_us")} as time, {_iso("clock_us")} as clock,
        duration_us / 1000.0 as duration_ms, rows, bytes
    from _epochs""",
    "rules": "select name as rule, version, status, structure, layout, source from _rules",
    "counters": "select name, value from _counters",
    "outputs": "select name, length from _sinks",
}
"""Name and query of each documented view."""
