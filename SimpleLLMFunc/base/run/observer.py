"""Shows one run to its sinks: the events of its stream, and the events for sinks only."""

from __future__ import annotations

import asyncio
from contextvars import ContextVar
from dataclasses import replace

from SimpleLLMFunc.base import events
from SimpleLLMFunc.base.metadata import RunMetadata
from SimpleLLMFunc.base.run.sinks import EventSink, current_owner, hand, show
from SimpleLLMFunc.errors import RunAborted, SimpleLLMFuncError
from SimpleLLMFunc.interface.attempts import LISTENER, Downgrades
from SimpleLLMFunc.logger import get_current_run_id
from SimpleLLMFunc.type import ToolCall

_CALL: ContextVar[tuple[str, str]] = ContextVar("SimpleLLMFunc.tool_call", default=("", ""))
"""Trace id and id of the tool call that goes on here."""


class Observer(Downgrades):
    """Shows one run to its sinks. Made before others take the run for one around them, to see what is around it.

    Args:
        trace_id: of the run.
        sinks: who watches.
        attempts: of the run, as the review adds to them.

    Attributes:
        has_started: the sinks were shown the beginning.
    """

    def __init__(self, trace_id: str, sinks: tuple[EventSink, ...], attempts: list[events.Attempt]) -> None:
        super().__init__()
        self.trace_id = trace_id
        self.sinks = sinks
        self.has_started = False
        self._attempts = attempts
        self._turn = self._judged = 0
        outer = current_observer()
        around = get_current_run_id() if outer is None else outer.trace_id
        parent = around if around != trace_id else ""
        call_of, call_id = _CALL.get()
        self._parent = (parent, call_id if call_of == parent else "")
        self._owner = current_owner()

    def surrounded(self, about: RunMetadata, restarts: int) -> RunMetadata:
        """Return what is known of the run with what is around it."""
        parent, call_id = self._parent
        return replace(
            about,
            parent_trace_id=parent,
            parent_call_id=call_id,
            session_id=about.session_id or self._owner.session_id,
            user_id=about.user_id or self._owner.user_id,
            restarts=restarts,
        )

    def shown(self, event: events.ReActEvent) -> None:
        """Show an event of the stream to the sinks."""
        self._show_judged(accepted=isinstance(event, events.MessageAppended))
        self.has_started = True
        if isinstance(event, events.TurnStarted):
            self._turn = event.turn
        show(self.sinks, self.trace_id, event)

    def failed(self, error: BaseException) -> None:
        """Show that the run has ended without an answer."""
        self._show_judged(accepted=False)
        is_cancelled = isinstance(error, (asyncio.CancelledError, RunAborted, KeyboardInterrupt, SystemExit))
        is_left = isinstance(error, GeneratorExit)
        failed = events.RunFailed("abandoned" if is_left else "cancelled" if is_cancelled else "error", error)
        show(self.sinks, self.trace_id, failed)

    def try_failed(self, error: SimpleLLMFuncError, *, tries: int, pause: float, model: str, next_model: str) -> None:
        """Show that a try failed which another one follows."""
        show(self.sinks, self.trace_id, events.TryFailed(self._turn, error, tries, pause, model, next_model))

    def tool_begins(self, call: ToolCall) -> None:
        """Tell the sinks that this task is that of a tool; runs that begin in it belong to the call."""
        _CALL.set((self.trace_id, call.id))
        for sink in self.sinks:
            if (enter := getattr(sink, "enter_tool", None)) is not None:
                hand(enter, self.trace_id, call)

    def _show_judged(self, *, accepted: bool) -> None:
        judged, self._judged = self._judged, len(self._attempts)
        for attempt in self._attempts[judged:]:
            show(self.sinks, self.trace_id, events.AnswerReviewed(self._turn, attempt, accepted))


def current_observer() -> Observer | None:
    """Return the observer of the run that goes on here, None if it has no sinks."""
    listener = LISTENER.get()
    return listener if isinstance(listener, Observer) else None
