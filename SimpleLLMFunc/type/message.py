"""The messages of a conversation, in the form of the wire.

A message is a plain dict with at least ``role`` and ``content``. Providers add fields of their own
(``reasoning_content``, ``extra_content`` …); they are kept and sent back as they came.
"""

from __future__ import annotations

from typing import Any, Literal, NotRequired, TypeAlias

from typing_extensions import TypedDict

ContentPart: TypeAlias = dict[str, Any]
"""One part of a multimodal content: ``{"type": "text", "text": …}``, ``{"type": "image_url", …}`` and so on."""

ToolSpec: TypeAlias = dict[str, Any]
"""A tool as the provider wants it: ``{"type": "function", "function": {"name", "description", "parameters"}}``.

One without ``"function"`` is the service's own, which runs it by itself.
"""


def spec_name(spec: ToolSpec) -> str:
    """Return the name of a tool; what a service calls its own: its name, its type, or the only key."""
    return str((spec.get("function") or spec).get("name") or spec.get("type") or next(iter(spec), ""))


class SystemMessage(TypedDict):
    """Instructions that stand above the conversation."""

    role: Literal["system"]
    content: str | list[ContentPart]


class UserMessage(TypedDict):
    """What the user said, or showed."""

    role: Literal["user"]
    content: str | list[ContentPart]
    name: NotRequired[str]


class ToolCallFunctionDict(TypedDict):
    """Name and arguments of a call; the arguments are JSON text as the model wrote it."""

    name: str
    arguments: str


class ToolCallDict(TypedDict):
    """One call of one tool inside an assistant message."""

    id: str
    type: Literal["function"]
    function: ToolCallFunctionDict
    extra_content: NotRequired[Any]


class AssistantMessage(TypedDict):
    """What the model answered; `content` is None or empty when it only called tools."""

    role: Literal["assistant"]
    content: str | list[ContentPart] | None
    tool_calls: NotRequired[list[ToolCallDict]]
    reasoning_content: NotRequired[str]
    refusal: NotRequired[str | None]
    extra_content: NotRequired[Any]


class ToolMessage(TypedDict):
    """The result of one tool call, for the model to read."""

    role: Literal["tool"]
    content: str | list[ContentPart]
    tool_call_id: str


Message: TypeAlias = SystemMessage | UserMessage | AssistantMessage | ToolMessage
"""One message of a conversation."""

ChatPair: TypeAlias = tuple[str, list[Message]]
"""What a chat yields: a piece of text, and the history as it stands."""
