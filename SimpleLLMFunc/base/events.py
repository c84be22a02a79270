"""The facts that a run can produce: a closed union, frozen and without behaviour.

A `match` over `ReActEvent` ends in `assert_never`, and names what it ignores. So the type checkers show each place that has
to know of a new event. `to_dict` is the one form of events as data.

A sink of a run (`base/run/sinks.py`) is shown more than a reader of its stream: `TryFailed`, `AnswerReviewed` and
`RunFailed`, and the fields that say so. A sink sees `RunStarted` first and either `RunFinished` or `RunFailed` last.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, field, fields
from typing import Any, Final, Literal, TypeAlias

from SimpleLLMFunc.base.metadata import RunMetadata, SentRequest
from SimpleLLMFunc.base.parsing import Repair
from SimpleLLMFunc.errors import SimpleLLMFuncError, Violation
from SimpleLLMFunc.type import ChatCompletion, Message, ToolCall, ToolCallDelta, Usage
from SimpleLLMFunc.utils import set_fields


@dataclass(frozen=True, slots=True)
class RunStarted:
    """A run begins.

    Attributes:
        messages: what the model will be shown first; empty for a run that failed before.
        run: who runs, and with what; None without sinks.
    """

    trace_id: str
    messages: list[Message]
    run: RunMetadata | None = None


@dataclass(frozen=True, slots=True)
class TurnStarted:
    """A request is about to leave.

    Attributes:
        turn: from 1. The same number again means that the turn is tried again: what it showed is void.
        sent: the request; None without sinks, and when a broken stream is asked for again unchanged.
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


@dataclass(frozen=True, slots=True)
class ReplyDelta:
    """One chunk of a streamed reply.

    Attributes:
        text: the new piece of text, may be empty.
        tool_calls: pieces of tool calls.
        raw: the chunk as the interface gave it.
        thinking: the new piece of what the model thinks, where the service shows it; no part of the text.
    """

    turn: int
    text: str
    tool_calls: list[ToolCallDelta] = field(default_factory=list)
    raw: Any = None
    thinking: str = ""


@dataclass(frozen=True, slots=True)
class ReplyReceived:
    """One whole reply, streamed or not.

    Attributes:
        reply: put together from the chunks where it was streamed.
        usage: of this reply; zeros where the provider told none.
        seconds: from the request to the end of the reply.
        raw: the reply as the interface gave it; for a streamed one the same as `reply`.
        replayed: a `durable` block replayed it: no request was sent, nothing was paid.
    """

    turn: int
    reply: ChatCompletion
    usage: Usage
    seconds: float
    raw: Any = None
    replayed: bool = False


@dataclass(frozen=True, slots=True)
class Attempt:
    """One time the model was asked for the answer; replies that only call tools do not count.

    Attributes:
        text: what it wrote.
        violations: what did not fit; empty for the accepted answer.
        repairs: what was mended to read it.
        seconds: from the request to the end of the reply.
        usage: of this reply.
        thinking: what the model thought before, as far as the service shows it.
    """

    text: str
    violations: list[Violation] = field(default_factory=list)
    repairs: list[Repair] = field(default_factory=list)
    seconds: float = 0.0
    usage: Usage = field(default_factory=Usage)
    thinking: str = ""

    __setstate__ = set_fields


@dataclass(frozen=True, slots=True)
class AnswerReviewed:
    """An answer was judged; a reply that only calls tools is not an answer. Shown to sinks only.

    Attributes:
        attempt: what the model wrote, what did not fit, what was mended.
        accepted: it is the answer; else the model is asked again, or the run fails.
    """

    turn: int
    attempt: Attempt
    accepted: bool


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
        error_type: what went wrong, where it failed: the type of what the tool raised, `TimeoutError`, or why it was not
            run ("unknown_tool", "invalid_arguments", "not_confirmed", "repeated_call").
        replayed: a `durable` block gave it again: the tool did not run.
    """

    turn: int
    call: ToolCall
    content: str | list[dict[str, Any]]
    failed: bool
    seconds: float
    error_type: str = ""
    replayed: bool = False


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
        value: what the caller gets: of the return type, or the text of the answer; None without sinks.
        downgrades: as in `Result`.
    """

    reply: ChatCompletion
    messages: list[Message]
    usage: Usage
    turns: int
    value: Any = None
    downgrades: Sequence[tuple[str, str]] = ()


@dataclass(frozen=True, slots=True)
class RunFailed:
    """The last event of a run without an answer. Shown to sinks only; the reader of the stream gets the error itself.

    Attributes:
        how: "error"; "cancelled" (the task was cancelled, or an abort signal set); "abandoned" (the reader of the stream
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


_FOR_CODE: Final = frozenset({"raw", "run", "sent", "value"})


def to_dict(event: ReActEvent) -> dict[str, Any]:
    """Return an event as data: `type` is the name of its class, the other keys are what it tells.

    A call is told as `id`, `name` and `arguments`, a reply by its `text`, an error by `error` (its type) and `message`.
    Raw replies, the function that runs and the value are left out: they are for code. Messages, contents and progress
    are the event's own objects. Nothing is masked: pass data that leaves the process through `logger.redact`.
    """
    told: dict[str, Any] = {"type": type(event).__name__}
    for name in (part.name for part in fields(event)):
        value = getattr(event, name)
        match name:
            case "call":
                told |= {"id": value.id, "name": value.function.name, "arguments": value.function.arguments}
            case "reply":
                told["text"] = value.text
            case "error":
                told |= {"error": type(value).__name__, "message": str(value)}
            case "attempt":
                told |= asdict(value)
            case "usage":
                told["usage"] = asdict(value)
            case "tool_calls":
                told["tool_calls"] = [asdict(call) for call in value]
            case "downgrades":
                told["downgrades"] = [list(each) for each in value]
            case "replayed" if not value:
                pass
            case _ if name not in _FOR_CODE:
                told[name] = value
    return told
