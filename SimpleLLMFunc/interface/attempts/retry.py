"""Decides which failures are tried again, and after how many seconds; pure."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from datetime import UTC
from email.utils import parsedate_to_datetime
from typing import Literal, TypeAlias

from SimpleLLMFunc.errors import SimpleLLMFuncError

__all__ = ["Again", "TryFailed", "backoff", "decide", "header_number", "retry_after_seconds"]

Again: TypeAlias = Literal["never", "once", "always"]
"""Whether a failure is worth a further try: never, one only, or as many as the caller allows."""

LONGEST_BACKOFF = 30.0
"""Seconds; the pause of our own choice does not grow beyond it."""

JITTER = 0.2
"""A wait that the service asked for is drawn out by at most this share, so that callers do not come back in step."""


class TryFailed(Exception):
    """One try failed; what the caller gets if it was the last one is `error`.

    Attributes:
        again: whether another try may help.
        retry_after: seconds that the service asked to wait, None where it did not.
    """

    def __init__(self, error: SimpleLLMFuncError, *, again: Again = "always", retry_after: float | None = None) -> None:
        self.error = error
        self.again = again
        self.retry_after = retry_after
        super().__init__(str(error))

    def given_up(self) -> SimpleLLMFuncError:
        """Return the error for the caller, and let go of it.

        Raised while this one is handled it has this one as its context. If the two held each other, the request and
        the reply in the frames of both would stay until the garbage collector comes by.
        """
        error = self.error
        del self.error
        return error


def decide(
    failed: TryFailed,
    *,
    attempt: int,
    max_retries: int,
    left: float | None,
    rng: Callable[[], float],
    retry_delay: float = 0.5,
    longest_wait: float = 600.0,
    earlier: int = 0,
) -> float | None:
    """Return the seconds to wait before the next try, None when there shall be none.

    Args:
        failed: the try that failed.
        attempt: how many tries there were, this one included.
        max_retries: how many further tries the first one may have.
        left: seconds until the deadline, None without one.
        rng: gives a number in [0, 1).
        retry_delay: seconds of the first pause of our own choice; each further one doubles.
        longest_wait: seconds that are waited at most because the service says so, where no deadline sets the limit.
        earlier: how many earlier tries of this call failed in the same way.
    """
    if failed.again == "never" or attempt > max_retries or (failed.again == "once" and earlier):
        return None
    wanted = failed.retry_after
    if wanted is None:
        pause = backoff(attempt, retry_delay, rng)
        return None if left is not None and pause >= left else pause
    # Waiting for a moment that the call will not live to see helps nobody: say so at once.
    if wanted >= (longest_wait if left is None else left):
        return None
    pause = wanted * (1 + JITTER * rng())
    return pause if left is None else min(pause, left)


def backoff(attempt: int, first: float, rng: Callable[[], float]) -> float:
    """Return the pause after try number `attempt`: doubling from `first`, give or take half, at most `LONGEST_BACKOFF`."""
    return min(LONGEST_BACKOFF, math.ldexp(first, min(attempt - 1, 30)) * (0.5 + rng()))


def retry_after_seconds(headers: Mapping[str, str], now: float) -> float | None:
    """Return how long the service wants us to wait, None where it did not say, or nothing usable.

    Args:
        headers: of the reply, found by lower-case name.
        now: seconds since the epoch, for a date.

    Source: RFC 9110, section 10.2.3; `retry-after-ms` is an extension of OpenAI's.
    """
    milliseconds = header_number(headers.get("retry-after-ms"))
    if milliseconds is not None:
        return milliseconds / 1000
    value = headers.get("retry-after")
    if value is None:
        return None
    seconds = header_number(value)
    if seconds is not None:
        return seconds
    try:
        moment = parsedate_to_datetime(value)
        if moment.tzinfo is None:
            moment = moment.replace(tzinfo=UTC)
        seconds = moment.timestamp() - now
    except (TypeError, ValueError, OverflowError):
        return None
    return seconds if seconds > 0 else None


def header_number(text: str | None) -> float | None:
    """Return the number that the value of a header is; None where there is none, or none from 0 up."""
    try:
        value = float(text) if text is not None else None
    except ValueError:
        return None
    return value if value is not None and math.isfinite(value) and value >= 0 else None
