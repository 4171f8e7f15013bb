"""`cep completion`: the script that teaches a shell to complete `cep`."""

from __future__ import annotations

import click
from click.shell_completion import get_completion_class

SHELLS = ("bash", "zsh", "fish")


@click.command("completion")
@click.argument("shell", type=click.Choice(SHELLS))
def command(shell: str) -> None:
    """Print the completion script for SHELL.

    \b
    bash:  cep completion bash >> ~/.bashrc
    zsh:   cep completion zsh >> ~/.zshrc
    fish:  cep completion fish > ~/.config/fish/completions/cep.fish
    """
    from cep.cli.main import cli

    kind = get_completion_class(shell)
    assert kind is not None
    click.echo(kind(cli, {}, "cep", "_CEP_COMPLETE").source())
