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
    """One request among several for the same answer, in its own task: a stream begins, goes on and ends there.

    Attributes:
        answered: gives the whole reply; of a stream None, when it has shown something of its answer, or its end.
        member: the model it asks.
        is_second: it was started because another one is late.
    """

    def __init__(self, asked: Question, member: LLM_Interface, *, is_stream: bool, is_second: bool = False) -> None:
        self.member = member
        self.is_second = is_second
        self.answered: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        self.started = time.monotonic()
        self._count: Callable[[], int] = int
        self._begun: list[ChatCompletionChunk] = []
        self._further: asyncio.Queue[ChatCompletionChunk | BaseException | None] = asyncio.Queue(maxsize=1)
        self._task = asyncio.create_task(self._ask(asked, is_stream=is_stream))
        self._task.add_done_callback(lambda _: self.answered.cancel())  # does nothing where it is known

    @property
    def seconds(self) -> float:
        """Since it left."""
        return time.monotonic() - self.started

    @property
    def tries(self) -> int:
        """HTTP requests so far, as far as the model tells."""
        return self._count()

    async def chunks(self) -> AsyncGenerator[ChatCompletionChunk, None]:
        """Yield all chunks of a stream, from the first."""
        for chunk in self._begun:
            yield chunk
        while (further := await self._further.get()) is not None:
            if isinstance(further, BaseException):
                raise further
            yield further

    def stop(self) -> None:
        """Begin to end it."""
        self._task.cancel()

    async def cancel(self) -> None:
        """End it and wait until nothing of it is left."""
        self.stop()
        await asyncio.gather(self._task, self.answered, return_exceptions=True)

    async def _ask(self, asked: Question, *, is_stream: bool) -> None:
        end: BaseException | None = None
        try:
            with counting_tries() as tries:
                self._count = lambda: tries.count
                if is_stream:
                    await self._read(asked)
                else:
                    self.answered.set_result(await asked.chat(self.member))
        except asyncio.CancelledError as error:
            task = asyncio.current_task()
            if not self.answered.done() or (task is not None and task.cancelling()):
                raise
            end = error  # the stream cancelled itself: its reader must not wait for more
        except BaseException as error:  # noqa: BLE001 - raised again where the answer is awaited
            end = error
            if not self.answered.done():
                self.answered.set_exception(error)
        await self._further.put(end)
        if not self.answered.done():
            self.answered.set_result(None)  # the stream was empty

    async def _read(self, asked: Question) -> None:
        async with aclosing(asked.stream(self.member)) as source:
            async for chunk in source:
                if self.answered.done():
                    await self._further.put(chunk)
                    continue
                self._begun.append(chunk)
                if chunk.text or chunk.tool_calls or chunk.finish_reason:
                    self.answered.set_result(None)
