"""One session with one MCP server, kept by a task on the library's own event loop.

On that loop, because no caller blocks it: a sync function that is called inside a running loop blocks that one, and its
tools could then never be answered by a session that lives there. In one task from beginning to end, because the
transports of the `mcp` package must be closed by the task that opened them.
"""

from __future__ import annotations

import asyncio
import math
import os
from contextlib import suppress
from typing import Any, Final

from SimpleLLMFunc.errors import ConfigError, ConnectionFailed, SimpleLLMFuncError, ToolFailed, UsageError, cut
from SimpleLLMFunc.logger import escape_control, push_debug, push_warning, redact
from SimpleLLMFunc.tools.mcp.messages import CallAsked, RefusedError
from SimpleLLMFunc.tools.mcp.server import McpServer, Transport

MAX_TOOLS: Final = 1000
"""Tools that one server may have; a list that never ends is cut off here."""

_CLOSE_SECONDS: Final = 5.0
_MAX_PAGES: Final = 100
_MAX_FOREIGN_LINES: Final = 20
_CONNECTION_CLOSED: Final = -32000
_UNSUPPORTED_VERSION: Final = -32022
_REFUSED: Final = -1
"""Source: https://modelcontextprotocol.io/specification/2025-11-25/client/sampling (User rejected sampling request)"""
_MAX_REASON_CHARS: Final = 1000
_NOT_SENT: Final = frozenset({"BrokenResourceError", "ClosedResourceError"})
_UNKNOWN_SESSION: Final = "Session terminated"
"""What the package says where a server over HTTP has started again, and does not know the session of the call."""


class _NotSent(Exception):
    """The server did not take the call: another server process may be asked."""


class McpConnection:
    """A connection: opened once, called from anywhere, closed once.

    Args:
        server: where it is.
        start_timeout: seconds until its tools must be known.
    """

    def __init__(self, server: McpServer, start_timeout: float) -> None:
        self.server = server
        self._start_timeout = start_timeout
        self._pid = os.getpid()
        self._keeper: asyncio.Task[None] | None = None
        self._listed: asyncio.Future[list[dict[str, Any]]]
        self._gone: asyncio.Future[None]
        self._session: Any = None
        self._reading: Any = None
        self._scope: Any = None  # of what can be given up at any time, unlike the closing of a transport
        self._under_way: list[CallAsked] = []
        self._reconnecting = asyncio.Lock()
        self._is_closed = False
        self._reason = ""
        self._foreign_lines = 0

    # --- on the library's own loop ---

    async def open(self) -> list[dict[str, Any]]:
        """Connect, and return the server's tools as the protocol describes them; again, where the server has gone.

        Raises:
            ConnectionFailed: it cannot be reached, is no MCP server, or does not answer in time.
            ConfigError: the command cannot be started.
        """
        loop = asyncio.get_running_loop()
        self._listed, self._gone = loop.create_future(), loop.create_future()
        self._keeper = loop.create_task(self._live(loop.time() + self._start_timeout))
        return await asyncio.shield(self._listed)

    async def close(self) -> None:
        """End the session and wait until nothing of it is left; never fails, may be called twice."""
        self._is_closed = True
        if self._scope is not None:
            self._scope.cancel()
        if self._keeper is not None:
            await asyncio.wait({self._keeper})

    async def call(self, name: str, arguments: dict[str, Any], asked: CallAsked) -> dict[str, Any]:
        """Call a tool and return the result as it was on the wire.

        Args:
            name: of the tool, as the server knows it.
            arguments: go to the server as they are.
            asked: answers what the server asks meanwhile.

        Raises:
            UsageError: the connection was closed, or belongs to the parent process.
            ToolFailed: the server is gone, or refuses the call.
        """
        self._under_way.append(asked)
        try:
            for is_last in (False, True):
                session = self._session
                try:
                    return await self._call(name, arguments)
                except _NotSent:
                    if is_last or not await self._is_back(session):
                        break
            raise self._lost(name)
        finally:
            self._under_way.remove(asked)

    async def _asked_by_server(self, method: str, params: Any) -> Any:
        """Answer a request of the server, on behalf of the call in which it asks."""
        from mcp import types

        answer = types.CreateMessageResult if method == "sampling" else types.ElicitResult
        try:
            return answer.model_validate(await self._asking_call(method).answer(method, _as_data(params)))
        except RefusedError as refusal:
            return types.ErrorData(code=_REFUSED, message=str(refusal))

    def _asking_call(self, method: str) -> CallAsked:
        """Return the latest call; the protocol does not say which of several has made the server ask.

        Raises:
            RefusedError: no call is under way, or it matters which.
        """
        if not self._under_way:
            raise RefusedError("a server may only ask while one of its tools runs")
        latest = self._under_way[-1]
        for other in self._under_way:
            same = other.model is latest.model if method == "sampling" else other.confirm == latest.confirm
            if not same:
                raise RefusedError(
                    "functions with different models or users call tools of this server at the same time"
                )
        return latest

    async def _is_back(self, lost: Any) -> bool:
        """Connect again where `lost` is still the session, once for all calls that wait; return whether it answers."""
        async with self._reconnecting:
            if self._is_closed or self._keeper is None:
                return False
            if self._session is lost:
                if self._scope is not None:
                    self._scope.cancel()
                await asyncio.wait({self._keeper})
                push_warning(f"MCP server {self.server.name} is lost, and connected again")
                with suppress(SimpleLLMFuncError):
                    await self.open()
            return self._session is not None

    def _is_cut(self) -> bool:
        """Whether nothing can come from the server any more; the session itself does not tell."""
        statistics = getattr(self._reading, "statistics", None)
        return statistics is not None and not statistics().open_send_streams

    async def _call(self, name: str, arguments: dict[str, Any]) -> dict[str, Any]:
        if self._session is None or self._is_cut():
            raise _NotSent
        request = asyncio.ensure_future(_call_tool(self._session, name, arguments))
        # If the caller has gone, its exception is of no interest.
        request.add_done_callback(lambda done: done.cancelled() or done.exception())
        either: set[asyncio.Future[Any]] = {request, self._gone}
        failure: SimpleLLMFuncError | None = None
        was_not_sent = False
        try:
            await asyncio.wait(either, return_when=asyncio.FIRST_COMPLETED)
            if request.done():
                return request.result()
        except Exception as error:  # noqa: BLE001 - a server can make the package raise anything
            was_not_sent = type(error).__name__ in _NOT_SENT or _told(error) == _UNKNOWN_SESSION
            if not was_not_sent and not _says_closed(error) and not await self._has_gone():
                failure = ToolFailed(name, cut(_told(error)))
        finally:
            request.cancel()
        if was_not_sent:
            raise _NotSent
        if failure is None and self._scope is not None and self._session is not None:
            self._scope.cancel()  # the next call connects again
        # Not inside the block above: the package's error would stay as the context, secrets and all.
        raise failure or self._lost(name)

    # --- from any thread ---

    def check_process(self) -> None:
        """Refuse in a forked child, which has the object but neither loop nor session.

        Raises:
            UsageError: this is another process.
        """
        if not self.is_of_this_process:
            raise UsageError(
                f"the connection to the MCP server {self.server.name!r} belongs to the parent process. "
                "Open one in this process with tools_from_mcp."
            )

    @property
    def is_of_this_process(self) -> bool:
        """False in a forked child."""
        return os.getpid() == self._pid

    # --- the task that keeps it ---

    async def _live(self, deadline: float) -> None:
        problem: Exception | None = None
        reason = ""
        try:
            for transport in self.server.transports():
                found = await self._attempt(transport, deadline)
                # What the first way said comes first: it is the one that a server of today speaks.
                if found is not None and (problem is None or self._listed.done()):
                    problem, reason = found, self._reason
                elif found is not None:
                    reason += f"; the older way, SSE: {self._reason}"
                over = asyncio.get_running_loop().time() >= deadline
                is_final = isinstance(problem, ConfigError) or type(problem).__name__ == "ConnectError"
                if self._listed.done() or self._is_closed or over or is_final:
                    break
        finally:
            self._session = self._scope = None
            self._reason = reason
            self._gone.set_result(None)
            if not self._listed.done():
                self._listed.set_exception(self._failure(problem))
                self._listed.exception()  # the caller may have gone
            elif problem is not None:
                push_debug(lambda: f"MCP server {self.server.name}: {self._reason}")

    async def _attempt(self, transport: Transport, deadline: float) -> Exception | None:
        """Live on this transport as long as it goes well; return what went wrong, None if we closed it."""
        import anyio

        self._reason = ""
        problem: Exception | None = None
        try:
            # Around the transport it strikes only until that is there, and if its closing takes for ever.
            with anyio.CancelScope(deadline=deadline) as entering:
                self._scope = entering
                if self._is_closed:
                    entering.cancel()
                async with transport as streams:
                    entering.deadline = math.inf
                    try:
                        problem = await self._converse(streams, deadline)
                    finally:
                        entering.deadline = anyio.current_time() + _CLOSE_SECONDS
        except Exception as error:  # noqa: BLE001 - a server can make the package raise anything
            problem = _first(error)
        else:
            if entering.cancelled_caught and not self._is_closed:
                problem = TimeoutError()
        self._session = None
        if problem is not None and not self._reason:
            self._reason = "the server closed it" if _says_closed(problem) else _told(problem)
        return problem

    async def _converse(self, streams: Any, deadline: float) -> Exception | None:
        import anyio
        from mcp import ClientSession

        problem: Exception | None = None
        self._reading = streams[0]
        async with ClientSession(
            streams[0],
            streams[1],
            sampling_callback=lambda context, params: self._asked_by_server("sampling", params),  # noqa: ARG005 - the name is of the protocol
            elicitation_callback=lambda context, params: self._asked_by_server("elicitation", params),  # noqa: ARG005 - the same
            message_handler=self._hear,
        ) as session:
            with anyio.CancelScope(deadline=deadline) as scope:
                self._scope = scope
                if self._is_closed:
                    scope.cancel()
                try:
                    tools = await _greet(session)
                except Exception as error:  # noqa: BLE001 - it becomes the reason
                    problem = _first(error)
                else:
                    scope.deadline = math.inf
                    self._session = session
                    self._listed.set_result(tools)
                    await anyio.sleep_forever()
            if not self._listed.done() and scope.cancelled_caught and not self._is_closed:
                problem = ConnectionError(self._reason) if self._reason else TimeoutError()
            self._session = None
        return problem

    async def _hear(self, message: Any) -> None:
        """Take what the session has no use for: notifications, and what was no message at all."""
        if not isinstance(message, Exception):
            return
        self._foreign_lines += 1
        if self._foreign_lines == _MAX_FOREIGN_LINES and self._session is None and self._scope is not None:
            self._reason = "it writes something else than MCP messages"
            self._scope.cancel()

    async def _has_gone(self) -> bool:
        """Whether the server is gone; gives the news a moment to arrive, for the call may fail before the transport does."""
        await asyncio.wait({self._gone}, timeout=0.1)
        return self._gone.done()

    # --- what is said when it fails ---

    def _lost(self, tool: str) -> SimpleLLMFuncError:
        if self._is_closed or self._keeper is None:
            return UsageError(
                f"the connection to the MCP server {self.server.name!r} is closed. "
                f"Call {tool!r} inside the `with tools_from_mcp(...)` block."
            )
        words = self.server.last_words()
        # To the log only: a model has no use for it.
        push_warning(lambda: f"MCP server {self.server.name} is lost: {self._reason}; it wrote to stderr: {words}")
        reason = f" ({self._reason})" if self._reason else ""
        return ToolFailed(tool, f"the connection to the MCP server {self.server.name!r} is lost{reason}")

    def _failure(self, problem: Exception | None) -> SimpleLLMFuncError:
        if isinstance(problem, ConfigError):
            return problem
        reason = self._reason or "it was closed while it started"
        if isinstance(problem, TimeoutError):
            reason = f"no answer within {self._start_timeout:g} s"
        words = self.server.last_words()
        if words:
            reason += f"; it wrote to stderr: {words}"
        return ConnectionFailed(f"MCP server {self.server.name}", reason=reason, advice=self.server.advice)


async def _greet(session: Any) -> list[dict[str, Any]]:
    """Shake hands, and return the server's tools."""
    from mcp import types

    try:
        await session.initialize()
    except Exception as error:
        code = getattr(getattr(error, "error", None), "code", None)
        if code != _UNSUPPORTED_VERSION or not hasattr(session, "discover"):
            raise
        await session.discover()  # a server that only speaks the protocol of 2026 and later
    tools: list[dict[str, Any]] = []
    cursor: str | None = None
    for _ in range(_MAX_PAGES):
        page = _as_data(
            await session.list_tools(params=types.PaginatedRequestParams(cursor=cursor) if cursor else None)
        )
        tools += page.get("tools") or []
        cursor = page.get("nextCursor")
        if not cursor or len(tools) >= MAX_TOOLS:
            break
    return tools[:MAX_TOOLS]


async def _call_tool(session: Any, name: str, arguments: dict[str, Any]) -> dict[str, Any]:
    # Not `session.call_tool`: that validates the result against a schema from the server, in an engine that a hostile
    # pattern keeps busy for ever. Nothing here relies on that schema.
    from mcp import types

    request: Any = types.CallToolRequest(params=types.CallToolRequestParams(name=name, arguments=arguments))
    envelope: Any = types.ClientRequest  # of mcp 1; in mcp 2 it is a union of the requests
    return _as_data(
        await session.send_request(envelope(request) if isinstance(envelope, type) else request, types.CallToolResult)
    )


def _as_data(model: Any) -> dict[str, Any]:
    """Return a message with the protocol's names, which both major versions of the package share."""
    data: dict[str, Any] = model.model_dump(by_alias=True, mode="json", exclude_none=True)
    return data


def _first(error: BaseException) -> Exception:
    """Return the exception inside the groups that task groups put around it."""
    while isinstance(error, BaseExceptionGroup) and error.exceptions:
        # A cancelled sibling says less than what the others raised.
        error = next((each for each in error.exceptions if isinstance(each, Exception)), error.exceptions[0])
    return error if isinstance(error, Exception) else ConnectionError(type(error).__name__)


def _says_closed(error: BaseException) -> bool:
    """Whether the error only says that the other end is closed."""
    code = getattr(getattr(error, "error", None), "code", None)
    return code == _CONNECTION_CLOSED or type(error).__name__ in _NOT_SENT | {"EndOfStream"}


def _told(error: BaseException) -> str:
    said = getattr(getattr(error, "error", None), "message", None)  # an error of the protocol, in the server's words
    text = said if isinstance(said, str) and said else f"{type(error).__name__}: {error}".removesuffix(": ")
    if type(error).__name__ in {"HTTPStatusError", "ValidationError"} or "validation error" in text:
        text = text.partition("\n")[0]  # what follows is for the package's own developers
    return cut(escape_control(redact(text)), _MAX_REASON_CHARS)
