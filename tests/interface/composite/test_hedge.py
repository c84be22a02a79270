"""When a second request leaves; the race itself is in test_fallback.py."""

import asyncio

import pytest

from SimpleLLMFunc.errors import ConfigError
from SimpleLLMFunc.interface.composite import FallbackLLM
from SimpleLLMFunc.interface.composite.hedge import HedgeTimer
from SimpleLLMFunc.testing import ScriptedLLM


def test_p95_is_the_time_that_95_of_100_took():
    timer = HedgeTimer("p95")
    for seconds in range(1, 20):
        timer.note(seconds)
    assert timer.delay() is None
    for seconds in range(20, 101):
        timer.note(seconds)
    assert timer.delay() == 95
    assert HedgeTimer(2).delay() == 2
    assert HedgeTimer(None).delay() is None


@pytest.mark.parametrize("after", [0, -1, float("inf"), float("nan"), True, "p50", "1"])
def test_what_is_no_time_is_refused(after):
    with pytest.raises(ConfigError, match="hedge_after"):
        HedgeTimer(after)


class Cancelling(ScriptedLLM):
    async def chat_stream(self, messages, **asked):
        raise asyncio.CancelledError
        yield


async def test_a_stream_that_cancels_itself_ends_for_who_reads_it():
    llm = FallbackLLM(Cancelling(), hedge_after=5)
    with pytest.raises(asyncio.CancelledError):
        await asyncio.wait_for(anext(llm.chat_stream([{"role": "user", "content": "Hi"}])), 5)
