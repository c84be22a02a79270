"""The rate limits of one model: requests and tokens, waited for before each request.

What the user says holds, corrected by what the service says is left; what the user does not say is learned from the
headers of replies, which are read at the end of this module.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from contextlib import AbstractContextManager, ExitStack
from dataclasses import dataclass, replace
from datetime import UTC, datetime

from SimpleLLMFunc.errors import ConfigError, DeadlineExceeded
from SimpleLLMFunc.interface.attempts.token_bucket import TokenBucket
from SimpleLLMFunc.interface.spending import Deadline
from SimpleLLMFunc.interface.wires import header_number, number
from SimpleLLMFunc.type import CompletionUsage
from SimpleLLMFunc.utils import ScopedVar

_PARTS: ScopedVar[int] = ScopedVar("SimpleLLMFunc.parts_of_rates", 1)


def part_of_rates(parts: int) -> AbstractContextManager[None]:
    """Let models that are made in the block keep one of so many equal parts of their rates: other processes have the rest."""
    return _PARTS.within(parts)


@dataclass(frozen=True, slots=True)
class LimitSettings:
    """What a user may say about the limits; None is no limit."""

    rate_limit_capacity: float | None = None
    rate_limit_refill_rate: float | None = None
    requests_per_minute: float | None = None
    tokens_per_minute: float | None = None


class Limits:
    """The buckets that the settings ask for, shared by all calls of one model.

    Raises:
        ConfigError: a number out of range, or a capacity without a refill rate.
    """

    def __init__(self, settings: LimitSettings) -> None:
        self.settings = settings
        self._parts = _PARTS.get()
        for name in LimitSettings.__slots__:
            if (given := getattr(settings, name)) is not None:
                number(name, given, above=0)
        self._requests: list[TokenBucket] = []
        capacity, rate = settings.rate_limit_capacity, settings.rate_limit_refill_rate
        if capacity is not None and rate is not None:
            self._requests.append(self._bucket(capacity, rate))
        elif capacity is not None or rate is not None:
            raise ConfigError("rate_limit_capacity and rate_limit_refill_rate only make sense together; give both.")
        if settings.requests_per_minute is not None:
            self._requests.append(self._bucket(settings.requests_per_minute, settings.requests_per_minute / 60))
        tokens = settings.tokens_per_minute
        self._tokens = None if tokens is None else self._bucket(tokens, tokens / 60)
        self._learned_requests: TokenBucket | None = None
        self._learned_tokens: TokenBucket | None = None
        self._flying_requests = self._flying_tokens = 0  # on their way: the service may not have counted them yet

    def _bucket(self, capacity: float, rate: float) -> TokenBucket:
        """Return a bucket of this part; whole, it holds as much as ever, so that what fits into a rate fits into its part."""
        bucket = TokenBucket(capacity, rate / self._parts)
        bucket.limit_to(capacity / self._parts)
        return bucket

    @property
    def counts_tokens(self) -> bool:
        """Whether anybody asks how many tokens a request takes."""
        return self._tokens is not None or self._learned_tokens is not None

    async def wait(self, model_name: str, tokens: int, deadline: Deadline) -> None:
        """Wait until a request of about `tokens` may leave; one that does not get so far has taken nothing.

        Raises:
            DeadlineExceeded: that takes too long.
            ConfigError: it never may.
        """
        if self._tokens is not None and tokens > self._tokens.capacity:
            raise ConfigError(
                f"{model_name}: the request takes about {tokens} tokens, and tokens_per_minute is "
                f"{self._tokens.capacity:g}. Raise it, or send less."
            )
        by_service = "waiting for the rate limit of the service"
        wanted = [
            (self._learned_requests, 1, by_service),
            (self._learned_tokens, tokens, by_service),
            *((bucket, 1, "waiting for the rate limit") for bucket in self._requests),
            (self._tokens, max(1, tokens), "waiting for the limit of tokens per minute"),
        ]
        with ExitStack() as taken:
            for bucket, most, doing in wanted:
                if bucket is None or not most:
                    continue
                count = min(most, bucket.capacity)  # what is more than all that is allowed is for the service to judge
                if not await bucket.acquire(count, timeout=deadline.left()):
                    raise DeadlineExceeded(deadline.seconds, doing=doing)
                taken.callback(bucket.adjust, count)
            taken.pop_all()
        self._flying_requests += 1
        self._flying_tokens += tokens

    def landed(self, tokens: int) -> None:
        """Note that a request of about `tokens` is no longer on its way: the service has counted it, or will not."""
        self._flying_requests -= 1
        self._flying_tokens -= tokens

    def settle(self, tokens: int, usage: CompletionUsage | None) -> None:
        """Correct an estimate by what it turned out to be."""
        if self._tokens is not None and usage is not None and usage.total_tokens:
            self._tokens.adjust(tokens - usage.total_tokens)

    def learn(self, headers: Mapping[str, str], now: float) -> None:
        """Take in what a reply says is left; `now` is seconds since the epoch."""
        requests, tokens = (told and self._part_of(told) for told in told_limits(headers, now))
        if requests is not None:
            # Only less than was said: a user who wants to send no more than so many has reasons.
            for bucket in self._requests:
                bucket.limit_to(requests.left)
            self._learned_requests = _learned(self._learned_requests, requests, self._flying_requests)
        if tokens is not None:
            if self._tokens is not None:
                self._tokens.limit_to(tokens.left)
            self._learned_tokens = _learned(self._learned_tokens, tokens, self._flying_tokens)

    def _part_of(self, told: Told) -> Told:
        limit = None if told.limit is None else max(1.0, told.limit / self._parts)
        return replace(told, left=told.left / self._parts, limit=limit)


def _learned(bucket: TokenBucket | None, told: Told, flying: int) -> TokenBucket | None:
    """Return the bucket of a limit that a service told of; None where it did not say how much it allows in all."""
    if bucket is None:
        if not told.limit:
            return None
        bucket = TokenBucket(told.limit, told.limit / 60)
    bucket.capacity = max(bucket.capacity, told.limit or 0.0)
    bucket.refill_rate = told.refill_rate or bucket.refill_rate
    # What is on its way may have been counted already, or not: the service has the last word when it has landed.
    more = told.left - flying - bucket.level
    if more > 0:
        bucket.adjust(more)
    else:
        bucket.limit_to(told.left)
    return bucket


# --- what a service says about its limits -----------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Told:
    """One limit.

    Attributes:
        left: how many more are allowed now.
        limit: how many are allowed in all, None where it does not say.
        reset: seconds until all are allowed again, None where it does not say.
    """

    left: float
    limit: float | None = None
    reset: float | None = None

    @property
    def refill_rate(self) -> float | None:
        """How many are allowed again per second; None where that cannot be told."""
        if self.reset and self.limit is not None and self.limit > self.left:
            return (self.limit - self.left) / self.reset
        return None


def told_limits(headers: Mapping[str, str], now: float) -> tuple[Told | None, Told | None]:
    """Return what the headers say about requests and about tokens.

    Args:
        headers: found by lower-case name.
        now: seconds since the epoch, for moments.

    Source: ``x-ratelimit-remaining-requests`` and its kin are OpenAI's and those of most who speak its protocol;
    without a unit (OpenRouter and others) they mean requests; ``anthropic-ratelimit-requests-remaining`` is Anthropic's.
    """
    return _first(headers, _REQUESTS, now), _first(headers, _TOKENS, now)


_REQUESTS = ("x-ratelimit-{}-requests", "anthropic-ratelimit-requests-{}", "x-ratelimit-{}")
_TOKENS = ("x-ratelimit-{}-tokens", "anthropic-ratelimit-tokens-{}", "anthropic-ratelimit-input-tokens-{}")


def _first(headers: Mapping[str, str], names: Iterable[str], now: float) -> Told | None:
    """Return the first limit that the headers tell of."""
    return next(filter(None, (_told(headers, name, now) for name in names)), None)


def _told(headers: Mapping[str, str], name: str, now: float) -> Told | None:
    left = header_number(headers.get(name.format("remaining")))
    if left is None:
        return None
    limit = header_number(headers.get(name.format("limit")))
    if limit == 0:
        return None  # Azure's Responses say 0 and -1 where they mean nothing
    return Told(left, limit if limit and limit >= left else None, _seconds(headers.get(name.format("reset")), now))


_PIECES = re.compile(r"(?:\d{1,9}(?:\.\d{1,9})?(?:ms|us|µs|ns|h|m|s|d)){1,6}")
_PIECE = re.compile(r"(\d{1,9}(?:\.\d{1,9})?)(ms|us|µs|ns|h|m|s|d)")
_UNITS = {"d": 86400.0, "h": 3600.0, "m": 60.0, "s": 1.0, "ms": 1e-3, "us": 1e-6, "µs": 1e-6, "ns": 1e-9}

_EARLIEST_MOMENT = 1e9
"""A larger number is a moment in seconds since the epoch; one beyond a thousand times that, in milliseconds."""


def _seconds(text: str | None, now: float) -> float | None:
    """Read ``6m0s``, ``17ms``, ``2.5``, a moment in seconds or milliseconds since the epoch, or an ISO date."""
    if text is None:
        return None
    text = text.strip()
    if _PIECES.fullmatch(text):
        return sum(float(number) * _UNITS[unit] for number, unit in _PIECE.findall(text))
    value = header_number(text)
    if value is None:
        try:
            moment = datetime.fromisoformat(text)
            value = (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()
        except (ValueError, OverflowError, OSError):
            return None
    elif value < _EARLIEST_MOMENT:
        return value
    elif value > _EARLIEST_MOMENT * 1000:
        value /= 1000
    return max(0.0, value - now)
