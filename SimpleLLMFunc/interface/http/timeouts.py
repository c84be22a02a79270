"""How long one try may be silent, and how long the whole call may take."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable
from types import TracebackType
from typing import Self, TypeVar

from SimpleLLMFunc.errors import DeadlineExceeded
from SimpleLLMFunc.interface.spending import Deadline
from SimpleLLMFunc.runtime import Alarm, alarm_for

__all__ = ["Patience", "Silence"]

T = TypeVar("T")


class Silence(Exception):
    """The service made no progress for as long as one try waits; `.seconds` is how long that is."""

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds
        super().__init__(f"nothing came for {seconds:g} s")


class Patience:
    """Counts the seconds that one try spends waiting; only waiting counts, not what the reader does in between.

    Until the first progress it waits `first_byte` seconds, after each progress `idle` seconds more. What progress is
    the reader decides: a comment in a stream is none. The deadline stands above both.

    Each wait stands in a block of its own, ``with patience.waiting("reading the answer"): …``, which ends with

    Raises:
        Silence: nothing came for too long.
        DeadlineExceeded: the whole call took too long.

    Source: the protocol of `asyncio.timeout` (cancel, then uncancel), without an object for each wait.
    """

    __slots__ = (
        "_alarm",
        "_cancelling",
        "_doing",
        "_has_struck",
        "_idle",
        "_is_by_deadline",
        "_left",
        "_limit",
        "_loop",
        "_start",
        "_task",
        "_timer",
        "deadline",
    )

    def __init__(self, deadline: Deadline, *, first_byte: float, idle: float) -> None:
        self.deadline = deadline
        self._idle = idle
        self._limit = self._left = first_byte
        self._doing = ""
        self._alarm: Alarm | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._task: asyncio.Task[object] | None = None

    def progress(self) -> None:
        """Note that something useful has arrived."""
        self._limit = self._left = self._idle

    def shorten(self, seconds: float) -> None:
        """Wait at most `seconds` more from now on: everything that matters has arrived."""
        self._idle = min(self._idle, seconds)
        self._limit = self._left = min(self._left, seconds)

    async def wait(self, awaited: Awaitable[T], doing: str = "waiting for the model") -> T:
        """Return what `awaited` gives; raises what `waiting` does."""
        with self.waiting(doing):
            return await awaited

    def waiting(self, doing: str = "waiting for the model") -> Self:
        """Return the block for one wait, which is inside a task; only one at a time."""
        assert self._task is None, "one wait after the other"
        self._doing = doing
        return self

    def __enter__(self) -> None:
        seconds = self._left
        left = None if self.deadline.seconds is None else self.deadline.left()
        self._is_by_deadline = is_by_deadline = left is not None and left < seconds
        loop = self._loop = asyncio.get_running_loop()
        now = self._start = loop.time()
        task = self._task = asyncio.current_task(loop)
        assert task is not None, "a request is sent inside a task"
        self._cancelling = task.cancelling()
        self._has_struck = False
        if seconds == self._limit and not is_by_deadline:  # as long as everybody's
            alarm = self._alarm = alarm_for(seconds, loop)
            alarm.begin(self, loop, now)
        else:
            self._timer = loop.call_at(now + (left if is_by_deadline and left is not None else seconds), self.strike)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        task, self._task = self._task, None
        assert task is not None, "left as often as entered"
        if self._alarm is not None:
            self._alarm.end(self)
            self._alarm = None
        elif self._timer is not None:
            self._timer.cancel()
            self._timer = None
        self._left = max(0.0, self._left - (self._loop.time() - self._start))
        if not self._has_struck or task.uncancel() > self._cancelling:
            return
        if kind is not None and issubclass(kind, asyncio.CancelledError):
            if self._is_by_deadline:
                raise DeadlineExceeded(self.deadline.seconds, doing=self._doing) from error
            raise Silence(self._limit) from error

    def strike(self) -> None:
        """End the wait: it has taken too long."""
        if self._task is not None:
            self._has_struck = True
            self._task.cancel()
