"""Where an MCP server is and how it is reached: a process over stdio, or an address over HTTP."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import re
import sys
from collections.abc import AsyncGenerator, Generator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass, field
from importlib import import_module
from pathlib import Path
from typing import Any, ClassVar, Final, TextIO, TypeAlias
from urllib.parse import parse_qsl, unquote, urlsplit

from SimpleLLMFunc.config import http_address
from SimpleLLMFunc.errors import ConfigError, cut
from SimpleLLMFunc.extras import load_extra
from SimpleLLMFunc.logger import HTTP_LOGGERS, escape_control, looks_secret, redact, redact_logs_of, remember_secret
from SimpleLLMFunc.runtime import THIS_MACHINE

Transport: TypeAlias = AbstractAsyncContextManager[Any]
"""Gives the two streams of messages that a session is made of, the one to read from first."""

_CONNECT_SECONDS: Final = 30.0
_STDERR_CHARS: Final = 1000
_STDERR_BYTES: Final = 8192
_CHATTY: Final = (
    *(f"mcp.{name}" for name in ("client.streamable_http", "client.sse", "client.stdio", "shared.session")),
    *HTTP_LOGGERS,
)
_SECRET_VARIABLE = re.compile(r"key|token|secret|passw|credential|auth", re.IGNORECASE)


def require_mcp() -> None:
    """Make sure that the extra is there.

    Raises:
        ConfigError: it is not installed.
    """
    # All of them now: importing takes a second, and must not hold up a loop later.
    for module in ("mcp", "mcp.client.stdio", "mcp.client.streamable_http", "mcp.client.sse"):
        load_extra(module, "mcp", purpose="MCP")
    # The package logs every line it cannot read with a traceback. Without a logging setup, that would go to stderr.
    for name in ("mcp", "client"):
        logger = logging.getLogger(name)
        if not any(isinstance(handler, logging.NullHandler) for handler in logger.handlers):
            logger.addHandler(logging.NullHandler())
    # They log addresses, headers and messages.
    redact_logs_of(*_CHATTY)


# --- a process -------------------------------------------------------------------------------------------


@dataclass(eq=False, repr=False)
class StdioServer:
    """A server that we start, and talk to over its stdin and stdout."""

    command: tuple[str, ...]
    env: dict[str, str]
    cwd: str | None
    stderr: TextIO | None
    _tail: bytearray = field(default_factory=bytearray)

    advice: ClassVar[str] = (
        "Run the command by hand: it must speak MCP over stdin and stdout. It sees only a few variables of the environment; "
        "give it others with env=."
    )

    @property
    def name(self) -> str:
        """What errors call it: the command, cut, without secrets."""
        return cut(escape_control(redact(" ".join(self.command))), 120)

    def transports(self) -> Sequence[Transport]:
        """Return the one way there is."""
        return (self._process(),)

    def last_words(self) -> str:
        """Return the end of what it wrote to stderr, redacted."""
        words = self._tail.decode("utf-8", "replace").split()
        if len(self._tail) == _STDERR_BYTES:
            del words[:1]  # cut in two: half a secret is not recognised
        return escape_control(redact(" ".join(words)))[-_STDERR_CHARS:]

    @asynccontextmanager
    async def _process(self) -> AsyncGenerator[Any, None]:
        from mcp.client.stdio import StdioServerParameters, stdio_client

        program, *arguments = self.command
        parameters = StdioServerParameters(command=program, args=arguments, env=self.env, cwd=self.cwd)
        try:
            with self._errlog() as errlog:
                async with stdio_client(parameters, errlog=errlog) as streams:
                    yield streams
        except (FileNotFoundError, NotADirectoryError, PermissionError) as error:
            raise self._cannot_start(error) from error

    def _cannot_start(self, error: OSError) -> ConfigError:
        if self.cwd is not None and not os.path.isdir(self.cwd):  # noqa: PTH112 - a str, as the process is given it
            return ConfigError(f"MCP server {self.name!r}: there is no folder {self.cwd!r}. Correct cwd=.")
        return ConfigError(
            f"MCP server {self.name!r}: the program {self.command[0]!r} cannot be started ({error.strerror}). "
            "Install it, or give its whole path in command=."
        )

    @contextlib.contextmanager
    def _errlog(self) -> Generator[TextIO, None, None]:
        """Yield where its stderr goes: where the user wants it, else to a pipe of which we keep the end."""
        if self.stderr is not None:
            yield self.stderr
            return
        if sys.platform == "win32":  # its loop cannot wait for a pipe
            with Path(os.devnull).open("w", encoding="utf-8") as nowhere:
                yield nowhere
            return
        loop = asyncio.get_running_loop()
        reading, writing = os.pipe()
        os.set_blocking(reading, False)
        loop.add_reader(reading, self._read, reading, loop)
        try:
            # Ours is closed too only at the end: the process has its own copy, and the end of the pipe tells us nothing.
            with os.fdopen(writing, "w", encoding="utf-8") as pipe:
                yield pipe
        finally:
            loop.remove_reader(reading)
            self._read(reading, loop)
            os.close(reading)

    def _read(self, reading: int, loop: asyncio.AbstractEventLoop) -> None:
        try:
            while data := os.read(reading, 65536):
                self._tail += data
                del self._tail[:-_STDERR_BYTES]
            loop.remove_reader(reading)
        except BlockingIOError:
            return


def stdio_server(
    command: Sequence[str] | str,
    env: Mapping[str, str] | None,
    cwd: str | os.PathLike[str] | None,
    stderr: TextIO | None,
) -> StdioServer:
    """Return the server that a command starts.

    Raises:
        ConfigError: no command, or one line of text instead of its parts.
    """
    parts = (command,) if isinstance(command, str) else tuple(command)
    words = [str(part) for part in parts]
    if not words or not words[0]:
        raise ConfigError('command= is the program and its arguments, such as ["python", "server.py"].')
    if isinstance(command, str) and len(command.split()) > 1:
        raise ConfigError(
            f"command= is a list of the program and its arguments: {command.split()!r}, not one line of text."
        )
    if any("\0" in word for word in words):
        raise ConfigError("command= holds a NUL character, which no process can be given.")
    variables: dict[str, Any] = dict(env or {})
    for name, value in variables.items():
        if not isinstance(value, str):
            raise ConfigError(f"env= maps names to texts; {name!r} is a {type(value).__name__}.")
        if _SECRET_VARIABLE.search(name):
            remember_secret(value)  # the server may repeat it in an error
    return StdioServer(tuple(words), variables, None if cwd is None else os.fspath(cwd), stderr)


# --- an address ------------------------------------------------------------------------------------------


@dataclass(eq=False, repr=False)
class HttpServer:
    """A server that runs already, at an address."""

    url: str
    headers: dict[str, str]

    advice: ClassVar[str] = "Check that the server runs, and the address: it often ends in /mcp or /sse."

    @property
    def name(self) -> str:
        """The address without user, password and query."""
        parts = urlsplit(self.url)
        return cut(f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}{parts.path}", 200)

    def transports(self) -> Sequence[Transport]:
        """Return streamable HTTP, and for a server that only speaks the older way, SSE."""
        return (self._streamable(), self._sse())

    def last_words(self) -> str:
        """Return nothing: all it says, it says in the protocol."""
        return ""

    @asynccontextmanager
    async def _streamable(self) -> AsyncGenerator[Any, None]:
        from mcp.client.streamable_http import streamable_http_client

        async with self._client() as client, streamable_http_client(self.url, http_client=client) as streams:
            yield streams

    @asynccontextmanager
    async def _sse(self) -> AsyncGenerator[Any, None]:
        from mcp.client.sse import sse_client

        async with sse_client(self.url, headers=self.headers, httpx_client_factory=self._client) as streams:
            yield streams

    def _client(self, headers: Any = None, timeout: Any = None, auth: Any = None) -> Any:
        """Return the HTTP client; the arguments are those that the SSE transport gives."""
        del headers, timeout
        try:
            httpx = import_module("httpx2")  # mcp 2 sits on it, mcp 1 on httpx; the two look alike
            import_module("mcp_types")
        except ImportError:
            httpx = import_module("httpx")
        return httpx.AsyncClient(
            headers=self.headers,
            auth=auth,
            # Answers may take long, and streams are silent for longer: the call has a timeout, its HTTP connection has none.
            timeout=httpx.Timeout(_CONNECT_SECONDS, read=None),
            # No proxy reaches this machine's own loopback.
            trust_env=urlsplit(self.url).hostname not in THIS_MACHINE,
        )


McpServer: TypeAlias = StdioServer | HttpServer


def http_server(url: str, headers: Mapping[str, str] | None) -> HttpServer:
    """Return the server at an address.

    Raises:
        ConfigError: no http address.
    """
    parts = http_address(url)
    if parts is None:
        raise ConfigError(f"url= is the http address of an MCP server, not {cut(redact(repr(url)), 100)}.")
    given: dict[str, Any] = dict(headers or {})
    for name, value in given.items():
        if not isinstance(value, str) or not value.isascii() or "\n" in value or "\r" in value:
            raise ConfigError(f"headers= maps names to texts of one line; that of {name!r} is not.")
        remember_secret(value)
        remember_secret(value.rpartition(" ")[2])
    for name, value in (("password", parts.password or ""), ("user", parts.username or ""), *parse_qsl(parts.query)):
        if looks_secret(name, unquote(value)):
            remember_secret(unquote(value))
    return HttpServer(url, given)
