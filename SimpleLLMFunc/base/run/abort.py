"""Ending a run from outside: `AbortSignal`, and the wait that a signal or a deadline can end."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterator
from contextlib import aclosing, contextmanager, suppress
from typing import Any, TypeAlias, TypeVar

from SimpleLLMFunc.errors import DeadlineExceeded, RunAborted, UsageError
from SimpleLLMFunc.interface.spending import Deadline
from SimpleLLMFunc.logger import shown_value
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
            self._listeners.add(listener)
            is_late = self._is_aborted and listener in self._listeners
        if is_late:  # it was set before, and calls no listener again
            self._listeners.discard(listener)
            listener()
        return lambda: self._listeners.discard(listener)

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

    Raises:
        UsageError: `abort` is something else.
    """

    def __init__(self, clock: Deadline, abort: Abort | None = None) -> None:
        given: Any = abort
        if given is not None and not isinstance(given, Abort):
            raise UsageError(f"what ends a run is an AbortSignal or an asyncio.Event, not {shown_value(given, 80)}.")
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

    async def wait(self, work: Awaitable[T], doing: str, arrived: Callable[[], str] = str) -> T:
        """Return what `work` gives; it is cancelled when a limit is reached.

        Args:
            work: what is waited for.
            doing: what that is, for the error's text.
            arrived: gives the text that had arrived.
        """
        left = self.clock.left()
        if left is None and self.abort is None:
            return await work
        limit = asyncio.timeout(0 if self.is_aborted else None if left is None else left + _GRACE)
        try:
            async with limit:
                with self._watched(limit):
                    return await work
        except TimeoutError as error:
            if not limit.expired():
                raise
            if self.is_aborted:
                raise RunAborted(self.reason, partial=arrived()) from error
            raise DeadlineExceeded(self.clock.seconds, doing=doing, partial=arrived()) from error

    @contextmanager
    def _watched(self, limit: asyncio.Timeout) -> Iterator[None]:
        """End `limit` when the signal is set."""
        loop, abort = asyncio.get_running_loop(), self.abort

        def strike() -> None:
            with suppress(RuntimeError):  # the wait is over
                limit.reschedule(loop.time())

        def strike_from_any_thread() -> None:
            with suppress(RuntimeError):  # the loop is closed
                loop.call_soon_threadsafe(strike)

        async def look() -> None:
            while not self.is_aborted:  # noqa: ASYNC110 - an event of threads, or of another loop, wakes no task here
                await asyncio.sleep(_LOOK_SECONDS)
            strike()

        ignore: Callable[[], object] | None = None
        if isinstance(abort, AbortSignal):
            ignore = abort.listen(strike_from_any_thread)
        elif abort is not None:
            ignore = loop.create_task(look()).cancel
        try:
            yield
        finally:
            if ignore is not None:
                ignore()

    async def each(
        self, items: AsyncGenerator[T, None], doing: str, arrived: Callable[[], str] = str
    ) -> AsyncGenerator[T, None]:
        """Yield `items`, each waited for within the limits, and close them."""
        async with aclosing(items):
            while True:
                # Never around a yield: what the consumer does with an item is not ours to interrupt.
                try:
                    item = await self.wait(anext(items), doing, arrived)
                except StopAsyncIteration:
                    return
                yield item
