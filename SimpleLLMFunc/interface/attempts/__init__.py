"""The attempts of one request: which failure is worth another one, when it leaves, with which key, at what rate.

`http_model` holds the loop; the others are its parts: the retry decision, the circuit breaker, keys, rate limits.
"""

from __future__ import annotations

from SimpleLLMFunc.interface.attempts.credentials import Credentials, KeySource
from SimpleLLMFunc.interface.attempts.guard import (
    RealCallsForbidden,
    are_real_calls_forbidden,
    check_real_call_allowed,
    forbid_real_calls,
    real_calls_asked_for,
)
from SimpleLLMFunc.interface.attempts.http_model import Call, HttpModel
from SimpleLLMFunc.interface.attempts.json_document import MAX_BYTES, get_json
from SimpleLLMFunc.interface.attempts.key_pool import APIKeyPool, key_pool_again
from SimpleLLMFunc.interface.attempts.listener import (
    LISTENER,
    Downgrades,
    noting_downgrades,
    tell_downgrade,
    tell_failed_try,
)
from SimpleLLMFunc.interface.attempts.rate_limits import Limits, LimitSettings, part_of_rates
from SimpleLLMFunc.interface.attempts.retry import now, retried
from SimpleLLMFunc.interface.attempts.token_bucket import TokenBucket

__all__ = [
    "LISTENER", "MAX_BYTES", "APIKeyPool", "Call", "Credentials", "Downgrades",
    "HttpModel", "KeySource", "LimitSettings", "Limits", "RealCallsForbidden", "TokenBucket",
    "are_real_calls_forbidden", "check_real_call_allowed", "forbid_real_calls", "get_json", "key_pool_again", "noting_downgrades", "now",
    "part_of_rates", "real_calls_asked_for", "retried", "tell_downgrade", "tell_failed_try",
]  # fmt: skip
