"""`simplellmfunc serve`: decorated functions over HTTP, with keys, limits and an OpenAPI document."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import click

from SimpleLLMFunc.cli.commands.mcp import functions_of
from SimpleLLMFunc.cli.load import complete_target, split_target
from SimpleLLMFunc.cli.options import ANY_PATH, FILE, PORT, SECONDS
from SimpleLLMFunc.errors import counted
from SimpleLLMFunc.llm_decorator.decorated import CHATS, FUNCTIONS
from SimpleLLMFunc.serve import KEYS_VARIABLE, Callers, hash_of, new_key, serve_functions


@click.command(name="serve", short_help="Offer functions over HTTP.")
@click.argument("targets", nargs=-1, metavar="MODULE[:NAME]...", shell_complete=complete_target)
@click.option("--host", default="127.0.0.1", show_default=True, help="The address to listen at; others need --callers.")
@click.option(
    "--port", type=PORT, default=8000, show_default=True, help="The port to listen at; 0 takes any that is free."
)
@click.option(
    "--callers", "callers_file", type=ANY_PATH, help=f"A JSON file of who may call; by default {KEYS_VARIABLE}."
)
@click.option("--deadline", type=SECONDS, default=120.0, show_default=True, help="How many seconds a call may take.")
@click.option(
    "--max-body",
    type=click.IntRange(1),
    default=1_000_000,
    show_default=True,
    help="How many bytes a request may bring.",
)
@click.option("--mcp", is_flag=True, help="Offer them as MCP tools too, at /mcp, to the same callers.")
@click.option(
    "--journal", type=FILE, help="Show and answer at /waiting what waits in this journal, for the same callers."
)
@click.option(
    "--new-key", "name", metavar="NAME", help="Print a new key for NAME and its line for the file; serve nothing."
)
def serve_command(targets: tuple[str, ...], callers_file: Path | None, name: str | None, **options: Any) -> None:
    """Offer the functions and chats in MODULE, or only those named, over HTTP.

    \b
    simplellmfunc serve shop                    # POST /functions/NAME, /functions/NAME/stream; GET /openapi.json
    simplellmfunc serve shop:talk               # a chat, for web pages: POST /chats/NAME/ag-ui, /chats/NAME/ai-sdk
    simplellmfunc serve shop:grade --callers callers.json --host 0.0.0.0
    simplellmfunc serve --new-key alice

    As MCP tools over stdin and stdout: simplellmfunc mcp serve.
    """  # noqa: D301 - click reads the character itself
    if name is not None:
        _print_key(name)
        return
    if not targets:
        raise click.UsageError("Name a module, or a function: simplellmfunc serve MODULE[:NAME]")
    callers = Callers.load(callers_file)
    functions = functions_of(targets, (*FUNCTIONS, *CHATS))

    def announce(address: str) -> None:
        who = f"{counted(len(callers), 'caller')} with keys" if callers else "this machine only, no keys"
        click.echo(f"Offering {', '.join(functions)} at {address} ({who}; {address}/openapi.json); Ctrl-C ends it.")

    title = split_target(targets[0])[0]
    asyncio.run(serve_functions(functions, callers=callers, title=title, announce=announce, **options))


def _print_key(name: str) -> None:
    key = new_key()
    # Checked like a line of the file.
    Callers.load(environment={KEYS_VARIABLE: json.dumps([{"name": name, "sha256": hash_of(key)}])})
    click.echo(
        f"The key, for {name} alone; it is shown once, and kept nowhere:\n{key}\nThe line for the file of callers:"
    )
    click.echo(json.dumps({"name": name, "sha256": hash_of(key), "requests_per_minute": 60}))
