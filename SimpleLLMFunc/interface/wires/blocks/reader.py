"""A stream of ``/v1/messages``, read event by event."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from SimpleLLMFunc.interface.body_json import decode
from SimpleLLMFunc.interface.wires.blocks.reply import FINISH, extra_of, facts_of, refusal_in, usage_dict
from SimpleLLMFunc.interface.wires.streams.chunk_reader import EventReader
from SimpleLLMFunc.interface.wires.streams.sse import ServerSentEvent
from SimpleLLMFunc.interface.wires.wire import Received
from SimpleLLMFunc.type import ChatCompletionChunk, mapping, text_or_none


class BlockReader(EventReader):
    """Reads one stream; it is complete when the service has named a stop reason.

    Source: https://docs.anthropic.com/en/api/messages-streaming
    """

    def __init__(self, received: Received, service: str) -> None:
        super().__init__(received, service)
        self._usage: dict[str, Any] = {}
        self._blocks: dict[int, dict[str, Any]] = {}
        self._json: dict[int, list[str]] = {}
        self._calls: dict[int, int] = {}  # the number of a call, by that of its block
        self._is_ended = False

    @property
    def is_complete(self) -> bool:
        """Whether the answer has ended."""
        return self.is_done or self._is_ended

    def chunk_of(self, value: dict[str, Any], event: ServerSentEvent) -> ChatCompletionChunk | None:
        """Return the chunk in an event; raises what `read` does."""
        kind = value.get("type") or event.event
        if kind == "error" or (kind is None and value.get("error")):
            raise self.error_in(value)
        if kind == "message_start":
            return self._started(mapping(value.get("message")))
        if kind == "content_block_start":
            return self._block_started(_index(value), mapping(value.get("content_block")))
        if kind == "content_block_delta":
            return self._grown(_index(value), mapping(value.get("delta")))
        if kind == "content_block_stop":
            self._close(_index(value))
        elif kind == "message_delta":
            return self._ended(mapping(value.get("delta")), value)
        elif kind == "message_stop":
            self.is_done = self._is_ended
        return None  # a ping, or an event of a kind we do not know

    def _started(self, message: Mapping[str, Any]) -> ChatCompletionChunk | None:
        if self._blocks:
            # A proxy that asked again: what stood before is void, which can be told only while nothing is shown.
            raise self.broken("the service began its reply a second time")
        self._facts = facts_of(message)
        self._usage = dict(mapping(message.get("usage")))
        return self.chunk({"role": "assistant"}) if not self.count else None

    def _block_started(self, index: int, block: Mapping[str, Any]) -> ChatCompletionChunk | None:
        self._blocks[index] = dict(block)
        kind = block.get("type")
        if kind == "text" and block.get("text"):
            return self.chunk({"content": block["text"]})
        if kind != "tool_use":
            return None
        number = self._calls[index] = len(self._calls)
        function = {"name": str(block.get("name") or ""), "arguments": ""}
        call = {"index": number, "id": str(block.get("id") or ""), "type": "function", "function": function}
        return self.chunk({"tool_calls": [call]})

    def _grown(self, index: int, delta: Mapping[str, Any]) -> ChatCompletionChunk | None:
        block = self._blocks.setdefault(index, {"type": "text", "text": ""})
        kind = delta.get("type")
        if kind == "text_delta":
            text = str(delta.get("text") or "")
            self._add(index, "text", text)
            return self.chunk({"content": text}) if text else None
        if kind == "thinking_delta":
            text = str(delta.get("thinking") or "")
            self._add(index, "thinking", text)
            return self.chunk({"reasoning_content": text}) if text else None
        if kind == "signature_delta":
            block["signature"] = delta.get("signature")
        elif kind == "citations_delta":
            block["citations"] = [*(block.get("citations") or ()), delta.get("citation")]
        elif kind == "input_json_delta":
            piece = str(delta.get("partial_json") or "")
            self._json.setdefault(index, []).append(piece)
            if index in self._calls and piece:
                return self.chunk({"tool_calls": [{"index": self._calls[index], "function": {"arguments": piece}}]})
        return None

    def _add(self, index: int, name: str, text: str) -> None:
        # Joined when the block ends, so that the work stays linear.
        self._json.setdefault(index, []).append(text)
        self._blocks[index].setdefault(name, "")

    def _close(self, index: int) -> None:
        """Put the pieces of a block together."""
        block, pieces = self._blocks.get(index), "".join(self._json.pop(index, ()))
        if block is None or not pieces:
            return
        kind = text_or_none(block.get("type"))
        if kind in {"text", "thinking"}:
            block[kind] = str(block.get(kind) or "") + pieces
        else:
            try:
                block["input"] = decode(pieces.encode("utf-8", "surrogatepass"))
            except ValueError:
                block["input"] = {}  # a cut or broken call, which is not run; the pieces have been shown as they came

    def _ended(self, delta: Mapping[str, Any], value: Mapping[str, Any]) -> ChatCompletionChunk | None:
        # Counts of this event are of the whole reply so far: they replace, and never add.
        self._usage.update({name: count for name, count in mapping(value.get("usage")).items() if count is not None})
        reason = delta.get("stop_reason")
        if reason is None:
            return None
        finish = FINISH.get(str(reason))
        if finish is None:
            raise self.no_answer(f"it stopped for a reason that is not known: {str(reason)[:100]}")
        for index in list(self._json):
            self._close(index)
        self._is_ended = True
        blocks = [self._blocks[index] for index in sorted(self._blocks)]
        said = extra_of(blocks, self._service, self._received.kept.prefix)
        if finish == "content_filter":
            said["refusal"] = refusal_in(delta.get("stop_details"))
        return self.chunk(said, finish, usage_dict(self._usage))


def _index(value: Mapping[str, Any]) -> int:
    index = value.get("index")
    return index if isinstance(index, int) else 0
