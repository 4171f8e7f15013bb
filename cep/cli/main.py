"""The command `cep`: finds the command, runs it, and turns whatever happens into an exit code.

Commands are listed here with their one-line help and loaded when they are called, so `cep --help`
needs neither the language nor the engine. A command returns its exit code (None: 0). No traceback
reaches people unless they ask for it with `CEP_DEBUG=1`.
"""

from __future__ import annotations

import importlib
import os
import signal
import sys
from types import FrameType
from typing import NoReturn

import click

from cep.cli.exits import FAILED, INTERNAL, INTERRUPTED, PIPE_CLOSED, TERMINATED, WRONG_USE
from cep.cli.interrupts import Terminated
from cep.cli.speech import OUT_OF_MEMORY, complain

COMMANDS = {
    "run": "Run rules over logs and write what they find.",
    "peek": "Show the first records of an input, and its fields.",
    "check": "Check rule files: problems, and what bounds each rule.",
    "test": "Run the tests that stand in rule files.",
    "fmt": "Format rule files.",
    "explain": "Show what a rule means and how it is run.",
    "verify": "Run over logs again, and compare with the matches of a run.",
    "state": "Look into a state file, and take care of it.",
    "rules": "List, show and copy the ready-made rules.",
    "demo": "Run ready-made rules over a sample log.",
    "functions": "List the functions of the rule language.",
    "new": "Begin a rule file with a rule and a test.",
    "completion": "Print the completion script for a shell.",
}
"""Every command, in the order of `cep --help`; `cep/cli/NAME.py` holds it as `command`."""


class LazyGroup(click.Group):
    """A group whose commands are modules, loaded when they are called."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in COMMANDS:
            return None
        command = importlib.import_module(f"cep.cli.{cmd_name}").command
        assert isinstance(command, click.Command)
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        name = args[0]
        if name not in COMMANDS and not name.startswith("-"):
            raise click.UsageError(_unknown(name), ctx)
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl(list(COMMANDS.items()))


def _unknown(name: str) -> str:
    """What to say about a command that does not exist."""
    from dsl.diagnostics import did_you_mean

    guess = did_you_mean(name, COMMANDS)
    if guess is not None:
        return f"no command `{name}`; did you mean `cep {guess}`?"
    if name.endswith(".cep"):
        return f"no command `{name}`; to run a rule file: cep run {name} INPUT"
    return f"no command `{name}`; `cep --help` lists them"


def _print_version(ctx: click.Context, _parameter: click.Parameter, value: bool) -> None:
    if value:
        from cep import __version__

        click.echo(f"cep {__version__}")
        ctx.exit()


@click.group(
    cls=LazyGroup,
    no_args_is_help=True,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    epilog="Exit codes: 0 done; 1 tests failed, errors found or --fail-on-match; "
    "2 wrong use, or an input or output that failed.",
)
@click.option(
    "--version",
    is_flag=True,
    is_eager=True,
    expose_value=False,
    callback=_print_version,
    help="Show the version and exit.",
)
def cli() -> None:
    """Find patterns of events in logs, by rules.

    Try `cep demo`, then `cep new first.cep`.
    """


def _raise_terminated(_signal: int, _frame: FrameType | None) -> None:
    raise Terminated


def main() -> NoReturn:
    """Entry point of the command line."""
    signal.signal(signal.SIGTERM, _raise_terminated)
    code = run(sys.argv[1:])
    _flush_streams()
    sys.exit(code)


def run(arguments: list[str]) -> int:
    """Run `cep` with these arguments; the exit code."""
    try:
        result = cli.main(arguments, prog_name="cep", standalone_mode=False)
    except click.ClickException as error:
        error.show()
        return error.exit_code
    except (click.Abort, KeyboardInterrupt):
        return INTERRUPTED
    except Terminated:
        return TERMINATED
    except BrokenPipeError:
        return PIPE_CLOSED
    except OSError as error:
        complain(_system_error(error))
        return WRONG_USE if not _debugging() else _traceback()
    except MemoryError:
        complain(OUT_OF_MEMORY)
        return WRONG_USE if not _debugging() else _traceback()
    except Exception as error:
        return _internal_error(error)
    return result if isinstance(result, int) else 0


def _system_error(error: OSError) -> str:
    where = f"{error.filename}: " if error.filename else ""
    return f"{where}{error.strerror or error}"


def _internal_error(error: Exception) -> int:
    """Something that should not happen: say so without a traceback."""
    if _debugging():
        return _traceback()
    complain(f"an internal fault: {type(error).__name__}: {str(error)[:500]}")
    complain("this is a bug in cep; run the command again with CEP_DEBUG=1 for a report of it")
    return INTERNAL


def _debugging() -> bool:
    return os.environ.get("CEP_DEBUG", "") not in ("", "0")


def _traceback() -> int:
    import traceback

    traceback.print_exc()
    return INTERNAL


def _flush_streams() -> None:
    """Flush what is left; a stream whose reader has gone is silenced, not complained about."""
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except OSError:
            os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())


__all__ = ["FAILED", "cli", "main", "run"]
