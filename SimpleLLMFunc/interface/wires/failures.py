"""What an error reply of a service means: status, headers and body to one of our errors; pure.

What a service refused (a way to ask, a tool, an image, a model that it does not have) its `param` and `code` say, or words
that are known. What is not sure stays a plain `BadRequest`: to ask in another way after an error that meant something
else would hide it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias
from urllib.parse import urlsplit, urlunsplit

from SimpleLLMFunc.errors import (
    AuthenticationError,
    BadReply,
    BadRequest,
    ContentBlocked,
    ContextTooLong,
    RateLimited,
    ServerUnavailable,
)
from SimpleLLMFunc.interface.body_json import decode, head_of
from SimpleLLMFunc.interface.failed_attempt import AttemptFailed
from SimpleLLMFunc.interface.wires.wire import Received, header_number, retry_after_seconds
from SimpleLLMFunc.logger import escape_control, redact, redact_head, shown_value
from SimpleLLMFunc.type import mappings, text_or_none

# --- what is refused ---------------------------------------------------------------------------------------

Refused: TypeAlias = Literal["", "text", "wire", "images", "sound", "model", "response_format", "tool_choice", "tools"]
"""What is refused: what the prompt says, this protocol, images, sound, the model, or the field of the body with this name.
Empty: unknown."""

_STATUSES = frozenset({400, 403, 404, 422, 500})
"""llama.cpp answers 500 where a model cannot take an image, OpenRouter 404 where no provider knows tools."""

_UNKNOWN_PARAMETER = frozenset({"unsupported_parameter", "unsupported_value", "unknown_parameter", "extra_forbidden"})
_BLOCKED_CODES = frozenset({
    "content_filter", "image_content_policy_violation", "bio_policy", "data_inspection_failed", "1301",
    "misalignment_policy_violation", "inputtextsensitivecontentdetected", "outputtextsensitivecontentdetected",
})  # fmt: skip
"""Of Azure, OpenAI, Moonshot, DashScope, Zhipu and Volcengine."""

_MODEL_CODES = frozenset({"model_not_found", "model_not_available"})

_NOT = r"(?:not|un) ?(?:supported|available|enabled|allowed|known|recognized)"
_CALLS = r"(?:tools?|tool (?:use|calling|calls?)|function call(?:s|ing)?)"

_NAMED = r"(?:[`'\"]?[^\s`'\"]+[`'\"]?,?\s+)?"

# Each with those who say it so: OpenAI, and services that follow it, where no name is given.
_WORDS: tuple[tuple[Refused, str], ...] = (
    # "Function tools with reasoning_effort are not supported … use /v1/responses instead"
    ("wire", r"\bv1/responses\b"),
    # OpenRouter and OpenAI, DeepSeek, xAI
    ("text", r"your (?:input|prompt) was flagged|content exists risk|violates usage guidelines"),
    ("images", r"image input is not supported"),  # llama.cpp
    ("sound", r"audio input is not supported"),  # llama.cpp
    ("images", r"image_url is only supported by certain models"),
    ("images", r"is not a multimodal model|at most 0 image"),  # vLLM
    ("sound", r"at most 0 audio"),  # vLLM
    ("images", r"no endpoints found that support image input"),  # OpenRouter
    ("sound", r"no endpoints found that support (?:audio input|input audio)"),  # OpenRouter
    ("images", r"unknown variant `image_url`"),  # DeepSeek
    ("images", r"missing data required for image input"),  # Ollama
    ("images", r"image input is not enabled for this model"),  # Mistral
    ("images", r"does(?: not|n't) support (?:image|vision)"),  # Bedrock
    ("model", rf"\bmodels?\b[\s:/]*{_NAMED}(?:is |was )?(?:not found|does not exist|not exist)\b"),  # most of them
    ("model", r"not a valid model\b|no endpoints found for \S"),  # OpenRouter
    ("model", r"\binvalid model(?: name| id)?(?=[:.]|\W*$)"),  # Mistral
    ("response_format", r"invalid schema for response_format"),
    ("response_format", rf"\bresponse[_ ]format\b.{{0,80}}?\b{_NOT}\b"),  # "… of type 'json_schema' is not supported"
    ("response_format", r"\bresponse[_ ]format\b.{0,80}?\b(?:unavailable|enabled only)\b"),  # DeepSeek, Azure
    ("response_format", r"unrecognized request argument supplied: response_format"),
    ("response_format", r"does(?: not|n't) support response[_ ]format"),  # Groq
    ("response_format", r"features? not supported by (?:xgrammar|outlines|guidance)"),  # vLLM
    ("response_format", r"failed to parse grammar|json schema conversion failed"),  # llama.cpp
    ("response_format", r"cannot use custom grammar constraints with tools"),  # llama.cpp
    ("response_format", r"function calling with a response mime type"),  # Gemini 2.5
    ("response_format", r"schema is too complex|too many states"),  # Messages, Gemini
    ("response_format", r"^output_config\.format\b"),  # Messages: "output_config.format.schema: …"
    # Gemini: "* GenerateContentRequest.generation_config.response_json_schema: …", "… at 'generation_config.response_…'"
    ("response_format", r"(?:^|\w\.|at ')generation_?config\.response_?(?:json|mime|schema)"),
    # Moonshot says that it is incompatible with thinking
    ("tool_choice", rf"\btool_choice\b.{{0,80}}?\b(?:{_NOT}|incompatible)\b"),
    ("tool_choice", r"tool_choice parameter does not support"),  # DashScope
    ("tool_choice", r"thinking may not be enabled when tool_choice forces tool use"),  # Messages
    ("tools", rf"(?:^|[.:>]\s*)(?:the )?[`'\"]?{_CALLS}[`'\"]? (?:is|are) {_NOT}\b"),  # Groq, Mistral, SiliconFlow …
    ("tools", rf"does(?: not|n't) support {_CALLS}(?=\W*$|\. )"),  # Ollama, DeepSeek, Bedrock
    ("tools", r"tool choice requires --enable-auto-tool-choice"),  # vLLM
    ("tools", r"tools param requires --jinja"),  # llama.cpp
    ("tools", r"no endpoints found that support tool use"),  # OpenRouter
)

_KNOWN: list[tuple[Refused, re.Pattern[str]]] = [(part, re.compile(words, re.IGNORECASE)) for part, words in _WORDS]
_ABOUT_THE_REQUEST: frozenset[Refused] = frozenset({"response_format", "tool_choice", "tools"})

_FORMAT = re.compile(
    r"(?:response_format|text\.format|output_config\.format|generation_?config\.response)\b", re.IGNORECASE
)
_CHOICE = re.compile(r"tool_(?:choice|config)\b", re.IGNORECASE)

_TOOL_BY_NAME = re.compile(r"invalid schema for function '([^']+)'", re.IGNORECASE)  # OpenAI
_TOOL_BY_NUMBER = (
    re.compile(r"function_?declarations\W(\d+)\b", re.IGNORECASE),  # Gemini, inside of its "tools[0]."
    re.compile(r"\btools\W(\d+)\b", re.IGNORECASE),  # Messages: "tools.0.…"; OpenAI's `param`: "tools[0].…"
)


def refused_part(status: int | None, message: str, *, param: str = "", codes: Collection[str] = ()) -> Refused:
    """Return what an error refuses, as far as that is beyond doubt.

    Args:
        status: of HTTP.
        message: what the service says.
        param: what it names as wrong; empty where it names nothing.
        codes: the words for its kind.
    """
    if status not in _STATUSES:
        return ""
    if not _BLOCKED_CODES.isdisjoint(codes):
        return "text"
    # Messages: type "not_found_error", message "model: claude-x"
    is_missing = "not_found_error" in codes and message.startswith("model:")
    if status in {400, 404} and (is_missing or not _MODEL_CODES.isdisjoint(codes)):
        return "model"
    if _FORMAT.match(param):
        return "response_format"
    if _CHOICE.match(param):
        return "tool_choice"
    if param == "tools" and not _UNKNOWN_PARAMETER.isdisjoint(codes):
        return "tools"
    for part, words in _KNOWN:
        if part in _ABOUT_THE_REQUEST and param not in {"", "tools", "model"}:
            continue  # it names something else
        if part == "model" and status not in {400, 404}:
            continue
        if words.search(message):
            return part
    return ""


def refused_in(error: BadRequest) -> Refused:
    """Return what an error refuses, as far as that is beyond doubt."""
    return refused_part(error.status, error.body, param=error.param, codes=[error.code])


def tool_name(param: str, message: str, names: Callable[[], Sequence[str]]) -> str:
    """Return the name of the tool that an error complains about; empty where it means something else.

    Args:
        param: what the error names as wrong.
        message: of the error; some services give a name, others the number of the tool.
        names: gives the names of the tools in the order in which they were sent.
    """
    if named := _TOOL_BY_NAME.search(message):
        return named[1]
    for text in (param, message):
        for pattern in _TOOL_BY_NUMBER:
            if found := pattern.search(text):
                known, number = names(), int(found[1])
                return known[number] if number < len(known) else ""
    return ""


# --- errors ------------------------------------------------------------------------------------------------

_QUOTA_CODES = frozenset({
    "insufficient_quota", "billing_hard_limit_reached", "billing_not_active", "credit_exhausted",
    "credit_balance_exhausted", "enforced_spend_limit_reached", "billing_error", "quota_per_day",
    "exceeded_current_quota_error", "1113",
})  # fmt: skip
_CODES_OF_STATUS = {
    400: ("context_length_exceeded", "data_residency_mismatch", "invalid_argument", "invalid_prompt",
          "invalid_request_error", *_BLOCKED_CODES),
    401: ("authentication_error", "invalid_api_key", "unauthenticated"),
    403: ("permission_denied", "permission_error"),
    404: ("model_not_found", "not_found_error"),
    429: ("billing_hard_limit_reached", "insufficient_quota", "rate_limit_error", "rate_limit_exceeded",
          "resource_exhausted"),
    500: ("api_error", "internal_error", "internal_server_error", "server_error", "vector_store_timeout"),
    503: ("server_is_overloaded", "service_unavailable", "unavailable"),
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

_FAILED = re.compile(r"[45]\d\d", re.ASCII)
_TOO_LONG_CODES = frozenset({
    "context_length_exceeded", "exceed_context_size_error", "context_window_exceeded", "request_too_large",
})  # fmt: skip
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
        request_id: of the request; empty where it does not say.
    """

    message: str
    codes: frozenset[str]
    status: int | None = None
    limit: int | None = None
    code: str = ""
    param: str = ""
    wait: float | None = None
    request_id: str = ""


def read_error(body: bytes | Any, charset: str = "") -> ErrorReply:
    """Read the body of an error, in any of the shapes that services use; `charset` is what its head declares."""
    data = body
    if isinstance(body, bytes):
        try:
            data = decode(body, charset=charset)
        except ValueError:
            return ErrorReply(redact_head(head_of(body, charset), 2000), frozenset())
    while isinstance(data, list) and data:  # Gemini wraps the error into a list
        data = data[0]
    if not isinstance(data, Mapping):
        return ErrorReply(_text_of(data), frozenset())
    inner = data.get("error")
    error: Mapping[str, Any] = inner if isinstance(inner, Mapping) else data
    words = [error.get("code"), error.get("type"), error.get("status"), *_codes_in(error.get("details"))]
    message = inner if isinstance(inner, str) else next(filter(None, map(error.get, ("message", "detail", "msg"))), "")
    limit = error.get("n_ctx")
    # Gemini's RetryInfo, as in "34.4s".
    delay = next((str(part["retryDelay"]) for part in mappings(error.get("details")) if part.get("retryDelay")), "")
    return ErrorReply(
        message=_text_of(message or data),
        codes=frozenset(str(word).lower() for word in words if word is not None),
        status=next((int(str(word)) for word in words if _FAILED.fullmatch(str(word))), None),
        limit=limit if isinstance(limit, int) else None,
        code=redact_head(code, 200) if isinstance(code := error.get("code"), str) else "",
        param=_param_of(error),
        wait=header_number(delay.removesuffix("s")),
        request_id=escape_control((text_or_none(data.get("request_id")) or "")[:200]),
    )


def _codes_in(details: Any) -> list[str]:
    """Return the codes among the details: Messages has one `error_code`, Gemini a list of things of several kinds."""
    if isinstance(details, Mapping):
        return [str(details["error_code"])] if details.get("error_code") else []
    codes = [str(part["reason"]) for part in mappings(details) if part.get("reason")]
    quotas = [str(each.get("quotaId")) for part in mappings(details) for each in mappings(part.get("violations"))]
    return [*codes, *(["quota_per_day"] if any("PerDay" in quota for quota in quotas) else [])]


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
    # Responses has a dozen codes for an image that it does not take.
    unknown = 400 if any("image" in code for code in error.codes) else None
    return next((_STATUS_OF_CODE[code] for code in sorted(error.codes) if code in _STATUS_OF_CODE), unknown)


def failure_of(
    error: ErrorReply,
    received: Received,
    *,
    status: int | None = None,
    path: str = "",
    partial: str = "",
    tools: Callable[[], Sequence[str]] = tuple,
) -> AttemptFailed:
    """Return the failure that a reply is.

    Args:
        error: what the body says.
        received: what else is known of the reply.
        status: what counts as its status, where the body tells more than HTTP.
        path: of the wire, which the address holds once.
        partial: the text that was shown before.
        tools: gives the names of the tools in the order in which they were sent.
    """
    status, model, headers = status or received.status, received.model, received.headers
    request_id = headers.get("x-request-id") or headers.get("request-id") or error.request_id or None
    said, codes = error.message, error.codes
    facts = {**received.facts, "status": status, "request_id": request_id and redact(request_id)}
    told = {**facts, "body": said}
    wait = retry_after_seconds(headers, received.began)
    wait = error.wait if wait is None else wait
    refused = refused_part(status, said, param=error.param, codes=codes)
    if refused == "text":
        blocked = ContentBlocked(said.removesuffix("."), partial=partial)
        return AttemptFailed(blocked.with_run(tries=received.tries), again="never")
    if status in {401, 403} or (status == 400 and "api_key_invalid" in codes):  # 400: Gemini
        return AttemptFailed(AuthenticationError(model, **told), again="never")
    if status == 402 or (status == 429 and codes & _QUOTA_CODES):
        return AttemptFailed(RateLimited(model, kind="quota", retry_after=wait, **told), again="never")
    if status == 429:
        return AttemptFailed(RateLimited(model, retry_after=wait, **told), retry_after=wait)
    if status >= 500 and not refused:
        return AttemptFailed(ServerUnavailable(model, **told), retry_after=wait)
    if status in {400, 413, 422} and (codes & _TOO_LONG_CODES or _TOO_LONG.search(said)):
        found = _LIMIT.search(said) if error.limit is None else None
        limit = int(found[1].replace(",", "")) if found else error.limit
        return AttemptFailed(ContextTooLong(model, limit=limit, **told), again="never")
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
    if status in {408, 409}:
        return f"the service could not answer at this time ({status}). Try again later."
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
    version = "/v1" if path and not path.startswith("/v1") else ""  # empty: the wire writes its version itself
    if twice := re.search(r"(/v\d\w*)\1/", parts.path):
        base = parts.path[: twice.start()] + (version and twice[1])
    if status not in {404, 405} or not (twice or (found and (path in rest or (version and not base)))):
        return ""
    return urlunsplit(parts._replace(path=base or version, query=version and parts.query))
