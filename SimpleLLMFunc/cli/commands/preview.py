"""`simplellmfunc preview`: the exact request of a call, its tokens and its price, without sending it."""

from __future__ import annotations

from typing import Any

import click

from SimpleLLMFunc.base.run import Preview
from SimpleLLMFunc.cli.arguments import argument_options
from SimpleLLMFunc.cli.options import asking
from SimpleLLMFunc.cli.output import echo_json
from SimpleLLMFunc.display.cards import as_text
from SimpleLLMFunc.display.results import preview_card


@click.command(short_help="Show what a call would send.")
@argument_options
@click.option("--curl", "as_curl", is_flag=True, help="Print a curl command; it reads the key from the environment.")
@click.option("--json", "as_data", is_flag=True, help="Print the Preview as JSON; its `body` is what goes out.")
def preview(
    function: Any,
    arguments: dict[str, Any],
    model_name: str | None,
    *,
    as_curl: bool,
    as_data: bool,
) -> None:
    """Show what a call would send: messages, tools, schema, tokens and price; nothing leaves this machine.

    \b
    simplellmfunc preview shop:classify "Great kettle!"
    simplellmfunc preview shop:classify --arg review=@letter.txt --curl

    The arguments are those of `simplellmfunc run`. Tokens and price are estimates, of the input alone.
    """  # noqa: D301 - click reads the character itself
    if as_curl and as_data:
        raise click.UsageError("--curl and --json are two forms of the same. Choose one.")
    with asking(model_name):
        made: Preview = function.preview(**arguments)
    if as_curl:
        click.echo(made.as_curl())
    elif as_data:
        echo_json(made)
    else:
        click.echo(as_text(preview_card(made)))
