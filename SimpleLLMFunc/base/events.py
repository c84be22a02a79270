"""The facts that a run can produce: a closed union, frozen and without behaviour.

A `match` over `ReActEvent` is checked for completeness by the type checkers, so a new fact shows every
place that has to know it.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, TypeAlias

from SimpleLLMFunc.type.completion import ChatCompletion, ToolCall, ToolCallDelta
from SimpleLLMFunc.type.message import Message
from SimpleLLMFunc.type.usage import Usage

__all__ = [
    "MessageAppended",
    "ReActEvent",
    "ReplyDelta",
    "ReplyReceived",
    "RunFinished",
    "RunStarted",
    "ToolCallFinished",
    "ToolCallProgress",
    "ToolCallStarted",
    "TurnStarted",
]


@dataclass(frozen=True, slots=True)
class RunStarted:
    """A run begins; `messages` is what the model will be shown first."""

    trace_id: str
    messages: list[Message]


@dataclass(frozen=True, slots=True)
class TurnStarted:
    """A request is about to leave.

    Attributes:
        turn: from 1. The same number again means that the turn is tried again: what it showed is void.
    """

    turn: int


@dataclass(frozen=True, slots=True)
class ReplyDelta:
    """One chunk of a streamed reply.

    Attributes:
        text: the new piece of text, may be empty.
        tool_calls: pieces of tool calls.
        raw: the chunk as the interface gave it.
    """

    turn: int
    text: str
    tool_calls: list[ToolCallDelta] = field(default_factory=list)
    raw: Any = None


@dataclass(frozen=True, slots=True)
class ReplyReceived:
    """One whole reply, streamed or not.

    Attributes:
        reply: put together from the chunks where it was streamed.
        usage: of this reply; zeros where the provider told none.
        seconds: from the request to the end of the reply.
        raw: the reply as the interface gave it; for a streamed one the same as `reply`.
    """

    turn: int
    reply: ChatCompletion
    usage: Usage
    seconds: float
    raw: Any = None


@dataclass(frozen=True, slots=True)
class ToolCallStarted:
    """A tool is about to run."""

    turn: int
    call: ToolCall


@dataclass(frozen=True, slots=True)
class ToolCallProgress:
    """A running tool told how far it is, by `ToolContext.emit`; `progress` is what it gave."""

    turn: int
    call: ToolCall
    progress: Any


@dataclass(frozen=True, slots=True)
class ToolCallFinished:
    """A tool has run, or could not.

    Attributes:
        content: what the model will read: text, or parts with images.
        failed: the content tells of a failure.
        seconds: wall-clock time inside the tool, >= 0.
    """

    turn: int
    call: ToolCall
    content: str | list[dict[str, Any]]
    failed: bool
    seconds: float


@dataclass(frozen=True, slots=True)
class MessageAppended:
    """The history grew by this message."""

    turn: int
    message: Message


@dataclass(frozen=True, slots=True)
class RunFinished:
    """The last event of every successful run.

    Attributes:
        reply: the accepted answer.
        messages: the conversation up to and with the answer; rejected answers are not in it.
        usage: of all replies, rejected ones too.
        turns: how many replies there were.
    """

    reply: ChatCompletion
    messages: list[Message]
    usage: Usage
    turns: int


ReActEvent: TypeAlias = (
    RunStarted
    | TurnStarted
    | ReplyDelta
    | ReplyReceived
    | ToolCallStarted
    | ToolCallProgress
    | ToolCallFinished
    | MessageAppended
    | RunFinished
)
"""Any fact of a run."""
