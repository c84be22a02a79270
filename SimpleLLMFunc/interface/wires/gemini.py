"""The wire ``generateContent``, which Google's Gemini speaks; pure.

The service wants of a conversation: the system prompt apart; a user turn first and last; as many results as calls, right
behind them, in one turn; signatures on the parts they came on. A call that another service made carries the documented
placeholder.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar
from urllib.parse import quote

from SimpleLLMFunc.errors import ConfigError, UsageError
from SimpleLLMFunc.interface.body_json import decoded
from SimpleLLMFunc.interface.profile import Profile
from SimpleLLMFunc.interface.wires.families import GeminiFamily, budget_of, gemini_family, omitted, thinking_of
from SimpleLLMFunc.interface.wires.history import History, Part, arguments_of, data_in, image_of
from SimpleLLMFunc.interface.wires.replies import Wire
from SimpleLLMFunc.interface.wires.request_body import described, forced_tool, given_params, own_tool
from SimpleLLMFunc.interface.wires.streams.parts import WIRE, PartReader, calls_in, text_in
from SimpleLLMFunc.interface.wires.wire import Asked, Downgrades, Received, WireRequest
from SimpleLLMFunc.type import ChatCompletion, ToolCall, content_text, mapping

_NO_WORD = ("logit_bias", "user", "reasoning_effort", "verbosity", "prompt_cache_key")
_WORDS = {
    "max_tokens": "maxOutputTokens", "max_completion_tokens": "maxOutputTokens", "temperature": "temperature",
    "top_p": "topP", "top_k": "topK", "seed": "seed", "n": "candidateCount", "frequency_penalty": "frequencyPenalty",
    "presence_penalty": "presencePenalty", "logprobs": "responseLogprobs", "top_logprobs": "logprobs",
}  # fmt: skip
"""Parameters of the house, by the names they have in `generationConfig`."""

_PLACEHOLDER = "skip_thought_signature_validator"
"""Source: https://ai.google.dev/gemini-api/docs/thought-signatures"""

_REF = re.compile(r'"\$ref": "#/\$defs/([^"]+)"')
_FILES = ("https://generativelanguage.googleapis.com/", "gs://")
_CHOICES = {"auto": "AUTO", "none": "NONE", "required": "ANY"}


class PartHistory(History):
    """The conversation in parts."""

    wire, called = WIRE, "generateContent"
    role, field = "model", "parts"
    text_in, calls_in = staticmethod(text_in), staticmethod(calls_in)

    def sign(self) -> bool:
        """Put the placeholder on unsigned calls of the current turn; return whether there were any.

        The current turn begins with the last user content that holds more than results.
        """
        is_unsigned = False
        for turn in reversed(self.turns):
            parts = turn["parts"]
            if turn["role"] == "user" and any("functionResponse" not in part for part in parts):
                break
            calls = [place for place, part in enumerate(parts) if "functionCall" in part]
            if calls and not any("thoughtSignature" in part for part in parts):
                signed = {**parts[calls[0]], "thoughtSignature": _PLACEHOLDER}
                turn["parts"] = [*parts[: calls[0]], signed, *parts[calls[0] + 1 :]]
                is_unsigned = True
        return is_unsigned

    def text(self, text: str) -> list[Part]:
        """Return a text; an empty one is left out."""
        return [{"text": text}] if text else []

    def media(self, kind: Any, part: Mapping[str, Any]) -> Part:
        """Return a part that is not text."""
        if kind == "image_url":
            return _data(image_of(part)["url"], "ImgPath")
        if kind == "file":
            file = part["file"]
            if file.get("file_id"):
                return {"fileData": {"fileUri": file["file_id"]}}
            return _data(str(file.get("file_data") or ""), "File")
        if kind == "input_audio":
            audio = part["input_audio"]
            return {"inlineData": {"mimeType": f"audio/{audio['format']}", "data": audio["data"]}}
        return dict(part)  # a part of the service's own

    def said(self, content: Any, calls: list[Part]) -> list[Part]:
        """Return what the model said."""
        return [*self.text(content_text(content) or ""), *({"functionCall": call} for call in calls)]

    def call(self, call: ToolCall) -> Part:
        """Return a call."""
        return {"name": call.function.name, "args": arguments_of(call)}

    def result(self, sent: Mapping[str, Any], content: Any, *, failed: bool) -> Part:
        """Return the result of a call; images and files are added to the response."""
        parts = self.parts(content)
        text = "\n".join(part["text"] for part in parts if "text" in part)
        media = [part for part in parts if "text" not in part]
        made: Part = {"name": str(sent.get("name") or ""), "response": {"error" if failed else "output": text}}
        if sent.get("id") is not None:
            made["id"] = sent["id"]
        return {"functionResponse": {**made, **({"parts": media} if media else {})}}


def _data(url: str, instead: str) -> Part:
    if url.startswith(_FILES):
        return {"fileData": {"fileUri": url}}
    found = data_in(url)
    if found is None or ";base64" not in found[1]:
        raise ConfigError(f"Gemini does not fetch images or files from an address. Send the data: {instead}(…).")
    return {"inlineData": {"mimeType": found[0], "data": found[2]}}


@dataclass(frozen=True, slots=True)
class GeminiWire(Wire):
    """The wire ``generateContent``.

    Attributes:
        version: of the protocol; a part of the path.

    Source: https://ai.google.dev/api/generate-content
    """

    version: str = "v1beta"

    name = WIRE
    version_spoken: ClassVar[str] = "v1beta"
    reader = PartReader
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
            _set_tools(body, asked.tools, choice if profile.tool_choice else None, family)
            if is_parallel is False:
                downgrades.append(("tools: parallel_tool_calls is left out", "the service has no such switch"))
        config = _generation_config(asked, model_name, params, family, downgrades)
        if config := {**config, **mapping(params.pop("generationConfig", None))}:
            body["generationConfig"] = config
        body.update(params)
        return WireRequest(self.path(model_name, stream=stream), body, downgrades=downgrades)

    def auth(self, key: str) -> Mapping[str, str]:
        """Return the header that carries the key."""
        return {"x-goog-api-key": key}

    def reply(self, body: bytes, received: Received) -> ChatCompletion:
        """Return the whole reply; raises as those of the other wires do."""
        # A stream without events is a list of what would have been their data.
        items = decoded(body, ()) if body.lstrip().startswith(b"[") else ()
        events = b"".join(b"data: " + json.dumps(item).encode() + b"\n\n" for item in items)
        return Wire.reply(self, events or body, received)


def _set_tools(body: dict[str, Any], specs: Sequence[Mapping[str, Any]], choice: Any, family: GeminiFamily) -> None:
    functions = [spec["function"] for spec in specs if isinstance(spec.get("function"), Mapping)]
    own = [
        own_tool(spec, '{"googleSearch": {}}', fits="type" not in spec and len(spec) == 1)
        for spec in specs
        if not isinstance(spec.get("function"), Mapping)
    ]
    if functions and own and not family.schema_with_tools:
        raise ConfigError("Gemini before 3 takes server tools or functions, not both. Leave one out, or ask Gemini 3.")
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
    schema = _fit_schema(function.get("parameters") or {"type": "object"})
    return {"name": function["name"], "parametersJsonSchema": schema, **described(function)}


def _choice(choice: Any) -> Any:
    if name := forced_tool(choice):
        return {"mode": "ANY", "allowedFunctionNames": [name]}
    return {"mode": _CHOICES[choice]} if isinstance(choice, str) and choice in _CHOICES else choice


def _generation_config(
    asked: Asked, model_name: str, params: dict[str, Any], family: GeminiFamily, downgrades: Downgrades
) -> dict[str, Any]:
    """Take the parameters of `generationConfig` out of `params`, and return it."""
    if not family.sampling:
        downgrades += omitted(params, "this model takes no sampling parameters")
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
            config["responseJsonSchema"] = _fit_schema(schema["schema"])
    return config


def _fit_schema(schema: Mapping[str, Any]) -> dict[str, Any]:
    """Return a JSON schema that requires no property through which an object holds itself: the service refuses those.

    Source: https://ai.google.dev/api/generate-content
    """
    defs = mapping(schema.get("$defs"))
    leads = {name: _refs_in(part) for name, part in defs.items()}
    for name in defs:  # what a definition leads to leads on
        leads = {each: refs | leads[name] if name in refs else refs for each, refs in leads.items()}
    fit: dict[str, Any] = {}
    for name, part in defs.items():
        leading = {each for each, refs in leads.items() if name in refs} | {name}
        fields, required = mapping(mapping(part).get("properties")), mapping(part).get("required")
        if isinstance(required, list):
            required = [field for field in required if leading.isdisjoint(_refs_in(fields.get(field)))]
        fit[name] = part if required is None else {**part, "required": required}
    root = {key: part for key, part in schema.items() if key != "$defs"}
    root = next((fit[name] for name, part in defs.items() if part == root), root)  # it may be a copy of one of them
    return {**schema, **root, "$defs": fit} if defs else root


def _refs_in(part: Any) -> set[str]:
    return set(_REF.findall(json.dumps(part, ensure_ascii=False, default=str)))


def _thinking_config(thinking: Any, family: GeminiFamily, model_name: str) -> dict[str, Any]:
    """Return `thinking` in the words that the model has.

    Raises:
        ConfigError: it has none for that; the error names those it has.
    """
    if thinking is None:
        return {}
    thinks, takes_budget = family.thinking != "none", family.thinking == "budget"
    words, least = family.words if thinks else (), 1 if takes_budget else None
    has_off = family.off is not None or not thinks
    said = thinking_of(thinking, model_name, words=words, off=has_off, least_budget=least)
    name = "thinkingBudget" if takes_budget else "thinkingLevel"
    if said == "off":
        return {name: family.off} if thinks else {}
    return {name: budget_of(said) if takes_budget else said, "includeThoughts": True}
