"""The wire ``generateContent``, which Google's Gemini speaks; pure."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar
from urllib.parse import quote

from SimpleLLMFunc.errors import UsageError
from SimpleLLMFunc.interface.body_json import decode
from SimpleLLMFunc.interface.profile import Profile
from SimpleLLMFunc.interface.wires.families import BUDGETS, GeminiFamily, gemini_family, no_such_thinking
from SimpleLLMFunc.interface.wires.parts.history import PartHistory
from SimpleLLMFunc.interface.wires.parts.reply import PartReader, completion_of, problem_of
from SimpleLLMFunc.interface.wires.replies import Wire
from SimpleLLMFunc.interface.wires.request_body import given_params, own_tool
from SimpleLLMFunc.interface.wires.wire import Asked, Downgrades, Received, WireRequest
from SimpleLLMFunc.type import ChatCompletion

_NO_WORD = ("logit_bias", "user", "reasoning_effort", "verbosity", "prompt_cache_key")
_SAMPLING = ("temperature", "top_p", "top_k")
_WORDS = {
    "max_tokens": "maxOutputTokens", "max_completion_tokens": "maxOutputTokens", "temperature": "temperature",
    "top_p": "topP", "top_k": "topK", "seed": "seed", "n": "candidateCount", "frequency_penalty": "frequencyPenalty",
    "presence_penalty": "presencePenalty", "logprobs": "responseLogprobs", "top_logprobs": "logprobs",
}  # fmt: skip
"""Parameters of the house, by the names they have in `generationConfig`."""

_CHOICES = {"auto": "AUTO", "none": "NONE", "required": "ANY"}


@dataclass(frozen=True, slots=True)
class GeminiWire(Wire):
    """The wire ``generateContent``.

    Attributes:
        version: of the protocol; a part of the path.

    Source: https://ai.google.dev/api/generate-content
    """

    version: str = "v1beta"

    name = "gemini"
    version_spoken: ClassVar[str] = "v1beta"
    reader = PartReader
    problem_of = staticmethod(problem_of)
    completion_of = staticmethod(completion_of)
    parameters = frozenset({
        "cachedContent", "frequency_penalty", "generationConfig", "labels", "logprobs", "max_completion_tokens",
        "max_tokens", "n", "parallel_tool_calls", "presence_penalty", "safetySettings", "seed", "stop",
        "temperature", "thinking", "tool_choice", "top_k", "top_logprobs", "top_p",
    })  # fmt: skip

    @property
    def models_path(self) -> str:  # type: ignore[override]
        """Where the service lists its models, after the base address."""
        return f"/{self.version}/models"

    def path(self, model_name: str, *, stream: bool) -> str:
        """Return where requests go, after the base address."""
        method = "streamGenerateContent?alt=sse" if stream else "generateContent"
        return f"/{self.version}/models/{quote(model_name.removeprefix('models/'), safe='')}:{method}"

    def request(self, asked: Asked, model_name: str, profile: Profile, *, stream: bool) -> WireRequest:
        """Return what goes out; raises what `Wire.request` does."""
        family, history = gemini_family(model_name), PartHistory(self.service)
        params = given_params(asked, history.called, _NO_WORD, "Leave it out for this model.")
        history.write(asked.messages)
        downgrades = history.downgrades("signatures are")
        if family.signs and history.sign():
            what = "provider state: a placeholder is sent for a signature"
            downgrades.append((what, "another service made the call"))
        if not history.turns:
            raise UsageError("there is no message with a text to send, only a system prompt.")
        body: dict[str, Any] = {"contents": history.turns}
        if system := history.system(asked.messages):
            body["systemInstruction"] = {"parts": [{"text": system}]}
        choice, is_parallel = params.pop("tool_choice", None), params.pop("parallel_tool_calls", None)
        if asked.tools:
            _set_tools(body, asked.tools, choice if profile.tool_choice else None)
            if is_parallel is False:
                what = "tools: parallel_tool_calls is left out"
                downgrades.append((what, "the service has no such switch"))
        config = _generation_config(asked, model_name, params, family, downgrades)
        if config:
            body["generationConfig"] = config
        given = params.pop("generationConfig", None)
        body.update(params)
        if isinstance(given, Mapping):
            body["generationConfig"] = {**config, **given}
        return WireRequest(self.path(model_name, stream=stream), body, downgrades=downgrades)

    def auth(self, key: str) -> Mapping[str, str]:
        """Return the header that carries the key."""
        return {"x-goog-api-key": key}

    def reply(self, body: bytes, received: Received) -> ChatCompletion:
        """Return the whole reply; raises as those of the other wires do."""
        return Wire.reply(self, _as_events(body), received)


def _as_events(body: bytes) -> bytes:
    """Return a stream without events, which is a list of what would have been their data, as events."""
    if not body.lstrip().startswith(b"["):
        return body
    try:
        data = decode(body)
    except ValueError:
        return body
    return b"".join(b"data: " + json.dumps(item).encode() + b"\n\n" for item in data) or body


def _set_tools(body: dict[str, Any], specs: Sequence[Mapping[str, Any]], choice: Any) -> None:
    functions = [spec["function"] for spec in specs if isinstance(spec.get("function"), Mapping)]
    own = [
        own_tool(spec, '{"googleSearch": {}}', fits="type" not in spec and len(spec) == 1)
        for spec in specs
        if not isinstance(spec.get("function"), Mapping)
    ]
    declared = [{"functionDeclarations": [_declared(function) for function in functions]}] if functions else []
    body["tools"] = [*declared, *own]
    config: dict[str, Any] = {}
    if choice is not None and functions:
        config["functionCallingConfig"] = _choice(choice)
    if functions and own:
        config["includeServerSideToolInvocations"] = True
    if config:
        body["toolConfig"] = config


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
    asked: Asked, model_name: str, params: dict[str, Any], family: GeminiFamily, downgrades: Downgrades
) -> dict[str, Any]:
    """Take the parameters of `generationConfig` out of `params`, and return it."""
    for name in _SAMPLING:
        if name in params and not family.sampling:
            del params[name]
            downgrades.append((f"sampling: {name} is left out", "this model takes no sampling parameters"))
    config: dict[str, Any] = {word: params.pop(name) for name, word in _WORDS.items() if name in params}
    if "stop" in params:
        stop = params.pop("stop")
        config["stopSequences"] = [stop] if isinstance(stop, str) else list(stop)
    if "logprobs" in config:
        config["responseLogprobs"] = True
    thinking = params.pop("thinking", None)
    said = dict(thinking) if isinstance(thinking, Mapping) else _thinking_config(thinking, family, model_name)
    if said:
        config["thinkingConfig"] = said
    if asked.response_format is not None:
        config["responseMimeType"] = "application/json"
        schema = asked.response_format.get("json_schema")
        if isinstance(schema, Mapping):
            config["responseJsonSchema"] = schema["schema"]
    return config


def _thinking_config(thinking: Any, family: GeminiFamily, model_name: str) -> dict[str, Any]:
    """Return `thinking` in the words that the model has.

    Raises:
        ConfigError: it has none for that; the error names those it has.
    """
    has_off = family.off is not None or family.thinking == "none"
    takes_budget = family.thinking == "budget"
    if thinking is None or (thinking == "off" and family.thinking == "none"):
        return {}
    if thinking == "off" and has_off:
        return {"thinkingBudget" if takes_budget else "thinkingLevel": family.off}
    if takes_budget:
        is_number = isinstance(thinking, int) and not isinstance(thinking, bool) and thinking > 0
        if budget := thinking if is_number else BUDGETS.get(str(thinking)):
            return {"thinkingBudget": budget, "includeThoughts": True}
    elif family.thinking == "level" and thinking in family.words:
        return {"thinkingLevel": thinking, "includeThoughts": True}
    words = [] if family.thinking == "none" else [*family.words, *(["a number of tokens"] if takes_budget else [])]
    raise no_such_thinking(model_name, thinking, words=words, off=has_off)
