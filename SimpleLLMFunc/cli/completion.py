"""`simplellmfunc completion`: the script that lets a shell complete the commands and their options."""

from __future__ import annotations

import click
from click.shell_completion import get_completion_class

__all__ = ["completion"]

_PROGRAM = "simplellmfunc"


@click.command(short_help="Print the completion script of a shell.")
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
@click.pass_context
def completion(ctx: click.Context, shell: str) -> None:
    """Print the script with which SHELL completes commands, options and files.

    \b
    eval "$(simplellmfunc completion bash)"                                   # in ~/.bashrc
    eval "$(simplellmfunc completion zsh)"                                    # in ~/.zshrc
    simplellmfunc completion fish > ~/.config/fish/completions/simplellmfunc.fish
    """  # noqa: D301 - click reads the character itself
    made = get_completion_class(shell)
    assert made is not None, "click knows the three"
    # Not by `source()`, which asks bash for its version first: the script is the same for all.
    script = made(ctx.find_root().command, {}, _PROGRAM, "_SIMPLELLMFUNC_COMPLETE")
    click.echo(script.source_template % script.source_vars())
