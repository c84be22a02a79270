"""`simplellmfunc mcp serve`: the decorated functions of a module as MCP tools."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import click

from SimpleLLMFunc.cli.load import complete_target, load_module, split_target
from SimpleLLMFunc.cli.options import PORT
from SimpleLLMFunc.errors import ConfigError
from SimpleLLMFunc.llm_decorator.decorated import FUNCTIONS
from SimpleLLMFunc.serve import decorated_functions, protocol_streams, serve_http, serve_stdio
from SimpleLLMFunc.tools.mcp import require_mcp


@click.group(short_help="Offer functions to other programs.")
def mcp() -> None:
    """Model Context Protocol: offer functions to other programs."""


@mcp.command(short_help="Offer functions as MCP tools.")
@click.argument("targets", nargs=-1, required=True, metavar="MODULE[:NAME]...", shell_complete=complete_target)
@click.option("--http", is_flag=True, help="Serve over streamable HTTP on this machine instead of stdin and stdout.")
@click.option("--host", help="The address of this machine to listen at, with --http; by default 127.0.0.1.")
@click.option(
    "--port", type=PORT, help="The port to listen at, with --http; by default 8000, and 0 takes any that is free."
)
def serve(targets: tuple[str, ...], http: bool, host: str | None, port: int | None) -> None:
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
