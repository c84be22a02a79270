"""A reply of ``/v1/responses``, read into the form of chat completions."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from SimpleLLMFunc.interface.wires.provider_state import STATE, state_of
from SimpleLLMFunc.interface.wires.replies import call_dict, completion_from, message_of
from SimpleLLMFunc.interface.wires.wire import Received
from SimpleLLMFunc.type import ChatCompletion, mapping, mappings, text_or_none

WIRE = "responses"
_ENDED = frozenset({"completed", "incomplete"})


def _said(items: Iterable[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """Return the messages that are the answer: comments on the way to it are not, where there is anything else."""
    messages = [item for item in items if item.get("type") == "message"]
    return [item for item in messages if item.get("phase") != "commentary"] or messages


def _parts(items: Iterable[Mapping[str, Any]], kind: str) -> list[Mapping[str, Any]]:
    return [part for item in items for part in mappings(item.get("content")) if part.get("type") == kind]


def text_in(items: Iterable[Mapping[str, Any]]) -> str:
    """Return the answer; of several texts the final one."""
    return "".join(str(part.get("text") or "") for part in _parts(_said(items), "output_text"))


def refusal_in(items: Iterable[Mapping[str, Any]]) -> str:
    """Return what the model said when it refused, empty where it did not."""
    return "".join(str(part.get("refusal") or "") for part in _parts(_said(items), "refusal"))


def thinking_in(items: Iterable[Mapping[str, Any]]) -> str:
    """Return the reasoning that the service shows, parts apart by a blank line."""
    parts = [
        part
        for item in items
        if item.get("type") == "reasoning"
        for part in (mappings(item.get("summary")) or mappings(item.get("content")))
    ]
    return "\n\n".join(filter(None, (str(part.get("text") or "") for part in parts)))


def calls_in(items: Iterable[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """Return the calls of the user's tools."""
    return [item for item in items if item.get("type") == "function_call"]


def _is_plain(item: Mapping[str, Any]) -> bool:
    if item.get("type") != "message":
        return item.get("type") == "function_call"
    return not item.get("phase") and not any(part.get("annotations") for part in mappings(item.get("content")))


def extra_of(items: Sequence[Mapping[str, Any]], status: object, service: str) -> dict[str, Any]:
    """Return further fields of the message: the items, where the service wants them back."""
    # Of a reply that was cut, reasoning may stand last; the service refuses it without what it led to.
    if status != "completed" or all(map(_is_plain, items)):
        return {}
    return {STATE: state_of(WIRE, service, [dict(item) for item in items])}


def usage_dict(usage: Any) -> dict[str, Any] | None:
    """Return the usage in chat completions' form."""
    if not isinstance(usage, Mapping):
        return None
    read, written = mapping(usage.get("input_tokens_details")), mapping(usage.get("output_tokens_details"))
    return {
        "prompt_tokens": usage.get("input_tokens"),
        "completion_tokens": usage.get("output_tokens"),
        "total_tokens": usage.get("total_tokens"),
        "prompt_tokens_details": dict(read),
        "completion_tokens_details": dict(written),
    }


def finish_of(response: Mapping[str, Any], items: Sequence[Mapping[str, Any]], limit: int | None) -> str:
    """Return our finish reason of a reply that has ended.

    Args:
        response: the reply.
        items: what it holds.
        limit: of the tokens that were asked for; some servers call a cut reply completed.
    """
    if response.get("status") == "incomplete":
        reason = mapping(response.get("incomplete_details")).get("reason")
        return "content_filter" if reason == "content_filter" else "length"
    written = mapping(response.get("usage")).get("output_tokens")
    if limit is not None and isinstance(written, int) and written >= limit and not calls_in(items):
        return "length"
    return "tool_calls" if calls_in(items) else "stop"


def problem_of(data: Mapping[str, Any]) -> str:
    """Return why `data` is no reply of the protocol, empty if it is one."""
    if not isinstance(data.get("output"), list):
        return "it has no output"
    return "" if text_or_none(data.get("status")) in _ENDED else f"its status is {data.get('status')}"


def completion_of(body: Mapping[str, Any], service: str, received: Received) -> ChatCompletion:
    """Return a whole reply whose form is known to be good."""
    items = mappings(body.get("output"))
    calls = [call_dict(call.get("call_id"), call.get("name"), call.get("arguments")) for call in calls_in(items)]
    more = extra_of(items, body.get("status"), service)
    if refusal := refusal_in(items):
        more["refusal"] = refusal
    message = message_of(text_in(items), calls, thinking_in(items), more)
    choice = {"index": 0, "message": message, "finish_reason": finish_of(body, items, received.kept.limit)}
    logprobs = [entry for part in _parts(_said(items), "output_text") for entry in mappings(part.get("logprobs"))]
    if logprobs:
        choice["logprobs"] = {"content": logprobs}
    return completion_from(body, received, facts_of(body), [choice], usage_dict(body.get("usage")))


def facts_of(body: Mapping[str, Any]) -> dict[str, Any]:
    """Return what a reply says of itself."""
    return {
        "id": str(body.get("id") or ""),
        "model": str(body.get("model") or ""),
        "created": body.get("created_at"),
    }
