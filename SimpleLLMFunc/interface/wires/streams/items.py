"""A reply of ``/v1/responses``, whole or streamed, read into the form of chat completions."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from SimpleLLMFunc.interface.wires.provider_state import STATE, state_of
from SimpleLLMFunc.interface.wires.streams.chunk_reader import EventReader, joined
from SimpleLLMFunc.interface.wires.streams.delta_assembly import call_dict
from SimpleLLMFunc.interface.wires.streams.sse import ServerSentEvent
from SimpleLLMFunc.interface.wires.wire import Received
from SimpleLLMFunc.type import ChatCompletion, ChatCompletionChunk, mapping, mappings, text_or_none

WIRE = "responses"
_ENDED = frozenset({"completed", "incomplete"})
_THOUGHTS = frozenset({"response.reasoning_summary_text.delta", "response.reasoning_text.delta"})
_ENDS = frozenset({"response.completed", "response.incomplete"})
_FAILS = frozenset({"error", "response.failed", "response.cancelled"})


def _said(items: Iterable[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """Return the messages that are the answer: comments on the way to it are not, where there is anything else."""
    messages = [item for item in items if item.get("type") == "message"]
    return [item for item in messages if item.get("phase") != "commentary"] or messages


def _parts(items: Iterable[Mapping[str, Any]], kind: str) -> list[Mapping[str, Any]]:
    return [part for item in items for part in mappings(item.get("content")) if part.get("type") == kind]


def text_in(items: Iterable[Mapping[str, Any]]) -> str:
    """Return the answer; of several texts the final one."""
    return joined(_parts(_said(items), "output_text"))


def _refusal_in(items: Iterable[Mapping[str, Any]]) -> str:
    """Return what the model said when it refused, empty where it did not."""
    return joined(_parts(_said(items), "refusal"), "refusal")


def _thinking_in(items: Iterable[Mapping[str, Any]]) -> str:
    """Return the reasoning that the service shows, parts apart by a blank line."""
    thoughts = [item for item in items if item.get("type") == "reasoning"]
    parts = [part for item in thoughts for part in mappings(item.get("summary")) or mappings(item.get("content"))]
    return joined(parts, between="\n\n")


def calls_in(items: Iterable[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """Return the calls of the user's tools."""
    return [item for item in items if item.get("type") == "function_call"]


def _is_plain(item: Mapping[str, Any]) -> bool:
    if item.get("type") != "message":
        return item.get("type") == "function_call"
    return not item.get("phase") and not any(part.get("annotations") for part in mappings(item.get("content")))


def _usage(usage: Any) -> dict[str, Any] | None:
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


class ItemReader(EventReader):
    """Reads one reply; a stream is complete with the event that holds the whole reply.

    Source: https://platform.openai.com/docs/api-reference/responses-streaming
    """

    def __init__(self, received: Received, service: str) -> None:
        super().__init__(received, service)
        self._items: dict[Any, Mapping[str, Any]] = {}  # as they were added
        self._done: dict[Any, Mapping[str, Any]] = {}
        self._told: set[Any] = set()  # the calls of which arguments have come
        self._latest: Any = None
        self._is_thinking = False

    def problem_of(self, data: Mapping[str, Any]) -> str:
        """Return why a whole reply does not fit the protocol, empty if it does."""
        if not isinstance(data.get("output"), list):
            return "it has no output"
        return "" if text_or_none(data.get("status")) in _ENDED else f"its status is {data.get('status')}"

    def completion_of(self, data: dict[str, Any]) -> ChatCompletion:
        """Return a whole reply whose form is known to be good."""
        items = mappings(data.get("output"))
        calls = [call_dict(call.get("call_id"), call.get("name"), call.get("arguments")) for call in calls_in(items)]
        more = self._extra_of(items, data.get("status"))
        if refusal := _refusal_in(items):
            more["refusal"] = refusal
        message = self.message_of(text_in(items), calls, _thinking_in(items), more)
        logprobs = [entry for part in _parts(_said(items), "output_text") for entry in mappings(part.get("logprobs"))]
        choice = self.choice_of(message, self._finish_of(data, items), logprobs and {"content": logprobs})
        return self.completion(data, [choice], _usage(data.get("usage")))

    def _extra_of(self, items: Sequence[Mapping[str, Any]], status: object) -> dict[str, Any]:
        """Return further fields of the message: the items, where the service wants them back."""
        # Of a reply that was cut, reasoning may stand last; the service refuses it without what it led to.
        if status != "completed" or all(map(_is_plain, items)):
            return {}
        return {STATE: state_of(WIRE, self._service, [dict(item) for item in items])}

    def _finish_of(self, response: Mapping[str, Any], items: Sequence[Mapping[str, Any]]) -> str:
        """Return our finish reason of a reply that has ended."""
        if response.get("status") == "incomplete":
            reason = mapping(response.get("incomplete_details")).get("reason")
            return "content_filter" if reason == "content_filter" else "length"
        if calls_in(items):
            return "tool_calls"
        # Some servers call a cut reply completed; as many tokens as were asked for tell.
        limit, written = self._received.kept.limit, mapping(response.get("usage")).get("output_tokens")
        return "length" if limit is not None and isinstance(written, int) and written >= limit else "stop"

    def chunk_of(self, value: dict[str, Any], event: ServerSentEvent) -> ChatCompletionChunk | None:
        """Return the chunk in an event; raises what `read` does."""
        kind = text_or_none(value.get("type")) or event.event
        if kind in _FAILS or (not kind and value.get("error")):
            raise self._failure(value)
        if kind == "response.output_text.delta":
            return self._text(value)
        if kind == "response.function_call_arguments.delta":
            return self._arguments(self._key(value), value.get("delta"))
        if kind in _THOUGHTS:
            self._is_thinking = True
            return self.chunk({"reasoning_content": str(value.get("delta") or "")})
        if kind == "response.reasoning_summary_part.added" and self._is_thinking:
            return self.chunk({"reasoning_content": "\n\n"})
        if kind == "response.refusal.delta":
            return self.chunk({"refusal": str(value.get("delta") or "")})
        if kind == "response.output_item.added":
            return self._added(value)
        if kind == "response.output_item.done":
            return self._item_done(value)
        if kind == "response.created":
            self._facts = self.facts_of(mapping(value.get("response")))
            return self.chunk({"role": "assistant"})
        return self._ended(mapping(value.get("response"))) if kind in _ENDS else None

    def _key(self, value: Mapping[str, Any]) -> Any:
        """Return what an item is known by: its place; its id, where no place is told; else it is the last one."""
        for name in ("output_index", "item_id"):
            if isinstance(value.get(name), (int, str)):
                return value[name]
        return text_or_none(mapping(value.get("item")).get("id")) or self._latest

    def _added(self, value: Mapping[str, Any]) -> ChatCompletionChunk | None:
        item, key = mapping(value.get("item")), self._key(value)
        self._items[key], self._latest = item, key
        if item.get("type") != "function_call":
            return None
        return self.chunk({"tool_calls": [self._call(key, item)]})

    def _call(self, key: Any, item: Mapping[str, Any], arguments: Any = "") -> dict[str, Any]:
        return self.new_call(key, item.get("call_id"), item.get("name"), arguments)

    def _text(self, value: Mapping[str, Any]) -> ChatCompletionChunk | None:
        # A comment on the way to the answer is shown at the end, where nothing else is said.
        if self._items.get(self._key(value), {}).get("phase") == "commentary":
            return None
        logprobs = mappings(value.get("logprobs"))
        return self.chunk({"content": str(value.get("delta") or "")}, logprobs=logprobs and {"content": logprobs})

    def _arguments(self, key: Any, piece: Any) -> ChatCompletionChunk | None:
        if key not in self._call_numbers or not isinstance(piece, str) or not piece:
            return None
        self._told.add(key)
        return self.more_of_call(key, piece)

    def _item_done(self, value: Mapping[str, Any]) -> ChatCompletionChunk | None:
        item, key = mapping(value.get("item")), self._key(value)
        # What the service wants back is whole only here.
        self._done[key] = item
        if item.get("type") != "function_call" or key in self._told:
            return None
        if key in self._call_numbers:
            return self._arguments(key, item.get("arguments"))
        self._told.add(key)
        return self.chunk({"tool_calls": [self._call(key, item, item.get("arguments"))]})

    def _ended(self, response: Mapping[str, Any]) -> ChatCompletionChunk:
        self._facts = {**self._facts, **{name: fact for name, fact in self.facts_of(response).items() if fact}}
        items = list(self._done.values()) or mappings(response.get("output"))
        said = self._extra_of(items, response.get("status"))
        if not self._has_shown and (text := text_in(items)):
            said["content"] = text
        if not self.count and (refusal := _refusal_in(items)):
            said["refusal"] = refusal
        if not self._call_numbers and (calls := calls_in(items)):
            said["tool_calls"] = [self._call(index, call, call.get("arguments")) for index, call in enumerate(calls)]
        self.is_done = True
        return self.chunk(said, self._finish_of(response, items), _usage(response.get("usage")))

    def _failure(self, value: dict[str, Any]) -> Exception:
        if value.get("type") == "response.cancelled":
            return self.broken("the service cancelled the reply")
        error = mapping(value.get("response")).get("error") or value.get("error") or value
        return self.error_in({"error": dict(error) if isinstance(error, Mapping) else error})
