"""A reply of ``generateContent``, read into the form of chat completions."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from SimpleLLMFunc.interface.wires.provider_state import STATE, state_of
from SimpleLLMFunc.interface.wires.replies import call_dict, completion_from, message_of, usage_of
from SimpleLLMFunc.interface.wires.sources import about_of
from SimpleLLMFunc.interface.wires.streams.delta_assembly import new_call_id
from SimpleLLMFunc.interface.wires.wire import Received
from SimpleLLMFunc.type import ChatCompletion, count, mapping, mappings

WIRE = "gemini"
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


def told_calls(parts: Iterable[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Return the calls in chat completions' form; one without an id gets one."""
    return [call_dict(call.get("id") or new_call_id(), call.get("name"), call.get("args")) for call in calls_in(parts)]


def extra_of(parts: Sequence[Mapping[str, Any]], service: str, about: Mapping[str, Any]) -> dict[str, Any]:
    """Return further fields of the message: the parts, where the service wants them back."""
    is_plain = all(part.keys() <= {"text", "functionCall"} for part in parts)
    if is_plain and not any(call.get("id") for call in calls_in(parts)):
        parts = ()
    return {STATE: state_of(WIRE, service, [*map(dict, parts)], about=about)} if parts or about else {}


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
    """Return the usage in chat completions' form; the service does not count thinking as output."""
    if not isinstance(usage, Mapping) or not usage.get("totalTokenCount"):
        return None
    thoughts = count(usage, "thoughtsTokenCount")
    return usage_of(
        count(usage, "promptTokenCount") + count(usage, "toolUsePromptTokenCount"),
        count(usage, "candidatesTokenCount") + thoughts,
        cached=count(usage, "cachedContentTokenCount"),
        thinking=thoughts,
    )


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


def problem_of(data: Mapping[str, Any]) -> str:
    """Return why `data` is no reply of the protocol, empty if it is one."""
    candidates = mappings(data.get("candidates"))
    if not candidates:
        return "" if blocked_in(data) else "it has no candidates"
    for candidate in candidates:
        reason = str(candidate.get("finishReason"))
        if finish_of(reason, ()) is None:
            return f"it stopped for a reason that is no answer: {reason}: {candidate.get('finishMessage') or ''}"
    return ""


def completion_of(body: Mapping[str, Any], service: str, received: Received) -> ChatCompletion:
    """Return a whole reply whose form is known to be good."""
    choices = [_choice(candidate, place, service) for place, candidate in enumerate(mappings(body.get("candidates")))]
    if not choices:
        message = {"role": "assistant", "content": None, "refusal": blocked_in(body)}
        choices = [{"index": 0, "message": message, "finish_reason": "content_filter"}]
    return completion_from(body, received, facts_of(body), choices, usage_dict(body.get("usageMetadata")))


def facts_of(body: Mapping[str, Any]) -> dict[str, Any]:
    """Return what a reply says of itself."""
    return {"id": str(body.get("responseId") or ""), "model": str(body.get("modelVersion") or "")}


def _choice(candidate: Mapping[str, Any], place: int, service: str) -> dict[str, Any]:
    parts = mappings(mapping(candidate.get("content")).get("parts"))
    index = candidate.get("index")
    choice = {
        "index": index if isinstance(index, int) else place,
        "message": message_of(
            text_in(parts), told_calls(parts), thinking_in(parts), extra_of(parts, service, about_of(candidate))
        ),
        "finish_reason": finish_of(str(candidate.get("finishReason")), parts),
    }
    logprobs = logprobs_in(candidate)
    return {**choice, "logprobs": logprobs} if logprobs else choice
