"""`cep demo`: what ready-made rules find in a sample log that comes with them."""

from __future__ import annotations

import sys

import click

from cep.cli.parameters import RULES
from cep.cli.rule_files import PACK, pack_log, rule_files
from cep.cli.session import RunOptions, execute
from cep.cli.speech import Problem, say


@click.command("demo")
@click.argument("pack", default="security", type=RULES)
@click.option("--quiet", "-q", is_flag=True, help="Only the matches.")
def command(pack: str, quiet: bool) -> int:
    """Run the rules of a PACK [security] over a sample log that comes with them."""
    name = pack.removeprefix(PACK)
    rules = PACK + name
    files = rule_files([rules])
    log = f"{rules}/sample.jsonl"
    sample = pack_log(log)
    if sample is None:
        raise Problem(f"the sample log {log} is missing from this installation")
    if not quiet:
        say(f"$ cep run {rules} {log}\n")
    sys.stderr.flush()
    code = execute(RunOptions(rules=files, inputs=[str(sample)], quiet=quiet))
    if not quiet and code == 0:
        say(f"\nRead the rules: cep rules show {rules}. Write your own: cep new first.cep")
    return code
