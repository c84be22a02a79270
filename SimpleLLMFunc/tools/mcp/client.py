"""The tools of a running MCP server, as our Tools: `tools_from_mcp`."""

from __future__ import annotations

import asyncio
import math
import os
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from typing import Any, Final, TextIO, TypeAlias, TypeVar

from SimpleLLMFunc.errors import ConfigError, ToolFailed, UsageError, cut
from SimpleLLMFunc.logger import holds_little
from SimpleLLMFunc.runtime import run_sync, submit
from SimpleLLMFunc.tools.context import NotConfirmed
from SimpleLLMFunc.tools.mcp.connection import McpConnection
from SimpleLLMFunc.tools.mcp.messages import CallAsked, error_text, result_value
from SimpleLLMFunc.tools.mcp.server import McpServer, http_server, require_mcp, stdio_server
from SimpleLLMFunc.tools.running import in_thread, is_agreed
from SimpleLLMFunc.tools.tool import Tool
from SimpleLLMFunc.type import without_surrogates
from SimpleLLMFunc.utils import is_number

T = TypeVar("T")

Confirm: TypeAlias = bool | Callable[[str, dict[str, Any]], Any]

_MAX_DESCRIPTION_CHARS: Final = 4096


def tools_from_mcp(
    *,
    command: Sequence[str] | str | None = None,
    url: str | None = None,
    env: Mapping[str, str] | None = None,
    cwd: str | os.PathLike[str] | None = None,
    headers: Mapping[str, str] | None = None,
    only: Sequence[str] | None = None,
    prefix: str = "",
    timeout: float | None = 60.0,
    start_timeout: float = 30.0,
    confirm: Confirm = False,
    untrusted: bool = True,
    stderr: TextIO | None = None,
) -> McpTools:
    """Connect to an MCP server for the length of a block, and give its tools.

    ``async with tools_from_mcp(command=["python", "server.py"]) as tools:`` or the same with a plain ``with``;
    then ``toolkit=[*tools]``, in async and in sync functions. The tools work inside the block only.

    A server may ask back while one of its tools runs. Sampling is answered by the model of the function that called the
    tool, in its budget and its traces. Elicitation goes to its `toolkit_confirm`: ``(tool_name, form)`` with `message` and
    `requestedSchema` (or `url`), to be answered by True, False, or a dict of the fields. Where there is no function, or
    no `toolkit_confirm`, the server is told so.

    The list is read once: tools that the server adds, removes or describes differently later change nothing. What it
    says about its tools the model reads, so connect to servers you trust, and name the tools you want with `only`.

    Args:
        command: the program to start and its arguments; it is ended with the block.
        url: the address of a running server, instead: streamable HTTP, or SSE where it only speaks that.
        env: variables for the process, in addition to the few that it inherits (PATH, HOME and the like; no keys).
        cwd: the folder the process starts in.
        headers: sent with every request to `url`, such as ``{"Authorization": "Bearer …"}``.
        only: the tools wanted, by the server's names; None for all.
        prefix: put before each name, to keep two servers apart.
        timeout: seconds one call may take, None for no limit; while the server waits for a person they do not count.
        start_timeout: seconds until the server must have told its tools.
        confirm: True has `toolkit_confirm` asked before every call; a callable ``(tool_name, arguments) -> bool``,
            sync or async, is asked instead of it, also where the server asks a person (elicitation).
        untrusted: results come from outside and enter in a delimited block; False for a server of your own.
        stderr: where the process's stderr goes, an open file; None keeps its end, for the text of errors.

    Raises:
        ConfigError: neither or both of `command` and `url`, a value that cannot be, or the extra is missing; when the
            block is entered also: the program cannot be started, or a tool in `only` is not there.
        ConnectionFailed: on entering: refused, ended, no MCP server, or no answer in time.
        ToolDefinitionError: on entering: a tool's schema cannot be used; leave it out with `only`.
    """
    if (command is None) == (url is None):
        raise ConfigError('tools_from_mcp takes either command=[program, argument, …] or url="http://…".')
    given = {"env": env, "cwd": cwd, "stderr": stderr} if url is not None else {"headers": headers}
    if useless := [name for name, value in given.items() if value is not None]:
        raise ConfigError(f"{useless[0]}= is for {'command' if url is not None else 'url'}= only.")
    if not isinstance(confirm, bool) and not callable(confirm):
        raise ConfigError(f"confirm= is True, False or a callable (tool_name, arguments) -> bool, not {confirm!r}.")
    if isinstance(only, str):
        raise ConfigError(f"only= is a list of names: only=[{only!r}].")
    limits: dict[str, Any] = {"timeout": 1 if timeout is None else timeout, "start_timeout": start_timeout}
    for name, seconds in limits.items():
        if not (is_number(seconds) and 0 < seconds < math.inf):
            raise ConfigError(f"{name}= is seconds above 0, not {seconds!r}.")
    server = stdio_server(command, env, cwd, stderr) if command is not None else http_server(str(url), headers)
    return McpTools(server, start_timeout, None if only is None else tuple(only), prefix, timeout, confirm, untrusted)


@dataclass(eq=False, repr=False)
class McpTools:
    """A connection to an MCP server that has yet to be opened; what `tools_from_mcp` returns.

    A context manager, ``async with`` and ``with``: it gives the list of tools, and closes the connection at the end
    of the block, also after an exception or a cancellation. It may be entered again when it has been left.
    """

    _server: McpServer
    _start_timeout: float
    _only: tuple[str, ...] | None
    _prefix: str
    _timeout: float | None
    _confirm: Confirm
    _untrusted: bool
    _connection: McpConnection | None = None

    async def __aenter__(self) -> list[Tool]:
        if self._connection is not None:
            raise UsageError(f"the connection to the MCP server {self._server.name!r} is open already.")
        await in_thread(require_mcp)
        connection = self._connection = McpConnection(self._server, self._start_timeout)
        try:
            # Checking the schemas of some hundred tools takes its time.
            return await in_thread(self._tools, await _elsewhere(submit(connection.open())), connection)
        except BaseException:
            await self._end()
            raise

    async def __aexit__(self, *error: object) -> None:
        await self._end()

    def __enter__(self) -> list[Tool]:
        return run_sync(self.__aenter__())

    def __exit__(self, *error: object) -> None:
        run_sync(self._end())

    def __repr__(self) -> str:
        return f"tools_from_mcp({self._server.name!r})"

    async def _end(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None and connection.is_of_this_process:
            # A cancellation ends our waiting, and not the closing.
            await _elsewhere(submit(connection.close()))

    def _tools(self, descriptions: list[dict[str, Any]], connection: McpConnection) -> list[Tool]:
        """Return the tools that are wanted, in the server's order."""
        only = self._only
        known = [str(each["name"]) for each in descriptions]
        if only is not None and (missing := [name for name in only if name not in known]):
            raise ConfigError(
                f"the MCP server {self._server.name!r} has no tool {cut(repr(missing[0]), 100)}. "
                f"Its tools are: {cut(', '.join(known), 1000) or 'none'}."
            )
        chosen = {each["name"]: each for each in descriptions if only is None or each["name"] in only}
        return [self._tool(each, connection) for each in chosen.values()]

    def _tool(self, description: Mapping[str, Any], connection: McpConnection) -> Tool:
        server_name = str(description["name"])
        name = without_surrogates(self._prefix + server_name)
        timeout, confirm = self._timeout, self._confirm

        async def run(**arguments: Any) -> Any:
            connection.check_process()
            if callable(confirm) and not await is_agreed(confirm, name, dict(arguments)):
                raise NotConfirmed(name)
            limit = asyncio.timeout(timeout)
            asked = CallAsked(name, confirm if callable(confirm) else None, limit)
            try:
                async with limit:
                    result = await asyncio.wrap_future(submit(connection.call(server_name, arguments, asked)))
            except TimeoutError:
                if not limit.expired():
                    raise
                raise ToolFailed(name, f"it took longer than {timeout:g} s and was given up") from None
            finally:
                asked.end()
            if result.get("isError"):
                raise ToolFailed(name, error_text(result))
            # Comparing a long text with its data, or looking at a large image, would hold up the loop.
            return result_value(result) if holds_little(result) else await in_thread(result_value, result)

        text = str(description.get("description") or description.get("title") or server_name)
        return Tool(
            func=run,
            name=name,
            description=cut(without_surrogates(text), _MAX_DESCRIPTION_CHARS),
            parameters=description.get("inputSchema") or {"type": "object"},
            # Where a callable is asked first, the limit must not run while a person thinks: `run` sets its own.
            timeout=None if callable(confirm) else timeout,
            confirm=confirm is True,
            untrusted=self._untrusted,
        )


async def _elsewhere(future: Future[T]) -> T:
    """Wait for what runs on the library's own loop, from any loop; it goes on if the waiting is cancelled."""
    return await asyncio.shield(asyncio.wrap_future(future))
