"""A conversation in chat completions' form, written in the items of ``/v1/responses``.

The service wants: a result for each call, and a call for each result; the items of one reply all and in their order,
reasoning right before what it led to.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from SimpleLLMFunc.errors import ConfigError
from SimpleLLMFunc.interface.wires.items.reply import calls_in, text_in
from SimpleLLMFunc.interface.wires.provider_state import state_in

__all__ = ["Conversation", "conversation_of", "instructions_of"]

Item = dict[str, Any]

_NO_RESULT = "The result of this call is not known."


@dataclass(slots=True)
class Conversation:
    """The items for the wire.

    Attributes:
        dropped: why items that the service wanted back stay out; empty where none do.
    """

    items: list[Item] = field(default_factory=list)
    dropped: str = ""


def instructions_of(messages: Sequence[Mapping[str, Any]]) -> str:
    """Return the system prompt: all system messages, joined with blank lines.

    Raises:
        ConfigError: it holds something that is not text.
    """
    texts = []
    for message in messages:
        if message.get("role") in {"system", "developer"}:
            parts = _parts(message.get("content"))
            if any(part["type"] != "input_text" for part in parts):
                raise ConfigError("the system prompt holds something that is not text, which no instructions can be.")
            texts += [part["text"] for part in parts]
    return "\n\n".join(texts)


def conversation_of(messages: Sequence[Mapping[str, Any]], wire: str, service: str) -> Conversation:
    """Return the conversation for the wire; nothing of the caller's is changed.

    Args:
        messages: in chat completions' form.
        wire: the name of the wire; with `service` it says where the conversation goes.
        service: the host; what another one wants back stays out.

    Raises:
        ConfigError: a part that the wire does not take, such as audio.
    """
    made = Conversation()
    open_calls: list[str] = []
    for message in messages:
        role = message.get("role")
        if role == "assistant":
            _settle(made, open_calls)
            items = _assistant_items(message, wire, service, made)
            open_calls = [str(item.get("call_id")) for item in calls_in(items)]
            made.items += items
        elif role == "tool":
            made.items.append(_result(message, open_calls))
        elif role not in {"system", "developer"}:
            _settle(made, open_calls)
            made.items.append({"type": "message", "role": "user", "content": _parts(message.get("content"))})
    _settle(made, open_calls)
    return made


def _parts(content: Any) -> list[Item]:
    """Return a content as the parts of a message."""
    if isinstance(content, str):
        return [{"type": "input_text", "text": content}]
    parts: list[Item] = []
    for part in content or ():
        kind = part.get("type")
        if kind == "text":
            parts.append({"type": "input_text", "text": part.get("text") or ""})
        elif kind == "image_url":
            image = part["image_url"]
            parts.append({"type": "input_image", "image_url": image["url"], "detail": image.get("detail") or "auto"})
        elif kind == "file":
            parts.append({"type": "input_file", **part["file"]})
        elif kind == "input_audio":
            raise ConfigError('/v1/responses takes no audio. Ask with wire="chat", or another model.')
        else:
            parts.append(dict(part))  # a part of the service's own
    return parts


def _assistant_items(message: Mapping[str, Any], wire: str, service: str, made: Conversation) -> list[Item]:
    """Return the items of an assistant's message: those that came, where the message still says the same."""
    content = message.get("content")
    text = content if isinstance(content, str) else "".join(str(part.get("text", "")) for part in content or ())
    calls = message.get("tool_calls") or ()
    state = state_in(message, wire, service)
    if state is not None:
        items: list[Item] = [dict(item) for item in state[0] if isinstance(item, Mapping)]
        came = [(item.get("call_id"), item.get("name"), item.get("arguments")) for item in calls_in(items)]
        if text_in(items) == text and came == [
            (call.get("id"), call["function"].get("name"), call["function"].get("arguments")) for call in calls
        ]:
            return items
        made.dropped = made.dropped or "the message was changed after it had come"
    said: list[Item] = []
    if text:
        part = {"type": "output_text", "text": text, "annotations": []}
        said.append({"type": "message", "role": "assistant", "content": [part]})
    for call in calls:
        function = call.get("function") or {}
        arguments = function.get("arguments") or "{}"
        said.append(
            {
                "type": "function_call",
                "call_id": str(call.get("id") or ""),
                "name": str(function.get("name") or ""),
                "arguments": arguments if isinstance(arguments, str) else json.dumps(arguments, ensure_ascii=False),
            }
        )
    return said


def _result(message: Mapping[str, Any], open_calls: list[str]) -> Item:
    """Return the result of a tool; `open_calls` loses its call."""
    call, content = str(message.get("tool_call_id") or ""), message.get("content")
    if call not in open_calls:
        shown = content if isinstance(content, str) else json.dumps(content, ensure_ascii=False)
        text = f"The result of an earlier tool call: {shown}"
        return {"type": "message", "role": "user", "content": _parts(text)}
    open_calls.remove(call)
    output = content if isinstance(content, str) else _parts(content)
    return {"type": "function_call_output", "call_id": call, "output": output}


def _settle(made: Conversation, open_calls: list[str]) -> None:
    """Add a result for each call that has none."""
    made.items += [{"type": "function_call_output", "call_id": call, "output": _NO_RESULT} for call in open_calls]
    open_calls.clear()
