"""How long one try may be silent, and how long the whole call may take."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable
from typing import TypeVar

from SimpleLLMFunc.errors import DeadlineExceeded
from SimpleLLMFunc.interface.spending import Deadline

T = TypeVar("T")

CONNECT_SECONDS = 10.0
_BUSY_SECONDS = 0.05


class Silence(Exception):
    """The service made no progress for as long as one try waits."""


class TryTimeout:
    """Counts the seconds that one try spends waiting; only waiting counts, not what the reader does in between.

    Until the first progress it waits `first_byte` seconds, after each piece of text `idle` seconds more, and after any other
    progress as long as for the first byte again: the model thinks, and most services show nothing of it. The reader decides
    what progress is: a comment in a stream is not. The deadline stands above all.
    """

    __slots__ = ("_idle", "_left", "_limit", "_longest", "deadline")

    def __init__(self, deadline: Deadline, *, first_byte: float, idle: float) -> None:
        self.deadline = deadline
        self._idle, self._longest = idle, max(first_byte, idle)
        self._limit = self._left = first_byte

    def progress(self, *, is_writing: bool = True) -> None:
        """Note that something useful has arrived; not `is_writing`, the model may think before it goes on."""
        self._limit = self._left = self._idle if is_writing else self._longest

    def shorten(self, seconds: float) -> None:
        """Wait at most `seconds` more from now on: everything that matters has arrived."""
        self._idle, self._longest = min(self._idle, seconds), min(self._longest, seconds)
        self._limit = self._left = min(self._left, seconds)

    async def wait(self, awaited: Awaitable[T], doing: str = "waiting for the model") -> T:
        """Return what `awaited` gives.

        Raises:
            Silence: nothing came for too long.
            DeadlineExceeded: the whole call took too long.
        """
        left = self.deadline.left()
        by_deadline = left is not None and left < self._left
        loop = asyncio.get_running_loop()
        started = loop.time()
        limit = asyncio.timeout(None)
        # A little more once the time is over: the loop may have been busy for so long, and the answer be there.
        most = min(self._left, self._left if left is None else left)
        timer = loop.call_later(most, lambda: limit.reschedule(loop.time() + (most and _BUSY_SECONDS)))
        try:
            async with limit:
                return await awaited
        except TimeoutError:
            if not limit.expired():
                raise
        finally:
            timer.cancel()
            self._left = max(0.0, self._left - (loop.time() - started))
        # Not inside the block above: the context of the error would hold the frames of what was waited for.
        if by_deadline:
            raise DeadlineExceeded(self.deadline.seconds, doing=doing)
        raise Silence(f"nothing came for {self._limit:g} s")
