"""`simplellmfunc preview`: the exact request of a call, its tokens and its price, without sending it."""

from __future__ import annotations

import json
from typing import Any

import click

from SimpleLLMFunc.base.run import Preview
from SimpleLLMFunc.cli.arguments import argument_options, arguments_of, function_named
from SimpleLLMFunc.cli.load import asking
from SimpleLLMFunc.cli.output import as_json, echo_json, printable


@click.command(short_help="Show what a call would send.")
@argument_options
@click.option("--curl", "as_curl", is_flag=True, help="Print a curl command; it reads the key from the environment.")
@click.option("--json", "as_data", is_flag=True, help="Print the Preview as JSON; its `body` is what goes out.")
def preview(
    target: str,
    values: tuple[str, ...],
    named: tuple[str, ...],
    source: str | None,
    template: tuple[str, ...],
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
    function: Any = function_named(target)
    arguments, fields = arguments_of(function, values, named, source, template)
    if fields is not None:
        function = function.with_options(template_params=fields)
    with asking(model_name):
        made: Preview = function.preview(**arguments)
    if as_curl:
        click.echo(made.as_curl())
    elif as_data:
        echo_json(made)
    else:
        _show(made)


def _show(made: Preview) -> None:
    _line("model", f"{made.model}{f' at {made.url}' if made.url else ''}")
    _line("answer", made.output_mode_reason or made.output_mode)
    price = "unknown" if made.cost is None else f"{made.cost:.6f} USD"
    _line("input", f"about {made.input_tokens} tokens, price {price}")
    for name, value in made.params.items():
        _line(name, as_json(value))
    for message in made.messages:
        click.secho(f"\n[{message['role']}]", bold=True)
        click.echo(printable(_content(message)))
    for spec in made.tools or ():
        function = spec["function"]
        click.secho(f"\n[tool {printable(function['name'])}]", bold=True)
        click.echo(printable(str(function.get("description", ""))))
        click.echo(as_json(function.get("parameters", {}), indent=2))
    if made.response_format is not None:
        click.secho("\n[response format]", bold=True)
        click.echo(as_json(made.response_format, indent=2))


def _line(name: str, text: str) -> None:
    click.echo(f"{click.style(f'{name:<8}', bold=True)}{printable(text)}")


def _content(message: Any) -> str:
    content = message.get("content")
    if isinstance(content, str):
        return content
    parts = [_part(part) for part in content or ()]
    calls = [
        f"calls {call['function']['name']}({call['function']['arguments']})" for call in message.get("tool_calls") or ()
    ]
    return "\n".join([*parts, *calls])


def _part(part: dict[str, Any]) -> str:
    text = part.get("text")
    if isinstance(text, str):
        return text
    shown = json.dumps(part, ensure_ascii=False)
    return shown if len(shown) <= 200 else f"{shown[:200]}… ({len(shown)} characters)"
