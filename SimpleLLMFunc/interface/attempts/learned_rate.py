"""How many requests per second a service takes, learned from those that it refused; pure but for the clock given."""

from __future__ import annotations

import math

__all__ = ["Pace"]

_KEPT = 30.0
"""Seconds without a refusal after which the pace counts no more."""

_GROWTH = (0.1, 0.05)
"""By what part of itself the pace grows with the seconds, and with their square: what a service takes changes, and the
first guess may be far too low."""

_BELOW = 0.95
"""The part of what was taken at which to begin."""

_FEWEST = 5
"""Requests that must have been taken while others waited, to tell anything."""

_FEWEST_UNASKED = 20
"""The same while nobody waited: a few may only have been all there were."""

_BURST = 0.02
"""Seconds of the pace that may leave at once: timers are not exact."""


class Pace:
    """Counts what a service takes; after a refusal it says when the next request may leave."""

    __slots__ = ("_before", "_begun", "_count", "_next", "_rate", "_since", "_slowed")

    def __init__(self) -> None:
        # Two buckets of a second each: the one that is being filled, and the one before.
        self._since = -math.inf
        self._count = 0
        self._before = 0
        self._slowed = -math.inf
        self._rate: float | None = None
        self._begun = 0.0
        self._next = -math.inf

    def took(self, now: float) -> None:
        """Note that a request was taken."""
        if self._slowed == -math.inf and now - self._since >= 1.0:
            self._before = self._count if now - self._since < 2.0 else 0
            self._since, self._count = now, 0
        self._count += 1

    def slow_down(self, now: float, *, is_loaded: bool) -> bool:
        """Learn from a refusal; return whether the service had taken some since the last one.

        Args:
            now: seconds.
            is_loaded: more requests were waiting than left.
        """
        is_fresh = is_loaded or now - self._since < 2.0
        count = self._count + self._before if is_fresh else 0
        since = self._since - (1.0 if self._before else 0.0)
        self._since, self._count, self._before = now, 0, 0
        self._slowed = now
        if count >= (_FEWEST if is_loaded else _FEWEST_UNASKED):
            measured = count / max(now - since, 0.5 if is_loaded else 1.0)
            # One bad moment does not say everything: never less than half of what it was.
            self._rate = max(measured, (self._rate or 0.0) / 2) * _BELOW
            self._begun = self._next = now
        return count > 0

    def is_set(self, now: float) -> bool:
        """Whether there is a pace to keep."""
        if self._rate is not None and now - self._slowed > _KEPT:
            self.forget()
        return self._rate is not None

    def forget(self) -> None:
        """Begin anew: the refusals are over."""
        self._rate = None
        self._slowed = self._since = -math.inf
        self._count = self._before = 0

    def next_at(self, now: float) -> float:
        """Return when the next request may leave."""
        return self._next if self.is_set(now) else -math.inf

    def sent(self, now: float) -> None:
        """Note that a request leaves."""
        if self._rate is not None:
            seconds = now - self._begun
            rate = self._rate * (1 + seconds * (_GROWTH[0] + seconds * _GROWTH[1]))
            self._next = max(self._next, now - _BURST) + 1 / rate
