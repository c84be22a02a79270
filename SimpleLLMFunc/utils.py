"""Small helpers for asynchronous code and its context that know nothing of models."""

from __future__ import annotations

import types
from collections.abc import AsyncGenerator, AsyncIterable, Coroutine, Generator
from contextlib import AsyncExitStack
from contextvars import Context, ContextVar
from typing import Any, Generic, TypeVar

__all__ = ["ScopedVar", "get_last_item_of_async_generator", "in_context"]

T = TypeVar("T")


async def get_last_item_of_async_generator(generator: AsyncIterable[T]) -> T | None:
    """Read `generator` to its end and return its last item, None if it gave none.

    It is closed in any case: also when it raises, and when the waiting task is cancelled.
    """
    last: T | None = None
    async with AsyncExitStack() as stack:
        aclose = getattr(generator, "aclose", None)
        if aclose is not None:
            stack.push_async_callback(aclose)
        async for item in generator:
            last = item
    return last


async def in_context(generator: AsyncGenerator[T, None], context: Context) -> AsyncGenerator[T, None]:
    """Yield the items of `generator`, whose code sees and sets the variables of `context` and of no other.

    What it sets is not seen by the consumer, and the consumer's own changes do not reach it: an async
    generator otherwise shares the context of whoever asks for the next item.
    """
    try:
        while True:
            try:
                item = await _stepped(generator.__anext__(), context)
            except StopAsyncIteration:
                return
            yield item
    finally:
        await _stepped(generator.aclose(), context)


@types.coroutine
def _stepped(work: Coroutine[Any, Any, T], context: Context) -> Generator[Any, Any, T]:
    """Await `work` with every step of it run inside `context`, in the same task."""
    step, value = work.send, None
    while True:
        try:
            waited_for = context.run(step, value)
        except StopIteration as stop:
            result: T = stop.value
            return result
        try:
            step, value = work.send, (yield waited_for)
        except BaseException as error:  # noqa: BLE001 - passed on into `work`, cancellation too
            step, value = work.throw, error


class ScopedVar(Generic[T]):
    """A context variable that is set for a block, and right also when generators leave their blocks out of order.

    An async generator enters a block in the context of whoever asks for its first item, and leaves it perhaps in
    another task, or after its consumer has entered blocks of its own. So a block ends by value, not by a token of
    the context it began in, and it takes away nothing but itself.
    """

    def __init__(self, name: str) -> None:
        self._innermost: ContextVar[_Block[T] | None] = ContextVar(name, default=None)

    def get(self) -> T | None:
        """Return the value of the innermost block, None outside of any."""
        block = self._innermost.get()
        return None if block is None else block.value

    def enter(self, value: T) -> _Block[T]:
        """Begin a block in which `get` returns `value`."""
        block = _Block(value, _not_ended(self._innermost.get()))
        self._innermost.set(block)
        return block

    def leave(self, block: _Block[T]) -> None:
        """End the block that `enter` returned, in whatever context."""
        block.ended = True
        if self._innermost.get() is block:
            self._innermost.set(_not_ended(block.around))


class _Block(Generic[T]):
    __slots__ = ("around", "ended", "value")

    def __init__(self, value: T, around: _Block[T] | None) -> None:
        self.value = value
        self.around = around
        self.ended = False


def _not_ended(block: _Block[T] | None) -> _Block[T] | None:
    while block is not None and block.ended:
        block = block.around
    return block
