"""What the suite of `contract` does time and again: ask either way, measure, see that nothing is left."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from contextlib import aclosing
from typing import Any

from SimpleLLMFunc.interface.llm_interface import LLM_Interface
from SimpleLLMFunc.interface.wires import ReplyAssembler
from SimpleLLMFunc.testing.scenarios import Request
from SimpleLLMFunc.type import ChatCompletion


async def reply_to(llm: LLM_Interface, asked: Request, is_streamed: bool, **more: Any) -> ChatCompletion:
    """Ask `llm`, for a whole reply or for a stream, which is put together."""
    if not is_streamed:
        return await llm.chat(asked.messages, **more, **asked.params)
    assembler = ReplyAssembler()
    async with aclosing(llm.chat_stream(asked.messages, **more, **asked.params)) as stream:
        async for chunk in stream:
            assembler.add(chunk)
    return assembler.completion()


async def least(measured: Callable[[], Awaitable[float]], *, enough: float) -> float:
    """Return the least of at most three measures; one below `enough` will do.

    A machine that is busy with something else is not the provider's fault.
    """
    least = await measured()
    for _ in range(2):
        if least < enough:
            break
        least = min(least, await measured())
    return least


async def no_other_task() -> None:
    """Wait until no task but this one is left, at most a second."""
    until = time.monotonic() + 1.0
    while others := asyncio.all_tasks() - {asyncio.current_task()}:
        assert time.monotonic() < until, f"left behind: {others}"
        await asyncio.sleep(0.01)
