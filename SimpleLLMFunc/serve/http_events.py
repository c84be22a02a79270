"""Server-sent events to one caller; when the caller leaves, the run is cancelled.

Source: HTML Living Standard, section Server-sent events, for the format.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import aclosing
from typing import TYPE_CHECKING, Final

from SimpleLLMFunc.runtime import unless_gone
from SimpleLLMFunc.serve.http_callers import Caller
from SimpleLLMFunc.serve.http_problem import MEDIA_TYPE, Problem
from SimpleLLMFunc.utils import cancelled

if TYPE_CHECKING:
    from starlette.responses import Response
    from starlette.types import Receive, Scope, Send

_PING_SECONDS: Final = 15.0
_HEADERS: Final = {"content-type": "text/event-stream; charset=utf-8", "cache-control": "no-store"}


class Events:
    """A response of events to one caller; when the caller leaves, the run is cancelled.

    Args:
        events: by name and data (JSON); always closed.
        caller: the run is in its context, and so in its budget.
        log: called with the status, at the end.
        headers: of the response.
    """

    def __init__(
        self,
        events: AsyncGenerator[tuple[str, str], None],
        caller: Caller,
        log: Callable[[int], None],
        headers: Mapping[str, str] = _HEADERS,
    ) -> None:
        self._events = events
        self._headers = [(name.encode(), value.encode()) for name, value in headers.items()]
        self._caller = caller
        self._log = log

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send the response; a failure before the first event is a problem response."""
        sending = asyncio.create_task(self._send(scope, receive, send), context=self._caller.context())
        self._log(sending.result() if await unless_gone(sending, receive) else 499)

    async def _send(self, scope: Scope, receive: Receive, send: Send) -> int:
        async def write(part: bytes, *, more: bool = True) -> None:
            await send({"type": "http.response.body", "body": part, "more_body": more})

        async def ping() -> None:
            while True:  # keeps proxies from closing a quiet connection
                await asyncio.sleep(_PING_SECONDS)
                await write(b": still at it\n\n")

        status = 200
        async with aclosing(self._events) as events:
            try:
                first = await anext(events, None)
            except Problem as problem:
                await problem_response(problem)(scope, receive, send)
                return problem.status
            await send({"type": "http.response.start", "status": 200, "headers": self._headers})
            pinging = asyncio.create_task(ping())
            try:
                if first is not None:
                    await write(_sse(*first))
                async for event in events:
                    await write(_sse(*event))
            except Problem as problem:
                status = problem.status
                await write(_sse("error", json.dumps(problem.to_dict())))
            finally:
                await cancelled(pinging)
        await write(b"", more=False)
        return status


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
