"""TokenBucket: at most so many per second, in the order in which they asked."""

from __future__ import annotations

import asyncio
import math
import time
from collections import deque
from collections.abc import Callable
from typing import Any

from SimpleLLMFunc.errors import ConfigError
from SimpleLLMFunc.runtime import ForkSafeLock, renew_in_child
from SimpleLLMFunc.utils import Uncopied

# Rounding may leave a level this much short of a count that time has paid for; waiting for it would spin.
_ROUNDING = 1e-9


class _Waiter:
    """A place in the queue; it can be woken from any thread.

    Attributes:
        count: tokens wanted.
        ready_at: when the bucket will have enough for it and all before it, if nothing changes.
        granted: the tokens are its own.
    """

    __slots__ = ("count", "granted", "loop", "ready_at", "woken")

    def __init__(self, count: float, ready_at: float) -> None:
        self.count = count
        self.ready_at = ready_at
        self.granted = False
        self.loop = asyncio.get_running_loop()
        self.woken = self.loop.create_future()

    def wake(self) -> bool:
        """Have the waiter look again; False if its loop is closed, so that no task waits any more."""
        try:
            self.loop.call_soon_threadsafe(self._wake)
        except RuntimeError:
            return False
        return True

    def _wake(self) -> None:
        if not self.woken.done():
            self.woken.set_result(None)


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
        self.capacity = _positive("capacity", capacity)
        self.refill_rate = _positive("refill_rate", refill_rate)
        self._clock = clock
        self._lock = ForkSafeLock()
        self._level = self.capacity
        self._since = clock()
        self._queue: deque[_Waiter] = deque()
        self._owed = 0.0  # what all in the queue want together
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
        end = None if timeout is None else self._clock() + max(0.0, timeout)
        with self._lock:
            self._refill()
            if not self._queue and self._level >= count - _ROUNDING:
                self._level -= count
                return True
            if timeout is not None and timeout <= 0:
                return False
            self._owed += count
            waiter = _Waiter(count, self._since + (self._owed - self._level) / self.refill_rate)
            self._queue.append(waiter)
        try:
            await self._wait(waiter, end)
        except BaseException:
            self._leave(waiter, refund=True)
            raise
        return self._leave(waiter, refund=False)

    def adjust(self, count: float) -> None:
        """Correct an estimate afterwards: above zero gives tokens back, below zero takes more, also more than there are."""
        with self._lock:
            self._refill()
            self._level = min(self.capacity, self._level + count)
            self._grant()

    def limit_to(self, level: float) -> None:
        """Hold at most `level` tokens now: the service said that no more are left."""
        with self._lock:
            self._refill()
            self._level = min(self._level, level)

    def renew_in_child(self) -> None:
        """Forget who waits: they are the parent's."""
        self._queue.clear()
        self._owed = 0.0

    def __repr__(self) -> str:
        return f"{type(self).__name__}(capacity={self.capacity:g}, refill_rate={self.refill_rate:g})"

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.capacity, self.refill_rate)

    async def _wait(self, waiter: _Waiter, end: float | None) -> None:
        """Return when `waiter` has its tokens, or `end` has come."""
        while True:
            with self._lock:
                self._grant()
                if waiter.granted:
                    return
                pause = self._pause(waiter)
            if end is not None:
                left = end - self._clock()
                if left <= 0:
                    return
                pause = min(pause, left)
            # The first waiter's timer is exact. The timers of the others are a safety net, should the first one's loop be
            # blocked or gone: the first waiter that wakes serves all that are due.
            await asyncio.wait((waiter.woken,), timeout=pause)
            if waiter.woken.done():
                waiter.woken = waiter.loop.create_future()

    def _leave(self, waiter: _Waiter, *, refund: bool) -> bool:
        """Take `waiter` out of the queue; return whether it goes with its tokens."""
        with self._lock:
            if not waiter.granted:
                if waiter in self._queue:
                    self._queue.remove(waiter)
                    self._owed -= waiter.count
                    self._grant(moved=True)
                return False
            if refund:
                self._level = min(self.capacity, self._level + waiter.count)
                self._grant()
            return not refund

    def _grant(self, *, moved: bool = False) -> None:
        """Give tokens to the waiters, first come first served; `moved`: the first waiter is a new one."""
        self._refill()
        while self._queue:
            head = self._queue[0]
            fits = self._level >= head.count - _ROUNDING
            gone = head.loop.is_closed()
            if not (fits or gone or moved):
                return
            if not (gone or head.wake()):
                gone = True
            if not (fits or gone):
                return  # woken to set its timer: it is the one in front now
            moved = True
            self._queue.popleft()
            self._owed -= head.count
            if not gone:
                self._level -= head.count
                head.granted = True

    def _pause(self, waiter: _Waiter) -> float:
        """Return the seconds until it can be `waiter`'s turn; above zero, for `_grant` has just found it is not."""
        if waiter is not self._queue[0] and waiter.ready_at > self._since:
            return waiter.ready_at - self._since
        wanted = 0.0
        for before in self._queue:
            wanted += before.count
            if before is waiter:
                break
        return (wanted - self._level) / self.refill_rate

    def _refill(self) -> None:
        now = self._clock()
        self._level = min(self.capacity, self._level + max(0.0, now - self._since) * self.refill_rate)
        self._since = now
        if not self._queue:
            self._owed = 0.0  # no rounding stays behind

    def _check(self, count: float) -> None:
        if not count > 0:
            raise ConfigError(f"the count must be above zero, not {count!r}.")
        if count > self.capacity:
            raise ConfigError(
                f"{count:g} tokens will never fit into a bucket of {self.capacity:g}. Ask for less, or raise the capacity."
            )


def _positive(name: str, value: object) -> float:
    if not isinstance(value, int | float) or isinstance(value, bool) or not 0 < value < math.inf:
        raise ConfigError(f"{name} must be a number above zero, not {value!r}.")
    return float(value)
