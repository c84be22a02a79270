"""The facts that a run can produce: a closed union, frozen and without behaviour.

A `match` over `ReActEvent` is checked for completeness by the type checkers, so a new fact shows every
place that has to know it.

Whoever watches a run (`base/run/sinks.py`) is shown more than whoever reads its stream: `TryFailed`, `AnswerReviewed` and
`RunFailed`, and the fields that say so. A sink sees `RunStarted` first and either `RunFinished` or `RunFailed` last.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias

from SimpleLLMFunc.base.metadata import RunMetadata, SentRequest
from SimpleLLMFunc.base.parsing import Repair
from SimpleLLMFunc.errors import SimpleLLMFuncError, Violation
from SimpleLLMFunc.type import ChatCompletion, Message, ToolCall, ToolCallDelta, Usage, quickly_made

__all__ = [
    "AnswerReviewed",
    "Attempt",
    "MessageAppended",
    "ReActEvent",
    "ReplyDelta",
    "ReplyReceived",
    "RunFailed",
    "RunFinished",
    "RunStarted",
    "ToolCallFinished",
    "ToolCallProgress",
    "ToolCallStarted",
    "TryFailed",
    "TurnStarted",
]


@quickly_made
@dataclass(frozen=True, slots=True)
class RunStarted:
    """A run begins.

    Attributes:
        messages: what the model will be shown first; empty for a run that failed before.
        run: who runs, and with what; None where nobody watches.
    """

    trace_id: str
    messages: list[Message]
    run: RunMetadata | None = None


@quickly_made
@dataclass(frozen=True, slots=True)
class TurnStarted:
    """A request is about to leave.

    Attributes:
        turn: from 1. The same number again means that the turn is tried again: what it showed is void.
        sent: what it holds; None where nobody watches, and where a stream that broke is asked for again as it was.
    """

    turn: int
    sent: SentRequest | None = None


@dataclass(frozen=True, slots=True)
class TryFailed:
    """A request of this turn failed, and another one will be made. Shown to sinks only.

    Attributes:
        error: what it would have been, had it been the last one.
        tries: requests of this turn to this model so far, this one included.
        pause: seconds until the next one.
        model: the model that failed.
        next_model: the model that is asked next.
    """

    turn: int
    error: SimpleLLMFuncError
    tries: int
    pause: float
    model: str
    next_model: str


@quickly_made
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


@quickly_made
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


@quickly_made
@dataclass(frozen=True, slots=True)
class Attempt:
    """One time the model was asked for the answer; replies that only call tools are none.

    Attributes:
        text: what it wrote.
        violations: what did not fit; empty for the accepted answer.
        repairs: what was mended to read it.
        seconds: from the request to the end of the reply.
        usage: of this reply.
    """

    text: str
    violations: list[Violation] = field(default_factory=list)
    repairs: list[Repair] = field(default_factory=list)
    seconds: float = 0.0
    usage: Usage = field(default_factory=Usage)


@dataclass(frozen=True, slots=True)
class AnswerReviewed:
    """An answer was judged; a reply that only calls tools is none. Shown to sinks only.

    Attributes:
        attempt: what the model wrote, what did not fit, what was mended.
        accepted: it is the answer; else the model is asked again, or the run fails.
    """

    turn: int
    attempt: Attempt
    accepted: bool


@quickly_made
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


@quickly_made
@dataclass(frozen=True, slots=True)
class ToolCallFinished:
    """A tool has run, or could not.

    Attributes:
        content: what the model will read: text, or parts with images.
        failed: the content tells of a failure.
        seconds: wall-clock time inside the tool, >= 0.
        error_type: what went wrong, where it failed: the type of what the tool raised, `TimeoutError`, or why it was not
            run ("unknown_tool", "invalid_arguments", "not_confirmed").
    """

    turn: int
    call: ToolCall
    content: str | list[dict[str, Any]]
    failed: bool
    seconds: float
    error_type: str = ""


@quickly_made
@dataclass(frozen=True, slots=True)
class MessageAppended:
    """The history grew by this message."""

    turn: int
    message: Message


@quickly_made
@dataclass(frozen=True, slots=True)
class RunFinished:
    """The last event of every successful run.

    Attributes:
        reply: the accepted answer.
        messages: the conversation up to and with the answer; rejected answers are not in it.
        usage: of all replies, rejected ones too.
        turns: how many replies there were.
        value: what the caller gets: of the return type, or the text of the answer; None where nobody watches.
    """

    reply: ChatCompletion
    messages: list[Message]
    usage: Usage
    turns: int
    value: Any = None


@dataclass(frozen=True, slots=True)
class RunFailed:
    """The last event of a run without an answer. Shown to sinks only; whoever reads the stream gets the error itself.

    Attributes:
        how: "error"; "cancelled" (the task was cancelled, or an abort signal set); "abandoned" (whoever read the stream
            left it before the end).
        error: one of ours carries the facts of the run: `attempts`, `usage`, `messages`.
    """

    how: Literal["error", "cancelled", "abandoned"]
    error: BaseException


ReActEvent: TypeAlias = (
    RunStarted
    | TurnStarted
    | TryFailed
    | ReplyDelta
    | ReplyReceived
    | AnswerReviewed
    | ToolCallStarted
    | ToolCallProgress
    | ToolCallFinished
    | MessageAppended
    | RunFinished
    | RunFailed
)
"""Any fact of a run."""
