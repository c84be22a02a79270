"""Errors for callers over HTTP: problem details, without secrets.

Source: RFC 9457, Problem Details for HTTP APIs.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, Final

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
from SimpleLLMFunc.logger import redact

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

PROBLEM_SCHEMA: Final[dict[str, Any]] = {
    "type": "object",
    "properties": {
        "type": {"type": "string", "description": "about:blank, or urn:simplellmfunc:error:<kind>"},
        "title": {"type": "string"},
        "status": {"type": "integer"},
        "detail": {"type": "string"},
        "trace_id": {"type": "string", "description": "Of the run, in the server's traces."},
    },
    "required": ["type", "title", "status", "detail"],
}

_KINDS: Final[tuple[tuple[type[SimpleLLMFuncError], int], ...]] = (
    # The first that fits.
    (RunPaused, 409),
    (OutcomeUnknown, 409),
    (BudgetExceeded, 429),
    (DeadlineExceeded, 504),
    (ContentBlocked, 422),
    (ContextTooLong, 413),
    (RateLimited, 503),
    (ServerUnavailable, 503),
    (ConnectionFailed, 503),
    (RunAborted, 503),
    (ProviderError, 502),
    (ResponseParseError, 502),
    (RunError, 502),
)


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


def problem_of(error: BaseException) -> Problem:
    """Return the problem for an error of a run.

    Errors of configuration and code tell the caller only that the function failed: the log says more.
    """
    kind = type(error).__name__
    if isinstance(error, SimpleLLMFuncError):
        for known, status in _KINDS:
            if isinstance(error, known):
                seconds = getattr(error, "retry_after", None)
                headers = {"retry-after": str(math.ceil(seconds))} if seconds is not None else {}
                return Problem(status, str(error), kind, error.trace_id, headers)
        return Problem(
            500, "The function is not set up as it should be; the server's log says more.", kind, error.trace_id
        )
    return Problem(500, "The function failed; the server's log says more.")
