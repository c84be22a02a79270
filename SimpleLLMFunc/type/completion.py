"""The reply on the wire: light, provider-neutral, with the field names of the openai package.

`ChatCompletion` and `ChatCompletionChunk` are decoded straight from the parsed JSON by `from_dict`, which
takes what real servers send: missing ids, null deltas, arguments given as an object. What has no field of
its own is kept in `raw`.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from SimpleLLMFunc.type.usage import Usage

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

_MESSAGE_FIELDS = frozenset(
    {"role", "content", "tool_calls", "refusal", "reasoning_content", "reasoning", "function_call"}
)
_CALL_FIELDS = frozenset({"id", "type", "index", "function"})


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
        """Read a call as it stands in a reply or in a history."""
        function = _mapping(data.get("function"))
        return cls(
            id=str(data.get("id") or ""),
            function=FunctionCall(str(function.get("name") or ""), arguments_text(function.get("arguments"))),
            type=str(data.get("type") or "function"),
            extra={name: value for name, value in data.items() if name not in _CALL_FIELDS},
        )

    def to_dict(self) -> dict[str, Any]:
        """Return the call as it stands in a history."""
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
            role=str(data.get("role") or "assistant"),
            content=content_text(data.get("content")),
            tool_calls=tuple(map(ToolCall.from_dict, _mappings(data.get("tool_calls")))) or None,
            refusal=_text(data.get("refusal")),
            reasoning_content=_text(data.get("reasoning_content")) or _text(data.get("reasoning")),
            extra={name: value for name, value in data.items() if name not in _MESSAGE_FIELDS},
        )

    def to_dict(self) -> dict[str, Any]:
        """Return the message as it stands in a reply; what is None is left out, `content` excepted."""
        data: dict[str, Any] = {"role": self.role, "content": self.content}
        if self.tool_calls:
            data["tool_calls"] = [call.to_dict() for call in self.tool_calls]
        if self.refusal is not None:
            data["refusal"] = self.refusal
        if self.reasoning_content is not None:
            data["reasoning_content"] = self.reasoning_content
        return {**data, **self.extra}


@dataclass(frozen=True, slots=True)
class Choice:
    """One of the answers of a reply."""

    message: ChatMessage
    index: int = 0
    finish_reason: str | None = None
    logprobs: Any = None

    @classmethod
    def from_dict(cls, data: Mapping[str, Any], position: int = 0) -> Choice:
        """Read a choice; one without an index stands where it was listed."""
        message = data.get("message")
        return cls(
            message=ChatMessage.from_dict(message if isinstance(message, Mapping) else {}),
            index=_index(data, position),
            finish_reason=_text(data.get("finish_reason")),
            logprobs=data.get("logprobs"),
        )

    def to_dict(self) -> dict[str, Any]:
        """Return the choice as it stands in a reply."""
        data: dict[str, Any] = {
            "index": self.index,
            "message": self.message.to_dict(),
            "finish_reason": self.finish_reason,
        }
        if self.logprobs is not None:
            data["logprobs"] = self.logprobs
        return data


@dataclass(frozen=True, slots=True)
class CompletionUsage:
    """Token counts with the names of the wire; `tokens` gives them as a `Usage`.

    Attributes:
        cost: USD, where whoever made the reply knows it; never on the wire.
    """

    prompt_tokens: int = 0
    completion_tokens: int = 0
    total_tokens: int = 0
    cached_tokens: int = 0
    reasoning_tokens: int = 0
    cost: float | None = None

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> CompletionUsage:
        """Read the usage of a reply; what is missing counts as 0."""
        prompt, completion = _count(data, "prompt_tokens"), _count(data, "completion_tokens")
        return cls(
            prompt_tokens=prompt,
            completion_tokens=completion,
            total_tokens=_count(data, "total_tokens") or prompt + completion,
            cached_tokens=_count(data.get("prompt_tokens_details"), "cached_tokens")
            or _count(data, "prompt_cache_hit_tokens"),
            reasoning_tokens=_count(data.get("completion_tokens_details"), "reasoning_tokens"),
        )

    def to_dict(self) -> dict[str, Any]:
        """Return the usage as it stands in a reply."""
        return {
            "prompt_tokens": self.prompt_tokens,
            "completion_tokens": self.completion_tokens,
            "total_tokens": self.total_tokens,
            "prompt_tokens_details": {"cached_tokens": self.cached_tokens},
            "completion_tokens_details": {"reasoning_tokens": self.reasoning_tokens},
        }

    @property
    def tokens(self) -> Usage:
        """The same counts under our names.

        Some services (Gemini, xAI) leave the reasoning out of `completion_tokens` and show it in the total alone; it is
        written and paid like the rest.
        """
        output = max(self.completion_tokens, self.total_tokens - self.prompt_tokens)
        reasoning = self.reasoning_tokens or output - self.completion_tokens
        return Usage(self.prompt_tokens, output, self.cached_tokens, reasoning, self.cost)


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
        choices = [Choice.from_dict(choice, position) for position, choice in enumerate(_mappings(data.get("choices")))]
        choices.sort(key=lambda choice: choice.index)
        return cls(
            choices=tuple(choices),
            id=str(data.get("id") or ""),
            model=str(data.get("model") or ""),
            created=_count(data, "created"),
            usage=_usage(data),
            system_fingerprint=_text(data.get("system_fingerprint")),
            raw=data,
            tries=tries,
            cached=cached,
        )

    def to_dict(self) -> dict[str, Any]:
        """Return the reply as it stands on the wire; `from_dict` reads it back."""
        data: dict[str, Any] = {
            "id": self.id,
            "object": self.object,
            "created": self.created,
            "model": self.model,
            "choices": [choice.to_dict() for choice in self.choices],
        }
        if self.usage is not None:
            data["usage"] = self.usage.to_dict()
        if self.system_fingerprint is not None:
            data["system_fingerprint"] = self.system_fingerprint
        return data

    @property
    def message(self) -> ChatMessage:
        """The message of the first choice; an empty one where there is no choice."""
        return self.choices[0].message if self.choices else ChatMessage()

    @property
    def text(self) -> str:
        """The text of the first choice, empty where there is none."""
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
        function = _mapping(data.get("function"))
        arguments = function.get("arguments")
        index = data.get("index")
        return cls(
            index=index if isinstance(index, int) else None,
            id=str(data.get("id") or "") or None,
            name=str(function.get("name") or "") or None,
            arguments=None if arguments is None else arguments_text(arguments, empty=""),
            type=_text(data.get("type")),
            extra={name: value for name, value in data.items() if name not in _CALL_FIELDS},
        )

    def to_dict(self) -> dict[str, Any]:
        """Return the piece as it stands in a chunk."""
        function = {"name": self.name, "arguments": self.arguments}
        data: dict[str, Any] = {"index": self.index, "id": self.id, "type": self.type}
        return {
            **{name: value for name, value in data.items() if value is not None},
            "function": {name: value for name, value in function.items() if value is not None},
            **self.extra,
        }


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
        calls = data.get("tool_calls")
        return cls(
            role=_text(data.get("role")),
            content=content_text(data.get("content")),
            tool_calls=tuple(map(ToolCallDelta.from_dict, _mappings(calls))) or None if calls else None,
            refusal=_text(data.get("refusal")),
            reasoning_content=_text(data.get("reasoning_content")) or _text(data.get("reasoning")),
            extra={name: value for name, value in data.items() if name not in _MESSAGE_FIELDS},
        )

    def to_dict(self) -> dict[str, Any]:
        """Return the delta as it stands in a chunk; what is None is left out."""
        data: dict[str, Any] = {
            "role": self.role,
            "content": self.content,
            "refusal": self.refusal,
            "reasoning_content": self.reasoning_content,
        }
        data = {name: value for name, value in data.items() if value is not None}
        if self.tool_calls:
            data["tool_calls"] = [call.to_dict() for call in self.tool_calls]
        return {**data, **self.extra}


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
        delta = data.get("delta")
        return cls(
            delta=ChoiceDelta.from_dict(delta if isinstance(delta, Mapping) else {}),
            index=_index(data, position),
            finish_reason=_text(data.get("finish_reason")),
            logprobs=data.get("logprobs"),
        )

    def to_dict(self) -> dict[str, Any]:
        """Return the choice as it stands in a chunk."""
        data: dict[str, Any] = {
            "index": self.index,
            "delta": self.delta.to_dict(),
            "finish_reason": self.finish_reason,
        }
        if self.logprobs is not None:
            data["logprobs"] = self.logprobs
        return data


@dataclass(frozen=True, slots=True)
class ChatCompletionChunk:
    """One piece of a streamed reply.

    Attributes:
        raw, cached: as in `ChatCompletion`.
        tries: HTTP requests so far. A chunk whose number is higher than that of the one before begins the reply anew:
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
        return cls(
            choices=tuple(
                ChunkChoice.from_dict(choice, position)
                for position, choice in enumerate(_mappings(data.get("choices")))
            ),
            id=str(data.get("id") or ""),
            model=str(data.get("model") or ""),
            created=_count(data, "created"),
            usage=_usage(data),
            raw=data,
            tries=tries,
            cached=cached,
        )

    def to_dict(self) -> dict[str, Any]:
        """Return the chunk as it stands on the wire; `from_dict` reads it back."""
        data: dict[str, Any] = {
            "id": self.id,
            "object": self.object,
            "created": self.created,
            "model": self.model,
            "choices": [choice.to_dict() for choice in self.choices],
        }
        if self.usage is not None:
            data["usage"] = self.usage.to_dict()
        return data

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
        for choice in self.choices:
            if choice.index == 0:
                return choice.delta
        return ChoiceDelta()

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
        for choice in self.choices:
            if choice.index == 0:
                return choice.finish_reason
        return None


def arguments_text(arguments: Any, *, empty: str = "{}") -> str:
    """Return the arguments of a tool call as JSON text; `empty` for null and for the empty text."""
    if arguments is None or arguments == "":
        return empty
    return arguments if isinstance(arguments, str) else json.dumps(arguments, ensure_ascii=False)


def content_text(content: Any) -> str | None:
    """Return a content as text; a list of parts gives the text parts, joined."""
    if content is None or isinstance(content, str):
        return content
    if isinstance(content, Sequence):
        texts = [part.get("text") for part in content if isinstance(part, Mapping) and part.get("type") == "text"]
        return "".join(text for text in texts if isinstance(text, str))
    return str(content)


def _mapping(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}


def _mappings(value: Any) -> list[Mapping[str, Any]]:
    return [item for item in value if isinstance(item, Mapping)] if isinstance(value, (list, tuple)) else []


def _text(value: Any) -> str | None:
    return value if isinstance(value, str) else None


def _usage(data: Mapping[str, Any]) -> CompletionUsage | None:
    """Return the usage of a reply or chunk, from the places where providers put it."""
    usage = data.get("usage")
    if not isinstance(usage, Mapping):
        groq = data.get("x_groq")
        usage = groq.get("usage") if isinstance(groq, Mapping) else None
    if not isinstance(usage, Mapping):
        # Moonshot puts it into the last choice of a stream.
        usage = next((choice["usage"] for choice in _mappings(data.get("choices")) if choice.get("usage")), None)
    return CompletionUsage.from_dict(usage) if isinstance(usage, Mapping) else None


def _index(data: Mapping[str, Any], position: int) -> int:
    index = data.get("index")
    return index if isinstance(index, int) else position


def _count(data: Any, name: str) -> int:
    value = data.get(name) if isinstance(data, Mapping) else None
    return int(value) if isinstance(value, (int, float)) and not isinstance(value, bool) else 0
