"""Cancelling from outside what synchronous work waits for, since a thread cannot be cancelled itself."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from contextlib import suppress
from contextvars import ContextVar
from typing import Any, Protocol, TypeVar

from SimpleLLMFunc.errors import UsageError

__all__ = ["Errands"]

T = TypeVar("T")


class _Errand(Protocol):
    def cancel(self) -> None: ...


class Errands:
    """What a piece of synchronous work waits for on the library's loop, so that somebody else can end its waiting.

    A thread cannot be cancelled. What it waits for can: it would go on, and cost, for a result that nobody wants.
    """

    def __init__(self) -> None:
        self._open: set[_Errand] = set()
        self._is_cancelled = False
        # The garbage collector may close an iterator anywhere, also in here.
        self._lock = threading.RLock()

    @staticmethod
    def current() -> Errands | None:
        """Return those of the work that is being done here; None where nobody could end its waiting."""
        return _errands.get()

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
            _give_up(errand)

    def check(self) -> None:
        """Raise if the waiting has been ended.

        Raises:
            CancelledError: it has; nothing new is to begin.
        """
        if self._is_cancelled:
            raise asyncio.CancelledError("the run that this is done for has ended")

    def begin(self, errand: _Errand) -> None:
        """Note that `errand` is waited for from now on."""
        with self._lock:
            self._open.add(errand)
        if self._is_cancelled:
            _give_up(errand)

    def end(self, errand: _Errand) -> None:
        """Note that it is not waited for any more."""
        with self._lock:
            self._open.discard(errand)


def _give_up(errand: _Errand) -> None:
    with suppress(UsageError):  # the loop is closed, and what ran on it has ended
        errand.cancel()


_errands: ContextVar[Errands | None] = ContextVar("SimpleLLMFunc.errands", default=None)
