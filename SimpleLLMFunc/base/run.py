"""One run as every kind of caller holds it: named in the log, timed, noted, and shown to whoever watches."""

from __future__ import annotations

import uuid
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import AbstractAsyncContextManager
from typing import Any, TypeAlias

from SimpleLLMFunc.base.events import ReActEvent
from SimpleLLMFunc.base.observe import EventSink, current_sinks, show
from SimpleLLMFunc.base.record import RunRecord
from SimpleLLMFunc.errors import DeadlineExceeded, SimpleLLMFuncError
from SimpleLLMFunc.interface.budget import strictest_time_limit
from SimpleLLMFunc.interface.deadline import Deadline, deadline_scope
from SimpleLLMFunc.logger import async_log_context, get_current_trace_id

__all__ = ["Begin", "generate_trace_id", "recorded"]

Begin: TypeAlias = Callable[[Deadline], Awaitable[AsyncGenerator[ReActEvent, None]]]
"""Gives the events of a run, once its log context and its deadline are in force."""


async def recorded(
    record: RunRecord,
    begin: Begin,
    *,
    log_context: Callable[[], AbstractAsyncContextManager[Any]] | None = None,
    deadline: float | None = None,
    sinks: tuple[EventSink, ...] = (),
) -> AsyncGenerator[ReActEvent, None]:
    """Yield the events of one run; what it raises carries the facts of the run.

    Args:
        record: reads every event.
        begin: called once, inside the log context and the deadline.
        log_context: makes what names the run in every log record; None takes the names from `record`.
        deadline: seconds for the whole run; a budget's time limit counts too.
        sinks: see the events beside those of `watching`.

    Raises:
        SimpleLLMFuncError: whatever the run raises.
    """
    limited = strictest_time_limit()
    watchers = (*current_sinks(), *sinks)
    limits = [deadline, limited.left() if limited else None]
    try:
        async with log_context() if log_context else async_log_context(record.trace_id, record.func_name):
            with deadline_scope(min((seconds for seconds in limits if seconds is not None), default=None)) as clock:
                events = await begin(clock)
                del begin, log_context, limits  # they hold what only the beginning needs
                try:
                    async for event in events:
                        record.note(event)
                        if watchers:
                            show(watchers, record.trace_id, event)
                        yield event
                        del event  # not kept while the next one is waited for
                finally:
                    await events.aclose()
    except SimpleLLMFuncError as error:
        if isinstance(error, DeadlineExceeded) and limited and limited.left() == 0:
            raise record.explained(limited.out_of_time()) from error
        record.explained(error)
        raise


def generate_trace_id(func_name: str) -> str:
    """Return a new trace id, ``{func_name}_{uuid}``, and ``_{parent}`` where a run is going on around it.

    Only the parent's own part is carried on, so that ids do not grow with the depth of nesting.
    """
    own = f"{func_name}_{uuid.uuid4()}"
    parent = get_current_trace_id()
    return f"{own}_{_own_part(parent)}" if parent else own


def _own_part(trace_id: str) -> str:
    # The own part ends with the first uuid: 36 characters, of which the hyphens stand at known places.
    for start in range(len(trace_id) - 35):
        piece = trace_id[start : start + 36]
        if piece[8:24:5] == "----" and (start == 0 or trace_id[start - 1] == "_"):
            try:
                uuid.UUID(piece)
            except ValueError:
                continue
            return trace_id[: start + 36]
    return trace_id
