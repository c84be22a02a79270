"""The reply on the wire: light, provider-neutral, with the field names of the openai package.

`ChatCompletion` and `ChatCompletionChunk` are decoded straight from the parsed JSON by `from_dict`, which
takes what real servers send: missing ids, null deltas, arguments given as an object. `raw` keeps the rest. The chunks
are defined in `chunk`, and can be imported from here too.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from SimpleLLMFunc.type.chunk import ChatCompletionChunk, ChoiceDelta, ChunkChoice, ToolCallDelta
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

__all__ = [
    "ChatCompletion",
    "ChatCompletionChunk",
    "ChatMessage",
    "Choice",
    "ChoiceDelta",
    "ChunkChoice",
    "CompletionUsage",
    "FunctionCall",
    "ToolCall",
    "ToolCallDelta",
]


@dataclass(frozen=True, slots=True)
class FunctionCall:
    """Name and arguments of a tool call; `arguments` is JSON text as the model wrote it."""

    name: str
    arguments: str


@dataclass(frozen=True, slots=True)
class ToolCall:
    """One call of one tool.

    Attributes:
        extra: what the provider added to the call (`extra_content` …); sent back as it came.
    """

    id: str
    function: FunctionCall
    type: str = "function"
    extra: Mapping[str, Any] = field(default_factory=dict)

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> ToolCall:
        """Read a call from a reply or from a history."""
        function = mapping(data.get("function"))
        return cls(
            str(data.get("id") or ""),
            FunctionCall(str(function.get("name") or ""), arguments_text(function.get("arguments"))),
            str(data.get("type") or "function"),
            extra=extras(data, CALL_FIELDS),
        )

    def to_dict(self) -> dict[str, Any]:
        """Return the call as a history holds it."""
        return {
            "id": self.id,
            "type": self.type,
            "function": {"name": self.function.name, "arguments": self.function.arguments},
            **self.extra,
        }


@dataclass(frozen=True, slots=True)
class ChatMessage:
    """The assistant's message of one choice.

    Attributes:
        content: the text; None where the model only called tools.
        reasoning_content: the model's reasoning, where the provider shows it apart from the answer.
        extra: what the provider added to the message; goes back into the history as it came.
    """

    role: str = "assistant"
    content: str | None = None
    tool_calls: tuple[ToolCall, ...] | None = None
    refusal: str | None = None
    reasoning_content: str | None = None
    extra: Mapping[str, Any] = field(default_factory=dict)

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> ChatMessage:
        """Read a message of a reply."""
        return cls(
            str(data.get("role") or "assistant"),
            content_text(data.get("content")),
            tuple(map(ToolCall.from_dict, mappings(data.get("tool_calls")))) or None,
            refusal=text_or_none(data.get("refusal")),
            reasoning_content=text_or_none(data.get("reasoning_content")) or text_or_none(data.get("reasoning")),
            extra=extras(data, MESSAGE_FIELDS),
        )

    def to_dict(self) -> dict[str, Any]:
        """Return the message as a reply holds it; what is None is left out, `content` excepted."""
        calls = [call.to_dict() for call in self.tool_calls or ()] or None
        more = present(tool_calls=calls, refusal=self.refusal, reasoning_content=self.reasoning_content)
        return {"role": self.role, "content": self.content, **more, **self.extra}


@dataclass(frozen=True, slots=True)
class Choice:
    """One of the answers of a reply."""

    message: ChatMessage
    index: int = 0
    finish_reason: str | None = None
    logprobs: Any = None

    @classmethod
    def from_dict(cls, data: Mapping[str, Any], position: int = 0) -> Choice:
        """Read a choice; one without an index has its place in the list."""
        return cls(
            ChatMessage.from_dict(mapping(data.get("message"))),
            index_of(data, position),
            text_or_none(data.get("finish_reason")),
            data.get("logprobs"),
        )

    def to_dict(self) -> dict[str, Any]:
        """Return the choice as a reply holds it."""
        told = present(logprobs=self.logprobs)
        return {"index": self.index, "message": self.message.to_dict(), "finish_reason": self.finish_reason, **told}


@dataclass(frozen=True, slots=True)
class ChatCompletion:
    """One whole reply.

    Attributes:
        raw: the reply as parsed JSON; `{}` where it was put together by hand.
        tries: HTTP requests it took, 1 if the first one succeeded, 0 if none was made.
        cached: it came from a `CachedLLM`.
    """

    choices: tuple[Choice, ...]
    id: str = ""
    model: str = ""
    created: int = 0
    usage: CompletionUsage | None = None
    object: str = "chat.completion"
    system_fingerprint: str | None = None
    raw: Mapping[str, Any] = field(default_factory=dict, repr=False, compare=False)
    tries: int = field(default=1, compare=False)
    cached: bool = field(default=False, compare=False)

    @classmethod
    def from_dict(cls, data: Mapping[str, Any], *, tries: int = 1, cached: bool = False) -> ChatCompletion:
        """Read a reply from its parsed JSON; whether it fits the protocol is for the adapter to judge."""
        choices = [Choice.from_dict(choice, number) for number, choice in enumerate(mappings(data.get("choices")))]
        return cls(
            tuple(sorted(choices, key=lambda choice: choice.index)),
            text_of(data, "id"),
            text_of(data, "model"),
            count(data, "created"),
            usage_of(data),
            system_fingerprint=text_or_none(data.get("system_fingerprint")),
            raw=data,
            tries=tries,
            cached=cached,
        )

    def to_dict(self) -> dict[str, Any]:
        """Return the reply as it stands on the wire; `from_dict` reads it back."""
        return {**reply_dict(self), **present(system_fingerprint=self.system_fingerprint)}

    @property
    def message(self) -> ChatMessage:
        """The message of the first choice; an empty one where there is no choice."""
        return self.choices[0].message if self.choices else ChatMessage()

    @property
    def text(self) -> str:
        """The text of the first choice, empty without a choice."""
        return self.message.content or ""

    @property
    def tool_calls(self) -> list[ToolCall]:
        """The tool calls of the first choice, in order."""
        return list(self.message.tool_calls or ())

    def with_message(self, *, content: str | None, tool_calls: tuple[ToolCall, ...] | None = None) -> ChatCompletion:
        """Return the reply with another text and other tool calls in its first choice; all else stays."""
        first = self.choices[0] if self.choices else Choice(ChatMessage())
        message = replace(first.message, content=content, tool_calls=tool_calls)
        return replace(self, choices=(replace(first, message=message), *self.choices[1:]))

    @property
    def finish_reason(self) -> str | None:
        """Why the first choice ended: "stop", "length", "tool_calls", "content_filter", or what the provider says."""
        return self.choices[0].finish_reason if self.choices else None
