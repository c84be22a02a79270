"""What a service says about its rate limits in the headers of a reply; pure."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime

from SimpleLLMFunc.interface.wires import header_number


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
