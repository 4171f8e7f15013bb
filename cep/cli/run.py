"""`cep run`: rules over logs; the options, in the words of the command line."""

from __future__ import annotations

import sys

import click

from cep.cli.parameters import DURATION, RULES, SIZE, SOURCE_DELAY, format_option, loading_options
from cep.cli.rule_files import split_arguments
from cep.cli.session import RunOptions, execute

AT_END = ("undecided", "assume-quiet", "discard")


@click.command("run")
@click.argument("arguments", nargs=-1, required=True, type=RULES, metavar="RULES... [INPUT]...")
@click.option(
    "--output",
    "-o",
    multiple=True,
    metavar="FILE",
    help="Write matches there instead of to standard output: JSON lines, unless the name ends in "
    ".csv, .txt or .db (SQLite). May be given several times.",
)
@click.option(
    "--exec",
    "exec_command",
    metavar="COMMAND",
    help="Run COMMAND for each match, which is on its standard input as JSON. No shell is used.",
)
@click.option(
    "--exec-timeout",
    type=click.FloatRange(min=0, min_open=True),
    default=30.0,
    show_default=True,
    metavar="SECONDS",
    help="How long COMMAND may take for one match.",
)
@format_option
@click.option(
    "--rule",
    multiple=True,
    metavar="NAME",
    help="Run only this rule, and those whose emit it reads; repeatable.",
)
@loading_options
@click.option(
    "--delay",
    type=DURATION,
    metavar="DURATION",
    help="How far events may be out of order; what comes later still is late.",
)
@click.option(
    "--source-delay",
    "delays",
    type=SOURCE_DELAY,
    multiple=True,
    metavar="INPUT=DURATION",
    help="The same for one input, by the name it is given here; repeatable.",
)
@click.option("--sort", is_flag=True, help="Sort the inputs by time first, whatever their order.")
@click.option("--follow", is_flag=True, help="Wait at the end of files for more, until Ctrl-C.")
@click.option("--late", metavar="FILE", help="Write late events there, as JSON lines.")
@click.option(
    "--rejects",
    metavar="FILE",
    help="Write what is no event there, with the reason, as JSON lines.",
)
@click.option(
    "--at-end",
    type=click.Choice(AT_END),
    help="What becomes of absences whose deadline is after the last event: listed (the default), "
    "taken as having happened, or dropped. With --state it says that the input has ended for good.",
)
@click.option(
    "--state",
    metavar="FILE",
    help="Keep everything the run remembers in this SQLite file, and go on from it next time.",
)
@click.option(
    "--checkpoint-every",
    type=DURATION,
    metavar="DURATION",
    help="How often the state is made durable. [1s]",
)
@click.option(
    "--deliver",
    type=click.Choice(("after-commit", "now")),
    help="Whether matches go out when the state that knows of them is durable, or at once. "
    "[after-commit]",
)
@click.option(
    "--from",
    "start_from",
    type=click.Choice(("state", "beginning")),
    help="Go on from the state, or put it away and start over. [state]",
)
@click.option(
    "--restart",
    multiple=True,
    metavar="RULE",
    help="Drop what the state holds of this rule, so that it starts over; repeatable.",
)
@click.option(
    "--reload",
    is_flag=True,
    help="Load the rules again when their files change, or at SIGHUP, without losing an event.",
)
@click.option(
    "--max-runs",
    type=click.IntRange(min=1),
    metavar="N",
    help="Most first events that all rules together may hold; above it the oldest are dropped.",
)
@click.option(
    "--max-state-bytes",
    type=SIZE,
    metavar="SIZE",
    help="Most memory that what the rules hold may take (500M, 2G); above it the oldest runs are "
    "dropped.",
)
@click.option(
    "--max-memory",
    type=SIZE,
    metavar="SIZE",
    help="Above so much memory, keep the keys that have been quiet for long in the file only.",
)
@click.option("--stats", is_flag=True, help="Print numbers for each rule at the end.")
@click.option("--quiet", "-q", is_flag=True, help="Only matches and errors.")
@click.option("--fail-on-match", is_flag=True, help="Exit code 1 if there is a match.")
def command(arguments: tuple[str, ...], **options: object) -> int:
    """Run rules over logs and write the matches.

    RULES are rule files (*.cep), folders of them or pack:NAME; every other argument is an INPUT: a
    file, a pattern such as 'logs/*.gz', a log of a pack (pack:security/sample.jsonl), or `-` for
    standard input, which is also read when there is no INPUT. Several inputs are merged by time.

    On a terminal a match is a line of text; in a pipe it is a line of JSON. Everything else goes to
    standard error.
    """
    rules, inputs = split_arguments(arguments)
    if not inputs:
        if sys.stdin.isatty():
            raise click.UsageError("no input: name a file, or pipe one in")
        inputs = ["-"]
    _check_state_options(options)
    if options["follow"] and options["sort"]:
        raise click.UsageError(
            "--sort reads all of its input before the first event, and with --follow it has no "
            "end: use --delay in place of --sort"
        )
    if options["reload"] and options["sort"]:
        raise click.UsageError("--reload cannot be used with --sort")
    return execute(RunOptions(rules=rules, inputs=inputs, **options))  # type: ignore[arg-type]


def _check_state_options(options: dict[str, object]) -> None:
    """What goes together with --state, and what does not."""
    if options["state"] is None:
        for name in ("checkpoint_every", "deliver", "start_from"):
            if options[name] is not None:
                option = {"start_from": "from"}.get(name, name).replace("_", "-")
                raise click.UsageError(f"--{option} needs --state FILE")
        for name in ("restart", "max_memory"):
            if options[name]:
                raise click.UsageError(f"--{name.replace('_', '-')} needs --state FILE")
    elif options["sort"]:
        raise click.UsageError(
            "--sort reads all of its input before the first event, so it cannot be taken up again: "
            "leave out --state, or use --delay in place of --sort"
        )
