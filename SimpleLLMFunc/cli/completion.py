"""`simplellmfunc completion`: the script that lets a shell complete the commands and their options."""

from __future__ import annotations

from importlib.resources import files

import click
from click.shell_completion import get_completion_class


@click.command(short_help="Print the completion script of a shell.")
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
@click.pass_context
def completion(ctx: click.Context, shell: str) -> None:
    """Print the script with which SHELL completes commands, options, files and the functions of a module.

    \b
    eval "$(simplellmfunc completion bash)"                                   # in ~/.bashrc
    eval "$(simplellmfunc completion zsh)"                                    # in ~/.zshrc
    simplellmfunc completion fish > ~/.config/fish/completions/simplellmfunc.fish
    """  # noqa: D301 - click reads the character itself
    made = get_completion_class(shell)
    assert made is not None, "click knows the three"
    # Without `source()`, which runs bash to ask for its version.
    script = made(ctx.find_root().command, {}, "simplellmfunc", "_SIMPLELLMFUNC_COMPLETE")
    template = script.source_template
    if shell == "bash":  # click's own takes MODULE:FUNCTION for two words
        template = files("SimpleLLMFunc.cli").joinpath("completion.bash").read_text("utf-8")
    click.echo(template % script.source_vars())
