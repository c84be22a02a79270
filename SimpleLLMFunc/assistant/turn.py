"""One question to the assistant: what its user is shown, and what is left of it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, TypeAlias, assert_never

from SimpleLLMFunc.assistant.caller import shown_call
from SimpleLLMFunc.assistant.search.review import SearchReview
from SimpleLLMFunc.base.events import (
    AnswerReviewed,
    MessageAppended,
    ReActEvent,
    ReplyDelta,
    ReplyReceived,
    RunFailed,
    RunFinished,
    RunStarted,
    ToolCallFinished,
    ToolCallProgress,
    ToolCallStarted,
    TryFailed,
    TurnStarted,
)
from SimpleLLMFunc.type import Message

StreamItem: TypeAlias = str | ToolCallStarted | ToolCallFinished | dict[str, Any]
"""What `stream_query` yields: pieces of text, starts and ends of tools, and last the result."""


class Turn:
    """Reads the events of one question: what the user is shown, and what is left of it.

    Attributes:
        owner: who asks.
        is_forgotten: the user was deleted meanwhile, and nothing is to be remembered.
        review: of the answers.
    """

    def __init__(self, owner: str) -> None:
        self.owner = owner
        self.is_forgotten = False
        self.review: SearchReview | None = None
        self.grown: list[Message] = []
        self.answer = ""
        self._held: list[str] = []
        self._results: list[dict[str, Any]] = []

    def read(self, event: ReActEvent) -> Iterator[StreamItem]:
        """Take in one event and yield what may be shown."""
        match event:
            case TurnStarted():
                self._held.clear()  # a reply that was sent back, or a stream that began again
            case ReplyDelta(text=text):
                if text and self.review is not None and self.review.may_search:
                    self._held.append(text)
                elif text:
                    yield text
            case ToolCallStarted():
                yield from self.release()
                yield event
            case ToolCallFinished(call=call, content=content, failed=failed):
                self._results.append({**shown_call(call), "result": content, "failed": failed})
                yield event
            case MessageAppended(message=message):
                self.grown.append(message)
            case RunFinished(reply=reply):
                self.answer = reply.text
            case RunStarted() | ReplyReceived() | ToolCallProgress():
                pass
            case TryFailed() | AnswerReviewed() | RunFailed():
                pass  # shown to sinks only
            case _:
                assert_never(event)

    def release(self) -> Iterator[str]:
        """Yield the text that was held back: it stands."""
        held, self._held = self._held, []
        yield from held

    def result(self, session_id: str) -> dict[str, Any]:
        """Return what the question came to."""
        return {
            "response": self.answer,
            "session_id": session_id,
            "has_tool_calls": bool(self._results),
            "tool_results": self._results,
            "sources": self.review.sources if self.review is not None else [],
        }
