"""From the arguments of a call to the body on the wire: defaults merged, names as the provider wants them; pure."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import Any
from urllib.parse import urlsplit, urlunsplit

from SimpleLLMFunc.config import http_address
from SimpleLLMFunc.errors import ConfigError, UsageError
from SimpleLLMFunc.interface.wires.wire import Asked
from SimpleLLMFunc.type import mapping
from SimpleLLMFunc.utils import is_number


def taken_apart(
    params: Mapping[str, Any], always: Mapping[str, Any]
) -> tuple[dict[str, Any], dict[str, Any], float | None]:
    """Return the parameters of a request, the entries of its ``extra_body``, and its `timeout` in seconds if it has one.

    Args:
        params: of a call; they come before those of `always`, and None takes one of these away.
        always: of every request.

    Raises:
        UsageError: `timeout` is no number of seconds.
    """
    rest = {name: value for name, value in {**always, **params}.items() if value is not None}
    rest.pop("extra_body", None)
    timeout = rest.pop("timeout", None)
    if timeout is not None and (not is_number(timeout) or not timeout > 0):
        raise UsageError(f"timeout is a number of seconds above 0, not {timeout!r}")
    return rest, {**(always.get("extra_body") or {}), **(params.get("extra_body") or {})}, timeout


def given_params(asked: Asked, called: str, no_word: Iterable[str], instead: str) -> dict[str, Any]:
    """Return the parameters of a request that are set; `n=1` is what every wire does.

    Args:
        asked: in chat completions' form.
        called: the wire's name in errors.
        no_word: parameters that the wire has no word for.
        instead: what to do where one is given.

    Raises:
        ConfigError: one of `no_word` is set.
    """
    params = {name: value for name, value in asked.params.items() if value is not None}
    if params.get("n") == 1:
        del params["n"]
    if unknown := sorted(name for name in no_word if name in params):
        raise ConfigError(f"{called} has no word for {', '.join(unknown)}. {instead}")
    return params


def described(function: Mapping[str, Any]) -> dict[str, Any]:
    """Return the description of a function as a field of its tool; an empty one is left out."""
    return {"description": function["description"]} if function.get("description") else {}


def own_tool(spec: Mapping[str, Any], example: str, *, fits: bool) -> dict[str, Any]:
    """Return a tool of the service's own, as it is.

    Raises:
        ConfigError: it is not one of this service.
    """
    if not fits:
        raise ConfigError(
            f"the tool {dict(spec)!r} is not a server tool of this service. Write its own form, such as {example}."
        )
    return dict(spec)


def forced_tool(choice: Any) -> str:
    """Return the name of the tool that a `tool_choice` demands; empty where it demands none by its name."""
    return str(mapping(mapping(choice).get("function")).get("name") or "")


def schema_of(response_format: Mapping[str, Any] | None) -> Mapping[str, Any] | None:
    """Return the JSON schema in a response format, None where it has none."""
    schema = mapping(mapping(response_format).get("json_schema")).get("schema")
    return schema if isinstance(schema, Mapping) else None


def check_base_url(base_url: str, said_in: str = "base_url") -> str:
    """Return the address without a slash at its end.

    Raises:
        ConfigError: it is no http or https address, or holds a user name or password; names `said_in`.
    """
    parts = http_address(base_url)
    if parts is None:
        raise ConfigError(f"{said_in} must be an http or https address, such as https://api.openai.com/v1.")
    if parts.username is not None or parts.password is not None:
        raise ConfigError(f"{said_in} holds a user name or a password, which end up in logs. Give the key as api_key.")
    return urlunsplit(parts._replace(path=parts.path.rstrip("/"), fragment=""))


def endpoint(base_url: str, path: str) -> str:
    """Return the address of an endpoint; a query of `base_url` stays, behind that of `path`."""
    parts, (path, _, own) = urlsplit(base_url), path.partition("?")
    query = "&".join(filter(None, (own, parts.query)))
    return urlunsplit(parts._replace(path=parts.path.rstrip("/") + path, query=query))


def number(name: str, value: Any, *, least: float | None = None, above: float | None = None) -> float:
    """Return `value` as a finite number.

    Raises:
        ConfigError: it is not a number, or out of range.
    """
    wanted = f"at least {least:g}" if least is not None else f"above {above:g}"
    fits = is_number(value) and math.isfinite(value)
    if not fits or (least is not None and value < least) or (above is not None and value <= above):
        raise ConfigError(f"{name} is {value!r}; it must be a number {wanted}.")
    return float(value)
