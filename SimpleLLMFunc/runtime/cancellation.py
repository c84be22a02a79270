"""Cancelling from outside what synchronous work waits for, since a thread cannot be cancelled itself."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from typing import Any, Protocol, TypeVar

from SimpleLLMFunc.errors import UsageError

T = TypeVar("T")


class Errand(Protocol):
    """Something on the library's loop that a thread waits for."""

    def cancel(self) -> None:
        """Cancel it, which ends the waiting; from any thread."""


class Errands:
    """What one piece of synchronous work waits for on the library's loop, so that its waiting can be ended.

    A thread cannot be cancelled. What it waits for can: it would go on, and cost, for a result that is ignored.
    """

    def __init__(self) -> None:
        self._open: set[Errand] = set()
        self._is_cancelled = False
        # The garbage collector may close an iterator anywhere, also in here.
        self._lock = threading.RLock()

    def run(self, function: Callable[..., T], *args: Any) -> T:
        """Call `function` in this thread and context; what it waits for on that loop is noted here."""
        _errands.set(self)
        return function(*args)

    def cancel(self) -> None:
        """End the waiting, now and in the future, with `asyncio.CancelledError`; from any thread."""
        with self._lock:
            self._is_cancelled = True
            waited_for = list(self._open)
        for errand in waited_for:
            with suppress(UsageError):  # the loop is closed, and what ran on it has ended
                errand.cancel()

    def begin(self, errand: Errand) -> None:
        """Note that `errand` is about to be waited for.

        Raises:
            CancelledError: the waiting has been ended, so nothing new may begin.
        """
        with self._lock:
            if self._is_cancelled:
                raise asyncio.CancelledError("the run that this is done for has ended")
            self._open.add(errand)

    def end(self, errand: Errand) -> None:
        """Note that it is not waited for any more."""
        with self._lock:
            self._open.discard(errand)


@contextmanager
def waited_for(errand: Errand) -> Iterator[None]:
    """Let the waiting for `errand` in the ``with`` block be ended by the run that this thread works for.

    Raises:
        CancelledError: that run has ended already.
    """
    errands = _errands.get()
    if errands is None:
        yield
        return
    errands.begin(errand)
    try:
        yield
    finally:
        errands.end(errand)


_errands: ContextVar[Errands | None] = ContextVar("SimpleLLMFunc.errands", default=None)
