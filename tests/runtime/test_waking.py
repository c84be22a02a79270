"""A waiter: the task that waits goes on in the step that wakes it, and is cancelled like any other."""

import asyncio
import contextvars

import pytest

from SimpleLLMFunc import OpenAICompatible
from SimpleLLMFunc.runtime.waking import Waiter
from tests.support.server import LoopbackServer, text_answer

NAME = contextvars.ContextVar("NAME", default="nobody")


async def test_the_task_goes_on_in_the_step_that_wakes_it():
    loop, order = asyncio.get_running_loop(), []
    waiter = Waiter(loop)

    async def waits():
        NAME.set("waits")
        await waiter
        order.append(NAME.get())

    def wake():
        order.append("before")
        loop.call_soon(order.append, "next round")
        waiter.wake()
        order.append("after")

    task = asyncio.create_task(waits())
    await asyncio.sleep(0)
    loop.call_soon(wake)
    await task
    assert order == ["before", "waits", "after", "next round"]


async def test_from_within_a_task_it_goes_on_in_the_next_round():
    waiter, order = Waiter(asyncio.get_running_loop()), []

    async def waits():
        await waiter
        order.append("waits")

    task = asyncio.create_task(waits())
    await asyncio.sleep(0)
    waiter.wake()
    waiter.wake()
    order.append("wakes")
    await task
    assert order == ["wakes", "waits"]


async def test_what_is_done_before_it_is_awaited_is_not_waited_for():
    waiter = Waiter(asyncio.get_running_loop())
    waiter.wake()
    await waiter
    await waiter


async def test_where_the_context_of_the_task_is_in_use_it_goes_on_in_the_next_round():
    loop, order = asyncio.get_running_loop(), []
    waiter, context = Waiter(loop), contextvars.copy_context()

    async def waits():
        await waiter
        order.append("waits")

    task = loop.create_task(waits(), context=context)
    await asyncio.sleep(0)
    loop.call_soon(context.run, lambda: (waiter.wake(), order.append("wakes")))
    await task
    assert order == ["wakes", "waits"]


async def test_a_task_that_waits_can_be_cancelled():
    waiter = Waiter(asyncio.get_running_loop())

    async def waits():
        try:
            await waiter
        finally:
            waiter.wake()  # too late

    task = asyncio.create_task(waits())
    await asyncio.sleep(0)
    task.cancel("enough")
    with pytest.raises(asyncio.CancelledError, match="enough"):
        await task
    with pytest.raises(asyncio.CancelledError):
        await waiter


async def test_a_task_that_was_woken_is_cancelled_where_it_waits_next():
    waiter, second = (Waiter(asyncio.get_running_loop()) for _ in range(2))

    async def waits():
        await waiter
        await second

    task = asyncio.create_task(waits())
    await asyncio.sleep(0)
    waiter.wake()
    assert not waiter.cancel()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


async def test_a_time_limit_ends_the_waiting():
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0.01):
            await Waiter(asyncio.get_running_loop())


async def test_it_is_a_future_to_asyncio_and_to_its_own_slow_task():
    loop = asyncio.get_running_loop()
    assert asyncio.isfuture(Waiter(loop))
    waiter = Waiter(loop)

    async def waits():
        await waiter
        return "done"

    loop.call_later(0.01, waiter.wake)
    slow_task = vars(asyncio.tasks)["_PyTask"]  # the one without C, as on PyPy
    assert await slow_task(waits(), loop=loop) == "done"


async def test_what_a_task_raises_does_not_reach_who_wakes_it():
    loop = asyncio.get_running_loop()
    waiter = Waiter(loop)

    async def waits():
        await waiter
        raise KeyError("mine")

    task = asyncio.create_task(waits())
    await asyncio.sleep(0)
    loop.call_soon(waiter.wake)
    with pytest.raises(KeyError, match="mine"):
        await task


async def test_a_task_may_ask_again_on_the_same_connection_in_the_step_that_brought_its_answer():
    """The rest of that step must not take the next request's reply for what it has been dealing with."""
    async with LoopbackServer(text_answer("yes")) as server:
        model = OpenAICompatible("m", base_url=server.base_url, api_key="sk-test", max_retries=0)
        for _ in range(50):
            assert (await model.chat([{"role": "user", "content": "x"}])).text == "yes"
        assert len(server.requests) == 50
        assert server.connections == 1
