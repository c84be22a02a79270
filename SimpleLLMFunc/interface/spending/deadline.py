"""One clock for a whole call: queueing, tries, re-asks and tools share it."""

from __future__ import annotations

import asyncio
import math
import time
from collections.abc import Awaitable, Iterator
from contextlib import contextmanager
from typing import TypeVar

from SimpleLLMFunc.errors import DeadlineExceeded, UsageError
from SimpleLLMFunc.utils import ScopedVar, is_number

T = TypeVar("T")


class Deadline:
    """A moment on the monotonic clock after which a call must not go on.

    Attributes:
        seconds: what the call was given; None when it may take as long as it wants.
        moment: on the monotonic clock; infinite without a limit.
    """

    __slots__ = ("moment", "seconds")

    def __init__(self, seconds: float | None, moment: float) -> None:
        self.seconds = seconds
        self.moment = moment

    @classmethod
    def after(cls, seconds: float | None) -> Deadline:
        """Return the deadline that passes in `seconds`; None never passes.

        Raises:
            UsageError: `seconds` is not a number.
        """
        if seconds is None or seconds == math.inf:
            return _NEVER
        if not is_number(seconds) or math.isnan(seconds):
            raise UsageError(f"a deadline is a number of seconds or None, not {seconds!r}")
        return cls(seconds, time.monotonic() + seconds)

    def left(self) -> float | None:
        """Return the seconds that are left, >= 0; None when there is no limit."""
        return None if self.seconds is None else max(0.0, self.moment - time.monotonic())

    @property
    def is_over(self) -> bool:
        """Whether the moment has passed."""
        return time.monotonic() >= self.moment

    def check(self, doing: str = "") -> None:
        """Raise if the moment has passed; `doing` says what was going on, for the error's text.

        Raises:
            DeadlineExceeded: it has.
        """
        if self.is_over:
            raise DeadlineExceeded(self.seconds, doing=doing)

    async def wait(self, work: Awaitable[T], doing: str = "") -> T:
        """Return what `work` gives; it is cancelled at the moment.

        Raises:
            DeadlineExceeded: it took too long.
        """
        limit = asyncio.timeout(self.left())
        try:
            async with limit:
                return await work
        except TimeoutError as error:
            if not limit.expired():
                raise
            raise DeadlineExceeded(self.seconds, doing=doing) from error

    def retold(self, error: DeadlineExceeded) -> DeadlineExceeded:
        """Return `error` as one of this deadline, where it is over: the work that raised it was given what was left."""
        if not self.is_over:
            return error  # the work had a stricter deadline
        told = DeadlineExceeded(self.seconds, partial=error.partial, doing="waiting for the model")
        told.tries = error.tries
        return told

    def stricter(self, other: Deadline) -> Deadline:
        """Return whichever of the two passes first."""
        return self if self.moment <= other.moment else other


_NEVER = Deadline(None, math.inf)
_CURRENT: ScopedVar[Deadline] = ScopedVar("SimpleLLMFunc.deadline", _NEVER)


def current_deadline() -> Deadline:
    """Return the deadline of the scope that the caller runs in; outside of any, one that never passes."""
    return _CURRENT.get()


@contextmanager
def deadline_scope(seconds: float | None) -> Iterator[Deadline]:
    """Let everything inside share one deadline: the stricter of the surrounding one and `seconds` from now."""
    deadline = Deadline.after(seconds).stricter(_CURRENT.get())
    with _CURRENT.within(deadline):
        yield deadline
