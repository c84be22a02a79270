"""The items that wait for a trace store's thread: copies of events, made in the thread of the run."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TypeAlias, assert_never

from SimpleLLMFunc.base import events
from SimpleLLMFunc.base.events import ReActEvent
from SimpleLLMFunc.observability.store.content import Content
from SimpleLLMFunc.observability.store.rows import FailedTry


@dataclass(frozen=True, slots=True)
class Ended:
    """A run ended without an answer; holds the text of the error, since the error holds the frames of the run."""

    status: str
    error: str
    text: str


Item: TypeAlias = ReActEvent | FailedTry | Ended
"""One step of a run: `FailedTry` and `Ended` replace `TryFailed` and `RunFailed`."""


class Intake:
    """Turns events into items, in the threads of the runs; `content` copies values that a caller may change later."""

    def __init__(self, content: Content) -> None:
        self._content = content
        self._streaming: dict[str, int] = {}

    def item_of(self, trace_id: str, event: ReActEvent) -> Item | None:
        """Return the item of an event, independent of later changes by the caller; None for events that are not kept."""
        if not isinstance(event, events.ReplyDelta):
            self._streaming.pop(trace_id, None)
        match event:
            case events.ReplyDelta(turn=turn):
                if self._streaming.get(trace_id) == turn:
                    return None
                self._streaming[trace_id] = turn
                return events.ReplyDelta(turn, "")
            case events.ReplyReceived():
                return replace(event, raw=None)
            case events.RunStarted(run=run):
                facts = run and replace(run, arguments=self._content.snapshot(dict(run.arguments)))
                return replace(event, messages=self._content.snapshot(event.messages), run=facts)
            case events.RunFinished():
                return replace(event, messages=[], value=self._content.snapshot(event.value))
            case events.RunFailed(how=how, error=error):
                if how == "error":
                    return Ended("error", type(error).__name__, said(error))
                return Ended("cancelled", "", how)
            case events.TryFailed(turn=turn, error=error, pause=pause, model=model, next_model=next_model):
                status = getattr(error, "status", None)
                status = status if isinstance(status, int) else None
                return FailedTry(turn, type(error).__name__, said(error), status, pause, model, next_model)
            case events.ToolCallProgress():
                return None
            case (
                events.TurnStarted()
                | events.AnswerReviewed()
                | events.ToolCallStarted()
                | events.ToolCallFinished()
                | events.MessageAppended()
            ):
                return event
            case _:
                assert_never(event)


def said(error: BaseException) -> str:
    """Return the text of an error; "" where the user's class fails at giving it."""
    try:
        return str(error)
    except Exception:  # noqa: BLE001 - the user's class failed; the run goes on
        return ""
