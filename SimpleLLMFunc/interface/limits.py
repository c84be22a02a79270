"""The rate limits of one model: requests and tokens, waited for before each request."""

from __future__ import annotations

from dataclasses import asdict, dataclass

from SimpleLLMFunc.errors import ConfigError, DeadlineExceeded
from SimpleLLMFunc.interface.deadline import Deadline
from SimpleLLMFunc.interface.rate_limit import TokenBucket
from SimpleLLMFunc.type.completion import CompletionUsage

__all__ = ["LimitSettings", "Limits"]


@dataclass(frozen=True, slots=True)
class LimitSettings:
    """What a user may say about the limits; None is no limit."""

    rate_limit_capacity: float | None = None
    rate_limit_refill_rate: float | None = None
    requests_per_minute: float | None = None
    tokens_per_minute: float | None = None

    def as_arguments(self) -> dict[str, float | None]:
        """Return the settings by name."""
        return asdict(self)


class Limits:
    """The buckets that the settings ask for, shared by all calls of one model.

    Raises:
        ConfigError: a number out of range, or a capacity without a refill rate.
    """

    def __init__(self, settings: LimitSettings) -> None:
        self.settings = settings
        if (settings.rate_limit_capacity is None) != (settings.rate_limit_refill_rate is None):
            raise ConfigError("rate_limit_capacity and rate_limit_refill_rate only make sense together; give both.")
        self._requests: list[TokenBucket] = []
        if settings.rate_limit_capacity is not None and settings.rate_limit_refill_rate is not None:
            self._requests.append(TokenBucket(settings.rate_limit_capacity, settings.rate_limit_refill_rate))
        if settings.requests_per_minute is not None:
            self._requests.append(_per_minute(settings.requests_per_minute))
        self._tokens = None if settings.tokens_per_minute is None else _per_minute(settings.tokens_per_minute)

    @property
    def counts_tokens(self) -> bool:
        """Whether anybody asks how many tokens a request takes."""
        return self._tokens is not None

    async def wait(self, model_name: str, tokens: int, deadline: Deadline) -> None:
        """Wait until a request of about `tokens` may leave.

        Raises:
            DeadlineExceeded: that takes too long.
            ConfigError: it never may.
        """
        for bucket in self._requests:
            if not await bucket.acquire(1, timeout=deadline.left()):
                raise DeadlineExceeded(deadline.seconds, doing="waiting for the rate limit")
        if self._tokens is None:
            return
        if tokens > self._tokens.capacity:
            raise ConfigError(
                f"{model_name}: the request takes about {tokens} tokens, and tokens_per_minute is "
                f"{self._tokens.capacity:g}. Raise it, or send less."
            )
        if not await self._tokens.acquire(max(1, tokens), timeout=deadline.left()):
            raise DeadlineExceeded(deadline.seconds, doing="waiting for the limit of tokens per minute")

    def settle(self, tokens: int, usage: CompletionUsage | None) -> None:
        """Correct an estimate by what it turned out to be."""
        if self._tokens is not None and usage is not None and usage.total_tokens:
            self._tokens.adjust(tokens - usage.total_tokens)


def _per_minute(count: float) -> TokenBucket:
    return TokenBucket(count, count / 60)
