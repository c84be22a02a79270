"""Wherever a call waits, it ends by its deadline and half a second: the rest of what the matrix plays.

Queues for rates and tokens, an open circuit, a name that is not found, a connection that is not taken, tools of every
kind, a cache that somebody else holds, models one after another and at once.
"""

from __future__ import annotations

import asyncio
import contextlib
import socket
import sqlite3
import threading
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from unittest import mock

import pytest

from SimpleLLMFunc import CachedLLM, FallbackLLM, OpenAICompatible
from SimpleLLMFunc.errors import DeadlineExceeded, SimpleLLMFuncError
from tests.faults.replies import call, completion, good, replies, says, sends, status
from tests.faults.runner import GRACE, leftovers, sockets, views_of, warm_up, without_proxies
from tests.faults.server import FaultServer
from tests.support.functions import function_of

HELLO = [{"role": "user", "content": "x"}]
SECONDS = 0.4
CALLS_TOOL = says(None, calls=[call("work", {})], finish_reason="tool_calls")


def model(address, **options):
    return OpenAICompatible("m", base_url=address, **{"api_key": "sk-test-12345678", "retry_delay": 0.01, **options})


@asynccontextmanager
async def served(*acts, **options) -> AsyncIterator[OpenAICompatible]:
    async with FaultServer({"play": acts or [good]}) as server:
        yield model(server.address("play"), **options)


@asynccontextmanager
async def rates(tmp_path):
    async with served(rate_limit_capacity=1, rate_limit_refill_rate=0.001) as llm:
        await llm.chat(HELLO)
        yield llm, {}


@asynccontextmanager
async def tokens(tmp_path):
    async with served(status(400), tokens_per_minute=100) as llm:
        with contextlib.suppress(SimpleLLMFuncError):
            await llm.chat([{"role": "user", "content": "x" * 380}])
        yield llm, {}


@asynccontextmanager
async def told_limit(tmp_path):
    """The service says that nothing is left until an hour from now."""
    told = {"x_ratelimit_limit_requests": 10, "x_ratelimit_remaining_requests": 0, "x_ratelimit_reset_requests": "1h"}
    async with served(replies(completion("x"), **told)) as llm:
        await llm.chat(HELLO)
        yield llm, {}


@asynccontextmanager
async def circuit(tmp_path):
    """Others have found the service down; this call queues behind the one that looks whether it still is."""
    async with served(status(503, retry_after_ms=50), sends(end="hold")) as llm:
        probe = asyncio.create_task(llm.chat(HELLO, deadline=30))
        # A function has a moment of its own until it is in the queue, so nobody may give up before.
        async with asyncio.timeout(5):
            while llm._circuit._error is None or llm._circuit._probe_since is None:
                await asyncio.sleep(0.005)
        # Until a second has gone by, an answer that has not come is one that may still be a refusal.
        yield llm, {}
        probe.cancel()
        await asyncio.gather(probe, return_exceptions=True)


@asynccontextmanager
async def look_up(tmp_path):
    real, release = socket.getaddrinfo, threading.Event()

    def hangs(host, *args, **options):
        if host == "host.invalid":
            release.wait(20)
        return real(host, *args, **options)

    with mock.patch("socket.getaddrinfo", hangs):
        yield model("http://host.invalid/v1"), {}
    release.set()


@asynccontextmanager
async def connecting(tmp_path):
    """A queue for connections that is full: the system answers no further one."""
    with socket.socket() as listening, contextlib.ExitStack() as waiting:
        listening.bind(("127.0.0.1", 0))
        listening.listen(0)
        for _ in range(3):
            one = waiting.enter_context(socket.socket())
            one.setblocking(False)
            one.connect_ex(listening.getsockname())
        yield model(f"http://127.0.0.1:{listening.getsockname()[1]}/v1"), {}


def with_tool(make):
    @asynccontextmanager
    async def place(tmp_path):
        release = threading.Event()
        async with served(CALLS_TOOL) as llm:
            yield llm, {"toolkit": [make(release)]}
        release.set()
        await asyncio.sleep(0)

    place.__name__ = make.__name__
    return place


@with_tool
def sync_tool(release):
    def work() -> str:
        """Work."""
        release.wait(20)
        return "done"

    return work


@with_tool
def async_tool(release):
    async def work() -> str:
        """Work."""
        await asyncio.sleep(20)
        return "done"

    return work


@with_tool
def stubborn_tool(release):
    async def work() -> str:
        """Work."""
        while not release.is_set():
            with contextlib.suppress(asyncio.CancelledError):
                await asyncio.sleep(0.01)
        return "done"

    return work


@with_tool
def asking_tool(release):
    """A tool that asks a model that does not answer."""

    def work() -> str:
        """Work."""
        with socket.socket() as mute:
            mute.bind(("127.0.0.1", 0))
            mute.listen()

            silent = model(f"http://127.0.0.1:{mute.getsockname()[1]}/v1")
            return function_of(silent)("x")

    return work


@asynccontextmanager
async def cache(tmp_path):
    async with served() as llm:
        cached = CachedLLM(llm, tmp_path / "answers.sqlite")
        await cached.chat(HELLO)
        cached.close()
        other = sqlite3.connect(tmp_path / "answers.sqlite", isolation_level=None)
        other.execute("BEGIN EXCLUSIVE")
        yield cached, {}
        other.execute("ROLLBACK")
        other.close()
        cached.close()


@asynccontextmanager
async def same_question(tmp_path):
    """Another call asks the same, and has no answer yet."""
    async with served(sends(end="hold")) as llm:
        cached = CachedLLM(llm, tmp_path / "answers.sqlite")
        yield cached, {}
        cached.close()


@asynccontextmanager
async def fallback(tmp_path):
    async with served(sends(end="hold")) as first, served(sends(end="hold"), timeout=0.1) as second:
        yield FallbackLLM(second, first), {}


@asynccontextmanager
async def hedge(tmp_path):
    async with served(sends(end="hold")) as first, served(sends(end="hold")) as second:
        yield FallbackLLM(first, second, hedge_after=0.05), {}


PLACES = [
    rates, tokens, told_limit, circuit, look_up, connecting, sync_tool, async_tool, stubborn_tool, asking_tool, cache,
    same_question, fallback, hedge,
]  # fmt: skip


@pytest.mark.parametrize("place", PLACES, ids=lambda place: place.__name__)
async def test_a_call_ends_by_its_deadline_wherever_it_waits(place, tmp_path):
    await warm_up()
    tasks, before = asyncio.all_tasks(), sockets()
    with without_proxies():
        async with place(tmp_path) as (llm, options):
            # A machine that is busy with other things makes any call late: late is what is late three times.
            views = views_of(llm, deadline=SECONDS, **options)
            for _ in range(3):
                seconds = await asyncio.gather(*(timed(views[name]) for name in ("function", "def", "values")))
                if max(seconds) < SECONDS + GRACE:
                    break
            assert max(seconds) < SECONDS + GRACE
            assert min(seconds) >= SECONDS
    assert await leftovers(tasks, before) == []


async def timed(view):
    started = time.monotonic()
    with pytest.raises(DeadlineExceeded, match=r"deadline of 0\.4 s"):
        async with asyncio.timeout(15):
            await view()
    return time.monotonic() - started


def test_a_name_that_is_not_found_in_time_does_not_hold_up_the_end_of_the_loop():
    release = threading.Event()

    async def ask():
        with pytest.raises(DeadlineExceeded):
            await model("http://host.invalid/v1").chat(HELLO, deadline=0.1)

    with without_proxies(), mock.patch("socket.getaddrinfo", side_effect=lambda *_, **__: release.wait(20)):
        started = time.monotonic()
        asyncio.run(ask())
        assert time.monotonic() - started < 5
    release.set()
