"""Let your shell complete commands, flags and names. Prints what the shell has to run."""

import click

from torchyard.cli.root import root

SHELLS = ("bash", "zsh", "fish")


@click.command("completion")
@click.argument("shell", type=click.Choice(SHELLS))
def command(shell: str) -> None:
    """Let your shell complete commands, flags and names.

    \b
    bash   echo 'eval "$(torchyard completion bash)"' >> ~/.bashrc
    zsh    echo 'eval "$(torchyard completion zsh)"' >> ~/.zshrc
    fish   torchyard completion fish > ~/.config/fish/completions/torchyard.fish
    """
    from torchyard.cli.complete import script

    click.echo(script(root, shell))
