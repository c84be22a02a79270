"""A second request when the first one is late: when it leaves, and which of the two counts."""

from __future__ import annotations

import asyncio
import math
import time
from collections import deque
from collections.abc import AsyncGenerator, Callable, Coroutine
from contextlib import aclosing
from typing import Any, Generic, Literal, TypeAlias, TypeVar

from SimpleLLMFunc.errors import ConfigError
from SimpleLLMFunc.interface.llm_interface import LLM_Interface
from SimpleLLMFunc.interface.spending import counting_tries
from SimpleLLMFunc.type import ChatCompletionChunk

T = TypeVar("T")

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


class Racer(Generic[T]):
    """One request among several for the same answer, in its own task.

    Attributes:
        task: gives what makes it the winner.
        member: the model it asks.
        is_second: it was started because another one is late.
    """

    def __init__(
        self,
        member: LLM_Interface,
        work: Callable[[], Coroutine[Any, Any, T]],
        *,
        is_second: bool = False,
        close: Callable[[], Coroutine[Any, Any, None]] | None = None,
    ) -> None:
        self.member = member
        self.is_second = is_second
        self.started = time.monotonic()
        self._count: Callable[[], int] = int
        self._close = close
        self.task = asyncio.create_task(self._counted(work))

    @property
    def seconds(self) -> float:
        """Since it left."""
        return time.monotonic() - self.started

    @property
    def tries(self) -> int:
        """HTTP requests so far, as far as the model tells."""
        return self._count()

    async def _counted(self, work: Callable[[], Coroutine[Any, Any, T]]) -> T:
        with counting_tries() as tries:
            self._count = lambda: tries.count
            return await work()  # made here: a task that is cancelled before its first step leaves none behind

    async def cancel(self) -> None:
        """End it and wait until nothing of it is left."""
        self.task.cancel()
        await asyncio.gather(self.task, return_exceptions=True)
        if self._close is not None:
            await self._close()


async def race(
    start: Callable[[bool], Racer[T] | None],
    lost: Callable[[Racer[T], BaseException | None, bool], None],
    delay: float | None,
    exhausted: Callable[[], BaseException],
) -> Racer[T]:
    """Return the first racer that has an answer; all others are cancelled.

    Args:
        start: begins the next one, None after the last; True asks for a second one next to the first.
        lost: is told of each other one, with its error (None where it was cancelled) and whether no other one is
            running; raises what ends the race.
        delay: seconds after which a second one starts, None for one after the other.
        exhausted: gives the error when all have failed.
    """
    running: list[Racer[T]] = []
    winner: Racer[T] | None = None
    wait = delay
    try:
        while True:
            if not running:
                first = start(False)
                if first is None:
                    raise exhausted()
                running.append(first)
                wait = delay
            done, _ = await asyncio.wait(
                {racer.task for racer in running}, timeout=wait, return_when=asyncio.FIRST_COMPLETED
            )
            if not done:
                wait = None
                second = start(True)
                if second is not None:
                    running.append(second)
                continue
            for racer in [racer for racer in running if racer.task in done]:
                if racer.task.cancelled():
                    raise asyncio.CancelledError
                error = racer.task.exception()
                if error is None:
                    winner = racer
                    return racer
                running.remove(racer)
                lost(racer, error, not running)
    finally:
        await _end([racer for racer in running if racer is not winner], lost, winner)


async def _end(
    others: list[Racer[T]], lost: Callable[[Racer[T], BaseException | None, bool], None], winner: Racer[T] | None
) -> None:
    """Cancel all racers but the winner; and that one too, where this does not come to its end."""
    for racer in others:
        racer.task.cancel()  # all of them first: this task may be cancelled again while it waits
    try:
        for racer in others:
            await racer.cancel()
            lost(racer, None, False)
    except BaseException:
        if winner is not None:
            await winner.cancel()  # its answer is not used
        raise


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

    async def begin(self) -> StreamPump:
        """Return the pump itself when the stream has shown something of its answer, or its end.

        Raises:
            BaseException: what the stream raised before.
        """
        # Started here, in the racer's task, so that the requests are counted there.
        self._task = asyncio.create_task(self._run())
        while (chunk := await self._next()) is not None:
            self._begun.append(chunk)
            if chunk.text or chunk.tool_calls or chunk.finish_reason:
                break
        return self

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
