"""The one way to try again: which failure is worth it, after how many seconds, and the waiting."""

from __future__ import annotations

import math
import random
import time
from asyncio import sleep
from collections.abc import Awaitable, Callable
from itertools import count
from typing import TypeVar

from SimpleLLMFunc.interface.failed_attempt import AttemptFailed
from SimpleLLMFunc.interface.spending import Deadline
from SimpleLLMFunc.logger import push_warning

T = TypeVar("T")

LONGEST_BACKOFF = 30.0
"""Seconds; the pause of our own choice does not grow beyond it."""

JITTER = 0.2
"""A wait that the service asked for is drawn out by at most this share, so that callers do not come back in step."""


async def retried(
    send: Callable[[int], Awaitable[T]],
    *,
    clock: Deadline,
    max_retries: int,
    retry_delay: float = 0.5,
    longest_wait: float = 600.0,
) -> T:
    """Return what `send` gives, tried as often as `decide` allows; it is told the number of the try, from 1.

    Raises:
        SimpleLLMFuncError: that of the last try.
    """
    for tries in count(1):
        try:
            return await send(tries)
        except AttemptFailed as error:
            failed = error.with_traceback(None)  # else it and this frame would hold each other
        pause = decide(
            failed, tries, max_retries, left=clock.left(), retry_delay=retry_delay, longest_wait=longest_wait
        )
        await pause_before_retry(failed, pause, tries=tries)
    raise AssertionError("counting does not end")


async def pause_before_retry(
    failed: AttemptFailed, pause: float | None, *, tries: int | None, trace_id: str = ""
) -> None:
    """Wait for the seconds that `decide` gave; `tries` is None where the service was known to be down, and not asked.

    Raises:
        SimpleLLMFuncError: that of the try, where there shall be no further one.
    """
    if pause is None:
        raise failed.error from failed.__cause__
    what = "no try was made while the service is down" if tries is None else f"try {tries} failed"
    push_warning(f"{trace_id} {what}, the next one in {pause:.2f} s: {failed.error}".strip())
    await sleep(pause)


def decide(
    failed: AttemptFailed,
    attempt: int,
    max_retries: int,
    *,
    left: float | None,
    retry_delay: float = 0.5,
    longest_wait: float = 600.0,
    earlier: int = 0,
    rng: Callable[[], float] = random.random,
) -> float | None:
    """Return the seconds to wait before the next try, None when there shall be none.

    Args:
        failed: the try that failed.
        attempt: how many tries there were, this one included.
        max_retries: how many further tries the first one may have.
        left: seconds until the deadline, None without one.
        retry_delay: seconds of the first pause of our own choice; each further one doubles.
        longest_wait: seconds that are waited at most because the service says so, where no deadline sets the limit.
        earlier: how many earlier tries of this call failed in the same way.
        rng: gives a number in [0, 1); for tests.
    """
    if failed.again == "never" or attempt > max_retries or (failed.again == "once" and earlier):
        return None
    wanted = failed.retry_after
    if wanted is None:
        pause = backoff(attempt, retry_delay, rng)
        return None if left is not None and pause >= left else pause
    # The wait is longer than the call may take: fail now.
    if wanted >= (longest_wait if left is None else left):
        return None
    return min(wanted * (1 + JITTER * rng()), math.inf if left is None else left)


def backoff(attempt: int, first: float, rng: Callable[[], float]) -> float:
    """Return the pause after try number `attempt`: doubling from `first`, give or take half, at most `LONGEST_BACKOFF`."""
    return min(LONGEST_BACKOFF, math.ldexp(first, min(attempt - 1, 30)) * (0.5 + rng()))


def now() -> float:
    """Return the seconds since the epoch, which dates in headers are compared with."""
    return time.time()
