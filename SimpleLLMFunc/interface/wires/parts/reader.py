"""A stream of ``streamGenerateContent``, read event by event."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from SimpleLLMFunc.interface.body_json import decode
from SimpleLLMFunc.interface.wires.parts.partial_call import PartialCall
from SimpleLLMFunc.interface.wires.parts.reply import (
    blocked_in,
    extra_of,
    facts_of,
    finish_of,
    logprobs_in,
    text_in,
    thinking_in,
    told_calls,
    usage_dict,
)
from SimpleLLMFunc.interface.wires.sources import about_of
from SimpleLLMFunc.interface.wires.streams.chunk_reader import EventReader
from SimpleLLMFunc.interface.wires.streams.delta_assembly import merge
from SimpleLLMFunc.interface.wires.streams.sse import ServerSentEvent
from SimpleLLMFunc.interface.wires.wire import Received
from SimpleLLMFunc.type import ChatCompletionChunk, mapping, mappings

_BARE = re.compile(rb"[\r\n][ \t]*\{")
_LONGEST_BARE = 64 * 1024
_TEXT = frozenset({"text", "thought"})


class PartReader(EventReader):
    """Reads one stream. It is complete when the service has named a finish reason; the end of the body is its end.

    Source: https://ai.google.dev/api/generate-content
    """

    def __init__(self, received: Received, service: str) -> None:
        super().__init__(received, service)
        self._parts: list[dict[str, Any]] = []
        self._texts_of_part: list[str] = []  # of the last part; joined at its end, so that the work stays linear
        self._usage: Any = None
        self._about: dict[str, Any] = {}
        self._logprobs: dict[str, Any] | None = None
        self._finish: str | None = None
        self._blocked = ""
        self._number = 0  # of calls
        self._call = PartialCall()
        self._bare = b""
        self._ends_line = True

    @property
    def is_complete(self) -> bool:
        """Whether the answer has ended."""
        return (self._finish is not None or bool(self._blocked)) and not self._bare and not self._call.is_open

    def feed(self, piece: bytes) -> Iterator[ChatCompletionChunk]:
        """Yield the chunks in the next bytes; an error may come as bare JSON, without being an event."""
        if not self._bare:
            begun = b"\n" if self._ends_line else b""
            if piece.strip(b" \t"):
                self._ends_line = piece.rstrip(b" \t").endswith((b"\n", b"\r"))
            found = _BARE.search(begun + piece)
            if found is None:
                yield from super().feed(piece)
                return
            start = found.start() + 1 - len(begun)
            yield from super().feed(piece[:start])
            piece = piece[start:]
        self._bare = (self._bare + piece)[:_LONGEST_BARE]

    def close(self) -> Iterator[ChatCompletionChunk]:
        """Yield what the end of the stream shows to be an answer, and how it ended."""
        if self._bare:
            try:
                said = decode(self._bare)
            except ValueError:
                said = None
            raise self.error_in(said) if isinstance(said, dict) else self.broken("the service sent what is no event")
        yield from super().close()
        yield self._ending()

    def chunk_of(self, value: dict[str, Any], event: ServerSentEvent) -> ChatCompletionChunk | None:
        """Return the chunk in an event; raises what `read` does."""
        if value.get("error") or event.event == "error":
            raise self.error_in(value)
        if not self._facts.get("id"):
            self._facts = {**facts_of(value), **{name: fact for name, fact in self._facts.items() if fact}}
        self._usage = value.get("usageMetadata") or self._usage
        if blocked := blocked_in(value):
            self._blocked = blocked
        # Several candidates are not asked for on a stream.
        candidate = next(iter(mappings(value.get("candidates"))), None)
        if candidate is None:
            return None
        parts = self._whole(mappings(mapping(candidate.get("content")).get("parts")))
        for part in parts:
            self._keep(part)
        merge(self._about, about_of(candidate))
        if "logprobsResult" in candidate:
            self._logprobs = logprobs_in(candidate) or self._logprobs
        if (reason := candidate.get("finishReason")) is not None:
            self._finish = finish_of(str(reason), self._parts)
            if self._finish is None:
                raise self.no_answer(f"it is no answer: {reason}: {candidate.get('finishMessage') or ''}"[:200])
        return self._shown(parts)

    def _whole(self, parts: list[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
        """Return the parts that are complete; a call in pieces is one once its last piece has come."""
        whole: list[Mapping[str, Any]] = []
        for part in parts:
            try:
                done = self._call.add(part) if isinstance(part.get("functionCall"), Mapping) else part
            except ValueError as error:
                raise self.no_answer(f"it is no answer: {error}"[:200]) from None
            if done is not None:
                whole.append(done)
        return whole

    def _shown(self, parts: list[Mapping[str, Any]]) -> ChatCompletionChunk | None:
        delta: dict[str, Any] = {}
        if text := text_in(parts):
            delta["content"] = text
        if thinking := thinking_in(parts):
            delta["reasoning_content"] = thinking
        if calls := told_calls(parts):
            delta["tool_calls"] = [{**call, "index": number} for number, call in enumerate(calls, start=self._number)]
            self._number += len(calls)
        return self.chunk(delta) if delta else None

    def _keep(self, part: Mapping[str, Any]) -> None:
        """Keep a part; pieces of one text are one part, and what carries a signature stays as it came."""
        is_text = part.keys() <= _TEXT
        if is_text and self._texts_of_part and self._parts[-1].keys() == part.keys():
            self._texts_of_part.append(str(part.get("text") or ""))
            return
        self._join()
        self._parts.append(dict(part))
        self._texts_of_part = [str(part.get("text") or "")] if is_text else []

    def _join(self) -> None:
        """Put the pieces of the last text together."""
        if len(self._texts_of_part) > 1:
            self._parts[-1]["text"] = "".join(self._texts_of_part)

    def _ending(self) -> ChatCompletionChunk:
        usage = usage_dict(self._usage)
        if self._finish is None:
            return self.chunk({"refusal": self._blocked}, "content_filter", usage)
        # A call may come after the finish reason was first named.
        self._join()
        finish = "tool_calls" if self._finish == "stop" and self._number else self._finish
        return self.chunk(extra_of(self._parts, self._service, self._about), finish, usage, self._logprobs)
