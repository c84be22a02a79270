"""Which parameters a request may carry: what some wire knows, and what belongs elsewhere; pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from SimpleLLMFunc.errors import ConfigError, UsageError
from SimpleLLMFunc.interface.llm_interface import LLM_Interface
from SimpleLLMFunc.interface.wires.chat import CHAT
from SimpleLLMFunc.interface.wires.families import effort_of, openai_family

_WRITTEN = frozenset({"model", "messages", "input", "contents", "stream", "tools", "response_format"})
"""What we write into a body ourselves."""

_HANDED = frozenset({"trace_id", "deadline"})
"""Arguments of `chat` that are not request parameters."""

_NOT_AT_CALL_TIME = frozenset({
    "api_base", "api_key", "api_key_pool", "api_version", "azure_endpoint", "base_url", "client",
    "default_headers", "default_query", "extra_headers", "extra_query", "headers", "http_client",
    "organization", "project", "proxies", "proxy", "webhook_secret", "websocket_base_url",
})  # fmt: skip
"""What decides where the key goes: arguments of a call may come from a user's data, so they may not set it."""

_SECRET_HEADERS = frozenset({"authorization", "proxy-authorization", "api-key", "x-api-key", "cookie"})

_CLOSE = 0.9
"""So like a known name is a misspelling: "top_a" is 0.8 of "top_p", and a parameter of some services."""

_MODEL_PLACE = "Give it to the constructor of the model, such as OpenAICompatible(...)"
_PLACES = {
    **dict.fromkeys(_NOT_AT_CALL_TIME, f"{_MODEL_PLACE}, so that a call cannot change where the key goes"),
    "extra_headers": "Give it to the model: OpenAICompatible(..., api_params={'extra_headers': {...}})",
    "max_retries": "Give it to the model: OpenAICompatible(..., max_retries=3)",
    "retry_delay": "Give it to the model: OpenAICompatible(..., retry_delay=1)",
    "timeout": "Write deadline=, the seconds of a whole call; timeout= of one try belongs to the model",
    "messages": "The library writes the messages, from what you documented and from the arguments",
    "trace_id": "The library makes it for each run",
    "func_name": "The library knows the name of the function",
    "llm_kwargs": "Write what is in it as options, one by one",
}
"""Where a name belongs that means something here; a caller of `check_options` adds more."""


def known_parameters() -> frozenset[str]:
    """Return the request parameters that some wire knows: each says which."""
    # A start need not pay for wires that a program does not speak.
    from SimpleLLMFunc.interface.wires.gemini import GeminiWire
    from SimpleLLMFunc.interface.wires.messages import MessagesWire
    from SimpleLLMFunc.interface.wires.responses import ResponsesWire

    more = (ResponsesWire.parameters, MessagesWire.parameters, GeminiWire.parameters)
    return CHAT.parameters.union(["extra_body"], *more)


def is_known(name: str) -> bool:
    """Say whether some wire knows a request parameter of this name."""
    return name in CHAT.parameters or name in known_parameters()


def check_options(given: Mapping[str, Any], own: Iterable[str], places: Mapping[str, str]) -> None:
    """Return if `given` can go to a provider: parameters that some wire knows, and `extra_body`.

    Args:
        given: the options that `own` does not name.
        own: names of the caller's options, to suggest for a misspelt one.
        places: where a name belongs that means something to the caller; a sentence without its full stop.

    Raises:
        ConfigError: one is unknown; says the nearest name, or where it belongs.
    """
    unknown = [name for name in given if not is_known(name)]
    if unknown:
        raise ConfigError(" ".join(_told(name, own, {**_PLACES, **places}) for name in unknown))
    _check_extra_body(given.get("extra_body"))


def _told(name: str, own: Iterable[str], places: Mapping[str, str]) -> str:
    if name in places:
        return f"There is no option {name}. {places[name]}."
    near = _nearest(name, [*own, *sorted(known_parameters())], 0.6)
    meant = f" Did you mean {near}?" if near else ""
    return f"There is no option {name}.{meant} A parameter that your service alone knows goes into extra_body={{{name!r}: ...}}."


def _nearest(name: str, names: list[str], cutoff: float) -> str | None:
    from difflib import get_close_matches

    return next(iter(get_close_matches(name, names, cutoff=cutoff)), None)


def _check_extra_body(extra: object) -> None:
    """Return if `extra` may be added to a body that we write; None adds nothing.

    Raises:
        ConfigError: it is no mapping, or it names what we write or what decides where the key goes.
    """
    if extra is None:
        return
    if not isinstance(extra, Mapping):
        raise ConfigError(f"extra_body is a mapping that goes into the body, not {type(extra).__name__}.")
    _refuse(
        (repr(name) for name in extra if not isinstance(name, str)), " in extra_body: a name in the body is a text."
    )
    _refuse(
        (_WRITTEN | _HANDED) & extra.keys(), " in extra_body: the library writes it for each request. Leave it out."
    )
    # A gateway reads them from the body as well.
    _refuse(_NOT_AT_CALL_TIME & extra.keys(), f" in extra_body. {_PLACES['base_url']}.")


def _refuse(names: Iterable[str], said: str) -> None:
    """Raise a `ConfigError` where there is a name."""
    if given := ", ".join(sorted(names)):
        raise ConfigError(given + said)


def check_call_params(params: Mapping[str, Any]) -> None:
    """Return if `params` may be given with a call of a model.

    Raises:
        UsageError: one of them would change where the request goes or with which key, or is not a parameter.
    """
    if refused := sorted(_NOT_AT_CALL_TIME & params.keys()):
        raise UsageError(
            f"{', '.join(refused)}: not with a call, which must not change where the key goes. "
            "Give it to the constructor of the model."
        )
    if "stream" in params:
        raise UsageError("stream: not a parameter of chat(). Call chat_stream(), or use @llm_chat(stream=True).")
    _check_extra_body(params.get("extra_body"))


def extra_headers_of(api_params: Mapping[str, Any]) -> tuple[dict[str, str], dict[str, Any]]:
    """Return the headers that go out with every request, and the parameters that do.

    Raises:
        ConfigError: a parameter that cannot be one, or a header that would hold a key.
    """
    if not isinstance(api_params, Mapping):
        raise ConfigError(f"api_params is a mapping that goes out with every request, not {type(api_params).__name__}.")
    params = dict(api_params)
    headers = params.pop("extra_headers", None) or {}
    if not isinstance(headers, Mapping) or not all(isinstance(part, str) for item in headers.items() for part in item):
        raise ConfigError("extra_headers in api_params must be a mapping from names to texts.")
    secret = [name for name in headers if name.lower() in _SECRET_HEADERS]
    _refuse(secret, " in extra_headers: give the key as api_key, which keeps it out of logs.")
    _refuse(_NOT_AT_CALL_TIME & params.keys(), " in api_params: give it as an argument of the constructor.")
    _refuse(_WRITTEN & params.keys(), " in api_params: the library writes it for each request. Leave it out.")
    for name in params:
        if not is_known(name) and (near := _nearest(name, sorted(known_parameters()), _CLOSE)):
            raise ConfigError(f"{name} in api_params: did you mean {near}? Else write extra_body={{{name!r}: ...}}.")
    _check_extra_body(params.get("extra_body"))
    return dict(headers), params


def gives_logprobs(llm: LLM_Interface, params: Mapping[str, Any]) -> int:
    """Return the most `top_logprobs` that a model gives for a request with these parameters; 0 where it gives none.

    Messages has none, llama.cpp has none on its Responses, and OpenAI's models give none while they reason.
    """
    most, wire = llm.profile.logprobs, llm.wire_name
    if not most or wire == "messages" or (wire == "responses" and llm.profile.grammar):
        return 0
    if openai_family(llm.model_name).thinks:
        own = {**getattr(llm, "api_params", {}), **params}
        said = own.get("thinking")
        effort = effort_of(said, llm.model_name) if said == "off" else own.get("reasoning_effort")
        return most if effort == "none" else 0
    return most
