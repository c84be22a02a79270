"""A reply of ``/v1/messages``, read into the form of chat completions."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from SimpleLLMFunc.interface.wires.provider_state import STATE, state_of
from SimpleLLMFunc.interface.wires.replies import call_dict, completion_from, message_of, usage_of
from SimpleLLMFunc.interface.wires.wire import Received
from SimpleLLMFunc.type import ChatCompletion, count, mappings, text_or_none

WIRE = "messages"
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


def extra_of(blocks: Sequence[Mapping[str, Any]], service: str, prefix: str) -> dict[str, Any]:
    """Return further fields of the message: the blocks, where the service wants them back."""
    if all(text_or_none(block.get("type")) in _PLAIN and not block.get("citations") for block in blocks):
        return {}
    return {STATE: state_of(WIRE, service, [dict(block) for block in blocks], prefix)}


def usage_dict(usage: Any) -> dict[str, Any] | None:
    """Return the usage in chat completions' form; the service does not count cached tokens as input."""
    if not isinstance(usage, Mapping):
        return None
    cached, written = count(usage, "cache_read_input_tokens"), count(usage, "cache_creation_input_tokens")
    return usage_of(
        count(usage, "input_tokens") + cached + written,
        count(usage, "output_tokens"),
        cached=cached,
        written=written,
        thinking=count(usage.get("output_tokens_details"), "thinking_tokens"),
    )


def problem_of(data: Mapping[str, Any]) -> str:
    """Return why `data` is no reply of the protocol, empty if it is one."""
    content = data.get("content")
    if not isinstance(content, list) or not all(isinstance(block, dict) for block in content):
        return "it has no content"
    if text_or_none(data.get("stop_reason")) not in FINISH:
        return f"it stopped for a reason that is not known: {data.get('stop_reason')}"
    return ""


def completion_of(body: Mapping[str, Any], service: str, received: Received) -> ChatCompletion:
    """Return a whole reply whose form and stop reason are known to be good."""
    blocks, reason = mappings(body.get("content")), FINISH[str(body.get("stop_reason"))]
    calls = [call_dict(call.get("id"), call.get("name"), call.get("input") or {}) for call in calls_in(blocks)]
    more = extra_of(blocks, service, received.kept.prefix)
    if reason == "content_filter":
        more["refusal"] = refusal_in(body.get("stop_details"))
    message = message_of(text_in(blocks), calls, thinking_in(blocks), more)
    choice = {"index": 0, "message": message, "finish_reason": reason}
    return completion_from(body, received, facts_of(body), [choice], usage_dict(body.get("usage")))


def facts_of(body: Mapping[str, Any]) -> dict[str, Any]:
    """Return what a reply says of itself."""
    return {"id": str(body.get("id") or ""), "model": str(body.get("model") or "")}
