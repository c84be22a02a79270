"""One run as every kind of caller holds it: named in the log, timed, noted, and shown to whoever watches."""

from __future__ import annotations

import os
import random
import uuid
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import AbstractAsyncContextManager, AbstractContextManager
from types import TracebackType
from typing import Any, TypeAlias

from SimpleLLMFunc.base.events import ReActEvent, ReplyDelta
from SimpleLLMFunc.base.run.observers import EventSink, current_sinks, defaults
from SimpleLLMFunc.base.run.record import RunRecord
from SimpleLLMFunc.base.run.watch import Facts, Watch
from SimpleLLMFunc.errors import DeadlineExceeded, SimpleLLMFuncError
from SimpleLLMFunc.interface.attempts import LISTENER, TryListener
from SimpleLLMFunc.interface.spending import Deadline, deadline_scope, strictest_time_limit
from SimpleLLMFunc.logger import async_log_context, begin_run, get_current_trace_id
from SimpleLLMFunc.logger import log_context as in_log
from SimpleLLMFunc.utils import Block

__all__ = ["Begin", "Recording", "generate_trace_id"]

_RANDOM = ~(0xF000 << 64 | 0xC000 << 48) & (1 << 128) - 1
_VERSION_4 = 0x4000 << 64 | 0x8000 << 48
"""Which bits of a UUID are random, and what the others say (RFC 9562, section 5.4)."""

_ids = random.Random()  # noqa: S311 - ids are to differ, not to be secret; a seed that a user sets does not reach here

if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_ids.seed)

Begin: TypeAlias = Callable[[Deadline], Awaitable[AsyncGenerator[ReActEvent, None]]]
"""Gives the events of a run, once its log context and its deadline are in force."""


class Recording:
    """One run, to be read once: by `events`, one event at a time, or by `finish`, which only wants its end.

    What it raises carries the facts of the run.

    Args:
        record: reads every event.
        begin: called once, inside the log context and the deadline.
        log_context: makes what names the run in every log record; None takes the names from `record`.
        deadline: seconds for the whole run; a budget's time limit counts too.
        sinks: see the events beside those of `watching`.
        facts: gives who runs and with what, to those who watch.
    """

    # A block and no generator: one more of those around all that happens takes a twentieth of the time of a call.

    __slots__ = (
        "_begin",
        "_clock",
        "_deadline",
        "_facts",
        "_limited",
        "_log_context",
        "_named",
        "_record",
        "_sinks",
        "_watch",
        "_watched",
    )

    def __init__(
        self,
        record: RunRecord,
        begin: Begin,
        *,
        log_context: Callable[[], AbstractAsyncContextManager[Any]] | None = None,
        deadline: float | None = None,
        sinks: tuple[EventSink, ...] = (),
        facts: Facts | None = None,
    ) -> None:
        self._record = record
        self._begin: Begin | None = begin
        self._log_context = log_context
        self._deadline = deadline
        self._sinks = sinks
        self._facts = facts
        self._watch: Watch | None = None
        self._watched: Block[TryListener | None] | None = None
        self._named: AbstractAsyncContextManager[Any] | None = None
        self._clock: AbstractContextManager[Deadline] | None = None

    async def events(self) -> AsyncGenerator[ReActEvent, None]:
        """Yield the events of the run.

        Raises:
            SimpleLLMFuncError: whatever the run raises.
        """
        async with self as events:
            record, watch = self._record, self._watch
            try:
                async for event in events:
                    if type(event) is not ReplyDelta:  # of which the record keeps nothing
                        record.note(event)
                    yield event if watch is None else watch.shown(event)
                    del event  # not kept while the next one is waited for
            finally:
                await events.aclose()

    async def finish(self) -> None:
        """Read the events to the end, unless somebody has.

        Raises:
            SimpleLLMFuncError: whatever the run raises.
        """
        if self._begin is None:
            return
        async with self as events:
            record, watch = self._record, self._watch
            try:
                async for event in events:
                    record.note(event)
                    if watch is not None:
                        watch.shown(event)
                    del event
            except BaseException:
                await events.aclose()  # it may have been a sink: one that ends a test, or the program
                raise

    async def __aenter__(self) -> AsyncGenerator[ReActEvent, None]:
        record, begin, log_context = self._record, self._begin, self._log_context
        assert begin is not None, "a run is read once"
        self._begin = self._log_context = None  # they hold what only the beginning needs
        limited = self._limited = strictest_time_limit()
        if not defaults.are_settled():
            await defaults.look()
        watchers = defaults.beside((*current_sinks(), *self._sinks))
        watch = self._watch = Watch(record, watchers, self._facts) if watchers else None
        self._facts = None
        # A run that nobody watches must not be taken for a part of the one around it.
        self._watched = LISTENER.enter(watch) if watch is not None or LISTENER.get() is not None else None
        seconds = self._deadline
        if limited is not None and (left := limited.left()) is not None:
            seconds = left if seconds is None else min(seconds, left)
        try:
            named = log_context() if log_context else async_log_context(record.trace_id, record.func_name)
            await named.__aenter__()
            self._named = named
            begin_run(record.trace_id)
            clock = deadline_scope(seconds)
            deadline = clock.__enter__()
            self._clock = clock
            return await begin(deadline)
        except BaseException as error:
            await self.__aexit__(type(error), error, error.__traceback__)
            raise

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            if self._clock is not None:
                self._clock.__exit__(kind, error, trace)
            if self._named is not None:
                try:
                    await self._named.__aexit__(kind, error, trace)
                except BaseException as instead:
                    self._failed(instead)
                    raise
            if error is not None:
                self._failed(error)
        finally:
            if self._watched is not None:
                LISTENER.leave(self._watched)

    def _failed(self, error: BaseException) -> None:
        record, limited = self._record, self._limited
        told = error
        if isinstance(error, SimpleLLMFuncError):
            if isinstance(error, DeadlineExceeded) and limited and limited.left() == 0:
                told = record.explained(limited.out_of_time())
            else:
                record.explained(error)
        if self._watch is not None:
            used = record.usage
            with in_log(record.trace_id, record.func_name, used.input_tokens, used.output_tokens):
                self._watch.failed(told)
        if told is error:
            return
        try:
            raise told from error
        finally:
            del told  # the traceback holds this frame, which would hold the error


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
