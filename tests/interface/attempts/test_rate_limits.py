import asyncio

import pytest

from SimpleLLMFunc.errors import ConfigError, ConnectionFailed, DeadlineExceeded
from SimpleLLMFunc.interface.attempts.key_pool import APIKeyPool
from SimpleLLMFunc.interface.attempts.rate_limits import Limits, LimitSettings, Told, part_of_rates, told_limits
from SimpleLLMFunc.interface.openai_compatible import OpenAICompatible
from SimpleLLMFunc.interface.spending.deadline import Deadline
from SimpleLLMFunc.type import CompletionUsage
from tests.support.asking import HELLO
from tests.support.server import Answer, LoopbackServer, text_answer

SOON = Deadline.after


async def test_without_settings_nothing_waits():
    limits = Limits(LimitSettings())
    assert not limits.counts_tokens
    for _ in range(1000):
        await limits.wait("m", 10**9, Deadline.after(None))
    limits.settle(5, CompletionUsage(total_tokens=10))


async def test_tokens_wait_for_their_turn_and_are_corrected():
    limits = Limits(LimitSettings(tokens_per_minute=100))
    assert limits.counts_tokens
    await Limits(LimitSettings(tokens_per_minute=90)).wait("m", 90, SOON(5))
    await limits.wait("m", 90, SOON(5))
    with pytest.raises(DeadlineExceeded, match="tokens"):
        await limits.wait("m", 90, SOON(0.02))
    limits.settle(90, CompletionUsage(total_tokens=5))
    await limits.wait("m", 90, SOON(5))
    limits.settle(90, None)
    limits.settle(90, CompletionUsage())
    with pytest.raises(DeadlineExceeded):
        await limits.wait("m", 90, SOON(0.02))


@pytest.mark.parametrize("name", LimitSettings.__slots__)
@pytest.mark.parametrize("number", [0, -1, "3", True])
def test_a_limit_that_cannot_be_is_named(name, number):
    both = {"rate_limit_capacity": 1, "rate_limit_refill_rate": 1, name: number}
    with pytest.raises(ConfigError, match=f"^{name} is {number!r}; it must be a number above 0"):
        Limits(LimitSettings(**both))


async def test_who_does_not_get_all_that_it_waits_for_has_taken_nothing():
    limits = Limits(LimitSettings(requests_per_minute=3, tokens_per_minute=100))
    limits.learn({"x-ratelimit-limit-requests": "3", "x-ratelimit-remaining-requests": "3"}, 0)
    await limits.wait("m", 90, SOON(5))
    for _ in range(5):
        with pytest.raises(DeadlineExceeded, match="tokens"):
            await limits.wait("m", 90, SOON(0.01))
    waiting = asyncio.create_task(limits.wait("m", 90, SOON(None)))
    await asyncio.sleep(0.01)
    waiting.cancel()
    await asyncio.wait({waiting})
    limits.settle(90, CompletionUsage(total_tokens=1))
    for _ in range(2):
        await limits.wait("m", 1, SOON(1))


# --- what the service says -------------------------------------------------------------------------------


def said(*, left, limit=None, reset=None, unit="requests"):
    given = {"remaining": left, "limit": limit, "reset": reset}
    return {f"x-ratelimit-{name}-{unit}": str(value) for name, value in given.items() if value is not None}


async def leave(limits, tokens=0, seconds=5.0, *, lands=True):
    await limits.wait("m", tokens, SOON(seconds))
    if lands:
        limits.landed(tokens)


@pytest.mark.parametrize("unit", ["requests", "tokens"])
async def test_what_is_on_its_way_has_perhaps_not_been_counted(unit):
    limits = Limits(LimitSettings())
    limits.learn(said(left=50, limit=100, reset="1000s", unit=unit), 0)
    for _ in range(3):
        await leave(limits, 1, lands=False)
    for _ in range(2):
        limits.learn(said(left=3, limit=100, reset="1000s", unit=unit), 0)
        assert getattr(limits, f"_learned_{unit}").level == pytest.approx(3, abs=0.5)
    for _ in range(3):
        limits.landed(1)
    limits.learn(said(left=4, limit=100, reset="1000s", unit=unit), 0)
    for _ in range(4):
        await leave(limits, 1)
    with pytest.raises(DeadlineExceeded):
        await leave(limits, 1, seconds=0.02)


async def test_requests_that_fail_or_are_cancelled_are_not_on_their_way_any_more(server):
    llm = OpenAICompatible("m", base_url=server.base_url, max_retries=0)
    server.reply_reset()
    with pytest.raises(ConnectionFailed):
        await llm.chat(HELLO)
    server.answer(Answer(hold=asyncio.Event(), body=b""))
    with pytest.raises(DeadlineExceeded):
        await llm.chat(HELLO, deadline=0.1)
    assert llm._limits._flying_requests == 0


async def test_what_it_says_later_counts_more():
    limits = Limits(LimitSettings())
    limits.learn(said(left=0, limit=100, reset="1000s"), 0)
    limits.learn(said(left=2, reset="1000s"), 0)
    for _ in range(2):
        await leave(limits)
    with pytest.raises(DeadlineExceeded, match="of the service"):
        await leave(limits, seconds=0.02)
    # It comes back as fast as the service says.
    limits.learn(said(left=0, limit=100, reset="100ms"), 0)
    await leave(limits, seconds=5)


async def test_tokens_are_learned_too():
    limits = Limits(LimitSettings())
    assert not limits.counts_tokens
    limits.learn(said(left=100, limit=1000, reset="1000s", unit="tokens"), 0)
    assert limits.counts_tokens
    await leave(limits, 90)
    with pytest.raises(DeadlineExceeded):
        await leave(limits, 90, seconds=0.02)
    await leave(limits, 0)  # from before they were counted


async def test_what_is_more_than_all_that_is_allowed_is_for_the_service_to_judge():
    limits = Limits(LimitSettings())
    limits.learn(said(left=1000, limit=1000, reset="0s", unit="tokens"), 0)
    await leave(limits, 5000)


async def test_what_the_user_said_is_corrected_downwards_only():
    limits = Limits(LimitSettings(requests_per_minute=2, tokens_per_minute=100))
    limits.learn({**said(left=500, limit=500), **said(left=9000, limit=9000, unit="tokens")}, 0)
    for _ in range(2):
        await leave(limits, 10)
    with pytest.raises(DeadlineExceeded):
        await leave(limits, 10, seconds=0.02)
    limits = Limits(LimitSettings(requests_per_minute=2, tokens_per_minute=100))
    limits.learn({**said(left=1), **said(left=15, unit="tokens")}, 0)
    await leave(limits, 10)
    with pytest.raises(DeadlineExceeded):
        await leave(limits, 10, seconds=0.02)


async def test_headers_that_say_nothing_change_nothing():
    limits = Limits(LimitSettings())
    for headers in ({}, said(left="x"), said(left=0), said(left=0, limit=0)):
        limits.learn(headers, 0)
    await leave(limits, 10**9, seconds=0.02)


async def test_a_model_learns_from_its_replies():
    async with LoopbackServer(text_answer("ok", headers=said(left=1, limit=60, reset="3000s"))) as server:
        llm = OpenAICompatible("m", base_url=server.base_url)
        for _ in range(2):
            await llm.chat(HELLO)
        server.handler = text_answer("ok", headers=said(left=0, limit=60, reset="3000s"))
        await llm.chat(HELLO, deadline=5)
        with pytest.raises(DeadlineExceeded, match="rate limit of the service"):
            await llm.chat(HELLO, deadline=0.05)
        assert len(server.requests) == 3


async def test_what_a_refusal_says_is_left_does_not_slow_the_calls_after_it(server):
    server.reply_status(429, headers={"retry-after": "0", **said(left=0, limit=60, reset="30000s")})
    llm = OpenAICompatible("m", base_url=server.base_url)
    for _ in range(20):  # by the header each would wait for more than eight minutes
        await llm.chat(HELLO, deadline=20)


async def test_of_several_keys_no_one_knows_whose_limits_they_are():
    async with LoopbackServer(text_answer("ok", headers=said(left=0, limit=60, reset="3000s"))) as server:
        pool = APIKeyPool(["sk-aaaaaaaa", "sk-bbbbbbbb"])
        llm = OpenAICompatible("m", base_url=server.base_url, api_key_pool=pool)
        for _ in range(3):
            await llm.chat(HELLO, deadline=5)


async def test_a_part_of_the_rates_is_a_part_of_the_rate_and_of_what_is_left():
    with part_of_rates(4):
        limits = Limits(LimitSettings(requests_per_minute=600, tokens_per_minute=1_000))
    whole = Limits(LimitSettings(requests_per_minute=600))
    assert whole._requests[0].refill_rate == 10
    (requests,) = limits._requests
    assert (requests.refill_rate, requests.capacity) == (2.5, 600)
    assert requests.level == pytest.approx(150, abs=1)
    assert limits._tokens.level == pytest.approx(250, abs=1)
    limits._tokens.refill_rate = 1e6
    await limits.wait("m", 900, SOON(5))  # what fits into the rate fits into its part
    limits.learn({**said(left=80, limit=100), **said(left=1, limit=2, unit="tokens")}, 0.0)
    assert (limits._learned_requests.capacity, limits._learned_tokens.capacity) == (25, 1)
    assert limits._learned_requests.level == pytest.approx(20, abs=0.5)
    assert requests.level == pytest.approx(20, abs=0.5)


# --- the headers -----------------------------------------------------------------------------------------

NOW = 1_800_000_000.0


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("1s", 1), ("6m0s", 360), ("17ms", 0.017), ("1h2m3.5s", 3723.5), ("250us", 0.00025), ("1d", 86400), (" 2s ", 2),
        ("12", 12), ("2.5", 2.5), ("0", 0), (str(int(NOW) + 30), 30), (str(int(NOW + 30) * 1000), 30),
        (str(int(NOW) - 30), 0), ("2027-01-15T08:00:10Z", 10), ("2027-01-15T08:00:10", 10),
        ("soon", None), ("", None), ("-3", None), ("nan", None), ("inf", None), ("1x", None), ("s", None), ("1e400", None),
        ("0001-01-01T00:00:00", 0),
    ],
)  # fmt: skip
def test_moments_and_spans(text, seconds):
    (told, _) = told_limits({"x-ratelimit-remaining-requests": "5", "x-ratelimit-reset-requests": text}, NOW)
    assert told == Told(5, None, seconds if seconds is None else pytest.approx(seconds))


def test_requests_and_tokens():
    headers = said(left=499, limit=500, reset="120ms") | said(left=15000, limit=30000, reset="30s", unit="tokens")
    requests, tokens = told_limits(headers, NOW)
    assert requests == Told(499, 500, pytest.approx(0.12))
    assert requests.refill_rate == pytest.approx(500 / 60)
    assert (tokens, tokens.refill_rate) == (Told(15000, 30000, 30), 500)


def test_other_names():
    plain = {"x-ratelimit-limit": "20", "x-ratelimit-remaining": "20", "x-ratelimit-reset": str(int(NOW + 17) * 1000)}
    assert told_limits(plain, NOW) == (Told(20, 20, pytest.approx(17)), None)
    anthropic = {"anthropic-ratelimit-tokens-limit": "10", "anthropic-ratelimit-tokens-remaining": "1"}
    assert told_limits(anthropic, NOW) == (None, Told(1, 10))
    names = {"limit": "80", "remaining": "9", "reset": "2027-01-15T08:00:30Z"}
    split = {f"anthropic-ratelimit-input-tokens-{name}": value for name, value in names.items()}
    assert told_limits(split, NOW) == (None, Told(9, 80, 30))


@pytest.mark.parametrize(
    "headers",
    [
        {}, {"x-ratelimit-limit-requests": "5"}, {"x-ratelimit-remaining-requests": "many"},
        {"x-ratelimit-remaining-requests": "-1"}, {"x-ratelimit-remaining-requests": "nan"},
        {"x-ratelimit-remaining-requests": "0", "x-ratelimit-limit-requests": "0"},
        {"x-ratelimit-remaining-tokens": "-1", "x-ratelimit-limit-tokens": "-1"},
    ],
)  # fmt: skip
def test_what_says_nothing(headers):
    assert told_limits(headers, NOW) == (None, None)


def test_what_makes_no_sense_is_left_out():
    (told, _) = told_limits({"x-ratelimit-remaining-requests": "9", "x-ratelimit-limit-requests": "5"}, NOW)
    assert told == Told(9)
    assert told.refill_rate is None
    assert Told(5, 5, 10).refill_rate is None
    assert Told(0, 5, 0).refill_rate is None


def test_what_a_minute_allows_comes_back_evenly():
    limits = Limits(LimitSettings(requests_per_minute=30, tokens_per_minute=600))
    limits.learn(said(left=1, limit=30), 0)
    assert [one.refill_rate for one in (*limits._requests, limits._tokens, limits._learned_requests)] == [0.5, 10, 0.5]


async def test_what_the_service_says_is_left_is_learned():
    limits = Limits(LimitSettings())
    limits.learn(said(left=3, limit=100, reset="1000s"), 0)
    for _ in range(3):
        await leave(limits)
    with pytest.raises(DeadlineExceeded, match="of the service"):
        await leave(limits, seconds=0.02)
