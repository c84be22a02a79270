"""The pieces of a streamed reply: light, provider-neutral, with the field names of the openai package.

They are read and kept as whole replies are, see `completion`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from SimpleLLMFunc.type.usage import CompletionUsage, usage_of
from SimpleLLMFunc.type.wire import (
    CALL_FIELDS,
    MESSAGE_FIELDS,
    arguments_text,
    content_text,
    count,
    extras,
    index_of,
    mapping,
    mappings,
    present,
    reply_dict,
    text_of,
    text_or_none,
)


@dataclass(frozen=True, slots=True)
class ToolCallDelta:
    """A piece of a tool call; the name comes first, the arguments' text piece by piece."""

    index: int | None = None
    id: str | None = None
    name: str | None = None
    arguments: str | None = None
    type: str | None = None
    extra: Mapping[str, Any] = field(default_factory=dict)

    @property
    def function(self) -> ToolCallDelta:
        """The piece itself: `delta.function.name` reads as with the openai package."""
        return self

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> ToolCallDelta:
        """Read a piece; arguments given as an object become their JSON text."""
        function = mapping(data.get("function"))
        arguments = function.get("arguments")
        index = data.get("index")
        return cls(
            index=index if isinstance(index, int) else None,
            id=str(data.get("id") or "") or None,
            name=str(function.get("name") or "") or None,
            arguments=None if arguments is None else arguments_text(arguments, empty=""),
            type=text_or_none(data.get("type")),
            extra=extras(data, CALL_FIELDS),
        )

    def to_dict(self) -> dict[str, Any]:
        """Return the piece as a chunk holds it."""
        function = present(name=self.name, arguments=self.arguments)
        return {**present(index=self.index, id=self.id, type=self.type), "function": function, **self.extra}


@dataclass(frozen=True, slots=True)
class ChoiceDelta:
    """What a chunk adds to one choice."""

    role: str | None = None
    content: str | None = None
    tool_calls: tuple[ToolCallDelta, ...] | None = None
    refusal: str | None = None
    reasoning_content: str | None = None
    extra: Mapping[str, Any] = field(default_factory=dict)

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> ChoiceDelta:
        """Read a delta."""
        return cls(
            role=text_or_none(data.get("role")),
            content=content_text(data.get("content")),
            tool_calls=tuple(map(ToolCallDelta.from_dict, mappings(data.get("tool_calls")))) or None,
            refusal=text_or_none(data.get("refusal")),
            reasoning_content=text_or_none(data.get("reasoning_content")) or text_or_none(data.get("reasoning")),
            extra=extras(data, MESSAGE_FIELDS),
        )

    def to_dict(self) -> dict[str, Any]:
        """Return the delta as a chunk holds it; what is None is left out."""
        calls = [call.to_dict() for call in self.tool_calls or ()] or None
        said = present(role=self.role, content=self.content, refusal=self.refusal)
        return {**said, **present(reasoning_content=self.reasoning_content, tool_calls=calls), **self.extra}


_NOTHING = ChoiceDelta()


@dataclass(frozen=True, slots=True)
class ChunkChoice:
    """The part of a chunk that belongs to one choice."""

    delta: ChoiceDelta
    index: int = 0
    finish_reason: str | None = None
    logprobs: Any = None

    @classmethod
    def from_dict(cls, data: Mapping[str, Any], position: int = 0) -> ChunkChoice:
        """Read one choice of a chunk; a null delta is an empty one."""
        return cls(
            delta=ChoiceDelta.from_dict(mapping(data.get("delta"))),
            index=index_of(data, position),
            finish_reason=text_or_none(data.get("finish_reason")),
            logprobs=data.get("logprobs"),
        )

    def to_dict(self) -> dict[str, Any]:
        """Return the choice as a chunk holds it."""
        told = present(logprobs=self.logprobs)
        return {"index": self.index, "delta": self.delta.to_dict(), "finish_reason": self.finish_reason, **told}


@dataclass(frozen=True, slots=True)
class ChatCompletionChunk:
    """One piece of a streamed reply.

    Attributes:
        raw, cached: as in `ChatCompletion`.
        tries: HTTP requests so far. A chunk whose number is higher than that of the one before begins the reply again:
            the stream broke before it had shown any text, and was asked for again.
    """

    choices: tuple[ChunkChoice, ...]
    id: str = ""
    model: str = ""
    created: int = 0
    usage: CompletionUsage | None = None
    object: str = "chat.completion.chunk"
    raw: Mapping[str, Any] = field(default_factory=dict, repr=False, compare=False)
    tries: int = field(default=1, compare=False)
    cached: bool = field(default=False, compare=False)

    @classmethod
    def from_dict(cls, data: Mapping[str, Any], *, tries: int = 1, cached: bool = False) -> ChatCompletionChunk:
        """Read a chunk from its parsed JSON."""
        choices = mappings(data.get("choices"))
        return cls(
            tuple(ChunkChoice.from_dict(choice, position) for position, choice in enumerate(choices)),
            text_of(data, "id"),
            text_of(data, "model"),
            count(data, "created"),
            usage_of(data),
            raw=data,
            tries=tries,
            cached=cached,
        )

    def to_dict(self) -> dict[str, Any]:
        """Return the chunk as it stands on the wire; `from_dict` reads it back."""
        return reply_dict(self)

    def with_text(self, text: str) -> ChatCompletionChunk:
        """Return the chunk with another piece of text for the choice with index 0; one without that choice as it is."""
        choices = tuple(
            replace(choice, delta=replace(choice.delta, content=text or None)) if choice.index == 0 else choice
            for choice in self.choices
        )
        return replace(self, choices=choices)

    @property
    def delta(self) -> ChoiceDelta:
        """The delta of the choice with index 0; an empty one where the chunk has none."""
        return next((choice.delta for choice in self.choices if choice.index == 0), _NOTHING)

    @property
    def text(self) -> str:
        """The piece of text for the choice with index 0."""
        return self.delta.content or ""

    @property
    def tool_calls(self) -> list[ToolCallDelta]:
        """The pieces of tool calls for the choice with index 0."""
        return list(self.delta.tool_calls or ())

    @property
    def finish_reason(self) -> str | None:
        """Why the choice with index 0 ended, None while it goes on."""
        return next((choice.finish_reason for choice in self.choices if choice.index == 0), None)
