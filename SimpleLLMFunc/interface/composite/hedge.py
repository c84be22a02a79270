"""A second request when the first one is late: when it leaves, and the requests themselves."""

from __future__ import annotations

import asyncio
import math
import time
from collections import deque
from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing
from typing import Any, Literal, TypeAlias

from SimpleLLMFunc.errors import ConfigError
from SimpleLLMFunc.interface.composite.question import Question
from SimpleLLMFunc.interface.llm_interface import LLM_Interface
from SimpleLLMFunc.interface.spending import counting_tries
from SimpleLLMFunc.type import ChatCompletionChunk

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
    """One request among several for the same answer, in its own task.

    Attributes:
        task: gives the reply; of a stream, None when it has begun.
        member: the model it asks.
        is_second: it was started because another one is late.
        pump: reads the stream; None where a whole reply is asked for.
    """

    def __init__(self, asked: Question, member: LLM_Interface, *, is_stream: bool, is_second: bool = False) -> None:
        self.member = member
        self.is_second = is_second
        self.pump = StreamPump(asked.stream(member)) if is_stream else None
        self.started = time.monotonic()
        self._count: Callable[[], int] = int
        self.task = asyncio.create_task(self._answer(asked))

    @property
    def seconds(self) -> float:
        """Since it left."""
        return time.monotonic() - self.started

    @property
    def tries(self) -> int:
        """HTTP requests so far, as far as the model tells."""
        return self._count()

    async def _answer(self, asked: Question) -> Any:
        with counting_tries() as tries:
            self._count = lambda: tries.count
            return await (asked.chat(self.member) if self.pump is None else self.pump.begin())

    async def cancel(self) -> None:
        """End it and wait until nothing of it is left."""
        self.task.cancel()
        await asyncio.gather(self.task, return_exceptions=True)
        if self.pump is not None:
            await self.pump.close()


class StreamPump:
    """Reads a stream in one task, so that it begins, goes on and ends there.

    Args:
        source: the stream; closed when the pump is.
    """

    def __init__(self, source: AsyncGenerator[ChatCompletionChunk, None]) -> None:
        self._source = source
        self._queue: asyncio.Queue[ChatCompletionChunk | BaseException | None] = asyncio.Queue(maxsize=1)
        self._task: asyncio.Task[None] | None = None
        self._begun: list[ChatCompletionChunk] = []

    async def begin(self) -> None:
        """Return when the stream has shown something of its answer, or its end.

        Raises:
            BaseException: what the stream raised before.
        """
        # Started here, in the racer's task, so that the requests are counted there.
        self._task = asyncio.create_task(self._run())
        while (chunk := await self._next()) is not None:
            self._begun.append(chunk)
            if chunk.text or chunk.tool_calls or chunk.finish_reason:
                break

    async def chunks(self) -> AsyncGenerator[ChatCompletionChunk, None]:
        """Yield all chunks, from the first."""
        for chunk in self._begun:
            yield chunk
        while (further := await self._next()) is not None:
            yield further

    async def close(self) -> None:
        """Close the stream and wait until nothing of it is left."""
        if self._task is None:
            await self._source.aclose()
            return
        self._task.cancel()
        await asyncio.gather(self._task, return_exceptions=True)

    async def _next(self) -> ChatCompletionChunk | None:
        item = await self._queue.get()
        if isinstance(item, BaseException):
            raise item
        if item is None:
            self._queue.put_nowait(None)  # a further call gets the same
        return item

    async def _run(self) -> None:
        end: BaseException | None = None
        try:
            async with aclosing(self._source) as source:
                async for chunk in source:
                    await self._queue.put(chunk)
        except asyncio.CancelledError as error:
            task = asyncio.current_task()
            if task is not None and task.cancelling():
                raise
            end = error  # the stream cancelled itself: its reader must not wait for more
        except Exception as error:  # noqa: BLE001 - raised again by `_next`, where the chunks are read
            end = error
        await self._queue.put(end)
