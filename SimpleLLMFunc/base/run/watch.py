"""One watched run: what the sinks are shown beside the stream, and what the stream itself tells them more of."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextvars import ContextVar
from dataclasses import replace
from typing import Any

from SimpleLLMFunc.base.events import (
    AnswerReviewed,
    MessageAppended,
    ReActEvent,
    RunFailed,
    RunFinished,
    RunStarted,
    TryFailed,
    TurnStarted,
)
from SimpleLLMFunc.base.metadata import FunctionFacts, RunFacts, SentRequest
from SimpleLLMFunc.base.request import ModelRequest
from SimpleLLMFunc.base.run.observers import EventSink, current_session, show
from SimpleLLMFunc.base.run.record import RunRecord
from SimpleLLMFunc.errors import RunAborted, SimpleLLMFuncError
from SimpleLLMFunc.interface.attempts import LISTENER
from SimpleLLMFunc.interface.llm_interface import LLM_Interface
from SimpleLLMFunc.logger import get_current_run_id, push_warning, shown_error
from SimpleLLMFunc.type import ToolCall

__all__ = ["Facts", "Watch", "current_watch"]

Facts = Callable[[], RunFacts]
"""Gives who runs and with what; called once, and only where somebody watches."""

_CALL: ContextVar[tuple[str, str]] = ContextVar("SimpleLLMFunc.tool_call", default=("", ""))
"""Trace id and id of the tool call that goes on here."""


class Watch:
    """Shows one run to those who watch it. Made outside of the run's own log context, to see what is around it.

    Args:
        record: of the run.
        sinks: who watches.
        facts: who runs, and with what.
    """

    __slots__ = ("_facts", "_has_started", "_judged", "_parent", "_session", "record", "sinks", "turn")

    def __init__(self, record: RunRecord, sinks: tuple[EventSink, ...], facts: Facts | None) -> None:
        self.record = record
        self.sinks = sinks
        self.turn = 0
        self._facts = facts
        self._judged = 0
        self._has_started = False
        outer = current_watch()
        around = get_current_run_id() if outer is None else outer.record.trace_id
        parent = around if around != record.trace_id else ""
        trace_id, call_id = _CALL.get()
        self._parent = (parent, call_id if trace_id == parent else "")
        self._session = current_session()

    def shown(self, event: ReActEvent) -> ReActEvent:
        """Show `event` to the sinks, and return it with what those who watch are told more."""
        self._show_judged(accepted=isinstance(event, MessageAppended))
        match event:
            case RunStarted():
                event = replace(event, run=self._run())
                self._has_started = True
            case TurnStarted(turn=turn):
                self.turn = turn
            case RunFinished(reply=reply):
                parsed = self.record.parsed
                event = replace(event, value=reply.text if parsed is None else parsed.value)
            case _:
                pass
        self._show(event)
        return event

    def failed(self, error: BaseException) -> None:
        """Show that the run has ended without an answer."""
        if self.record.finished is not None:
            return  # left, or cancelled, after all was told
        if not self._has_started:
            self.shown(RunStarted(self.record.trace_id, []))
        self._show_judged(accepted=False)
        if isinstance(error, GeneratorExit):
            self._show(RunFailed("abandoned", error))
        elif isinstance(error, (asyncio.CancelledError, RunAborted, KeyboardInterrupt, SystemExit)):
            self._show(RunFailed("cancelled", error))
        else:
            self._show(RunFailed("error", error))

    def sent(self, llm: LLM_Interface, request: ModelRequest, *, stream: bool, is_last: bool) -> SentRequest:
        """Return what a turn is about to send."""
        return SentRequest(llm, request, stream, is_last, self.record.output_mode)

    def try_failed(self, error: SimpleLLMFuncError, *, tries: int, pause: float, model: str, next_model: str) -> None:
        """Show that a try failed which another one follows."""
        self._show(TryFailed(self.turn, error, tries, pause, model, next_model))

    def tool_begins(self, call: ToolCall) -> None:
        """Tell the sinks that this task is that of a tool; runs that begin in it belong to the call."""
        _CALL.set((self.record.trace_id, call.id))
        for sink in self.sinks:
            enter: Any = getattr(sink, "enter_tool", None)
            if enter is None:
                continue
            try:
                enter(self.record.trace_id, call)
            except Exception as error:  # noqa: BLE001 - as in `show`
                push_warning(f"an event sink failed and was passed over: {shown_error(error)}")

    def _show(self, event: ReActEvent) -> None:
        show(self.sinks, self.record.trace_id, event)

    def _show_judged(self, *, accepted: bool) -> None:
        attempts = self.record.attempts
        while self._judged < len(attempts):
            attempt = attempts[self._judged]
            self._judged += 1
            self._show(AnswerReviewed(self.turn, attempt, accepted))

    def _run(self) -> RunFacts:
        try:
            facts = self._facts() if self._facts is not None else None
        except Exception as error:  # noqa: BLE001 - what cannot be told of a function must not keep it from running
            push_warning(f"{self.record.func_name!r} cannot be described: {shown_error(error)}")
            facts = None
        facts = facts or RunFacts(FunctionFacts(self.record.func_name))
        parent, call_id = self._parent
        return replace(
            facts,
            parent_trace_id=parent,
            parent_call_id=call_id,
            session_id=facts.session_id or self._session.session_id,
            user_id=facts.user_id or self._session.user_id,
        )


def current_watch() -> Watch | None:
    """Return the watch over the run that goes on here, None where nobody watches it."""
    listener = LISTENER.get()
    return None if listener is None or not isinstance(listener, Watch) else listener
