"""`cep new`: a rule file to begin with, that checks, and whose tests pass."""

from __future__ import annotations

import re
from pathlib import Path

import click

from cep.cli.rule_files import SUFFIX
from cep.cli.speech import Problem, say

HEADER = """\
# {name}: say here what this rule is looking for, and why.
#
#   cep check {path}        finds mistakes
#   cep test {path}         runs the tests below
#   cep run {path} LOG      runs the rule over a log (JSON lines, CSV, syslog, …)

"""

SEQUENCE = """\
# The events that the rule looks at: here those whose field `type` is "login".
stream login {{ where type == "login" }}

rule {name} "Failed logins, then a success" {{
  severity medium
  by user
  sequence within 10m {{
    fail: login{{3,}} where outcome == "failure"
    ok:   login     where outcome == "success"
  }}
  alert "{{user}}: {{count(fail)}} failures, then success"
}}

test {name} "three failures and a success are a match" {{
  login {{ user: "ann", outcome: "failure" }} times 3 every 10s
  login {{ user: "ann", outcome: "success" }}
  expect {name} {{ user: "ann", fail: 3 }}
}}

test {name} "two failures are not" {{
  login {{ user: "ann", outcome: "failure" }} times 2 every 10s
  login {{ user: "ann", outcome: "success" }}
  expect nothing
}}
"""

FILTER = """\
# The events that the rule looks at: here those whose field `type` is "request".
stream request {{ where type == "request" }}

rule {name} "A request that took too long" {{
  severity low
  on r: request where duration_ms > 2000
  alert "{{r.path}} took {{r.duration_ms}} ms"
}}

test {name} "a slow request is a match, one at the limit is not" {{
  request {{ path: "/slow", duration_ms: 2001 }}
  request {{ path: "/fast", duration_ms: 2000 }}
  expect {name} {{ r.path: "/slow" }}
}}
"""

ABSENCE = """\
# The events that the rule looks at, told apart by their field `type`.
stream payment {{ where type == "payment" }}
stream shipment {{ where type == "shipment" }}

rule {name} "Paid and not shipped" {{
  severity high
  by order_id
  sequence {{
    p: payment
    no shipment within 2h
  }}
  alert "order {{order_id}} was paid at {{p.time}} and not shipped within two hours"
}}

test {name} "no shipment in time is a match at the deadline" {{
  payment {{ order_id: 1 }}
  advance 3h
  expect at 2h {name} {{ order_id: 1 }}
}}

test {name} "a shipment in time is not" {{
  payment {{ order_id: 1 }}
  after 2h shipment {{ order_id: 1 }}
  advance 3h
  expect nothing
}}
"""

KINDS = {"sequence": SEQUENCE, "filter": FILTER, "absence": ABSENCE}


@click.command("new")
@click.argument("path")
@click.option(
    "--kind",
    type=click.Choice(list(KINDS)),
    default="sequence",
    show_default=True,
    help="What the rule looks for: events in order, one event, or an event that does not come.",
)
@click.option("--force", is_flag=True, help="Replace a file that is there already.")
def command(path: str, kind: str, force: bool) -> None:
    """Write a rule file with a rule and its tests to PATH, to be changed to your needs.

    The rule is called like the file.
    """
    target = Path(path if path.endswith(SUFFIX) else path + SUFFIX)
    if target.exists() and not force:
        raise Problem(f"{target} is there already; --force replaces it")
    if not target.parent.is_dir():
        raise Problem(f"no folder {target.parent}")
    text = (HEADER + KINDS[kind]).format(name=rule_name(target), path=target)
    try:
        target.write_text(text, encoding="utf-8")
    except OSError as error:
        raise Problem(f"cannot write {target}: {error.strerror or error}") from error
    say(f"wrote {target}; next: cep test {target}")


def rule_name(path: Path) -> str:
    """A name that a rule may have, after the file's.

    >>> rule_name(Path("rules/brute-force 2.cep"))
    'brute_force_2'
    """
    name = re.sub(r"\W+", "_", path.name.removesuffix(SUFFIX), flags=re.ASCII).strip("_").lower()
    return name if name and not name[0].isdigit() else f"rule_{name}".rstrip("_")
