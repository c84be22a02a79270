"""The body of a request to ``generateContent``."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from SimpleLLMFunc.errors import UsageError
from SimpleLLMFunc.interface.wires.asking import given_params, own_tool
from SimpleLLMFunc.interface.wires.parts.families import GeminiFamily, gemini_family, thinking_config
from SimpleLLMFunc.interface.wires.parts.history import PartHistory
from SimpleLLMFunc.interface.wires.wire import Asked, WireRequest

_NO_WORD = ("logit_bias", "user", "reasoning_effort", "verbosity", "prompt_cache_key")
_SAMPLING = ("temperature", "top_p", "top_k")
_WORDS: dict[str, str] = {
    "max_tokens": "maxOutputTokens",
    "max_completion_tokens": "maxOutputTokens",
    "temperature": "temperature",
    "top_p": "topP",
    "top_k": "topK",
    "seed": "seed",
    "n": "candidateCount",
    "frequency_penalty": "frequencyPenalty",
    "presence_penalty": "presencePenalty",
    "logprobs": "responseLogprobs",
    "top_logprobs": "logprobs",
}
"""Parameters of the house, by the names they have in `generationConfig`."""

_CHOICES = {"auto": "AUTO", "none": "NONE", "required": "ANY"}


def build_request(asked: Asked, model_name: str, service: str, *, path: str, has_choice: bool) -> WireRequest:
    """Return the request.

    Args:
        asked: in chat completions' form.
        model_name: tells what may be sent.
        service: the host that it goes to.
        path: after the base address.
        has_choice: the service takes `toolConfig`.

    Raises:
        ConfigError: something that this wire, or this model, has no word for.
        UsageError: there is no message.
    """
    family, history = gemini_family(model_name), PartHistory(service)
    params = given_params(asked, history.called, _NO_WORD, "Leave it out for this model.")
    downgrades: list[tuple[str, str]] = []
    history.write(asked.messages)
    if history.dropped:
        downgrades.append(("provider state: signatures are left out", history.dropped))
    if family.signs and history.sign():
        downgrades.append(("provider state: a placeholder is sent for a signature", "another service made the call"))
    if not history.turns:
        raise UsageError("there is no message with a text to send, only a system prompt.")
    body: dict[str, Any] = {"contents": history.turns}
    if system := history.system(asked.messages):
        body["systemInstruction"] = {"parts": [{"text": system}]}
    if asked.tools:
        _set_tools(body, asked.tools, params, downgrades, has_choice=has_choice)
    else:
        params.pop("tool_choice", None)
        params.pop("parallel_tool_calls", None)
    config = _generation_config(asked, model_name, params, family, downgrades)
    if config:
        body["generationConfig"] = config
    given = params.pop("generationConfig", None)
    body.update(params)
    if isinstance(given, Mapping):
        body["generationConfig"] = {**config, **given}
    return WireRequest(path, body, downgrades=tuple(downgrades))


def _set_tools(
    body: dict[str, Any],
    specs: Sequence[Mapping[str, Any]],
    params: dict[str, Any],
    downgrades: list[tuple[str, str]],
    *,
    has_choice: bool,
) -> None:
    functions = [spec["function"] for spec in specs if isinstance(spec.get("function"), Mapping)]
    own = [
        own_tool(spec, '{"googleSearch": {}}', fits="type" not in spec and len(spec) == 1)
        for spec in specs
        if not isinstance(spec.get("function"), Mapping)
    ]
    declared = [{"functionDeclarations": [_declared(function) for function in functions]}] if functions else []
    body["tools"] = [*declared, *own]
    config: dict[str, Any] = {}
    choice = params.pop("tool_choice", None)
    if choice is not None and functions and has_choice:
        config["functionCallingConfig"] = _choice(choice)
    if functions and own:
        config["includeServerSideToolInvocations"] = True
    if config:
        body["toolConfig"] = config
    if params.pop("parallel_tool_calls", None) is False:
        downgrades.append(("tools: parallel_tool_calls is left out", "the service has no such switch"))


def _declared(function: Mapping[str, Any]) -> dict[str, Any]:
    made = {"name": function["name"], "parametersJsonSchema": function.get("parameters") or {"type": "object"}}
    if function.get("description"):
        made["description"] = function["description"]
    return made


def _choice(choice: Any) -> Any:
    function = choice.get("function") if isinstance(choice, Mapping) else None
    if isinstance(function, Mapping):
        return {"mode": "ANY", "allowedFunctionNames": [function["name"]]}
    return {"mode": _CHOICES[choice]} if choice in _CHOICES else choice


def _generation_config(
    asked: Asked,
    model_name: str,
    params: dict[str, Any],
    family: GeminiFamily,
    downgrades: list[tuple[str, str]],
) -> dict[str, Any]:
    config: dict[str, Any] = {}
    for name in _SAMPLING:
        if name in params and not family.sampling:
            del params[name]
            downgrades.append((f"sampling: {name} is left out", "this model takes no sampling parameters"))
    take: Callable[[str], Any] = params.pop
    config.update({word: take(name) for name, word in _WORDS.items() if name in params})
    if "stop" in params:
        stop = take("stop")
        config["stopSequences"] = [stop] if isinstance(stop, str) else list(stop)
    if "logprobs" in config:
        config["responseLogprobs"] = True
    if (thinking := params.pop("thinking", None)) is not None:
        said = dict(thinking) if isinstance(thinking, Mapping) else thinking_config(thinking, model_name)
        if said:
            config["thinkingConfig"] = said
    if asked.response_format is not None:
        config["responseMimeType"] = "application/json"
        schema = asked.response_format.get("json_schema")
        if isinstance(schema, Mapping):
            config["responseJsonSchema"] = schema["schema"]
    return config
