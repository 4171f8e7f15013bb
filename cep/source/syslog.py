"""Syslog lines of both standards, and of the ISO form that many daemons write.

RFC 3164 `<34>Oct 11 22:14:15 host su[42]: text` (the `<34>` may be missing, as in files), the same
with an ISO stamp, and RFC 5424 `<165>1 2003-10-11T22:14:15.003Z host app 42 ID47 [x@1 a="b"] text`.

Fields: `timestamp` (ISO text), `host`, `app`, `pid`, `message`; with a priority also `facility` and
`severity` (their names); for RFC 5424 also `msgid` and `sd`, the structured data as an object of
objects of texts. What the line leaves out, or writes as `-`, is missing.
"""

from __future__ import annotations

import re

from cep.source.base import BadRecord, Record
from cep.source.stamps import Stamps
from cep.source.values import infer

# fmt: off
FACILITIES = (
    "kern", "user", "mail", "daemon", "auth", "syslog", "lpr", "news", "uucp", "cron", "authpriv",
    "ftp", "ntp", "audit", "alert", "clock", "local0", "local1", "local2", "local3", "local4",
    "local5", "local6", "local7",
)
SEVERITIES = ("emerg", "alert", "crit", "err", "warning", "notice", "info", "debug")
# fmt: on

_PRIORITY = re.compile(r"<(\d{1,3})>(?:([1-9]\d?) )?", re.ASCII)
_TAG = re.compile(r"([^\s\[\]:]{1,256})(?:\[([^\]\s]{1,64})\])?: ?")
_USUAL = re.compile(
    r"([A-Z][a-z][a-z] [ \d]\d \d\d:\d\d:\d\d) (\S+) "
    r"([^\s\[\]:]{1,256})(?:\[([1-9]\d{0,9})\])?: ?(.*)",
    re.ASCII | re.DOTALL,
)
_HEADER = re.compile(r"(\S+) (\S+) (\S+) (\S+) (\S+) ?")
_SD_ELEMENT = re.compile(r'\[([^\s=\]"]{1,256})((?: [^\s=\]"]{1,256}="(?:[^"\\\]]|\\.)*")*)\]')
_SD_PARAM = re.compile(r' ([^\s=\]"]+)="((?:[^"\\\]]|\\.)*)"')
_SD_ESCAPE = re.compile(r'\\(["\\\]])')
_LOOKS = re.compile(
    r"(?:<\d{1,3}>(?:1 )?)?"
    r"(?:[A-Z][a-z][a-z] [ \d]\d (?:\d{4} )?\d\d:\d\d:\d\d|\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\S*) "
    r"(?!TRACE|DEBUG|INFO|NOTICE|WARN|ERROR|FATAL|CRIT)\S+ ",
    re.ASCII,
)


def looks_like_syslog(line: str) -> bool:
    """Whether a line begins as one of the three forms does."""
    match = _LOOKS.match(line)
    return match is not None and (line[0] == "<" or _TAG.match(line, match.end()) is not None)


class Syslog:
    """Reads the lines of one file."""

    def __init__(self, stamps: Stamps) -> None:
        self._stamps = stamps
        self._last = ("", "")
        """The last stamp and its ISO text, since neighbours often share theirs."""

    @property
    def context(self) -> str | None:
        """What is known of earlier stamps."""
        return self._stamps.context

    @context.setter
    def context(self, day: str | None) -> None:
        self._stamps.context = day

    def __call__(self, line: str) -> Record:
        """The fields of a line; `BadRecord` where it is no syslog line."""
        if (usual := _USUAL.match(line)) and (record := self._usual(usual)):
            return record
        priority = _PRIORITY.match(line)
        record = {}
        start = 0
        if priority is not None:
            start = priority.end()
            record = _priority(int(priority[1]))
            if priority[2]:
                return _rfc5424(line, start, record)
        return self._rfc3164(line, start, record)

    def _usual(self, match: re.Match[str]) -> Record | None:
        """The form that nearly all lines of nearly all files have, read by one pattern."""
        stamp, host, app, pid, message = match.groups()
        if stamp != self._last[0]:
            found = self._stamps.syslog(stamp)
            if found is None:
                return None
            self._last = stamp, found[0]
        record: Record = {"timestamp": self._last[1], "host": host, "app": app}
        if pid is not None:
            record["pid"] = int(pid)
        record["message"] = message
        return record

    def _rfc3164(self, line: str, start: int, record: Record) -> Record:
        found = self._stamps.leading(line, start)
        if found is None:
            raise BadRecord("no syslog line: it does not begin with a time stamp")
        record["timestamp"], end = found
        host, _, text = line[end:].lstrip(" ").partition(" ")
        if not host:
            raise BadRecord("no syslog line: nothing follows the time stamp")
        record["host"] = host
        tag = _TAG.match(text)
        if tag is not None:
            record["app"] = tag[1]
            if tag[2] is not None:
                record["pid"] = infer(tag[2])
            text = text[tag.end() :]
        record["message"] = text
        return record


def _priority(number: int) -> Record:
    if number >= len(FACILITIES) * 8:
        raise BadRecord(f"no syslog line: the priority {number} does not exist")
    return {"facility": FACILITIES[number >> 3], "severity": SEVERITIES[number & 7]}


def _rfc5424(line: str, start: int, record: Record) -> Record:
    header = _HEADER.match(line, start)
    if header is None:
        raise BadRecord("no syslog line: the header of RFC 5424 is incomplete")
    names = ("timestamp", "host", "app", "pid", "msgid")
    for name, text in zip(names, header.groups(), strict=True):
        if text != "-":
            record[name] = infer(text) if name == "pid" else text
    end = header.end()
    if line.startswith("[", end):
        record["sd"], end = _structured_data(line, end)
    elif line.startswith("-", end):
        end += 1
    elif end < len(line):
        raise BadRecord("no syslog line: the structured data of RFC 5424 are missing")
    if message := line[end:].removeprefix(" ").removeprefix("\ufeff"):
        record["message"] = message
    return record


def _structured_data(line: str, start: int) -> tuple[dict[str, object], int]:
    elements: dict[str, object] = {}
    while match := _SD_ELEMENT.match(line, start):
        elements[match[1]] = {
            param[1]: _SD_ESCAPE.sub(r"\1", param[2]) for param in _SD_PARAM.finditer(match[2])
        }
        start = match.end()
    if not elements or line.startswith("[", start):
        raise BadRecord("no syslog line: the structured data are broken")
    return elements, start
