"""TokenBucket: at most so many per second, in the order in which they asked."""

from __future__ import annotations

import asyncio
import math
import time
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

from SimpleLLMFunc.errors import ConfigError
from SimpleLLMFunc.interface.wires import number
from SimpleLLMFunc.runtime import ForkSafeLock, renew_in_child
from SimpleLLMFunc.utils import Uncopied

# Rounding may leave a level this much short of a count that time has paid for; waiting for it would spin.
_ROUNDING = 1e-9

_LOOK_AGAIN = 1.0
"""Seconds between two looks of those that are not the first in the queue."""


@dataclass(slots=True, eq=False)
class _Waiter:
    """A place in the queue.

    Attributes:
        count: tokens wanted.
        granted: it has them.
        woken: that it shall look again; set from any thread by `wake`.
    """

    count: float
    granted: bool = False
    loop: asyncio.AbstractEventLoop = field(default_factory=asyncio.get_running_loop)
    woken: asyncio.Event = field(default_factory=asyncio.Event)

    def wake(self) -> bool:
        """Have the waiter look again; False if its loop is closed, so that no task waits any more."""
        try:
            self.loop.call_soon_threadsafe(self.woken.set)
        except RuntimeError:
            return False
        return True


class TokenBucket(Uncopied):
    """A bucket of tokens that fills steadily; every request takes some, or waits for its turn.

    Shared by all tasks, event loops and threads of the process. First come, first served: a small request never
    overtakes a large one that waits. A bucket is one thing: copying gives the same bucket, a pickled one starts full.

    Args:
        capacity: tokens it can hold, and holds at first.
        refill_rate: tokens per second.
        clock: seconds, only growing; for tests.

    Raises:
        ConfigError: a number that is not above zero (a ValueError).

    Source: token bucket metering as in RFC 2697, section 3.
    """

    def __init__(self, capacity: float, refill_rate: float, *, clock: Callable[[], float] = time.monotonic) -> None:
        self.capacity = number("capacity", capacity, above=0)
        self.refill_rate = number("refill_rate", refill_rate, above=0)
        self._clock = clock
        self._lock = ForkSafeLock()
        self._level = self.capacity
        self._since = clock()
        self._queue: deque[_Waiter] = deque()
        renew_in_child(self)

    @property
    def level(self) -> float:
        """Tokens in the bucket now; below zero after `adjust` took more than it held."""
        with self._lock:
            self._refill()
            return self._level

    async def acquire(self, count: float = 1, timeout: float | None = None) -> bool:
        """Take `count` tokens, waiting for them as long as needed; return False if `timeout` seconds were not enough.

        A caller that is cancelled while it waits has taken nothing.

        Raises:
            ConfigError: `count` is not above zero, or more than the bucket can ever hold (a ValueError).
        """
        self._check(count)
        end = math.inf if timeout is None else self._clock() + max(0.0, timeout)
        waiter = _Waiter(count)
        with self._lock:
            self._queue.append(waiter)
        try:
            while True:
                with self._lock:
                    self._serve()
                    left = end - self._clock()
                    if waiter.granted or left <= 0:
                        return waiter.granted
                    # The first waiter's time is exact, and it serves all that are due. The others look again now and
                    # then: the loop of the first one may be blocked.
                    due = (count - self._level) / self.refill_rate
                    pause = min(left, due if waiter is self._queue[0] else max(due, _LOOK_AGAIN))
                    waiter.woken.clear()
                with suppress(TimeoutError):
                    async with asyncio.timeout(pause):
                        await waiter.woken.wait()
        except BaseException:
            if waiter.granted:
                self.adjust(count)
            raise
        finally:
            self._leave(waiter)

    def adjust(self, count: float) -> None:
        """Correct an estimate afterwards: above zero gives tokens back, below zero takes more, also more than there are."""
        with self._lock:
            self._refill()
            self._level = min(self.capacity, self._level + count)
            self._serve()

    def limit_to(self, level: float) -> None:
        """Hold at most `level` tokens now: the service said that no more are left."""
        with self._lock:
            self._refill()
            self._level = min(self._level, level)

    def renew_in_child(self) -> None:
        """Forget who waits: they are the parent's."""
        self._queue.clear()

    def __repr__(self) -> str:
        return f"{type(self).__name__}(capacity={self.capacity:g}, refill_rate={self.refill_rate:g})"

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.capacity, self.refill_rate)

    def _leave(self, waiter: _Waiter) -> None:
        """Take a waiter that has given up out of the queue."""
        with self._lock:
            if not waiter.granted and waiter in self._queue:
                self._queue.remove(waiter)
                self._serve()
                if self._queue:
                    self._queue[0].wake()  # to set its timer: it is the first one now

    def _serve(self) -> None:
        """Give tokens to the waiters that are due, first come first served."""
        self._refill()
        while self._queue:
            first = self._queue[0]
            if self._level < first.count - _ROUNDING and not first.loop.is_closed():
                return
            self._queue.popleft()
            if first.wake():
                self._level -= first.count
                first.granted = True
            if self._queue:
                self._queue[0].wake()  # to set its timer

    def _refill(self) -> None:
        now = self._clock()
        self._level = min(self.capacity, self._level + max(0.0, now - self._since) * self.refill_rate)
        self._since = now

    def _check(self, count: float) -> None:
        if number("count", count, above=0) > self.capacity:
            raise ConfigError(
                f"{count:g} tokens will never fit into a bucket of {self.capacity:g}. Ask for less, or raise the capacity."
            )
