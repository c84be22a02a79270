"""From the arguments of a call to the body on the wire: defaults merged, names as the provider wants them; pure."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any
from urllib.parse import urlsplit, urlunsplit

from SimpleLLMFunc.errors import ConfigError, UsageError
from SimpleLLMFunc.interface.profile import Profile
from SimpleLLMFunc.interface.wires.quirks import wire_messages
from SimpleLLMFunc.type import Message, ToolSpec

__all__ = [
    "build_body",
    "check_base_url",
    "check_call_params",
    "endpoint",
    "extra_headers_of",
    "number",
    "taken_apart",
]

_NOT_AT_CALL_TIME = frozenset(
    {
        "api_base",
        "api_key",
        "api_key_pool",
        "api_version",
        "azure_endpoint",
        "base_url",
        "client",
        "default_headers",
        "default_query",
        "extra_headers",
        "extra_query",
        "headers",
        "http_client",
        "organization",
        "project",
        "proxies",
        "proxy",
        "webhook_secret",
        "websocket_base_url",
    }
)
"""What decides where the key goes: arguments of a call may come from a user's data, so they may not set it."""

_OWN = frozenset({"messages", "tools", "response_format", "stream"})
_TOKEN_LIMITS = ("max_tokens", "max_completion_tokens")


def _deciding_where(params: Mapping[str, Any]) -> list[str]:
    """Return the parameters that decide where the key goes; a gateway reads them from the body as well."""
    extra = params.get("extra_body")
    return sorted(_NOT_AT_CALL_TIME & {*params, *(extra if isinstance(extra, Mapping) else ())})


def check_call_params(params: Mapping[str, Any]) -> None:
    """Return if `params` may be given with a call.

    Raises:
        UsageError: one of them would change where the request goes or with which key, or is not a parameter.
    """
    if not params:
        return
    refused = _deciding_where(params)
    if refused:
        raise UsageError(
            f"{', '.join(refused)}: not with a call, which must not change where the key goes. "
            "Give it to the constructor of the model."
        )
    if "stream" in params:
        raise UsageError("stream: not a parameter of chat(). Call chat_stream(), or use @llm_chat(stream=True).")


def taken_apart(params: Mapping[str, Any]) -> tuple[dict[str, Any], float | None]:
    """Return the parameters for the body, ``extra_body`` merged in, and the `timeout` in seconds if one is given.

    Raises:
        UsageError: `extra_body` is no mapping, or `timeout` no number of seconds.
    """
    if not params:
        return {}, None
    rest = {name: value for name, value in params.items() if value is not None}
    timeout = rest.pop("timeout", None)
    if timeout is not None and (isinstance(timeout, bool) or not isinstance(timeout, (int, float)) or not timeout > 0):
        raise UsageError(f"timeout is a number of seconds above 0, not {timeout!r}")
    extra = rest.pop("extra_body", None)
    if extra is not None:
        if not isinstance(extra, Mapping):
            raise UsageError(f"extra_body is a mapping that goes into the body, not {type(extra).__name__}")
        rest.update(extra)
    return rest, timeout


def build_body(
    model_name: str,
    messages: Sequence[Message],
    profile: Profile,
    *,
    tools: Sequence[ToolSpec] | None,
    response_format: Mapping[str, Any] | None,
    stream: bool,
    params: Mapping[str, Any],
) -> dict[str, Any]:
    """Return the body; `params` come last, and what is None is left out."""
    body: dict[str, Any] = {"model": model_name, "messages": wire_messages(messages, profile)}
    if tools:
        body["tools"] = list(tools)
    if response_format is not None:
        body["response_format"] = response_format
    if stream:
        body["stream"] = True
        if profile.stream_usage:
            body["stream_options"] = {"include_usage": True}
    if not params:
        return body
    for name, value in params.items():
        if value is None:
            continue
        body[profile.max_tokens_field if name in _TOKEN_LIMITS and name not in body else name] = value
    if not tools:
        # Services refuse these where no tool is offered.
        body.pop("tool_choice", None)
        body.pop("parallel_tool_calls", None)
    elif not profile.tool_choice:
        body.pop("tool_choice", None)
    return body


def check_base_url(base_url: str) -> str:
    """Return the address without a slash at its end.

    Raises:
        ConfigError: it is no http or https address, or holds a user name or password.
    """
    given: object = base_url
    address = given.strip() if isinstance(given, str) else ""
    try:
        parts = urlsplit(address)
        fits = parts.scheme in {"http", "https"} and bool(parts.hostname) and parts.port != 0
    except ValueError:
        parts, fits = urlsplit(""), False
    if not fits:
        raise ConfigError("base_url must be an http or https address, such as https://api.openai.com/v1.")
    if parts.username is not None or parts.password is not None:
        raise ConfigError("base_url holds a user name or a password, which end up in logs. Give the key as api_key.")
    return urlunsplit(parts._replace(path=parts.path.rstrip("/"), fragment=""))


def endpoint(base_url: str, path: str) -> str:
    """Return the address of an endpoint; a query of `base_url` stays."""
    parts = urlsplit(base_url)
    return urlunsplit(parts._replace(path=parts.path.rstrip("/") + path))


_SECRET_HEADERS = frozenset({"authorization", "proxy-authorization", "api-key", "x-api-key", "cookie"})


def extra_headers_of(api_params: Mapping[str, Any]) -> tuple[dict[str, str], dict[str, Any]]:
    """Return the headers that go out with every request, and the parameters that do.

    Raises:
        ConfigError: a parameter that has an argument of its own, or a header that would hold a key.
    """
    params = dict(api_params)
    headers = params.pop("extra_headers", None) or {}
    if not isinstance(headers, Mapping) or not all(isinstance(part, str) for item in headers.items() for part in item):
        raise ConfigError("extra_headers in api_params must be a mapping from names to texts.")
    secret = sorted(name for name in headers if name.lower() in _SECRET_HEADERS)
    if secret:
        raise ConfigError(f"{', '.join(secret)} in extra_headers: give the key as api_key, which keeps it out of logs.")
    refused = _deciding_where(params)
    if refused:
        raise ConfigError(f"{', '.join(refused)} in api_params: give it as an argument of its own.")
    return dict(headers), params


def number(name: str, value: Any, *, least: float | None = None, above: float | None = None) -> float:
    """Return `value` as a finite number.

    Raises:
        ConfigError: it is none, or out of range.
    """
    wanted = f"at least {least:g}" if least is not None else f"above {above:g}"
    fits = isinstance(value, (int, float)) and not isinstance(value, bool) and math.isfinite(value)
    if not fits or (least is not None and value < least) or (above is not None and value <= above):
        raise ConfigError(f"{name} is {value!r}; it must be a number {wanted}.")
    return float(value)
