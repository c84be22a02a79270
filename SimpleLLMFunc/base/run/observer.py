"""Shows one run to its sinks: the events of its stream, and the events for sinks only."""

from __future__ import annotations

import asyncio
from contextvars import ContextVar
from dataclasses import replace
from typing import Any, Protocol, assert_never

from SimpleLLMFunc.base.events import (
    AnswerReviewed,
    Attempt,
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
from SimpleLLMFunc.base.metadata import FunctionMetadata, RunMetadata
from SimpleLLMFunc.base.parsing import Parsed
from SimpleLLMFunc.base.run.journaled import JournaledRun
from SimpleLLMFunc.base.run.sinks import EventSink, current_owner, show
from SimpleLLMFunc.errors import RunAborted, SimpleLLMFuncError
from SimpleLLMFunc.interface.attempts import LISTENER, Downgrades
from SimpleLLMFunc.logger import get_current_run_id, push_warning, shown_error
from SimpleLLMFunc.type import ToolCall

_CALL: ContextVar[tuple[str, str]] = ContextVar("SimpleLLMFunc.tool_call", default=("", ""))
"""Trace id and id of the tool call that goes on here."""


class ObservedRun(Protocol):
    """A `Run`, as far as those who watch are told of it."""

    func_name: str
    trace_id: str
    attempts: list[Attempt]
    parsed: Parsed[Any] | None
    finished: RunFinished | None
    noted: Downgrades
    journal: JournaledRun | None

    def metadata(self) -> RunMetadata:
        """Return who runs and with what."""
        ...


class Observer:
    """Shows one run to its sinks. Made before others take the run for one around them, to see what is around it.

    Args:
        run: the run.
        sinks: who watches.
    """

    def __init__(self, run: ObservedRun, sinks: tuple[EventSink, ...]) -> None:
        self.run = run
        self.sinks = sinks
        self.turn = 0
        self._judged = 0
        self._has_started = False
        outer = current_observer()
        around = get_current_run_id() if outer is None else outer.run.trace_id
        parent = around if around != run.trace_id else ""
        trace_id, call_id = _CALL.get()
        self._parent = (parent, call_id if trace_id == parent else "")
        self._owner = current_owner()

    def shown(self, event: ReActEvent) -> ReActEvent:
        """Show `event` to the sinks, and return it with what those who watch are told more."""
        self._show_judged(accepted=isinstance(event, MessageAppended))
        match event:
            case RunStarted():
                event = replace(event, run=self._metadata())
                self._has_started = True
            case TurnStarted(turn=turn):
                self.turn = turn
            case RunFinished(reply=reply):
                parsed = self.run.parsed
                event = replace(event, value=reply.text if parsed is None else parsed.value)
            case ReplyDelta() | ReplyReceived() | MessageAppended():
                pass
            case ToolCallStarted() | ToolCallProgress() | ToolCallFinished():
                pass
            case TryFailed() | AnswerReviewed() | RunFailed():
                pass  # made here
            case _:
                assert_never(event)
        self._show(event)
        return event

    def failed(self, error: BaseException) -> None:
        """Show that the run has ended without an answer."""
        if self.run.finished is not None:
            return  # left, or cancelled, after all was told
        if not self._has_started:
            self.shown(RunStarted(self.run.trace_id, []))
        self._show_judged(accepted=False)
        if isinstance(error, GeneratorExit):
            self._show(RunFailed("abandoned", error))
        elif isinstance(error, (asyncio.CancelledError, RunAborted, KeyboardInterrupt, SystemExit)):
            self._show(RunFailed("cancelled", error))
        else:
            self._show(RunFailed("error", error))

    def try_failed(self, error: SimpleLLMFuncError, *, tries: int, pause: float, model: str, next_model: str) -> None:
        """Show that a try failed which another one follows."""
        self._show(TryFailed(self.turn, error, tries, pause, model, next_model))

    def downgraded(self, what: str, said: str) -> None:
        """Note what was asked for in another way: the last event tells of it."""
        self.run.noted.downgraded(what, said)

    def tool_begins(self, call: ToolCall) -> None:
        """Tell the sinks that this task is that of a tool; runs that begin in it belong to the call."""
        _CALL.set((self.run.trace_id, call.id))
        for sink in self.sinks:
            enter: Any = getattr(sink, "enter_tool", None)
            if enter is None:
                continue
            try:
                enter(self.run.trace_id, call)
            except Exception as error:  # noqa: BLE001 - as in `show`
                push_warning(f"an event sink raised an error, which is ignored: {shown_error(error)}")

    def _show(self, event: ReActEvent) -> None:
        show(self.sinks, self.run.trace_id, event)

    def _show_judged(self, *, accepted: bool) -> None:
        attempts = self.run.attempts
        while self._judged < len(attempts):
            attempt = attempts[self._judged]
            self._judged += 1
            self._show(AnswerReviewed(self.turn, attempt, accepted))

    def _metadata(self) -> RunMetadata:
        try:
            told = self.run.metadata()
        except Exception as error:  # noqa: BLE001 - what cannot be told of a function must not keep it from running
            push_warning(f"{self.run.func_name!r} cannot be described: {shown_error(error)}")
            told = RunMetadata(FunctionMetadata(self.run.func_name))
        parent, call_id = self._parent
        return replace(
            told,
            parent_trace_id=parent,
            parent_call_id=call_id,
            session_id=told.session_id or self._owner.session_id,
            user_id=told.user_id or self._owner.user_id,
            restarts=0 if self.run.journal is None else self.run.journal.restarts,
        )


def current_observer() -> Observer | None:
    """Return the observer of the run that goes on here, None if it has no sinks."""
    listener = LISTENER.get()
    return None if listener is None or not isinstance(listener, Observer) else listener
