"""What an error reply of a service means: status, headers and body to one of our errors; pure."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from SimpleLLMFunc.errors import (
    AuthenticationError,
    BadReply,
    BadRequest,
    ContextTooLong,
    RateLimited,
    ServerUnavailable,
)
from SimpleLLMFunc.interface.body_json import decode
from SimpleLLMFunc.interface.failed_attempt import AttemptFailed
from SimpleLLMFunc.interface.wires.headers import retry_after_seconds
from SimpleLLMFunc.interface.wires.wire import Received
from SimpleLLMFunc.logger import redact, redact_head, shown_value

__all__ = ["ErrorReply", "failure_of", "read_error", "status_of_error"]

_HEAD = 8000
"""Bytes of a body that are looked at; more than is kept, so that no secret is cut in two."""

_QUOTA_CODES = frozenset({"insufficient_quota", "billing_hard_limit_reached", "billing_not_active", "credit_exhausted"})

_STATUS_OF_CODE: dict[str, int] = {
    "authentication_error": 401,
    "billing_hard_limit_reached": 429,
    "context_length_exceeded": 400,
    "insufficient_quota": 429,
    "internal_error": 500,
    "internal_server_error": 500,
    "invalid_api_key": 401,
    "invalid_request_error": 400,
    "model_not_found": 404,
    "not_found_error": 404,
    "overloaded_error": 529,
    "permission_error": 403,
    "rate_limit_error": 429,
    "rate_limit_exceeded": 429,
    "server_error": 500,
    "service_unavailable": 503,
    "unavailable": 503,
    "resource_exhausted": 429,
    "unauthenticated": 401,
    "permission_denied": 403,
    "invalid_argument": 400,
}

_TOO_LONG_CODES = frozenset({"context_length_exceeded", "exceed_context_size_error", "context_window_exceeded"})
_TOO_LONG = re.compile(
    r"maximum context length|context[ _-]?(?:length|size|window)|too many (?:input )?tokens|prompt is too long"
    r"|input is too long|exceeds? (?:the )?(?:model'?s )?(?:max(?:imum)?|available) (?:number of )?(?:input )?"
    r"(?:tokens|context|input length)|range of input length|input token count|超出.{0,12}(?:长度|上下文)",
    re.IGNORECASE,
)
_LIMIT = re.compile(
    r"(?:maximum context length(?: of this model)?(?: is| of)?|context (?:length|size|window)(?: is| of| \()?"
    r"|maximum (?:number of )?(?:input )?tokens(?: allowed)?(?: is| of| \()?|> |should be \[1, ?)\s*\(?(\d[\d,]*)",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class ErrorReply:
    """What a service says in an error body.

    Attributes:
        message: the text, redacted.
        codes: its `code`, `type` and `status`, as text in lower case.
        status: an HTTP status that the body names, None where it names none.
        limit: tokens that fit, None where it does not say.
    """

    message: str
    codes: frozenset[str]
    status: int | None = None
    limit: int | None = None


def read_error(body: bytes | Any) -> ErrorReply:
    """Read the body of an error, in any of the shapes that services use."""
    data = body
    if isinstance(body, bytes):
        try:
            data = decode(body)
        except ValueError:
            return ErrorReply(redact_head(body[:_HEAD].decode("utf-8", "replace").strip(), 2000), frozenset())
    while isinstance(data, list) and data:  # Gemini wraps the error into a list
        data = data[0]
    if not isinstance(data, Mapping):
        return ErrorReply(_text_of(data), frozenset())
    inner = data.get("error")
    error: Mapping[str, Any] = inner if isinstance(inner, Mapping) else data
    words = [error.get("code"), error.get("type"), error.get("status")]
    message = inner if isinstance(inner, str) else next(filter(None, map(error.get, ("message", "detail", "msg"))), "")
    limit = error.get("n_ctx")
    return ErrorReply(
        message=_text_of(message or data),
        codes=frozenset(str(word).lower() for word in words if word is not None),
        status=next((status for word in words if (status := _status(word)) is not None), None),
        limit=limit if isinstance(limit, int) else None,
    )


def _text_of(value: Any) -> str:
    return redact_head(value, 2000) if isinstance(value, str) else shown_value(value, 2000)


def status_of_error(error: ErrorReply) -> int | None:
    """Return the HTTP status that an error in a reply with status 200 stands for, None where it cannot be told."""
    if error.status is not None:
        return error.status
    return next((_STATUS_OF_CODE[code] for code in sorted(error.codes) if code in _STATUS_OF_CODE), None)


def failure_of(error: ErrorReply, received: Received, *, status: int | None = None) -> AttemptFailed:
    """Return the failure that a reply is.

    Args:
        error: what the body says.
        received: what else is known of the reply.
        status: what counts as its status, where the body tells more than HTTP.
    """
    status, model, headers = status or received.status, received.model, received.headers
    request_id = headers.get("x-request-id") or headers.get("request-id")
    facts: dict[str, Any] = {"status": status, "request_id": request_id and redact(request_id), "tries": received.tries}
    said = error.message
    wait = retry_after_seconds(headers, received.began)
    if status in {401, 403}:
        return AttemptFailed(AuthenticationError(model, body=said, **facts), again="never")
    if status == 429:
        if error.codes & _QUOTA_CODES:
            return AttemptFailed(RateLimited(model, kind="quota", body=said, retry_after=wait, **facts), again="never")
        return AttemptFailed(RateLimited(model, retry_after=wait, body=said, **facts), retry_after=wait)
    if status >= 500:
        return AttemptFailed(ServerUnavailable(model, body=said, **facts), retry_after=wait)
    if status in {400, 413, 422} and is_too_long(error):
        return AttemptFailed(ContextTooLong(model, limit=limit_of(error), body=said, **facts), again="never")
    if status >= 400:
        return AttemptFailed(
            BadRequest(model, body=said, **facts),
            again="always" if status in {408, 409} else "never",
            retry_after=wait,
        )
    return AttemptFailed(BadReply(model, problem=f"the status is {status}", head=said, **facts), again="never")


def is_too_long(error: ErrorReply) -> bool:
    """Whether the service says that the request does not fit the model's context."""
    return bool(error.codes & _TOO_LONG_CODES) or _TOO_LONG.search(error.message) is not None


def limit_of(error: ErrorReply) -> int | None:
    """Return the tokens that would fit, None where the service does not say."""
    if error.limit is not None:
        return error.limit
    found = _LIMIT.search(error.message)
    return int(found.group(1).replace(",", "")) if found else None


def _status(word: Any) -> int | None:
    if isinstance(word, str) and word.isascii() and word.isdigit():
        word = int(word[:4])
    return word if isinstance(word, int) and not isinstance(word, bool) and 400 <= word <= 599 else None
