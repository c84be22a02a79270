"""Decorated functions offered as MCP tools, over stdio or over streamable HTTP on this machine."""

from __future__ import annotations

import asyncio
import contextlib
import os
import sys
import threading
from collections.abc import AsyncIterator, Callable, Generator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from SimpleLLMFunc._version import __version__
from SimpleLLMFunc.errors import ConfigError
from SimpleLLMFunc.logger import push_debug
from SimpleLLMFunc.runtime import THIS_MACHINE, address_of, importing, in_thread, listening, serve_until_cancelled
from SimpleLLMFunc.serve.offer import Decorated, Offer, OfferFailed, decorated_functions, offers
from SimpleLLMFunc.tools.mcp import require_mcp

PATH: Final = "/mcp"
METHODS: Final = ("POST", "DELETE")
"""Of the endpoint on the HTTP server. GET would open a stream of the server's own messages; this server sends none."""

_GRACE_SECONDS: Final = 1


def serve_mcp(
    functions: Mapping[str, Decorated] | Any,
    *,
    http: bool = False,
    host: str = "127.0.0.1",
    port: int = 8000,
    name: str = "SimpleLLMFunc",
) -> None:
    """Offer decorated functions as MCP tools until stdin ends, or until Ctrl-C.

    Args:
        functions: by name, or a module, which offers all that it defines.
        http: serve streamable HTTP at ``http://host:port/mcp`` instead of stdin and stdout.
        host: an address of this machine that other machines do not reach, since there is no login.
        port: 0 for any free port.
        name: of the server.

    Raises:
        ConfigError: there is nothing to offer, the address is not of this machine, the port is taken, or the extra is
            missing.
    """
    chosen = functions if isinstance(functions, Mapping) else decorated_functions(functions)
    if http:
        asyncio.run(serve_http(chosen, host=host, port=port, name=name))
        return
    with protocol_streams() as (reading, writing):
        asyncio.run(serve_stdio(chosen, reading, writing, name=name))


async def serve_stdio(
    functions: Mapping[str, Decorated], reading: int, writing: int, *, name: str = "SimpleLLMFunc"
) -> None:
    """Serve one client over two file descriptors until the first of them ends.

    Raises:
        ConfigError: the extra is missing.
    """
    server = await importing(_server, functions, name)
    lines = Lines(reading)
    serving = asyncio.ensure_future(_converse(server, lines, Printer(writing)))
    try:
        await asyncio.wait({serving, lines.ended}, return_when=asyncio.FIRST_COMPLETED)
        has_left = lines.ended.done()
    finally:
        # Not cancelled, since the mcp package would fail inside its current step: for it, stdin has ended.
        lines.end()
        await asyncio.wait({serving}, timeout=_GRACE_SECONDS)
        serving.cancel()
        await asyncio.wait({serving})
    if not serving.cancelled() and (error := serving.exception()):
        if not has_left:
            raise error
        # The client has left during a request: an end, not a failure.
        push_debug(f"the MCP client has left: {error!r}")


async def _converse(server: Any, lines: Any, printer: Any) -> None:
    from mcp.server.stdio import stdio_server

    # Lines and Printer have the methods that the package calls on its files.
    async with stdio_server(stdin=lines, stdout=printer) as streams:
        await server.run(*streams, server.create_initialization_options())


async def serve_http(
    functions: Mapping[str, Decorated],
    *,
    host: str = "127.0.0.1",
    port: int = 0,
    name: str = "SimpleLLMFunc",
    announce: Callable[[str], object] | None = None,
) -> None:
    """Serve any number of clients over streamable HTTP until cancelled, or until Ctrl-C.

    Args:
        functions: by name.
        host: an address of this machine.
        port: 0 for any free port.
        name: of the server.
        announce: called with the address as soon as clients can connect.

    Raises:
        ConfigError: the address is not of this machine, the port is taken, or the extra is missing.
    """
    # In a thread: the import takes seconds.
    manager = await importing(http_sessions, functions, name)
    from starlette.applications import Starlette
    from starlette.routing import Route

    async def endpoint(_request: Any) -> Any:
        return manager.handle_request

    application = Starlette(routes=[Route(PATH, endpoint, methods=METHODS)])
    others = "there is no login, and every call costs. For others, put a server with a login in front."
    with listening(host, port, others=others) as listener:
        async with manager.run():
            if announce is not None:
                announce(f"{address_of(host, listener)}{PATH}")
            await serve_until_cancelled(application, listener, lifespan="off")


def http_sessions(functions: Mapping[str, Decorated], name: str, *, is_guarded: bool = False) -> Any:
    """Return the `mcp` package's session manager: `handle_request` answers inside ``async with manager.run():``.

    Args:
        functions: by name.
        name: of the server.
        is_guarded: the application in front checks the callers; each request is then a session, in the context of its
            caller. Else web pages under a foreign host name (DNS rebinding) are refused.

    Raises:
        ConfigError: the extra is missing.
    """
    server = _server(functions, name)
    from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
    from mcp.server.transport_security import TransportSecuritySettings

    hosts = [f"[{host}]:*" if ":" in host else f"{host}:*" for host in THIS_MACHINE]
    security = TransportSecuritySettings(
        enable_dns_rebinding_protection=not is_guarded,
        allowed_hosts=hosts,
        allowed_origins=[f"http://{host}" for host in hosts],
    )
    # Plain JSON responses: a tool gives one result, so there is nothing to stream.
    return StreamableHTTPSessionManager(
        app=server, json_response=True, stateless=is_guarded, security_settings=security
    )


# --- the protocol ----------------------------------------------------------------------------------------


def _server(functions: Mapping[str, Decorated], name: str) -> Any:
    """Return a server of the `mcp` package that offers the functions."""
    require_mcp()
    from mcp import types
    from mcp.server.lowlevel import Server

    known = offers(functions)
    listing = types.ListToolsResult.model_validate({"tools": [_description(offer) for offer in known.values()]})

    async def listed(_context: Any, _parameters: Any) -> Any:
        return listing

    async def called(_context: Any, parameters: Any) -> Any:
        return types.CallToolResult.model_validate(await _answer(known, parameters.name, parameters.arguments))

    make: Any = Server
    if hasattr(Server, "add_request_handler"):  # mcp 2
        return make(name, version=__version__, on_list_tools=listed, on_call_tool=called)
    server = make(name, version=__version__)
    envelope: Any = types.ServerResult

    async def handle_list(_request: Any) -> Any:
        return envelope(listing)

    async def handle_call(request: Any) -> Any:
        return envelope(await called(None, request.params))

    # Without the package's decorators, which check the arguments again by other rules.
    server.request_handlers[types.ListToolsRequest] = handle_list
    server.request_handlers[types.CallToolRequest] = handle_call
    return server


def _description(offer: Offer) -> dict[str, Any]:
    described = {"name": offer.name, "description": offer.tool.description, "inputSchema": offer.tool.parameters}
    return described if offer.output_schema is None else {**described, "outputSchema": offer.output_schema}


async def _answer(known: Mapping[str, Offer], name: str, arguments: Mapping[str, Any] | None) -> dict[str, Any]:
    offer = known.get(name)
    if offer is None:
        return _failed(f"There is no tool {name!r}. The tools are: {', '.join(known)}.")
    try:
        text, structured = await offer.answer(arguments)
    except OfferFailed as failure:
        return _failed(str(failure))
    content = [{"type": "text", "text": text}] if text else []
    return {"content": content} if structured is None else {"content": content, "structuredContent": structured}


def _failed(text: str) -> dict[str, Any]:
    return {"content": [{"type": "text", "text": text}], "isError": True}


# --- stdin and stdout, reserved for a protocol -----------------------------------------------------------


@contextlib.contextmanager
def protocol_streams() -> Generator[tuple[int, int], None, None]:
    """Reserve stdin and stdout for the protocol, and yield them as file descriptors.

    Inside the block every print goes to stderr, and stdin is empty for the loaded module, for tools and for the processes
    that they start.

    Raises:
        ConfigError: one of them is closed.
    """
    if sys.stdin is None or sys.stdout is None:
        raise ConfigError("the protocol runs over stdin and stdout, and one of them is closed.")
    sys.stdout.flush()
    reading, writing, nothing = os.dup(0), os.dup(1), os.open(os.devnull, os.O_RDWR)
    try:
        os.fstat(2)
        printed = 2
    except OSError:  # there is no stderr
        printed = nothing
    _use(nothing, printed)
    try:
        yield reading, writing
    finally:
        # `reading` stays open: a thread may still read from it, and no other file may get its number.
        sys.stdout.flush()
        _use(reading, writing)
        os.close(writing)
        os.close(nothing)


def _use(stdin: int, stdout: int) -> None:
    for number, file in enumerate((stdin, stdout)):
        os.dup2(file, number)  # trick: a process that a tool starts prints to descriptor 1, not to sys.stdout


class Lines:
    """An async iterator over the lines of a file descriptor; make it inside the event loop that reads them.

    A daemon thread reads: unlike a thread of a pool, it blocks neither a cancellation nor the end of the process.

    Attributes:
        ended: done when the reader has seen the end.
    """

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        self._loop = asyncio.get_running_loop()
        self.ended: asyncio.Future[None] = self._loop.create_future()
        self._lines: asyncio.Queue[str | None] = asyncio.Queue()
        threading.Thread(target=self._read, name="SimpleLLMFunc-stdin", daemon=True).start()

    def __aiter__(self) -> AsyncIterator[str]:
        return self

    async def __anext__(self) -> str:
        line = await self._lines.get()
        if line is None:
            if not self.ended.done():
                self.ended.set_result(None)
            raise StopAsyncIteration
        return line

    def end(self) -> None:
        """End the iteration; later lines are not read."""
        self._lines.put_nowait(None)

    def _read(self) -> None:
        # RuntimeError: the loop is closed.
        with contextlib.suppress(OSError, RuntimeError), open(self._descriptor, "rb", closefd=False) as file:
            for line in file:
                self._loop.call_soon_threadsafe(self._lines.put_nowait, line.decode("utf-8", "replace"))
            self._loop.call_soon_threadsafe(self._lines.put_nowait, None)


@dataclass(frozen=True, slots=True)
class Printer:
    """Writes texts to a file descriptor in a thread; a reader that has left is not an error."""

    descriptor: int

    async def write(self, text: str) -> None:
        """Write all of the text."""
        await in_thread(self._write, text.encode("utf-8", "replace"))

    async def flush(self) -> None:
        """Do nothing: `write` does not buffer."""

    def _write(self, data: bytes) -> None:
        left = memoryview(data)
        with contextlib.suppress(BrokenPipeError):  # stdin will end too, which stops the server
            while left:
                left = left[os.write(self.descriptor, left) :]
