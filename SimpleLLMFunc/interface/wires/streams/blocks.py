"""A reply of ``/v1/messages``, whole or streamed, read into the form of chat completions."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from SimpleLLMFunc.interface.body_json import decoded
from SimpleLLMFunc.interface.wires.provider_state import STATE, state_of
from SimpleLLMFunc.interface.wires.streams.delta_assembly import call_dict
from SimpleLLMFunc.interface.wires.streams.events import EventReader, ServerSentEvent, joined, reason_in, usage_dict
from SimpleLLMFunc.interface.wires.wire import Received
from SimpleLLMFunc.type import ChatCompletion, ChatCompletionChunk, count, index_of, mapping, mappings, text_or_none

WIRE = "messages"
_FINISH = {
    "end_turn": "stop", "stop_sequence": "stop", "tool_use": "tool_calls", "max_tokens": "length",
    "model_context_window_exceeded": "length", "pause_turn": "pause_turn", "refusal": "content_filter",
}  # fmt: skip
"""Our finish reason for each of the service's; another one is no answer."""

_PLAIN = frozenset({"text", "tool_use"})
_SHOWN = {"text_delta": ("text", "content"), "thinking_delta": ("thinking", "reasoning_content")}


def text_in(blocks: Iterable[Mapping[str, Any]]) -> str:
    """Return the answer: the text of all text blocks."""
    return joined(block for block in blocks if block.get("type") == "text")


def _thinking_in(blocks: Iterable[Mapping[str, Any]]) -> str:
    """Return the thinking that the service shows, blocks apart by a blank line."""
    return joined((block for block in blocks if block.get("type") == "thinking"), "thinking", "\n\n")


def calls_in(blocks: Iterable[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """Return the calls of the user's tools."""
    return [block for block in blocks if block.get("type") == "tool_use"]


def _usage(usage: Any) -> dict[str, Any] | None:
    """Return the usage in chat completions' form; the service does not count cached tokens as input."""
    if not isinstance(usage, Mapping):
        return None
    cached, written = count(usage, "cache_read_input_tokens"), count(usage, "cache_creation_input_tokens")
    return usage_dict(
        count(usage, "input_tokens") + cached + written,
        count(usage, "output_tokens"),
        cached=cached,
        written=written,
        thinking=count(usage.get("output_tokens_details"), "thinking_tokens"),
    )


class BlockReader(EventReader):
    """Reads one reply; a stream is complete when the service has named a stop reason.

    Source: https://docs.anthropic.com/en/api/messages-streaming
    """

    def __init__(self, received: Received, service: str) -> None:
        super().__init__(received, service)
        self._usage: dict[str, Any] = {}
        self._blocks: dict[int, dict[str, Any]] = {}
        self._pieces: dict[int, list[str]] = {}  # joined when the block ends, so that the work stays linear
        self._is_ended = False

    def problem_of(self, data: Mapping[str, Any]) -> str:
        """Return why a whole reply does not fit the protocol, empty if it does."""
        content = data.get("content")
        if not isinstance(content, list) or not all(isinstance(block, dict) for block in content):
            return "it has no content"
        if text_or_none(data.get("stop_reason")) not in _FINISH:
            return f"it stopped for a reason that is not known: {data.get('stop_reason')}"
        return ""

    def completion_of(self, data: dict[str, Any]) -> ChatCompletion:
        """Return a whole reply whose form and stop reason are known to be good."""
        blocks, reason = mappings(data.get("content")), _FINISH[str(data.get("stop_reason"))]
        calls = [call_dict(call.get("id"), call.get("name"), call.get("input") or {}) for call in calls_in(blocks)]
        message = self.message_of(text_in(blocks), calls, _thinking_in(blocks), self._extra_of(blocks, reason, data))
        return self.completion(data, [self.choice_of(message, reason)], _usage(data.get("usage")))

    def _extra_of(self, blocks: Sequence[Mapping[str, Any]], reason: str, told: Mapping[str, Any]) -> dict[str, Any]:
        """Return further fields of the message: the blocks, where the service wants them back, and why it refused."""
        more: dict[str, Any] = {}
        if any(text_or_none(block.get("type")) not in _PLAIN or block.get("citations") for block in blocks):
            more[STATE] = state_of(WIRE, self._service, [dict(block) for block in blocks], self._received.kept.prefix)
        if reason == "content_filter":
            why = reason_in(mapping(told.get("stop_details")), "category", "explanation")
            more["refusal"] = why or "the service refused"
        return more

    @property
    def is_complete(self) -> bool:
        """Whether the answer has ended."""
        return self.is_done or self._is_ended

    def chunk_of(self, value: dict[str, Any], event: ServerSentEvent) -> ChatCompletionChunk | None:
        """Return the chunk in an event; raises what `read` does."""
        kind = value.get("type") or event.event
        if kind == "error" or value.get("error"):
            raise self.error_in(value)
        if kind == "message_start":
            return self._started(mapping(value.get("message")))
        if kind == "content_block_start":
            return self._block_started(index_of(value, 0), mapping(value.get("content_block")))
        if kind == "content_block_delta":
            return self._grown(index_of(value, 0), mapping(value.get("delta")))
        if kind == "message_delta":
            return self._ended(mapping(value.get("delta")), value)
        if kind == "content_block_stop":
            self._close(index_of(value, 0))  # a service may use its number again
        elif kind == "message_stop":
            self.is_done = self._is_ended
        return None  # a ping, or an event of a kind we do not know

    def _started(self, message: Mapping[str, Any]) -> ChatCompletionChunk:
        if self._blocks:
            # A proxy that asked again: what stood before is void, which can be told only while nothing is shown.
            raise self.broken("the service began its reply a second time")
        self._facts = self.facts_of(message)
        self._usage = dict(mapping(message.get("usage")))
        return self.chunk({"role": "assistant"})

    def _block_started(self, index: int, block: Mapping[str, Any]) -> ChatCompletionChunk | None:
        self._blocks[index] = dict(block)
        self.is_writing, kind = False, block.get("type")
        if kind == "text" and block.get("text"):
            return self.chunk({"content": block["text"]})
        if kind != "tool_use":
            return None
        # Some servers give the whole input here, and no piece of it.
        call = self.new_call(index, block.get("id"), block.get("name"), block.get("input") or "")
        return self.chunk({"tool_calls": [call]})

    def _grown(self, index: int, delta: Mapping[str, Any]) -> ChatCompletionChunk | None:
        block = self._blocks.setdefault(index, {"type": "text", "text": ""})
        kind = text_or_none(delta.get("type"))
        if kind in _SHOWN:
            name, shown_as = _SHOWN[kind]
            text = str(delta.get(name) or "")
            self._pieces.setdefault(index, []).append(text)
            block.setdefault(name, "")
            return self.chunk({shown_as: text}) if text else None
        if kind == "signature_delta":
            block["signature"] = delta.get("signature")
        elif kind == "citations_delta":
            block["citations"] = [*(block.get("citations") or ()), delta.get("citation")]
        elif kind == "input_json_delta":
            piece = str(delta.get("partial_json") or "")
            self._pieces.setdefault(index, []).append(piece)
            if index in self._call_numbers and piece and not block.get("input"):
                return self.more_of_call(index, piece)
        return None

    def _close(self, index: int) -> None:
        """Put the pieces of a block together."""
        block, pieces = self._blocks.get(index), "".join(self._pieces.pop(index, ()))
        if block is None or not pieces:
            return
        kind = text_or_none(block.get("type"))
        if kind in {"text", "thinking"}:
            block[kind] = str(block.get(kind) or "") + pieces
        else:
            # A cut or broken call is not run; the pieces have been shown as they came.
            block["input"] = decoded(pieces.encode("utf-8", "surrogatepass"), {})

    def _ended(self, delta: Mapping[str, Any], value: Mapping[str, Any]) -> ChatCompletionChunk | None:
        # Counts of this event are of the whole reply so far: they replace, and never add.
        self._usage.update({name: count for name, count in mapping(value.get("usage")).items() if count is not None})
        reason = delta.get("stop_reason")
        if reason is None:
            return None
        finish = _FINISH.get(str(reason))
        if finish is None:
            raise self.no_answer(f"it stopped for a reason that is not known: {reason}")
        for index in list(self._pieces):
            self._close(index)
        self._is_ended = True
        blocks = [self._blocks[index] for index in sorted(self._blocks)]
        return self.chunk(self._extra_of(blocks, finish, delta), finish, _usage(self._usage))
