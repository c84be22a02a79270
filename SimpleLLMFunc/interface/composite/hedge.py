"""A second request when the first one is late: when it leaves, and how each of the two is read."""

from __future__ import annotations

import asyncio
import math
import time
from collections import deque
from collections.abc import AsyncGenerator
from typing import Literal, TypeAlias

from SimpleLLMFunc.errors import ConfigError
from SimpleLLMFunc.interface.composite.question import Question
from SimpleLLMFunc.interface.llm_interface import LLM_Interface
from SimpleLLMFunc.interface.spending import Tries, counting_tries
from SimpleLLMFunc.type import ChatCompletion, ChatCompletionChunk

HedgeAfter: TypeAlias = float | Literal["p95"] | None
"""Seconds, or "p95": as long as 95 of 100 answers have taken; None never asks twice."""

_REMEMBERED = 200
_FEWEST = 20
"""Answers that must be known before "p95" means anything; until then nothing is asked twice."""


class HedgeTimer:
    """Knows after how many seconds a second request leaves.

    Raises:
        ConfigError: neither seconds above 0 nor "p95".
    """

    def __init__(self, after: HedgeAfter) -> None:
        given: object = after
        is_seconds = isinstance(given, (int, float)) and not isinstance(given, bool) and 0 < given < math.inf
        if given is not None and given != "p95" and not is_seconds:
            raise ConfigError(f'hedge_after is {after!r}; it must be seconds above 0, or "p95", or None.')
        self.after: HedgeAfter = after
        self._taken: deque[float] = deque(maxlen=_REMEMBERED)

    def note(self, seconds: float) -> None:
        """Take in how long an answer took; of one that was not waited for, how long it had taken by then."""
        self._taken.append(seconds)

    def delay(self) -> float | None:
        """Return the seconds after which a second request leaves, None where none does."""
        if self.after != "p95":
            return self.after
        taken = sorted(self._taken)
        return taken[math.ceil(0.95 * len(taken)) - 1] if len(taken) >= _FEWEST else None


class Racer:
    """One request among several for the same answer; its task ends when the answer is there, or a stream has begun.

    Attributes:
        member: the model it asks.
        is_second: it was started because another one is late.
        reply: the whole answer; None for a stream.
        task: reads it; its exception is what went wrong.
    """

    def __init__(self, asked: Question, member: LLM_Interface, *, is_stream: bool, is_second: bool) -> None:
        self.member = member
        self.is_second = is_second
        self.reply: ChatCompletion | None = None
        self._started = time.monotonic()
        self._tries = Tries()
        self._stream = asked.stream(member) if is_stream else None
        self._begun: list[ChatCompletionChunk] = []
        self.task = asyncio.create_task(self._run(asked))

    @property
    def seconds(self) -> float:
        """Since it left."""
        return time.monotonic() - self._started

    @property
    def tries(self) -> int:
        """HTTP requests so far, as far as the model tells."""
        return self._tries.count

    async def _run(self, asked: Question) -> None:
        with counting_tries() as self._tries:
            if self._stream is None:
                self.reply = await asked.chat(self.member)
                return
            async for chunk in self._stream:
                self._begun.append(chunk)
                thinks = any(choice.delta.reasoning_content for choice in chunk.choices)
                if thinks or chunk.text or chunk.tool_calls or chunk.finish_reason:
                    return

    async def chunks(self) -> AsyncGenerator[ChatCompletionChunk, None]:
        """Yield all chunks of a stream, from the first."""
        assert self._stream is not None, "a stream was asked for"
        for chunk in self._begun:
            yield chunk
        async for chunk in self._stream:
            yield chunk

    async def cancel(self) -> None:
        """End it and wait until nothing of it is left."""
        self.task.cancel()
        await asyncio.gather(self.task, return_exceptions=True)
        if self._stream is not None:
            await self._stream.aclose()
