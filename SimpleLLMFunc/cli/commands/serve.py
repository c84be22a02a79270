"""`simplellmfunc serve` and `mcp serve`: decorated functions over HTTP, with keys, limits and an OpenAPI document; and as MCP tools."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import click
from pydantic import ValidationError

from SimpleLLMFunc.cli.arguments import ANY_PATH, FILE, PORT, SECONDS
from SimpleLLMFunc.cli.load import complete_target, load_module, split_target
from SimpleLLMFunc.errors import ConfigError, counted
from SimpleLLMFunc.llm_decorator.decorated import CHATS, FUNCTIONS
from SimpleLLMFunc.serve import (
    KEYS_VARIABLE,
    CallerEntry,
    Callers,
    decorated_functions,
    hash_of,
    new_key,
    protocol_streams,
    serve_functions,
    serve_http,
    serve_stdio,
)
from SimpleLLMFunc.tools.mcp import require_mcp


@click.command(name="serve", short_help="Offer functions over HTTP.")
@click.argument("targets", nargs=-1, metavar="MODULE[:NAME]...", shell_complete=complete_target)
@click.option("--host", default="127.0.0.1", help="The address to listen at; others need --callers.")
@click.option("--port", type=PORT, default=8000, help="The port to listen at; 0 takes any that is free.")
@click.option(
    "--callers", "callers_file", type=ANY_PATH, help=f"A JSON file of who may call; by default {KEYS_VARIABLE}."
)
@click.option("--deadline", type=SECONDS, default=120.0, help="How many seconds a call may take.")
@click.option("--max-body", type=click.IntRange(1), default=1_000_000, help="How many bytes a request may bring.")
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
        key = new_key()
        try:
            entry = CallerEntry(name=name, sha256=hash_of(key), requests_per_minute=60)
        except ValidationError:
            raise ConfigError(f"--new-key {name!r}: a name has 1 to 100 letters, digits and . @ _ -.") from None
        click.echo(
            f"The key, for {name} alone; it is shown once, and kept nowhere:\n{key}\nThe line for the file of callers:"
        )
        click.echo(entry.model_dump_json(exclude_none=True))
        return
    if not targets:
        raise click.UsageError("Name a module, or a function: simplellmfunc serve MODULE[:NAME]")
    callers = Callers.load(callers_file)
    functions = functions_of(targets, (*FUNCTIONS, *CHATS))

    def announce(address: str) -> None:
        who = f"{counted(len(callers), 'caller')} with keys" if callers else "this machine only, no keys"
        click.echo(f"Offering {', '.join(functions)} at {address} ({who}; {address}/openapi.json); Ctrl-C ends it.")

    title = split_target(targets[0])[0]
    # What stops services sends SIGTERM, which ends a program at once; the server ends as at Ctrl-C instead.
    signal.signal(signal.SIGTERM, lambda *_: signal.raise_signal(signal.SIGINT))  # trick: no plainer way on Windows
    asyncio.run(serve_functions(functions, callers=callers, title=title, announce=announce, **options))


@click.group(short_help="Offer functions to other programs.")
def mcp() -> None:
    """Model Context Protocol: offer functions to other programs."""


@mcp.command(name="serve", short_help="Offer functions as MCP tools.")
@click.argument("targets", nargs=-1, required=True, metavar="MODULE[:NAME]...", shell_complete=complete_target)
@click.option("--http", is_flag=True, help="Serve over streamable HTTP on this machine instead of stdin and stdout.")
@click.option("--host", help="The address of this machine to listen at, with --http; by default 127.0.0.1.")
@click.option(
    "--port", type=PORT, help="The port to listen at, with --http; by default 8000, and 0 takes any that is free."
)
def serve_mcp_command(targets: tuple[str, ...], http: bool, host: str | None, port: int | None) -> None:
    """Offer the functions under @llm_function in MODULE, or only those named, as MCP tools.

    \b
    simplellmfunc mcp serve shop
    simplellmfunc mcp serve shop:grade summarise
    simplellmfunc mcp serve shop:grade other.module --http --port 8000

    A module is given by name or by path. Names after MODULE:NAME are further functions of the same module.
    """  # noqa: D301 - click reads the character itself
    if not http and (host is not None or port is not None):
        raise click.UsageError("--host and --port go with --http.")
    with ExitStack() as stack:
        # Before a module is loaded: one that prints must not break the protocol.
        streams = None if http else stack.enter_context(protocol_streams())
        functions = functions_of(targets)
        require_mcp()  # takes a second, so not on the event loop
        name = Path(split_target(targets[0])[0]).name.removesuffix(".py")  # not the whole path
        if streams is None:

            def announce(address: str) -> None:
                click.echo(f"Offering {', '.join(functions)} at {address}; Ctrl-C ends it.")

            place: dict[str, Any] = {"host": host or "127.0.0.1", "port": 8000 if port is None else port}
            asyncio.run(serve_http(functions, name=name, announce=announce, **place))
            return
        if os.isatty(streams[0]):
            click.echo(f"Offering {', '.join(functions)} over stdin and stdout; Ctrl-C ends it.", err=True)
        asyncio.run(serve_stdio(functions, *streams, name=name))


def functions_of(targets: Sequence[str], kinds: tuple[type, ...] = FUNCTIONS) -> dict[str, Any]:
    """Return the decorated functions that the targets name, by name.

    Args:
        targets: ``module`` for all of its functions, ``module:name`` for one; a later word without a colon is another
            name in that module.
        kinds: classes of functions that may be named.

    Raises:
        ConfigError: a module or function is missing, there is nothing to offer, or two functions have one name.
    """
    found: dict[str, Any] = {}
    module_name = ""  # the module of names without a colon; empty where these are modules
    for target in targets:
        module, name = split_target(target)
        if name:
            module_name = module
        elif module_name:
            module, name = module_name, module
        for each, function in decorated_functions(load_module(module), [name] if name else [], kinds).items():
            if found.setdefault(each, function) is not function:
                raise ConfigError(f"two of the functions are called {each!r}. Rename one, or serve them apart.")
    return found
