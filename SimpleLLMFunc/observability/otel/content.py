"""Messages, replies and tools of a request, as the JSON texts of the GenAI conventions."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from typing import Any

from SimpleLLMFunc.logger import redact_head, shown_data
from SimpleLLMFunc.type import ChatCompletion, ToolSpec

LONGEST = 65_536
"""About the most characters of one attribute."""

_SHORTEST = 200
"""Characters of each message that stay, however many messages there are."""

_DEEPEST = 32
"""Levels of a schema or of arguments that are shown."""

_FINISH = {"tool_calls": "tool_call", "function_call": "tool_call"}
"""Finish reasons with another name in the conventions."""

_MODALITIES = {"image_url": "image", "input_audio": "audio", "file": "document"}


def json_text(value: Any, limit: int | None = None) -> str:
    """Return `value` as JSON text, redacted; a cut text is valid JSON too.

    Args:
        value: anything; a value without a JSON form is shown by its repr.
        limit: most characters of the text, a hard limit; None is about `LONGEST`.
    """
    room = LONGEST if limit is None else min(LONGEST, limit)
    while True:
        text = json.dumps(shown_data(value, room, _DEEPEST), ensure_ascii=False)
        # The databases behind the pages store neither lone surrogates nor NUL.
        text = text.encode("utf-8", "replace").decode().replace("\\u0000", "�")
        if limit is None or len(text) <= limit:
            return text
        if room < 8:
            return '"…"' if limit >= 3 else "0"
        room //= 2


def parsed(value: Any) -> Any:
    """Return the data of a JSON text; any other value unchanged."""
    if isinstance(value, str):
        with suppress(ValueError, RecursionError):
            return json.loads(value)
    return value


def chat_input(messages: Iterable[Any]) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """Return the instructions and the messages of a request, in the form of the conventions."""
    instructions: list[dict[str, Any]] = []
    shown: list[dict[str, Any]] = []
    for message in messages:
        role = message.get("role")
        if role in {"system", "developer"}:
            instructions += _parts(message.get("content"))
        elif role == "tool":
            answer = {
                "type": "tool_call_response",
                "id": message.get("tool_call_id"),
                "response": message.get("content"),
            }
            shown.append({"role": "tool", "parts": [answer]})
        else:
            shown.append({"role": role, "parts": _message_parts(message)})
    _shorten([part for message in shown for part in message["parts"]])
    return instructions, shown


def _shorten(parts: list[dict[str, Any]]) -> None:
    """Cut the long texts of a long conversation, so that its end is shown too: the model answers that."""
    texts = [(part, name) for part in parts for name in ("content", "response") if isinstance(part.get(name), str)]
    if sum(len(part[name]) for part, name in texts) <= LONGEST * 3 // 4:
        return
    room = max(LONGEST // 2 // len(texts), _SHORTEST)
    for part, name in texts:
        if len(part[name]) > room:
            part[name] = redact_head(part[name], room)


def output_messages(reply: ChatCompletion) -> list[dict[str, Any]]:
    """Return what a model wrote, choice by choice, in the form of the conventions."""
    return [
        {
            "role": choice.message.role,
            "parts": _message_parts(choice.message.to_dict()),
            "finish_reason": _FINISH.get(choice.finish_reason or "", choice.finish_reason or "stop"),
        }
        for choice in reply.choices
    ]


def tool_definitions(tools: Sequence[ToolSpec]) -> list[dict[str, Any]]:
    """Return the tools that a request offers, in the form of the conventions."""
    return [{"type": tool.get("type", "function"), **(tool.get("function") or {})} for tool in tools]


def _message_parts(message: Mapping[str, Any]) -> list[dict[str, Any]]:
    parts: list[dict[str, Any]] = []
    if reasoning := message.get("reasoning_content"):
        parts.append({"type": "reasoning", "content": reasoning})
    parts += _parts(message.get("content"))
    if refusal := message.get("refusal"):
        parts.append({"type": "text", "content": refusal})
    parts += [_call(call) for call in message.get("tool_calls") or ()]
    return parts


def _call(call: Mapping[str, Any]) -> dict[str, Any]:
    function = call.get("function") or {}
    arguments = parsed(function.get("arguments"))
    return {"type": "tool_call", "id": call.get("id"), "name": function.get("name"), "arguments": arguments}


def _parts(content: Any) -> list[dict[str, Any]]:
    if content is None or content == "":
        return []
    if isinstance(content, str):
        return [{"type": "text", "content": content}]
    return [_part(part) for part in content] if isinstance(content, (list, tuple)) else _parts(str(content))


def _part(part: Any) -> dict[str, Any]:
    if not isinstance(part, Mapping):
        return {"type": "text", "content": str(part)}
    kind = str(part.get("type") or "")
    if kind == "text":
        return {"type": "text", "content": part.get("text")}
    modality = _MODALITIES.get(kind)
    if modality is None:
        return dict(part)
    held: Any = part.get(kind)
    held = held if isinstance(held, Mapping) else {"url": held}
    address = held.get("url") or held.get("file_data")
    if isinstance(address, str) and not address.startswith("data:"):
        return {"type": "uri", "modality": modality, "uri": address}
    # The bytes are not exported: a span has their size.
    mime_type, data = _data(address) if isinstance(address, str) else (held.get("format"), held.get("data"))
    size = len(data) * 3 // 4 if isinstance(data, str) else 0
    return {"type": "blob", "modality": modality, "mime_type": mime_type, "content": f"<{modality} {size} B>"}


def _data(address: str) -> tuple[str, str]:
    head, _, data = address.removeprefix("data:").partition(",")
    return head.partition(";")[0], data
