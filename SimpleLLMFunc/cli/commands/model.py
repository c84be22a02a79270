"""`simplellmfunc model`: weights of the models that run inside this process."""

from __future__ import annotations

import click

from SimpleLLMFunc.cli.output import echo_json
from SimpleLLMFunc.interface.local import KNOWN_WEIGHTS, SMOLLM2_135M, fetch_weights, find_weights


@click.group(short_help="Weights of local models: pull, list, path.")
def model() -> None:
    """Weights of the models that run inside this process."""


_name = click.argument(
    "name",
    default=SMOLLM2_135M.name,
    type=click.Choice(sorted(KNOWN_WEIGHTS)),
    metavar=f"[{'|'.join(sorted(KNOWN_WEIGHTS))}]",  # click 8.2 would write the brackets twice
)


@model.command()
@_name
def pull(name: str) -> None:
    """Fetch the weights of NAME if they are not here, and print their path."""
    click.echo(str(fetch_weights(KNOWN_WEIGHTS[name])))


@model.command(name="list")
@click.option("--json", "as_json", is_flag=True, help="Print JSON: name, path (null where it is not fetched).")
def list_models(as_json: bool) -> None:
    """List the models known by name, and whether their weights are here."""
    found = {weights.name: find_weights(weights) for weights in KNOWN_WEIGHTS.values()}
    if as_json:
        echo_json([{"name": name, "path": where and str(where)} for name, where in found.items()])
        return
    for name, where in found.items():
        click.echo(f"{name}  {'not fetched' if where is None else where}")


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
