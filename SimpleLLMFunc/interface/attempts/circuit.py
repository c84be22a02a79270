"""One circuit per model: when its service is down or refuses, the calls wait together instead of each trying for itself.

While all is well nobody notices it. It opens when the service asks for a pause, or after some failures in a row. Then
nothing is sent until the pause is over, and after that one request, the probe. When the probe fails, that counts as a
failed try for everybody who waits, and the next pause is longer; so a service that stays down costs a few requests
and not three for each call. When it succeeds the others follow: few at first, twice as many with each round of
answers, and where the service took some and refused the rest, no faster than what it took.
"""

from __future__ import annotations

import asyncio
import copy
import math
import random
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass

from SimpleLLMFunc.errors import ConnectionFailed, RateLimited, ServerUnavailable, SimpleLLMFuncError
from SimpleLLMFunc.interface.attempts.learned_rate import Pace
from SimpleLLMFunc.interface.attempts.retry import backoff
from SimpleLLMFunc.interface.failed_attempt import AttemptFailed
from SimpleLLMFunc.interface.spending import Deadline
from SimpleLLMFunc.runtime import ForkSafeLock, renew_in_child

__all__ = ["Circuit", "Ticket"]

_IN_A_ROW = 5
"""Failures without a success between them that open the circuit, where the service asks for no pause itself."""

_GRACE = 1.0
"""Seconds; a request that has not been refused by then has probably been taken. Answers take longer than refusals."""

_LOOK_AGAIN = 5.0
"""Seconds; how often a waiter that is not the first makes sure that it was not forgotten with a loop that died."""


@dataclass(slots=True, eq=False)
class Ticket:
    """Leave to send one request.

    Attributes:
        epoch: of the circuit; each opening begins a new one.
        shared: failed tries of others that count for this call.
        is_pending: it was given while the circuit was not closed, and nothing was heard of it.
    """

    epoch: int
    started: float = 0.0
    shared: int = 0
    is_pending: bool = False


class _Waiter:
    """A call that waits; wakes its own event loop, from whatever thread.

    Attributes:
        spare: failed probes after which it gives up.
        since: failed probes in a row when it came; 0 again after a success.
        ticket: its leave, when it has it.
        is_sent_home: it has given up.
    """

    __slots__ = ("is_sent_home", "loop", "shared", "since", "spare", "ticket", "woken")

    def __init__(self, spare: int, since: int, shared: int) -> None:
        self.spare = spare
        self.since = since
        self.shared = shared
        self.ticket: Ticket | None = None
        self.is_sent_home = False
        self.loop = asyncio.get_running_loop()
        self.woken = self.loop.create_future()

    def wake(self) -> None:
        if not self.loop.is_closed():
            self.loop.call_soon_threadsafe(self._wake)

    def _wake(self) -> None:
        if not self.woken.done():
            self.woken.set_result(None)


class Circuit:
    """Shared by all calls, tasks, event loops and threads that ask one model.

    Args:
        retry_delay: seconds of the first pause where the service asks for none; doubles with each failed probe.
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
        self._is_closed = True
        self._epoch = 0
        self._free = Ticket(0)  # of all who pass by in this epoch
        self._row = 0  # failures since the last success
        self._rounds = 0  # failed probes since the last success
        self._until = -math.inf
        self._window = 1  # requests that may be under way unheard of
        self._unheard = 0
        self._pending: deque[Ticket] = deque()
        self._pace = Pace()
        self._queue: deque[_Waiter] = deque()
        self._error: SimpleLLMFuncError | None = None
        renew_in_child(self)

    @property
    def is_closed(self) -> bool:
        """Whether requests leave as they come."""
        return self._is_closed

    # --- one call ----------------------------------------------------------------------------------------

    def pass_by(self) -> Ticket | None:
        """Return the leave to send a request at once, None where it has to be waited for: `admit` does that."""
        free = self._free  # read first: a ticket of an epoch that is over is no news to anybody
        return free if self._is_closed else None

    async def admit(self, *, spare: int, seen: int, clock: Deadline, longest_wait: float) -> Ticket:
        """Return when a request may be sent; the ticket then goes to exactly one of the three methods below.

        Args:
            spare: failed tries, this call's own or shared, that it can still bear; at least 1.
            seen: the epoch that began with a failure of this call's own, -1 where none did.
            clock: when the call has to be over.
            longest_wait: seconds that are waited at most because the service says so, where there is no deadline.

        Raises:
            SimpleLLMFuncError: what the service did to the others: no try is left, or no time to wait for one.
            DeadlineExceeded: the turn did not come in time.
        """
        with self._lock:
            now = self._clock()
            if self._is_closed:
                return self._free
            shared = 0
            if now < self._until:
                # What opened the circuit would have happened to this call too.
                shared = 0 if seen == self._epoch else 1
                left = clock.left()
                pause = self._until - now
                if shared >= spare or pause >= (longest_wait if left is None else left):
                    raise self._refusal(now)
            waiter = _Waiter(spare - shared, self._rounds, shared)
            self._queue.append(waiter)
            self._grant(now)
        try:
            await self._wait(waiter, clock)
        except BaseException:
            self._leave(waiter)
            raise
        if waiter.ticket is None:
            with self._lock:
                raise self._refusal(self._clock())
        return waiter.ticket

    def passed(self, ticket: Ticket) -> None:
        """Note that the service took the request."""
        with self._lock:
            self._row = 0
            now = self._clock()
            self._pace.took(now)
            if self._is_closed or ticket.epoch != self._epoch:
                return
            self._forgive()
            self._heard(ticket, grows=True)
            self._grant(now)
            if not self._queue and not self._pace.is_set(now):
                self._is_closed = True
                self._pace.forget()
                self._forget_pending()

    def failed(self, ticket: Ticket, failed: AttemptFailed) -> int:
        """Note that the service refused the request, or was not there; return the epoch that the call has then seen."""
        error = failed.error
        if failed.again == "never" or not isinstance(error, (ConnectionFailed, RateLimited, ServerUnavailable)):
            # Whoever finds fault with the request is there.
            if getattr(error, "status", None) is None or isinstance(error, RateLimited):
                self.forget(ticket)
            else:
                self.passed(ticket)
            return self._epoch
        with self._lock:
            now = self._clock()
            if ticket.epoch != self._epoch:
                # Sent before the circuit opened: no news, unless the pause is to be longer.
                if failed.retry_after is not None and not self._is_closed:
                    self._until = max(self._until, now + failed.retry_after)
                return self._epoch
            self._heard(ticket, grows=False)
            self._row += 1
            if self._is_closed and failed.retry_after is None and self._row < _IN_A_ROW:
                return self._epoch + 1  # if others open it meanwhile, this failure was one of the reasons
            self._open(now, error, failed.retry_after)
            return self._epoch

    def forget(self, ticket: Ticket) -> None:
        """Note that nothing will be heard of the request; does nothing where something was."""
        if ticket.is_pending:
            with self._lock:
                self._heard(ticket, grows=False)
                self._grant(self._clock())

    # --- inside, with the lock ---------------------------------------------------------------------------

    def _open(self, now: float, error: SimpleLLMFuncError, retry_after: float | None) -> None:
        if self._pace.slow_down(now, is_loaded=not self._is_closed):
            self._forgive()
        elif not self._is_closed:
            self._rounds += 1
        self._is_closed = False
        self._epoch += 1
        self._free = Ticket(self._epoch)
        self._window = 1
        self._forget_pending()
        # As it is now: the call around it will write its own facts into the error.
        self._error = copy.copy(error)
        pause = backoff(self._rounds + 1, self._retry_delay, self._rng) if retry_after is None else retry_after
        self._until = now + pause
        stay: deque[_Waiter] = deque()
        for waiter in self._queue:
            if self._rounds - waiter.since >= waiter.spare:
                waiter.is_sent_home = True
                waiter.wake()
            else:
                stay.append(waiter)
        self._queue = stay
        self._wake_first()

    def _forget_pending(self) -> None:
        for ticket in self._pending:
            ticket.is_pending = False
        self._pending.clear()
        self._unheard = 0

    def _forgive(self) -> None:
        """Let the failed probes so far count no more: the service has taken something."""
        if self._rounds:
            self._rounds = 0
            for waiter in self._queue:
                waiter.since = 0

    def _heard(self, ticket: Ticket, *, grows: bool) -> None:
        if ticket.is_pending:
            ticket.is_pending = False
            self._unheard -= 1
            if grows:
                self._window += 1

    def _grant(self, now: float) -> None:
        """Give all in front their tickets as far as that goes."""
        granted = False
        while self._queue and self._free_at(now) <= now:
            waiter = self._queue.popleft()
            if waiter.loop.is_closed():
                continue
            ticket = waiter.ticket = Ticket(self._epoch, now, waiter.shared + self._rounds - waiter.since, True)
            self._unheard += 1
            self._pending.append(ticket)
            self._pace.sent(now)
            waiter.wake()
            granted = True
        if granted:
            self._wake_first()

    def _free_at(self, now: float) -> float:
        """Return when the next one may go."""
        moment = max(self._until, self._pace.next_at(now))
        while self._pending and (not self._pending[0].is_pending or self._pending[0].started + _GRACE <= now):
            self._heard(self._pending.popleft(), grows=True)
        # Where the service is known to take so many, the window has done its work after the probe.
        if self._unheard < self._window or (self._window > 1 and self._pace.is_set(now)):
            return moment
        return max(moment, self._pending[0].started + _GRACE)

    def _wake_first(self) -> None:
        # It sets its timer anew: it is the first one now, or has another moment to wait for.
        if self._queue:
            self._queue[0].wake()

    def _refusal(self, now: float) -> SimpleLLMFuncError:
        """Return the error of somebody else's try, as this call gets it."""
        assert self._error is not None, "only a failure opens the circuit"
        error = self._error
        if isinstance(error, RateLimited):
            return RateLimited(
                error.model,
                retry_after=round(max(0.0, self._until - now), 3),
                status=error.status,
                body=error.body,
            )
        refusal = copy.copy(error)
        refusal.tries = 0
        return refusal

    # --- waiting -----------------------------------------------------------------------------------------

    async def _wait(self, waiter: _Waiter, clock: Deadline) -> None:
        while True:
            with self._lock:
                now = self._clock()
                self._grant(now)
                if waiter.ticket is not None or waiter.is_sent_home:
                    return
                is_first = self._queue[0] is waiter
                pause = max(0.0, self._free_at(now) - now) if is_first else _LOOK_AGAIN
            left = clock.left()
            if left is not None:
                clock.check("waiting for the service to take requests again")
                pause = min(pause, left)
            await asyncio.wait((waiter.woken,), timeout=min(pause, _LOOK_AGAIN))
            if waiter.woken.done():
                waiter.woken = waiter.loop.create_future()

    def _leave(self, waiter: _Waiter) -> None:
        with self._lock:
            if waiter.ticket is not None:
                self._heard(waiter.ticket, grows=False)
            elif waiter in self._queue:
                self._queue.remove(waiter)
            self._grant(self._clock())
            self._wake_first()

    def renew_in_child(self) -> None:
        """Forget who waits and what is under way: they are the parent's."""
        self._queue.clear()
        self._forget_pending()
