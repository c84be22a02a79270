"""One circuit breaker per model: closed, open, or half-open with one probe.

Closed, requests leave as they come. The circuit opens when the service asks for a pause, or fails several times in a
row. Then nothing is sent until the pause is over: a call that wants to send has failed once more, without a request.
After the pause the circuit is half-open: one call sends a probe, and the others wait for it. If the probe fails, the
circuit opens for longer, and all that waited have failed once more. If it succeeds, the circuit is closed. So a service
that stays down costs a few requests, and not three for each call.
"""

from __future__ import annotations

import asyncio
import copy
import math
import random
import time
from collections.abc import Callable
from typing import Final

from SimpleLLMFunc.errors import ConnectionFailed, RateLimited, ServerUnavailable, SimpleLLMFuncError
from SimpleLLMFunc.interface.attempts.retry import backoff
from SimpleLLMFunc.interface.failed_attempt import AttemptFailed
from SimpleLLMFunc.interface.spending import Deadline
from SimpleLLMFunc.runtime import ForkSafeLock

_IN_A_ROW: Final = 5
"""Failures without a success between them that open the circuit, where the service asks for no pause itself."""

_GRACE: Final = 1.0
"""Seconds; a probe that has not been refused by then counts as a success. Answers take longer than refusals."""

_LOOK_AGAIN: Final = 0.1
"""Seconds between two looks of a call that waits for the probe."""


class Circuit:
    """Shared by all calls, tasks, event loops and threads that ask one model.

    Args:
        retry_delay: seconds of the first pause where the service asks for none; doubles each time the circuit opens again.
        clock: seconds, only growing; for tests.
        rng: gives a number in [0, 1).
    """

    def __init__(
        self,
        retry_delay: float,
        *,
        clock: Callable[[], float] = time.monotonic,
        rng: Callable[[], float] = random.random,
    ) -> None:
        self._retry_delay = retry_delay
        self._clock = clock
        self._rng = rng
        self._lock = ForkSafeLock()
        self._error: SimpleLLMFuncError | None = None  # why it is open
        self._until = -math.inf  # the end of the pause
        self._probe_since: float | None = None
        self._openings = 0  # all of them; a request carries the number it left with
        self._in_a_row = 0  # failures since the last success
        self._again = 0  # openings since the last success

    async def enter(self, deadline: Deadline, tries: int = 0) -> int:
        """Return when a request may be sent: a ticket, for exactly one of the three methods below.

        Args:
            deadline: of the call.
            tries: requests that the call has sent so far, for the error.

        Raises:
            AttemptFailed: the service is down; nothing was sent. `retry_after` says for how long the circuit is open.
            DeadlineExceeded: the probe took too long.
        """
        ticket = self._openings
        while True:
            with self._lock:
                now = self._clock()
                if self._error is None:
                    return self._openings
                if now < self._until or ticket != self._openings:  # open, or opened again by the probe
                    raise AttemptFailed(self._refusal(now, tries), retry_after=max(0.0, self._until - now))
                if self._probe_since is None:
                    self._probe_since = now
                    return self._openings
                if now >= self._probe_since + _GRACE:
                    self._error = None
                    return self._openings
            deadline.check("waiting for the service to take requests again")
            left = deadline.left()
            await asyncio.sleep(_LOOK_AGAIN if left is None else min(_LOOK_AGAIN, left))

    def passed(self, ticket: int) -> None:
        """Note that the service took the request."""
        with self._lock:
            self._in_a_row = 0
            if ticket == self._openings:
                self._again = 0
                self._error = None

    def failed(self, ticket: int, failed: AttemptFailed) -> None:
        """Note that the service refused the request, or could not be reached.

        While the circuit is open, `failed.retry_after` becomes at least the rest of its pause.
        """
        error = failed.error
        if failed.again == "never" or not isinstance(error, (ConnectionFailed, RateLimited, ServerUnavailable)):
            # A service that finds fault with the request is there.
            if getattr(error, "status", None) is None or isinstance(error, RateLimited):
                self.forget(ticket)
            else:
                self.passed(ticket)
            return
        with self._lock:
            now, pause = self._clock(), failed.retry_after
            if ticket == self._openings:
                self._in_a_row += 1
                if self._error is not None or pause is not None or self._in_a_row >= _IN_A_ROW:
                    self._open(now, error, pause)
            elif self._error is not None and pause is not None:
                # Sent before the circuit opened: no news, unless the pause is to be longer.
                self._until = max(self._until, now + pause)
            if self._error is not None:
                failed.retry_after = max(pause or 0.0, self._until - now)

    def forget(self, ticket: int) -> None:
        """Note that the outcome of the request will never be known; does nothing where it is."""
        with self._lock:
            if ticket == self._openings:
                self._probe_since = None

    def _open(self, now: float, error: SimpleLLMFuncError, pause: float | None) -> None:
        self._openings += 1
        self._again += 1
        # As it is now: the call around it will write its own facts into the error.
        self._error = copy.copy(error)
        self._until = now + (backoff(self._again, self._retry_delay, self._rng) if pause is None else pause)
        self._probe_since = None

    def _refusal(self, now: float, tries: int) -> SimpleLLMFuncError:
        """Return the error that opened the circuit, for another call."""
        error = self._error
        assert error is not None, "the circuit is open"
        if isinstance(error, RateLimited):
            left = round(max(0.0, self._until - now), 3)
            return RateLimited(error.model, retry_after=left, status=error.status, body=error.body, tries=tries)
        refusal = copy.copy(error)
        refusal.tries = tries
        return refusal
