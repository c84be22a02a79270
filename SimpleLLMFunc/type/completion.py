"""The reply on the wire, whole or in pieces: light, provider-neutral, with the field names of the openai package.

`from_dict` of `ChatCompletion` and `ChatCompletionChunk` takes parsed JSON as real servers send it: missing ids, null
deltas, arguments given as an object. `raw` keeps the rest.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from SimpleLLMFunc.type import wire
from SimpleLLMFunc.type.usage import CompletionUsage, usage_of
from SimpleLLMFunc.type.wire import content_text, index_of, mapping, mappings, present, text_or_none


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
            FunctionCall(str(function.get("name") or ""), wire.arguments_text(function.get("arguments"))),
            str(data.get("type") or "function"),
            extra=wire.extras(data, wire.CALL_FIELDS),
        )

    def to_dict(self) -> dict[str, Any]:
        """Return the call as a history holds it."""
        function = {"name": self.function.name, "arguments": self.function.arguments}
        return {"id": self.id, "type": self.type, "function": function, **self.extra}


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
            arguments=None if arguments is None else wire.arguments_text(arguments, empty=""),
            type=text_or_none(data.get("type")),
            extra=wire.extras(data, wire.CALL_FIELDS),
        )

    def to_dict(self) -> dict[str, Any]:
        """Return the piece as a chunk holds it."""
        function = present(name=self.name, arguments=self.arguments)
        return {**present(index=self.index, id=self.id, type=self.type), "function": function, **self.extra}


def _said(data: Mapping[str, Any]) -> dict[str, Any]:
    """Return the fields that a message and a piece of one have in common."""
    return {
        "content": content_text(data.get("content")),
        "refusal": text_or_none(data.get("refusal")),
        "reasoning_content": wire.thinking_in(data),
        "extra": wire.extras(data, wire.MESSAGE_FIELDS),
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
        calls = tuple(map(ToolCall.from_dict, mappings(data.get("tool_calls")))) or None
        return cls(str(data.get("role") or "assistant"), tool_calls=calls, **_said(data))

    def to_dict(self) -> dict[str, Any]:
        """Return the message as a reply holds it; what is None is left out, `content` excepted."""
        calls = [call.to_dict() for call in self.tool_calls or ()] or None
        more = present(tool_calls=calls, refusal=self.refusal, reasoning_content=self.reasoning_content)
        return {"role": self.role, "content": self.content, **more, **self.extra}


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
        calls = tuple(map(ToolCallDelta.from_dict, mappings(data.get("tool_calls")))) or None
        return cls(text_or_none(data.get("role")), tool_calls=calls, **_said(data))

    def to_dict(self) -> dict[str, Any]:
        """Return the delta as a chunk holds it; what is None is left out."""
        calls = [call.to_dict() for call in self.tool_calls or ()] or None
        said = present(role=self.role, content=self.content, refusal=self.refusal)
        return {**said, **present(reasoning_content=self.reasoning_content, tool_calls=calls), **self.extra}


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
        message = ChatMessage.from_dict(mapping(data.get("message")))
        return cls(message, index_of(data, position), wire.finish_of(data), data.get("logprobs"))

    def to_dict(self) -> dict[str, Any]:
        """Return the choice as a reply holds it."""
        told = present(logprobs=self.logprobs)
        return {"index": self.index, "message": self.message.to_dict(), "finish_reason": self.finish_reason, **told}


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
        delta = ChoiceDelta.from_dict(mapping(data.get("delta")))
        return cls(delta, index_of(data, position), wire.finish_of(data), data.get("logprobs"))

    def to_dict(self) -> dict[str, Any]:
        """Return the choice as a chunk holds it."""
        told = present(logprobs=self.logprobs)
        return {"index": self.index, "delta": self.delta.to_dict(), "finish_reason": self.finish_reason, **told}


def _facts(data: Mapping[str, Any]) -> dict[str, Any]:
    """Return the fields that a reply and a chunk of one have in common."""
    return {
        "id": str(data.get("id") or ""),
        "model": str(data.get("model") or ""),
        "created": wire.count(data, "created"),
        "usage": usage_of(data),
        "raw": data,
    }


def _reply_dict(reply: ChatCompletion | ChatCompletionChunk) -> dict[str, Any]:
    facts = {name: getattr(reply, name) for name in ("id", "object", "created", "model")}
    usage = reply.usage and reply.usage.to_dict()
    return {**facts, "choices": [choice.to_dict() for choice in reply.choices], **present(usage=usage)}


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
        """Read a reply from its parsed JSON; whether it fits the protocol is for the wire to judge."""
        choices = [Choice.from_dict(choice, number) for number, choice in enumerate(mappings(data.get("choices")))]
        ordered = tuple(sorted(choices, key=lambda choice: choice.index))
        system = text_or_none(data.get("system_fingerprint"))
        return cls(ordered, system_fingerprint=system, tries=tries, cached=cached, **_facts(data))

    def to_dict(self) -> dict[str, Any]:
        """Return the reply as it stands on the wire; `from_dict` reads it back."""
        return {**_reply_dict(self), **present(system_fingerprint=self.system_fingerprint)}

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
        choices = [ChunkChoice.from_dict(choice, number) for number, choice in enumerate(mappings(data.get("choices")))]
        return cls(tuple(choices), tries=tries, cached=cached, **_facts(data))

    def to_dict(self) -> dict[str, Any]:
        """Return the chunk as it stands on the wire; `from_dict` reads it back."""
        return _reply_dict(self)

    def with_text(self, text: str) -> ChatCompletionChunk:
        """Return the chunk with another piece of text for the choice with index 0; one without that choice as it is."""
        choices = tuple(
            replace(choice, delta=replace(choice.delta, content=text or None)) if choice.index == 0 else choice
            for choice in self.choices
        )
        return replace(self, choices=choices)

    def _first(self) -> ChunkChoice:
        return next((choice for choice in self.choices if choice.index == 0), _NO_CHOICE)

    @property
    def delta(self) -> ChoiceDelta:
        """The delta of the choice with index 0; an empty one where the chunk has none."""
        return self._first().delta

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
        return self._first().finish_reason


_NO_CHOICE = ChunkChoice(ChoiceDelta())
