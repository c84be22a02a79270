"""What is known about one run while it goes on: the fold behind `Result` and behind an error's attributes."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any, TypeVar

from SimpleLLMFunc.base.events import (
    Attempt,
    MessageAppended,
    ReActEvent,
    ReplyReceived,
    RunFinished,
    RunStarted,
    ToolCallStarted,
    TurnStarted,
)
from SimpleLLMFunc.base.messages import copied
from SimpleLLMFunc.base.parsing import OutputMode, Parsed
from SimpleLLMFunc.errors import SimpleLLMFuncError
from SimpleLLMFunc.type import NO_USAGE, ChatCompletion, Message, ToolCall

__all__ = ["RunRecord"]

E = TypeVar("E", bound=SimpleLLMFuncError)


class RunRecord:
    """Reads the events of one run, and says what `Result` and the errors carry.

    Attributes:
        attempts: told by the review, which alone knows what was wrong with an answer.
        last: the latest reply with its time, for the review.
        parsed: the accepted answer, written by the review of a typed one.
    """

    __slots__ = (
        "attempts",
        "finished",
        "func_name",
        "last",
        "messages",
        "output_mode",
        "output_mode_reason",
        "parsed",
        "started",
        "tool_calls",
        "trace_id",
        "usage",
    )

    def __init__(self, func_name: str, trace_id: str) -> None:
        self.func_name = func_name
        self.trace_id = trace_id
        self.started = time.monotonic()
        # No lists as long as there is nothing to hold: the garbage collector looks at all objects of all calls in flight.
        self.attempts: Sequence[Attempt] = ()
        self.messages: list[Message] = []
        self.tool_calls: list[ToolCall] | tuple[()] = ()
        self.usage = NO_USAGE
        self.last: ReplyReceived | None = None
        self.parsed: Parsed[Any] | None = None
        self.finished: RunFinished | None = None
        self.output_mode: OutputMode = "text"
        self.output_mode_reason = ""

    def note(self, event: ReActEvent) -> None:
        """Take in one event."""
        # Not `match`, which takes three times as long to find the case: each run has half a dozen events or more.
        if type(event) is TurnStarted:
            return
        if type(event) is MessageAppended:
            self.messages.append(event.message)
        elif type(event) is ReplyReceived:
            self.last = event
            self.usage += event.usage
        elif type(event) is RunStarted:
            self.messages = list(event.messages)
        elif type(event) is RunFinished:
            self.finished = event
        elif type(event) is ToolCallStarted:
            if isinstance(self.tool_calls, list):
                self.tool_calls.append(event.call)
            else:
                self.tool_calls = [event.call]

    def attempted(self, attempt: Attempt) -> None:
        """Take in one attempt."""
        self.attempts = [*self.attempts, attempt]

    @property
    def seconds(self) -> float:
        """Wall-clock time since the run began."""
        return time.monotonic() - self.started

    @property
    def reply(self) -> ChatCompletion | None:
        """The accepted reply, else the latest one."""
        if self.finished:
            return self.finished.reply
        return self.last.reply if self.last else None

    def facts(self) -> dict[str, Any]:
        """Return what `Result` and an error have in common, by attribute name."""
        reply = self.reply
        return {
            "attempts": list(self.attempts),
            "output_mode": self.output_mode,
            "output_mode_reason": self.output_mode_reason,
            "tool_calls": list(self.tool_calls),
            "messages": copied(self.messages),
            "usage": self.usage,
            "cost": self.usage.cost,
            "seconds": self.seconds,
            "trace_id": self.trace_id,
            "cached": reply.cached if reply else False,
            "finish_reason": reply.finish_reason if reply else None,
        }

    def explained(self, error: E) -> E:
        """Return `error` with the facts of this run; one that an inner run explained keeps its own."""
        if error.trace_id:
            return error
        facts = self.facts()
        facts["text"] = error.text or (self.reply.text if self.reply else "")
        facts["finish_reason"] = error.finish_reason or facts["finish_reason"]
        return error.with_run(func_name=self.func_name, **facts)
