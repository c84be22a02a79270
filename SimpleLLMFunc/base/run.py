"""One run as every kind of caller holds it: named in the log, timed, noted, and shown to whoever watches."""

from __future__ import annotations

import os
import random
import uuid
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import AbstractAsyncContextManager
from typing import Any, TypeAlias

from SimpleLLMFunc.base.events import ReActEvent, ReplyDelta
from SimpleLLMFunc.base.observe import EventSink, current_sinks, defaults
from SimpleLLMFunc.base.record import RunRecord
from SimpleLLMFunc.base.watch import Facts, Watch
from SimpleLLMFunc.errors import DeadlineExceeded, SimpleLLMFuncError
from SimpleLLMFunc.interface.budget import strictest_time_limit
from SimpleLLMFunc.interface.deadline import Deadline, deadline_scope
from SimpleLLMFunc.interface.tries import LISTENER
from SimpleLLMFunc.logger import async_log_context, get_current_trace_id
from SimpleLLMFunc.logger import log_context as in_log
from SimpleLLMFunc.logger.context import begin_run

__all__ = ["Begin", "generate_trace_id", "recorded"]

_RANDOM = ~(0xF000 << 64 | 0xC000 << 48) & (1 << 128) - 1
_VERSION_4 = 0x4000 << 64 | 0x8000 << 48
"""Which bits of a UUID are random, and what the others say (RFC 9562, section 5.4)."""

_ids = random.Random()  # noqa: S311 - ids are to differ, not to be secret; a seed that a user sets does not reach here

if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_ids.seed)

Begin: TypeAlias = Callable[[Deadline], Awaitable[AsyncGenerator[ReActEvent, None]]]
"""Gives the events of a run, once its log context and its deadline are in force."""


async def recorded(
    record: RunRecord,
    begin: Begin,
    *,
    log_context: Callable[[], AbstractAsyncContextManager[Any]] | None = None,
    deadline: float | None = None,
    sinks: tuple[EventSink, ...] = (),
    facts: Facts | None = None,
) -> AsyncGenerator[ReActEvent, None]:
    """Yield the events of one run; what it raises carries the facts of the run.

    Args:
        record: reads every event.
        begin: called once, inside the log context and the deadline.
        log_context: makes what names the run in every log record; None takes the names from `record`.
        deadline: seconds for the whole run; a budget's time limit counts too.
        sinks: see the events beside those of `watching`.
        facts: gives who runs and with what, to those who watch.

    Raises:
        SimpleLLMFuncError: whatever the run raises.
    """
    limited = strictest_time_limit()
    if not defaults.are_settled():
        await defaults.look()
    watchers = defaults.beside((*current_sinks(), *sinks))
    watch = Watch(record, watchers, facts) if watchers else None
    # A run that nobody watches must not be taken for a part of the one around it.
    watched = LISTENER.enter(watch) if watch is not None or LISTENER.get() is not None else None
    if limited is not None and (left := limited.left()) is not None:
        deadline = left if deadline is None else min(deadline, left)
    try:
        try:
            async with log_context() if log_context else async_log_context(record.trace_id, record.func_name):
                begin_run(record.trace_id)
                with deadline_scope(deadline) as clock:
                    events = await begin(clock)
                    del begin, log_context, facts  # they hold what only the beginning needs
                    try:
                        async for event in events:
                            if type(event) is not ReplyDelta:  # of which the record keeps nothing
                                record.note(event)
                            yield event if watch is None else watch.shown(event)
                            del event  # not kept while the next one is waited for
                    finally:
                        await events.aclose()
        except SimpleLLMFuncError as error:
            if isinstance(error, DeadlineExceeded) and limited and limited.left() == 0:
                raise record.explained(limited.out_of_time()) from error
            record.explained(error)
            raise
    except BaseException as error:
        if watch is not None:
            used = record.usage
            with in_log(record.trace_id, record.func_name, used.input_tokens, used.output_tokens):
                watch.failed(error)
        raise
    finally:
        if watched is not None:
            LISTENER.leave(watched)


def generate_trace_id(func_name: str) -> str:
    """Return a new trace id, ``{func_name}_{uuid}``, and ``_{parent}`` where a run is going on around it.

    Only the parent's own part is carried on, so that ids do not grow with the depth of nesting.
    """
    own = f"{func_name}_{_new_uuid()}"
    parent = get_current_trace_id()
    return f"{own}_{_own_part(parent)}" if parent else own


def _new_uuid() -> str:
    """Return a random UUID (version 4) as text, in a fraction of the time that `uuid.uuid4` takes."""
    digits = f"{_ids.getrandbits(128) & _RANDOM | _VERSION_4:032x}"
    return f"{digits[:8]}-{digits[8:12]}-{digits[12:16]}-{digits[16:20]}-{digits[20:]}"


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
