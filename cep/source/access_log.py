"""Access logs of web servers in the common and the combined form, as Apache and nginx write them.

`192.0.2.1 - ann [10/Oct/2000:13:55:36 -0700] "GET /a?b=c HTTP/1.0" 200 2326 "referer" "agent"`

Lines of the form that Apache calls `vhost_combined` begin with the host that was asked and its port
(`example.com:443 192.0.2.1 - …`): `vhost` and `port`. Fields of all: `client`, `ident`, `user`,
`timestamp` (ISO text), `request`, `method`, `path`, `query`, `protocol`, `status`, `bytes`,
`referer`, `user_agent`, and `extra` for what a server adds at the end. `-` is missing. A request
that is no HTTP (scanners send such) has only `request`.
"""

from __future__ import annotations

import re

from cep.source.base import BadRecord, Record
from cep.source.stamps import web
from cep.source.values import infer

_QUOTED = r'"((?:[^"\\]|\\.)*)"'
_LINE = re.compile(
    rf"(\S+) (\S+) (.{{1,300}}?) \[([^\]]{{1,60}})\] {_QUOTED} (\S+) (\S+)"
    rf"(?: {_QUOTED} {_QUOTED})?(?: (.*))?",
)
_USUAL = re.compile(
    r"(\S+) (\S+) (\S+) \[([^\]]{1,60})\] "
    r'"(([A-Z]{1,20}) ([^\s"\\?]+)(?:\?([^\s"\\]*))?(?: (HTTP/[^\s"\\]+))?)" '
    r'([1-9]\d\d) (0|[1-9]\d{0,17}|-)(?: "([^"\\]*)" "([^"\\]*)")?',
    re.ASCII,
)
_VHOST = re.compile(r"([A-Za-z0-9._-]{1,253}):(\d{1,5}) (?=\S+ \S+ [^\[]{1,300} \[)", re.ASCII)
_REQUEST = re.compile(r"([A-Z]{1,20}) (\S+)(?: (HTTP/\S+))?")
_ESCAPE = re.compile(r'\\(["\\])')
_NAMES = (
    "client",
    "ident",
    "user",
    "timestamp",
    "request",
    "status",
    "bytes",
    "referer",
    "user_agent",
    "extra",
)
_OPTIONAL = ("ident", "user", "query", "protocol", "referer", "user_agent")


def looks_like_access_log(line: str) -> bool:
    """Whether a line is one of an access log."""
    match = _LINE.fullmatch(line)
    return match is not None and web(match[4]) is not None


def read_access_line(line: str) -> Record:
    """The fields of a line; `BadRecord` where it is none of an access log."""
    if (usual := _USUAL.fullmatch(line)) and (stamp := web(usual[4])):
        return _usual(usual, stamp[0])
    if vhost := _VHOST.match(line):
        asked: Record = {"vhost": vhost[1], "port": int(vhost[2])}
        return asked | read_access_line(line[vhost.end() :])
    match = _LINE.fullmatch(line)
    if match is None:
        raise BadRecord("no line of an access log")
    stamp = web(match[4])
    if stamp is None:
        raise BadRecord(f"no time of an access log: [{match[4]}]")
    record: Record = {
        name: text
        for name, text in zip(_NAMES, match.groups(), strict=True)
        if text is not None and text != "-"
    }
    record["timestamp"] = stamp[0]
    for name in ("status", "bytes"):
        if name in record:
            record[name] = infer(str(record[name]))
    for name in ("request", "referer", "user_agent"):
        if "\\" in (text := str(record.get(name, ""))):
            record[name] = _ESCAPE.sub(r"\1", text)
    _split_request(record)
    return record


def _usual(match: re.Match[str], stamp: str) -> Record:
    """The form that nearly all lines have, read by one pattern."""
    client, ident, user, _, request, method, path, query, protocol, *rest = match.groups()
    status, size, referer, agent = rest
    record: Record = {"client": client, "timestamp": stamp, "request": request}
    record |= {"method": method, "path": path, "status": int(status)}
    if size != "-":
        record["bytes"] = int(size)
    optional = (ident, user, query, protocol, referer, agent)
    for name, text in zip(_OPTIONAL, optional, strict=True):
        if text is not None and text != "-":
            record[name] = text
    return record


def _split_request(record: Record) -> None:
    match = _REQUEST.fullmatch(str(record.get("request", "")))
    if match is None:
        return
    path, mark, query = match[2].partition("?")
    record |= {"method": match[1], "path": path}
    if mark:
        record["query"] = query
    if match[3]:
        record["protocol"] = match[3]
