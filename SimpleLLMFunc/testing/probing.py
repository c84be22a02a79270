"""Helpers of `contract`: a tool and a form, asked for whole or streamed; measuring; waiting for tasks to end."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Sequence
from contextlib import aclosing
from typing import Any

from SimpleLLMFunc.interface.llm_interface import LLM_Interface
from SimpleLLMFunc.interface.wires import ReplyAssembler
from SimpleLLMFunc.type import ChatCompletion, Message

_SCHEMA = {
    "type": "object",
    "properties": {"city": {"type": "string", "maxLength": 20}, "days": {"type": "integer"}},
    "required": ["city", "days"],
    "additionalProperties": False,
}
FILL_FORMAT = {"type": "json_schema", "json_schema": {"name": "value", "schema": _SCHEMA, "strict": True}}
WEATHER_TOOL = {
    "type": "function",
    "function": {"name": "weather", "description": "Tell the weather.", "parameters": _SCHEMA},
}


async def reply_to(llm: LLM_Interface, messages: Sequence[Message], is_streamed: bool, **asked: Any) -> ChatCompletion:
    """Return the reply of `llm`, asked whole or as a stream."""
    if not is_streamed:
        return await llm.chat(messages, **asked)
    async with aclosing(llm.chat_stream(messages, **asked)) as stream:
        return ReplyAssembler([chunk async for chunk in stream]).completion()


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
