"""Request coalescing: identical questions that are asked at the same time are sent once (single flight)."""

from __future__ import annotations

import asyncio
import copy
from collections.abc import Hashable, Iterator
from concurrent.futures import Future
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Generic, TypeVar

from SimpleLLMFunc.errors import DeadlineExceeded, ProviderError
from SimpleLLMFunc.interface.spending import Deadline
from SimpleLLMFunc.runtime import ForkSafeLock, renew_in_child

T = TypeVar("T")

_LOOK_AGAIN = 1.0
"""Seconds; how often a waiter makes sure that the loop of the one it waits for has not gone."""


@dataclass(slots=True, eq=False)
class Flight(Generic[T]):
    """One question under way, and what came of it.

    Attributes:
        answer: what came, where others may have it.
        error: what the service did to it, which is the same for all.
        may_share: False where each has to ask for itself.
        loop: of the first who asks.
        ended: the others wait for it, on any event loop.
    """

    answer: T | None = None
    error: ProviderError | None = None
    may_share: bool = True
    loop: asyncio.AbstractEventLoop = field(default_factory=asyncio.get_running_loop)
    ended: Future[None] = field(default_factory=Future)


class Flights(Generic[T]):
    """The questions in flight in this process, on all event loops."""

    def __init__(self) -> None:
        self._lock = ForkSafeLock()
        self._flights: dict[Hashable, Flight[T]] = {}
        renew_in_child(self)

    @contextmanager
    def begun(self, key: Hashable) -> Iterator[Flight[T] | None]:
        """Give a flight to the first who asks, which has to set `answer` or `may_share`; None to all others.

        It ends with the block; a `ProviderError` that leaves it is everybody's.
        """
        own = Flight[T]()
        with self._lock:
            flight = self._flights.setdefault(key, own)
        if flight is not own:
            yield None
            return
        try:
            yield flight
        except ProviderError as error:
            # As it is now: the run around it will write its own facts into the error.
            flight.error = _copied(error)
            raise
        finally:
            self._end(key, flight)

    async def wait(self, key: Hashable, clock: Deadline) -> Flight[T] | None:
        """Return the flight of `key` when it is over, None where no such question is in flight.

        Raises:
            DeadlineExceeded: that took too long.
        """
        with self._lock:
            flight = self._flights.get(key)
        if flight is None:
            return None
        ended = asyncio.wrap_future(flight.ended)
        while not flight.ended.done():
            left = clock.left()
            await asyncio.wait((ended,), timeout=_LOOK_AGAIN if left is None else min(left, _LOOK_AGAIN))
            if flight.ended.done():
                break
            if flight.loop.is_closed():
                self._end(key, flight)
            elif clock.is_over:
                raise DeadlineExceeded(clock.seconds, doing="waiting for the same question asked by another call")
        if flight.error is not None:
            error = _copied(flight.error)
            error.tries = 0
            raise error
        return flight

    def renew_in_child(self) -> None:
        """Forget the parent's flights: they end in the parent only."""
        self._flights.clear()

    def _end(self, key: Hashable, flight: Flight[T]) -> None:
        with self._lock:
            if self._flights.get(key) is flight:
                del self._flights[key]
            if not flight.ended.done():
                flight.ended.set_result(None)


def _copied(error: ProviderError) -> ProviderError:
    copied = copy.copy(error)
    copied.__cause__ = error.__cause__
    return copied
