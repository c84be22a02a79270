"""A reply of ``generateContent``, read into the form of chat completions."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from SimpleLLMFunc.interface.wires.provider_state import STATE, state_of
from SimpleLLMFunc.interface.wires.streams.delta_assembly import new_call_id
from SimpleLLMFunc.interface.wires.wire import Received
from SimpleLLMFunc.type import ChatCompletion, mapping, mappings

__all__ = [
    "blocked_in",
    "call_dict",
    "calls_in",
    "completion_of",
    "extra_of",
    "finish_of",
    "logprobs_in",
    "problem_of",
    "text_in",
    "thinking_in",
    "usage_dict",
]

_CUT = frozenset({"MAX_TOKENS", "CONTINUATION"})
_BLOCKED = frozenset(
    {"SAFETY", "RECITATION", "BLOCKLIST", "PROHIBITED_CONTENT", "SPII", "LANGUAGE", "MODEL_ARMOR", "ESCALATION"}
    | {"PUP_LIMITED_DISABLED"}
)


def text_in(parts: Iterable[Mapping[str, Any]]) -> str:
    """Return the answer: the text of the parts that are no thought."""
    return "".join(str(part.get("text") or "") for part in parts if not part.get("thought"))


def thinking_in(parts: Iterable[Mapping[str, Any]]) -> str:
    """Return the thinking that the service shows."""
    return "".join(str(part.get("text") or "") for part in parts if part.get("thought"))


def calls_in(parts: Iterable[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """Return the calls of the user's tools."""
    return [part["functionCall"] for part in parts if isinstance(part.get("functionCall"), Mapping)]


def call_dict(call: Mapping[str, Any]) -> dict[str, Any]:
    """Return a call in chat completions' form; one without an id gets one."""
    arguments = json.dumps(call.get("args") or {}, ensure_ascii=False)
    return {
        "id": str(call.get("id") or "") or new_call_id(),
        "type": "function",
        "function": {"name": str(call.get("name") or ""), "arguments": arguments},
    }


def extra_of(parts: Sequence[Mapping[str, Any]], wire: str, service: str) -> dict[str, Any]:
    """Return what stands on the message beside text and calls: the parts, where the service wants them back."""
    if all(part.keys() <= {"text", "functionCall"} for part in parts):
        calls = calls_in(parts)
        if not any(call.get("id") for call in calls):
            return {}
    return {STATE: state_of(wire, service, [dict(part) for part in parts])}


def finish_of(reason: str, parts: Iterable[Mapping[str, Any]]) -> str | None:
    """Return our finish reason; None for one that is no answer."""
    if reason in _CUT:
        return "length"
    if reason in _BLOCKED or reason.startswith("IMAGE_"):
        return "content_filter"
    if reason != "STOP":
        return None
    return "tool_calls" if calls_in(parts) else "stop"


def blocked_in(body: Mapping[str, Any]) -> str:
    """Return why the service refused the prompt; empty where it did not."""
    feedback = body.get("promptFeedback")
    if not isinstance(feedback, Mapping):
        return ""
    said = [feedback.get("blockReason"), feedback.get("blockReasonMessage")]
    told = ": ".join(word for word in said if isinstance(word, str) and word)
    return f"the prompt was blocked: {told}" if told else ""


def usage_dict(usage: Any) -> dict[str, Any] | None:
    """Return the usage in chat completions' form; the service counts thinking beside the answer."""
    if not isinstance(usage, Mapping) or not usage.get("totalTokenCount"):
        return None

    def count(name: str) -> int:
        value = usage.get(name)
        return value if isinstance(value, int) and value > 0 else 0

    thoughts = count("thoughtsTokenCount")
    prompt = count("promptTokenCount") + count("toolUsePromptTokenCount")
    completion = count("candidatesTokenCount") + thoughts
    return {
        "prompt_tokens": prompt,
        "completion_tokens": completion,
        "total_tokens": prompt + completion,
        "prompt_tokens_details": {"cached_tokens": count("cachedContentTokenCount")},
        "completion_tokens_details": {"reasoning_tokens": thoughts},
    }


def logprobs_in(candidate: Mapping[str, Any]) -> dict[str, Any] | None:
    """Return the log-probabilities in chat completions' form."""
    result = mapping(candidate.get("logprobsResult"))
    chosen, tops = mappings(result.get("chosenCandidates")), mappings(result.get("topCandidates"))
    content = [
        {
            **_token(token),
            "top_logprobs": list(map(_token, mappings(tops[place].get("candidates")) if place < len(tops) else ())),
        }
        for place, token in enumerate(chosen)
    ]
    return {"content": content} if content else None


def _token(token: Mapping[str, Any]) -> dict[str, Any]:
    text = str(token.get("token") or "")
    return {"token": text, "logprob": token.get("logProbability"), "bytes": list(text.encode("utf-8", "replace"))}


def problem_of(data: Any) -> str:
    """Return why `data` is no reply of the protocol, empty if it is one."""
    if not isinstance(data, dict):
        return f"a JSON object was expected, not {type(data).__name__}"
    candidates = mappings(data.get("candidates"))
    if not candidates:
        return "" if blocked_in(data) else "it has no candidates"
    for candidate in candidates:
        reason = str(candidate.get("finishReason"))
        if finish_of(reason, ()) is None:
            return f"it stopped for a reason that is no answer: {reason}: {candidate.get('finishMessage') or ''}"
    return ""


def completion_of(body: Mapping[str, Any], wire: str, service: str, received: Received) -> ChatCompletion:
    """Return a whole reply whose form is known to be good."""
    choices = [
        _choice(candidate, place, wire, service) for place, candidate in enumerate(mappings(body.get("candidates")))
    ]
    if not choices:
        message = {"role": "assistant", "content": None, "refusal": blocked_in(body)}
        choices = [{"index": 0, "message": message, "finish_reason": "content_filter"}]
    reply = {
        "id": str(body.get("responseId") or ""),
        "model": str(body.get("modelVersion") or ""),
        "choices": choices,
        "usage": usage_dict(body.get("usageMetadata")),
    }
    return replace(ChatCompletion.from_dict(reply, tries=received.tries), raw=body)


def _choice(candidate: Mapping[str, Any], place: int, wire: str, service: str) -> dict[str, Any]:
    parts = mappings(mapping(candidate.get("content")).get("parts"))
    message: dict[str, Any] = {"role": "assistant", "content": text_in(parts)}
    if calls := calls_in(parts):
        message["content"] = message["content"] or None
        message["tool_calls"] = list(map(call_dict, calls))
    if thinking := thinking_in(parts):
        message["reasoning_content"] = thinking
    message.update(extra_of(parts, wire, service))
    index = candidate.get("index")
    choice = {
        "index": index if isinstance(index, int) else place,
        "message": message,
        "finish_reason": finish_of(str(candidate.get("finishReason")), parts),
    }
    logprobs = logprobs_in(candidate)
    return {**choice, "logprobs": logprobs} if logprobs else choice
