"""Steady mixed traffic through the library for a while, in a process of its own, and what that does to the process.

    python -m benchmarks.soak PORT SECONDS CALLS_PER_SECOND

Prints one line of JSON: how each kind of call ended, and samples of memory, descriptors, tasks and threads. Started by
`benchmarks.load`, which judges. Every call is checked: its answer against its question, or its error against the fault.
"""

from __future__ import annotations

import asyncio
import json
import logging
import random
import sys
import threading
import time
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import aclosing
from pathlib import Path
from typing import Any

from pydantic import BaseModel

from benchmarks.in_flight import memory, question
from SimpleLLMFunc import (
    DeadlineExceeded,
    Message,
    OpenAICompatible,
    RateLimited,
    StreamInterrupted,
    llm_chat,
    llm_function,
    tool,
)

MOST_IN_FLIGHT = 2_000
SAMPLE_SECONDS = 5.0
DRAIN_SECONDS = 30.0


class Ticket(BaseModel):
    token: str
    subject: str
    urgency: int
    tags: list[str]


@tool
def lookup(token: str) -> str:
    """Look a ticket up.

    Args:
        token: its number.
    """
    return f"The ticket <<{token}>> is open."


@tool(name="lookup")
async def lookup_async(token: str) -> str:
    """Look a ticket up.

    Args:
        token: its number.
    """
    await asyncio.sleep(0)
    return f"The ticket <<{token}>> is open."


class Traffic:
    """The kinds of calls; each raises AssertionError, or whatever else, where it does not end as it should."""

    def __init__(self, port: int) -> None:
        def model(options: str) -> OpenAICompatible:
            return OpenAICompatible(
                "soak", base_url=f"http://127.0.0.1:{port}/{options}/v1", api_key="sk-soak", retry_delay=0.01
            )

        async def answer(message: str) -> str:
            """You are the help desk."""
            raise NotImplementedError

        async def ticket(message: str) -> Ticket:
            """You are the help desk. Write a ticket."""
            raise NotImplementedError

        async def chat(history: list[Message], message: str) -> AsyncIterator[tuple[str, list[Message]]]:
            """You are the help desk."""
            raise NotImplementedError

        def answer_sync(message: str) -> str:
            """You are the help desk."""
            raise NotImplementedError

        def function(options: str, func: Any = answer, **more: Any) -> Any:
            return llm_function(llm_interface=model(options), **more)(func)

        def dialogue(options: str) -> Any:
            return llm_chat(llm_interface=model(options), stream=True)(chat)

        self.answer = function("answer=echo,delay=20")
        self.ticket = function("answer=typed,delay=20", ticket)
        self.sync = function("answer=echo,delay=20", answer_sync)
        self.tools = function("answer=tool,delay=10", toolkit=[lookup])
        self.async_tools = function("answer=tool,delay=10", toolkit=[lookup_async])
        self.chat = dialogue("answer=echo,delay=20,pace=2")
        self.growing = function("answer=typed,delay=10", ticket)
        self.limited_once = function("answer=echo,fail=429,once=1")
        self.limited = function("answer=echo,fail=429")
        self.cut_once = function("answer=echo,fail=cut,once=1")
        self.cut_chat = dialogue("answer=echo,fail=cut,delay=10")
        self.slow = function("answer=echo,delay=5000")
        self.too_slow = function("answer=echo,delay=5000", deadline=0.05)
        self.kinds: dict[Callable[[str], Awaitable[None]], int] = {
            self.plain: 20,
            self.typed: 20,
            self.in_thread: 3,
            self.tool_round: 10,
            self.async_tool_round: 5,
            self.streamed: 15,
            self.streamed_values: 7,
            self.tried_again: 5,
            self.refused: 3,
            self.cut_and_tried_again: 3,
            self.interrupted: 4,
            self.cancelled: 4,
            self.out_of_time: 3,
            self.left_early: 4,
        }

    async def plain(self, token: str) -> None:
        assert f"<<{token}>>" in await self.answer(question(token))

    async def typed(self, token: str) -> None:
        assert (await self.ticket(question(token))).token == token

    async def in_thread(self, token: str) -> None:
        assert f"<<{token}>>" in await asyncio.to_thread(self.sync, question(token))

    async def tool_round(self, token: str) -> None:
        assert f"<<{token}>>" in await self.tools(question(token))

    async def async_tool_round(self, token: str) -> None:
        result = await self.async_tools.call(question(token))
        assert f"<<{token}>>" in result.value
        assert [call.function.name for call in result.tool_calls] == ["lookup"]

    async def streamed(self, token: str) -> None:
        pairs = [pair async for pair in self.chat([], question(token))]
        text = "".join(piece for piece, _ in pairs)
        assert f"<<{token}>>" in text
        assert pairs[-1][1][-1]["content"] == text

    async def streamed_values(self, token: str) -> None:
        values = [value async for value in self.growing.stream(question(token))]
        assert len(values) > 1
        assert values[-1].token == token

    async def tried_again(self, token: str) -> None:
        result = await self.limited_once.call(question(token))
        assert f"<<{token}>>" in result.value
        assert result.tries == 2

    async def refused(self, token: str) -> None:
        try:
            await self.limited(question(token))
        except RateLimited:
            return
        raise AssertionError("a refused call gave an answer")

    async def cut_and_tried_again(self, token: str) -> None:
        assert f"<<{token}>>" in await self.cut_once(question(token))

    async def interrupted(self, token: str) -> None:
        text = ""
        try:
            async for piece, _ in self.cut_chat([], question(token)):
                text += piece
        except StreamInterrupted as error:
            if text and error.partial == text:
                return
            raise AssertionError(f"{error.partial!r} is not what had arrived: {text!r}") from error
        raise AssertionError("a cut stream gave an answer")

    async def cancelled(self, token: str) -> None:
        task = asyncio.ensure_future(self.slow(question(token)))
        await asyncio.sleep(random.uniform(0, 0.15))
        task.cancel()
        try:
            await task
        except asyncio.CancelledError:
            return
        raise AssertionError("a cancelled call gave an answer")

    async def out_of_time(self, token: str) -> None:
        try:
            await self.too_slow(question(token))
        except DeadlineExceeded:
            return
        raise AssertionError("a call beyond its deadline gave an answer")

    async def left_early(self, token: str) -> None:
        async with aclosing(self.chat([], question(token))) as pairs:
            async for piece, _ in pairs:
                assert piece
                break


def descriptors() -> int:
    """Return how many are open, 0 where nobody can tell."""
    for place in ("/proc/self/fd", "/dev/fd"):
        if Path(place).is_dir():
            return len(list(Path(place).iterdir()))
    return 0


def sample(begun: float, in_flight: int, calls: int) -> dict[str, Any]:
    return {
        "second": round(time.monotonic() - begun, 1),
        "rss_mb": round(memory("VmRSS"), 2),
        "descriptors": descriptors(),
        "tasks": len(asyncio.all_tasks()),
        "threads": threading.active_count(),
        "in_flight": in_flight,
        "calls": calls,
    }


async def soak(port: int, seconds: float, rate: float) -> dict[str, Any]:
    """Send `rate` calls per second for so many seconds, and return what was seen."""
    traffic = Traffic(port)
    names, weights = list(traffic.kinds), list(traffic.kinds.values())
    ended: Counter[str] = Counter()
    wrong: Counter[str] = Counter()
    running: set[asyncio.Task[None]] = set()
    numbers = iter(range(10**9))

    async def one(kind: Callable[[str], Awaitable[None]]) -> None:
        name = getattr(kind, "__name__", "call")
        try:
            await kind(f"ticket-{next(numbers):08}")
        except Exception as error:  # noqa: BLE001 - counted, whatever it is
            wrong[f"{name}: {type(error).__name__}: {error}"[:300]] += 1
        else:
            ended[name] += 1

    before = {"descriptors": descriptors(), "tasks": len(asyncio.all_tasks()), "threads": threading.active_count()}
    begun = time.monotonic()
    samples: list[dict[str, Any]] = []
    every = min(SAMPLE_SECONDS, seconds / 20)
    sent, skipped = 0, 0
    while (now := time.monotonic() - begun) < seconds:
        for _ in range(int(now * rate) - sent - skipped):
            if len(running) >= MOST_IN_FLIGHT:
                skipped += 1  # the machine is too busy: nobody waits in a queue of our own
                continue
            sent += 1
            task = asyncio.create_task(one(random.choices(names, weights)[0]))
            running.add(task)
            task.add_done_callback(running.discard)
        if now >= len(samples) * every:
            samples.append(sample(begun, len(running), sent))
            if len(samples) % 12 == 1:
                print(json.dumps(samples[-1]), file=sys.stderr, flush=True)
        await asyncio.sleep(0.05)
    deadline = time.monotonic() + DRAIN_SECONDS
    while running and time.monotonic() < deadline:
        await asyncio.sleep(0.05)
    left = len(running)
    await asyncio.sleep(0.5)
    return {
        "seconds": seconds,
        "rate": rate,
        "calls": sent,
        "skipped": skipped,
        "ended": dict(sorted(ended.items())),
        "wrong": wrong.most_common(10),
        "wrong_count": sum(wrong.values()),
        "unfinished": left,
        "before": before,
        "after": sample(begun, left, sent),
        "samples": samples,
    }


if __name__ == "__main__":
    logging.getLogger("SimpleLLMFunc").setLevel(logging.CRITICAL)
    print(json.dumps(asyncio.run(soak(int(sys.argv[1]), float(sys.argv[2]), float(sys.argv[3])))))
