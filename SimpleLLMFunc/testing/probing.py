"""Helpers of `contract`: ask whole or streamed, measure, wait for tasks to end."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from contextlib import aclosing
from typing import Any

from SimpleLLMFunc.interface.llm_interface import LLM_Interface
from SimpleLLMFunc.testing.reply_chunks import assembled
from SimpleLLMFunc.testing.scenarios import Request
from SimpleLLMFunc.type import ChatCompletion


async def reply_to(llm: LLM_Interface, asked: Request, is_streamed: bool, **more: Any) -> ChatCompletion:
    """Return the reply of `llm`, asked whole or as a stream."""
    if not is_streamed:
        return await llm.chat(asked.messages, **more, **asked.params)
    async with aclosing(llm.chat_stream(asked.messages, **more, **asked.params)) as stream:
        return assembled([chunk async for chunk in stream])


async def least(measured: Callable[[], Awaitable[float]], *, enough: float) -> float:
    """Return the least of at most three measurements; one below `enough` is enough.

    A busy machine slows single measurements.
    """
    least = await measured()
    for _ in range(2):
        if least < enough:
            break
        least = min(least, await measured())
    return least


async def no_other_task() -> None:
    """Wait until this task is the only one, for at most a second."""
    until = time.monotonic() + 1.0
    while others := asyncio.all_tasks() - {asyncio.current_task()}:
        assert time.monotonic() < until, f"left behind: {others}"
        await asyncio.sleep(0.01)
