"""What one task waits for, and goes on at once: in the step of the loop that brought it.

The callbacks of an asyncio future run in the next round of the loop. That is one more look at all sockets, and one more
handle, for each reply and for each chunk of one.

Source: the protocol between a task and what it awaits, as `asyncio.isfuture` describes it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Generator
from contextvars import Context
from typing import Any

__all__ = ["Waiter"]


class Waiter:
    """Awaited by one task, once; done when somebody calls `wake`."""

    __slots__ = ("_asyncio_future_blocking", "_cancelled", "_context", "_go_on", "_is_done", "_loop")

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._asyncio_future_blocking = False
        self._loop = loop
        self._is_done = False
        self._cancelled: tuple[Any, ...] | None = None  # what the error is made of
        self._go_on: Callable[[Any], object] | None = None
        self._context: Context | None = None

    def __await__(self) -> Generator[Waiter, None, None]:
        if not self._is_done:
            self._asyncio_future_blocking = True
            yield self
        self.result()

    # --- what a task calls -------------------------------------------------------------------------------

    def get_loop(self) -> asyncio.AbstractEventLoop:
        """Return the loop whose task may wait."""
        return self._loop

    def add_done_callback(self, go_on: Callable[[Any], object], *, context: Context | None = None) -> None:
        """Note how the task goes on."""
        self._go_on = go_on
        self._context = context

    def result(self) -> None:
        """Return when it is done.

        Raises:
            CancelledError: the task was cancelled while it waited.
        """
        if self._cancelled is not None:
            raise asyncio.CancelledError(*self._cancelled)

    def cancel(self, msg: Any | None = None) -> bool:
        """Have the task be cancelled in the next round; False where it goes on already."""
        if self._is_done:
            return False
        self._cancelled = () if msg is None else (msg,)
        self._in_next_round()
        return True

    # --- what whoever is waited for calls ----------------------------------------------------------------

    def wake(self) -> None:
        """Have the task go on: now where no task is at work, else in the next round."""
        if self._is_done:
            return
        if self._go_on is None or self._context is None or asyncio.current_task(self._loop) is not None:
            self._in_next_round()
            return
        self._is_done = True
        try:
            self._context.run(self._go_on, self)
        except RuntimeError:  # the context is in use: the task cannot be run here
            self._in_next_round()

    def _in_next_round(self) -> None:
        self._is_done = True
        if self._go_on is not None:
            self._loop.call_soon(self._go_on, self, context=self._context)
