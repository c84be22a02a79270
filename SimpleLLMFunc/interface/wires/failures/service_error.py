"""What an error reply of a service means: status, headers and body to one of our errors; pure."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC
from typing import Any
from urllib.parse import urlsplit, urlunsplit

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
from SimpleLLMFunc.interface.wires.failures.refusals import Refused, refused_part, tool_name
from SimpleLLMFunc.interface.wires.wire import Received
from SimpleLLMFunc.logger import redact, redact_head, shown_value
from SimpleLLMFunc.type import mappings

_HEAD = 8000
"""Bytes of a body that are looked at; more than is kept, so that no secret is cut in two."""

_QUOTA_CODES = frozenset({
    "insufficient_quota", "billing_hard_limit_reached", "billing_not_active", "credit_exhausted",
    "credit_balance_exhausted", "enforced_spend_limit_reached", "billing_error", "quota_per_day",
})  # fmt: skip
_KEY_CODES = frozenset({"api_key_invalid"})
"""Gemini says so with status 400."""

_CODES_OF_STATUS = {
    400: ("context_length_exceeded", "invalid_argument", "invalid_request_error"),
    401: ("authentication_error", "invalid_api_key", "unauthenticated"),
    403: ("permission_denied", "permission_error"),
    404: ("model_not_found", "not_found_error"),
    429: ("billing_hard_limit_reached", "insufficient_quota", "rate_limit_error", "rate_limit_exceeded",
          "resource_exhausted"),
    500: ("internal_error", "internal_server_error", "server_error"),
    503: ("service_unavailable", "unavailable"),
    529: ("overloaded_error",),
}  # fmt: skip
_STATUS_OF_CODE = {code: status for status, codes in _CODES_OF_STATUS.items() for code in codes}

_ADVICE: dict[Refused, str] = {
    "wire": "the service answers this for {model} by the Responses API alone (/v1/responses). "
    'Leave wire= out or say wire="responses"; or say reasoning_effort="none", leave the tools out, use another model.',
    "images": "the model {model}, as it is served there, takes no images ({status}). Use a model that can see, or leave the "
    "image out; llama.cpp needs the model's projector (--mmproj).",
    "sound": "the model {model}, as it is served there, takes no sound ({status}). Use a model that can hear, or leave the "
    "sound out.",
}

# Go: "Client sent an HTTP request to an HTTPS server."; nginx: "The plain HTTP request was sent to HTTPS port"; Apache:
# "You're speaking plain HTTP to an SSL-enabled server port."
_PLAIN_TO_TLS = re.compile(r"HTTP request (?:was sent )?to (?:an )?HTTPS|plain HTTP to an SSL", re.IGNORECASE)

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
        codes: its `code`, `type` and `status`, and the codes among its details, as text in lower case; "quota_per_day"
            where what is used up comes back tomorrow.
        code, param: its `code`, and what it names as wrong, as it wrote them; empty where it does not.
        status: an HTTP status that the body names, None where it names none.
        limit: tokens that fit, None where it does not say.
        wait: seconds that it asks us to wait, None where it does not say.
    """

    message: str
    codes: frozenset[str]
    status: int | None = None
    limit: int | None = None
    code: str = ""
    param: str = ""
    wait: float | None = None


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
    words = [error.get("code"), error.get("type"), error.get("status"), *_codes_in(error.get("details"))]
    message = inner if isinstance(inner, str) else next(filter(None, map(error.get, ("message", "detail", "msg"))), "")
    limit = error.get("n_ctx")
    return ErrorReply(
        message=_text_of(message or data),
        codes=frozenset(str(word).lower() for word in words if word is not None),
        status=next((status for word in words if (status := _status(word)) is not None), None),
        limit=limit if isinstance(limit, int) else None,
        code=redact_head(code, 200) if isinstance(code := error.get("code"), str) else "",
        param=_param_of(error),
        wait=_wait_in(error.get("details")),
    )


def _codes_in(details: Any) -> list[str]:
    """Return the codes among the details: Messages has one `error_code`, Gemini a list of things of several kinds."""
    if isinstance(details, Mapping):
        return [str(details["error_code"])] if details.get("error_code") else []
    codes = [str(part["reason"]) for part in mappings(details) if part.get("reason")]
    quotas = [str(each.get("quotaId")) for part in mappings(details) for each in mappings(part.get("violations"))]
    return [*codes, *(["quota_per_day"] if any("PerDay" in quota for quota in quotas) else [])]


def _wait_in(details: Any) -> float | None:
    """Return the seconds in Gemini's ``RetryInfo``, as in ``"34.4s"``."""
    said = next((str(part["retryDelay"]) for part in mappings(details) if part.get("retryDelay")), None)
    return None if said is None else header_number(said.removesuffix("s"))


def _param_of(error: Mapping[str, Any]) -> str:
    """Return what an error names as wrong: ``param``, or where FastAPI's first complaint stands, as ``tools.0.type``."""
    param, detail = error.get("param"), error.get("detail")
    if isinstance(detail, list) and detail and isinstance(detail[0], Mapping):
        place = detail[0].get("loc")
        param = ".".join(map(str, place)).removeprefix("body.") if isinstance(place, list) else None
    return redact_head(param, 200) if isinstance(param, str) else ""


def _text_of(value: Any) -> str:
    return redact_head(value, 2000) if isinstance(value, str) else shown_value(value, 2000)


def status_of_error(error: ErrorReply) -> int | None:
    """Return the HTTP status that an error in a reply with status 200 stands for, None where it cannot be told."""
    if error.status is not None:
        return error.status
    return next((_STATUS_OF_CODE[code] for code in sorted(error.codes) if code in _STATUS_OF_CODE), None)


def failure_of(
    error: ErrorReply,
    received: Received,
    *,
    status: int | None = None,
    path: str = "",
    tools: Callable[[], Sequence[str]] = tuple,
) -> AttemptFailed:
    """Return the failure that a reply is.

    Args:
        error: what the body says.
        received: what else is known of the reply.
        status: what counts as its status, where the body tells more than HTTP.
        path: of the wire, which the address holds once.
        tools: gives the names of the tools in the order in which they were sent.
    """
    status, model, headers = status or received.status, received.model, received.headers
    request_id = headers.get("x-request-id") or headers.get("request-id")
    said, codes = error.message, error.codes
    facts = {**received.facts, "status": status, "request_id": request_id and redact(request_id)}
    told = {**facts, "body": said}
    wait = retry_after_seconds(headers, received.began)
    wait = error.wait if wait is None else wait
    if status in {401, 403} or (status == 400 and codes & _KEY_CODES):
        return AttemptFailed(AuthenticationError(model, **told), again="never")
    if status == 402 or (status == 429 and codes & _QUOTA_CODES):
        return AttemptFailed(RateLimited(model, kind="quota", retry_after=wait, **told), again="never")
    if status == 429:
        return AttemptFailed(RateLimited(model, retry_after=wait, **told), retry_after=wait)
    refused = refused_part(status, said, param=error.param, codes=codes)
    if status >= 500 and not refused:
        return AttemptFailed(ServerUnavailable(model, **told), retry_after=wait)
    if status in {400, 413, 422} and (codes & _TOO_LONG_CODES or _TOO_LONG.search(said)):
        return AttemptFailed(ContextTooLong(model, limit=_limit_of(error), **told), again="never")
    if status >= 400:
        told["problem"] = _problem(refused, said, status, received, path)
        told["tool"] = "" if refused else tool_name(error.param, said, tools)
        bad = BadRequest(model, param=error.param, code=error.code, **told)
        return AttemptFailed(bad, again="always" if status in {408, 409} else "never", retry_after=wait)
    return AttemptFailed(BadReply(model, problem=f"the status is {status}", head=said, **facts), again="never")


def _problem(refused: Refused, said: str, status: int, received: Received, path: str) -> str:
    """Return what is wrong and what to change, as far as that is known; else nothing."""
    if status == 400 and _PLAIN_TO_TLS.search(said):
        return f"the server speaks TLS, and was spoken to without ({status}): write https:// instead of http://."
    if refused in _ADVICE:
        return _ADVICE[refused].format(model=repr(received.model), status=status)
    url = received.url
    asked = f"the service answered {status} at {url}. " if status == 404 and url else ""
    if refused == "model":
        return asked + f"It has no model {received.model!r}: write one that it has as model_name."
    advice = f'Write base_url="{better}".' if (better := _better_base(url, status, path)) else ""
    return asked + (advice or (asked and "Check base_url, and what it complains about."))


def _better_base(url: str, status: int, path: str) -> str:
    """Return the base address to write, where the one in `url` is plainly not one; else nothing."""
    parts = urlsplit(url)
    base, found, rest = parts.path.partition(path) if path else ("", "", "")
    if status not in {404, 405} or not found or (base and path not in rest):
        return ""
    return urlunsplit(parts._replace(path=base or "/v1"))


def _limit_of(error: ErrorReply) -> int | None:
    """Return the tokens that would fit, None where the service does not say."""
    if error.limit is not None:
        return error.limit
    found = _LIMIT.search(error.message)
    return int(found.group(1).replace(",", "")) if found else None


def _status(word: Any) -> int | None:
    if isinstance(word, str) and word.isascii() and word.isdigit():
        word = int(word[:4])
    return word if isinstance(word, int) and not isinstance(word, bool) and 400 <= word <= 599 else None


def retry_after_seconds(headers: Mapping[str, str], now: float) -> float | None:
    """Return how long the service wants us to wait, None where it did not say, or nothing usable.

    Args:
        headers: of the reply, found by lower-case name.
        now: seconds since the epoch, for a date.

    Source: RFC 9110, section 10.2.3; `retry-after-ms` is an extension of OpenAI's.
    """
    milliseconds = header_number(headers.get("retry-after-ms"))
    if milliseconds is not None:
        return milliseconds / 1000
    value = headers.get("retry-after")
    seconds = header_number(value)
    if value is None or seconds is not None:
        return seconds
    from email.utils import parsedate_to_datetime

    try:
        moment = parsedate_to_datetime(value)
        if moment.tzinfo is None:
            moment = moment.replace(tzinfo=UTC)
        seconds = moment.timestamp() - now
    except (TypeError, ValueError, OverflowError):
        return None
    return seconds if seconds > 0 else None


def header_number(text: str | None) -> float | None:
    """Return the value of a header as a number from 0 up; None for anything else."""
    try:
        value = float(text) if text is not None else None
    except ValueError:
        return None
    return value if value is not None and math.isfinite(value) and value >= 0 else None
