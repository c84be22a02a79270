"""When a second request leaves; the race itself is in test_fallback.py."""

import asyncio

import pytest

from SimpleLLMFunc.errors import ConfigError
from SimpleLLMFunc.interface.hedge import HedgeTimer, Racer, race
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


async def test_a_racer_that_somebody_else_cancels_ends_the_race():
    racers = []

    def start(beside):
        racers.append(Racer(ScriptedLLM(), lambda: asyncio.sleep(30)))
        return racers[-1]

    running = asyncio.create_task(race(start, lambda *told: None, None, AssertionError))
    await asyncio.sleep(0)
    racers[0].task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running


async def test_whoever_answers_first_wins_and_the_rest_is_gone():
    told = []
    works = [lambda: asyncio.sleep(30, "slow"), lambda: asyncio.sleep(0, "fast")]
    racers = []

    def start(beside):
        racers.append(Racer(ScriptedLLM(), works.pop(0), is_second=beside))
        return racers[-1]

    winner = await race(start, lambda *facts: told.append(facts), 0.01, AssertionError)
    assert winner.task.result() == "fast"
    assert told == [(racers[0], None, False)]
    assert racers[0].task.cancelled()
    assert (winner.is_second, winner.tries) == (True, 0)
