"""The official SDKs as referees: a request body fits their parameter types, field by field, and has no field beside."""

from __future__ import annotations

import functools
import importlib
from collections.abc import Callable, Mapping
from importlib.metadata import version
from typing import Any

from pydantic import TypeAdapter


def is_of_today(package: str, *least: int) -> bool:
    """Whether a package has at least this version: the oldest that we allow lack what services and pages have today."""
    return tuple(map(int, version(package).split(".")[: len(least)])) >= least


def check_messages(body: Mapping[str, Any]) -> None:
    """Raise where Anthropic's SDK could not have sent the body."""
    _check(_type("anthropic.types", "MessageCreateParams"), body)


def check_responses(body: Mapping[str, Any]) -> None:
    """Raise where OpenAI's SDK could not have sent the body.

    Its type of an assistant's message wants an id, which the service takes only where it gave one: a message without
    one gets a made-up id before it is checked.
    """
    items = [
        {"id": "msg_1", "status": "completed", **item}
        if item.get("type") == "message" and item.get("role") == "assistant"
        else item
        for item in body["input"]
    ]
    if is_of_today("openai", 3):
        _check(_type("openai.types.responses", "ResponseCreateParams"), {**body, "input": items})


def check_gemini(body: Mapping[str, Any]) -> None:
    """Raise where Google's SDK could not have sent the body; it forbids unknown fields itself."""
    from google.genai import types

    known = {
        "contents": types.Content, "tools": types.Tool, "systemInstruction": types.Content,
        "toolConfig": types.ToolConfig, "generationConfig": types.GenerationConfig,
    }  # fmt: skip
    for name, value in body.items():
        for part in value if isinstance(value, list) else [value]:
            known[name].model_validate(part)


CHECKS: dict[str, Callable[[Mapping[str, Any]], None]] = {
    "messages": check_messages, "responses": check_responses, "gemini": check_gemini,
}  # fmt: skip
"""By wire."""


@functools.cache
def _type(module: str, name: str) -> TypeAdapter[Any]:
    return TypeAdapter(getattr(importlib.import_module(module), name))


def _check(adapter: TypeAdapter[Any], body: Mapping[str, Any]) -> None:
    read = _plain(adapter.validate_python(dict(body)))
    assert read == dict(body), "a field that the type does not know was dropped"


def _plain(value: Any) -> Any:
    """Return the value with everything read that is read lazily."""
    if isinstance(value, Mapping):
        return {name: _plain(item) for name, item in value.items()}
    if isinstance(value, (str, bytes, int, float, bool)) or value is None:
        return value
    return [_plain(item) for item in value]
