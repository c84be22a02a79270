import pytest

from SimpleLLMFunc.errors import ConfigError, DeadlineExceeded
from SimpleLLMFunc.interface.deadline import Deadline
from SimpleLLMFunc.interface.limits import Limits, LimitSettings
from SimpleLLMFunc.type.completion import CompletionUsage

SOON = Deadline.after


async def test_without_settings_nothing_waits():
    limits = Limits(LimitSettings())
    assert not limits.counts_tokens
    for _ in range(1000):
        await limits.wait("m", 10**9, Deadline.after(None))
    limits.settle(5, CompletionUsage(total_tokens=10))


@pytest.mark.parametrize(
    "settings",
    [LimitSettings(rate_limit_capacity=1, rate_limit_refill_rate=0.001), LimitSettings(requests_per_minute=1)],
)
async def test_requests_wait_for_their_turn(settings):
    limits = Limits(settings)
    await limits.wait("m", 0, SOON(5))
    with pytest.raises(DeadlineExceeded, match="rate limit"):
        await limits.wait("m", 0, SOON(0.02))


async def test_tokens_wait_for_their_turn_and_are_corrected():
    limits = Limits(LimitSettings(tokens_per_minute=100))
    assert limits.counts_tokens
    await limits.wait("m", 90, SOON(5))
    with pytest.raises(DeadlineExceeded, match="tokens"):
        await limits.wait("m", 90, SOON(0.02))
    limits.settle(90, CompletionUsage(total_tokens=5))
    await limits.wait("m", 90, SOON(5))
    limits.settle(90, None)
    limits.settle(90, CompletionUsage())
    with pytest.raises(DeadlineExceeded):
        await limits.wait("m", 90, SOON(0.02))


async def test_what_can_never_fit_is_told_at_once():
    with pytest.raises(ConfigError, match="tokens_per_minute"):
        await Limits(LimitSettings(tokens_per_minute=100)).wait("m", 101, SOON(5))


@pytest.mark.parametrize(
    "settings",
    [
        LimitSettings(rate_limit_capacity=1),
        LimitSettings(rate_limit_refill_rate=1),
        LimitSettings(requests_per_minute=0),
        LimitSettings(tokens_per_minute=-1),
        LimitSettings(rate_limit_capacity=0, rate_limit_refill_rate=1),
    ],
)
def test_what_cannot_be_is_refused(settings):
    with pytest.raises(ConfigError):
        Limits(settings)


def test_settings_are_arguments_again():
    settings = LimitSettings(1, 2, 3, 4)
    assert LimitSettings(**settings.as_arguments()) == settings
