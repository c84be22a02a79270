"""How many rows are asked at a time: a fixed number, or one that follows the service; pure."""

from __future__ import annotations

import math
from typing import Literal

from SimpleLLMFunc.errors import UsageError

MOST_AT_A_TIME = 1_000
"""Rows that "auto" goes up to; a number may be higher."""

_FIRST = 8
_HOLDS = 1.5
"""While a round takes no more than so many times the fastest one, it is not the service that waits."""

_SUFFERS = 3.0
_CUT = 0.6
_SLACK = 0.02
"""Seconds that a round may always be slower; among very fast answers chance decides."""


class Concurrency:
    """A fixed number of rows at a time.

    Attributes:
        limit: how many.
        most: how many it may become.
        is_fixed: it stays what it is.
    """

    is_fixed = True

    def __init__(self, limit: int) -> None:
        self.limit = self.most = limit

    def finished(self, began: float, ended: float, *, is_refused: bool, is_full: bool) -> None:
        """Take note of a row: when it was asked and answered, and whether the service refused a try of it."""


class AutoConcurrency(Concurrency):
    """As many rows at a time as the service answers without getting slower.

    Twice as many with each round of answers while they come as fast as before and nothing is refused; then a few more
    with each round. After a refusal a good third less, once for all the rows that were on their way then. Calls that
    wait for the model's rate limits take longer, which is the same sign.

    Source: additive increase and multiplicative decrease as in RFC 5681; latency as the sign of a queue as in TCP Vegas.
    """

    is_fixed = False

    def __init__(self, most: int = MOST_AT_A_TIME) -> None:
        super().__init__(min(_FIRST, most))
        self.most = most
        self._is_doubling = True
        self._fastest = math.inf
        self._cut_at = -math.inf
        self._count = 0
        self._seconds = 0.0
        self._was_full = False

    def finished(self, began: float, ended: float, *, is_refused: bool, is_full: bool) -> None:
        """Take note of a row; a round is over when as many have ended as may be on their way."""
        if began < self._cut_at:
            return  # asked when there were more on their way: no news
        if is_refused:
            self._shrink(ended, _CUT)
            return
        self._count += 1
        self._seconds += ended - began
        self._was_full = self._was_full or is_full
        if self._count >= self.limit:
            self._end_round(ended)

    def _end_round(self, now: float) -> None:
        mean = self._seconds / self._count
        # What was fast once need not be for ever.
        self._fastest = min(mean, self._fastest * 1.01)
        if mean > self._fastest * _SUFFERS + _SLACK:
            self._shrink(now, 0.8)
            return
        if mean > self._fastest * _HOLDS + _SLACK:
            self._is_doubling = False
        elif self._was_full:
            more = self.limit if self._is_doubling else max(1, self.limit // 16)
            self.limit = min(self.most, self.limit + more)
        self._begin_round()

    def _shrink(self, now: float, part: float) -> None:
        self.limit = max(1, int(self.limit * part))
        self._is_doubling = False
        self._cut_at = now
        self._begin_round()

    def _begin_round(self) -> None:
        self._count, self._seconds, self._was_full = 0, 0.0, False


def concurrency_of(value: int | Literal["auto"], most: int = MOST_AT_A_TIME) -> Concurrency:
    """Return what `concurrency=` asks for.

    Raises:
        UsageError: it is neither "auto" nor a whole number from 1 up.
    """
    given: object = value
    if given == "auto":
        return AutoConcurrency(most)
    if isinstance(given, bool) or not isinstance(given, int) or given < 1:
        raise UsageError(f'concurrency is "auto" or a whole number from 1 up, not {value!r}.')
    return Concurrency(given)
