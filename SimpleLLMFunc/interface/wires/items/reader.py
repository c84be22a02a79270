"""A stream of ``/v1/responses``, read event by event."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from SimpleLLMFunc.interface.wires.items.reply import (
    calls_in,
    extra_of,
    facts_of,
    finish_of,
    refusal_in,
    text_in,
    usage_dict,
)
from SimpleLLMFunc.interface.wires.streams.chunk_reader import EventReader
from SimpleLLMFunc.interface.wires.streams.sse import ServerSentEvent
from SimpleLLMFunc.interface.wires.wire import Received
from SimpleLLMFunc.type import ChatCompletionChunk, mapping, mappings, text_or_none

_THOUGHTS = frozenset({"response.reasoning_summary_text.delta", "response.reasoning_text.delta"})
_ENDS = frozenset({"response.completed", "response.incomplete"})
_FAILS = frozenset({"error", "response.failed", "response.cancelled"})


class ItemReader(EventReader):
    """Reads one stream; it is complete with the event that holds the whole reply.

    Source: https://platform.openai.com/docs/api-reference/responses-streaming
    """

    def __init__(self, received: Received, service: str) -> None:
        super().__init__(received, service)
        self._items: dict[Any, Mapping[str, Any]] = {}  # as they were added
        self._done: dict[Any, Mapping[str, Any]] = {}
        self._call_numbers: dict[Any, int] = {}
        self._told: set[Any] = set()  # the calls of which arguments have come
        self._latest: Any = None
        self._is_thinking = False

    @property
    def is_complete(self) -> bool:
        """Whether the answer has ended."""
        return self.is_done

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
            self._facts = facts_of(mapping(value.get("response")))
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
        return self.chunk({"tool_calls": [self._begun(key, item)]})

    def _begun(self, key: Any, item: Mapping[str, Any]) -> dict[str, Any]:
        number = self._call_numbers[key] = len(self._call_numbers)
        function = {"name": str(item.get("name") or ""), "arguments": ""}
        return {"index": number, "id": str(item.get("call_id") or ""), "type": "function", "function": function}

    def _text(self, value: Mapping[str, Any]) -> ChatCompletionChunk | None:
        # A comment on the way to the answer is shown at the end, where nothing else is said.
        if self._items.get(self._key(value), {}).get("phase") == "commentary":
            return None
        logprobs = mappings(value.get("logprobs"))
        return self.chunk({"content": str(value.get("delta") or "")}, logprobs=logprobs and {"content": logprobs})

    def _arguments(self, key: Any, piece: Any) -> ChatCompletionChunk | None:
        number = self._call_numbers.get(key)
        if number is None or not isinstance(piece, str) or not piece:
            return None
        self._told.add(key)
        return self.chunk({"tool_calls": [{"index": number, "function": {"arguments": piece}}]})

    def _item_done(self, value: Mapping[str, Any]) -> ChatCompletionChunk | None:
        item, key = mapping(value.get("item")), self._key(value)
        # What the service wants back is whole only here.
        self._done[key] = item
        if item.get("type") != "function_call" or key in self._told:
            return None
        if key in self._call_numbers:
            return self._arguments(key, item.get("arguments"))
        call = self._begun(key, item)
        call["function"]["arguments"] = item.get("arguments")
        self._told.add(key)
        return self.chunk({"tool_calls": [call]})

    def _ended(self, response: Mapping[str, Any]) -> ChatCompletionChunk:
        self._facts = {**self._facts, **{name: fact for name, fact in facts_of(response).items() if fact}}
        items = list(self._done.values()) or mappings(response.get("output"))
        said = extra_of(items, response.get("status"), self._service)
        if not self._has_shown and (text := text_in(items)):
            said["content"] = text
        if not self.count and (refusal := refusal_in(items)):
            said["refusal"] = refusal
        if not self._call_numbers and (calls := calls_in(items)):
            said["tool_calls"] = [
                {**self._begun(index, call), "function": {"name": call.get("name"), "arguments": call.get("arguments")}}
                for index, call in enumerate(calls)
            ]
        reason = finish_of(response, items, self._received.kept.limit)
        self.is_done = True
        return self.chunk(said, reason, usage_dict(response.get("usage")))

    def _failure(self, value: dict[str, Any]) -> Exception:
        response = mapping(value.get("response"))
        error = response.get("error") or value.get("error") or value
        if value.get("type") == "response.cancelled":
            return self.broken("the service cancelled the reply")
        return self.error_in({"error": dict(error) if isinstance(error, Mapping) else error})
