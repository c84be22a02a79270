"""The commands and how they end: 0 done, 1 one of our errors, 2 wrong usage, 130 stopped with Ctrl-C."""

from __future__ import annotations

from typing import Any

import click

from SimpleLLMFunc import __version__
from SimpleLLMFunc.cli.chat import chat
from SimpleLLMFunc.cli.demo import run_demo
from SimpleLLMFunc.cli.doctor import findings
from SimpleLLMFunc.cli.map import map_command
from SimpleLLMFunc.cli.mcp import mcp
from SimpleLLMFunc.cli.show import show_rows
from SimpleLLMFunc.errors import SimpleLLMFuncError
from SimpleLLMFunc.interface.local_model import LocalModel
from SimpleLLMFunc.interface.weights import KNOWN_WEIGHTS, SMOLLM2_135M, fetch_weights, find_weights

__all__ = ["main"]

_STOPPED = 130  # 128 + SIGINT, as shells have it


class _Program(click.Group):
    """A group whose commands end with a line instead of a traceback where the error is ours."""

    def invoke(self, ctx: click.Context) -> Any:
        try:
            return super().invoke(ctx)
        except SimpleLLMFuncError as error:
            click.secho("Error: ", fg="red", nl=False, err=True)
            click.echo(str(error), err=True)
            ctx.exit(1)
        except KeyboardInterrupt:
            click.echo("\nStopped.", err=True)
            ctx.exit(_STOPPED)


@click.group(cls=_Program, name="simplellmfunc", context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="simplellmfunc")
def main() -> None:
    """Typed Python functions and chats, answered by a language model."""


main.add_command(mcp)
main.add_command(chat)
main.add_command(map_command)


@main.command()
def demo() -> None:
    """Run a typed function and a chat on the small model inside this process; no key."""
    run_demo(LocalModel(seed=1))


@main.command()
@click.option("--online", is_flag=True, help="Also see whether the model's address answers.")
@click.pass_context
def doctor(ctx: click.Context, online: bool) -> None:
    """Look at Python, packages, weights, model and key; never shows a key."""
    rows = list(findings(online=online))
    show_rows(rows)
    if any(state == "bad" for state, _, _ in rows):
        ctx.exit(1)


@main.group()
def model() -> None:
    """Weights of the models that run inside this process."""


_name = click.argument("name", default=SMOLLM2_135M.name, type=click.Choice(sorted(KNOWN_WEIGHTS)))


@model.command()
@_name
def pull(name: str) -> None:
    """Fetch the weights of NAME if they are not here, and print their path."""
    click.echo(str(fetch_weights(KNOWN_WEIGHTS[name])))


@model.command(name="list")
def list_models() -> None:
    """List the models known by name, and whether their weights are here."""
    for weights in KNOWN_WEIGHTS.values():
        found = find_weights(weights)
        click.echo(f"{weights.name}  {'not fetched' if found is None else found}")


@model.command()
@_name
@click.pass_context
def path(ctx: click.Context, name: str) -> None:
    """Print where the weights of NAME are; fails if they are not here."""
    found = find_weights(KNOWN_WEIGHTS[name])
    if found is None:
        click.echo(f"The weights of {name} are not here. Fetch them: simplellmfunc model pull {name}", err=True)
        ctx.exit(1)
    click.echo(str(found))
