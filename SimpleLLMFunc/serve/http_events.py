"""Server-sent events to one caller; when the caller leaves, the run is cancelled.

Source: HTML Living Standard, section Server-sent events, for the format.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator, Mapping
from contextlib import aclosing
from typing import TYPE_CHECKING, Final, TypeAlias

from SimpleLLMFunc.runtime import cancelled, unless_gone
from SimpleLLMFunc.serve.http_callers import Caller
from SimpleLLMFunc.serve.http_problem import MEDIA_TYPE, Problem

if TYPE_CHECKING:
    from starlette.responses import Response
    from starlette.types import Receive, Scope, Send

_PING_SECONDS: Final = 15.0
_QUEUED: Final = 16
_HEADERS: Final = {"content-type": "text/event-stream; charset=utf-8", "cache-control": "no-store"}

_Item: TypeAlias = "tuple[str, str] | Problem | None"
"""An event by name and data (JSON), a problem, or the end."""


class Events:
    """A stream of events to one caller; when the caller leaves, the run is cancelled."""

    def __init__(
        self,
        events: AsyncGenerator[tuple[str, str], None],
        caller: Caller | None,
        headers: Mapping[str, str] = _HEADERS,
    ) -> None:
        self._events = events
        self._headers = [(name.encode(), value.encode()) for name, value in headers.items()]
        self._caller = caller
        self._queue: asyncio.Queue[_Item] = asyncio.Queue(_QUEUED)

    async def respond(self, scope: Scope, receive: Receive, send: Send) -> int:
        """Send the response; return its status. A failure before the first event is a problem response."""
        context = None if self._caller is None else self._caller.context()
        producing = asyncio.create_task(self._produce(), context=context)
        sending = asyncio.create_task(self._send(scope, receive, send))
        try:
            return sending.result() if await unless_gone(sending, receive) else 499
        finally:
            await cancelled(producing)

    async def _produce(self) -> None:
        try:
            async with aclosing(self._events):
                async for event in self._events:
                    await self._queue.put(event)
            await self._queue.put(None)
        except Problem as problem:
            await self._queue.put(problem)

    async def _send(self, scope: Scope, receive: Receive, send: Send) -> int:
        first = await self._queue.get()
        if isinstance(first, Problem):
            await problem_response(first)(scope, receive, send)
            return first.status
        await send({"type": "http.response.start", "status": 200, "headers": self._headers})
        status = 200
        event: _Item = first
        while event is not None:
            if isinstance(event, Problem):
                status = event.status
                told = _sse("error", json.dumps(event.to_dict()))
                await send({"type": "http.response.body", "body": told, "more_body": True})
                break
            await send({"type": "http.response.body", "body": _sse(*event), "more_body": True})
            event = await self._next(send)
        await send({"type": "http.response.body", "body": b"", "more_body": False})
        return status

    async def _next(self, send: Send) -> _Item:
        while True:
            try:
                async with asyncio.timeout(_PING_SECONDS):
                    return await self._queue.get()
            except TimeoutError:
                # Keeps proxies from closing a quiet connection.
                await send({"type": "http.response.body", "body": b": still at it\n\n", "more_body": True})


def _sse(name: str, data: str) -> bytes:
    # `json.dumps` writes no line breaks, so one line of data is enough.
    return f"event: {name}\ndata: {data}\n\n".encode() if name else f"data: {data}\n\n".encode()


def json_response(text: str, status: int = 200) -> Response:
    """Return the response that holds JSON."""
    from starlette.responses import Response

    return Response(text, status, media_type="application/json")


def problem_response(problem: Problem) -> Response:
    """Return the response for a problem."""
    from starlette.responses import Response

    return Response(json.dumps(problem.to_dict()), problem.status, problem.headers, MEDIA_TYPE)
