"""Log lines of all kinds: syslog and its missing years, access logs, logfmt, patterns, text."""

from __future__ import annotations

import os
from datetime import UTC, datetime
from pathlib import Path

import pytest

from cep.event_time import parse_time
from cep.source import Block, Record, Reject, SourceError, SourceOptions, open_source
from cep.source.stamps import Stamps, Years, web

NOW = datetime(2024, 3, 10, 12, tzinfo=UTC)
OPENSSH = Path(__file__).parents[3] / "shared" / "data" / "openssh_2k.log"


def read(
    path: Path, content: str | bytes, format: str | None = None, **options: object
) -> tuple[list[Record], list[Reject]]:
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    chosen = SourceOptions(now=NOW, **options)  # type: ignore[arg-type]
    blocks: list[Block] = list(open_source(str(path), format, chosen).blocks())
    records = [record for block in blocks for record in block.records or []]
    return records, [reject for block in blocks for reject in block.rejects]


def stamps(first_year: int | None = None) -> Stamps:
    return Stamps(Years(lambda: NOW, first_year))


class TestSyslog:
    def test_a_line_of_rfc_3164(self, tmp_path: Path) -> None:
        line = "<34>Feb  1 22:14:15 web-1 su[0042]: 'su root' failed: why?\n"
        assert read(tmp_path / "a.log", line) == (
            [
                {
                    "timestamp": "2024-02-01T22:14:15",
                    "host": "web-1",
                    "app": "su",
                    "pid": "0042",
                    "message": "'su root' failed: why?",
                    "facility": "auth",
                    "severity": "crit",
                }
            ],
            [],
        )

    @pytest.mark.parametrize(
        ("line", "parts"),
        [
            (
                "Feb 10 06:55:46 LabSZ sshd[24200]: Invalid user x",
                {"app": "sshd", "pid": 24200, "message": "Invalid user x"},
            ),
            (
                "Feb 10 06:55:46 LabSZ kernel: [1.0] up",
                {"app": "kernel", "message": "[1.0] up"},
            ),
            (
                "Feb 10 06:55:46 LabSZ last message repeated 2 times",
                {"message": "last message repeated 2 times"},
            ),
            ("Feb 10 06:55:46 LabSZ", {"message": ""}),
        ],
    )
    def test_tags(self, tmp_path: Path, line: str, parts: Record) -> None:
        records, _ = read(tmp_path / "a.log", line + "\n", "syslog")
        assert records == [{"timestamp": "2024-02-10T06:55:46", "host": "LabSZ", **parts}]

    def test_other_stamps(self, tmp_path: Path) -> None:
        lines = (
            "2024-02-01T10:00:00.123456+01:00 h a[1]: m\n"
            "Feb 02 2023 10:00:00 h a: m\n"
            "Feb  3 10:00:00.5 h a: m\n"
        )
        records, _ = read(tmp_path / "a.log", lines)
        assert [record["timestamp"] for record in records] == [
            "2024-02-01T10:00:00.123456+01:00",
            "2023-02-02T10:00:00",
            "2024-02-03T10:00:00.5",
        ]

    def test_a_line_of_rfc_5424(self, tmp_path: Path) -> None:
        line = (
            "<165>1 2003-10-11T22:14:15.003Z mymachine.example.com evntslog 7 ID47 "
            r'[exampleSDID@32473 iut="3" eventSource="App \"x\" \] \\ y"][b@1 z=""] '
            "\ufeffAn event\n"
        )
        assert read(tmp_path / "a.log", line)[0] == [
            {
                "facility": "local4",
                "severity": "notice",
                "timestamp": "2003-10-11T22:14:15.003Z",
                "host": "mymachine.example.com",
                "app": "evntslog",
                "pid": 7,
                "msgid": "ID47",
                "sd": {
                    "exampleSDID@32473": {"iut": "3", "eventSource": 'App "x" ] \\ y'},
                    "b@1": {"z": ""},
                },
                "message": "An event",
            }
        ]

    def test_rfc_5424_with_nothing_in_it(self, tmp_path: Path) -> None:
        assert read(tmp_path / "a.log", "<0>1 - - - - - -\n<191>1 - - - - -\n", "syslog")[0] == [
            {"facility": "kern", "severity": "emerg"},
            {"facility": "local7", "severity": "debug"},
        ]

    @pytest.mark.parametrize(
        ("line", "reason"),
        [
            ("hello", "it does not begin with a time stamp"),
            ("Foo 10 06:55:46 h a: m", "it does not begin with a time stamp"),
            ("Feb 30 06:55:46 h a: m", "it does not begin with a time stamp"),
            ("Feb 10 06:55:46", "nothing follows the time stamp"),
            ("<192>Feb 10 06:55:46 h a: m", "the priority 192 does not exist"),
            ("<1>1 - -", "the header of RFC 5424 is incomplete"),
            ("<1>1 - - - - - [x", "the structured data are broken"),
            ('<1>1 - - - - - [x a="b"', "the structured data are broken"),
            ('<1>1 - - - - - [x a="b"][y', "the structured data are broken"),
            ("<1>1 - - - - - x", "the structured data of RFC 5424 are missing"),
        ],
    )
    def test_no_syslog(self, tmp_path: Path, line: str, reason: str) -> None:
        content = f"Feb 10 06:55:46 h a: m\n\n{line}\n"
        records, rejects = read(tmp_path / "a.log", content, "syslog")
        assert len(records) == 1
        assert [(r.line_number, r.position, r.reason) for r in rejects] == [
            (3, 24, f"no syslog line: {reason}")
        ]

    def test_bytes_that_are_not_utf_8_lose_no_line(self, tmp_path: Path) -> None:
        content = b"Feb 10 06:55:46 h sshd[1]: Invalid user \xff\xfe\n"
        records, rejects = read(tmp_path / "a.log", content)
        assert (records[0]["message"], rejects) == (r"Invalid user \xff\xfe", [])

    @pytest.mark.skipif(not OPENSSH.exists(), reason="needs the shared logs")
    def test_a_real_log(self) -> None:
        blocks = list(open_source(str(OPENSSH), "syslog:2015").blocks())
        assert [reject for block in blocks for reject in block.rejects] == []
        records = [record for block in blocks for record in block.records or []]
        assert len(records) == 2000
        times = [parse_time(record["timestamp"]) for record in records]
        assert times == sorted(times)  # type: ignore[type-var]
        assert records[0] == {
            "timestamp": "2015-12-10T06:55:46",
            "host": "LabSZ",
            "app": "sshd",
            "pid": 24200,
            "message": "reverse mapping checking getaddrinfo for ns.marryaldkfaczcz.com "
            "[173.234.31.186] failed - POSSIBLE BREAK-IN ATTEMPT!",
        }
        failed = [r for r in records if str(r["message"]).startswith("Failed password")]
        assert len(failed) == OPENSSH.read_text().count("]: Failed password")


class TestYears:
    def years(self, *days: str, first_year: int | None = None) -> list[int | None]:
        reader = stamps(first_year)
        found = [reader.syslog(f"{day} 00:00:00") for day in days]
        return [int(item[0][:4]) if item else None for item in found]

    def test_no_stamp_lies_in_the_future(self) -> None:
        assert self.years("Mar 10") == [2024]
        assert self.years("Mar 11") == [2024]  # a day to spare, for zones
        assert self.years("Mar 12") == [2023]
        assert self.years("Jan  1") == [2024]
        assert self.years("Dec 31") == [2023]

    def test_from_december_into_january(self) -> None:
        assert self.years("Nov 30", "Dec 31", "Jan  1", "Mar  1") == [2023, 2023, 2024, 2024]

    def test_a_straggler_from_december(self) -> None:
        assert self.years("Dec 31", "Jan  1", "Dec 31", "Jan  1") == [2023, 2024, 2023, 2024]

    def test_a_new_year_is_not_begun_in_the_future(self) -> None:
        assert self.years("Feb  1", "Dec 31", "Jan  2") == [2024, 2023, 2024]

    def test_leap_days(self) -> None:
        assert self.years("Feb 29") == [2024]
        assert self.years("Feb 28", "Feb 29", "Mar  1") == [2024, 2024, 2024]
        assert self.years("Feb 30") == [None]
        assert self.years("Feb 29", first_year=2023) == [None]

    def test_a_stated_year(self) -> None:
        assert self.years("Nov 30", "Jan  1", "Dec 31", "Jan  1", first_year=1999) == [
            *(1999, 2000, 1999, 2000)
        ]

    def test_the_year_comes_from_when_the_file_was_changed(self, tmp_path: Path) -> None:
        path = tmp_path / "a.log"
        path.write_text("Dec 10 06:55:46 h a: m\n")
        changed = datetime(2017, 12, 11, tzinfo=UTC).timestamp()
        os.utime(path, (changed, changed))
        (block,) = open_source(str(path)).blocks()
        assert block.records is not None
        assert block.records[0]["timestamp"] == "2017-12-10T06:55:46"

    def test_the_year_of_a_followed_file_moves_with_the_clock(self, tmp_path: Path) -> None:
        path = tmp_path / "a.log"
        path.write_text("Dec 10 06:55:46 h a: m\n")
        os.utime(path, (0, 0))
        options = SourceOptions(follow=True, poll=0)
        block = next(open_source(str(path), "syslog", options).blocks())
        assert block.records is not None
        assert str(block.records[0]["timestamp"]) > "2020"


class TestAccessLog:
    COMBINED = (
        r'192.0.2.1 - frank [10/Oct/2000:13:55:36 -0700] "GET /a.gif?x=1&y HTTP/1.0" 200 2326 '
        r'"http://example.com/" "Mozilla \"5\" (x)"'
    )

    def test_combined(self, tmp_path: Path) -> None:
        assert read(tmp_path / "a.log", self.COMBINED + "\n") == (
            [
                {
                    "client": "192.0.2.1",
                    "user": "frank",
                    "timestamp": "2000-10-10T13:55:36-0700",
                    "request": "GET /a.gif?x=1&y HTTP/1.0",
                    "method": "GET",
                    "path": "/a.gif",
                    "query": "x=1&y",
                    "protocol": "HTTP/1.0",
                    "status": 200,
                    "bytes": 2326,
                    "referer": "http://example.com/",
                    "user_agent": 'Mozilla "5" (x)',
                }
            ],
            [],
        )
        assert parse_time("2000-10-10T13:55:36-0700") == parse_time("2000-10-10T20:55:36Z")

    def test_common_and_odd_requests(self, tmp_path: Path) -> None:
        start = "::1 - - [10/Oct/2000:13:55:36 +0000]"
        lines = [
            f'{start} "GET / HTTP/1.1" 304 -',
            f'{start} "-" 408 0',
            rf'{start} "\x16\x03\x01" 400 150 "-" "-"',
            f'{start} "GET /" 200 1 "-" "-" 0.003 "x"',
            '::1 - a b [10/Oct/2000:13:55:36 +0000] "" 400 0 "" ""',
        ]
        records, rejects = read(tmp_path / "a.log", "\n".join(lines), "nginx")
        assert rejects == []
        assert [record.get("path") for record in records] == ["/", None, None, "/", None]
        assert [record.get("bytes") for record in records] == [None, 0, 150, 1, 0]
        assert records[2]["request"] == r"\x16\x03\x01"
        assert records[3]["extra"] == '0.003 "x"'
        assert records[4]["user"] == "a b"

    def test_the_host_that_was_asked(self, tmp_path: Path) -> None:
        line = self.COMBINED.replace("frank", "frank b")
        for start, added in (
            ("example.com:443 ", {"vhost": "example.com", "port": 443}),
            ("10.0.0.1:8080 ", {"vhost": "10.0.0.1", "port": 8080}),
            ("", {}),
        ):
            records, rejects = read(tmp_path / "a.log", f"{start}{line}\n")
            (plain,), _ = read(tmp_path / "b.log", f"{line}\n")
            assert (records, rejects) == ([{**added, **plain}], [])
            assert plain["user"] == "frank b"
        usual = 'example.com:80 1.2.3.4 - - [10/Oct/2000:13:55:36 +0000] "GET / HTTP/1.1" 200 5'
        (record,), _ = read(tmp_path / "c.log", usual)
        assert (record["vhost"], record["client"], record["status"]) == (
            "example.com",
            "1.2.3.4",
            200,
        )
        (record,), _ = read(tmp_path / "d.log", usual.replace("example.com:80 1.2.3.4", "host:80"))
        assert record["client"] == "host:80"

    @pytest.mark.parametrize(
        "line",
        [
            "hello",
            "a:1 " * 30_000,
            "a:1 - - " + "[" * 100_000,
            '1.2.3.4 - - [yesterday] "GET / HTTP/1.0" 200 1',
            '1.2.3.4 - - [10/Foo/2000:13:55:36 +0000] "GET / HTTP/1.0" 200 1',
            '1.2.3.4 - - [10/Oct/2000:13:55:36 +0000] "GET / HTTP/1.0 200 1',
            "1.2.3.4 - - " + "[" * 100_000,
            '1.2.3.4 - - [10/Oct/2000:13:55:36 +0000] "' + "\\" * 100_001,
        ],
    )
    def test_no_access_log(self, tmp_path: Path, line: str) -> None:
        records, rejects = read(tmp_path / "a.log", line, "access")
        assert (records, len(rejects)) == ([], 1)

    def test_stamps(self) -> None:
        assert web("10/Oct/2000:13:55:36") == ("2000-10-10T13:55:36", 20)
        assert web("1/Oct/2000:13:55:36") is None


class TestLogfmt:
    def test_values(self, tmp_path: Path) -> None:
        line = (
            r'ts=2024-01-01T00:00:00Z level=info msg="a \"b\"\n\\" n=1.5 id=007 ok=true '
            'e= x="" up q="7"'
        )
        assert read(tmp_path / "a.log", line + "\n") == (
            [
                {
                    "ts": "2024-01-01T00:00:00Z",
                    "level": "info",
                    "msg": 'a "b"\n\\',
                    "n": 1.5,
                    "id": "007",
                    "ok": True,
                    "e": None,
                    "x": "",
                    "up": True,
                    "q": "7",
                }
            ],
            [],
        )

    def test_stated_types(self, tmp_path: Path) -> None:
        types = {"user": "string", "n": "number"}
        records, _ = read(tmp_path / "a.logfmt", 'user=12 n="7" m=8\n', types=types)
        assert records == [{"user": "12", "n": 7, "m": 8}]

    @pytest.mark.parametrize(
        ("line", "reason"),
        [
            ("hello world", "not logfmt: no key=value on the line"),
            ('a=1 b="x', "not logfmt at character 4"),
            ('a=1 b="x"y c=2', "not logfmt at character 4"),
            ("a=1 =2", "not logfmt at character 4"),
        ],
    )
    def test_no_logfmt(self, tmp_path: Path, line: str, reason: str) -> None:
        records, rejects = read(tmp_path / "a.log", line, "logfmt")
        assert (records, [r.reason for r in rejects]) == ([], [reason])

    def test_the_last_of_equal_keys_counts(self, tmp_path: Path) -> None:
        assert read(tmp_path / "a.logfmt", "a=1 a=2")[0] == [{"a": 2}]


class TestPattern:
    def test_groups(self, tmp_path: Path) -> None:
        pattern = r"regex:^\[(?P<time>[^\]]+)\] (?P<user>\w+) (?:paid (?P<sum>[\d.]+)|left)"
        lines = "[10/Oct/2000:13:55:36 +0200] ann paid 12.50\n[Mar  1 10:00:00] bob left\n\nx\n"
        records, rejects = read(tmp_path / "a.log", lines, pattern)
        assert records == [
            {"time": "2000-10-10T13:55:36+0200", "user": "ann", "sum": 12.5},
            {"time": "2024-03-01T10:00:00", "user": "bob"},
        ]
        assert [(r.line_number, r.reason) for r in rejects] == [
            (4, "the line does not match the pattern")
        ]

    def test_stated_types(self, tmp_path: Path) -> None:
        types = {"user": "string"}
        records, _ = read(
            tmp_path / "a.log", "12 13\n", r"regex:(?P<user>\S+) (?P<n>\S+)", types=types
        )
        assert records == [{"user": "12", "n": 13}]

    @pytest.mark.parametrize(
        ("pattern", "message"),
        [
            ("regex:(", "not a regular expression"),
            (r"regex:(?P<a>x)\1", "not a regular expression"),
            (r"regex:\d+", "no named groups"),
            ("regex:", "needs a pattern"),
            ("regex", "needs a pattern"),
        ],
    )
    def test_no_pattern(
        self, tmp_path: Path, pattern: str, message: str, capfd: pytest.CaptureFixture[str]
    ) -> None:
        with pytest.raises(SourceError, match=message):
            read(tmp_path / "a.log", "x\n", pattern)
        assert capfd.readouterr() == ("", "")

    def test_hostile_lines_cost_linear_time(self, tmp_path: Path) -> None:
        records, rejects = read(tmp_path / "a.log", "a" * 100_000 + "!\n", r"regex:^(?P<x>(a+)+)$")
        assert (records, len(rejects)) == ([], 1)


class TestText:
    def test_times_where_lines_begin_with_one(self, tmp_path: Path) -> None:
        lines = (
            "starting\n"
            "2024-01-31 10:00:00,123 ERROR failed\n"
            "  at main.py line 3\n"
            "[2024/01/31 10:00:01] next\n"
            "[10/Oct/2000:13:55:36 -0700] web\n"
            "Mar  2 10:00:00 sys\n"
        )
        records, rejects = read(tmp_path / "a.log", lines, "text")
        assert rejects == []
        assert records[0] == {"message": "starting"}
        assert [record.get("timestamp") for record in records[1:]] == [
            "2024-01-31 10:00:00,123",
            "2024-01-31 10:00:00,123",
            "2024-01-31 10:00:01",
            "2000-10-10T13:55:36-0700",
            "2024-03-02T10:00:00",
        ]
        assert records[2]["message"] == "  at main.py line 3"
        assert all(parse_time(record["timestamp"]) is not None for record in records[1:])
