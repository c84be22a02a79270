"""Helpers for asynchronous code."""

import asyncio
import contextvars
from contextlib import aclosing

import pytest

from SimpleLLMFunc.utils import ScopedVar, get_last_item_of_async_generator, in_context


class Numbers:
    """An async generator that notes whether it was closed."""

    def __init__(self, count, error=None):
        self.count = count
        self.error = error
        self.closed = False

    async def __call__(self):
        try:
            for number in range(self.count):
                yield number
            if self.error is not None:
                raise self.error
        finally:
            self.closed = True


async def test_the_last_item_is_returned_and_of_nothing_none():
    numbers = Numbers(4)
    assert await get_last_item_of_async_generator(numbers()) == 3
    assert numbers.closed
    assert await get_last_item_of_async_generator(Numbers(0)()) is None


async def test_what_the_generator_raises_is_raised():
    numbers = Numbers(2, LookupError("x"))
    with pytest.raises(LookupError, match="x"):
        await get_last_item_of_async_generator(numbers())
    assert numbers.closed


async def test_cancelling_closes_the_generator_before_it_returns():
    started, tidied = asyncio.Event(), []

    async def slow():
        try:
            started.set()
            yield 1
            await asyncio.Event().wait()
        finally:
            await asyncio.sleep(0)
            tidied.append(True)

    task = asyncio.create_task(get_last_item_of_async_generator(slow()))
    await started.wait()
    await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert tidied == [True]


# --- ScopedVar -----------------------------------------------------------------------------------------------


def test_blocks_nest_and_may_end_in_any_order():
    scoped = ScopedVar("x", None)
    assert scoped.get() is None
    blocks = [scoped.enter(number) for number in range(4)]
    for number, innermost in ((1, 3), (3, 2), (0, 2), (2, None)):
        scoped.leave(blocks[number])
        assert scoped.get() == innermost


def test_a_block_left_elsewhere_takes_nothing_away_there():
    scoped = ScopedVar("x", None)
    block = contextvars.copy_context().run(scoped.enter, "elsewhere")
    mine = scoped.enter("mine")
    scoped.leave(block)
    assert scoped.get() == "mine"
    scoped.leave(mine)
    assert scoped.get() is None


# --- in_context ----------------------------------------------------------------------------------------------

variable = contextvars.ContextVar("variable", default="unset")


async def look_and_set(count=3, error=None):
    try:
        for number in range(count):
            await asyncio.sleep(0)
            seen = variable.get()
            variable.set(f"{number} inside")
            yield seen
        if error is not None:
            raise error
    finally:
        await asyncio.sleep(0)
        variable.set(f"closed with {variable.get()}")


async def test_a_generator_in_a_context_of_its_own_and_its_consumer_do_not_see_each_other():
    context = contextvars.copy_context()
    context.run(variable.set, "given")
    seen = []
    async for item in in_context(look_and_set(), context):
        seen.append((item, variable.get()))
        variable.set("consumer")
    assert seen == [("given", "unset"), ("0 inside", "consumer"), ("1 inside", "consumer")]
    assert context[variable] == "closed with 2 inside"
    assert variable.get() == "consumer"


async def test_its_errors_pass_and_it_is_closed_in_its_context():
    context = contextvars.copy_context()
    with pytest.raises(LookupError, match="x"):
        async for _ in in_context(look_and_set(1, LookupError("x")), context):
            pass
    assert context[variable] == "closed with 0 inside"


async def test_leaving_it_closes_it_in_its_context():
    context = contextvars.copy_context()
    async with aclosing(in_context(look_and_set(), context)) as items:
        async for _ in items:
            break
    assert context[variable] == "closed with 0 inside"
    assert variable.get() == "unset"


async def test_a_cancellation_reaches_what_it_waits_for():
    context = contextvars.copy_context()
    reached = []

    async def waits():
        try:
            await asyncio.Event().wait()
            yield
        except asyncio.CancelledError:
            reached.append(variable.get())
            raise

    async def consume():
        async for _ in in_context(waits(), context):
            pass

    context.run(variable.set, "given")
    task = asyncio.create_task(consume())
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert reached == ["given"]
