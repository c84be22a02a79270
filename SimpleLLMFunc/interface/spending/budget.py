"""`budget(...)`: a limit on money, tokens, requests or time, kept before it is broken.

Scopes nest, and hold for everything that the library starts inside them: functions, tools, worker threads, the bridge
of sync code. They are carried by a context variable. A scope reserves what a request will probably take
before it leaves, and settles with what it really took.
"""

from __future__ import annotations

import time
from collections.abc import Generator, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from typing import Self

from SimpleLLMFunc.errors import BudgetExceeded, DeadlineExceeded, UsageError
from SimpleLLMFunc.interface.spending.deadline import Deadline, deadline_scope
from SimpleLLMFunc.logger import border
from SimpleLLMFunc.runtime import ForkSafeLock, block
from SimpleLLMFunc.type import Usage
from SimpleLLMFunc.utils import Block, ScopedVar, is_number


class Spent:
    """What a scope has spent so far; may be read while it is going on, and after.

    Attributes:
        usd: money, as far as prices are known.
        tokens: read and written.
        requests: HTTP requests, failed ones too.
    """

    def __init__(self, usd: float | None, tokens: float | None, requests: float | None, seconds: float | None) -> None:
        self.usd = 0.0
        self.tokens = 0
        self.requests = 0
        self._limits = {"usd": usd, "tokens": tokens, "requests": requests, "seconds": seconds}
        self._reserved = 0
        self._reserved_usd = 0.0
        self._started = time.monotonic()
        self._ended: float | None = None
        self._lock = ForkSafeLock()

    @property
    def seconds(self) -> float:
        """Since the scope began; stands still when it has ended."""
        return (self._ended or time.monotonic()) - self._started

    def end(self) -> None:
        """Stop the clock."""
        self._ended = time.monotonic()

    def reserve(self, *, requests: int, tokens: int, usd: float = 0.0) -> None:
        """Take what a request needs, or refuse it.

        Raises:
            BudgetExceeded: a limit is reached, or the request would break it; nothing was taken.
        """
        with self._lock:
            taken = self._taken()
            for unit, needed in {"seconds": 0.0, "usd": usd, "requests": requests, "tokens": tokens}.items():
                limit, spent = self._limits[unit], taken[unit]
                if limit is not None and (spent + needed > limit or (not needed and spent >= limit)):
                    raise BudgetExceeded(unit, limit=limit, spent=spent, needed=needed or None)
            self.requests += requests
            self._reserved += tokens
            self._reserved_usd += usd

    def settle(self, *, reserved: int, usage: Usage | None, requests: int = 0, reserved_usd: float = 0.0) -> None:
        """Give back a reservation and note what was really used; `requests` corrects their number."""
        with self._lock:
            self._reserved -= reserved
            self._reserved_usd = max(0.0, self._reserved_usd - reserved_usd)
            self.requests += requests
            if usage is not None:
                self.tokens += usage.total_tokens
                self.usd += usage.cost or 0.0

    def left_of(self, unit: str) -> float | None:
        """Return how much is left of "usd", "tokens", "requests" or "seconds", None without such a limit."""
        limit = self._limits[unit]
        return None if limit is None else max(0.0, limit - self._taken()[unit])

    def exceeded(self, unit: str, needed: float | None = None) -> BudgetExceeded:
        """Return the error for a call that has reached a limit, or whose next request would need more than is left."""
        return BudgetExceeded(unit, limit=self._limits[unit] or 0.0, spent=self._taken()[unit], needed=needed)

    def _taken(self) -> dict[str, float]:
        return {
            "usd": self.usd + self._reserved_usd,
            "tokens": self.tokens + self._reserved,
            "requests": self.requests,
            "seconds": self.seconds,
        }

    def __repr__(self) -> str:
        return f"Spent(usd={self.usd:g}, tokens={self.tokens}, requests={self.requests}, seconds={self.seconds:.3g})"


_SCOPES: ScopedVar[tuple[Spent, ...]] = ScopedVar("SimpleLLMFunc.budget", ())


@block
@border
def budget(
    usd: float | None = None, tokens: float | None = None, requests: float | None = None, seconds: float | None = None
) -> Generator[Spent, None, None]:
    """Limit everything that is asked inside the block.

    A request that would break a limit is not sent; the tokens of its answer cannot be known before, so the last
    answer may go over `tokens` and `usd`, and nothing is sent after it. Scopes nest: the strictest holds. An answer
    from a cache takes nothing, and is given too where a limit is reached. A thread that you start yourself is inside
    only if `contextvars.copy_context().run` runs its function; those of the library and of `asyncio.to_thread` are.

    Args:
        usd: money. Needs the extra `cost`. A model whose price is not known raises `ConfigError` before it is asked,
            unless it has no address, or one on this machine or its network: such a model is free.
        tokens: read and written.
        requests: HTTP requests, further tries and re-asks included.
        seconds: wall-clock time since the scope began.

    Raises:
        UsageError: a limit that is not a number from 0 up.
        BudgetExceeded: raised inside, instead of sending the request.
    """
    for name, limit in (("usd", usd), ("tokens", tokens), ("requests", requests), ("seconds", seconds)):
        if limit is not None and not (is_number(limit) and limit >= 0):
            raise UsageError(f"budget({name}=…) must be a number from 0 up, not {limit!r}.")
    spent = Spent(usd, tokens, requests, seconds)
    try:
        with _SCOPES.within((*_SCOPES.get(), spent)):
            yield spent
    finally:
        spent.end()


def paid_already() -> AbstractContextManager[object]:
    """Let what runs inside count for no budget around it: it reads answers that were paid when they were made."""
    return _SCOPES.within(())


@dataclass(slots=True)
class Charge:
    """One question that was let through; `settle` once, with what it took.

    Attributes:
        is_late: a cache may answer, so that nothing is taken before `take`.
    """

    scopes: tuple[Spent, ...]
    tokens: int
    usd: float = 0.0
    is_late: bool = False
    prepaid: int = 1
    _is_taken: bool = False
    _block: Block[Charge | None] | None = None

    def __enter__(self) -> Self:
        if not self.is_late:
            self.take()
        self._block = _CHARGE.enter(self)
        return self

    def take(self) -> None:
        """Take what the question needs from the budgets, once.

        Raises:
            BudgetExceeded: nothing may be sent.
        """
        if not self._is_taken:
            reserve(self.scopes, requests=1, tokens=self.tokens, usd=self.usd)
            self._is_taken = True

    def __exit__(self, *_: object) -> None:
        self.prepaid = 0  # a task that began inside may know it still
        if self._block is not None:
            _CHARGE.leave(self._block)
            self._block = None  # the two would hold each other

    def settle(self, usage: Usage | None, *, was_sent: bool = True) -> None:
        """Note what the question took.

        Args:
            usage: of the reply, None where there was none.
            was_sent: False where no request left (the answer came from a cache).
        """
        for scope in self.scopes if self._is_taken else ():
            scope.settle(reserved=self.tokens, usage=usage, requests=0 if was_sent else -1, reserved_usd=self.usd)


_CHARGE: ScopedVar[Charge | None] = ScopedVar("SimpleLLMFunc.charge", None)


def strictest_time_limit() -> Spent | None:
    """Return the scope around the caller whose seconds run out first, None where none has such a limit."""
    limited = [scope for scope in _SCOPES.get() if scope.left_of("seconds") is not None]
    return min(limited, key=lambda scope: scope.left_of("seconds") or 0.0, default=None)


@contextmanager
def time_limits() -> Iterator[Deadline]:
    """Give the deadline that the deadlines and the budgets around leave, and let what runs inside share it.

    Raises:
        BudgetExceeded: the seconds of a budget are over.
    """
    limit = strictest_time_limit()
    try:
        with deadline_scope(None if limit is None else limit.left_of("seconds")) as clock:
            yield clock
    except DeadlineExceeded as error:
        if limit is not None and limit.left_of("seconds") == 0:
            raise limit.exceeded("seconds") from error
        raise


def is_limited(unit: str | None = None) -> bool:
    """Say whether the caller runs inside a budget; given a unit ("usd" …), whether one of them limits that."""
    scopes = _SCOPES.get()
    return bool(scopes) if unit is None else any(scope.left_of(unit) is not None for scope in scopes)


def charge_question(tokens: int, usd: float = 0.0, *, is_late: bool = False) -> Charge:
    """Return a context that lets one question to a model through, or refuses it; its first request is paid there.

    Args:
        tokens: what it will probably read.
        usd: what reading that will cost.
        is_late: nothing is paid before `charge_unkept`.

    Entering it raises:
        BudgetExceeded: nothing may be sent.
    """
    return Charge(_SCOPES.get(), tokens, usd, is_late)


def charge_unkept() -> None:
    """Pay for the question around: a cache has no answer to it.

    Raises:
        BudgetExceeded: it may not be sent.
    """
    if (charge := _CHARGE.get()) is not None:
        charge.take()


def charge_try() -> None:
    """Pay for one HTTP request that is about to leave, unless the question around it has paid already.

    Raises:
        BudgetExceeded: it may not be sent.
    """
    charge = _CHARGE.get()
    if charge is not None and charge.prepaid:
        charge.take()  # a class derived from a cache may ask on its own
        charge.prepaid -= 1
    else:
        reserve(_SCOPES.get(), requests=1, tokens=0)
    for tries in _TRIES.get():
        tries.count += 1


def charge_fetch() -> None:
    """Note an HTTP request that fetches what was paid before; no budget refuses it."""
    for scope in _SCOPES.get():
        scope.settle(reserved=0, usage=None, requests=1)


def charge_lost(usage: Usage) -> None:
    """Note what a request has probably taken although its reply was not awaited; its HTTP requests were paid as they left."""
    for scope in _SCOPES.get():
        scope.settle(reserved=0, usage=usage)


@dataclass(slots=True)
class Tries:
    """How many HTTP requests left inside a `counting_tries` block."""

    count: int = 0


_TRIES: ScopedVar[tuple[Tries, ...]] = ScopedVar("SimpleLLMFunc.tries", ())


@contextmanager
def counting_tries() -> Iterator[Tries]:
    """Count the HTTP requests of the block, of one that is cancelled too; not to be left open over a ``yield``."""
    tries = Tries()
    with _TRIES.within((*_TRIES.get(), tries)):
        yield tries


def scopes_around() -> tuple[Spent, ...]:
    """Return the scopes that the caller runs inside, the outermost first."""
    return _SCOPES.get()


def reserve(scopes: tuple[Spent, ...], *, requests: int, tokens: int, usd: float = 0.0) -> None:
    """Take what is needed from all scopes, or from none; `Spent.settle` of each gives it back.

    Raises:
        BudgetExceeded: one of them has not as much left.
    """
    taken: list[Spent] = []
    try:
        for scope in scopes:
            scope.reserve(requests=requests, tokens=tokens, usd=usd)
            taken.append(scope)
    except BudgetExceeded:
        for scope in taken:
            scope.settle(reserved=tokens, usage=None, requests=-requests, reserved_usd=usd)
        raise
