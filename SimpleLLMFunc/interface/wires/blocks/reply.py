"""A reply of ``/v1/messages``, read into the form of chat completions."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from SimpleLLMFunc.interface.wires.provider_state import STATE, state_of
from SimpleLLMFunc.interface.wires.wire import Received
from SimpleLLMFunc.type import ChatCompletion, mappings, text_or_none

__all__ = ["FINISH", "calls_in", "completion_of", "extra_of", "refusal_in", "text_in", "thinking_in", "usage_dict"]

FINISH = {
    "end_turn": "stop",
    "stop_sequence": "stop",
    "tool_use": "tool_calls",
    "max_tokens": "length",
    "model_context_window_exceeded": "length",
    "pause_turn": "pause_turn",
    "refusal": "content_filter",
}
"""Our finish reason for each of the service's; another one is no answer."""

_PLAIN = frozenset({"text", "tool_use"})


def text_in(blocks: Iterable[Mapping[str, Any]]) -> str:
    """Return the answer: the text of all text blocks."""
    return "".join(str(block.get("text") or "") for block in blocks if block.get("type") == "text")


def thinking_in(blocks: Iterable[Mapping[str, Any]]) -> str:
    """Return the thinking that the service shows, blocks apart by a blank line."""
    texts = (str(block.get("thinking") or "") for block in blocks if block.get("type") == "thinking")
    return "\n\n".join(filter(None, texts))


def calls_in(blocks: Iterable[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """Return the calls of the user's tools."""
    return [block for block in blocks if block.get("type") == "tool_use"]


def refusal_in(details: Any) -> str:
    """Return why the model refused, as the service says it."""
    details = details if isinstance(details, Mapping) else {}
    said = [details.get("category"), details.get("explanation")]
    return ": ".join(word for word in said if isinstance(word, str) and word) or "the service refused"


def extra_of(blocks: Sequence[Mapping[str, Any]], wire: str, service: str, prefix: str) -> dict[str, Any]:
    """Return what stands on the message beside text and calls: the blocks, where the service wants them back."""
    if all(text_or_none(block.get("type")) in _PLAIN and not block.get("citations") for block in blocks):
        return {}
    return {STATE: state_of(wire, service, [dict(block) for block in blocks], prefix)}


def usage_dict(usage: Any) -> dict[str, Any] | None:
    """Return the usage in chat completions' form; the service counts cached tokens beside the input."""
    if not isinstance(usage, Mapping):
        return None

    def count(name: str, of: Any = usage) -> int:
        value = of.get(name) if isinstance(of, Mapping) else None
        return value if isinstance(value, int) and value > 0 else 0

    cached, written = count("cache_read_input_tokens"), count("cache_creation_input_tokens")
    prompt, completion = count("input_tokens") + cached + written, count("output_tokens")
    thinking = count("thinking_tokens", usage.get("output_tokens_details"))
    return {
        "prompt_tokens": prompt,
        "completion_tokens": completion,
        "total_tokens": prompt + completion,
        "prompt_tokens_details": {"cached_tokens": cached, "cache_write_tokens": written},
        "completion_tokens_details": {"reasoning_tokens": thinking},
    }


def completion_of(body: Mapping[str, Any], wire: str, service: str, received: Received) -> ChatCompletion:
    """Return a whole reply whose form and stop reason are known to be good."""
    blocks = mappings(body.get("content"))
    message: dict[str, Any] = {"role": "assistant", "content": text_in(blocks)}
    calls = calls_in(blocks)
    if calls:
        message["tool_calls"] = [
            {
                "id": str(call.get("id") or ""),
                "type": "function",
                "function": {
                    "name": str(call.get("name") or ""),
                    "arguments": json.dumps(call.get("input") or {}, ensure_ascii=False),
                },
            }
            for call in calls
        ]
        message["content"] = message["content"] or None
    if thinking := thinking_in(blocks):
        message["reasoning_content"] = thinking
    reason = FINISH[str(body.get("stop_reason"))]
    if reason == "content_filter":
        message["refusal"] = refusal_in(body.get("stop_details"))
    message.update(extra_of(blocks, wire, service, received.kept.prefix))
    reply = {
        "id": str(body.get("id") or ""),
        "model": str(body.get("model") or ""),
        "choices": [{"index": 0, "message": message, "finish_reason": reason}],
        "usage": usage_dict(body.get("usage")),
    }
    return replace(ChatCompletion.from_dict(reply, tries=received.tries), raw=body)
