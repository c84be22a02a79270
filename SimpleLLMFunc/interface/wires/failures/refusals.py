"""What a service refused: a way to ask, a tool, an image, a model that it does not have; pure.

Its `param` and `code` say so, or words that are known. What is not sure stays a plain `BadRequest`: to ask in another
way after an error that meant something else would hide it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Sequence
from typing import Literal, TypeAlias

from SimpleLLMFunc.errors import BadRequest

Refused: TypeAlias = Literal["", "wire", "images", "sound", "model", "response_format", "tool_choice", "tools"]
"""What is refused: this protocol, images, sound, the model, or the field of the body with this name. Empty: unknown."""

_STATUSES = frozenset({400, 404, 422, 500})
"""llama.cpp answers 500 where a model cannot take an image, OpenRouter 404 where no provider knows tools."""

_UNKNOWN_PARAMETER = frozenset({"unsupported_parameter", "unsupported_value", "unknown_parameter", "extra_forbidden"})
_MODEL_CODES = frozenset({"model_not_found", "model_not_available"})

_NOT = r"(?:not|un) ?(?:supported|available|enabled|allowed|known|recognized)"
_CALLS = r"(?:tools?|tool (?:use|calling|calls?)|function call(?:s|ing)?)"

_NAMED = r"(?:[`'\"]?[^\s`'\"]+[`'\"]?,?\s+)?"

# Each with those who say it so: OpenAI, and services that follow it, where no name is given.
_WORDS: tuple[tuple[Refused, str], ...] = (
    # "Function tools with reasoning_effort are not supported … use /v1/responses instead"
    ("wire", r"\bv1/responses\b"),
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
        return named.group(1)
    for text in (param, message):
        for pattern in _TOOL_BY_NUMBER:
            if found := pattern.search(text):
                known = names()
                number = int(found.group(1))
                return known[number] if number < len(known) else ""
    return ""
