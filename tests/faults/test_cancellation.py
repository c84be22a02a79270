"""Row 33: a cancelled call ends within 100 ms, in whatever phase it is, and leaves nothing behind."""

from __future__ import annotations

import asyncio
import itertools
import threading
from typing import Annotated

import pytest
from pydantic import AfterValidator

from SimpleLLMFunc import APIKeyPool, OpenAICompatible, Tool
from tests.faults.replies import call, good, says, sends, status
from tests.faults.runner import KEY, connections_taken, leftovers, sockets, views_of, warm_up
from tests.faults.server import FaultServer
from tests.faults.stream_faults import breaks_after
from tests.support.starved import starved

LATEST = 0.1
"""Seconds that a cancellation may take. A machine that is busy with other things makes any of them late: late is what is
late three times."""

CALLS_TOOL = says(None, calls=[call("work", {})], finish_reason="tool_calls")


class Stage:
    """A server with one play, a model for it, and what the phases need."""

    def __init__(self, server, **options):
        self.pool = APIKeyPool([KEY])
        self.entered = asyncio.Event()
        self.release = threading.Event()
        scheme = options.pop("scheme", "http")
        address = server.address("play", scheme=scheme)
        self.llm = OpenAICompatible("m", base_url=address, api_key_pool=self.pool, retry_delay=0.01, **options)
        self.server = server
        self.loop = asyncio.get_running_loop()

    async def async_work(self) -> str:
        """Work."""
        self.entered.set()
        await asyncio.sleep(30)
        return "done"

    def sync_work(self) -> str:
        """Work."""
        self.loop.call_soon_threadsafe(self.entered.set)
        self.release.wait(30)
        return "done"

    def slow_check(self, value: int) -> int:
        self.loop.call_soon_threadsafe(self.entered.set)
        self.release.wait(30)
        return value

    async def requested(self):
        await self.server.until(lambda: self.server.busy > 0 or bool(self.server.requests("play")))


async def in_queue(stage, ask):
    # The bucket is empty after the first call.
    await stage.llm.chat([{"role": "user", "content": "x"}])
    task = asyncio.create_task(ask())
    await asyncio.sleep(0.02)
    return task


async def when_connected(stage, ask):
    task = asyncio.create_task(ask())
    await stage.server.until(lambda: stage.server.connections > 0)
    return task


async def when_asked(stage, ask):
    task = asyncio.create_task(ask())
    await stage.requested()
    await asyncio.sleep(0.02)
    return task


async def when_entered(stage, ask):
    task = asyncio.create_task(ask())
    await stage.entered.wait()
    return task


PHASES = {
    "before the request": ([good], in_queue, {"rate_limit_capacity": 1, "rate_limit_refill_rate": 0.001}, None),
    # Nobody answers the handshake: the connection is not yet one.
    "connecting": ([], when_connected, {"scheme": "https"}, None),
    "headers": ([sends(end="hold")], when_asked, {}, None),
    "mid-stream": ([breaks_after(2, "hold")], when_asked, {}, None),
    "backoff": ([status(429, retry_after=30)], when_asked, {}, None),
    "sync tool": ([CALLS_TOOL, good], when_entered, {}, "sync_work"),
    "async tool": ([CALLS_TOOL, good], when_entered, {}, "async_work"),
}


def asked_in(stage, view, tool):
    options = {} if tool is None else {"toolkit": [Tool(func=getattr(stage, tool), name="work")]}
    return views_of(stage.llm, **options)[view]


async def cancelled(task):
    """Cancel, and return the seconds until it has ended; those in which the machine did not let this thread run left out."""
    loop = asyncio.get_running_loop()
    assert not task.done()
    started, before = loop.time(), starved()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    return loop.time() - started - (starved() - before)


async def in_time(once):
    """Do it up to three times; return the seconds that the cancellation took, of the first time it was not late."""
    await warm_up()
    for _ in range(3):
        tasks, before = asyncio.all_tasks(), sockets()
        seconds = await once()
        assert await leftovers(tasks, before) == []
        if seconds < LATEST:
            break
    return seconds


@pytest.mark.parametrize("view", ["function", "values", "pieces"])
@pytest.mark.parametrize("phase", PHASES)
async def test_a_cancelled_call_leaves_nothing(phase, view):
    acts, begin, options, tool = PHASES[phase]

    async def once():
        async with FaultServer({"play": acts}, is_mute=phase == "connecting") as server:
            stage = Stage(server, **options)
            task = await begin(stage, asked_in(stage, view, tool))
            seconds = await cancelled(task)
            stage.release.set()
            assert stage.pool.tasks == 0
            assert connections_taken() == 0
            if phase in {"headers", "mid-stream", "connecting"}:
                assert await server.until(lambda: server.open_connections == 0)
            return seconds

    assert await in_time(once) < LATEST


async def test_a_call_cancelled_while_its_answer_is_read_leaves_nothing():
    async def once():
        async with FaultServer({"play": [says('{"value": 7}' + " " * 300_000)]}) as server:
            stage = Stage(server)
            checked = Annotated[int, AfterValidator(stage.slow_check)]
            task = asyncio.create_task(views_of(stage.llm, checked)["function"]())
            await stage.entered.wait()
            seconds = await cancelled(task)
            stage.release.set()
            assert stage.pool.tasks == 0
            return seconds

    assert await in_time(once) < LATEST


# --- at any instant --------------------------------------------------------------------------------------

INSTANTS = 200
AT_ONCE = 10


async def test_200_instants():
    """A run of many phases is cancelled at 200 instants, from before its beginning to after its end."""
    assert await in_time(_200_instants) < LATEST


async def _200_instants():

    async def answer(exchange):
        await exchange.pause(0.005)
        await says("an answer in pieces")(exchange)

    both = says(None, calls=[call("wait", {}, 0), call("sleep", {}, 1)], finish_reason="tool_calls")

    async def act(exchange):
        # Connections carry no mark of the run they belong to; the messages tell how far it is.
        messages = exchange.request.body["messages"]
        if messages[-1]["role"] == "tool":
            await answer(exchange)
        elif next(counter) % 2:
            await status(503)(exchange)
        else:
            await both(exchange)

    async def sleep() -> str:
        """Sleep."""
        await asyncio.sleep(0.005)
        return "slept"

    def wait() -> str:
        """Wait."""
        threading.Event().wait(0.005)
        return "waited"

    counter = itertools.count()
    ends = {"cancelled": 0, "done": 0}
    taken = []
    async with FaultServer({"play": [act]}) as server:
        stage = Stage(server, max_retries=5)
        room = asyncio.Semaphore(AT_ONCE)
        # Built once: a run that waits for ten others to decorate a function would be late by their work.
        views = views_of(stage.llm, toolkit=[sleep, wait])

        async def one(number):
            async with room:
                view = views[("function", "values", "pieces")[number % 3]]
                task = asyncio.ensure_future(view())
                await asyncio.wait({task}, timeout=number * 0.0003)
                if task.done():
                    task.result()
                    ends["done"] += 1
                else:
                    taken.append(await cancelled(task))
                    ends["cancelled"] += 1

        await asyncio.gather(*(one(number) for number in range(INSTANTS)))
        assert stage.pool.tasks == 0
        assert connections_taken() == 0
        assert await server.until(lambda: server.busy == 0)
    assert ends["cancelled"] > 10, ends
    return max(taken)
