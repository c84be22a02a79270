"""Responses to callers over HTTP: JSON, problem details without secrets, server-sent events.

Source: RFC 9457, Problem Details for HTTP APIs; HTML Living Standard, section Server-sent events, for their format.
"""

from __future__ import annotations

import asyncio
import json
import math
from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import aclosing
from contextvars import Context
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from SimpleLLMFunc.errors import (
    BudgetExceeded,
    ConnectionFailed,
    ContentBlocked,
    ContextTooLong,
    DeadlineExceeded,
    OutcomeUnknown,
    ProviderError,
    RateLimited,
    ResponseParseError,
    RunAborted,
    RunError,
    RunPaused,
    ServerUnavailable,
    SimpleLLMFuncError,
    cut,
)
from SimpleLLMFunc.logger import push_error, redact, shown_traceback
from SimpleLLMFunc.runtime import unless_gone
from SimpleLLMFunc.utils import cancelled

if TYPE_CHECKING:
    from starlette.responses import Response
    from starlette.types import Receive, Scope, Send

_PING_SECONDS: Final = 15.0
SSE_HEADERS: Final = {"content-type": "text/event-stream; charset=utf-8", "cache-control": "no-store"}

MEDIA_TYPE: Final = "application/problem+json"
_MOST_CHARS: Final = 2000

STATUSES: Final = {
    400: "The body is no JSON object.",
    401: "The key is missing or unknown.",
    403: "This address or page may not call.",
    404: "There is no such function.",
    405: "Another method is needed.",
    409: "The run waits for an answer to one of its calls.",
    413: "The body is too large, or the arguments are longer than the model can read.",
    415: "The body must be application/json.",
    422: "The arguments do not fit the function, or the model refused them.",
    429: "Too many requests, or the caller's budget is used up.",
    500: "The function failed.",
    502: "The model gave no answer that fits.",
    503: "The model's service is not available.",
    504: "The answer took longer than allowed.",
}
"""What each status means."""

_KINDS: Final[Mapping[int, tuple[type[SimpleLLMFuncError], ...]]] = {
    409: (RunPaused, OutcomeUnknown),
    429: (BudgetExceeded,),
    504: (DeadlineExceeded,),
    422: (ContentBlocked,),
    413: (ContextTooLong,),
    503: (RateLimited, ServerUnavailable, ConnectionFailed, RunAborted),
    502: (ProviderError, ResponseParseError, RunError),
}
"""The errors of each status; the first that fits."""


class Problem(Exception):
    """A failed request, in the form that the caller reads.

    Attributes:
        kind: name of the error, empty where the status says enough.
        headers: of the response.
    """

    def __init__(
        self, status: int, detail: str, kind: str = "", trace_id: str = "", headers: Mapping[str, str] | None = None
    ) -> None:
        super().__init__(detail)
        self.status = status
        self.detail = detail
        self.kind = kind
        self.trace_id = trace_id
        self.headers = dict(headers or {})

    def to_dict(self) -> dict[str, Any]:
        """Return the JSON body of the problem."""
        told = {
            "type": f"urn:simplellmfunc:error:{self.kind}" if self.kind else "about:blank",
            "title": STATUSES.get(self.status, "The request was not answered."),
            "status": self.status,
            "detail": cut(redact(self.detail), _MOST_CHARS),
        }
        return {**told, "trace_id": self.trace_id} if self.trace_id else told


def problem_of(error: BaseException, what: str = "a request") -> Problem:
    """Return the problem for an error of a run.

    Errors of configuration and code tell the caller only that the function failed: the log says more.

    Args:
        error: of the run.
        what: failed, for the log.
    """
    if isinstance(error, asyncio.CancelledError):
        task: Any = asyncio.current_task()
        # The task itself is cancelled where the server ends and its grace is over, or where a timeout is around it.
        is_cut = task.cancelling()
        error = RunAborted("it was cut off, as where the server ends. Ask again" if is_cut else "it was cancelled")
    kind = type(error).__name__
    for status, known in _KINDS.items():
        if isinstance(error, known):
            seconds = getattr(error, "retry_after", None)
            headers = {"retry-after": str(math.ceil(seconds))} if seconds is not None else {}
            return Problem(status, str(error), kind, error.trace_id, headers)
    push_error(f"{what} failed: {shown_traceback(error)}")
    if isinstance(error, SimpleLLMFuncError):
        detail = "The function is not set up as it should be; the server's log says more."
        return Problem(500, detail, kind, error.trace_id)
    return Problem(500, "The function failed; the server's log says more.")


@dataclass(frozen=True, slots=True)
class Events:
    """A response of events to one caller; when the caller leaves, the run is cancelled.

    Attributes:
        events: by name and data (JSON); always closed.
        context: gives the context of the run, and with it the budget of the caller.
        log: called with the status, at the end.
        headers: of the response.
    """

    events: AsyncGenerator[tuple[str, str], None]
    context: Callable[[], Context]
    log: Callable[[int], None]
    headers: Mapping[str, str]

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send the response; a failure before the first event is a problem response."""
        sending = asyncio.create_task(self._send(scope, receive, send), context=self.context())
        self.log(sending.result() if await unless_gone(sending, receive) else 499)

    async def _send(self, scope: Scope, receive: Receive, send: Send) -> int:
        async def write(part: bytes, *, more: bool = True) -> None:
            await send({"type": "http.response.body", "body": part, "more_body": more})

        async def ping() -> None:
            while True:  # keeps proxies from closing a quiet connection
                await asyncio.sleep(_PING_SECONDS)
                await write(b": still at it\n\n")

        status = 200
        async with aclosing(self.events) as events:
            try:
                first = await anext(events, None)
            except (Problem, asyncio.CancelledError) as error:
                problem = error if isinstance(error, Problem) else problem_of(error)
                await problem_response(problem)(scope, receive, send)
                return problem.status
            headers = [(name.encode(), value.encode()) for name, value in self.headers.items()]
            await send({"type": "http.response.start", "status": 200, "headers": headers})
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
