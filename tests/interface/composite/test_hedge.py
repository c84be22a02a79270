"""When a second request leaves; the race itself is in test_fallback.py."""

import asyncio

import pytest

from SimpleLLMFunc.errors import ConfigError
from SimpleLLMFunc.interface.composite.hedge import HedgeTimer, Racer, StreamPump, race
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


async def test_a_racer_that_someone_else_cancels_ends_the_race():
    racers = []

    def start(beside):
        racers.append(Racer(ScriptedLLM(), lambda: asyncio.sleep(30)))
        return racers[-1]

    running = asyncio.create_task(race(start, lambda *told: None, None, AssertionError))
    await asyncio.sleep(0)
    racers[0].task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running


async def test_who_answers_first_wins_and_the_rest_is_gone():
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


async def test_who_is_cancelled_again_while_it_tidies_up_leaves_no_racer_running():
    racers = []

    async def lingers():
        try:
            await asyncio.sleep(30)
        finally:
            await asyncio.sleep(0.2)

    def start(beside):
        racers.append(Racer(ScriptedLLM(), lingers, is_second=beside))
        return racers[-1]

    running = asyncio.create_task(race(start, lambda *told: None, 0.001, AssertionError))
    while len(racers) < 2:
        await asyncio.sleep(0.001)
    await asyncio.sleep(0)
    for _ in range(2):
        running.cancel()
        await asyncio.sleep(0.01)
    with pytest.raises(asyncio.CancelledError):
        await running
    assert all(racer.task.cancelling() or racer.task.done() for racer in racers)
    await asyncio.gather(*(racer.task for racer in racers), return_exceptions=True)


async def test_who_is_cancelled_when_it_has_an_answer_closes_that_too():
    slow, closing, closed = asyncio.Event(), asyncio.Event(), []

    async def lingers():
        try:
            await asyncio.sleep(30)
        finally:
            closing.set()
            await slow.wait()

    async def close():
        closed.append("the winner")

    def start(beside):
        if not beside:
            return Racer(ScriptedLLM(), lingers)
        return Racer(ScriptedLLM(), lambda: asyncio.sleep(0, "fast"), is_second=True, close=close)

    running = asyncio.create_task(race(start, lambda *told: None, 0.001, AssertionError))
    await closing.wait()
    running.cancel()
    await asyncio.sleep(0)
    slow.set()
    with pytest.raises(asyncio.CancelledError):
        await running
    assert closed == ["the winner"]


async def test_a_stream_that_cancels_itself_ends_for_who_reads_it():
    async def chunks():
        raise asyncio.CancelledError
        yield

    pump = StreamPump(chunks())
    with pytest.raises(asyncio.CancelledError):
        await asyncio.wait_for(pump.begin(), 5)
    await pump.close()
