"""Ending a run from outside: `AbortSignal`, and the wait that a signal or a deadline can end."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import aclosing
from functools import partial
from types import TracebackType
from typing import Any, Self, TypeAlias, TypeVar

from SimpleLLMFunc.errors import DeadlineExceeded, RunAborted
from SimpleLLMFunc.interface.spending import Deadline
from SimpleLLMFunc.runtime import ForkSafeLock

T = TypeVar("T")


class AbortSignal:
    """Ends the runs it was given to; set once, from any thread.

    A chat or a stream ends and its history keeps the text that had arrived; a call raises `RunAborted`; running
    tools are cancelled.
    """

    def __init__(self) -> None:
        self._lock = ForkSafeLock()  # may be taken twice: a signal handler that aborts can come in anywhere
        self._reason = ""
        self._is_aborted = False
        self._listeners: set[Callable[[], None]] = set()

    @property
    def is_aborted(self) -> bool:
        """Whether `abort` was called."""
        return self._is_aborted

    @property
    def reason(self) -> str:
        """What `abort` was told; empty before."""
        return self._reason

    def abort(self, reason: str = "") -> None:
        """End all runs that have this signal; the first reason stays."""
        with self._lock:
            if self._is_aborted:
                return
            self._is_aborted, self._reason = True, reason
            listeners, self._listeners = self._listeners, set()
        for listener in listeners:
            listener()

    def listen(self, listener: Callable[[], None]) -> Callable[[], None]:
        """Call `listener` once, in the thread that aborts, or at once if that has happened; return a function that removes it."""
        with self._lock:
            if not self._is_aborted:
                self._listeners.add(listener)
                if not self.is_aborted or listener not in self._listeners:  # else it was set in between, and not told
                    return lambda: self._listeners.discard(listener)
                self._listeners.discard(listener)
        listener()
        return _nothing

    def __repr__(self) -> str:
        return f"AbortSignal({'aborted: ' + self._reason if self._is_aborted else 'not aborted'})"


Abort: TypeAlias = AbortSignal | asyncio.Event
"""What may end a run."""

# An asyncio.Event may belong to another loop than the one the run is on: it is looked at, not waited for.
_LOOK_SECONDS = 0.02

# An interface keeps its own clock and knows more when it ends a request (what had arrived, how long to
# wait); this clock is for those that do not, and strikes a little later.
_GRACE = 0.2


class RunLimits:
    """What ends a wait of one run: its deadline, and a signal from outside.

    Args:
        clock: of the whole run.
        abort: None if it cannot be aborted.
    """

    def __init__(self, clock: Deadline, abort: Abort | None = None) -> None:
        self.clock = clock
        self.abort = abort

    def check(self, doing: str) -> None:
        """Raise if the run must not go on.

        Raises:
            RunAborted: the signal is set.
            DeadlineExceeded: the deadline has passed.
        """
        if self.is_aborted:
            raise RunAborted(self.reason)
        self.clock.check(doing)

    @property
    def is_aborted(self) -> bool:
        """Whether the signal is set."""
        if isinstance(self.abort, asyncio.Event):
            return self.abort.is_set()
        return self.abort is not None and self.abort.is_aborted

    @property
    def reason(self) -> str:
        """Why it was set."""
        return self.abort.reason if isinstance(self.abort, AbortSignal) else ""

    @property
    def is_none(self) -> bool:
        """Whether nothing can end a wait."""
        return self.clock.seconds is None and self.abort is None

    async def wait(self, work: Awaitable[T], doing: str, arrived: Callable[[], str] = str) -> T:
        """Return what `work` gives; it is cancelled when a limit is reached.

        Args:
            work: what is waited for.
            doing: what that is, for the error's text.
            arrived: gives the text that had arrived.
        """
        if self.is_none:
            return await work
        async with _Wait(self, self.clock.left(), doing, arrived):
            return await work

    def each(
        self, items: AsyncGenerator[T, None], doing: str, arrived: Callable[[], str] = str
    ) -> AsyncGenerator[T, None]:
        """Return a generator that yields `items`, each waited for within the limits, and closes them."""
        return items if self.is_none else self._each(items, doing, arrived)

    async def _each(
        self, items: AsyncGenerator[T, None], doing: str, arrived: Callable[[], str]
    ) -> AsyncGenerator[T, None]:
        async with aclosing(items):
            while True:
                # Never around a yield: what the consumer does with an item is not ours to interrupt.
                try:
                    item = await self.wait(anext(items), doing, arrived)
                except StopAsyncIteration:
                    return
                yield item


class _Wait:
    """Cancels the task inside it when a limit is reached, and turns that cancellation into the limit's error.

    Source: the protocol of `asyncio.timeout` (cancel, then uncancel), so that a cancellation from outside that
    comes at the same time is not swallowed.
    """

    def __init__(self, limits: RunLimits, left: float | None, doing: str, arrived: Callable[[], str]) -> None:
        self._limits = limits
        self._left = left
        self._doing = doing
        self._arrived = arrived
        self._struck: Callable[[], Exception] | None = None
        self._undo: list[Callable[[], Any]] = []

    async def __aenter__(self) -> Self:
        task = asyncio.current_task()
        assert task is not None, "a run is inside a task"
        self._task = task
        self._cancelling = task.cancelling()
        loop = asyncio.get_running_loop()
        if self._left is not None:
            self._undo.append(loop.call_later(self._left + _GRACE, self._strike, self._too_late).cancel)
        abort = self._limits.abort
        if isinstance(abort, AbortSignal):
            self._undo.append(abort.listen(partial(_from_any_thread, loop, self._strike, self._aborted)))
        elif abort is not None:
            self._look(loop, abort)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for undo in self._undo:
            undo()
        struck, self._struck = self._struck, _never
        if struck is None:
            return
        if self._task.uncancel() <= self._cancelling and kind is not None and issubclass(kind, asyncio.CancelledError):
            raise struck() from error

    def _strike(self, error: Callable[[], Exception]) -> None:
        if self._struck is None:
            self._struck = error
            self._task.cancel()

    def _look(self, loop: asyncio.AbstractEventLoop, event: asyncio.Event) -> None:
        if event.is_set():
            self._strike(self._aborted)
        elif self._struck is None:
            self._undo[:] = [*self._undo[:1], loop.call_later(_LOOK_SECONDS, self._look, loop, event).cancel]

    def _too_late(self) -> Exception:
        return DeadlineExceeded(self._limits.clock.seconds, doing=self._doing, partial=self._arrived())

    def _aborted(self) -> Exception:
        return RunAborted(self._limits.reason, partial=self._arrived())


def _from_any_thread(
    loop: asyncio.AbstractEventLoop, strike: Callable[..., None], error: Callable[[], Exception]
) -> None:
    if not loop.is_closed():
        loop.call_soon_threadsafe(strike, error)


def _nothing() -> None:
    """Undo nothing."""


def _never() -> Exception:
    raise AssertionError("a wait that is over is not struck")
