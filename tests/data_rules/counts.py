"""What the rules of this folder must find in the real logs, counted by plain loops.

Nothing of the engine is used here: each function reads a log by itself and walks through it by the
definitions of the language, in the most direct way there is. The result of each is a mapping from
the name of a rule to its matches, as pairs of a time and the parts of the key, in the order in
which they are due. Times are the time of day for sshd, whose log has no year, else microseconds.

    python tests/data_rules/counts.py ../shared/data     prints how many there are of each
"""

from __future__ import annotations

import json
import re
import sys
from collections import defaultdict
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path

Found = dict[str, list[tuple]]
MINUTE = 60
HOUR = 60 * MINUTE


# ---------------------------------------------------------------------------- sshd


def sshd(path: Path) -> Found:
    """Times as seconds of the day."""
    failed, accepted, suspicious = defaultdict(list), defaultdict(list), []
    end = 0
    for number, line in enumerate(path.read_text().splitlines()):
        stamp, message = re.match(r"Dec 10 (\S+) \S+ sshd\[\d+\]: (.*)", line).groups()
        hours, minutes, seconds = map(int, stamp.split(":"))
        end = t = hours * HOUR + minutes * MINUTE + seconds
        if m := re.match(r"Failed password for (?:invalid user )?(.*) from (\S+) port", message):
            failed[m[2]].append((number, t, m[1]))
        elif m := re.match(r"Accepted password for (.*) from (\S+) port", message):
            accepted[m[2]].append((number, t, m[1]))
        elif m := re.search(r"\[(\S+)\] failed - POSSIBLE BREAK-IN ATTEMPT!", message):
            suspicious.append((t, m[1]))
    guessing = by_time(fives(fails, ip, 10 * MINUTE) for ip, fails in failed.items())
    return {
        "guessing": guessing,
        "guessing_hourly": once_in(guessing, HOUR),
        "many_names": by_time(names(fails, ip) for ip, fails in failed.items()),
        "break_in": suspicious,
        "break_in_hourly": once_in(suspicious, HOUR),
        "guessed": by_time(guessed(failed[ip], good, ip) for ip, good in accepted.items()),
        "gave_up": by_time(gave_up(fails, ip, end) for ip, fails in failed.items()),
    }


def fives(fails: list[tuple], ip: str, length: int) -> list[tuple]:
    """Five in a row within `length`; the next five begin after the last."""
    found, fresh = [], []
    for _, t, _user in fails:
        fresh.append(t)
        if len(fresh) >= 5 and t - fresh[-5] <= length:
            found.append((t, ip))
            fresh = []
    return found


def names(fails: list[tuple], ip: str) -> list[tuple]:
    """From each failure on, the next four whose name is not the one before; all must differ."""
    ends = []
    for start in range(len(fails)):
        chain = [fails[start]]
        for fail in fails[start + 1 :]:
            if len(chain) < 5 and fail[2] != chain[-1][2] and fail[1] - chain[0][1] <= 5 * MINUTE:
                chain.append(fail)
        if len(chain) == 5 and len({user for _, _, user in chain}) == 5:
            ends.append((chain[-1][0], chain[0][0], chain[-1][1]))
    found, last = [], -1
    for end, first, t in sorted(ends):
        if first > last:
            found.append((t, ip))
            last = end
    return found


def guessed(fails: list[tuple], good: list[tuple], ip: str) -> list[tuple]:
    """Successes with a failure in the hour before, that no success before has used up."""
    found, last = [], -1
    for number, t, _user in good:
        if any(last < n < number and t - when <= HOUR for n, when, _ in fails):
            found.append((t, ip))
            last = number
    return found


def gave_up(fails: list[tuple], ip: str, end: int) -> list[tuple]:
    """Three within ten minutes, and no other in the ten minutes after them."""
    found = []
    for i in range(2, len(fails)):
        t = fails[i][1]
        quiet = t + 10 * MINUTE
        following = fails[i + 1][1] if i + 1 < len(fails) else None
        due = quiet < end and (following is None or following > quiet)
        if due and t - fails[i - 2][1] <= 10 * MINUTE:
            found.append((quiet, ip))
    return found


# ---------------------------------------------------------------------------- zeek


def zeek(path: Path) -> Found:
    """Times in microseconds; the order is that of the times, then of the file."""
    records = [json.loads(line, parse_float=Decimal) for line in path.open()]
    for record in records:
        record["t"] = int(record["ts"] * 1_000_000)
    records.sort(key=lambda record: record["t"])
    for number, record in enumerate(records):
        record["n"] = number
    end = records[-1]["t"]
    hosts = sorted({r["id_orig_h"] for r in records if "id_orig_h" in r})
    explored, every_way = [], []
    for host in hosts:
        triples = explorations([r for r in records if r.get("id_orig_h") == host])
        every_way += [(call["t"], host) for _, _, call in triples]
        explored += first_ones(triples, host)
    return {
        "server_explored": sorted(explored),
        "server_explored_every_way": sorted(every_way),
        "service_created": [
            (r["t"], r["id_orig_h"]) for r in records if r.get("endpoint") == "svcctl"
        ],
        "beaconing": sorted(beacons([r for r in records if r["@stream"] == "conn"])),
        "idle_share": sorted(idle_shares(records, end)),
        "self_signed": once_in(
            [
                (r["t"], r["id_orig_h"], r["id_resp_h"])
                for r in records
                if r["@stream"] == "ssl" and "self signed" in r.get("validation_status", "").lower()
            ],
            600_000_000,
        ),
    }


def explorations(records: list[dict]) -> list[tuple]:
    """Every look-up, share and call of one host that belong together, within half an hour."""
    services = {"samr", "lsarpc", "drsuapi", "svcctl"}
    kinds = defaultdict(list)
    for record in records:
        kinds[record["@stream"]].append(record)
    shares = [r for r in kinds["smb_mapping"] if r["path"].endswith("IPC$")]
    return [
        (lookup, share, call)
        for lookup in kinds["dns"]
        for share in shares
        if lookup["n"] < share["n"] and share["id_resp_h"] in lookup.get("answers", [])
        for call in kinds["dce_rpc"]
        if share["n"] < call["n"]
        and call["id_resp_h"] == share["id_resp_h"]
        and call["endpoint"] in services
        and call["t"] - lookup["t"] <= 1_800_000_000
    ]


def first_ones(triples: list[tuple], host: str) -> list[tuple]:
    """For each look-up its first share and the first call after that, one after the other."""
    firsts = {}
    for lookup, share, call in triples:
        chosen = firsts.setdefault(lookup["n"], (share, call))
        if (share["n"], call["n"]) < (chosen[0]["n"], chosen[1]["n"]):
            firsts[lookup["n"]] = (share, call)
    found, last = [], -1
    for end, first, t in sorted((call["n"], n, call["t"]) for n, (_, call) in firsts.items()):
        if first > last:
            found.append((t, host))
            last = end
    return found


def beacons(connections: list[dict]) -> list[tuple]:
    """Four in a row whose gaps are at least 5 s and near the mean gap up to there."""
    pairs = defaultdict(list)
    for r in connections:
        pairs[r["id_orig_h"], r["id_resp_h"], r["id_resp_p"]].append(r["t"])
    found = []
    for key, times in pairs.items():
        start = 0
        while start + 3 < len(times):
            if even(times[start : start + 4]):
                found.append((times[start + 3], *key))
                start += 4
            else:
                start += 1
    return found


def even(times: list[int]) -> bool:
    for i in range(1, len(times)):
        gap, whole = times[i] - times[i - 1], times[i] - times[0]
        if gap < 5_000_000 or abs(gap * i - whole) * 10 > whole:
            return False
    return True


def idle_shares(records: list[dict], end: int) -> list[tuple]:
    """Shares with no file opened on the same connection in the five minutes after."""
    found = []
    for share in records:
        if share["@stream"] != "smb_mapping":
            continue
        deadline = share["t"] + 300_000_000
        touched = any(
            r["@stream"] == "smb_files"
            and r["uid"] == share["uid"]
            and share["n"] < r["n"]
            and r["t"] <= deadline
            for r in records
        )
        if not touched and deadline < end:
            found.append((deadline, share["uid"]))
    return found


# ---------------------------------------------------------------------------- windows


def windows(path: Path) -> Found:
    """Times in microseconds. There is one host, so the keys are its name."""
    records = [json.loads(line) for line in path.open()]
    for record in records:
        moment = datetime.fromisoformat(record["TimeCreated"]).replace(tzinfo=UTC)
        record["t"] = round(moment.timestamp() * 1000) * 1000
    records.sort(key=lambda record: record["t"])
    wiped, tool, opened, saved = [], [], [], []
    wipe, install, pipe, newest = None, None, None, None
    for r in records:
        kind, t, host = r["EventID"], r["t"], r["Hostname"]
        if kind in (1102, 104):
            wipe = wipe or t
        if kind in (4697, 7045):
            if wipe and t - wipe <= 60_000_000:
                wiped.append((t, host))
                wipe = None
            install, newest = install or r, r
        if kind == 17 and install and install["ServiceName"] in r["PipeName"]:
            pipe = pipe or r
        if kind == 1:
            if pipe and r["ParentImage"].lower().endswith("psexesvc.exe"):
                tool.append((t, host))
                install = pipe = None
            if re.search(
                r"reg(\.exe)?\"? +save +hklm\\(security|sam|system)", r["CommandLine"], re.I
            ):
                saved.append((t, host))
        if kind == 5145:
            if newest and r["RelativeTargetName"] == newest["ServiceName"]:
                opened.append((t, host))
            newest = None
    return {
        "log_wiped_then_service": wiped,
        "remote_service": tool,
        "secrets_saved": saved,
        "share_of_the_tool": opened,
    }


# ---------------------------------------------------------------------------- all


def by_time(lists: object) -> list[tuple]:
    return sorted(found for part in lists for found in part)


def once_in(found: list[tuple], length: int) -> list[tuple]:
    """At most one of each key in `length`, counted from the one that is shown."""
    shown, last = [], {}
    for t, *key in found:
        if t >= last.get(tuple(key), -(10**18)) + length:
            shown.append((t, *key))
            last[tuple(key)] = t
    return shown


LOGS = {
    "sshd": (sshd, "openssh_2k.log"),
    "zeek": (zeek, "zeek_apt29_day1.jsonl"),
    "windows": (windows, "windows_psexec_lsa.jsonl"),
}

if __name__ == "__main__":
    for name, (count, file) in LOGS.items():
        for rule, found in count(Path(sys.argv[1]) / file).items():
            print(f"{name:8} {rule:28} {len(found):5}")
